/* SPDX-License-Identifier: Apache-2.0
 *
 * exact.h: the halves of the exact search.  reach.c decides whether a target is possible, by floors and the prices known so
 * far.  exact.c buys prices, compares plans and decides when to stop.
 */
#ifndef EXACT_H
#define EXACT_H
#include "facts.h"

typedef struct { int first, last; } ExactWindow; /* where a chunk may begin; first > last: nowhere */
typedef struct Frontier Frontier;
Frontier *frontier_open(const Facts *x);
/* Windows by chunk, and one more for the end.  False: by base times alone no plan meets the target. */
bool frontier(const Frontier *k, Ns target, ExactWindow *window);
Ns   frontier_bound(const Frontier *k, Ns refuted);     /* the largest target that it refutes */

typedef struct { int64_t key; const Price *price; } ExactKnown;
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
    /* prices: floors, but for runs that were bought */
    ExactKnown *known;
    int nknown, room;           /* room: a power of two */
    int *some;                  /* [chunk * row + first]: bought runs that begin there */
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
#endif
