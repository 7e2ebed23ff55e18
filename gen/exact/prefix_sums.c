/* SPDX-License-Identifier: Apache-2.0
 *
 * prefix_sums.c: sums and links, built once for a question, so that a search asks for nothing twice.
 *
 * Problem: a bound may only add up times that must follow each other.  Chunk s+1 begins a micro-batch after chunk s only if
 * it reads something of chunk s.  Chunk s ends after chunk s+1 only if a gradient comes back.  Side branches and masks do
 * neither.  An addition hands its gradient on without a call of its own.
 *
 * Method: a link between two runs is looked up among the tensors that really go from one to the other: facts_link.
 *
 * Cost: linear in the operands of the graph, times the classes of devices.  A link is found within a few operators.
 */
#include "exact.h"

static int fwd_of(const Graph *g, int tensor)
{
    int op = g->tensor.at[tensor].op;
    return op < 0 || op >= g->nb ? -1 : g->op.at[op].fwd;
}

/* ---- edges ------------------------------------------------------------------------------------------------------- */

static int by_tensor(const void *a, const void *b)
{
    const ExactEdge *x = a, *y = b;
    if (x->tensor != y->tensor)
        return x->tensor - y->tensor;
    if (x->to != y->to)
        return x->to - y->to;
    return x->read_back != y->read_back ? x->read_back - y->read_back : x->weight - y->weight;
}

/* As they run: forward goes up the chunks, backward down. */
static int first_reader_first(const void *a, const void *b)
{
    const ExactEdge *x = a, *y = b;
    if (x->tensor != y->tensor)
        return x->tensor - y->tensor;
    if (x->read_back != y->read_back)
        return x->read_back - y->read_back;
    return x->read_back ? y->to - x->to : x->to - y->to;
}

static void find_edges(Facts *x)
{
    const Graph *g = x->q->p->g;
    for (int o = 0; o < g->nb; o++)
        for (EACH(const Arg, a, g->op.at[o].arg)) {
            int from = a->kind == ARG_READ && !a->state ? fwd_of(g, a->index) : -1;
            if (from >= 0 && from != g->op.at[o].fwd)
                *PUSH(&x->edge) = (ExactEdge){a->index, from, g->op.at[o].fwd,
                                              g->tensor.at[a->index].op >= g->nf, g->op.at[o].phase != PH_F,
                                              g->op.at[o].phase == PH_W};
        }
    if (x->edge.n > 1)
        qsort(x->edge.at, (size_t)x->edge.n, sizeof *x->edge.at, by_tensor);
    int n = 0;
    for (int i = 0; i < x->edge.n; i++) {
        const ExactEdge *e = &x->edge.at[i], *before = n ? &x->edge.at[n - 1] : e;
        if (n == 0 || e->tensor != before->tensor || e->to != before->to)
            x->edge.at[n++] = *e;
    }
    x->edge.n = n;
    if (n > 1)
        qsort(x->edge.at, (size_t)n, sizeof *x->edge.at, first_reader_first);
}

static void find_hops(Facts *x)
{
    for (EACH(const ExactEdge, e, x->edge)) {
        Bytes bytes = x->q->p->g->tensor.at[e->tensor].bytes;
        if (!e->made_back && !e->read_back && e->from < e->to)
            *PUSH(&x->source[e->to]) = (Hop){e->from, bytes};
        if (e->made_back && e->from > e->to && !(x->split && e->weight))
            *PUSH(&x->target[e->from]) = (Hop){e->to, bytes};
    }
}

/* The hop out of the run with the nearest target before it; of equal ones, the one with most bytes. */
static Hop nearest_hop(const Hops *hops, int first, int last)
{
    Hop best = {-1, 0};
    for (int i = first; i <= last && best.to < first - 1; i++)
        for (EACH(const Hop, h, hops[i])) {
            if (h->to < first && (h->to > best.to || (h->to == best.to && h->bytes > best.bytes)))
                best = *h;
        }
    return best;
}

Link facts_link(const Facts *x, int chunk, int first, int last)
{
    if (chunk == 0)
        return (Link){-1, 0, 0};
    const Plan *p = x->q->p;
    Hop out = nearest_hop(x->source, first, last), back = nearest_hop(x->target, first, last);
    Link k = {out.to < back.to ? out.to : back.to, 0, 0};
    int from = stage_of(p, chunk - 1), to = stage_of(p, chunk);
    if (from == to || k.near < 0)
        return k;
    k.there = cost_wire(p->c, from, to, out.bytes) + cost_latency(p->c, from, to);
    k.comm = k.there + cost_wire(p->c, to, from, back.bytes) + cost_latency(p->c, to, from);
    return k;
}

static void find_crossings(Facts *x)
{
    const Graph *g = x->q->p->g;
    Bytes *change = alloc(sizeof(Bytes) * ((size_t)x->n + 1)), now = 0;
    for (int i = 0, low, high; i < x->edge.n; i++) {
        const ExactEdge *e = &x->edge.at[i];
        if (i == 0 || x->edge.at[i - 1].tensor != e->tensor)
            low = high = e->from;
        low = e->to < low ? e->to : low;
        high = e->to > high ? e->to : high;
        if (i + 1 == x->edge.n || x->edge.at[i + 1].tensor != e->tensor) {
            change[low] += g->tensor.at[e->tensor].bytes;
            change[high] -= g->tensor.at[e->tensor].bytes;
        }
    }
    for (int i = 0; i < x->n; i++)
        x->cross[i] = now += change[i];
}

/* ---- times ------------------------------------------------------------------------------------------------------- */

int facts_home(const Graph *g, const Op *o)
{
    if (o->fwd >= 0)
        return o->fwd;
    int param = update_param(g, o);
    return param < 0 ? 0 : g->state.at[param].op;
}

static int device_of_class(const Cost *c, int class, int devices)
{
    for (int d = 0; d < devices; d++)
        if (c->of.at[d] == class)
            return d;
    return -1;
}

static void sum_up(Ns *sums, int n)
{
    for (int i = 0; i < n; i++)
        sums[i + 1] += sums[i];
}

static void sum_times(Facts *x, int class)
{
    const Graph *g = x->q->p->g;
    const Cost *c = x->q->p->c;
    int d = device_of_class(c, class, x->q->p->devices);
    size_t bytes = sizeof(Ns) * ((size_t)x->n + 1);
    x->time[class] = alloc(bytes);
    x->forward[class] = alloc(bytes);
    x->back[class] = alloc(bytes);
    x->weight[class] = alloc(bytes);
    x->update[class] = alloc(bytes);
    x->apart[class] = alloc(bytes);
    for (int i = 0; c->alone && i < x->n; i++)
        x->apart[class][i] = c->alone[class][i] - c->ns[class][i];
    for (int o = 0; d >= 0 && o < g->op.n; o++) {
        const Op *k = &g->op.at[o];
        Ns ns = call_time(x->q->p, d, o);
        int i = facts_home(g, k);
        if (o >= g->nb) {
            x->update[class][i + 1] += ns;
            continue;
        }
        x->time[class][i + 1] += ns;
        (k->phase == PH_F ? x->forward : x->back)[class][i + 1] += ns;
        x->weight[class][i + 1] += k->phase == PH_W ? ns : 0;
    }
    sum_up(x->time[class], x->n);
    sum_up(x->forward[class], x->n);
    sum_up(x->back[class], x->n);
    sum_up(x->weight[class], x->n);
    sum_up(x->update[class], x->n);
}

static int by_input(const void *a, const void *b)
{
    const ExactReader *x = a, *y = b;
    return x->tensor != y->tensor ? x->tensor - y->tensor : x->op - y->op;
}

static void find_transfers(Facts *x)
{
    const Plan *p = x->q->p;
    Ns *none = alloc(sizeof(Ns) * (size_t)x->n);
    for (int s = 0; s < x->chunks; s++) {
        x->transfer[s] = none;
        if (s + 1 == x->chunks || stage_of(p, s) == stage_of(p, s + 1))
            continue;
        x->transfer[s] = alloc(sizeof(Ns) * (size_t)x->n);
        for (int i = 0; i < x->n; i++)
            x->transfer[s][i] = cost_wire(p->c, stage_of(p, s), stage_of(p, s + 1), x->cross[i]);
    }
}

/* ---- the lists --------------------------------------------------------------------------------------------------- */

static void read_lists(Facts *x)
{
    const Plan *p = x->q->p;
    const size_t chunks = (size_t)x->chunks;
    bool *back = alloc(chunks);
    x->warm = alloc(sizeof(int) * chunks), x->cool = alloc(sizeof(int) * chunks), x->flight = alloc(sizeof(int) * chunks);
    x->ahead = order_slack(p);
    x->split = order_split(p);
    for (int d = 0; d < p->devices; d++)
        for (EACH(const Action, k, p->dev.at[d].order)) {
            if (k->kind == K_B || k->kind == K_I) {
                back[k->chunk] = true;
                x->cool[k->chunk]++;
            } else if (k->kind == K_F) {
                x->cool[k->chunk] = 0;
                x->warm[k->chunk] += !back[k->chunk];
            }
        }
    for (int c = 0; c < x->chunks; c++)
        x->flight[c] = order_flight(p, c);
}

Facts *facts_of(const Question *q)
{
    Facts *x = alloc(sizeof *x);
    size_t n = (size_t)q->n, classes = (size_t)q->p->c->classes;
    *x = (Facts){.q = q, .n = q->n, .chunks = q->chunks, .m = q->p->g->micro + q->p->ask.more,
                 .step = strcmp(q->objective, "bottleneck") && order_overlap(q->p) == 0};
    x->class = alloc(sizeof(int) * (size_t)q->chunks);
    for (int c = 0; c < q->chunks; c++)
        x->class[c] = q->p->c->of.at[stage_of(q->p, c)];
    x->source = alloc(sizeof(Hops) * n);
    x->target = alloc(sizeof(Hops) * n);
    x->cross = alloc(sizeof(Bytes) * n);
    x->transfer = alloc(sizeof(Ns *) * (size_t)q->chunks);
    x->load = alloc(sizeof(Ns) * (n + 1));
    x->time = alloc(sizeof(Ns *) * classes);
    x->forward = alloc(sizeof(Ns *) * classes);
    x->back = alloc(sizeof(Ns *) * classes);
    x->weight = alloc(sizeof(Ns *) * classes);
    x->update = alloc(sizeof(Ns *) * classes);
    x->apart = alloc(sizeof(Ns *) * classes);
    for (int k = 0; k < q->p->c->classes; k++)
        sum_times(x, k);
    find_edges(x);
    find_crossings(x);
    find_transfers(x);
    /* Counted once, at the first operator that reads the input.  Its chunk must load it; others may have to as well. */
    const Graph *g = x->q->p->g;
    bool *seen = alloc((size_t)g->tensor.n);
    for (int o = 0; o < g->nf; o++)
        for (EACH(const Arg, a, g->op.at[o].arg)) {
            if (a->kind != ARG_READ || a->state || g->tensor.at[a->index].op >= 0)
                continue;
            Ns ns = action_load(x->q->p, a->index);
            *PUSH(&x->reader) = (ExactReader){o, a->index, ns};
            x->load[o + 1] += seen[a->index] ? 0 : ns;
            seen[a->index] = true;
        }
    sum_up(x->load, x->n);
    if (x->reader.n)
        qsort(x->reader.at, (size_t)x->reader.n, sizeof *x->reader.at, by_input);
    read_lists(x);
    find_hops(x);
    x->finish = finish_open(x);
    x->close = finish_least(x);
    return x;
}

Facts *facts_again(const Facts *x, const Question *q)
{
    Facts *with = alloc(sizeof *with);
    *with = *x;
    with->q = q;
    read_lists(with);
    with->finish = finish_again(x->finish, with);
    return with;
}

const char *facts_grid(const Facts *x, int pieces)
{
    const Ns *t = x->time[x->class[0]];
    char *cut = alloc((size_t)x->q->n);
    for (int i = 0, k = 0; k < pieces; k++) {
        int best = -1;
        for (; i < x->q->n && t[i + 1] / pieces <= t[x->q->n] / pieces / pieces * (k + 1); i++) {
            if (x->q->cut[i] == CUT_MUST)
                cut[i] = CUT_MUST;
            if (x->q->cut[i] != CUT_NEVER && (best < 0 || x->cross[i] < x->cross[best]))
                best = i;
        }
        if (best >= 0 && cut[best] == CUT_NEVER)
            cut[best] = CUT_MAY;
    }
    for (int i = 0; i < x->q->n; i++)
        if (x->q->cut[i] == CUT_MUST)
            cut[i] = CUT_MUST;
    return cut;
}
