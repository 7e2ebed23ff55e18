/* SPDX-License-Identifier: Apache-2.0
 *
 * axes.c: the axes of a row's operands, as ops.def names them.
 *
 * Problem.  Whoever divides an operator among devices must know along what, and what becomes of each operand.
 *
 * Method.  A row says it once, in the form of einsum: "rows in, out in, out -> rows out".  Everything else follows.  An operand
 * with the axis is cut, one without it is there whole.  A result without it is a sum over the parts, and so is the gradient of
 * an operand without it.  nnScaler (Z. Lin et al., OSDI 2024) annotates operators in this form, for values alone.  Here the
 * line is also checked against each tensor's size, in every graph (check/graph.c), and against the bits of kernels
 * (tests/axes.c).
 *
 * Cost: a hundred letters a question; nothing is kept.
 */
#include "build/axes.h"
#include <ctype.h>

static void copy_word(char *to, const char *from, size_t n)
{
    if (n >= sizeof (RowAxis){0}.name)
        die("ops.def: an axis of %d letters", (int)n);
    memcpy(to, from, n);
    to[n] = 0;
}

/* The number of an axis, which is new or was named before. */
static int axis_number(RowAxes *a, const char *word, size_t n)
{
    RowAxis one = {.whole = *word == '*', .several = n > 2 && !memcmp(word + n - 2, ">1", 2)};
    copy_word(one.name, word + one.whole, n - (size_t)one.whole - 2 * (size_t)one.several);
    for (int i = 0; i < a->axes; i++)
        if (!strcmp(a->axis[i].name, one.name)) {
            a->axis[i].whole |= one.whole;
            return i;
        }
    if (a->axes == MOST_AXES)
        die("ops.def: more than %d axes", MOST_AXES);
    one.whole |= !isalpha((unsigned char)one.name[0]) || strpbrk(one.name, "+*/") != NULL;
    a->axis[a->axes] = one;
    return a->axes++;
}

/* "rows", "rows^experts": of such parts only a row of ops.def knows what to do. */
static int dim_number(RowAxes *a, const char *word, size_t n)
{
    const char *by = memchr(word, '^', n);
    int dim = axis_number(a, word, by ? (size_t)(by - word) : n);
    if (by) {
        int leads = axis_number(a, by + 1, n - (size_t)(by + 1 - word));
        a->axis[leads].whole = true;
        a->axis[dim].by = leads + 1;
    }
    return dim;
}

static const char *read_dims(RowAxes *a, AxisList *to, const char *p, const char *between)
{
    for (p += strspn(p, " "); *p && !strchr(",;-", *p); p += strspn(p, between)) {
        size_t n = strcspn(p, strchr(between, '*') ? "*,;" : " ,;");
        if (to->n == AXES_DIMS)
            die("ops.def: more than %d dimensions", AXES_DIMS);
        to->dim[to->n++] = dim_number(a, p, n);
        p += n;
    }
    return p;
}

bool axis_leads(const RowAxes *a, int axis)
{
    bool leads = false;
    for (int i = 0; i < a->axes; i++)
        leads |= a->axis[i].by == axis + 1;
    return leads;
}

RowAxes row_axes(const Row *r)
{
    RowAxes of = {0}, *to = &of;
    const char *p = r->axes;
    if (!strcmp(p, "*"))
        return of;
    while (*p && *p != ';') {
        if (*p == '-')          /* "->", behind the last operand */
            p += 2;
        if (!*p)
            break;              /* no result */
        if (to->lists == AXES_LISTS)
            die("ops.def: row %s: more than %d operands", r->name, AXES_LISTS);
        p = read_dims(to, &to->list[to->lists++], p, " ");
        p += *p == ',';
    }
    if (to->lists != r->in.n + r->par.n + r->out.n)
        die("ops.def: row %s: axes of %d operands, parameters and results", r->name, to->lists);
    while (*p == ';') {
        size_t n = strcspn(p += 1 + strspn(p + 1, " "), "=");
        if (to->products == AXES_PRODUCTS)
            die("ops.def: row %s: more than %d products", r->name, AXES_PRODUCTS);
        copy_word(to->product[to->products].attr, p, n);
        p = read_dims(to, &to->product[to->products++].of, p + n + 1, "*");
    }
    return of;
}

/* ---- sizes ------------------------------------------------------------------------------------------------------ */

static int64_t word_size(const char *word, size_t n, int64_t (*of)(const void *, const char *), const void *ctx)
{
    char name[sizeof (RowAxis){0}.name];
    copy_word(name, word, n);
    return isdigit((unsigned char)*name) ? strtoll(name, NULL, 10) : of(ctx, name);
}

/* A sum of products and quotients, or one word; -1: a word has no value. */
static int64_t expression(const char *p, int64_t (*of)(const void *, const char *), const void *ctx)
{
    int64_t sum = 0, product = 1;
    for (char sign = '*'; ; sign = *p++) {
        size_t n = strcspn(p, "+*/");
        int64_t v = word_size(p, n, of, ctx);
        if (v < 0 || (sign == '/' && !v))
            return -1;
        sum += sign == '+' ? product : 0;
        product = sign == '+' ? v : sign == '*' ? product * v : product / v;
        p += n;
        if (!*p)
            return sum + product;
    }
}

int64_t axis_size(const RowAxes *a, int axis, int64_t (*of)(const void *, const char *), const void *ctx)
{
    int64_t v = expression(a->axis[axis].name, of, ctx);
    for (int k = 0; v < 0 && k < a->products; k++) {
        int64_t all = of(ctx, a->product[k].attr), others = 1;
        bool among = false;
        for (int i = 0; i < a->product[k].of.n; i++) {
            int other = a->product[k].of.dim[i];
            among |= other == axis;
            others *= other == axis ? 1 : expression(a->axis[other].name, of, ctx);
        }
        v = among && others > 0 && all >= 0 ? all / others : v;
    }
    return v;
}

int64_t dims_size(const RowAxes *a, const AxisList *d, int64_t (*of)(const void *, const char *), const void *ctx)
{
    int64_t n = 1;
    for (int i = 0; i < d->n; i++) {
        int64_t v = axis_size(a, d->dim[i], of, ctx);
        if (v < 0)
            return -1;
        n *= v;
    }
    return n;
}
