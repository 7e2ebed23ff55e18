/* SPDX-License-Identifier: Apache-2.0
 *
 * answers_loss.c: BinaryCrossEntropy, and SoftmaxCrossEntropy with smoothed targets, in f64 from the call's operands.  The
 * formulas are those of docs/operators.md.
 */
#include "answers.h"

static Answer bce_loss(const Call *c, long i)
{
    Answer a = {0, 0};
    (void)i;
    for (long j = 0; j < of(c, "n"); j++) {
        double x = old(c, "x", j);
        plus(&a, (fmax(x, 0) + log1p(exp(-fabs(x)))) * share(c));
        plus(&a, -x * old(c, "targets", j) * share(c));
    }
    return a;
}

static Answer bce_dx(const Call *c, long i)
{
    double p = 1 / (1 + exp(-old(c, "x", i))), t = old(c, "targets", i), by = old(c, "dloss", 0) * share(c);
    return near((p - t) * by, (p + fabs(t)) * by);
}

static Answer bce_dtargets(const Call *c, long i)
{
    double y = -old(c, "x", i) * old(c, "dloss", 0) * share(c);
    return near(y, y);
}

static Answer smooth_lse(const Call *c, long row)
{
    double lse = log_sum(c, row);
    return near(lse, fabs(lse) + 1);
}

/* What score i of a row is in its target. */
static double target_of(const Call *c, long row, long i)
{
    double smooth = number_of(c, "smooth");
    return smooth / (double)of(c, "width") + ((long)old(c, "targets", row) == i ? 1 - smooth : 0);
}

static Answer smooth_loss(const Call *c, long i)
{
    int64_t valid = c->vals->valid[of(c, "count")];
    long n = of(c, "width");
    Answer a = {0, 0};
    (void)i;
    for (long r = 0; r < of(c, "rows") && valid; r++) {
        if ((long)old(c, "targets", r) == of(c, "ignore"))
            continue;
        plus(&a, new_at(part_of(c, "lse"), r) / (double)valid);
        for (long j = 0; j < n; j++)
            plus(&a, -old(c, "x", r * n + j) * target_of(c, r, j) / (double)valid);
    }
    return a;
}

static Answer smooth_dx(const Call *c, long i)
{
    int64_t valid = c->vals->valid[of(c, "count")];
    long n = of(c, "width"), row = i / n;
    if (!valid || (long)old(c, "targets", row) == of(c, "ignore"))
        return (Answer){0, 0};
    double p = exp(old(c, "x", i) - old(c, "lse", row)), by = old(c, "dloss", 0) / (double)valid, t = target_of(c, row, i % n);
    return near((p - t) * by, (p * (1 + fabs(old(c, "x", i))) + t) * by);
}

#define ELEMENT "x=n dx=n targets=n dtargets=n loss=1 dloss=1"
#define XENT "x=rows*width dx=rows*width targets=rows lse=rows loss=1 dloss=1"

static const Known known[] = {
    {"bce_forward", "loss", ELEMENT, bce_loss, 0, 0}, {"bce_backward", "dx", ELEMENT, bce_dx, 0, 0},
    {"bce_backward", "dtargets", ELEMENT, bce_dtargets, 0, 0},
    {"xent_smooth_forward", "lse", XENT, smooth_lse, 0, 0}, {"xent_smooth_forward", "loss", XENT, smooth_loss, 0, 0},
    {"xent_smooth_backward", "dx", XENT, smooth_dx, 0, 0},
    {NULL, NULL, NULL, NULL, 0, 0},
};

const Answers answers_loss = {known};
