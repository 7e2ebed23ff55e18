/* SPDX-License-Identifier: Apache-2.0
 *
 * list.h: the search as a list of candidates, and the loop over it.
 */
#ifndef LIST_H
#define LIST_H
#include "candidate.h"

typedef struct {
    const Options *x;
    Ask ask;                    /* for every candidate */
    Purse *loose;               /* steps of those whose layouts only have to fit; the winner of them is laid out in full */
    Candidates all;
    bool improves;              /* the best candidate gets other lists: schedule optimal */
    int best;                   /* the candidate that has the best plan; -1: none has */
    Ns cutoff;                  /* the step of a plan found elsewhere; 0: none was */
    const char *refused;        /* why there was no candidate */
} Search;

/* Appends the candidates of one graph, number of stages and schedule. */
void list_schedule(Search *s, const Graph *g, const Cost *c, const Model *m, int stages, const Schedule *k);
/* Plans each candidate once, then refines them in order of promise, until none can become better than the best. */
void search_all(Search *s);
Plan *search_best(const Search *s);                 /* with its proof; NULL: there is none */
Plan *search_failed(const Search *s);               /* of the last candidate without a plan; NULL: each has one */
bool wins(const Plan *a, const Plan *b);             /* better; an idle device wins only by what is worth one */
Ns with_idle(const Plan *p);                        /* a step that may be this much longer without an idle device */
Ns search_least(const Search *s);                   /* proven: no plan of these candidates takes less */

/* device_order.c: the best plan of one graph, number of stages and schedule under every order of the devices; as one candidate
 * that is finished. */
void search_orders(Search *s, const Graph *g, const Model *m, const Cost *c, int stages, const Schedule *k);
#endif
