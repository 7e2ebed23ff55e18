/* SPDX-License-Identifier: Apache-2.0
 *
 * verify.c: is this a packing?  Shares nothing with the search.
 *
 * Blocks are taken by start.  Those still alive are kept by address, and a newcomer is compared with its two neighbours there.
 * That is enough as long as those alive do not overlap each other.  Cost: n log n, and n times the blocks alive at once.
 */
#include "pack.h"

static int by_start(const void *a, const void *b)
{
    const Block *x = *(const Block *const *)a, *y = *(const Block *const *)b;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    return x < y ? -1 : x > y;
}

static bool overlap(const Block *x, const Block *y)
{
    return x->offset < y->offset + y->size && y->offset < x->offset + x->size;
}

const char *pack_fault(const Block *b, int n, Bytes height)
{
    const Block **order = alloc(sizeof *order * (size_t)(n + 1)), **alive = alloc(sizeof *alive * (size_t)(n + 1));
    for (int i = 0; i < n; i++) {
        if (b[i].offset < 0 || b[i].offset > height - b[i].size)
            return strf("block %d lies outside", i);
        order[i] = &b[i];
    }
    SORT(order, n, by_start);
    for (int i = 0, count = 0; i < n; i++) {
        const Block *x = order[i];
        int left = 0, at;
        for (int k = 0; k < count; k++)
            if (alive[k]->to > x->from)
                alive[left++] = alive[k];
        count = left + 1;
        for (at = left; at > 0 && alive[at - 1]->offset > x->offset; at--)
            alive[at] = alive[at - 1];
        alive[at] = x;
        for (int k = at - 1; k <= at; k++)
            if (k >= 0 && k + 1 < count && overlap(alive[k], alive[k + 1]))
                return strf("blocks %d and %d share bytes", (int)(alive[k] - b), (int)(alive[k + 1] - b));
    }
    return NULL;
}
