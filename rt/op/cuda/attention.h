/* SPDX-License-Identifier: Apache-2.0
 *
 * attention.h: attention as graphs for cuDNN, apart from stages, so that a machine without a GPU can plan them too.
 */
#ifndef ATTENTION_H
#define ATTENTION_H
#include "graph.h"

/* Rows of q have qs elements, those of k and v ks; y and dy are dense. */
typedef struct { long batch, heads, query, key, width, qs, ks, causal; } Shape;

/* Do all chips from sm_80 on plan it?  A function of type and shape alone. */
bool attention_fits(const Shape *s);
/* Addresses, in this order: y, lse, q, k, v, scale; causal: -infinity. */
bool attention_plan_forward(Graph *g, Plan *p, const Shape *s);
/* dq, dk, dv, dy, y, q, k, v, lse, delta, scale, 1; causal: -infinity. */
bool attention_plan_backward(Graph *g, Plan *p, const Shape *s);
/* Bytes of tmp in backward: the row sums, then what the deterministic graph needs.  gen/front/shape_ops.c has the same. */
size_t attention_scratch(const Shape *s);
#endif
