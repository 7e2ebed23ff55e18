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
#include "../dpgen.h"

typedef struct {
    bool fits;                  /* need <= limit of the device */
    Ns forward, backward;       /* of one micro-batch; backward with what is made again and what the host link cannot hide */
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
/* Never above forward + backward of price_best; INT64_MAX: proven not to fit.  Constant time. */
Ns price_floor(Prices *x, int first, int last, int chunk);
#endif
