/* SPDX-License-Identifier: Apache-2.0
 *
 * onnx_fold.c: arithmetic on shapes, and on other numbers of the file.
 *
 * Numbers are vectors or scalars.  Integers are held in doubles, exact to 2^53; what goes beyond only ever means `to the end`.
 */
#include "net.h"
#include <math.h>

typedef struct { Net *g; const NetNode *n; const double *x[4]; int64_t count[4]; } OnnxFold;

static NetValue *operand(const OnnxFold *f, int i)
{
    return &f->g->value.at[f->n->in.at[i]];
}

static int give(const OnnxFold *f, Dims d, const double *number, bool whole)
{
    int v = net_numbers(f->g, d, number);
    f->g->value.at[v].whole = whole;
    for (int i = 0; i < f->n->in.n; i++)
        f->g->value.at[v].learns |= f->n->in.at[i] >= 0 && operand(f, i)->learns;
    return v;
}

static int vector(const OnnxFold *f, int64_t n, const double *number, bool whole)
{
    return give(f, (Dims){1, {n}}, number, whole);
}

/* The same numbers under other axes. */
static int fold_same(OnnxFold *f)
{
    Dims d = {1, {f->count[0]}};
    bool scalar = !strcmp(f->n->op, "Squeeze") && f->count[0] == 1;
    bool keep = !strcmp(f->n->op, "Identity") || !strncmp(f->n->op, "Cast", 4);
    double *x = alloc((size_t)f->count[0] * sizeof *x + 1);
    int64_t to = node_integer(f->n, "to", 0);
    bool whole = to == 6 || to == 7 || (!to && operand(f, 0)->whole);
    for (int64_t i = 0; i < f->count[0]; i++)
        x[i] = whole ? trunc(f->x[0][i]) : f->x[0][i];
    return give(f, keep ? operand(f, 0)->dims : scalar ? (Dims){0, {0}} : d, x, whole);
}

static double compute(char op, double a, double b, bool whole)
{
    double y = op == 'A' ? a + b : op == 'S' ? a - b : op == 'M' ? a * b : b == 0 ? NAN : a / b;
    return whole ? trunc(y) : y;
}

static int fold_binary(OnnxFold *f)
{
    int64_t n = f->count[0] > f->count[1] ? f->count[0] : f->count[1];
    bool whole = operand(f, 0)->whole && operand(f, 1)->whole;
    double *y = alloc((size_t)n * sizeof *y + 1);
    if (f->count[0] != f->count[1] && f->count[0] != 1 && f->count[1] != 1)
        net_refuse(f->g, "numbers of two sizes");
    for (int64_t i = 0; i < n; i++)
        y[i] = compute(*f->n->op, f->x[0][f->count[0] == 1 ? 0 : i], f->x[1][f->count[1] == 1 ? 0 : i], whole);
    return give(f, operand(f, f->count[0] >= f->count[1] ? 0 : 1)->dims, y, whole);
}

static int fold_gather(OnnxFold *f)
{
    double *y = alloc((size_t)f->count[1] * sizeof *y + 1);
    if (operand(f, 0)->dims.n != 1)
        return -1;
    for (int64_t i = 0; i < f->count[1]; i++) {
        double at = f->x[1][i] + (f->x[1][i] < 0 ? (double)f->count[0] : 0);
        if (!(at >= 0 && at < (double)f->count[0]))
            net_refuse(f->g, "it takes a number that is not there");
        y[i] = f->x[0][(int64_t)at];
    }
    return give(f, operand(f, 1)->dims, y, operand(f, 0)->whole);
}

static int fold_concat(OnnxFold *f)
{
    Numbers all = {0};
    for (int i = 0; i < f->n->in.n; i++) {
        const double *x = net_known(f->g, f->n->in.at[i]);
        int64_t n = x ? dims_elements(&operand(f, i)->dims) : 0;
        for (int64_t k = 0; k < n; k++)
            *PUSH(&all) = x[k];
    }
    return vector(f, all.n, all.at, operand(f, 0)->whole);
}

/* The same numbers with the axes of operand 1; -1 stands for what is left. */
static int fold_reshape(OnnxFold *f)
{
    Dims d = {.n = (int)f->count[1]};
    int64_t rest = f->count[0];
    int open = -1;
    if (f->count[1] > MOST_DIMS || f->count[1] < 1)
        return fold_same(f);
    for (int i = 0; i < d.n; i++) {
        d.d[i] = (int64_t)fmin(fmax(f->x[1][i], -1), 4096);
        if (d.d[i] < 0)
            open = i;
        else if (d.d[i] > 0)
            rest /= d.d[i];
    }
    if (open >= 0)
        d.d[open] = rest;
    return dims_elements(&d) == f->count[0] ? give(f, d, f->x[0], operand(f, 0)->whole) : fold_same(f);
}

/* Rows and columns of a matrix exchanged, or its rows from the last to the first */
static int fold_matrix(OnnxFold *f, bool turn)
{
    Dims d = operand(f, 0)->dims, to = {2, {turn ? d.d[1] : d.d[0], turn ? d.d[0] : d.d[1]}};
    double *y = alloc((size_t)f->count[0] * sizeof *y + 1);
    for (int64_t r = 0; r < d.d[0]; r++)
        for (int64_t k = 0; k < d.d[1]; k++)
            y[turn ? k * d.d[0] + r : (d.d[0] - 1 - r) * d.d[1] + k] = f->x[0][r * d.d[1] + k];
    return give(f, to, y, operand(f, 0)->whole);
}

static int fold_transpose(OnnxFold *f)
{
    return operand(f, 0)->dims.n == 2 && operand(f, 0)->kind == VALUE_NUMBERS ? fold_matrix(f, true) : -1;
}

static int fold_slice(OnnxFold *f)
{
    const double *step = f->n->in.n > 4 ? net_known(f->g, f->n->in.at[4]) : NULL, *axis = f->x[3];
    if (step && *step == -1)
        return operand(f, 0)->dims.n == 2 && (!axis || *axis == 0) && f->x[1][0] == -1 && f->x[2][0] < -4096
            ? fold_matrix(f, false) : -1;
    if (step && *step != 1)
        return -1;
    double n = (double)f->count[0], from = f->x[1][0], to = f->x[2][0];
    from = from < 0 ? from + n : from, to = to < 0 ? to + n : to;
    from = fmin(fmax(from, 0), n), to = fmin(fmax(to, from), n);
    bool whole = operand(f, 0)->whole;
    return operand(f, 0)->dims.n == 1 ? vector(f, (int64_t)(to - from), f->x[0] + (int64_t)from, whole) : -1;
}

static int fold_filled(OnnxFold *f)
{
    Dims d = {.n = (int)f->count[0]};
    const NetArgument *a = node_argument(f->n, "value");
    int value = a && a->tensor.n ? a->tensor.at[0] : -1;
    const double *with = net_known(f->g, value);
    if (a && (!with || dims_elements(&f->g->value.at[value].dims) != 1))
        net_refuse(f->g, "its value is not one number");
    if (f->count[0] > MOST_DIMS)
        net_refuse(f->g, "its result has more than %d axes", MOST_DIMS);
    for (int i = 0; i < d.n; i++)
        d.d[i] = f->x[0][i] >= 0 && f->x[0][i] < 4096 ? (int64_t)f->x[0][i] : -1;
    int64_t n = dims_elements(&d);
    if (n < 0 || n > 4096)
        return -1;
    double *y = alloc((size_t)n * sizeof *y + 1);
    for (int64_t i = 0; i < n && with; i++)
        y[i] = *with;
    return give(f, d, y, a && f->g->value.at[value].whole);
}

static int fold_range(OnnxFold *f)
{
    Numbers all = {0};
    double from = f->x[0][0], to = f->x[1][0], step = f->x[2][0];
    for (double at = from; all.n < 4096 && (step > 0 ? at < to : step < 0 && at > to); at += step)
        *PUSH(&all) = at;
    return vector(f, all.n, all.at, operand(f, 0)->whole);
}

static const struct { const char *op; int operands; int (*fold)(OnnxFold *f); } folds[] = {
    {"Identity", 1, fold_same}, {"Cast", 1, fold_same}, {"CastLike", 1, fold_same}, {"Squeeze", 1, fold_same},
    {"Unsqueeze", 1, fold_same}, {"Reshape", 2, fold_reshape}, {"Transpose", 1, fold_transpose},
    {"Flatten", 1, fold_same}, {"Add", 2, fold_binary},
    {"Sub", 2, fold_binary}, {"Mul", 2, fold_binary}, {"Div", 2, fold_binary}, {"Gather", 2, fold_gather},
    {"Concat", 1, fold_concat}, {"Slice", 3, fold_slice}, {"ConstantOfShape", 1, fold_filled}, {"Range", 3, fold_range}
};

int onnx_fold(Net *g, const NetNode *n)
{
    OnnxFold f = {.g = g, .n = n};
    if ((!strcmp(n->op, "Shape") || !strcmp(n->op, "Size")) && n->in.n == 1 && n->in.at[0] >= 0) {
        const NetValue *v = &g->value.at[n->in.at[0]];
        int rank = v->dims.n, from = (int)node_integer(n, "start", 0), to = (int)node_integer(n, "end", rank);
        double *x = alloc(MOST_DIMS * sizeof *x);
        from += from < 0 ? rank : 0, to += to < 0 ? rank : 0;
        int k = 0;
        for (int i = from < 0 ? 0 : from; i < to && i < rank; i++)
            x[k++] = (double)v->dims.d[i];
        bool size = !strcmp(n->op, "Size");
        *x = size ? (double)dims_elements(&v->dims) : *x;
        int y = net_numbers(g, size ? (Dims){0, {0}} : (Dims){1, {k}}, x);
        g->value.at[y].whole = true;
        return y;
    }
    for (size_t i = 0; i < sizeof folds / sizeof *folds; i++) {
        if (strcmp(folds[i].op, n->op))
            continue;
        int known = 0;
        const NetValue *v = n->in.n && n->in.at[0] >= 0 ? &g->value.at[n->in.at[0]] : NULL;
        bool moves = folds[i].fold == fold_same || folds[i].fold == fold_reshape || folds[i].fold == fold_transpose;
        if (v && v->kind == VALUE_WEIGHT && moves && !v->whole && (dims_elements(&v->dims) != 1 || v->learns))
            return -1;          /* a weight stays one */
        bool all = !strcmp(n->op, "Concat");
        for (int k = 0; k < n->in.n && (all || k < folds[i].operands); k++) {
            const double *x = net_known(g, n->in.at[k]);
            if (x && g->value.at[n->in.at[k]].turned)
                return -1;
            int64_t count = x ? dims_elements(&g->value.at[n->in.at[k]].dims) : 0;
            known += x != NULL;
            if (k < 4)
                f.x[k] = x, f.count[k] = count;
            if (x && k > 0 && count == 0 && !all)
                known = -1;
        }
        return known == (all ? n->in.n : folds[i].operands) && known > 0 ? folds[i].fold(&f) : -1;
    }
    return -1;
}
