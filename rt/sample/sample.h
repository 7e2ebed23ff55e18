/* SPDX-License-Identifier: Apache-2.0
 *
 * sample.h: scores of the last token of a text, and tokens as text, for sample.c, head.c and words.c.
 */
#ifndef SAMPLE_H
#define SAMPLE_H
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

struct TokenText {              /* words.c: tokens that are not bytes */
    /* The tokens of a text, with the tokenizer of a file, NULL: they are numbers: as many as there are, of those the first
     * `room`. */
    int (*encode)(Run *run, const char *path, const char *text, int32_t *ids, long room, long *n);
    const char *(*word)(int id, bool first, int *n);    /* the bytes of a token inside a text, or its first one */
};
#endif
