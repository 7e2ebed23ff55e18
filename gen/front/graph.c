/* SPDX-License-Identifier: Apache-2.0
 *
 * graph.c: small questions about a graph, and the table that `dpgen check` prints.
 */
#include "front.h"
#include <inttypes.h>
#include <string.h>

Bytes type_bytes(Type t)
{
    static const Bytes bytes[] = {[F32] = 4, [BF16] = 2, [I32] = 4, [F64] = 8};
    return bytes[t];
}

const char *type_name(Type t)
{
    static const char *const name[] = {[F32] = "f32", [BF16] = "bf16", [I32] = "i32", [F64] = "f64"};
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

bool match_block(const char *pattern, const char *name)
{
    return match(pattern, name) || match(strf("%s.*", pattern), name);
}

const Attr *attr_find(const Op *o, const char *name)
{
    for (int i = 0; i < o->attr.n; i++)
        if (!strcmp(o->attr.at[i].name, name))
            return &o->attr.at[i];
    return NULL;
}

int64_t attr_int(const Op *o, const char *name)
{
    const Attr *a = attr_find(o, name);
    return a ? a->i : 0;
}

static Attr *attr_slot(Op *o, const char *name)
{
    for (int i = 0; i < o->attr.n; i++)
        if (!strcmp(o->attr.at[i].name, name))
            return &o->attr.at[i];
    return PUSH(&o->attr);
}

void attr_set(Op *o, const char *name, int64_t i)
{
    *attr_slot(o, name) = (Attr){name, true, i, 0};
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

/* ---- the table of dpgen check ------------------------------------------------------------------------------------ */

/* 124439808 as 124,439,808. */
static const char *grouped(int64_t n)
{
    char digits[24];
    int len = snprintf(digits, sizeof digits, "%" PRId64, n);
    const char *text = "";
    for (int i = 0; i < len; i++)
        text = strf("%s%s%c", text, i && (len - i) % 3 == 0 && digits[i - 1] != '-' ? "," : "", digits[i]);
    return text;
}

static void line(FILE *f, const char *what, int64_t n, const char *unit)
{
    fprintf(f, "  %-34s %22s%s%s\n", what, grouped(n), *unit ? " " : "", unit);
}

typedef struct { int64_t op[4], flop[4]; } ByPhase;

static ByPhase by_phase(const Graph *g)
{
    ByPhase sum = {{0}, {0}};
    for (int i = 0; i < g->op.n; i++) {
        sum.op[g->op.at[i].phase]++;
        sum.flop[g->op.at[i].phase] += g->op.at[i].flop;
    }
    return sum;
}

static Bytes state_bytes(const Graph *g, StateKind from, StateKind to)
{
    Bytes n = 0;
    for (int i = 0; i < g->state.n; i++)
        if (g->state.at[i].kind >= from && g->state.at[i].kind <= to)
            n += g->state.at[i].bytes;
    return n;
}

/* Forward tensors that a backward operator reads; before grad has run, all of them. */
static Bytes saved_bytes(const Graph *g)
{
    bool *read = alloc((size_t)g->tensor.n + 1);
    for (int i = g->nf; i < g->op.n; i++)
        for (int k = 0; k < g->op.at[i].arg.n; k++) {
            const Arg *a = &g->op.at[i].arg.at[k];
            if (a->kind == ARG_READ && !a->state)
                read[a->index] = true;
        }
    Bytes n = 0;
    for (int i = 0; i < g->tensor.n; i++)
        if (g->tensor.at[i].kind == T_ACT && (read[i] || g->op.n == g->nf))
            n += g->tensor.at[i].bytes;
    return n;
}

/* How many parameter tensors, and of how many numbers. */
static int64_t parameters(const Graph *g, int64_t *tensors)
{
    int64_t n = 0;
    *tensors = 0;
    for (int i = 0; i < g->state.n; i++)
        if (g->state.at[i].kind == S_PARAM && !g->state.at[i].tracked) {
            n += shape_size(&g->state.at[i].shape, 0, g->state.at[i].shape.n);
            ++*tensors;
        }
    return n;
}

/* Of matrix products and convolutions forward, as papers count them. */
static int64_t multiply_adds(const Graph *g)
{
    int64_t n = 0;
    for (int i = 0; i < g->nf; i++)
        n += row(g->op.at[i].row)->product ? g->op.at[i].flop - g->op.at[i].pass_flop : 0;
    return n / 2 / g->batch;
}

void graph_totals(FILE *f, const Graph *g)
{
    int64_t tensors, numbers = parameters(g, &tensors);
    ByPhase sum = by_phase(g);
    int64_t micro = sum.flop[PH_F] + sum.flop[PH_I] + sum.flop[PH_W];
    fprintf(f, "%s: %s a micro-batch, %s a step, %s\n", g->name, count_text(g->batch, "sample"),
            count_text(g->micro, "micro-batch"), type_name(g->compute));
    line(f, "operators, forward", sum.op[PH_F], "");
    line(f, "operators, input gradient", sum.op[PH_I], "");
    line(f, "operators, weight gradient", sum.op[PH_W], "");
    line(f, "operators, update", sum.op[PH_U], "");
    line(f, "parameters", numbers, "");
    line(f, "parameter tensors", tensors, "");
    line(f, "parameters, with their copies", state_bytes(g, S_PARAM, S_COPY), "bytes");
    line(f, "gradients", state_bytes(g, S_GRAD, S_GRAD), "bytes");
    line(f, "moments", state_bytes(g, S_MOMENT1, S_DRIFT), "bytes");
    line(f, "activations for backward, at most", saved_bytes(g), "bytes a micro-batch");
    line(f, "multiply-adds of products, forward", multiply_adds(g), "a sample");
    line(f, "arithmetic, forward", sum.flop[PH_F], "FLOP a micro-batch");
    line(f, "arithmetic, with backward", micro, "FLOP a micro-batch");
    line(f, "arithmetic, a step", micro * g->micro + sum.flop[PH_U], "FLOP");
}

/* Losses tell by their Count which target they pass over; an Embedding passes over none. */
bool input_ignores(const Graph *g, int input, int *value)
{
    int losses = 0;
    for (int i = 0; i < g->count.n; i++) {
        const Count *c = &g->count.at[i];
        if (c->input != input)
            continue;
        if (losses++ && c->ignore != *value)
            return false;
        *value = c->ignore;
    }
    for (int o = 0; o < g->nf; o++)
        for (int i = 0; i < g->op.at[o].arg.n; i++) {
            const Arg *a = &g->op.at[o].arg.at[i];
            if (a->kind == ARG_READ && !a->state && !strcmp(a->token, "ids") &&
                g->tensor.at[a->index].kind == T_INPUT && g->tensor.at[a->index].of == input)
                return false;
        }
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
