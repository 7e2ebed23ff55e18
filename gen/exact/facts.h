/* SPDX-License-Identifier: Apache-2.0
 *
 * facts.h: facts of a question that cost no price.  The exact search and its bounds use them: sums of base times, links
 * between chunks that must wait for each other, bytes that cross a cut.
 */
#ifndef FACTS_H
#define FACTS_H
#include "planner.h"

typedef struct {                /* tensor `tensor`, made by forward operator `from` or its backward, is read by `to` or its */
    int tensor, from, to;
    bool made_back, read_back;  /* in backward */
    bool weight;                /* only weight gradients read it there */
} ExactEdge;
typedef struct { int to; Bytes bytes; } Hop;
typedef struct { int op, tensor; Ns load; } ExactReader;
typedef VEC(Hop) Hops;

typedef struct {
    const Question *q;
    int n, chunks;
    int64_t m;                  /* micro-batches, with those that the lists leave out: Ask.more */
    int *class;                 /* by chunk: of its device */
    bool step;                  /* the objective is the time of a step; else the longest chunk or transfer: where it is
                                   asked for, and where steps overlap */
    bool split;                 /* weight gradients are computations of their own: nothing must follow them but the update */
    Ns **time, **forward, **back, **weight;     /* [class][i]: of operators 0..i-1: all, forward, backward, W of it */
    Hops *source, *target;      /* by forward operator: those it reads of, those that its gradients go to; all before it */
    Bytes *cross;               /* by operator: bytes that cross a cut after it, both ways */
    Ns **transfer;              /* [chunk][i]: of them, from that chunk to the next; 0 behind the last and on one device */
    VEC(ExactEdge) edge;        /* by tensor; of one tensor those that read it first */
    int *warm, *cool;           /* by chunk: its forwards before its first backward, its backwards after its last forward */
    int *flight;                /* by chunk: a forward follows the backward of so many micro-batches before it */
    Ns *load;                   /* [i]: of data inputs that operators 0..i-1 read first, for every micro-batch */
    VEC(ExactReader) reader;    /* of data inputs: by input, then by operator */
    Ns **update;                /* [class][i]: of the parameters at home in 0..i-1 */
    Ns *close;                  /* [i]: at least what a first chunk 0..i does beside computing: preview_ends.c */
} Facts;

Facts *facts_of(const Question *q);
/* The forward operator that decides the chunk of this operator: its own; for an update, that of its parameter. */
int facts_home(const Graph *g, const Op *o);
Ns  facts_time(const Facts *x, int chunk, int first, int last);         /* base time of a run there: nothing made again */
Ns  facts_forward(const Facts *x, int chunk, int first, int last);
/* Cuts for a coarse search: in each of so many pieces of equal time, the one that crosses least, and those that must be. */
const char *facts_grid(const Facts *x, int pieces);
/* The link of a run to the chunk before it.  It holds if that chunk begins at `near` or before: then the run waits for it,
 * and it waits for the run again.  Their messages take at least `comm`, there and back; `there` is the first one's part. */
typedef struct { int near; Ns comm, there; } Link;
Link facts_link(const Facts *x, int chunk, int first, int last);

/* bound.c.  Proven: no plan has a shorter step, with any fates and any cuts. */
Ns bound_closed(const Facts *x);
Ns *bound_heads(const Facts *x);                    /* by operator: what must precede and follow a run that begins with it */
/* By operator: the time of a micro-batch behind a cut after it, to the end and back.  For runs of at least `near` operators. */
Ns *bound_paths(const Facts *x, int near);
/* The share of one chunk in the bound of a plan. */
typedef struct {
    Ns head;                    /* to what the next one must wait for, there and back: base times */
    Ns path;                    /* to the way of one micro-batch to the last chunk and back */
} Share;
Share bound_share(const Facts *x, int chunk, int first, int last);
/* A bound of the step: the chunk takes `time` a micro-batch, `head` precedes it and `path` follows it. */
Ns bound_chunk(const Facts *x, int chunk, int first, int last, Ns time, Ns head, Ns path);
Ns bound_plan(const Facts *x, const int *last, const Price *const *price);
Ns bound_transfer(const Facts *x, int chunk, int cut);      /* all that crosses the cut, one way after the other */

/* preview_ends.c: actions before, between and after the computations of a step.  chunk is by forward operator, now by
 * device. */
typedef struct Finish Finish;
Finish *finish_open(const Facts *x);
void finish_begin(Finish *f, const int *chunk, Ns *now);
Ns   finish_fold(const Finish *f, int chunk, int fold);  /* after that */
Ns   finish_merge(const Finish *f, int device, const Action *k, Ns now);    /* its end */
Ns   finish(Finish *f, const int *chunk, const int *last, Ns *now);      /* from the last computations to the end of the step */
Ns  *finish_least(const Facts *x);

/* preview.c: the time of a step, predicted from the times and messages of chunks.  price is by chunk. */
typedef struct Preview Preview;
Preview *preview_open(const Facts *x);
Ns preview(Preview *v, const int *last, const Price *const *price);
#endif
