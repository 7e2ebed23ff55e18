/* SPDX-License-Identifier: Apache-2.0
 *
 * calls.h: what measures the calls of a job, and fits those that are not measured.
 */
#ifndef PROFILE_CALLS_H
#define PROFILE_CALLS_H
#include "plan.h"
#include "cost/prof.h"

/* ---- bench.c: from a model to measured rows, in three steps -------------------------------------------------------- */
/* bench.c: the different calls of some graphs, and their source. */
typedef struct { const char *signature; const Graph *g; const Op *o; } BenchCall;
typedef struct {
    const Model *m;
    VEC(BenchCall) call;        /* by first appearance */
    Ints mix;                   /* calls of one micro-batch in order */
    int64_t batch;              /* of the mix */
    int stages;
} Bench;
Bench *bench_of(const Model *m, const Graph *const *g, int n, const Graph *mix);
void bench_print(FILE *f, const Bench *b);          /* stage0.c */

/* ---- fit.c: the times of all calls from a few that were measured --------------------------------------------------- */
typedef struct {
    const Bench *all;
    Bench few;                  /* the calls that are measured */
    Ns *work;                   /* by call of `all`: the estimate of it */
    Ints sorted;                /* calls by kernel, then work */
    int *why;                   /* by call: FIT_NONE, FIT_USED, FIT_JUDGED */
} Fit;
enum { FIT_NONE, FIT_USED, FIT_JUDGED };

Fit *fit_of(const Bench *all);
void fit_fill(const Fit *f, Profile *p);            /* rows of the others, and on stderr what the fit is worth */
#endif
