/* SPDX-License-Identifier: Apache-2.0
 *
 * answers_pass.c: an element of a call that is no product, in f64 from the call's operands: tables of rows, norms, element
 * by element, sums, losses.  The formulas are those of docs/operators.md.
 */
#include <math.h>
#include "philox.h"
#include "selftest.h"

static long of(const Call *c, const char *name) { return (long)number_of(c, name); }
static double old(const Call *c, const char *name, long i) { return old_of(c, name, i); }
static Answer exact(double x) { return (Answer){x, 0}; }
static Answer near(double x, double size) { return (Answer){x, fabs(size)}; }

static void plus(Answer *a, double x)
{
    a->value += x;
    a->terms += fabs(x);
}

/* ---- tables of rows ------------------------------------------------------------------------------------------------ */

static Answer embedding_y(const Call *c, long i)
{
    long width = of(c, "width");
    return exact(old(c, "weight", (long)old(c, "ids", i / width) * width + i % width));
}

static Answer embedding_dweight(const Call *c, long i)
{
    Answer a = {0, 0};
    long width = of(c, "width");
    for (long t = 0; t < of(c, "n"); t++)
        if ((long)old(c, "ids", t) == i / width)
            plus(&a, old(c, "dy", t * width + i % width));
    return a;
}

static Answer position_y(const Call *c, long i)
{
    return exact(old(c, "x", i) + old(c, "weight", i % (of(c, "seq") * of(c, "width"))));
}

static Answer position_dweight(const Call *c, long i)
{
    Answer a = {0, 0};
    long used = of(c, "seq") * of(c, "width");
    for (long b = 0; b < of(c, "batch") && i < used; b++)
        plus(&a, old(c, "dy", b * used + i));
    return a;
}

/* The buckets of T5, from their formula: docs/operators.md. */
static long bucket(const Call *c, long ahead)
{
    long both = of(c, "both"), per = of(c, "buckets") / (both ? 2 : 1), exact = per / 2;
    long base = both && ahead > 0 ? per : 0, n = ahead < 0 ? -ahead : both ? ahead : 0;
    if (n < exact)
        return base + n;
    double share = log((double)n / (double)exact) / log(number_of(c, "distance") / (double)exact);
    long i = (long)floor(share * (double)(per - exact) + 1e-9);
    return base + exact + (i < per - exact ? i : per - exact - 1);
}

static Answer relative_y(const Call *c, long i)
{
    long query = of(c, "query"), key = of(c, "key");
    return exact(old(c, "weight", bucket(c, i % key - i / key % query) * of(c, "heads") + i / key / query));
}

static Answer relative_dweight(const Call *c, long i)
{
    Answer a = {0, 0};
    long heads = of(c, "heads"), query = of(c, "query"), key = of(c, "key");
    for (long j = 0; j < query * key; j++)
        if (bucket(c, j % key - j / key) == i / heads)
            plus(&a, old(c, "dy", i % heads * query * key + j));
    return a;
}

/* ---- norms --------------------------------------------------------------------------------------------------------- */

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

/* x as forward had it, from its statistics; their absence counts as 0: rmsnorm. */
static double whitened(const Call *c, long i)
{
    long row = i / of(c, "width");
    return (old(c, "x", i) - old(c, "mean", row)) * old(c, "rstd", row);
}

static Answer norm_dx(const Call *c, long i)
{
    long n = of(c, "width"), row = i / n;
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
    long n = of(c, "width");
    for (long r = 0; r < of(c, "rows"); r++)
        plus(&a, old(c, "dy", r * n + i) * whitened(c, r * n + i));
    return a;
}

static Answer norm_dbias(const Call *c, long i)
{
    Answer a = {0, 0};
    long n = of(c, "width");
    for (long r = 0; r < of(c, "rows"); r++)
        plus(&a, old(c, "dy", r * n + i));
    return a;
}

/* ---- softmax and losses -------------------------------------------------------------------------------------------- */

static double log_sum(const Call *c, long row)
{
    long n = of(c, "width");
    double most = -INFINITY, sum = 0;
    for (long j = 0; j < n; j++)
        most = fmax(most, old(c, "x", row * n + j));
    for (long j = 0; j < n; j++)
        sum += exp(old(c, "x", row * n + j) - most);
    return most + log(sum);
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

static Answer xent_lse(const Call *c, long row)
{
    double lse = log_sum(c, row);
    return near(lse, fabs(lse) + 1);
}

static Answer xent_loss(const Call *c, long i)
{
    int64_t valid = c->vals->valid[of(c, "count")];
    Answer a = {0, 0};
    (void)i;
    for (long r = 0; r < of(c, "rows") && valid; r++) {
        long target = (long)old(c, "targets", r);
        if (target == of(c, "ignore"))
            continue;
        plus(&a, new_at(part_of(c, "lse"), r) / (double)valid);
        plus(&a, -old(c, "x", r * of(c, "width") + target) / (double)valid);
    }
    return a;
}

static Answer score_dx(const Call *c, long i, double lse)
{
    int64_t valid = c->vals->valid[of(c, "count")];
    long n = of(c, "width"), row = i / n, target = (long)old(c, "targets", row);
    if (!valid || target == of(c, "ignore"))
        return exact(0);
    double p = exp(old(c, "x", i) - lse), by = old(c, "dloss", 0) / (double)valid;
    double hit = target == i % n;
    return near((p - hit) * by, (p * (1 + fabs(old(c, "x", i))) + hit) * by);
}

static Answer xent_dx(const Call *c, long i) { return score_dx(c, i, old(c, "lse", i / of(c, "width"))); }
static Answer both_dx(const Call *c, long i) { return score_dx(c, i, new_at(part_of(c, "lse"), i / of(c, "width"))); }

static double share(const Call *c) { return 1 / ((double)of(c, "n") * c->vals->micro); }

static Answer mse_loss(const Call *c, long i)
{
    Answer a = {0, 0};
    (void)i;
    for (long j = 0; j < of(c, "n"); j++) {
        double d = old(c, "x", j) - old(c, "targets", j);
        plus(&a, d * d * share(c));
    }
    return a;
}

static Answer mse_slope(const Call *c, long i, double sign)
{
    double x = old(c, "x", i), t = old(c, "targets", i), by = 2 * old(c, "dloss", 0) * share(c);
    return near(sign * (x - t) * by, (fabs(x) + fabs(t)) * by);
}

static Answer mse_dx(const Call *c, long i) { return mse_slope(c, i, 1); }
static Answer mse_dtargets(const Call *c, long i) { return mse_slope(c, i, -1); }
static Answer seed_y(const Call *c, long i) { (void)c, (void)i; return exact(1); }
/* In a step it reports nothing, and the loss stays. */
static Answer hits_vals(const Call *c, long i) { (void)i; return exact(c->vals->loss); }
static Answer report_vals(const Call *c, long i) { (void)i; return exact(old(c, "x", 0)); }

/* ---- element by element -------------------------------------------------------------------------------------------- */

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

static Answer relu_y(const Call *c, long i) { return exact(fmax(old(c, "x", i), 0)); }
static Answer relu_dx(const Call *c, long i) { return exact(old(c, "y", i) > 0 ? old(c, "dy", i) : 0); }

static const double root_2_pi = 0.79788456080286535588, cubic = 0.044715, root_half = 0.70710678118654752440,
    density = 0.39894228040143267794;

static Answer gelu_y(const Call *c, long i)
{
    double x = old(c, "x", i);
    double t = of(c, "tanh") ? tanh(root_2_pi * (x + cubic * x * x * x)) : erf(x * root_half);
    return near(0.5 * x * (1 + t), x);
}

static Answer gelu_dx(const Call *c, long i)
{
    double x = old(c, "x", i), d = old(c, "dy", i);
    double t = of(c, "tanh") ? tanh(root_2_pi * (x + cubic * x * x * x)) : erf(x * root_half);
    double slope = of(c, "tanh") ? 0.5 * (1 - t * t) * root_2_pi * (1 + 3 * cubic * x * x) : density * exp(-0.5 * x * x);
    return near(d * (0.5 * (1 + t) + x * slope), d * (1 + fabs(x)));
}

static Answer silu_y(const Call *c, long i)
{
    double x = old(c, "x", i);
    return near(x * sigmoid(x), x);
}

static Answer silu_dx(const Call *c, long i)
{
    double x = old(c, "x", i), s = sigmoid(x), d = old(c, "dy", i);
    return near(d * (s + x * s * (1 - s)), d * (1 + fabs(x)));
}

static Answer tanh_y(const Call *c, long i) { return near(tanh(old(c, "x", i)), 1); }
static Answer sigmoid_y(const Call *c, long i) { return near(sigmoid(old(c, "x", i)), 1); }

static Answer tanh_dx(const Call *c, long i)
{
    double y = old(c, "y", i), d = old(c, "dy", i);
    return near(d * (1 - y * y), d * (1 + y * y));
}

static Answer sigmoid_dx(const Call *c, long i)
{
    double y = old(c, "y", i), d = old(c, "dy", i);
    return near(d * y * (1 - y), d);
}

static Answer clip_y(const Call *c, long i)
{
    return exact(fmin(fmax(old(c, "x", i), number_of(c, "low")), number_of(c, "high")));
}

static Answer clip_dx(const Call *c, long i)
{
    double x = old(c, "x", i);
    return exact(x > number_of(c, "low") && x < number_of(c, "high") ? old(c, "dy", i) : 0);
}

static Answer leaky_y(const Call *c, long i)
{
    double x = old(c, "x", i);
    return exact(x < 0 ? x * number_of(c, "slope") : x);
}

static Answer leaky_dx(const Call *c, long i)
{
    return exact(old(c, "dy", i) * (old(c, "x", i) > 0 ? 1 : number_of(c, "slope")));
}

static double ramp(double x) { return fmin(fmax(x / 6 + 0.5, 0), 1); }
static Answer ramp_y(const Call *c, long i) { return near(ramp(old(c, "x", i)), 1); }
static Answer ramp_dx(const Call *c, long i) { return exact(fabs(old(c, "x", i)) < 3 ? old(c, "dy", i) / 6 : 0); }
static Answer swish_y(const Call *c, long i) { return near(old(c, "x", i) * ramp(old(c, "x", i)), old(c, "x", i)); }

static Answer swish_dx(const Call *c, long i)
{
    double x = old(c, "x", i), d = old(c, "dy", i);
    return near(d * (x <= -3 ? 0 : x < 3 ? x / 3 + 0.5 : 1), d);
}

static Answer scale_y(const Call *c, long i) { return exact(old(c, "x", i) * number_of(c, "factor")); }
static Answer sum_y(const Call *c, long i) { return exact(old(c, "a", i) + old(c, "b", i)); }
static Answer copy_y(const Call *c, long i) { return exact(old(c, "x", i)); }

static Answer dropout_y(const Call *c, long i)
{
    long per = of(c, "per");
    double drop = number_of(c, "drop");
    float factor = 1;
    Drop d = drop_of(c->vals, of(c, "mb") * of(c, "batch") + i / per, (float)drop, part_of(c, "site")->given.i);
    if (drop != 0 && !c->vals->eval)
        drop_factors(&factor, &d, i % per, 1);
    return exact(old(c, "x", i) * factor);
}

static Answer broadcast_y(const Call *c, long i) { return exact(old(c, "a", i) + old(c, "b", i % of(c, "nb"))); }
static Answer mul_y(const Call *c, long i) { return exact(old(c, "a", i) * old(c, "b", i % of(c, "nb"))); }
static Answer mul_da(const Call *c, long i) { return exact(old(c, "dy", i) * old(c, "b", i % of(c, "nb"))); }

static Answer over_rows(const Call *c, long i)
{
    Answer a = {0, 0};
    for (long j = i; j < of(c, "n"); j += of(c, "nb"))
        plus(&a, old(c, "dy", j) * (part_of(c, "a") ? old(c, "a", j) : 1));
    return a;
}

static Answer reduce_y(const Call *c, long i)
{
    Answer a = {0, 0};
    long inner = of(c, "inner"), mid = of(c, "mid");
    for (long j = 0; j < mid; j++)
        plus(&a, old(c, "x", (i / inner * mid + j) * inner + i % inner) * number_of(c, "factor"));
    return a;
}

static Answer reduce_dx(const Call *c, long i)
{
    long inner = of(c, "inner");
    return exact(old(c, "dy", i / inner / of(c, "mid") * inner + i % inner) * number_of(c, "factor"));
}

static const char *const concat_names[] = {"a", "b", "c", "d", "e", "f", "g", "i"};
static const char *const concat_sizes[] = {"na", "nb", "nc", "nd", "ne", "nf", "ng", "ni"};

/* How long parts 0 .. k-1 are together. */
static long concat_before(const Call *c, int k)
{
    long sum = 0;
    for (int j = 0; j < k; j++)
        sum += of(c, concat_sizes[j]);
    return sum;
}

static Answer concat_y(const Call *c, long i)
{
    long whole = concat_before(c, 8), j = i % whole;
    int k = 0;
    for (; j >= of(c, concat_sizes[k]); k++)
        j -= of(c, concat_sizes[k]);
    return exact(old(c, concat_names[k], i / whole * of(c, concat_sizes[k]) + j));
}

static Answer concat_part(const Call *c, long i, int k)
{
    long n = of(c, concat_sizes[k]);
    return exact(old(c, "dy", i / n * concat_before(c, 8) + concat_before(c, k) + i % n));
}

static Answer concat_da(const Call *c, long i) { return concat_part(c, i, 0); }
static Answer concat_db(const Call *c, long i) { return concat_part(c, i, 1); }
static Answer concat_dc(const Call *c, long i) { return concat_part(c, i, 2); }
static Answer concat_dd(const Call *c, long i) { return concat_part(c, i, 3); }
static Answer concat_de(const Call *c, long i) { return concat_part(c, i, 4); }
static Answer concat_df(const Call *c, long i) { return concat_part(c, i, 5); }
static Answer concat_dg(const Call *c, long i) { return concat_part(c, i, 6); }
static Answer concat_di(const Call *c, long i) { return concat_part(c, i, 7); }

static Answer slice_y(const Call *c, long i)
{
    long n = of(c, "count");
    return exact(old(c, "x", i / n * of(c, "whole") + of(c, "from") + i % n));
}

static Answer slice_dx(const Call *c, long i)
{
    long n = of(c, "count"), j = i % of(c, "whole") - of(c, "from");
    return exact(j >= 0 && j < n ? old(c, "dy", i / of(c, "whole") * n + j) : 0);
}

static Answer transpose_y(const Call *c, long i)
{
    long dim[] = {of(c, "d0"), of(c, "d1"), of(c, "d2"), of(c, "d3")};
    long axis[] = {of(c, "p0"), of(c, "p1"), of(c, "p2"), of(c, "p3")};
    long step[] = {dim[1] * dim[2] * dim[3], dim[2] * dim[3], dim[3], 1}, at = 0;
    for (int j = 3; j >= 0; i /= dim[axis[j--]])
        at += i % dim[axis[j]] * step[axis[j]];
    return exact(old(c, "x", at));
}

#define NORM "y=rows*width mean=rows rstd=rows x=rows*width weight=width bias=width dx=rows*width dy=rows*width " \
    "onto=rows*width dweight=width dbias=width sum=rows*width a=rows*width b=rows*width"
#define XENT "loss=1 lse=rows x=rows*width targets=rows dx=rows*width dloss=1"
#define ELEMENT "y=n x=n a=n b=n dx=n dy=n targets=n dtargets=n loss=1 dloss=1"
#define BROADCAST "y=n a=n b=nb dy=n da=n db=nb"
#define REDUCE "y=outer*inner x=outer*mid*inner dx=outer*mid*inner dy=outer*inner"
#define SLICE "y=outer*count x=outer*whole dx=outer*whole dy=outer*count"
#define TABLE "y=n*width ids=n weight=rows*width dweight=rows*width dy=n*width"
#define RELATIVE "y=heads*query*key dy=heads*query*key weight=buckets*heads dweight=buckets*heads"
#define CONCAT "a=outer*na b=outer*nb c=outer*nc d=outer*nd e=outer*ne f=outer*nf g=outer*ng i=outer*ni " \
    "da=outer*na db=outer*nb dc=outer*nc dd=outer*nd de=outer*ne df=outer*nf dg=outer*ng di=outer*ni " \
    "y=outer*na+outer*nb+outer*nc+outer*nd+outer*ne+outer*nf+outer*ng+outer*ni " \
    "dy=outer*na+outer*nb+outer*nc+outer*nd+outer*ne+outer*nf+outer*ng+outer*ni"
#define PLACE "y=batch*seq*width x=batch*seq*width weight=seq*width dweight=rows*width dy=batch*seq*width"
#define ONE "y=1 x=1 a=1 b=1"

const Known known_passes[] = {
    {"embedding_forward", "y", TABLE, embedding_y, 0, 0}, {"embedding_backward", "dweight", TABLE, embedding_dweight, 0, 0},
    {"position_forward", "y", PLACE, position_y, 0, 0}, {"position_backward", "dweight", PLACE, position_dweight, 0, 0},
    {"relative_bias_forward", "y", RELATIVE, relative_y, 0, 0},
    {"relative_bias_backward", "dweight", RELATIVE, relative_dweight, 0, 0},
    {"layernorm_forward", "y", NORM, layernorm_y, 0, 0}, {"layernorm_forward", "mean", NORM, layernorm_mean, 0, 0},
    {"layernorm_forward", "rstd", NORM, layernorm_rstd, 0, 0}, {"layernorm_backward", "dx", NORM, norm_dx, 0, 0},
    {"layernorm_backward", "dweight", NORM, norm_dweight, 0, 0}, {"layernorm_backward", "dbias", NORM, norm_dbias, 0, 0},
    {"rmsnorm_forward", "y", NORM, rmsnorm_y, 0, 0}, {"rmsnorm_forward", "rstd", NORM, rmsnorm_rstd, 0, 0},
    {"rmsnorm_backward", "dx", NORM, norm_dx, 0, 0}, {"rmsnorm_backward", "dweight", NORM, norm_dweight, 0, 0},
    {"add_layernorm_forward", "sum", NORM, sum_y, 0, 0}, {"add_layernorm_forward", "y", NORM, layernorm_y, 0, 0},
    {"add_layernorm_forward", "mean", NORM, layernorm_mean, 0, 0},
    {"add_layernorm_forward", "rstd", NORM, layernorm_rstd, 0, 0},
    {"add_rmsnorm_forward", "sum", NORM, sum_y, 0, 0}, {"add_rmsnorm_forward", "y", NORM, rmsnorm_y, 0, 0},
    {"add_rmsnorm_forward", "rstd", NORM, rmsnorm_rstd, 0, 0},
    {"rmsnorm_offset_forward", "y", NORM, rmsnorm_y, 0, 0}, {"rmsnorm_offset_forward", "rstd", NORM, rmsnorm_rstd, 0, 0},
    {"rmsnorm_offset_backward", "dx", NORM, norm_dx, 0, 0}, {"rmsnorm_offset_backward", "dweight", NORM, norm_dweight, 0, 0},
    {"softmax_forward", "y", NORM, softmax_y, 0, 0}, {"softmax_backward", "dx", NORM, softmax_dx, 0, 0},
    {"xent_forward", "loss", XENT, xent_loss, 0, 0}, {"xent_forward", "lse", XENT, xent_lse, 0, 0},
    {"xent_backward", "dx", XENT, xent_dx, 0, 0}, {"xent_both", "dx", XENT, both_dx, 0, 0},
    {"xent_both", "loss", XENT, xent_loss, 0, 0}, {"xent_both", "lse", XENT, xent_lse, 0, 0},
    {"hit_report", "vals", XENT, hits_vals, 0, 0},
    {"mse_forward", "loss", ELEMENT, mse_loss, 0, 0}, {"mse_backward", "dx", ELEMENT, mse_dx, 0, 0},
    {"mse_backward", "dtargets", ELEMENT, mse_dtargets, 0, 0},
    {"loss_add_forward", "y", ONE, sum_y, 0, 0}, {"loss_scale_forward", "y", ONE, scale_y, 0, 0},
    {"loss_seed", "y", ONE, seed_y, 0, 0}, {"loss_report", "vals", ONE, report_vals, 0, 0},
    {"relu_forward", "y", ELEMENT, relu_y, 0, 0}, {"relu_backward", "dx", ELEMENT, relu_dx, 0, 0},
    {"gelu_forward", "y", ELEMENT, gelu_y, 0, 0}, {"gelu_backward", "dx", ELEMENT, gelu_dx, 0, 0},
    {"silu_forward", "y", ELEMENT, silu_y, 0, 0}, {"silu_backward", "dx", ELEMENT, silu_dx, 0, 0},
    {"tanh_forward", "y", ELEMENT, tanh_y, 0, 0}, {"tanh_backward", "dx", ELEMENT, tanh_dx, 0, 0},
    {"sigmoid_forward", "y", ELEMENT, sigmoid_y, 0, 0}, {"sigmoid_backward", "dx", ELEMENT, sigmoid_dx, 0, 0},
    {"clip_forward", "y", ELEMENT, clip_y, 0, 0}, {"clip_backward", "dx", ELEMENT, clip_dx, 0, 0},
    {"leaky_relu_forward", "y", ELEMENT, leaky_y, 0, 0}, {"leaky_relu_backward", "dx", ELEMENT, leaky_dx, 0, 0},
    {"hard_sigmoid_forward", "y", ELEMENT, ramp_y, 0, 0}, {"hard_sigmoid_backward", "dx", ELEMENT, ramp_dx, 0, 0},
    {"hard_swish_forward", "y", ELEMENT, swish_y, 0, 0}, {"hard_swish_backward", "dx", ELEMENT, swish_dx, 0, 0},
    {"scale_forward", "y", ELEMENT, scale_y, 0, 0}, {"add_forward", "y", ELEMENT, sum_y, 0, 0},
    {"grad_add", "y", ELEMENT, sum_y, 0, 0}, {"copy_forward", "y", ELEMENT, copy_y, 0, 0},
    {"cast_forward", "y", ELEMENT, copy_y, 0, 0},
    {"dropout_forward", "y", "y=batch*per x=batch*per onto=batch*per", dropout_y, 0, 0},
    {"add_broadcast_forward", "y", BROADCAST, broadcast_y, 0, 0}, {"add_broadcast_backward", "db", BROADCAST, over_rows, 0, 0},
    {"mul_forward", "y", BROADCAST, mul_y, 0, 0}, {"mul_backward", "da", BROADCAST, mul_da, 0, 0},
    {"mul_backward", "db", BROADCAST, over_rows, 0, 0},
    {"reduce_forward", "y", REDUCE, reduce_y, 0, 0}, {"reduce_backward", "dx", REDUCE, reduce_dx, 0, 0},
    {"concat_forward", "y", CONCAT, concat_y, 0, 0}, {"concat_backward", "da", CONCAT, concat_da, 0, 0},
    {"concat_backward", "db", CONCAT, concat_db, 0, 0}, {"concat_backward", "dc", CONCAT, concat_dc, 0, 0},
    {"concat_backward", "dd", CONCAT, concat_dd, 0, 0}, {"concat_backward", "de", CONCAT, concat_de, 0, 0},
    {"concat_backward", "df", CONCAT, concat_df, 0, 0}, {"concat_backward", "dg", CONCAT, concat_dg, 0, 0},
    {"concat_backward", "di", CONCAT, concat_di, 0, 0},
    {"slice_forward", "y", SLICE, slice_y, 0, 0}, {"slice_backward", "dx", SLICE, slice_dx, 0, 0},
    {"transpose_forward", "y", "y=d0*d1*d2*d3 x=d0*d1*d2*d3", transpose_y, 0, 0},
    {NULL, NULL, NULL, NULL, 0, 0},
};
