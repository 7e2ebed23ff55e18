/* SPDX-License-Identifier: Apache-2.0
 *
 * conv_graph.h: the graphs of convolutions that cuDNN is given.
 */
#ifndef CONV_GRAPH_H
#define CONV_GRAPH_H
#include "conv.h"
#include "graph.h"

/* Tensors in memory: y or dy, x or dx, weight or its gradient.  false: no plan in g->room bytes of workspace. */
bool conv_plan(Graph *g, Plan *p, ConvWay way, const Conv *v);
#endif
