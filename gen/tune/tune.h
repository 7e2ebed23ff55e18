/* SPDX-License-Identifier: Apache-2.0
 *
 * tune.h: orders of computations for the cuts of a plan.
 */
#ifndef TUNE_H
#define TUNE_H
#include "plan.h"

/* ---- jobshop.c ----------------------------------------------------------------------------------------------------- */
/* the lists of `optimal` as a job shop: computations of chunks and micro-batches on devices, by time and bytes. */
enum { JOBSHOP_F, JOBSHOP_I, JOBSHOP_W, JOBSHOP_KINDS };

typedef struct {
    int devices, chunks, m;
    const int *device;          /* by chunk: its device */
    const bool *joint;          /* by chunk: its I has the work of W, and lists have no W of it */
    const Ns *time[JOBSHOP_KINDS]; /* by chunk */
    const Ns *down, *up;        /* by chunk: its message to the next chunk, to the one before */
    const Ns *tail;             /* by device: what follows its last computation */
    const Bytes *held[2];       /* by chunk: from the begin of F to the end of I; from the begin of I to the end of W */
    const Bytes *room;          /* by device */
    const int *back;            /* by chunk: its device in a second pipeline, with m micro-batches of its own; NULL: none */
} JobShop;

/* A computation is (kind * chunks + chunk) * m + micro-batch. */
static inline int jobshop_op(const JobShop *x, int kind, int chunk, int mb) { return (kind * x->chunks + chunk) * x->m + mb; }
static inline int jobshop_mb(const JobShop *x, int op) { return op % x->m; }
static inline int jobshop_chunk(const JobShop *x, int op) { return op / x->m % x->chunks; }
static inline int jobshop_kind(const JobShop *x, int op) { return op / x->m / x->chunks; }

Ns jobshop_step(const JobShop *x, const Ints *list); /* lists by device; INT64_MAX: they wait for each other for ever */
Bytes jobshop_peak(const JobShop *x, const Ints *list, int device);
/* Better lists than these, in the same arrays; steps: computations looked at.  True: some are shorter. */
bool jobshop_improve(const JobShop *x, Ints *list, int64_t *steps);
/* Lists made from nothing: a device takes what is ready.  ahead: so many forwards more than stages follow; wait: W fills only
 * time that is long enough for it.  False: memory ends before the step does. */
bool jobshop_greedy(const JobShop *x, int ahead, bool wait, Ints *list);
/* One micro-batch after the other: what fits if anything does. */
void jobshop_single(const JobShop *x, Ints *list);
/* No lists have a shorter step.  Times and held bytes must be the least that a plan may have. */
Ns jobshop_bound(const JobShop *x);

/* ---- optimal.c: the lists of `optimal` ----------------------------------------------------------------------------- */
typedef VEC(const Plan *) Plans;
/* Lists with a shorter step than those of p, under its cuts, by stage; NULL: none was found.  from: plans to begin with. */
const Actions *lists_of(const Plan *p, const Bytes *limit, const Plans *from);
/* Proven: with these cuts under these limits no lists and no fates have a shorter step. */
Ns lists_bound(const Plan *p, const Bytes *limit);

/* ---- paces.c: the lead and the lag of each device of zb* ----------------------------------------------------------- */
/* Those with the shortest step under the cuts of a plan with one chunk a device.  False: those of the plan are. */
bool paces_of(const Plan *p, const Bytes *limit, Ints *lead, Ints *lag);

/* ---- star_depths.c: the depths of 1F1B* ---------------------------------------------------------------------------- */
typedef VEC(const Ints *) Depths;
/* At this period, from the loads of stages and the links between them in turn. */
void star_depths(const Ns *load, int stages, Ns period, int *depth);
/* Those worth a plan, from the loads of a finished one.  shallow: also some that hold less than 1F1B, for any loads. */
Depths star_tries(const Plan *p, bool shallow);
#endif
