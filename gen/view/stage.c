/* SPDX-License-Identifier: Apache-2.0
 *
 * stage.c: sums over one device of a finished plan.
 */
#include "view.h"

const char *holdings_text(const Bytes *at)
{
    const char *text = "";
    for (int k = 0; k < H_KINDS; k++)
        if (at[k] > 0)
            text = strf("%s%s %s %s", text, *text ? "," : "", holding_name[k], size_text(at[k]));
    return *text ? text : " nothing";
}

StageSum view_stage(const Plan *p, int device)
{
    const DevicePlan *d = &p->dev.at[device];
    StageSum s = {.idle = p->step - d->busy};
    for (int o = 0; o < p->g->nf; o++)
        s.ops += runs_on(p, o, device);
    for (int c = 0; c < plan_chunks(p); c++)
        s.flight += plan_holds(p, device, c) ? order_flight(p, c) : 0;
    for (EACH(const Routine, x, p->routine))
        for (int i = 0; x->device == device && !x->eval && x->kind != K_U && i < x->call.n; i++) {
            Ns ns = line_time(p, x, i);
            *(x->call.at[i].again ? &s.again : x->kind == K_F ? &s.forward : &s.backward) += ns;
        }
    /* Each tensor once that some backward call of the device reads, or would read if it were not made again. */
    const Graph *g = p->g;
    bool *seen = alloc((size_t)g->tensor.n);
    for (int o = g->nf; o < g->nb; o++)
        for (int i = 0; runs_on(p, o, device) && i < g->op.at[o].arg.n; i++) {
            const Arg *a = &g->op.at[o].arg.at[i];
            const Tensor *t = a->state || a->kind != ARG_READ ? NULL : &g->tensor.at[a->index];
            if (!t || t->kind != T_ACT || seen[a->index] || !runs_on(p, t->op, device))
                continue;
            seen[a->index] = true;
            Fate fate = (Fate)p->fate.at[a->index];
            s.kept += fate == FATE_KEEP;
            s.dropped += fate == FATE_RECOMPUTE;
            s.moved += fate == FATE_OFFLOAD;
            s.dropped_bytes += fate == FATE_RECOMPUTE ? t->bytes : 0;
            s.moved_bytes += fate == FATE_OFFLOAD ? t->bytes : 0;
        }
    const Bytes *alive = mem_at_peak(p, device);
    for (int b = 0; b < p->buf.n; b++)
        s.at_peak[holding_of(p, &p->buf.at[b])] += alive[b];
    Bytes sum = 0;
    for (int k = 0; k < H_KINDS; k++)
        sum += s.at_peak[k];
    if (sum != d->bound)
        die("view: what is alive at the peak of device %d adds up to %lld bytes, not %lld", device, (long long)sum,
            (long long)d->bound);
    return s;
}
