/* SPDX-License-Identifier: Apache-2.0
 *
 * shape.c: sizes of everything, in one walk through the operators.
 *
 * Each row of ops.def names a rule of shape_ops.c.  A rule checks the operands, sizes results and parameters, and
 * sets every attribute that the calls of the row name.  Then the forward call is bound, and its arithmetic is
 * evaluated from the row's expression.
 *
 * needs: build.  fills: shapes, types, bytes, parameter sizes, S_VALUES, attributes, Graph.count, forward calls, flop,
 * moved.  keeps: operators and their order.  fails: bad() for each operator whose operands do not fit; what depends
 * on it is passed over, so that one mistake is one message.
 */
#include "build.h"
#include "rt/quantize.h"
#include <math.h>
#include <stdarg.h>

const Shape *in_shape(const Sizer *z, int i)
{
    return &z->g->tensor.at[z->o->in.at[i]].shape;
}

bool refuse(const Sizer *z, const char *hint, const char *form, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, form);
    vsnprintf(text, sizeof text, form, ap);
    va_end(ap);
    bad(z->o->loc, hint, "%s (%s): %s", z->o->name, z->r->name, text);
    return false;
}

/* Bytes of a tensor or state, or a complaint. */
static bool bytes_of(const Sizer *z, const char *name, const Shape *s, Type type, Bytes *bytes)
{
    int64_t n = shape_elements(s);
    if (n >= MAX_BYTES / type_bytes(type))
        return refuse(z, NULL, "%s %s would take 2^48 bytes or more", name, shape_text(s));
    *bytes = n * type_bytes(type);
    return true;
}

bool out_shape(Sizer *z, int i, Shape s)
{
    Tensor *t = &z->g->tensor.at[z->o->out.at[i]];
    if (!s.n)
        s = (Shape){1, {1}};
    if (!bytes_of(z, t->name, &s, t->type, &t->bytes))
        return false;
    t->shape = s;
    return true;
}

/* The bound of an adapter's start values, or the deviation of a rule `kaiming` (He et al., Delving Deep into Rectifiers, 2015).
 * The fan is the number of values that a result reads, or of results that read a value. */
static bool fan(const Sizer *z, State *p, const Shape *s)
{
    if (p->init.kind == INIT_SINES && (s->n != 2 || s->d[1] < 4))
        return refuse(z, "sines are for a table of rows, 4 wide at least", "%s is %s", p->name, shape_text(s));
    if (p->init.kind == INIT_VALUES && p->init.a != (double)shape_elements(s))
        return refuse(z, NULL, "%s is %s, and the rule '%s' has %.0f values", p->name, shape_text(s), p->init.name, p->init.a);
    if (!p->init.fan)
        return true;
    if (s->n < 2)
        return refuse(z, "kaiming is for weights", "%s %s has no fan", p->name, shape_text(s));
    double of = (double)(shape_size(s, 2, s->n) * s->d[p->init.fan == FAN_IN]);
    p->init.b = p->init.kind == INIT_UNIFORM ? 1 / sqrt(of) : sqrt(2 / of);
    if (p->init.kind == INIT_UNIFORM)
        p->init.a = -p->init.b;
    return true;
}

bool par_shape(Sizer *z, int i, Shape s)
{
    int index = z->o->par.at[i];
    if (index < 0)
        return true;
    State *p = &z->g->state.at[index];
    if (p->shape.n && !shape_same(&p->shape, &s))
        return refuse(z, NULL, "tied parameter %s has shape %s, and here it would be %s", p->name,
                      shape_text(&p->shape), shape_text(&s));
    if (!bytes_of(z, p->name, &s, F32, &p->bytes))
        return false;
    if (!fan(z, p, &s))
        return false;
    p->shape = s;
    p->decay &= !z->m->train.decay_matrices || s.n >= 2;
    if (p->bits) {
        p[1].shape = (Shape){1, {quantized_bytes(p->bits, s.d[0], s.d[1])}};
        return bytes_of(z, p[1].name, &p[1].shape, U8, &p[1].bytes);
    }
    if (index + 1 < z->g->state.n && p[1].kind == S_COPY) {
        p[1].shape = s;
        return bytes_of(z, p[1].name, &s, BF16, &p[1].bytes);
    }
    return true;
}

static bool attr_value(void *ctx, const char *name, double *value)
{
    const Attr *a = attr_find(ctx, name);
    *value = !a ? 0 : a->is_int ? (double)a->i : a->f;
    return a;
}

/* Takes an expression off text, up to one of `ends`, which goes too. */
static int64_t take_count(const Op *fwd, const char **text, const char *ends)
{
    size_t n = strcspn(*text, ends);
    const char *one = strf("%.*s", (int)n, *text);
    *text += n + ((*text)[n] != 0);
    return *one ? expr_int(fwd->loc, one, attr_value, (void *)(uintptr_t)fwd) : 0;
}

void op_work(Op *o, const Op *fwd, Type compute, const char *text)
{
    int64_t products = take_count(fwd, &text, "|");
    bool counted = strchr(text, ';') != NULL;
    o->pass_flop = take_count(fwd, &text, ",;");
    o->pass_moved = take_count(fwd, &text, "") * type_bytes(compute);
    o->flop = products + o->pass_flop;
    o->moved += counted ? 0 : o->pass_moved;
}

void bind_forward(Graph *g, Op *o)
{
    bind_call(g, o, row(o->row)->call[PH_F], NULL, NULL, NULL);
    op_work(o, o, g->compute, row(o->row)->flop[PH_F]);
}

static const ShapeRule *rule_of(const Row *r)
{
    for (const ShapeRule *s = shape_rules; s->name; s++)
        if (!strcmp(s->name, r->shape))
            return s;
    die("row %s: no shape rule %s", r->name, r->shape);
}

static void size(Graph *g, const Model *m, int i)
{
    Op *o = &g->op.at[i];
    Sizer z = {g, m, o, row(o->row)};
    for (int k = 0; k < o->in.n; k++)
        if (o->in.at[k] >= 0 && !g->tensor.at[o->in.at[k]].shape.n)
            return;
    if (!rule_of(z.r)->size(&z))
        return;
    z.r = row(o->row);                      /* the rule may have chosen another row */
    bind_call(g, o, z.r->call[PH_F], NULL, NULL, NULL);
    /* A lookup reads the rows it is asked for, not the table. */
    if (!strcmp(row(o->row)->shape, "embedding"))
        o->moved = 2 * g->tensor.at[o->out.at[0]].bytes + g->tensor.at[o->in.at[0]].bytes;
    op_work(o, o, g->compute, z.r->flop[PH_F]);
}

void shape(Graph *g, const Model *m)
{
    /* Step values: in every stage's arena, as rt.h lays them out, and no byte more: every planned byte is written.  Those of
     * parameter groups, which have rates of their own, lie behind them. */
    State s = {.name = "values", .kind = S_VALUES, .type = F32, .param = -1, .op = -1, .loc = {0, 0, 0}};
    s.bytes = (1 + m->train.param_group.n) * (Bytes)sizeof(Values);
    s.shape = (Shape){1, {s.bytes / 4}};
    g->vals = g->state.n;
    *PUSH(&g->state) = s;
    for (int i = 0; i < g->nf; i++)
        size(g, m, i);
    bad_stop();
}
