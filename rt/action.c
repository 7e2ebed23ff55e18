/* SPDX-License-Identifier: Apache-2.0
 *
 * action.c: the actions of a step that neither compute nor move anything, and what its transfers tell the runtime.
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

static void begin_again(Stage *st, const Chore *c)
{
    step_begin(st, c->vals);
}

void step_begin(Stage *st, Values *vals)
{
    Worker *w = st->worker;
    arena_chore(st, (Chore){.again = begin_again, .vals = vals});
    Values *v = arena_values(st, vals);
    values_fill(v, w->run->job, w->ended && !w->eval ? w->next++ : w->step, w->eval);
    arena_post(st, vals, v, values_bytes(w->run->job), NULL);
    w->begun = seconds();
}

static void end_again(Stage *st, const Chore *c)
{
    step_end(st, c->vals);
}

void step_end(Stage *st, Values *vals)
{
    Worker *w = st->worker;
    arena_chore(st, (Chore){.again = end_again, .vals = vals});
    arena_settle(st, vals);
    st->wall = seconds() - w->begun;
    w->last = arena_values(st, vals);
    if (w->ended && !w->eval)
        job_parts.overlap->ended(w, w->last);
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
