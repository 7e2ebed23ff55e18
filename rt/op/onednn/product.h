/* SPDX-License-Identifier: Apache-2.0
 *
 * product.h: a matrix product prepared at start and run in a step, without a word of oneDNN.
 */
#ifndef PRODUCT_H
#define PRODUCT_H
#include "../../rt.h"

typedef struct Product Product;

/* c[batch m n] = a[batch m k] b[batch k n] (+ bias[n]) (+ c).  All are dense and row-major.  a and b are `real`. */
typedef struct {
    long batch, m, n, k;
    int ta, tb;                 /* that operand is stored transposed: a[k m], b[n k] */
    int bias;                   /* bias[n], real */
    int wide;                   /* c is float in a bf16 job too */
    int acc;                    /* c += */
    long row_step;              /* product_f32: elements from a row of a to the next; 0: it is dense */
    int pack;                   /* copy b into the library's own layout first, in every run */
} Recipe;

/* At open; allocates.  A recipe that this library cannot do ends the program with the reason. */
Product *product_open(Stage *st, Recipe r);
/* In a step; nothing of ours allocates.  bias: NULL unless the recipe has one. */
void product_run(Stage *st, Product *p, void *c, const void *a, const void *b, const void *bias);
/* The product alone, with the right side that the last run of this recipe packed, if nothing else ran on the stage since. */
void product_again(Stage *st, Product *p, void *c, const void *a, const void *b);
/* The same from f32 by the library's BLAS entry, which needs no preparation: batch is 1, no bias. */
void product_f32(Stage *st, Recipe r, float *c, const float *a, const float *b);

/* Scratch memory of this stage for our own kernels, `bytes` for each thread: grown at open, read in a step. */
void scratch_open(Stage *st, size_t bytes);
void *scratch_thread(const Stage *st, int thread);
/* Memory of the handles, zeroed; freed by nobody: a stage lives as long as its process. */
void *handle_alloc(size_t bytes);
#endif
