/* SPDX-License-Identifier: Apache-2.0
 *
 * graph.c: small questions about a graph.
 */
#include "graph.h"

Bytes type_bytes(Type t)
{
    static const Bytes bytes[] = {[F32] = 4, [BF16] = 2, [I32] = 4, [F64] = 8, [U8] = 1};
    return bytes[t];
}

const char *type_name(Type t)
{
    static const char *const name[] = {[F32] = "f32", [BF16] = "bf16", [I32] = "i32", [F64] = "f64", [U8] = "u8"};
    return name[t];
}

/* Greedy with one point to come back to: the last star takes one character more.  Quadratic at worst, no recursion,
 * so a pattern from the YAML cannot make it explode. */
bool match(const char *pattern, const char *name)
{
    const char *star = NULL, *from = NULL;
    while (*name) {
        if (*pattern == '*') {
            star = ++pattern;
            from = name;
        } else if (*pattern == *name) {
            pattern++;
            name++;
        } else if (star) {
            pattern = star;
            name = ++from;
        } else {
            return false;
        }
    }
    return !pattern[strspn(pattern, "*")];
}

const char *match_any(const Strs *patterns, const char *name)
{
    for (int i = 0; i < patterns->n; i++)
        if (match(patterns->at[i], name))
            return patterns->at[i];
    return NULL;
}

bool match_block(const char *pattern, const char *name)
{
    return match(pattern, name) || match(strf("%s.*", pattern), name);
}

Arg *op_arg(const Op *o, const char *token)
{
    for (int i = 0; i < o->arg.n; i++)
        if (!strcmp(o->arg.at[i].token, token))
            return &o->arg.at[i];
    return NULL;
}

const Attr *attr_find(const Op *o, const char *name)
{
    int i = INDEX_OF(o->attr.at, o->attr.n, name);
    return i < 0 ? NULL : &o->attr.at[i];
}

int64_t attr_int(const Op *o, const char *name)
{
    const Attr *a = attr_find(o, name);
    return a ? a->i : 0;
}

static Attr *attr_slot(Op *o, const char *name)
{
    int i = INDEX_OF(o->attr.at, o->attr.n, name);
    return i < 0 ? PUSH(&o->attr) : &o->attr.at[i];
}

void attr_set(Op *o, const char *name, int64_t i)
{
    *attr_slot(o, name) = (Attr){name, true, i, 0};
}

void attrs_set(Op *o, const AttrNumber *list)
{
    for (; list->name; list++)
        attr_set(o, list->name, list->i);
}

void attr_set_float(Op *o, const char *name, double f)
{
    *attr_slot(o, name) = (Attr){name, false, 0, f};
}

/* Stops growing at 2^48, which every use refuses. */
int64_t shape_size(const Shape *s, int from, int to)
{
    int64_t n = 1;
    for (int i = from; i < to; i++)
        n = s->d[i] && n > MAX_BYTES / s->d[i] ? MAX_BYTES : n * s->d[i];
    return n;
}

const char *shape_text(const Shape *s)
{
    const char *text = "";
    for (int i = 0; i < s->n; i++)
        text = strf("%s%s%" PRId64, text, i ? ", " : "", s->d[i]);
    return strf("[%s]", text);
}

bool shape_same(const Shape *a, const Shape *b)
{
    return a->n == b->n && !memcmp(a->d, b->d, (size_t)a->n * sizeof a->d[0]);
}

Shape shape_whole(const State *s)
{
    Shape whole = s->shape;
    if (s->outer)
        whole.d[s->dim] = s->whole;
    return whole;
}

/* Of weights that change, those have versions that a forward or a backward reads. */
void graph_uses(Graph *g)
{
    for (int s = 0; s < g->state.n; s++)
        g->state.at[s].begun_by = g->state.at[s].ended_by = 0;
    for (int o = 0; o < g->nb; o++)
        for (EACH(const Arg, a, g->op.at[o].arg)) {
            State *s = a->state ? &g->state.at[a->index] : NULL;
            if (s && a->kind == ARG_READ && (s->kind == S_PARAM || s->kind == S_COPY))
                s->versions = !s->tracked && !g->state.at[s->param].frozen;
            if (s && a->kind == ARG_ADD && s->kind == S_GRAD && o >= g->nf)
                s->begun_by = s->begun_by ? s->begun_by : o, s->ended_by = o;
        }
}

int *graph_reads(const Graph *g, int from, int to)
{
    int *reads = alloc(sizeof *reads * (size_t)(g->tensor.n + 1));
    for (int o = from; o < to; o++)
        for (EACH(const Arg, a, g->op.at[o].arg))
            if (a->kind == ARG_READ && !a->state)
                reads[a->index]++;
    return reads;
}

bool copy_alone(const Graph *g, int state)
{
    const State *s = &g->state.at[state];
    return s->kind == S_PARAM && s->frozen && state + 1 < g->state.n && s[1].kind == S_COPY;
}

/* Losses tell by their Count which target they pass over; an Embedding passes over none. */
bool input_ignores(const Graph *g, int input, int *value)
{
    int losses = 0;
    for (EACH(const Count, c, g->count)) {
        if (c->input != input)
            continue;
        if (losses++ && c->ignore != *value)
            return false;
        *value = c->ignore;
    }
    for (int o = 0; o < g->nf; o++)
        for (EACH(const Arg, a, g->op.at[o].arg))
            if (a->kind == ARG_READ && !a->state && !strcmp(a->token, "ids") &&
                g->tensor.at[a->index].kind == T_INPUT && g->tensor.at[a->index].of == input)
                return false;
    return losses > 0;
}

/* That of its first state, or else, of the sum of a parameter's blocks, the one that it has the name of. */
int update_param(const Graph *g, const Op *o)
{
    for (int i = 0; i < o->arg.n; i++)
        if (o->arg.at[i].state && g->state.at[o->arg.at[i].index].param >= 0)
            return g->state.at[o->arg.at[i].index].param;
    for (int s = 0; s < g->state.n; s++)
        if (g->state.at[s].kind == S_PARAM && !strcmp(g->state.at[s].name, o->name))
            return s;
    return -1;
}
