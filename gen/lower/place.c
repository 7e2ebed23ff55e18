/* SPDX-License-Identifier: Apache-2.0
 *
 * place.c: the addresses of a device's buffers, above its states.
 *
 * Problem: static packing, with two ties to the generated code: the slots of a pool are a literal stride apart, and all
 * micro-batches find a tensor at its offset in their slot.  So a pooled buffer is not one rectangle in (time, address) but as
 * many as it has slots, rigid among each other.  (gen/pack/ solves the problem without these ties, exactly.)
 *
 * Method: first fit, in an order; everything is in the order, and in what is one piece:
 *
 *   blocks    a pool is one piece, all pools lie at the bottom; what the slots do not need at a time is filled by buffers
 *             that are not pooled, in one place for all micro-batches or moving with the slots of a pool of their chunk
 *   loose     pools are pieces like the others: slots of one that are empty while another is full share bytes with it
 *   buffers   each buffer of a pool is a piece of its own, its slots still a stride apart
 *
 * With `close`, the first piece of a pool chooses stride and slots: its micro-batches come one after the other, each to the
 * lowest slot where everything placed so far leaves room; the first that cannot have slot 0 says how far slot 1 is.
 * The usual ones, slot after slot, stay if they end lower.
 *
 * Orders are by size, by length of life (after Y. Pisarchyk and J. Lee, Efficient Memory Management for Deep Neural Net
 * Inference, 2020, section 5), and by birth; then, while the top is more than one per cent above the live-bytes bound
 * and the budget lasts, sizes with noise, the best order kept (T. Feo and M. Resende, Greedy Randomized Adaptive Search
 * Procedures, 1995).  Noise is a hash, and the budget counts comparisons of pieces, not seconds.
 *
 * Where steps overlap, slots turn with the steps, and no byte of one is free for good: blocks alone, each with its place
 * to itself.
 *
 * Cost: per order pieces times placed parts times the micro-batches of both.  Not handled: a stride of its own for each
 * buffer; moving with the slots of another chunk.
 */
#include "mem.h"
#include <stdlib.h>
#include <string.h>

enum { BLOCKS, LOOSE, BUFFERS };
typedef struct { int pieces; bool close; } Style;   /* close: strides and slots of micro-batches are chosen, too */
typedef struct { Bytes in, size; int slot; const Span *span; int n; Home home; } Part;      /* a piece in one slot, ascending */
typedef struct { int pool, room; VEC(Part) part; Span *span; } Form;            /* an item by the slots of a pool; -1: none */
typedef struct { Bytes at, end; const Part *part; } Placed;
typedef struct { Bytes top, *stride; int *slot; Place *place; } Layout;         /* stride by pool, 0: open; slot as in Mem */

typedef struct {
    Mem *m;
    Style style;
    bool still;                 /* its own pool for a buffer, unless another makes the top lower */
    Item **order;
    int n;
    Layout now;
    Form *form, *move, spare;   /* by item: by its own pool, by another; scratch */
    VEC(Placed) placed, kept, more;     /* ascending; scratch */
    Bytes widest;               /* of all placed */
    Part *part;                 /* scratch, for the pieces of an item and all micro-batches */
    int64_t left;               /* of the budget */
} Placer;

static bool meet(const Part *a, const Part *b)
{
    if (a->span[0].first > b->span[b->n - 1].last || b->span[0].first > a->span[a->n - 1].last)
        return false;
    if (a->home.routine >= 0 && b->home.routine >= 0 && (a->home.routine != b->home.routine
        || a->home.call.first > b->home.call.last || b->home.call.first > a->home.call.last))
        return false;           /* routines run one after the other */
    for (int i = 0, j = 0; i < a->n && j < b->n;) {
        if (a->span[i].last < b->span[j].first)
            i++;
        else if (b->span[j].last < a->span[i].first)
            j++;
        else
            return true;
    }
    return false;
}

/* ---- forms ------------------------------------------------------------------------------------------------------- */

static int slot_in(const Placer *w, int pool, int mb)
{
    return pool < 0 ? 0 : w->now.slot[pool * w->m->micro + mb];
}

static int count_of(const Placer *w, int pool)
{
    int most = 0;
    for (int mb = 0; mb < w->m->micro; mb++)
        most = slot_in(w, pool, mb) > most ? slot_in(w, pool, mb) : most;
    return most + 1;
}

/* The spans of one piece in one slot, ascending; false: two micro-batches are there at once. */
static bool collect(const Placer *w, const Tile *p, int pool, int slot, Span *to, int *n)
{
    *n = 0;
    for (int mb = 0; mb < w->m->micro; mb++) {
        const Span *x = &p->life[mb];
        if (x->last < x->first || slot_in(w, pool, mb) != slot)
            continue;
        int k = (*n)++;
        for (; k > 0 && to[k - 1].first > x->first; k--)
            to[k] = to[k - 1];
        to[k] = *x;
    }
    for (int i = 1; i < *n; i++)
        if (to[i].first <= to[i - 1].last)
            return false;
    return true;
}

/* An item by the slots of a pool; false: that cannot be. */
static bool arrange(Placer *w, const Item *x, int pool, Form *f)
{
    if (f->room < x->piece.n) {
        f->span = alloc(sizeof *f->span * (size_t)x->piece.n * (size_t)w->m->micro);
        f->room = x->piece.n;
    }
    f->pool = pool;
    f->part.n = 0;
    bool good = true;
    int slots = count_of(w, pool);
    for (int i = 0; i < x->piece.n; i++) {
        Span *to = f->span + (size_t)i * (size_t)w->m->micro;
        for (int s = 0, n; s < slots; s++, to += n) {
            good &= collect(w, &x->piece.at[i], pool, s, to, &n);
            if (n > 0)
                *PUSH(&f->part) = (Part){x->piece.at[i].in, x->piece.at[i].size, s, to, n, x->piece.at[i].home};
        }
    }
    w->left -= x->piece.n * slots;
    return good;
}

static Bytes stride_of(const Placer *w, int pool)
{
    return pool < 0 ? 0 : w->now.stride[pool];
}

static Bytes within(const Placer *w, const Form *f, const Part *p)
{
    return p->in + p->slot * stride_of(w, f->pool);
}

static Bytes end_of(const Placer *w, const Form *f, Bytes at)
{
    Bytes end = at;
    for (int i = 0; i < f->part.n; i++) {
        Bytes here = at + within(w, f, &f->part.at[i]) + f->part.at[i].size;
        end = here > end ? here : end;
    }
    return end;
}

/* Do two slots of a form share bytes while both are alive? */
static bool entangled(Placer *w, const Form *f)
{
    bool apart = true;
    for (int i = 0; i < f->part.n; i++)
        apart &= f->part.at[i].in + f->part.at[i].size <= stride_of(w, f->pool);
    if (apart)
        return false;
    for (int i = 0; i < f->part.n; i++)
        for (int k = 0; k < i; k++) {
            const Part *p = &f->part.at[i], *q = &f->part.at[k];
            Bytes a = within(w, f, p), b = within(w, f, q);
            if (p->slot != q->slot && a < b + q->size && b < a + p->size && meet(p, q))
                return true;
        }
    w->left -= f->part.n;
    return false;
}

/* ---- room -------------------------------------------------------------------------------------------------------- */

/* The first placed part that may reach beyond `at`: none is larger than the widest. */
static int first_near(const Placer *w, Bytes at)
{
    int low = 0, high = w->placed.n;
    while (low < high) {
        int mid = low + (high - low) / 2;
        if (w->placed.at[mid].at + w->widest <= at)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* The lowest address from `at` on that is free for one part. */
static Bytes lowest_part(Placer *w, const Part *p, Bytes at)
{
    int first = first_near(w, at), i = first;
    for (; i < w->placed.n && w->placed.at[i].at < at + p->size; i++)
        if (w->placed.at[i].end > at && meet(p, w->placed.at[i].part))
            at = w->placed.at[i].end;
    w->left -= i - first + 1;
    return at;
}

/* The lowest place of a form from `base` on. */
static Bytes lowest(Placer *w, const Form *f, Bytes base)
{
    for (int i = 0, same = 0; same < f->part.n; i = (i + 1) % f->part.n) {
        Bytes in = within(w, f, &f->part.at[i]), at = lowest_part(w, &f->part.at[i], base + in) - in;
        same = at == base ? same + 1 : 1;
        base = at;
    }
    return base;
}

static int by_address(const void *a, const void *b)
{
    const Placed *x = a, *y = b;
    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return x->part < y->part ? -1 : x->part > y->part;
}

/* The parts of a form, merged into what is placed. */
static void put_parts(Placer *w, const Form *f, Bytes at)
{
    int old = w->placed.n - 1, new = f->part.n - 1;
    w->more.n = 0;
    for (int i = 0; i < f->part.n; i++) {
        const Part *p = &f->part.at[i];
        Bytes from = at + within(w, f, p);
        *PUSH(&w->more) = (Placed){from, from + p->size, p};
        w->widest = p->size > w->widest ? p->size : w->widest;
        PUSH(&w->placed);
    }
    if (f->part.n > 1)
        qsort(w->more.at, (size_t)w->more.n, sizeof *w->more.at, by_address);
    for (int k = w->placed.n - 1; new >= 0; k--)
        w->placed.at[k] = old >= 0 && w->placed.at[old].at > w->more.at[new].at ? w->placed.at[old--] : w->more.at[new--];
}

static void put(Placer *w, const Item *x, const Form *f, Bytes at)
{
    Bytes end = end_of(w, f, at);
    put_parts(w, f, at);
    w->now.place[x - w->m->item.at] = (Place){at, f->pool, true};
    w->now.top = end > w->now.top ? end : w->now.top;
}

/* ---- slots ------------------------------------------------------------------------------------------------------- */

static bool lives(const Item *x, int mb)
{
    for (int i = 0; i < x->piece.n; i++)
        if (x->piece.at[i].life[mb].last >= x->piece.at[i].life[mb].first)
            return true;
    return false;
}

/* One micro-batch of an item, as a form without slots; parts go to `part`. */
static Form single(const Item *x, int mb, Part *part)
{
    Form f = {.pool = -1, .part = {.at = part, .cap = x->piece.n}};
    for (int i = 0; i < x->piece.n; i++) {
        const Span *s = &x->piece.at[i].life[mb];
        if (s->last >= s->first)
            part[f.part.n++] = (Part){x->piece.at[i].in, x->piece.at[i].size, 0, s, 1, x->piece.at[i].home};
    }
    return f;
}

/* A free slot for one micro-batch, of those in use and the next; -1: none.  Slot 0 is at `base`; the first that cannot be
 * there says how far the next one is. */
static int free_slot(Placer *w, const Form *f, int pool, Bytes base, int used)
{
    if (used == 1 && lowest(w, f, base) != base)
        w->now.stride[pool] = lowest(w, f, base + 1) - base;
    for (int slot = 0; slot <= used; slot++) {
        Bytes at = base + slot * w->now.stride[pool];
        if (lowest(w, f, at) == at)
            return slot;
    }
    return -1;
}

/* Micro-batch after micro-batch into the lowest slot that is free, by what is placed already; false: one finds none, or the
 * budget ends. */
static bool choose_slots(Placer *w, const Item *x)
{
    int micro = w->m->micro, before = w->placed.n, used = 0, slot = 0;
    Part *part = w->part;
    Bytes base = -1;
    w->kept.n = 0;
    for (int i = 0; i < before; i++)
        *PUSH(&w->kept) = w->placed.at[i];
    w->now.stride[x->pool] = 0;
    for (int mb = 0; mb < micro && slot >= 0 && w->left > 0; mb++) {
        Form f = single(x, mb, part + mb * x->piece.n);
        if (!lives(x, mb))
            continue;
        base = base < 0 ? lowest(w, &f, w->m->top) : base;
        slot = free_slot(w, &f, x->pool, base, used);
        used = slot == used ? used + 1 : used;
        w->now.slot[x->pool * micro + mb] = slot;
        if (slot >= 0)
            put_parts(w, &f, base + slot * w->now.stride[x->pool]);
    }
    for (int i = 0; i < before; i++)
        w->placed.at[i] = w->kept.at[i];
    w->placed.n = before;
    if (w->now.stride[x->pool] == 0)
        w->now.stride[x->pool] = x->size;
    return slot >= 0 && w->left > 0;
}

static void usual_slots(Placer *w, int pool)
{
    size_t row = sizeof(int) * (size_t)w->m->micro;
    w->now.stride[pool] = w->m->p->pool.at[pool].stride;
    memcpy(&w->now.slot[pool * w->m->micro], &w->m->slot[pool * w->m->micro], row);
}

/* Do all buffers of a pool bear its slots? */
static bool borne(Placer *w, int pool)
{
    const Mem *m = w->m;
    for (int i = m->pools; i < m->members; i++)
        if (m->item.at[i].pool == pool && (!arrange(w, &m->item.at[i], pool, &w->form[i]) || entangled(w, &w->form[i])))
            return false;
    return true;
}

/* A pool, or the first of its buffers: of the chosen slots and the usual ones those that end lower. */
static void open_pool(Placer *w, const Item *x)
{
    Form *f = &w->form[x - w->m->item.at];
    usual_slots(w, x->pool);
    if (!w->style.close)
        return;
    arrange(w, x, x->pool, f);
    Bytes usual = end_of(w, f, lowest(w, f, w->m->top));
    bool good = choose_slots(w, x) && arrange(w, x, x->pool, f) && !entangled(w, f)
             && (x->buf < 0 || x->pool >= w->m->own || borne(w, x->pool));
    if (!good || end_of(w, f, lowest(w, f, w->m->top)) >= usual)
        usual_slots(w, x->pool);
}

/* ---- one piece --------------------------------------------------------------------------------------------------- */

/* By its own pool, or by another that leaves the top lower, or ends lower below the top. */
static void put_lowest(Placer *w, const Item *x)
{
    int index = (int)(x - w->m->item.at);
    if (x->pool >= 0 && w->now.stride[x->pool] == 0)
        open_pool(w, x);
    Form *best = &w->form[index];
    arrange(w, x, x->pool, best);
    Bytes at = lowest(w, best, w->m->top), end = end_of(w, best, at);
    for (int k = 0; k < x->other.n && x->buf >= 0 && !(w->still && end <= w->now.top); k++) {
        int pool = x->other.at[k];
        if (w->now.stride[pool] == 0 || count_of(w, pool) < 2 || !arrange(w, x, pool, &w->spare) || entangled(w, &w->spare))
            continue;
        Bytes with = lowest(w, &w->spare, w->m->top), then = end_of(w, &w->spare, with);
        if (then < end || (best == &w->form[index] && then <= w->now.top)) {
            Form swap = w->move[index];
            best = &w->move[index];
            *best = w->spare;
            w->spare = swap;
            at = with;
            end = then;
        }
    }
    put(w, x, best, at);
}

/* Where steps overlap: inside the slot of a pool, or above all slots. */
static void put_apart(Placer *w, const Item *x, Bytes slots)
{
    const Mem *m = w->m;
    int index = (int)(x - m->item.at);
    for (int k = 0; k < x->other.n && !w->still && x->pool < 0; k++)
        for (int i = 0; i < m->pools; i++) {
            int pool = x->other.at[k];
            Bytes base = w->now.place[i].at;
            if (m->item.at[i].pool != pool || x->size > w->now.stride[pool] || !arrange(w, x, pool, &w->move[index]))
                continue;
            Bytes at = lowest(w, &w->move[index], base);
            if (at + x->size <= base + w->now.stride[pool]) {
                put(w, x, &w->move[index], at);
                return;
            }
        }
    if (x->pool >= 0)
        usual_slots(w, x->pool);
    arrange(w, x, x->pool, &w->form[index]);
    put(w, x, &w->form[index], lowest(w, &w->form[index], slots));
}

/* ---- one order --------------------------------------------------------------------------------------------------- */

/* False: the top is not below `most`; then places are as far as it got. */
static bool fit(Placer *w, Bytes most)
{
    const Mem *m = w->m;
    w->placed.n = 0;
    w->widest = 0;
    w->now.top = m->top;
    for (int i = 0; i < m->item.n; i++)
        w->now.place[i].is = false;
    memset(w->now.stride, 0, sizeof *w->now.stride * (size_t)m->p->pool.n);
    for (int i = 0; w->style.pieces == BLOCKS && i < m->pools; i++) {
        int pool = m->item.at[i].pool;
        usual_slots(w, pool);
        arrange(w, &m->item.at[i], pool, &w->form[i]);
        put(w, &m->item.at[i], &w->form[i], w->now.top);
        w->now.top = w->now.place[i].at + w->now.stride[pool] * m->p->pool.at[pool].count;
    }
    Bytes slots = w->now.top;
    for (int i = 0; i < w->n && w->now.top < most && (w->style.pieces == BLOCKS || w->left > 0); i++) {
        if (m->overlap)
            put_apart(w, w->order[i], slots);
        else
            put_lowest(w, w->order[i]);
    }
    return w->now.top < most && (w->style.pieces == BLOCKS || w->left > 0);
}

static int by_size(const void *a, const void *b)
{
    const Item *x = *(Item *const *)a, *y = *(Item *const *)b;
    return x->size != y->size ? (x->size > y->size ? -1 : 1) : x < y ? -1 : x > y;
}

static int by_start(const void *a, const void *b)
{
    const Item *x = *(Item *const *)a, *y = *(Item *const *)b;
    return x->first != y->first ? (x->first < y->first ? -1 : 1) : by_size(a, b);
}

static int by_length(const void *a, const void *b)
{
    int64_t x = (*(Item *const *)a)->ticks, y = (*(Item *const *)b)->ticks;
    return x != y ? (x > y ? -1 : 1) : by_size(a, b);
}

static int (*const orders[])(const void *, const void *) = {by_size, by_length, by_start};
enum { ORDERS = sizeof orders / sizeof *orders };

static void set_order(Placer *w, int (*order)(const void *, const void *))
{
    const Mem *m = w->m;
    w->n = 0;
    for (int i = 0; i < m->item.n; i++)
        if (i >= m->members || (i < m->pools ? w->style.pieces == LOOSE : w->style.pieces == BUFFERS))
            w->order[w->n++] = &m->item.at[i];
    qsort(w->order, (size_t)w->n, sizeof *w->order, order);
}

/* ---- the best ---------------------------------------------------------------------------------------------------- */

static const int64_t BUDGET = 2000000;

static Layout new_layout(const Mem *m)
{
    Layout l = {.top = INT64_MAX};
    l.place = alloc(sizeof *l.place * (size_t)(m->item.n + 1));
    l.stride = alloc(sizeof *l.stride * (size_t)(m->p->pool.n + 1));
    l.slot = alloc(sizeof *l.slot * (size_t)(m->p->pool.n + 1) * (size_t)m->micro);
    memcpy(l.slot, m->slot, sizeof *l.slot * (size_t)m->p->pool.n * (size_t)m->micro);
    return l;
}

static Placer new_placer(Mem *m)
{
    size_t n = (size_t)m->item.n + 1, most = 1;
    Placer w = {.m = m, .order = alloc(sizeof *w.order * n), .now = new_layout(m), .left = BUDGET};
    w.form = alloc(sizeof *w.form * n);
    w.move = alloc(sizeof *w.move * n);
    for (int i = 0; i < m->item.n; i++)
        most = (size_t)m->item.at[i].piece.n > most ? (size_t)m->item.at[i].piece.n : most;
    w.part = alloc(sizeof *w.part * most * (size_t)m->micro);
    return w;
}

static void copy_layout(const Mem *m, Layout *to, const Layout *from)
{
    memcpy(to->place, from->place, sizeof *to->place * (size_t)m->item.n);
    memcpy(to->stride, from->stride, sizeof *to->stride * (size_t)m->p->pool.n);
    memcpy(to->slot, from->slot, sizeof *to->slot * (size_t)m->p->pool.n * (size_t)m->micro);
    to->top = from->top;
}

static uint64_t luck(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

static int by_key(const void *a, const void *b)
{
    const Item *x = *(Item *const *)a, *y = *(Item *const *)b;
    return x->key != y->key ? (x->key > y->key ? -1 : 1) : by_size(a, b);
}

/* By size, now and then by size and life, made larger by up to as much, a half, or a quarter. */
static void noisy_keys(Mem *m, uint64_t *state)
{
    int64_t noise = 16 << luck(state) % 3;
    bool area = luck(state) % 4 == 0;
    for (int i = 0; i < m->item.n; i++) {
        Item *x = &m->item.at[i];
        int64_t units = x->size / ALIGN, key = area ? units * (x->ticks / x->piece.n) : units;
        x->key = key * (64 + (int64_t)(luck(state) % (uint64_t)noise));
    }
}

static void shake(Placer *w, Layout *best, Bytes enough)
{
    static const Style styles[] = {{LOOSE, true}, {LOOSE, true}, {BUFFERS, true}, {BUFFERS, false}};
    uint64_t state = 1;
    while (best->top > enough && w->left > 0) {
        noisy_keys(w->m, &state);
        w->style = styles[luck(&state) % 4];
        w->still = luck(&state) % 2;
        set_order(w, by_key);
        if (fit(w, best->top))
            copy_layout(w->m, best, &w->now);
    }
}

static void take_layout(Mem *m, const Layout *l, Place *place)
{
    memcpy(place, l->place, sizeof *place * (size_t)m->item.n);
    for (int x = 0; x < m->p->pool.n; x++) {
        Pool *pool = &m->p->pool.at[x];
        int most = 0;
        if (l->stride[x] == 0)
            continue;
        pool->stride = l->stride[x];
        for (int mb = 0; mb < m->micro; mb++) {
            m->slot[x * m->micro + mb] = l->slot[x * m->micro + mb];
            most = m->slot[x * m->micro + mb] > most ? m->slot[x * m->micro + mb] : most;
        }
        pool->count = m->overlap ? pool->count : most + 1;
    }
}

Bytes mem_place(Mem *m, Place *place)
{
    static const Style styles[] = {{BLOCKS, false}, {LOOSE, false}, {BUFFERS, false}, {LOOSE, true}, {BUFFERS, true}};
    enum { STYLES = sizeof styles / sizeof *styles };
    const DevicePlan *d = &m->p->dev.at[m->device];
    Bytes enough = d->bound + d->bound / 100;
    Placer w = new_placer(m);
    Layout best = new_layout(m);
    for (int s = 0; s < (m->overlap ? 1 : STYLES) && best.top > enough && (s == 0 || w.left > 0); s++)
        for (int k = 0; k < 2 * ORDERS && best.top > d->bound && (s + k == 0 || w.left > 0); k++) {
            w.style = styles[s];
            w.still = k >= ORDERS;
            set_order(&w, orders[k % ORDERS]);
            if (fit(&w, best.top))
                copy_layout(m, &best, &w.now);
        }
    if (!m->overlap)
        shake(&w, &best, enough);
    take_layout(m, &best, place);
    return best.top;
}
