/* SPDX-License-Identifier: Apache-2.0
 *
 * pt2.h: a node of torch.export, for pt2.c, which reads the archive, and aten.c, which knows the operators.
 */
#ifndef PT2_H
#define PT2_H
#include "net.h"

typedef struct {
    const char *name;
    bool none;                  /* None */
    Ints tensor;                /* values: of one, or of a list */
    Numbers number;             /* ints, floats, true as 1: of one, or of a list */
    const char *text;
} Argument;
typedef struct { const char *target; VEC(Argument) in; Strs out; } Pt2Node;

const Argument *node_argument(const Pt2Node *n, const char *name);     /* NULL: left out, or None */
void aten_node(Net *g, const Pt2Node *n, Ints *results);
int  net_named(const Net *g, const char *name);     /* a weight by its name; -1: there is none */
#endif
