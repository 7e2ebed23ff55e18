/* SPDX-License-Identifier: Apache-2.0
 *
 * twobw.h: the estimates of PipeDream-2BW's planner, apart from graphs, so that tests can do them by hand.
 */
#ifndef TWOBW_H
#define TWOBW_H
#include "../dpgen.h"

typedef struct {                /* one stage, one micro-batch */
    Ns forward, backward, wire; /* wire: what it sends and receives */
    Bytes weights;              /* in the type that kernels read */
    Bytes saved, input;         /* forward to backward; of them what it receives */
} Equal;
/* Two versions of weights, and of `depth` micro-batches all that is saved, or with recomputation the inputs and once the
 * rest. */
Bytes twobw_bytes(const Equal *s, int depth, bool recompute);
/* Of the slowest stage; exchange: of gradients among replicas, once in m micro-batches. */
Ns twobw_time(const Equal *s, int stages, bool recompute, Ns exchange, int64_t m);
/* Blocks on stage s of d: equal numbers, the remainder on the last stages. */
int twobw_blocks(int blocks, int depth, int s);
#endif
