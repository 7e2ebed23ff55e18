/* SPDX-License-Identifier: Apache-2.0
 *
 * unit_cuda_conv.c: rt/op/cuda/conv.c and conv_graph.c over the double of cuDNN, against the definition in double.
 *
 * Results, bias, gradients written and added; where scratch lies; and calls that go to our own kernels: without a handle, in
 * f32, and where no plan fits the workspace.  An element may be wrong by the rounding of its result to bf16, and of its sums.
 * Build once with and once without -DREAL_BF16: f32 links neither conv_graph.c nor cuDNN.  The suite is tests/cuda_host.sh.
 * With -DON_GPU it runs with the real library: tests/gpu/visit.sh.
 */
#include "tests/gpu/shared.h"
#include "rt/op/cuda/conv_own.h"
#include "rt/op/cuda/start.h"
#include "rt/real.h"
#include <math.h>
#include <unistd.h>

enum { MOST = 1 << 14, WORKSPACE = GPU ? 1 << 22 : 1 << 13, GUARD = 256, F32 = sizeof(real) == sizeof(float) };
static int passed, failed;

/* ---- our own kernels: how often each was called; those behind cuDNN do their work ------------------------------------- */
static int own, taken, biased;

void conv_own_forward(Stage *s, real *y, const real *x, const real *weight, const real *bias, const Conv *v)
{
    (void)s, (void)y, (void)x, (void)weight, (void)bias, (void)v, own++;
}
void conv_own_backward_x(Stage *s, real *dx, const real *dy, const real *weight, const Conv *v)
{
    (void)s, (void)dx, (void)dy, (void)weight, (void)v, own++;
}
void conv_own_backward_w(Stage *s, float *dweight, const real *dy, const real *x, int acc, const Conv *v)
{
    (void)s, (void)dweight, (void)dy, (void)x, (void)acc, (void)v, own++;
}
void conv_own_backward_bias(Stage *s, float *dbias, const real *dy, int acc, const Conv *v)
{
    (void)s, (void)dbias, (void)dy, (void)acc, (void)v, biased++;
}

void conv_own_bias(Stage *s, real *y, const real *bias, const Conv *v)
{
    (void)s, settle();
    for (long i = 0; i < v->batch * v->yheight * v->ywidth * v->out; i++)
        put(y, i, get(y, i) + get(bias, i % v->out));
}

static long weights(const Conv *v) { return v->out * (v->in / v->groups) * v->kheight * v->kwidth; }

void conv_own_take(Stage *s, float *dweight, const real *part, int acc, const Conv *v)
{
    (void)s, settle(), taken++;
    for (long i = 0; i < weights(v); i++)
        dweight[i] = (acc ? dweight[i] : 0) + get(part, i);
}

/* ---- the definition ---------------------------------------------------------------------------------------------- */
static real *x, *y, *dx, *dy, *w, *bias;
static float *dw, *dbias;
static unsigned char *workspace;

static void check(bool ok, const char *what, double by)
{
    ok ? passed++ : failed++;
    if (!ok)
        fprintf(stderr, "unit_cuda_conv: %s: %g\n", what, by);
}

static void fill(real *to, long n)
{
    static uint64_t state = 7;
    for (long i = 0; i < n; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        put(to, i, (float)((double)(state >> 40) * 0x1p-23 - 1));
    }
}

typedef struct { double x, size; } Sum;
static Sum sum_y[MOST], sum_x[MOST], sum_w[MOST];

static void add(Sum *s, double by) { s->x += by, s->size += fabs(by); }

/* All three results, by one walk over the products. */
static void define(const Conv *v)
{
    long of = v->in / v->groups, share = v->out / v->groups;
    memset(sum_y, 0, sizeof sum_y), memset(sum_x, 0, sizeof sum_x), memset(sum_w, 0, sizeof sum_w);
    for (long i = 0; i < v->batch * v->yheight * v->ywidth * v->out; i++)
        for (long k = 0; k < of * v->kheight * v->kwidth; k++) {
            long o = i % v->out, pixel = i / v->out, column = pixel % v->ywidth, row = pixel / v->ywidth % v->yheight;
            long tap = k % (v->kheight * v->kwidth), channel = o / share * of + k / (v->kheight * v->kwidth);
            long h = row * v->stride - v->top + tap / v->kwidth * v->dilate;
            long c = column * v->stride - v->left + tap % v->kwidth * v->dilate;
            if (h < 0 || h >= v->height || c < 0 || c >= v->width)
                continue;
            long at = ((pixel / v->ywidth / v->yheight * v->height + h) * v->width + c) * v->in + channel;
            long to = o * of * v->kheight * v->kwidth + k;
            add(&sum_y[i], (double)get(x, at) * (double)get(w, to));
            add(&sum_x[at], (double)get(dy, i) * (double)get(w, to));
            add(&sum_w[to], (double)get(dy, i) * (double)get(x, at));
        }
}

/* How far off, in roundings to bf16 of the value and, of a sum in f32, of its magnitudes. */
static double off(double got, Sum want, double times)
{
    double by = fabs(got - times * want.x) / (times * (0x1p-8 * fabs(want.x) + 0x1p-18 * want.size) + 1e-30);
    return by != by ? INFINITY : by;
}

static double far(const real *got, const Sum *want, long n)
{
    double most = 0;
    for (long i = 0; i < n; i++)
        most = fmax(most, off((double)get(got, i), want[i], 1));
    return most;
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */
#define SIZES(v) (v)->batch, (v)->height, (v)->width, (v)->in, (v)->yheight, (v)->ywidth, (v)->out, (v)->kheight, (v)->kwidth, \
    (v)->stride, (v)->top, (v)->left, (v)->dilate, (v)->groups

static void prepare(const Conv *v)
{
    st->handle[0] = st->handle[1] = st->handle[2] = NULL;
#ifdef REAL_BF16
    open_conv_forward(st, 0, SIZES(v));
    open_conv_backward_x(st, 1, SIZES(v));
    open_conv_backward_w(st, 2, SIZES(v));
#else
    (void)v;
#endif
}

static void run_all(const Conv *v, const real *b, int acc)
{
    conv_forward(st, y, x, w, b, 0, SIZES(v));
    conv_backward_x(st, dx, dy, w, 1, SIZES(v));
    conv_backward_w(st, dw, b ? dbias : NULL, dy, x, 2, acc, SIZES(v));
    settle();
}

static void lay_out(const Conv *v)
{
    settle();
    if (v->batch * v->height * v->width * v->in > MOST || v->batch * v->yheight * v->ywidth * v->out > MOST ||
        weights(v) > MOST)
        abort();
    fill(x, v->batch * v->height * v->width * v->in), fill(dy, v->batch * v->yheight * v->ywidth * v->out);
    fill(w, weights(v)), fill(bias, v->out);
}

static void planned(const Conv *v)
{
    long pixels = v->batch * v->yheight * v->ywidth;
    int before = own + biased;
    lay_out(v);
    define(v);
    prepare(v);
    memset(workspace + WORKSPACE, 0x5a, GUARD);
    run_all(v, NULL, 0);
    check(own + biased == before, "our own kernels instead of cuDNN's", own);
    double by = far(y, sum_y, pixels * v->out);
    check(by <= 1, "y", by);
    by = far(dx, sum_x, v->batch * v->height * v->width * v->in);
    check(by <= 1, "dx", by);
    by = 0;
    for (long i = 0; i < weights(v); i++)
        by = fmax(by, off((double)dw[i], sum_w[i], 1));
    check(by <= 1, "dweight", by);
    run_all(v, bias, 1);
    for (long i = 0; i < weights(v); i++)
        by = fmax(by, off((double)dw[i], sum_w[i], 2));
    check(by <= 1 && taken > 0 && biased > 0, "dweight, added", by);
    for (long i = 0; i < pixels * v->out; i++)
        add(&sum_y[i], (double)get(bias, i % v->out));
    by = 0;
    for (long i = 0; i < pixels * v->out; i++)      /* rounded twice */
        by = fmax(by, fabs((double)get(y, i) - sum_y[i].x) / (0x1p-8 * (fabs(sum_y[i].x) + 1 + sum_y[i].size)));
    check(by <= 1, "y with a bias", by);
    bool whole = true;
    for (int i = 0; i < GUARD; i++)
        whole &= workspace[WORKSPACE + i] == 0x5a;
    check(whole, "behind the workspace", 0);
}

/* A call that nothing has opened, or that has no plan, is our own kernels'. */
static void left_to_own(const Conv *v, const char *what)
{
    int before = own, works = queued;
    lay_out(v);
    run_all(v, bias, 0);
    check(own == before + 3 && queued == works, what, own - before);
    conv_backward_w(st, NULL, dbias, dy, x, 2, 0, SIZES(v));
    check(own == before + 3, "a gradient that nobody wants", own);
}

/* How many of the three calls are named when they are opened, as their engine has no tensor cores. */
static int named(const Conv *v)
{
    char said[4096];
    int ends[2], kept = dup(2), n = 0;
    fflush(stderr);
    if (kept < 0 || pipe(ends) || dup2(ends[1], 2) < 0)
        abort();
    prepare(v);
    fflush(stderr);
    if (write(ends[1], "", 1) != 1 || dup2(kept, 2) < 0)
        abort();
    said[read(ends[0], said, sizeof said - 1)] = 0;
    for (const char *at = said; (at = strstr(at, "no plan with tensor cores")) != NULL; at++)
        n++;
    close(ends[0]), close(ends[1]), close(kept);
    return n;
}

/* 16 x 56 x 56 x 64 x 64 x 9 = 1.8e9 products are work for tensor cores; in two groups, or for one image, they are not. */
static void engines(void)
{
    static const Conv heavy = { 16, 56, 56, 64, 56, 56, 64, 3, 3, 1, 1, 1, 1, 1 };
    Conv groups = heavy, light = heavy;
    groups.groups = 2, light.batch = 1;
    device.workspace_bytes = 1 << 25;
    check(named(&heavy) == 3, "engines without tensor cores that are named", named(&heavy));
    check(named(&groups) == 0, "the same of a call in groups", named(&groups));
    check(named(&light) == 0, "the same of little work", named(&light));
    setenv("DOUBLE_CORES", "1", 1);
    check(named(&heavy) == 0, "engines with tensor cores that are named", named(&heavy));
}

int main(void)
{
    static const Conv cases[] = {
        { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1 }, { 2, 7, 5, 8, 7, 5, 16, 3, 3, 1, 1, 1, 1, 1 },
        { 1, 9, 8, 5, 5, 4, 7, 3, 2, 2, 1, 0, 1, 1 }, { 2, 8, 11, 6, 3, 4, 9, 3, 3, 3, 1, 2, 1, 3 },
        { 1, 12, 10, 4, 8, 6, 8, 3, 3, 1, 0, 0, 2, 4 }, { 2, 6, 6, 16, 3, 3, 8, 1, 1, 2, 0, 0, 1, 1 },
        { 1, 3, 30, 2, 2, 14, 3, 2, 5, 2, 0, 1, 1, 1 }, { 1, 7, 1, 3, 7, 1, 4, 3, 1, 1, 1, 0, 1, 1 },
    };
    real **all[] = { &x, &y, &dx, &dy, &w, &bias };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        *all[i] = shared(MOST * sizeof(real));
    dw = shared(MOST * sizeof *dw), dbias = shared(MOST * sizeof *dbias);
    device.workspace = workspace = (unsigned char *)shared(WORKSPACE + GUARD + 192) + 192;  /* at a multiple of 256, as it is */
    device.workspace_bytes = WORKSPACE;
    for (size_t i = 0; i < sizeof cases / sizeof *cases && !F32; i++)
        planned(&cases[i]);
    prepare(&cases[1]);
    st->handle[0] = st->handle[1] = st->handle[2] = F32 ? &device : NULL;   /* in f32 nobody asks for it */
    left_to_own(&cases[1], "calls that nothing has opened");
    if (!F32 && !GPU)
        engines();
    fflush(stderr);
    device.workspace_bytes = 64;
    if (!F32 && !GPU && freopen("/dev/null", "w", stderr)) {
        prepare(&cases[1]);
        left_to_own(&cases[1], "calls without a plan");
    }
    printf("unit_cuda_conv: %d passed, %d failed\n", passed, failed);
    return failed > 0;
}
