/* SPDX-License-Identifier: Apache-2.0
 *
 * boxes.c: fewer and larger blocks.
 *
 * Problem: where no byte is to spare, the search misses what takes hundreds of blocks to lie right.  More room does not help
 * it: the right places are as few, and the wrong ones more.
 *
 * Known: jobs may be put into boxes, and the boxes be packed (A. Buchsbaum, H. Karloff, C. Kenyon, N. Reingold, M. Thorup,
 * OPT versus LOAD in Dynamic Storage Allocation, 2004).
 *
 * Method: two blocks of one size, where the second begins as the first ends, make a box; two of one lifetime make one as well.
 * So do boxes.  The former is rare by chance, so it goes first; which of several partners is taken is luck.  Nothing is lost
 * within a box, so the bytes alive at any time stay the same.  A packing of the boxes is one of the blocks.  Where the boxes
 * have none, the blocks may.  Of some draws the one with fewest boxes is searched.  Where half of the blocks are left, as in
 * the arenas of a plan, a search of boxes gains nothing.
 *
 * Cost: for each block or box one look at each that starts or ends with it; the search of the boxes.  Not handled: boxes that
 * waste some bytes.
 */
#include "pack.h"
#include "budgets.h"

typedef struct {
    Block block;
    int a, b;                   /* the boxes it is made of; a block: -1 and which */
    bool above, in;             /* b lies above a, not behind it; it is part of another */
    int next[2];                /* chains of boxes by their start and by their end; -1: the last */
} Box;

typedef struct {
    Box *box;
    int n;
    int *chain[2];
    uint64_t mask;              /* chains, less 1 */
    int luck;
    int64_t looks;
} Boxes;

enum { START, END };

static uint64_t chance(const Boxes *w, int k)
{
    return pack_mix((uint64_t)w->luck << 32 | (uint64_t)k);
}

static int *chain(const Boxes *w, int side, int64_t time)
{
    return &w->chain[side][pack_mix((uint64_t)time) & w->mask];
}

static int add(Boxes *w, Box x)
{
    int *start = chain(w, START, x.block.from), *end = chain(w, END, x.block.to);
    x.next[START] = *start;
    x.next[END] = *end;
    w->box[w->n] = x;
    return *start = *end = w->n++;
}

/* Another box that starts or ends at a time: above k, of its lifetime, or else of its size; -1: none. */
static int meeting(Boxes *w, int k, int side, int64_t time, bool above)
{
    const Block *x = &w->box[k].block;
    w->looks += 10;             /* a chain that is far away */
    for (int *at = chain(w, side, time); *at >= 0;) {
        Box *y = &w->box[*at];
        w->looks++;
        if (y->in) {
            *at = y->next[side];
            continue;
        }
        if (*at != k && (side == START ? y->block.from : y->block.to) == time
            && (above ? y->block.to == x->to : y->block.size == x->size))
            return *at;
        at = &y->next[side];
    }
    return -1;
}

/* Makes a box of k and another one. */
static bool join(Boxes *w, int k, bool above)
{
    const Block *x = &w->box[k].block;
    int a = k, b = meeting(w, k, START, above ? x->from : x->to, above);
    if (b < 0 && !above) {
        a = meeting(w, k, END, x->from, false);
        b = k;
    }
    if (a < 0 || b < 0)
        return false;
    const Block *p = &w->box[a].block, *q = &w->box[b].block;
    w->box[a].in = w->box[b].in = true;
    add(w, (Box){{p->from, q->to, above ? p->size + q->size : p->size, 0}, a, b, above, false, {0}});
    return true;
}

/* Each block, in an order of luck. */
static Boxes blocks_alone(const Block *b, int n, int luck)
{
    Boxes w = {.box = alloc(sizeof *w.box * 2 * (size_t)(n + 1)), .luck = luck, .mask = 1};
    while (w.mask < 2 * (uint64_t)n)
        w.mask = 2 * w.mask + 1;
    for (int side = 0; side < 2; side++) {
        w.chain[side] = alloc(sizeof(int) * (w.mask + 1));
        memset(w.chain[side], -1, sizeof(int) * (w.mask + 1));
    }
    w.looks = 40 * (int64_t)n;  /* all this takes as long */
    int *order = alloc(sizeof *order * (size_t)(n + 1));
    for (int i = 0; i < n; i++) {
        int k = (int)(chance(&w, i) % (uint64_t)(i + 1));
        order[i] = order[k];
        order[k] = i;
    }
    for (int i = 0; i < n; i++)
        add(&w, (Box){.block = b[order[i]], .a = -1, .b = order[i]});
    return w;
}

/* First those of one size, as many as there are; by luck one in eight prefers its lifetime.  Then all. */
static void join_all(Boxes *w)
{
    for (int last = 0; last < 2; last++)
        for (int i = 0; i < w->n; i++)
            for (int k = i; !w->box[k].in; k = w->n - 1) {
                bool above = chance(w, k) % 8 == 0;
                if (!join(w, k, above) && !((above || (last && k == i)) && join(w, k, !above)))
                    break;
            }
}

static void unpack(Boxes *w, Block *b)
{
    for (int i = w->n - 1; i >= 0; i--) {
        const Box *x = &w->box[i];
        if (x->a < 0) {
            b[x->b].offset = x->block.offset;
            continue;
        }
        w->box[x->a].block.offset = x->block.offset;
        w->box[x->b].block.offset = x->block.offset + (x->above ? w->box[x->a].block.size : 0);
    }
}

/* The boxes that are part of no other. */
static int outermost(const Boxes *w, int *box)
{
    int n = 0;
    for (int i = 0; i < w->n; i++)
        if (!w->box[i].in)
            box[n++] = i;
    return n;
}

/* The luck that leaves fewest boxes, of BOXINGS draws; -1: not one block in two is gone, so that a search gains nothing. */
static int fewest(const Block *b, int n, int luck, int64_t *done)
{
    int best = -1, least = n / 2 + 1;
    for (int k = 0; k < BOXINGS && least > 1 && (k == 0 || best >= 0); k++) {
        void *mark = mem_mark();
        Boxes w = blocks_alone(b, n, luck * BOXINGS + k);
        join_all(&w);
        *done += w.looks;
        int left = outermost(&w, alloc(sizeof(int) * (size_t)(w.n + 1)));
        best = left < least ? luck * BOXINGS + k : best;
        least = left < least ? left : least;
        mem_release(mark);
    }
    return best;
}

/* The boxes of one draw, searched. */
static PackAnswer search_boxes(Boxes *w, const int *open, int left, Bytes capacity, int64_t steps, int64_t *done)
{
    Block *of = alloc(sizeof *of * (size_t)(left + 1));
    for (int i = 0; i < left; i++)
        of[i] = w->box[open[i]].block;
    PackAnswer answer = pack_try(pack_search(of, left, capacity), w->luck, steps, done);
    for (int i = 0; i < left; i++)
        w->box[open[i]].block.offset = of[i].offset;
    return answer;
}

bool pack_boxed(Block *b, int n, Bytes capacity, int *luck, int64_t steps, int64_t *done)
{
    bool fits = false;
    for (const int64_t end = *done + steps; !fits && *luck >= 0 && *done < end;) {
        int best = fewest(b, n, *luck, done);
        *luck = best < 0 ? -1 : *luck + 1;
        if (best < 0)
            break;
        void *mark = mem_mark();
        Boxes w = blocks_alone(b, n, best);
        join_all(&w);
        int *open = alloc(sizeof *open * (size_t)(w.n + 1)), left = outermost(&w, open);
        fits = search_boxes(&w, open, left, capacity, steps / 64, done) == PACK_FITS;
        if (fits)
            unpack(&w, b);
        mem_release(mark);
    }
    return fits;
}
