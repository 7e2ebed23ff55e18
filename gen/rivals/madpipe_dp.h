/* SPDX-License-Identifier: Apache-2.0
 *
 * madpipe_dp.h: MadPipe's dynamic program over a chain, apart from graphs, so that tests can ask it directly.
 */
#ifndef MADPIPE_DP_H
#define MADPIPE_DP_H
#include "plan.h"

typedef struct {                /* a chain of units, for one device of several pieces and others of one */
    int n, devices;             /* devices: the special one counted */
    const Ns *time;             /* forward and backward, a micro-batch */
    const Ns *send;             /* what crosses the cut behind a unit, both ways, over its link */
    const Bytes *once, *copy;   /* of a unit: held once; held once for every micro-batch in flight */
    const Bytes *border;        /* buffers on either side of the cut behind a unit */
    Bytes memory;               /* of each device */
    const bool *must;           /* by unit: a piece has to end behind it; NULL: nowhere */
    int steps;                  /* of the grid for the special device's time and memory and for the delay; 0: no grid */
    int budget;                 /* states met at most for one period */
} Special;

typedef struct { int last; bool special; int flight; } MadpipeSegment; /* flight: micro-batches that 1F1B* stores there */
typedef VEC(MadpipeSegment) Segments;
/* Can the period be kept?  The pieces, front to back. */
bool special_cut(const Special *s, Ns period, Segments *answer);
/* The shortest period that can be kept, to a thousandth.  0: none up to the time of all units and all transfers together. */
Ns special_plan(const Special *s, Segments *answer);
#endif
