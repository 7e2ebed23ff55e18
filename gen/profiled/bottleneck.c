/* SPDX-License-Identifier: Apache-2.0
 *
 * bottleneck.c: plan.objective bottleneck, for foreign graphs.
 *
 * Published tables of planners compare the longest stage or transfer.  Its best stages are differences of downward-closed
 * prefixes (downset.c) and need not be runs in the order of the file.  The nodes are therefore put into the order of the
 * chain, which is as good an order of the same graph.  The stages are then runs again, and the rest of the line sees
 * plan.cuts.  A model of our own keeps its order, because gradients are added in it (docs/bits.md).
 *
 * Where the order of devices is free, the chain chooses it too, and how many of them it uses, between the stages that were
 * asked for.  Of memory this objective knows the states of a stage, which are there in every plan: the line says afterwards
 * whether the plan fits.
 *
 * Files with degrees, and objective throughput, have stages with widths: widths.c.
 */
#include "foreign.h"

static Ints *edges_of(const Foreign *f, bool to)
{
    Ints *list = alloc(sizeof *list * (size_t)f->node.n);
    for (int i = 0; i < f->node.n; i++)
        list[i] = to ? f->node.at[i].to : f->node.at[i].from;
    return list;
}

bool widths_open(const Foreign *f, const Model *m)
{
    return f && (f->degree.n || m->plan.objective == THROUGHPUT);
}

/* A node of a file without degrees is on one device: it holds what it saves of each micro-batch, and its states. */
static void plain(const Foreign *f, const Model *m, WidthWay *way, WidthEdge *edge)
{
    Bytes states = m->train.opt == OPT_SGD ? 2 + (m->train.momentum > 0) : 4;
    for (int i = 0, e = 0; i < f->node.n; i++) {
        const ForeignNode *n = &f->node.at[i];
        Bytes *bytes = alloc(2 * sizeof *bytes);
        bytes[0] = bytes[1] = n->output;
        way[i] = (WidthWay){.choices = 1, .params = n->params};
        way[i].choice[0] = (WidthChoice){(n->time.forward + n->time.backward) * 1000,
                                         n->saved == SAVED_OUTPUT ? n->output : n->saved, states * n->params};
        for (int k = 0; k < n->to.n; k++)
            edge[e++] = (WidthEdge){i, n->to.at[k], bytes};
    }
}

/* Sums stay below 2^62. */
static void check_sizes(const Foreign *f, const Widths *w)
{
    double seconds = 0, bytes = 0;
    for (int i = 0; i < w->n * w->degrees; i++) {
        double exchange = 4.0 * (double)w->split[i].params / ((double)w->micro * (double)w->rate);
        seconds += w->devices * exchange;
        for (int c = 0; c < w->split[i].choices; c++) {
            seconds += (double)w->split[i].choice[c].time / 1e12;
            bytes += (double)w->split[i].choice[c].each * w->devices + (double)w->split[i].choice[c].fixed;
        }
    }
    for (int i = 0; i < w->edges; i++)
        for (int x = 0; x < 2 * w->degrees; x++)
            seconds += 2 * (double)w->edge[i].bytes[x] / (double)w->rate;
    if (!(seconds * w->devices * w->degree[w->degrees - 1] < 4e6) || !(bytes < 4e18))
        err(f->head, NULL, "times or bytes are too large for %s", count_text(w->devices, "device"));
}

/* Does the model name that word of plan? */
static bool names_it(const PlanSpec *p, Loc at)
{
    return memcmp(&at, &p->loc, sizeof at) != 0;
}

Widths widths_of(const Foreign *f, const Model *m)
{
    static const int one = 1;
    const bool one_device = names_it(&m->plan, m->plan.tensor_at) && !m->plan.tensor_auto;
    int n = f->node.n, degrees = f->degree.n && !one_device ? f->degree.n : 1, edges = 0;
    if (m->plan.stages_min == m->plan.stages_max && m->plan.stages_max > 1)
        err(m->plan.loc, "devices.*.count=N", "stages have any width: how many there are is part of the plan");
    if (f->kind.n)
        err(f->head, "--objective bottleneck", "stages of any width are for devices of one kind");
    for (int i = 0; i < n; i++)
        edges += f->node.at[i].to.n;
    WidthWay *way = alloc(sizeof *way * (size_t)(n * degrees));
    WidthEdge *edge = alloc(sizeof *edge * (size_t)(edges + 1));
    Widths w = {.n = n, .from = edges_of(f, false), .to = edges_of(f, true), .degrees = degrees,
                .degree = f->degree.n ? f->degree.at : &one, .split = way, .edges = edges,
                .edge = f->degree.n ? f->edge.at : edge, .devices = m->devices.n, .micro = m->train.micro,
                .memory = m->devices.at[0].memory, .rate = (Bytes)transport_of(m)->rate};
    for (int i = 0; i < m->devices.n; i++)
        w.memory = m->devices.at[i].memory < w.memory ? m->devices.at[i].memory : w.memory;
    w.levels = m->hosts > 1 && m->devices.n % m->hosts == 0 ? 2 : 1;
    for (int i = 0; i < m->links.n; i++) {
        const LinkSpec *k = &m->links.at[i];
        Bytes rate = (Bytes)k->rate, *level = &w.tier[w.levels > 1 && !k->from].rate;
        w.rate = i == 0 || rate < w.rate ? rate : w.rate;
        *level = !*level || rate < *level ? rate : *level;
    }
    for (int k = 0; k < w.levels; k++) {
        w.tier[k].count = k ? m->hosts : m->devices.n / (w.levels > 1 ? m->hosts : 1);
        w.tier[k].rate = w.tier[k].rate ? w.tier[k].rate : w.rate;
    }
    for (int i = 0; i < n && f->degree.n; i++)
        memcpy(&way[i * degrees], f->node.at[i].split, sizeof *way * (size_t)degrees);
    if (!f->degree.n)
        plain(f, m, way, edge);
    const PlanSpec *p = &m->plan;
    if (p->tensor > 1 || p->replicas > 1)
        err(p->tensor > 1 ? p->tensor_at : p->replicas_at, "1, or delete it", "stages have any width: how many devices and "
            "copies they have is part of the plan");
    w.copies = names_it(p, p->replicas_at);
    for (int i = 0; i < w.n * w.degrees && names_it(p, p->recompute_at) && p->recompute == RECOMPUTE_NONE; i++)
        way[i].choices = way[i].choices > 1 ? 1 : way[i].choices;
    check_sizes(f, &w);
    return w;
}

/* Of all phases of a node, on each class; what nobody times takes none. */
static const Ns *const *times(const Graph *g, const Cost *c, int nodes)
{
    Ns **time = alloc(sizeof *time * (size_t)c->classes);
    for (int k = 0; k < c->classes; k++) {
        time[k] = alloc(sizeof **time * (size_t)nodes);
        for (int o = 0; o < g->nb; o++)
            if (g->op.at[o].fwd < nodes)
                time[k][g->op.at[o].fwd] += c->ns[k][o];
    }
    return (const Ns *const *)time;
}

static const Bytes *states(const Graph *g, int nodes)
{
    Bytes *bytes = alloc(sizeof *bytes * (size_t)nodes);
    for (EACH(const State, k, g->state))
        if (k->param >= 0)
            bytes[k->kind == S_GRAD ? k->op : g->state.at[k->param].op] += k->bytes;
    return bytes;
}

static ForeignPlaces places(const Model *m, const Cost *c, const int *kind)
{
    Bytes *room = alloc(sizeof *room * (size_t)m->devices.n);
    for (int d = 0; d < m->devices.n; d++)
        room[d] = m->devices.at[d].memory;
    int least = m->plan.stages_min, most = m->plan.stages_max;
    ForeignPlaces p = kind ? places_free(kind, c->of.at, room, m->devices.n, least, most)
                    : places_row(c->of.at, room, least, most);
    if (!p.at.n)
        err(m->order_at, "devices.order: given", "objective bottleneck orders devices of a few kinds, and these are of too "
            "many");
    return p;
}

/* The chain has one device of each kind: the others follow in turn. */
static void spread(ForeignChain *c, const int *kind, int devices)
{
    bool *taken = alloc((size_t)devices);
    for (int j = 0; j < c->stages; j++) {
        int d = 0;
        while (taken[d] || kind[d] != kind[c->device[j]])
            d++;
        c->device[j] = d;
        taken[d] = true;
    }
}

void bottleneck(Foreign *f, const Graph *g, Model *m, const Cost *c, const int *kind, ForeignChain *chain)
{
    if (m->plan.chunks != 1 || m->plan.map.n)
        err(m->plan.loc, NULL, "objective bottleneck puts one run of nodes on each device");
    if (m->plan.cuts.n)
        err(m->plan.cuts_at, "give one of the two", "objective bottleneck chooses the cuts");
    int n = f->node.n;
    Bytes *bytes = alloc(sizeof *bytes * (size_t)n);
    for (int i = 0; i < n; i++)
        bytes[i] = f->node.at[i].output;
    if (n < m->plan.stages_min)
        err(m->plan.loc, NULL, "%d stages, and the graph has %d node%s", m->plan.stages_min, n, n > 1 ? "s" : "");
    Dag d = {.n = n, .classes = c->classes, .time = times(g, c, n), .states = states(g, n), .bytes = bytes,
             .from = edges_of(f, false), .to = edges_of(f, true), .wire = c, .ways = infers(m) ? 1 : 2};
    ForeignPlaces p = places(m, c, kind);
    if (!downset_chain(&d, &p, MOST_PREFIXES, chain)) {
        d.states = NULL;                /* no stages have room: the plan says so, and what would help */
        downset_chain(&d, &p, MOST_PREFIXES, chain);
    }
    foreign_pick(f, chain->sequence, n);
    m->plan.longest = chain->value;
    m->plan.longest_bound = chain->bound;
    m->plan.longest_all = chain->all;
    m->plan.stages_min = m->plan.stages_max = chain->stages;
    for (int j = 0; j + 1 < chain->stages; j++)
        *PUSH(&m->plan.cuts) = chain->last[j];
    if (kind)
        spread(chain, kind, m->devices.n);
}

void bottleneck_text(FILE *out, const ForeignChain *c)
{
    fprintf(out, "  bottleneck %.6f ms, stage or transfer of a micro-batch; ", (double)c->value / 1e6);
    if (c->value == c->bound)
        fprintf(out, "the least there is");
    else
        fprintf(out, "none is below %.6f ms", (double)c->bound / 1e6);
    if (c->all)
        fprintf(out, ", over all %d downward-closed prefix%s\n", c->prefixes, c->prefixes > 1 ? "es" : "");
    else
        fprintf(out, ", the best of %d order%s of the nodes\n", c->orders, c->orders > 1 ? "s" : "");
}
