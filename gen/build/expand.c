/* SPDX-License-Identifier: Apache-2.0
 *
 * expand.c: lines that stand for rows of several kinds.
 *
 *   BatchNorm    BatchStat takes mean and variance of the micro-batch, BatchNormalize reads them, and update.c puts a
 *                BatchTrack behind the step.  The running statistics have the path of the line, as PyTorch names them.
 *
 *   Round        Round makes codes, Unpack numbers of them.  A cut between the two sends the codes.
 *
 *   SoftmaxCrossEntropy with `top`: HitReport behind it, for evaluations.  One line of a model may have it.
 *                A LinearCrossEntropy with `top` counts hits itself (shape_ops.c).
 *
 * Of a BatchNorm, and of a Round, the first row has the line's path and a name behind it, the last one the path itself: it has
 * the result.
 */
#include "build.h"

int batch_norm(Scope *s, const Node *line, const char *path, Op o)
{
    /* Takes `over`, the last key, off the operator: there is one answer. */
    int64_t n = s->b->m->train.micro;
    if (attr_int(&o, "over") && n > 1)
        bad(node_get(line, "over")->loc, "over: micro; or one micro-batch; track: step pools the running statistics of a step",
            "BatchNorm over the whole step: each of its %lld micro-batches would wait for all others", (long long)n);
    o.attr.n--;
    Op stat = {.attr = {NULL, 0, 0}, .owner = path};
    *PUSH(&stat.in) = o.in.at[0];
    attr_set_float(&stat, "momentum", attr_find(&o, "momentum")->f);
    attr_set(&stat, "each", attr_int(&o, "each"));
    int first = op_new(s, line, path_join(path, "stat"), row_find("BatchStat"), stat);
    for (int i = 0; i < 2; i++)
        *PUSH(&o.in) = s->b->g->op.at[first].out.at[i];
    return op_new(s, line, path, row_find("BatchNormalize"), o);
}

int rounded(Scope *s, const Node *line, const char *path, Op o)
{
    int first = op_new(s, line, path_join(path, "code"), row_find("Round"), o);
    Op wide = {.attr = {NULL, 0, 0}};
    *PUSH(&wide.in) = s->b->g->op.at[first].out.at[0];
    return op_new(s, line, path, row_find("Unpack"), wide);
}

/* Not a SoftmaxCrossEntropy, whose HitReport does; and a Route has a `top` of another kind. */
static bool reports_hits(const Op *o)
{
    return attr_find(o, "top") && o->row != row_find("SoftmaxCrossEntropy") && o->row != row_find("Route");
}

int hits(Scope *s, const Node *line, const char *path, int row, Op o)
{
    Graph *g = s->b->g;
    for (int i = 0; i < g->op.n; i++)
        if (reports_hits(&g->op.at[i]))
            bad(line->loc, "remove one `top`", "line %d has a `top` too: an evaluation reports one share",
                g->op.at[i].loc.line);
    int loss = op_new(s, line, path, row, o);
    if (row != row_find("SoftmaxCrossEntropy"))
        return loss;
    Op report = {.attr = {NULL, 0, 0}, .owner = path};
    *PUSH(&report.in) = o.in.at[0];
    *PUSH(&report.in) = o.in.at[1];
    ATTRS(&report, {"ignore", attr_int(&o, "ignore")}, {"top", attr_int(&o, "top")});
    op_new(s, line, path_join(path, "hits"), row_find("HitReport"), report);
    return loss;
}
