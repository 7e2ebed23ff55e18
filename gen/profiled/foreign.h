/* SPDX-License-Identifier: Apache-2.0
 *
 * foreign.h: graphs that come without a model: nodes with times and bytes, measured by somebody else.
 */
#ifndef FOREIGN_H
#define FOREIGN_H
#include "downset/widths.h"

enum { SAVED_OUTPUT = -1 };
typedef struct { Ns forward, backward; } ForeignTime;            /* of one micro-batch */
typedef struct {
    const char *id, *name;      /* as the file calls it; as dpgen does: legal, different from all others */
    ForeignTime time;
    VEC(ForeignTime) on;        /* by kind of device, of files that name kinds */
    double share; bool apart;   /* of backward: the gradient of the parameter, which is a computation of its own */
    Bytes output;               /* what its readers get, and, as gradients, give back */
    Bytes saved;                /* what its forward leaves for its backward, beside the output; SAVED_OUTPUT: the output */
    Bytes params;
    Ints from, to;              /* nodes it reads, nodes that read it: ascending */
    WidthWay *split;            /* by degree, of files that have degrees */
    Loc loc;
} ForeignNode;
typedef struct {
    const char *name, *optimizer;
    int64_t batch, micro;       /* samples in a micro-batch, micro-batches in a step */
    Loc head;                   /* where that stands */
    VEC(ForeignNode) node;      /* in the order of the file, sorted so that readers come later */
    Strs kind;                  /* of devices, that nodes have a time on each; none: times hold on any device */
    const char *devices;        /* sections of a model file, of a format that has them; NULL: it has none */
    Ints degree;                /* devices that a node may be divided over, ascending; none: the file has one time a node */
    VEC(WidthEdge) edge;        /* of files that have degrees */
} Foreign;

/* By its first lines: own form, PipeDream's, Piper's; by its name: models.yml of PipeEdge, or models.yml:MODEL */
bool foreign_is(const char *path);
Foreign *foreign_read(const char *path);            /* fails: err() at what is wrong */
/* profiled/sort.c: keeps the nodes order[0 .. count), in that order; sorts them so that readers come later */
void foreign_pick(Foreign *f, const int *order, int count);
void foreign_sort(Foreign *f);
/* devices: sections, or NULL: 64 alike */
Node *foreign_model(const char *path, const char *name, int64_t batch, int64_t micro, int64_t groups, const char *optimizer,
                    const char *devices);
double foreign_number(const Node *n, const char *what, double most);                /* not negative; fails: err() */
bool pipeedge_is(const char *path);
void pipeedge_read(Foreign *f, const char *path);   /* profiled/pipeedge.c */
void tmpc_read(Foreign *f, const char *path);       /* profiled/tmpc.c: an input of Piper, unsorted */
/* profiled/graph.c: operators of the row Opaque.  fails: bad() where the model wants another micro-batch. */
Graph *foreign_graph(const Foreign *f, const Model *m);

/* ---- bottleneck.c: plan.objective bottleneck ---- */
/* Orders the nodes by the best chain of stages, and sets plan.cuts and plan.stages.  kind: of each device, those of one kind
 * are alike; then the chain chooses devices too.  NULL: they do stages as they come.  fails: err() where the plan asks for
 * something else. */
void bottleneck(Foreign *f, const Graph *g, Model *m, const Cost *c, const int *kind, ForeignChain *chain);
/* Are stages to have widths? */
bool widths_open(const Foreign *f, const Model *m);
Widths widths_of(const Foreign *f, const Model *m);
void bottleneck_text(FILE *out, const ForeignChain *c); /* a line of the plan */
#endif
