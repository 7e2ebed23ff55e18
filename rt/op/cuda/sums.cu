/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums over the devices of a stage, between their messages.  Each is a pass over memory: 12 bytes a number and level.
 *
 * Bits.  x + other is other + x, so both partners of a message have the same.  The bias is added to the finished sum, in f32,
 * before its one rounding.
 */
#include "sums.h"
#include "kernel.h"

enum { AT_ONCE = 4 };

/* A part of rows begins anywhere: 1, the step of take(), where that is no multiple of 16 bytes. */
static int alone(const void *at) { return (uintptr_t)at % 16 ? 1 : 0; }

static __global__ void add_sums(float *x, const float *other, long n, int each)
{
    GROUPS(i, whole, AT_ONCE, n) {
        const int step = (int)whole | each;
        float v[AT_ONCE], w[AT_ONCE];
        take(v, x, i, n, step);
        take(w, other, i, n, step);
        for (int j = 0; j < AT_ONCE; j++)
            v[j] += w[j];
        leave(x, v, i, n, step);
    }
}

struct Addends { const float *at[16]; };

template <int PARTS> static __global__ void add_parts(float *to, Addends x, long n, int each)
{
    GROUPS(i, whole, AT_ONCE, n) {
        const int step = (int)whole | each;
        float v[PARTS][AT_ONCE];
        UNROLL
        for (int p = 0; p < PARTS; p++)             /* all are under way before the first is added */
            take(v[p], x.at[p], i, n, step);
        UNROLL
        for (int wide = 1; wide < PARTS; wide *= 2)
            for (int p = 0; p < PARTS; p += 2 * wide)
                for (int j = 0; j < AT_ONCE; j++)
                    v[p][j] += v[p + wide][j];
        leave(to, v[0], i, n, step);
    }
}

/* `whole` times 4 bytes, and the rest one by one. */
static __global__ void join_bits(unsigned char *x, const unsigned char *other, long whole, long bytes)
{
    GRID(i, bytes - 3 * whole) {
        if (i < whole)
            ((uint32_t *)x)[i] |= ((const uint32_t *)other)[i];
        else
            x[3 * whole + i] |= other[3 * whole + i];
    }
}

static __global__ void fill_none(float *x, long n)
{
    GRID(i, n)
        x[i] = -0.0f;
}

static __global__ void finish_rows(real *y, const float *sum, const real *bias, long rows, long out)
{
    GRID(i, rows * out)
        set(y, i, bias ? sum[i] + one(bias, i - quotient(i, out) * out) : sum[i]);
}

void sums_add(Stage *st, float *x, const float *other, long n)
{
    LAUNCH(add_sums, blocks_for(ceil_div(n, AT_ONCE)), (unsigned)BLOCK, st, x, other, n, alone(x) | alone(other));
}

void sums_tree(Stage *st, float *to, const float *const *x, int parts, long n)
{
    Addends all = {};
    unsigned blocks = blocks_for(ceil_div(n, AT_ONCE));
    int each = alone(to);
    for (int p = 0; p < parts; p++) {
        all.at[p] = x[p];
        each |= alone(x[p]);
    }
    if (parts <= 2)
        LAUNCH((add_parts<2>), blocks, (unsigned)BLOCK, st, to, all, n, each);
    else if (parts == 4)
        LAUNCH((add_parts<4>), blocks, (unsigned)BLOCK, st, to, all, n, each);
    else if (parts == 8)
        LAUNCH((add_parts<8>), blocks, (unsigned)BLOCK, st, to, all, n, each);
    else
        LAUNCH((add_parts<16>), blocks, (unsigned)BLOCK, st, to, all, n, each);
}

void sums_join(Stage *st, void *x, const void *other, long bytes)
{
    const long whole = ((uintptr_t)x | (uintptr_t)other) % 4 ? 0 : bytes / 4;
    LAUNCH(join_bits, blocks_for(bytes - 3 * whole), (unsigned)BLOCK, st, (unsigned char *)x, (const unsigned char *)other,
           whole, bytes);
}

void sums_none(Stage *st, float *x, long n)
{
    LAUNCH(fill_none, blocks_for(n), (unsigned)BLOCK, st, x, n);
}

void sums_put(Stage *st, real *y, const float *sum, const real *bias, long rows, long out)
{
    if (bias || (const void *)y != (const void *)sum)
        LAUNCH(finish_rows, blocks_for(rows * out), (unsigned)BLOCK, st, y, sum, bias, rows, out);
}
