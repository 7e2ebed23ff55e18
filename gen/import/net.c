/* SPDX-License-Identifier: Apache-2.0
 *
 * net.c: values and lines of a graph that is being read.
 *
 * What only depends on numbers of the file is folded while it is read, so that arithmetic on shapes leaves no lines.
 */
#include "net.h"
#include <math.h>
#include <stdarg.h>

/* FILE: node: text, for a message */
static const char *told(const Net *g, const char *form, va_list list)
{
    char text[1024];
    vsnprintf(text, sizeof text, form, list);
    return strf("%s: %s%s%s", g->path, g->node ? quote_terminal(g->node) : "", g->node ? ": " : "", quote_terminal(text));
}

NORETURN void net_refuse(const Net *g, const char *form, ...)
{
    va_list list;
    va_start(list, form);
    fail(EXIT_MODEL, "%s%s", told(g, form, list), g->node ? "; make the model without it, or end the graph before it" : "");
}

NORETURN void net_advise(const Net *g, const char *remedy, const char *form, ...)
{
    va_list list;
    va_start(list, form);
    fail(EXIT_MODEL, "%s; %s", told(g, form, list), remedy);
}

/* ---- values ------------------------------------------------------------------------------------------------------------ */

int64_t dims_elements(const Dims *d)
{
    int64_t n = 1;
    for (int i = 0; i < d->n; i++) {
        if (d->d[i] < 0 || (d->d[i] && n > INT32_MAX * (int64_t)4096 / d->d[i]))
            return -1;
        n *= d->d[i];
    }
    return n;
}

bool dims_same(const Dims *a, const Dims *b)
{
    return a->n == b->n && !memcmp(a->d, b->d, (size_t)a->n * sizeof *a->d);
}

static const char *samples(int64_t n)
{
    return n == NET_ANY_BATCH ? "any number of" : strf("%lld", (long long)n);
}

int net_input(Net *g, const char *name, Dims dims, bool whole)
{
    if (dims.n < 1 || dims_elements(&dims) < 1)
        net_refuse(g, "input '%s' has no first axis for the samples, or an axis of no elements", name);
    if (g->inputs.n == 0)
        g->batch = dims.d[0];
    else if (dims.d[0] != g->batch)
        net_advise(g, "the first axis of each input has to be that of the samples: what is the same for all, or a state "
                   "of a recurrent layer, cannot be an input", "input '%s' has %s samples, and input '%s' has %s",
                   g->value.at[g->inputs.at[0]].name, samples(g->batch), name, samples(dims.d[0]));
    *PUSH(&g->value) = (NetValue){.name = name, .dims = dims, .last = !whole && dims.n == 4, .whole = whole, .line = -1};
    *PUSH(&g->inputs) = g->value.n - 1;
    return g->value.n - 1;
}

int net_weight(Net *g, const char *name, const char *type, Dims dims, const unsigned char *at, int64_t bytes)
{
    if (safe_bytes(type, dims.n, dims.d) != bytes)
        net_refuse(g, "'%s' has %lld bytes, and its shape and type want others", name, (long long)bytes);
    *PUSH(&g->value) = (NetValue){.name = name, .kind = VALUE_WEIGHT, .dims = dims, .type = type, .at = at,
                                  .stored = dims, .line = -1, .whole = *type == 'I' || *type == 'U'};
    return g->value.n - 1;
}

int net_numbers(Net *g, Dims dims, const double *number)
{
    *PUSH(&g->value) = (NetValue){.kind = VALUE_NUMBERS, .dims = dims, .number = number, .line = -1};
    return g->value.n - 1;
}

static double number_at(const NetValue *v, int64_t i, int size)
{
    uint64_t bits = number_little(v->at + i * size, size);
    float f;
    double d;
    uint32_t low = (uint32_t)bits;
    if (!strcmp(v->type, "F32"))
        return memcpy(&f, &low, sizeof f), f;
    if (!strcmp(v->type, "F64"))
        return memcpy(&d, &bits, sizeof d), d;
    if (*v->type == 'I')
        return size == 8 ? (double)(int64_t)bits : size == 4 ? (int32_t)low : size == 2 ? (int16_t)low : (int8_t)low;
    return *v->type == 'U' || !strcmp(v->type, "BOOL") ? (double)bits : NAN;
}

const double *net_known(Net *g, int value)
{
    NetValue *v = value < 0 ? NULL : &g->value.at[value];
    int64_t n = v ? dims_elements(&v->dims) : 0;
    enum { MOST_KNOWN = 4096 };         /* arithmetic on shapes has few numbers */
    if (!v || v->number || v->kind != VALUE_WEIGHT || n < 0 || n > MOST_KNOWN)
        return v ? v->number : NULL;
    double *number = alloc((size_t)n * sizeof *number + 1);
    int size = (int)safe_bytes(v->type, 0, NULL);
    for (int64_t i = 0; i < n; i++)
        number[i] = number_at(v, i, size);
    return v->number = number;
}

int64_t net_bounded(double x)
{
    return x >= -1e15 && x <= 1e15 ? (int64_t)x : x < 0 ? (int64_t)-1e15 : (int64_t)1e15;
}

int64_t net_integer(Net *g, int value)
{
    const double *x = net_known(g, value);
    if (!x || dims_elements(&g->value.at[value].dims) != 1 || !(fabs(*x) < 0x1p52))
        net_refuse(g, "a number is expected that does not depend on the data");
    return (int64_t)*x;
}

/* ---- lines ------------------------------------------------------------------------------------------------------------- */

int net_line(Net *g, const char *op, const char *attributes, int in, Dims dims, bool last)
{
    if (dims_elements(&dims) < 1 || dims.n < 1 || dims.d[0] != g->batch)
        net_refuse(g, "its result mixes samples: its first axis is not that of the samples, %lld", (long long)g->batch);
    *PUSH(&g->value) = (NetValue){.kind = VALUE_ACT, .dims = dims, .last = last, .line = g->line.n};
    *PUSH(&g->line) = (Made){.op = op, .attributes = attributes, .out = g->value.n - 1, .node = g->node, .module = g->module};
    if (in >= 0)
        net_also(g, g->value.n - 1, in);
    return g->value.n - 1;
}

void net_also(Net *g, int value, int in)
{
    if (g->value.at[in].view)
        net_advise(g, "make recurrent layers with batch_first=True",
                   "the first axis of its operand is not that of the samples");
    *PUSH(&g->line.at[g->value.at[value].line].in) = in;
}

void net_want_weight(const Net *g, int value, const char *role)
{
    NetValueKind kind = g->value.at[value].kind;
    if (kind != VALUE_WEIGHT)
        net_refuse(g, "its %s is computed from %s, and no tensor of the file", role, kind == VALUE_ACT ? "the data"
                   : "numbers of the file");
}

void net_role(Net *g, int value, const char *role, int weight, bool turned, Dims dims)
{
    if (weight < 0)
        return;
    Made *l = &g->line.at[g->value.at[value].line];
    const NetValue *v = &g->value.at[weight];
    net_want_weight(g, weight, role);
    if (dims_elements(&v->dims) != dims_elements(&dims))
        net_refuse(g, "its %s '%s' has %lld numbers, and %lld are expected", role, v->name, (long long)dims_elements(&v->dims),
                   (long long)dims_elements(&dims));
    if (v->folded)
        net_advise(g, g->remedy, "its %s '%s' is made of several: BatchNorm is folded into a product, or a matrix is turned, "
                   "and such a model cannot be trained as it was", role, v->name);
    l->role[l->roles++] = (NetRole){role, weight, turned, false, dims};
}

int net_axes_of(Net *g, int weight, Dims dims)
{
    NetValue v = g->value.at[weight];
    if (dims_elements(&dims) != dims_elements(&v.dims) || v.turned)
        net_refuse(g, "it gives '%s' other axes, and it has another number of elements or is turned", v.name);
    v.dims = dims;
    *PUSH(&g->value) = v;
    return g->value.n - 1;
}

const Made *net_made(const Net *g, int value)
{
    int line = value < 0 ? -1 : g->value.at[value].line;
    return line < 0 ? NULL : &g->line.at[line];
}

int net_last(const NetNames *names, const char *name)
{
    for (int i = names->n - 1; i >= 0; i--)
        if (!strcmp(names->at[i].name, name))
            return names->at[i].value;
    return -1;
}
