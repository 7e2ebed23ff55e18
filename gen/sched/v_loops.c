/* SPDX-License-Identifier: Apache-2.0
 *
 * v_loops.c: zb-v and dualpipe-v, each as the loops of its source.
 *
 * Problem: the pipeline is folded.  Device i holds chunk i and chunk 2p-1-i, here its near and its far chunk.  Its list is a
 * row of short loops over F, I and W of the two.  The trip counts depend on p, i and m alone.
 *
 *   zb-v         F until the first backward can come, then F I W of both chunks, one after the other.  A step takes 6m+p-1
 *                units of a chunk's F, I or W, and no device idles between its first and last.  It holds 2p chunks from F to W.
 *                m >= 2p-1.  Qi et al., 2024, Pipeline Parallelism with Controllable Memory, V-ZB; the loops are those of
 *                PyTorch's ScheduleZBVZeroBubble
 *   dualpipe-v   F of a chunk stands beside the backward of the other one.  Here the two are taken one after the other.  The
 *                same step, and 2p+1 held.  m >= 2p.  DeepSeek-AI, 2025, DualPipe, dualpipev.py
 *
 * I and W of a chunk ascend, so the bits are those of any synchronous schedule.
 *
 * Cost: linear in the actions.  Not handled: fewer micro-batches (order.c refuses them).
 */
#include "sched.h"

enum { NEAR, FAR };

typedef struct {
    Plan *p;
    int i, m;
    int f[2], b[2], w[2];       /* by chunk of the device: next micro-batch */
    Ints due;                   /* chunks whose I went without its W, in order */
    int first;                  /* dualpipe-v: the first of these that has not had W */
} Loops;

static void put(Loops *x, ActionKind kind, int chunk, int *next)
{
    sched_put(x->p, x->i, kind, chunk == NEAR ? x->i : plan_chunks(x->p) - 1 - x->i, next[chunk]++);
}

static void forward(Loops *x, int chunk)
{
    put(x, K_F, chunk, x->f);
}

static void weights(Loops *x, int chunk)
{
    put(x, K_W, chunk, x->w);
}

static void oldest_weights(Loops *x)
{
    weights(x, x->due.at[x->first++]);
}

static void backward(Loops *x, int chunk, bool late)
{
    put(x, K_I, chunk, x->b);
    if (late)
        *PUSH(&x->due) = chunk;
    else
        weights(x, chunk);
}

static void forward_backward(Loops *x, int ahead, int back)
{
    forward(x, ahead);
    backward(x, back, false);
}

static void zb_v(Loops *x, int p)
{
    int i = x->i;
    for (int n = 0; n < 2 * (p - i) - 1; n++)
        forward(x, NEAR);
    for (int n = 0; n < i; n++) {
        forward(x, FAR);
        forward(x, NEAR);
    }
    for (int n = 0; n < p - i; n++)
        forward_backward(x, FAR, FAR);
    while (x->f[FAR] < x->m) {
        if (x->f[NEAR] < x->m)
            forward(x, NEAR);
        backward(x, NEAR, false);
        forward_backward(x, FAR, FAR);
    }
    for (int n = 0; n < i; n++) {
        backward(x, NEAR, true);
        backward(x, FAR, true);
    }
    for (int n = 0; n < p - i; n++) {
        backward(x, NEAR, true);
        weights(x, NEAR);
    }
    for (int chunk = FAR; chunk >= NEAR; chunk--)
        while (x->w[chunk] < x->m)
            weights(x, chunk);
}

static void dualpipe_v(Loops *x, int p)
{
    int i = x->i, rest = p - 1 - i;
    for (int n = 0; n < 2 * rest; n++)
        forward(x, NEAR);
    for (int n = 0; n <= i; n++) {
        forward(x, NEAR);
        forward(x, FAR);
    }
    for (int n = 0; n < rest; n++) {
        backward(x, FAR, false);
        forward(x, FAR);
    }
    for (int n = 0; n <= x->m - 2 * p + i; n++) {
        forward_backward(x, NEAR, FAR);
        forward_backward(x, FAR, NEAR);
    }
    for (int n = 0; n < rest; n++) {
        backward(x, FAR, false);
        forward_backward(x, FAR, NEAR);
    }
    for (int n = 0; n <= 2 * i + 1; n++)            /* the later half leaves its weight gradients for the end */
        backward(x, n % 2 == 0 ? FAR : NEAR, n > i);
    for (int n = 0; n < rest; n++) {
        oldest_weights(x);
        backward(x, NEAR, true);
    }
    for (int n = 0; n <= i; n++)
        oldest_weights(x);
}

static int make(Plan *p, void (*loops)(Loops *x, int p))
{
    for (int i = 0; i < plan_stages(p); i++) {
        Loops x = {.p = p, .i = i, .m = plan_micro(p)};
        loops(&x, plan_stages(p));
    }
    return 0;
}

int schedule_zb_v(Plan *p)
{
    return make(p, zb_v);
}

int schedule_dualpipe_v(Plan *p)
{
    return make(p, dualpipe_v);
}
