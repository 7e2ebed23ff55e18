/* SPDX-License-Identifier: Apache-2.0
 *
 * start.h: which GPU this is, and what opening libraries takes of its memory, beside the arenas.
 */
#ifndef START_H
#define START_H
#include "../../rt.h"

/* NVIDIA H200, sm_90, 132 SMs; 0, or with what went wrong in place of it nonzero. */
int gpu_name(int gpu, char *to, size_t room);
/* The same, and the version of cuBLAS: what the measured algorithms of products hold for. */
int gpu_signature(int gpu, char *to, size_t room);

/* Free bytes before; then, after a handle or a plan was made: what is gone belongs to this stage's kernels. */
size_t library_before(void);
void library_after(Stage *st, size_t before);
#endif
