/* SPDX-License-Identifier: Apache-2.0
 *
 * bind.c: what follows from the literals of a call, once for all its runs: bytes of operands, and the functions that its
 * results are.  A call of ROW_JOINED is the steps that calls.def says, in which its words stand.
 */
#include "verify.h"
#include <stdio.h>
#include <string.h>

/* ---- extents ----------------------------------------------------------------------------------------------------- */

typedef struct { const char *at; const Machine *m; const Site *s; } Reckoner;

/* Where nothing is dropped, where random numbers come from is no part of the function. */
bool site_draws(const Site *s)
{
    int k = row_param(s->row, "drop");
    return k < 0 || s->arg[k].i != 0 || (s->arg[k].kind == A_FLOAT && s->arg[k].f != 0);
}

static int64_t reckon_sum(Reckoner *r);

/* behind the name of a function and '(' */
static int64_t reckon_function(Reckoner *r, bool max)
{
    int64_t a = reckon_sum(r);
    if (*r->at == ',') {
        r->at++;
        int64_t b = reckon_sum(r);
        a = max && b > a ? b : a;
    } else {
        a = (a + 63) / 64 * 64;
    }
    r->at++;
    return a;
}

static int64_t reckon_name(Reckoner *r, const char *name)
{
    if (*r->at == '(') {
        r->at++;
        return reckon_function(r, !strcmp(name, "max"));
    }
    if (!strcmp(name, "real"))
        return rows_real();
    if (!strcmp(name, "levels"))
        return rows_levels();
    if (!strcmp(name, "drops"))
        return site_draws(r->s);
    int k = row_param(r->s->row, name);
    if (k < 0 || r->s->arg[k].kind != A_INT || r->s->arg[k].param >= 0)
        call_fault(r->m, r->s, "'%s' must be a literal: the extent of an operand follows from it", name);
    if (r->s->arg[k].i > MOST_BYTES || r->s->arg[k].i < -MOST_BYTES)
        call_fault(r->m, r->s, "'%s' is a size that no operand has", name);
    return r->s->arg[k].i;
}

static int64_t reckon_atom(Reckoner *r)
{
    const char *from = r->at;
    int64_t i = 0;
    if (*r->at == '(') {
        r->at++;
        i = reckon_sum(r);
        r->at++;
        return i;
    }
    if (*r->at >= '0' && *r->at <= '9') {
        while (*r->at >= '0' && *r->at <= '9')
            i = 10 * i + (*r->at++ - '0');
        return i;
    }
    while ((*r->at >= 'a' && *r->at <= 'z') || *r->at == '_' || (*r->at >= '0' && *r->at <= '9'))
        r->at++;
    return reckon_name(r, name_of(from, (size_t)(r->at - from)));
}

static int64_t reckon_product(Reckoner *r)
{
    int64_t i = reckon_atom(r);
    while (*r->at == '*' || *r->at == '/') {
        bool times = *r->at++ == '*';
        int64_t k = reckon_atom(r);
        if (i < 0 || k < 0 || (times && i && k > MOST_BYTES / i) || (!times && k == 0))
            call_fault(r->m, r->s, "an extent that no arena has");
        i = times ? i * k : i / k;
    }
    return i;
}

static int64_t reckon_sum(Reckoner *r)
{
    int64_t i = reckon_product(r);
    while (*r->at == '+' || *r->at == '-') {
        int sign = *r->at++ == '+' ? 1 : -1;
        i += sign * reckon_product(r);
        i = i > MOST_BYTES ? MOST_BYTES : i;
    }
    return i;
}

/* ---- binding ----------------------------------------------------------------------------------------------------- */

/* The literals of a step, as part of its function's name. */
static const char *literals_of(const Machine *m, const Site *s, const Step *st)
{
    char text[1400] = "";
    size_t n = 0;
    for (int k = 0; k < st->row->n; k++) {
        const Param *p = &st->row->param[k];
        if (p->mode != 'i' && p->mode != 'f' && p->mode != 's')
            continue;
        const Arg *a = st->word[k] >= 0 ? &s->arg[st->word[k]] : NULL;
        if (!a || a->param >= 0 || (a->kind != A_INT && a->kind != A_FLOAT) || (p->mode != 'f' && a->kind != A_INT))
            call_fault(m, s, "'%s' must be a literal%s", p->name, p->mode != 'f' ? " integer" : "");
        n += (size_t)snprintf(text + n, sizeof text - n, n ? ", %s " : "%s ", p->name);
        if (p->mode == 's' && !site_draws(s))
            n += (size_t)snprintf(text + n, sizeof text - n, "none");
        else if (p->mode != 'f')
            n += (size_t)snprintf(text + n, sizeof text - n, "%lld", (long long)a->i);
        else
            n += (size_t)snprintf(text + n, sizeof text - n, "%a", (double)(float)(a->kind == A_INT ? (double)a->i : a->f));
        if (n >= sizeof text - 100)
            call_fault(m, s, "too many literals");
    }
    return name_of(text, n);
}

static void name_heads(const Machine *m, const Site *s, Step *st)
{
    const char *literals = literals_of(m, s, st);
    st->head = room(sizeof *st->head * (size_t)(st->row->n + 1));
    for (int k = 0; k < st->row->n; k++)
        st->head[k] = head_of(st->row->name, st->row->param[k].name, literals);
}

/* A call alone is one step, whose words are its own parameters. */
static void whole_call(Site *s)
{
    s->steps = 1;
    s->step = room(sizeof *s->step);
    s->step->row = s->row;
    s->step->word = room(sizeof *s->step->word * (size_t)(s->n + 1));
    for (int k = 0; k < s->n; k++)
        s->step->word[k] = k;
}

/* "$a": what is between steps; a parameter; anything else is none. */
static int word_of(const Site *s, const char *at, size_t n)
{
    return *at == '$' ? BETWEEN - (at[1] - 'a') : row_param(s->row, name_of(at, n));
}

/* "call(word, word); call(word)" */
static void joined_steps(Site *s)
{
    s->step = room(sizeof *s->step * 8);
    for (const char *at = s->row->steps; *at; at += strspn(at, "; ")) {
        size_t n = strcspn(at, "(");
        Step *st = &s->step[s->steps++];
        st->row = row_named(name_of(at, n));
        st->word = room(sizeof *st->word * (size_t)(st->row->n + 1));
        at += n + 1;
        for (int k = 0; k < st->row->n; k++) {
            n = strcspn(at, ",)");
            st->word[k] = word_of(s, at, n);
            at += n + 1;
            at += strspn(at, " ");
        }
    }
}

/* ---- scratch of other libraries ---------------------------------------------------------------------------------- */

static Map scratch;             /* by the function: its place in the list */
static LIST(int64_t) scratch_bytes;

void site_scratch(const Site *s, int64_t bytes)
{
    map_set(&scratch, head_view(s->step[0].head[0]), scratch_bytes.n);
    *ADD(&scratch_bytes) = bytes;
}

static void other_scratch(Site *s)
{
    int at = map_at(&scratch, head_view(s->step[0].head[0]));
    for (int k = 0; k < s->n && at >= 0; k++)
        if (s->row->param[k].mode == 't')
            s->bytes[k] = scratch_bytes.at[at];
}

void site_bind(const Machine *m, Site *s)
{
    s->bytes = room(sizeof *s->bytes * (size_t)(s->n + 1));
    if (s->row->kind == ROW_JOINED)
        joined_steps(s);
    else
        whole_call(s);
    for (int k = 0; k < s->n; k++) {
        const Param *p = &s->row->param[k];
        Reckoner r = {p->extent, m, s};
        if (p->width == 0)
            continue;
        int64_t extent = reckon_sum(&r);
        s->bytes[k] = extent > MOST_BYTES / 8 ? -1 : p->width * extent;
        if (s->bytes[k] < 0 || *r.at)
            call_fault(m, s, "the extent '%s' of '%s' cannot be reckoned", p->extent, p->name);
    }
    for (int i = 0; i < s->steps; i++)
        name_heads(m, s, &s->step[i]);
    if (s->steps == 1)
        other_scratch(s);
}
