/* SPDX-License-Identifier: Apache-2.0
 *
 * foreign.h: graphs that come without a model: nodes with times and bytes, measured by somebody else.
 */
#ifndef FOREIGN_H
#define FOREIGN_H
#include "plan.h"

enum { SAVED_OUTPUT = -1 };
typedef struct {
    const char *id, *name;      /* as the file calls it; as dpgen does: legal, different from all others */
    Ns forward, backward;       /* of one micro-batch */
    Ns weight; bool apart;      /* of backward: the gradient of the parameter, which is a computation of its own */
    Bytes output;               /* what its readers get, and, as gradients, give back */
    Bytes saved;                /* what its forward leaves for its backward, beside the output; SAVED_OUTPUT: the output */
    Bytes params;
    Ints from, to;              /* nodes it reads, nodes that read it: ascending */
    Loc loc;
} ForeignNode;
typedef struct {
    const char *path, *name, *optimizer;
    int64_t batch, micro;       /* samples in a micro-batch, micro-batches in a step */
    Loc head;                   /* where that stands */
    VEC(ForeignNode) node;      /* in the order of the file, sorted so that readers come later */
} Foreign;

bool foreign_is(const char *path);                  /* by its first lines: nodes and edges, or a profile of PipeDream */
Foreign *foreign_read(const char *path);            /* fails: err() at what is wrong */
/* profiled/sort.c: keeps the nodes order[0 .. count), in that order; sorts them so that readers come later */
void foreign_pick(Foreign *f, const int *order, int count);
void foreign_sort(Foreign *f);
Node *foreign_model(const char *path, const char *name, int64_t batch, int64_t micro, int64_t groups, const char *optimizer);
/* profiled/graph.c: operators of the row Opaque.  fails: bad() where the model wants another micro-batch. */
Graph *foreign_graph(const Foreign *f, const Model *m);
#endif
