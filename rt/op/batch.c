/* SPDX-License-Identifier: Apache-2.0
 *
 * BatchNorm (S. Ioffe, C. Szegedy, 2015) over x[rows width], a mean and a variance for each of `width` channels, in float
 * whatever the compute type.  With s = 1/sqrt(var + eps), u = (x - mean) s, averages over the rows of the micro-batch:
 *
 *     y = u weight + bias          dx = s weight (dy - average(dy) - u average(dy u))       dweight = sum of dy u, dbias of dy
 *
 * Sums over rows: chains of 8 in float, all else in double, ascending.  The sum of dx is 0, and longer chains would leave
 * their rounding there, which is what a bias in front of the operator gets.  A block of 256 rows has the squares of differences
 * from its own mean, taken while it is in the cache; two sets of rows have the squares of both and those between their means
 * (T. Chan, G. Golub, R. LeVeque, 1979).  Threads split the blocks, so that each reads whole rows; of few rows they split
 * channels.
 * A region of threads inside one of a single thread would make new threads each time, so none is around another.
 *
 * With a Relu behind it, dy counts where y is above 0: where that is only the norm's, it is made again, and not read.  So it is
 * with a Clip or a Silu; the slope of a Silu is made once, and waits where dx will be.  With an addition between the norm and a
 * Relu, that dy is the gradient of the other operand too.  Each value is rounded to the compute type where a call of its own
 * would have stored it.
 *
 * Running statistics: each micro-batch adds its mean, and the average of its squares, to an accumulator; phase U makes mean and
 * variance of the step of them.  The average of squares is that of the variance and the square of the mean, so where the mean
 * is large against the deviation, nearly all of it goes away again.  A float has too few digits for that.  An accumulator has
 * two: the upper one has 12 digits, so that additions of groups and replicas, which know floats alone, lose nothing of it.
 */
#include "kernel.h"
#include "../curves.h"

enum { STRIP = 1024, UNIT = 16, CHAIN = 8, PIXELS = 256, PARTS = 1 << 13, PIECE = 1 << 16 };
enum { FAR = 1 << 21 };             /* numbers of images that no cache has */

/* What is added up over rows: x, and squares of differences; with dy slopes, and slopes times u.  Pointers are at the first
 * channel. */
typedef struct {
    const real *x, *dy, *y;     /* y: of a Relu behind; dy counts where it is above 0 */
    real *kept;                 /* where that dy goes */
    const float *mean, *s, *weight, *bias;      /* bias: of what is behind and takes the norm's result alone */
    long rows, width;
    int split;                  /* threads split blocks of rows, not channels */
    int behind;                 /* where there is a bias */
    float low, high;            /* of a Clip */
} Terms;

static int splits(const Stage *st, long rows) { return ceil_div(rows, PIXELS) >= 3 * st->threads; }

static long threads_of(const Stage *st) { return st->threads > 0 ? st->threads : 1; }

/* Rows of a piece of a second pass.  Each is read forwards, as the machine fetches ahead.  Where images are larger than caches
 * threads take pieces in turn, the last ones first, which the first pass left there. */
static long piece_of(const Stage *st, long rows, long width)
{
    long each = ceil_div(rows, threads_of(st));
    return rows * width < FAR ? each : least(each, ceil_div(PIECE, width));
}

/* Channels of a task: with threads that split channels some for each of them, in whole units; with threads that split blocks so
 * few that each has one. */
static long strip_of(const Stage *st, long rows, long width)
{
    long threads = threads_of(st), each = ceil_div(ceil_div(width, threads), UNIT) * UNIT;
    long few = PARTS / (2 * threads) / UNIT * UNIT;
    return least(splits(st, rows) ? few > UNIT ? few : UNIT : each, STRIP);
}

/* The norm's result, rounded. */
static inline float normed(float x, float mean, float s, float weight, float bias)
{
    real y;
    put(&y, 0, (x - mean) * s * weight + bias);
    return get(&y, 0);
}

/* What is behind, and where does its slope stand: in its result, or in that of the norm, which is made again? */
enum { NO_RELU, RELU_OF_Y, IN_DX, RELU_AGAIN, CLIP_AGAIN, SILU_AGAIN };      /* IN_DX: all of dy that counts stands there */

static int relu_of(const Terms *t) { return t->bias ? t->behind : t->y ? RELU_OF_Y : NO_RELU; }

/* What of d goes back to the norm, of which y is the result; rounded, as a call of its own stores it. */
static inline __attribute__((always_inline)) float through(int behind, float d, float y, float low, float high)
{
    real stored;
    float s = behind == SILU_AGAIN ? fsigmoid(y) : 0;
    put(&stored, 0, d * (s + y * s * (1.0f - s)));
    return behind == SILU_AGAIN ? get(&stored, 0) : (behind == CLIP_AGAIN ? y > low && y < high : y > 0) ? d : 0.0f;
}

/* ---- sums over rows ---------------------------------------------------------------------------------------------- */

/* Chains of n channels, at most STRIP of them.  Each row is read from end to end, so that the machine fetches ahead by itself;
 * with one line of each row in turn it does not. */
static inline void slope_chain(double *restrict sum, double *restrict product, const Terms *t, real *restrict kept, long first,
                               long rows, long n, int relu)
{
    const float *restrict mean = t->mean, *restrict s = t->s, *restrict w = t->weight, *restrict b = t->bias;
    const float low = t->low, high = t->high;
    float chain[STRIP], with[STRIP];
    memset(chain, 0, (size_t)n * sizeof *chain);
    memset(with, 0, (size_t)n * sizeof *with);
    for (long i = first * t->width; i < (first + rows) * t->width; i += t->width) {
        const real *restrict dy = t->dy + i, *restrict y = relu == RELU_OF_Y ? t->y + i : 0, *restrict x = t->x + i;
        for (long j = 0; j < n; j++) {
            float d = get(dy, j), v = get(x, j);
            if (relu == RELU_OF_Y)
                d = get(y, j) > 0 ? d : 0.0f;
            if (relu >= RELU_AGAIN)
                d = through(relu, d, normed(v, mean[j], s[j], w[j], b[j]), low, high);
            if (kept)
                put(kept, i + j, d);
            chain[j] += d;
            with[j] += d * ((v - mean[j]) * s[j]);
        }
    }
    for (long j = 0; j < n; j++) {
        sum[j] += (double)chain[j];
        product[j] += (double)with[j];
    }
}

/* Of a Silu behind: what of dy goes back to the norm.  A loop of its own, along rows, is one of vectors. */
static inline void silu_slopes(real *restrict kept, const Terms *t, long first, long rows, long n)
{
    const real *restrict dy = t->dy, *restrict x = t->x;
    const float *restrict mean = t->mean, *restrict s = t->s, *restrict w = t->weight, *restrict b = t->bias;
    for (long i = first * t->width; i < (first + rows) * t->width; i += t->width)
        for (long j = 0; j < n; j++)
            put(kept, i + j, through(SILU_AGAIN, get(dy, i + j), normed(get(x, i + j), mean[j], s[j], w[j], b[j]), 0, 0));
}

static void slope_rows(double *sum, double *product, const Terms *t, long first, long rows, long n)
{
    if (relu_of(t) == RELU_AGAIN)
        slope_chain(sum, product, t, 0, first, rows, n, RELU_AGAIN);
    else if (relu_of(t) == CLIP_AGAIN)
        slope_chain(sum, product, t, 0, first, rows, n, CLIP_AGAIN);
    else if (relu_of(t) == SILU_AGAIN && t->kept) {
        Terms all = *t;
        all.dy = t->kept;
        silu_slopes(t->kept, t, first, rows, n);
        slope_chain(sum, product, &all, 0, first, rows, n, NO_RELU);
    } else if (relu_of(t) == SILU_AGAIN)
        slope_chain(sum, product, t, 0, first, rows, n, SILU_AGAIN);
    else if (!t->y)
        slope_chain(sum, product, t, 0, first, rows, n, NO_RELU);
    else if (!t->kept)
        slope_chain(sum, product, t, 0, first, rows, n, RELU_OF_Y);
    else
        slope_chain(sum, product, t, t->kept, first, rows, n, RELU_OF_Y);
}

static inline void values(double *restrict sum, const Terms *t, long first, long rows, long n)
{
    const real *restrict x = t->x + first * t->width;
    for (long j = 0; j < n; j++) {
        float chain = 0;
        for (long k = 0; k < rows; k++)
            chain += get(x, k * t->width + j);
        sum[j] += (double)chain;
    }
}

/* Of such images the rows of the next block are fetched meanwhile. */
static inline void squares(double *restrict sum, const Terms *t, const float *restrict mean, long first, long rows, long n)
{
    const real *restrict x = t->x + first * t->width;
    int far = t->rows * t->width >= FAR && n <= PIXELS;
    for (long k = PIXELS; far && k < PIXELS + rows; k++)
        for (long j = 0; j < n; j += 64 / (long)sizeof *x)
            __builtin_prefetch(x + k * t->width + j, 0, 2);
    for (long j = 0; j < n; j++) {
        float chain = 0;
        for (long k = 0; k < rows; k++) {
            float by = get(x, k * t->width + j) - mean[j];
            chain += by * by;
        }
        sum[j] += (double)chain;
    }
}

/* Block b of those from `from` on, in n channels. */
static void block(double *part, const Terms *t, long from, long b, long n)
{
    long first = (from + b) * PIXELS, end = least(first + PIXELS, t->rows), whole = end - (end - first) % CHAIN;
    double *sum = part + 2 * b * n, *product = sum + n;
    float mean[STRIP];
    memset(sum, 0, (size_t)(2 * n) * sizeof *sum);
    if (t->dy) {
        for (long i = first; i < end; i += CHAIN)
            slope_rows(sum, product, t, i, least(CHAIN, end - i), n);
        return;
    }
    for (long i = first; i < whole; i += CHAIN)
        values(sum, t, i, CHAIN, n);
    values(sum, t, whole, end - whole, n);
    for (long j = 0; j < n; j++)
        mean[j] = (float)(sum[j] / (double)(end - first));
    for (long i = first; i < whole; i += CHAIN)
        squares(product, t, mean, i, CHAIN, n);
    squares(product, t, mean, whole, end - whole, n);
}

/* A block of `some` rows joins those before it. */
static void join(double *restrict sum, double *restrict product, const double *restrict part, const double *restrict with,
                 const Terms *t, long before, long some, long n)
{
    double rows = (double)some, both = (double)before * rows / (double)(before + some);
    if (t->dy)
        for (long j = 0; j < n; j++)
            product[j] += with[j];
    else
        for (long j = 0; j < n; j++) {
            double mean = part[j] / rows, off = (double)(float)mean - mean;
            double apart = before ? mean - sum[j] / (double)before : 0;
            product[j] += with[j] - rows * off * off + both * apart * apart;
        }
    for (long j = 0; j < n; j++)
        sum[j] += part[j];
}

static void sums(Stage *st, double *sum, double *product, const Terms *t, long n)
{
    double part[PARTS];                 /* of a block, both sums behind each other */
    long blocks = ceil_div(t->rows, PIXELS), group = PARTS / (2 * n), threads = threads_of(st);
    if (group > threads)
        group -= group % threads;
    memset(sum, 0, (size_t)n * sizeof *sum);
    memset(product, 0, (size_t)n * sizeof *product);
    for (long from = 0; from < blocks; from += group) {
        long some = least(group, blocks - from);
        if (t->split)
            EACH(1)
            for (long k = 0; k < threads; k++)      /* the last block may be short: the last one may have more */
                for (long b = some * k / threads; b < some * (k + 1) / threads; b++)
                    block(part, t, from, b, n);
        else
            for (long b = 0; b < some; b++)
                block(part, t, from, b, n);
        for (long b = 0; b < some; b++) {
            long before = (from + b) * PIXELS;
            join(sum, product, part + 2 * b * n, part + (2 * b + 1) * n, t, before, least(PIXELS, t->rows - before), n);
        }
    }
}

/* to[j]: the average over the rows */
static void average(float *to, const double *sum, long rows, long n)
{
    for (long j = 0; j < n; j++)
        to[j] = (float)(sum[j] / (double)rows);
}

/* Of n channels. */
static void statistics(Stage *st, float *mean, float *var, const Terms *all, long from, long n)
{
    double sum[STRIP], square[STRIP];
    Terms t = *all;
    t.x += from;
    sums(st, sum, square, &t, n);
    for (long j = 0; j < n; j++)
        square[j] = square[j] < 0 ? 0 : square[j];
    average(mean + from, sum, t.rows, n);
    average(var + from, square, t.rows, n);
}

void batchstat_forward(Stage *st, float *mean, float *var, const real *x, const float *running_mean, const float *running_var,
                       const Values *vals, long rows, long width)
{
    if (vals->eval) {
        memcpy(mean, running_mean, (size_t)width * sizeof *mean);
        memcpy(var, running_var, (size_t)width * sizeof *var);
        return;
    }
    Terms t = {.x = x, .rows = rows, .width = width, .split = splits(st, rows)};
    long strip = strip_of(st, rows, width);
    if (t.split)
        for (long from = 0; from < width; from += strip)
            statistics(st, mean, var, &t, from, least(strip, width - from));
    else
        EACH(rows * width >= 1 << 14)
        for (long from = 0; from < width; from += strip)
            statistics(st, mean, var, &t, from, least(strip, width - from));
}

/* ---- normalising ------------------------------------------------------------------------------------------------- */

/* y of some rows and n channels */
static inline void normalise(real *restrict y, const real *x, const float *mean, const float *s, const float *weight,
                             const float *bias, const real *onto, long rows, long width, long n, int behind, float low,
                             float high)
{
    for (long r = 0; r < rows; r++)
        for (long j = 0; j < n; j++) {
            float v = (get(x, r * width + j) - mean[j]) * s[j] * weight[j] + bias[j];
            real stored;
            put(&stored, 0, onto ? added(onto, r * width + j, v) : v);
            v = get(&stored, 0);
            if (behind == CLIP_AGAIN)
                put(y, r * width + j, v < low ? low : v > high ? high : v);
            else if (behind == SILU_AGAIN)
                put(y, r * width + j, v * fsigmoid(v));
            else
                y[r * width + j] = behind && v < 0 ? (real)0 : stored;
        }
}

static void normalise_some(real *y, const real *x, const float *mean, const float *var, const float *weight, const float *bias,
                           const real *onto, long rows, long width, long n, float eps, int behind, float low, float high)
{
    float s[STRIP];
    for (long j = 0; j < n; j++)
        s[j] = frsqrt(var[j] + eps);
    if (behind == CLIP_AGAIN)
        normalise(y, x, mean, s, weight, bias, 0, rows, width, n, CLIP_AGAIN, low, high);
    else if (behind == SILU_AGAIN)
        normalise(y, x, mean, s, weight, bias, 0, rows, width, n, SILU_AGAIN, 0, 0);
    else if (behind && onto)
        normalise(y, x, mean, s, weight, bias, onto, rows, width, n, RELU_OF_Y, 0, 0);
    else if (behind)
        normalise(y, x, mean, s, weight, bias, 0, rows, width, n, RELU_OF_Y, 0, 0);
    else if (onto)
        normalise(y, x, mean, s, weight, bias, onto, rows, width, n, NO_RELU, 0, 0);
    else
        normalise(y, x, mean, s, weight, bias, 0, rows, width, n, NO_RELU, 0, 0);
}

static void forward(Stage *st, real *y, const real *x, const float *mean, const float *var, const float *weight,
                    const float *bias, const real *onto, long rows, long width, float eps, int behind, float low, float high)
{
    long each = piece_of(st, rows, width), threads = threads_of(st), last = (ceil_div(rows, each) - 1) * each;
    EACH(rows * width >= 1 << 14)
    for (long part = 0; part < threads; part++)
        for (long first = last - part * each; first >= 0; first -= threads * each)
            for (long from = 0; from < width; from += STRIP) {
                long n = least(STRIP, width - from), at = first * width + from;
                normalise_some(y + at, x + at, mean + from, var + from, weight + from, bias + from, onto ? onto + at : 0,
                               least(each, rows - first), width, n, eps, behind, low, high);
            }
}

void batchnorm_forward(Stage *st, real *y, const real *x, const float *mean, const float *var, const float *weight,
                       const float *bias, const real *onto, long rows, long width, float eps)
{
    forward(st, y, x, mean, var, weight, bias, onto, rows, width, eps, NO_RELU, 0, 0);
}

void batchnorm_relu_forward(Stage *st, real *y, const real *x, const float *mean, const float *var, const float *weight,
                            const float *bias, long rows, long width, float eps)
{
    forward(st, y, x, mean, var, weight, bias, 0, rows, width, eps, RELU_AGAIN, 0, 0);
}

void batchnorm_clip_forward(Stage *st, real *y, const real *x, const float *mean, const float *var, const float *weight,
                            const float *bias, long rows, long width, float eps, float low, float high)
{
    forward(st, y, x, mean, var, weight, bias, 0, rows, width, eps, CLIP_AGAIN, low, high);
}

void batchnorm_silu_forward(Stage *st, real *y, const real *x, const float *mean, const float *var, const float *weight,
                            const float *bias, long rows, long width, float eps)
{
    forward(st, y, x, mean, var, weight, bias, 0, rows, width, eps, SILU_AGAIN, 0, 0);
}

void batchnorm_add_relu_forward(Stage *st, real *y, const real *skip, const real *x, const float *mean, const float *var,
                                const float *weight, const float *bias, long rows, long width, float eps)
{
    forward(st, y, x, mean, var, weight, bias, skip, rows, width, eps, RELU_OF_Y, 0, 0);
}

/* ---- gradients --------------------------------------------------------------------------------------------------- */

/* dx of n channels; plain, with: the averages of dy and of dy u; scale: s weight.  A load behind a pointer that may be 0 is not
 * written here: vectors would make it a masked one, and that of address 0 is slow. */
static inline void spread(real *dx, const Terms *t, const float *restrict scale, const float *restrict plain,
                          const float *restrict with, const real *onto, long first, long end, long n, int relu)
{
    const real *restrict dy = t->dy, *restrict y = t->y, *restrict x = t->x;
    const float *restrict mean = t->mean, *restrict s = t->s, *restrict w = t->weight, *restrict b = t->bias;
    const float low = t->low, high = t->high;
    for (long i = first * t->width; i < end * t->width; i += t->width)
        for (long j = 0; j < n; j++) {
            float d = relu == IN_DX ? get(dx, i + j) : get(dy, i + j), v = get(x, i + j);
            if (relu == RELU_OF_Y)
                d = get(y, i + j) > 0 ? d : 0.0f;
            if (relu >= RELU_AGAIN)
                d = through(relu, d, normed(v, mean[j], s[j], w[j], b[j]), low, high);
            put(dx, i + j, added(onto, i + j, scale[j] * (d - plain[j] - (v - mean[j]) * s[j] * with[j])));
        }
}

/* A loop of its own for each way. */
#define SPREAD(relu) (onto ? spread(dx, t, scale, plain, with, onto, first, end, n, relu) \
                           : spread(dx, t, scale, plain, with, 0, first, end, n, relu))

static void spread_some(real *dx, const Terms *t, const float *scale, const float *plain, const float *with, const real *onto,
                        long first, long end, long n)
{
    switch (relu_of(t)) {
    case RELU_AGAIN: SPREAD(RELU_AGAIN); break;
    case CLIP_AGAIN: SPREAD(CLIP_AGAIN); break;
    case IN_DX: SPREAD(IN_DX); break;
    case RELU_OF_Y: SPREAD(RELU_OF_Y); break;
    default: SPREAD(NO_RELU);
    }
}

static void spread_all(Stage *st, real *dx, const Terms *t, const float *scale, const float *plain, const float *with,
                       const real *onto, long n)
{
    long rows = t->rows, each = piece_of(st, rows, t->width), last = (ceil_div(rows, each) - 1) * each;
    long threads = threads_of(st);
    if (t->split)
        EACH(1)
        for (long part = 0; part < threads; part++)
            for (long first = last - part * each; first >= 0; first -= threads * each)
                spread_some(dx, t, scale, plain, with, onto, first, least(first + each, rows), n);
    else
        spread_some(dx, t, scale, plain, with, onto, 0, rows, n);
}

/* The operands of a gradient; pointers are at channel 0. */
typedef struct {
    Terms t;
    real *dx;
    float *dweight, *dbias;
    const float *var;
    const real *onto;
    float eps;
    int acc;
} Gradient;

/* Of n channels. */
static void backward(Stage *st, const Gradient *g, long from, long n)
{
    double sum[STRIP], product[STRIP];
    float s[STRIP], scale[STRIP], plain[STRIP], with[STRIP];
    Terms t = g->t;
    t.x += from, t.dy += from, t.mean += from, t.weight += from, t.s = s;
    t.bias = t.bias ? t.bias + from : 0;
    t.y = t.y ? t.y + from : 0;
    t.kept = t.kept ? t.kept + from : t.behind == SILU_AGAIN && g->dx ? g->dx + from : 0;
    for (long j = 0; j < n; j++) {
        s[j] = frsqrt(g->var[from + j] + g->eps);
        scale[j] = s[j] * t.weight[j];
    }
    sums(st, sum, product, &t, n);
    for (long j = 0; j < n; j++) {
        plain[j] = (float)sum[j];
        with[j] = (float)product[j];
    }
    if (g->dbias)
        give(g->dbias + from, plain, n, g->acc);
    if (g->dweight)
        give(g->dweight + from, with, n, g->acc);
    average(plain, sum, t.rows, n);
    average(with, product, t.rows, n);
    if (t.behind == SILU_AGAIN)
        t.behind = IN_DX;
    else if (t.kept) {
        t.dy = t.kept;
        t.y = 0;
    }
    if (g->dx)
        spread_all(st, g->dx + from, &t, scale, plain, with, g->onto ? g->onto + from : 0, n);
}

static void backward_all(Stage *st, const Gradient *g)
{
    long rows = g->t.rows, width = g->t.width, strip = strip_of(st, rows, width);
    if (g->t.split)
        for (long from = 0; from < width; from += strip)
            backward(st, g, from, least(strip, width - from));
    else
        EACH(rows * width >= 1 << 14)
        for (long from = 0; from < width; from += strip)
            backward(st, g, from, least(strip, width - from));
}

void batchnorm_relu_backward(Stage *st, real *dx, float *dweight, float *dbias, const real *dy, const real *x,
                             const float *mean, const float *var, const float *weight, const float *bias, const real *onto,
                             int acc, long rows, long width, float eps)
{
    Terms t = {x, dy, 0, 0, mean, 0, weight, bias, rows, width, splits(st, rows), RELU_AGAIN, 0, 0};
    backward_all(st, &(Gradient){t, dx, dweight, dbias, var, onto, eps, acc});
}

void batchnorm_clip_backward(Stage *st, real *dx, float *dweight, float *dbias, const real *dy, const real *x,
                             const float *mean, const float *var, const float *weight, const float *bias, const real *onto,
                             int acc, long rows, long width, float eps, float low, float high)
{
    Terms t = {x, dy, 0, 0, mean, 0, weight, bias, rows, width, splits(st, rows), CLIP_AGAIN, low, high};
    backward_all(st, &(Gradient){t, dx, dweight, dbias, var, onto, eps, acc});
}

void batchnorm_silu_backward(Stage *st, real *dx, float *dweight, float *dbias, const real *dy, const real *x,
                             const float *mean, const float *var, const float *weight, const float *bias, const real *onto,
                             int acc, long rows, long width, float eps)
{
    Terms t = {x, dy, 0, 0, mean, 0, weight, bias, rows, width, splits(st, rows), SILU_AGAIN, 0, 0};
    backward_all(st, &(Gradient){t, dx, dweight, dbias, var, onto, eps, acc});
}

void batchnorm_add_relu_backward(Stage *st, real *dx, real *dskip, float *dweight, float *dbias, const real *dy, const real *y,
                                 const real *x, const float *mean, const float *var, const float *weight, const real *onto,
                                 int acc, long rows, long width, float eps)
{
    Terms t = {x, dy, y, dskip, mean, 0, weight, 0, rows, width, splits(st, rows), 0, 0, 0};
    backward_all(st, &(Gradient){t, dx, dweight, dbias, var, onto, eps, acc});
}

void batchnorm_backward(Stage *st, real *dx, float *dweight, float *dbias, const real *dy, const real *x, const float *mean,
                        const float *var, const float *weight, const real *onto, int acc, long rows, long width, float eps)
{
    batchnorm_add_relu_backward(st, dx, 0, dweight, dbias, dy, 0, x, mean, var, weight, onto, acc, rows, width, eps);
}

/* ---- running statistics ---------------------------------------------------------------------------------------------- */

/* Adds v to number i of an accumulator of n. */
static void add_pair(float *to, long i, long n, int acc, double v)
{
    uint32_t word;
    v += acc ? (double)to[i] + (double)to[n + i] : 0;
    float upper = (float)v;
    memcpy(&word, &upper, sizeof word);
    word &= 0xfffff000;                 /* 12 digits */
    memcpy(&upper, &word, sizeof word);
    to[i] = upper;
    to[n + i] = (float)(v - (double)upper);
}

static double pair(const float *from, long i, long n)
{
    return (double)from[i] + (double)from[n + i];
}

/* each: micro-batch mb has the weight that it has left when all of the step are taken in, one after the other. */
void batchstat_track(Stage *st, float *dmean, float *dvar, float *dcount, const float *mean, const float *var,
                     const Values *vals, int mb, int acc, long rows, long width, float momentum, long each)
{
    double weight = each ? (double)momentum : 1, unbiased = (double)rows / (double)(rows - 1);
    (void)st;
    for (int later = mb + 1; each && later < vals->micro; later++)
        weight *= 1 - (double)momentum;
    for (long i = 0; i < width; i++) {
        double m = (double)mean[i], v = (double)var[i];
        add_pair(dmean, i, width, acc, weight * m);
        add_pair(dvar, i, width, acc, weight * (each ? v * unbiased : v + m * m));
    }
    add_pair(dcount, 0, 1, acc, 1);
}

void batch_track(Stage *st, float *mean, float *var, float *count, const float *sum_mean, const float *sum_var,
                 const float *sum_count, long rows, long n, float momentum, long each)
{
    double micro = pair(sum_count, 0, 1), all = (double)rows * micro, left = 1;
    (void)st;
    for (long k = 0; each && (double)k < micro; k++)
        left *= 1 - (double)momentum;
    for (long i = 0; i < n; i++) {
        double m = pair(sum_mean, i, n), v = pair(sum_var, i, n);
        if (!each) {
            left = 1 - (double)momentum;
            m /= micro;
            v = (v / micro - m * m) * (all / (all - 1)) * (double)momentum;
            m *= (double)momentum;
        }
        mean[i] = (float)(left * (double)mean[i] + m);
        var[i] = (float)(left * (double)var[i] + (v > 0 ? v : 0));
    }
    *count += each ? (float)micro : 1;
}
