/* SPDX-License-Identifier: Apache-2.0
 *
 * slots.c: 1f1b-v, v-half, v-min and hanayo: a building block of slots, repeated for every micro-batch, and drawn together.
 * gpipe and 1f1b for any map of chunks to devices.
 *
 * Problem: on a folded pipeline the slots of one micro-batch decide how long each chunk is held, so they decide the memory.
 * Their repetition keeps every device busy in the steady state.  Its warm-up and cool-down idle.
 *
 * Method: each row gives the slot of the first F and the first backward of each chunk, and the slots from one micro-batch to
 * the next.  No two computations of a device share a slot, but in hanayo.  List scheduling in unit time follows them: a
 * free device takes the ready computation of the least slot.  W has no slot: it fills the time in which a device would wait,
 * the oldest first.  Two rules draw the ends together without a higher peak:
 *
 *   F     may go ahead of others, while the device has room for it and for all F that it passes
 *   I, B  may go ahead of others once the device has no F left
 *
 * The room is the peak of the steady state, 2 floor((p+2)/2) chunks for v-half and 2 floor((p+4)/3) for v-min.  1f1b-v and
 * hanayo do not split their backward of two units.  The room of 1f1b-v is p + floor((p+4)/3).  Between devices F takes one slot
 * there, and B takes two.  On two edges of three, B of one chunk takes five, so that F, F, B and B fill the six slots of a
 * device.  hanayo has no limit.  There the slots only say who goes first, and a backward may always go ahead.  Of three
 * lists the shortest stays: equal slots in two orders, and a backward that waits a unit for one of a lesser slot.
 *
 * Any map: a list made by hand for one map waits in a circle under another.  There a slot only says who goes first.  For 1f1b
 * that is backward before forward, the older micro-batch, for one micro-batch the later chunk.  A chunk begins a forward only
 * while fewer than min(m, chunks from it to the end) of its micro-batches are under way.  gpipe has no bound,
 * and its forwards come first.  One message of a kind is under way between two neighbouring chunks, so buffers stay few.
 * Chunks take micro-batches in ascending order.  So neither bound nor message of another micro-batch blocks the oldest one that
 * is not done, and once its device is free, it goes on.  With one chunk a device, in order, these are the lists of gpipe.c and
 * 1f1b.c: unit_sched compares them.
 *
 * Source: Graham, 1966, Bounds for Certain Multiprocessing Anomalies.  Qi et al., 2024, Pipeline Parallelism with Controllable
 * Memory: V-Half, V-Min, and the squeeze; for 1F1B-V the map and two thirds of 1F1B's memory, in slots of our own.  Liu et al.,
 * 2023, Hanayo: Harnessing Wave-like Pipeline Parallelism, for the map of several waves; its slots are our own.
 *
 * Cost: actions times chunks.  Not handled: other times than F = I = W.
 */
#include "sched.h"
#include <limits.h>

typedef struct {
    Plan *p;
    int stages, m, chunks, period, room;
    bool split, steady;         /* a backward keeps to its slot */
    bool later;                 /* of equal slots the later micro-batch goes first, not the lesser chunk */
    bool wait;                  /* a backward waits for one of a lesser slot that may begin a unit later */
    bool dry;                   /* nothing is written */
    int *slot_f, *slot_b;       /* by chunk: of micro-batch 0 */
    int *f, *b, *w;             /* by chunk: next micro-batch */
    int *made_f, *made_b;       /* [chunk * m + micro-batch]: when it ends; -1: not begun */
    int *free, *held;           /* by device: from when on; chunks between F and W, or the end of B */
    int *most;                  /* by chunk: micro-batches between F and B */
    bool single;                /* one message of a kind between two chunks ... */
    bool *down, *up;            /* ... by chunk: to the next one, to the one before, is under way */
} Slots;

typedef struct { ActionKind kind; int chunk; } SlotsChoice; /* chunk -1: none */

static int device(const Slots *x, int chunk)
{
    return stage_of(x->p, chunk);
}

static int due_f(const Slots *x, int chunk)
{
    return x->slot_f[chunk] + x->period * x->f[chunk];
}

static int due_b(const Slots *x, int chunk)
{
    return x->slot_b[chunk] + x->period * x->b[chunk];
}

static bool over(const Slots *x, const int *made, int chunk, int mb, int now)
{
    int end = made[chunk * x->m + mb];
    return end >= 0 && end <= now;
}

/* Forwards of the device with lesser slots than the next one of this chunk. */
static int passed(const Slots *x, int chunk)
{
    int n = 0;
    for (int c = 0; c < x->chunks; c++) {
        if (device(x, c) != device(x, chunk) || c == chunk)
            continue;
        int before = (due_f(x, chunk) - due_f(x, c) + x->period - 1) / x->period;
        n += before < 0 ? 0 : before < x->m - x->f[c] ? before : x->m - x->f[c];
    }
    return n;
}

static bool may_forward(const Slots *x, int c, int now)
{
    return x->f[c] < x->m && x->f[c] - x->b[c] < x->most[c] && !x->down[c]
           && (c == 0 || over(x, x->made_f, c - 1, x->f[c], now)) && x->held[device(x, c)] + passed(x, c) < x->room;
}

/* A backward that goes ahead of a forward leaves the steady state. */
static bool in_place(const Slots *x, int chunk)
{
    bool ahead = false, more = false;
    for (int c = 0; c < x->chunks; c++)
        if (device(x, c) == device(x, chunk)) {
            more |= x->f[c] < x->m;
            ahead |= (x->f[c] < x->m && due_f(x, c) < due_b(x, chunk)) || (x->b[c] < x->m && due_b(x, c) < due_b(x, chunk));
        }
    return !ahead || !more;
}

static bool may_backward(const Slots *x, int c, int now)
{
    return x->b[c] < x->m && !x->up[c] && over(x, x->made_f, c, x->b[c], now)
           && (c == x->chunks - 1 || over(x, x->made_b, c + 1, x->b[c], now)) && (!x->steady || in_place(x, c));
}

/* The weight gradient that is ready for longest. */
static SlotsChoice oldest(const Slots *x, int d)
{
    SlotsChoice best = {K_W, -1};
    int since = 0;
    for (int c = 0; c < x->chunks && x->split; c++) {
        if (device(x, c) != d || x->w[c] == x->b[c])
            continue;
        int end = x->made_b[c * x->m + x->w[c]];
        if (best.chunk < 0 || end < since) {
            best.chunk = c;
            since = end;
        }
    }
    return best;
}

/* The next forward or backward of a chunk among others: the lesser slot goes first.  Of equal ones, as hanayo has them, the
 * lesser chunk does, or the later micro-batch. */
static int64_t rank(const Slots *x, int c, bool forward)
{
    int mb = (forward ? x->f : x->b)[c], tie = x->later ? x->m - mb : c;
    return (int64_t)(forward ? due_f(x, c) : due_b(x, c)) * 2 * (x->m + x->chunks) + 2 * tie + forward;
}

/* The chunk of a device whose forward, or backward, is first of those that may begin; -1: none may. */
static int first_of(const Slots *x, int d, bool forward, int now)
{
    bool (*may)(const Slots *, int, int) = forward ? may_forward : may_backward;
    int best = -1;
    for (int c = 0; c < x->chunks; c++)
        if (device(x, c) == d && may(x, c, now) && (best < 0 || rank(x, c, forward) < rank(x, best, forward)))
            best = c;
    return best;
}

static SlotsChoice choose(const Slots *x, int d, int now)
{
    int f = first_of(x, d, true, now), b = first_of(x, d, false, now);
    if (x->wait && first_of(x, d, false, now + 1) != b)
        b = -1;
    if (b >= 0 && (f < 0 || rank(x, b, false) < rank(x, f, true)))
        return (SlotsChoice){x->split ? K_I : K_B, b};
    return f >= 0 ? (SlotsChoice){K_F, f} : oldest(x, d);
}

static void begin(Slots *x, int d, SlotsChoice k, int now)
{
    int c = k.chunk, *next = k.kind == K_F ? x->f : k.kind == K_W ? x->w : x->b, mb = next[c]++;
    if (!x->dry)
        sched_put(x->p, d, k.kind, c, mb);
    x->free[d] = now + (k.kind == K_B ? 2 : 1);
    x->held[d] += k.kind == K_F ? 1 : k.kind == K_I ? 0 : -1;
    if (k.kind == K_W)
        return;
    (k.kind == K_F ? x->made_f : x->made_b)[c * x->m + mb] = x->free[d];
    /* A message leaves for the next chunk, or the one before, and another one was received. */
    bool forward = k.kind == K_F;
    bool *under = forward ? x->down : x->up;
    int from = forward ? c - 1 : c + 1, to = forward ? c + 1 : c - 1;
    if (from >= 0 && from < x->chunks)
        under[from] = false;
    under[c] = x->single && to >= 0 && to < x->chunks && device(x, to) != device(x, c);
}

/* All that can begin now; false: nothing can. */
static bool begin_all(Slots *x, int now)
{
    bool any = false;
    for (int d = 0; d < x->stages; d++) {
        SlotsChoice k = x->free[d] <= now ? choose(x, d, now) : (SlotsChoice){K_F, -1};
        if (k.chunk >= 0)
            begin(x, d, k, now);
        any |= k.chunk >= 0;
    }
    return any;
}

/* No computation takes more than two units, so three in which none begins are the end. */
static void run(Slots *x)
{
    for (int now = 0, idle = 0; idle < 3; now++, idle++)
        while (begin_all(x, now))
            idle = -1;
    for (int c = 0; c < x->chunks; c++)
        if (x->b[c] < x->m || (x->split && x->w[c] < x->m))
            die("slots: chunk %d stops after %d of %d micro-batches", c, x->b[c], x->m);
}

static int *numbers(int n, int value)
{
    int *at = alloc(sizeof *at * (size_t)n);
    for (int i = 0; i < n; i++)
        at[i] = value;
    return at;
}

/* room 0: any */
static Slots open_slots(Plan *p, int period, int room)
{
    int n = plan_chunks(p), m = plan_micro(p), stages = plan_stages(p);
    return (Slots){.p = p, .stages = stages, .m = m, .chunks = n, .period = period, .room = room ? room : n * m + 1,
                   .steady = room > 0, .split = schedule_of(p->schedule)->split,
                   .slot_f = numbers(n, 0), .slot_b = numbers(n, 0), .f = numbers(n, 0), .b = numbers(n, 0), .w = numbers(n, 0),
                   .made_f = numbers(n * m, -1), .made_b = numbers(n * m, -1),
                   .free = numbers(stages, 0), .held = numbers(stages, 0), .most = numbers(n, m),
                   .down = alloc((size_t)n), .up = alloc((size_t)n)};
}

void sched_any_map(Plan *p, bool flush)
{
    Slots x = open_slots(p, plan_chunks(p), 0);
    int behind = x.chunks * (x.m + 1);
    x.single = true;
    x.steady = flush;
    for (int c = 0; c < x.chunks; c++) {
        x.slot_f[c] = flush ? -c : behind - c;
        x.slot_b[c] = flush ? behind - c : -c;
        x.most[c] = flush || x.chunks - c > x.m ? x.m : x.chunks - c;
    }
    run(&x);
}

/* Slots from B of a chunk to B of the one before it. */
static int back(int stages, int chunk)
{
    bool near = chunk < stages;
    int edge = near ? chunk : 2 * stages - 1 - chunk - 1, third = (edge + (stages % 3 == 2 ? 2 : 0)) % 3;
    if (chunk == stages - 1)
        return stages % 3 == 0 ? 3 : 2;
    return third == (near ? 1 : 2) ? 5 : 2;
}

int schedule_1f1b_v(Plan *p)
{
    int stages = plan_stages(p), last = plan_chunks(p) - 1;
    Slots x = open_slots(p, 6, stages + (stages + 4) / 3);
    for (int c = 0; c <= last; c++)
        x.slot_f[c] = c + (c >= stages && stages % 3 == 0 ? 2 : 0);
    x.slot_b[last] = x.slot_f[last] + 1;
    for (int c = last; c-- > 0;)
        x.slot_b[c] = x.slot_b[c + 1] + back(stages, c);
    run(&x);
    return 0;
}

int schedule_v_min(Plan *p)
{
    int stages = plan_stages(p);
    Slots x = open_slots(p, 6, 2 * ((stages + 4) / 3));
    for (int c = 0; c < x.chunks; c++) {
        x.slot_f[c] = c;
        x.slot_b[c] = 4 * stages - 1 - c + (stages % 3 == 0 ? 2 : 0);
    }
    run(&x);
    return 0;
}

int schedule_v_half(Plan *p)
{
    int stages = plan_stages(p);
    Slots x = open_slots(p, 6, 2 * ((stages + 2) / 2));
    for (int c = 0; c < x.chunks; c++) {
        x.slot_f[c] = c < stages ? 2 * c : stages - 1 + c;
        x.slot_b[c] = (c < stages ? 6 * stages - 2 - c : 7 * stages - 3 - 2 * c) + (stages % 2 == 0 ? 3 : 0);
    }
    run(&x);
    return 0;
}

/* When its last device ends. */
static int play_hanayo(Plan *p, bool later, bool wait, bool dry)
{
    Slots x = open_slots(p, 3 * plan_chunks(p) / (2 * plan_stages(p)), 0);
    int end = 0;
    x.later = later;
    x.wait = wait;
    x.dry = dry;
    for (int c = 0; c < x.chunks; c++) {
        x.slot_f[c] = c;
        x.slot_b[c] = 3 * x.chunks - 2 - 2 * c;
    }
    run(&x);
    for (int d = 0; d < x.stages; d++)
        end = x.free[d] > end ? x.free[d] : end;
    return end;
}

int schedule_hanayo(Plan *p)
{
    static const struct { bool later, wait; } way[] = {{false, false}, {true, false}, {true, true}};
    int best = 0, least = INT_MAX;
    for (int i = 0; i < 3; i++) {
        int end = play_hanayo(p, way[i].later, way[i].wait, true);
        if (end < least) {
            least = end;
            best = i;
        }
    }
    play_hanayo(p, way[best].later, way[best].wait, false);
    return 0;
}
