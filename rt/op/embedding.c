/* SPDX-License-Identifier: Apache-2.0
 *
 * Embedding: y[i] = weight[ids[i]].  Backward scatters: a row of the table may be hit by many tokens, so the tokens are
 * added one after another, ascending, and threads split the columns.  Zeros come first, where they are adjacent.  Ids were
 * checked when they were loaded.
 */
#include "kernel.h"

void embedding_forward(Stage *st, real *y, const int32_t *ids, const real *weight, long n, long width, long rows)
{
    (void)rows;
    EACH(n * width >= 1 << 15)
    for (long i = 0; i < n; i++)
        memcpy(y + i * width, weight + ids[i] * width, (size_t)width * sizeof *y);
}

void embedding_backward(Stage *st, float *dweight, const real *dy, const int32_t *ids, int acc, long n, long width,
                        long rows)
{
    EACH(rows * width >= 1 << 15)
    for (long at = 0; at < (acc ? 0 : rows * width); at += 16 * SPAN)
        memset(dweight + at, 0, (size_t)least(16 * SPAN, rows * width - at) * sizeof *dweight);
    EACH(n * width >= 1 << 15)
    for (long from = 0; from < width; from += 64) {
        long columns = least(64, width - from);
        for (long i = 0; i < n; i++) {
            float *to = dweight + ids[i] * width + from;
            for (long j = 0; j < columns; j++)
                to[j] += get(dy, i * width + from + j);
        }
    }
}
