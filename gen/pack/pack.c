/* SPDX-License-Identifier: Apache-2.0
 *
 * pack.c: a capacity, or the least height, within a budget of steps.
 *
 * A search that goes wrong near its root does not come back in time, while another way of choosing often answers at once.  So
 * it starts again and again, each time with other luck, for 1 1 2 1 1 2 4 ... times a small number of steps (M. Luby, A.
 * Sinclair, D. Zuckerman, Optimal Speedup of Las Vegas Algorithms, 1993).  Proofs of impossible parts are kept.  The budget
 * counts steps, not seconds, and luck is a hash: the answer is the same on any machine.
 *
 * The least height lies between the live-bytes bound and first fit.  The bound itself is asked first, since it is often
 * reached, then the middle of the open interval.
 */
#include "pack.h"
#include "budgets.h"

static PackAnswer search_in(Block *b, int n, Bytes capacity, int64_t most, int64_t *done)
{
    PackSearch *w = pack_search(b, n, capacity);
    PackAnswer answer = PACK_UNKNOWN;
    int64_t end = *done + most;
    for (int luck = 0; answer == PACK_UNKNOWN && *done < end && !busy_stopped(); luck++) {
        busy_at(", try %d, %lld million steps", luck + 1, (long long)(*done / 1000000));
        int64_t steps = FIRST_TRY_STEPS;
        for (int k = luck / EQUAL_TRIES + 1; k % 2 == 0; k /= 2)
            steps *= 2;
        answer = pack_try(w, luck, steps < end - *done ? steps : end - *done, done);
    }
    return answer;
}

static Bytes height_of(const Block *b, int n)
{
    Bytes top = 0;
    for (int i = 0; i < n; i++)
        top = b[i].offset + b[i].size > top ? b[i].offset + b[i].size : top;
    return top;
}

static Bytes unit_of(const Block *b, int n)
{
    Bytes unit = 0;
    for (int i = 0; i < n; i++)
        for (Bytes x = b[i].size; x > 0;) {
            Bytes left = unit % x;
            unit = x;
            x = left;
        }
    return unit > 0 ? unit : 1;
}

static void get_offsets(Bytes *to, const Block *b, int n)
{
    for (int i = 0; i < n; i++)
        to[i] = b[i].offset;
}

static void set_offsets(Block *b, const Bytes *from, int n)
{
    for (int i = 0; i < n; i++)
        b[i].offset = from[i];
}

Packing pack_fit(Block *b, int n, Bytes capacity, int64_t steps)
{
    Packing r = {.live = pack_live(b, n), .height = pack_greedy(b, n)};
    Bytes *first = alloc(sizeof *first * (size_t)(n + 1));
    r.bound = r.live;
    r.answer = r.live > capacity ? PACK_CANNOT : PACK_FITS;
    if (r.live > capacity || r.height <= capacity)
        return r;
    get_offsets(first, b, n);
    r.answer = search_in(b, n, capacity, steps, &r.steps);
    if (r.answer == PACK_FITS)
        r.height = height_of(b, n);
    else
        set_offsets(b, first, n);
    if (r.answer == PACK_CANNOT)
        r.bound = (capacity / unit_of(b, n) + 1) * unit_of(b, n);
    return r;
}

Packing pack_least(Block *b, int n, int64_t steps)
{
    Packing r = {.live = pack_live(b, n), .height = pack_greedy(b, n)};
    Bytes unit = unit_of(b, n), open = r.live, target = r.live, *best = alloc(sizeof *best * (size_t)(n + 1));
    get_offsets(best, b, n);
    r.bound = r.live;
    while (open < r.height && r.steps < steps && !busy_stopped()) {     /* target, a multiple of unit: open <= it < height */
        int64_t share = target == r.live ? steps / 4 : steps / 12, left = steps - r.steps;
        PackAnswer a = search_in(b, n, target, share < left ? share : left, &r.steps);
        if (a == PACK_FITS) {
            get_offsets(best, b, n);
            r.height = height_of(b, n);
        } else {
            open = target + unit;
        }
        if (a == PACK_CANNOT)
            r.bound = target + unit;
        target = open + (r.height - open) / 2 / unit * unit;
    }
    set_offsets(b, best, n);
    r.answer = r.height <= r.bound ? PACK_FITS : PACK_UNKNOWN;
    return r;
}
