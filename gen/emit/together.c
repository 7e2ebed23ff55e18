/* SPDX-License-Identifier: Apache-2.0
 *
 * together.c: messages that may leave as one.
 *
 * Problem: over NCCL each message is a kernel of the library, which costs host and GPU more than a small gradient does.  A
 * bucket of gradients is dozens of them.
 *
 * Method: begins with no other action between are a run.  Its messages of one pair may be one kernel if their other halves
 * stand in one run too.  That kernel can then go on as soon as the first of them could: no list waits for more than before, and
 * none that ended hangs.  Each side decides for itself, since the library matches messages one by one.
 *
 * Cost: linear in the lists, for each device; in a run, the distance between messages of a pair.
 *
 * Not handled: steps that overlap, evaluations.
 */
#include "stage.h"

static bool begins(const Actions *list, int i)
{
    return i >= 0 && i < list->n && (list->at[i].kind == K_SEND || list->at[i].kind == K_RECV);
}

/* Of each message of device d with device e, in this direction: where the run of its other half begins. */
static void find_halves(const Plan *p, int d, int e, ActionKind kind, int *half)
{
    const Actions *mine = &p->dev.at[d].list, *other = &p->dev.at[e].list;
    int run = 0;
    for (int i = 0, j = 0; i < mine->n; i++) {
        if (mine->at[i].kind != kind || mine->at[i].peer != e)
            continue;
        for (bool met = false; j < other->n && !met; j++) {
            run = begins(other, j) && !begins(other, j - 1) ? j : run;
            met = begins(other, j) && other->at[j].kind != kind && other->at[j].peer == d;
        }
        half[i] = run;
    }
}

/* The run that begins here, if some of its messages are of one pair, and all that are may leave as one. */
static int length_of(const Actions *list, const int *half, int from)
{
    int to = from;
    bool several = false;
    for (; begins(list, to); to++)
        for (int k = to - 1; k >= from; k--)
            if (list->at[k].kind == list->at[to].kind && list->at[k].peer == list->at[to].peer) {
                if (half[k] != half[to])
                    return 0;
                several = true;
                break;
            }
    return several ? to - from : 0;
}

int *together_runs(const Plan *p, int device)
{
    const Actions *list = &p->dev.at[device].list;
    int *run = alloc(sizeof *run * (size_t)(list->n + 1)), *half = alloc(sizeof *half * (size_t)(list->n + 1));
    if (!transport_of(p->m)->gpus || order_overlap(p) > 0)
        return run;
    for (int e = 0; e < p->devices; e++) {
        find_halves(p, device, e, K_SEND, half);
        find_halves(p, device, e, K_RECV, half);
    }
    for (int i = 0; i < list->n; i++)
        if (begins(list, i) && !begins(list, i - 1))
            run[i] = length_of(list, half, i);
    return run;
}
