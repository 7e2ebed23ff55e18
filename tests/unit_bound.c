/* SPDX-License-Identifier: Apache-2.0
 *
 * unit_bound.c: bounds of a step with known answers.
 *
 *   equal     equal chunks without limits: no gap at all
 *   loads     a chunk that loads data: the closed form, and where the bound is the same
 *   rounds    chunks that wait for messages: every k-th forward waits for a whole round
 *   boundary  a cut that only fits in the middle
 */
#include "graphs.h"
#include "exact/exact.h"
#include "fates/fates.h"

enum { ENDS = 1000 };           /* ns: a step begins and ends */

static Ns simulated(World *w, const Bytes *limit, Ns *bound)
{
    if (part(&w->p, limit))
        return INT64_MAX;
    if (keep(&w->p) || comm(&w->p) || lower(&w->p))
        die("no lists");
    sim(&w->p);
    check_sim(&w->p);
    *bound = w->p.predicted.bound;
    return w->p.step;
}

/* Without limits, p n equal operators: no gap at all. */
static void test_equal(void)
{
    static Ns one[64];
    for (int i = 0; i < 64; i++)
        one[i] = 1;
    forward_units = backward_units = one;
    for (int p = 1; p <= 8; p++)
        for (int k = 0; k < 2; k++) {
            Bytes limit[8];
            for (int d = 0; d < 8; d++)
                limit[d] = INT64_MAX / 4;
            World *w = chain(5 * p, 16, false);
            for (int t = 0; t < w->g.tensor.n; t++)
                w->g.tensor.at[t].bytes = 0;            /* messages that take no time */
            set_times(w, unit_ns);
            set_plan(w, k ? "1f1b" : "gpipe", p);
            check(order(&w->p) == 0 && part(&w->p, limit) == 0, "no plan of %d equal chunks", p);
            for (int s = 0; s < p; s++)
                check(last_of(&w->p, s) == 5 * s + 4, "%d equal chunks: %d ends at %d", p, s, last_of(&w->p, s));
            Ns want = (16 + p - 1) * 10 * (Ns)UNIT + ENDS;
            check(w->p.predicted.bound == want && w->p.predicted.value == want,
                  "%d equal chunks: a bound of %lld, a step of %lld, not %lld",
                  p, (long long)w->p.predicted.bound, (long long)w->p.predicted.value, (long long)want);
        }
}

/* A chain of p equal chunks, f = 1, b = 2, of which q alone loads data, for l before each forward. */
static World *loading(int p, int m, int q, Ns l)
{
    World *w = chain(p, m, false);
    for (int t = 0; t < w->g.tensor.n; t++)
        w->g.tensor.at[t].bytes = 0;            /* messages that take no time */
    put_arg(&w->g.op.at[q], ARG_READ, false, add_tensor(w, T_INPUT, 4 * (l - 500), -1));
    set_times(w, unit_ns);
    set_plan(w, m % 2 ? "1f1b" : "gpipe", p);
    if (order(&w->p))
        die("no order");
    return w;
}

/* For the first micro-batch q loads while it waits for q forwards; for the others, if q is the last, while nobody hinders it:
 *
 *     max(q, l) + 3 (m + p-1-q) + (m-1) l + 2q        if m = 1 or q = p-1
 *
 * which is the bound too where l is no longer than that wait. */
static void test_load(int p, int m, int q, int quarters)
{
    static const Bytes limit[4] = {INT64_MAX / 4, INT64_MAX / 4, INT64_MAX / 4, INT64_MAX / 4};
    Ns unit = UNIT, l = quarters * unit / 4, bound = 0;
    World *w = loading(p, m, q, l);
    Ns step = simulated(w, limit, &bound), value = w->p.predicted.value;
    Ns want = (q * unit > l ? q * unit : l) + (3 * (m + p - 1 - q) + 2 * q) * unit + (m - 1) * l + ENDS;
    check(bound <= step && value == step, "loads, p=%d m=%d q=%d l=%d/4: bound %lld, predicted "
          "%lld, simulated %lld", p, m, q, quarters, (long long)bound, (long long)value, (long long)step);
    if (m > 1 && q < p - 1)
        return;
    check(value == want, "loads, p=%d m=%d q=%d l=%d/4: %lld, not %lld", p, m, q, quarters, (long long)value, (long long)want);
    check(bound == want || (bound < want && q * unit < l), "loads, p=%d m=%d q=%d l=%d/4: a bound of %lld, not %lld", p, m, q,
          quarters, (long long)bound, (long long)want);
}

static void test_loads(void)
{
    static const Ns one[] = {1, 1, 1, 1}, two[] = {2, 2, 2, 2};
    forward_units = one;
    backward_units = two;
    void *mark = mem_mark();
    for (int p = 2; p <= 4; p++)
        for (int m = 1; m <= 8; m++)
            for (int q = 1; q < p; q++)
                for (int quarters = 1; quarters <= 16; quarters *= 2, mem_release(mark))
                    test_load(p, m, q, quarters);
}

/* Two equal chunks, f = b = 1, and a message takes l.  1F1B has two micro-batches on the first chunk.  Each waits for the way
 * of the one before last, 4 + 2 l, and there are m / 2 of those in a row.  Where l is short, both ends wait and the rest is
 * computing: 2 (m + 1) + 4 l, and 2 l with two micro-batches. */
static void test_rounds(int m, int quarters)
{
    Ns unit = UNIT, l = quarters * unit / 4, round = m / 2 * (4 * unit + 2 * l);
    Ns full = 2 * (m + 1) * unit + (m > 2 ? 4 : 2) * l, want = ENDS + (round > full ? round : full);
    World *w = chain(2, m, false);
    Bytes limit[2] = {INT64_MAX / 4, INT64_MAX / 4};
    for (int t = 0; t < w->g.tensor.n; t++)
        w->g.tensor.at[t].bytes = 0;
    set_times(w, unit_ns);
    w->c.latency = l;
    set_plan(w, "1f1b", 2);
    check(order(&w->p) == 0, "no order");
    const Question q = part_question(&w->p, limit);
    Prices *prices = prices_open(&w->p, price_whole(&w->p, limit));
    const Facts *x = facts_of(&q);
    const int last[2] = {0, 1};
    const Price *price[2] = {price_best(prices, 0, 0, 0), price_best(prices, 1, 1, 1)};
    Ns bound = bound_plan(x, last, price), value = preview(preview_open(x), last, price, INT64_MAX);
    check(bound == want, "rounds, m=%d l=%d/4: a bound of %lld, not %lld", m, quarters, (long long)bound, (long long)want);
    check(bound <= value, "rounds, m=%d l=%d/4: a bound of %lld, a step of %lld", m, quarters, (long long)bound,
          (long long)value);
}

static void test_all_rounds(void)
{
    static const Ns one[] = {1, 1};
    forward_units = backward_units = one;
    for (int m = 2; m <= 16; m += 2)
        for (int quarters = 0; quarters <= 16; quarters++)
            test_rounds(m, quarters);
}

/* Three operators, two devices; what follows the first is large, what follows the second small: between the needs of the
 * two cuts, only the cut after the second fits, although its first chunk is the longer run. */
static void test_boundary(void)
{
    static const Ns one[] = {1, 1, 1};
    forward_units = backward_units = one;
    World *w = chain(3, 2, false);
    Bytes free[2] = {INT64_MAX / 4, INT64_MAX / 4};
    w->g.tensor.at[0].bytes = 10 * 64;
    for (int t = 1; t < w->g.tensor.n; t++)
        w->g.tensor.at[t].bytes = w->g.tensor.at[t].kind == T_GRAD && t == w->g.tensor.n - 1 ? 10 * 64 : 64;
    set_times(w, unit_ns);
    set_plan(w, "1f1b", 2);
    check(order(&w->p) == 0, "no order");
    Prices *x = prices_open(&w->p, price_whole(&w->p, free));
    Bytes first[2], second[2];
    for (int s = 0; s < 2; s++) {
        first[s] = price_best(x, s ? 1 : 0, s ? 2 : 0, s)->need;
        second[s] = price_best(x, s ? 2 : 0, s ? 2 : 1, s)->need;
    }
    Bytes limit[2] = {second[0], second[1]};
    check(first[0] > second[0] || first[1] > second[1], "needs %lld %lld after the first, %lld %lld after the second",
          (long long)first[0], (long long)first[1], (long long)second[0], (long long)second[1]);
    check(part(&w->p, limit) == 0 && last_of(&w->p, 0) == 1, "only the cut after the second operator fits");
    limit[0]--;
    limit[1]--;
    check(part(&w->p, limit) != 0, "nothing fits, and a plan is found");
}

int main(void)
{
    test_name = "unit_bound";
    test_equal();
    test_boundary();
    test_loads();
    test_all_rounds();
    printf("unit_bound: %d passed, %d failed\n", passed, failed);
    mem_free_all();
    return failed > 0;
}
