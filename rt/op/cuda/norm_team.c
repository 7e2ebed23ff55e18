/* SPDX-License-Identifier: Apache-2.0
 *
 * norm_team.c: the norm of a gradient that the devices of a stage share.  Each adds up its own part as it would add up a whole
 * one; the room behind a last part is zeros.  A tree over the devices closes the sum, 8 bytes a level.
 */
#include "../../cuda/device.h"
#include "../../team.h"

void norm_team(Stage *st, double *norm, const float *g, long n, long outer, long room, long index)
{
    size_t bytes;
    double *other = team_room(st, &bytes), *mine = norm + index;
    (void)n;
    norm_partial(st, norm, g, outer * room, index);
    for (int level = 1; st->team && level < st->shards; level *= 2) {
        st->team->swap(st, st->shard ^ level, mine, sizeof *mine, other, sizeof *mine);
        norm_gather(st, mine, other, 1);
    }
}
