/* SPDX-License-Identifier: Apache-2.0
 *
 * message.c: messages between stages of one process, on one GPU or on several.
 *
 * Each half leaves an event on its stage's computation when it begins.  The sender's event says that the tensor is made, the
 * receiver's that the buffer is free.  The half that begins second gives the copy to the stream of the pair, after both
 * events, and then an event for each half.  A wait makes the computation of its stage wait for that event.  The host waits
 * only until the copy has been given.
 *
 * A request number may begin again as soon as its wait has returned, while the other half of the message has not been waited
 * for.  Each half therefore has its own event.
 */
#include "device.h"
#include "meet.h"
#include "run.h"

static Device *device_at(Stage *st, int stage)
{
    const Run *run = st->worker->run;
    return device_of(&run->worker[stage - run->first].stage);
}

int64_t message_ready(Stage *st, int request)
{
    Device *d = device_of(st);
    device_check(st, cudaEventRecord(d->ready[request], stream_of(st)), "beginning a message");
    return 0;
}

int64_t message_carry(Stage *st, const Message *m, int64_t *wire)
{
    Device *from = device_at(st, m->from->stage), *to = device_at(st, m->to->stage);
    int send = m->from->request, recv = m->to->request;
    cudaStream_t s = to->from[m->from->stage];
    cudaEvent_t left = from->left[to->number * ALL_REQUESTS + send];
    from->left_by[send] = to->number;
    to->left_by[recv] = -1;
    device_check(st, cudaStreamWaitEvent(s, from->ready[send], 0), "a message");
    device_check(st, cudaStreamWaitEvent(s, to->ready[recv], 0), "a message");
    if (m->bytes)                   /* none: both only come behind each other */
        device_check(st, cudaMemcpyAsync(m->target, m->source, (size_t)m->bytes, cudaMemcpyDeviceToDevice, s), "a message");
    device_check(st, cudaEventRecord(left, s), "a message");
    device_check(st, cudaEventRecord(to->arrived[recv], s), "a message");
    (void)wire;
    return 0;
}

void message_arrived(Stage *st, int request, int64_t ready)
{
    (void)ready;
    Device *d = device_of(st);
    int gpu = d->left_by[request];
    cudaEvent_t e = gpu < 0 ? d->arrived[request] : d->left[gpu * ALL_REQUESTS + request];
    device_check(st, cudaStreamWaitEvent(stream_of(st), e, 0), "waiting for a message");
}
