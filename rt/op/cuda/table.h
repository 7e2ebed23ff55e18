/* SPDX-License-Identifier: Apache-2.0
 *
 * table.h: calls behind each other that go to the GPU as one kernel (gather_row).  A table of their operands is its argument.
 */
#ifndef TABLE_H
#define TABLE_H
#include "kernel.h"
#include <string.h>

/* Calls behind each other go to the GPU as tables (cuda/device.h): a block belongs to the last row that begins before it. */
template <class Line> struct Table {
    enum { MOST = GATHERED / sizeof(Line) };
    Line line[MOST];
    int n;
    unsigned blocks;
    FIELD int of_block() const
    {
        int at = 0;
        for (int step = 128; step; step /= 2)
            if (at + step < n && line[at + step].first <= blockIdx.x)
                at += step;
        return at;
    }
};

template <class Line> static Table<Line> table_of(const void *rows, int n)
{
    Table<Line> t = {};
    memcpy(t.line, rows, (size_t)n * sizeof(Line));
    t.n = n;
    for (int i = 0; i < n; i++) {
        t.line[i].first = t.blocks;
        t.blocks += t.line[i].blocks;
    }
    return t;
}

#endif
