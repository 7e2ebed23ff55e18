/* SPDX-License-Identifier: Apache-2.0
 *
 * two_ways.c: chimera and bitpipe: two pipelines on the same devices, the second one reversed.
 *
 * Problem: in 1F1B the first devices idle while the first micro-batches go down the pipeline, and the last ones while the last
 * come back.  A second pipeline in the other direction, with its own copy of the model, computes there.
 *
 * Method: each pipeline has half of the micro-batches, and takes them in units of p/2.  A slot holds one forward or one
 * backward.  With C chunks in the pipeline, chunk c has forward j of a unit in slot c + 2j, and its backward in slot
 * 2C-1-c + 2j.  The next unit begins 2C slots later.  The list of a device is its computations by slot.
 *
 *   chimera   C = p.  Chunk c of one pipeline is on device c, of the other on device p-1-c.  A step takes 3m + 2(p-2) +
 *             (m/p-1)(p-2) units of F, I or W with messages free.  Device i holds p/2 + 1 + min(i, p-1-i) chunks from F to B
 *   bitpipe   C = 2p, and each pipeline is folded.  A step takes 6m + 2(p-2) + (m/p-1)(p-2) units of a chunk's F, I or W.
 *             Device i holds 3p/2 + 1 + min(i, p-1-i) chunks
 *
 * As p is even, no two computations of a device share a slot.  Chunks c and p+c of two folded pipelines are on one device, and
 * slots of the same parity; but a unit is through with one of them, after p slots, when the other begins.
 *
 * Source: Li and Hoefler, Chimera: Efficiently Training Large-Scale Neural Networks with Bidirectional Pipelines, 2021, section
 * 3; the units follow each other by what it calls direct concatenation.  Wu, Chen and Yu, BitPipe: Bidirectional Interleaved
 * Pipeline Parallelism for Accelerating Large Models Training, 2024.
 *
 * Cost: linear in the slots times the units and chunks.  Parameters, gradients and moments exist twice.
 *
 * Not handled: more than two pipelines, forwards of two micro-batches in one call (other bits).  Where p is odd, or m no
 * multiple of p, order.c refuses.
 */
#include "sched.h"

/* The micro-batch of a unit that is in that slot, if the unit's first one is in slot `first`; -1: none. */
static int unit_mb(int half, int slot, int first)
{
    int j = slot - first;
    return j >= 0 && j % 2 == 0 && j < 2 * half ? j / 2 : -1;
}

static void put_slot(Plan *p, int device, int way, int chunk, int slot)
{
    int half = plan_stages(p) / 2, m = plan_micro(p), round = 2 * plan_chunks(p);
    for (int unit = 0; unit * half < m; unit++) {
        int at = slot - unit * round, f = unit_mb(half, at, chunk), b = unit_mb(half, at, round - 1 - chunk);
        int base = way * m + unit * half;
        if (f >= 0)
            sched_put(p, device, K_F, chunk, base + f);
        if (b >= 0)
            sched_put(p, device, K_B, chunk, base + b);
    }
}

int schedule_two_ways(Plan *p)
{
    int chunks = plan_chunks(p), slots = 4 * plan_micro(p) * chunks / plan_stages(p) + plan_stages(p);
    for (int d = 0; d < plan_stages(p); d++)
        for (int slot = 0; slot < slots; slot++)
            for (int way = 0; way < 2; way++)
                for (int c = 0; c < chunks; c++)
                    if (plan_home(p, way, c) == d)
                        put_slot(p, d, way, c, slot);
    return 0;
}
