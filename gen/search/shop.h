/* SPDX-License-Identifier: Apache-2.0
 *
 * shop.h: the lists of `optimal` as a job shop: computations of chunks and micro-batches on devices, by time and bytes alone.
 */
#ifndef SHOP_H
#define SHOP_H
#include "plan.h"

enum { SHOP_F, SHOP_I, SHOP_W, SHOP_KINDS };

typedef struct {
    int devices, chunks, m;
    const int *home;            /* by chunk: its device */
    const bool *joint;          /* by chunk: its I has the work of W, and lists have no W of it */
    const Ns *time[SHOP_KINDS]; /* by chunk */
    const Ns *down, *up;        /* by chunk: its message to the next chunk, to the one before */
    const Ns *tail;             /* by device: what follows its last computation */
    const Bytes *held[2];       /* by chunk: from the begin of F to the end of I; from the begin of I to the end of W */
    const Bytes *room;          /* by device */
    const int *back;            /* by chunk: its device in a second pipeline, with m micro-batches of its own; NULL: none */
} Shop;

/* A computation is (kind * chunks + chunk) * m + micro-batch. */
static inline int shop_op(const Shop *x, int kind, int chunk, int mb) { return (kind * x->chunks + chunk) * x->m + mb; }
static inline int shop_mb(const Shop *x, int op) { return op % x->m; }
static inline int shop_chunk(const Shop *x, int op) { return op / x->m % x->chunks; }
static inline int shop_kind(const Shop *x, int op) { return op / x->m / x->chunks; }

Ns shop_step(const Shop *x, const Ints *list);      /* lists by device; INT64_MAX: they wait for each other for ever */
Bytes shop_peak(const Shop *x, const Ints *list, int device);
/* Better lists than these, in the same arrays; steps: computations looked at.  True: some are shorter. */
bool shop_improve(const Shop *x, Ints *list, int64_t *steps);
/* Lists made from nothing: a device takes what is ready.  ahead: so many forwards more than stages follow; wait: W fills only
 * time that is long enough for it.  False: memory ends before the step does. */
bool shop_greedy(const Shop *x, int ahead, bool wait, Ints *list);
/* One micro-batch after the other: what fits if anything does. */
void shop_single(const Shop *x, Ints *list);
/* No lists have a shorter step.  Times and held bytes must be the least that a plan may have. */
Ns shop_bound(const Shop *x);
#endif
