/* SPDX-License-Identifier: Apache-2.0
 *
 * place.h: a parameter in the files of published weights.
 */
#ifndef PLACE_H
#define PLACE_H
#include "job.h"

typedef struct {
    StoredInfo in;              /* names, and which part of the tensor */
    int ndim;                   /* of the tensor */
    int64_t dim[6];
    int64_t n;                  /* its elements */
} Published;
Published place_of(const StoredInfo *stored, const StateInfo *s);       /* stored NULL: as it is in the job */

/* Where the tensor begins in the parameter, if it is one of several. */
int64_t place_first(const Published *p);

/* Row i of the parameter, or of that part of it, seen as a matrix of as many rows as its first axis has, and where it is turned
 * as matrices below each other: its first element in the tensor, and the step to the next one. */
typedef struct { int64_t rows, width, step; } Rows;
Rows place_rows(const Published *p, const StateInfo *s);
int64_t place_row(const Published *p, const Rows *r, int64_t i);

float half_float(uint16_t h);   /* exact */
uint16_t float_half(float f);   /* to nearest, ties to even */
/* n numbers as JOB_F32, JOB_F16 or JOB_BF16, little endian, each `step` elements behind the one before it. */
void place_narrow(unsigned char *to, const float *from, int type, int64_t step, int64_t n);
#endif
