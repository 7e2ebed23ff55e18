/* SPDX-License-Identifier: Apache-2.0
 *
 * mem.c: does every call read the right bytes, and the right version of them?  A check of mem, lower and comm that trusts none
 * of them.
 *
 * Method: each device's straight line is replayed, two steps with an evaluation behind each, over a map from address ranges to
 * values (check.h).
 *
 * A write claims its range; a read must find its whole range holding the value it expects.  So a read finds another value if
 * two owners share a byte, if a transfer is missing, late or of the wrong micro-batch, or if a weight is of the step before.  A
 * receive is in flight until its wait; a sent range must still hold its value then.  No result may share bytes with an operand
 * of its own call.  A receive brings the value that the sender must hold by the plan's rules.  The replay of the send checks
 * that the sender does hold it.  The host's memory is such a map too.  An offloaded value is in flight there until its wait.  A
 * fetch must find it whole, and it must still be there when the fetch ends.
 *
 * Cost: calls times operands times the pieces of one (check.h).
 */
#include "check.h"
#include "list/list.h"

typedef struct { const Arg *a; int buf, slot; Bytes from, to; } MemOperand; /* an operand, all of its buffer */

typedef struct {
    const Plan *p;
    int device, step;
    int base;                   /* first step of the run */
    int overlap;                /* order_overlap() */
    bool eval;
    Ranges range, host;         /* of the arena, of that in the host; sorted, disjoint */
    ValueChain *chain;          /* [buf * slots + slot] of gradient accumulators */
    int slots;
    int values;                 /* the buffer of the step values */
    const int *later;           /* value_uses() */
    int *made;                  /* [way * states + state] 1 + its own buffer of the state; 0: none */
    int *partials;              /* [way * states + state] norms in this device's own vector */
    int *const *parts;          /* [state][(device + 1) * ways + way] partial norms of a device; [0] of all */
    int *slot;                  /* [pool] that the action at hand names; 0 of all others */
    VEC(MemOperand) operand;    /* scratch: the buffers of a call */
    const Action *k;
} Memory;

enum { EVAL = 1 << 20 };        /* the steps of evaluations, apart from those of training */

/* The pipeline of the replica that the action at hand is of. */
static int way(const Memory *m)
{
    const Action *k = m->k;
    return k->pipeline ? k->pipeline - 1 : k->chunk < 0 ? 0 : plan_row_of(m->p, m->device, k->chunk) % plan_ways(m->p);
}

static int *partials(Memory *m, int state, int of)
{
    return &m->partials[of * m->p->g->state.n + state];
}

/* Counted once for all messages: those that each device puts into a vector of that pipeline. */
static int **count_parts(const Plan *p)
{
    const int ways = plan_ways(p);
    int **parts = alloc(sizeof *parts * (size_t)p->g->state.n);
    for (int o = p->g->nb; o < p->g->op.n; o++)
        for (EACH(const Arg, a, p->g->op.at[o].arg)) {
            if (a->kind != ARG_UPDATE || !a->state || p->g->state.at[a->index].kind != S_NORM)
                continue;
            int *n = parts[a->index] = parts[a->index] ? parts[a->index] : alloc(sizeof *n * (size_t)((p->devices + 1) * ways));
            n[0]++;
            for (int row = 0; row < plan_rows(p); row++) {
                int d = device_of(p, row, o);
                n[(d + 1) * ways + row % ways] += row / ways == plan_replica(p, d);
            }
        }
    return parts;
}

/* Partial norms that device d (all: -1) puts into a vector of that pipeline. */
static int partials_of(const Memory *m, int state, int d, int way)
{
    return m->parts[state] ? m->parts[state][(d + 1) * plan_ways(m->p) + way] : 0;
}

/* So many parameters' blocks are in the device's own vector: with all of them it is that of its row. */
static CheckValue blocks_value(const Memory *m, int state, int n)
{
    const Plan *p = m->p;
    int row = plan_replica(p, m->device), all = 0;
    for (int o = p->g->nb; o < p->g->op.n; o++) {
        const Arg *a = &p->g->op.at[o].arg.at[0];
        if (!a->state || a->index != state || a->kind != ARG_UPDATE || !runs_on(p, o, m->device))
            continue;
        int param = value_cut(p, &p->g->op.at[o]);
        Kept part = param < 0 ? (Kept){0, 1} : value_kept(p, row, param, plan_levels(p));
        all += part.to > part.from;
    }
    return n == all ? value_gradient(state, value_row(p, row), m->step) : value_norm(state, n, m->step);
}

static ValueChain whole(const Memory *m)
{
    return (ValueChain){0, (int)m->p->g->micro};
}

/* The buffer of a state there, of that pipeline, or of the first that has one: -1; -1: there is none. */
static int made_here(const Memory *m, int state, int way)
{
    int held = 0;
    for (int w = 0; w < plan_ways(m->p) && !held; w++)
        held = way < 0 || w == way ? m->made[w * m->p->g->state.n + state] : 0;
    return held - 1;
}

static int now(const Memory *m)
{
    return m->step + (m->eval ? EVAL : 0);
}

/* ---- places ------------------------------------------------------------------------------------------------------ */

static Bytes address(const Memory *m, int b, int slot)
{
    const Buf *x = &m->p->buf.at[b];
    const Pool *pool = x->pool >= 0 ? &m->p->pool.at[x->pool] : NULL;
    if (x->device != m->device || (pool ? slot < 0 || slot >= pool->count : slot != 0))
        die("device %d: %s has no slot %d here", m->device, x->name, slot);
    Bytes at = x->offset + (pool ? slot * pool->stride : 0);
    if (at < 0 || x->bytes < 0 || at > m->p->dev.at[m->device].arena - x->bytes)
        die("device %d: %s lies outside the arena", m->device, x->name);
    return at;
}

/* Some bytes of a buffer. */
static Kept part_of(const Memory *m, int b, int slot, Bytes at, Bytes bytes)
{
    Bytes from = address(m, b, slot);
    if (at < 0 || bytes < 0 || at > m->p->buf.at[b].bytes - bytes)
        die("device %d: %lld bytes from %lld on are not all in %s", m->device, (long long)bytes, (long long)at,
            m->p->buf.at[b].name);
    return (Kept){from + at, from + at + bytes};
}

static void expect_in(Memory *m, int b, Kept where, CheckValue value, const char *who)
{
    Bytes at = ranges_differ(&m->range, where.from, where.to, value);
    if (at >= 0)
        die("device %d, step %d, tick %d: %s reads %s at %lld, which does not hold it then", m->device, m->step, m->k->tick,
            who, m->p->buf.at[b].name, (long long)at);
}

static void expect(Memory *m, int b, int slot, CheckValue value, const char *who)
{
    expect_in(m, b, part_of(m, b, slot, 0, m->p->buf.at[b].bytes), value, who);
}

static void put_in(Memory *m, Kept where, CheckValue value)
{
    ranges_claim(&m->range, where.from, where.to, value);
}

static void put(Memory *m, int b, int slot, CheckValue value)
{
    put_in(m, part_of(m, b, slot, 0, m->p->buf.at[b].bytes), value);
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static ValueChain *chain_of(const Memory *m, int b, int slot)
{
    return &m->chain[(size_t)b * (size_t)m->slots + (size_t)slot];
}

/* Weights as forward or backward read them: those of the version, or predicted from it. */
static CheckValue weights_value(const Memory *m, int state)
{
    int q = m->step * (int)m->p->g->micro + m->k->mb;
    int version = m->overlap ? order_version(m->p, m->k->chunk, m->k->kind, q) : m->step;
    int ahead = order_ahead(m->p, m->k->chunk, m->k->kind == K_F ? K_F : K_B);
    version = version > 0 ? version : 0;
    return ahead && version ? value_predicted(state, version, ahead) : value_state(state, version);
}

/* The value that a state must hold when an operand reads it.  The clip factor is of this step.  A norm vector has every partial
 * when they are added up. */
static CheckValue read_state(Memory *m, const Op *o, const Arg *a)
{
    const State *s = &m->p->g->state.at[a->index];
    switch (s->kind) {
    case S_GRAD:
        return a->kind == ARG_UPDATE && op_is(o, TRAIT_TIE)
               ? value_gradient(a->index, whole(m), m->step) : value_tied(m->later, a->index, whole(m), m->step);
    case S_BLOCKS:
        return a->kind == ARG_READ ? value_gradient(a->index, whole(m), m->step)
                                   : value_norm(a->index, *partials(m, a->index, 0), m->step);
    case S_NORM:
        return value_norm(a->index, a->kind == ARG_UPDATE ? *partials(m, a->index, way(m))
                                                          : partials_of(m, a->index, -1, 0), m->step);
    case S_CLIP:
        return value_state(a->index, m->step + 1);
    case S_VALUES:
        return value_step(now(m));
    case S_PARAM: case S_COPY:
        if (m->p->g->state.at[s->param].frozen)
            return value_state(a->index, 0);
        if (op_is(o, TRAIT_NARROW) && !value_parted(m->p, s->param))       /* what this step has updated */
            return value_state(a->index, m->step + 1);
        return o->phase == PH_U || m->eval ? value_state(a->index, m->step) : weights_value(m, a->index);
    default:
        return value_state(a->index, m->step);
    }
}

/* Only an evaluation and the update need running statistics; a step that overlaps with another is handed what is there. */
static bool any_version(const Memory *m, const Op *o, const Arg *a)
{
    const State *s = &m->p->g->state.at[a->index];
    return s->kind == S_PARAM && s->tracked && o->phase == PH_F && !m->eval && m->overlap > 0;
}

/* The bytes of an operand: all, or of a state that is here whole the part that the row updates. */
static Kept operand(const Memory *m, const Op *o, const MemOperand *x)
{
    const State *s = x->a->state && x->a->kind != ARG_VALS ? &m->p->g->state.at[x->a->index] : NULL;
    bool whole = !s || (s->kind != S_GRAD && s->kind != S_PARAM && s->kind != S_COPY);
    whole |= s && (value_dropped(m->p, x->a->index) || (s->kind == S_PARAM && value_parted(m->p, x->a->index)));
    if (whole || value_cut(m->p, o) < 0)
        return (Kept){x->from, x->to};
    Kept part = value_kept(m->p, plan_copy(m->p, m->device, m->k->chunk), x->a->index, plan_levels(m->p));
    return part_of(m, x->buf, x->slot, part.from, part.to - part.from);
}

/* A chain starts at any micro-batch and goes on with the next one. */
static CheckValue added(Memory *m, const Op *o, const Arg *a, int b, int slot)
{
    ValueChain *c = chain_of(m, b, slot);
    if (!m->k->acc)
        *c = (ValueChain){m->k->mb, m->k->mb + 1};
    else if (c->to++ != m->k->mb)
        die("device %d: %s adds micro-batch %d to a chain that ends before %d", m->device, o->name, m->k->mb, c->to - 1);
    return value_gradient(a->index, *c, m->step);
}

static void write_arg(Memory *m, const Op *o, const MemOperand *x)
{
    const Arg *a = x->a;
    Kept where = operand(m, o, x);
    StateKind kind = a->state ? m->p->g->state.at[a->index].kind : S_VALUES;
    if (a->kind == ARG_TMP)
        put_in(m, where, 0);
    else if (a->kind == ARG_WRITE && !a->state)
        put_in(m, where, value_tensor(a->index, m->k->mb, now(m)));
    else if (a->kind == ARG_ADD)
        put_in(m, where, added(m, o, a, x->buf, x->slot));
    else if (a->kind == ARG_UPDATE && kind == S_GRAD)
        put_in(m, where, value_tied(m->later, a->index, whole(m), m->step));
    else if (a->kind == ARG_UPDATE && kind == S_BLOCKS)
        put_in(m, where, blocks_value(m, a->index, ++*partials(m, a->index, 0)));
    else if (a->kind == ARG_UPDATE && kind == S_NORM)
        put_in(m, where, value_norm(a->index, ++*partials(m, a->index, way(m)), m->step));
    else if (a->kind == ARG_UPDATE || a->kind == ARG_WRITE)
        put_in(m, where, value_state(a->index, m->step + !(op_is(o, TRAIT_NARROW) && value_filled(m->p, a->index))));
}

static void run_call(Memory *m, const Call *c)
{
    const Op *o = &m->p->g->op.at[c->op];
    m->operand.n = 0;
    for (int i = 0; i < o->arg.n; i++) {
        int b = c->buf.at[i];
        if (b < 0)
            continue;
        int pool = m->p->buf.at[b].pool, slot = pool >= 0 ? m->slot[pool] : 0;
        Bytes from = address(m, b, slot);
        *PUSH(&m->operand) = (MemOperand){&o->arg.at[i], b, slot, from, from + m->p->buf.at[b].bytes};
    }
    /* A kernel may write before it has read: no result shares a byte with an operand. */
    for (int i = 0; i < m->operand.n; i++) {
        const MemOperand *x = &m->operand.at[i];
        ArgKind w = x->a->kind;
        if (w != ARG_WRITE && w != ARG_TMP && w != ARG_ADD && w != ARG_UPDATE)
            continue;
        for (int j = 0; j < m->operand.n; j++) {
            const MemOperand *y = &m->operand.at[j];
            if (i != j && x->from < y->to && y->from < x->to)
                die("device %d: %s writes %s over its own operand %s", m->device, o->name, m->p->buf.at[x->buf].name,
                    m->p->buf.at[y->buf].name);
        }
    }
    for (EACH(const MemOperand, x, m->operand)) {
        const Arg *a = x->a;
        Kept where = operand(m, o, x);
        if (a->kind == ARG_VALS)
            expect_in(m, x->buf, where, value_step(now(m)), o->name);
        else if (a->kind == ARG_READ && !a->state)
            expect_in(m, x->buf, where, value_tensor(a->index, m->k->mb, now(m)), o->name);
        else if ((a->kind == ARG_READ || a->kind == ARG_UPDATE) && !any_version(m, o, a))
            expect_in(m, x->buf, where, read_state(m, o, a), o->name);
        else if (a->kind == ARG_ADD && m->k->acc)
            expect_in(m, x->buf, where, value_gradient(a->index, *chain_of(m, x->buf, x->slot), m->step), o->name);
    }
    for (int i = 0; i < m->operand.n; i++)
        write_arg(m, o, &m->operand.at[i]);
}

static void run_routine(Memory *m, const Routine *r, const Action *k)
{
    if (k->slots.n != r->pool.n)
        die("device %d: %s has %d slots of %d", m->device, r->name, k->slots.n, r->pool.n);
    for (int i = 0; i < r->pool.n; i++)
        m->slot[r->pool.at[i]] = k->slots.at[i];
    for (int c = 0; c < r->call.n; c++)
        run_call(m, &r->call.at[c]);
    for (int i = 0; i < r->pool.n; i++)
        m->slot[r->pool.at[i]] = 0;
}

/* into += from, in every accumulator of the chunk: neighbours, the earlier one first. */
static void run_fold(Memory *m, const Action *k)
{
    const Plan *p = m->p;
    for (int b = 0; b < p->buf.n; b++) {
        const Buf *x = &p->buf.at[b];
        if (x->device != m->device || x->chunk != k->chunk || x->state < 0 || x->origin != MADE || x->pool < 0 ||
            !fold_takes(p->g, k->fold, x->state) || !fold_in(p->g, k->first, k->until, x->state))
            continue;
        ValueChain *into = chain_of(m, b, k->into), *from = chain_of(m, b, k->group);
        expect(m, b, k->into, value_gradient(x->state, *into, m->step), "fold");
        expect(m, b, k->group, value_gradient(x->state, *from, m->step), "fold");
        if (k->into == k->group || into->to != from->from)
            die("device %d: a fold joins groups that are not neighbours", m->device);
        into->to = from->to;
        put(m, b, k->into, value_gradient(x->state, *into, m->step));
    }
}

/* The part of the gradient that the row of a device has when so many levels are done. */
static Kept kept(const Plan *p, int device, int chunk, int state, int levels)
{
    return value_kept(p, plan_copy(p, device, chunk), state, levels);
}

static void check_half(const Memory *m, const Action *k, Bytes at, Kept part)
{
    if (at != part.from || k->bytes != part.to - part.from)
        die("device %d, tick %d: bytes %lld to %lld of %s are not the part of its row at level %d", m->device, k->tick,
            (long long)at, (long long)(at + k->bytes), m->p->g->state.at[k->state].name, k->tree_level);
}

/* The sum of this row and that of its neighbour in the tree, in the half of their part that this row keeps. */
static void run_merge(Memory *m, const Action *k)
{
    const Plan *p = m->p;
    int held = made_here(m, k->state, -1), level = k->tree_level;
    bool there = held >= 0 && level >= 0 && level < plan_depth(p, k->chunk);
    if (!there || k->from_device != plan_partner(p, m->device, k->chunk, level))
        die("device %d merges a gradient with device %d at level %d", m->device, k->from_device, level);
    ValueChain mine = value_subtree(p, m->device, k->chunk, level), theirs = value_subtree(p, k->from_device, k->chunk, level);
    Kept part = part_of(m, held, 0, k->at, k->bytes), all = {0, p->g->state.at[k->state].bytes};
    bool blocks = p->g->state.at[k->state].kind == S_BLOCKS;
    check_half(m, k, k->at, blocks ? all : kept(p, m->device, k->chunk, k->state, level + 1));
    bool stays = level == plan_levels(p) - 1 && value_dropped(p, k->state);     /* in the place of what has come */
    expect_in(m, held, part, value_gradient(k->state, mine, m->step), "merge");
    expect(m, k->buf, k->slot, value_gradient(k->state, theirs, m->step), "merge");
    if (mine.to - mine.from != theirs.to - theirs.from || (mine.to != theirs.from && theirs.to != mine.from))
        die("device %d: a merge joins sums that are not neighbours", m->device);
    part = stays ? part_of(m, k->buf, k->slot, 0, k->bytes) : part;
    put_in(m, part, value_gradient(k->state, value_subtree(p, m->device, k->chunk, level + 1), m->step));
}

/* ---- moves ------------------------------------------------------------------------------------------------------- */

/* The value that a message carries: the same number on both sides. */
static CheckValue moved_value(const Memory *m, const Action *k, int from)
{
    if (k->tensor >= 0)
        return value_tensor(k->tensor, k->mb, now(m));
    int op = m->p->g->state.at[k->state].op, chunk = op < 0 ? -1 : m->p->chunk.at[op];
    bool across = plan_across(m->p, m->device, k);
    switch (m->p->g->state.at[k->state].kind) {
    case S_GRAD:
        if (across && k->back && value_joined(m->p, m->p->g->state.at[k->state].param))
            return value_tied(m->later, k->state, whole(m), m->step);
        return value_gradient(k->state, !across ? whole(m)
                              : value_subtree(m->p, from, chunk, k->back ? plan_depth(m->p, chunk) : k->tree_level), m->step);
    case S_BLOCKS: return value_gradient(k->state, value_subtree(m->p, from, -1, k->tree_level), m->step);
    case S_NORM: return value_norm(k->state, partials_of(m, k->state, from, way(m)), m->step);
    case S_PARAM: case S_COPY:
        return value_state(k->state, m->step + !value_filled(m->p, k->state));
    default:     return value_state(k->state, m->step + 1);         /* clip factors and weights of this update */
    }
}

/* The newest weights, copied to where they will be updated. */
static void run_version(Memory *m, const Action *k)
{
    for (int b = 0; b < m->p->buf.n; b++) {
        const Buf *x = &m->p->buf.at[b];
        if (x->device != m->device || x->state < 0 || x->origin != MADE || !version_copied(m->p, x->state, k->chunk))
            continue;
        expect(m, b, k->group, value_state(x->state, m->step), "version");
        put(m, b, k->into, value_state(x->state, m->step));
    }
}

static void expect_drift(Memory *m, int param)
{
    for (int b = 0; b < m->p->buf.n; b++) {
        const Buf *x = &m->p->buf.at[b];
        const State *s = x->state >= 0 ? &m->p->g->state.at[x->state] : NULL;
        if (s && x->device == m->device && s->kind == S_DRIFT && s->param == param)
            expect(m, b, 0, value_state(x->state, m->step + 1), "predict");
    }
}

/* The newest weights and those before, or their drift, on their line so many updates further. */
static void run_predict(Memory *m, const Action *k)
{
    int ahead = order_ahead(m->p, k->chunk, k->forward ? K_F : K_B);
    for (int b = 0; b < m->p->buf.n; b++) {
        const Buf *x = &m->p->buf.at[b];
        if (x->device != m->device || x->state < 0 || x->origin != MADE || !version_copied(m->p, x->state, k->chunk))
            continue;
        expect(m, b, k->slot, value_state(x->state, m->step + 1), "predict");
        if (schedule_of(m->p->schedule)->drifts)
            expect_drift(m, x->state);
        else
            expect(m, b, k->group, value_state(x->state, m->step), "predict");
        put(m, b, k->into, value_predicted(x->state, m->step + 1, ahead));
    }
}

/* The bytes of a buffer that a message takes: all, but between rows.  Up the tree the other row keeps what is sent, and what
 * comes has a buffer of its own; down the tree each sends all that it keeps. */
static Kept moved_part(const Memory *m, const Action *k, bool receive)
{
    const State *s = k->state >= 0 ? &m->p->g->state.at[k->state] : NULL;
    bool across = s && (s->kind == S_GRAD || k->back) && plan_across(m->p, m->device, k);
    if (s && s->kind == S_GRAD && !across) {        /* of a use elsewhere: what is whole here */
        bool cut = value_joined(m->p, s->param) || (m->p->m->train.shard && !m->p->g->state.at[s->param].tracked);
        Kept part = value_kept(m->p, plan_replica(m->p, m->device), k->state, cut ? plan_levels(m->p) : 0);
        check_half(m, k, value_dropped(m->p, k->state) ? part.from + k->at : k->at, part);
        return part_of(m, k->buf, k->slot, k->at, k->bytes);
    }
    if (!across) {
        if (k->at != 0 || k->back)
            die("device %d, tick %d: a part of %s moves", m->device, k->tick, m->p->buf.at[k->buf].name);
        return part_of(m, k->buf, k->slot, 0, m->p->buf.at[k->buf].bytes);
    }
    bool here = receive != k->back;
    Kept half = kept(m->p, here ? m->device : k->peer, m->p->chunk.at[s->op], k->state, k->tree_level + 1);
    bool apart = receive && !k->back;
    check_half(m, k, apart ? half.from : k->at, half);
    return part_of(m, k->buf, k->slot, apart ? 0 : k->at, apart ? m->p->buf.at[k->buf].bytes : k->bytes);
}

/* To the host, or back: whole, and of this micro-batch. */
static void run_copy(Memory *m, const Action *k)
{
    bool wait = k->kind == K_WAIT, in = k->kind == K_IN || (wait && k->of == K_IN);
    const HostBuf *h = &m->p->host.at[k->host];
    CheckValue value = value_tensor(k->tensor, k->mb, now(m)), flying = value_mix(value, 2);
    Bytes from = h->offset + k->host_slot * h->stride, to = from + h->bytes;
    if (k->host_slot < 0 || k->host_slot >= h->count || from < 0 || to > m->p->dev.at[m->device].host)
        die("device %d: %s has no slot %d in the host's memory", m->device, h->name, k->host_slot);
    if (in ? ranges_differ(&m->host, from, to, value) >= 0 : wait && ranges_differ(&m->host, from, to, flying) >= 0)
        die("device %d, step %d, tick %d: %s does not hold micro-batch %d in the host's memory", m->device, m->step, m->k->tick,
            h->name, k->mb);
    if (!in) {
        expect(m, k->buf, k->slot, value, "offload");
        ranges_claim(&m->host, from, to, wait ? value : flying);
    } else {
        if (wait)
            expect(m, k->buf, k->slot, flying, "fetch");
        put(m, k->buf, k->slot, wait ? value : flying);
    }
}

static void run_move(Memory *m, const Action *k)
{
    if (k->kind == K_BEGIN)
        put(m, m->values, version_values(m->p, m->device, k), value_step(now(m)));
    if (k->kind == K_LOAD || k->kind == K_COUNT || k->kind == K_END)
        expect(m, m->values, version_values(m->p, m->device, k), value_step(now(m)), "step");
    bool inside = k->piece == PIECE_PERIOD || k->piece == PIECE_EPILOGUE;
    if (k->kind == K_BEGIN ? !inside : k->kind == K_END && inside) {
        /* This device's own vector of partial norms is zeroed at the begin of a step; where steps overlap, behind the one
         * before. */
        int step = k->piece == PIECE_PROLOGUE ? m->base : m->step + (k->kind == K_END);
        for (int b = 0; b < m->p->buf.n; b++) {
            const Buf *x = &m->p->buf.at[b];
            StateKind kind = x->state >= 0 ? m->p->g->state.at[x->state].kind : S_VALUES;
            if (x->device != m->device || x->origin != MADE || (kind != S_NORM && kind != S_BLOCKS))
                continue;
            *partials(m, x->state, x->pipeline) = 0;
            put(m, b, 0, kind == S_BLOCKS ? blocks_value(m, x->state, 0) : value_norm(x->state, 0, step));
        }
    }
    if (k->kind == K_GATHER) {
        int held = made_here(m, k->state, way(m));
        if (held < 0)
            die("device %d gathers norms and has none of its own", m->device);
        int *sum = partials(m, k->state, way(m)), more = partials_of(m, k->state, k->from_device, way(m));
        expect(m, k->buf, k->slot, value_norm(k->state, more, m->step), "gather");
        expect(m, held, 0, value_norm(k->state, *sum, m->step), "gather");
        *sum += more;
        put(m, held, 0, value_norm(k->state, *sum, m->step));
    } else if (k->kind == K_MERGE) {
        run_merge(m, k);
    } else if (k->kind == K_ROOM) {
        /* The row's part, to its place in the room. */
        const Plan *p = m->p;
        int held = made_here(m, k->state, -1);
        if (held < 0 || !value_filled(p, k->state))
            die("device %d fills a room of nothing", m->device);
        check_half(m, k, k->at, kept(p, m->device, k->chunk, k->state, plan_levels(p)));
        expect(m, held, 0, value_state(k->state, m->step), "room");
        put_in(m, part_of(m, k->buf, k->slot, k->at, k->bytes), value_state(k->state, m->step));
    } else if (k->kind == K_LOAD) {
        if (m->p->g->tensor.at[k->tensor].of != k->input)
            die("device %d loads input %d into %s", m->device, k->input, m->p->buf.at[k->buf].name);
        put(m, k->buf, k->slot, value_tensor(k->tensor, k->mb, now(m)));
    } else if (is_copy(k)) {
        run_copy(m, k);
    } else if (k->kind == K_SEND || k->kind == K_RECV || k->kind == K_WAIT) {
        bool wait = k->kind == K_WAIT, receive = k->kind == K_RECV || (wait && k->of == K_RECV);
        CheckValue value = moved_value(m, k, receive ? k->peer : m->device), flying = value_mix(value, 1);
        Kept part = moved_part(m, k, receive);
        if (!receive || wait)
            expect_in(m, k->buf, part, receive ? flying : value, wait ? "wait" : "send");
        if (receive)
            ranges_claim(&m->range, part.from, part.to, wait ? value : flying);
    }
}

/* ---- the check --------------------------------------------------------------------------------------------------- */

/* Replays from this step on: a step's list, an evaluation's after so many steps, or a run. */
static void run_list(Memory *m, const Actions *list, bool eval, int step)
{
    m->eval = eval;
    m->base = step;
    for (int i = 0; i < list->n; i++) {
        Action k = list->at[i];
        k.step += step;
        k.version += step;
        if (m->overlap > 0)
            version_resolve(m->p, &k);
        m->k = &k;
        m->step = k.step;
        const Routine *r = m->k->routine >= 0 ? &m->p->routine.at[m->k->routine] : NULL;
        if (r)
            run_routine(m, r, m->k);
        if (m->k->kind == K_FOLD)
            run_fold(m, m->k);
        else if (m->k->kind == K_VERSION)
            run_version(m, m->k);
        else if (m->k->kind == K_PREDICT)
            run_predict(m, m->k);
        else if (!r)
            run_move(m, m->k);
    }
}

/* Claims everything that lives for ever, in every slot, before the first step.  No two of them share a byte. */
static void claim_states(Memory *m)
{
    const Plan *p = m->p;
    for (int b = 0; b < p->buf.n; b++) {
        const Buf *x = &p->buf.at[b];
        int count = x->pool >= 0 ? p->pool.at[x->pool].count : 1;
        if (count < 1)
            die("device %d: %s has no slot at all", x->device, x->name);
        for (int s = 0; x->device == m->device && x->state >= 0 && x->birth == AT_ALWAYS && s < count; s++) {
            Bytes at = address(m, b, s);
            if (ranges_differ(&m->range, at, at + x->bytes, 0) >= 0)
                die("device %d: %s shares bytes with another state", m->device, x->name);
            ranges_claim(&m->range, at, at + x->bytes, value_state(x->state, 0));
        }
    }
}

/* Where steps overlap, slots follow from step and version: stages have these, and the report those of the plan. */
static void check_slots(const Plan *p, int device, const Actions *list)
{
    for (EACH(const Action, k, *list)) {
        Action want = *k;
        version_resolve(p, &want);
        bool same = want.slots.n == k->slots.n && (k->kind == K_PREDICT || want.slot == k->slot);
        for (int i = 0; same && i < want.slots.n; i++)
            same = want.slots.at[i] == k->slots.at[i];
        if (!same)
            die("device %d: action %d has not the slots of its step", device, (int)(k - list->at));
    }
}

/* needs: everything up to mem; the bound only after mem.  fails: die(). */
void check_mem(const Plan *p)
{
    const int *later = value_uses(p->g);
    int *const *parts = count_parts(p);
    for (int d = 0; d < p->devices; d++) {
        void *mark = mem_mark();
        Memory m = {.p = p, .device = d, .overlap = order_overlap(p), .slots = 1, .later = later, .parts = parts};
        for (EACH(const Pool, x, p->pool))
            m.slots = x->birth == AT_ALWAYS && x->count > m.slots ? x->count : m.slots;
        m.made = alloc(sizeof(int) * (size_t)p->g->state.n * (size_t)plan_ways(p));
        for (int b = 0; b < p->buf.n; b++) {
            const Buf *x = &p->buf.at[b];
            if (x->device == d && x->state >= 0 && x->origin == MADE)
                m.made[x->pipeline * p->g->state.n + x->state] = b + 1;
        }
        if ((m.values = made_here(&m, p->g->vals, -1)) < 0)
            die("device %d: no step values", d);
        m.slot = alloc(sizeof(int) * (size_t)p->pool.n);
        ranges_open(&m.range);
        ranges_open(&m.host);
        m.partials = alloc(sizeof(int) * (size_t)p->g->state.n * (size_t)plan_ways(p));
        m.chain = alloc(sizeof(ValueChain) * (size_t)p->buf.n * (size_t)m.slots);
        if (p->dev.at[d].arena < p->dev.at[d].bound)
            die("device %d: the arena is smaller than what is alive in it", d);
        claim_states(&m);
        /* Replays a run through all phases, a step, and the shortest run through the pieces, each followed by an
         * evaluation.  Of a synchronous plan it replays two steps. */
        int overlap = m.overlap, phases = version_phases(m.p, m.device), done = 0;
        const int steps[] = {overlap ? overlap + phases + 1 : 1, 1, overlap, overlap ? overlap + 1 : 0};
        if (overlap) {
            check_slots(p, d, &p->dev.at[d].list);
            check_slots(p, d, &p->dev.at[d].eval);
        }
        for (int i = 0; i < 4; i++) {
            Actions run = overlap ? order_run(m.p, &m.p->dev.at[m.device].list, steps[i]) : m.p->dev.at[m.device].list;
            if (steps[i] == 0)
                break;
            run_list(&m, &run, false, done);
            run_list(&m, &m.p->dev.at[m.device].eval, true, done += steps[i]);
        }
        mem_release(mark);
    }
}
