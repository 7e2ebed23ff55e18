/* SPDX-License-Identifier: Apache-2.0
 *
 * answers_rmsprop.c: RMSprop.
 */
#include "answers.h"

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

#define ELEMENT "g=n other=n p=n c=n m=n v=n clip=1 to=n newer=n older=n old=n centre=n"

static const Known known[] = {
    {"rmsprop_update", "p", ELEMENT, rmsprop_p, 0, 0}, {"rmsprop_update", "c", ELEMENT, rmsprop_p, 0, 0},
    {"rmsprop_update", "m", ELEMENT, rmsprop_m, 0, 0}, {"rmsprop_update", "v", ELEMENT, rmsprop_v, 0, 0},
    {"rmsprop_centred", "p", ELEMENT, rmsprop_p, 0, 0}, {"rmsprop_centred", "c", ELEMENT, rmsprop_p, 0, 0},
    {"rmsprop_centred", "m", ELEMENT, rmsprop_m, 0, 0}, {"rmsprop_centred", "v", ELEMENT, rmsprop_v, 0, 0},
    {"rmsprop_centred", "centre", ELEMENT, rmsprop_centre, 0, 0},
    {NULL, NULL, NULL, NULL, 0, 0},
};

const Answers answers_rmsprop = {known};
