/* SPDX-License-Identifier: Apache-2.0
 *
 * message.c: a message between two stages of one process: here a copy, made by the stage that comes second.  cuda/message.c
 * has the same calls for stages that queue their computation.
 */
#include <string.h>
#include "run.h"

void message_ready(Stage *st, int request)
{
    (void)st, (void)request;
}

void message_carry(Stage *st, const Message *m)
{
    memcpy(m->target, m->source, (size_t)(paced(st) && m->bytes > PACED_BYTES ? PACED_BYTES : m->bytes));
}

void message_arrived(Stage *st, int request)
{
    (void)st, (void)request;
}
