/* SPDX-License-Identifier: Apache-2.0
 *
 * transfer.c: the messages of a step, whatever the transport, for the program and for the library.
 *
 * A transfer is begun under a literal request number and waited for under the same.  Beginning a number twice, or
 * waiting for one that was not begun, is a bug of the plan and ends the step.
 */
#include "link.h"
#include "meet.h"

/* A stage's source names the first device of another stage; this one speaks to the one of its own number. */
static void begin(Stage *st, int request, int sending, void *buffer, int peer, int tag, long bytes)
{
    peer += st->shard * st->apart;
    if (request < 0 || request >= MAX_REQUESTS || peer < 0 || peer >= st->count || peer == st->index || bytes < 0)
        stage_fail(st, "stage %lld: transfer %lld with stage %lld, tag %lld, %lld bytes is out of range; this folder is not "
                   "what dpgen wrote", (long long)st->index, (long long)request, (long long)peer, (long long)tag,
                   (long long)bytes);
    if (st->request[request])
        stage_fail(st, "stage %lld: transfer %lld (tag %lld) begins again before its end was waited for; this folder is not "
                   "what dpgen wrote", (long long)st->index, (long long)request, (long long)tag);
    st->peer[request] = sending ? -1 - peer : 1 + peer;
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

void messages_together(Stage *st, int n)
{
    st->together = n;
}

void transfer_wait(Stage *st, int request)
{
    if (request < 0 || request >= MAX_REQUESTS || !st->request[request])
        stage_fail(st, "stage %lld: waits for transfer %lld, which was not begun; this folder is not what dpgen wrote",
                   (long long)st->index, (long long)request);
    stage_waits(st, st->peer[request]);
    link_wait(st, st->request[request]);
    stage_waits(st, 0);
    st->request[request] = NULL;
}
