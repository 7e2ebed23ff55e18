/* SPDX-License-Identifier: Apache-2.0
 *
 * tensor.c: plan.tensor: how many devices share a stage, and which.
 *
 * The devices of a stage are neighbours in the list, and alike.  All that plans sees the first of each: the others hold as
 * much, make the same calls, and send what it sends.
 *
 * needs   train, devices, the rest of plan    fills   Model.devices anew    fails   status 3
 */
#include "schema.h"
#include <string.h>

void read_tensor(const Spot *s)
{
    s->m->plan.tensor_at = s->value->loc;
    read_count(s);
}

static int power_below(int n)
{
    int power = 1;
    while (2 * power <= n)
        power *= 2;
    return power;
}

static bool alike(const Device *a, const Device *b)
{
    return !strcmp(a->kind, b->kind) && !strcmp(a->kernels, b->kernels) && a->memory == b->memory && a->threads == b->threads;
}

/* What a stage of several devices does not go with yet. */
static void refuse_others(const Model *m)
{
    const PlanSpec *p = &m->plan;
    const char *one = "plan.tensor: 1";
    if (m->train.shard && (p->replicas > 1 || p->replicas_auto))
        err(p->tensor_at, strf("train.shard: none, or %s", one), "plan.tensor: %d, and train.shard deals out states that are "
            "whole on a device", p->tensor);
    if (m->device_order == ORDER_FREE)
        err(m->order_at, strf("order: given, or %s", one),
            "devices.order: free chooses one device for a stage, and plan.tensor wants %d", p->tensor);
}

void tensor_end(Model *m)
{
    PlanSpec *p = &m->plan;
    int t = p->tensor, most = power_below(t), blocks = (int)m->train.blocks;
    if (t < 2) {
        p->tensor = 1;
        return;
    }
    if (t != most)
        err(p->tensor_at, strf("%d", most), "plan.tensor: %d is no power of two", t);
    if (blocks < t)
        err(p->tensor_at, blocks > 1 ? strf("%d, or train.blocks: %d", blocks, t) : strf("train.blocks: %d", t),
            "plan.tensor: %d devices share sums of train.blocks: %d", t, blocks);
    refuse_others(m);
    if (m->devices.n % t)
        err(p->tensor_at, strf("list %d devices", (m->devices.n / t + 1) * t), "plan.tensor: %d, and %d devices", t,
            m->devices.n);
    for (int i = 0; i < m->devices.n; i++) {
        const Device *d = &m->devices.at[i], *first = &m->devices.at[i - i % t];
        if (!library_of(d)->anywhere || target_of(d)->paced)
            err(d->loc, "kind: cpu, kernels: portable", "plan.tensor: %d, and %s has no kernels that add over devices", t,
                d->name);
        if (!alike(d, first))
            err(d->loc, "give both the same", "%s and %s share a stage, plan.tensor: %d, and differ in kind, kernels, memory "
                "or threads", first->name, d->name, t);
    }
    for (int i = 0; i < m->devices.n; i += t)
        m->devices.at[i / t] = m->devices.at[i];
    m->devices.n /= t;
}
