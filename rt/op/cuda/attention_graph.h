/* SPDX-License-Identifier: Apache-2.0
 *
 * attention_graph.h: attention as graphs for cuDNN, apart from stages, so that a machine without a GPU can plan them too.
 */
#ifndef ATTENTION_GRAPH_H
#define ATTENTION_GRAPH_H
#include "attention.h"
#include "graph.h"

/* Addresses, in this order: y, lse, q, k, v, scale; causal: -infinity. */
bool attention_plan_forward(Graph *g, Plan *p, const Shape *s);
/* dq, dk, dv, dy, y, q, k, v, lse, delta, scale, 1; causal: -infinity. */
bool attention_plan_backward(Graph *g, Plan *p, const Shape *s);
#endif
