/* SPDX-License-Identifier: Apache-2.0
 *
 * v_loops.c: zb-v, dualpipe-v and dualpipe, each as the loops of its source.
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
 *   dualpipe     the same loops, of half as many devices and micro-batches, over two pipelines instead of a fold.  Devices i
 *                and p-1-i hold stages i and p-1-i, one of each pipeline.  The near one is of the pipeline that is young there.
 *                A step takes 3m+p/2-1 units of a stage's F, I or W, and p+1 stages are held.  p even, m even, m >= 2p.
 *                DeepSeek-AI, 2024, DeepSeek-V3 Technical Report, section 3.2.1; dualpipe.py
 *
 * I and W of a chunk ascend, so the bits are those of any synchronous schedule.
 *
 * Cost: linear in the actions.  Not handled: fewer micro-batches (order.c refuses them).
 */
#include "sched.h"

enum { NEAR, FAR };

typedef struct {
    Plan *p;
    int device, i, m;
    int chunk[2], mb[2];        /* near, far: its number; the first micro-batch that it computes here */
    int f[2], b[2], w[2];       /* by chunk of the device: next micro-batch */
    Ints due;                   /* chunks whose I went without its W, in order */
    int first;                  /* dualpipe-v: the first of these that has not had W */
} Loops;

static void put(Loops *x, ActionKind kind, int chunk, int *next)
{
    sched_put(x->p, x->device, kind, x->chunk[chunk], x->mb[chunk] + next[chunk]++);
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
        Loops x = {.p = p, .device = i, .i = i, .m = plan_micro(p), .chunk = {i, plan_chunks(p) - 1 - i}};
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

int schedule_dualpipe(Plan *p)
{
    int stages = plan_stages(p), m = plan_micro(p);
    for (int d = 0; d < stages; d++) {
        bool second = d >= stages / 2;
        int i = second ? stages - 1 - d : d;
        Loops x = {.p = p, .device = d, .i = i, .m = m, .chunk = {i, stages - 1 - i}, .mb = {second ? m : 0, second ? 0 : m}};
        dualpipe_v(&x, stages / 2);
    }
    return 0;
}
