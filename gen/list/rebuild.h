/* SPDX-License-Identifier: Apache-2.0
 *
 * rebuild.h: the forward tensors that backward finds, and those that it makes again.  This is the rule of rebuild.c over tables
 * and marks, so that planners may ask it of thousands of runs.  Nothing is allocated after rebuild_open(), and starting anew is
 * free.
 */
#ifndef REBUILD_H
#define REBUILD_H
#include "plan.h"

/* Tensors that calls read and write, each once for a call, in the order of its operands. */
typedef struct { int from, to; } ListRange;
typedef struct { ListRange read, write; } Touched;
typedef struct {
    Touched *op;                /* by operator of forward and backward: ranges of `tensor` */
    Ints tensor;
    int *maker;                 /* by tensor: the forward operator that it belongs to; -1: an input */
} Operands;
Operands operands_of(const Graph *g);

typedef struct {
    const Touched *op;          /* Operands */
    const int *tensor, *maker;
    int first, last;            /* a chunk of forward operators */
    const int *fate;            /* by tensor */
    int round, *mark;           /* by tensor: round, it is there; round + 1, it is made again */
    int *again;                 /* by forward operator: round, it is made again */
    int *list, n;               /* tensors that are there: saved, or back from the host; those that backward reads first */
    int fetched;                /* how many of them are back from the host */
    int *line, *call, lines;    /* operators made again, in order; the call of backward that each precedes */
    int *stack, *head;
} Rebuild;
Rebuild rebuild_open(const Graph *g, const Operands *o);
/* Backward reads n forward tensors, by ascending call.  Everything rebuilt for the first call that needs anything rebuilt
 * stands in front of all backward: its call is 0. */
void rebuild(Rebuild *r, int first, int last, const int *fate, const int *read, const int *call, int n);
/* The same in steps: begin with a chunk that has nothing rebuilt yet, then rebuild an operator with all its inputs. */
void rebuild_begin(Rebuild *r, int first, int last, const int *fate);
void rebuild_op(Rebuild *r, int op, int call);

/* Does the chunk make the tensor? */
static inline bool rebuild_own(const Rebuild *r, int t)
{
    return r->maker[t] >= r->first && r->maker[t] <= r->last;
}

/* Does it come back from the host? */
static inline bool rebuild_fetched(const Rebuild *r, int t)
{
    return r->mark[t] == r->round && r->fate[t] == FATE_OFFLOAD && rebuild_own(r, t);
}

static inline bool rebuild_saved(const Rebuild *r, int t)
{
    return r->mark[t] == r->round && !rebuild_fetched(r, t);
}

/* Is it made again?  Readers in backward then take that one. */
static inline bool rebuild_remade(const Rebuild *r, int t)
{
    return r->mark[t] == r->round + 1;
}
#endif
