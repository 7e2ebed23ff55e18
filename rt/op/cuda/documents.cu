/* SPDX-License-Identifier: Apache-2.0
 *
 * PositionEmbedding where several documents are packed into a sample: formulas and order as in rt/op/position.c.  Backward: a
 * thread has a column of a row of the table, and walks the numbers of all samples, which its block reads alike.
 */
#include "kernel.h"

static __global__ void put_positions(real *y, const real *x, const int32_t *documents, const real *weight, long batch, long seq,
                                     long width, long offset)
{
    GRID(i, batch * seq * width) {
        long row = quotient(i, width), j = i - row * width, first = quotient(row, seq) * seq, begin = row;
        while (begin > first && documents[begin - 1] == documents[row])
            begin--;
        set(y, i, one(x, i) + one(weight, (row - begin + offset) * width + j));
    }
}

static __global__ void add_positions(float *dweight, const real *dy, const int32_t *documents, int acc, long batch, long seq,
                                     long width, long offset)
{
    long p = (long)blockIdx.x - offset, j = (long)blockIdx.y * BLOCK + threadIdx.x, at = (p + offset) * width + j;
    if (j >= width)
        return;
    float sum = acc ? dweight[at] : 0.0f;
    for (long row = 0, t = 0; row < batch * seq && p >= 0; row++) {
        t = row % seq && documents[row] == documents[row - 1] ? t + 1 : 0;
        if (t == p)
            sum += one(dy, row * width + j);
    }
    dweight[at] = sum;
}

void position_documents_forward(Stage *st, real *y, const real *x, const int32_t *documents, const real *weight, long batch,
                                long seq, long width, long offset)
{
    LAUNCH(put_positions, blocks_for(batch * seq * width), (unsigned)BLOCK, st, y, x, documents, weight, batch, seq, width,
           offset);
}

void position_documents_backward(Stage *st, float *dweight, const real *dy, const int32_t *documents, int acc, long batch,
                                 long seq, long width, long rows, long offset)
{
    LAUNCH(add_positions, dim3((unsigned)rows, (unsigned)ceil_div(width, BLOCK)), (unsigned)BLOCK, st, dweight, dy, documents,
           acc, batch, seq, width, offset);
}
