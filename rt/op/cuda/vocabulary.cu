/* SPDX-License-Identifier: Apache-2.0
 *
 * Embedding, SoftmaxCrossEntropy and its hits, where the devices of a stage share the vocabulary: rt/op/vocabulary.c says who
 * has what.  A device's rows of scores are `width` apart, and the last one has fewer of them.
 *
 * What a call keeps while the team adds lies in the lower half of the workspace: the upper one is the team's (team_room).
 */
#include "../../team.h"
#include "totals.h"
#include "xent.h"

static __global__ void rows_here(real *y, const int32_t *ids, const real *weight, long n, long width, long first, long rows)
{
    long groups = (width + WIDE - 1) / WIDE;
    int step = width % WIDE ? 1 : 0;
    GRID(g, n * groups) {
        long at = quotient(g, groups), i = (g - at * groups) * WIDE, id = ids[at] - first;
        float v[WIDE] = {};
        if (id >= 0 && id < rows)
            take(v, weight + id * width, i, width, step);
        leave(y + at * width, v, i, width, step);
    }
}

void embedding_rows_forward(Stage *st, real *y, const int32_t *ids, const real *weight, long n, long width, long rows, long)
{
    LAUNCH(rows_here, blocks_for(n * ceil_div(width, WIDE)), (unsigned)BLOCK, st, y, ids, weight, n, width, st->shard * rows,
           rows);
    if (st->team)
        st->team->take(st, y, n * width * (long)sizeof *y);
}

/* Each device keeps the rows of its words among n, and has room for `mine`.  Who has a row and who wants it is known on the
 * GPU alone, so that all send as many, as of a sum: a piece of each device's words at a time, in the lower half of the
 * workspace. */
void embedding_rows_scatter_forward(Stage *st, real *y, const int32_t *ids, const real *weight, long n, long width, long rows,
                                    long, long mine)
{
    const long here = part_here(st, mine, n), row = width * (long)sizeof *y, parts = parts_of(st);
    const size_t half = workspace_room(st) / 2 / 256 * 256;
    const long fit = (long)(half / (size_t)(parts * row)), each = fit < mine ? fit : mine;
    real *all = (real *)workspace_of(st, each > 0 ? 2 * half : (size_t)(2 * parts * row));
    for (long from = 0; from < mine; from += each) {
        const long words = mine - from < each ? mine - from : each, got = here - from < words ? here - from : words;
        for (long d = 0; d < parts; d++) {
            const long at = d * mine + from, there = n - at < words ? n - at : words;
            if (there > 0)
                LAUNCH(rows_here, blocks_for(there * ceil_div(width, WIDE)), (unsigned)BLOCK, st, all + d * words * width,
                       ids + at, weight, there, width, st->shard * rows, rows);
        }
        if (st->team)
            st->team->take_part(st, all, words * row, parts * words * row);
        if (got > 0)
            version_copy(st, y + from * width, all + st->shard * words * width, got * row);
    }
    if (here < mine)
        fill_zero(st, y + here * width, (mine - here) * row);
}

/* Floats of the rows, `each` a row, behind the parts of a total. */
static float *floats_of(Stage *st, long rows, int each)
{
    size_t ahead = PIECES * sizeof(double), bytes = ahead + (size_t)each * (size_t)rows * sizeof(float);
    return (float *)((char *)workspace_of(st, 2 * bytes) + ahead);
}

void xent_part_forward(Stage *st, float *loss, float *lse, const real *x, const int32_t *targets, const Values *vals,
                       long rows, long width, long ignore, int count, long whole)
{
    float *sum = floats_of(st, rows, 2), *hit = sum + rows;
    ScoreRows here = {x, width, st->shard * width, part_here(st, width, whole)};
    scores_absorb(st, lse, sum, hit, here, targets, rows, 1);
    scores_team(st, lse, sum, hit, rows);
    scores_loss(st, loss, lse, sum, hit, targets, vals, rows, ignore, count);
}

void xent_smooth_part_forward(Stage *st, float *loss, float *lse, const real *x, const int32_t *targets, const Values *vals,
                              long rows, long width, long ignore, int count, float smooth, long whole)
{
    float *sum = floats_of(st, rows, 3), *hit = sum + rows, *scores = hit + rows;
    ScoreRows here = {x, width, st->shard * width, part_here(st, width, whole)};
    scores_absorb(st, lse, sum, hit, here, targets, rows, 1);
    scores_sum(st, scores, here, rows, 1.0f);
    scores_team(st, lse, sum, hit, rows);
    if (st->team)
        st->team->sum(st, scores, rows);
    scores_smooth_loss(st, loss, lse, sum, hit, scores, targets, vals, rows, ignore, count, smooth, whole);
}

void xent_smooth_part_backward(Stage *st, real *dx, const float *dloss, const real *x, const float *lse, const int32_t *targets,
                               const Values *vals, long rows, long width, long ignore, int count, float smooth, long whole)
{
    ScoreRows here = {x, width, st->shard * width, part_here(st, width, whole)};
    scores_smooth_back(st, dx, dloss, here, lse, targets, vals, rows, ignore, count, smooth, whole);
}

void xent_part_backward(Stage *st, real *dx, const float *dloss, const real *x, const float *lse, const int32_t *targets,
                        const Values *vals, long rows, long width, long ignore, int count, long whole)
{
    ScoreRows here = {x, width, st->shard * width, part_here(st, width, whole)};
    scores_back(st, dx, dloss, here, lse, targets, vals, rows, ignore, count);
}

/* Of each target the score, where it is here. */
static __global__ void seen_here(float *aim, float *ahead, ScoreRows x, const int32_t *targets, const Values *vals, long rows)
{
    GRID(r, rows) {
        long i = targets[r] - x.from;
        aim[r] = vals->eval && i >= 0 && i < x.n ? one(x.at, r * x.pitch + i) : 0.0f;
        ahead[r] = 0;
    }
}

void hit_part_report(Stage *st, const real *x, const int32_t *targets, Values *vals, long rows, long width, long ignore,
                     long top, long whole)
{
    float *aim = floats_of(st, rows, 2), *ahead = aim + rows;
    ScoreRows here = {x, width, st->shard * width, part_here(st, width, whole)};
    LAUNCH(seen_here, blocks_for(rows), (unsigned)BLOCK, st, aim, ahead, here, targets, vals, rows);
    if (st->team)
        st->team->sum(st, aim, rows);           /* on one device alone it is not 0 */
    scores_ahead(st, ahead, aim, here, targets, vals, rows);
    if (st->team)
        st->team->sum(st, ahead, rows);         /* numbers below 2^24: exact */
    scores_hits(st, vals, ahead, targets, rows, ignore, top);
}
