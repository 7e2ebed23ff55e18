/* SPDX-License-Identifier: Apache-2.0
 *
 * wire.h: who has a wire when: the one rule of simulator, previews and copies to the host.
 *
 * A transfer starts when both sides have begun it and the wire is free.  It holds the wire for cost_wire or cost_host, and
 * arrives cost_latency later.  A half duplex wire is one wire for both directions; it goes to the first one ready.
 *
 * Only the rule is shared.  The simulator meets messages one by one.  A preview knows the queue of every pair before it runs,
 * and compares thousands of cuts with it.
 */
#ifndef WIRE_H
#define WIRE_H
#include "cost.h"

static inline Ns later(Ns a, Ns b)
{
    return a > b ? a : b;
}

/* The wire from one of n devices to another, in a table of n * n. */
static inline int wire_of(const Cost *c, int n, int from, int to)
{
    return from > to && cost_half(c, from, to) ? to * n + from : from * n + to;
}

/* The start of a transfer that is ready then and takes so long.  free: the time when the wire is free, before and after. */
static inline Ns wire_take(Ns *free, Ns ready, Ns takes)
{
    Ns start = later(ready, *free);
    *free = start + takes;
    return start;
}
#endif
