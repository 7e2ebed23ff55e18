/* SPDX-License-Identifier: Apache-2.0
 *
 * answers_norm.h: what norms of rows have in common, for the files answers_*norm*.c.
 */
#ifndef ANSWERS_NORM_H
#define ANSWERS_NORM_H
#include "answers.h"

typedef struct { double mean, rstd, size; } Moments;    /* size: the mean of |x| */

/* The operand of a norm, or the sum that the same call has made of two. */
static inline double normed(const Call *c, long i)
{
    return part_of(c, "sum") ? new_at(part_of(c, "sum"), i) : old(c, "x", i);
}

static inline Moments moments(const Call *c, long row, bool centred)
{
    long n = of(c, "width");
    Moments m = {0, 0, 0};
    double squares = 0;
    for (long j = 0; j < n; j++) {
        m.mean += centred ? normed(c, row * n + j) / (double)n : 0;
        m.size += fabs(normed(c, row * n + j)) / (double)n;
    }
    for (long j = 0; j < n; j++) {
        double d = normed(c, row * n + j) - m.mean;
        squares += d * d;
    }
    m.rstd = 1 / sqrt(squares / (double)n + number_of(c, "eps"));
    return m;
}

/* Files of some models hold what is added to 1. */
static inline double weight_at(const Call *c, long j) { return number_of(c, "offset") + old(c, "weight", j); }

static inline Answer norm_y(const Call *c, long i, bool centred)
{
    long n = of(c, "width");
    Moments m = moments(c, i / n, centred);
    double w = weight_at(c, i % n), b = old(c, "bias", i % n), x = normed(c, i);
    return near((x - m.mean) * m.rstd * w + b, (fabs(x) + m.size) * m.rstd * fabs(w) + fabs(b));
}

static inline Answer layernorm_y(const Call *c, long i) { return norm_y(c, i, true); }

static inline Answer layernorm_mean(const Call *c, long row)
{
    Moments m = moments(c, row, true);
    return near(m.mean, m.size);
}

static inline Answer layernorm_rstd(const Call *c, long row)
{
    Moments m = moments(c, row, true);
    return near(m.rstd, m.rstd * (1 + m.size * m.rstd));
}

/* Of a norm's gradient with a Linear's: the norm is as wide as that. */
static inline long wide(const Call *c) { return of(c, part_of(c, "factor") ? "out" : "width"); }

/* x as forward had it, from its statistics; their absence counts as 0: rmsnorm. */
static inline double whitened(const Call *c, long i)
{
    long row = i / wide(c);
    return (old(c, "x", i) - old(c, "mean", row)) * old(c, "rstd", row);
}

static inline Answer norm_dx(const Call *c, long i)
{
    long n = wide(c), row = i / n;
    bool centred = part_of(c, "mean") != NULL;
    Answer sum = {0, 0}, product = {0, 0};
    for (long j = 0; j < n; j++) {
        double d = old(c, "dy", row * n + j) * weight_at(c, j);
        plus(&sum, centred ? d / (double)n : 0);
        plus(&product, d * whitened(c, row * n + j) / (double)n);
    }
    double d = old(c, "dy", i) * weight_at(c, i % n), x = whitened(c, i), s = old(c, "rstd", row);
    return near(s * (d - sum.value - x * product.value), s * (fabs(d) + sum.terms + fabs(x) * product.terms));
}

static inline Answer norm_dweight(const Call *c, long i)
{
    Answer a = {0, 0};
    long n = wide(c);
    for (long r = 0; r < of(c, "rows"); r++)
        plus(&a, old(c, "dy", r * n + i) * whitened(c, r * n + i));
    return a;
}

static inline Answer norm_dbias(const Call *c, long i)
{
    Answer a = {0, 0};
    long n = wide(c);
    for (long r = 0; r < of(c, "rows"); r++)
        plus(&a, old(c, "dy", r * n + i));
    return a;
}

#define NORM "y=rows*width mean=rows rstd=rows x=rows*width weight=width bias=width dx=rows*width dy=rows*width " \
    "onto=rows*width dweight=width dbias=width sum=rows*width a=rows*width b=rows*width"
#endif
