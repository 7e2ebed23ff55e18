/* SPDX-License-Identifier: Apache-2.0
 *
 * expand.c: lines that stand for rows of several kinds.
 *
 *   BatchNorm    BatchStat takes mean and variance of the micro-batch, BatchNormalize reads them, and update.c puts a
 *                BatchTrack behind the step.  The running statistics have the path of the line, as PyTorch names them.
 *
 * The first row has the line's path and a name behind it, the last one the path itself: it has the line's result.
 */
#include "front.h"

int batch_norm(Scope *s, const Node *line, const char *path, Op o)
{
    Op stat = {.attr = {NULL, 0, 0}, .owner = path};
    *PUSH(&stat.in) = o.in.at[0];
    attr_set_float(&stat, "momentum", attr_find(&o, "momentum")->f);
    attr_set(&stat, "each", attr_int(&o, "each"));
    int first = op_new(s, line, path_join(path, "stat"), row_find("BatchStat"), stat);
    for (int i = 0; i < 2; i++)
        *PUSH(&o.in) = s->b->g->op.at[first].out.at[i];
    return op_new(s, line, path, row_find("BatchNormalize"), o);
}
