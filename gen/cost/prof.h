/* SPDX-License-Identifier: Apache-2.0
 *
 * prof.h: the profile, in memory and as text.
 */
#ifndef PROF_H
#define PROF_H
#include "cost.h"

/* What a profile is signed with, in the order of its head. */
typedef enum { SIGN_DEVICE, SIGN_COMPILER, SIGN_KERNELS, SIGN_ISA, SIGN_COMPUTE, SIGN_THREADS, SIGN_STAGES, SIGN_TRANSPORT,
    SIGN_RUNTIME, SIGNS } Sign;

typedef struct { Ns median, quartiles; } ProfSpan;  /* quartiles: the distance between the first and the third */
typedef struct {
    const char *what;           /* op linear_forward bias=0 ..., message bytes=4, copy-in bytes=65536, compute batch=2 */
    ProfSpan alone, busy;       /* compute: without a copy going on, and with one */
} Measured;

/* How a matrix product on a GPU is done: id tile stages splitk reduction swizzle custom inner cluster workspace, as
 * open_product_algorithm() of rt.h takes them. */
enum { ALGORITHM_NUMBERS = 10, ALGORITHM_PARTS = 8 };        /* products of a call: rt/op/cuda/product.h */
typedef struct { const char *what; int64_t number[ALGORITHM_NUMBERS]; } Algorithm;   /* what: algorithm SIGNATURE part=0 */

struct Profile {
    const char *path;           /* NULL: not in a file yet */
    const char *again;          /* profile_parse() */
    const char *sign[SIGNS];
    Ints batch;                 /* micro-batches measured, ascending */
    int64_t fitted;             /* rows that others predict: dpgen profile --fit */
    VEC(Algorithm) algorithm;   /* by what, as bytes */
    VEC(Measured) measured;     /* by what, as bytes */
    const char *hash;           /* of its text */
    VEC(const Graph *) graph;   /* of the model at each batch, in each form that fuse leaves open; NULL: it cannot be built;
                                   none: not yet */
};

/* again: what to do where it is none.  Fails with status 5 and the line. */
Profile *profile_parse(const char *path, const char *again);
const char *profile_again(const Model *m, const char *path);        /* the command that measures it anew */
void     profile_print(FILE *f, const Profile *p);
int      profile_computing(const Model *m);         /* devices that compute at once: stages of all replicas */
int      profile_stages(const Profile *p);          /* computing at once in the busy column */
void     profile_sort(Profile *p);
const Measured *profile_find(const Profile *p, const char *what);   /* NULL: not measured */
void     profile_sign(Profile *p, const Model *m, bool machine);    /* with what this machine and this model say */
void     profile_sign_by(Profile *p, const char *key, const char *value);  /* with what the benchmark says; else unchanged */
void     profile_signed(const Profile *p);          /* status 1 unless it is signed all over */
/* The numbers of the algorithm of one of the products of a call; NULL: none was measured. */
const int64_t *profile_algorithm(const Profile *p, const char *signature, int part);
const char *profile_measured_on(const Profile *p);  /* the GPU and library that they hold for */
/* Builds f->graph.  At once where a profile is made or opened: what is made within a trial is gone behind it. */
void     profile_graphs(Profile *f, const Model *m);
const Graph *profile_graph_at(const Model *m, int64_t batch);       /* NULL: the model cannot be built so */
#endif
