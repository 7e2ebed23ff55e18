/* SPDX-License-Identifier: Apache-2.0
 *
 * vpipe.c: vPipe's planner as a baseline.
 *
 * Problem: a comparison with the best known system before DawnPiper.
 *
 * Method: two forms, both reconstructed.
 *
 *   repo    as in the published plans: the tail of a stage is one checkpoint block that is recomputed, as short as makes the
 *           stage fit; nothing leaves the device
 *   paper   as in the paper.  In each stage whole units are swapped to the host, in the order of their idle time until
 *           backward: those in front wait longest.  This goes on as long as the copies of one period fit the link, out and
 *           back, with no regard to other traffic there.  Recomputing units covers the rest.  Each is a checkpoint block of
 *           its own and keeps its input; least time per byte first
 *
 * Both begin with the partition that balances compute.  They move border units between neighbours (moves.c) until the slowest
 * stage cannot be made faster.  Units are unit.c's, half a transformer layer, as in the published plans.  Their bytes and
 * times, and whether a stage fits, are dpgen's: every planner here has the same rebuild rule and the same memory model.
 *
 * Readers criticise three points.  Partition first and memory second loses the optimum.  Swap plans fill the link and ignore
 * the messages on it.  A whole tail is rebuilt where one cheap tensor would do.  exact decides all of it together, per tensor.
 *
 * Source: Zhao, Li, Chen, Shen, Chen, Wang, Wang, Cheng, Cui, vPipe: A Virtualized Acceleration System for Achieving Efficient
 * and Scalable Pipeline Parallel DNN Training, IEEE TPDS 33(3), 2022.  Its abstract, its authors' repository and notes of
 * readers were at hand.  The repository holds finished plans and no planner.
 *
 * Cost: units * stages moves a pass.  Each stage that is met is planned once.  Its units are recomputed one after another, and
 * a choice is priced only if it may fit by the bytes that it surely saves.
 * Not handled: moving layers while the job runs.
 */
#include "rivals.h"
#include "fates/fates.h"
#include "planner.h"

typedef struct { int unit; Ns mebibyte; } Rate;

typedef struct {
    const Question *q;
    const Units *u;
    Choices choices;
    int *of;                    /* by forward operator: its unit */
    bool *crosses;              /* by tensor: a later unit reads it too */
    bool each;                  /* every unit is a checkpoint block of its own, not the whole of the tail one */
    Ints made;                  /* tensors of forward, by operator */
    int *made_from;             /* by operator: where in `made` its own begin; [nf] the end */
    char *unit_fate;            /* by unit: a Fate, of the stage at hand */
    int *fate;                  /* by tensor: scratch */
    Bytes *kept, *left;         /* by unit of the stage at hand: saved of its tensors if it is kept, if it is recomputed */
    Rate *rate;                 /* scratch by unit */
    Bytes saved;                /* by the stage at hand, at least */
    Ns period;                  /* within which a swap has to go out and come back */
    Memo memo;
    VEC(Burden) burden;         /* by index of memo */
    Burden (*plan)(void *ctx, int first, int last, int stage);
} Vpipe;

/* ---- one stage --------------------------------------------------------------------------------------------------- */

/* The fate that its unit gives a tensor.  The input of a checkpoint block is kept, also where backward does not read it. */
static int fate_of(const Vpipe *v, int t, int op)
{
    int way = v->unit_fate[v->of[op]];
    if (v->crosses[t] && v->choices.recompute && (way == FATE_KEEP || (way == FATE_RECOMPUTE && v->each)))
        return FATE_KEEP;
    return v->choices.may[t] ? way : v->choices.base[t];
}

/* The units first..last as `stage`, each tensor with the fate of its unit. */
static Burden priced(Vpipe *v, int first, int last, int stage)
{
    int from = first ? v->u->last[first - 1] + 1 : 0, to = v->u->last[last];
    Burden b = {0};
    for (int o = from; o <= to; o++)
        for (int i = v->made_from[o]; i < v->made_from[o + 1]; i++)
            v->fate[v->made.at[i]] = fate_of(v, v->made.at[i], o);
    b.over = price_need(v->q->prices, from, to, stage, v->fate, &b.time) - v->q->share[stage];
    b.over = b.over > 0 ? b.over : 0;
    return b;
}

/* Could the stage fit with this unit recomputed, by the bytes that it surely saves?  If not, nothing is priced yet. */
static bool may_fit(Vpipe *v, int first, int last, int stage, int unit)
{
    v->saved -= v->kept[unit] - v->left[unit];
    return price_least(v->q->prices, first ? v->u->last[first - 1] + 1 : 0, v->u->last[last], stage, v->saved)
        <= v->q->share[stage];
}

/* The bytes of a tensor of the stage that are saved if its unit goes this way. */
static Bytes saved_as(Vpipe *v, int t, int op, int way)
{
    v->unit_fate[v->of[op]] = (char)way;
    return fate_of(v, t, op) == FATE_KEEP ? v->q->p->g->tensor.at[t].bytes : 0;
}

/* Counts the bytes that are surely saved by the units kept so far. */
static void count_saved(Vpipe *v, int first, int last)
{
    v->saved = 0;
    for (int k = first, o = first ? v->u->last[first - 1] + 1 : 0; k <= last; k++) {
        int way = v->unit_fate[k];
        v->kept[k] = v->left[k] = 0;
        for (; o <= v->u->last[k]; o++)
            for (int i = v->made_from[o]; i < v->made_from[o + 1]; i++) {
                int t = v->made.at[i], reader = price_reader(v->q->prices, t);
                if (reader < 0 || reader > v->u->last[last])
                    continue;
                v->kept[k] += saved_as(v, t, o, FATE_KEEP);
                v->left[k] += saved_as(v, t, o, FATE_RECOMPUTE);
            }
        v->unit_fate[k] = (char)way;
        v->saved += way == FATE_KEEP ? v->kept[k] : 0;
    }
}

static void keep_units(Vpipe *v, int first, int last)
{
    for (int k = first; k <= last; k++)
        v->unit_fate[k] = FATE_KEEP;
}

static Burden tail(void *ctx, int first, int last, int stage)
{
    Vpipe *v = ctx;
    keep_units(v, first, last);
    Burden b = priced(v, first, last, stage);
    if (b.over > 0)
        count_saved(v, first, last);
    for (int k = last; k >= first && b.over > 0 && v->choices.recompute; k--) {
        v->unit_fate[k] = FATE_RECOMPUTE;
        if (may_fit(v, first, last, stage, k) || k == first)
            b = priced(v, first, last, stage);
    }
    return b;
}

/* Swap from the front, while the link has time and bytes are missing. */
static Burden swap(Vpipe *v, int first, int last, int stage, Burden b)
{
    int device = stage_of(v->q->p, stage);
    Bytes bytes = 0;
    for (int k = first; k <= last && b.over > 0; k++) {
        bytes += v->u->saved[k];
        if (2 * cost_host(v->q->p->c, device, bytes) > v->period)
            break;
        v->unit_fate[k] = FATE_OFFLOAD;
        b = priced(v, first, last, stage);
    }
    return b;
}

/* Least forward time for a mebibyte first; of equals the earlier. */
ORDER(by_rate, Rate, order_of(x->mebibyte, y->mebibyte), order_of(x->unit, y->unit))

static Burden recompute(Vpipe *v, int first, int last, int stage, Burden b)
{
    int n = 0;
    Rate *rate = v->rate;
    if (b.over > 0)
        count_saved(v, first, last);
    for (int k = first; k <= last && b.over > 0; k++)
        if (v->unit_fate[k] == FATE_KEEP)
            rate[n++] = (Rate){k, rivals_rate(v->u->forward[k], v->u->saved[k])};
    SORT(rate, n, by_rate);
    for (int i = 0; i < n && b.over > 0; i++) {
        v->unit_fate[rate[i].unit] = FATE_RECOMPUTE;
        if (may_fit(v, first, last, stage, rate[i].unit) || i == n - 1)
            b = priced(v, first, last, stage);
    }
    return b;
}

static Burden blocks(void *ctx, int first, int last, int stage)
{
    Vpipe *v = ctx;
    keep_units(v, first, last);
    Burden b = priced(v, first, last, stage);
    if (v->choices.offload)
        b = swap(v, first, last, stage, b);
    if (v->choices.recompute)
        b = recompute(v, first, last, stage, b);
    return b;
}

/* Each stage that the search asks for is planned once. */
static Burden burden(void *ctx, int first, int last, int stage)
{
    Vpipe *v = ctx;
    int i = memo_index(&v->memo, first, last, stage);
    if (i == v->burden.n) {
        Burden b = v->plan(v, first, last, stage);
        *PUSH(&v->burden) = b;
    }
    return v->burden.at[i];
}

/* ---- the search -------------------------------------------------------------------------------------------------- */

/* The partition that balances compute; false: the constraints leave none. */
static bool balanced(const Question *q, const Units *u, int *last, Ns *period)
{
    ChainStage *stage = alloc(sizeof *stage * (size_t)q->chunks);
    PipedreamChain c = {.n = u->n, .machines = q->chunks, .time = u->time, .must = u->must};
    if (chain_plan(&c, stage, period) != q->chunks)
        return false;
    for (int s = 0; s < q->chunks; s++)
        last[s] = stage[s].last;
    return true;
}

static void answer(Vpipe *v, const int *last, Answer *a)
{
    const Graph *g = v->q->p->g;
    a->last = alloc(sizeof *a->last * (size_t)v->q->chunks);
    int *chosen = a->fate = alloc(sizeof *chosen * (size_t)g->tensor.n);
    memcpy(chosen, v->choices.base, sizeof *chosen * (size_t)g->tensor.n);
    for (int s = 0, first = 0; s < v->q->chunks; first = last[s++] + 1) {
        Burden b = v->plan(v, first, last[s], s);
        a->value = b.time > a->value ? b.time : a->value;
        a->last[s] = v->u->last[last[s]];
        for (int t = 0; t < g->tensor.n; t++)
            if (g->tensor.at[t].op > (s ? a->last[s - 1] : -1) && g->tensor.at[t].op <= a->last[s])
                chosen[t] = v->fate[t];
    }
}

static void lay_out(Vpipe *v)
{
    const Graph *g = v->q->p->g;
    v->of = v->u->of;
    v->crosses = alloc((size_t)g->tensor.n);
    v->made_from = alloc(sizeof(int) * (size_t)(g->nf + 1));
    for (int o = 0; o < g->nf; o++) {
        v->made_from[o] = v->made.n;
        for (EACH(const Arg, a, g->op.at[o].arg)) {
            if (a->kind == ARG_WRITE && !a->state)
                *PUSH(&v->made) = a->index;
        }
    }
    v->made_from[g->nf] = v->made.n;
    for (int o = 0; o < g->nf; o++)
        for (EACH(const Arg, a, g->op.at[o].arg)) {
            if (a->kind == ARG_READ && !a->state && g->tensor.at[a->index].op >= 0)
                v->crosses[a->index] |= v->of[g->tensor.at[a->index].op] < v->of[o];
        }
}

static bool search(const Question *q, Answer *a, Burden (*plan)(void *, int, int, int), bool each)
{
    const Plan *p = q->p;
    Units u = units_of(p, q->cut, q->chunks);
    Vpipe v = {.q = q, .u = &u, .choices = choices_of(p), .plan = plan, .each = each};
    int *last = alloc(sizeof *last * (size_t)q->chunks);
    lay_out(&v);
    v.unit_fate = alloc((size_t)u.n);
    v.rate = alloc(sizeof *v.rate * (size_t)u.n);
    v.kept = alloc(sizeof *v.kept * (size_t)u.n);
    v.left = alloc(sizeof *v.left * (size_t)u.n);
    v.fate = alloc(sizeof *v.fate * (size_t)p->g->tensor.n);
    memcpy(v.fate, v.choices.base, sizeof *v.fate * (size_t)p->g->tensor.n);
    if (!balanced(q, &u, last, &v.period))
        return false;
    Moves m = {.units = u.n, .stages = q->chunks, .must = u.must, .burden = burden, .ctx = &v};
    moves_improve(&m, last);
    answer(&v, last, a);
    return moves_worst(&m, last).over == 0;
}

bool plan_vpipe_repo(const Question *q, Answer *a)
{
    return search(q, a, tail, false);
}

bool plan_vpipe_paper(const Question *q, Answer *a)
{
    return search(q, a, blocks, true);
}
