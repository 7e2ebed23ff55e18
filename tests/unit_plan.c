/* SPDX-License-Identifier: Apache-2.0
 *
 * unit_plan.c: constraints, names, and the fates that auto ends with.  Cuts are tested in unit_exact.c.
 *
 *   keep         backward makes again what it must, once; prices save and make again what lower does; auto drops only what
 *                it must
 *   merges       how many gradients cross between replicas at once
 *   constraints  each by a graph small enough to see the answer
 */
#include "world.h"
#include "list/transport.h"
#include "replay/walk.h"

/* ---- keep ------------------------------------------------------------------------------------------------------- */

static bool drops(const World *w, int t, int chunk)
{
    int op = w->g.tensor.at[t].op;
    return op >= 0 && op < w->g.nf && w->p.chunk.at[op] == chunk && w->p.fate.at[t] == FATE_RECOMPUTE;
}

static bool forward_read(const World *w, const Arg *a)
{
    return a->kind == ARG_READ && !a->state && w->g.tensor.at[a->index].kind != T_GRAD;
}

/* By forward operator: is it made again?  A fixed point: readers are backward and all that is made again; the maker of a
 * dropped tensor that one of them reads is made again. */
static bool *closure(const World *w, int chunk)
{
    bool *again = alloc((size_t)w->g.nf);
    for (bool more = true; more;) {
        more = false;
        for (int o = 0; o < w->g.nb; o++)
            for (int i = 0; i < w->g.op.at[o].arg.n && w->p.chunk.at[o] == chunk && (o >= w->g.nf || again[o]); i++) {
                const Arg *a = &w->g.op.at[o].arg.at[i];
                bool found = forward_read(w, a) && drops(w, a->index, chunk) && !again[w->g.tensor.at[a->index].op];
                if (found)
                    again[w->g.tensor.at[a->index].op] = more = true;
            }
    }
    return again;
}

/* The line of a backward: all of that once and nothing else, and each call finds what it reads; nothing is saved in vain. */
static void test_line(const World *w, int number, int chunk, const Backward *back)
{
    bool *again = closure(w, chunk), *made = alloc((size_t)w->g.tensor.n), *read = alloc((size_t)w->g.tensor.n);
    int plain = 0, wrong = 0;
    for (int i = 0; i < back->line.n; i++) {
        const Line *l = &back->line.at[i];
        const Op *o = &w->g.op.at[l->op];
        wrong += l->again ? !again[l->op] : l->op < w->g.nf || w->p.chunk.at[l->op] != chunk;
        wrong += i < back->early ? !l->again : l->again && (plain == 0 || back->early == 0);
        plain += !l->again;
        if (l->again)
            again[l->op] = false;
        for (int k = 0; k < o->arg.n; k++) {
            int t = o->arg.at[k].index;
            if (forward_read(w, &o->arg.at[k])) {
                wrong += !made[t] && !back->saved[t];
                read[t] |= !made[t];
            }
        }
        for (int k = 0; k < o->arg.n; k++)
            if (l->again && o->arg.at[k].kind == ARG_WRITE && !o->arg.at[k].state)
                made[o->arg.at[k].index] = true;
    }
    for (int o = 0; o < w->g.nf; o++)
        wrong += again[o];
    for (int t = 0; t < w->g.tensor.n; t++)
        wrong += back->saved[t] && (drops(w, t, chunk) || !read[t]);
    check(wrong == 0, "graph %d chunk %d: its backward is wrong in %d places", number, chunk, wrong);
}

/* What replay/walk.c sums up of a run against what lower saves and makes again. */
static void test_sums(void)
{
    void *mark = mem_mark();
    for (int number = 0; number < 1000; mem_release(mark), number++) {
        World *w = random_graph(2 + dice(10));
        Bytes limit[8] = {INT64_MAX / 4, INT64_MAX / 4, INT64_MAX / 4};
        set_times(w, some_ns);
        some_plan(w, 1, 3);
        some_drops(w);
        if (order(&w->p) || part(&w->p, limit) || keep(&w->p))
            continue;
        check_keep(&w->p);
        Live *live = live_open(&w->p);
        for (int s = 0, first = 0; s < w->p.devices; first = last_of(&w->p, s++) + 1) {
            const Backward back = backwards_of(&w->p)[s];
            Load l = live_sums(live, first, last_of(&w->p, s), s, w->p.fate.at);
            Bytes saved = 0;
            Ns again = 0;
            test_line(w, number, s, &back);
            for (int t = 0; t < w->g.tensor.n; t++)
                saved += back.saved[t] ? live_size(live, t) : 0;
            for (int i = 0; i < back.line.n; i++)
                again += back.line.at[i].again ? w->c.ns[0][back.line.at[i].op] : 0;
            check(l.saved == saved && l.again == again, "graph %d chunk %d: %lld bytes and %lld ns, lower has %lld and %lld",
                  number, s, (long long)l.saved, (long long)l.again, (long long)saved, (long long)again);
        }
    }
}

/* Merges: all of a batch but its last gradient are less than the largest; with it they are not, or they are 32. */
static void test_batches(void)
{
    for (int number = 0; number < 1000; number++) {
        Bytes bytes[100];
        Batch b = {0};
        int n = 1 + dice(100), one = dice(200);      /* often one of them is longer than all others */
        for (int i = 0; i < n; i++) {
            bytes[i] = i == one ? 10000 : 1 + dice(dice(2) ? 10 : 100);
            b.largest = bytes[i] > b.largest ? bytes[i] : b.largest;
        }
        Bytes sum = 0;
        for (int i = 0, count = 1; i < n; i++, count++) {
            bool before = sum < b.largest && count <= 32;
            sum += bytes[i];
            bool ends = transport_batch(&b, bytes[i]);
            check(before && ends == (sum >= b.largest || count == 32), "%d gradients: number %d ends a batch of %lld bytes: %d",
                  n, i, (long long)sum, ends);
            if (ends)
                sum = count = 0;
        }
    }
}

static Bytes need_of(World *w, int first, int last, int chunk, const int *fate)
{
    return live_load(live_open(&w->p), first, last, chunk, fate).need;
}

/* auto: drops only where it must, and then it fits. */
static void compare_auto(World *w, int number, const Bytes *limit, int *dropped)
{
    check_part(&w->p);
    if (keep(&w->p)) {
        check(w->p.shortfall.need > limit[w->p.shortfall.device], "graph %d: auto gives up below the limit", number);
        return;
    }
    check_keep(&w->p);
    int *base = keep_fates(&w->p, false), *all = keep_fates(&w->p, true);
    for (int s = 0, first = 0; s < w->p.devices; first = last_of(&w->p, s++) + 1) {
        int last = last_of(&w->p, s), drops = 0;
        for (int t = 0; t < w->g.tensor.n; t++) {
            int op = w->g.tensor.at[t].op;
            bool here = op >= first && op <= last;
            drops += here && w->p.fate.at[t] != base[t];
            check(w->p.fate.at[t] == FATE_KEEP || w->p.fate.at[t] == all[t], "graph %d: a fate out of nowhere", number);
        }
        Bytes kept = need_of(w, first, last, s, base);
        check(kept > limit[s] || drops == 0, "graph %d: %d drops in chunk %d, which fits without", number, drops, s);
        check(kept <= limit[s] || need_of(w, first, last, s, w->p.fate.at) <= limit[s]
              || need_of(w, first, last, s, all) > limit[s], "graph %d: too few drops in chunk %d", number, s);
        *dropped += drops;
    }
}

/* In units of alignment, so that it rounds nothing. */
static void align_all(World *w)
{
    for (int t = 0; t < w->g.tensor.n; t++)
        w->g.tensor.at[t].bytes *= ALIGN;
    for (int o = 0; o < w->g.op.n; o++)
        w->g.op.at[o].tmp *= ALIGN;
    for (int s = 0; s < w->g.state.n; s++)
        w->g.state.at[s].bytes *= ALIGN;
}

/* A plan of one order, with limits of `least` blocks and up to `more` beside, for up to eight devices. */
static World *random_plan(Recompute recompute, int least, int more, Bytes *limit)
{
    World *w = random_graph(2 + dice(8));
    set_times(w, some_ns);
    some_plan(w, 1, 3);
    w->m.plan.recompute = recompute;
    align_all(w);
    for (int d = 0; d < 8; d++)
        limit[d] = ALIGN * (least + dice(more));
    return w;
}

static void test_auto(void)
{
    int dropped = 0, fits = 0;
    void *mark = mem_mark();
    for (int number = 0; number < 1000; mem_release(mark), number++) {
        Bytes limit[8];
        World *w = random_plan(RECOMPUTE_AUTO, 100, 1000, limit);
        if (order(&w->p) || part(&w->p, limit))
            continue;
        fits++;
        compare_auto(w, number, limit, &dropped);
    }
    check(fits > 100 && dropped > 100, "auto: %d plans and %d drops are too few to mean anything", fits, dropped);
}

/* A planner that sees no memory has cuts under any limit.  As one of many plans they are none, just where a run has no fates
 * that fit. */
static void test_trials(void)
{
    int none = 0, some = 0;
    void *mark = mem_mark();
    for (int number = 0; number < 300; mem_release(mark), number++) {
        Bytes limit[8];
        World *w = random_plan(RECOMPUTE_FULL, 10, 600, limit);     /* no choice of fates */
        w->p.ask.choice.planner = "dapple";
        if (order(&w->p) || part(&w->p, limit))
            continue;
        const int *all = keep_fates(&w->p, true);
        bool fits = true;
        for (int s = 0, first = 0; s < w->p.devices; first = last_of(&w->p, s++) + 1)
            fits &= need_of(w, first, last_of(&w->p, s), s, all) <= limit[s];
        w->p.ask.trials = purse_new(NULL, 1);
        check(!part(&w->p, limit) == fits, "graph %d: a trial of cuts that %s", number, fits ? "fit" : "do not fit");
        *(fits ? &some : &none) += 1;
    }
    check(none > 30 && some > 30, "trials: %d that fit and %d that do not mean nothing", some, none);
}

/* ---- constraints ------------------------------------------------------------------------------------------- */

static void constrained(World *w, int stages)
{
    Bytes limit[4] = {1000000, 1000000, 1000000, 1000000};
    set_times(w, unit_ns);
    set_plan(w, "1f1b", stages);
    check(order(&w->p) == 0 && part(&w->p, limit) == 0, "no cut under the constraints");
    check_part(&w->p);
}

/* op0 .. op5 of times 2 2 2 2 2 2: without constraints the cuts are after op1 and op3. */
static void test_constraints(void)
{
    static const Ns one[] = {1, 1, 1, 1, 1, 1};
    Strs pair = {0};
    forward_units = backward_units = one;
    World *w = chain(6, 4, false);
    constrained(w, 3);
    check(last_of(&w->p, 0) == 1 && last_of(&w->p, 1) == 3, "three equal chunks");
    *PUSH(&w->m.plan.cut_after) = "op2";
    constrained(w, 2);
    check(last_of(&w->p, 0) == 2, "cut_after op2");
    constrained(w, 3);
    check(last_of(&w->p, 0) == 2 || last_of(&w->p, 1) == 2, "cut_after op2, three chunks");
    w = chain(6, 4, false);
    *PUSH(&pair) = "op1";
    *PUSH(&pair) = "op4";
    *PUSH(&w->m.plan.same_stage) = pair;
    constrained(w, 3);
    check(last_of(&w->p, 0) == 0 && last_of(&w->p, 1) == 4, "same_stage op1 op4");
    w = chain(6, 4, false);
    *PUSH(&w->m.plan.no_cut) = "op*";
    Bytes limit[2] = {1000000, 1000000};
    set_times(w, unit_ns);
    set_plan(w, "gpipe", 2);
    check(order(&w->p) == 0 && part(&w->p, limit) != 0 && w->p.shortfall.device == -1,
          "no_cut everywhere leaves no two chunks");
    w->g.op.at[3].name = "other";
    constrained(w, 2);
    check(last_of(&w->p, 0) == 2, "no_cut but around one operator");
    w = chain(6, 4, false);
    *PUSH(&w->m.plan.cuts) = 0;
    *PUSH(&w->m.plan.cuts) = 4;
    constrained(w, 3);
    check(last_of(&w->p, 0) == 0 && last_of(&w->p, 1) == 4 && w->p.predicted.bound / UNIT == 34, "cuts 0, 4");
}

static void unknown_name(void *with)
{
    World *w = chain(3, 4, false);
    PlanSpec *spec = &w->m.plan;
    *PUSH((Strs *)((char *)spec + *(size_t *)with)) = "no_such_operator";
    forward_units = backward_units = (const Ns[]){1, 1, 1};
    constrained(w, 2);
}

static void test_names(void)
{
    static size_t lists[] = {offsetof(PlanSpec, names), offsetof(PlanSpec, keep), offsetof(PlanSpec, cut_after),
                             offsetof(PlanSpec, no_cut)};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        check(status_of(unknown_name, &lists[i]) == EXIT_MODEL, "an unknown name in list %zu", i);
}

int main(void)
{
    test_name = "unit_plan";
    test_names();               /* these fork, so they go first: nothing is freed in between */
    test_constraints();
    test_batches();
    test_sums();
    test_auto();
    test_trials();
    printf("unit_plan: %d passed, %d failed\n", passed, failed);
    mem_free_all();
    return failed > 0;
}
