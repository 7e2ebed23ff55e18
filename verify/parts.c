/* SPDX-License-Identifier: Apache-2.0
 *
 * parts.c: what a call makes of parts: stages of several devices.
 *
 * One source serves all devices of a stage, and nothing in it asks which one runs it.  So one machine plays them all: a term is
 * what each of them has in its own arena.  `part of x in n stretches` is, on device d, the d-th of the contiguous parts of each
 * of n equal stretches of x; any other term is the same on all.  Two rules:
 *
 *   along   calls.def names the axes of which a part of the operands gives a part of the results.  Where all operands that have
 *           such an axis are parts along it, the call makes the part of what the call on the wholes makes
 *   sum     what the devices add together is what one device makes of the wholes, if each has whole blocks of the sum, side by
 *           side: they are then a subtree (docs/bits.md)
 *
 * A sum is closed by messages between the devices, in the call.  All of them run the same calls in the same order, and the
 * devices that others wait for are in that order too: what one machine can do to its end, so many in step can.
 *
 * GSPMD (Xu et al., 2021) spreads such parts through a program to write it; here they are read off a program that somebody else
 * wrote.  A call that the rules do not fit is a function of parts, which the reference has not.
 */
#include "verify.h"
#include <string.h>

/* In how many pieces the axis at hand is cut, of which a device has a part each; 0: the operands are no parts along it.  Where
 * no operand of TEAM has it, the call says which part it makes. */
static int64_t pieces_of(const Step *st, const Term *of, const Term *old, bool team)
{
    int64_t pieces = 0, stretches = 0;
    bool any = false;
    for (int k = 0; k < st->row->n; k++) {
        int word = st->word[k];
        for (int i = 0; i < 2 && word >= 0 && st->row->param[k].width; i++) {
            Term x = i ? old[word] : of[word];
            bool part = part_whole(x, &stretches) != 0;
            if (x && part != (st->front[k] > 0))
                return 0;
            if (part && (stretches % st->front[k] || (pieces && pieces != stretches / st->front[k])))
                return 0;
            pieces = part ? stretches / st->front[k] : pieces;
            any |= part;
        }
    }
    return any || !team ? pieces : 1;
}

/* A sum of the devices is that of one if their blocks are its blocks. */
static void whole_blocks(const Machine *m, const Site *s, int64_t mine, int64_t pieces)
{
    int k = row_param(s->row, "pieces");
    int64_t blocks = (int64_t)1 << rows_levels;
    if (!pieces || pieces != (k < 0 ? 1 : s->arg[k].i) || blocks % m->devices || mine / pieces % (blocks / m->devices))
        call_fault(m, s, "what the %d devices of the stage add together is not the sum of one in whole blocks", m->devices);
}

/* Operands that are parts along an axis become the wholes, and st->axis the axis.  In how many pieces; 0: they are no parts. */
int64_t part_lift(const Machine *m, const Site *s, Step *st, Term *of, Term *old)
{
    bool team = s->row->kind == ROW_TEAM, any = team;
    int64_t pieces = 0, stretches;
    for (int k = 0; k < s->n; k++)
        any |= part_whole(of[k], &stretches) || part_whole(old[k], &stretches);
    for (int k = 0; k < s->n && any && !pieces; k++) {
        if (s->row->param[k].axis != 'l')
            continue;
        step_along(m, s, st, row_param(st->row, s->row->param[k].name));
        pieces = pieces_of(st, of, old, team);
        bool heads = !team && row_param(s->row, "site") >= 0;       /* which are numbered through */
        if (pieces && (s->arg[k].i % pieces || (heads && pieces > 1)))
            pieces = 0;
        if (heads && pieces && site_draws(s) && s->arg[row_param(s->row, "site")].i >= 0)
            call_fault(m, s, "heads of a part would draw as the first ones of the whole");
        if (team)
            whole_blocks(m, s, s->arg[k].i, pieces);
    }
    for (int k = 0; k < 2 * s->n && pieces; k++) {
        Term *t = k < s->n ? &of[k] : &old[k - s->n];
        *t = part_whole(*t, &stretches) ? part_whole(*t, &stretches) : *t;
    }
    return pieces;
}
