/* SPDX-License-Identifier: Apache-2.0
 *
 * action.c: what the actions and transfers of a step tell the runtime.
 */
#include "meet.h"
#include "run.h"

const char *action_name(const Worker *w, int64_t number)
{
    long n = w->info->actions + w->info->eval_actions;
    bool known = w->names && number >= 0 && number < n;
    const char *text = known ? atomic_load_explicit(&w->names[number], memory_order_relaxed) : NULL;
    return text ? text : "?";
}

void action(Stage *st, int number, const char *text)
{
    st->at = number;
    if (!st->worker)
        return;
    if (st->worker->names)
        atomic_store_explicit(&st->worker->names[number], text, memory_order_relaxed);
    atomic_store_explicit(&st->worker->at, number, memory_order_relaxed);
    atomic_fetch_add_explicit(&st->worker->beat, 1, memory_order_relaxed);
    if (paced(st))
        job_parts.pace->begin(st->worker, number);
    if (st->trace)
        trace_stamp(st, number);
    if (st->hook)
        st->hook(st, ACTION_BEGINS, text, NULL, NULL);
}

const char *stage_action(const Stage *st, int stage, int64_t at)
{
    return st->worker ? action_name(&st->worker->run->worker[stage], at) : "?";
}

void stage_waits(Stage *st, int who)
{
    if (!st->worker)
        return;
    atomic_store_explicit(&st->worker->waits, who, memory_order_relaxed);
    if (!who)
        atomic_fetch_add_explicit(&st->worker->beat, 1, memory_order_relaxed);
}
