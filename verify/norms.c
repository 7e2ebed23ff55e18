/* SPDX-License-Identifier: Apache-2.0
 *
 * norms.c: the norm of a gradient, of the whole or of parts.
 *
 * A norm is the sum of blocks, at most 256 of a length that follows from the size (docs/bits.md).  The blocks are one term of
 * the gradient, a number each; their sum is another.  So blocks of a part are a part of the blocks, where the part begins and
 * ends with blocks, and a sum over blocks of several replicas is that of the whole.
 */
#include "verify.h"
#include <string.h>

static Term blocks_term(Term g, int64_t each)
{
    int64_t n = term_view(g).bytes / 4;
    int head = head_of("norm_blocks", "blocks", joined_text("each %lld", (long long)each));
    return term_of(head, 8 * ((n + each - 1) / each), 1, &g);
}

static Term sum_term(Term blocks, int64_t n)
{
    Term of[2] = {blocks, term_int(n)};
    return term_of(head_of("norm_sum", "norm", ""), 8, 2, of);
}

static void put(Machine *m, const Site *s, int64_t at, int64_t bytes, int64_t from, Term t)
{
    machine_take(m, s, at, at + bytes, true, "a norm");
    region_set(&m->region, (Piece){at, at + bytes, from, t});
}

/* Blocks of g's elements. */
static void put_blocks(Machine *m, const Site *s, int64_t to, int64_t g, int64_t n, int64_t each)
{
    machine_take(m, s, g, g + 4 * n, false, "g");
    Piece p = region_piece(&m->region, g, g + 4 * n);
    int64_t from = p.from / 4;
    if (p.hi < g + 4 * n || p.term == 0)
        call_fault(m, s, "what stands there is not one gradient");
    bool aligned = from % each == 0 && (n % each == 0 || from + n == term_view(p.term).bytes / 4);
    Term of = aligned ? p.term : term_slice(p.term, p.from, p.hi - p.lo);
    put(m, s, to, 8 * ((n + each - 1) / each), aligned ? 8 * (from / each) : 0, blocks_term(of, each));
}

/* Of other libraries the model says how long blocks are: n, and behind it that. */
static LIST(int64_t) lengths;

void norm_length_is(int64_t n, int64_t each)
{
    *ADD(&lengths) = n;
    *ADD(&lengths) = each;
}

int64_t norm_length(int64_t n)
{
    for (int i = 0; i < lengths.n; i += 2)
        if (lengths.at[i] == n)
            return lengths.at[i + 1];
    return (n + 16 * 256 - 1) / (16 * 256) * 16;
}

void do_norms(Machine *m, const Site *s, const int *param)
{
    int64_t to = arg_place(m, s, 0, param), from = arg_place(m, s, 1, param), n = arg_int(m, s, 2, param);
    int64_t a = arg_int(m, s, 3, param), b = s->n > 4 ? arg_int(m, s, 4, param) : 0, stretches = 0;
    if (n <= 0 || a < 0 || b < 0 || n > (int64_t)1 << 48 || a > (int64_t)1 << 48 || b > (int64_t)1 << 40)
        call_fault(m, s, "sizes that no norm has");
    if (!strcmp(s->row->name, "norm_blocks")) {         /* each, first */
        put_blocks(m, s, to + 8 * b, from, n, a ? a : 1);
        return;
    }
    bool team = !strcmp(s->row->name, "norm_team");     /* stretches, room, index */
    bool whole = team || !strcmp(s->row->name, "norm_partial");         /* index; else first, index */
    if (team && a && b > n / a)
        call_fault(m, s, "sizes that no norm has");
    int64_t lo = whole ? from : from + 8 * a, bytes = team ? 4 * a * b : whole ? 4 * n : 8 * n;
    Term t = machine_read(m, s, lo, lo + bytes, whole ? "g" : "blocks");
    if (team && (!(t = part_whole(t, &stretches)) || stretches != a || term_view(t).bytes != 4 * n))
        call_fault(m, s, "the gradient is not what the %d devices of the stage have of %lld elements in %lld stretches",
                   m->devices, (long long)n, (long long)a);
    int64_t each = norm_length(n);
    put(m, s, to + 8 * (team ? arg_int(m, s, 5, param) : whole ? a : b), 8, 0,
        whole ? sum_term(blocks_term(t, each), (n + each - 1) / each) : sum_term(t, n));
}
