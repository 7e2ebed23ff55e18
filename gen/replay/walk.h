/* SPDX-License-Identifier: Apache-2.0
 *
 * walk.h: the need of a run of forward operators as a chunk, under given fates.
 */
#ifndef WALK_H
#define WALK_H
#include "plan.h"

typedef struct Live Live;       /* of one graph and its ordered lists: built once, then asked for many runs */
typedef struct {
    Bytes need;                 /* of the arena, but for packing */
    Bytes states;               /* of it: parameters, copies, gradients, moments */
    Bytes sums;                 /* beside them: gradients that are here from the first backward to the last alone */
    Bytes rooms;                /* ... and parameters, while something computes */
    Bytes saved;                /* F to B or I, one micro-batch */
    Bytes held;                 /* I to W, one micro-batch; 0 where they are one computation */
    Ns forward, backward;       /* of one micro-batch on the chunk's device; backward without what is made again */
    Ns again;                   /* what is made again */
    Ns stall;                   /* what the host link cannot hide */
    Bytes moved;                /* to the host and back, one micro-batch */
} Load;
Live *live_open(const Plan *p);                     /* after order */
Load live_load(Live *x, int first, int last, int chunk, const int *fate);   /* fate by tensor */
Load live_sums(Live *x, int first, int last, int chunk, const int *fate);   /* saved and again alone, in a third of the time */
Load live_walk(Live *x, int first, int last, int chunk, const int *fate);   /* live_load call by call, for tests */
Ns   live_early(Live *x, int first, int last, int chunk, const int *fate);   /* of again: before the gradient is waited for */
int  live_others(Live *x, int chunk);               /* micro-batches at rest beside the one that computes, at most */
bool live_alike(Live *x, int a, int b);             /* chunks whose lists leave the same beside each computation */
/* The forward tensors that the run makes, each once, by operator. */
const int *live_made(const Live *x, int first, int last, int *n);
/* For each of those, the last operator of the run that reads it in forward; its maker if none does.  Valid until the next
 * call. */
const int *live_until(Live *x, int first, int last);
const Plan *live_plan(const Live *x);
int   live_tensors(const Live *x);
int   live_calls(const Live *x, int first, int last);   /* of forward and backward */
const int *live_reads(const Live *x, int op, int *n);   /* tensors */
int   live_maker(const Live *x, int tensor);        /* its forward operator */
Bytes live_size(const Live *x, int tensor);
int   live_reader(const Live *x, int tensor);       /* of forward tensors: first operator whose backward reads it; -1 */
Bytes live_operands(const Live *x, int op);         /* and results and scratch of one call */
/* Bytes of the states used by a forward operator, but for those at home elsewhere.  once: one copy; sums: for each accumulator;
 * version: for each older version. */
typedef struct { Bytes once, sums, version; } States;
States live_home(const Live *x, int op);
/* Uses of parameters behind the operator where they are at home, by operator.  before: the use before this one, or maker.
 * maker: the first use.  guest: bytes of such a parameter away from home; sum: of the gradient of this use. */
typedef struct { int op, before, maker; Bytes guest, sum; } Visit;
typedef VEC(Visit) Visits;
Visits live_visits(const Live *x);
Bytes live_states(const Live *x, int chunk, States sum);    /* as many of each as the chunk's lists say */
const Ns *live_times(const Live *x, int chunk);     /* by operator, on that chunk's device */
const Ns *live_alone(const Live *x, int chunk);     /* the same: cost_alone */
int   live_copies(const Live *x);                   /* of the last load: to the host, of all micro-batches */
/* The free time of offloaded tensor i of the last load.  It is the time from its last forward reader to its first reader in
 * backward, were they one computation after the other, less both copies.  -1: there are no more. */
int   live_free(const Live *x, int i, Ns *time);
/* The fates that a tensor may have besides being kept. */
enum { MAY_DROP = 1, MAY_SEND = 2 };
/* By tensor that the run makes: does the run's backward read it, or does something that matters need it to be made again?
 * Valid until the next call. */
enum { LIVE_IDLE, LIVE_NEEDED, LIVE_READ };
const char *live_matters(Live *x, int first, int last, const char *may);

/* ---- floor.c: a lower bound of the cost of a run, in constant time ------------------------------------------------- */
typedef struct Floor Floor;
/* base: fate by tensor without a choice; may: the other fates allowed, MAY_DROP and MAY_SEND. */
Floor *floor_open(const Plan *p, const Live *live, const int *base, const char *may);
/* A lower bound of forward and backward of one micro-batch; INT64_MAX: the run is proven not to fit. */
Ns floor_time(const Floor *x, int first, int last, int chunk, Bytes limit);
/* The time around a chunk in which its copies must pass.  warm: forwards before its first backward, as many backwards after its
 * last forward, and never more in flight; 0: the list is another. */
typedef struct {
    Ns window;                  /* from its first forward to the end of its last backward */
    Ns forward, right;          /* one of its forwards; the way of a micro-batch behind it, to the end and back */
    int64_t m;
    int warm;
} Passage;
/* The same where its device waits for others meanwhile. */
Ns floor_within(const Floor *x, int first, int last, int chunk, Bytes limit, const Passage *k);
/* Lower bounds: of the bytes that forward saves for backward under the fates without a choice, and of the need of a run that
 * saves so many.  Neither is less for a run around this one. */
Bytes floor_kept(const Floor *x, int first, int last);
Bytes floor_need(const Floor *x, int first, int last, int chunk, Bytes saved);
#endif
