/* SPDX-License-Identifier: Apache-2.0
 *
 * unit.h: the coarse chain that layer planners see.  PipeDream, vPipe, MadPipe and PipeDream-2BW never cut inside a layer; a
 * Unit stands for their layer.
 */
#ifndef UNIT_H
#define UNIT_H
#include "plan.h"

typedef struct {
    int n;                      /* units */
    int *last;                  /* by unit: its last forward operator */
    int *of;                    /* by forward operator: its unit */
    Ns *forward, *time;         /* of one micro-batch on device 0: forward alone; with backward */
    Bytes *out;                 /* forward tensors that are read behind it, each once, of one micro-batch */
    Bytes *made;                /* all results of its forward operators, of one micro-batch */
    Bytes *saved;               /* of them what backward reads somewhere */
    Bytes *params;              /* parameters whose first use is here, in the type that kernels read */
    Bytes *states;              /* all states of parameters whose first use is here, and gradients of every use */
    Bytes *grads;               /* of these the gradients, once */
    bool *must;                 /* a stage has to end behind it */
} Units;

/* cut by forward operator: CUT_NEVER, CUT_MAY or CUT_MUST.  Gives at least `least` units if the graph has so many. */
Units units_of(const Plan *p, const char *cut, int least);

/* Of gradients among copies of the model, once a step: the two halves of a tree, level by level (sched/share.c). */
Ns units_exchange(const Plan *p, int stage, Bytes bytes, int copies);

typedef struct { const char *prefix; Ints last; } Repeat;    /* last forward operator of h.0, h.1, ... */
typedef VEC(Repeat) Repeats;
/* The repeated blocks: runs of layers prefix.0, prefix.1, ...; at least two repetitions. */
Repeats repeats_of(const Graph *g);
#endif
