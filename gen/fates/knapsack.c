/* SPDX-License-Identifier: Apache-2.0
 *
 * knapsack.c: the choice of fates that frees so many bytes in the least time, if prices could be added.
 *
 * Problem: greed by time per byte overshoots: the last operator it takes may free far more than is missing.  Where operators
 * do not share inputs, the right choice is a knapsack.  Blocks that repeat make its items few and equal.
 *
 * Method: the Pareto list of (bytes freed, time added) over all choices, item by item.  Equal items are taken in powers of
 * two.  A list longer than KNAPSACK_WIDTH is thinned to even steps of bytes.  The replay tells how many bytes have to be freed:
 * its excess over the limit, divided among the micro-batches in flight, is added to the target until the choice fits.  Then the
 * target is bisected.
 *
 * Source: Nemhauser and Ullmann, Discrete dynamic programming and capital allocation, 1969.
 *
 * Cost: items times KNAPSACK_WIDTH, and HALVINGS replays.
 *
 * Not handled: prices that depend on each other.  improve.c and the other seeds are for that.
 */
#include "hunt.h"
#include "budgets.h"

typedef struct { Bytes bytes; Ns time; int before; bool taken; } Point;
typedef struct { int drop; Ns price; Bytes worth; } Ware;
typedef struct { int from, count; } Layer;          /* so many wares, of those equal to ware `from` */

typedef struct { Point *at; int n; } Frontier;      /* by ascending bytes and time; NULL: never used */

struct Knapsack {
    VEC(Frontier) frontier;     /* after so many layers */
    VEC(Layer) layer;
    Ware *ware;                 /* equal ones side by side */
};

ORDER(by_kind, Ware, order_of(x->price, y->price), order_of(x->worth, y->worth), order_of(x->drop, y->drop))

/* Equal wares form layers of 1, 2, 4 ... and the rest, so some of the layers make any number of them.  The earliest operators
 * are taken first: backward makes them again last, when least is alive. */
static void find_layers(Hunt *h)
{
    struct Knapsack *x = h->knapsack;
    int n = 0;
    for (int i = 0; i < h->ordered; i++) {
        const Drop *d = &h->drop[h->ranked[i]];
        if (d->worth > 0)
            x->ware[n++] = (Ware){h->ranked[i], d->price, d->worth};
    }
    SORT(x->ware, n, by_kind);
    x->layer.n = 0;
    for (int from = 0, to; from < n; from = to) {
        for (to = from; to < n && x->ware[to].price == x->ware[from].price && x->ware[to].worth == x->ware[from].worth;)
            to++;
        for (int at = from, count = 1; at < to; at += count, count *= 2) {
            count = count < to - at ? count : to - at;
            *PUSH(&x->layer) = (Layer){from, count};
        }
    }
}

/* Adds a state to the end of a row, and takes off the states that it dominates. */
static int put(Point *row, int n, Point s)
{
    while (n > 0 && row[n - 1].time >= s.time)
        n--;
    if (n > 0 && row[n - 1].bytes == s.bytes)
        return n;
    row[n] = s;
    return n + 1;
}

/* Room for all states of so many layers.  A search has a table for each of hundreds of plans, and few use all layers. */
static void open_row(struct Knapsack *x, int layers)
{
    size_t most = 1;
    for (int i = 0; i < layers && most < 2 * KNAPSACK_WIDTH; i++)
        most *= 2;
    while (x->frontier.n <= layers)
        PUSH(&x->frontier);
    if (!x->frontier.at[layers].at)
        x->frontier.at[layers].at = alloc(sizeof(Point) * most);
}

/* Row i + 1 from row i: without layer i, and with it. */
static void add_layer(struct Knapsack *x, int i)
{
    open_row(x, i + 1);
    const Point *old = x->frontier.at[i].at;
    Point *row = x->frontier.at[i + 1].at;
    const Layer *l = &x->layer.at[i];
    Bytes bytes = x->ware[l->from].worth * l->count;
    Ns time = x->ware[l->from].price * l->count;
    int n = 0, all = x->frontier.at[i].n;
    for (int a = 0, b = 0; a < all || b < all;) {
        bool with = a == all || (b < all && old[b].bytes + bytes < old[a].bytes);
        const Point *s = with ? &old[b] : &old[a];
        n = put(row, n, (Point){s->bytes + (with ? bytes : 0), s->time + (with ? time : 0), with ? b : a, with});
        *(with ? &b : &a) += 1;
    }
    Bytes step = row[n - 1].bytes / (KNAPSACK_WIDTH - 1) + 1;
    int kept = 0;
    for (int k = 0; n > KNAPSACK_WIDTH && k < n; k++)           /* one of each step of bytes */
        if (k == n - 1 || kept == 0 || row[k].bytes / step != row[kept - 1].bytes / step)
            row[kept++] = row[k];
    x->frontier.at[i + 1].n = n > KNAPSACK_WIDTH ? kept : n;
}

/* The choice at hand becomes the cheapest that frees so many bytes.  False: even all drops together free less. */
static bool choose(Hunt *h, Bytes free)
{
    struct Knapsack *x = h->knapsack;
    const Frontier *last = &x->frontier.at[x->layer.n];
    int at = 0, n = last->n;
    while (at < n && last->at[at].bytes < free)
        at++;
    hunt_all(h, FATE_KEEP);
    for (int i = x->layer.n, from = -1, taken = 0; i > 0 && at < n; i--) {
        const Point *s = &x->frontier.at[i].at[at];
        const Layer *l = &x->layer.at[i - 1];
        taken = l->from == from ? taken : 0;
        from = l->from;
        for (int k = 0; s->taken && k < l->count; k++)
            hunt_drop(h, x->ware[from + taken++].drop);
        at = s->before;
    }
    return n > 0 && last->at[n - 1].bytes >= free;
}

void seed_knapsack(Hunt *h)
{
    struct Knapsack *x = h->knapsack ? h->knapsack : alloc(sizeof *x);
    if (!h->knapsack)
        x->ware = alloc(sizeof *x->ware * ((size_t)live_tensors(h->live) + 1));
    h->knapsack = x;
    find_layers(h);
    open_row(x, 0);
    x->frontier.at[0].at[0] = (Point){0};
    x->frontier.at[0].n = 1;
    for (int i = 0; i < x->layer.n; i++)
        add_layer(x, i);
    hunt_all(h, FATE_KEEP);
    Load l = hunt_judge(h);
    Bytes low = 0, high = -1, free = 0;         /* too little, enough as far as known */
    for (int round = 0; round < HALVINGS && high - low != 1; round++) {
        free = high >= 0 ? low + (high - low) / 2 : free + (l.need - h->limit + h->others) / (h->others + 1);
        if (!choose(h, free))
            return;
        l = hunt_judge(h);
        hunt_take(h, &l);
        *(l.need <= h->limit ? &high : &low) = free;
    }
}
