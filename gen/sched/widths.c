/* SPDX-License-Identifier: Apache-2.0
 *
 * widths.c: gpipe and 1f1b where stages have different numbers of copies.
 *
 * Problem: a device of a narrow stage takes micro-batches of several rows of replica.c.  Row by row, the copies of a wide stage
 * would work one after the other.
 *
 * Method: micro-batches of rows are taken in turn: the first one of each row, the second one of each, and so on.  Every device
 * keeps to that order, forward and backward.  PipeDream calls it round-robin.  The lists are those of a replay, where a
 * computation of a stage of w copies takes w units of time, twice that backward: widths are as loads are.  A free device takes
 * a backward before a forward.  Under 1f1b it has at most ceil(n/w) micro-batches under way, n devices from its stage on: with
 * equal widths the numbers of 1f1b.  Under gpipe forwards come first.
 *
 * No list waits in a circle.  Of the oldest micro-batch that is not done, all that it reads is done, and no other one is in
 * front of it on its device, nor under way there.
 *
 * Source: Narayanan et al., PipeDream: Generalized Pipeline Parallelism for DNN Training, SOSP 2019, sections 3.2 and 3.3.
 *
 * Cost: computations times devices.
 */
#include "sched.h"

typedef struct {
    Plan *p;
    int rows, each, stages;     /* of micro-batches each row has so many */
    bool flush;                 /* gpipe */
    int *f, *b;                 /* by device: forwards and backwards begun */
    int64_t *free;              /* by device: from when on */
    int64_t *made;              /* [(stage * micro-batches + mb) * 2 + backward]: when it ends; 0: not begun */
} Turns;

static int64_t *made_at(const Turns *x, int stage, bool back, int mb)
{
    return &x->made[((int64_t)stage * x->rows * x->each + mb) * 2 + back];
}

/* Is what that computation reads there? */
static bool ready(const Turns *x, int stage, bool back, int mb, int64_t now)
{
    int from = back ? stage + 1 : stage - 1;
    bool ends = from < 0 || from == x->stages;
    int64_t at = ends && !back ? 1 : ends ? *made_at(x, stage, false, mb) : *made_at(x, from, back, mb);
    return at > 0 && at <= now;
}

/* The n-th micro-batch of a device; -1: it has had all. */
static int nth(const Turns *x, int device, int stage, int n)
{
    return n < plan_share_of(x->p, stage) ? plan_nth(x->p, device, stage, n) : -1;
}

static bool begin(Turns *x, int device, int64_t now)
{
    int stage = plan_stage(x->p, device), *f = &x->f[device], *b = &x->b[device];
    int most = plan_flight(x->p, stage) * (plan_warmup(x->p) == WARMUP_B ? 2 : 1) - (plan_warmup(x->p) == WARMUP_B);
    int forward = nth(x, device, stage, *f), backward = nth(x, device, stage, *b);
    if (x->free[device] > now)
        return false;
    bool back = backward >= 0 && *b < *f && !(x->flush && forward >= 0) && ready(x, stage, true, backward, now);
    bool may = back || (forward >= 0 && (x->flush || *f - *b < most) && ready(x, stage, false, forward, now));
    if (!may)
        return false;
    int mb = back ? backward : forward;
    sched_put(x->p, device, back ? K_B : K_F, stage, mb);
    ++*(back ? b : f);
    *made_at(x, stage, back, mb) = x->free[device] = now + plan_copies(x->p, stage) * (back ? 2 : 1);
    return true;
}

int sched_widths(Plan *p)
{
    Turns x = {.p = p, .rows = plan_rows(p), .each = plan_micro(p), .stages = plan_stages(p),
               .flush = !schedule_of(p->schedule)->warmups};
    size_t n = (size_t)p->devices, all = 2 * (size_t)x.stages * (size_t)(x.rows * x.each);
    x.f = alloc(sizeof *x.f * n), x.b = alloc(sizeof *x.b * n), x.free = alloc(sizeof *x.free * n);
    x.made = alloc(sizeof *x.made * all);
    int64_t left = 0;
    for (int d = 0; d < p->devices; d++)
        left += 2 * plan_share_of(p, plan_stage(p, d));
    for (int64_t now = 1; left > 0; now++) {
        bool any = false;
        for (int d = 0; d < p->devices; d++)
            for (; begin(&x, d, now); left--)
                any = true;
        for (int d = 0; d < p->devices; d++)
            any |= x.free[d] > now;
        if (!any && left > 0)
            die("widths: no device goes on at %lld", (long long)now);
    }
    return 0;
}
