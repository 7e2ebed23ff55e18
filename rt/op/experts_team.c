/* SPDX-License-Identifier: Apache-2.0
 *
 * Whole experts on the devices of a stage (docs/width.md): device d has `experts` of them, the d-th part of all.
 *
 * Each device has all tokens, and knows from slots and offsets which rows each other one has.  So no numbers are sent ahead,
 * and nothing has to be waited for before the rows themselves.  (D. Lepikhin et al., GShard, 2020, send a fixed number of rows
 * to each device, and drop the others; T. Gale et al., MegaBlocks, 2023, drop none, and take memory when they know how many
 * there are.)  The choices of a token differ, so a device gets at most min(top, experts) rows of each.  Its rows lie in front
 * in that room, in the order that they have on one device, and zeros behind them.  So however tokens are spread, none is
 * dropped, and no size follows from them.
 *
 * Order: that of experts.c and grouped.c.  The rows of an expert, and the experts of a token, are added by one device.
 */
#include "experts.h"
#include "wanted.h"

/* Where each device's rows begin, by `unit`; [devices]: all of them. */
static void starts(const Stage *st, long *from, const int32_t *offset, long experts, long unit)
{
    for (long d = 0; d <= parts_of(st); d++)
        from[d] = offset[d * experts] * unit;
}

static long number(const Stage *st) { return st->team ? st->shard : 0; }

/* Rows of all devices; they have n elements. */
static real *all_rows(Stage *st, void *tmp, const real *mine, const int32_t *offset, long experts, long width)
{
    long from[TEAM_MOST + 1], d = number(st);
    starts(st, from, offset, experts, width * (long)sizeof *mine);
    memcpy((unsigned char *)tmp + from[d], mine, (size_t)(from[d + 1] - from[d]));
    if (st->team)
        st->team->gather(st, tmp, from);
    return tmp;
}

void dispatch_experts_forward(Stage *st, real *y, const real *x, const int32_t *slot, const int32_t *offset, long rows,
                              long top, long width, long experts)
{
    const long first = offset[number(st) * experts], end = offset[(number(st) + 1) * experts];
    EACH(rows * top * width >= 1 << 14)
    for (long i = 0; i < rows * top; i++)
        if (slot[i] >= first && slot[i] < end)
            memcpy(y + (slot[i] - first) * width, x + i / top * width, (size_t)width * sizeof *y);
    fill_zeros(y, (end - first) * width, rows * least(top, experts) * width);
}

void dispatch_experts_backward(Stage *st, real *dx, const real *dy, const int32_t *slot, const int32_t *offset, void *tmp,
                               long rows, long top, long width, long experts)
{
    add_choices(st, dx, all_rows(st, tmp, dy, offset, experts, width), slot, rows, top, width);
}

void combine_experts_forward(Stage *st, real *y, const real *x, const real *share, const int32_t *slot, const int32_t *offset,
                             void *tmp, long rows, long top, long width, long experts)
{
    add_shares(st, y, all_rows(st, tmp, x, offset, experts, width), share, slot, rows, top, width);
}

/* The gradient of a share is made where its row is: it is 0 on the others. */
void combine_experts_backward(Stage *st, real *dx, real *dshare, const real *dy, const real *x, const real *share,
                              const int32_t *slot, const int32_t *offset, long rows, long top, long width, long experts)
{
    const long first = offset[number(st) * experts], end = offset[(number(st) + 1) * experts];
    if (dshare)
        fill_zeros(dshare, 0, rows * top);
    share_back(st, dx, dshare, dy, x, share, slot, rows * top, top, width, first, end);
    if (dx)
        fill_zeros(dx, (end - first) * width, rows * least(top, experts) * width);
    if (dshare && st->team)
        st->team->take(st, dshare, rows * top * (long)sizeof *dshare);
}

/* ---- rows of its tokens alone: each pair of devices exchanges what one has and the other wants --------------------------- */

/* Choices of a device's tokens that go to the experts of another one. */
static Wanted choices(const int32_t *slot, const int32_t *offset, long rows, long top, long experts, long mine, long tokens_of,
                      long experts_of)
{
    return (Wanted){slot, least(tokens_of * mine, rows) * top, least((tokens_of + 1) * mine, rows) * top,
                    offset[experts_of * experts], offset[(experts_of + 1) * experts]};
}

/* Rows of this device's tokens, at their places among all.  It has room for `mine` tokens of `rows`. */
static real *exchange(Stage *st, void *tmp, const real *x, const int32_t *slot, const int32_t *offset, long rows, long top,
                      long width, long experts, long mine)
{
    real out[TEAM_PIECE], in[TEAM_PIECE], *all = tmp;
    const long d = number(st);
    for (long with = 0; with < parts_of(st); with++)
        for (long col = 0, wide; col < width; col += wide) {
            wide = least(width - col, TEAM_PIECE);
            Wanted away = choices(slot, offset, rows, top, experts, mine, d ^ with, d);
            Wanted here = choices(slot, offset, rows, top, experts, mine, d, d ^ with);
            while (wanted_next(&away) + wanted_next(&here)) {
                const long most = TEAM_PIECE / wide, n = wanted_count(here, most);
                const long sent = wanted_pack(with ? out : in, x + col, &away, most, width, wide);
                if (with)
                    st->team->swap(st, (int)(d ^ with), out, sent * wide * (long)sizeof *out, in, n * wide * (long)sizeof *in);
                for (long i = 0; i < n && wanted_next(&here); i++, here.at++)
                    memcpy(all + slot[here.at] * width + col, in + i * wide, (size_t)wide * sizeof *in);
            }
        }
    return all;
}

void dispatch_experts_scatter_backward(Stage *st, real *dx, const real *dy, const int32_t *slot, const int32_t *offset,
                                       void *tmp, long rows, long top, long width, long experts, long mine)
{
    const long here = part_here(st, mine, rows), first = least(st->shard * mine, rows);
    const real *all = exchange(st, tmp, dy, slot, offset, rows, top, width, experts, mine);
    add_choices(st, dx, all, slot + first * top, here, top, width);
    fill_zeros(dx, here * width, mine * width);
}

void combine_experts_scatter_forward(Stage *st, real *y, const real *x, const real *share, const int32_t *slot,
                                     const int32_t *offset, void *tmp, long rows, long top, long width, long experts, long mine)
{
    const long here = part_here(st, mine, rows), first = least(st->shard * mine, rows) * top;
    const real *all = exchange(st, tmp, x, slot, offset, rows, top, width, experts, mine);
    add_shares(st, y, all, share + first, slot + first, here, top, width);
    fill_zeros(y, here * width, mine * width);
}
