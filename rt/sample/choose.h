/* SPDX-License-Identifier: Apache-2.0
 *
 * choose.h: the next token, from the scores of all.
 */
#ifndef CHOOSE_H
#define CHOOSE_H
#include <stdint.h>

typedef struct { double temperature, top_p; long top_k; uint64_t seed; } Taste;   /* top_k 0, top_p 1: all */
typedef struct { double score; int id; } Ranked;

/* Of n scores, for place `at` of the text; room for n.  -1: a score is not a number, or infinite. */
long choose_token(const double *score, long n, const Taste *t, int64_t at, Ranked *room);
#endif
