/* SPDX-License-Identifier: Apache-2.0
 *
 * price.c: the price of a run of operators as one stage.
 *
 *   needs   order: the lists and home; limits by chunk
 *   gives   time and bytes of a run under the cheapest fates that plan.recompute allows, remembered; a lower bound of it
 *
 * Under plan.recompute none, full or a list of names leave no choice; auto leaves it to fates.c.  Time is forward and backward
 * of one micro-batch on that chunk's device, with recomputation.
 *
 * Chunks with equal lists on equal devices under equal limits have equal prices, so a run is priced once for all of them.
 */
#include "fates.h"

typedef struct { int first, last, sort; Price *price; } Slot;

struct Prices {
    const Plan *p;
    const Bytes *limit;         /* by chunk */
    Live *live;
    Hunt *hunt;
    int *base;                  /* by tensor: fate without a choice */
    const char *may;            /* by tensor: the choice that auto has */
    int *fate;                  /* by tensor: scratch */
    int *sort;                  /* by chunk: one that was asked for and prices like it; -1: not asked for */
    Floor *floor;
    Slot *slot;                 /* hash table, open addressing */
    int used, cap;
    int64_t reserve;            /* of the work, for those who come later */
};

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static int sort_of(Prices *x, int chunk)
{
    const Plan *p = x->p;
    const int class = p->c->of.at[stage_of(p, chunk)];
    for (int c = 0; x->sort[chunk] < 0; c++)
        if (c == plan_chunks(p))
            x->sort[chunk] = chunk;
        else if (x->sort[c] == c && p->c->of.at[stage_of(p, c)] == class && x->limit[c] == x->limit[chunk]
                 && live_alike(x->live, chunk, c))
            x->sort[chunk] = c;
    return x->sort[chunk];
}

Bytes *price_whole(const Plan *p, const Bytes *limit)
{
    Bytes *share = alloc(sizeof *share * (size_t)plan_chunks(p));
    for (int c = 0; c < plan_chunks(p); c++)
        share[c] = limit[stage_of(p, c)];
    return share;
}

Prices *prices_open(const Plan *p, const Bytes *share)
{
    Prices *x = alloc(sizeof *x);
    size_t n = (size_t)p->g->tensor.n, all = sizeof *share * (size_t)plan_chunks(p);
    *x = (Prices){.p = p, .live = live_open(p), .base = keep_fates(p, false), .cap = 256};
    x->limit = memcpy(alloc(all), share, all);
    x->may = fates_may(p, x->base);
    x->fate = alloc(sizeof(int) * n);
    memcpy(x->fate, x->base, sizeof(int) * n);
    x->slot = alloc(sizeof *x->slot * (size_t)x->cap);
    x->hunt = fates_open(x->live, x->may);
    x->sort = alloc(sizeof(int) * (size_t)plan_chunks(p));
    memset(x->sort, -1, sizeof(int) * (size_t)plan_chunks(p));
    x->floor = floor_open(p, x->live, x->base, x->may);
    return x;
}

bool prices_spent(const Prices *x)
{
    return purse_left(x->p->ask.work) <= x->reserve;
}

void prices_reserve(Prices *x, int part)
{
    x->reserve = purse_left(x->p->ask.work) / part;
}

void prices_pay(Prices *x, int64_t runs)
{
    purse_spend(x->p->ask.work, runs);
}

/* ---- memory of prices -------------------------------------------------------------------------------------------- */

static Slot *slot_of(Slot *slot, int cap, int first, int last, int sort)
{
    uint64_t key = ((uint64_t)first * 0x9e3779b97f4a7c15u) ^ ((uint64_t)last * 0xc2b2ae3d27d4eb4fu)
        ^ ((uint64_t)sort * 0x165667b19e3779f9u);
    int i = (int)((key ^ key >> 29) & (uint64_t)(cap - 1));
    while (slot[i].price && (slot[i].first != first || slot[i].last != last || slot[i].sort != sort))
        i = (i + 1) & (cap - 1);
    return &slot[i];
}

static void grow(Prices *x)
{
    Slot *old = x->slot;
    int n = x->cap;
    x->cap *= 2;
    x->slot = alloc(sizeof *x->slot * (size_t)x->cap);
    for (int i = 0; i < n; i++)
        if (old[i].price)
            *slot_of(x->slot, x->cap, old[i].first, old[i].last, old[i].sort) = old[i];
}

/* ---- prices ------------------------------------------------------------------------------------------------------ */

static Price price_of(Prices *x, const Load *l, int first, int last, int chunk, const int *fate)
{
    Price price = {.fits = l->need <= x->limit[chunk], .forward = l->forward, .backward = l->backward + l->again + l->stall,
                   .need = l->need, .states = l->states, .saved = l->saved};
    price.early = l->again ? live_early(x->live, first, last, chunk, fate) : 0;
    int n;
    const int *made = live_made(x->live, first, last, &n);
    const char *matters = live_matters(x->live, first, last, x->may);
    for (int i = 0; i < n; i++) {
        int t = made[i];
        if (fate[t] == FATE_KEEP)
            continue;
        *PUSH(&price.tensor) = t;
        *PUSH(&price.fate) = fate[t];
        if (matters[t] == LIVE_READ)
            *(fate[t] == FATE_OFFLOAD ? &price.offloaded : &price.dropped) += live_size(x->live, t);
    }
    return price;
}

const Price *price_best(Prices *x, int first, int last, int chunk)
{
    const int sort = sort_of(x, chunk);
    Slot *slot = slot_of(x->slot, x->cap, first, last, sort);
    if (slot->price)
        return slot->price;
    int n;
    const int *made = live_made(x->live, first, last, &n);
    for (int i = 0; i < n; i++)
        x->fate[made[i]] = x->base[made[i]];
    Load l = fates_choose(x->hunt, first, last, chunk, x->limit[chunk], x->fate);
    Price *price = alloc(sizeof *price);
    *price = price_of(x, &l, first, last, chunk, x->fate);
    if (2 * ++x->used > x->cap) {
        grow(x);
        slot = slot_of(x->slot, x->cap, first, last, sort);
    }
    *slot = (Slot){first, last, sort, price};
    return price;
}

/* The load under those fates, paid for as fates.c pays. */
static Load load_of(Prices *x, int first, int last, int chunk, const int *fate)
{
    Load l = live_load(x->live, first, last, chunk, fate);
    prices_pay(x, live_calls(x->live, first, last) + 1 + 4 * (int64_t)live_copies(x->live));
    return l;
}

Price price_with(Prices *x, int first, int last, int chunk, const int *fate)
{
    Load l = load_of(x, first, last, chunk, fate);
    return price_of(x, &l, first, last, chunk, fate);
}

Bytes price_need(Prices *x, int first, int last, int chunk, const int *fate, Ns *time)
{
    Load l = load_of(x, first, last, chunk, fate);
    *time = l.forward + l.backward + l.again + l.stall;
    return l.need;
}

Bytes price_least(const Prices *x, int first, int last, int chunk, Bytes saved)
{
    return floor_need(x->floor, first, last, chunk, saved);
}

int price_reader(const Prices *x, int tensor)
{
    return live_reader(x->live, tensor);
}

bool price_never(const Prices *x, int first, int last, int chunk)
{
    return floor_need(x->floor, first, last, chunk, floor_kept(x->floor, first, last)) > x->limit[chunk];
}

Ns price_floor(Prices *x, int first, int last, int chunk)
{
    return floor_time(x->floor, first, last, chunk, x->limit[chunk]);
}

Ns price_within(Prices *x, int first, int last, int chunk, const Passage *k)
{
    return floor_within(x->floor, first, last, chunk, x->limit[chunk], k);
}
