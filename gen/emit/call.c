/* SPDX-License-Identifier: Apache-2.0
 *
 * call.c: one call of a stage.
 *
 * A literal stands behind the name of its parameter, and so does the address of what a call reads and writes, or adds to: for
 * a reader, that is the dangerous kind.  The names are those of rt.h, which is read here as it is copied into the folder, so
 * that they cannot drift.  A call of one argument says in its name what that is, and has none.  A float is a constant of
 * stageN.h, whose name is the label in capitals.
 *
 * A call is collected word by word and printed at its end, for only then is it known whether it fits its line.
 */
#include "stage.h"
#include <stdarg.h>

/* ---- rt.h -------------------------------------------------------------------------------------------------------- */

/* The last word before `end`. */
static const char *last_word(const char *from, const char *end)
{
    const char *p = end;
    while (p > from && (p[-1] == '_' || (p[-1] >= '0' && p[-1] <= '9') || (p[-1] >= 'a' && p[-1] <= 'z')))
        p--;
    return strf("%.*s", (int)(end - p), p);
}

/* Every "void NAME(Stage *st, TYPE NAME, ...);" */
void call_prototypes(Stager *w)
{
    const char *p = embedded_find("rt/rt.h")->data;
    while ((p = strstr(p, "\nvoid ")) != NULL) {
        Proto *x = PUSH(&w->rt);
        const char *open = strchr(p, '('), *end = strchr(p, ')');
        x->name = strf("%.*s", (int)(open - p - 6), p + 6);
        for (p = strchr(open, ','); p && p < end; p = strpbrk(p + 1, ",)"))
            *PUSH(&x->param) = last_word(p + 1, strpbrk(p + 1, ",)"));
        p = end;
    }
}

/* ---- arguments --------------------------------------------------------------------------------------------------- */

static void add_text(Stager *w, const char *label, const char *text)
{
    if (w->arg >= w->label->n)
        die("argument %d of a call that takes %d", w->arg, w->label->n);
    *PUSH(&w->word) = label ? strf("/* %s */ %s", label, text) : text;
    w->arg++;
}

void call_open_routine(Stager *w, const char *name, const Strs *label)
{
    w->label = label;
    w->arg = 0;
    w->word.n = 0;
    *PUSH(&w->word) = strf("%s(st", name);
}

void call_open(Stager *w, const char *name)
{
    for (int i = 0; i < w->rt.n; i++)
        if (!strcmp(w->rt.at[i].name, name)) {
            w->rt.at[i].calls++;
            call_open_routine(w, name, &w->rt.at[i].param);
            return;
        }
    die("rt.h does not declare %s", name);
}

/* The name of the next parameter; NULL: it is the only one. */
static const char *label_of(const Stager *w)
{
    return w->label->n > 1 && w->arg < w->label->n ? w->label->at[w->arg] : NULL;
}

void call_literal(Stager *w, const char *text)
{
    add_text(w, label_of(w), text);
}

void call_int(Stager *w, int64_t value)
{
    call_literal(w, strf("%" PRId64, value));
}

/* A number that repeats, by the name that stageN.h gives it: the label in capitals. */
static void add_constant(Stager *w, const char *base, bool whole, int64_t i, float f)
{
    const Constant *found = NULL;
    for (EACH(const Constant, c, w->constant))
        if (c->whole == whole && c->i == i && !memcmp(&c->f, &f, sizeof f) && !strcmp(c->base, base))
            found = c;
    if (!found) {
        *PUSH(&w->constant) = (Constant){base, name_constant(&w->names, base), whole, i, f};
        found = &w->constant.at[w->constant.n - 1];
    }
    add_text(w, NULL, found->name);
}

static const char *capitals(const char *text)
{
    char *to = strf("%s", text);
    for (char *c = to; *c; c++)
        *c = *c >= 'a' && *c <= 'z' ? (char)(*c - 'a' + 'A') : *c;
    return to;
}

/* As few digits as give this float back. */
const char *call_decimal(float x)
{
    const char *text = "";
    for (int digits = 1; digits <= 9 && (!*text || (float)number_decimal(text, strlen(text)) != x); digits++)
        text = strf("%.*g", digits, (double)x);
    return text;
}

void call_float(Stager *w, double value)
{
    const char *label = label_of(w);
    if (value == 0 || !label)
        call_literal(w, strf("%af /* %s */", (double)(float)value, call_decimal((float)value)));
    else
        add_constant(w, capitals(label), false, 0, (float)value);
}

void call_site(Stager *w, const char *what, int64_t value)
{
    const char *name = strf("SITE_%s", what);
    add_constant(w, name, true, value, 0);
}

static const char *place_text(const Stager *w, int b, int slot, Bytes at)
{
    int pool = w->p->buf.at[b].pool;
    const char *text = w->buf[b];
    if (slots_pooled(w, b))
        text = strf("%s + %s_slot[%d]", text, w->p->pool.at[pool].name, slots_number(w, pool, slot));
    return at ? strf("A(%s + %lld)", text, (long long)at) : strf("A(%s)", text);
}

void call_word(Stager *w, const char *form, ...)
{
    va_list list;
    va_start(list, form);
    int n = vsnprintf(NULL, 0, form, list);
    va_end(list);
    char *text = alloc((size_t)n + 1);
    va_start(list, form);
    vsnprintf(text, (size_t)n + 1, form, list);
    va_end(list);
    add_text(w, w->changes ? label_of(w) : NULL, text);
    w->changes = false;
}

void call_part(Stager *w, int b, int slot, Bytes at)
{
    call_word(w, "%s", place_text(w, b, slot, at));
}

void call_place(Stager *w, int b, int slot)
{
    call_part(w, b, slot, 0);
}

void call_action(Stager *w, int number, const char *text)
{
    for (int i = 0; i < w->rt.n; i++)
        w->rt.at[i].calls += !strcmp(w->rt.at[i].name, "action");
    w->action = strf("action(st, %d, %s);", number, quote_c(text));
}

void call_close(Stager *w, const char *behind)
{
    enum { INDENT = 4 };
    if (w->arg != w->label->n)
        die("a call has %d arguments, not %d", w->arg, w->label->n);
    size_t length = INDENT + 2 * (size_t)w->word.n + strlen(behind);
    for (int i = 0; i < w->word.n; i++)
        length += strlen(w->word.at[i]);
    bool joins = w->action && strlen(w->action) + 2 + length <= EMIT_COLUMNS;
    if (w->action)
        fprintf(w->f, "    %s%s", w->action, joins ? "  " : "\n");
    fprintf(w->f, joins ? "" : "    ");
    emit_wrap(w->f, joins ? 0 : INDENT, 2 * INDENT, &w->word, strf(");%s", behind));
    w->action = NULL;
}
