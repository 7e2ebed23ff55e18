/* SPDX-License-Identifier: Apache-2.0
 *
 * message.c: a message between two stages of one process: here a copy, made by the stage that comes second.  cuda/message.c
 * has the same calls for stages that queue their computation.
 */
#include <string.h>
#include "meet.h"
#include "run.h"

int64_t message_ready(Stage *st, int request)
{
    (void)request;
    return paced(st) ? st->worker->due : 0;
}

/* When a message of a paced job arrives: whoever comes second knows both halves. */
int64_t message_carry(Stage *st, const Message *m, int64_t *wire)
{
    memcpy(m->target, m->source, (size_t)(paced(st) && m->bytes > PACED_BYTES ? PACED_BYTES : m->bytes));
    if (!paced(st))
        return 0;
    const StageInfo *stage = st->worker->run->job->stage;
    *wire = (m->from->begun > *wire ? m->from->begun : *wire) + stage[m->from->stage].pace[2 * m->from->at + 1];
    return *wire + stage[m->to->stage].pace[2 * m->to->at + 1];
}

void message_arrived(Stage *st, int request, int64_t ready)
{
    (void)request;
    if (ready)
        pace_wait(st->worker, ready);
}
