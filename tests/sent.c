/* SPDX-License-Identifier: Apache-2.0
 *
 * sent.c: linked into a generated job to count what the devices of a stage send each other while it trains: `--wrap` makes
 * every reference to step_begin, step_end and link_begin one to __wrap_step_begin, and so on, here.  At the end of a device's
 * last step one line, `sent STAGE SHARD STEPS BYTES`.
 */
#include "rt/link.h"
#include <stdbool.h>
#include <stdio.h>

void __real_step_begin(Stage *st, Values *vals);
void __real_step_end(Stage *st, Values *vals);
void *__real_link_begin(Stage *st, int request, int sending, void *buffer, int peer, int tag, long bytes);

static _Thread_local struct { long steps, bytes; bool inside; } of;        /* a device is a thread */

void __wrap_step_begin(Stage *st, Values *vals)
{
    of.inside = true;
    of.steps++;
    __real_step_begin(st, vals);
}

void *__wrap_link_begin(Stage *st, int request, int sending, void *buffer, int peer, int tag, long bytes)
{
    of.bytes += of.inside && sending && request == TEAM_REQUEST ? bytes : 0;
    return __real_link_begin(st, request, sending, buffer, peer, tag, bytes);
}

void __wrap_step_end(Stage *st, Values *vals)
{
    __real_step_end(st, vals);
    of.inside = false;
    printf("sent %d %d %ld %ld\n", st->index % st->apart, st->shard, of.steps, of.bytes);
}
