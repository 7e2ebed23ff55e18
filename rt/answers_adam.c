/* SPDX-License-Identifier: Apache-2.0
 *
 * answers_adam.c: AdamW and NAdamW, and weights that they predict.
 */
#include "answers.h"

static Answer adamw_moment(double beta, double was, double x)
{
    return near(beta * was + (1 - beta) * x, beta * fabs(was) + fabs(x));
}

static Answer adamw_m(const Call *c, long i) { return adamw_moment(number_of(c, "beta1"), old(c, "m", i), clipped(c, i)); }

static Answer adamw_v(const Call *c, long i)
{
    double g = clipped(c, i);
    return adamw_moment(number_of(c, "beta2"), old(c, "v", i), g * g);
}

static Answer adamw_p(const Call *c, long i)
{
    const Values *v = c->vals;
    double p = old(c, "p", i), root = sqrt(adamw_v(c, i).value / v->bias2) + number_of(c, "eps");
    double change = v->lr * adamw_m(c, i).value / v->bias1 / root;
    return near(p * (1 - v->lr * decay(c)) - change, fabs(p) * 0x1p-5 + fabs(change));
}

static Answer nadamw_p(const Call *c, long i)
{
    const Values *v = c->vals;
    double p = old(c, "p", i), beta = number_of(c, "beta1"), root = sqrt(adamw_v(c, i).value / v->bias2) + number_of(c, "eps");
    double next = beta / (1 - beta * (1 - v->bias1)) * adamw_m(c, i).value, now = (1 - beta) / v->bias1 * clipped(c, i);
    double size = v->lr * (fabs(next) + fabs(now)) / root;
    return near(p * (1 - v->lr * decay(c)) - v->lr * (next + now) / root, fabs(p) * 0x1p-5 + size);
}

static Answer predict_to(const Call *c, long i)
{
    double a = old(c, "newer", i), b = old(c, "older", i), n = number_of(c, "ahead");
    return near(a + n * (a - b), fabs(a) + n * (fabs(a) + fabs(b)));
}

#define ELEMENT "g=n other=n p=n c=n m=n v=n clip=1 to=n newer=n older=n old=n centre=n"

static const Known known[] = {
    {"nadamw_update", "p", ELEMENT, nadamw_p, 0, 0}, {"nadamw_update", "c", ELEMENT, nadamw_p, 0, 0},
    {"nadamw_update", "m", ELEMENT, adamw_m, 0, 0}, {"nadamw_update", "v", ELEMENT, adamw_v, 0, 0},
    {"adamw_update", "p", ELEMENT, adamw_p, 0, 0}, {"adamw_update", "c", ELEMENT, adamw_p, 0, 0},
    {"adamw_update", "m", ELEMENT, adamw_m, 0, 0}, {"adamw_update", "v", ELEMENT, adamw_v, 0, 0},
    {"predict", "to", ELEMENT, predict_to, 0, 0},
    {NULL, NULL, NULL, NULL, 0, 0},
};

const Answers answers_adam = {known};
