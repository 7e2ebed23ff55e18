/* SPDX-License-Identifier: Apache-2.0
 *
 * term.c: terms.  Two terms that are equal are one number.
 *
 * A term is a head and the terms that it is of.  A head is a result of a call with its literals: linear_forward's y, with rows
 * 256, in 224, out 672.  What a head computes is not known here.  Known are six things:
 *
 *   slice   some bytes of a term; all of them are the term
 *   join    pieces one behind the other
 *   sum     of two, of so many bytes a number: a + b is b + a in IEEE 754, and no more is known of it
 *   zero    bytes 0
 *   int     a number that a call takes at run time: a micro-batch
 *   part    of a term in so many stretches: what each device of a stage has of it, in so many bytes (parts.c)
 *
 * Cost: constant for each term, by a table of hashes.
 */
#include "verify.h"
#include <string.h>

typedef struct { int head, n, first; int64_t bytes; Origin from; } Made;

static LIST(Made) terms;
static LIST(Term) args;
static LIST(Head *) heads;
static Map table, head_names;
Origin term_origin;

int head_of(const char *call, const char *result, const char *literals)
{
    const char *text = joined_text("%s\1%s\1%s", call, result, literals), *key = name_of(text, strlen(text));
    int have = map_at(&head_names, key);
    if (have >= 0)
        return have;
    map_set(&head_names, key, heads.n);
    Head *h = room(sizeof *h);
    *h = (Head){call, result, literals};
    *ADD(&heads) = h;
    return heads.n - 1;
}

void terms_open(void)
{
    static const char *const names[H_OTHERS] = {"", "bytes", "joined", "number", "start", "input and micro-batch", "count",
        "step values", "zero", "sum", "sum", "sum", "absent", "part of"};
    terms.n = args.n = heads.n = 0;
    table = head_names = (Map){0};
    for (int i = 0; i < H_OTHERS; i++)
        head_of(names[i], "", joined_text("%s%d", i >= H_SUM2 ? "width " : "", i >= H_SUM2 ? 2 << (i - H_SUM2) : i));
    ADD(&terms);                /* 0: nothing was written */
}

Term term_of(int head, int64_t bytes, int n, const Term *arg)
{
    uint64_t key = mixed((uint64_t)head, (uint64_t)n), tried = 0;
    for (int i = 0; i < n; i++)
        key = mixed(key, arg[i]);
    for (uint32_t *t; (t = map_next(&table, key, &tried));) {
        const Made *m = &terms.at[*t];
        if (m->head == head && m->n == n && (n == 0 || !memcmp(args.at + m->first, arg, sizeof *arg * (size_t)n)))
            return *t;
    }
    *ADD(&terms) = (Made){head, n, args.n, bytes, term_origin};
    for (int i = 0; i < n; i++)
        *ADD(&args) = arg[i];
    map_add(&table, key, (Term)terms.n - 1);
    return (Term)terms.n - 1;
}

TermView term_view(Term t)
{
    const Made *m = &terms.at[t];
    return (TermView){m->head, m->n, args.at + m->first, m->bytes, m->from};
}

const Head *head_view(int head)
{
    return heads.at[head];
}

int term_count(void)
{
    return terms.n;
}

/* The two halves stand as arguments, which nobody takes for terms. */
Term term_int(int64_t i)
{
    Term half[2] = {(Term)((uint64_t)i >> 32), (Term)i};
    return term_of(H_INT, 8, 2, half);
}

static int64_t int_of(Term t)
{
    TermView v = term_view(t);
    return (int64_t)((uint64_t)v.arg[0] << 32 | v.arg[1]);
}

Term term_sum(int width, int64_t bytes, Term a, Term b)
{
    Term both[2] = {a < b ? a : b, a < b ? b : a};
    return term_of(width == 2 ? H_SUM2 : width == 4 ? H_SUM4 : H_SUM8, bytes, 2, both);
}

Term term_slice(Term t, int64_t from, int64_t bytes)
{
    TermView v = term_view(t);
    if (v.head == H_ZERO)
        return term_of(H_ZERO, bytes, 0, NULL);
    if (t == 0 || (from == 0 && bytes == v.bytes))
        return t;
    Term part[3] = {t, term_int(from), term_int(bytes)};
    return term_of(H_SLICE, bytes, 3, part);
}

Term part_by(Term whole, Term by, int64_t bytes)
{
    Term of[3] = {whole, by, term_int(bytes)};
    return term_of(H_PART, bytes, 3, of);
}

Term part_of(Term t, Term *by)
{
    TermView v = term_view(t);
    *by = v.head == H_PART ? v.arg[1] : 0;
    return v.head == H_PART ? v.arg[0] : 0;
}

Term term_part(Term whole, int64_t stretches, int64_t bytes)
{
    return part_by(whole, term_int(stretches), bytes);
}

Term part_whole(Term t, int64_t *stretches)
{
    Term by, whole = part_of(t, &by);
    if (!whole || term_view(by).head != H_INT)
        return 0;
    *stretches = int_of(by);
    return whole;
}

/* ---- for people -------------------------------------------------------------------------------------------------- */

static const char *origin_text(Origin from)
{
    if (from.stage >= 0)
        return joined_text("   made in stage%d.c:%d", from.stage, from.line);
    return from.line == 0 ? "" : from.mb < 0 ? joined_text("   model.graph:%d", from.line) :
        joined_text("   model.graph:%d, micro-batch %d", from.line, from.mb);
}

static const char *lines_of(Term t, int depth, int indent)
{
    TermView v = term_view(t);
    const Head *h = head_view(v.head);
    bool literals = v.head >= H_OTHERS && *h->literals;
    if (t == 0)
        return joined_text("%*snothing: these bytes were not written\n", indent, "");
    if (v.head == H_INT)
        return joined_text("%*s%lld\n", indent, "", (long long)int_of(t));
    const char *text = joined_text("%*s%s%s%s%s%s%s%s\n", indent, "", h->call, *h->result ? "." : "", h->result,
                                   literals ? " (" : "", literals ? h->literals : "", literals ? ")" : "", origin_text(v.from));
    for (int i = 0; i < v.n && depth > 1; i++)
        text = joined_text("%s%s", text, lines_of(v.arg[i], depth - 1, indent + 2));
    return text;
}

const char *term_text(Term t, int depth)
{
    return lines_of(t, depth, 4);
}

/* From the root down to where somebody went wrong: the call that the reference has not, of operands that it has. */
void terms_differ(Term *want, Term *got)
{
    for (;;) {
        TermView a = term_view(*want), b = term_view(*got);
        int i = 0;
        if (*want == 0 || *got == 0 || a.head != b.head || a.n != b.n || a.head == H_INT)
            return;
        while (i < a.n && (a.arg[i] == b.arg[i] || term_view(b.arg[i]).from.stage < 0))
            i++;
        if (i == a.n)
            return;
        bool other = a.head >= H_SUM2 && a.head <= H_SUM8 && a.arg[i] == b.arg[1 - i];      /* of a sum, in the other order */
        *want = a.arg[other ? 1 - i : i];
        *got = b.arg[i];
    }
}
