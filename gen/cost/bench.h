/* SPDX-License-Identifier: Apache-2.0
 *
 * bench.h: from a model to measured rows, in three steps.
 */
#ifndef BENCH_H
#define BENCH_H
#include "../dpgen.h"

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
bool bench_cuda(const Model *m);                    /* on GPUs: templates/bench_cuda.c */

/* process.c */
/* Runs a program; each line of its standard output goes to take(); standard error to the file log, if there is one.  Returns
 * its exit status, 128 + signal, or 127 where it does not start. */
int process_run(const char *const *argv, const char *log, void (*take)(void *ctx, char *line), void *ctx);
const char *process_last(const char *log);          /* last line that says something; "" if none does */

/* machine.c: what times on this machine depend on */
const char *machine_cpu(void);
void machine_compiler(const Model *m, const char **compiler, const char **kernels);   /* and versions of both */
const char *machine_runtime(void);                  /* hash of what is linked and how */
#endif
