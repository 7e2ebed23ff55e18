/* SPDX-License-Identifier: Apache-2.0
 *
 * render.c: the text that a chat template gives for a conversation.  What Jinja has and this has not ends dpgen at its place in
 * the template.
 */
#include "render.h"
#include <ctype.h>
#include <setjmp.h>

typedef struct { const char *name; Value *value; } Bound;
typedef struct { VEC(Bound) names; int scope; Text text; Rendered *to; jmp_buf out; } Run;

static Value compute(Run *run, const Expr *e);

/* ---- operands ------------------------------------------------------------------------------------------------------------ */

static NORETURN void unknown(const Expr *e, const char *what, const char *name)
{
    err(e->loc, "the subset is in docs/finetune.md; a template of your own may stand in a .jinja file",
        "%s '%s' is not known of templates", what, name);
}

static const char *kind_name(const Value *v)
{
    static const char *const names[] = {"undefined", "none", "a truth", "a number", "a text", "a list", "an object"};
    return names[v->kind];
}

static const char *string(const Expr *e, const Value *v)
{
    if (v->kind != STRING)
        err(e->loc, NULL, "a text is expected here, and this is %s", kind_name(v));
    return v->s;
}

/* As {{ }} and ~ write it. */
static const char *written(const Expr *e, const Value *v)
{
    if (v->kind == LISTED || v->kind == MAPPED)
        err(e->loc, NULL, "%s is written here, which is not done", kind_name(v));
    return v->kind == STRING ? v->s : v->kind == UNDEFINED ? "" : v->kind == NONE ? "None"
         : v->kind == BOOLEAN ? (v->i ? "True" : "False") : strf("%lld", (long long)v->i);
}

static Value truth(bool is)
{
    return (Value){.kind = BOOLEAN, .i = is};
}

static Value whole(int64_t i)
{
    return (Value){.kind = WHOLE, .i = i};
}

static Value operand(Run *run, const Expr *e, int i)
{
    return i < e->of.n ? compute(run, e->of.at[i]) : (Value){0};
}

static const Value *look_up(const Run *run, const char *name)
{
    for (int i = run->names.n - 1; i >= 0; i--)
        if (!strcmp(run->names.at[i].name, name))
            return run->names.at[i].value;
    return NULL;
}

static void bind(Run *run, const char *name, Value v)
{
    Value *to = COPY(&v);
    for (int i = run->scope; i < run->names.n; i++)
        if (!strcmp(run->names.at[i].name, name)) {
            run->names.at[i].value = to;
            return;
        }
    *PUSH(&run->names) = (Bound){name, to};
}

/* ---- texts --------------------------------------------------------------------------------------------------------------- */

static Value stripped(const char *s, const char *of, bool left, bool right)
{
    const char *end = s + strlen(s);
    while (left && s < end && strchr(of, *s))
        s++;
    while (right && end > s && strchr(of, end[-1]))
        end--;
    return value_string(strf("%.*s", (int)(end - s), s));
}

static Value cased(const char *s, bool upper)
{
    char *to = strf("%s", s);
    for (char *p = to; *p; p++)
        *p = (char)(upper ? toupper((unsigned char)*p) : tolower((unsigned char)*p));
    return value_string(to);
}

static Value split(const Expr *e, const char *s, const char *by, int64_t most)
{
    Value v = {.kind = LISTED};
    if (!*by)
        err(e->loc, NULL, "split: a text between the parts is expected");
    for (const char *p; most != 0 && (p = strstr(s, by)); s = p + strlen(by), most--)
        *PUSH(&v.at) = value_string(strf("%.*s", (int)(p - s), s));
    *PUSH(&v.at) = value_string(s);
    return v;
}

static Value replaced(const char *s, const char *from, const char *to)
{
    Text t;
    FILE *f = text_open(&t);
    for (const char *p; *from && (p = strstr(s, from)); s = p + strlen(from))
        fprintf(f, "%.*s%s", (int)(p - s), s, to);
    fputs(s, f);
    return value_string(text_close(&t));
}

static const char white[] = " \t\n\r\f\v";

static Value method_of_text(Run *run, const Expr *e, const char *name, const char *s)
{
    Value a = operand(run, e, 1), b = operand(run, e, 2);
    const char *of = a.kind == STRING ? a.s : white;
    if (!strcmp(name, "strip") || !strcmp(name, "lstrip") || !strcmp(name, "rstrip"))
        return stripped(s, of, *name != 'r', *name != 'l');
    if (!strcmp(name, "startswith"))
        return truth(!strncmp(s, string(e, &a), strlen(a.s)));
    if (!strcmp(name, "endswith"))
        return truth(text_ends(s, string(e, &a)));
    if (!strcmp(name, "split"))
        return split(e, s, string(e, &a), b.kind == WHOLE ? b.i : -1);
    if (!strcmp(name, "replace"))
        return replaced(s, string(e, &a), string(e, &b));
    if (!strcmp(name, "upper") || !strcmp(name, "lower"))
        return cased(s, *name == 'u');
    unknown(e, "method", name);
}

/* ---- calls, filters, tests ----------------------------------------------------------------------------------------------- */

static Value items_of(const Value *map)
{
    Value v = {.kind = LISTED};
    for (int i = 0; i < map->key.n; i++) {
        Value pair = {.kind = LISTED};
        *PUSH(&pair.at) = value_string(map->key.at[i]);
        *PUSH(&pair.at) = map->at.at[i];
        *PUSH(&v.at) = pair;
    }
    return v;
}

static Value call(Run *run, const Expr *e)
{
    const Expr *f = e->of.at[0];
    if (f->kind == MEMBER) {
        const Expr *on = e->of.at[0];
        Value v = compute(run, on->of.at[0]);
        if (v.kind == STRING)
            return method_of_text(run, e, on->name, v.s);
        if (v.kind == MAPPED && !strcmp(on->name, "items"))
            return items_of(&v);
        if (v.kind == MAPPED && !strcmp(on->name, "get")) {
            Value key = operand(run, e, 1);
            const Value *found = value_member(&v, string(e, &key));
            return found ? *found : e->of.n > 2 ? operand(run, e, 2) : (Value){.kind = NONE};
        }
        unknown(e, strf("of %s the method", kind_name(&v)), on->name);
    }
    if (f->kind == NAMED && !strcmp(f->name, "raise_exception")) {
        Value why = operand(run, e, 1);
        run->to->refusal = written(e, &why);
        longjmp(run->out, 1);
    }
    if (f->kind == NAMED && !strcmp(f->name, "range") && e->of.n == 2) {
        Value n = operand(run, e, 1), v = {.kind = LISTED};
        for (int64_t i = 0; i < n.i && i < 1000000; i++)
            *PUSH(&v.at) = whole(i);
        return v;
    }
    if (f->kind != NAMED || strcmp(f->name, "namespace"))
        unknown(f, "function", f->kind == NAMED ? f->name : "()");
    Value v = {.kind = MAPPED};
    for (int i = 1; i < e->of.n; i++)
        if (e->names.at[i])
            value_put(&v, e->names.at[i], operand(run, e, i));
    return v;
}

static int64_t characters(const char *s)
{
    int64_t n = 0;
    for (; *s; s++)
        n += ((unsigned char)*s & 0xc0) != 0x80;
    return n;
}

static Value filter(Run *run, const Expr *e)
{
    Value v = operand(run, e, 0), a = operand(run, e, 1);
    bool several = v.kind == LISTED || v.kind == MAPPED;
    if (!strcmp(e->name, "trim"))
        return stripped(written(e, &v), white, true, true);
    if ((!strcmp(e->name, "length") || !strcmp(e->name, "count")) && (several || v.kind == STRING))
        return whole(several ? v.at.n : characters(v.s));
    if (!strcmp(e->name, "upper") || !strcmp(e->name, "lower"))
        return cased(written(e, &v), *e->name == 'u');
    if (!strcmp(e->name, "string"))
        return value_string(written(e, &v));
    if (!strcmp(e->name, "default"))
        return v.kind == UNDEFINED ? a : v;
    if (!strcmp(e->name, "list") && v.kind == LISTED)
        return v;
    if ((!strcmp(e->name, "first") || !strcmp(e->name, "last")) && v.kind == LISTED)
        return v.at.n ? v.at.at[*e->name == 'f' ? 0 : v.at.n - 1] : (Value){0};
    if (!strcmp(e->name, "join") && v.kind == LISTED) {
        const char *text = "";
        for (int i = 0; i < v.at.n; i++)
            text = strf("%s%s%s", text, i && a.kind == STRING ? a.s : "", written(e, &v.at.at[i]));
        return value_string(text);
    }
    unknown(e, strf("of %s the filter", kind_name(&v)), e->name);
}

static Value test(Run *run, const Expr *e)
{
    Value v = operand(run, e, 0);
    static const struct { const char *name; unsigned kinds; } tests[] = {
        {"undefined", 1 << UNDEFINED}, {"none", 1 << NONE}, {"boolean", 1 << BOOLEAN}, {"integer", 1 << WHOLE},
        {"string", 1 << STRING}, {"mapping", 1 << MAPPED}, {"sequence", 1 << LISTED | 1 << STRING | 1 << MAPPED},
        {"iterable", 1 << LISTED | 1 << STRING | 1 << MAPPED | 1 << UNDEFINED}, {"number", 1 << WHOLE | 1 << BOOLEAN}};
    if (!strcmp(e->name, "defined"))
        return truth(v.kind != UNDEFINED);
    if (!strcmp(e->name, "true") || !strcmp(e->name, "false"))
        return truth(v.kind == BOOLEAN && v.i == (*e->name == 't'));
    if ((!strcmp(e->name, "odd") || !strcmp(e->name, "even")) && v.kind == WHOLE)
        return truth((v.i % 2 != 0) == (*e->name == 'o'));
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        if (!strcmp(e->name, tests[i].name))
            return truth(tests[i].kinds >> v.kind & 1);
    unknown(e, "test", e->name);
}

/* ---- operators ----------------------------------------------------------------------------------------------------------- */

static bool holds(const Expr *e, const Value *list, const Value *v)
{
    if (list->kind == STRING)
        return strstr(list->s, string(e, v)) != NULL;
    if (list->kind == MAPPED)
        return v->kind == STRING && value_member(list, v->s);
    for (int i = 0; i < list->at.n; i++)
        if (value_same(&list->at.at[i], v))
            return true;
    if (list->kind != LISTED)
        err(e->loc, NULL, "in: %s holds nothing", kind_name(list));
    return false;
}

static Value arithmetic(const Expr *e, const char *sign, const Value *a, const Value *b)
{
    if (*sign == '+' && a->kind == STRING && b->kind == STRING)
        return value_string(strf("%s%s", a->s, b->s));
    if (*sign == '+' && a->kind == LISTED && b->kind == LISTED) {
        Value v = {.kind = LISTED};
        for (int i = 0; i < a->at.n + b->at.n; i++)
            *PUSH(&v.at) = i < a->at.n ? a->at.at[i] : b->at.at[i - a->at.n];
        return v;
    }
    bool numbers = a->kind >= BOOLEAN && a->kind <= WHOLE && b->kind >= BOOLEAN && b->kind <= WHOLE;
    if (!numbers || !strcmp(sign, "/"))
        err(e->loc, NULL, "%s of %s and %s is not done", sign, kind_name(a), kind_name(b));
    if ((*sign == '%' || *sign == '/') && b->i == 0)
        err(e->loc, NULL, "a division by zero");
    int64_t rest = *sign == '%' || *sign == '/' ? (a->i % b->i + b->i) % b->i : 0;
    return whole(*sign == '+' ? a->i + b->i : *sign == '-' ? a->i - b->i : *sign == '*' ? a->i * b->i
               : *sign == '%' ? rest : (a->i - rest) / b->i);
}

static Value binary(Run *run, const Expr *e)
{
    const char *sign = e->name;
    Value a = operand(run, e, 0);
    if (!strcmp(sign, "and") || !strcmp(sign, "or"))
        return value_true(&a) == (*sign == 'o') ? a : operand(run, e, 1);
    Value b = operand(run, e, 1);
    if (!strcmp(sign, "==") || !strcmp(sign, "!="))
        return truth(value_same(&a, &b) == (*sign == '='));
    if (!strcmp(sign, "in") || !strcmp(sign, "not in"))
        return truth(holds(e, &b, &a) == (*sign == 'i'));
    if (!strcmp(sign, "~"))
        return value_string(strf("%s%s", written(e, &a), written(e, &b)));
    if (*sign != '<' && *sign != '>')
        return arithmetic(e, sign, &a, &b);
    if (a.kind != b.kind || (a.kind != WHOLE && a.kind != STRING))
        err(e->loc, NULL, "%s of %s and %s is not done", sign, kind_name(&a), kind_name(&b));
    int64_t order = a.kind == STRING ? strcmp(a.s, b.s) : a.i < b.i ? -1 : a.i > b.i;
    return truth(*sign == '<' ? order < (sign[1] == '=') : order > -(sign[1] == '='));
}

/* As templates count: characters. */
static const char *character(const char *s, int64_t i)
{
    for (; *s && i > 0; i--)
        for (s++; ((unsigned char)*s & 0xc0) == 0x80;)
            s++;
    return s;
}

static Value part_of(const char *s, int64_t from, int64_t to)
{
    const char *at = character(s, from);
    return value_string(strf("%.*s", (int)(character(at, to - from) - at), at));
}

static Value member(const Expr *e, const Value *v, const Value *key)
{
    if (v->kind == UNDEFINED)
        err(e->loc, NULL, "something is asked of a value that is not defined");
    if (v->kind == MAPPED && key->kind == STRING) {
        const Value *found = value_member(v, key->s);
        return found ? *found : (Value){0};
    }
    int64_t i = key->i + (key->i < 0 ? v->at.n : 0);
    if (v->kind == LISTED && key->kind == WHOLE)
        return i >= 0 && i < v->at.n ? v->at.at[i] : (Value){0};
    if (v->kind == STRING && key->kind == WHOLE) {
        int64_t n = characters(v->s), at = key->i + (key->i < 0 ? n : 0);
        return at >= 0 && at < n ? part_of(v->s, at, at + 1) : (Value){0};
    }
    return (Value){0};
}

static Value sliced(Run *run, const Expr *e)
{
    Value v = operand(run, e, 0), from = operand(run, e, 1), to = operand(run, e, 2), by = operand(run, e, 3), part = v;
    int64_t n = v.kind == STRING ? characters(v.s) : v.at.n, step = by.kind == WHOLE ? by.i : 1;
    if ((v.kind != LISTED && v.kind != STRING) || (step != 1 && step != -1) || (v.kind == STRING && step != 1) ||
        (step == -1 && (from.kind == WHOLE || to.kind == WHOLE)))
        err(e->loc, NULL, "this part of %s is not done; done are [a:b] and, of lists, [::-1]", kind_name(&v));
    int64_t a = from.kind == WHOLE ? from.i : 0, b = to.kind == WHOLE ? to.i : n;
    a = a < 0 ? a + n : a;
    b = b < 0 ? b + n : b;
    a = a < 0 ? 0 : a > n ? n : a;
    b = b < a ? a : b > n ? n : b;
    if (v.kind == STRING)
        return part_of(v.s, a, b);
    part = (Value){.kind = LISTED};
    for (int64_t i = a; i < b; i++)
        *PUSH(&part.at) = v.at.at[step == 1 ? i : b - 1 - (i - a)];
    return part;
}

static Value list(Run *run, const Expr *e)
{
    Value v = {.kind = LISTED};
    for (int i = 0; i < e->of.n; i++)
        *PUSH(&v.at) = operand(run, e, i);
    return v;
}

static Value compute(Run *run, const Expr *e)
{
    Value v, key;
    const Value *found;
    switch (e->kind) {
    case CONSTANT: return e->value;
    case NAMED:
        found = look_up(run, e->name);
        return found ? *found : (Value){0};
    case MEMBER:
        v = operand(run, e, 0);
        key = value_string(e->name);
        return member(e, &v, &key);
    case INDEXED:
        v = operand(run, e, 0);
        key = operand(run, e, 1);
        return member(e, &v, &key);
    case SLICED: return sliced(run, e);
    case CALL: return call(run, e);
    case FILTER: return filter(run, e);
    case TEST: return test(run, e);
    case NOT:
        v = operand(run, e, 0);
        return truth(!value_true(&v));
    case NEGATIVE:
        v = operand(run, e, 0);
        return whole(-v.i);
    case BINARY: return binary(run, e);
    case CHOICE:
        v = operand(run, e, 0);
        return operand(run, e, value_true(&v) ? 1 : 2);
    case LIST: return list(run, e);
    }
    die("an expression of kind %d", (int)e->kind);
}

/* ---- steps --------------------------------------------------------------------------------------------------------------- */

static void walk(Run *run, const Steps *steps);

static void bind_item(Run *run, const Step *s, const Value *item)
{
    if (s->names.n == 1)
        bind(run, s->names.at[0], *item);
    else if (item->kind != LISTED || item->at.n != s->names.n)
        err(s->loc, NULL, "for: %d names, and a value that has not so many parts", s->names.n);
    for (int i = 0; s->names.n > 1 && i < s->names.n; i++)
        bind(run, s->names.at[i], item->at.at[i]);
}

static void repeat(Run *run, const Step *s)
{
    Value all = compute(run, s->value), kept = {.kind = LISTED};
    int scope = run->scope, names = run->names.n;
    if (all.kind != LISTED && all.kind != UNDEFINED)
        err(s->loc, NULL, "for: a list is expected, and this is %s", kind_name(&all));
    run->scope = names;
    for (int i = 0; i < all.at.n; i++) {
        run->names.n = names;
        bind_item(run, s, &all.at.at[i]);
        Value when = s->when ? compute(run, s->when) : truth(true);
        if (value_true(&when))
            *PUSH(&kept.at) = all.at.at[i];
    }
    for (int i = 0; i < kept.at.n; i++) {
        Value loop = {.kind = MAPPED};
        value_put(&loop, "index", whole(i + 1));
        value_put(&loop, "index0", whole(i));
        value_put(&loop, "first", truth(i == 0));
        value_put(&loop, "last", truth(i == kept.at.n - 1));
        value_put(&loop, "length", whole(kept.at.n));
        value_put(&loop, "previtem", i ? kept.at.at[i - 1] : (Value){0});
        value_put(&loop, "nextitem", i + 1 < kept.at.n ? kept.at.at[i + 1] : (Value){0});
        run->names.n = names;
        bind(run, "loop", loop);
        bind_item(run, s, &kept.at.at[i]);
        walk(run, &s->body);
    }
    run->names.n = names;
    run->scope = scope;
    if (kept.at.n == 0)
        walk(run, &s->otherwise);
}

static void set(Run *run, const Step *s)
{
    Value v = compute(run, s->value);
    const Value *space = s->names.n > 1 ? look_up(run, s->names.at[0]) : NULL;
    if (s->names.n == 1)
        bind(run, s->names.at[0], v);
    else if (!space || space->kind != MAPPED)
        err(s->loc, NULL, "set: %s is no namespace", s->names.at[0]);
    else
        value_put((Value *)space, s->names.at[1], v);
}

static int here(Run *run)
{
    fflush(run->text.f);
    return (int)run->text.n;
}

static void take(Run *run, const Step *s)
{
    Value v = s->value && s->kind != FOR && s->kind != SET ? compute(run, s->value) : (Value){0};
    switch (s->kind) {
    case TEXT: fputs(s->text, run->text.f); break;
    case PRINT: fputs(written(s->value, &v), run->text.f); break;
    case IF: walk(run, value_true(&v) ? &s->body : &s->otherwise); break;
    case FOR: repeat(run, s); break;
    case SET: set(run, s); break;
    case ANSWER:
        *PUSH(&run->to->from) = here(run);
        walk(run, &s->body);
        *PUSH(&run->to->to) = here(run);
        break;
    case MACRO: break;          /* a call of it is refused */
    }
}

static void walk(Run *run, const Steps *steps)
{
    for (int i = 0; i < steps->n; i++)
        take(run, steps->at[i]);
}

Rendered template_render(const Steps *steps, const Value *names)
{
    Run *run = alloc(sizeof *run);
    run->to = alloc(sizeof *run->to);
    for (int i = 0; i < names->key.n; i++)
        bind(run, names->key.at[i], names->at.at[i]);
    text_open(&run->text);
    if (!setjmp(run->out))
        walk(run, steps);
    run->to->text = text_close(&run->text);
    return *run->to;
}
