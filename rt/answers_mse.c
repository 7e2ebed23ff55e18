/* SPDX-License-Identifier: Apache-2.0
 *
 * answers_mse.c: losses of numbers, and sums of losses.
 */
#include "answers.h"

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

#define ELEMENT "x=n dx=n targets=n dtargets=n loss=1 dloss=1"
#define ONE "y=1 x=1 a=1 b=1"

static const Known known[] = {
    {"mse_forward", "loss", ELEMENT, mse_loss, 0, 0}, {"mse_backward", "dx", ELEMENT, mse_dx, 0, 0},
    {"mse_backward", "dtargets", ELEMENT, mse_dtargets, 0, 0}, {"loss_add_forward", "y", ONE, sum_y, 0, 0},
    {"loss_scale_forward", "y", ONE, scale_y, 0, 0},
    {NULL, NULL, NULL, NULL, 0, 0},
};

const Answers answers_mse = {known};
