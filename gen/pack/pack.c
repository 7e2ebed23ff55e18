/* SPDX-License-Identifier: Apache-2.0
 *
 * pack.c: the least height, or a capacity, within a budget of steps.
 *
 * A search that goes wrong near its root does not come back in time, while another way of choosing often answers at once.  So
 * it starts again and again, each time with other luck, for 1 1 2 1 1 2 4 ... times a small number of steps (M. Luby, A.
 * Sinclair, D. Zuckerman, Optimal Speedup of Las Vegas Algorithms, 1993).  Proofs of impossible parts are kept.  The budget
 * counts steps, not seconds, and luck is a hash: the answer is the same on any machine.  After each time the boxes of the
 * blocks are searched, for as many steps.
 *
 * The least height lies between the live-bytes bound and first fit.  The bound itself is asked first, since it is often
 * reached, then the middle of the open interval, until none is open.
 *
 * Others search at the capacity that is asked, in the order of the file.  There a larger capacity or a shuffled file may lose a
 * packing.  Here blocks are taken in an order of their contents, and the heights that are asked never depend on the capacity:
 * a capacity only says where to stop.  So whatever does for one capacity does for all above, and whatever is found without a
 * capacity is found with one.
 */
#include "pack.h"
#include "budgets.h"

static void get_offsets(Bytes *to, const Block *b, int n)
{
    for (int i = 0; i < n; i++)
        to[i] = b[i].offset;
}

/* ---- an order of the contents -------------------------------------------------------------------------------------- */

static int by_contents(const void *a, const void *b)
{
    const Block *x = *(Block *const *)a, *y = *(Block *const *)b;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    if (x->to != y->to)
        return x->to < y->to ? -1 : 1;
    return x->size != y->size ? (x->size < y->size ? -1 : 1) : x < y ? -1 : x > y;
}

/* ---- heights ----------------------------------------------------------------------------------------------------- */

static PackAnswer search_in(Block *b, int n, Bytes capacity, int64_t most, int *boxes, int64_t *done)
{
    PackSearch *w = pack_search(b, n, capacity);
    PackAnswer answer = PACK_UNKNOWN;
    int64_t end = *done + most;
    for (int k = 0; answer == PACK_UNKNOWN && *done < end && !busy_stopped(); k++) {
        busy_at(", try %d, %lld million steps", k + 1, (long long)(*done / 1000000));
        int64_t steps = LONG_STEPS;
        for (int i = k / PACK_STYLES + 1; i % 2 == 0; i /= 2)
            steps *= 2;
        answer = pack_try(w, k, min_of(steps, end - *done), done);
        if (answer == PACK_UNKNOWN && pack_boxed(b, n, capacity, boxes, min_of(steps, end - *done), done))
            answer = PACK_FITS;
    }
    return answer;
}

/* Is there nothing more to ask?  capacity 0: the least height is wanted. */
static bool settled(const Packing *r, Bytes capacity)
{
    return r->height <= r->bound || (capacity > 0 && (r->height <= capacity || r->bound > capacity));
}

static void search_all(Packing *r, Block *b, int n, Bytes capacity, int64_t steps, Bytes *best)
{
    Bytes unit = 0, open = r->bound, target = r->bound;
    for (int i = 0; i < n; i++)
        unit = number_common(unit, b[i].size);
    unit = max_of(unit, 1);
    int boxes = 0;
    while (open < r->height && !settled(r, capacity) && r->steps < steps && !busy_stopped()) {
        /* target, a multiple of unit: open <= it < height */
        int64_t share = target == r->live ? steps / 4 : steps / 12;
        PackAnswer a = search_in(b, n, target, min_of(share, steps - r->steps), &boxes, &r->steps);
        if (a == PACK_FITS) {
            get_offsets(best, b, n);
            r->height = 0;
            for (int i = 0; i < n; i++)
                r->height = max_of(r->height, b[i].offset + b[i].size);
        } else {
            open = target + unit;
        }
        if (a == PACK_CANNOT)
            r->bound = target + unit;
        target = open + (r->height - open) / 2 / unit * unit;
    }
}

Packing pack_fit(Block *b, int n, Bytes capacity, int64_t steps)
{
    Block **order = alloc(sizeof *order * (size_t)(n + 1)), *c = alloc(sizeof *c * (size_t)(n + 1));
    for (int i = 0; i < n; i++)
        order[i] = &b[i];
    SORT(order, n, by_contents);
    for (int i = 0; i < n; i++)
        c[i] = *order[i];
    Packing r = {.live = pack_live(c, n), .height = pack_greedy(c, n)};
    Bytes *best = alloc(sizeof *best * (size_t)(n + 1));
    get_offsets(best, c, n);
    r.bound = r.live;
    search_all(&r, c, n, capacity, steps, best);
    for (int i = 0; i < n; i++)
        order[i]->offset = best[i];
    r.answer = !settled(&r, capacity) ? PACK_UNKNOWN : capacity > 0 && r.bound > capacity ? PACK_CANNOT : PACK_FITS;
    return r;
}
