/* SPDX-License-Identifier: Apache-2.0
 *
 * cost.c: how long each call takes on each device.
 *
 *   needs   Graph; devices and links of the Model; a profile, if there is one
 *   fills   ns of every operator on every class of devices, wires, signature
 *   fails   status 5 if the profile is unreadable, of another machine, or lacks a call of this graph
 *
 * Times come from a profile (lookup.c) or from the roofline of the devices' descriptions (roof.c), never from both: measured
 * and guessed times cannot be compared.  Devices that take the same time for every call are one class.  The table is as large
 * as the model times the number of different devices.  A foreign graph brings its times.  Those of one machine hold for every
 * device; of a graph that has them by kind, a device takes the times of the kind that it is called by.
 *
 * Cost: linear in operators and classes, times the log of the profile's lines.
 */
#include "prof.h"

static const char graph_brought[] = "graph";

/* The kind of a graph that a device is; -1: the graph has none. */
static int kind_of(const Graph *g, const Device *d)
{
    const char *known = NULL;
    for (int k = 0; k < g->kind.n; k++) {
        if (device_is(d, g->kind.at[k], strlen(g->kind.at[k])))
            return k;
        known = strf("%s%s%s", known ? known : "", known ? ", " : "", g->kind.at[k]);
    }
    if (known)
        err(d->loc, "--devices FILE, with entries of these names", "device '%s': the graph has times for %s alone", d->name,
            known);
    return -1;
}

static void classify(Cost *c, const Graph *g, const Model *m, Ints *first)
{
    for (int d = 0; d < m->devices.n; d++) {
        int k = 0;
        const Device *a = &m->devices.at[d];
        while (k < first->n && !(roof_alike(&m->devices.at[first->at[k]], a) && links_alike(c, first->at[k], d)
                                 && kind_of(g, &m->devices.at[first->at[k]]) == kind_of(g, a)))
            k++;
        if (k == first->n)
            *PUSH(first) = d;
        *PUSH(&c->of) = k;
    }
    c->classes = first->n;
}

static Ns **new_times(const Cost *c)
{
    Ns **ns = alloc(sizeof *ns * (size_t)c->classes);
    for (int k = 0; k < c->classes; k++)
        ns[k] = alloc(sizeof **ns * (size_t)c->ops);
    return ns;
}

static Cost *new_cost(const Graph *g, const Model *m, Ints *first)
{
    Cost *c = alloc(sizeof *c);
    c->signature = "estimate";
    c->ops = g->op.n;
    c->how = "estimated";
    links_of(c, m);
    classify(c, g, m, first);
    c->ns = new_times(c);
    Mover *mover = alloc(sizeof *mover * (size_t)(m->devices.n + 1));
    for (int d = 0; d < m->devices.n; d++)
        mover[d] = roof_mover(&m->devices.at[d], g->compute);
    c->mover = mover;
    return c;
}

Cost *cost(const Graph *g, const Model *m, Profile *f)
{
    Ints first = {0}, same = {0};   /* by class: a device of it */
    Cost *c = new_cost(g, m, &first);
    if (g->timed && f)
        fail(EXIT_STALE, "the graph brings its own times, and has no use for a profile");
    for (int k = 0; g->timed && k < c->classes; k++) {
        int kind = kind_of(g, &m->devices.at[first.at[k]]);
        for (int o = 0; o < g->op.n; o++)
            c->ns[k][o] = kind >= 0 && g->op.at[o].on.n ? g->op.at[o].on.at[kind] : g->op.at[o].ns;
    }
    if (g->timed) {
        c->signature = graph_brought;
        return c;
    }
    if (f) {
        Cost *busy = new_cost(g, m, &same);
        priced(c, busy, g, m, f);
        c->busy = busy;
        busy->base = c;
        team_sums(c, g, m, &first);
        team_sums(busy, g, m, &first);
        return c;
    }
    Cost *loss = new_cost(g, m, &same);
    c->alone = new_times(c);
    loss->alone = new_times(c);
    for (int k = 0; k < c->classes; k++) {
        estimate(c, g, &m->devices.at[first.at[k]], k, false);
        estimate(loss, g, &m->devices.at[first.at[k]], k, true);
    }
    team_sums(c, g, m, &first);
    team_sums(loss, g, m, &first);
    loss->apart = c;
    c->adjoined = on_gpus(m) ? loss : NULL;
    return c;
}

int64_t cost_threads(const Model *m, int devices)
{
    int64_t n = 0;
    for (int d = 0; d < devices && d < m->devices.n; d++)
        n += target_of(&m->devices.at[d])->cores ? m->devices.at[d].threads : 0;
    return n * m->plan.tensor;          /* devices of a stage */
}

/* Threads of one process share its machine; ranks do unless each has a host of its own.  Busy was measured with so many
 * stages, alone with one; another number lies on the line between. */
static const Cost *beside_others(const Cost *c, const Model *m, int devices)
{
    devices *= m->plan.tensor;
    bool apart = transport_of(m)->ranks && m->hosts >= devices;
    int stages = c->profile ? profile_stages(c->profile) : 1;
    if (!c->busy || devices == 1 || apart)
        return c;
    if (devices >= stages)
        return c->busy;
    Cost *some = COPY(c->busy);
    some->how = "interpolated";
    some->ns = new_times(c);
    some->alone = NULL;
    for (int k = 0; k < c->classes; k++)
        for (int o = 0; o < c->ops; o++)
            some->ns[k][o] = c->ns[k][o] + (c->busy->ns[k][o] - c->ns[k][o]) * (devices - 1) / (stages - 1);
    return some;
}

/* Threads that are more than the cores take turns: a call takes as many times as long as they are more, and no less than was
 * measured beside others.  That is the price while all compute; a stage that waits leaves its core, so it is an upper one. */
const Cost *cost_shared(const Cost *c, const Model *m, int devices)
{
    const Cost *beside = beside_others(c, m, devices);
    int64_t threads = cost_threads(m, devices), cores = (int64_t)m->cores * (transport_of(m)->ranks ? m->hosts : 1);
    if (c->profile && cores > 0 && cores < m->devices.at[0].threads)
        cores = m->devices.at[0].threads;       /* its own threads took turns while it was measured alone */
    if (cores == 0 || threads <= cores || c->signature == graph_brought)
        return beside;
    Cost *some = COPY(beside);
    some->base = c;
    some->ns = new_times(c);
    some->alone = NULL;
    for (int k = 0; k < c->classes; k++)
        for (int o = 0; o < c->ops; o++) {
            Ns waits = c->sums ? c->sums[k][o] : 0, turn = c->ns[k][o] - waits;
            /* What cannot be counted is refused by check_cost. */
            turn = turn > INT64_MAX / threads - cores ? INT64_MAX : ceil_div(turn * threads, cores);
            turn = turn > INT64_MAX - waits ? INT64_MAX : turn + waits;         /* who waits leaves the core to others */
            some->ns[k][o] = turn > beside->ns[k][o] ? turn : beside->ns[k][o];
        }
    return some;
}

Ns cost_op(const Cost *c, int device, int op)
{
    return c->ns[c->of.at[device]][op];
}

Ns cost_alone(const Cost *c, int device, int op)
{
    return (c->alone ? c->alone : c->ns)[c->of.at[device]][op];
}

Ns cost_move(const Cost *c, int device, int calls, Bytes moved)
{
    Mover m = c->mover && device >= 0 ? c->mover[device] : roof_mover(NULL, F32);
    return m.fixed + calls * m.call + moved / m.per_us * 1000 + moved % m.per_us * 1000 / m.per_us;
}

/* Sums over a whole step stay far from overflow. */
void check_cost(const Graph *g, const Cost *c)
{
    Ns most = INT64_MAX / 16 / (g->micro > 0 ? g->micro : 1);
    for (int k = 0; k < c->classes; k++) {
        Ns sum = 0;
        for (int o = 0; o < g->op.n; o++) {
            if (c->profile && c->ns[k][o] > most - sum)
                fail(EXIT_STALE, "the times of the profile add up to more nanoseconds than can be counted; measure again");
            if (c->ns[k][o] > most - sum)
                fail(EXIT_MODEL, "the estimated times add up to more nanoseconds than can be counted (%s takes %.0f s); see "
                     "flops, vector, bandwidth and call of devices", g->op.at[o].name, (double)c->ns[k][o] / 1e9);
            if (c->ns[k][o] < 0)
                die("cost: %s takes %lld ns", g->op.at[o].name, (long long)c->ns[k][o]);
            sum += c->ns[k][o];
        }
    }
    for (int i = 0; i < c->devices * c->devices; i++)
        if (c->wire[i].latency < 0 || !(c->wire[i].rate > 0))
            die("cost: a message between devices %d and %d takes %lld ns and %g bytes/s", i / c->devices, i % c->devices,
                (long long)c->wire[i].latency, c->wire[i].rate);
}
