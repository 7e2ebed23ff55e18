/* SPDX-License-Identifier: Apache-2.0
 *
 * place.c: one layout of a device's buffers above its states, by first fit in a given order.
 *
 * Problem: static packing, with two ties to the generated code.  A pool has one slot for each micro-batch, a literal.  All
 * micro-batches find a tensor at its offset in their slot.  So a pooled buffer is not one rectangle in (time, address) but one
 * for each slot, rigid among each other.  (gen/pack/ solves the problem without these ties, exactly.)
 *
 * Method: first fit.  A style decides the pieces and the slots of a pool:
 *
 *   blocks    a pool is one piece, and all pools lie at the bottom.  Buffers without a pool fill the bytes that the slots do
 *             not need at a time, in one place for all micro-batches or moving with the slots of any pool of the device
 *   loose     pools are pieces like the others: slots of one that are empty while another is full share bytes with it
 *   buffers   each buffer of a pool is a piece of its own, its slots still those of the pool
 *
 * With `close`, the first piece of a pool chooses the slots.  Its micro-batches come one after the other.  Each goes to the
 * lowest address where everything placed so far leaves room, a whole number of alignments from the others.  The usual slots,
 * one behind the other, stay if they end lower, and always where micro-batches take them in turn.  With `open`, a buffer that
 * would raise the top may do the same for itself, in a pool of its own.  There are few such pools, because each is one more
 * argument of the routines that use it.
 *
 * Where steps overlap, slots turn with the steps and are always the usual ones.
 *
 * Cost: pieces times the placed parts near the addresses they try, times the spans of both that a search by doubling looks at.
 * The budget counts these.
 */
#include "mem.h"
#include "budgets.h"

/* ---- alive at once ------------------------------------------------------------------------------------------------ */

/* The first span from i on that ends at `tick` or later.  Steps double, then halve: near ones are found at once. */
static int span_from(const MemPiece *p, int i, int tick)
{
    int step = 1, end;
    for (; i + step < p->n && p->span[i + step].last < tick; step *= 2)
        i += step;
    end = i + step < p->n ? i + step : p->n;
    while (i < end) {
        int mid = (i + end) / 2;
        if (p->span[mid].last < tick)
            i = mid + 1;
        else
            end = mid;
    }
    return i;
}

/* Are two parts alive at once? */
static bool meet(Placer *w, const MemPiece *a, const MemPiece *b)
{
    if (a->local.routine >= 0 && b->local.routine >= 0 && (a->local.routine != b->local.routine
        || a->local.call.first > b->local.call.last || b->local.call.first > a->local.call.last))
        return false;           /* routines run one after the other */
    for (int i = 0, j = 0; i < a->n && j < b->n; w->left--) {
        if (a->span[i].last < b->span[j].first)
            i = span_from(a, i, b->span[j].first);
        else if (b->span[j].last < a->span[i].first)
            j = span_from(b, j, a->span[i].first);
        else
            return true;
    }
    return false;
}

/* Does a placed part end above `at`, and is it alive together with this one?  The hours decide most cases, with one branch. */
static inline bool meets(Placer *w, const MemPiece *p, Hours h, Bytes at, const Placed *x)
{
    const uint64_t some = h.some & x->hours.some & -(uint64_t)(x->end > at);
    return some && ((some & h.all) || (some & x->hours.all) || meet(w, p, x->piece));
}

/* ---- forms ------------------------------------------------------------------------------------------------------- */

ORDER(by_slot, MemTurn, order_of(x->slot, y->slot), order_of(x->mb, y->mb))

/* The micro-batches by slot; -1, no pool: all in one. */
static MemTurn *turns_of(const Placer *w, int pool)
{
    return w->turn + (size_t)(pool + 1) * (size_t)w->m->micro;
}

/* Sorts the micro-batches of a pool by slot again, after its slots have changed. */
static void find_turns(Placer *w, int pool)
{
    MemTurn *turn = turns_of(w, pool);
    for (int mb = 0; mb < w->m->micro; mb++)
        turn[mb] = (MemTurn){(pool < 0 ? 0 : w->now.slot[pool * w->m->micro + mb]), mb};
    SORT(turn, w->m->micro, by_slot);
}

/* Bits from .. to - 1 */
static uint64_t bits(int64_t from, int64_t to)
{
    return from < to ? UINT64_MAX >> (64 - to + from) << from : 0;
}

static void add_hours(Placer *w, const Span *x, Hours *h)
{
    Hours *hours = &w->hours[x - w->m->live];
    int64_t first = x->first, end = x->last + (int64_t)1, ticks = w->m->ticks;
    if (!hours->some)
        *hours = (Hours){bits(first * 64 / ticks, (end * 64 - 1) / ticks + 1),
                         bits((first * 64 + ticks - 1) / ticks, end * 64 / ticks)};
    h->some |= hours->some;
    h->all |= hours->all;
}

/* The spans of one piece in one slot of n micro-batches, ascending.  False: two micro-batches are there at once. */
static bool collect(Placer *w, const Tile *p, const MemTurn *turn, int n, MemPiece *to, Span *span)
{
    *to = (MemPiece){.in = p->in, .size = p->size, .slot = turn->slot, .span = span, .local = p->local};
    for (int i = 0; i < n; i++) {
        const Span *x = &p->life[turn[i].mb];
        if (x->last < x->first)
            continue;
        int k = to->n++;
        for (; k > 0 && span[k - 1].first > x->first; k--)
            span[k] = span[k - 1];
        span[k] = *x;
        add_hours(w, x, &to->hours);
    }
    for (int i = 1; i < to->n; i++)
        if (span[i].first <= span[i - 1].last)
            return false;
    return true;
}

/* An item by the slots of a pool; false: that cannot be. */
static bool arrange(Placer *w, const Item *x, int pool, Form *f)
{
    if (f->room < x->piece.n) {
        size_t most = (size_t)x->piece.n * (size_t)w->m->micro;
        f->span = alloc(sizeof *f->span * most);
        f->piece.at = alloc(sizeof *f->piece.at * most);
        f->piece.cap = (int)most;
        f->room = x->piece.n;
    }
    f->pool = pool;
    f->piece.n = 0;
    bool good = true;
    int micro = w->m->micro;
    const MemTurn *turn = turns_of(w, pool);
    Span *span = f->span;
    for (int from = 0, to; from < micro; from = to) {
        for (to = from + 1; to < micro && turn[to].slot == turn[from].slot; to++)
            continue;
        for (int i = 0; i < x->piece.n; i++) {
            MemPiece *part = &f->piece.at[f->piece.n];
            good &= collect(w, &x->piece.at[i], turn + from, to - from, part, span);
            span += part->n;
            f->piece.n += part->n > 0;
        }
    }
    w->left -= f->piece.n + micro / 2 + 1;
    return good;
}

/* Has a pool more than one slot? */
static bool moves(const Placer *w, int pool)
{
    return turns_of(w, pool)[0].slot != turns_of(w, pool)[w->m->micro - 1].slot;
}

static Bytes stride_of(const Placer *w, int pool)
{
    return pool < 0 ? 0 : w->now.stride[pool];
}

static Bytes within(const Placer *w, const Form *f, const MemPiece *p)
{
    return p->in + p->slot * stride_of(w, f->pool);
}

static Bytes end_of(const Placer *w, const Form *f, Bytes at)
{
    Bytes end = at;
    for (int i = 0; i < f->piece.n; i++) {
        Bytes here = at + within(w, f, &f->piece.at[i]) + f->piece.at[i].size;
        end = here > end ? here : end;
    }
    return end;
}

/* Do two slots of a form share bytes while both are alive? */
static bool entangled(Placer *w, const Form *f)
{
    bool apart = true;
    for (int i = 0; i < f->piece.n; i++)
        apart &= f->piece.at[i].in + f->piece.at[i].size <= stride_of(w, f->pool);
    if (apart)
        return false;
    for (int i = 0; i < f->piece.n; i++)
        for (int k = 0; k < i; k++) {
            const MemPiece *p = &f->piece.at[i], *q = &f->piece.at[k];
            Bytes a = within(w, f, p), b = within(w, f, q);
            if (p->slot != q->slot && a < b + q->size && b < a + p->size && meet(w, p, q))
                return true;
        }
    w->left -= f->piece.n;
    return false;
}

/* ---- room -------------------------------------------------------------------------------------------------------- */

/* The first placed part that may reach beyond `at`, since no part is larger than the widest. */
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

/* The first from `low` on that may reach beyond `at`, or stands behind one that may. */
static int first_beyond(const Placer *w, int low, Bytes at)
{
    for (int high = w->placed.n; low < high;) {
        int mid = low + (high - low) / 2;
        if (w->placed.at[mid].reach <= at)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* The lowest address from `at` on that is free for one part.  The budget pays for all that are near. */
static Bytes lowest_part(Placer *w, const MemPiece *p, Bytes at)
{
    const int near = first_near(w, at);
    const Placed *first = w->placed.at + near, *end = w->placed.at + w->placed.n;
    const Placed *x = w->placed.at + first_beyond(w, near, at);
    const Hours h = p->hours;
    const Bytes size = p->size;
    for (; x < end && x->at < at + size; x++)
        if (meets(w, p, h, at, x))
            at = x->end;
    w->left -= x - first + 1;
    return at;
}

/* The lowest place of a form from `base` on.  If it ends at `most` or higher, any such place is returned. */
static Bytes lowest(Placer *w, const Form *f, Bytes base, Bytes most)
{
    Bytes height = end_of(w, f, 0);
    for (int i = 0, same = 0; same < f->piece.n && base < most - height; i = (i + 1) % f->piece.n) {
        Bytes in = within(w, f, &f->piece.at[i]), at = lowest_part(w, &f->piece.at[i], base + in) - in;
        same = at == base ? same + 1 : 1;
        base = at;
    }
    return base;
}

ORDER(by_address, Placed, order_of(x->at, y->at), (x->piece > y->piece) - (x->piece < y->piece))

/* Room for so many parts, which nobody clears: PUSH would, each of them each time. */
static void make_room(Parts *v, int n)
{
    for (int had = v->n; v->cap < n; v->n = had) {
        v->n = v->cap;
        PUSH(v);
    }
}

static void reach_from(Placer *w, int i)
{
    for (Bytes reach = i > 0 ? w->placed.at[i - 1].reach : 0; i < w->placed.n; i++)
        w->placed.at[i].reach = reach = w->placed.at[i].end > reach ? w->placed.at[i].end : reach;
}

/* The parts of a form, merged into what is placed. */
static void put_parts(Placer *w, const Form *f, Bytes at)
{
    int old = w->placed.n - 1, new = f->piece.n - 1;
    make_room(&w->more, f->piece.n);
    make_room(&w->placed, w->placed.n + f->piece.n);
    w->more.n = f->piece.n;
    for (int i = 0; i < f->piece.n; i++) {
        const MemPiece *p = &f->piece.at[i];
        Bytes from = at + within(w, f, p);
        w->more.at[i] = (Placed){from, from + p->size, 0, p->hours, p};
        w->widest = p->size > w->widest ? p->size : w->widest;
    }
    w->placed.n += f->piece.n;
    if (f->piece.n > 1)
        SORT(w->more.at, w->more.n, by_address);
    for (int k = w->placed.n - 1; new >= 0; k--)
        w->placed.at[k] = old >= 0 && w->placed.at[old].at > w->more.at[new].at ? w->placed.at[old--] : w->more.at[new--];
    reach_from(w, old + 1);
}

static void put(Placer *w, const Item *x, Form *f, Bytes at)
{
    Bytes end = end_of(w, f, at);
    for (int i = 0; i < f->piece.n; i++)
        f->piece.at[i].step = w->done;
    put_parts(w, f, at);
    w->now.spot[x - w->m->item.at] = (Place){at, f->pool, true};
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

static Form single(Placer *w, const Item *x, int mb, MemPiece *part)
{
    Form f = {.pool = -1, .piece = {.at = part, .cap = x->piece.n}};
    for (int i = 0; i < x->piece.n; i++) {
        const Span *s = &x->piece.at[i].life[mb];
        if (s->last < s->first)
            continue;
        MemPiece *to = &part[f.piece.n++];
        const Tile *tile = &x->piece.at[i];
        *to = (MemPiece){.in = tile->in, .size = tile->size, .span = s, .n = 1, .local = tile->local};
        add_hours(w, s, &to->hours);
    }
    return f;
}

/* Micro-batch after micro-batch at the lowest address where everything placed so far leaves room; false: one ends at `most`
 * or higher, the budget ends, or slots of an arena that nobody has are too high for a number. */
static bool choose_slots(Placer *w, const Item *x, int pool, Bytes most)
{
    int micro = w->m->micro, before = w->placed.n, *slot = &w->now.slot[pool * micro], least = INT32_MAX;
    bool small = true, low = true;
    make_room(&w->kept, before);
    if (before)
        memcpy(w->kept.at, w->placed.at, sizeof *w->kept.at * (size_t)before);
    w->now.stride[pool] = ALIGN;
    for (int mb = 0; mb < micro && w->left > 0 && low; mb++) {
        slot[mb] = -1;
        if (!lives(x, mb))
            continue;
        Form f = single(w, x, mb, w->piece + mb * x->piece.n);
        Bytes at = lowest(w, &f, w->floor, most);
        low = end_of(w, &f, at) < most;
        small &= (at - w->floor) / ALIGN < INT32_MAX;
        slot[mb] = small ? (int)((at - w->floor) / ALIGN) : 0;
        least = slot[mb] < least ? slot[mb] : least;
        put_parts(w, &f, at);
    }
    for (int mb = 0; mb < micro; mb++)
        slot[mb] = slot[mb] < 0 ? 0 : slot[mb] - least;
    if (low)
        find_turns(w, pool);
    if (before)
        memcpy(w->placed.at, w->kept.at, sizeof *w->kept.at * (size_t)before);
    w->placed.n = before;
    return low && small && w->left > 0;
}

static void usual_slots(Placer *w, int pool)
{
    size_t row = sizeof(int) * (size_t)w->m->micro;
    w->now.stride[pool] = w->m->p->pool.at[pool].stride;
    if (w->m->overlap)
        return;
    memcpy(&w->now.slot[pool * w->m->micro], &(w->ring ? w->m->ring : w->m->slot)[pool * w->m->micro], row);
    find_turns(w, pool);
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

/* Places a pool, or the first of its buffers, with the chosen slots or the usual ones: those that end lower. */
static void open_pool(Placer *w, const Item *x)
{
    Form *f = &w->form[x - w->m->item.at];
    usual_slots(w, x->pool);
    if (!w->style.close || (w->ring && moves(w, x->pool)))
        return;
    arrange(w, x, x->pool, f);
    Bytes usual = end_of(w, f, lowest(w, f, w->floor, w->most));
    bool good = choose_slots(w, x, x->pool, usual) && arrange(w, x, x->pool, f) && !entangled(w, f)
             && (x->buf < 0 || x->pool >= w->m->single || borne(w, x->pool));
    if (!good || end_of(w, f, lowest(w, f, w->floor, usual)) >= usual)
        usual_slots(w, x->pool);
}

/* ---- one piece --------------------------------------------------------------------------------------------------- */

typedef struct { Form *form; Bytes at, end; } MemBest;

/* An item by the slots of a pool; NULL: that cannot be.  Where steps overlap slots do not change, and the form is kept.  Else
 * it is valid until the next one is asked for. */
static Form *form_of(Placer *w, int index, int pool)
{
    const Mem *m = w->m;
    Form *f = m->overlap ? &w->fixed[(size_t)index * (size_t)(m->p->pool.n + 1) + (size_t)(pool + 1)] : &w->spare;
    if (!m->overlap || f->fits == UNKNOWN)
        f->fits = arrange(w, &m->item.at[index], pool, f) && !entangled(w, f) ? YES : NO;
    return f->fits == YES ? f : NULL;
}

/* Is the item lower by the slots of this pool than the best so far?  `first`: the best is that of its own pool.  Then a form
 * that keeps below the top is as good. */
static bool improve(Placer *w, int index, int pool, bool first, MemBest *best)
{
    Form *f = form_of(w, index, pool);
    bool same_pool = first && best->form == &w->form[index];
    Bytes most = same_pool && w->now.top >= best->end ? w->now.top + 1 : best->end;
    Bytes at = f ? lowest(w, f, w->floor, most) : 0, end = f ? end_of(w, f, at) : INT64_MAX;
    if (end >= most)
        return false;
    if (f == &w->spare) {       /* the next one must not overwrite it */
        Form swap = w->move[index];
        w->move[index] = w->spare;
        w->spare = swap;
        f = &w->move[index];
    }
    *best = (MemBest){f, at, end};
    return true;
}

/* Extra pools take turns: each direction, and both. */
int place_extra(const Mem *m, const Item *x, int from)
{
    int turns = plan_ways(m->p) > 1 ? plan_ways(m->p) + 1 : 1;
    return from + (x->pipeline - from % turns + turns) % turns;
}

/* Tries a pool of the item's own, and takes it if that keeps the top lower. */
static void improve_alone(Placer *w, int index, MemBest *best)
{
    const Mem *m = w->m;
    int next = place_extra(m, &m->item.at[index], w->now.opened), pool = m->extra + next;
    if (!w->style.open || !m->item.at[index].moves || best->end <= w->now.top || next >= OPENED_POOLS)
        return;
    if (choose_slots(w, &m->item.at[index], pool, best->end) && improve(w, index, pool, false, best))
        w->now.opened = next + 1;
    else
        w->now.stride[pool] = 0;
}

/* ---- one order --------------------------------------------------------------------------------------------------- */

static void put_blocks(Placer *w)
{
    const Mem *m = w->m;
    for (int i = 0; i < m->pools; i++) {
        int pool = m->item.at[i].pool;
        usual_slots(w, pool);
        arrange(w, &m->item.at[i], pool, &w->form[i]);
        put(w, &m->item.at[i], &w->form[i], w->now.top);
        w->now.top = w->now.spot[i].at + w->now.stride[pool] * m->p->pool.at[pool].count;
    }
    w->floor = m->apart ? w->now.top : m->top;
}

/* Pieces from w->done on. */
static bool place_rest(Placer *w)
{
    bool blocks = w->style.pieces == BLOCKS;
    for (; w->done < w->n && w->now.top < w->most && (blocks || w->left > 0); w->done++) {
        w->before[w->done] = (Before){w->left, w->now.top, w->widest, w->now.opened, -1};
        /* Places an item by its own pool, or by another that leaves the top lower or ends lower below it. */
        const Item *x = w->sorted[w->done];
        int index = (int)(x - w->m->item.at);
        if (x->pool >= 0 && w->now.stride[x->pool] == 0) {
            w->before[w->done].pool = x->pool;
            open_pool(w, x);
        }
        if (!w->m->overlap || w->form[index].piece.n == 0)
            arrange(w, x, x->pool, &w->form[index]);
        MemBest best = {.form = &w->form[index], .at = lowest(w, &w->form[index], w->floor, w->most)};
        best.end = end_of(w, best.form, best.at);
        for (int k = 0; k < x->other.n && x->buf >= 0 && !(w->still && best.end <= w->now.top); k++) {
            int pool = x->other.at[k];
            if (w->now.stride[pool] > 0 && moves(w, pool))
                improve(w, index, pool, true, &best);
        }
        for (int k = place_extra(w->m, x, 0); k < w->now.opened && x->moves && !(w->still && best.end <= w->now.top);
             k = place_extra(w->m, x, k + 1))
            if (w->now.stride[w->m->extra + k] > 0)
                improve(w, index, w->m->extra + k, true, &best);
        improve_alone(w, index, &best);
        put(w, x, best.form, best.at);
    }
    return w->now.top < w->most && (blocks || w->left > 0);
}

bool place_all(Placer *w, Bytes most)
{
    const Mem *m = w->m;
    w->placed.n = w->done = 0;
    w->widest = 0;
    w->now.top = w->floor = m->top;
    w->now.opened = 0;
    w->most = most;
    for (int i = 0; i < m->item.n; i++)
        w->now.spot[i].is = false;
    memset(w->now.stride, 0, sizeof *w->now.stride * (size_t)m->p->pool.n);
    if (w->style.pieces == BLOCKS)
        put_blocks(w);
    return place_rest(w);
}

/* The budget pays for the pieces that stand, as if they were placed again: so the answer is that of place_all(). */
bool place_again(Placer *w, Bytes most, int same)
{
    const Before at = w->before[same];
    int64_t more = w->left - w->before[0].left;
    int n = 0;
    if (same == 0)
        return place_all(w, most);
    for (int i = 0; i < w->placed.n; i++)
        if (w->placed.at[i].piece->step < same)
            w->placed.at[n++] = w->placed.at[i];
    for (int i = same; i < w->done; i++)
        if (w->before[i].pool >= 0)
            w->now.stride[w->before[i].pool] = 0;
    for (int x = at.opened; x < w->now.opened; x++)
        w->now.stride[w->m->extra + x] = 0;
    for (int i = 0; i < same; i++)
        w->before[i].left += more;
    w->placed.n = n;
    w->done = same;
    w->left = at.left + more;
    w->widest = at.widest;
    w->now.top = at.top;
    w->now.opened = at.opened;
    return place_rest(w);
}

void place_order(Placer *w, int (*order)(const void *, const void *))
{
    const Mem *m = w->m;
    w->n = 0;
    for (int i = 0; i < m->item.n; i++)
        if (i >= m->members || (i < m->pools ? w->style.pieces == LOOSE : w->style.pieces == BUFFERS))
            w->sorted[w->n++] = &m->item.at[i];
    SORT(w->sorted, w->n, order);
}

void place_copy(const Mem *m, Layout *to, const Layout *from)
{
    memcpy(to->spot, from->spot, sizeof *to->spot * (size_t)m->item.n);
    memcpy(to->stride, from->stride, sizeof *to->stride * (size_t)m->p->pool.n);
    memcpy(to->slot, from->slot, sizeof *to->slot * (size_t)m->p->pool.n * (size_t)m->micro);
    to->top = from->top;
    to->opened = from->opened;
}

Layout place_layout(const Mem *m)
{
    Layout l = {.top = INT64_MAX};
    l.spot = alloc(sizeof *l.spot * (size_t)(m->item.n + 1));
    l.stride = alloc(sizeof *l.stride * (size_t)(m->p->pool.n + 1));
    l.slot = alloc(sizeof *l.slot * (size_t)(m->p->pool.n + 1) * (size_t)m->micro);
    memcpy(l.slot, m->slot, sizeof *l.slot * (size_t)m->p->pool.n * (size_t)m->micro);
    return l;
}

Placer place_new(Mem *m, int64_t budget)
{
    size_t n = (size_t)m->item.n + 1, most = 1;
    Placer w = {.m = m, .sorted = alloc(sizeof *w.sorted * n), .now = place_layout(m), .left = budget};
    w.form = alloc(sizeof *w.form * n);
    w.before = alloc(sizeof *w.before * n);
    w.hours = alloc(sizeof *w.hours * (size_t)m->rows * (size_t)m->micro);
    w.move = alloc(sizeof *w.move * n);
    for (int i = 0; i < m->item.n; i++)
        most = (size_t)m->item.at[i].piece.n > most ? (size_t)m->item.at[i].piece.n : most;
    w.piece = alloc(sizeof *w.piece * most * (size_t)m->micro);
    w.turn = alloc(sizeof *w.turn * (size_t)m->micro * (size_t)(m->p->pool.n + 1));
    for (int x = -1; x < (m->overlap ? m->p->pool.n : 0); x++)
        find_turns(&w, x);
    w.fixed = m->overlap ? alloc(sizeof *w.fixed * n * (size_t)(m->p->pool.n + 1)) : NULL;
    return w;
}
