/* SPDX-License-Identifier: Apache-2.0
 *
 * tmpc.c: reads the inputs of Piper: nodes with a time, parameters and memory for each tensor-parallel degree and choice.
 *
 * The form is that of github msr-fiddle/piper (J. Tarnawski et al., Piper, NeurIPS 2021), JSON, which is YAML:
 *
 *     maxDevices, maxMemoryPerDevice, bandwidth, mbsInBatch (or maxBatchSize)
 *     nodes: id, and TMPCs: by degree, a list of choices: timePerSample, parameterSize, memoryUsageA, memoryUsageB,
 *            syncTimeFw by edge that enters, syncTimeBw by edge that leaves, in bytes
 *     edges: sourceId, destId, communicationCost
 *
 * A node has at most two choices a degree, which differ in time and memory.  Seconds become picoseconds, rounded; bytes are
 * rounded up.  fails  with err() at what is missing, no number, or not so.
 */
#include "foreign.h"
#include "build/build.h"
#include <math.h>

typedef struct { Foreign *f; Names ids; const Node *nodes; } TmpcReader;

static Node *want(const Node *map, const char *key)
{
    Node *found = map->kind == MAP ? node_get(map, key) : NULL;
    if (!found)
        err(map->loc, NULL, "there is no %s", key);
    return found;
}

static double number(const Node *map, const char *key, double most)
{
    return foreign_number(want(map, key), key, most);
}

static Bytes bytes_of(const Node *map, const char *key)
{
    return (Bytes)ceil(number(map, key, 0x1p42));
}

static int count_of(const Node *map, const char *key)
{
    double value = number(map, key, 65536);
    if (value < 1 || value != floor(value))
        err(want(map, key)->loc, NULL, "%s is an integer from 1 on", key);
    return (int)value;
}

static const Node *list_of(const Node *root, const char *key)
{
    const Node *list = want(root, key);
    if (list->kind != LIST)
        err(list->loc, NULL, "%s is a list", key);
    return list;
}

ORDER(ascending, int, order_of(*x, *y))

static void read_degrees(TmpcReader *x)
{
    for (int i = 0; i < x->nodes->n; i++) {
        const Node *ways = want(x->nodes->at[i], "TMPCs");
        for (int k = 0; ways->kind == MAP && k < ways->n; k++) {
            const Node *key = ways->key[k];
            int t = atoi(key->text), d = 0;
            if (t < 1 || t > 65536 || strspn(key->text, "0123456789") != strlen(key->text))
                err(key->loc, NULL, "'%s' is no number of devices", key->text);
            while (d < x->f->degree.n && x->f->degree.at[d] != t)
                d++;
            if (d == x->f->degree.n)
                *PUSH(&x->f->degree) = t;
        }
    }
    if (!x->f->degree.n)
        err(x->nodes->loc, NULL, "no node has TMPCs");
    SORT(x->f->degree.at, x->f->degree.n, ascending);
}

static WidthWay read_way(const Node *list)
{
    WidthWay y = {.choices = list->n};
    if (list->kind != LIST || list->n > 2)
        err(list->loc, NULL, "a degree has a list of at most two choices");
    for (int c = 0; c < list->n; c++) {
        const Node *at = list->at[c];
        Bytes params = bytes_of(at, "parameterSize");
        if (c > 0 && params != y.params)
            err(want(at, "parameterSize")->loc, NULL, "the choices of a degree have the same parameters");
        y.params = params;
        y.choice[c] = (WidthChoice){(Ps)floor(number(at, "timePerSample", 1e6) * 1e12 + 0.5), bytes_of(at, "memoryUsageA"),
                                    bytes_of(at, "memoryUsageB")};
    }
    return y;
}

static void read_node(TmpcReader *x, const Node *at)
{
    Foreign *f = x->f;
    const Node *id = want(at, "id"), *ways = want(at, "TMPCs"), *name = node_get(at, "name");
    ForeignNode *n = PUSH(&f->node);
    if (id->kind != SCALAR || names_get(&x->ids, id->text) >= 0)
        err(id->loc, NULL, id->kind != SCALAR ? "an id is a number" : "a second node %s", id->text);
    names_put(&x->ids, id->text, f->node.n - 1);
    *n = (ForeignNode){.id = id->text, .name = name && name->kind == SCALAR ? name->text : id->text, .loc = at->loc};
    n->split = alloc(sizeof *n->split * (size_t)f->degree.n);
    for (int d = 0; d < f->degree.n; d++) {
        const Node *list = ways->kind == MAP ? node_get(ways, strf("%d", f->degree.at[d])) : NULL;
        if (list)
            n->split[d] = read_way(list);
    }
}

/* What an edge costs beside its bytes, from the maps of every choice; all choices say the same. */
static Bytes sync_of(const TmpcReader *x, int node, int degree, const char *key, const Node *other)
{
    const Node *ways = want(x->nodes->at[node], "TMPCs"), *list = node_get(ways, strf("%d", degree));
    Bytes sync = 0;
    for (int c = 0; list && c < list->n; c++) {
        const Node *all = want(list->at[c], key);
        if (all->kind != MAP || !node_get(all, other->text))
            err(all->loc, NULL, "%s has no bytes for node %s, which an edge joins to this one", key, other->text);
        Bytes has = bytes_of(all, other->text);
        if (c > 0 && has != sync)
            err(want(list->at[c], key)->loc, NULL, "the choices of a degree have the same %s", key);
        sync = has;
    }
    return sync;
}

static int end_of(TmpcReader *x, const Node *at)
{
    int i = at->kind == SCALAR ? names_get(&x->ids, at->text) : -1;
    if (i < 0)
        err(at->loc, NULL, "there is no such node");
    return i;
}

static void read_edge(TmpcReader *x, const Node *at)
{
    Foreign *f = x->f;
    const Node *from = want(at, "sourceId"), *to = want(at, "destId");
    int a = end_of(x, from), b = end_of(x, to);
    for (int k = 0; k < f->node.at[a].to.n; k++)
        if (f->node.at[a].to.at[k] == b)
            err(at->loc, NULL, "an edge from %s to %s is there twice", from->text, to->text);
    *PUSH(&f->node.at[a].to) = b;
    *PUSH(&f->node.at[b].from) = a;
    Bytes bytes = bytes_of(at, "communicationCost"), *sums = alloc(2 * sizeof *sums * (size_t)f->degree.n);
    for (int d = 0; d < f->degree.n; d++) {
        sums[2 * d] = bytes + sync_of(x, b, f->degree.at[d], "syncTimeFw", from);
        sums[2 * d + 1] = bytes + sync_of(x, a, f->degree.at[d], "syncTimeBw", to);
    }
    *PUSH(&f->edge) = (WidthEdge){a, b, sums};
}

void tmpc_read(Foreign *f, const char *path)
{
    const Node *root = load(path), *edges = list_of(root, "edges");
    TmpcReader x = {.f = f, .nodes = list_of(root, "nodes")};
    f->head = root->loc;
    f->micro = count_of(root, node_get(root, "mbsInBatch") ? "mbsInBatch" : "maxBatchSize");
    f->devices = strf("devices: [{kind: cpu, count: %d, memory: %.0fB}]\nlinks: {cpu-cpu: %.0fB/s}\n",
                      count_of(root, "maxDevices"), floor(number(root, "maxMemoryPerDevice", 0x1p60)),
                      floor(number(root, "bandwidth", 1e15)));
    read_degrees(&x);
    for (int i = 0; i < x.nodes->n; i++)
        read_node(&x, x.nodes->at[i]);
    for (int i = 0; i < edges->n; i++)
        read_edge(&x, edges->at[i]);
}
