/* SPDX-License-Identifier: Apache-2.0
 *
 * The actions of a step that compute on the GPU: rt/fold.c has them for the CPU.
 */
#include "../op/cuda/kernel.h"

static __global__ void add_floats(float *into, const float *from, long n)
{
    GROUPS(i, step, 4, n) {
        float v[4], w[4];
        take(v, into, i, n, step);
        take(w, from, i, n, step);
        for (int j = 0; j < 4; j++)
            v[j] += w[j];
        leave(into, v, i, n, step);
    }
}

static __global__ void add_doubles(double *into, const double *from, long n)
{
    GRID(i, n)
        into[i] += from[i];
}

/* `whole` times 16 bytes, and the rest one by one; from 0: zeros. */
static __global__ void copy_bytes(unsigned char *to, const unsigned char *from, long whole, long bytes)
{
    const Words<4> zero = {{0, 0, 0, 0}};
    GRID(i, bytes - whole * 15) {
        if (i < whole)
            ((Words<4> *)to)[i] = from ? ((const Words<4> *)from)[i] : zero;
        else
            to[whole * 15 + i] = from ? from[whole * 15 + i] : 0;
    }
}

static void copy(Stage *st, void *to, const void *from, long bytes)
{
    long whole = ((uintptr_t)to | (uintptr_t)from) % 16 ? 0 : bytes / 16;
    LAUNCH(copy_bytes, blocks_for(bytes - whole * 15), (unsigned)BLOCK, st, (unsigned char *)to,
           (const unsigned char *)from, whole, bytes);
}

void group_fold(Stage *st, float *into, const float *from, long n)
{
    LAUNCH(add_floats, blocks_for(ceil_div(n, 4)), (unsigned)BLOCK, st, into, from, n);
}

void norm_gather(Stage *st, double *into, const double *from, long n)
{
    LAUNCH(add_doubles, blocks_for(n), (unsigned)BLOCK, st, into, from, n);
}

void version_copy(Stage *st, void *newer, const void *older, long bytes) { copy(st, newer, older, bytes); }
void fill_zero(Stage *st, void *to, long bytes) { copy(st, to, 0, bytes); }
