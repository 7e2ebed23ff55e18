/* SPDX-License-Identifier: Apache-2.0
 *
 * candidate.h: what the loops over candidates share.
 */
#ifndef CANDIDATE_H
#define CANDIDATE_H
#include "search.h"

typedef struct {
    const Options *x;
    const Model *m;             /* the candidate at hand, all but depth and schedule decided */
    Plan *best, *failed;        /* the best plan so far; the last candidate that had none */
    Ns below;                   /* the step of the best plan so far, here or elsewhere; 0: none */
    Ns least;                   /* proven: no plan of the candidates so far takes less */
    int candidates;
    const char *refused;        /* why there was no candidate */
} Search;

Bytes *least_memory(const Model *m, int stages);    /* by device: a stage has the least memory that any of its replicas has */
bool better(const Plan *a, const Plan *b);          /* faster; as fast and smaller */
void try_schedule(Search *s, const Graph *g, const Cost *c, int stages, const Schedule *k);

/* device_order.c: the same under every order of the devices */
void try_orders(Search *s, const Graph *g, const Model *m, const Cost *c, int stages, const Schedule *k);
#endif
