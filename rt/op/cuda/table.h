/* SPDX-License-Identifier: Apache-2.0
 *
 * table.h: calls behind each other that go to the GPU as one kernel (gather_row).  A table of their operands is its argument.
 */
#ifndef TABLE_H
#define TABLE_H
#include "kernel.h"
#include <string.h>

/* Calls behind each other go to the GPU as tables (cuda/device.h): a block belongs to the last row that begins before it. */
template <class Row> struct Table {
    enum { MOST = GATHERED / sizeof(Row) };
    Row row[MOST];
    int n;
    unsigned blocks;
    FIELD int of_block() const
    {
        int at = 0;
        for (int way = 128; way; way /= 2)
            if (at + way < n && row[at + way].first <= blockIdx.x)
                at += way;
        return at;
    }
};

template <class Row> static Table<Row> table_of(const void *rows, int n)
{
    Table<Row> t = {};
    memcpy(t.row, rows, (size_t)n * sizeof(Row));
    t.n = n;
    for (int i = 0; i < n; i++) {
        t.row[i].first = t.blocks;
        t.blocks += t.row[i].blocks;
    }
    return t;
}

#endif
