/* SPDX-License-Identifier: Apache-2.0
 *
 * BatchNorm (S. Ioffe, C. Szegedy, 2015) over x[rows width], a mean and a variance for each of `width` channels, in float
 * whatever the compute type.  With s = 1/sqrt(var + eps), u = (x - mean) s, averages over the rows of the micro-batch:
 *
 *     y = u weight + bias          dx = s weight (dy - average(dy) - u average(dy u))       dweight = sum of dy u, dbias of dy
 *
 * Sums over rows: blocks of 256 in float, the blocks in double, both ascending; the variance takes a second pass.  Threads
 * split channels.
 *
 * Running statistics: each micro-batch adds its mean, and the average of its squares, to an accumulator; phase U makes mean and
 * variance of the step of them.  The average of squares is that of the variance and the square of the mean, so where the mean
 * is large against the deviation, nearly all of it goes away again.  A float has too few digits for that.  An accumulator has
 * two: the upper one has 12 digits, so that additions of groups and replicas, which know floats alone, lose nothing of it.
 */
#include "kernel.h"

enum { STRIP = 256, UNIT = 16, PIXELS = 256 };

/* Channels of a task: some for each thread, in whole units. */
static long strip_of(const Stage *st, long width)
{
    long each = ceil_div(ceil_div(width, st->threads > 0 ? st->threads : 1), UNIT) * UNIT;
    return least(each, STRIP);
}

/* Rows first .. end-1 of a block */
#define BLOCKS(rows, first, end) \
    for (long first = 0, end = least(PIXELS, rows); first < (rows); first = end, end = least(end + PIXELS, rows))

static inline void flush(double *sum, float *part, long n)
{
    for (long j = 0; j < n; j++) {
        sum[j] += (double)part[j];
        part[j] = 0;
    }
}

/* sum[j] = the sum over the rows of x in channel j of n */
static void sums(double *sum, const real *x, long rows, long width, long n)
{
    float part[STRIP] = {0};
    memset(sum, 0, (size_t)n * sizeof *sum);
    BLOCKS(rows, first, end) {
        for (long r = first; r < end; r++)
            for (long j = 0; j < n; j++)
                part[j] += get(x, r * width + j);
        flush(sum, part, n);
    }
}

/* the same of the squares of differences */
static void squares(double *sum, const real *x, const float *mean, long rows, long width, long n)
{
    float part[STRIP] = {0};
    memset(sum, 0, (size_t)n * sizeof *sum);
    BLOCKS(rows, first, end) {
        for (long r = first; r < end; r++)
            for (long j = 0; j < n; j++) {
                float by = get(x, r * width + j) - mean[j];
                part[j] += by * by;
            }
        flush(sum, part, n);
    }
}

/* the same of dy, and of dy u */
static void gradients(double *sum, double *product, const real *dy, const real *x, const float *mean, const float *s, long rows,
                      long width, long n)
{
    float part[STRIP] = {0}, with[STRIP] = {0};
    memset(sum, 0, (size_t)n * sizeof *sum);
    memset(product, 0, (size_t)n * sizeof *product);
    BLOCKS(rows, first, end) {
        for (long r = first; r < end; r++)
            for (long j = 0; j < n; j++) {
                float d = get(dy, r * width + j);
                part[j] += d;
                with[j] += d * ((get(x, r * width + j) - mean[j]) * s[j]);
            }
        flush(sum, part, n);
        flush(product, with, n);
    }
}

void batchstat_forward(Stage *st, float *mean, float *var, const real *x, const float *running_mean, const float *running_var,
                       const Values *vals, long rows, long width)
{
    if (vals->eval) {
        memcpy(mean, running_mean, (size_t)width * sizeof *mean);
        memcpy(var, running_var, (size_t)width * sizeof *var);
        return;
    }
    long strip = strip_of(st, width);
    EACH(rows * width >= 1 << 14)
    for (long from = 0; from < width; from += strip) {
        long n = least(strip, width - from);
        double sum[STRIP];
        sums(sum, x + from, rows, width, n);
        for (long j = 0; j < n; j++)
            mean[from + j] = (float)(sum[j] / (double)rows);
        squares(sum, x + from, mean + from, rows, width, n);
        for (long j = 0; j < n; j++)
            var[from + j] = (float)(sum[j] / (double)rows);
    }
}

/* y of some rows and n channels */
static void normalise(real *y, const real *x, const float *mean, const float *s, const float *weight, const float *bias,
                      long rows, long width, long n)
{
    for (long r = 0; r < rows; r++)
        for (long j = 0; j < n; j++)
            put(y, r * width + j, (get(x, r * width + j) - mean[j]) * s[j] * weight[j] + bias[j]);
}

void batchnorm_forward(Stage *st, real *y, const real *x, const float *mean, const float *var, const float *weight,
                       const float *bias, long rows, long width, float eps)
{
    EACH(rows * width >= 1 << 14)
    for (long first = 0; first < rows; first += PIXELS)
        for (long from = 0; from < width; from += STRIP) {
            long n = least(STRIP, width - from), at = first * width + from;
            float s[STRIP];
            for (long j = 0; j < n; j++)
                s[j] = frsqrt(var[from + j] + eps);
            normalise(y + at, x + at, mean + from, s, weight + from, bias + from, least(PIXELS, rows - first), width, n);
        }
}

/* dx of n channels; plain, with: the averages of dy and of dy u; scale: s weight */
static void spread(real *dx, const real *dy, const real *x, const float *mean, const float *s, const float *scale,
                   const float *plain, const float *with, long rows, long width, long n)
{
    for (long r = 0; r < rows; r++)
        for (long j = 0; j < n; j++)
            put(dx, r * width + j, scale[j] * (get(dy, r * width + j) - plain[j] -
                                               (get(x, r * width + j) - mean[j]) * s[j] * with[j]));
}

void batchnorm_backward(Stage *st, real *dx, float *dweight, float *dbias, const real *dy, const real *x, const float *mean,
                        const float *var, const float *weight, int acc, long rows, long width, float eps)
{
    long strip = strip_of(st, width);
    EACH(rows * width >= 1 << 14)
    for (long from = 0; from < width; from += strip) {
        long n = least(strip, width - from);
        double sum[STRIP], product[STRIP];
        float s[STRIP], scale[STRIP], plain[STRIP], with[STRIP];
        for (long j = 0; j < n; j++) {
            s[j] = frsqrt(var[from + j] + eps);
            scale[j] = s[j] * weight[from + j];
        }
        gradients(sum, product, dy + from, x + from, mean + from, s, rows, width, n);
        for (long j = 0; j < n; j++) {
            plain[j] = (float)sum[j];
            with[j] = (float)product[j];
        }
        give(dbias + from, plain, n, acc);
        give(dweight + from, with, n, acc);
        for (long j = 0; j < n; j++) {
            plain[j] = (float)(sum[j] / (double)rows);
            with[j] = (float)(product[j] / (double)rows);
        }
        if (dx)
            spread(dx + from, dy + from, x + from, mean + from, s, scale, plain, with, rows, width, n);
    }
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
