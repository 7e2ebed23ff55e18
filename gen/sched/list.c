/* SPDX-License-Identifier: Apache-2.0
 *
 * list.c: a legal order for any map of chunks to devices.
 *
 * Problem: a device may hold several chunks, neighbours or not: a V, the special device of MadPipe, interleaved chunks.  A list
 * made by hand for one map deadlocks under another.
 *
 * Method: list scheduling of unit forwards and backwards of twice that length.  A free device takes a ready computation:
 * backward before forward, the older micro-batch first, for one micro-batch the later chunk.  A chunk begins a forward only
 * while fewer than min(m, chunks from it to the end) of its micro-batches lie between forward and backward.  A device begins
 * only what it can send: one message of a kind is under way between two neighbouring chunks, as check_order demands.  A step of
 * GPipe's form (flush) has no bound and begins no backward before the device's last forward.
 *
 * No deadlock: chunks take micro-batches in ascending order.  So neither bound nor message of another micro-batch can block the
 * oldest one that is not done.  Once its device is free, it goes on.  The lists ran here once, in time, so they halt.  With one
 * chunk a device, in order, this is the list of 1f1b.c: unit_sched compares the two.
 *
 * Source: Graham, Bounds for Certain Multiprocessing Anomalies, 1966.  Interleaved chunks are of Narayanan et al., Efficient
 * Large-Scale Language Model Training on GPU Clusters Using Megatron-LM, 2021, section 2.2.
 *
 * Cost: actions times chunks.  Not handled: unequal chunks (an order is made before the chunks are), the tighter lists known
 * for single maps (interleaved, zb-v, v-half).
 */
#include "sched.h"

enum { FORWARD = 1, BACKWARD = 2 };         /* units of time */

typedef struct {
    const Plan *p;
    int m, chunks;
    bool flush;
    int *f, *b;                 /* by chunk: next forward, next backward */
    int *made_f, *made_b;       /* [chunk * m + micro-batch]: when it ended; -1 not yet */
    bool *down, *up;            /* by chunk: a message to the next one, to the one before, is under way */
    int *free, *left;           /* by device: from when on; forwards it has to do */
} Lister;

static int device(const Lister *x, int chunk)
{
    return plan_home(x->p, 0, chunk);
}

static bool apart(const Lister *x, int a, int b)
{
    return a >= 0 && b < x->chunks && device(x, a) != device(x, b);
}

static int flight(const Lister *x, int chunk)
{
    int most = x->flush ? x->m : x->chunks - chunk;
    return most < x->m ? most : x->m;
}

static bool over(const int *made, int at, int now)
{
    return made[at] >= 0 && made[at] <= now;
}

static bool may_forward(const Lister *x, int c, int now)
{
    int k = x->f[c];
    return k < x->m && k - x->b[c] < flight(x, c) && (c == 0 || over(x->made_f, (c - 1) * x->m + k, now))
           && !(apart(x, c, c + 1) && x->down[c]);
}

static bool may_backward(const Lister *x, int c, int now)
{
    int k = x->b[c];
    return k < x->f[c] && over(x->made_f, c * x->m + k, now)
           && (c == x->chunks - 1 || over(x->made_b, (c + 1) * x->m + k, now)) && !(apart(x, c - 1, c) && x->up[c])
           && !(x->flush && x->left[device(x, c)] > 0);
}

/* The chunk for the next forward (or backward) of device d; -1: none is ready. */
static int choose(const Lister *x, int d, int now, bool forward)
{
    int best = -1;
    const int *next = forward ? x->f : x->b;
    for (int c = 0; c < x->chunks; c++)
        if (device(x, c) == d && (forward ? may_forward(x, c, now) : may_backward(x, c, now)) &&
            (best < 0 || next[c] <= next[best]))
            best = c;
    return best;
}

static void put_forward(Lister *x, Plan *p, int c, int now)
{
    int k = x->f[c]++, d = device(x, c);
    sched_put(p, d, K_F, c, k);
    x->left[d]--;
    x->free[d] = x->made_f[c * x->m + k] = now + FORWARD;
    if (c > 0)
        x->down[c - 1] = false;
    x->down[c] = apart(x, c, c + 1);
}

static void put_backward(Lister *x, Plan *p, int c, int now)
{
    int k = x->b[c]++, d = device(x, c);
    sched_put(p, d, K_B, c, k);
    x->free[d] = x->made_b[c * x->m + k] = now + BACKWARD;
    if (c + 1 < x->chunks)
        x->up[c + 1] = false;
    x->up[c] = apart(x, c - 1, c);
}

/* Begins every computation that can begin now; false: none can. */
static bool begin(Lister *x, Plan *p, int now)
{
    bool any = false;
    for (int d = 0; d < plan_stages(p); d++) {
        if (x->free[d] > now)
            continue;
        int back = choose(x, d, now, false), next = back < 0 ? choose(x, d, now, true) : -1;
        any |= back >= 0 || next >= 0;
        if (back >= 0)
            put_backward(x, p, back, now);
        else if (next >= 0)
            put_forward(x, p, next, now);
    }
    return any;
}

/* The next moment at which a device is free again. */
static int later(const Lister *x, int now)
{
    int next = -1;
    for (int d = 0; d < plan_stages(x->p); d++)
        if (x->free[d] > now && (next < 0 || x->free[d] < next))
            next = x->free[d];
    return next;
}

static int *numbers(int n, int value)
{
    int *at = alloc(sizeof *at * (size_t)n);
    for (int i = 0; i < n; i++)
        at[i] = value;
    return at;
}

void sched_list(Plan *p, bool flush)
{
    int m = plan_micro(p), chunks = plan_chunks(p);
    Lister x = {.p = p, .m = m, .chunks = chunks, .flush = flush, .f = numbers(chunks, 0), .b = numbers(chunks, 0),
                .made_f = numbers(chunks * m, -1), .made_b = numbers(chunks * m, -1), .down = alloc((size_t)chunks),
                .up = alloc((size_t)chunks), .free = numbers(plan_stages(p), 0), .left = numbers(plan_stages(p), 0)};
    for (int c = 0; c < chunks; c++)
        x.left[device(&x, c)] += m;
    for (int now = 0; now >= 0; now = later(&x, now))
        while (begin(&x, p, now))
            continue;
    for (int c = 0; c < chunks; c++)
        if (x.b[c] < m)
            die("list: chunk %d stops after %d of %d micro-batches", c, x.b[c], m);
}
