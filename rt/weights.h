/* SPDX-License-Identifier: Apache-2.0
 *
 * weights.h: a parameter in the files of published weights, for weights.c, which reads them, and publish.c, which writes them.
 */
#ifndef WEIGHTS_H
#define WEIGHTS_H
#include "run.h"

typedef struct {
    StoredInfo in;              /* names, and which part of the tensor */
    int ndim;                   /* of the tensor */
    int64_t dim[6];
    int64_t n;                  /* its elements */
} Published;
Published weights_place(const Job *job, const StateInfo *s);

/* Row i of the parameter, seen as a matrix of s->dim[0] rows: its first element in the tensor, and the step to the next one. */
typedef struct { int64_t rows, width, step; } Rows;
Rows weights_rows(const Published *p, const StateInfo *s);
int64_t weights_row(const Published *p, const Rows *r, int64_t i);

float half_float(uint16_t h);   /* exact */
uint16_t float_half(float f);   /* to nearest, ties to even */
#endif
