/* SPDX-License-Identifier: Apache-2.0
 *
 * call.c: one call of a stage.
 *
 * A literal stands behind the name of its parameter, a float before its decimal: tests/emitted.c compares both.  The names are
 * those of rt.h, which is read here as it is copied into the folder, so that they cannot drift.  A call of one argument says
 * in its name what that is, and has none.
 */
#include "stage.h"
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

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

void call_open_routine(Stager *w, const char *name, const Strs *label)
{
    w->label = label;
    w->arg = 0;
    fprintf(w->f, "    %s(st", name);
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

static void print_label(Stager *w)
{
    if (w->arg >= w->label->n)
        die("argument %d of a call that takes %d", w->arg, w->label->n);
    fprintf(w->f, ", ");
    if (w->label->n > 1)
        fprintf(w->f, "/* %s */ ", w->label->at[w->arg]);
    w->arg++;
}

void call_int(Stager *w, int64_t value)
{
    print_label(w);
    fprintf(w->f, "%" PRId64, value);
}

void call_dim(Stager *w, int64_t value, int dim)
{
    print_label(w);
    if (dim >= 0)
        fprintf(w->f, "%s", w->dim[dim]);
    else
        fprintf(w->f, "%" PRId64, value);
}

/* As few digits as give this float back. */
void call_float(Stager *w, double value)
{
    float x = (float)value;
    const char *text = "";
    for (int digits = 1; digits <= 9 && (!*text || (float)number_decimal(text, strlen(text)) != x); digits++)
        text = strf("%.*g", digits, (double)x);
    print_label(w);
    fprintf(w->f, "%af /* %s */", (double)x, text);
}

void call_word(Stager *w, const char *form, ...)
{
    va_list list;
    va_start(list, form);
    fprintf(w->f, ", ");
    vfprintf(w->f, form, list);
    va_end(list);
    w->arg++;
}

void call_place(Stager *w, int b, int slot)
{
    int pool = w->p->buf.at[b].pool;
    if (slots_pooled(w, b))
        call_word(w, "A(%s + %s_slot[%d])", w->buf[b], w->p->pool.at[pool].name, slots_number(w, pool, slot));
    else
        call_word(w, "A(%s)", w->buf[b]);
}

void call_part(Stager *w, int b, int slot, Bytes at)
{
    int pool = w->p->buf.at[b].pool;
    if (at == 0)
        call_place(w, b, slot);
    else if (slots_pooled(w, b))
        call_word(w, "A(%s + %s_slot[%d] + %lld)", w->buf[b], w->p->pool.at[pool].name, slots_number(w, pool, slot),
                  (long long)at);
    else
        call_word(w, "A(%s + %lld)", w->buf[b], (long long)at);
}

void call_close(Stager *w)
{
    if (w->arg != w->label->n)
        die("a call has %d arguments, not %d", w->arg, w->label->n);
    fprintf(w->f, ");");
}
