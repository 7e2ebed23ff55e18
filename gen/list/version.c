/* SPDX-License-Identifier: Apache-2.0
 *
 * version.c: the copy in use, of several, where steps overlap.
 *
 * Method: four things exist several times on a device, each in a pool with a slot by number.  So any step of a run finds them
 * without being told:
 *
 *   weights     `count` copies of the weights that forward and backward read: version n in slot n mod count, a prediction of
 *               it in the slot before or behind (sched/async.c).  If these are the f32 master itself, the newest version is
 *               the master.  It is copied to the next slot and updated there, so f32 jobs hold no copy beside the versions.
 *               If they are a narrower copy, the master stands apart, once, and the update writes its copy straight into the
 *               next slot.  Moments exist once
 *   gradients   the accumulators of a step, or two sets by parity where an update waits while the next step adds
 *   values      step number, learning rate, loss, counted targets: as many as steps are under way
 *   tensors     micro-batch q, counted through all steps of the device, in slot q mod count; they are born and die in this
 *               order
 *
 * After a number of steps all of them repeat.  These are the phases of a device; its source spells them out.
 *
 * Cost: linear.
 */
#include "list.h"

typedef enum { TENSORS, GRADIENTS, WEIGHTS, VALUES } VersionRole;

static VersionRole role_of(const Pool *x)
{
    if (x->birth != AT_ALWAYS)
        return TENSORS;
    return x->death == AT_U ? WEIGHTS : x->death == AT_F ? VALUES : GRADIENTS;
}

bool version_kept(const Plan *p, int state)
{
    const State *s = &p->g->state.at[state];
    return s->versions && order_copies(p, p->chunk.at[p->g->state.at[s->param].op]) > 1;
}

bool version_copied(const Plan *p, int state, int chunk)
{
    const State *s = &p->g->state.at[state];
    return s->kind == S_PARAM && p->chunk.at[s->op] == chunk && version_kept(p, state);
}

int version_slots(const Plan *p, const Pool *x)
{
    switch (role_of(x)) {
    case GRADIENTS: return order_accumulators(p, x->chunk) * (order_holds(p, x->device) ? 2 : 1);
    case WEIGHTS:   return order_copies(p, x->chunk);
    case VALUES:    return order_steps(p, x->device);
    default:        return 0;
    }
}

/* A tied parameter is updated on one device and read on another only a message later.  The other device would have to know the
 * version that a step reads there, and to hold all versions again. */
void version_ties(const Plan *p)
{
    const Graph *g = p->g;
    for (int s = 0; s < g->state.n && order_overlap(p) > 0; s++) {
        const State *x = &g->state.at[s];
        if (x->kind != S_GRAD || device_of(p, 0, x->op) == device_of(p, 0, g->state.at[x->param].op))
            continue;
        const Op *home = &g->op.at[g->state.at[x->param].op], *use = &g->op.at[x->op];
        err(x->loc, strf("plan.constraints: {same_stage: [%s, %s]}, weights of their own, or a synchronous schedule",
                         home->name, use->name),
            "schedule %s: %s is used by %s on stage %d and by %s on stage %d, which would read different versions of it",
            p->schedule, g->state.at[x->param].name, home->name, device_of(p, 0, g->state.at[x->param].op), use->name,
            device_of(p, 0, x->op));
    }
}

/* The inputs of the versions: the name of the rule, and the number of stages or the cuts if the lag depends on them.  A cut
 * counts operators as they are before any are joined, for joined ones have the bits, and so the key, of their parts. */
const char *version_rule(const Plan *p)
{
    const char *rule = p->schedule;
    Lag lag = order_overlap(p) > 0 ? schedule_of(rule)->forward : LAG_NONE;
    if (lag == LAG_NONE)
        return "";
    if (lag == LAG_DEPTH)
        return strf("%s %d", rule, plan_stages(p));
    for (int o = 0, n = 0, past = 0; (lag == LAG_BEHIND || lag == LAG_FIRST) && o + 1 < p->g->nf; o++) {
        past += joined_operators(&p->g->op.at[o]);
        if (p->chunk.at[o] != p->chunk.at[o + 1])
            rule = strf("%s%s%d", rule, n++ ? "," : " cuts ", past - 1);
    }
    for (int s = 0; (lag == LAG_BEHIND || lag == LAG_FIRST) && plan_uneven(p) && s < plan_stages(p); s++)
        rule = strf("%s%s%d", rule, s ? "," : " copies ", p->m->plan.widths.at[s]);
    return rule;
}

static int modulo(int64_t a, int n)
{
    return (int)((a % n + n) % n);
}

/* An update makes the next version.  A prediction of version v lies where v-1 was; that of the newest for backward alone, where
 * v+1 will be.  An evaluation, which is in no piece, reads the newest as it is. */
static int place_of(const Plan *p, int chunk, const Action *k)
{
    bool backward = k->kind == K_B || k->kind == K_R;
    if (k->kind == K_U)
        return 1;
    if (k->piece == PIECE_STEP || (k->kind != K_F && !backward) || order_ahead(p, chunk, backward ? K_B : K_F) == 0)
        return 0;
    return backward && order_apart(p) ? 1 : -1;
}

int version_slot(const Plan *p, const Pool *x, const Action *k)
{
    int levels = order_accumulators(p, x->chunk);
    switch (role_of(x)) {
    case GRADIENTS: return modulo(k->step, x->count / levels) * levels + (k->kind == K_U ? 0 : k->group);
    case WEIGHTS:   return modulo(k->version + place_of(p, x->chunk, k), x->count);
    case VALUES:    return modulo(k->step, x->count);
    default:        return modulo((int64_t)k->step * plan_share_of(p, x->chunk) + plan_turn(p, x->chunk, k->mb), x->count);
    }
}

int version_values(const Plan *p, int device, const Action *k)
{
    for (int i = 0; i < p->pool.n; i++)
        if (p->pool.at[i].device == device && role_of(&p->pool.at[i]) == VALUES)
            return version_slot(p, &p->pool.at[i], k);
    return 0;
}

/* The pool of such a role that a fold or a copy of versions works on. */
static const Pool *pool_of(const Plan *p, int chunk, VersionRole role)
{
    for (int i = 0; i < p->pool.n; i++)
        if (p->pool.at[i].chunk == chunk && role_of(&p->pool.at[i]) == role)
            return &p->pool.at[i];
    return NULL;
}

void version_resolve(const Plan *p, Action *action)
{
    Action k = *action;
    const Pool *sums = k.kind == K_FOLD ? pool_of(p, k.chunk, GRADIENTS) : NULL;
    const Pool *weights = k.kind == K_VERSION || k.kind == K_PREDICT ? pool_of(p, k.chunk, WEIGHTS) : NULL;
    const Routine *r = k.routine >= 0 ? &p->routine.at[k.routine] : NULL;
    if (k.buf >= 0 && p->buf.at[k.buf].state < 0 && p->buf.at[k.buf].pool >= 0)
        k.slot = version_slot(p, &p->pool.at[p->buf.at[k.buf].pool], &k);
    k.slots = (Ints){0};
    for (int i = 0; r && i < r->pool.n; i++)
        *PUSH(&k.slots) = version_slot(p, &p->pool.at[r->pool.at[i]], &k);
    if (sums) {
        int set = version_slot(p, sums, &k) - k.group;
        k.into += set;
        k.group += set;
    } else if (weights && k.kind == K_PREDICT) {
        k.slot = modulo(k.version, weights->count);
        k.group = modulo(k.version - 1, weights->count);
        k.into = modulo(k.version + (k.forward ? -1 : 1), weights->count);
    } else if (weights) {
        k.group = modulo(k.version, weights->count);
        k.into = modulo(k.version + 1, weights->count);
    }
    *action = k;
}

int version_phases(const Plan *p, int device)
{
    int phases = 1;
    for (int i = 0; i < p->pool.n && order_overlap(p) > 0; i++) {
        const Pool *x = &p->pool.at[i];
        int levels = role_of(x) == GRADIENTS ? order_accumulators(p, x->chunk) : 1, n = x->count / levels;
        if (x->device != device || n < 2)
            continue;
        n /= role_of(x) == TENSORS ? (int)number_common(n, plan_share_of(p, x->chunk)) : 1;
        phases = phases / (int)number_common(phases, n) * n;
    }
    return phases;
}
