/* SPDX-License-Identifier: Apache-2.0
 *
 * unit_known.c: checks with known answers, ten of them, from papers and closed forms.  The table `checks` below names all ten
 * and where they are; five of them, or what others leave over, are here:
 *
 *   2   1f1b with twice the warm-up (DAPPLE, policy B) hides messages of half a pair; what is in flight then; auto takes the
 *       faster of A and B
 *   3   everything recomputed, but only once the gradient is there: 4(m+p-1)
 *   4   zero bubble, H1 and H2, by lists that are written here: dpgen has no such schedule yet
 *   5   Megatron-LM's interleaving, by lists that are written here: one deadlocks and check_order says so, one runs
 *   10  three operators on two devices, worked out on paper
 *
 * Lists written here go through check_order, comm, lower and sim as any schedule's do.
 */
#include "world.h"
#include "base.h"
#include "fates/fates.h"
#include "sched/sched.h"

typedef struct { int number; const char *what, *file, *test; } Known;
static const Known checks[] = {
    {1, "gpipe, unequal stages: sum f + sum b + (m-1)(max f + max b)", "tests/unit_sched.c", "test_gpipe_exact"},
    {2, "1f1b, latency c: 3 + 2c(p-1)/p a micro-batch under policy A", "tests/unit_sched.c", "test_latency"},
    {2, "3 under policy B while c <= 1.5, min(m, 2(p-i)-1) in flight", "tests/unit_known.c", "test_policy_b"},
    {3, "all recomputed before the gradient is there: 4m + 3(p-1)", "tests/unit_sched.c", "test_recompute"},
    {3, "all recomputed behind it: 4(m+p-1)", "tests/unit_known.c", "test_late_recompute"},
    {4, "zero bubble: H1's time, what H1 and H2 hold", "tests/unit_known.c", "test_zero_bubble"},
    {5, "interleaved: groups of which the last is short", "tests/unit_known.c", "test_interleaved"},
    {6, "1f1b*: micro-batches held at a period", "tests/unit_async.c", "test_star_depths"},
    {7, "copies of the weights; two versions from few micro-batches", "tests/unit_async.c", "test_versions"},
    {7, "the version that is not made yet", "tests/unit_async.c", "test_too_few"},
    {8, "loss w*w/2 under delays, by the lists", "tests/unit_async.c", "test_example"},
    {8, "the same, by jobs, in f32", "tests/async.sh", "paper "},
    {9, "tied terms of 1 and 2^24", "tests/cuts.sh", "tied_terms "},
    {10, "a cut that fits though a longer chunk does not", "tests/unit_known.c", "test_three"},
    {10, "equal operators without limits: no gap", "tests/unit_bound.c", "test_equal"},
};

/* Each test of the table is where it says. */
static void test_table(void)
{
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
        size_t n;
        const char *text = file_read(checks[i].file, "mend the table", &n);
        bool c = strstr(checks[i].file, ".c");
        check(strstr(text, c ? strf("static void %s(", checks[i].test) : strf("\n%s", checks[i].test)) != NULL,
              "check %d, %s: no %s in %s", checks[i].number, checks[i].what, checks[i].test, checks[i].file);
    }
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

static const Ns one[] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, two[] = {2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2};
enum { MOST = 8 };              /* devices */
static const Bytes vast[MOST] = {INT64_MAX / 4, INT64_MAX / 4, INT64_MAX / 4, INT64_MAX / 4,
                                 INT64_MAX / 4, INT64_MAX / 4, INT64_MAX / 4, INT64_MAX / 4};

/* ---- 2 ------------------------------------------------------------------------------------------------------------- */

static World *warmed(int warmup, int p, int m, int quarters)
{
    World *w = chain(p, m, false);
    forward_units = one;
    backward_units = two;
    set_times(w, unit_ns);
    w->c.latency = (Ns)quarters * UNIT / 4;
    set_plan(w, "1f1b", p);
    w->m.plan.warmup = warmup;
    if (order(&w->p) || part(&w->p, vast) || keep(&w->p) || comm(&w->p) || lower(&w->p) || sim(&w->p))
        check(false, "warm-up %d, p=%d m=%d: no plan", warmup, p, m);
    check_order(&w->p);
    check_comm(&w->p);
    check_sim(&w->p);
    return w;
}

static Ns quarters_of(const World *w)
{
    return w->p.step / (UNIT / 4);
}

/* f = 1, b = 2, a message takes c.  Between stages i and q a micro-batch is under way for the work of all of them and for the
 * messages there and back, and meanwhile k_i - k_q more begin: a period of (3n + 2(n-1)c) / (2n-1) for n stages.  That is 3
 * for one stage, and more for n > 1 from c = 1.5 on.  Over 2p-1 micro-batches it is a whole number.  What the planner predicts
 * (preview.c), which knows no messages' actions, agrees. */
static void test_policy_b(void)
{
    for (int p = 2; p <= 6; p++)
        for (int c = 0; c <= 8; c++) {
            void *mark = mem_mark();
            int n = 4 * (2 * p - 1);
            World *few = warmed(WARMUP_B, p, n, c), *many = warmed(WARMUP_B, p, 2 * n, c);
            Ns want = c <= 6 ? 12 * n : 4 * (12 * p + 2 * (p - 1) * c), took = quarters_of(many) - quarters_of(few);
            check(took == want, "policy B, p=%d latency %d/4: %lld quarters for %d micro-batches, not %lld", p, c,
                  (long long)took, n, (long long)want);
            check(many->p.predicted.value / (UNIT / 4) == quarters_of(many),
                  "policy B, p=%d latency %d/4: planned %lld, simulated %lld",
                  p, c, (long long)many->p.predicted.value, (long long)many->p.step);
            check(quarters_of(many) <= quarters_of(warmed(WARMUP_A, p, 2 * n, c)), "policy B, p=%d latency %d/4: slower than A",
                  p, c);
            mem_release(mark);
        }
    for (int p = 1; p <= 8; p++)
        for (int m = 1; m <= 32; m++) {
            void *mark = mem_mark();
            World *w = warmed(WARMUP_B, p, m, 0);
            check(quarters_of(w) == 4 * 3 * (m + p - 1), "policy B, p=%d m=%d: %lld quarters", p, m, (long long)quarters_of(w));
            for (int i = 0; i < p; i++)
                check(order_flight(&w->p, i) == least(m, 2 * (p - i) - 1), "policy B, p=%d m=%d: %d in flight on %d", p, m,
                      order_flight(&w->p, i), i);
            mem_release(mark);
        }
}

/* ---- 3 ------------------------------------------------------------------------------------------------------------- */

/* What is made again, moved behind the wait for the gradient: right before its backward. */
static void recompute_late(Actions *list)
{
    for (int i = 0; i + 1 < list->n; i++)
        if (list->at[i].kind == K_R && list->at[i + 1].kind != K_B) {
            Action swap = list->at[i];
            list->at[i] = list->at[i + 1];
            list->at[i + 1] = swap;
        }
}

/* f = r = 1, b = 2, all recomputed.  Behind the gradient nothing of it hides in the fill: a backward of 3. */
static void test_late_recompute(void)
{
    forward_units = one;
    backward_units = two;
    for (int p = 1; p <= 8; p++)
        for (int m = 1; m <= 32; m++) {
            void *mark = mem_mark();
            World *w = chain(p, m, true);
            set_times(w, unit_ns);
            set_plan(w, "1f1b", p);
            w->m.plan.recompute = RECOMPUTE_FULL;
            if (order(&w->p) || part(&w->p, vast) || keep(&w->p) || comm(&w->p))
                check(false, "late recomputation, p=%d m=%d: no plan", p, m);
            for (int d = 0; d < p; d++)
                recompute_late(&w->p.dev.at[d].list);
            if (lower(&w->p) || sim(&w->p))
                check(false, "late recomputation, p=%d m=%d: no times", p, m);
            check(quarters_of(w) == 4 * 4 * (m + p - 1), "late recomputation, p=%d m=%d: %lld quarters", p, m,
                  (long long)quarters_of(w));
            mem_release(mark);
        }
}

/* ---- lists written here -------------------------------------------------------------------------------------------- */

/* A chain whose backward is split, for `devices` of them and one group of gradients, with nothing ordered yet. */
static World *split_chain(int n, int devices, int m)
{
    World *w = alloc(sizeof *w);
    w->g = (Graph){.name = "split", .batch = 1, .micro = m, .groups = 1, .nf = n};
    for (int i = 0; i < n; i++) {
        put_arg(add_op(w, PH_F, i), ARG_WRITE, false, add_tensor(w, T_ACT, 1, i));
        if (i > 0)
            put_arg(&w->g.op.at[i], ARG_READ, false, i - 1);
    }
    for (int i = n - 1, grad = -1; i >= 0; i--) {
        int made = i > 0 ? add_tensor(w, T_GRAD, 1, w->g.op.n) : -1;
        Op *o = add_op(w, PH_I, i);
        if (made >= 0)
            put_arg(o, ARG_WRITE, false, made);
        for (int k = 0; k < 2; k++) {           /* both read the result and its gradient */
            if (grad >= 0)
                put_arg(o, ARG_READ, false, grad);
            put_arg(o, ARG_READ, false, i);
            o = k ? o : add_op(w, PH_W, i);
        }
        grad = made;
    }
    w->g.nb = w->g.op.n;
    *PUSH(&w->g.state) = (State){.name = "values", .kind = S_VALUES, .bytes = 8, .param = -1, .op = -1};
    set_times(w, unit_ns);
    set_plan(w, "1f1b", devices);
    w->p.chunks = n / devices;
    for (int d = 0; d < devices; d++)
        PUSH(&w->p.dev)->device = d;
    for (int c = 0; c < n; c++)
        plan_settle(&w->p, 0, c % devices);
    return w;
}

static void put_list(World *w, int device, ActionKind kind, int chunk, int mb)
{
    Action *k = sched_put(&w->p, device, kind, chunk, mb);
    k->acc = (kind == K_W || kind == K_B) && mb > 0;
}

static void end_lists(World *w)
{
    for (int d = 0; d < w->p.devices; d++)
        for (const UpdatePart *part = update_parts(&w->p); *part != U_NONE; part++)
            for (int c = d; c < plan_chunks(&w->p); c += w->p.devices)
                sched_put(&w->p, d, K_U, c, -1)->update = *part;
    sched_slack(&w->p);
}

/* Each operator its own chunk; the step in units. */
static Ns units_of(World *w)
{
    for (int c = 0; c + 1 < plan_chunks(&w->p); c++)
        *PUSH(&w->m.plan.cuts) = c;
    if (part(&w->p, vast) || keep(&w->p) || comm(&w->p) || lower(&w->p) || sim(&w->p))
        check(false, "a list written here: no plan");
    check_comm(&w->p);
    check_sim(&w->p);
    return (w->p.step + UNIT / 2) / UNIT;
}

/* The last stage reads the result of the first one too, and sends it a gradient.  Messages take no time, and each of the two
 * comes before the one that goes stage by stage.  So the step is that of a plain chain: 3(m+p-1). */
static void test_skips(void)
{
    static const char *const schedule[] = {"1f1b", "gpipe"};
    forward_units = one;
    backward_units = two;
    for (int i = 0; i < 2 * MOST * 4; i++) {
        void *mark = mem_mark();
        int p = 1 + i / 2 % MOST, m = 3 + 7 * (i / 2 / MOST);
        World *w = chain(p, m, false);
        if (p > 2) {
            put_arg(&w->g.op.at[p - 1], ARG_READ, false, 0);
            int t = add_tensor(w, T_GRAD, 1, p);
            put_arg(&w->g.op.at[p], ARG_WRITE, false, t);
            put_arg(&w->g.op.at[2 * p - 1], ARG_READ, false, t);
        }
        set_times(w, unit_ns);
        set_plan(w, schedule[i % 2], p);
        w->p.ask.choice.far = true;
        if (order(&w->p) || part(&w->p, vast) || keep(&w->p) || comm(&w->p) || lower(&w->p) || sim(&w->p))
            check(false, "skips, p=%d m=%d: no plan", p, m);
        check_comm(&w->p);
        check_sim(&w->p);
        check(w->p.step / UNIT == 3 * (m + p - 1) && w->p.predicted.value == w->p.step,
              "%s, skips over %d stages, m=%d: planned %lld, simulated %lld ns", schedule[i % 2], p, m,
              (long long)w->p.predicted.value, (long long)w->p.step);
        mem_release(mark);
    }
}

/* ---- 4 ------------------------------------------------------------------------------------------------------------- */

/* Zero bubble (Qi, Wan, Huang, Lin, 2024).  H1: device i begins with p-1-i forwards, then a forward, I of k, W of k-i; H2 with
 * 2(p-i)-1 forwards, then I of k, W of k-2i, a forward. */
static void put_zero_bubble(World *w, bool two_bubbles)
{
    int p = w->p.devices, m = (int)w->g.micro;
    for (int i = 0; i < p; i++) {
        int f = 0, wgrad = 0, first = two_bubbles ? 2 * (p - i) - 1 : p - 1 - i, delay = two_bubbles ? 2 * i : i;
        while (f < least(first, m))
            put_list(w, i, K_F, i, f++);
        for (int k = 0; k < m; k++) {
            if (!two_bubbles && f < m)
                put_list(w, i, K_F, i, f++);
            put_list(w, i, K_I, i, k);
            if (k >= delay)
                put_list(w, i, K_W, i, wgrad++);
            if (two_bubbles && f < m)
                put_list(w, i, K_F, i, f++);
        }
        while (wgrad < m)
            put_list(w, i, K_W, i, wgrad++);
    }
    end_lists(w);
}

/* Most micro-batches that a device holds from forward to the end of W. */
static int held(const Plan *p, int device)
{
    const Actions *list = &p->dev.at[device].order;
    int now = 0, most = 0;
    for (int i = 0; i < list->n; i++) {
        now += list->at[i].kind == K_F;
        most = now > most ? now : most;
        now -= list->at[i].kind == K_W;
    }
    return most;
}

/* f = b = w = 1.  H1 takes 3m+p-1 for m >= p, else 2m+2p-1; it holds min(m, p) on every device, H2 min(m, 2p-1) on the
 * worst. */
static void test_zero_bubble(void)
{
    forward_units = backward_units = one;
    for (int p = 1; p <= 8; p++)
        for (int m = 1; m <= 24; m++)
            for (int k = 0; k < 2; k++) {
                void *mark = mem_mark();
                World *w = split_chain(p, p, m);
                put_zero_bubble(w, k);
                check_order(&w->p);
                Ns took = units_of(w), want = m >= p ? 3 * m + p - 1 : 2 * m + 2 * p - 1;
                int most = 0;
                for (int d = 0; d < p; d++) {
                    int now = held(&w->p, d);
                    most = now > most ? now : most;
                    check(k || now == least(m, p), "zero bubble H1, p=%d m=%d: %d held on %d", p, m, now, d);
                }
                check(k || took == want, "zero bubble H1, p=%d m=%d: %lld units, not %lld", p, m, (long long)took,
                      (long long)want);
                check(!k || most == least(m, 2 * p - 1), "zero bubble H2, p=%d m=%d: %d held", p, m, most);
                check(!k || m < 2 * p - 1 || took == 3 * m + p - 1, "zero bubble H2, p=%d m=%d: %lld units", p, m,
                      (long long)took);
                mem_release(mark);
            }
}

/* ---- 5 ------------------------------------------------------------------------------------------------------------- */

typedef struct { int p, v, g, m; } Inter;

/* The j-th of the m v forwards of a device: groups of g micro-batches, in each all its chunks in turn (backward: from the last
 * one on), in each of these the micro-batches. */
static void put_turn(World *w, const Inter *x, int device, ActionKind kind, int j)
{
    int group = j / (x->g * x->v), first = group * x->g, size = least(x->g, x->m - first);
    int in = j - group * x->g * x->v, chunk = in / size;
    put_list(w, device, kind, (kind == K_F ? chunk : x->v - 1 - chunk) * x->p + device, first + in % size);
}

/* Narayanan et al., Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM, 2021, section 2.2, with
 * any size of group, as Megatron-LM has it now: (v-1) g + 2(p-1-i) forwards, then a forward and a backward in turns. */
static World *interleaved(const Inter *x)
{
    World *w = split_chain(x->p * x->v, x->p, x->m);
    for (int d = 0; d < x->p; d++) {
        int n = x->m * x->v, warm = least(n, (x->v - 1) * x->g + 2 * (x->p - 1 - d));
        for (int j = 0; j < warm; j++)
            put_turn(w, x, d, K_F, j);
        for (int j = 0; j < n; j++) {
            if (warm + j < n)
                put_turn(w, x, d, K_F, warm + j);
            put_turn(w, x, d, K_B, j);
        }
    }
    end_lists(w);
    return w;
}

static void judge_interleaved(void *with)
{
    units_of(interleaved(with));
}

/* A chunk takes 1/3 forward and 2/3 backward, here 1 and 2: times 3, 3m + 3(p-1)/v is 9m + 3(p-1) for v = 3.  A group larger
 * than p has several messages under way between two chunks, which check_order does not allow: it is not asked.  The
 * preview of the planner finds the deadlock, though sends are never waited for there, and comm and check_comm find none. */
static void test_interleaved(void)
{
    static const Inter stuck = {4, 3, 4, 5}, runs[] = {{4, 3, 5, 9}, {4, 3, 4, 8}, {4, 3, 4, 4}, {2, 3, 2, 6}};
    forward_units = backward_units = one;
    int status = status_of(judge_interleaved, (void *)(uintptr_t)&stuck);
    check(status == 70, "interleaved, p=4 v=3 g=4 m=5: status %d", status);
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        World *w = interleaved(&runs[i]);
        Ns took = units_of(w), want = 9 * runs[i].m + 3 * (runs[i].p - 1);
        check(took == want, "interleaved, p=%d v=3 g=%d m=%d: %lld thirds, not %lld", runs[i].p, runs[i].g, runs[i].m,
              (long long)took, (long long)want);
    }
}

/* ---- 10 ------------------------------------------------------------------------------------------------------------ */

enum { TEN = 10 * ALIGN };

/* Three operators: each keeps a tensor of one unit for its backward and hands on another one, of ten units behind the first and
 * of one behind the second. */
static World *three(void)
{
    World *w = alloc(sizeof *w);
    w->g = (Graph){.name = "three", .batch = 1, .micro = 2, .groups = 1, .nf = 3};
    for (int i = 0; i < 3; i++) {
        Op *o = add_op(w, PH_F, i);
        put_arg(o, ARG_WRITE, false, add_tensor(w, T_ACT, ALIGN, i));
        if (i < 2)
            put_arg(o, ARG_WRITE, false, add_tensor(w, T_ACT, i ? ALIGN : TEN, i));
        if (i > 0)
            put_arg(o, ARG_READ, false, 2 * i - 1);
    }
    for (int i = 2, grad = -1; i >= 0; i--) {
        int made = i > 0 ? add_tensor(w, T_GRAD, i == 1 ? TEN : ALIGN, w->g.op.n) : -1;
        Op *o = add_op(w, PH_I, i);
        put_arg(o, ARG_READ, false, 2 * i);
        if (grad >= 0)
            put_arg(o, ARG_READ, false, grad);
        if (made >= 0)
            put_arg(o, ARG_WRITE, false, made);
        grad = made;
    }
    w->g.nb = w->g.op.n;
    *PUSH(&w->g.state) = (State){.name = "values", .kind = S_VALUES, .bytes = 8, .param = -1, .op = -1};
    forward_units = backward_units = one;
    set_times(w, unit_ns);
    set_plan(w, "1f1b", 2);
    if (order(&w->p))
        check(false, "three operators: no order");
    return w;
}

/* What is held alone, activations and inputs once a micro-batch in flight (2, 1) and the output once, is 12 and 12 with the cut
 * after the first operator, 5 and 2 after the second: a limit of 6 leaves the second, though its first chunk is the longer one.
 * dpgen counts what passes too: the ten units between the first two operators, the step values (1), messages under way.
 *   after the first    device 0, before its first backward: 1 + 2 kept + 10 + 10 sent + 10 + 10 to come = 43
 *                      device 1, in its first backward: 1 + 12 of its last call + 10 to come = 23
 *   after the second   device 0, in its second forward: 1 + 2 at rest + 1 sent + 1 to come + 13 of the second call = 18
 *                      device 1, in its second forward: 1 + 1 sent + 2 = 4
 * From 18 to 42 units, therefore, the second alone. */
static void test_three(void)
{
    static const struct { int first, last, chunk, units; } runs[] = {{0, 0, 0, 43}, {1, 2, 1, 23}, {0, 1, 0, 18}, {2, 2, 1, 4}};
    World *w = three();
    Prices *x = prices_open(&w->p, price_whole(&w->p, vast));
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        Bytes need = price_best(x, runs[i].first, runs[i].last, runs[i].chunk)->need;
        check(need == runs[i].units * ALIGN, "three operators, %d to %d: %lld bytes, not %d units", runs[i].first, runs[i].last,
              (long long)need, runs[i].units);
    }
    for (int units = 17; units <= 43; units++) {
        Bytes limit[2] = {units * ALIGN, units * ALIGN};
        w = three();
        int cut = part(&w->p, limit) ? -1 : last_of(&w->p, 0);
        check(units > 42 || cut == (units < 18 ? -1 : 1), "three operators, limit %d: cut after %d", units, cut);
    }
}

int main(void)
{
    test_name = "unit_known";
    test_table();
    test_interleaved();         /* forks, so it goes first: nothing is freed in between */
    test_policy_b();
    test_late_recompute();
    test_skips();
    test_zero_bubble();
    test_three();
    printf("unit_known: %d passed, %d failed\n", passed, failed);
    mem_free_all();
    return failed > 0;
}
