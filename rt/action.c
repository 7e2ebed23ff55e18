/* SPDX-License-Identifier: Apache-2.0
 *
 * action.c: the actions of a step that do not compute.
 *
 * A transfer is begun under a literal request number and waited for under the same.  Beginning a number twice, or
 * waiting for one that was not begun, is a bug of the plan and ends the job.
 */
#include "link.h"
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
    pace_action(st->worker, number);
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
    arena_post(st, vals, v, values_bytes(w->run->job));
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
        job_overlap->ended(w, w->last);
}

static const char *stage_name(const Stage *st, int index)
{
    return st->worker ? st->worker->run->job->stage[index].name : "stage";
}

/* A stage's source names the first device of another stage; this one speaks to the one of its own number. */
static void begin(Stage *st, int request, int sending, void *buffer, int peer, int tag, long bytes)
{
    peer += st->shard * st->apart;
    if (request < 0 || request >= MAX_REQUESTS || peer < 0 || peer >= st->count || peer == st->index || bytes < 0)
        quit(st->link, STATUS_RUN, "%s: transfer %d with stage %d, tag %d, %ld bytes is out of range; this folder is "
             "not what dpgen wrote", stage_name(st, st->index), request, peer, tag, bytes);
    if (st->request[request])
        quit(st->link, STATUS_RUN, "%s: transfer %d (tag %d) begins again before its end was waited for; this folder "
             "is not what dpgen wrote", stage_name(st, st->index), request, tag);
    if (st->worker)
        st->worker->peer[request] = sending ? -1 - peer : 1 + peer;
    st->request[request] = link_begin(st, request, sending, buffer, peer, tag, bytes);
}

void send_begin(Stage *st, const void *from, int request, int peer, int tag, long bytes)
{
    begin(st, request, 1, (void *)(uintptr_t)from, peer, tag, bytes);
}

void recv_begin(Stage *st, void *to, int request, int peer, int tag, long bytes)
{
    begin(st, request, 0, to, peer, tag, bytes);
}

void transfer_wait(Stage *st, int request)
{
    if (request < 0 || request >= MAX_REQUESTS || !st->request[request])
        quit(st->link, STATUS_RUN, "%s: waits for transfer %d, which was not begun; this folder is not what dpgen "
             "wrote", stage_name(st, st->index), request);
    if (st->worker)
        atomic_store_explicit(&st->worker->waits, st->worker->peer[request], memory_order_relaxed);
    link_wait(st, st->request[request]);
    if (st->worker)
        atomic_store_explicit(&st->worker->waits, 0, memory_order_relaxed);
    st->request[request] = NULL;
}
