/* SPDX-License-Identifier: Apache-2.0
 *
 * expr.c: the arithmetic of the model file, such as 0.02/sqrt(2*L) or 3*D.
 *
 *     sum     = product (('+' | '-') product)*
 *     product = factor (('*' | '/') factor)*
 *     factor  = ('-' | '+') factor | '(' sum ')' | NUMBER | NAME | NAME '(' sum (',' sum)* ')'
 *     NUMBER  = decimal digits, with a fraction or an exponent or both
 *     NAME    = [A-Za-z_][A-Za-z0-9_.]*      functions: sqrt min max ceil mod
 *
 * A value is an int64_t as long as it can be one, and is then exact; every operation on integers checks for overflow.
 * It becomes a double where the mathematics leaves the integers: 7/2 is 3.5 and never 3, so that a width that does
 * not divide is found and not rounded.
 *
 * fails   at the place of the whole expression, quoting it.  Nesting is limited to 64.
 */
#include "graph.h"
#include <ctype.h>
#include <errno.h>
#include <math.h>

enum { MOST_NESTED = 64, MOST_NAME = 63, MOST_ARGS = 8 };
static const double EXACT = 9007199254740992.0;         /* 2^53: every integer up to here is a double */

typedef struct { bool is_int; int64_t i; double f; } ExprValue; /* f is set in both cases */

typedef struct {
    Loc at;
    const char *text, *p;
    Lookup lookup;
    void *ctx;
    int depth;
} ExprReader;

static ExprValue sum(ExprReader *r);

/* ---- values ------------------------------------------------------------------------------------------ */

static ExprValue whole(int64_t i)
{
    return (ExprValue){ true, i, (double)i };
}

static ExprValue real(const ExprReader *r, double f)
{
    if (!isfinite(f))
        err(r->at, NULL, "'%s' has no finite value", r->text);
    return f == floor(f) && fabs(f) <= EXACT ? whole((int64_t)f) : (ExprValue){ false, 0, f };
}

NORETURN static void overflow(const ExprReader *r)
{
    err(r->at, NULL, "'%s' does not fit 64 bits", r->text);
}

/* Exact where both are integers. */
#define EXACT_OR_REAL(name, sign, operation) \
    static ExprValue name(const ExprReader *r, ExprValue a, ExprValue b) \
    { \
        int64_t i; \
        if (!a.is_int || !b.is_int) \
            return real(r, a.f sign b.f); \
        if (__builtin_##operation##_overflow(a.i, b.i, &i)) \
            overflow(r); \
        return whole(i); \
    }
EXACT_OR_REAL(plus, +, add)
EXACT_OR_REAL(minus, -, sub)
EXACT_OR_REAL(times, *, mul)

static ExprValue over(const ExprReader *r, ExprValue a, ExprValue b)
{
    if (b.f == 0)
        err(r->at, NULL, "'%s' divides by zero", r->text);
    if (a.is_int && b.is_int && b.i == -1)      /* INT64_MIN / -1 */
        return minus(r, whole(0), a);
    if (a.is_int && b.is_int && a.i % b.i == 0)
        return whole(a.i / b.i);
    if (a.is_int && b.is_int)       /* a fraction, even if the nearest double is none */
        return (ExprValue){ false, 0, a.f / b.f };
    return real(r, a.f / b.f);
}

static bool less(ExprValue a, ExprValue b)
{
    return a.is_int && b.is_int ? a.i < b.i : a.f < b.f;
}

/* ---- text -------------------------------------------------------------------------------------------- */

static char peek(ExprReader *r)
{
    while (*r->p == ' ')
        r->p++;
    return *r->p;
}

static bool take(ExprReader *r, char c)
{
    if (peek(r) != c)
        return false;
    r->p++;
    return true;
}

NORETURN static void expected(ExprReader *r, const char *what)
{
    const char *hint = NULL;
    if (r->p > r->text && isdigit((unsigned char)r->p[-1]) && isalpha((unsigned char)*r->p))
        hint = "a product is written with *, a number in decimal";
    if (!peek(r))
        err(r->at, hint, "'%s' ends where %s is expected", r->text, what);
    if (r->p == r->text)
        err(r->at, hint, "%s is expected, and '%s' found", what, r->text);
    err(r->at, hint, "'%s' has '%s' where %s is expected", r->text, r->p, what);
}

static ExprValue number(ExprReader *r)
{
    const char *from = r->p, *digits = "0123456789";
    size_t n = strspn(from, digits);
    bool plain = true;
    if (from[n] == '.') {
        plain = false;
        n += 1 + strspn(from + n + 1, digits);
    }
    size_t sign = strchr("eE", from[n]) && from[n] ? 1 + (from[n + 1] == '-' || from[n + 1] == '+') : 0;
    if (sign && isdigit((unsigned char)from[n + sign])) {
        plain = false;
        n += sign + strspn(from + n + sign, digits);
    }
    if (n == 1 && *from == '.')
        expected(r, "a number");
    char *copy = strf("%.*s", (int)n, from);
    r->p += n;
    if (isalpha((unsigned char)*r->p) || *r->p == '_' || *r->p == '.')
        expected(r, "an operator");
    if (!plain)
        return real(r, number_decimal(copy, n));
    errno = 0;
    int64_t i = strtoll(copy, NULL, 10);
    if (errno)
        overflow(r);
    return whole(i);
}

/* ---- functions --------------------------------------------------------------------------------------- */

static ExprValue do_sqrt(ExprReader *r, const ExprValue *v, int n)
{
    (void)n;
    if (v[0].f < 0)
        err(r->at, NULL, "'%s' takes the root of a negative number", r->text);
    double root = sqrt(v[0].f);
    if (v[0].is_int && (int64_t)root * (int64_t)root != v[0].i)
        return (ExprValue){ false, 0, root };
    return real(r, root);
}

static ExprValue do_ceil(ExprReader *r, const ExprValue *v, int n)
{
    (void)n;
    return v[0].is_int ? v[0] : real(r, ceil(v[0].f));
}

static ExprValue do_min(ExprReader *r, const ExprValue *v, int n)
{
    (void)r;
    ExprValue best = v[0];
    for (int i = 1; i < n; i++)
        best = less(v[i], best) ? v[i] : best;
    return best;
}

static ExprValue do_max(ExprReader *r, const ExprValue *v, int n)
{
    (void)r;
    ExprValue best = v[0];
    for (int i = 1; i < n; i++)
        best = less(best, v[i]) ? v[i] : best;
    return best;
}

/* What is left of a whole number: 0 .. n-1, of negative ones too. */
static ExprValue do_mod(ExprReader *r, const ExprValue *v, int n)
{
    (void)n;
    if (!v[0].is_int || !v[1].is_int || v[1].i < 1)
        err(r->at, "mod(i, 2)", "'%s': mod takes whole numbers, the second at least 1", r->text);
    int64_t rest = v[0].i % v[1].i;
    return whole(rest < 0 ? rest + v[1].i : rest);
}

static const struct {
    const char *name;
    int least, most;
    ExprValue (*call)(ExprReader *, const ExprValue *, int);
} functions[] = {
    { "sqrt", 1, 1, do_sqrt },
    { "ceil", 1, 1, do_ceil },
    { "min", 2, MOST_ARGS, do_min },
    { "max", 2, MOST_ARGS, do_max },
    { "mod", 2, 2, do_mod },
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

static ExprValue call(ExprReader *r, const char *name)
{
    const char *known[FUNCTIONS];
    ExprValue v[MOST_ARGS];
    int n = 0;
    do {
        if (n == MOST_ARGS)
            err(r->at, NULL, "'%s' gives %s more than %d values", r->text, name, MOST_ARGS);
        v[n++] = sum(r);
    } while (take(r, ','));
    if (!take(r, ')'))
        expected(r, "')'");
    for (int i = 0; i < FUNCTIONS; i++) {
        known[i] = functions[i].name;
        if (strcmp(name, known[i]))
            continue;
        if (n < functions[i].least || n > functions[i].most)
            err(r->at, NULL, "'%s' gives %s %d values; it takes %s", r->text, name, n,
                functions[i].most == 1 ? "one" : functions[i].most == 2 ? "two" : "two and more");
        return functions[i].call(r, v, n);
    }
    err(r->at, did_you_mean(name, known, FUNCTIONS, "there are sqrt, min, max, ceil and mod"),
        "'%s' calls an unknown function '%s'", r->text, name);
}

static ExprValue name(ExprReader *r)
{
    const char *from = r->p;
    while (isalnum((unsigned char)*r->p) || *r->p == '_' || *r->p == '.')
        r->p++;
    if (r->p - from > MOST_NAME)
        err(r->at, NULL, "a name of more than %d characters", MOST_NAME);
    char *word = strf("%.*s", (int)(r->p - from), from);
    if (take(r, '('))
        return call(r, word);
    double value;
    if (!r->lookup || !r->lookup(r->ctx, word, &value))
        err(r->at, "a number is expected: names are those of dims and of arguments of the block", "unknown name '%s'%s", word,
            strcmp(word, r->text) ? strf(" in '%s'", r->text) : "");
    return real(r, value);
}

/* ---- the grammar ------------------------------------------------------------------------------------- */

static ExprValue factor(ExprReader *r)
{
    if (++r->depth > MOST_NESTED)
        err(r->at, NULL, "an expression nested more than %d deep", MOST_NESTED);
    ExprValue v;
    char c = peek(r);
    if (take(r, '-')) {
        v = minus(r, whole(0), factor(r));
    } else if (take(r, '+')) {
        v = factor(r);
    } else if (take(r, '(')) {
        v = sum(r);
        if (!take(r, ')'))
            expected(r, "')'");
    } else if (isdigit((unsigned char)c) || c == '.') {
        v = number(r);
    } else if (isalpha((unsigned char)c) || c == '_') {
        v = name(r);
    } else {
        expected(r, "a number or a name");
    }
    r->depth--;
    return v;
}

static ExprValue product(ExprReader *r)
{
    ExprValue v = factor(r);
    for (;;) {
        if (take(r, '*'))
            v = times(r, v, factor(r));
        else if (take(r, '/'))
            v = over(r, v, factor(r));
        else
            return v;
    }
}

static ExprValue sum(ExprReader *r)
{
    ExprValue v = product(r);
    for (;;) {
        if (take(r, '+'))
            v = plus(r, v, product(r));
        else if (take(r, '-'))
            v = minus(r, v, product(r));
        else
            return v;
    }
}

static ExprValue value(Loc at, const char *text, Lookup lookup, void *ctx)
{
    ExprReader r = { at, text, text, lookup, ctx, 0 };
    ExprValue v = sum(&r);
    if (peek(&r))
        expected(&r, "an operator");
    return v;
}

double expr_float(Loc at, const char *text, Lookup lookup, void *ctx)
{
    return value(at, text, lookup, ctx).f;
}

int64_t expr_int(Loc at, const char *text, Lookup lookup, void *ctx)
{
    ExprValue v = value(at, text, lookup, ctx);
    if (!v.is_int)
        err(at, fabs(v.f) > EXACT ? "write all digits of an integer above 2^53" : strf("it is %.10g; ceil() rounds up", v.f),
            "'%s' is not an %sinteger", text, fabs(v.f) > EXACT ? "exact " : "");
    return v.i;
}
