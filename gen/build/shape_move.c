/* SPDX-License-Identifier: Apache-2.0
 *
 * shape_move.c: the shape rules of operators that move elements, or add them up along an axis.
 */
#include "build.h"

/* An axis as 0 .. n-1, -1 after a complaint. */
static int axis_of(Sizer *z, const Shape *x, int64_t a)
{
    if (a < -x->n || a >= x->n) {
        refuse(z, NULL, "axis %lld of %s", (Num)a, shape_text(x));
        return -1;
    }
    return (int)(a < 0 ? a + x->n : a);
}

static int axis(Sizer *z, const Shape *x)
{
    return axis_of(z, x, attr_int(z->o, "axis"));
}

bool size_concat(Sizer *z)
{
    Shape y = *in_shape(z, 0);
    int at = axis(z, &y);
    if (at < 0)
        return false;
    int64_t inner = shape_size(&y, at + 1, y.n);
    y.d[at] = 0;
    for (int i = 0; i < z->r->in.n; i++) {
        const char *length = strf("n%s", z->r->in.at[i].name);
        attr_set(z->o, length, 0);
        if (z->o->in.at[i] < 0)
            continue;
        Shape x = *in_shape(z, i);
        int64_t here = x.n > at ? x.d[at] : 0;
        x.d[at] = y.d[at];
        if (!shape_same(&x, &y))
            return refuse(z, NULL, "operands may differ in axis %d alone: %s and %s", at, shape_text(in_shape(z, 0)),
                          shape_text(in_shape(z, i)));
        y.d[at] += here;
        attr_set(z->o, length, here * inner);
    }
    attr_set(z->o, "outer", shape_size(&y, 0, at));
    return out_shape(z, 0, y);
}

/* A part of a Split into equal parts knows its number; the others know where they begin.  What all parts suffer from,
 * the first says. */
static bool slice_range(Sizer *z, int64_t whole, int64_t *from, int64_t *count)
{
    int64_t parts = attr_int(z->o, "parts");
    if (parts && whole % parts)
        return attr_int(z->o, "part") ? false : refuse(z, NULL, "%lld elements cannot be split into %lld equal parts",
                                               (Num)whole, (Num)parts);
    *count = parts ? whole / parts : attr_int(z->o, "length");
    *from = parts ? *count * attr_int(z->o, "part") : attr_int(z->o, "start");
    if (*from < 0 && !parts)
        *from += whole;
    if (attr_find(z->o, "total") && attr_int(z->o, "total") != whole)
        return attr_int(z->o, "part") ? false : refuse(z, NULL, "sizes add up to %lld, and the axis has %lld elements",
                                               (Num)attr_int(z->o, "total"),
                      (Num)whole);
    if (*count < 1 || *from < 0 || *from > whole || *count > whole - *from)
        return refuse(z, NULL, "%lld elements from %lld on do not lie in an axis of %lld", (Num)*count, (Num)*from,
                      (Num)whole);
    return true;
}

bool size_slice(Sizer *z)
{
    Shape y = *in_shape(z, 0);
    int at = axis(z, &y);
    int64_t from = 0, count = 0;
    if (at < 0 || !slice_range(z, y.d[at], &from, &count))
        return false;
    int64_t inner = shape_size(&y, at + 1, y.n);
    ATTRS(z->o, {"outer", shape_size(&y, 0, at)}, {"whole", y.d[at] * inner}, {"from", from * inner},
          {"count", count * inner});
    y.d[at] = count;
    return out_shape(z, 0, y);
}

/* The shape that a line asks for; one dimension may be -1: what is left. */
static bool wanted_shape(Sizer *z, int64_t n, Shape *y)
{
    int open = -1;
    y->n = (int)attr_int(z->o, "shape");
    if (y->n > MAXDIM)
        return refuse(z, NULL, "a tensor has at most %d dimensions", MAXDIM);
    for (int i = 0; i < y->n; i++) {
        y->d[i] = attr_int(z->o, strf("shape.%d", i));
        if (y->d[i] == -1 && open < 0)
            y->d[open = i] = 1;
        else if (y->d[i] < 1)
            return refuse(z, NULL, "dimension %d of the new shape is %lld", i, (Num)y->d[i]);
    }
    if (open >= 0)
        y->d[open] = n / shape_elements(y);
    if (shape_elements(y) != n)
        return refuse(z, NULL, "%s does not have the %lld elements of %s", shape_text(y), (Num)n,
                      shape_text(in_shape(z, 0)));
    return true;
}

bool size_reshape(Sizer *z)
{
    const Shape *x = in_shape(z, 0);
    Shape y = {2, {x->d[0], shape_size(x, 1, x->n)}};
    attr_set(z->o, "n", shape_elements(x));
    return (attr_int(z->o, "flatten") || wanted_shape(z, shape_elements(x), &y)) && out_shape(z, 0, y);
}

/* Fewer than four dimensions get ones in front, which stay where they are. */
bool size_transpose(Sizer *z)
{
    const Shape *x = in_shape(z, 0);
    Shape y = *x;
    int64_t d[4] = {1, 1, 1, 1}, p[4] = {0, 1, 2, 3}, seen = 0;
    int pad = 4 - x->n;
    if (x->n > 4 || attr_int(z->o, "perm") != x->n)
        return refuse(z, NULL, "perm of %lld for %s: it names each of up to four dimensions once",
                      (Num)attr_int(z->o, "perm"), shape_text(x));
    for (int i = 0; i < x->n; i++) {
        int64_t from = attr_int(z->o, strf("perm.%d", i));
        if (from < 0 || from >= x->n || seen >> from & 1)
            return refuse(z, "perm: [0, 2, 1] swaps the last two of three",
                          "perm names %lld twice, or there is no such dimension", (Num)from);
        seen |= (int64_t)1 << from;
        d[pad + i] = x->d[i];
        p[pad + i] = from + pad;
        y.d[i] = x->d[from];
    }
    for (int i = 0; i < 4; i++) {
        ATTRS(z->o, {strf("d%d", i), d[i]}, {strf("p%d", i), p[i]}, {strf("e%d", i), d[p[i]]}, {strf("q%d", (int)p[i]), i});
    }
    return out_shape(z, 0, y);
}

/* One axis, or neighbouring ones in order: the first, and how many; false after a complaint. */
static bool axes(Sizer *z, const Shape *x, int *first, int *n)
{
    *n = (int)attr_int(z->o, "axis");
    for (int i = 0; i < *n; i++) {
        int at = axis_of(z, x, attr_int(z->o, strf("axis.%d", i)));
        if (at < 0)
            return false;
        *first = i ? *first : at;
        if (at != *first + i)
            return refuse(z, "axis: [1, 2]; others in a line of their own",
                          "several axes are neighbours, in order: %d does not follow %d", at, *first + i - 1);
    }
    return *n < x->n || refuse(z, "Reshape it first", "all axes of %s go: nothing is left", shape_text(x));
}

bool size_reduce(Sizer *z)
{
    Shape y = *in_shape(z, 0);
    int at = 0, n = 0;
    if (attr_find(z->o, "keep"))
        return size_image_mean(z);
    if (!axes(z, &y, &at, &n))
        return false;
    int64_t mid = shape_size(&y, at, at + n);
    ATTRS(z->o, {"outer", shape_size(&y, 0, at)}, {"mid", mid}, {"inner", shape_size(&y, at + n, y.n)});
    attr_set_float(z->o, "factor", !strcmp(z->r->name, "Mean") ? 1 / (double)mid : 1);
    y.n -= n;
    memmove(y.d + at, y.d + at + n, (size_t)(y.n - at) * sizeof y.d[0]);
    return out_shape(z, 0, y);
}
