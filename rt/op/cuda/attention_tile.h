/* SPDX-License-Identifier: Apache-2.0
 *
 * attention_tile.h: the two products that all of attention is made of, on tiles in shared memory, in f32.
 *
 * A block of 256 threads holds a 64 x 64 tile of scores, 4 x 4 adjacent ones in each thread: `down` is its first row,
 * `across` its first column.  The first product is scores = a b^T, for 64 rows each of a and b, DEPTH columns of them at a
 * time.  The second takes such a tile from shared memory: results += tile c, for 64 rows of c and WIDTH columns.  There a
 * thread has its 4 rows, and of every 64 columns the 4 adjacent ones at `across`.  Inner indices ascend in both.
 *
 * Tiles of a and b are transposed, so that both products read 16 bytes at once and threads of a warp read neighbours.
 */
#ifndef ATTENTION_TILE_H
#define ATTENTION_TILE_H
#include "attend.h"

enum { EDGE = 64, DEPTH = 32, PITCH = EDGE + 4, SIDE = 4 };

FN int down(void) { return (int)(threadIdx.x / 16) * SIDE; }
FN int across(void) { return (int)(threadIdx.x % 16) * SIDE; }

/* n elements of v at p: 16 bytes at once where that is possible. */
template <int N> FN void take_some(float (&v)[N], const real *p, long n)
{
    bool whole = n >= N && (uintptr_t)p % (WIDE * sizeof *p) == 0;
    take(v, p, 0, n, whole ? 0 : 1);
}

/* to[k * PITCH + r] = m(first + r, from + k), 64 rows, DEPTH columns of `width`. */
FN void load_turned(float *to, Matrix m, long first, long from, long width)
{
    int r = threadIdx.x % EDGE, k = (int)(threadIdx.x / EDGE) * 8;
    float v[8];
    take_some(v, m.at + (first + r) * m.step + from + k, first + r < m.rows ? width - from - k : 0);
    UNROLL
    for (int j = 0; j < 8; j++)
        to[(k + j) * PITCH + r] = v[j];
}

/* to[r * WIDTH + j] = m(first + r, from + j), DEPTH rows. */
template <int WIDTH> FN void load_rows(float *to, Matrix m, long first, long from, long width)
{
    for (int i = threadIdx.x * 8; i < DEPTH * WIDTH; i += BLOCK * 8) {
        int r = i / WIDTH, j = i % WIDTH;
        float v[8];
        take_some(v, m.at + (first + r) * m.step + from + j, first + r < m.rows ? width - from - j : 0);
        store(to + i, v);
    }
}

/* s = a b^T.  room: 2 * DEPTH * PITCH floats that nobody reads any more once all threads are here. */
FN void score_tile(float (&s)[SIDE][SIDE], float *room, Matrix a, long i, Matrix b, long j, long width)
{
    UNROLL
    for (int r = 0; r < SIDE; r++)
        UNROLL
        for (int c = 0; c < SIDE; c++)
            s[r][c] = 0;
    for (long from = 0; from < width; from += DEPTH) {
        __syncthreads();
        load_turned(room, a, i, from, width);
        load_turned(room + DEPTH * PITCH, b, j, from, width);
        __syncthreads();
        for (int k = 0; k < DEPTH; k++) {
            float x[SIDE], y[SIDE];
            load(x, room + k * PITCH + down());
            load(y, room + (DEPTH + k) * PITCH + across());
            UNROLL
            for (int r = 0; r < SIDE; r++)
                UNROLL
                for (int c = 0; c < SIDE; c++)
                    s[r][c] += x[r] * y[c];
        }
    }
}

/* Lay the tile down, turned: tile[column * PITCH + row]. */
FN void keep_tile(float *tile, const float (&s)[SIDE][SIDE])
{
    UNROLL
    for (int c = 0; c < SIDE; c++) {
        float column[SIDE];
        UNROLL
        for (int r = 0; r < SIDE; r++)
            column[r] = s[r][c];
        store(tile + (across() + c) * PITCH + down(), column);
    }
}

/* o += tile c[first .. first+63][from .. from+WIDTH-1].  room as above: DEPTH * WIDTH floats. */
template <int WIDTH>
FN void add_product(float (&o)[SIDE][WIDTH / 16], const float *tile, float *room, Matrix c, long first, long from, long width)
{
    for (int half = 0; half < EDGE; half += DEPTH) {
        __syncthreads();
        load_rows<WIDTH>(room, c, first + half, from, width);
        __syncthreads();
        for (int k = 0; k < DEPTH; k++) {
            float x[SIDE], y[SIDE];
            load(x, tile + (half + k) * PITCH + down());
            UNROLL
            for (int at = 0; at < WIDTH; at += EDGE) {
                load(y, room + k * WIDTH + at + across());
                UNROLL
                for (int r = 0; r < SIDE; r++)
                    UNROLL
                    for (int j = 0; j < SIDE; j++)
                        o[r][at / 16 + j] += x[r] * y[j];
            }
        }
    }
}

/* The results of this thread, times `factor[row]`, to rows first .. of m, columns from .. of `width`. */
template <int WIDTH>
FN void put_rows(Out m, const float (&o)[SIDE][WIDTH / 16], const float (&factor)[SIDE], long first, long from, long width)
{
    UNROLL
    for (int r = 0; r < SIDE; r++) {
        long row = first + down() + r;
        UNROLL
        for (int at = 0; at < WIDTH; at += EDGE) {
            long j = from + at + across();
            real *to = m.at + row * m.step + j;
            float v[SIDE];
            UNROLL
            for (int i = 0; i < SIDE; i++)
                v[i] = o[r][at / 16 + i] * factor[r];
            if (row < m.rows && j < width)
                leave(to, v, 0, width - j, width - j >= SIDE && (uintptr_t)to % (SIDE * sizeof *to) == 0 ? 0 : 1);
        }
    }
}
#endif
