/* SPDX-License-Identifier: Apache-2.0
 *
 * answers_update.c: an element of a call of phase U, in f64 from the call's operands: norms of gradients, the optimisers,
 * predicted weights.  The formulas are those of rt/op/update.c.
 */
#include <math.h>
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

static Answer tie_g(const Call *c, long i) { return exact(old(c, "g", i) + old(c, "other", i)); }

static Answer partial_norm(const Call *c, long i)
{
    Answer a = {0, 0};
    if (i != of(c, "index"))
        return exact(old(c, "norm", i));
    for (long j = 0; j < of(c, "n"); j++)
        plus(&a, old(c, "g", j) * old(c, "g", j));
    return a;
}

/* Of the elements of one block. */
static Answer block_norms(const Call *c, long i)
{
    Answer a = {0, 0};
    long each = of(c, "each"), from = (i - of(c, "first")) * each, until = from + each < of(c, "n") ? from + each : of(c, "n");
    if (i < of(c, "first"))
        return exact(old(c, "blocks", i));
    for (; from < until; from++)
        plus(&a, old(c, "g", from) * old(c, "g", from));
    return a;
}

static Answer block_sum(const Call *c, long i)
{
    Answer a = {0, 0};
    if (i != of(c, "index"))
        return exact(old(c, "norm", i));
    for (long j = 0; j < of(c, "n"); j++)
        plus(&a, old(c, "blocks", of(c, "first") + j));
    return a;
}

static Answer total_clip(const Call *c, long i)
{
    double sum = 0;
    (void)i;
    for (long j = 0; j < of(c, "count"); j++)
        sum += old(c, "norm", j);
    double factor = number_of(c, "limit") / (sqrt(sum) + 1e-6);
    return exact(fmin(factor, 1));
}

static double clipped(const Call *c, long i)
{
    return old(c, "g", i) * (part_of(c, "clip") ? old(c, "clip", 0) : 1);
}

static double decay(const Call *c) { return of(c, "decay") ? (double)c->vals->weight_decay : 0; }

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

/* The gradient with decay: its square is that of a sum. */
static Answer decayed(const Call *c, long i)
{
    Answer a = {0, 0};
    plus(&a, clipped(c, i));
    plus(&a, decay(c) * old(c, "p", i));
    return a;
}

static Answer rmsprop_v(const Call *c, long i)
{
    Answer d = decayed(c, i);
    double alpha = number_of(c, "alpha"), v = alpha * old(c, "v", i);
    return near(v + (1 - alpha) * d.value * d.value, v + (1 - alpha) * d.terms * d.terms);
}

/* The mean of gradients, where there is one. */
static Answer rmsprop_centre(const Call *c, long i)
{
    Answer d = decayed(c, i);
    double alpha = number_of(c, "alpha"), was = part_of(c, "centre") ? old(c, "centre", i) : 0;
    return near(was + (1 - alpha) * (d.value - was), fabs(was) + (1 - alpha) * (d.terms + fabs(was)));
}

/* Near zero a rounding of v is one of its root too: the size is that of the root of all terms. */
static Answer rmsprop_m(const Call *c, long i)
{
    Answer d = decayed(c, i), v = rmsprop_v(c, i), a = rmsprop_centre(c, i);
    if (part_of(c, "centre"))
        v = near(fmax(v.value - a.value * a.value, 0), v.terms + a.terms * a.terms);
    double under = sqrt(v.value) + number_of(c, "eps"), was = part_of(c, "m") ? number_of(c, "momentum") * old(c, "m", i) : 0;
    return near(was + d.value / under, fabs(was) + d.terms / under * (1 + v.terms / (v.value + 1e-300)));
}

static Answer rmsprop_p(const Call *c, long i)
{
    Answer m = rmsprop_m(c, i);
    return near(old(c, "p", i) - c->vals->lr * m.value, fabs(old(c, "p", i)) + c->vals->lr * m.terms);
}

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

/* The gradients are `late` updates old: rt/op/update.c, spike. */
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

static Answer aged(const Call *c, long i)
{
    double before = old(c, "amax", i);
    return (Answer){old(c, "seen", i) > 0 ? number_of(c, "history") : before > 0 ? before - 1 : 0, 0};
}

#define ELEMENT "g=n other=n p=n c=n m=n v=n clip=1 to=n newer=n older=n old=n centre=n"

const Known known_updates[] = {
    {"tie_add", "g", ELEMENT, tie_g, 0, 0},
    {"norm_partial", "norm", "norm=index+1 g=n", partial_norm, 0, 0},
    {"norm_blocks", "blocks", "blocks=first+1 g=n", block_norms, 0, 0},
    {"norm_sum", "norm", "norm=index+1 blocks=first+n", block_sum, 0, 0},
    {"norm_total", "clip", "clip=1 norm=count", total_clip, 0, 0},
    {"sgd_update", "p", ELEMENT, sgd_p, 0, 0}, {"sgd_update", "c", ELEMENT, sgd_p, 0, 0},
    {"sgd_update", "m", ELEMENT, sgd_m, 0, 0},
    {"sgd_spike", "p", ELEMENT, spike_p, 0, 0}, {"sgd_spike", "c", ELEMENT, spike_p, 0, 0},
    {"sgd_spike", "m", ELEMENT, sgd_m, 0, 0},
    {"sgd_drift", "p", ELEMENT, drift_p, 0, 0}, {"sgd_drift", "c", ELEMENT, drift_p, 0, 0},
    {"sgd_drift", "m", ELEMENT, sgd_m, 0, 0}, {"sgd_drift", "old", ELEMENT, drift_old, 0, 0},
    {"predict_old", "to", ELEMENT, predict_old_to, 0, 0},
    {"nadamw_update", "p", ELEMENT, nadamw_p, 0, 0}, {"nadamw_update", "c", ELEMENT, nadamw_p, 0, 0},
    {"nadamw_update", "m", ELEMENT, adamw_m, 0, 0}, {"nadamw_update", "v", ELEMENT, adamw_v, 0, 0},
    {"adamw_update", "p", ELEMENT, adamw_p, 0, 0}, {"adamw_update", "c", ELEMENT, adamw_p, 0, 0},
    {"adamw_update", "m", ELEMENT, adamw_m, 0, 0}, {"adamw_update", "v", ELEMENT, adamw_v, 0, 0},
    {"predict", "to", ELEMENT, predict_to, 0, 0},
    {"sgd_nesterov", "p", ELEMENT, nesterov_p, 0, 0}, {"sgd_nesterov", "c", ELEMENT, nesterov_p, 0, 0},
    {"sgd_nesterov", "m", ELEMENT, sgd_m, 0, 0},
    {"rmsprop_update", "p", ELEMENT, rmsprop_p, 0, 0}, {"rmsprop_update", "c", ELEMENT, rmsprop_p, 0, 0},
    {"rmsprop_update", "m", ELEMENT, rmsprop_m, 0, 0}, {"rmsprop_update", "v", ELEMENT, rmsprop_v, 0, 0},
    {"rmsprop_centred", "p", ELEMENT, rmsprop_p, 0, 0}, {"rmsprop_centred", "c", ELEMENT, rmsprop_p, 0, 0},
    {"rmsprop_centred", "m", ELEMENT, rmsprop_m, 0, 0}, {"rmsprop_centred", "v", ELEMENT, rmsprop_v, 0, 0},
    {"rmsprop_centred", "centre", ELEMENT, rmsprop_centre, 0, 0},
    {"fp8_track", "amax", "amax=n seen=n", aged, 0, 0},
    {NULL, NULL, NULL, NULL, 0, 0},
};
