/* SPDX-License-Identifier: Apache-2.0
 *
 * parts.c: what a call makes of parts: stages of several devices.
 *
 * One source serves all devices of a stage, and nothing in it asks which one runs it.  So one machine plays them all: a term is
 * what each of them has in its own arena.  `part of x in n stretches` is, on device d, the d-th of the contiguous parts of each
 * of n equal stretches of x; any other term is the same on all.  A term has the bytes of the largest part.  The last ones may
 * be shorter, or empty: no rule speaks of what stands behind them.  Two rules:
 *
 *   along   calls.def names the axes of which a part of the operands gives a part of the results.  Where all operands that have
 *           such an axis are parts along it, the call makes the part of what the call on the wholes makes
 *   sum     what the devices add together is what one device makes of the wholes, if each has whole blocks of the sum, side by
 *           side: they are then a subtree (docs/bits.md).  A call with parts that are not all of one size names the whole, so
 *           that it adds nothing that stands behind a part.  A draw is no sum: contiguous parts are enough
 *
 * A sum is closed by messages between the devices, in the call.  All of them run the same calls in the same order, and the
 * devices that others wait for are in that order too: what one machine can do to its end, so many in step can.
 *
 * GSPMD (Xu et al., 2021) spreads such parts through a program to write it; here they are read off a program that somebody else
 * wrote.  A call that the rules do not fit is a function of parts, which the reference has not.
 */
#include "verify.h"

/* The length of the axis, if a part of `whole` has `mine` of it; 0: it has not. */
static int64_t all_of(const Machine *m, Term part, Term whole, int64_t mine)
{
    int64_t bytes = term_view(part).bytes, all = term_view(whole).bytes;
    if (all == bytes * m->devices)
        return mine * m->devices;
    return mine > 0 && bytes % mine == 0 && bytes && all % (bytes / mine) == 0 ? all / (bytes / mine) : 0;
}

/* In how many pieces the axis at hand is cut, of which a device has a part each; 0: the operands are no parts along it.  Where
 * no operand of TEAM has it, the call says which part it makes.  *all: its length. */
static int64_t pieces_of(const Machine *m, const Step *st, const Term *of, const Term *old, bool team, int64_t mine,
                         int64_t *all)
{
    int64_t pieces = 0, stretches = 0;
    bool any = false;
    *all = 0;
    for (int k = 0; k < st->row->n; k++) {
        int word = st->word[k];
        for (int i = 0; i < 2 && word >= 0 && st->row->param[k].width; i++) {
            Term x = i ? old[word] : of[word];
            bool part = part_whole(x, &stretches) != 0;
            if (x && part != (st->front[k] > 0))
                return 0;
            if (part && (stretches % st->front[k] || (pieces && pieces != stretches / st->front[k])))
                return 0;
            int64_t n = part ? all_of(m, x, part_whole(x, &stretches), mine) : *all;
            if (part && (!n || (*all && *all != n)))
                return 0;
            *all = n;
            pieces = part ? stretches / st->front[k] : pieces;
            any |= part;
        }
    }
    return any || !team ? pieces : 1;
}

/* A sum of the devices is that of one if their blocks are its blocks. */
static void whole_blocks(const Machine *m, const Site *s, int64_t mine, int64_t pieces, int64_t all)
{
    int k = row_param(s->row, "pieces"), whole = row_param(s->row, "whole");
    int64_t blocks = (int64_t)1 << rows_levels;
    if (k < 0 && row_param(s->row, "site") >= 0 && pieces == 1)
        return;
    bool good = pieces && pieces == (k < 0 ? 1 : s->arg[k].i) && blocks % m->devices == 0 && all % pieces == 0 &&
        mine == pieces * (blocks / m->devices) * ((all / pieces + blocks - 1) / blocks);
    if (!good || all != (whole < 0 ? mine * m->devices : s->arg[whole].i))
        call_fault(m, s, "what the %d devices of the stage add together is not the sum of one in whole blocks", m->devices);
}

/* Experts are no sum: each device has as many. */
static void whole_experts(const Machine *m, const Site *s, int64_t mine, int64_t pieces, int64_t all)
{
    if (pieces != 1 || all != mine * m->devices)
        call_fault(m, s, "the %d devices of the stage have not all experts", m->devices);
}

/* Of several groups others are no axes; of some a part of one alone is made otherwise. */
static bool is_axis(const Site *s, int k)
{
    const char axis = s->row->param[k].axis;
    bool good = axis && axis != 'k' && ((axis != 'q' && axis != 'g') || s->arg[k].i > 1);
    for (int i = 0; i < s->n && axis == 'l'; i++)
        good &= s->row->param[i].axis != 'g' || s->arg[i].i == 1;
    return good;
}

/* Operands that are parts along an axis become the wholes, and st->axis the axis.  In how many pieces; 0: they are no parts. */
int64_t part_lift(const Machine *m, const Site *s, Step *st, Term *of, Term *old)
{
    bool team = s->row->kind == ROW_TEAM, any = team;
    int64_t pieces = 0, stretches, all = 0;
    for (int k = 0; k < s->n; k++)
        any |= part_whole(of[k], &stretches) || part_whole(old[k], &stretches);
    for (int i = 0; i < 2 * s->n && any && !pieces; i++) {
        const int k = i % s->n;         /* q first: a part of columns may look like rows, too */
        if (!is_axis(s, k) || (s->row->param[k].axis == 'q') != (i < s->n))
            continue;
        step_along(m, s, st, k);
        int64_t mine = s->arg[k].i;
        int named = row_param(s->row, "whole");
        pieces = pieces_of(m, st, of, old, team, mine, &all);
        all = all ? all : team && named >= 0 ? s->arg[named].i : mine * m->devices;
        bool heads = !team && row_param(s->row, "site") >= 0;       /* which are numbered through */
        if (pieces && (s->arg[k].i % pieces || (heads && pieces > 1)))
            pieces = 0;
        if (heads && pieces && site_numbers(s) && s->arg[row_param(s->row, "site")].i >= 0)
            call_fault(m, s, "heads of a part would %s as the first ones of the whole", site_draws(s) ? "draw" : "count");
        if (team)
            (offset_param(s->row) < 0 ? whole_blocks : whole_experts)(m, s, mine, pieces, all);
        if (pieces)
            step_heads(m, s, st, mine, all);
    }
    for (int k = 0; k < 2 * s->n && pieces; k++) {
        Term *t = k < s->n ? &of[k] : &old[k - s->n];
        *t = part_whole(*t, &stretches) ? part_whole(*t, &stretches) : *t;
    }
    return pieces;
}
