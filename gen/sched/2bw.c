/* SPDX-License-Identifier: Apache-2.0
 *
 * 2bw.c: one forward, one backward without a flush, with two weight versions.
 *
 * Method: step t of m micro-batches runs forward and backward on version max(0, t-1); W(t+1) = W(t) - lr g(W(t-1)).  The delay
 * is 1 on every stage, also on a single one, so the bits do not depend on the cuts.
 *
 * In flight: p-i on stage i.  Period with equal stages: m (f+b).  Two copies of the weights serve if the update of step t-1 is
 * there before the first forward of step t+1.  That forward runs p-1-i micro-batches ahead: m >= p-1.  The paper, and this
 * file, ask for m >= p.
 *
 * Clipping by global norm: the factor of step t is known when stage 0 has finished its backward.  Stage i finishes i
 * micro-batches earlier.  It holds its update that long and gathers the next step's gradient in a second buffer; stage 0 needs
 * none.  A longer hold would let a period of stage i ask for a forward of the next period of stage 0, and stages may meet in
 * between.
 *
 * Source: Narayanan, Phanishayee, Shi, Chen, Zaharia, Memory-Efficient Pipeline-Parallel DNN Training, 2021, section 3.1
 * (PipeDream-2BW: double-buffered weight updates).
 */
#include "sched.h"

int schedule_2bw(Plan *p)
{
    int m = (int)p->g->micro;
    bool norms = p->m->train.clip != 0 && !p->m->train.clip_each;
    if (p->chunks != 1 || m < p->devices)
        return 1;
    for (int d = 0; d < p->devices; d++)
        sched_async(p, d, (Pace){.warm = p->devices - d, .hold = norms ? d : 0, .delay = 1, .overlap = 1});
    return 0;
}
