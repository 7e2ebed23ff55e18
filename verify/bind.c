/* SPDX-License-Identifier: Apache-2.0
 *
 * bind.c: what follows from the literals of a call, once for all its runs: bytes of operands, and the functions that its
 * results are.  A call of ROW_JOINED is the steps that calls.def says, in which its words stand; of ROW_TEAM, one of them.
 */
#include "verify.h"
#include <stdio.h>
#include <string.h>

/* ---- extents ----------------------------------------------------------------------------------------------------- */

typedef struct { Lexer x; const Machine *m; const Site *s; bool all; } Reckoner;

/* Where nothing is dropped, where random numbers come from is no part of the function. */
bool site_draws(const Site *s)
{
    int k = row_param(s->row, "drop");
    return k < 0 || s->arg[k].i != 0 || (s->arg[k].kind == A_FLOAT && s->arg[k].f != 0);
}

bool site_numbers(const Site *s)
{
    int k = row_param(s->row, "alibi");
    return site_draws(s) || (k >= 0 && (s->arg[k].kind != A_FLOAT || s->arg[k].f != 0));
}

static int64_t reckon_name(const Reckoner *r, const char *name)
{
    int team = 0, k = row_param(r->s->row, name);       /* team: levels over devices */
    while (r->s->row->kind == ROW_TEAM && 1 << team < r->m->devices)
        team++;
    if (!strcmp(name, "real"))
        return rows_real;
    if (!strcmp(name, "levels"))
        return rows_levels - team;
    if (!strcmp(name, "devices"))
        return r->m->devices > 1 ? r->m->devices : 1;
    if (!strcmp(name, "drops"))
        return site_draws(r->s);
    if (k < 0 || r->s->arg[k].kind != A_INT || r->s->arg[k].param >= 0)
        call_fault(r->m, r->s, "'%s' must be a literal: the extent of an operand follows from it", name);
    if (r->s->arg[k].i > MOST_BYTES || r->s->arg[k].i < -MOST_BYTES)
        call_fault(r->m, r->s, "'%s' is a size that no operand has", name);
    return r->s->arg[k].i;
}

static int64_t reckon_sum(Reckoner *r);

/* A number, a name, (a), up64(a), max(a, b), min(a, b), own(all, room), owned(all, room) */
static int64_t reckon_atom(Reckoner *r)
{
    Token t = r->x.t;
    lex_next(&r->x);
    if (t.kind == T_INT)
        return t.i;
    if (t.kind == T_NAME && !lex_is(&r->x, '('))
        return reckon_name(r, t.text);
    if (t.kind == T_NAME)
        lex_next(&r->x);
    int64_t a = reckon_sum(r), b = a;
    if (lex_is(&r->x, ',')) {
        lex_next(&r->x);
        b = reckon_sum(r);
    } else if (t.kind == T_NAME) {
        b = (a + 63) / 64 * 64;
    }
    lex_next(&r->x);
    if (t.kind == T_NAME && (!strcmp(t.text, "own") || !strcmp(t.text, "owned")))
        return r->all ? a : b;
    return (t.kind == T_NAME && !strcmp(t.text, "min")) != (b > a) ? b : a;
}

static int64_t reckon_product(Reckoner *r)
{
    int64_t i = reckon_atom(r);
    while (lex_is(&r->x, '*') || lex_is(&r->x, '/')) {
        bool times = lex_is(&r->x, '*');
        lex_next(&r->x);
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
    while (lex_is(&r->x, '+') || lex_is(&r->x, '-')) {
        int sign = lex_is(&r->x, '+') ? 1 : -1;
        lex_next(&r->x);
        i += sign * reckon_product(r);
        i = i > MOST_BYTES ? MOST_BYTES : i;
    }
    return i;
}

/* The first n letters of an extent. */
static int64_t reckon_of(const Machine *m, const Site *s, const char *extent, size_t n, bool all)
{
    Reckoner r = {.m = m, .s = s, .all = all};
    lex_open(&r.x, &(Source){"calls.def", extent, n});
    return reckon_sum(&r);
}

static int64_t reckon(const Machine *m, const Site *s, const char *extent, size_t n)
{
    return reckon_of(m, s, extent, n, false);
}

int64_t owned_bytes(const Machine *m, const Site *s, int k)
{
    const Param *p = &s->row->param[k];
    return p->width * reckon_of(m, s, p->extent, strlen(p->extent), true);
}

/* ---- binding ----------------------------------------------------------------------------------------------------- */

/* Is parameter k of a row divided with that axis? */
static bool goes_with(const Row *r, int axis, int k)
{
    bool grouped = false;
    for (int i = 0; i < r->n; i++)
        grouped |= r->param[i].axis == 'g';
    if (!grouped)
        return r->param[k].axis == 'k';
    return axis >= 0 && r->param[axis].axis == 'g' && (r->param[k].axis == 'k' || r->param[k].axis == 'l');
}

/* The literals of a step, as part of its function's name.  Along an axis: those of the call on the whole. */
static const char *literals_of(const Machine *m, const Site *s, const Step *st, int axis)
{
    char text[64 * MOST_PARAMS] = "";        /* no name of calls.def has 30 letters */
    size_t n = 0;
    for (int k = 0; k < st->row->n; k++) {
        const Param *p = &st->row->param[k];
        if (p->mode != 'i' && p->mode != 'f' && p->mode != 's')
            continue;
        bool along = k == axis || (axis >= 0 && goes_with(st->row, axis, k));
        const Arg *a = st->word[k] >= 0 ? &s->arg[st->word[k]] : NULL;
        if (!a || a->param >= 0 || (a->kind != A_INT && a->kind != A_FLOAT) || (p->mode != 'f' && a->kind != A_INT))
            call_fault(m, s, "'%s' must be a literal%s", p->name, p->mode != 'f' ? " integer" : "");
        n += (size_t)snprintf(text + n, sizeof text - n, n ? ", %s " : "%s ", p->name);
        const bool part = axis >= 0 && s->row->kind != ROW_TEAM;        /* heads from the first one of a device on */
        if (p->mode == 's' && !site_draws(s))
            n += (size_t)snprintf(text + n, sizeof text - n, site_numbers(s) && part != (a->i < 0) ? "of others" : "none");
        else if (p->mode != 'f')
            n += (size_t)snprintf(text + n, sizeof text - n, "%lld", (long long)(p->mode == 's' && part ? ~a->i
                                  : along ? step_whole(m, st, a->i) : a->i));
        else
            n += (size_t)snprintf(text + n, sizeof text - n, "%a", (double)(float)(a->kind == A_INT ? (double)a->i : a->f));
    }
    return name_of(text, n);
}

static int *heads(const Machine *m, const Site *s, const Step *st, int axis)
{
    const char *literals = literals_of(m, s, st, axis);
    int *head = room(sizeof *head * (size_t)(st->row->n + 1));
    for (int k = 0; k < st->row->n; k++)
        head[k] = head_of(st->row->name, st->row->param[k].name, literals);
    return head;
}

/* An axis is a factor of an extent.  What stands in front of it there, in memory too. */
static int64_t in_front(const Machine *m, const Site *s, const char *extent, const char *axis)
{
    size_t n = strlen(axis);
    for (const char *at = extent; at && (at = strstr(at, axis)); at += n)
        if ((at == extent || at[-1] == '*') && (at[n] == 0 || strchr("*/", at[n])))
            return at == extent ? 1 : reckon(m, s, extent, (size_t)(at - extent) - 1);
    return 0;
}

/* Of what is so much in the room of a device. */
int64_t step_whole(const Machine *m, const Step *st, int64_t n)
{
    return st->all == st->mine * m->devices ? n * m->devices : n / st->mine * st->all;
}

void step_heads(const Machine *m, const Site *s, Step *st, int64_t mine, int64_t all)
{
    if (st->whole && st->mine == mine && st->all == all)
        return;
    st->mine = mine;
    st->all = all;
    st->whole = heads(m, s, st, st->axis);
}

/* Of a call of TEAM the operands lie as its own row says. */
static const char *extent_of(const Site *s, const Step *st, int k)
{
    bool team = s->row->kind == ROW_TEAM && st->word[k] >= 0;
    return team ? s->row->param[st->word[k]].extent : st->row->param[k].extent;
}

/* Along the axis that parameter k is; the call behind one of TEAM may have no such literal. */
void step_along(const Machine *m, const Site *s, Step *st, int k)
{
    const char *axis = s->row->param[k].name;
    if (st->front && st->along == axis)
        return;
    st->along = axis;
    st->axis = row_param(st->row, axis);
    st->whole = NULL;
    st->front = room(sizeof *st->front * (size_t)(st->row->n + 1));
    for (int i = 0; i < st->row->n; i++) {
        st->front[i] = in_front(m, s, extent_of(s, st, i), axis);
        int64_t others = 0, one;            /* that go with it: the one that is in front */
        for (int j = 0; j < st->row->n && !st->front[i]; j++)
            if (goes_with(st->row, st->axis, j) && (one = in_front(m, s, extent_of(s, st, i), st->row->param[j].name)) > 0)
                others = others && others < one ? others : one;
        st->front[i] = st->front[i] ? st->front[i] : others;
    }
}

/* A step whose words are the call's own parameters: a call alone is one. */
static Step *whole_step(const Site *s)
{
    Step *st = room(sizeof *st);
    st->row = s->row;
    st->word = room(sizeof *st->word * (size_t)(s->n + 1));
    for (int k = 0; k < s->n; k++)
        st->word[k] = k;
    return st;
}

/* A joined call makes parts of parts if each of its steps does: along the axes of its row, or element by element. */
static bool joined_parts(const Site *s)
{
    bool good = true;
    for (int i = 0; i < s->steps; i++)
        for (int k = 0; k < s->n; k++) {
            const Row *r = s->step[i].row;
            int axis = row_param(r, s->row->param[k].name);
            bool along = axis >= 0 && r->param[axis].axis == s->row->param[k].axis;
            good &= !s->row->param[k].axis || along || r->kind == ROW_LANES || r->kind == ROW_SUM || r->kind == ROW_COPY;
        }
    return good;
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
    s->lift = s->row->kind == ROW_TEAM ? s->step : joined_parts(s) ? whole_step(s) : NULL;
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

/* Do the literals of a preparation stand in the call, in their order? */
static bool same_sizes(const Site *s, int handle, const Site *open)
{
    int p = handle + 1;
    for (int j = 1; j < open->n; j++, p++) {
        for (const Param *x; p < s->n && (x = &s->row->param[p])->mode != 'i' && strcmp(x->name, "count") &&
             strcmp(x->name, "whole") && strcmp(x->name, "mine"); p++) { }
        if (p >= s->n || s->arg[p].kind != A_INT || s->arg[p].i != open->arg[j].i)
            return false;
    }
    return true;
}

/* Attention with a bias, a mask or dropped weights, or whose gradients are not all wanted. */
static bool is_special(const Site *s)
{
    bool special = row_param(s->row, "drop") >= 0 && site_draws(s);
    for (int k = 0; k < s->n && row_param(s->row, "drop") >= 0; k++) {
        const Param *p = &s->row->param[k];
        special |= p->optional && p->width && strcmp(p->name, "dbias") && is_absent(s, k) == (p->mode == 'w') && p->mode != 't';
    }
    return special;
}

/* conv_forward, conv_backward_x: of one operator */
static bool is_akin(const char *call, const char *other)
{
    const char *forward = strstr(call, "_forward"), *way = forward ? forward : strstr(call, "_backward");
    size_t n = way ? (size_t)(way - call) : strlen(call);
    return !strncmp(call, other, n) && (!strncmp(other + n, "_forward", 8) || !strncmp(other + n, "_backward", 9));
}

/* The call that a handle is for: that of the step which has it. */
static const Row *row_of(const Site *s, int handle)
{
    for (int i = 0; i < s->steps; i++)
        for (int k = 0; k < s->step[i].row->n; k++)
            if (s->step[i].row->param[k].mode == 'h' && s->step[i].word[k] == handle)
                return s->step[i].row;
    return s->row;
}

/* A library computes what the handle was prepared for: this call, of the literals that it begins with.  Where it prepares
 * nothing, a call has kernels of its own, if calls.def says that it may: then all directions of these sizes have. */
static void prepared(const Machine *m, const Site *s, int k)
{
    const Routine *r = m->program->open;
    bool mine = false, like = false;
    for (int i = 0; r && i < r->opens.n; i++) {
        const Site *o = &r->opens.at[i];
        bool sizes = o->row && same_sizes(s, k, o), this = o->row && o->n && o->arg[0].i == s->arg[k].i;
        if (this && (!sizes || o->row != row_of(s, k)))
            call_fault(m, s, "its handle %lld is prepared for another call, line %d", (long long)s->arg[k].i, o->line);
        mine |= this;
        like |= sizes && is_akin(s->row->name, o->row->name);
    }
    if (m->program->prepares && !mine && (!s->row->param[k].optional || (like && !is_special(s))))
        call_fault(m, s, "nothing is prepared for its handle %lld", (long long)s->arg[k].i);
}

void site_bind(const Machine *m, Site *s)
{
    s->bytes = room(sizeof *s->bytes * (size_t)(s->n + 1));
    if (s->row->kind == ROW_JOINED || s->row->kind == ROW_TEAM)
        joined_steps(s);
    else
        s->steps = 1, s->lift = s->step = whole_step(s);
    int pieces = s->row->kind == ROW_TEAM ? row_param(s->row, "pieces") : -1;
    if (pieces >= 0 && s->arg[pieces].i > 1)
        s->step[0] = s->step[1];
    s->steps = s->row->kind == ROW_TEAM ? 1 : s->steps;
    for (int k = 0; k < s->n; k++) {
        const Param *p = &s->row->param[k];
        if (p->width == 0)
            continue;
        int64_t extent = reckon(m, s, p->extent, strlen(p->extent));
        s->bytes[k] = extent > MOST_BYTES / 8 ? -1 : p->width * extent;
        if (s->bytes[k] < 0)
            call_fault(m, s, "the extent '%s' of '%s' cannot be reckoned", p->extent, p->name);
    }
    for (int i = 0; i < s->steps; i++)
        s->step[i].head = heads(m, s, &s->step[i], -1);
    for (int k = 0; k < s->n; k++)
        if (s->row->param[k].mode == 'h')
            prepared(m, s, k);
    if (s->steps == 1)
        other_scratch(s);
}
