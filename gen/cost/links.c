/* SPDX-License-Identifier: Apache-2.0
 *
 * links.c: the cost of a message between two devices, and of a copy between a device and its host.
 *
 * The model is the oldest one, latency plus bytes over rate (Hockney, 1994).  The two parts are kept apart because they act
 * apart: bytes occupy the wire, so that the next message waits for them; latency delays this message alone.  Each ordered
 * pair of devices has its own wire; `duplex: half` puts both directions on one.
 *
 * Several entries of `links:` may name a pair.  One that names single devices wins over one that names a whole entry of
 * devices, and `host-host`, of devices on two machines, stands between.  Among equally exact ones the slowest counts, so that
 * the order of the file does not matter.  A pair without an entry has the figures of the transport, from targets.def.  No entry
 * is faster than the transport can be.
 *
 * Stages of several devices send each message as often, and wait for the slowest.
 *
 * Planners that take one bandwidth for all links (PipeDream's defaults are two numbers for a whole cluster) misplace cuts on
 * machines with one slower link.  Here each pair has its own measured or declared figures.
 *
 * Measured links are curves instead of rates, because in shared memory a large message runs slower: the caches end.
 *
 * Not handled: links that several pairs share, such as one network card for four devices.
 */
#include "prof.h"

static const Ns host_latency = 10000;   /* of starting a copy and noticing its end */
static const double host_rate = 4e9;

/* -1: name does not mean d; 0: it means d among others; 1: d alone */
static int meant(const Device *d, const char *name)
{
    return !strcmp(d->name, name) ? 1 : device_is(d, name, strlen(name)) ? 0 : -1;
}

/* How exactly an entry names the pair, or a device and its host (b NULL); -1: not at all. */
static int exact(const Model *m, const LinkSpec *x, const Device *a, const Device *b)
{
    if (!x->from)
        return b && host_of(m, a) != host_of(m, b) ? 1 : -1;
    int first = meant(a, x->from), second = x->to && b ? meant(b, x->to) : 0;
    if (!x->to != !b || first < 0 || second < 0)
        return -1;
    return first + second;
}

static Wire wire_of(const Model *m, const Device *a, const Device *b, Wire otherwise)
{
    Wire w = otherwise;
    int best = -1;
    for (int i = 0; i < m->links.n; i++) {
        const LinkSpec *x = &m->links.at[i];
        int how = b ? (int)max_of(exact(m, x, a, b), exact(m, x, b, a)) : exact(m, x, a, NULL);
        if (how < 0 || how < best || x->rate <= 0)
            continue;
        Wire with = {.rate = x->rate, .latency = x->latency >= 0 ? x->latency : otherwise.latency, .half = x->half};
        if (how > best || with.rate < w.rate)
            w = with;
        best = how;
    }
    return w;
}

static Wire slower(Wire a, Wire b)
{
    return (Wire){.rate = a.rate < b.rate ? a.rate : b.rate, .latency = a.latency > b.latency ? a.latency : b.latency,
                  .half = a.half || b.half};
}

/* Between device k of one stage and device k ^ with of another, or of the same: the slowest. */
static Wire between_teams(const Model *m, int i, int j, int with)
{
    const Transport *t = transport_of(m);
    Wire plain = {.rate = t->rate, .latency = t->latency}, worst = plain;
    for (int k = 0; k < m->plan.tensor; k++) {
        Wire one = wire_of(m, team_member(m, i, k), team_member(m, j, k ^ with), plain);
        one.rate = t->most > 0 && one.rate > t->most ? t->most : one.rate;      /* however fast the wire is */
        worst = k ? slower(worst, one) : one;
    }
    return worst;
}

static void team_links(Cost *c, const Model *m)
{
    int levels = 0;
    while (1 << levels < m->plan.tensor)
        levels++;
    Wire *wire = alloc(sizeof *wire * (size_t)(m->devices.n * levels + 1));
    for (int i = 0; i < m->devices.n; i++)
        for (int k = 0; k < levels; k++)
            wire[i * levels + k] = between_teams(m, i, i, 1 << k);
    c->levels = levels;
    c->team_wire = wire;
}

void links_of(Cost *c, const Model *m)
{
    const Transport *t = transport_of(m);
    int n = m->devices.n;
    Wire *wire = alloc(sizeof *wire * (size_t)(n * n)), *host = alloc(sizeof *host * (size_t)n);
    for (int i = 0; i < n; i++) {
        const Device *d = &m->devices.at[i];
        host[i] = wire_of(m, d, NULL, (Wire){.rate = host_rate, .latency = host_latency});
        for (int j = 0; j < n; j++)
            wire[i * n + j] = between_teams(m, i, j, 0);
    }
    c->latency = t->latency;
    c->link = t->rate;
    c->host = host_rate;
    c->devices = n;
    c->wire = wire;
    c->host_wire = host;
    team_links(c, m);
}

void links_measured(Cost *c, const Curve *message, Ns latency, const Curve *copy)
{
    Wire *wire = alloc(sizeof *wire * (size_t)(c->devices * c->devices)), *host = alloc(sizeof *host * (size_t)c->devices);
    for (int i = 0; i < c->devices * c->devices; i++)
        wire[i] = message ? (Wire){.rate = c->link, .latency = latency, .curve = message} : c->wire[i];
    for (int i = 0; i < c->devices; i++)
        host[i] = copy ? (Wire){.rate = c->host, .curve = copy} : c->host_wire[i];
    Wire *team = alloc(sizeof *team * (size_t)(c->devices * c->levels + 1));
    for (int i = 0; i < c->devices * c->levels; i++)
        team[i] = message ? wire[0] : c->team_wire[i];
    c->wire = wire;
    c->host_wire = host;
    c->team_wire = team;
    c->latency = message ? latency : c->latency;
}

/* bytes / rate in ns, rounded up, without overflow */
static Ns rate_ns(double rate, Bytes bytes)
{
    int64_t per_ms = (int64_t)(rate / 1000);
    per_ms += per_ms < 1;
    return bytes / per_ms * 1000000 + (bytes % per_ms * 1000000 + per_ms - 1) / per_ms;
}

/* On the straight line between the two nearest points, from (0, 0), rounded up; behind the last at its average rate. */
static Ns curve_ns(const Curve *c, Bytes bytes)
{
    int i = 0;
    while (i < c->n && c->bytes[i] < bytes)
        i++;
    if (i == c->n)
        return (Ns)((double)c->ns[c->n - 1] * ((double)bytes / (double)c->bytes[c->n - 1])) + 1;
    Bytes from = i ? c->bytes[i - 1] : 0;
    Ns low = i ? c->ns[i - 1] : 0;
    Bytes span = c->bytes[i] - from;
    return low + ((c->ns[i] - low) * (bytes - from) + span - 1) / span;
}

static Ns wire_ns(const Wire *w, Bytes bytes)
{
    return w->curve ? curve_ns(w->curve, bytes) : rate_ns(w->rate, bytes);
}

static Wire between(const Cost *c, int from, int to)
{
    return c->wire ? c->wire[from * c->devices + to] : (Wire){.rate = c->link, .latency = c->latency};
}

Ns cost_wire(const Cost *c, int from, int to, Bytes bytes)
{
    Wire w = between(c, from, to);
    return wire_ns(&w, bytes);
}

/* Both at once; where the directions take turns, one after the other. */
Ns links_swap(const Cost *c, int device, int level, Bytes bytes, int64_t messages)
{
    const Wire *w = &c->team_wire[device * c->levels + level];
    return messages * ((w->half ? 2 : 1) * wire_ns(w, (bytes + messages - 1) / messages) + w->latency);
}

bool links_alike(const Cost *c, int a, int b)
{
    for (int k = 0; k < c->levels; k++) {
        const Wire *x = &c->team_wire[a * c->levels + k], *y = &c->team_wire[b * c->levels + k];
        if (x->rate != y->rate || x->latency != y->latency || x->half != y->half)
            return false;
    }
    return true;
}

Ns cost_latency(const Cost *c, int from, int to)
{
    return between(c, from, to).latency;
}

bool cost_half(const Cost *c, int from, int to)
{
    return between(c, from, to).half;
}

Ns cost_host(const Cost *c, int device, Bytes bytes)
{
    if (!c->host_wire)
        return rate_ns(c->host, bytes);
    return c->host_wire[device].latency + wire_ns(&c->host_wire[device], bytes);
}

bool cost_host_half(const Cost *c, int device)
{
    return c->host_wire && c->host_wire[device].half;
}
