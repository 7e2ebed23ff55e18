/* SPDX-License-Identifier: Apache-2.0
 *
 * greedy.c: what the search starts from: the live-bytes bound, and first fit.
 *
 * First fit puts one block after the other at the lowest address that is free for all its life.  Everything is in the order:
 * by size (Y. Pisarchyk and J. Lee, Efficient Memory Management for Deep Neural Net Inference, 2020, section 5), equal ones
 * by length of life, or as they begin; by length of life; by the two multiplied.  The lowest height wins, the first of equals.
 *
 * Cost: n log n; first fit n^2.
 */
#include "pack.h"

typedef struct { int64_t at; Bytes change; } Step;

ORDER(by_at, Step, order_of(x->at, y->at), order_of(x->change, y->change))

Bytes pack_live(const Block *b, int n)
{
    Step *step = alloc(sizeof *step * 2 * (size_t)(n + 1));
    for (int i = 0; i < n; i++) {
        step[2 * i] = (Step){b[i].from, b[i].size};
        step[2 * i + 1] = (Step){b[i].to, -b[i].size};
    }
    SORT(step, 2 * n, by_at);
    Bytes now = 0, most = 0;
    for (int i = 0; i < 2 * n; i++) {
        now += step[i].change;
        most = now > most ? now : most;
    }
    return most;
}

static int compare(int64_t a, int64_t b)
{
    return a > b ? -1 : a < b;
}

static int by_size(const void *a, const void *b)
{
    const Block *x = *(Block *const *)a, *y = *(Block *const *)b;
    int order = compare(x->size, y->size);
    order = order ? order : compare(x->to - x->from, y->to - y->from);
    return order ? order : compare((int64_t)(y - x), 0);
}

/* Blocks of one size, taken as they begin, need no more than is alive at once. */
static int by_start(const void *a, const void *b)
{
    const Block *x = *(Block *const *)a, *y = *(Block *const *)b;
    int order = compare(x->size, y->size);
    order = order ? order : compare(y->from, x->from);
    return order ? order : by_size(a, b);
}

static int by_length(const void *a, const void *b)
{
    const Block *x = *(Block *const *)a, *y = *(Block *const *)b;
    int order = compare(x->to - x->from, y->to - y->from);
    return order ? order : by_size(a, b);
}

static Bytes area(const Block *b)
{
    return b->size > INT64_MAX / (b->to - b->from) ? INT64_MAX : b->size * (b->to - b->from);
}

static int by_area(const void *a, const void *b)
{
    int order = compare(area(*(Block *const *)a), area(*(Block *const *)b));
    return order ? order : by_size(a, b);
}

/* `placed` is in ascending address. */
static Bytes first_fit(Block **order, int n, Block **placed)
{
    Bytes height = 0;
    for (int i = 0; i < n; i++) {
        Block *x = order[i];
        Bytes at = 0;
        int k = 0;
        for (; k < i; k++) {
            const Block *p = placed[k];
            if (p->from >= x->to || x->from >= p->to)
                continue;
            if (p->offset >= at + x->size)
                break;
            at = p->offset + p->size > at ? p->offset + p->size : at;
        }
        x->offset = at;
        for (k = i; k > 0 && placed[k - 1]->offset > at; k--)
            placed[k] = placed[k - 1];
        placed[k] = x;
        height = at + x->size > height ? at + x->size : height;
    }
    return height;
}

Bytes pack_greedy(Block *b, int n)
{
    static int (*const orders[])(const void *, const void *) = {by_size, by_start, by_length, by_area};
    Block **order = alloc(sizeof *order * (size_t)(n + 1)), **placed = alloc(sizeof *placed * (size_t)(n + 1));
    Bytes *offset = alloc(sizeof *offset * (size_t)(n + 1)), best = INT64_MAX;
    const Bytes live = pack_live(b, n);
    for (size_t k = 0; k < sizeof orders / sizeof *orders && best > live; k++) {
        for (int i = 0; i < n; i++)
            order[i] = &b[i];
        SORT(order, n, orders[k]);
        Bytes height = first_fit(order, n, placed);
        for (int i = 0; i < n && height < best; i++)
            offset[i] = b[i].offset;
        best = height < best ? height : best;
    }
    for (int i = 0; i < n; i++)
        b[i].offset = offset[i];
    return best;
}
