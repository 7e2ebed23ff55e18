/* SPDX-License-Identifier: Apache-2.0
 *
 * shape_recurrent.c: the shape rules of recurrent layers.
 */
#include "build.h"

/* x is what a Linear gives to the gates: [batch time 4 hidden]. */
bool size_recur(Sizer *z)
{
    const Shape *x = in_shape(z, 0);
    int64_t hidden = attr_int(z->o, "hidden");
    if (x->n != 3)
        return refuse(z, NULL, "an LSTM takes [batch, steps, width], not %s", shape_text(x));
    int64_t batch = x->d[0], time = x->d[1];
    const Shape mask = {2, {batch, time}}, y = {3, {batch, time, hidden}};
    if (z->o->in.at[1] >= 0 && !shape_same(in_shape(z, 1), &mask))
        return refuse(z, NULL, "mask must be [batch, steps] = %s, not %s", shape_text(&mask), shape_text(in_shape(z, 1)));
    Bytes each = type_bytes(z->g->compute), rows = batch * hidden;
    Bytes weight = attr_find(z->o, "drop")->f != 0 ? 4 * hidden * hidden : 0;
    if (!shape_drop(z, weight))
        return false;
    shape_site(z);
    ATTRS(z->o, {"batch", batch}, {"time", time});
    /* what the steps give to the gates, and h; gradients of h, before and behind a step, and of c; h of the step before.
     * Behind them what is left of the weight, or its gradient */
    ATTRS(z->o, {"tmp.F", rows * (4 * type_bytes(F32) + each) + weight * each},
          {"tmp.I", rows * 3 * type_bytes(F32) + weight * each}, {"tmp.W", weight * type_bytes(F32) + rows * time * each});
    return par_shape(z, 0, (Shape){2, {4 * hidden, hidden}}) && par_shape(z, 1, (Shape){1, {4 * hidden}}) &&
           out_shape(z, 0, y) && out_shape(z, 1, y) && out_shape(z, 2, *x);
}

bool size_additive(Sizer *z)
{
    const Shape *q = in_shape(z, 0), *k = in_shape(z, 1);
    if (q->n != 3 || k->n != 3 || q->d[0] != k->d[0] || q->d[2] != k->d[2])
        return refuse(z, NULL, "takes [batch, queries, width] and [batch, keys, width], not %s and %s", shape_text(q),
                      shape_text(k));
    int64_t batch = q->d[0], query = q->d[1], key = k->d[1], width = q->d[2], most = query > key ? query : key;
    const Shape mask = {2, {batch, key}}, one = {1, {1}}, row = {1, {width}};
    if (z->o->in.at[2] >= 0 && !shape_same(in_shape(z, 2), &mask))
        return refuse(z, NULL, "mask must be [batch, keys] = %s, not %s", shape_text(&mask), shape_text(in_shape(z, 2)));
    ATTRS(z->o, {"batch", batch}, {"query", query}, {"key", key}, {"width", width});
    attr_set(z->o, "tmp.F", (width + 1) * type_bytes(F32));            /* the weight over its norm, and 1/norm */
    attr_set(z->o, "tmp.I", 2 * width * (1 + batch * most) * type_bytes(F32));
    return par_shape(z, 0, row) && par_shape(z, 1, one) && par_shape(z, 2, row) &&
           out_shape(z, 0, (Shape){3, {batch, query, key}});
}
