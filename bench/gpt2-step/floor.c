/* SPDX-License-Identifier: Apache-2.0
 *
 * floor.c: what the matrix products of one GPT-2 124M step cost at the best rate that any library here reaches.
 *
 * Five weights (qkv, attention projection, fc, fc projection, each in 12 layers, and the head) by three directions
 * (forward, dx, dweight) are 15 distinct products.  Each is timed by every way there is:
 *
 *     blas    oneDNN's sgemm (f32 only)
 *     plain   oneDNN's matmul, operands as they lie in memory
 *     packed  the same with the right side in the library's own layout; copying it there is not counted
 *     open    OpenBLAS, if it is installed (f32 only)
 *
 * in interleaved rounds; the floor is the sum over the products of the lowest median, times how often a step needs it.
 * With -p the portable kernel, rt/op/linear.c, takes its turn; it is no part of the floor.  Its time and that of the library,
 * blas or plain, are added up too: a line `portable MS library MS`, and the least share of its rate in one product.
 * The buffers stay in the cache as far as they fit, which no training step can match: the floor is strict.  Prints the
 * table, then one line `floor MS`.  With -m a line `second floor MS` follows: that and the time in which all other calls of
 * the step move their MIB, each operand once, at the rate of a loop that reads two arrays and writes one of these.
 *
 *     floor [-t THREADS] [-n ROUNDS] [-b BATCH] [-s TOKENS] [-o] [-p] [-m MIB]     -o: time OpenBLAS too
 *     floor ... -w KIND:ROWS:IN:OUT:TIMES ...                         other products: kind f forward, x dx, w dweight
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <omp.h>
#include <oneapi/dnnl/dnnl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "../../rt/op/onednn/product.h"
#include "../../rt/real.h"

enum { BLAS, PLAIN, PACKED, OPEN, OWN, WAYS, ROUNDS = 99 };
static const char *const way_name[WAYS] = { "blas", "plain", "packed", "open", "portable" };
typedef struct { const char *name; int kind; long rows, in, out; int times; } Needed;      /* kind: of direction[] */
static const struct { const char *name; long in, out; int times; } weight[] = {
    { "qkv", 768, 2304, 12 }, { "attproj", 768, 768, 12 }, { "fc", 768, 3072, 12 }, { "fcproj", 3072, 768, 12 },
    { "head", 768, 50257, 1 } };
static const char *const direction[] = { "forward", "dx", "dweight" };
enum { WEIGHTS = sizeof weight / sizeof *weight, F32 = sizeof(real) == sizeof(float), MOST = 256 };

typedef void (*Sgemm)(int, int, int, int, int, int, float, const float *, int, const float *, int, float, float *, int);
static Sgemm open_blas;
static int with_own;
static struct { double own, library, least; } sums = {0, 0, 1e30};

/* rt/op/linear.c */
void linear_forward(Stage *st, real *y, const real *x, const real *weight, const real *bias, int h, long rows, long in,
                    long out);
void linear_backward_x(Stage *st, real *dx, const real *dy, const real *weight, int h, long rows, long in, long out);
void linear_backward_w(Stage *st, float *dweight, float *dbias, const real *dy, const real *x, int h, int acc, long rows,
                       long in, long out);

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static Recipe recipe(const Needed *w)
{
    const Recipe all[] = { { .batch = 1, .m = w->rows, .n = w->out, .k = w->in, .tb = 1 },
                           { .batch = 1, .m = w->rows, .n = w->in, .k = w->out },
                           { .batch = 1, .m = w->out, .n = w->in, .k = w->rows, .ta = 1, .wide = 1, .acc = 1 } };
    return all[w->kind];
}

static int exists(int way)
{
    return way == OWN ? with_own : way == OPEN ? F32 && open_blas : way == BLAS ? F32 : 1;
}

static void own(Stage *st, Recipe r, void *c, const void *a, const void *b)
{
    if (r.tb)
        linear_forward(st, c, a, b, NULL, 0, r.m, r.k, r.n);
    else if (r.ta)
        linear_backward_w(st, c, NULL, a, b, 0, 1, r.k, r.n, r.m);
    else
        linear_backward_x(st, c, a, b, 0, r.m, r.n, r.k);
}

static void once(Stage *st, int way, Product *const *p, Recipe r, void *c, const void *a, const void *b)
{
    if (way == OWN)
        own(st, r, c, a, b);
    else if (way == BLAS)
        product_f32(st, r, c, a, b);
    else if (way == OPEN)
        open_blas(101, r.ta ? 112 : 111, r.tb ? 112 : 111, (int)r.m, (int)r.n, (int)r.k, 1, a, (int)(r.ta ? r.m : r.k),
                  b, (int)(r.tb ? r.k : r.n), r.acc ? 1 : 0, c, (int)r.n);
    else
        product_again(st, p[way], c, a, b);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The lowest median of one product, in milliseconds. */
static double product_floor(Stage *st, const Needed *w, int rounds, void *c, const void *a, const void *b)
{
    static double ms[WAYS][ROUNDS];
    Recipe r = recipe(w), packed = r;
    packed.pack = 1;
    Product *p[WAYS] = { [PLAIN] = product_open(st, r), [PACKED] = product_open(st, packed) };
    product_run(st, p[PACKED], c, a, b, NULL);          /* leaves b packed */
    for (int i = -1; i < rounds; i++)                   /* the first is not counted */
        for (int way = 0; way < WAYS; way++) {
            double from = now();
            if (exists(way))
                once(st, way, p, r, c, a, b);
            if (i >= 0)
                ms[way][i] = now() - from;
        }
    double best = 1e30, work = 2e-6 * (double)r.m * (double)r.n * (double)r.k;
    printf("%-8s %-8s %5ld %5ld %5ld x %-3d", w->name, direction[w->kind], w->rows, w->in, w->out, w->times);
    for (int way = 0; way < WAYS; way++) {
        if (!exists(way))
            continue;
        qsort(ms[way], (size_t)rounds, sizeof(double), ascending);
        double median = ms[way][rounds / 2];
        printf("  %s %8.3f ms %5.0f GFLOP/s", way_name[way], median, work / median);
        best = median < best && way != OWN ? median : best;
    }
    if (with_own) {
        double mine = ms[OWN][rounds / 2], plain = ms[PLAIN][rounds / 2], blas = ms[BLAS][rounds / 2];
        double library = exists(BLAS) && blas < plain ? blas : plain;
        sums.own += w->times * mine, sums.library += w->times * library;
        sums.least = library / mine < sums.least ? library / mine : sums.least;
        printf("  %.2f", library / mine);
    }
    printf("\n");
    return best;
}

static void fill(real *x, long n)
{
    uint64_t s = 1;
    for (long i = 0; i < n; i++) {
        s = s * 6364136223846793005u + 1442695040888963407u;
        put(x, i, (float)(s >> 40) * 0x1p-24f - 0.5f);
    }
}

static void find_open_blas(int threads)
{
    void *lib = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    void *product = lib ? dlsym(lib, "cblas_sgemm") : NULL, *set = lib ? dlsym(lib, "openblas_set_num_threads") : NULL;
    if (!product || !set)
        return;
    void (*set_threads)(int);
    memcpy(&open_blas, &product, sizeof product);       /* ISO C has no conversion from object to function */
    memcpy(&set_threads, &set, sizeof set);
    set_threads(threads);
}

/* MiB a millisecond, the median of the rounds: arrays of 256 MiB, which no cache holds; what a write fetches does not count. */
static double bandwidth(const Stage *st, int rounds)
{
    static double rate[ROUNDS];
    enum { MIB = 256 };
    long n = (long)MIB << 18, threads = st->threads;
    (void)threads;
    float *x = handle_alloc((size_t)n * sizeof *x), *y = handle_alloc((size_t)n * sizeof *y);
    for (long j = 0; j < n; j++)
        x[j] = y[j] = 1.0f;
    for (int i = 0; i < rounds; i++) {
        double from = now();
#pragma omp parallel for schedule(static) num_threads(threads)
        for (long j = 0; j < n; j++)
            x[j] += 0.5f * y[j];
        rate[i] = 3 * MIB / (now() - from);
    }
    qsort(rate, (size_t)rounds, sizeof(double), ascending);
    return rate[rounds / 2];
}

/* KIND:ROWS:IN:OUT:TIMES */
static int read_needed(const char *text, Needed *to)
{
    char kind;
    to->name = "";
    if (sscanf(text, "%c:%ld:%ld:%ld:%d", &kind, &to->rows, &to->in, &to->out, &to->times) != 5)
        return 0;
    to->kind = kind == 'f' ? 0 : kind == 'x' ? 1 : 2;
    return 1;
}

/* Buffers as large as the largest product wants them */
static double sum_of(Stage *st, const Needed *needed, int n, int rounds)
{
    long left = 0, right = 0, result = 0;
    for (int i = 0; i < n; i++) {
        const Needed *w = &needed[i];
        long x = w->rows * w->in, y = w->rows * w->out, m = w->in * w->out, wide = x > y ? x : y;
        left = wide > left ? wide : left;
        right = (m > wide ? m : wide) > right ? (m > wide ? m : wide) : right;
        result = right > result ? right : result;
    }
    real *a = handle_alloc((size_t)left * sizeof *a), *b = handle_alloc((size_t)right * sizeof *b);
    float *c = handle_alloc((size_t)result * sizeof *c);
    double sum = 0;
    fill(a, left), fill(b, right);
    for (int i = 0; i < n; i++)
        sum += needed[i].times * product_floor(st, &needed[i], rounds, c, a, b);
    return sum;
}

int main(int argc, char **argv)
{
    static Needed needed[MOST];
    int threads = 2, rounds = 9, option, with_open = 0, n = 0;
    long batch = 4, tokens = 64, others = 0;
    while ((option = getopt(argc, argv, "t:n:b:s:opm:w:")) != -1)
        switch (option) {
        case 't': threads = atoi(optarg); break;
        case 'n': rounds = atoi(optarg) < ROUNDS ? atoi(optarg) : ROUNDS; break;
        case 'b': batch = atol(optarg); break;
        case 's': tokens = atol(optarg); break;
        case 'o': with_open = 1; break;
        case 'p': with_own = 1; break;
        case 'm': others = atol(optarg); break;
        case 'w':
            if (n == MOST || !read_needed(optarg, &needed[n++]))
                return 2;
            break;
        default: return 2;
        }
    char why[256];
    if (kernels_start(threads, why, sizeof why))
        return fprintf(stderr, "%s\n", why), 6;
    if (with_open)
        find_open_blas(threads);
    Stage st = { .threads = threads, .count = 1 };
    for (int i = 0; i < WEIGHTS && (n == 0 || *needed[0].name); i++)
        for (int d = 0; d < 3; d++)
            needed[n++] = (Needed){weight[i].name, d, batch * tokens, weight[i].in, weight[i].out, weight[i].times};
    const dnnl_version_t *v = dnnl_version();
    printf("oneDNN %d.%d.%d, %s, %d threads\n", v->major, v->minor, v->patch, F32 ? "f32" : "bf16", threads);
    double floor = sum_of(&st, needed, n, rounds), rate = others ? bandwidth(&st, rounds) : 0;
    printf("floor %.3f\n", floor);
    if (others)
        printf("others %ld MiB, at %.1f GiB/s\nsecond floor %.3f\n", others, rate / 1.024, floor + (double)others / rate);
    if (with_own)
        printf("portable %.3f library %.3f: %.3f of its rate, in one product %.2f at least\n", sums.own, sums.library,
               sums.library / sums.own, sums.least);
    return 0;
}
