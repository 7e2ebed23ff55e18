/* SPDX-License-Identifier: Apache-2.0
 *
 * rungs.c: any plan that fits, where the search for fast ones found none.
 *
 * Problem: planners fill what a limit allows, and packing needs some bytes more.  Near the least limit it is luck whether the
 * cuts and fates of a limit pack.  So a limit may have no plan, though a smaller one has.
 *
 * Method: first the question of a report, so each limit that a report promises has a plan.  Then the same question under
 * smaller limits.  They are rungs: numbers of six binary digits, the same ones under every limit.  A plan of a rung fits all
 * limits above it, so a rung that has a plan has one for them too.  The way down ends where no planner finds a cut, or where
 * much is lacking: then it was not packing alone.
 *
 * Cost: RUNGS questions of QUESTION_WORK at most.  Not handled: a limit between two rungs that has a plan of its own, while a
 * larger one, and the rungs below it, have none.
 */
#include "rungs.h"
#include "budgets.h"
#include "passes.h"
#include "search.h"

#include <string.h>

/* Numbers below 64 are rungs, and above those of six digits. */
static Bytes rung_at(Bytes n)
{
    Bytes step = 1;
    while (n / step >= 64)
        step *= 2;
    return n - n % step;
}

/* Of a limit, what no arena can have. */
static Bytes taken(const Device *k)
{
    return k->reserve + k->workspace;
}

/* The need is of the last cut that was tried, not of the best, so packing alone may lack that much.  Where chunks share a
 * device, they pack worse, and it may be as much again as the limit. */
static bool lacks_little(const Plan *failed)
{
    int d = failed->shortfall.device;
    Bytes limit = d < 0 ? 0 : failed->dev.at[d].limit;
    Bytes most = plan_chunks(failed) > plan_stages(failed) ? limit : limit / RUNG_LACK;
    return failed->chunk.n > 0 && !failed->shortfall.host && limit > 0 && failed->shortfall.need - limit <= most;
}

static Plan *ask_any(const Options *x, const Model *m, bool home, bool *open)
{
    int64_t *work = alloc(sizeof *work);
    *work = QUESTION_WORK;
    Ask none = {0}, ask = {.first_fit = true, .no_offload = home, .work_left = work, .steps_left = layout_budget(&none)};
    Plan *failed = NULL, *p = search_with(x, m, &ask, &failed);
    *open |= !p && failed && lacks_little(failed);
    return p;
}

/* Asked as a report asks for the limits that it promises.  open: there were cuts that nearly fit. */
static Plan *ask_both(const Options *x, const Model *m, bool *open)
{
    Plan *p = m->plan.offload == OFFLOAD_AUTO ? ask_any(x, m, true, open) : NULL;
    return p ? p : ask_any(x, m, false, open);
}

static Model *with_devices(const Model *of)
{
    Model *m = alloc(sizeof *m);
    *m = *of;
    memset(&m->devices, 0, sizeof m->devices);
    for (int d = 0; d < of->devices.n; d++)
        *PUSH(&m->devices) = of->devices.at[d];
    return m;
}

/* The model a rung lower; false: a device would have nothing. */
static bool lower_limits(Model *m)
{
    bool left = true;
    for (int d = 0; d < m->devices.n; d++) {
        Device *k = &m->devices.at[d];
        k->memory = rung_at(k->memory + taken(k) - 1) - taken(k);
        left &= k->memory > 0;
    }
    return left;
}

Plan *rungs_any(const Options *x, const Model *m)
{
    void *mark = mem_mark();
    Model *with = with_devices(m);
    bool open = false;
    Plan *p = ask_both(x, with, &open);
    for (int rung = 0; !p && open && rung < RUNGS && !busy_stopped() && lower_limits(with); rung++) {
        open = false;
        p = ask_both(x, with, &open);
    }
    if (!p) {
        mem_release(mark);
        return NULL;
    }
    p = under_limits(p, m);
    p->proof.bound = 0;         /* it was of smaller limits */
    p->proof.note = "the first that fits: the search for faster plans found none";
    return p;
}
