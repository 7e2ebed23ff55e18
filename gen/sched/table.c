/* SPDX-License-Identifier: Apache-2.0
 *
 * table.c: the lists of a file, which config/table.c has read and judged: as they stand there.  Where weight gradients are
 * apart in some cells, they are in all: a chunk has one form of backward.
 */
#include "sched.h"

int schedule_table(Plan *p)
{
    const OrderTable *t = p->m->plan.table;
    if (!t || t->devices != plan_stages(p) || t->micro != plan_micro(p))
        return 1;
    for (int d = 0; d < t->devices; d++)
        for (EACH(const TableCell, x, t->line.at[d])) {
            ActionKind kind = x->kind == 'F' ? K_F : x->kind == 'W' ? K_W : x->kind == 'I' || t->split ? K_I : K_B;
            sched_put(p, d, kind, x->chunk, x->mb);
            if (t->split && x->kind == 'B')
                sched_put(p, d, K_W, x->chunk, x->mb);
        }
    return 0;
}
