/* SPDX-License-Identifier: Apache-2.0
 *
 * roof.c: the time of a call that nobody measured.
 *
 * Source: Williams, Waterman, Patterson, "Roofline: an insightful visual performance model for multicore architectures",
 * 2009.  A call takes the larger of arithmetic over the rate of arithmetic and bytes over bandwidth, and a fixed cost.
 * Products (matrix products, attention) and everything else have separate rates.  On every machine of the last ten years the
 * first run on units that the second cannot use.  Passes between the products of one call are a separate roof, added: neither
 * begins before the other's end, as if they were separate calls.
 *
 * The figures are those of the device's description: `flops`, `vector`, `bandwidth`, `efficiency`, `call`, as in the files of
 * devices/, which say where each comes from.  Missing figures are those of its kernels in targets.def, for one core of a server
 * with 512-bit vectors, times `threads`.  A device that says `flops` and not `vector` keeps the proportion of the two there.
 *
 * Not handled: caches, the shape of a product (a thin one reaches less of the peak than a square one), two kernels on one
 * device at once.  Estimates therefore balance stages of one model well and predict seconds badly; `dpgen profile` measures.
 *
 * Whole numbers throughout: rates are rounded once, to units a microsecond.
 */
#include "prof.h"

static const Ns call_ns = 200;  /* of entering a kernel */
static const Mover mover_of_processor = {.fixed = 500, .per_us = 4000};

static int64_t per_us(double rate, double share)
{
    return (int64_t)(rate * (share > 0 ? share : 1) / 1e6);
}

static Speed speed_of(const Device *d, Type type)
{
    Speed r = library_of(d)->speed[type == BF16];
    int64_t threads = d->threads > 0 ? d->threads : 1;
    double flops = d->flops[type == BF16];
    r.product *= threads;
    r.other *= threads;
    r.memory *= threads;
    if (flops > 0) {            /* given: the rest keeps its proportion */
        r.other = (int64_t)((double)r.other * (flops / 1e6 / (double)r.product));
        r.product = per_us(flops, d->product_share);
    }
    if (d->vector > 0)
        r.other = per_us(d->vector, 0);
    if (d->bandwidth > 0)
        r.memory = per_us(d->bandwidth, d->memory_share);
    r.product += r.product < 1;
    r.other += r.other < 1;
    r.memory += r.memory < 1;
    return r;
}

/* amount / rate, in ns, rounded up, without overflow */
static Ns span_ns(int64_t amount, int64_t rate)
{
    return amount / rate * 1000 + (amount % rate * 1000 + rate - 1) / rate;
}

static Ns roof(int64_t flop, int64_t rate, Bytes moved, int64_t memory)
{
    Ns work = span_ns(flop, rate), move = span_ns(moved, memory);
    return work > move ? work : move;
}

Ns roof_op(const Device *d, Type compute, const Op *o, Bytes less, int launches, int calls)
{
    Speed r = speed_of(d, compute);
    Bytes moved = o->moved - o->pass_moved - less;
    if (row(o->row)->fp8)
        r.product = d->flops[2] > 0 ? per_us(d->flops[2], d->product_share) : 2 * r.product;
    return (d->call > 0 ? d->call : call_ns) * launches / calls + roof(o->pass_flop, r.other, o->pass_moved, r.memory)
        + roof(o->flop - o->pass_flop, row(o->row)->product ? r.product : r.other, moved, r.memory);
}

/* A GPU adds gradients at its bandwidth and pays each launch; a processor's part is one core's, whatever its description. */
Mover roof_mover(const Device *d, Type compute)
{
    Mover m = mover_of_processor;
    if (d && target_of(d)->gpu) {
        m.call = d->call > 0 ? d->call : call_ns;
        m.per_us = speed_of(d, compute).memory;
    }
    return m;
}

bool roof_alike(const Device *a, const Device *b)
{
    return !strcmp(a->kind, b->kind) && !strcmp(a->kernels, b->kernels) && a->threads == b->threads
        && a->flops[0] == b->flops[0] && a->flops[1] == b->flops[1] && a->flops[2] == b->flops[2] && a->vector == b->vector
        && a->bandwidth == b->bandwidth && a->product_share == b->product_share && a->memory_share == b->memory_share
        && a->call == b->call;
}
