/* SPDX-License-Identifier: Apache-2.0
 *
 * price.h: what a run of forward operators costs as one stage.  All planners buy here, so that they differ in what they
 * search and not in what they believe.
 *
 * A run first..last (operator indices of the forward phase, both included) is priced as chunk `chunk`: on that chunk's
 * device, with as many micro-batches in flight as the ordered lists say, under that device's limit.
 */
#ifndef PRICE_H
#define PRICE_H
#include "plan.h"

typedef struct {
    bool fits;                  /* need <= limit of the device */
    Ns forward, backward;       /* of one micro-batch; backward with what is made again and what the host link cannot hide */
    Ns early;                   /* of backward: made again before the gradient is waited for */
    Bytes need;                 /* of the arena, nearly; where nothing fits, the least that was found */
    Bytes states;               /* of it: parameters, copies, gradients, moments */
    Bytes saved;                /* forward to backward, one micro-batch */
    Bytes dropped, offloaded;   /* of what keeping all would save, one micro-batch */
    Bytes received, sent;       /* forward tensors over its borders, one micro-batch; gradients go the other way */
    Ints tensor, fate;          /* tensors that are not kept, and what happens to each */
} Price;

typedef struct Prices Prices;
/* After order: lists and chunk_device are there, chunk is not.  limit by device. */
Prices *prices_open(const Plan *p, const Bytes *limit);
/* The cheapest fates that plan.recompute and plan.offload allow and that fit; remembered. */
const Price *price_best(Prices *x, int first, int last, int chunk);
/* Under the fates of the caller, by tensor. */
Price price_with(Prices *x, int first, int last, int chunk, const int *fate);
/* The need of that, and its time, without the rest. */
Bytes price_need(Prices *x, int first, int last, int chunk, const int *fate, Ns *time);
/* At least so much a run needs that saves so many bytes for backward, in constant time; no run around it needs less. */
Bytes price_least(const Prices *x, int first, int last, int chunk, Bytes saved);
/* By tensor of forward: the first operator whose backward reads it; -1: none.  A run that has both and keeps it saves it. */
int   price_reader(const Prices *x, int tensor);
/* Proven: with all fates as they are without a choice neither this run fits nor any around it.  Constant time. */
bool  price_never(const Prices *x, int first, int last, int chunk);
/* Never above forward + backward of price_best; INT64_MAX: proven not to fit.  Constant time. */
Ns price_floor(Prices *x, int first, int last, int chunk);
#endif
