/* SPDX-License-Identifier: Apache-2.0
 *
 * start.h: which GPU this is.
 */
#ifndef START_H
#define START_H
#include "../../rt.h"

/* NVIDIA H200, sm_90, 132 SMs; 0, or with what went wrong in place of it nonzero. */
int gpu_name(int gpu, char *to, size_t room);
/* The same, and the version of cuBLAS: what the measured algorithms of products hold for. */
int gpu_signature(int gpu, char *to, size_t room);
#endif
