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

enum { CHANNELS = 16, PIXELS = 256 };

/* sum[j] = the sum over rows of `term` in row r, channel c = from + j, of n channels */
#define EACH_CHANNEL(sum, n, from, r, c, term) \
    do { \
        for (long j_ = 0; j_ < (n); j_++) \
            (sum)[j_] = 0; \
        for (long first_ = 0; first_ < rows; first_ += PIXELS) { \
            float part_[CHANNELS] = {0}; \
            for (long r = first_, end_ = least(first_ + PIXELS, rows); r < end_; r++) \
                for (long j_ = 0; j_ < (n); j_++) { \
                    long c = (from) + j_; \
                    part_[j_] += (term); \
                } \
            for (long j_ = 0; j_ < (n); j_++) \
                (sum)[j_] += (double)part_[j_]; \
        } \
    } while (0)

void batchstat_forward(Stage *st, float *mean, float *var, const real *x, const float *running_mean, const float *running_var,
                       const Values *vals, long rows, long width)
{
    if (vals->eval) {
        memcpy(mean, running_mean, (size_t)width * sizeof *mean);
        memcpy(var, running_var, (size_t)width * sizeof *var);
        return;
    }
    EACH(rows * width >= 1 << 14)
    for (long from = 0; from < width; from += CHANNELS) {
        long n = least(CHANNELS, width - from);
        double sum[CHANNELS];
        EACH_CHANNEL(sum, n, from, r, c, get(x, r * width + c));
        for (long j = 0; j < n; j++)
            mean[from + j] = (float)(sum[j] / (double)rows);
        EACH_CHANNEL(sum, n, from, r, c, (get(x, r * width + c) - mean[c]) * (get(x, r * width + c) - mean[c]));
        for (long j = 0; j < n; j++)
            var[from + j] = (float)(sum[j] / (double)rows);
    }
}

void batchnorm_forward(Stage *st, real *y, const real *x, const float *mean, const float *var, const float *weight,
                       const float *bias, long rows, long width, float eps)
{
    EACH(rows * width >= 1 << 14)
    for (long first = 0; first < rows; first += PIXELS)
        for (long from = 0; from < width; from += CHANNELS) {
            long n = least(CHANNELS, width - from);
            float s[CHANNELS];
            for (long j = 0; j < n; j++)
                s[j] = frsqrt(var[from + j] + eps);
            for (long r = first, end = least(first + PIXELS, rows); r < end; r++)
                for (long j = 0, c = from; j < n; j++, c++)
                    put(y, r * width + c, (get(x, r * width + c) - mean[c]) * s[j] * weight[c] + bias[c]);
        }
}

void batchnorm_backward(Stage *st, real *dx, float *dweight, float *dbias, const real *dy, const real *x, const float *mean,
                        const float *var, const float *weight, int acc, long rows, long width, float eps)
{
    EACH(rows * width >= 1 << 14)
    for (long from = 0; from < width; from += CHANNELS) {
        long n = least(CHANNELS, width - from);
        double sum[CHANNELS], product[CHANNELS];
        float s[CHANNELS], plain[CHANNELS], with[CHANNELS];
        for (long j = 0; j < n; j++)
            s[j] = frsqrt(var[from + j] + eps);
        EACH_CHANNEL(sum, n, from, r, c, get(dy, r * width + c));
        EACH_CHANNEL(product, n, from, r, c, get(dy, r * width + c) * ((get(x, r * width + c) - mean[c]) * s[c - from]));
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
        for (long r = 0; dx && r < rows; r++)
            for (long j = 0, c = from; j < n; j++, c++)
                put(dx, r * width + c, s[j] * weight[c] * (get(dy, r * width + c) - plain[j] -
                                                           (get(x, r * width + c) - mean[c]) * s[j] * with[j]));
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
