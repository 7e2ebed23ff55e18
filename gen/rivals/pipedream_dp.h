/* SPDX-License-Identifier: Apache-2.0
 *
 * pipedream_dp.h: PipeDream's dynamic program over a chain, apart from graphs, so that tests can ask it directly.
 */
#ifndef PIPEDREAM_DP_H
#define PIPEDREAM_DP_H
#include "plan.h"

typedef struct {                /* a chain of units, and what is asked of it; all sums are over units */
    int n, machines;
    const Ns *time;             /* forward and backward, a micro-batch */
    const Ns *send;             /* the output of a unit over one link, both ways */
    const Ns *reduce;           /* 4 times the parameters of a unit over one link */
    const Bytes *stash;         /* activations and parameters of a unit, for the published memory check */
    Bytes memory;               /* of that check; 0: it is off */
    bool transfers;             /* they enter the maximum: the compression ratio is given */
    bool replicate;             /* else straight: one machine a stage */
    int most;                   /* replicas of a stage are powers of two up to that; 0: any number */
    const int *given;           /* [machines used]: replicas of the stage that ends there; 0: none does.  NULL: they are open */
    const bool *must;           /* by unit: a stage has to end behind it; NULL: nowhere */
    /* The stage `index` may be first..last; NULL: every one may.  Asked of straight pipelines alone. */
    bool (*fits)(void *ctx, int first, int last, int index);
    /* Neither it nor any longer one around it may, known cheaply; NULL: nothing is known.  With `fits` alone. */
    bool (*never)(void *ctx, int first, int last, int index);
    void *ctx;
} PipedreamChain;

typedef struct { int last, replicas; } ChainStage;
/* Writes the stages, front to back, to `stage` with room for all machines.  Returns their number; 0: there is no plan.
 * value: the objective. */
int chain_plan(const PipedreamChain *c, ChainStage *stage, Ns *value);
#endif
