/* SPDX-License-Identifier: Apache-2.0
 *
 * sort.c: foreign nodes in an order in which readers come later.
 *
 * A. B. Kahn, Topological Sorting of Large Networks, 1962; of the nodes that are ready the first of the file comes next, so
 * that a file in order keeps its order.  Cost: n log n.  fails  with err() at a node of a cycle, which is named.
 */
#include "foreign.h"

ORDER(ascending, int, order_of(*x, *y))

static void renumber(Ints *list, const int *to)
{
    int n = 0;
    for (int i = 0; i < list->n; i++)
        if (to[list->at[i]] >= 0)
            list->at[n++] = to[list->at[i]];
    list->n = n;
    SORT(list->at, n, ascending);
}

/* order[k]: the old number of node k; count of them stay. */
void foreign_pick(Foreign *f, const int *order, int count)
{
    ForeignNode *with = alloc(sizeof *with * (size_t)(count + 1));
    int *to = alloc(sizeof *to * (size_t)(f->node.n + 1));
    for (int i = 0; i < f->node.n; i++)
        to[i] = -1;
    for (int k = 0; k < count; k++) {
        with[k] = f->node.at[order[k]];
        to[order[k]] = k;
    }
    f->node.at = with;
    f->node.n = count;
    f->node.cap = count + 1;
    for (int k = 0; k < count; k++) {
        renumber(&with[k].from, to);
        renumber(&with[k].to, to);
    }
    for (int i = 0; i < f->edge.n; i++) {
        f->edge.at[i].from = to[f->edge.at[i].from];
        f->edge.at[i].to = to[f->edge.at[i].to];
    }
}

/* The first node that this one waits for and that never became ready. */
static int before(const Foreign *f, const int *missing, int at)
{
    int i = 0;
    while (missing[f->node.at[at].from.at[i]] <= 0)
        i++;
    return f->node.at[at].from.at[i];
}

/* Backwards among the nodes that never became ready: after as many steps as there are nodes that is on a cycle. */
static NORETURN void cyclic(const Foreign *f, const int *missing)
{
    enum { SHOWN = 12 };
    int at = 0, steps = 0;
    while (missing[at] <= 0)
        at++;
    for (int i = 0; i < f->node.n; i++)
        at = before(f, missing, at);
    const char *text = f->node.at[at].id;
    int node = at;
    do {
        node = before(f, missing, node);
        text = ++steps <= SHOWN ? strf("%s -> %s", f->node.at[node].id, text) : text;
    } while (node != at);
    err(f->node.at[at].loc, steps > SHOWN ? strf("%d nodes in all", steps) : NULL, "the graph has a cycle: %s%s",
        steps > SHOWN ? "... -> " : "", text);
}

static void push_ready(Ints *heap, int node)
{
    *PUSH(heap) = node;
    for (int i = heap->n - 1; i > 0 && heap->at[(i - 1) / 2] > heap->at[i]; i = (i - 1) / 2) {
        int swap = heap->at[i];
        heap->at[i] = heap->at[(i - 1) / 2];
        heap->at[(i - 1) / 2] = swap;
    }
}

static int pop_ready(Ints *heap)
{
    int first = heap->at[0], last = heap->at[--heap->n], i = 0;
    for (int child; (child = 2 * i + 1) < heap->n; i = child) {
        child += child + 1 < heap->n && heap->at[child + 1] < heap->at[child];
        if (heap->at[child] >= last)
            break;
        heap->at[i] = heap->at[child];
    }
    if (heap->n)
        heap->at[i] = last;
    return first;
}

void foreign_sort(Foreign *f)
{
    int n = f->node.n, count = 0;
    int *missing = alloc(sizeof *missing * (size_t)n), *order = alloc(sizeof *order * (size_t)n);
    Ints heap = {0};
    for (int i = 0; i < n; i++) {
        missing[i] = f->node.at[i].from.n;
        if (!missing[i])
            push_ready(&heap, i);
    }
    while (heap.n > 0) {
        int i = order[count++] = pop_ready(&heap);
        for (int k = 0; k < f->node.at[i].to.n; k++)
            if (--missing[f->node.at[i].to.at[k]] == 0)
                push_ready(&heap, f->node.at[i].to.at[k]);
    }
    if (count < n)
        cyclic(f, missing);
    foreign_pick(f, order, n);
}
