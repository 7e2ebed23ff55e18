/* SPDX-License-Identifier: Apache-2.0
 *
 * even.c: runs of equal time, as people cut by hand.
 *
 * Method: each chunk ends where the base time of all operators so far is nearest to its part of the whole, at the next place
 * that may be cut.
 *
 * Source: systems that do not plan cut like this.  GPipe (Huang et al., 2019) and torchgpipe balance measured times;
 * Megatron-LM counts layers.
 *
 * Cost: linear.  Not handled: memory is not looked at, so the plan may not fit.
 */
#include "planner.h"

/* The time of operators 0..i-1 on the device of the first chunk. */
static Ns *sums(const Question *q)
{
    const Graph *g = q->p->g;
    Ns *sum = alloc(sizeof *sum * ((size_t)q->n + 1));
    for (int o = 0; o < g->nb; o++)
        sum[g->op.at[o].fwd + 1] += cost_op(q->p->c, stage_of(q->p, 0), o);
    for (int i = 0; i < q->n; i++)
        sum[i + 1] += sum[i];
    return sum;
}

bool even(const Question *q, Answer *a)
{
    const Ns *sum = sums(q);
    int *left = alloc(sizeof *left * ((size_t)q->n + 1));       /* places to cut from operator i on */
    *a = (Answer){.last = alloc(sizeof(int) * (size_t)q->chunks)};
    for (int i = q->n - 1; i >= 0; i--)
        left[i] = left[i + 1] + (q->cut[i] != CUT_NEVER);
    for (int s = 0, first = 0; s < q->chunks; first = a->last[s++] + 1) {
        /* last[s], such that chunks s+1 .. can still be cut; -1: there is none. */
        Ns want = sum[q->n] / q->chunks * (s + 1), best = INT64_MAX;
        int end = -1;
        for (int b = first; b < q->n; b++) {
            Ns off = sum[b + 1] > want ? sum[b + 1] - want : want - sum[b + 1];
            bool possible = q->cut[b] != CUT_NEVER && left[b + 1] >= q->chunks - s - 1 && (s + 1 < q->chunks || b == q->n - 1);
            if (possible && off < best) {
                best = off;
                end = b;
            }
            if (q->cut[b] == CUT_MUST)
                break;
        }
        a->last[s] = end;
        if (a->last[s] < 0)
            return false;
        const Price *k = price_best(q->prices, first, a->last[s], s);
        if (!k->fits)
            return false;
        a->value = k->forward + k->backward > a->value ? k->forward + k->backward : a->value;
    }
    return true;
}
