/* SPDX-License-Identifier: Apache-2.0
 *
 * The norm of a gradient that the devices of a stage share, with the bits of norm_partial on the whole of n elements.
 *
 * A block of it may have elements of all devices.  Block b is made by device b mod devices, to which the others send theirs.
 * So a device sends and receives its part of the gradient once, less what it keeps.  The sums of blocks are then swapped: each
 * is made by one device, and 0 elsewhere.
 */
#include "update.h"
#include "../team.h"

void norm_team(Stage *st, double *norm, const float *g, long n, long outer, long room, long index)
{
    double part[BLOCKS] = {0}, other[BLOCKS], sum = 0;
    float piece[TEAM_PIECE];
    long each = norm_each(n), devices = st->team ? st->shards : 1;
    for (long first = 0; first < BLOCKS && first * each < n; first += devices) {
        double lane[LANES] = {0};
        long here = (first + st->shard) * each, end = least(here + each, n);
        for (long at = 0; at < each; at += TEAM_PIECE) {
            const float *x = st->team ? piece : g + here + at;
            if (st->team)
                st->team->deal(st, piece, g, n, outer, room, first * each + at, each, least(TEAM_PIECE, each - at));
            if (here + at < end)
                squares_add(lane, x, least(TEAM_PIECE, end - here - at));
        }
        part[first + st->shard] = squares_end(lane);
    }
    for (int level = 1; level < devices; level *= 2) {
        st->team->swap(st, st->shard ^ level, part, (long)sizeof part, other, (long)sizeof part);
        for (long b = 0; b < BLOCKS; b++)
            part[b] += other[b];
    }
    for (long b = 0; b < BLOCKS; b++)
        sum += part[b];
    norm[index] = sum;
}
