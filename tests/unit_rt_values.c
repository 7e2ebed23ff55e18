/* SPDX-License-Identifier: Apache-2.0
 *
 * unit_rt_values: number.c against the library's long double functions, SHA-256 against published answers, rates of all
 * kinds against their formulas, start values against their moments and against being cut in another way.
 */
#include <math.h>
#include "unit_rt.h"
#include "rt/number.h"
#include "rt/real.h"
#include "rt/sha256.h"
#include "rt/weights.h"

/* ---- number.c ---------------------------------------------------------------------------------------------------- */

/* Units in the last place between x and the exact value. */
static double error(double x, long double exact)
{
    int e;
    frexpl(exact, &e);
    return (double)(fabsl((long double)x - exact) / ldexpl(1, e - 53));
}

static double random_unit(uint64_t i)
{
    uint64_t u = (i + 1) * 0x9e3779b97f4a7c15u;
    u = (u ^ u >> 29) * 0xbf58476d1ce4e5b9u;
    return (double)(u >> 11) * 0x1p-53;
}

static void test_functions(void)
{
    const long double turn = 6.283185307179586476925286766559005768L;
    double log_worst = 0, sqrt_worst = 0, cos_worst = 0, sin_worst = 0;
    for (uint64_t i = 0; i < 200000; i++) {
        double u = random_unit(i), x = ldexp(u + 0x1p-53, (int)(i % 200) - 100);
        log_worst = fmax(log_worst, error(number_log(x), logl((long double)x)));
        sqrt_worst = fmax(sqrt_worst, error(number_sqrt(x), sqrtl((long double)x)));
        cos_worst = fmax(cos_worst, (double)fabsl((long double)number_cos_turn(u) - cosl(turn * (long double)u)));
        sin_worst = fmax(sin_worst, (double)fabsl((long double)number_sin_turn(u) - sinl(turn * (long double)u)));
    }
    check(log_worst < 4, "log is wrong by %g units", log_worst);
    check(sqrt_worst < 2, "sqrt is wrong by %g units", sqrt_worst);
    check(cos_worst < 4e-16, "cos is wrong by %g", cos_worst);
    check(sin_worst < 4e-16, "sin is wrong by %g", sin_worst);
    check(number_log(1) == 0 && number_sqrt(0) == 0 && number_cos_turn(0) == 1 && number_sin_turn(0) == 0,
          "exact values");
    check(number_cos_turn(0.5) == -1 && number_cos_turn(0.25) == 0 && number_sin_turn(0.25) == 1, "exact quarters");
    for (int n = 0; n < 50; n++)
        check(error(number_power(0.9, n), powl(0.9, n)) < 16, "0.9^%d", n);
}

/* The counter of every argument matters, and so does the purpose. */
static void test_draw(void)
{
    uint32_t a[4], b[4];
    number_draw(7, DRAW_ORDER, 11, 13, a);
    const struct { uint64_t seed; int purpose; uint64_t name, index; } other[] = {
        {8, DRAW_ORDER, 11, 13}, {7, DRAW_WINDOW, 11, 13}, {7, DRAW_ORDER, 12, 13}, {7, DRAW_ORDER, 11, 14},
        {7 + (1ull << 40), DRAW_ORDER, 11, 13}, {7, DRAW_ORDER, 11 + (1ull << 40), 13}, {7, DRAW_ORDER, 11,
                13 + (1ull << 40)}
    };
    for (size_t i = 0; i < sizeof other / sizeof *other; i++) {
        number_draw(other[i].seed, other[i].purpose, other[i].name, other[i].index, b);
        check(memcmp(a, b, sizeof a) != 0, "draw %zu does not depend on its argument", i);
    }
    number_draw(7, DRAW_ORDER, 11, 13, b);
    check(memcmp(a, b, sizeof a) == 0, "a draw is not a function of its arguments");
}

/* ---- SHA-256: the answers of FIPS 180-4's examples --------------------------------------------------------------- */

static void test_digest(void)
{
    static const struct { const char *text; int times; const char *hex; } known[] = {
        {"", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
        {"aaaaaaaaaa", 100000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"}
    };
    char hex[65];
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        Digest d;
        digest_start(&d);
        for (int k = 0; k < known[i].times; k++)
            digest_add(&d, known[i].text, strlen(known[i].text));
        digest_end(&d, hex);
        check(strcmp(hex, known[i].hex) == 0, "SHA-256 %zu: %s", i, hex);
    }
}

/* ---- values.c ---------------------------------------------------------------------------------------------------- */

static Job rates(int kind)
{
    return (Job){.lr_kind = kind, .lr = 0.01, .final = 0.1, .factor = 0.5, .every = 7, .warmup = 5, .steps = 45,
                 .beta1 = 0.9,
                 .beta2 = 0.95, .weight_decay = 0.1, .micro = 3, .batch = 2, .seed = 99};
}

static double expected_rate(const Job *j, int64_t step)
{
    double t = fmin((double)(step - j->warmup) / (double)(j->steps - j->warmup), 1);
    if (step < j->warmup)
        return j->lr * (double)(step + 1) / (double)j->warmup;
    switch (j->lr_kind) {
    case JOB_COSINE: return j->lr * (j->final + (1 - j->final) * 0.5 * (1 + cos(acos(-1) * t)));
    case JOB_LINEAR: return j->lr * (1 + (j->final - 1) * t);
    case JOB_STEP:   return j->lr * pow(j->factor, floor((double)step / (double)j->every));
    default:         return j->lr;
    }
}

static void test_values(void)
{
    for (int kind = JOB_CONSTANT; kind <= JOB_STEP; kind++)
        for (int64_t step = 0; step < 60; step++) {
            Job j = rates(kind);
            Values v;
            memset(&v, 0xa5, sizeof v);
            values_fill(&v, &j, step, false);
            double want = expected_rate(&j, step);
            check(fabs((double)v.lr - want) <= 1e-7 * want, "rate %d of step %lld: %g, not %g", kind, (long long)step,
                  (double)v.lr, want);
            check(fabs((double)v.bias1 - (1 - pow(0.9, (double)step + 1))) < 1e-7, "bias1 of step %lld",
                  (long long)step);
            check(fabs((double)v.bias2 - (1 - pow(0.95, (double)step + 1))) < 1e-7, "bias2 of step %lld",
                  (long long)step);
            check(v.micro == 3 && v.batch == 2 && v.seed == 99 && !v.eval && v.loss == 0 && v.norm == -1 &&
                  v.valid[5] == 0,
                  "the rest of the values");
        }
    static const GroupInfo group[] = {{0.5, 0.8, 0.7, 0}, {0.002, 0, 0.99, 0.3}};
    Job grouped = rates(JOB_COSINE);
    grouped.param_groups = 2, grouped.param_group = group;
    Values three[3];
    for (int64_t step = 0; step < 60; step++) {
        values_fill(three, &grouped, step, false);
        for (int i = 0; i < 2; i++) {
            Job own = grouped;
            own.lr = group[i].lr;
            double want = expected_rate(&own, step);
            const Values *k = &three[1 + i];
            check(fabs((double)k->lr - want) <= 1e-7 * want && k->step == step &&
                  k->weight_decay == (float)group[i].weight_decay, "group %d of step %lld", i, (long long)step);
            check(fabs((double)k->bias1 - (1 - pow(group[i].beta1, (double)step + 1))) < 1e-7 &&
                  fabs((double)k->bias2 - (1 - pow(group[i].beta2, (double)step + 1))) < 1e-7, "bias of group %d", i);
        }
    }
    Job none = rates(JOB_COSINE);
    Values v;
    none.warmup = 0;
    none.steps = 0;
    none.eval_batches = 5;
    values_fill(&v, &none, 3, true);
    check(v.micro == 5 && v.eval == 1 && fabs((double)v.lr - 0.001) < 1e-9, "an evaluation, after the end of the "
          "schedule");
}

/* ---- init.c ------------------------------------------------------------------------------------------------------ */

enum { N = 100001 };            /* odd, and more than a piece */

typedef struct { unsigned char *arena; Worker w; StageInfo info; StateInfo state[2]; Job job; Run run; } Holder;

static void hold(Holder *h, const char *name, int init, double a, double b, bool master, bool copy)
{
    memset(h, 0, sizeof *h);
    h->arena = calloc(N, 6);
    size_t at = master ? 0 : NOWHERE, copy_at = copy ? 4 * (size_t)N : NOWHERE;
    h->state[0] = (StateInfo){.name = name, .kind = STATE_PARAM, .owned = 1, .offset = at, .copy = copy_at, .n = N, .ndim = 1,
                              .dim = {N}, .init = init, .a = a, .b = b, .kept = 1, .copies = 1};
    h->info = (StageInfo){.states = 1, .state = h->state};
    h->job.seed = 42;
    h->run.job = &h->job;
    h->run.count = 1;
    h->w.run = &h->run;
    h->w.info = &h->info;
    h->w.stage.arena = h->arena;
    init_parameters(&h->w);
}

static void moments(const float *x, double *mean, double *deviation, double *correlation)
{
    double s = 0, q = 0, c = 0;
    for (int i = 0; i < N; i++)
        s += (double)x[i];
    *mean = s / N;
    for (int i = 0; i < N; i++)
        q += ((double)x[i] - *mean) * ((double)x[i] - *mean);
    for (int i = 1; i < N; i++)
        c += ((double)x[i] - *mean) * ((double)x[i - 1] - *mean);
    *deviation = sqrt(q / N);
    *correlation = c / q;
}

/* Bounds are five standard errors: 5/sqrt(N) = 0.016 for means and correlations, 0.011 for deviations. */
static void test_normal(void)
{
    Holder h, other;
    double mean, deviation, correlation;
    hold(&h, "a.weight", JOB_NORMAL, 3, 2, true, true);
    const float *x = (const float *)(void *)h.arena;
    moments(x, &mean, &deviation, &correlation);
    check(fabs(mean - 3) < 2 * 0.016 && fabs(deviation - 2) < 2 * 0.012 && fabs(correlation) < 0.016,
          "normal: mean %g, deviation %g, correlation %g", mean, deviation, correlation);
    int beyond = 0;
    for (int i = 0; i < N; i++)
        beyond += fabs((double)x[i] - 3) > 4;
    check(abs(beyond - 4550) < 5 * 66, "normal: %d of %d beyond two deviations", beyond,
          N);     /* erfc(sqrt 2) = 0.0455 */
    const uint16_t *copy = (const uint16_t *)(void *)(h.arena + 4 * (size_t)N);
    int wrong = 0;
    for (int i = 0; i < N; i++)
        wrong += copy[i] != float_bf16(x[i]);
    check(wrong == 0, "%d of the copies are not the rounded master", wrong);
    hold(&other, "a.weight", JOB_NORMAL, 3, 2, false, true);        /* in pieces, and rounded */
    check(memcmp(other.arena + 4 * (size_t)N, copy, 2 * (size_t)N) == 0,
          "a copy alone has other bits than the one beside its master");
    other.run.opt.weights = "weights";
    memset(other.arena, 0, 6 * (size_t)N);
    init_parameters(&other.w);
    check(other.arena[4 * (size_t)N + 1] == 0, "numbers are drawn that a file of weights has");
    other.state[0].files = FILES_DO_NOT;
    init_parameters(&other.w);
    check(memcmp(other.arena + 4 * (size_t)N, copy, 2 * (size_t)N) == 0, "no start value that files of weights do not have");
    free(other.arena);
    hold(&other, "b.weight", JOB_NORMAL, 3, 2, true, false);
    double together = 0;
    for (int i = 0; i < N; i++)
        together += ((double)x[i] - 3) * ((double)((const float *)(void *)other.arena)[i] - 3) / (4.0 * N);
    check(fabs(together) < 0.016, "two names are correlated: %g", together);
    free(other.arena);
    free(h.arena);
}

/* Blocks of a large parameter are drawn by threads: those of a short one, and those of a process whose stages are too many. */
static void test_threads(void)
{
    enum { LARGE = 2500001 };
    Holder h, few;
    hold(&few, "a.weight", JOB_NORMAL, 3, 2, true, false);
    hold(&h, "a.weight", JOB_NORMAL, 3, 2, true, false);
    free(h.arena);
    float *x[2];
    for (int i = 0; i < 2; i++) {
        x[i] = calloc(LARGE, sizeof *x[i]);
        h.arena = (unsigned char *)(void *)x[i];
        h.state[0].n = h.state[0].part = LARGE;
        h.state[0].dim[0] = LARGE;
        h.w.stage.arena = h.arena;
        h.run.count = i == 0 ? 1 : 1 << 20;
        init_parameters(&h.w);
    }
    check(memcmp(x[0], few.arena, N * sizeof *x[0]) == 0, "threads draw other numbers than one");
    check(memcmp(x[0], x[1], LARGE * sizeof *x[0]) == 0 && x[0][LARGE - 1] != 0, "threads draw others than one");
    free(few.arena);
    free(x[0]);
    free(x[1]);
}

/* Row t, column i of a table 11 wide: the sine and, 5 behind it, the cosine of t 10000^(-i/(5-less)); then a 0. */
static void test_sines(void)
{
    enum { WIDTH = 11, HALF = WIDTH / 2 };
    for (int less = 0; less < 2; less++) {
        Holder h;
        hold(&h, "a.weight", JOB_SINES, 10000, less, true, false);
        h.state[0].ndim = 2;
        h.state[0].dim[0] = N / WIDTH;
        h.state[0].dim[1] = WIDTH;
        init_parameters(&h.w);
        double worst = 0;
        const float *x = (const float *)(void *)h.arena;
        for (int i = 0; i < N; i++) {
            double angle = i / WIDTH * pow(10000, -(double)(i % WIDTH % HALF) / (HALF - less));
            double is = i % WIDTH < HALF ? sin(angle) : i % WIDTH < 2 * HALF ? cos(angle) : 0;
            worst = fmax(worst, fabs(is - (double)x[i]));
        }
        check(worst < 1e-7, "sines, less %d: off by %g", less, worst);
        free(h.arena);
    }
}

static void test_uniform(void)
{
    Holder h;
    double mean, deviation, correlation;
    hold(&h, "a.weight", JOB_UNIFORM, -1, 3, true, false);
    const float *x = (const float *)(void *)h.arena;
    moments(x, &mean, &deviation, &correlation);
    check(fabs(mean - 1) < 0.02 && fabs(deviation - 4 / sqrt(12)) < 0.012 && fabs(correlation) < 0.016,
          "uniform: mean %g, deviation %g, correlation %g", mean, deviation, correlation);
    int outside = 0;
    for (int i = 0; i < N; i++)
        outside += x[i] < -1 || x[i] > 3;
    check(outside == 0, "uniform: %d outside", outside);
    free(h.arena);
    hold(&h, "a", JOB_ONES, 0, 0, true, false);
    h.state[0].init = JOB_VALUES;
    h.state[0].n = h.state[0].part = 3;
    memcpy(h.state[0].values, (const float[]){1, -2.5f, 1e9f}, 3 * sizeof(float));
    init_parameters(&h.w);
    x = (const float *)(const void *)h.arena;
    check(x[0] == 1 && x[1] == -2.5f && x[2] == 1e9f, "values: %g %g %g", x[0], x[1], x[2]);
    free(h.arena);
    hold(&h, "a", JOB_ONES, 0, 0, true, false);
    check(((const float *)(void *)h.arena)[N - 1] == 1, "ones");
    free(h.arena);
}

/* Every half there and back.  Of two neighbours the middle goes to the even one, what is next to the middle to the nearer. */
static void test_halves(void)
{
    int wrong = 0;
    for (int h = 0; h < 0x7c00; h++) {
        double exact = h < 0x400 ? ldexp(h, -24) : ldexp(0x400 + h % 0x400, h / 0x400 - 25);
        float x = half_float((uint16_t)h), next = h == 0x7bff ? 65536 : half_float((uint16_t)(h + 1));
        float middle = (float)((exact + (double)next) / 2);
        wrong += (double)x != exact || half_float((uint16_t)(h | 0x8000)) != -x;
        wrong += float_half(x) != h || float_half(-x) != (h | 0x8000);
        wrong += float_half(middle) != h + h % 2 || float_half(nextafterf(middle, 0)) != h;
        wrong += float_half(nextafterf(middle, 1e9f)) != h + 1;
    }
    wrong += float_half(INFINITY) != 0x7c00 || float_half(1e9f) != 0x7c00 || !isnan(half_float(float_half(NAN)));
    check(wrong == 0, "%d halves are wrong", wrong);
}

int main(void)
{
    test_halves();
    test_functions();
    test_draw();
    test_digest();
    test_values();
    test_normal();
    test_threads();
    test_sines();
    test_uniform();
    return finish("unit_rt_values");
}
