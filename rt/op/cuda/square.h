/* SPDX-License-Identifier: Apache-2.0
 *
 * square.h: products of matrices whose rows are not side by side, or not known before: f32, on the plain cores.
 *
 * A block of 256 threads makes 64 x 64 results, 4 x 4 adjacent ones a thread.  16 columns of a and rows of b go through shared
 * memory at a time.  An operand is a function of its two indices, which gives 0 outside.  An element is one chain, inner index
 * ascending.
 */
#ifndef SQUARE_H
#define SQUARE_H
#include "kernel.h"

enum { SQUARE = 64, DEEP = 16, SQUARE_PITCH = SQUARE + 4, FOURS = 4 };

/* The first of a thread's four rows, and of its four columns. */
FN int square_down(void) { return (int)(threadIdx.x / (SQUARE / FOURS)) * FOURS; }
FN int square_across(void) { return (int)(threadIdx.x % (SQUARE / FOURS)) * FOURS; }

/* s += a tile of 16 by 64, and one of 16 by 64. */
FN void multiply(float (&s)[FOURS][FOURS], const float *a, const float *b)
{
    for (int k = 0; k < DEEP; k++) {
        float x[FOURS], y[FOURS];
        load(x, a + k * SQUARE_PITCH + square_down());
        load(y, b + k * SQUARE_PITCH + square_across());
        for (int i = 0; i < FOURS; i++)
            for (int j = 0; j < FOURS; j++)
                s[i][j] += x[i] * y[j];
    }
}

/* s += the sum over k below n of a(i, k) b(k, j), for rows `down` and columns `across` on.  room: 2 * DEEP * SQUARE_PITCH. */
template <class A, class B>
FN void add_square(float (&s)[FOURS][FOURS], float *room, const A &a, const B &b, long down, long across, long n)
{
    int mine = threadIdx.x / FOURS, part = threadIdx.x % FOURS * FOURS;
    float *left = room, *right = room + DEEP * SQUARE_PITCH;
    for (long deep = 0; deep < n; deep += DEEP) {
        float x[FOURS], y[FOURS];
        for (int q = 0; q < FOURS; q++) {
            long k = deep + part + q;
            x[q] = k < n ? a(down + mine, k) : 0.0f;
            y[q] = k < n ? b(k, across + mine) : 0.0f;
        }
        __syncthreads();
        for (int q = 0; q < FOURS; q++) {
            left[(part + q) * SQUARE_PITCH + mine] = x[q];
            right[(part + q) * SQUARE_PITCH + mine] = y[q];
        }
        __syncthreads();
        multiply(s, left, right);
    }
    __syncthreads();
}
#endif
