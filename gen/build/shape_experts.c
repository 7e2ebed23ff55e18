/* SPDX-License-Identifier: Apache-2.0
 *
 * shape_experts.c: the shape rules of experts.  A kernel trusts slots and offsets, so they must be those of a Route, and the
 * same one for what belongs together.
 */
#include "build.h"

enum { MOST_EXPERTS = 1024, MOST_GROUPS = 64, MOST_BEST = 8 };   /* rt/op/experts.c */

/* The Route that has made operand i as its result `name`; NULL after a complaint. */
static const Op *route_of(const Sizer *z, int i, const char *name)
{
    const Tensor *t = &z->g->tensor.at[z->o->in.at[i]];
    const Op *o = t->kind == T_ACT ? &z->g->op.at[t->op] : NULL;
    const Row *r = o ? row(o->row) : NULL;
    for (int k = 0; r && !strcmp(r->name, "Route") && k < r->out.n; k++)
        if (o->out.at[k] == z->o->in.at[i] && !strcmp(r->out.at[k].name, name))
            return o;
    refuse(z, "{op: Route, top: 2, as: [share, expert, slot, offset]}", "takes the %s of a Route, and %s is none", name,
           t->name);
    return NULL;
}

bool size_route(Sizer *z)
{
    const Shape *x = in_shape(z, 0);
    int64_t experts = x->d[x->n - 1], rows = shape_size(x, 0, x->n - 1), top = attr_int(z->o, "top");
    int64_t groups = attr_int(z->o, "groups"), kept = attr_int(z->o, "kept"), best = attr_int(z->o, "best");
    Shape each = *x;
    each.d[x->n - 1] = top;
    if (x->n < 2)
        return refuse(z, NULL, "takes [..., experts], not %s", shape_text(x));
    if (experts > MOST_EXPERTS || top > experts)
        return refuse(z, NULL, "top %lld of %lld experts: there are at most %d, and `top` is at most their number", (Num)top,
                      (Num)experts, MOST_EXPERTS);
    if (groups > MOST_GROUPS || experts % groups || kept > groups || best > experts / groups || best > MOST_BEST)
        return refuse(z, NULL, "%lld groups of %lld experts, %lld kept for their %lld best: there are at most %d groups, "
                      "which divide the experts, and %d best", (Num)groups, (Num)experts, (Num)kept, (Num)best, MOST_GROUPS,
                      MOST_BEST);
    if (groups > 1 && top > experts / groups * kept)
        return refuse(z, NULL, "top %lld of %lld groups of %lld experts is too many", (Num)top, (Num)kept,
                      (Num)(experts / groups));
    if (rows > INT32_MAX / top)
        return refuse(z, NULL, "%lld rows are too many", (Num)rows);
    ATTRS(z->o, {"rows", rows}, {"experts", experts});
    return par_shape(z, 0, (Shape){1, {experts}}) && out_shape(z, 0, each) && out_shape(z, 1, each) && out_shape(z, 2, each) &&
           out_shape(z, 3, (Shape){1, {experts + 1}});
}

/* rows, top and width of what goes to experts, or comes back. */
static void sizes(Sizer *z, const Op *route, int64_t width)
{
    ATTRS(z->o, {"rows", attr_int(route, "rows")}, {"top", attr_int(route, "top")}, {"width", width},
          {"experts", attr_int(route, "experts")});
}

/* Rows of all devices, where each has those of its experts. */
static int64_t rows_bytes(const Sizer *z)
{
    return attr_int(z->o, "rows") * attr_int(z->o, "top") * attr_int(z->o, "width") * type_bytes(z->g->compute);
}

bool size_dispatch(Sizer *z)
{
    const Shape *x = in_shape(z, 0);
    const Op *route = route_of(z, 1, "slot");
    if (!route)
        return false;
    int64_t rows = attr_int(route, "rows"), width = x->d[x->n - 1];
    if (shape_size(x, 0, x->n - 1) != rows)
        return refuse(z, NULL, "the slots are of %lld rows, and x is %s", (Num)rows, shape_text(x));
    sizes(z, route, width);
    attr_set(z->o, "tmp.I", rows_bytes(z));
    const int64_t experts = attr_int(z->o, "experts") / z->m->plan.tensor;
    attr_set(z->o, "most", rows * min_of(experts, attr_int(z->o, "top")));
    return out_shape(z, 0, (Shape){2, {rows * attr_int(route, "top"), width}});
}

bool size_grouped(Sizer *z)
{
    const Shape *x = in_shape(z, 0);
    const Op *route = route_of(z, 1, "offset");
    if (!route)
        return false;
    int64_t rows = attr_int(route, "rows") * attr_int(route, "top"), experts = attr_int(z->o, "experts");
    int64_t out = attr_int(z->o, "out");
    if (x->n != 2 || x->d[0] != rows)
        return refuse(z, NULL, "the offsets are of %lld rows, and x is %s", (Num)rows, shape_text(x));
    if (experts != attr_int(route, "experts"))
        return refuse(z, NULL, "%lld experts, and the Route has %lld", (Num)experts, (Num)attr_int(route, "experts"));
    ATTRS(z->o, {"rows", rows}, {"in", x->d[1]});
    return par_shape(z, 0, (Shape){3, {experts, out, x->d[1]}}) && par_shape(z, 1, (Shape){2, {experts, out}}) &&
           out_shape(z, 0, (Shape){2, {rows, out}});
}

bool size_combine(Sizer *z)
{
    const Shape *x = in_shape(z, 0), *share = in_shape(z, 1);
    const Op *route = route_of(z, 2, "slot");
    if (!route)
        return false;
    const Shape *each = &z->g->tensor.at[route->out.at[0]].shape;
    int64_t rows = attr_int(route, "rows"), top = attr_int(route, "top");
    if (x->n != 2 || x->d[0] != rows * top || !shape_same(share, each))
        return refuse(z, NULL, "takes rows [%lld, width] and shares %s, not %s and %s", (Num)(rows * top), shape_text(each),
                      shape_text(x), shape_text(share));
    Shape y = *each;
    y.d[y.n - 1] = x->d[1];
    sizes(z, route, x->d[1]);
    attr_set(z->o, "tmp.F", rows_bytes(z));
    return out_shape(z, 0, y);
}

bool size_route_loss(Sizer *z)
{
    const Shape *x = in_shape(z, 0);
    const Op *route = route_of(z, 1, "expert");
    double factor = attr_find(z->o, "factor")->f;
    if (!route)
        return false;
    if (!shape_same(x, &z->g->tensor.at[route->in.at[0]].shape))
        return refuse(z, NULL, "x is %s, and the experts are chosen by %s", shape_text(x),
                      shape_text(&z->g->tensor.at[route->in.at[0]].shape));
    if (!(factor >= 0 && factor <= 1e6))
        return refuse(z, "factor: 0.01", "factor is from 0 to 1e6, not %g", factor);
    ATTRS(z->o, {"rows", attr_int(route, "rows")}, {"experts", attr_int(route, "experts")}, {"top", attr_int(route, "top")});
    return out_shape(z, 0, (Shape){1, {1}});
}
