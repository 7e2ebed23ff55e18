/* SPDX-License-Identifier: Apache-2.0
 *
 * list.h: lists of actions: recomputation, versions of weights, copies to the host, and what plays them.
 */
#ifndef ACTIONS_LIST_H
#define ACTIONS_LIST_H
#include "plan.h"

/* ---- rebuild.c ----------------------------------------------------------------------------------------------------- */
/* The forward tensors that backward finds, and those that it makes again.  This is the rule of rebuild.c over tables
 * and marks, so that planners may ask it of thousands of runs.  Nothing is allocated after rebuild_open(), and starting anew is
 * free. */
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

/* ---- copies.c: windows of copies to the host and back, in pieces of a list ------------------------------------------ */
/* A computation of the list, or another action: chunk -1.  first: its first piece, or that of what comes next. */
typedef struct { int chunk, mb, first; bool forward; } CopyStep;
typedef struct {
    const Ns *at;               /* by piece: when it begins; [pieces] the end */
    const CopyStep *step;       /* [steps].first: pieces */
    int pieces, steps;
    CopySlack slack;
} CopyList;
/* maker, reader: steps.  Others are pieces, in front of which it is begun outwards, gone, begun inwards, an operand. */
typedef struct { int away, maker, reader, out, sent, in, due; Ns ns; } CopyTime;
typedef struct { int piece, copy; } CopyOrder;      /* a copy, by a piece of its own */
int copies_by_piece(const void *a, const void *b);  /* for qsort */
/* Write `sent`, in the order of `out`, and then `in`, from the last of the order of `due`. */
void copies_out(const CopyList *l, CopyTime *copy, const CopyOrder *order, int n);
void copies_in(const CopyList *l, CopyTime *copy, const CopyOrder *order, int n);

/* ---- rendezvous.c: lists of all devices, played together ----------------------------------------------------------- */
/* The first device that waits for ever; at: the action where it waits.  -1: all lists come to an end. */
int rendezvous_stops(const Plan *p, const Actions *list, int *at);
/* The steps of the longest run that can differ.  Runs of an asynchronous plan have no period, one, or several. */
int rendezvous_steps(const Plan *p, bool eval);
/* The lists of all devices up to the end of a period: stages may meet behind any (rt/overlap.c). */
const Actions *rendezvous_meeting(const Plan *p, int periods);

/* ---- version.c ----------------------------------------------------------------------------------------------------- */
/* Several copies of weights, gradient sums, step values and tensors where steps overlap, and the one in use. */
/* list/version.c, in this order: states with older versions kept, and those of them that are copied before the update; slots of
 * a pool that no life counts, 0: another pool; the slot that an action uses there; steps until a device's slots repeat. */
void version_ties(const Plan *p);                   /* after part: stops where a tied parameter is used on two devices */
bool version_kept(const Plan *p, int state);
bool version_copied(const Plan *p, int state, int chunk);
int  version_slots(const Plan *p, const Pool *x);
int  version_slot(const Plan *p, const Pool *x, const Action *k);
const char *version_rule(const Plan *p);            /* "": synchronous; "2bw"; "pipedream cuts 12,25"; "vertical 4" */
int  version_phases(const Plan *p, int device);
int  version_values(const Plan *p, int device, const Action *k);    /* slot of the step values of its step; 0: there is one */
void version_resolve(const Plan *p, Action *k);     /* slot and slots, into and group: those of the step and version it has */

/* ---- wire.c -------------------------------------------------------------------------------------------------------- */
/* Who has a wire when: the one rule of simulator, previews and copies to the host.
 *
 * A transfer starts when both sides have begun it and the wire is free.  It holds the wire for cost_wire or cost_host, and
 * arrives cost_latency later.  A half duplex wire is one wire for both directions; it goes to the first one ready.
 *
 * Only the rule is shared.  The simulator meets messages one by one.  A preview knows the queue of every pair before it runs,
 * and compares thousands of cuts with it. */
/* The wire from one of n devices to another, in a table of n * n. */
static inline int wire_of(const Cost *c, int n, int from, int to)
{
    return from > to && cost_half(c, from, to) ? to * n + from : from * n + to;
}

/* The start of a transfer that is ready then and takes so long.  free: the time when the wire is free, before and after. */
static inline Ns wire_take(Ns *free, Ns ready, Ns takes)
{
    Ns start = max_of(ready, *free);
    *free = start + takes;
    return start;
}
#endif
