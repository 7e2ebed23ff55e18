/* SPDX-License-Identifier: Apache-2.0
 *
 * walk.h: a thread has the same 16 bytes of columns in many rows of a dense matrix, so that what belongs to columns is read and
 * computed once, and no index is divided.  Adjacent threads have adjacent columns, then adjacent rows.
 *
 * A thread has at least FEW rows, which it reads before it writes the first, and MANY where blocks are enough for a GPU.  How
 * many changes no bit.  STEP is that of take(): 0 where every row begins at a multiple of 16 bytes, else 1.
 */
#ifndef WALK_H
#define WALK_H
#include "kernel.h"

enum { FEW = 4, MANY = 32, ENOUGH = 1056 };
struct Walk { Divisor groups; long rows; unsigned blocks; };
struct Walker { long column, first, step; };

static inline Walk walk_of(long rows, long width)
{
    long groups = ceil_div(width, WIDE), n = rows * groups, few = ceil_div(n, FEW * BLOCK), many = ceil_div(n, MANY * BLOCK);
    long blocks = few < ENOUGH ? few : many < ENOUGH ? (long)ENOUGH : many;
    return Walk{divisor_of(groups), rows, (unsigned)(blocks * BLOCK < groups ? ceil_div(groups, BLOCK) : blocks)};
}

/* Some threads have no rows. */
FN Walker walker_of(const Walk &t)
{
    int thread = (int)(blockIdx.x * BLOCK + threadIdx.x), row = quotient(thread, t.groups);
    int step = quotient((int)(gridDim.x * BLOCK), t.groups);
    return Walker{(long)(thread - row * (int)t.groups.by) * WIDE, row < step ? row : t.rows, step};
}

/* Row `row`, or instead of one behind the last row `first`. */
FN long row_within(const Walk &t, long row, long first) { return row < t.rows ? row : first; }
#endif
