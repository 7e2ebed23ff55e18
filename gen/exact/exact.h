/* SPDX-License-Identifier: Apache-2.0
 *
 * exact.h: what the exact planner, its bounds and its previews share, and other planners ask.
 */
#ifndef EXACT_H
#define EXACT_H
#include "planner.h"
#include "budgets.h"

/* ---- facts.c ------------------------------------------------------------------------------------------------------- */
/* facts of a question that cost no price.  The exact search and its bounds use them: sums of base times, links between chunks
 * that must wait for each other, bytes that cross a cut. */
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
    int ahead;                  /* order_slack(), which reads all lists */
    bool split;                 /* weight gradients are computations of their own: nothing must follow them but the update */
    Ns **time, **forward, **back, **weight;     /* [class][i]: of operators 0..i-1: all, forward, backward, W of it */
    Ns **apart;                 /* [class][i]: what operator i takes more at the begin of a run than behind the one before it */
    Hops *source, *target;      /* by forward operator: those it reads of, those that its gradients go to; all before it */
    Bytes *cross;               /* by operator: bytes that cross a cut after it, both ways */
    Ns **transfer;              /* [chunk][i]: of them, from that chunk to the next; 0 behind the last and on one device */
    VEC(ExactEdge) edge;        /* by tensor; of one tensor those that read it first */
    int *warm, *cool;           /* by chunk: its forwards before its first backward, its backwards after its last forward */
    int *flight;                /* by chunk: a forward follows the backward of so many micro-batches before it */
    Ns *load;                   /* [i]: of data inputs that operators 0..i-1 read first, for every micro-batch */
    VEC(ExactReader) reader;    /* of data inputs: by input, then by operator */
    Ns **update;                /* [class][i]: of the parameters at home in 0..i-1 */
    struct Finish *finish;      /* preview_ends.c */
    Ns *close;                  /* [i]: at least what a first chunk 0..i does beside computing */
} Facts;

Facts *facts_of(const Question *q);
Facts *facts_again(const Facts *x, const Question *q);  /* of other lists for the same chunks and devices, to preview them */
/* The forward operator that decides the chunk of this operator: its own; for an update, that of its parameter. */
int facts_home(const Graph *g, const Op *o);
/* Base times of a run there: nothing made again. */
static inline Ns facts_time(const Facts *x, int chunk, int first, int last)
{
    const Ns *t = x->time[x->class[chunk]];
    return t[last + 1] - t[first] + x->apart[x->class[chunk]][first];
}
static inline Ns facts_forward(const Facts *x, int chunk, int first, int last)
{
    const Ns *t = x->forward[x->class[chunk]];
    return t[last + 1] - t[first] + x->apart[x->class[chunk]][first];
}
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

/* preview_ends.c: actions before, between and after the computations of a step.  chunk is by forward operator, now by
 * device. */
typedef struct Finish Finish;
Finish *finish_open(const Facts *x);
Finish *finish_again(const Finish *f, const Facts *x);      /* of other lists */
void finish_begin(Finish *f, const int *chunk, Ns *now);
Ns   finish_fold(const Finish *f, int chunk, int first, int last, int fold);     /* of a chunk with these operators */
Ns   finish_merge(const Finish *f, int device, const Action *k, Ns now);    /* its end; after finish_begin */
Ns   finish(Finish *f, const int *chunk, const int *last, Ns *now);      /* from the last computations to the end of the step */
Ns  *finish_least(const Facts *x);

/* preview.c: the time of a step, predicted from the times and messages of chunks.  price is by chunk. */
typedef struct Preview Preview;
Preview *preview_open(const Facts *x);
Ns preview(Preview *v, const int *last, const Price *const *price, Ns most);    /* no less than `most`: any such time */

/* ---- exact.c ------------------------------------------------------------------------------------------------------- */
/* the halves of the exact search.  reach.c decides whether a target is possible, by floors and the prices known so far.
 * exact.c buys prices, compares plans and decides when to stop. */
typedef struct { int first, last; } ExactWindow; /* where a chunk may begin; first > last: nowhere */
typedef struct Frontier Frontier;
Frontier *frontier_open(const Facts *x);
/* Windows by chunk, and one more for the end.  False: by base times alone no plan meets the target. */
bool frontier(const Frontier *k, Ns target, ExactWindow *window);
Ns   frontier_bound(const Frontier *k, Ns refuted);     /* the largest target that it refutes */

/* time: of the price, or price_floor(); -1: nobody has asked.  price: NULL: not bought */
typedef struct { Ns time; const Price *price; } ExactRun;
typedef struct { int from; VEC(ExactRun) at; } ExactRuns;       /* those that end at `from` and behind it */
typedef struct {
    const Facts *x;
    const Question *q;
    int width;                  /* n + 1 */
    const char *cut;            /* the question's, or fewer of them */
    const Ns *least;            /* by operator: what precedes and follows a run that begins with it, at least */
    Frontier *frontier[2];      /* of the objectives: longest chunk, step */
    ExactWindow *window;        /* by chunk, under the target */
    int *must;                  /* by operator: the first cut at or after it that must be */
    bool apart;                 /* copies to the host pass while the device waits: only floors of that count, and no price */
    int share;                  /* chunks a device: a chunk may take so many times less */
    ExactRuns *known;           /* [chunk * row + first]: of runs that begin there.  Floors stand for prices not bought */
    /* under the target: by [chunk * row + first] */
    Ns target;
    Ns *head;                   /* the most that may precede a chunk that begins there; -1: no plan from here */
    Ns *path;                   /* the shortest way of a micro-batch from there to the end and back */
    Link *link;                 /* of every run that may begin there, with what is before it */
    Ns *cost;                   /* the least that is made again and sent from there on */
    int64_t runs, most;         /* met so far, and when to give up */
} Reach;

Reach *reach_open(const Facts *x);
const Price *reach_buy(Reach *r, int chunk, int first, int last);       /* price_best, remembered */
bool reach_bought(const Reach *r, int chunk, int first, int last);
Ns   reach_time(const Reach *r, int chunk, int first, int last);        /* INT64_MAX: does not fit */
/* Does some plan have a bound of at most the target, by the prices known so far?  Fills the tables.  When more than `most`
 * runs are met, the answer is false and proves nothing: then runs > most. */
bool reach(Reach *r, Ns target);
/* The most time that may precede this run of the chunk.  -1: the run is impossible.  After reach(). */
Ns   reach_room(const Reach *r, int chunk, int first, int last);
Ns   reach_head(const Reach *r, int chunk, int first, int last, Ns head);       /* what then precedes the next chunk */
/* The possible plan that makes again and sends least.  Of equal ones the smallest first cut, then the second ... */
void reach_trace(const Reach *r, int *last);

/* ---- what the parts of the exact search share: the best plan so far, what is proven, and what is spent ------------- */
#define NEVER INT64_MAX

typedef struct { int *last; const Price **price; Ns value; int *fate; } ExactBest;
typedef struct { Ns room; int last; } Branch;
typedef VEC(Branch) Branches;

typedef struct {
    const Question *q;
    Facts *x;
    Reach *r;
    Preview *view;
    ExactBest best;             /* value NEVER: none yet */
    Ns refuted;                 /* no plan meets this target */
    Ns closed;                  /* the same by base times alone */
    Ns least;                   /* of the cuts compared by branch and bound: no fates take less, if all that is dropped hides */
    bool proven;                /* by branch and bound: none is better than `best` */
    int64_t actions, priced, buys;      /* buys: what `priced` may reach */
    int *last;                  /* of the plan at hand */
    const Price **price;
    Price *guess;
    Branches *list;             /* by chunk: of branch and bound */
    bool many;                  /* some device has several chunks */
    const int *all;             /* by tensor: fates with all dropped that may be; NULL: there is no choice, or no step */
    Cuts *met;                  /* all plans that are better than `best`, which stays; NULL: not asked for */
    bool by_bound;              /* compare plans by bound_plan: what the tests can enumerate */
} ExactSearch;

/* Price a cut and compare it with the best; true if it is better. */
bool exact_judge(ExactSearch *s, const int *last);
/* The same with fates that are given: those of another planner may hide where the cheapest do not. */
bool exact_judge_with(ExactSearch *s, const int *last, int *fate);
bool exact_spent(const ExactSearch *s);         /* the prices of one part, or of the whole search */
void exact_improve(ExactSearch *s, int64_t actions); /* one cut at a time, or the runs between two; `actions`: its budget */
void exact_improve_more(ExactSearch *s);        /* two and three cuts in a row, if nothing is proven */
#endif
