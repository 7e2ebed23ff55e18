/* SPDX-License-Identifier: Apache-2.0
 *
 * reference.c: model.graph as a program of one device, and its step.
 *
 * The device has an arena of its own, in which each tensor and each state has a place.  Every call is the same to it as to a
 * stage: what it reads and writes is in calls.def.  The order is that of docs/bits.md:
 *
 *   micro-batches ascending, in each its operators in the order of the graph
 *   gradients of each group of micro-batches in one chain; groups by the binary tree
 *   updates once
 *
 * Sizes are compared: an operand of calls.def has the bytes of the tensor in the graph.
 */
#include "verify.h"
#include <string.h>

enum { ACC, MB, GROUP };        /* parameters of every operator */

typedef struct { Graph *g; Machine *m; int64_t at; LIST(Site) site; int slots; } Maker;

/* ---- places ------------------------------------------------------------------------------------------------------ */

static int64_t give(Maker *x, int64_t bytes)
{
    int64_t at = x->at;
    x->at += (bytes + 63) / 64 * 64;
    if (x->at > (int64_t)1 << 60)
        stop(NOT_READ, "%s: sizes that no machine has", x->g->path);
    return at;
}

static bool is_kind(const Thing *t, const char *kind)
{
    return !strcmp(t->kind, kind);
}

/* Gradients have a place a group: slot k of group k lies k times all of them behind. */
static void give_places(Maker *x)
{
    int64_t first;
    Slots *s = ADD(&x->m->program->slots);
    *s = (Slots){"group_slot", (int)x->g->groups, room(sizeof(int64_t) * (size_t)x->g->groups)};
    for (int i = 0; i < x->g->tensor.n; i++)
        x->g->tensor.at[i].at = give(x, x->g->tensor.at[i].bytes);
    for (int i = 0; i < x->g->state.n; i++)
        if (!is_kind(&x->g->state.at[i], "grad"))
            x->g->state.at[i].at = give(x, is_kind(&x->g->state.at[i], "values") ? VALS_BYTES : x->g->state.at[i].bytes);
    first = x->at;
    for (int i = 0; i < x->g->state.n; i++)
        if (is_kind(&x->g->state.at[i], "grad"))
            x->g->state.at[i].at = give(x, x->g->state.at[i].bytes);
    int64_t all = x->at - first;
    for (int64_t k = 0; k < x->g->groups; k++)
        s->at[k] = k * all;
    x->at = first + all * x->g->groups;
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static const Thing *thing(const Maker *x, const GraphOp *o, const GraphArg *a)
{
    bool state = strchr("RWUA", a->sign) != NULL;
    int k = map_get(state ? &x->g->states : &x->g->tensors, a->name);
    if (k < 0)
        stop(NOT_READ, "%s:%d: there is no %s %s", x->g->path, o->line, state ? "state" : "tensor", a->name);
    return state ? &x->g->state.at[k] : &x->g->tensor.at[k];
}

static const Thing *values_of(const Maker *x, const GraphOp *o)
{
    for (int i = 0; i < x->g->state.n; i++)
        if (is_kind(&x->g->state.at[i], "values"))
            return &x->g->state.at[i];
    stop(NOT_READ, "%s:%d: the graph has no step values", x->g->path, o->line);
}

static Arg place(Maker *x, const GraphOp *o, const GraphArg *a)
{
    Arg to = {.kind = A_INT, .slots = -1, .param = -1};
    if (strchr("rwRWUA", a->sign)) {
        const Thing *t = thing(x, o, a);
        to.kind = A_PLACE;
        to.i = t->at;
        if (is_kind(t, "grad") && strchr("RWUA", a->sign)) {
            to.slots = 0;
            to.param = GROUP;
        }
    } else if (a->sign == 'v') {
        to.kind = A_PLACE;
        to.i = values_of(x, o)->at;
    } else if (a->sign == 'f') {
        to.kind = A_FLOAT;
        to.f = a->f;
    } else if (a->sign == 'c' || a->sign == 'm') {
        to.param = a->sign == 'c' ? ACC : MB;
    } else {
        to.i = a->i;
    }
    return to;
}

/* Does an argument of the graph do what calls.def says of it? */
static bool fits(char mode, char sign)
{
    static const char *const signs[] = {"wwWU0", "rrR0", "aA0", "uUA", "orR0", "tt0", "vv", "xv", "yv", "zv", "ii", "ff", "nim",
        "si", "hh", "cc", "mm"};
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (signs[i][0] == mode)
            return strchr(signs[i] + 1, sign) != NULL;
    return false;
}

static void make_site(Maker *x, int op)
{
    const GraphOp *o = &x->g->op.at[op];
    Site *s = ADD(&x->site);
    *s = (Site){.row = row_named(o->call), .routine = -1, .line = o->line, .op = op};
    if (!s->row)
        stop(NOT_READ, "%s:%d: %s is no call that dpgen-verify knows", x->g->path, o->line, o->call);
    if (s->row->n != o->arg.n)
        stop(NOT_READ, "%s:%d: %s takes %d arguments, not %d", x->g->path, o->line, o->call, s->row->n, o->arg.n);
    s->n = o->arg.n;
    s->arg = room(sizeof *s->arg * (size_t)(s->n + 1));
    for (int k = 0; k < s->n; k++) {
        if (!fits(s->row->param[k].mode, o->arg.at[k].sign))
            stop(NOT_READ, "%s:%d: argument %d of %s, '%s', is no '%c' as calls.def has it", x->g->path, o->line, k + 1,
                 o->call, o->arg.at[k].token, s->row->param[k].mode);
        s->arg[k] = place(x, o, &o->arg.at[k]);
    }
}

/* Scratch is asked for by the extent, once it is known. */
static void give_scratch(Maker *x, Site *s)
{
    for (int k = 0; k < s->n; k++)
        if (s->row->param[k].mode == 't' && x->g->op.at[s->op].arg.at[k].sign == 't') {
            s->arg[k].kind = A_PLACE;
            s->arg[k].i = (int64_t)1 << 61;
        }
}

/* ---- the step ---------------------------------------------------------------------------------------------------- */

static void sizes_agree(const Maker *x, const Site *s)
{
    const GraphOp *o = &x->g->op.at[s->op];
    for (int k = 0; k < s->n; k++) {
        const GraphArg *a = &o->arg.at[k];
        if (s->row->param[k].mode == 't' && a->sign == 't' && !x->g->portable)
            site_scratch(s, o->tmp);
        else if (s->row->param[k].mode == 't' && a->sign == 't' && s->bytes[k] != o->tmp)
            stop(NOT_READ, "%s:%d: scratch of %s is %lld bytes by calls.def, %lld here", x->g->path, o->line, o->call,
                 (long long)s->bytes[k], (long long)o->tmp);
        if (!s->row->param[k].width || !strchr("rwRWUA", a->sign) || s->row->kind == ROW_OTHER)
            continue;
        const Thing *t = thing(x, o, a);
        bool less = s->row->param[k].mode == 'r' && s->bytes[k] < t->bytes;
        if (s->bytes[k] != t->bytes && !less)
            stop(NOT_READ, "%s:%d: '%s' of %s is %lld bytes by calls.def, %s has %lld", x->g->path, o->line, a->token, o->call,
                 (long long)s->bytes[k], t->name, (long long)t->bytes);
    }
}

static void run_op(Maker *x, Site *s, const int *param)
{
    bool first = !s->bytes;
    term_origin = (Origin){-1, s->line, x->g->op.at[s->op].phase == 'U' ? -1 : param[MB]};
    call_do(x->m, s, param);
    if (first)
        sizes_agree(x, s);
}

static void load(Maker *x, int64_t mb)
{
    for (int i = 0; i < x->g->tensor.n; i++) {
        const Thing *t = &x->g->tensor.at[i];
        Term of[2] = {term_int(t->input), term_int(mb)};
        if (is_kind(t, "input"))
            region_set(&x->m->region, (Piece){t->at, t->at + t->bytes, 0, term_of(H_DATA, t->bytes, 2, of)});
    }
}

/* The tree over groups: at each level, neighbours. */
static void fold(Maker *x)
{
    const Slots *s = &x->m->program->slots.at[0];
    for (int64_t far = 1; far < x->g->groups; far *= 2)
        for (int64_t k = 0; k + far < x->g->groups; k += 2 * far)
            for (int i = 0; i < x->g->state.n; i++) {
                const Thing *t = &x->g->state.at[i];
                int64_t hole, a = t->at + s->at[k], b = t->at + s->at[k + far];
                if (!is_kind(t, "grad"))
                    continue;
                Term to = region_term(&x->m->region, a, a + t->bytes, &hole);
                Term from = region_term(&x->m->region, b, b + t->bytes, &hole);
                if (!to || !from)
                    stop(NOT_READ, "%s: gradient %s has no value in a group", x->g->path, t->name);
                region_set(&x->m->region, (Piece){a, a + t->bytes, 0, term_sum(4, t->bytes, to, from)});
            }
}

/* What stands there before a step: one symbol a state.  A copy is the parameter in the compute type. */
static void begin(Maker *x)
{
    Graph *g = x->g;
    for (int i = 0; i < g->state.n; i++) {
        const Thing *t = &g->state.at[i];
        Piece p = {t->at, t->at + t->bytes, 0, 0};
        if (is_kind(t, "values"))
            vals_begin(x->m, t->at);
        else if (is_kind(t, "norm"))
            p.term = term_of(H_ZERO, 8, 0, NULL);
        else if (!is_kind(t, "grad") && !is_kind(t, "clip") && !is_kind(t, "blocks"))
            p.term = state_begin(t->of, t->kind, t->bytes);
        if (p.term)
            region_set(&x->m->region, p);
    }
    for (int i = 0; i < g->count.n; i++) {
        const GraphCount *c = &g->count.at[i];
        Term of[2] = {term_int(c->input), term_int(c->ignore)};
        int64_t at = x->m->vals + VALS_VALID + 8 * c->count;
        region_set(&x->m->region, (Piece){at, at + 8, 0, term_of(H_COUNT, 8, 2, of)});
    }
}

Term state_begin(const char *param, const char *kind, int64_t bytes)
{
    if (!strcmp(kind, "copy")) {
        Term master = state_begin(param, "param", 2 * bytes);
        return term_of(head_of("cast_forward", "y", ""), bytes, 1, &master);
    }
    return term_of(head_of(joined_text("%s of %s before the step", kind, param), "", ""), bytes, 0, NULL);
}

const Thing *reference_state(const Graph *g, const char *param, const char *kind)
{
    for (int i = 0; i < g->state.n; i++)
        if (g->state.at[i].of && !strcmp(g->state.at[i].of, param) && !strcmp(g->state.at[i].kind, kind))
            return &g->state.at[i];
    return NULL;
}

static void micro_batch(Maker *x, int mb, bool backward)
{
    int each = (int)(x->g->micro / x->g->groups), param[3] = {[MB] = mb, [GROUP] = mb / each};
    load(x, mb);
    for (int i = 0; i < x->g->op.n; i++) {
        char phase = x->g->op.at[i].phase;
        param[ACC] = phase == 'F' ? mb > 0 : mb % each > 0;
        if (phase == 'F' || (backward && phase != 'U'))
            run_op(x, &x->site.at[i], param);
    }
}

static void update(Maker *x)
{
    int param[3] = {0, 0, 0};
    fold(x);
    for (int i = 0; i < x->g->op.n; i++)
        if (x->g->op.at[i].phase == 'U')
            run_op(x, &x->site.at[i], param);
}

Machine *reference_run(Graph *g, bool eval)
{
    Maker x = {.g = g, .m = room(sizeof(Machine)), .at = 0};
    *x.m = (Machine){.name = "the reference", .stage = -1, .program = room(sizeof(Program)), .arena = INT64_MAX};
    give_places(&x);
    for (int i = 0; i < g->op.n; i++) {
        make_site(&x, i);
        give_scratch(&x, &x.site.at[i]);
    }
    term_origin = (Origin){-1, 0, -1};
    begin(&x);
    for (int mb = 0; mb < (eval ? 1 : g->micro); mb++)
        micro_batch(&x, mb, !eval);
    if (!eval)
        update(&x);
    return x.m;
}
