/* SPDX-License-Identifier: Apache-2.0
 *
 * shape_language.c: the shape rules of today's language models: rotary positions, gates, soft caps.
 */
#include "build.h"

bool size_gate(Sizer *z)
{
    const Shape *a = in_shape(z, 0), *b = in_shape(z, 1);
    if (!shape_same(a, b))
        return refuse(z, NULL, "a and b have one shape, not %s and %s", shape_text(a), shape_text(b));
    attr_set(z->o, "n", shape_elements(a));
    return out_shape(z, 0, *a);
}

bool size_softcap(Sizer *z)
{
    const Shape *x = in_shape(z, 0);
    if (!((float)attr_find(z->o, "cap")->f > 0))
        return refuse(z, NULL, "cap must be above 0, not %g", attr_find(z->o, "cap")->f);
    attr_set(z->o, "n", shape_elements(x));
    return out_shape(z, 0, *x);
}

/* Frequencies: theta^(-2j/dims), 1 the highest; all of them, divided by `factor`, are to be normal floats. */
static bool frequencies(Sizer *z)
{
    double theta = attr_find(z->o, "theta")->f, factor = attr_find(z->o, "factor")->f;
    double low = attr_find(z->o, "low")->f, high = attr_find(z->o, "high")->f;
    if (!(theta >= 1 && theta <= 1e12))
        return refuse(z, "theta: 1e4", "theta is from 1 to 1e12, not %g", theta);
    if (!(factor >= 1 && factor <= 1e6))
        return refuse(z, NULL, "factor is from 1 to 1e6, not %g", factor);
    if (attr_int(z->o, "scaling") >= 3 && !(theta > 1))
        return refuse(z, "theta: 1e4", "yarn takes a theta above 1, not %g", theta);
    if (!(low > 0 && (float)low < (float)high && high <= 1e6))
        return refuse(z, "low: 1, high: 4", "low is above 0 and below high, not %g and %g", low, high);
    return true;
}

/* Where positions begin anew: operand 1 of such a row. */
bool documents_fit(Sizer *z, int64_t batch, int64_t seq)
{
    const Shape want = {2, {batch, seq}};
    return z->o->in.n < 2 || z->o->in.at[1] < 0 || shape_same(in_shape(z, 1), &want) ||
           refuse(z, NULL, "documents must be [batch, positions] = %s, not %s", shape_text(&want), shape_text(in_shape(z, 1)));
}

enum { FAR = 1 << 20 };         /* positions; angles stay where their cosine is known */

/* The sizes of heads and pairs. */
static bool heads_fit(Sizer *z)
{
    const Shape *x = in_shape(z, 0);
    int64_t width = attr_int(z->o, "width"), dims = attr_find(z->o, "dims") ? attr_int(z->o, "dims") : width;
    if (x->n != 3 || x->d[2] % width)
        return refuse(z, NULL, "takes [B, positions, heads*width] with a width of %lld, not %s", (Num)width, shape_text(x));
    if (dims % 2 || dims > width)
        return refuse(z, NULL, "dims is even and at most the width of a head, %lld, not %lld", (Num)width, (Num)dims);
    if (x->d[1] > FAR)
        return refuse(z, NULL, "more than %d positions", FAR);
    ATTRS(z->o, {"batch", x->d[0]}, {"seq", x->d[1]}, {"heads", x->d[2] / width}, {"dims", dims});
    return documents_fit(z, x->d[0], x->d[1]);
}

bool size_rotary(Sizer *z)
{
    if (attr_int(z->o, "original") > FAR)
        return refuse(z, NULL, "more than %d positions", FAR);
    return heads_fit(z) && frequencies(z) && out_shape(z, 0, *in_shape(z, 0));
}

bool size_rotary_table(Sizer *z)
{
    double theta = attr_find(z->o, "theta")->f;
    if (!heads_fit(z) || !par_shape(z, 0, (Shape){1, {attr_int(z->o, "dims") / 2}}))
        return false;
    const Init *init = &z->g->state.at[z->o->par.at[0]].init;
    if (!(theta >= 1 && theta <= 1e12))
        return refuse(z, "theta: 1e4", "theta is from 1 to 1e12, not %g", theta);
    if (init->kind != INIT_VALUES && init->kind != INIT_ONES)
        return refuse(z, "init: NAME, and in model.init NAME: {values: [...]}", "its factors have no values");
    for (const char *p = init->values; p; p = strchr(p, ','), p = p ? p + 2 : NULL)
        if (!(number_decimal(p, strcspn(p, ",")) >= 0.25))
            return refuse(z, NULL, "a factor is at least 0.25, not %.*s", (int)strcspn(p, ","), p);
    return out_shape(z, 0, *in_shape(z, 0));
}
