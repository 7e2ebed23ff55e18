/* SPDX-License-Identifier: Apache-2.0
 *
 * fuse: which operators run as one kernel.
 *
 * A group is a run of operators that one call does together; no later pass cuts inside one, and recomputation repeats
 * it whole.  Which pairs are worth it is a fact of a machine, and is decided by rows of its profile, never by taste; a
 * pair can only be chosen if rt/op/ has a kernel for it and ops.def a row.  There is none yet, so every operator is
 * a group of its own, numbered by its first operator.
 *
 * needs   a whole graph.  fills  op->group.  keeps  all else.  Groups never hold operators of two phases.
 */
#include "dpgen.h"

void fuse(Graph *g)
{
    for (int i = 0; i < g->op.n; i++)
        g->op.at[i].group = i;
}
