/* SPDX-License-Identifier: Apache-2.0
 *
 * pack.h: static packing.  Blocks with fixed lifetimes and sizes get addresses so that no two that live at the same time
 * share a byte; see search.c for the method.
 */
#ifndef PACK_H
#define PACK_H
#include "plan.h"

typedef struct {                /* it owns size bytes at offset while from <= t < to */
    int64_t from, to;
    Bytes size, offset;
} Block;

typedef enum { PACK_FITS, PACK_CANNOT, PACK_UNKNOWN } PackAnswer;
typedef struct {
    PackAnswer answer;          /* capacity 0: FITS when proven optimal, UNKNOWN when only bounded */
    Bytes height;               /* of the offsets that were written */
    Bytes live, bound;          /* most bytes alive at once; proven lower bound, at least that */
    int64_t steps;
} Packing;

/* Offsets in a capacity; 0: in the lowest height it finds. */
Packing pack_fit(Block *b, int n, Bytes capacity, int64_t steps);
Bytes pack_live(const Block *b, int n);             /* greedy.c */
Bytes pack_greedy(Block *b, int n);                 /* greedy.c: first fit, the best of several orders; the height */
const char *pack_fault(const Block *b, int n, Bytes height);    /* verify.c: NULL, or what is wrong with the offsets */

/* search.c: one question, asked again and again with different luck; what is proven stays known */
enum { PACK_STYLES = 3 };       /* of choosing section and block: see easier() and weight() */
typedef struct PackSearch PackSearch;
PackSearch *pack_search(Block *b, int n, Bytes capacity);       /* offsets are written when it fits */
PackAnswer pack_try(PackSearch *w, int luck, int64_t steps, int64_t *done);     /* from the start, another way each time */
uint64_t pack_mix(uint64_t x);                                  /* what luck is made of */

/* boxes.c: the same question of fewer, larger blocks, for so many steps.  False: neither a packing nor a proof.  luck: of
 * the next draw, from 0 on; -1: none leaves few enough. */
bool pack_boxed(Block *b, int n, Bytes capacity, int *luck, int64_t steps, int64_t *done);

int pack_command(int argc, char **argv);            /* file.c: what follows `dpgen pack`; the exit status */
#endif
