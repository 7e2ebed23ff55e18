/* SPDX-License-Identifier: Apache-2.0
 *
 * fleet.h: a chain of units over a fleet of devices, each with its own times and links; and three searches over it.
 *
 * A stage may have several devices, its copies, which share each micro-batch.  Where their numbers are open, they are chosen
 * with the cuts.
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
    const int *copies;          /* [stage]; NULL: open, powers of two up to most, or with `any` every number */
    bool any;
    int most, devices;          /* copies of a stage at most; of all stages together */
    Ns (*exchange)(const void *ctx, int stage, Bytes bytes, int copies);        /* once a step; NULL: none */
    Bytes (*over)(const void *ctx, int first, int last, int stage);   /* how far these units are over its limit; NULL: never */
    const void *ctx;
};
/* Of units from .. to-1 as a stage of so many copies: a micro-batch there and back; its gradients. */
typedef Ns FleetWorth(const Fleet *l, int s, int from, int to, int copies);
FleetWorth fleet_time, fleet_exchange;
/* What crosses the cut behind unit to-1, there and back; 0 behind the last stage. */
Ns fleet_send(const Fleet *l, int s, int to);
bool fleet_joins(const Fleet *l, int unit, int to);   /* may a stage that ends with unit to-1 begin with this one, not later? */
bool fleet_may(const Fleet *l, int s, int copies);    /* may stage s have so many? */

Fleet fleet_of(const Question *q, const Units *u);
Fleet fleet_open(const Question *q, const Units *u);    /* copies are open, as plan.widths: auto leaves them */
/* The cuts of a planner that keeps everything: last by stage, a unit. */
void fleet_answer(const Question *q, const Units *u, const Fleet *l, const int *last, Answer *a);
const char *fleet_note(const Fleet *l, const int *last, const char *text);      /* and whether a stage does not fit */

/* Cuts with the least value of the dearest stage or transfer, by number of stages: fleet_take gives that value, or -1 where
 * there are none.  worth grows with the stage; wire is of the transfer behind stage s, from so many copies to so many; NULL: it
 * is part of worth.  last and copies: by stage, its last unit, its copies. */
typedef Ns FleetWire(const Fleet *l, int s, int to, int copies, int next);
typedef struct FleetTable FleetTable;
const FleetTable *fleet_balance(const Fleet *l, FleetWorth *worth, FleetWire *wire);
Ns fleet_take(const FleetTable *t, int stages, int *last, int *copies);

/* DAPPLE's latency of a step under these cuts and copies, and the least of all; pivot: twice the stage that sets it, and 1 more
 * for the transfer behind it. */
Ns dapple_latency(const Fleet *l, int stages, const int *last, const int *copies, int *pivot);
/* -1: there are none.  The best number of stages from *stages to l->stages; it becomes *stages. */
Ns dapple_cut(const Fleet *l, int *stages, int *last, int *copies);
/* SPP: the longest of a stage's work, a link's work and an exchange, in a step, by number of stages. */
const FleetTable *spp_cut(const Fleet *l);
/* BaPipe: cuts with the least slowest stage; by_links: a transfer is slower, so these have the least of both.  -1: no cuts. */
Ns bapipe_cut(const Fleet *l, int *last, bool *by_links);
bool bapipe_fit(const Fleet *l, int *last, bool by_links);   /* moves borders until all stages fit */
#endif
