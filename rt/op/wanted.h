/* SPDX-License-Identifier: Apache-2.0
 *
 * wanted.h: rows that one device of a stage has and another one wants.  Both know which, by a list of row numbers that all
 * have.  So a pair of devices exchanges those rows alone, ascending, and no numbers are sent ahead.
 */
#ifndef WANTED_H
#define WANTED_H
#include "kernel.h"
#include "../team.h"

/* Entries at .. until-1 of a list, which one device wants, and rows first .. end-1, which the other one has. */
typedef struct { const int32_t *list; long at, until, first, end; } Wanted;

static inline bool wanted_next(Wanted *w)
{
    while (w->at < w->until && (w->list[w->at] < w->first || w->list[w->at] >= w->end))
        w->at++;
    return w->at < w->until;
}

static inline long wanted_count(Wanted w, long most)
{
    long n = 0;
    for (; n < most && wanted_next(&w); n++, w.at++) { }
    return n;
}

/* Up to `most` of them, `wide` numbers of each, one behind the other.  How many. */
static inline long wanted_pack(real *pack, const real *rows, Wanted *w, long most, long width, long wide)
{
    long n = 0;
    for (; n < most && wanted_next(w); n++, w->at++)
        memcpy(pack + n * wide, rows + (w->list[w->at] - w->first) * width, (size_t)wide * sizeof *pack);
    return n;
}
#endif
