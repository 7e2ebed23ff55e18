/* SPDX-License-Identifier: Apache-2.0
 *
 * dims.c: which numbers of a graph are dims of the model.
 *
 * That two numbers are equal says little: 256 may be the vocabulary, or samples times tokens.  So the graph is made again for
 * each dim, with that one doubled, or halved where the model does not allow that.  A number is a dim if it has its value,
 * changes as it does, and changes with no other.  A dim that cannot change gives no name.
 *
 *   needs   a finished plan and its model     fills   Dims     fails   never
 *
 * Cost: build and shape, once a dim; a look-up for each number that equals a dim.  Numbers of the update have no names.
 */
#include "emit.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>

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

static int by_name(const void *a, const void *b)
{
    return strcmp(((const DimsEntry *)a)->name, ((const DimsEntry *)b)->name);
}

/* Operators, tensors and states begin with their name. */
static DimsEntry *sorted(const void *at, size_t size, int n)
{
    DimsEntry *list = alloc(sizeof *list * (size_t)(n + 1));
    for (int i = 0; i < n; i++)
        list[i] = (DimsEntry){*(const char *const *)((const char *)at + size * (size_t)i), i};
    qsort(list, (size_t)n, sizeof *list, by_name);
    return list;
}

static int find(const DimsEntry *list, int n, const char *name)
{
    const DimsEntry key = {name, 0}, *found = bsearch(&key, list, (size_t)n, sizeof key, by_name);
    return found ? found->index : -1;
}

EmitDims *dims_of(const Plan *p)
{
    EmitDims *d = alloc(sizeof *d);
    *PUSH(&d->dim) = (Dim){.name = "B", .value = p->g->batch};
    for (int i = 0; i < p->m->dims.n; i++)
        *PUSH(&d->dim) = p->m->dims.at[i];
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

/* The same number in another graph; -1: it is not there. */
typedef struct { enum { ATTR, TENSOR, STATE } kind; const char *name, *token; int axis; } Number;

static int64_t value_in(const DimsMade *x, const Number *n)
{
    int at = n->kind == ATTR ? find(x->op, x->g->op.n, n->name)
           : n->kind == TENSOR ? find(x->tensor, x->g->tensor.n, n->name) : find(x->state, x->g->state.n, n->name);
    if (at < 0)
        return -1;
    if (n->kind != ATTR) {
        const Shape *s = n->kind == TENSOR ? &x->g->tensor.at[at].shape : &x->g->state.at[at].shape;
        return n->axis < s->n ? s->d[n->axis] : -1;
    }
    const Op *o = &x->g->op.at[at];
    for (int i = 0; i < o->attr.n; i++)
        if (!strcmp(o->attr.at[i].name, n->token))
            return o->attr.at[i].i;
    return -1;
}

static bool is_dim(const EmitDims *d, int dim, const Number *n, int64_t value)
{
    if (d->dim.at[dim].value != value || !d->made[dim].g)
        return false;
    for (int i = 0; i < d->dim.n; i++)
        if (d->made[i].g && value_in(&d->made[i], n) != (i == dim ? d->made[i].value : value))
            return false;
    return true;
}

static int which(const EmitDims *d, const Number *n, int64_t value)
{
    for (int i = 0; i < d->dim.n; i++)
        if (is_dim(d, i, n, value))
            return i;
    return -1;
}

int dims_arg(const EmitDims *d, const Graph *g, const Op *o, const Arg *a)
{
    return o->fwd < 0 ? -1 : which(d, &(Number){ATTR, g->op.at[o->fwd].name, a->token, 0}, a->i);
}

int dims_axis(const EmitDims *d, const Graph *g, const Buf *b, int axis)
{
    if (b->tensor >= 0) {
        const Tensor *t = &g->tensor.at[b->tensor];
        const char *name = t->kind == T_GRAD && t->of >= 0 ? g->tensor.at[t->of].name : t->name;
        return which(d, &(Number){TENSOR, name, "", axis}, t->shape.d[axis]);
    }
    const State *s = b->state >= 0 ? &g->state.at[b->state] : NULL;
    return s && s->param >= 0 ? which(d, &(Number){STATE, g->state.at[s->param].name, "", axis}, s->shape.d[axis]) : -1;
}
