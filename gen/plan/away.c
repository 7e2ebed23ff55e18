/* SPDX-License-Identifier: Apache-2.0
 *
 * away.c: what offloaded tensors take of a device while they leave it and come back.
 *
 * In a walk of live.c a tensor is there from its first touch to its last.  An offloaded one stays in forward until its copy is
 * out, and is there in backward from the begin of its fetch: as offload_out() and offload_in() have it for a computation by
 * itself, copies one after another.  What is not out when forward ends is seen by the computation behind it, what is begun
 * before backward by the one in front.
 *
 * Left out: copies that wait for those of other micro-batches, where the link has less time for a forward than its tensors
 * take.  Cost: n log n in offloaded tensors, linear in calls; nothing where nothing is offloaded.
 */
#include "index.h"
#include <stdlib.h>

typedef struct { int tensor, call; } Touch;

static int by_call(const void *a, const void *b)
{
    const Touch *x = a, *y = b;
    return x->call != y->call ? x->call - y->call : x->tensor - y->tensor;
}

typedef struct Windows { Touch *touch; int *call, *answer; Ns *at, *ns; } Windows;

Windows *away_room(int tensors, int calls)
{
    Windows *w = alloc(sizeof *w);
    size_t n = (size_t)tensors;
    *w = (Windows){alloc(sizeof(Touch) * n), alloc(sizeof(int) * n), alloc(sizeof(int) * n),
                   alloc(sizeof(Ns) * (size_t)(calls + 1)), alloc(sizeof(Ns) * n)};
    return w;
}

/* Offloaded tensors by the position that `of` has for them, and when each call of the walk begins. */
static const Windows *windows(const Live *x, const int *of, int add, const int *line)
{
    const Windows *w = x->windows;
    int device = x->p->chunk_device.at[x->chunk];
    const Ns *time = live_times(x, x->chunk);
    for (int i = 0; i < x->ngone; i++)
        w->touch[i] = (Touch){x->gone[i], of[2 * x->gone[i]] + add};
    qsort(w->touch, (size_t)x->ngone, sizeof(Touch), by_call);
    for (int i = 0; i < x->ngone; i++) {
        w->call[i] = w->touch[i].call;
        w->ns[i] = offload_window(x->p, device, x->bytes[w->touch[i].tensor]);
    }
    w->at[0] = 0;
    for (int i = 0; i < x->at; i++) {
        int o = !line ? x->first + i : line[i] < 0 ? ~line[i] : line[i];
        w->at[i + 1] = w->at[i] + time[o];
    }
    return w;
}

Bytes away_forward(Live *x)
{
    Bytes late = 0;
    if (x->ngone == 0 || x->p->hurry == HURRY_NOW)      /* then all stop while it is copied */
        return 0;
    const Windows *w = windows(x, x->to, 1, NULL);
    offload_out(w->at, x->at, x->ngone, w->call, w->ns, w->answer);
    for (int i = 0; i < x->ngone; i++) {
        int t = w->touch[i].tensor, until = w->answer[i] > x->at ? x->at : w->answer[i];
        if (until - 1 > x->to[2 * t])
            x->to[2 * t] = until - 1;
        late += w->answer[i] > x->at ? x->bytes[t] : 0;
    }
    return late;
}

Bytes away_backward(Live *x)
{
    Bytes early = 0;
    if (x->ngone == 0 || x->p->hurry == HURRY_NOW)      /* then all stop while it is copied */
        return 0;
    const Windows *w = windows(x, x->from, 0, x->line);
    offload_in(w->at, x->at, x->ngone, w->call, w->ns, w->answer);
    for (int i = 0; i < x->ngone; i++) {
        int t = w->touch[i].tensor;
        x->from[2 * t] = w->answer[i] > 0 ? w->answer[i] : 0;
        early += w->answer[i] < 0 ? x->bytes[t] : 0;
    }
    return early;
}
