/* SPDX-License-Identifier: Apache-2.0
 *
 * rows.c: rows that the devices of a stage share: each has a contiguous part of them, and zeros in the room behind a shorter
 * one.  A device takes its part of what is whole, or all get the parts of all.  n: elements that a device has room for, of
 * `whole`.
 */
#include "kernel.h"
#include "../team.h"

void part_forward(Stage *st, real *y, const real *x, long n, long whole)
{
    const long here = part_here(st, n, whole);
    if (here)
        memcpy(y, x + st->shard * n, (size_t)here * sizeof *y);
    fill_zeros(y, here, n);
}

void gather_forward(Stage *st, real *y, const real *x, long n, long whole)
{
    long from[TEAM_MOST + 1], here = part_here(st, n, whole);
    for (long d = 0; d <= parts_of(st); d++)
        from[d] = least(d * n, whole) * (long)sizeof *y;
    if (here)
        memcpy(y + st->shard * n, x, (size_t)here * sizeof *y);
    if (st->team)
        st->team->gather(st, y, from);
}

/* So many stretches of memory, one every `step` numbers. */
typedef struct { real *x; long step, n; } Stretches;

/* The first `wide` numbers of up to `most` stretches, one behind the other, or back; bytes. */
static long pack(real *to, Stretches *from, long most, long wide, bool back)
{
    const long n = least(most, from->n);
    for (long i = 0; i < n; i++, from->x += from->step)
        memcpy(back ? from->x : to + i * wide, back ? to + i * wide : from->x, (size_t)wide * sizeof *to);
    from->n -= n;
    return n * wide * (long)sizeof *to;
}

/* A row has `pieces` stretches of `width` numbers, each in parts of the devices.  of_rows: rows of a device, with all parts;
 * of_heads: its part of all rows.  Each pair of devices exchanges what one has and the other wants (S. Jacobs et al., DeepSpeed
 * Ulysses, 2023). */
static void exchange(Stage *st, real *to, real *of_rows, real *of_heads, long rows, long mine, long pieces, long width)
{
    real out[TEAM_PIECE], in[TEAM_PIECE];
    const long part = width / parts_of(st), here = part_here(st, mine, rows) * pieces;
    for (long with = 0; with < parts_of(st); with++)
        for (long col = 0, wide; col < part; col += wide) {
            const long e = st->shard ^ with, begin = least(e * mine, rows), end = least((e + 1) * mine, rows);
            Stretches ours = {of_rows + e * part + col, width, here}, theirs = {of_heads + begin * pieces * part + col, part,
                (end - begin) * pieces}, *from = to == of_heads ? &ours : &theirs, *into = to == of_heads ? &theirs : &ours;
            const long most = TEAM_PIECE / (wide = least(part - col, TEAM_PIECE));
            while (ours.n || theirs.n) {
                const long sent = pack(with ? out : in, from, most, wide, false);
                if (with)
                    st->team->swap(st, (int)e, out, sent, in, least(most, into->n) * wide * (long)sizeof *in);
                pack(in, into, most, wide, true);
            }
        }
}

void rows_to_heads(Stage *st, real *y, const real *x, long rows, long mine, long pieces, long width)
{
    exchange(st, y, (real *)(uintptr_t)x, y, rows, mine, pieces, width);
}

void heads_to_rows(Stage *st, real *y, const real *x, long rows, long mine, long pieces, long width)
{
    exchange(st, y, y, (real *)(uintptr_t)x, rows, mine, pieces, width);
    fill_zeros(y, part_here(st, mine, rows) * pieces * width, mine * pieces * width);
}
