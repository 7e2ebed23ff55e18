/* SPDX-License-Identifier: Apache-2.0
 *
 * scores.h: scores of the last token of a text, for sample.c and head.c.
 */
#ifndef SCORES_H
#define SCORES_H
#include "real.h"
#include "run.h"

static inline bool scores_piece(void *to, const void *piece, size_t bytes)
{
    double **next = to;
    for (size_t i = 0; i < bytes / sizeof(real); i++)
        *(*next)++ = (double)get(piece, (long)i);
    return true;
}

/* n numbers of the arena */
static inline void sample_row(Worker *w, double *to, const real *from, long n)
{
    arena_read(w, from, (size_t)n * sizeof *from, scores_piece, &to);
}

struct SampleHead {             /* head.c: calls without a whole row of them */
    /* of: its operands; at: the row; room: for so many scores. */
    void (*look)(Worker *w, const char *call, const Given *of, long at, double *(*room)(Worker *w, long width));
};
#endif
