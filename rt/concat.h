/* SPDX-License-Identifier: Apache-2.0
 *
 * concat.h: Concat of up to eight operands and its backward, for the kernels of every target.  Who includes it has `move`: `outer`
 * rows of n elements, `to_step` apart, from rows `from_step` apart.
 */
#ifndef CONCAT_H
#define CONCAT_H

enum { PARTS = 8 };

static long sum_of(const long *n)
{
    long sum = 0;
    for (int k = 0; k < PARTS; k++)
        sum += n[k];
    return sum;
}

void concat_forward(Stage *st, real *y, const real *a, const real *b, const real *c, const real *d, const real *e, const real *f,
                    const real *g, const real *i, long outer, long na, long nb, long nc, long nd, long ne, long nf, long ng,
                    long ni)
{
    const real *part[PARTS] = {a, b, c, d, e, f, g, i};
    long n[PARTS] = {na, nb, nc, nd, ne, nf, ng, ni}, whole = sum_of(n);
    for (long k = 0, at = 0; k < PARTS; at += n[k++])
        if (part[k] && n[k])
            move(st, y + at, whole, part[k], n[k], outer, n[k]);
}

void concat_backward(Stage *st, real *da, real *db, real *dc, real *dd, real *de, real *df, real *dg, real *di, const real *dy,
                     long outer, long na, long nb, long nc, long nd, long ne, long nf, long ng, long ni)
{
    real *part[PARTS] = {da, db, dc, dd, de, df, dg, di};
    long n[PARTS] = {na, nb, nc, nd, ne, nf, ng, ni}, whole = sum_of(n);
    for (long k = 0, at = 0; k < PARTS; at += n[k++])
        if (part[k] && n[k])
            move(st, part[k], n[k], dy + at, whole, outer, n[k]);
}
#endif
