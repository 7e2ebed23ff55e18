/* SPDX-License-Identifier: Apache-2.0
 *
 * products.c: how far the products of a GPT-2 124M step are from the exact ones, in float.
 *
 * Five weights by three directions, 4 x 256 tokens.  Of each product 64 rows and up to 256 columns are computed, with chains as
 * long as in the model: an element is one chain, so it does not depend on the others.  Operands are normal numbers; those of a
 * weight have the deviation 0.02.  Printed are root mean squares of the error over that of the exact results, in units of
 * 2^-24: of rt/op/linear.c, and of a chain that rounds each product before it is added, as order 1 did.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "../../rt/real.h"

void linear_forward(Stage *st, real *y, const real *x, const real *weight, const real *bias, int h, long rows, long in,
                    long out);
void linear_backward_x(Stage *st, real *dx, const real *dy, const real *weight, int h, long rows, long in, long out);
void linear_backward_w(Stage *st, float *dweight, float *dbias, const real *dy, const real *x, int h, int acc, long rows,
                       long in, long out);

enum { TOKENS = 1024, ROWS = 64, COLUMNS = 256 };
static const struct { const char *name; long in, out; } weight[] = {
    { "qkv", 768, 2304 }, { "attproj", 768, 768 }, { "fc", 768, 3072 }, { "fcproj", 3072, 768 }, { "head", 768, 50257 } };
static const char *const direction[] = { "forward", "dx", "dweight" };

/* A normal number: the sum of twelve uniform ones, of xorshift64. */
static float normal(void)
{
    static unsigned long long x = 88172645463325252ULL;
    double sum = -6;
    for (int i = 0; i < 12; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        sum += (double)(x >> 11) / 9007199254740992.0;
    }
    return (float)sum;
}
static float *normals(long n, float deviation)
{
    float *to = malloc((size_t)n * sizeof *to);
    if (!to) exit(1);
    for (long i = 0; i < n; i++) to[i] = deviation * normal();
    return to;
}
static long least(long a, long b) { return a < b ? a : b; }

/* c[m,n] = sum over k of a(i, p) b(p, j): errors of c, and of a chain that rounds twice */
static void compare(const char *name, const char *way, const float *c, const float *a, const float *b, long m, long n, long k,
                    long a_row, long a_step, long b_step, long b_column)
{
    long double fused = 0, twice = 0, size = 0;
    for (long i = 0; i < m; i++)
        for (long j = 0; j < n; j++) {
            long double exact = 0;
            volatile float chain = 0, product;
            for (long p = 0; p < k; p++) {
                float x = a[i * a_row + p * a_step], y = b[p * b_step + j * b_column];
                exact += (long double)x * (long double)y;
                product = x * y;
                chain = chain + product;
            }
            fused += (c[i * n + j] - exact) * (c[i * n + j] - exact);
            twice += (chain - exact) * (chain - exact);
            size += exact * exact;
        }
    double unit = 16777216 / sqrt((double)size), of_ours = unit * sqrt((double)fused), of_order1 = unit * sqrt((double)twice);
    printf("%-8s %-8s %6ld %8.2f %8.2f %6.3f\n", name, way, k, of_ours, of_order1, of_ours / of_order1);
}

int main(void)
{
    Stage st = { .threads = 1, .count = 1 };
    printf("%-8s %-8s %6s %8s %8s %6s\n", "weight", "product", "terms", "order 2", "order 1", "ratio");
    for (size_t w = 0; w < sizeof weight / sizeof *weight; w++)
        for (int d = 0; d < 3; d++) {
            long rows = d == 2 ? TOKENS : ROWS, in = d == 0 ? weight[w].in : least(weight[w].in, COLUMNS);
            long out = d == 1 ? weight[w].out : d == 2 ? least(weight[w].out, ROWS) : least(weight[w].out, COLUMNS);
            float *x = normals(rows * in, 1), *dy = normals(rows * out, 1), *of = normals(out * in, 0.02f);
            float *c = calloc((size_t)(d == 0 ? rows * out : d == 1 ? rows * in : out * in), sizeof *c);
            if (!c) return 1;
            switch (d) {
            case 0:
                linear_forward(&st, c, x, of, NULL, 0, rows, in, out);
                compare(weight[w].name, direction[d], c, x, of, rows, out, in, in, 1, 1, in);
                break;
            case 1:
                linear_backward_x(&st, c, dy, of, 0, rows, in, out);
                compare(weight[w].name, direction[d], c, dy, of, rows, in, out, out, 1, in, 1);
                break;
            default:
                linear_backward_w(&st, c, NULL, dy, x, 0, 0, rows, in, out);
                compare(weight[w].name, direction[d], c, dy, x, out, in, rows, 1, out, in, 1);
            }
            free(x);
            free(dy);
            free(of);
            free(c);
        }
    return 0;
}
