/* SPDX-License-Identifier: Apache-2.0
 *
 * fates.h: what the files of fates share: choices, their search, and the prices of runs.
 */
#ifndef FATES_H
#define FATES_H
#include "replay/walk.h"

/* ---- choices.c: the choices of a planner that chooses fates itself ------------------------------------------------- */
typedef struct {
    int *base;                  /* by tensor: its fate where the planner does nothing */
    bool *may;                  /* by tensor: forward makes it, backward reads it, and plan.recompute or plan.offload
                                   leave the choice */
    bool recompute, offload;    /* these fates are to be had */
} Choices;
Choices choices_of(const Plan *p);

/* ---- price.c ------------------------------------------------------------------------------------------------------- */
/* the cost of a run of forward operators as one stage.  All planners buy prices here.  So they differ in their search and not
 * in their beliefs.  A run first..last (operator indices of the forward phase, both included) is priced as chunk `chunk`: on
 * that chunk's device, with as many micro-batches in flight as the ordered lists say, under the chunk's share of that
 * device's limit. */
typedef struct {
    bool fits;                  /* need <= share of the chunk */
    Ns forward, backward;       /* of one micro-batch; backward with what is made again and what the host link cannot hide */
    Ns early;                   /* of backward: made again before the gradient is waited for */
    Bytes need;                 /* of the arena, nearly; where nothing fits, the least that was found */
    Bytes states;               /* of it: parameters, copies, gradients, moments */
    Bytes saved;                /* forward to backward, one micro-batch */
    Bytes dropped, offloaded;   /* of what keeping all would save, one micro-batch */
    Ints tensor, fate;          /* tensors that are not kept, and what happens to each */
} Price;

typedef struct Prices Prices;
/* After the pass order: lists and home exist, chunk does not yet.  share: by chunk, what it may need. */
Prices *prices_open(const Plan *p, const Bytes *share);
/* All that its device has, for each chunk. */
Bytes *price_whole(const Plan *p, const Bytes *limit);
/* No more is to be priced than one plan needs: see Ask.work. */
bool prices_spent(const Prices *x);
void prices_reserve(Prices *x, int part);           /* that part of what is left is not spent */
void prices_pay(Prices *x, int64_t runs);           /* for loads and runs met, by a planner */
/* The cheapest fates that plan.recompute and plan.offload allow and that fit; remembered. */
const Price *price_best(Prices *x, int first, int last, int chunk);
/* The price under the caller's fates, by tensor. */
Price price_with(Prices *x, int first, int last, int chunk, const int *fate);
/* Only the need and the time under those fates. */
Bytes price_need(Prices *x, int first, int last, int chunk, const int *fate, Ns *time);
/* A lower bound of the need of a run that saves so many bytes for backward.  No run around it needs less.  Constant time. */
Bytes price_least(const Prices *x, int first, int last, int chunk, Bytes saved);
/* The first operator with a backward that reads this forward tensor; -1: none.  A run with both that keeps it saves it. */
int   price_reader(const Prices *x, int tensor);
/* Proven: under the fates without a choice neither this run nor any around it fits.  Constant time. */
bool  price_never(const Prices *x, int first, int last, int chunk);
/* A lower bound of forward + backward of price_best; INT64_MAX: proven not to fit.  Constant time. */
Ns price_floor(Prices *x, int first, int last, int chunk);
/* A lower bound of what the device computes for it, if copies to the host have so long. */
Ns price_within(Prices *x, int first, int last, int chunk, const Passage *k);

/* ---- fates.c: the cheapest fates of the tensors of one run, under a limit ------------------------------------------ */
typedef struct Hunt Hunt;       /* room to search in: opened once, used for many runs */
Hunt *fates_open(Live *live, const char *may);      /* by tensor */
/* By tensor: the fates that plan.recompute, plan.offload and {keep: ...} allow.  base: the fates without a choice. */
char *fates_may(const Plan *p, const int *base);

/* fate, by tensor of the run: on entry the fates that may not change, on return the answer.  Other tensors do not matter.
 * A need over the limit: nothing fits, and this is the least that was found. */
Load fates_choose(Hunt *h, int first, int last, int chunk, Bytes limit, int *fate);
#endif
