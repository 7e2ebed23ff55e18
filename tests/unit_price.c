/* SPDX-License-Identifier: Apache-2.0
 *
 * unit_price.c: what a stage costs, against the passes that build it and against brute force.
 *
 *   fates     every choice of fates of small random runs, each replayed here tick by tick over the whole list of a device:
 *             price_best has the same time, fits when brute force does, and needs the same where nothing fits; the floor is
 *             never above
 *   offload   the same with what may wait in the host's memory, judged by price_with
 *   search    runs too large to enumerate: how far from the best
 */
#include "near.h"

/* ---- random runs with gradients ------------------------------------------------------------------------------------ */

static bool touches(const Op *o, ArgKind kind, int t)
{
    for (int i = 0; i < o->arg.n; i++)
        if (o->arg.at[i].kind == kind && !o->arg.at[i].state && o->arg.at[i].index == t)
            return true;
    return false;
}

static Bytes some_bytes(void)
{
    return ALIGN * (dice(5) ? 1 + dice(12) : 1 + dice(60));
}

/* The gradient of tensor t, term by term: each reader's backward writes one, the producer's backward reads them all. */
static void add_backward(World *w, int i, Ints *terms)
{
    int input = add_op(w, PH_I, i)->fwd, weight = -1, from = w->g.op.n - 1;
    if (dice(2))
        weight = add_op(w, PH_W, i)->fwd + 1;
    for (int o = from; o < w->g.op.n; o++) {
        Op *op = &w->g.op.at[o];
        op->tmp = ALIGN * dice(8);
        for (int a = 0; a < w->g.op.at[i].arg.n; a++) {
            const Arg *x = &w->g.op.at[i].arg.at[a];
            if (dice(3))
                put_arg(op, ARG_READ, false, x->index);
            for (int k = 0; x->kind == ARG_WRITE && k < terms[x->index].n; k++)
                put_arg(op, ARG_READ, false, terms[x->index].at[k]);
        }
    }
    for (int a = 0; input >= 0 && weight < 1000 && a < w->g.op.at[i].arg.n; a++) {
        Arg x = w->g.op.at[i].arg.at[a];
        if (x.kind != ARG_READ || w->g.tensor.at[x.index].op < 0)
            continue;
        int term = add_tensor(w, T_GRAD, w->g.tensor.at[x.index].bytes, from);
        put_arg(&w->g.op.at[from], ARG_WRITE, false, term);
        *PUSH(&terms[x.index]) = term;
    }
}

static World *random_world(int n)
{
    World *w = alloc(sizeof *w);
    w->g = (Graph){.name = "random", .batch = 1, .micro = 1 + dice(6), .groups = 1, .nf = n};
    int input = add_tensor(w, T_INPUT, some_bytes(), -1);
    Ints made = {0};
    for (int i = 0; i < n; i++) {
        int from = made.n;
        Op *o = add_op(w, PH_F, i);
        o->tmp = ALIGN * dice(10);
        put_arg(o, ARG_READ, false, from ? made.at[from - 1] : input);
        for (int k = dice(3); k > 0; k--)
            put_arg(o, ARG_READ, false, from ? made.at[dice(from)] : input);
        for (int k = 1 + (dice(4) == 0); k > 0; k--) {
            *PUSH(&made) = add_tensor(w, T_ACT, some_bytes(), i);
            put_arg(&w->g.op.at[i], ARG_WRITE, false, made.at[made.n - 1]);
        }
    }
    Ints *terms = alloc(sizeof *terms * (size_t)w->g.tensor.n);
    for (int i = n - 1; i >= 0; i--)
        add_backward(w, i, terms);
    w->g.nb = w->g.op.n;
    for (int k = dice(3); k > 0; k--)
        add_param(w, 1 + dice(3));
    w->g.vals = w->g.state.n;
    *PUSH(&w->g.state) = (State){.name = "values", .kind = S_VALUES, .bytes = 8, .param = -1, .op = -1};
    return w;
}

/* ---- a plain replay, tick by tick ---------------------------------------------------------------------------------- */

typedef struct { int first, last; } Life;
typedef struct {
    const World *w;
    const int *fate;
    int a, b, tick;
    Life *life;                 /* [(tensor * 2 + remade) * micro + mb], ticks from 1; 0: never */
    Ints scratch;               /* by tick: bytes of scratch */
    bool *kept, *again, *remade;
    Ints line;                  /* backward: operators, ~operator if made again */
} Plain;

static bool inside(const Plain *x, int op)
{
    return op >= 0 && x->w->g.op.at[op].fwd >= x->a && x->w->g.op.at[op].fwd <= x->b;
}

static void need_of(Plain *x, int t)
{
    const Graph *g = &x->w->g;
    int op = g->tensor.at[t].op;
    if (x->kept[t] || x->remade[t] || g->tensor.at[t].kind == T_GRAD)
        return;
    if (!inside(x, op) || x->fate[t] == FATE_KEEP) {
        x->kept[t] = true;
        return;
    }
    if (x->again[op])
        return;
    x->again[op] = true;
    for (int i = 0; i < g->op.at[op].arg.n; i++)
        if (g->op.at[op].arg.at[i].kind == ARG_READ && !g->op.at[op].arg.at[i].state)
            need_of(x, g->op.at[op].arg.at[i].index);
    *PUSH(&x->line) = ~op;
    for (int t2 = 0; t2 < g->tensor.n; t2++)
        if (g->tensor.at[t2].op == op && !x->kept[t2])
            x->remade[t2] = true;
}

static void line_of(Plain *x)
{
    const Graph *g = &x->w->g;
    Ints before = {0};
    bool early = false;
    for (int o = g->nf; o < g->nb; o++)
        for (int t = 0; t < g->tensor.n; t++) {
            int made = g->tensor.at[t].op;
            bool drop = inside(x, made) && x->fate[t] != FATE_KEEP;
            if (inside(x, o) && touches(&g->op.at[o], ARG_READ, t) && g->tensor.at[t].kind != T_GRAD && !drop)
                x->kept[t] = true;
        }
    for (int o = g->nf; o < g->nb; o++) {
        if (!inside(x, o))
            continue;
        for (int i = 0; i < g->op.at[o].arg.n; i++)
            if (g->op.at[o].arg.at[i].kind == ARG_READ)
                need_of(x, g->op.at[o].arg.at[i].index);
        if (!early && x->line.n) {
            early = true;
            for (int i = 0; i < before.n; i++)
                *PUSH(&x->line) = before.at[i];
        }
        *PUSH(early ? &x->line : &before) = o;
    }
    if (!early)
        x->line = before;
}

static void live_at(Plain *x, int t, bool remade, int mb)
{
    Life *l = &x->life[(t * 2 + remade) * (int)x->w->g.micro + mb];
    l->first = l->first ? l->first : x->tick;
    l->last = x->tick;
}

static void next_tick(Plain *x, Bytes scratch)
{
    *PUSH(&x->scratch) = (int)scratch;
    x->tick++;
}

static void run_call(Plain *x, int op, bool again, bool backward, int mb)
{
    const Op *o = &x->w->g.op.at[op];
    for (int i = 0; i < o->arg.n; i++)
        if (!o->arg.at[i].state) {
            int t = o->arg.at[i].index;
            bool write = o->arg.at[i].kind == ARG_WRITE;
            live_at(x, t, backward && x->remade[t] && (again || !write), mb);
        }
    next_tick(x, o->tmp);
}

static void run_action(Plain *x, const Action *k)
{
    for (int o = x->a; k->kind == K_F && o <= x->b; o++)
        run_call(x, o, false, false, k->mb);
    for (int i = 0; k->kind == K_B && i < x->line.n; i++)
        run_call(x, x->line.at[i] < 0 ? ~x->line.at[i] : x->line.at[i], x->line.at[i] < 0, true, k->mb);
}

/* Does a computation of this kind here read tensor t of another chunk; does it make what another one reads? */
static bool crosses(const Plain *x, int t, ActionKind kind, bool out)
{
    const Graph *g = &x->w->g;
    int made = g->tensor.at[t].op;
    if (made < 0 || inside(x, made) != out || (g->tensor.at[t].kind == T_GRAD) != (kind == K_B))
        return false;
    for (int o = 0; o < g->nb; o++)
        if (inside(x, o) != out && touches(&g->op.at[o], ARG_READ, t))
            return true;
    return false;
}

static void move(Plain *x, const Action *k, bool out)
{
    if (k->kind != K_F && k->kind != K_B)
        return;
    for (int t = 0; t < x->w->g.tensor.n; t++)
        if (crosses(x, t, k->kind, out)) {
            live_at(x, t, false, k->mb);
            next_tick(x, 0);
        }
}

/* Receives are posted one computation ahead, sends are waited for one computation behind; two where spare micro-batches are
 * held (policy B). */
static Bytes peak_of(Plain *x, int chunk)
{
    const World *w = x->w;
    const Actions *list = &w->p.dev.at[chunk].order;
    int slack = order_slack(&w->p);
    Bytes most = 0;
    x->tick = 1;
    for (int i = 0; i < slack && i < list->n; i++)
        move(x, &list->at[i], false);
    for (int i = 0; i < list->n; i++) {
        if (i + slack < list->n)
            move(x, &list->at[i + slack], false);
        if (i > slack)
            move(x, &list->at[i - slack - 1], true);
        run_action(x, &list->at[i]);
        move(x, &list->at[i], true);
    }
    for (int tick = 1; tick < x->tick; tick++) {
        Bytes now = x->scratch.at[tick - 1];
        for (int i = 0; i < 2 * w->g.tensor.n * (int)w->g.micro; i++)
            if (x->life[i].first && x->life[i].first <= tick && tick <= x->life[i].last)
                now += w->g.tensor.at[i / (2 * (int)w->g.micro)].bytes;
        most = now > most ? now : most;
    }
    return most;
}

static Bytes rounded(Bytes n)
{
    return (n + ALIGN - 1) / ALIGN * ALIGN;
}

static Bytes states_of(const World *w, int a, int b, Bytes *visiting)
{
    Bytes sum = ALIGN;          /* step values */
    for (int s = 0; s < w->g.state.n; s++) {
        const State *x = &w->g.state.at[s];
        if (x->param < 0)
            continue;
        int home = w->g.state.at[x->param].op;
        bool here = home >= a && home <= b, used = false, copied = false;
        for (int k = 0; k < w->g.state.n; k++) {
            const State *y = &w->g.state.at[k];
            used |= y->kind == S_GRAD && y->param == x->param && y->op >= a && y->op <= b;
            copied |= y->kind == S_COPY && y->param == x->param;
        }
        bool guest = x->kind == S_COPY || (x->kind == S_PARAM && !copied);
        if (x->kind == S_GRAD)
            sum += x->op >= a && x->op <= b ? rounded(x->bytes) : 0;
        else
            sum += here || (used && guest) ? rounded(x->bytes) : 0;
        if (x->kind == S_GRAD && here && !(x->op >= a && x->op <= b))
            *visiting += rounded(x->bytes);
    }
    return sum;
}

static void replay(const World *w, const int *fate, int a, int b, int chunk, Bytes *need, Ns *again, Ns *early)
{
    size_t nt = (size_t)w->g.tensor.n;
    Plain x = {.w = w, .fate = fate, .a = a, .b = b, .kept = alloc(nt), .remade = alloc(nt),
               .again = alloc((size_t)w->g.op.n), .life = alloc(sizeof(Life) * 2 * nt * (size_t)w->g.micro)};
    Bytes visiting = 0, states = states_of(w, a, b, &visiting);
    line_of(&x);
    Bytes most = peak_of(&x, chunk);
    *need = states + (most > visiting ? most : visiting);
    *again = *early = 0;
    for (int i = 0, front = 1; i < x.line.n; front &= x.line.at[i++] < 0)
        if (x.line.at[i] < 0)
            *again += cost_alone(&w->c, 0, ~x.line.at[i]), *early = front ? *again : *early;
}

/* ---- fates --------------------------------------------------------------------------------------------------------- */

static Ns base_of(const World *w, int a, int b)
{
    Ns sum = cost_alone(&w->c, 0, a) - w->c.ns[0][a];
    for (int o = 0; o < w->g.nb; o++)
        sum += w->g.op.at[o].fwd >= a && w->g.op.at[o].fwd <= b ? w->c.ns[0][o] : 0;
    return sum;
}

/* Operands and scratch of a call, each tensor once. */
static Bytes operands_of(const World *w, int o)
{
    const Op *op = &w->g.op.at[o];
    Bytes sum = rounded(op->tmp);
    for (int i = 0; i < op->arg.n; i++) {
        bool other = !op->arg.at[i].state;
        for (int k = 0; k < i; k++)
            other &= op->arg.at[k].state || op->arg.at[k].index != op->arg.at[i].index;
        sum += other ? rounded(w->g.tensor.at[op->arg.at[i].index].bytes) : 0;
    }
    return sum;
}

/* The least that a run needs if nothing rests: its states, guests too, and the largest call or what comes home. */
static void compare_least(const World *w, const Prices *x, int number, int a, int b, int chunk)
{
    Bytes home = 0, states = states_of(w, a, b, &home) - ALIGN, most = 0;       /* without step values */
    for (int o = 0; o < w->g.nb; o++) {
        Bytes bytes = w->g.op.at[o].fwd >= a && w->g.op.at[o].fwd <= b ? operands_of(w, o) : 0;
        most = bytes > most ? bytes : most;
    }
    Bytes least = price_least(x, a, b, chunk, 0), limit[8];
    check(least == states + (home > most ? home : most), "graph %d: at least %lld bytes, states %lld, %lld or %lld", number,
          (long long)least, (long long)states, (long long)home, (long long)most);
    for (int d = 0; d < 8; d++)
        limit[d] = least - 1;
    Ns floor = price_floor(prices_open(&w->p, price_whole(&w->p, limit)), a, b, chunk);
    check(floor == INT64_MAX, "graph %d: floor %lld under %lld bytes", number, (long long)floor, (long long)limit[0]);
}

static void compare_fates(World *w, int number, int a, int b, int chunk)
{
    Ints own = {0};
    for (int t = 0; t < w->g.tensor.n; t++)
        if (w->g.tensor.at[t].kind == T_ACT && w->g.tensor.at[t].op >= a && w->g.tensor.at[t].op <= b)
            *PUSH(&own) = t;
    int *fate = alloc(sizeof *fate * (size_t)w->g.tensor.n), count = 1 << own.n;
    Bytes *need = alloc(sizeof *need * (size_t)count), limit[8], least = INT64_MAX;
    Ns *again = alloc(sizeof *again * (size_t)count), best = INT64_MAX, base = base_of(w, a, b), early;
    for (int choice = 0; choice < count; choice++) {
        for (int i = 0; i < own.n; i++)
            fate[own.at[i]] = choice >> i & 1 ? FATE_RECOMPUTE : FATE_KEEP;
        replay(w, fate, a, b, chunk, &need[choice], &again[choice], &early);
        least = need[choice] < least ? need[choice] : least;
    }
    for (int d = 0; d < 8; d++)
        limit[d] = least - (dice(4) == 0) + dice((int)(need[0] - least + 2));
    for (int choice = 0; choice < count; choice++)
        if (need[choice] <= limit[0] && again[choice] < best)
            best = again[choice];
    for (int d = 1; d < 8; d++)
        limit[d] = limit[0];
    Prices *x = prices_open(&w->p, price_whole(&w->p, limit));
    const Price *price = price_best(x, a, b, chunk);
    for (int i = 0; i < own.n; i++)
        fate[own.at[i]] = FATE_KEEP;
    Price all = price_with(x, a, b, chunk, fate);
    check(all.need == need[0], "graph %d: %lld bytes with all kept, replay %lld", number, (long long)all.need,
          (long long)need[0]);
    for (int i = 0; i < price->tensor.n; i++)
        fate[price->tensor.at[i]] = price->fate.at[i];
    Bytes told;
    Ns told_again;
    replay(w, fate, a, b, chunk, &told, &told_again, &early);
    check(price->need == told && price->forward + price->backward == base + told_again && price->early == early,
          "graph %d: %lld bytes and %lld ns, replay %lld and %lld", number, (long long)price->need,
          (long long)(price->forward + price->backward), (long long)told, (long long)(base + told_again));
    check(price->fits == (least <= limit[0]) && (price->fits ? told_again == best : told == least),
          "graph %d: limit %lld, least %lld: %lld bytes, %lld ns added, brute force %lld", number, (long long)limit[0],
          (long long)least, (long long)told, (long long)told_again, (long long)best);
    Ns floor = price_floor(x, a, b, chunk);
    check(best == INT64_MAX || floor <= base + best, "graph %d: floor %lld, brute force %lld", number, (long long)floor,
          (long long)(best == INT64_MAX ? best : base + best));
    check(floor >= base, "graph %d: floor %lld, and each call once takes %lld", number, (long long)floor, (long long)base);
    compare_least(w, x, number, a, b, chunk);
}

static void test_fates(void)
{
    int two = 0, runs = getenv("SLOW") ? 20000 : 400;
    for (int number = 0; number < runs; number++) {
        void *mark = mem_mark();
        World *w = random_world(2 + dice(6));
        for (int s = 0; number % 4 == 0 && s < w->g.state.n; s++)      /* what comes home is more than any call needs */
            w->g.state.at[s].bytes *= w->g.state.at[s].param < 0 ? 1 : 64;
        set_times(w, some_ns);
        set_pairs(w);
        set_plan(w, dice(2) ? "gpipe" : "1f1b", 1 + dice(4));
        w->m.plan.recompute = RECOMPUTE_AUTO;
        w->m.plan.warmup = dice(2) ? WARMUP_A : WARMUP_B;
        if (order(&w->p) == 0) {
            int a = dice(w->g.nf), b = a + dice(w->g.nf - a), chunk = dice(w->p.devices);
            compare_fates(w, number, a, b, chunk);
            two += order_slack(&w->p) == 2;
        }
        mem_release(mark);
    }
    check(two > runs / 16, "fates: %d of %d lists have messages with more slack", two, runs);
}

/* ---- with offload: all fates of up to seven tensors, judged by price_with ------------------------------------------ */

typedef struct { Bytes need, moved; Ns time; } Judged;

static Judged *judge_all(World *w, Prices *x, int a, int b, int chunk, const Ints *own, int count)
{
    Judged *all = alloc(sizeof *all * (size_t)count);
    int *fate = alloc(sizeof *fate * (size_t)w->g.tensor.n);
    for (int c = 0; c < count; c++) {
        for (int i = 0, rest = c; i < own->n; i++, rest /= 3)
            fate[own->at[i]] = rest % 3;
        Price y = price_with(x, a, b, chunk, fate);
        all[c] = (Judged){y.need, y.offloaded, y.forward + y.backward};
    }
    return all;
}

static World *offload_world(int n)
{
    World *w = random_world(n);
    for (int t = 0; t < w->g.tensor.n; t++)
        w->g.tensor.at[t].bytes *= 64;          /* small ones are not worth a copy */
    set_times(w, some_ns);
    set_pairs(w);
    set_plan(w, dice(2) ? "gpipe" : "1f1b", 1 + dice(4));
    w->c.host = 1e11 * (1 + dice(40));
    w->m.plan.warmup = dice(3) ? WARMUP_A : WARMUP_B;
    w->m.plan.recompute = RECOMPUTE_AUTO;
    w->m.plan.offload = OFFLOAD_AUTO;
    return w;
}

static int compare_offload(int number)
{
    World *w = offload_world(3 + dice(4));
    Ints own = {0};
    for (int t = 0; t < w->g.tensor.n; t++)
        if (w->g.tensor.at[t].kind == T_ACT)
            *PUSH(&own) = t;
    if (order(&w->p) || own.n > 7)
        return 0;
    int chunk = dice(w->p.devices), last = w->g.nf - 1, count = 1, best = -1;
    Bytes limit[8] = {0}, least = INT64_MAX;
    for (int i = 0; i < own.n; i++)
        count *= 3;
    Judged *all = judge_all(w, prices_open(&w->p, price_whole(&w->p, limit)), 0, last, chunk, &own, count);
    for (int c = 0; c < count; c++)
        least = all[c].need < least ? all[c].need : least;
    for (int d = 0; d < 8; d++)
        limit[d] = d ? limit[0] : least - (dice(4) == 0) + (all[0].need - least) * dice(100) / 100;
    for (int c = 0; c < count; c++)
        if (all[c].need <= limit[0] && (best < 0 || all[c].time < all[best].time))
            best = c;
    Prices *x = prices_open(&w->p, price_whole(&w->p, limit));
    const Price *y = price_best(x, 0, last, chunk);
    Ns floor = price_floor(x, 0, last, chunk);
    check(y->fits == (best >= 0), "offload %d: limit %lld, least %lld, found %lld", number, (long long)limit[0],
          (long long)least, (long long)y->need);
    check(best < 0 || y->forward + y->backward == all[best].time, "offload %d: %lld ns, best %lld", number,
          (long long)(y->forward + y->backward), (long long)all[best].time);
    check(best < 0 || floor <= all[best].time, "offload %d: floor %lld, best %lld", number, (long long)floor,
          (long long)all[best].time);
    return y->offloaded > 0;
}

static void test_offload(void)
{
    int sent = 0, runs = getenv("SLOW") ? 5000 : 100;
    for (int number = 0; number < runs; number++) {
        void *mark = mem_mark();
        sent += compare_offload(number);
        mem_release(mark);
    }
    check(sent > runs / 10, "offload: %d of %d runs send anything", sent, runs);
}

typedef struct { int runs, best, missed; double sum, worst; } Searched;
typedef struct { Bytes need; Ns time; } Point;

/* Four limits from the least to what all kept takes; all[c] is choice c. */
static void compare_search(World *w, int chunk, const Point *all, int count, Searched *s)
{
    Bytes limit[8], least = INT64_MAX;
    for (int c = 0; c < count; c++)
        least = all[c].need < least ? all[c].need : least;
    for (int step = 0; step < 4; step++) {
        for (int d = 0; d < 8; d++)
            limit[d] = least + (all[0].need - least) * step / 4;
        Ns time = INT64_MAX;
        for (int c = 0; c < count; c++)
            if (all[c].need <= limit[0] && all[c].time < time)
                time = all[c].time;
        const Price *y = price_best(prices_open(&w->p, price_whole(&w->p, limit)), 0, w->g.nf - 1, chunk);
        double gap = y->fits ? (double)(y->forward + y->backward - time) / (double)time : 0;
        s->runs++;
        s->missed += !y->fits;
        s->sum += gap;
        s->best += y->fits && gap == 0;
        s->worst = gap > s->worst ? gap : s->worst;
    }
}

/* Runs of 13 to 16 tensors are searched and not enumerated: how far from the best, all choices judged by price_with. */
static void search_world(Searched *s)
{
    World *w = random_world(9 + dice(5));
    Ints own = {0};
    Bytes none[8] = {0};
    set_times(w, some_ns);
    set_pairs(w);
    set_plan(w, dice(2) ? "gpipe" : "1f1b", 1 + dice(3));
    w->m.plan.recompute = RECOMPUTE_AUTO;
    for (int t = 0; t < w->g.tensor.n; t++)
        if (w->g.tensor.at[t].kind == T_ACT)
            *PUSH(&own) = t;
    if (order(&w->p) || own.n < 13 || own.n > 16)
        return;
    int chunk = dice(w->p.devices), *fate = alloc(sizeof *fate * (size_t)w->g.tensor.n);
    Prices *x = prices_open(&w->p, price_whole(&w->p, none));
    Point *all = alloc(sizeof *all << own.n);
    for (int c = 0; c < 1 << own.n; c++) {
        for (int i = 0; i < own.n; i++)
            fate[own.at[i]] = c >> i & 1 ? FATE_RECOMPUTE : FATE_KEEP;
        Price y = price_with(x, 0, w->g.nf - 1, chunk, fate);
        all[c] = (Point){y.need, y.forward + y.backward};
    }
    compare_search(w, chunk, all, 1 << own.n, s);
}

static void test_search(void)
{
    Searched s = {0};
    while (s.runs < (getenv("SLOW") ? 1000 : 40)) {
        void *mark = mem_mark();
        search_world(&s);
        mem_release(mark);
    }
    printf("  searched: %d runs, %d best, %d missed, %.2f %% off on average, %.2f %% at worst\n", s.runs, s.best, s.missed,
           100 * s.sum / s.runs, 100 * s.worst);
    check(2 * s.best > s.runs && s.sum / s.runs < 0.01 && s.missed * 4 < s.runs, "searched: %d of %d best, %d missed", s.best,
          s.runs, s.missed);
}

/* ---- replicas: gradients of another one visit before the update ---------------------------------------------------- */

/* Few activations beside one large parameter: the exchange is what a stage needs most for. */
static void test_replicas(const char *shard, const char *groups)
{
    Overrides over = {0};
    *PUSH(&over.set) = strf("train.shard=%s", shard);
    *PUSH(&over.set) = strf("train.batch.groups=%s", groups);
    const char *const set[] = {"train.batch.global=4", "train.batch.micro=1", "plan.replicas=2",
                               "devices.0.count=8", "model.dims.V=4096", "model.dims.D=96"};
    for (size_t i = 0; i < sizeof set / sizeof *set; i++)
        *PUSH(&over.set) = set[i];
    Model *m = model(load("tests/models/tiny-gpt.yaml"), "tests/models/tiny-gpt.yaml", &over);
    const Graph *g = graph_of(m);
    Worst w = {0};
    for (int stages = 1; stages <= 4; stages++) {
        Bytes limit[8] = {INT64_MAX / 4, INT64_MAX / 4, INT64_MAX / 4, INT64_MAX / 4, INT64_MAX / 4, INT64_MAX / 4,
                          INT64_MAX / 4, INT64_MAX / 4};
        Plan p = {.g = g, .c = cost(g, m, NULL), .m = m, .schedule = "1f1b", .devices = 2 * stages, .chunks = 1, .replicas = 2};
        bool made = !order(&p) && !part(&p, limit) && !keep(&p) && !comm(&p) && !lower(&p);
        check(made, "%d stages: no plan", stages);
        mem(&p);
        Graph own = *g;         /* what planners see: the first row, alone */
        Plan one = p;
        own.micro /= 2;
        own.groups /= 2;
        one.g = &own;
        one.devices = stages;
        one.replicas = 0;
        one.tree_depth = plan_levels(&p);
        one.home.n = 1;
        compare_stages(&one, &w);
    }
    check(w.most <= 0.03, "replicas that share %s: off by %.2f %% in %s", shard, 100 * w.most, w.where);
}

int main(void)
{
    test_name = "unit_price";
    test_replicas("none", "4");
    test_replicas("optimizer", "4");
    test_replicas("gradients", "2");
    test_replicas("parameters", "2");
    test_fates();
    test_offload();
    test_search();
    printf("unit_price: %d passed, %d failed\n", passed, failed);
    mem_free_all();
    return failed > 0;
}
