/* SPDX-License-Identifier: Apache-2.0
 *
 * unit_math: the elementary functions of rt/fmath.h against libm in double, over a dense sample of all floats and
 * at the ends of their ranges; the fused multiply-add of rt/op/fused.h; bfloat16 and 8-bit rounding against the definition;
 * Philox against its published answers.
 *
 * The error of a result is counted in units of the last place of the exact value; 0.5 is a correctly rounded one.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "rt/formula.h"
#include "rt/scalar.h"
#include "rt/fp8.h"
#include "rt/quantize.h"
#include "rt/op/fused.h"
#include "rt/op/kernel.h"
#include "rt/philox.h"
#include "tests/eight.h"

static int passed, failed;

static void check(int ok, const char *what, double a, double b)
{
    passed += ok != 0;
    failed += !ok;
    if (!ok)
        fprintf(stderr, "unit_math: %s: %.17g, %.17g\n", what, a, b);
}

/* Distance of neighbouring floats at |x|. */
static double unit(double x)
{
    int e;
    frexp(x, &e);
    return ldexp(1, (e < -125 ? -125 : e) - 24);
}

static double d_sigmoid(double x) { return 1 / (1 + exp(-x)); }
static double d_rsqrt(double x) { return 1 / sqrt(x); }

static const struct { const char *name; float (*f)(float); double (*exact)(double); double from, to,
                     bound; } functions[] = {
    {"exp", fexp, exp, -INFINITY, INFINITY, 1.02},
    {"log", flog, log, 0, INFINITY, 0.51},
    {"e^x - 1", exp_less_one, expm1, -INFINITY, -0.0, 3},
    {"tanh", ftanh, tanh, -INFINITY, INFINITY, 1.3},
    {"erf", ferf, erf, -INFINITY, INFINITY, 1.3},
    {"sigmoid", fsigmoid, d_sigmoid, -88, INFINITY, 2.2},       /* below, e^-x is infinite and the result 0 */
    {"sqrt", fsqrt, sqrt, 0, INFINITY, 0.5001},
    {"rsqrt", frsqrt, d_rsqrt, 0x1p-126, INFINITY, 1.5},
};

static void test_functions(void)
{
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        double worst = 0, at = 0;
        for (uint64_t u = 0; u < 0x100000000u; u += 1499) {     /* prime: every exponent, both signs, all low bits */
            float x = bits_float((uint32_t)u);
            if (!(x > functions[i].from && x < functions[i].to))
                continue;
            double exact = functions[i].exact(x), got = functions[i].f(x);
            double error = fabs(exact) > 0x1.fffffep127 ? (isinf(got) ? 0 : INFINITY) : fabs(got - exact) / unit(exact);
            if (!(error <= worst))
                worst = error, at = x;
        }
        check(worst <= functions[i].bound, functions[i].name, worst, at);
        if (getenv("VERBOSE"))
            printf("%s: %.3f units at %g\n", functions[i].name, worst, at);
        check(isnan(functions[i].f(NAN)), functions[i].name, NAN, functions[i].f(NAN));
    }
}

static void test_ends(void)
{
    const struct { const char *what; float got; double want; } ends[] = {
        {"exp(-inf)", fexp(-INFINITY), 0}, {"exp(inf)", fexp(INFINITY), INFINITY}, {"exp(0)", fexp(0), 1},
        {"exp(-0)", fexp(-0.0f), 1}, {"exp(-1e30)", fexp(-1e30f), 0}, {"exp(88.8)", fexp(88.8f), INFINITY},
        {"exp(-103.9)", fexp(-103.9f), 0x1p-149}, {"log(0)", flog(0), -INFINITY}, {"log(1)", flog(1), 0},
        {"log(inf)", flog(INFINITY), INFINITY}, {"tanh(inf)", ftanh(INFINITY), 1}, {"tanh(-inf)", ftanh(-INFINITY), -1},
        {"tanh(1e-40)", ftanh(1e-40f), 1e-40f}, {"erf(inf)", ferf(INFINITY), 1}, {"erf(-inf)", ferf(-INFINITY), -1},
        {"erf(4)", ferf(4), 1}, {"sigmoid(inf)", fsigmoid(INFINITY), 1}, {"sigmoid(-inf)", fsigmoid(-INFINITY), 0},
        {"sigmoid(0)", fsigmoid(0), 0.5},
    };
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        check((double)ends[i].got == ends[i].want, ends[i].what, ends[i].got, ends[i].want);
    check(isnan(flog(-1)), "log(-1)", flog(-1), NAN);
    check(signbit(ftanh(-0.0f)) && signbit(ferf(-0.0f)), "odd functions keep the sign of zero", 0, 0);
    for (double x = 1e-300; x < 1e300; x *= 1.37)
        check(fabs(dlog(x) - log(x)) <= 4e-16 * fabs(log(x)) + 1e-18, "dlog", dlog(x), log(x));
}

/* The nearest bfloat16 by search: of the two around x the nearer, of two as near the even one. */
static uint16_t nearest_bf16(float x)
{
    uint16_t low = (uint16_t)(float_bits(x) >> 16), high = (uint16_t)(low + 1);
    double a = bf16_float(low), b = bf16_float(high);
    if (isinf(b))                           /* what would follow the largest finite value */
        b = copysign(0x1p128, x);
    double to_a = fabs((double)x - a), to_b = fabs((double)x - b);
    return to_a < to_b || (to_a == to_b && low % 2 == 0) ? low : high;
}

static void test_bf16(void)
{
    int wrong = 0;
    for (uint32_t high = 0; high < 0x10000; high++)
        for (int i = 0; i < 5; i++) {
            const uint32_t low[] = {0, 0x7fff, 0x8000, 0x8001, 0xffff};
            float x = bits_float(high << 16 | low[i]);
            uint16_t got = float_bf16(x);
            wrong += isnan(x) ? !isnan(bf16_float(got)) : isinf(x) ? bf16_float(got) != x : got != nearest_bf16(x);
        }
    check(wrong == 0, "bfloat16 rounding, values wrong", wrong, 0);
}

/* All 256 codes; every number half-way between two, and the floats beside it; the ends; a sample of all floats. */
static void test_eight(void)
{
    for (int five = 0; five < 2; five++) {
        Fp8 type = five ? E5M2 : E4M3;
        int wrong = 0, ties = 0, n = 0;
        for (int c = 0; c < 256; c++) {
            double want = eight_value(c & 127, five) * (c & 128 ? -1 : 1), got = (double)fp8_float((uint8_t)c, type);
            wrong += isnan(want) ? !isnan(got) : got != want || signbit(got) != (c > 127);
            wrong += (c & 127) <= eight_most(five) && float_fp8((float)got, type) != c;
        }
        for (int c = 0; c < eight_most(five); c++) {
            float half = (float)((eight_value(c, five) + eight_value(c + 1, five)) / 2);
            int even = c + c % 2;
            ties += float_fp8(half, type) != even || float_fp8(-half, type) != (even | 128);
            ties += float_fp8(nextafterf(half, 0), type) != c || float_fp8(nextafterf(half, INFINITY), type) != c + 1;
        }
        check(wrong == 0, "8 bits: codes wrong", five, wrong);
        check(ties == 0, "8 bits: ties wrong", five, ties);
        const float ends[] = {448, 449, 464, 465, 57344, 57345, 61440, 61441, 1e30f, 0x1p-149f, INFINITY, NAN, 0};
        for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
            for (int minus = 0; minus < 2; minus++) {
                float x = minus ? -ends[i] : ends[i];
                check(float_fp8(x, type) == eight_code((double)x, five), "8 bits", (double)x, float_fp8(x, type));
            }
        for (uint64_t u = 0; u < 0x100000000u; u += 4999)
            n += float_fp8(bits_float((uint32_t)u), type) != eight_code((double)bits_float((uint32_t)u), five);
        check(n == 0, "8 bits: floats wrong", five, n);
    }
}

/* Bins of magnitudes, and scales of those between the first bin and the last. */
static void test_scales(void)
{
    int bins = 0, scales = 0;
    for (uint64_t u = 0; u < 0x80000000u; u += 9973) {
        double most = (double)bits_float((uint32_t)u);
        bins += fp8_bin((float)most) != eight_bin(most);
        for (int five = 0; five < 2 && most > 0x1p-95 && most < 0x1p31; five++)
            scales += fp8_scale(fp8_bin((float)most), five ? E5M2 : E4M3) != eight_scale(most, five);
    }
    check(bins == 0, "bins wrong", bins, 0);
    check(scales == 0, "scales wrong", scales, 0);
    for (int b = -1; b < FP8_BINS; b++)
        for (int five = 0; five < 2; five++) {
            int n = fp8_scale(b, five ? E5M2 : E4M3);
            check(fp8_power(n) == ldexpf(1, n) && fp8_power(-n) == ldexpf(1, -n), "a scale is no float", b, n);
        }
    const float edges[] = {1.75f, 0x1.c00002p0f, 0x1.bffffep0f, 448, 0, INFINITY, NAN, 0x1p-140f, 0x1p100f};
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++)
        check(fp8_bin(edges[i]) == eight_bin((double)edges[i]), "bin", (double)edges[i], fp8_bin(edges[i]));
}

/* The numbers of NF4 lie where the normal distribution has equal shares: eight above 0 and seven below it, of what is within
 * 0.9677083 (QLoRA, appendix E: the mean of 1 - 1/(2 15) and 1 - 1/(2 16)). */
static void test_nf4_table(void)
{
    const double most = (1 - 1.0 / 30 + 1 - 1.0 / 32) / 2;
    double end = 1.8;
    for (int i = 0; i < 40; i++)            /* where the distribution is `most`, by Newton's method */
        end -= (0.5 * erfc(-end / sqrt(2)) - most) * sqrt(2 * 3.14159265358979323846) * exp(end * end / 2);
    for (int c = 0; c < 16; c++) {
        double x = fabs((double)nf4_value(c)) * end, at = 0.5 * erfc(-x / sqrt(2));
        double want = 0.5 + (most - 0.5) * (c < 7 ? 7 - c : c - 7) / (c < 7 ? 7 : 8);
        check(fabs(at - want) < 1e-6 && (nf4_value(c) < 0) == (c < 7), "a number of NF4", at, want);
    }
}

/* Records of random numbers of many sizes: the nearest number that there is; and wide and narrow again the same bytes. */
static void test_few_bits(void)
{
    enum { N = 200 };
    int scales = 0, far = 0, again = 0;
    uint32_t seed = 1;
    for (int t = 0; t < 4000; t++) {
        int bits = t % 2 ? 4 : 8;
        long n = bits == 4 ? 1 + t % 64 : 1 + t % N;
        float x[N], wide[N];
        unsigned char few[2][4 + N];
        double most = 0, scale;
        for (long i = 0; i < n; i++) {
            seed = seed * 1664525 + 1013904223;
            x[i] = (float)ldexp((double)(int32_t)seed, t % 100 - 80) * (t % 7 || i % 3 ? 1 : 0);
            most = fmax(most, fabs((double)x[i]));
        }
        quantize_record(few[0], bits, x, n);
        quantized_read(wide, few[0], bits, n, 0, n);
        quantize_record(few[1], bits, wide, n);
        float s;
        memcpy(&s, few[0], sizeof s);
        scale = (double)s;
        scales += bits == 4 ? scale != most : scale < most / 127 * (1 - 0x1p-23) || scale > most / 127 * (1 + 0x1p-15) ||
                  float_bits(s) % 256 != 0;
        again += memcmp(few[0], few[1], (size_t)quantized_record(bits, n)) != 0;
        for (long i = 0; i < n; i++) {
            double best = 1e300, off = fabs((double)wide[i] - (double)x[i]);
            for (int c = bits == 4 ? 0 : -127; c < (bits == 4 ? 16 : 128); c++)
                best = fmin(best, fabs((bits == 4 ? (double)nf4_value(c) : c) * scale - (double)x[i]));
            far += off > best + most * 1e-6;
        }
    }
    check(scales == 0, "few bits: scales wrong", scales, 0);
    check(far == 0, "few bits: not the nearest", far, 0);
    check(again == 0, "few bits: other bytes when they were wide", again, 0);
    const float odd[][2] = {{0, -0.0f}, {NAN, 1}, {1, INFINITY}, {0x1p-149f, 0}, {0x1p-130f, -0x1p-140f}};
    for (int t = 0; t < 10; t++) {
        unsigned char few[NF4_BYTES];
        float wide[2];
        quantize_record(few, t % 2 ? 4 : 8, odd[t / 2], 2);
        quantized_read(wide, few, t % 2 ? 4 : 8, 2, 0, 2);
        int lost = t / 2 == 1 || t / 2 == 2;
        for (int i = 0; i < 2; i++)
            check(lost ? isnan(wide[i]) : fabs((double)wide[i] - (double)odd[t / 2][i]) < 0x1p-130, "few bits: ends", t,
                  (double)wide[i]);
    }
}

/* Answers published with Random123, file kat_vectors. */
static void test_philox(void)
{
    static const struct { Philox counter; uint32_t key[2]; Philox answer; } known[] = {
        {{{0, 0, 0, 0}}, {0, 0}, {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}}},
        {{{~0u, ~0u, ~0u, ~0u}}, {~0u, ~0u}, {{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}}},
        {{{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, {0xa4093822, 0x299f31d0},
         {{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        Philox got = philox(known[i].counter, known[i].key[0], known[i].key[1]);
        for (int j = 0; j < 4; j++)
            check(got.v[j] == known[i].answer.v[j], "philox", got.v[j], known[i].answer.v[j]);
    }
}

/* A row of factors is the element-wise rule, from any start; and the share kept is what was asked for. */
static void test_factors(void)
{
    Values vals = {.seed = 0x123456789abcdefu, .step = 0x700000003};
    const int64_t site = 0x2fedcba987654321;
    Drop d = drop_of(&vals, 5, 0.3f, site);
    float to[3000];
    int kept = 0, wrong = 0;
    for (long from = 0; from < 70; from++) {
        drop_factors(to, &d, from, 3000);
        for (long i = 0; i < 3000; i++) {
            uint32_t k0 = 0x89abcdefu ^ 0x2fedcba9u, k1 = 0x01234567u ^ 0x87654321u;
            Philox r = philox((Philox){{(uint32_t)((from + i) / 4), 5, 3, 7}}, k0, k1);
            int keep = (double)r.v[(from + i) % 4] >= (double)0.3f * 4294967296.0;
            wrong += to[i] != (keep ? 1 / (1 - 0.3f) : 0);
            kept += from == 0 && keep;
        }
    }
    check(wrong == 0, "dropout factors wrong", wrong, 0);
    check(fabs(kept / 3000.0 - 0.7) < 0.04, "share kept", kept / 3000.0, 0.7);
}

/* The written order of sums, by its definition. */
static void test_sum(void)
{
    float x[1000];
    for (int i = 0; i < 1000; i++)
        x[i] = (float)((i * 7919) % 1013) / 997.0f - 0.5f;
    for (long n = 0; n <= 1000; n += n < 70 ? 1 : 93) {
        float lane[16] = {0}, got;
        for (long i = 0; i < n; i++)
            lane[i % 16] += x[i];
        for (int half = 8; half; half /= 2)
            for (int j = 0; j < half; j++)
                lane[j] += lane[j + half];
        SUM_OF(got, n, i, x[i]);
        check(got == lane[0], "sum by lanes", got, lane[0]);
    }
}

/* ---- the fused multiply-add: the instruction, and what stands in for it, against libm --------------------------------- */

static uint64_t draws = 1;
static uint32_t draw(void)
{
    draws = draws * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(draws >> 32);
}

/* +-2^-n .. 2^n (1 + 23 bits) */
static float near_one(uint32_t n)
{
    return bits_float((draw() & 0x807fffff) | (127 - n + draw() % (2 * n + 1)) << 23);
}

typedef struct { float a, b, c; } Three;

/* Any bits; numbers whose product and sum meet; sums that cancel; ties of floats, and of their subnormals, and what lies just
 * beside: b is half of a last place of c, times about 1. */
static Three three_of(int kind)
{
    Three x = {bits_float(draw()), bits_float(draw()), bits_float(draw())};
    if (kind == 1 || kind == 2)
        x = (Three){near_one(4), near_one(4), near_one(30)};
    if (kind == 2)
        x.c = -(x.a * x.b) * (draw() % 2 ? 1 : 1 + (float)(draw() % 16) * 0x1p-23f);
    if (kind > 2) {
        int e = kind == 3 ? (int)(draw() % 200) - 100 : -126;
        x.c = ldexpf(near_one(1), e - (kind == 3 ? 0 : 1 + (int)(draw() % 20)));
        int place = (int)(float_bits(x.c) >> 23 & 255);
        float by = (float)(draw() % 8) * 0x1p-20f, half = ldexpf(draw() % 2 ? 1 : -1, (place ? place : 1) - 151 + 40);
        x.a = (1 + by) * 0x1p-40f, x.b = half * (draw() % 3 ? 1 - by : 1 + by);
    }
    return x;
}

static int same_float(float x, float y) { return float_bits(x) == float_bits(y) || (x != x && y != y); }

static void fused_case(const Three x[VECTOR])
{
    Vector a, b, c, there, here;
    for (int i = 0; i < VECTOR; i++)
        a[i] = x[i].a, b[i] = x[i].b, c[i] = x[i].c;
    there = fused_exact(a, b, c);
    here = fused(a, b, c);
    for (int i = 0; i < VECTOR; i++) {
        float want = fmaf(x[i].a, x[i].b, x[i].c);
        if (!same_float(there[i], want) || !same_float(here[i], want)) {
            fprintf(stderr, "unit_math: %a * %a + %a is %a, fused() says %a, fused_exact() %a\n", (double)x[i].a,
                    (double)x[i].b, (double)x[i].c, (double)want, (double)here[i], (double)there[i]);
            failed++;
        }
    }
    passed++;
}

static void test_fused(void)
{
    static const uint32_t special[] = {0, 1, 2, 0x7fffff, 0x800000, 0x800001, 0xffffff, 0x1000000, 0x33800000, 0x3effffff,
                                       0x3f7fffff, 0x3f800000, 0x3f800001, 0x40000000, 0x7effffff, 0x7f000000, 0x7f7fffff,
                                       0x7f800000, 0x7fc00000};
    enum { N = 2 * sizeof special / sizeof *special };
    float value[N];
    Three x[VECTOR];
    for (int i = 0; i < N; i++)
        value[i] = bits_float(special[i / 2] | (uint32_t)i << 31);
    for (int i = 0; i < N * N * N; i++) {
        x[i % VECTOR] = (Three){value[i % N], value[i / N % N], value[i / N / N]};
        if (i % VECTOR == VECTOR - 1)
            fused_case(x);
    }
    long cases = getenv("SLOW") ? 1000000000 : 1000000;
    for (long i = 0; i < cases && failed < 20; i += VECTOR) {
        for (int j = 0; j < VECTOR; j++)
            x[j] = three_of((int)((i / VECTOR + j) % 5));
        fused_case(x);
    }
}

/* The root from integers: that of the machine, of any double and of squares and their neighbours. */
static void root_case(double x)
{
    double want = sqrt(x), got = dsqrt_bits(x);
    if (memcmp(&want, &got, sizeof got) && !(want != want && got != got))
        check(0, "root by bits", want, got);
}

static void test_roots(void)
{
    uint64_t u = 88172645463325252u;
    double x, k;
    for (long i = 0; i < 400000 && failed < 20; i++) {
        u ^= u << 13, u ^= u >> 7, u ^= u << 17;        /* xorshift (G. Marsaglia, 2003) */
        uint64_t bits = i % 4 ? u : u & 0x800fffffffffffffu;    /* every fourth is subnormal */
        memcpy(&x, &bits, sizeof x);
        root_case(x);
        k = (double)(u >> 38);
        root_case(k * k);
        root_case(nextafter(k * k, 0));
        root_case(nextafter(k * k, INFINITY));
    }
    root_case(0), root_case(-0.0), root_case(INFINITY), root_case(NAN), root_case(-1);
    check(failed == 0, "roots by bits", 0, 0);
}

int main(void)
{
    test_roots();
    test_fused();
    test_functions();
    test_ends();
    test_bf16();
    test_eight();
    test_scales();
    test_nf4_table();
    test_few_bits();
    test_philox();
    test_factors();
    test_sum();
    printf("unit_math: %d passed, %d failed\n", passed, failed);
    return failed != 0;
}
