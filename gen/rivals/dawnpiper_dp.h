/* SPDX-License-Identifier: Apache-2.0
 *
 * dawnpiper_dp.h: DawnPiper's recursive binary partition, apart from graphs, so that tests can ask it directly.
 */
#ifndef DAWNPIPER_DP_H
#define DAWNPIPER_DP_H
#include "plan.h"

typedef struct {
    int n, stages;              /* operators */
    const char *cut;            /* CUT_NEVER, CUT_MAY, CUT_MUST behind operator i; n-1 ends anyway */
    const Ns *time;             /* [n+1]: of operators 0..i-1 */
    const Bytes *fixed, *saved; /* [n+1]: bytes a stage holds once; once for every micro-batch in flight */
    const int *flight;          /* by stage */
    const bool *hidden;         /* by operator: messages of a cut behind it hide behind compute; NULL: all do */
    int guard;                  /* cuts tried outside of the interval, on either side */
    bool all;                   /* every cut is tried, not the interval alone: what the theorem is compared with */
    /* Time of operators first..last as `stage` after memory optimisation; false: it does not fit. */
    bool (*price)(void *ctx, int first, int last, int stage, Ns *time);
    void *ctx;
} DawnpiperHalves;
/* The last operator of each stage and the time of the slowest.  False: no plan was found; one may exist nevertheless. */
bool halves(const DawnpiperHalves *x, int *last, Ns *time);
#endif
