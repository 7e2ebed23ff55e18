/* SPDX-License-Identifier: Apache-2.0
 *
 * cost.c: how long each call takes on each device.
 *
 *   needs   Graph; devices and links of the Model; a profile, if there is one
 *   fills   ns of every operator on every class of devices, wires, measured, signature
 *   fails   status 5 if the profile is unreadable, of another machine, or lacks a call of this graph
 *
 * Times come from a profile (prof.c) or from the roofline of the devices' descriptions (roof.c), never from both: an operator
 * that was measured beside one that was guessed compares apples with pears.  Devices that take the same time for every call
 * are one class, so that the table is as large as the model and the number of different devices, not of devices.
 *
 * Cost: linear in operators and classes, times the log of the profile's lines.
 */
#include "cost.h"

static void classify(Cost *c, const Model *m, Ints *first)
{
    for (int d = 0; d < m->devices.n; d++) {
        int k = 0;
        while (k < first->n && !roof_alike(&m->devices.at[first->at[k]], &m->devices.at[d]))
            k++;
        if (k == first->n)
            *PUSH(first) = d;
        *PUSH(&c->of) = k;
    }
    c->classes = first->n;
}

Cost *cost(const Graph *g, const Model *m, const char *profile)
{
    Cost *c = alloc(sizeof *c);
    Ints first = {0};           /* by class: a device of it */
    c->signature = "estimate";
    classify(c, m, &first);
    c->ns = alloc(sizeof *c->ns * (size_t)c->classes);
    for (int k = 0; k < c->classes; k++)
        c->ns[k] = alloc(sizeof **c->ns * (size_t)g->op.n);
    links_of(c, m);
    if (profile && c->classes > 1)
        fail(EXIT_STALE, "%s: a profile measures one sort of device, and %s has %d: --estimate prices them", profile,
             m->path, c->classes);
    if (profile) {
        profile_read(c, g, m, profile);
        return c;
    }
    for (int k = 0; k < c->classes; k++)
        for (int o = 0; o < g->op.n; o++)
            c->ns[k][o] = roof_op(&m->devices.at[first.at[k]], g->compute, &g->op.at[o]);
    return c;
}

Ns cost_op(const Cost *c, int device, int op)
{
    return c->ns[c->of.at[device]][op];
}

/* Sums over a whole step stay far from overflow. */
void check_cost(const Graph *g, const Cost *c)
{
    Ns most = INT64_MAX / 16 / (g->micro > 0 ? g->micro : 1);
    for (int k = 0; k < c->classes; k++) {
        Ns sum = 0;
        for (int o = 0; o < g->op.n; o++) {
            if (c->ns[k][o] < 0 || c->ns[k][o] > most - sum)
                die("cost: %s takes %lld ns", g->op.at[o].name, (long long)c->ns[k][o]);
            sum += c->ns[k][o];
        }
    }
    for (int i = 0; i < c->devices * c->devices; i++)
        if (c->wire[i].latency < 0 || !(c->wire[i].rate > 0))
            die("cost: a message between devices %d and %d takes %lld ns and %g bytes/s", i / c->devices, i % c->devices,
                (long long)c->wire[i].latency, c->wire[i].rate);
}
