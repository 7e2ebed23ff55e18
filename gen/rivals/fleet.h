/* SPDX-License-Identifier: Apache-2.0
 *
 * fleet.h: a chain of units over a fleet of devices, each with its own times and links; and three searches over it.
 */
#ifndef FLEET_H
#define FLEET_H
#include "planner.h"
#include "unit.h"

typedef struct Fleet Fleet;
struct Fleet {
    int n, stages;              /* units; stages, front to back */
    int64_t micro;              /* micro-batches of a step */
    Ns **forward, **time;       /* [stage][i]: of units 0 .. i-1 there; forward alone, with backward */
    Ns **send;                  /* [stage][i]: what crosses a cut behind unit i, one way, from that stage to the next */
    Bytes *grads;               /* [i]: gradients of units 0 .. i-1 */
    const bool *must;           /* by unit: a stage has to end behind it; NULL: nowhere */
    Ns (*exchange)(const void *ctx, int stage, Bytes bytes);    /* among replicas, once a step; NULL: none */
    Bytes (*over)(const void *ctx, int first, int last, int stage);   /* how far these units are over its limit; NULL: never */
    const void *ctx;
};
/* Of units from .. to-1 as a stage: a micro-batch there and back; its gradients. */
Ns fleet_time(const Fleet *l, int s, int from, int to), fleet_exchange(const Fleet *l, int s, int from, int to);
/* What crosses the cut behind unit to-1, there and back; 0 behind the last stage. */
Ns fleet_send(const Fleet *l, int s, int to);
bool fleet_joins(const Fleet *l, int unit, int to);   /* may a stage that ends with unit to-1 begin with this one, not later? */

Fleet fleet_of(const Question *q, const Units *u);
/* The cuts of a planner that keeps everything: last by stage, a unit. */
void fleet_answer(const Question *q, const Units *u, const Fleet *l, const int *last, Answer *a);
const char *fleet_note(const Fleet *l, const int *last, const char *text);      /* and whether a stage does not fit */

/* Cuts with the least value of the dearest stage, and that value; -1: there are none.  worth: of units from .. to-1 as a stage
 * with the transfer behind it; it grows with the stage.  last: by stage, its last unit. */
Ns fleet_balance(const Fleet *l, Ns (*worth)(const Fleet *l, int stage, int from, int to), int *last);

/* DAPPLE's latency of a step under these cuts, and the least of all cuts; pivot: twice the stage that sets it, and 1
 * more for the transfer behind it. */
Ns dapple_latency(const Fleet *l, const int *last, int *pivot);
Ns dapple_cut(const Fleet *l, int *last);                    /* -1: there are no cuts */
/* SPP: the longest of a stage's work, a link's work and an exchange, in a step; -1: no cuts. */
Ns spp_cut(const Fleet *l, int *last);
/* BaPipe: cuts with the least slowest stage; by_links: a transfer is slower, so these have the least of both.  -1: no cuts. */
Ns bapipe_cut(const Fleet *l, int *last, bool *by_links);
bool bapipe_fit(const Fleet *l, int *last, bool by_links);   /* moves borders until all stages fit */
#endif
