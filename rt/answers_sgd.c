/* SPDX-License-Identifier: Apache-2.0
 *
 * answers_sgd.c: SGD and what it predicts.
 */
#include "answers.h"

static Answer sgd_m(const Call *c, long i)
{
    Answer a = {0, 0};
    plus(&a, part_of(c, "m") ? number_of(c, "momentum") * old(c, "m", i) : 0);
    plus(&a, clipped(c, i));
    plus(&a, decay(c) * old(c, "p", i));
    return a;
}

static Answer sgd_p(const Call *c, long i)
{
    Answer m = sgd_m(c, i);
    return near(old(c, "p", i) - c->vals->lr * m.value, fabs(old(c, "p", i)) + c->vals->lr * m.terms);
}

/* Another look ahead: the gradient, and the momentum that the next step would begin with. */
static Answer nesterov_p(const Call *c, long i)
{
    Answer m = sgd_m(c, i), d = {0, 0};
    plus(&d, clipped(c, i));
    plus(&d, decay(c) * old(c, "p", i));
    double momentum = number_of(c, "momentum"), lr = c->vals->lr, p = old(c, "p", i);
    return near(p - lr * (d.value + momentum * m.value), fabs(p) + lr * (d.terms + momentum * m.terms));
}

/* The gradients are `late` updates old: rt/op/sgd.c, spike. */
static Answer spike_p(const Call *c, long i)
{
    Answer m = sgd_m(c, i), d = {0, 0};
    double a = pow(number_of(c, "momentum"), number_of(c, "late")), b = 0;
    for (long k = 0; k < of(c, "late"); k++)
        b += pow(number_of(c, "momentum"), (double)k);
    plus(&d, clipped(c, i));
    plus(&d, decay(c) * old(c, "p", i));
    double lr = c->vals->lr, p = old(c, "p", i);
    return near(p - lr * (a * m.value + b * d.value), fabs(p) + lr * (a * m.terms + b * d.terms));
}

static Answer drift_step(const Call *c, long i)
{
    double late = number_of(c, "late"), anneal = number_of(c, "anneal"), step = (double)c->vals->step, lr = c->vals->lr;
    Answer m = sgd_m(c, i);
    lr *= late > 1 && step < anneal ? pow(late, step / anneal - 1) : 1;
    return (Answer){-lr * m.value, lr * m.terms};
}

static Answer drift_p(const Call *c, long i)
{
    Answer d = drift_step(c, i);
    return near(old(c, "p", i) + d.value, fabs(old(c, "p", i)) + d.terms);
}

/* The mean of what updates add: the call rounds p first. */
static Answer drift_old(const Call *c, long i)
{
    double stays = of(c, "late") ? exp(-2 / number_of(c, "late")) : 0, was = old(c, "old", i);
    Answer d = drift_step(c, i);
    return near(stays * was + (1 - stays) * d.value, fabs(was) + fabs(old(c, "p", i)) + d.terms);
}

static Answer predict_old_to(const Call *c, long i)
{
    double a = old(c, "newer", i), b = number_of(c, "behind") * old(c, "old", i);
    return near(a - b, fabs(a) + fabs(b));
}

#define ELEMENT "g=n other=n p=n c=n m=n v=n clip=1 to=n newer=n older=n old=n centre=n"

static const Known known[] = {
    {"sgd_update", "p", ELEMENT, sgd_p, 0, 0}, {"sgd_update", "c", ELEMENT, sgd_p, 0, 0},
    {"sgd_update", "m", ELEMENT, sgd_m, 0, 0}, {"sgd_spike", "p", ELEMENT, spike_p, 0, 0},
    {"sgd_spike", "c", ELEMENT, spike_p, 0, 0}, {"sgd_spike", "m", ELEMENT, sgd_m, 0, 0},
    {"sgd_drift", "p", ELEMENT, drift_p, 0, 0}, {"sgd_drift", "c", ELEMENT, drift_p, 0, 0},
    {"sgd_drift", "m", ELEMENT, sgd_m, 0, 0}, {"sgd_drift", "old", ELEMENT, drift_old, 0, 0},
    {"predict_old", "to", ELEMENT, predict_old_to, 0, 0}, {"sgd_nesterov", "p", ELEMENT, nesterov_p, 0, 0},
    {"sgd_nesterov", "c", ELEMENT, nesterov_p, 0, 0}, {"sgd_nesterov", "m", ELEMENT, sgd_m, 0, 0},
    {NULL, NULL, NULL, NULL, 0, 0},
};

const Answers answers_sgd = {known};
