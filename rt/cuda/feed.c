/* SPDX-License-Identifier: Apache-2.0
 *
 * feed.c: what the host does in a step of a stage on a GPU beside queueing: as rt/feed.c, but what it makes is sent, and each
 * chore tells how it is made again (record.c).
 */
#include "data.h"
#include "device.h"
#include "feed.h"

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

static void load_again(Stage *st, const Chore *c)
{
    data_load(st, c->to, c->vals, c->input, c->number, c->bytes);
}

void data_load(Stage *st, void *to, Values *vals, int input, int mb, long bytes)
{
    if (paced(st))
        return;
    arena_chore(st, (Chore){load_again, to, vals, input, mb, 0, bytes});
    const Values *now = arena_values(st, vals);
    const InputInfo *in = data_input(st, now, input, bytes);
    const Read r = {input, mb, in->bytes ? in->per * now->batch : bytes, 0};
    void *room = arena_ahead(st, now, &r);
    if (!room)
        data_read(st, now, &r, room = arena_room(st, (size_t)r.bytes), false);
    arena_post(st, to, room, (size_t)r.bytes, in->bytes);
}

static void count_again(Stage *st, const Chore *c)
{
    data_count(st, c->vals, c->input, c->number, c->count);
}

void data_count(Stage *st, Values *vals, int input, int ignore, int count)
{
    if (paced(st))
        return;
    arena_chore(st, (Chore){count_again, NULL, vals, input, ignore, count, 0});
    Values *now = arena_values(st, vals);
    const Read r = {input, -1, sizeof(int64_t), ignore};
    data_counted(st, now, &r, count, arena_ahead(st, now, &r));
    arena_post(st, &vals->valid[count], &now->valid[count], sizeof now->valid[count], NULL);
}
