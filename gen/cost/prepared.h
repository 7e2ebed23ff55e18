/* SPDX-License-Identifier: Apache-2.0
 *
 * prepared.h: calls that a library of kernels prepares before the first step.
 */
#ifndef PREPARED_H
#define PREPARED_H
#include "cost.h"

/* Does stageN_open have to open the handle of this call?  eval: of the call in an evaluation. */
bool cost_prepared(const Model *m, const Graph *g, const Op *o, bool eval);
/* Is it one of our own kernels, slower, for want of a proven engine of cuDNN on this chip? */
bool cost_unproven(const Model *m, const Graph *g, const Op *o);
/* Bytes of the images that a convolution by cuDNN copies into its workspace; 0: none. */
Bytes cost_images(const Model *m, const Graph *g, const Op *o);
#endif
