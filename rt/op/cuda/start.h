/* SPDX-License-Identifier: Apache-2.0
 *
 * start.h: what opening libraries takes of the GPU's memory, beside the arenas.
 */
#ifndef START_H
#define START_H
#include "../../rt.h"

/* Free bytes before; then, after a handle or a plan was made: what is gone belongs to this stage's kernels. */
size_t library_before(void);
void library_after(Stage *st, size_t before);
#endif
