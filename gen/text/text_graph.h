/* SPDX-License-Identifier: Apache-2.0
 *
 * text_graph.h: the names of a graph's things, which a plan refers to.
 */
#ifndef TEXT_GRAPH_H
#define TEXT_GRAPH_H
#include "text.h"

/* Fills ref[R_TENSOR], ref[R_STATE], ref[R_OP]: names of tensors and states; F:h.0.ln_1, I:h.0.ln_1, I:h.0.ln_1#2. */
void text_graph_refs(const Graph *g, Refs ref[R_KINDS]);
#endif
