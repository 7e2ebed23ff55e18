/* SPDX-License-Identifier: Apache-2.0
 *
 * totals.h: one sum in double over n elements: gradient norms, losses.  Blocks add pieces of a length that follows from n
 * alone, at most PIECES of them; with several, a second kernel of one block adds the pieces.  Threads add ascending, a block
 * is added as a row is (kernel.h).  Scratch: 8 KiB.
 *
 * term.at(i) is what element i adds; end.put(sum) receives the result once.
 */
#ifndef TOTALS_H
#define TOTALS_H
#include "kernel.h"

enum { PIECES = 1024, LEAST_PIECE = 16 * BLOCK };

template <class Term, class End>
static __global__ void total_pieces(Term term, End end, double *piece, long n, long each)
{
    double sum = 0;
    long until = ((long)blockIdx.x + 1) * each;
    until = until < n ? until : n;
    for (long i = blockIdx.x * each + threadIdx.x; i < until; i += BLOCK)
        sum += term.at(i);
    sum = team_sum<BLOCK>(sum);
    if (threadIdx.x == 0 && gridDim.x == 1)
        end.put(sum);
    else if (threadIdx.x == 0)
        piece[blockIdx.x] = sum;
}

/* The numbers themselves. */
struct Numbers {
    const double *x;
    FIELD double at(long i) const { return x[i]; }
};

static inline long piece_of(long n)
{
    long each = ceil_div(n, PIECES);
    return each < LEAST_PIECE ? (long)LEAST_PIECE : each;
}

template <class Term, class End> static void total(Stage *st, Term term, End end, long n)
{
    long each = piece_of(n), pieces = ceil_div(n, each);
    double *piece = pieces > 1 ? (double *)workspace_of(st, PIECES * sizeof *piece) : 0;
    LAUNCH((total_pieces<Term, End>), (unsigned)pieces, (unsigned)BLOCK, st, term, end, piece, n, each);
    if (pieces > 1)
        LAUNCH((total_pieces<Numbers, End>), 1u, (unsigned)BLOCK, st, Numbers{piece}, end, (double *)0, pieces, pieces);
}
#endif
