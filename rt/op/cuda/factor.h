/* SPDX-License-Identifier: Apache-2.0
 *
 * factor.h: tensors as factors of 8 bits for a product, with their scales, and what is noted of their sizes: factor.cu.
 */
#ifndef FACTOR_H
#define FACTOR_H
#include "../../fp8.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    uint8_t *to;                /* rows x cols codes, or cols x rows where it is turned */
    uint8_t *straight;          /* of one that is turned: rows x cols codes besides, or 0 */
    const real *from;           /* rows x cols, multiples of 16 */
    const real *pre;            /* of the first, which is turned: from is the gradient of a Gelu of these, or 0 */
    int tanh;                   /* of that Gelu */
    const float *bins;          /* its part of the history */
    long rows, cols;
    int turned;
    Fp8 type;
    float *dbias;               /* of one that is turned: (acc: +=) the sums of its columns, or 0 */
    int acc;
    float *strip_sums;          /* factors_make()'s own, with the next */
    long strips, each;
} Eight;

/* Floats on the GPU: what a unit of each factor is worth. */
typedef struct { const float *a, *b, *c; } Units;

/* Two, or three where c is from somewhere, in two launches.  room: FP8_ROOM bytes that stay until the products have run. */
Units factors_make(Stage *st, Eight a, Eight b, Eight c, float *room);
/* damax = (acc: +=) the bins of dy and x, and at first (acc 0) of `weight`; behind factors_make() of these.  The weight may be
 * none of those: then only from, rows and cols are there. */
void factors_note(Stage *st, float *damax, Eight dy, Eight x, Eight weight, float *room, int acc);
#ifdef __cplusplus
}
#endif
#endif
