/* SPDX-License-Identifier: Apache-2.0
 *
 * answers_norm.c: norms and softmax.
 */
#include "answers.h"

typedef struct { double mean, rstd, size; } Moments;    /* size: the mean of |x| */

/* The operand of a norm, or the sum that the same call has made of two. */
static double normed(const Call *c, long i) { return part_of(c, "sum") ? new_at(part_of(c, "sum"), i) : old(c, "x", i); }

static Moments moments(const Call *c, long row, bool centred)
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
static double weight_at(const Call *c, long j) { return number_of(c, "offset") + old(c, "weight", j); }

static Answer norm_y(const Call *c, long i, bool centred)
{
    long n = of(c, "width");
    Moments m = moments(c, i / n, centred);
    double w = weight_at(c, i % n), b = old(c, "bias", i % n), x = normed(c, i);
    return near((x - m.mean) * m.rstd * w + b, (fabs(x) + m.size) * m.rstd * fabs(w) + fabs(b));
}

static Answer layernorm_y(const Call *c, long i) { return norm_y(c, i, true); }
static Answer rmsnorm_y(const Call *c, long i) { return norm_y(c, i, false); }

static Answer layernorm_mean(const Call *c, long row)
{
    Moments m = moments(c, row, true);
    return near(m.mean, m.size);
}

static Answer layernorm_rstd(const Call *c, long row)
{
    Moments m = moments(c, row, true);
    return near(m.rstd, m.rstd * (1 + m.size * m.rstd));
}

static Answer rmsnorm_rstd(const Call *c, long row)
{
    double rstd = moments(c, row, false).rstd;
    return near(rstd, rstd);
}

/* Of a norm's gradient with a Linear's: the norm is as wide as that. */
static long wide(const Call *c) { return of(c, part_of(c, "factor") ? "out" : "width"); }

/* x as forward had it, from its statistics; their absence counts as 0: rmsnorm. */
static double whitened(const Call *c, long i)
{
    long row = i / wide(c);
    return (old(c, "x", i) - old(c, "mean", row)) * old(c, "rstd", row);
}

static Answer norm_dx(const Call *c, long i)
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

static Answer norm_dweight(const Call *c, long i)
{
    Answer a = {0, 0};
    long n = wide(c);
    for (long r = 0; r < of(c, "rows"); r++)
        plus(&a, old(c, "dy", r * n + i) * whitened(c, r * n + i));
    return a;
}

static Answer norm_dbias(const Call *c, long i)
{
    Answer a = {0, 0};
    long n = wide(c);
    for (long r = 0; r < of(c, "rows"); r++)
        plus(&a, old(c, "dy", r * n + i));
    return a;
}

/* Of a Linear that the norm's operand is a sum with: from dx as the same call has made it. */
static Answer linear_dproduct(const Call *c, long i)
{
    long in = of(c, "in"), out = of(c, "out");
    Answer a = {0, 0};
    for (long r = 0; r < of(c, "rows"); r++)
        plus(&a, made(c, "dx", r * out + i / in) * old(c, "factor", r * in + i % in));
#ifdef TF32
    a.terms += 0x1p-10 / F32_SUM * a.terms;     /* as product() has it */
#endif
    return a;
}

static Answer linear_dsum(const Call *c, long i)
{
    Answer a = {0, 0};
    for (long r = 0; r < of(c, "rows"); r++)
        plus(&a, made(c, "dx", r * of(c, "out") + i));
    return a;
}

static Answer softmax_y(const Call *c, long i)
{
    double y = exp(old(c, "x", i) - log_sum(c, i / of(c, "width")));
    return near(y, y);
}

static Answer softmax_dx(const Call *c, long i)
{
    Answer sum = {0, 0};
    long n = of(c, "width"), row = i / n;
    for (long j = 0; j < n; j++)
        plus(&sum, old(c, "dy", row * n + j) * old(c, "y", row * n + j));
    double y = old(c, "y", i), d = old(c, "dy", i);
    return near(y * (d - sum.value), fabs(y) * (fabs(d) + sum.terms));
}

#define NORM "y=rows*width mean=rows rstd=rows x=rows*width weight=width bias=width dx=rows*width dy=rows*width " \
    "onto=rows*width dweight=width dbias=width sum=rows*width a=rows*width b=rows*width"

#define NORM_LINEAR "x=rows*out dx=rows*out dy=rows*out onto=rows*out factor=rows*in mean=rows rstd=rows weight=out " \
    "dweight=out dbias=out dsum=out dproduct=out*in"

static const Known known[] = {
    {"layernorm_forward", "y", NORM, layernorm_y, 0, 0}, {"layernorm_forward", "mean", NORM, layernorm_mean, 0, 0},
    {"layernorm_forward", "rstd", NORM, layernorm_rstd, 0, 0}, {"layernorm_backward", "dx", NORM, norm_dx, 0, 0},
    {"layernorm_backward", "dweight", NORM, norm_dweight, 0, 0}, {"layernorm_backward", "dbias", NORM, norm_dbias, 0, 0},
    {"rmsnorm_forward", "y", NORM, rmsnorm_y, 0, 0}, {"rmsnorm_forward", "rstd", NORM, rmsnorm_rstd, 0, 0},
    {"rmsnorm_backward", "dx", NORM, norm_dx, 0, 0}, {"rmsnorm_backward", "dweight", NORM, norm_dweight, 0, 0},
    {"add_layernorm_forward", "sum", NORM, sum_y, 0, 0}, {"add_layernorm_forward", "y", NORM, layernorm_y, 0, 0},
    {"add_layernorm_forward", "mean", NORM, layernorm_mean, 0, 0},
    {"add_layernorm_forward", "rstd", NORM, layernorm_rstd, 0, 0}, {"add_rmsnorm_forward", "sum", NORM, sum_y, 0, 0},
    {"add_rmsnorm_forward", "y", NORM, rmsnorm_y, 0, 0}, {"add_rmsnorm_forward", "rstd", NORM, rmsnorm_rstd, 0, 0},
    {"rmsnorm_offset_forward", "y", NORM, rmsnorm_y, 0, 0}, {"rmsnorm_offset_forward", "rstd", NORM, rmsnorm_rstd, 0, 0},
    {"rmsnorm_offset_backward", "dx", NORM, norm_dx, 0, 0}, {"rmsnorm_offset_backward", "dweight", NORM, norm_dweight, 0, 0},
    {"layernorm_linear_backward", "dx", NORM_LINEAR, norm_dx, 0, 0},
    {"layernorm_linear_backward", "dweight", NORM_LINEAR, norm_dweight, 0, 0},
    {"layernorm_linear_backward", "dbias", NORM_LINEAR, norm_dbias, 0, 0},
    {"layernorm_linear_backward", "dproduct", NORM_LINEAR, linear_dproduct, 0, 0},
    {"layernorm_linear_backward", "dsum", NORM_LINEAR, linear_dsum, 0, 0},
    {"softmax_forward", "y", NORM, softmax_y, 0, 0}, {"softmax_backward", "dx", NORM, softmax_dx, 0, 0},
    {NULL, NULL, NULL, NULL, 0, 0},
};

const Answers answers_norm = {known};
