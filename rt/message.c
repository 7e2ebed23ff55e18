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

int64_t message_carry(Stage *st, const Message *m, int64_t *wire)
{
    if (paced(st))
        return job_parts.pace->carry(st, m, wire);
    memcpy(m->target, m->source, (size_t)m->bytes);
    return 0;
}

void message_arrived(Stage *st, int request, int64_t ready)
{
    (void)request;
    if (ready)
        job_parts.pace->wait(st->worker, ready);
}
