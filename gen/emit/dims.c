/* SPDX-License-Identifier: Apache-2.0
 *
 * dims.c: which numbers of a graph are dims of the model.
 *
 * That two numbers are equal says little: 256 may be the vocabulary, or samples times tokens.  So the graph is made again for
 * each dim, with that one doubled, or halved where the model does not allow that.  A number is a dim if it has its value,
 * changes as it does, and changes with no other.  A number that two or more dims change in proportion is their product, times
 * what is left: B*T, 3*D, D*D.  A dim that cannot change gives no name.
 *
 *   needs   a finished plan and its model     fills   Dims     fails   never
 *
 * Cost: build and shape, once a dim; a look-up for each number that equals a dim.  Numbers of the update have no names.
 */
#include "emit.h"
#include <limits.h>

typedef struct { const char *name; int index; } DimsEntry;
/* By a dim of value; sorted names. */
typedef struct { const Graph *g; int64_t value; DimsEntry *op, *tensor, *state; } DimsMade;
struct EmitDims {
    VEC(Dim) dim;               /* B is the first */
    DimsMade *made;             /* by dim: where it has another value; g NULL: nowhere */
};

/* ---- the model with one dim changed ------------------------------------------------------------------------------- */

typedef struct { Model m; Graph *g; } DimsTrial;

static void try_graph(void *ctx)
{
    DimsTrial *t = ctx;
    t->g = build(&t->m);
    shape(t->g, &t->m);
    fp8(t->g, &t->m);
    bad_stop();
}

static Graph *changed(const Plan *p, int dim, int64_t value)
{
    DimsTrial *t = alloc(sizeof *t);
    t->m = *p->m;
    t->m.train.batch = dim == 0 ? value : p->g->batch;
    t->m.train.micro = p->g->micro;
    t->m.dims.at = alloc(sizeof *t->m.dims.at * (size_t)(p->m->dims.n + 1));
    for (int i = 0; i < p->m->dims.n; i++) {
        t->m.dims.at[i] = p->m->dims.at[i];
        if (dim == i + 1)
            t->m.dims.at[i].value = value;
    }
    return diag_accepts(try_graph, t) ? t->g : NULL;
}

/* Operators, tensors and states begin with their name. */
static DimsEntry *sorted(const void *at, size_t size, int n)
{
    DimsEntry *list = alloc(sizeof *list * (size_t)(n + 1));
    for (int i = 0; i < n; i++)
        list[i] = (DimsEntry){*(const char *const *)((const char *)at + size * (size_t)i), i};
    SORT(list, n, text_order);
    return list;
}

static int find(const DimsEntry *list, int n, const char *name)
{
    const DimsEntry key = {name, 0}, *found = bsearch(&key, list, (size_t)n, sizeof key, text_order);
    return found ? found->index : -1;
}

EmitDims *dims_of(const Plan *p)
{
    EmitDims *d = alloc(sizeof *d);
    *PUSH(&d->dim) = (Dim){.name = "B", .value = p->g->batch};
    APPEND(&d->dim, p->m->dims);
    d->made = alloc(sizeof *d->made * (size_t)d->dim.n);
    for (int i = 0; i < d->dim.n; i++) {
        DimsMade *x = &d->made[i];
        int64_t value = d->dim.at[i].value;
        if (value < 1 || value > INT_MAX / 2)
            continue;
        x->g = changed(p, i, x->value = 2 * value);
        if (!x->g && value % 2 == 0)
            x->g = changed(p, i, x->value = value / 2);
        if (!x->g)
            continue;
        x->op = sorted(x->g->op.at, sizeof *x->g->op.at, x->g->op.n);
        x->tensor = sorted(x->g->tensor.at, sizeof *x->g->tensor.at, x->g->tensor.n);
        x->state = sorted(x->g->state.at, sizeof *x->g->state.at, x->g->state.n);
    }
    return d;
}

/* ---- questions --------------------------------------------------------------------------------------------------- */

int dims_count(const EmitDims *d)
{
    return d->dim.n;
}

const Dim *dims_at(const EmitDims *d, int i)
{
    return &d->dim.at[i];
}

/* A number of a graph, found by name in another one: an attribute of an operator, an axis of a shape, or, axis -1, bytes. */
typedef struct { enum { ATTR, TENSOR, STATE } kind; const char *name, *token; int axis; } Number;

/* -1: it is not there */
static int64_t value_in(const DimsMade *x, const Number *n)
{
    int at = n->kind == ATTR ? find(x->op, x->g->op.n, n->name)
           : n->kind == TENSOR ? find(x->tensor, x->g->tensor.n, n->name) : find(x->state, x->g->state.n, n->name);
    if (at < 0)
        return -1;
    if (n->kind != ATTR && n->axis < 0)
        return n->kind == TENSOR ? x->g->tensor.at[at].bytes : x->g->state.at[at].bytes;
    if (n->kind != ATTR) {
        const Shape *s = n->kind == TENSOR ? &x->g->tensor.at[at].shape : &x->g->state.at[at].shape;
        return n->axis < s->n ? s->d[n->axis] : -1;
    }
    const Attr *a = attr_find(&x->g->op.at[at], n->token);
    return a ? a->i : -1;
}

/* How often the dim is a factor of the number: 0, 1, 2; -1: it changes it otherwise. */
static int power_of(const DimsMade *x, int64_t from, const Number *n, int64_t value)
{
    int64_t changed = value_in(x, n);
    bool grows = x->value > from;
    for (int power = 0; power < 3; power++)
        if (grows ? changed == value << power : changed << power == value)
            return power;
    return -1;
}

/* The number as it is printed; per: of bytes, those of an element. */
static const char *print(const EmitDims *d, const char *const *name, const Number *n, int64_t value, int64_t per)
{
    const char *text = "", *digits = strf("%" PRId64, value / per);
    int64_t rest = value / per;
    for (int i = 0; i < d->dim.n && value > 0; i++) {
        int64_t dim = d->dim.at[i].value;
        int power = d->made[i].g ? power_of(&d->made[i], dim, n, value) : 0;
        if (power < 0 || (power > 0 && !name[i]))
            return digits;
        for (; power > 0; power--, rest /= dim) {
            if (rest % dim)
                return digits;
            text = strf("%s%s%s", text, *text ? "*" : "", name[i]);
        }
    }
    if (!*text)
        return digits;
    bool large = value / per > INT32_MAX;               /* dims are ints, and so would their product be */
    return large ? strf("%" PRId64 "L*%s", rest, text) : rest > 1 ? strf("%" PRId64 "*%s", rest, text) : text;
}

const char *dims_arg(const EmitDims *d, const char *const *name, const Graph *g, const Op *o, const Arg *a)
{
    if (o->fwd >= 0)
        return print(d, name, &(Number){ATTR, g->op.at[o->fwd].name, a->token, 0}, a->i, 1);
    for (int i = 0; i < o->arg.n && arg_role(a) == ROLE_COUNT; i++) {       /* of an update: the elements of a parameter */
        const State *s = o->arg.at[i].state ? &g->state.at[o->arg.at[i].index] : NULL;
        if (s && s->param >= 0 && s->bytes == a->i * type_bytes(F32) && s->bytes == g->state.at[s->param].bytes)
            return dims_bytes(d, name, g, -1, s->param, s->bytes, type_bytes(F32));
    }
    return strf("%" PRId64, a->i);
}

/* A gradient has the shape of what it is of. */
static const char *tensor_name(const Graph *g, int tensor)
{
    const Tensor *t = &g->tensor.at[tensor];
    return t->kind == T_GRAD && t->of >= 0 ? g->tensor.at[t->of].name : t->name;
}

const char *dims_axis(const EmitDims *d, const char *const *name, const Graph *g, const Buf *b, int axis)
{
    if (b->tensor >= 0)
        return print(d, name, &(Number){TENSOR, tensor_name(g, b->tensor), "", axis}, g->tensor.at[b->tensor].shape.d[axis], 1);
    const State *s = b->state >= 0 ? &g->state.at[b->state] : NULL;
    if (s && s->param >= 0)
        return print(d, name, &(Number){STATE, g->state.at[s->param].name, "", axis}, s->shape.d[axis], 1);
    return s ? strf("%" PRId64, s->shape.d[axis]) : "";
}

const char *dims_bytes(const EmitDims *d, const char *const *name, const Graph *g, int tensor, int state, Bytes bytes,
                       int64_t per)
{
    if (tensor >= 0 && bytes == g->tensor.at[tensor].bytes)
        return print(d, name, &(Number){TENSOR, tensor_name(g, tensor), "", -1}, bytes, per);
    const State *s = state >= 0 ? &g->state.at[state] : NULL;
    if (s && s->param >= 0 && bytes == s->bytes && bytes == g->state.at[s->param].bytes)
        return print(d, name, &(Number){STATE, g->state.at[s->param].name, "", -1}, bytes, per);
    return strf("%" PRId64, bytes / per);
}
