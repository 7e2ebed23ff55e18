/* SPDX-License-Identifier: Apache-2.0
 *
 * check_sim.c: the predicted times, derived a second time.
 *
 * sim walks the lists forward and lets events happen.  Here every action and every transfer is a node of a graph, and
 * its time is the longest path to it, found by raising all times to their lower bounds until nothing moves.  Messages
 * are matched by tag and occurrence, not by counting begins.  Agreement is exact, or dpgen has a bug.
 *
 * Cost: actions times the rounds until nothing moves, at most the longest chain of messages.
 */
#include "../dpgen.h"

typedef struct { int from, to, tag; Bytes bytes; int send, post; Ns end, wire; } Edge;   /* send, post: nodes */
typedef struct {
    const Plan *p;
    bool eval;
    int n, *first;              /* nodes; first node of each device */
    const Action **action;
    Ns *at, *to;                /* of each node: begin and end so far */
    int *edge;                  /* of each SEND, RECV, WAIT */
    VEC(Edge) edges;
    Ns *wire;                   /* [from * devices + to]: busy until, in one pass over the edges */
} Paths;

static const Actions *list_of(const Paths *x, int device)
{
    const DevicePlan *d = &x->p->dev.at[device];
    return x->eval ? &d->eval : &d->list;
}

/* The transfer that this end belongs to: the first of its tag that lacks this end. */
static int edge_of(Paths *x, int node, const Action *k, int device)
{
    bool send = k->kind == K_SEND;
    int from = send ? device : k->peer, to = send ? k->peer : device;
    for (int i = 0; i < x->edges.n; i++) {
        Edge *e = &x->edges.at[i];
        int *end = send ? &e->send : &e->post;
        if (e->from == from && e->to == to && e->tag == k->tag && *end < 0) {
            *end = node;
            if (e->bytes != k->bytes)
                die("check_sim: message %d from device %d to %d has %lld and %lld bytes", e->tag, from, to,
                    (long long)e->bytes, (long long)k->bytes);
            return i;
        }
    }
    *PUSH(&x->edges) = (Edge){from, to, k->tag, k->bytes, send ? node : -1, send ? -1 : node, 0, 0};
    return x->edges.n - 1;
}

static void find_nodes(Paths *x)
{
    x->first = alloc(sizeof(int) * (size_t)(x->p->devices + 1));
    for (int d = 0; d < x->p->devices; d++)
        x->first[d + 1] = x->first[d] + list_of(x, d)->n;
    x->n = x->first[x->p->devices];
    x->action = alloc(sizeof *x->action * (size_t)(x->n + 1));
    x->at = alloc(sizeof(Ns) * (size_t)(x->n + 1));
    x->to = alloc(sizeof(Ns) * (size_t)(x->n + 1));
    x->edge = alloc(sizeof(int) * (size_t)(x->n + 1));
    x->wire = alloc(sizeof(Ns) * (size_t)(x->p->devices * x->p->devices));
    for (int d = 0; d < x->p->devices; d++) {
        Ints open = {0};    /* by request: the edge under way, + 1 */
        for (int i = 0; i < list_of(x, d)->n; i++) {
            const Action *k = &list_of(x, d)->at[i];
            int node = x->first[d] + i;
            x->action[node] = k;
            while (open.n <= k->request)
                *PUSH(&open) = 0;
            if (k->kind == K_SEND || k->kind == K_RECV)
                open.at[k->request] = 1 + edge_of(x, node, k, d);
            if (k->kind == K_SEND || k->kind == K_RECV || k->kind == K_WAIT)
                x->edge[node] = open.at[k->request] - 1;
            if (k->kind == K_WAIT && x->edge[node] < 0)
                die("check_sim: action %d of device %d waits for a request that nothing began", i, d);
        }
    }
}

static bool raise(Ns *to, Ns least)
{
    bool low = *to < least;
    if (low)
        *to = least;
    return low;
}

/* Transfers of one pair share a wire, in the order in which they are sent. */
static bool raise_edges(Paths *x)
{
    bool moved = false;
    for (int i = 0; i < x->p->devices * x->p->devices; i++)
        x->wire[i] = 0;
    for (int node = 0; node < x->n; node++) {
        if (x->action[node]->kind != K_SEND)
            continue;
        Edge *e = &x->edges.at[x->edge[node]];
        Ns *busy = &x->wire[e->from * x->p->devices + e->to], start = *busy;
        raise(&start, x->at[e->send]);
        raise(&start, x->at[e->post]);
        moved |= raise(&e->end, start + cost_wire(x->p->c, e->bytes) + x->p->c->latency);
        *busy = e->end - x->p->c->latency;
    }
    return moved;
}

static bool raise_nodes(Paths *x)
{
    bool moved = false;
    for (int d = 0; d < x->p->devices; d++)
        for (int node = x->first[d]; node < x->first[d + 1]; node++) {
            if (node > x->first[d])
                moved |= raise(&x->at[node], x->to[node - 1]);
            moved |= raise(&x->to[node], x->at[node] + sim_action(x->p, x->action[node]));
            if (x->action[node]->kind == K_WAIT)
                moved |= raise(&x->to[node], x->edges.at[x->edge[node]].end);
        }
    return moved;
}

static Ns check_list(const Plan *p, bool eval)
{
    Paths x = {.p = p, .eval = eval};
    Ns end = 0;
    find_nodes(&x);
    for (int i = 0; i < x.edges.n; i++)
        if (x.edges.at[i].send < 0 || x.edges.at[i].post < 0)
            die("check_sim: message %d from device %d to %d has one end", x.edges.at[i].tag, x.edges.at[i].from,
                x.edges.at[i].to);
    int round = 0;
    for (bool moved = true; moved; round++) {
        if (round > x.n + 1)
            die("check_sim: a message waits for itself");
        moved = raise_nodes(&x);
        moved |= raise_edges(&x);
    }
    for (int i = 0; i < x.n; i++) {
        const Action *k = x.action[i];
        if (k->from != x.at[i] || k->to != x.to[i])
            die("check_sim: action %d is predicted at %lld..%lld, the longest path says %lld..%lld", i,
                (long long)k->from, (long long)k->to, (long long)x.at[i], (long long)x.to[i]);
        raise(&end, x.to[i]);
    }
    return end;
}

void check_sim(const Plan *p)
{
    check_list(p, true);
    Ns step = check_list(p, false);
    if (p->step != step)
        die("check_sim: the step is predicted to take %lld ns, the longest path takes %lld", (long long)p->step,
            (long long)step);
    for (int d = 0; d < p->devices; d++) {
        Ns busy = 0;
        for (int i = 0; i < p->dev.at[d].list.n; i++)
            busy += sim_action(p, &p->dev.at[d].list.at[i]);
        if (busy != p->dev.at[d].busy)
            die("check_sim: device %d is busy for %lld ns, not %lld", d, (long long)busy, (long long)p->dev.at[d].busy);
    }
}
