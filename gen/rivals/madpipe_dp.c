/* SPDX-License-Identifier: Apache-2.0
 *
 * madpipe_dp.c: a chain on devices, one of them special: it may hold several pieces that do not touch.
 *
 * Problem: the first stages of a pipeline store most micro-batches, its last ones fewest, so memory fills unevenly.  A device
 * that takes an early and a late piece evens it out.
 *
 * Method: for a period T the schedule 1F1B* is known.  Walk from the last stage to the first, transfers counted as stages.
 * Open a new group whenever the running group's time would pass T.  A stage in group g stores g micro-batches, and no schedule
 * of that period stores fewer.  So pieces are chosen from the end, and the state is
 *
 *   units left, normal devices left, load and memory of the special device, group, time in the group
 *
 * MadPipe's program returns the best period for a guess of it.  This one asks whether the guess can be kept, and bisects,
 * because the groups are those of 1F1B* for the guess only.  Load, memory and time in the group are rounded up to a grid.  So
 * every answer holds, and an answer between two steps may be missed.  Segments of the special device that touch would be one
 * piece, so they never touch.
 *
 * Source: Beaumont, Eyraud-Dubois, Shilova, MadPipe: Memory Aware Dynamic Programming Algorithm for Pipelined Model
 * Parallelism, RR hal-03025305, ScaDL 2022, as far as its abstract and notes on it go.
 *
 * Cost: states met times the pieces that end there.  A period with more than `budget` states counts as not kept.
 *
 * Not handled: devices that differ; more than one special device.  The special device's own pieces must also find a place in
 * time among each other.  The schedule settles that; its period may be longer, and both are printed.
 */
#include "rivals.h"

typedef struct { int units, normal; bool special; int group; Ns acc, load; Bytes held; } MadpipeWalk;
typedef struct { signed char known; bool special; int first; } MadpipeMet; /* known: 1 it can be kept, 0 not, -1 open */

typedef struct {
    const Special *s;
    Ns period;
    int64_t *time, *once, *copy;        /* prefix sums */
    int *musts;
    Ns step_time;
    Bytes step_bytes;
    Memo pairs, memo;
    VEC(MadpipeMet) met;
    bool spent;
} MadpipeSearch;

static int64_t *sums(const int64_t *of, int n)
{
    int64_t *sum = alloc(sizeof *sum * (size_t)(n + 1));
    for (int i = 0; i < n; i++)
        sum[i + 1] = sum[i] + of[i];
    return sum;
}

/* Takes the walk of 1F1B* over a stage or a transfer. */
static void walk(const MadpipeSearch *x, MadpipeWalk *s, Ns time)
{
    if (s->acc + time > x->period) {
        s->group++;
        s->acc = 0;
    }
    s->acc += time;
}

static int64_t up(int64_t value, int64_t step, int64_t most)
{
    value = (value + step - 1) / step * step;
    return value < most ? value : most;
}

static Bytes piece_bytes(const MadpipeSearch *x, int first, int units, int group)
{
    const Special *s = x->s;
    Bytes bytes = x->once[units] - x->once[first] + (x->copy[units] - x->copy[first]) * group;
    return bytes + (first ? s->border[first - 1] : 0) + (units < s->n ? s->border[units - 1] : 0);
}

/* Makes a piece of the units from `first` to the last one left; false: that is not allowed. */
static bool take(const MadpipeSearch *x, MadpipeWalk *s, int first, bool special, MadpipeSegment *piece)
{
    Ns time = x->time[s->units] - x->time[first];
    if (s->normal == 0 && !special)
        return false;
    walk(x, s, time);
    Bytes bytes = piece_bytes(x, first, s->units, s->group);
    *piece = (MadpipeSegment){s->units - 1, special, s->group};
    s->load += special ? time : 0;
    s->held += special ? bytes : 0;
    if (s->load > x->period || (special ? s->held : bytes) > x->s->memory)
        return false;
    s->normal -= !special;
    s->special = special;
    s->units = first;
    if (first)
        walk(x, s, x->s->send[first - 1]);
    s->acc = up(s->acc, x->step_time, x->period);
    s->load = up(s->load, x->step_time, x->period);
    s->held = up(s->held, x->step_bytes, x->s->memory);
    return true;
}

/* The index of a state: seven numbers in two triples. */
static int index_of(MadpipeSearch *x, const MadpipeWalk *s)
{
    int steps[3] = {(int)(s->acc / x->step_time), (int)(s->load / x->step_time), (int)(s->held / x->step_bytes)};
    int pair = memo_index(&x->pairs, steps[0], steps[1], steps[2]);
    int i = memo_index(&x->memo, s->units * 2 + s->special, s->normal + s->group * 1024, pair);
    if (i == x->met.n)
        PUSH(&x->met)->known = -1;
    return i;
}

static bool keeps(MadpipeSearch *x, const MadpipeWalk *at);

static bool keeps_with(MadpipeSearch *x, const MadpipeWalk *at, int first, bool special)
{
    MadpipeWalk next = *at;
    MadpipeSegment piece;
    return take(x, &next, first, special, &piece) && keeps(x, &next);
}

/* Can the period be kept from here?  Longest pieces are tried first: they need the fewest devices. */
static bool keeps(MadpipeSearch *x, const MadpipeWalk *at)
{
    if (at->units == 0)
        return true;
    int i = index_of(x, at);
    if (x->met.at[i].known >= 0)
        return x->met.at[i].known;
    x->spent |= x->met.n > x->s->budget;
    MadpipeMet met = {.known = 0};
    int low = at->units - 1;
    while (low > 0 && x->time[at->units] - x->time[low - 1] <= x->period && x->musts[at->units - 1] == x->musts[low - 1])
        low--;
    for (int first = low; first < at->units && !met.known && !x->spent; first++) {
        if (x->time[at->units] - x->time[first] > x->period || (first && x->s->send[first - 1] > x->period))
            continue;
        met.first = first;
        met.special = false;
        met.known = keeps_with(x, at, first, false);
        if (met.known || at->special)
            continue;
        met.special = true;
        met.known = keeps_with(x, at, first, true);
    }
    x->met.at[i] = met;
    return met.known;
}

static void trace(MadpipeSearch *x, MadpipeWalk s, Segments *answer)
{
    Segments back = {0};
    while (s.units > 0) {
        MadpipeMet met = x->met.at[index_of(x, &s)];
        if (!take(x, &s, met.first, met.special, PUSH(&back)))
            die("special: a piece that was taken cannot be");
    }
    answer->n = 0;
    for (int i = back.n - 1; i >= 0; i--)
        *PUSH(answer) = back.at[i];
}

static MadpipeSearch begin(const Special *s, Ns period)
{
    MadpipeSearch x = {.s = s, .period = period, .step_time = 1, .step_bytes = 1};
    x.time = sums(s->time, s->n);
    x.once = sums(s->once, s->n);
    x.copy = sums(s->copy, s->n);
    x.musts = alloc(sizeof *x.musts * (size_t)(s->n + 1));
    for (int i = 0; i < s->n; i++)
        x.musts[i + 1] = x.musts[i] + (s->must && s->must[i]);
    if (s->steps > 0) {
        x.step_time = period / s->steps + 1;
        x.step_bytes = s->memory / s->steps + 1;
    }
    return x;
}

bool special_cut(const Special *s, Ns period, Segments *answer)
{
    MadpipeSearch x = begin(s, period);
    MadpipeWalk start = {.units = s->n, .normal = s->devices - 1, .group = 1};
    if (!keeps(&x, &start))
        return false;
    trace(&x, start, answer);
    return true;
}

Ns special_plan(const Special *s, Segments *answer)
{
    Ns low = 0, high = 0;       /* low is not kept; high is, once it has been tried */
    for (int i = 0; i < s->n; i++) {
        low = s->time[i] > low ? s->time[i] : low;
        high += s->time[i] + (i + 1 < s->n ? s->send[i] : 0);
    }
    low--;
    if (!special_cut(s, high, answer))
        return 0;
    while (high - low > 1 + high / 1024) {
        Ns middle = low + (high - low) / 2;
        if (special_cut(s, middle, answer))
            high = middle;
        else
            low = middle;
    }
    special_cut(s, high, answer);
    return high;
}
