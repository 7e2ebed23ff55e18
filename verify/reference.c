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

enum { ACC, MB, GROUP, VERSION }; /* parameters of every operator */
enum { GROUPS, VERSIONS };      /* slot tables */

typedef struct { Graph *g; const Folder *f; Machine *m; int64_t at; LIST(Site) site; int *stage; int back, last; } Maker;

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

/* Statistics of training and frozen parameters are the same for all micro-batches of a step. */
static bool is_versioned(const Thing *t)
{
    return (is_kind(t, "param") || is_kind(t, "copy")) && !t->tracked && !t->frozen;
}

static Slots *new_table(Maker *x, const char *name, int64_t n, int64_t stride)
{
    Slots *s = ADD(&x->m->program->slots);
    *s = (Slots){name, (int)n, room(sizeof(int64_t) * (size_t)n)};
    for (int64_t k = 0; k < n; k++)
        s->at[k] = k * stride;
    return s;
}

/* Gradients have a place a group, parameters one a version. */
static void give_places(Maker *x)
{
    Graph *g = x->g;
    for (int i = 0; i < g->state.n; i++) {
        Thing *t = &g->state.at[i];
        const Thing *of = t->of && is_kind(t, "copy") ? reference_state(g, t->of, "param") : NULL;
        t->frozen |= of && of->frozen;
    }
    for (int i = 0; i < g->tensor.n; i++)
        g->tensor.at[i].at = give(x, g->tensor.at[i].bytes);
    for (int i = 0; i < g->state.n; i++)
        if (!is_kind(&g->state.at[i], "grad") && !is_versioned(&g->state.at[i]))
            g->state.at[i].at = give(x, g->state.at[i].bytes);
    for (int k = 0; k < 2; k++) {
        int64_t first = x->at, n = k == GROUPS ? g->groups : x->back + x->last + 2;
        for (int i = 0; i < g->state.n; i++)
            if (k == GROUPS ? is_kind(&g->state.at[i], "grad") : is_versioned(&g->state.at[i]))
                g->state.at[i].at = give(x, g->state.at[i].bytes);
        if (x->at - first > ((int64_t)1 << 60) / n)
            stop(NOT_READ, "%s: sizes that no machine has", x->g->path);
        new_table(x, k == GROUPS ? "group_slot" : "version_slot", n, x->at - first);
        x->at = first + (x->at - first) * n;
    }
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static const Thing *thing(const Maker *x, const GraphOp *o, const GraphArg *a)
{
    bool state = strchr("RWUA", a->sign) != NULL;
    int k = map_at(state ? &x->g->states : &x->g->tensors, a->name);
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

static Arg place(Maker *x, int op, const GraphArg *a)
{
    const GraphOp *o = &x->g->op.at[op];
    Arg to = {.kind = A_INT, .slots = -1, .param = -1};
    if (strchr("rwRWUA", a->sign)) {
        const Thing *t = thing(x, o, a);
        to.kind = A_PLACE;
        to.i = t->at;
        if (strchr("RWUA", a->sign) && (is_kind(t, "grad") || is_versioned(t))) {
            to.slots = is_kind(t, "grad") ? GROUPS : VERSIONS;
            to.param = is_kind(t, "grad") ? GROUP : VERSION;
        }
    } else if (a->sign == 'v') {
        to.kind = A_PLACE;
        to.i = values_of(x, o)->at + a->i * VALS_BYTES;
    } else if (a->sign == 'f') {
        to.kind = A_FLOAT;
        to.f = a->f;
    } else if (a->sign == 'l') {
        to.i = overlap_late(x->f, x->stage[op]);
    } else if (a->sign == 'c' || a->sign == 'm') {
        to.param = a->sign == 'c' ? ACC : MB;
    } else {
        to.i = a->i;
    }
    return to;
}

/* Does an argument of the graph do what calls.def says of it? */
static bool fits(const Param *p, char sign)
{
    static const char *const signs[] = {"wwWU", "rrR", "erR", "aA", "uUA", "orR", "tt", "vv", "xv", "yv", "zv", "iil", "ff",
        "nim", "si", "hh", "cc", "mm"};
    size_t i = 0;
    while (signs[i][0] != p->mode)
        i++;
    return sign == '0' ? p->optional : strchr(signs[i] + 1, sign) != NULL;
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
        if (!fits(&s->row->param[k], o->arg.at[k].sign))
            stop(NOT_READ, "%s:%d: argument %d of %s, '%s', is no '%c' as calls.def has it", x->g->path, o->line, k + 1,
                 o->call, o->arg.at[k].token, s->row->param[k].mode);
        s->arg[k] = place(x, op, &o->arg.at[k]);
        if (x->m->evaluates && !strcmp(s->row->param[k].name, "drop"))
            s->arg[k] = (Arg){.kind = A_FLOAT, .slots = -1, .param = -1};   /* an evaluation drops nothing */
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
        else if (s->row->param[k].mode == 't' && a->sign == 't' && s->bytes[k] != o->tmp && !x->m->evaluates)
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

/* The step values that a step began with. */
static Term begun(int step)
{
    Term number = term_int(step);
    return term_of(H_VALS, VALS_BYTES, 1, &number);
}

static void load(Maker *x, int step, int mb)
{
    for (int i = 0; i < x->g->tensor.n; i++) {
        const Thing *t = &x->g->tensor.at[i];
        Term of[3] = {term_int(t->input), term_int(mb), begun(step)};
        if (is_kind(t, "input"))
            region_set(&x->m->region, (Piece){t->at, t->at + t->bytes, 0, term_of(H_DATA, t->bytes, 3, of)});
    }
}

/* What stands there before a run: one symbol a state, and a parameter's version. */
static Term state_begin(const Graph *g, const char *param, const char *kind, int64_t bytes, int back)
{
    const Thing *of = !strcmp(kind, "copy") ? reference_state(g, param, "param") : NULL;
    if (of) {
        Term master = state_begin(g, param, "param", of->bytes, back);
        return term_of(head_of(2 * bytes == of->bytes ? "cast_forward" : "quantized", "y", ""), bytes, 1, &master);
    }
    const char *older = back ? joined_text(", %d version%s older", back, back > 1 ? "s" : "") : "";
    return term_of(head_of(joined_text("%s of %s before the run%s", kind, param, older), "", ""), bytes, 0, NULL);
}

static void begin(Maker *x)
{
    const Slots *version = &x->m->program->slots.at[VERSIONS];
    for (int i = 0; i < x->g->state.n; i++) {
        const Thing *t = &x->g->state.at[i];
        bool none = is_kind(t, "grad") || is_kind(t, "clip") || is_kind(t, "blocks") || is_kind(t, "norm") ||
            is_kind(t, "values");
        for (int k = 0; k <= (is_versioned(t) ? x->back : 0) && !none; k++) {
            int64_t at = t->at + (is_versioned(t) ? version->at[x->back - k] : 0);
            region_set(&x->m->region, (Piece){at, at + t->bytes, 0, state_begin(x->g, t->of, t->kind, t->bytes, k)});
        }
    }
}

static void begin_step(Maker *x, int step)
{
    for (int i = 0; i < x->g->state.n; i++) {
        const Thing *t = &x->g->state.at[i];
        if (is_kind(t, "values"))
            vals_begin(x->m, x->m->vals = t->at, t->bytes / VALS_BYTES);
        else if (is_kind(t, "norm"))
            region_set(&x->m->region, (Piece){t->at, t->at + t->bytes, 0, term_of(H_ZERO, 8, 0, NULL)});
    }
    for (int i = 0; i < x->g->count.n; i++) {
        const GraphCount *c = &x->g->count.at[i];
        Term of[3] = {term_int(c->input), term_int(c->ignore), begun(step)};
        int64_t at = x->m->vals + VALS_VALID + 8 * c->count;
        region_set(&x->m->region, (Piece){at, at + 8, 0, term_of(H_COUNT, 8, 3, of)});
    }
}

const Thing *reference_state(const Graph *g, const char *param, const char *kind)
{
    for (int i = 0; i < g->state.n; i++)
        if (g->state.at[i].of && !strcmp(g->state.at[i].of, param) && !strcmp(g->state.at[i].kind, kind))
            return &g->state.at[i];
    return NULL;
}

/* ---- versions ---------------------------------------------------------------------------------------------------- */

/* The stage of each operator that reads a parameter: whoever holds it; else 0. */
static void find_stages(Maker *x)
{
    Map holder = {0};
    for (int d = x->f->stages; d-- > 0;)
        for (int i = 0; i < x->f->stage[d].held.n; i++)
            map_set(&holder, x->f->stage[d].held.at[i].param, d);
    x->stage = room(sizeof *x->stage * (size_t)x->g->op.n);
    for (int i = 0; i < x->g->op.n; i++)
        for (int k = 0; k < x->g->op.at[i].arg.n; k++) {
            const GraphArg *a = &x->g->op.at[i].arg.at[k];
            int d = strchr("RWUA", a->sign) ? map_at(&holder, thing(x, &x->g->op.at[i], a)->of) : -1;
            x->stage[i] = d > x->stage[i] ? d : x->stage[i];
        }
}

/* A state of a version, or what is predicted from it and the one before, or from its drift. */
Term reference_value(const Reference *r, const Pieces *at, const Thing *t, int version, Reads reads)
{
    const Thing *drift = reads.behind ? reference_state(r->g, t->of, "drift") : NULL;
    const int64_t *slot = &r->version->at[r->back];
    int64_t newer = t->at + (is_versioned(t) ? slot[version] : 0);
    Term x = region_term(at, newer, newer + t->bytes);
    if (!reads.ahead && !reads.behind)
        return x;
    int64_t older = drift ? drift->at : t->at + slot[version - 1];
    Term of[3] = {x, region_term(at, older, older + t->bytes), term_int(reads.behind ? reads.behind : reads.ahead)};
    return term_of(head_of(reads.behind ? "predict_old" : "predict", "to", ""), t->bytes, 3, of);
}

/* In the slot behind all versions: what an operator reads of its parameters, some updates away from that version. */
static int predicted(Maker *x, int op, Reads reads, int version)
{
    Reference r = {.g = x->g, .back = x->back, .version = &x->m->program->slots.at[VERSIONS]};
    int to = r.version->n - 1;
    for (int k = 0; k < x->g->op.at[op].arg.n; k++) {
        const GraphArg *a = &x->g->op.at[op].arg.at[k];
        const Thing *t = strchr("RU", a->sign) ? thing(x, &x->g->op.at[op], a) : NULL;
        if (!t || !is_versioned(t))
            continue;
        int64_t at = t->at + r.version->at[to];
        region_set(&x->m->region, (Piece){at, at + t->bytes, 0, reference_value(&r, &x->m->region, t, version, reads)});
    }
    return to;
}

static int version_read(Maker *x, int op, int step, int mb)
{
    Reads r = overlap_reads(x->f, x->stage[op], x->g->op.at[op].phase == 'F', mb);
    return r.ahead || r.behind ? predicted(x, op, r, step + r.version) : x->back + step + r.version;
}

/* The newest weights, to where they are updated. */
static void next_version(Maker *x, int step)
{
    const Slots *version = &x->m->program->slots.at[VERSIONS];
    for (int i = 0; i < x->g->state.n; i++) {
        const Thing *t = &x->g->state.at[i];
        int64_t from = t->at + version->at[x->back + step], to = t->at + version->at[x->back + step + 1];
        if (is_versioned(t))
            region_set(&x->m->region, (Piece){to, to + t->bytes, 0, region_term(&x->m->region, from, from + t->bytes)});
    }
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

static void micro_batch(Maker *x, int step, int mb, bool backward)
{
    int each = (int)(x->g->micro / x->g->groups), param[4] = {[MB] = mb, [GROUP] = mb / each};
    load(x, step, mb);
    for (int i = 0; i < x->g->op.n; i++) {
        char phase = x->g->op.at[i].phase;
        param[ACC] = phase == 'F' ? mb > 0 : mb % each > 0;
        if (phase == 'U' || (phase != 'F' && !backward))
            continue;
        param[VERSION] = backward ? version_read(x, i, step, mb) : x->back;     /* an evaluation reads the newest */
        run_op(x, &x->site.at[i], param);
    }
}

/* The tree over groups: at each level, neighbours. */
static void fold(Maker *x)
{
    const Slots *s = &x->m->program->slots.at[GROUPS];
    for (int64_t far = 1; far < x->g->groups; far *= 2)
        for (int64_t k = 0; k + far < x->g->groups; k += 2 * far)
            for (int i = 0; i < x->g->state.n; i++) {
                const Thing *t = &x->g->state.at[i];
                int64_t a = t->at + s->at[k], b = t->at + s->at[k + far];
                if (!is_kind(t, "grad"))
                    continue;
                Term to = region_term(&x->m->region, a, a + t->bytes);
                Term from = region_term(&x->m->region, b, b + t->bytes);
                region_set(&x->m->region, (Piece){a, a + t->bytes, 0, term_sum(4, t->bytes, to, from)});
            }
}

static void update(Maker *x, int step)
{
    int param[4] = {[VERSION] = x->back + step + 1};
    fold(x);
    next_version(x, step);
    for (int i = 0; i < x->g->op.n; i++)
        if (x->g->op.at[i].phase == 'U')
            run_op(x, &x->site.at[i], param);
}

Reference reference_run(Graph *g, const Folder *f, Run run)
{
    Pieces before = {0};
    Maker x = {.g = g, .f = f, .m = room(sizeof(Machine)), .back = overlap_back(f), .last = run.eval ? 0 : run.steps};
    *x.m = (Machine){.name = "the reference", .stage = -1, .devices = 1, .program = room(sizeof(Program)), .arena = INT64_MAX,
                     .evaluates = run.eval || run.infer};
    give_places(&x);
    find_stages(&x);
    for (int i = 0; i < g->op.n; i++) {
        make_site(&x, i);
        give_scratch(&x, &x.site.at[i]);
    }
    duals_check(g);
    term_origin = (Origin){-1, 0, -1};
    begin(&x);
    region_get(&x.m->region, 0, INT64_MAX, &before);
    for (int step = 0; step < (run.eval ? 1 : run.steps); step++) {
        begin_step(&x, step);
        for (int mb = 0; mb < (run.eval ? 1 : g->micro); mb++)
            micro_batch(&x, step, mb, !run.eval && !run.infer);
        if (!run.eval && !run.infer)
            update(&x, step);
        step_ended(x.m, x.m->vals);
    }
    return (Reference){g, x.m, before, x.back, &x.m->program->slots.at[VERSIONS]};
}
