/* SPDX-License-Identifier: Apache-2.0
 *
 * sums.h: what the devices of a stage do with what they have sent each other, on GPUs: sums.cu.
 */
#ifndef CUDA_SUMS_H
#define CUDA_SUMS_H
#include "../../rt.h"
#ifdef __cplusplus
extern "C" {
#endif

void sums_add(Stage *st, float *x, const float *other, long n);         /* x += other */
void sums_join(Stage *st, void *x, const void *other, long bytes);      /* bits: x |= other */
/* to = the sum of x[0] .. x[parts-1] by the binary tree, from the memory of several GPUs; parts is a power of two up to 16. */
void sums_tree(Stage *st, float *to, const float *const *x, int parts, long n);
void sums_none(Stage *st, float *x, long n);    /* the sum of no terms: what it is added to stays as it is, -0 too */
/* Finished sums, with the bias where there is one; y may be the sums. */
void sums_put(Stage *st, real *y, const float *sum, const real *bias, long rows, long out);
#ifdef __cplusplus
}
#endif
#endif
