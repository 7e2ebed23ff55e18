/* SPDX-License-Identifier: Apache-2.0
 *
 * scores.h: scores of the last token of a text, for sample.c and head.c.
 */
#ifndef SCORES_H
#define SCORES_H
#include "run.h"

void sample_row(Worker *w, double *to, const real *from, long n);
struct SampleHead {             /* head.c: calls without a whole row of them */
    /* of: its operands; at: the row; room: for so many scores. */
    void (*look)(Worker *w, const char *call, const Given *of, long at, double *(*room)(Worker *w, long width));
};
#endif
