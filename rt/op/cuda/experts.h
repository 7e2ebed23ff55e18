/* SPDX-License-Identifier: Apache-2.0
 *
 * experts.h: rows of experts that a device has, on GPUs: those of its own experts alone, in front in their room, where stages
 * of several devices have whole experts (rt/op/experts_team.c).
 */
#ifndef CUDA_EXPERTS_H
#define CUDA_EXPERTS_H
#include "kernel.h"

/* Its experts are from .. to-1; offset 0: all rows are here. */
struct Mine {
    const int32_t *offset;
    long from, to;
    FIELD long first() const { return offset ? offset[from] : 0; }
    FIELD bool has(long slot) const { return !offset || (slot >= offset[from] && slot < offset[to]); }
};

static inline Mine mine_of(const Stage *st, const int32_t *offset, long experts)
{
    const long first = st->team ? st->shard * experts : 0;
    return Mine{offset, first, first + experts};
}

static __global__ void zeros_behind(real *y, Mine m, long rows, long width)
{
    GRID(e, rows * width)
        if (quotient(e, width) >= m.offset[m.to] - m.first())
            set(y, e, 0.0f);
}

static inline void fill_behind(Stage *st, real *y, Mine m, long rows, long width)
{
    LAUNCH(zeros_behind, blocks_for(rows * width), (unsigned)BLOCK, st, y, m, rows, width);
}
#endif
