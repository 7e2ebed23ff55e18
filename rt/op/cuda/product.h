/* SPDX-License-Identifier: Apache-2.0
 *
 * product.h: a matrix product prepared at start and queued in a step.  The only view that the other files of this folder
 * have of cublasLt; product.c is the only one that includes its header.
 */
#ifndef PRODUCT_H
#define PRODUCT_H
#include "../../rt.h"

/* What follows the product before it is stored.  EPILOGUE_GELU: c + bias goes to `aux`, gelu(c + bias) to c.  EPILOGUE_SLOPE:
 * c is multiplied by gelu'(aux).  Gelu by tanh. */
enum { EPILOGUE_NONE, EPILOGUE_BIAS, EPILOGUE_GELU, EPILOGUE_GELU_BIAS, EPILOGUE_SLOPE };

/* Factors of 8 bits, in a bf16 job: a in e4m3 or e5m2, b in e4m3; ta 0, tb 1 and sizes of multiples of 16 then. */
enum { FACTORS_REAL, FACTORS_E4M3, FACTORS_E5M2 };

/* c[batch m n] = a[batch m k] b[batch k n] (+ bias[n]) (+ c).  All are dense and row-major.  a, b and bias are `real`. */
typedef struct {
    const char *call;           /* of rt.h: for messages */
    long batch, m, n, k;
    int ta, tb;                 /* that operand is stored transposed: a[k m], b[n k] */
    int wide;                   /* c is float in a bf16 job too */
    int epilogue, factors;
    int adds;                   /* product_add() alone has it: c is the sum with another one of its shape */
} Recipe;

enum { PARTS = 8 };             /* products that one handle may hold; gen/cost/prof.h: ALGORITHM_PARTS */

/* At open; allocates.  A product that this library or GPU cannot do ends the program with status 6 and the remedy;
 * one with an epilogue only when it is called, as a handle may be opened with and without. */
void product_open(Stage *st, int h, int part, Recipe r);
/* In a step: queues on stream_of(st).  bias: NULL unless the recipe has one.  acc: c += ; the product is summed first; only
 * `wide` ones add, and code is loaded for no other before the first step. */
void product_run(Stage *st, int h, int part, void *c, const void *a, const void *b, const void *bias, int acc);
/* c = a b (+ bias) + term, for a recipe that `adds`; rounded once. */
void product_add(Stage *st, int h, int part, void *c, const void *a, const void *b, const void *bias, const void *term);
/* The same as product_run() with EPILOGUE_GELU and the ones behind it; aux is [m n]. */
void product_gelu(Stage *st, int h, int part, void *c, const void *a, const void *b, const void *bias, const void *aux);
/* The same with factors of 8 bits: units, on the GPU, that a and b are in. */
void product_scaled(Stage *st, int h, int part, void *c, const void *a, const void *b, const void *bias, int acc,
                    const float *unit_a, const float *unit_b);
/* Is there an algorithm?  A function of sizes, types, library and GPU. */
int product_there(const Stage *st, int h, int part);

/* For dpgen profile: an algorithm by the library's own numbers, as open_product_algorithm() takes them. */
typedef struct { int id, tile, stages, splitk, reduction, swizzle, custom, inner, cluster; long workspace; } Choice;
/* The library's guesses, the best first, that can be made again from their numbers: how many.  0: a part that has not run. */
int product_choices(Stage *st, int h, int part, Choice *list, int most);
#endif
