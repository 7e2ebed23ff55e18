/* SPDX-License-Identifier: Apache-2.0
 *
 * exact.h: the two halves of the exact search.  reach.c answers what is possible under a target, from floors and the
 * prices known so far; exact.c buys prices, compares plans and knows when to stop.
 */
#ifndef EXACT_H
#define EXACT_H
#include "facts.h"

typedef struct { int first, last; } Window;     /* where a chunk may begin; first > last: nowhere */
typedef struct Frontier Frontier;
Frontier *frontier_open(const Facts *x);
/* By chunk, and one more for the end: false if no plan meets the target, by base times alone. */
bool frontier(const Frontier *k, Ns target, Window *window);
Ns   frontier_bound(const Frontier *k, Ns refuted);     /* the largest target that it refutes */

typedef struct { int64_t key; const Price *price; } Known;
typedef struct {
    const Facts *x;
    const Question *q;
    int row;                    /* n + 1 */
    const char *cut;            /* the question's, or fewer of them */
    const Ns *least;            /* by operator: what precedes and follows a run that begins with it, at least */
    Frontier *frontier[2];      /* of the objectives: longest chunk, step */
    Window *window;             /* by chunk, under the target */
    int *must;                  /* by operator: the first cut at or after it that must be */
    int share;                  /* chunks a device: a chunk may take so many times less */
    /* prices: floors, but for runs that were bought */
    Known *known;
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
/* Is there a plan whose bound, by what is known of its prices, is at most the target?  Fills the tables.  When more than
 * `most` runs are met, false, and nothing is proven: then runs > most. */
bool reach(Reach *r, Ns target);
/* What may precede this run, if chunk begins with it; -1: nothing, it is impossible.  After reach(). */
Ns   reach_room(const Reach *r, int chunk, int first, int last);
Ns   reach_head(const Reach *r, int chunk, int first, int last, Ns head);       /* what then precedes the next chunk */
/* Of the plans that are possible the one that makes again and sends least; of those the smallest first cut ... */
void reach_trace(const Reach *r, int *last);
#endif
