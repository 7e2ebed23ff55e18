/* SPDX-License-Identifier: Apache-2.0
 *
 * two_ways.c: chimera: two pipelines on the same devices, the second one reversed.
 *
 * Problem: in 1F1B the first devices idle while the first micro-batches go down the pipeline, and the last ones while the last
 * come back.  A second pipeline in the other direction, with its own copy of the model, computes there.
 *
 * Method: each pipeline has half of the micro-batches, and takes them in units of p/2.  A slot holds one forward or one
 * backward.  Stage s has forward j of a unit in slot s + 2j, and its backward in slot 2p-1-s + 2j.  Stage s of one pipeline is
 * on device s, of the other on device p-1-s.  As p is even, no two computations of a device share a slot.  The next unit begins
 * 2p slots later.  The list of a device is its computations by slot.
 *
 * Source: Li and Hoefler, Chimera: Efficiently Training Large-Scale Neural Networks with Bidirectional Pipelines, 2021, section
 * 3; the units follow each other by what it calls direct concatenation.
 *
 * Cost: linear in the slots times the units.  A step takes 3m + 2(p-2) + (m/p-1)(p-2) units of F, I or W with messages free.
 * Device i holds p/2 + 1 + min(i, p-1-i) stages from F to B.  Parameters, gradients and moments exist twice.
 *
 * Not handled: more than two pipelines, forwards of two micro-batches in one call (other bits).  Where p is odd, or m no
 * multiple of p, order.c refuses.
 */
#include "sched.h"

/* The micro-batch of a unit that is in that slot, if the unit's first one is in slot `first`; -1: none. */
static int unit_mb(int stages, int slot, int first)
{
    int j = slot - first;
    return j >= 0 && j % 2 == 0 && j < stages ? j / 2 : -1;
}

static void put_slot(Plan *p, int device, int way, int slot)
{
    int stages = plan_stages(p), stage = way ? stages - 1 - device : device, half = stages / 2, m = plan_micro(p);
    for (int unit = 0; unit * half < m; unit++) {
        int at = slot - unit * 2 * stages, f = unit_mb(stages, at, stage), b = unit_mb(stages, at, 2 * stages - 1 - stage);
        int base = way * m + unit * half;
        if (f >= 0)
            sched_put(p, device, K_F, stage, base + f);
        if (b >= 0)
            sched_put(p, device, K_B, stage, base + b);
    }
}

int schedule_chimera(Plan *p)
{
    int stages = plan_stages(p), slots = 4 * plan_micro(p) + stages;
    for (int d = 0; d < stages; d++)
        for (int slot = 0; slot < slots; slot++)
            for (int way = 0; way < 2; way++)
                put_slot(p, d, way, slot);
    return 0;
}
