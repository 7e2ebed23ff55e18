/* SPDX-License-Identifier: Apache-2.0
 *
 * span.h: what the planners share.  A Span is a run of forward operators first..last with its price; it grows to the
 * right by one operator at a time, so that a planner sees every run that begins at `first` for the cost of one.
 */
#ifndef SPAN_H
#define SPAN_H
#include "../dpgen.h"

typedef struct Reads Reads;     /* of each forward operator and its backward ones: built once for a graph */
const Reads *reads_of(const Plan *p, const int *fate);

typedef struct {
    const Reads *reads;
    int first, last;            /* last < first: empty */
    Ns time;                    /* forward, backward and what backward makes again, of one micro-batch */
    Bytes states;               /* parameters, copies, gradients, moments */
    Bytes saved;                /* forward to backward, of one micro-batch */
    Bytes most;                 /* the largest working set of one call */
    Bytes received;             /* forward tensors that come from an earlier chunk, of one micro-batch */
    /* marks: equal to `round` if met in this span */
    int round;
    int *held, *come, *again, *owned;
    Ints todo;
} Span;
void span_open(Span *s, const Reads *reads);    /* once */
void span_start(Span *s, int first);            /* empty, begins at first */
void span_grow(Span *s);                        /* takes the next operator in */
Bytes span_bytes(const Span *s, int flight);    /* optimistic, with so many micro-batches in flight */
Ns reads_time(const Reads *r, int op);          /* forward and backward of one forward operator */

/* keep.c: every tensor's fate by plan.recompute, before any chunk is known; cheap: drop all that may be dropped. */
int *keep_fates(const Plan *p, bool cheap);
/* live.c: what a chunk will need but for packing, under these fates. */
Bytes live_bytes(const Plan *plan, int *fate, int chunk, Bytes states);
#endif
