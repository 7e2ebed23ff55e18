/* SPDX-License-Identifier: Apache-2.0
 *
 * bench.h: from a model to measured rows, in three steps.
 */
#ifndef BENCH_H
#define BENCH_H
#include "plan.h"

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
#endif
