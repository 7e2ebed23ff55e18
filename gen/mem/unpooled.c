/* SPDX-License-Identifier: Apache-2.0
 *
 * unpooled.c: the arenas of a finished plan if every buffer of every micro-batch had an address of its own.
 *
 * Problem: pools are a price for readable code: a tensor is found at one literal offset in the slot of any micro-batch.
 *
 * Method: without pools the buffers above the states are plain rectangles.  gen/pack/, which packs published instances, packs
 * these too.  So the price is known.  Where its search shows that nothing lower exists, that is proven of the arena with pools
 * as well.  An arena as high as the bytes alive at once is proven by that, and is not packed again.  Where steps overlap, the
 * rectangles are those of the shortest run.
 *
 *   needs   a plan after mem     fills   dev[].unpooled, dev[].proven     fails   never
 *
 * Cost: that of the search, a quarter of ALONE_STEPS at most, which is only printed.  Not handled: nothing is said of more
 * rectangles than the root of that.
 */
#include "mem.h"
#include "budgets.h"

Block *mem_blocks(const Mem *m, int *n)
{
    VEC(Block) all = {0};
    for (int b = m->from; b < m->until; b++)
        for (int mb = 0; mb < m->micro; mb++)
            if (mem_alive(m, b, mb)) {
                const Span *s = mem_live(m, b, mb);
                *PUSH(&all) = (Block){s->first, s->last + 1, aligned(m->p->buf.at[b].bytes), 0};
            }
    *n = all.n;
    return all.at;
}

static void pack_device(Plan *p, int device)
{
    DevicePlan *d = &p->dev.at[device];
    d->unpooled = d->proven = d->bound;
    if (d->arena <= d->bound)
        return;
    Mem m = mem_new(p, device);
    int n;
    Block *block = mem_blocks(&m, &n);
    d->unpooled = 0;
    if (4 * (int64_t)n * n > ALONE_STEPS)
        return;
    Packing r = pack_fit(block, n, 0, ALONE_STEPS / 4);
    const char *fault = pack_fault(block, n, r.height);
    if (fault)
        die("device %d: packed without pools, %s", device, fault);
    d->unpooled = d->state + r.height < d->arena ? d->state + r.height : d->arena;
    d->proven = d->state + r.bound > d->bound ? d->state + r.bound : d->bound;
}

void mem_unpooled(Plan *p)
{
    for (int d = 0; d < p->devices; d++) {
        Room *scratch = mem_room(), *room = mem_in(scratch);
        pack_device(p, d);
        mem_in(room);
        mem_drop(scratch);
    }
}

const char *mem_proof(const DevicePlan *d)
{
    if (d->arena == d->bound)
        return "proven optimal: as high as the bytes alive at once";
    if (d->arena == d->proven)
        return "proven optimal: nothing lower exists, with pools or without";
    double gap = 100.0 * (double)(d->arena - d->proven) / (double)d->proven;
    if (d->unpooled == 0 || d->unpooled == d->arena)
        return strf("at most %.1f %% above the least; pools cost at most %s", gap, size_text(d->arena - d->proven));
    return strf("at most %.1f %% above the least; without pools %s%s, so pools cost %s%s", gap, size_text(d->unpooled),
                d->unpooled == d->proven ? "" : " or less", d->unpooled == d->proven ? "" : "at least ",
                size_text(d->arena - d->unpooled));
}
