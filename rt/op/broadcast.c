/* SPDX-License-Identifier: Apache-2.0
 *
 * Add and Mul with b repeated over the leading dimensions of a: n elements in a, nb in b, n a multiple of nb.  The
 * gradient of a repeated b is the sum over the repetitions, ascending.
 */
#include "kernel.h"

void add_broadcast_forward(Stage *st, real *y, const real *a, const real *b, long n, long nb)
{
    EACH(n >= 1 << 15)
    for (long row = 0; row < n / nb; row++)
        for (long j = 0; j < nb; j++)
            put(y, row * nb + j, get(a, row * nb + j) + get(b, j));
}

void add_broadcast_backward(Stage *st, real *db, const real *dy, long n, long nb)
{
    EACH(n >= 1 << 15)
    for (long from = 0; from < nb; from += CHUNK) {
        float sum[CHUNK];
        long m = least(CHUNK, nb - from);
        column_sums(sum, dy, n / nb, nb, from, m);
        for (long j = 0; j < m; j++)
            put(db, from + j, sum[j]);
    }
}

void mul_forward(Stage *st, real *y, const real *a, const real *b, long n, long nb)
{
    EACH(n >= 1 << 15)
    for (long from = 0; from < nb; from += SPAN)
        for (long row = 0; row < n / nb; row++)
            for (long j = from, end = least(from + SPAN, nb); j < end; j++)
                put(y, row * nb + j, get(a, row * nb + j) * get(b, j));
}

static void mul_sum(real *db, const real *dy, const real *a, long rows, long nb, long from, long n)
{
    float sum[CHUNK] = {0};
    for (long r = 0; r < rows; r++)
        for (long j = 0; j < n; j++)
            sum[j] += get(dy, r * nb + from + j) * get(a, r * nb + from + j);
    for (long j = 0; j < n; j++)
        put(db, from + j, sum[j]);
}

void mul_backward(Stage *st, real *da, real *db, const real *dy, const real *a, const real *b, long n, long nb)
{
    if (da)
        mul_forward(st, da, dy, b, n, nb);
    if (!db)
        return;
    EACH(n >= 1 << 15)
    for (long from = 0; from < nb; from += CHUNK)
        mul_sum(db, dy, a, n / nb, nb, from, least(CHUNK, nb - from));
}
