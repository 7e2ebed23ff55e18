/* SPDX-License-Identifier: Apache-2.0
 *
 * GroupNorm (Y. Wu, K. He, 2018) over x[batch pixels groups width], a mean and a variance for each sample and group, in float
 * whatever the compute type.  With s = 1/sqrt(var + eps), u = (x - mean) s, g = dy weight, averages over pixels and width:
 *
 *     y = u weight + bias          dx = s (g - average(g) - u average(g u))         dweight = sum of dy u, dbias of dy
 *
 * A sum over a group: each channel by blocks of 256 pixels in float, the blocks in double, then channels, all ascending; the
 * variance takes a second pass.  The gradient of a weight: samples ascending, each as a channel above.  Threads split groups,
 * or channels.  Narrow groups are taken several at a time, so that adjacent channels are read together.
 */
#include "kernel.h"

enum { CHANNELS = 16, PIXELS = 256 };

typedef struct { long pixels, groups, width; } Groups;
typedef struct { long sample, first, n; } Some;         /* adjacent groups of a sample */

static inline long groups_at_once(const Groups *v) { return v->width < CHANNELS ? CHANNELS / v->width : 1; }
static inline long tasks_of(const Groups *v, long batch) { return batch * ceil_div(v->groups, groups_at_once(v)); }

static inline Some some_of(const Groups *v, long task)
{
    long at_once = groups_at_once(v), per = ceil_div(v->groups, at_once), first = task % per * at_once;
    return (Some){task / per, first, least(at_once, v->groups - first)};
}

/* chain[j] += the sum over the pixels of a sample of `term` in element i, channel c = from + j, of n channels */
#define EACH_PIXEL(chain, v, sample, from, n, i, c, term) \
    for (long first_ = 0; first_ < (v)->pixels; first_ += PIXELS) { \
        float part_[CHANNELS] = {0}; \
        for (long p_ = first_, end_ = least(first_ + PIXELS, (v)->pixels); p_ < end_; p_++) \
            for (long j_ = 0; j_ < (n); j_++) { \
                long c = (from) + j_, i = ((sample) * (v)->pixels + p_) * (v)->groups * (v)->width + c; \
                part_[j_] += (term); \
            } \
        for (long j_ = 0; j_ < (n); j_++) \
            (chain)[j_] += (double)part_[j_]; \
    }

/* sum[k] = the average of `term` over the k-th of some groups */
#define EACH_GROUP(sum, v, some, i, c, term) \
    do { \
        double chain_[CHANNELS], all_[CHANNELS] = {0}; \
        long end_of_ = ((some)->first + (some)->n) * (v)->width; \
        for (long from_ = (some)->first * (v)->width; from_ < end_of_; from_ += CHANNELS) { \
            long n_ = least(CHANNELS, end_of_ - from_); \
            memset(chain_, 0, sizeof chain_); \
            EACH_PIXEL(chain_, v, (some)->sample, from_, n_, i, c, term) \
            for (long k_ = 0; k_ < n_; k_++) \
                all_[(from_ + k_) / (v)->width - (some)->first] += chain_[k_]; \
        } \
        for (long k_ = 0; k_ < (some)->n; k_++) \
            (sum)[k_] = (float)(all_[k_] / (double)((v)->pixels * (v)->width)); \
    } while (0)

/* A loop over the elements of some groups: i, its channel c. */
#define ELEMENTS(v, some, i, c) \
    for (long p_ = 0; p_ < (v)->pixels; p_++) \
        for (long c = (some)->first * (v)->width, end_ = ((some)->first + (some)->n) * (v)->width, \
                  i = ((some)->sample * (v)->pixels + p_) * (v)->groups * (v)->width + c; c < end_; c++, i++)

static inline float slope(const real *dy, const float *weight, long i, long c)
{
    return weight ? get(dy, i) * weight[c] : get(dy, i);
}

void groupnorm_forward(Stage *st, real *y, float *mean, float *rstd, const real *x, const float *weight, const float *bias,
                       long batch, long pixels, long groups, long width, float eps)
{
    Groups v = {pixels, groups, width};
    EACH(batch * pixels * groups * width >= 1 << 14)
    for (long task = 0; task < tasks_of(&v, batch); task++) {
        Some some = some_of(&v, task);
        const float *m = mean + some.sample * groups, *s = rstd + some.sample * groups;
        float variance[CHANNELS];
        EACH_GROUP(mean + some.sample * groups + some.first, &v, &some, i, c, get(x, i));
        EACH_GROUP(variance, &v, &some, i, c, (get(x, i) - m[c / width]) * (get(x, i) - m[c / width]));
        for (long k = 0; k < some.n; k++)
            rstd[some.sample * groups + some.first + k] = frsqrt(variance[k] + eps);
        ELEMENTS(&v, &some, i, c) {
            float u = (get(x, i) - m[c / width]) * s[c / width];
            u = weight ? u * weight[c] : u;
            put(y, i, bias ? u + bias[c] : u);
        }
    }
}

void groupnorm_backward_x(Stage *st, real *dx, const real *dy, const real *x, const float *weight, const float *mean,
                          const float *rstd, long batch, long pixels, long groups, long width)
{
    Groups v = {pixels, groups, width};
    EACH(batch * pixels * groups * width >= 1 << 14)
    for (long task = 0; task < tasks_of(&v, batch); task++) {
        Some some = some_of(&v, task);
        const float *m = mean + some.sample * groups, *s = rstd + some.sample * groups;
        float plain[CHANNELS], with[CHANNELS];
        EACH_GROUP(plain, &v, &some, i, c, slope(dy, weight, i, c));
        EACH_GROUP(with, &v, &some, i, c, slope(dy, weight, i, c) * ((get(x, i) - m[c / width]) * s[c / width]));
        ELEMENTS(&v, &some, i, c) {
            long g = c / width, k = g - some.first;
            put(dx, i, s[g] * (slope(dy, weight, i, c) - plain[k] - (get(x, i) - m[g]) * s[g] * with[k]));
        }
    }
}

void groupnorm_backward_w(Stage *st, float *dweight, float *dbias, const real *dy, const real *x, const float *mean,
                          const float *rstd, int acc, long batch, long pixels, long groups, long width)
{
    Groups v = {pixels, groups, width};
    EACH(batch * pixels * groups * width >= 1 << 14)
    for (long from = 0; from < groups * width; from += CHANNELS) {
        long n = least(CHANNELS, groups * width - from);
        double with[CHANNELS] = {0}, plain[CHANNELS] = {0};
        float sum[CHANNELS];
        for (long b = 0; b < batch; b++) {
            const float *m = mean + b * groups, *s = rstd + b * groups;
            EACH_PIXEL(with, &v, b, from, n, i, c, get(dy, i) * ((get(x, i) - m[c / width]) * s[c / width]))
            EACH_PIXEL(plain, &v, b, from, n, i, c, get(dy, i))
        }
        for (long j = 0; j < n; j++)
            sum[j] = (float)with[j];
        if (dweight)
            give(dweight + from, sum, n, acc);
        for (long j = 0; j < n; j++)
            sum[j] = (float)plain[j];
        if (dbias)
            give(dbias + from, sum, n, acc);
    }
}
