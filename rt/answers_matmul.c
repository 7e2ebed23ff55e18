/* SPDX-License-Identifier: Apache-2.0
 *
 * answers_matmul.c: MatMul.
 */
#include "answers.h"

/* Row and column steps of a stored rows x cols matrix, or of a turned one. */
typedef struct { const Operand *p; long at, row_step, col; } Matrix;

static Matrix matrix(const Call *c, const char *name, long batch, long rows, long cols, long turned)
{
    return (Matrix){part_of(c, name), batch * rows * cols, turned ? 1 : cols, turned ? rows : 1};
}

static Answer multiplied(Matrix a, long row, Matrix b, long col, long n)
{
    return product(a.p, a.at + row * a.row_step, a.col, b.p, b.at + col * b.col, b.row_step, n);
}

static Matrix turned(Matrix m) { return (Matrix){m.p, m.at, m.col, m.row_step}; }

static Answer matmul_y(const Call *c, long i)
{
    long m = of(c, "m"), n = of(c, "n"), k = of(c, "k"), b = i / (m * n);
    return multiplied(matrix(c, "a", b, m, k, of(c, "ta")), i / n % m, matrix(c, "b", b, k, n, of(c, "tb")), i % n, k);
}

static Answer matmul_da(const Call *c, long i)
{
    long m = of(c, "m"), n = of(c, "n"), k = of(c, "k"), b = i / (m * k), e = i % (m * k);
    long row = of(c, "ta") ? e % m : e / k, col = of(c, "ta") ? e / m : e % k;
    return multiplied(matrix(c, "dy", b, m, n, 0), row, turned(matrix(c, "b", b, k, n, of(c, "tb"))), col, n);
}

static Answer matmul_db(const Call *c, long i)
{
    long m = of(c, "m"), n = of(c, "n"), k = of(c, "k"), b = i / (k * n), e = i % (k * n);
    long row = of(c, "tb") ? e % k : e / n, col = of(c, "tb") ? e / k : e % n;
    return multiplied(turned(matrix(c, "a", b, m, k, of(c, "ta"))), row, matrix(c, "dy", b, m, n, 0), col, m);
}

#define MATMUL "y=batch*m*n a=batch*m*k b=batch*k*n dy=batch*m*n da=batch*m*k db=batch*k*n"

static const Known known[] = {
    {"matmul_forward", "y", MATMUL, matmul_y, 0, 0}, {"matmul_backward", "da", MATMUL, matmul_da, 0, 0},
    {"matmul_backward", "db", MATMUL, matmul_db, 0, 0},
    {NULL, NULL, NULL, NULL, 0, 0},
};

const Answers answers_matmul = {known};
