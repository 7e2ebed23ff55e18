/* SPDX-License-Identifier: Apache-2.0
 *
 * PositionEmbedding: y[b][t] = x[b][t] + weight[t].  dweight[t] is the sum of dy[b][t] over the samples,
 * ascending; rows of the table past the sequence get zero.  With `offset`, position t has row t + offset, and the rows before
 * get zero.
 */
#include "kernel.h"

void position_forward(Stage *st, real *y, const real *x, const real *weight, long batch, long seq, long width)
{
    EACH(batch * seq * width >= 1 << 15)
    for (long row = 0; row < batch * seq; row++)
        for (long j = 0; j < width; j++)
            put(y, row * width + j, get(x, row * width + j) + get(weight, row % seq * width + j));
}

void position_backward(Stage *st, float *dweight, const real *dy, int acc, long batch, long seq, long width, long rows)
{
    long used = seq * width;
    EACH(batch * used >= 1 << 15)
    for (long from = 0; from < rows * width; from += CHUNK) {
        float sum[CHUNK] = {0};
        long n = least(CHUNK, rows * width - from);
        if (from < used)
            column_sums(sum, dy, batch, used, from, least(n, used - from));
        give(dweight + from, sum, n, acc);
    }
}

void position_offset_forward(Stage *st, real *y, const real *x, const real *weight, long batch, long seq, long width,
                             long offset)
{
    position_forward(st, y, x, weight + offset * width, batch, seq, width);
}

void position_offset_backward(Stage *st, float *dweight, const real *dy, int acc, long batch, long seq, long width, long rows,
                              long offset)
{
    if (!acc)
        memset(dweight, 0, (size_t)(offset * width) * sizeof *dweight);
    position_backward(st, dweight + offset * width, dy, acc, batch, seq, width, rows - offset);
}
