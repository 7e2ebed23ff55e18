/* SPDX-License-Identifier: Apache-2.0
 *
 * feed.c: what a step has beside its computation and messages: its values, its data, and how many targets count.
 */
#include "data.h"

void step_begin(Stage *st, Values *vals)
{
    Worker *w = st->worker;
    values_fill(vals, w->run->job, w->ended && !w->eval ? w->next++ : w->step, w->eval);
    w->begun = seconds();
}

void step_end(Stage *st, Values *vals)
{
    Worker *w = st->worker;
    st->wall = seconds() - w->begun;
    w->last = vals;
    if (w->ended && !w->eval)
        job_parts.overlap->ended(w, vals);
}

void data_load(Stage *st, void *to, Values *vals, int input, int mb, long bytes)
{
    if (paced(st))
        return;
    data_input(st, vals, input, bytes);
    data_read(st, vals, &(Read){input, mb, bytes, 0}, to, false);
}

void data_count(Stage *st, Values *vals, int input, int ignore, int count)
{
    if (!paced(st))
        data_counted(st, vals, &(Read){input, -1, sizeof(int64_t), ignore}, count, NULL);
}
