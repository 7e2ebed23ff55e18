/* SPDX-License-Identifier: Apache-2.0
 *
 * twobw.h: the estimates of PipeDream-2BW's planner, apart from graphs, so that tests can do them by hand.
 */
#ifndef TWOBW_H
#define TWOBW_H
#include "planner.h"

typedef struct {                /* one stage, one micro-batch */
    Ns forward, backward, wire; /* wire: what it sends and receives */
    Ns exchange;                /* of its gradients among replicas, once a step */
    Bytes weights;              /* in the type that kernels read */
    Bytes saved, input;         /* forward to backward; of them what it receives */
} Equal;
/* Two versions of weights, and the saved tensors of `depth` micro-batches.  With recomputation: their inputs, and the rest
 * once. */
Bytes twobw_bytes(const Equal *s, int depth, bool recompute);
/* The time of a step of m micro-batches: m times the slowest stage, or the longest exchange. */
Ns twobw_time(const Equal *s, int stages, bool recompute, int64_t m);
/* Blocks on stage s of d: equal numbers, the remainder on the last stages. */
int twobw_blocks(int blocks, int depth, int s);
/* Applies the formulas to one depth, width and micro-batch.  The question needs no prices.  False: too many bytes, fewer
 * micro-batches than stages, or blocks that cannot be cut so. */
bool twobw_judge(const Question *q, bool recompute, Ns *step);

/* The grid: all layouts that plan.stages, plan.replicas, train.batch.micro and plan.recompute leave open. */
typedef struct {
    const Model *m;             /* with all of it decided */
    int depth, width;
    int64_t batch;              /* samples in a micro-batch */
    bool recompute;
    Ns step;                    /* by the formulas */
} Guess;
typedef VEC(Guess) Guesses;
void twobw_sort(Guesses *all);      /* shortest step first, then fewer devices, fewer stages, fewer micro-batches */
const char *twobw_note(const Guesses *all, int taken);
#endif
