/* SPDX-License-Identifier: Apache-2.0
 *
 * prof.h: the profile, in memory and as text; and what else the files of gen/cost share, or tell others.
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

/* machine.c: everything on this machine that measured times depend on. */
const char *machine_cpu(void);
const char *machine_isa(void);                      /* the highest level of x86-64 that it has; NULL: it is another machine */
const char *machine_lacks(const char *isa);         /* the level it has, if kernels of isa cannot run here; else NULL */
void machine_compiler(const Model *m, const char **compiler, const char **kernels);   /* and versions of both */
const char *machine_runtime(void);                  /* hash of what is linked and how */

/* prepared.c: calls that a library of kernels prepares before the first step. */
/* Does stageN_open have to open the handle of this call?  eval: of the call in an evaluation. */
bool cost_prepared(const Model *m, const Graph *g, const Op *o, bool eval);
/* Is it one of our own kernels, slower, for want of a proven engine of cuDNN on this chip? */
bool cost_unproven(const Model *m, const Graph *g, const Op *o);
/* Bytes of the images that a convolution by cuDNN copies into its workspace; 0: none. */
Bytes cost_images(const Model *m, const Graph *g, const Op *o);

/* roof.c: one call there, by the roofline of the device's description; but for bytes that it need not read, and with so many
 * launches for so many calls */
Ns roof_op(const Device *d, Type compute, const Op *o, Bytes less, int launches, int calls);
Mover roof_mover(const Device *d, Type compute);    /* for actions that call no kernel of the model */
bool roof_alike(const Device *a, const Device *b);  /* devices that it cannot tell apart */

/* links.c: what every pair of devices, and every device and its host, is joined by */
void links_of(Cost *c, const Model *m);
void links_measured(Cost *c, const Curve *message, Ns latency, const Curve *copy);  /* every pair alike; NULL: not measured */

/* Two devices of a stage, at that level of its tree, send each other so many bytes in so many messages. */
Ns links_swap(const Cost *c, int device, int level, Bytes bytes, int64_t messages);
bool links_alike(const Cost *c, int a, int b);      /* within the two stages */

/* team.c: what calls send to other devices of their stage, on a device of each class */
void team_sums(Cost *c, const Graph *g, const Model *m, const Ints *first);

/* pairs.c: all calls on a device of that class; loss: its gradient stands right behind it */
void estimate(Cost *c, const Graph *g, const Device *d, int class, bool loss);

/* lookup.c: the rows of a profile */
void priced(Cost *c, Cost *busy, const Graph *g, const Model *m, Profile *f);
#endif
