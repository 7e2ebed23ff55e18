/* SPDX-License-Identifier: Apache-2.0
 *
 * formula.c: formulas of model files and of layers.def, over whole numbers, numbers and lists of whole numbers.
 *
 *     sum = product (('+' | '-') product)*     product = factor (('*' | '/') factor)*
 *     factor = ('-' | '+') factor | '(' sum ')' | NUMBER | NAME | FUNCTION '(' sum (',' sum)* ')'
 *
 * Whole numbers are exact to 64 bits; 7/2 is 3.5.  In layers.def a name that is absent is 0; in a model file it is a fault.
 */
#include "model.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_OPERANDS = 16, DEEP = 64 };
typedef struct { const Env *env; const char *p; int deep; bool absent; const char *fault; } Text;

const Val *env_get(const Env *e, const char *name)
{
    for (; e; e = e->up)
        for (int i = e->n; i-- > 0;)
            if (!strcmp(e->at[i].name, name))
                return &e->at[i].val;
    return NULL;
}

void env_set(Env *e, const char *name, Val v)
{
    Named *to = ADD(e);
    *to = (Named){name, v};
}

Val val_int(int64_t i)
{
    return (Val){.kind = V_NUMBER, .i = i, .f = (double)i};
}

static Val number(double f)
{
    return (Val){.kind = V_NUMBER, .real = true, .f = f};
}

static Val wrong(Text *t, const char *what)
{
    if (!t->fault)
        t->fault = what;
    return val_int(0);
}

/* ---- arithmetic ---------------------------------------------------------------------------------------------------- */

/* A sum, difference or product that is exact, or a number. */
static Val arithmetic(Text *t, char sign, Val a, Val b)
{
    double f = sign == '+' ? a.f + b.f : sign == '-' ? a.f - b.f : sign == '*' ? a.f * b.f : a.f / b.f;
    if (sign == '/' && b.f == 0)
        return wrong(t, "a division by zero");
    if (a.real || b.real || (sign == '/' && a.i % b.i))
        return number(f);
    if (fabs(f) > 9e18)
        return wrong(t, "a number beyond 64 bits");
    return val_int(sign == '+' ? a.i + b.i : sign == '-' ? a.i - b.i : sign == '*' ? a.i * b.i : a.i / b.i);
}

/* ---- lists ----------------------------------------------------------------------------------------------------------- */

static void put(Text *t, Val *l, int64_t i)
{
    if (l->n == MOST_AXES)
        wrong(t, "a list of too many numbers");
    else
        l->d[l->n++] = i;
    l->kind = V_LIST;
}

static int at(int64_t k, int n)
{
    k = k < 0 ? k + n : k;
    return (int)(k < 0 ? 0 : k > n ? n : k);
}

static Val part(Text *t, const Val *l, int from, int to)
{
    Val v = {.kind = V_LIST};
    for (int i = from; i < to; i++)
        put(t, &v, l->d[i]);
    return v;
}

int64_t val_size(const Val *l, int from, int to)
{
    int64_t size = 1;
    for (int i = from; i < to; i++)
        size = l->d[i] && size > ((int64_t)1 << 60) / (l->d[i] < 0 ? 1 : l->d[i]) ? (int64_t)1 << 60 : size * l->d[i];
    return size;
}

/* One dimension may be -1: what is left of n. */
static Val fit(Val shape, int64_t n)
{
    for (int i = 0; i < shape.n; i++)
        if (shape.d[i] == -1) {
            shape.d[i] = 1;
            int64_t others = val_size(&shape, 0, shape.n);
            shape.d[i] = others > 0 ? n / others : 0;
        }
    return shape;
}

/* How b is repeated over a: 0 not at all, 1 it has the last axes of a, but for ones in front, 2 a run of its axes is ones. */
static Val shares(Text *t, const Val *a, const Val *b)
{
    Val v = {.kind = V_LIST};
    int ones = 0, from = 0, to = a->n;
    while (ones < b->n - 1 && b->d[ones] == 1 && (b->n - ones > a->n || a->d[a->n - b->n + ones] != 1))
        ones++;
    int n = b->n - ones;
    if (n <= a->n && !memcmp(a->d + a->n - n, b->d + ones, (size_t)n * sizeof b->d[0])) {
        put(t, &v, val_size(a, 0, a->n) != val_size(b, 0, b->n));
        return v;
    }
    while (a->n == b->n && from < a->n && a->d[from] == b->d[from])
        from++;
    while (a->n == b->n && to > from && a->d[to - 1] == b->d[to - 1])
        to--;
    if (a->n != b->n || val_size(b, from, to) != 1)
        return wrong(t, "shapes that no sum has");
    put(t, &v, 2);
    put(t, &v, val_size(a, 0, from));
    put(t, &v, val_size(a, from, to));
    put(t, &v, val_size(a, to, a->n));
    return v;
}

/* ---- functions ------------------------------------------------------------------------------------------------------- */

static Val of_list(Text *t, const char *f, const Val *a, int n)
{
    Val v = {.kind = V_LIST}, l = a[0];
    int from = n > 1 ? at(a[1].i, l.n) : 0, to = n > 2 ? at(a[2].i, l.n) : l.n;
    if (!strcmp(f, "len"))
        return val_int(l.n);
    if (!strcmp(f, "size"))
        return val_int(val_size(&l, from, to));
    if (!strcmp(f, "cut"))
        return part(t, &l, from, to);
    if (!strcmp(f, "at"))
        return val_int(from < l.n ? l.d[from] : 0);
    if (!strcmp(f, "axis"))
        return val_int(from);
    if (!strcmp(f, "fit"))
        return fit(l, a[1].i);
    if (!strcmp(f, "shares"))
        return shares(t, &l, &a[1]);
    if (!strcmp(f, "set") && from < l.n)
        l.d[from] = a[2].i;
    if (!strcmp(f, "set"))
        return l;
    if (!strcmp(f, "sum")) {
        int64_t sum = 0;
        for (int i = 0; i < from; i++)
            sum += l.d[i];
        return val_int(sum);
    }
    for (int i = 0; i < l.n && !strcmp(f, "plus"); i++)
        put(t, &v, l.d[i] + a[1].i);
    for (int i = 0; i < a[1].n && !strcmp(f, "take"); i++)
        put(t, &v, a[1].d[i] >= 0 && a[1].d[i] < l.n ? l.d[a[1].d[i]] : 0);
    return v;
}

static Val some(Text *t, const char *f, const Val *a, int n)
{
    Val v = {.kind = V_LIST};
    for (int i = 0; i < n && !strcmp(f, "cat"); i++)
        for (int k = 0; k < (a[i].kind == V_LIST ? a[i].n : 1); k++)
            put(t, &v, a[i].kind == V_LIST ? a[i].d[k] : a[i].i);
    for (int64_t i = 0; !strcmp(f, "range") && i < a[0].i && i < MOST_AXES; i++)
        put(t, &v, i);
    for (int64_t i = 0; !strcmp(f, "rep") && i < a[1].i && i < MOST_AXES; i++)
        put(t, &v, a[0].i);
    return v;
}

static Val of_numbers(Text *t, const char *f, Val a, Val b)
{
    if (!strcmp(f, "sqrt"))
        return a.f < 0 ? wrong(t, "a root of a negative number") : number(sqrt(a.f));
    if (!strcmp(f, "ceil"))
        return a.real ? (fabs(a.f) < 9e18 ? val_int((int64_t)ceil(a.f)) : wrong(t, "a number beyond 64 bits")) : a;
    if (!strcmp(f, "mod"))
        return b.i > 0 && !a.real && !b.real ? val_int((a.i % b.i + b.i) % b.i) : wrong(t, "mod takes whole numbers");
    if (!strcmp(f, "div"))
        return b.i > 0 ? val_int(a.i >= 0 ? a.i / b.i : -((-a.i + b.i - 1) / b.i)) : wrong(t, "a division by zero");
    if (!strcmp(f, "eq"))
        return val_int(a.f == b.f);
    if (!strcmp(f, "less"))
        return val_int(a.f < b.f);
    return !strcmp(f, "min") == (a.f < b.f) ? a : b;
}

static Val function(Text *t, const char *f, const Val *a, int n)
{
    static const char *const lists[] = {"len", "size", "cut", "at", "axis", "fit", "shares", "set", "sum", "plus", "take"};
    static const char *const makes[] = {"cat", "range", "rep"}, *const numbers[] = {"sqrt", "ceil", "mod", "div", "eq", "less",
        "min", "max"};
    Val v = a[0];
    if (!strcmp(f, "if"))
        return a[0].i || a[0].f != 0 ? a[1] : a[2];
    if (!strcmp(f, "loss"))
        return val_int(a[0].loss);
    for (size_t i = 0; t->absent && i < sizeof lists / sizeof *lists; i++)
        if (!strcmp(lists[i], f))
            return of_list(t, f, a, n);
    for (size_t i = 0; t->absent && i < sizeof makes / sizeof *makes; i++)
        if (!strcmp(makes[i], f))
            return some(t, f, a, n);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (!strcmp(numbers[i], f)) {
            v = of_numbers(t, f, a[0], a[n > 1 ? 1 : 0]);
            for (int k = 2; k < n; k++)
                v = of_numbers(t, f, v, a[k]);
            return v;
        }
    return wrong(t, "a function that is not known");
}

/* ---- the grammar ----------------------------------------------------------------------------------------------------- */

static Val sum(Text *t);

static void blanks(Text *t)
{
    t->p += strspn(t->p, " \t");
}

static bool takes(Text *t, char sign)
{
    blanks(t);
    return *t->p == sign && ++t->p;
}

static Val call(Text *t, const char *name)
{
    Val a[MOST_OPERANDS];
    int n = 0;
    memset(a, 0, sizeof a);
    if (!strcmp(name, "given")) {
        blanks(t);
        size_t k = strcspn(t->p, " )");
        a[0] = val_int(env_get(t->env, name_of(t->p, k)) != NULL);
        t->p += k;
        return takes(t, ')') ? a[0] : wrong(t, "')' is missing");
    }
    do {
        a[n < MOST_OPERANDS ? n++ : 0] = sum(t);
    } while (takes(t, ','));
    return takes(t, ')') ? function(t, name, a, n) : wrong(t, "')' is missing");
}

static Val named(Text *t)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789.";
    size_t n = strspn(t->p, letters);
    const char *name = name_of(t->p, n);
    t->p += n;
    if (n && takes(t, '('))
        return call(t, name);
    const Val *v = env_get(t->env, name);
    return v ? *v : t->absent && n ? (Val){.kind = V_NONE} : wrong(t, "a name that is no number here");
}

static Val literal(Text *t)
{
    char *end;
    size_t digits = strspn(t->p, "0123456789");
    bool real = digits && strchr(".eE", t->p[digits]) && t->p[digits];
    double f = strtod(t->p, &end);
    if (!real && (digits > 18 || (digits == 1 && strchr("xX", t->p[1]) && t->p[1])))
        return wrong(t, "a number beyond 64 bits");
    Val v = real ? number(f) : val_int(strtoll(t->p, &end, 10));
    t->p = end;
    return v;
}

static Val factor(Text *t)
{
    Val v = val_int(0);
    blanks(t);
    if (t->deep++ > DEEP)
        wrong(t, "brackets too deep");
    else if (takes(t, '-'))
        v = arithmetic(t, '-', val_int(0), factor(t));
    else if (takes(t, '+'))
        v = factor(t);
    else if (*t->p >= '0' && *t->p <= '9')
        v = literal(t);
    else if (takes(t, '(')) {
        v = sum(t);
        if (!takes(t, ')'))
            wrong(t, "')' is missing");
    } else
        v = named(t);
    t->deep--;
    return v;
}

static Val product(Text *t)
{
    Val v = factor(t);
    for (blanks(t); !t->fault && *t->p && strchr("*/", *t->p); blanks(t)) {
        char sign = *t->p++;
        v = arithmetic(t, sign, v, factor(t));
    }
    return v;
}

static Val sum(Text *t)
{
    Val v = product(t);
    for (blanks(t); !t->fault && *t->p && strchr("+-", *t->p); blanks(t)) {
        char sign = *t->p++;
        v = arithmetic(t, sign, v, product(t));
    }
    return v;
}

Val formula(const Env *e, const char *text, bool absent, const char **fault)
{
    Text t = {.env = e, .p = text, .absent = absent};
    Val v = sum(&t);
    if (!t.fault && *t.p)
        wrong(&t, "no formula");
    *fault = t.fault;
    return v;
}
