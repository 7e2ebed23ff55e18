/* SPDX-License-Identifier: Apache-2.0
 *
 * xent_parts.h: rows of scores in parts: for LinearCrossEntropy columns from .. from+n-1 at a time, ascending; on a device of a
 * team its part of the vocabulary.
 *
 * Between chunks a row rests as its largest score so far and the sum of e^(score - that).  The sum is scaled when a larger
 * score comes (M. Milakov, N. Gimelshein, Online normalizer calculation for softmax, 2018).  The sum of a chunk has the order
 * of a row's; chunks are added ascending.
 */
#ifndef XENT_PARTS_H
#define XENT_PARTS_H
#include "xent.h"
#include "../team.h"

/* The pairs of the devices of a stage, each of its part of the vocabulary, become those of the whole.  hit: the score of the
 * target, on one device; its bits are 0 on the others. */
static inline void scores_team(Stage *st, float *most, float *sum, float *hit, long rows)
{
    enum { ROWS = 1024 };        /* told at once */
    typedef struct { Scores s; uint32_t hit; } Told;
    Told mine[ROWS], theirs[ROWS];
    for (long from = 0; from < rows && st->team; from += ROWS) {
        long n = least(ROWS, rows - from);
        for (int level = 1; level < st->shards; level *= 2) {
            for (long r = 0; r < n; r++) {
                mine[r].s = (Scores){most[from + r], sum[from + r]};
                memcpy(&mine[r].hit, hit + from + r, sizeof mine[r].hit);
            }
            st->team->swap(st, st->shard ^ level, mine, n * (long)sizeof *mine, theirs, n * (long)sizeof *mine);
            for (long r = 0; r < n; r++) {
                int upper = (st->shard & level) != 0;           /* the lower part stands first */
                Scores s = scores_merge(upper ? theirs[r].s : mine[r].s, upper ? mine[r].s : theirs[r].s);
                uint32_t bits = mine[r].hit | theirs[r].hit;
                most[from + r] = s.most;
                sum[from + r] = s.sum;
                memcpy(hit + from + r, &bits, sizeof bits);
            }
        }
    }
}

/* Takes a chunk of each row in: most and sum, and hit, the score of the target, where it is among these.  begin: the first of a
 * row, or of a block. */
static inline void scores_absorb(Stage *st, float *most, float *sum, float *hit, const real *x, const int32_t *targets,
                                 long rows, long from, long n, int begin)
{
    EACH(rows * n >= 1 << 14)
    for (long r = 0; r < rows; r++) {
        const real *row = x + r * n;
        float top = row_max(row, n), here;
        top = !begin && most[r] > top ? most[r] : top;
        float shift = top == -F_INFINITY ? 0.0f : top;          /* so that nothing but -inf so far is a sum of 0 */
        SUM_OF(here, n, i, fexp(get(row, i) - shift));
        sum[r] = !begin ? sum[r] * fexp(most[r] - shift) + here : here;
        most[r] = top;
        if (targets[r] >= from && targets[r] < from + n)
            hit[r] = get(row, targets[r] - from);
    }
}

/* ahead[r]: of these scores so many more come before the target's, hit[r]: larger ones, and equal ones in front of it. */
static inline void scores_ahead(Stage *st, float *ahead, const float *hit, const real *x, const int32_t *targets, long rows,
                                long from, long n, long step)
{
    EACH(rows * n >= 1 << 14)
    for (long r = 0; r < rows; r++) {
        const real *row = x + r * step;
        long count = 0;
        for (long i = 0; i < n; i++)
            count += !(get(row, i) <= hit[r]) || (from + i < targets[r] && get(row, i) == hit[r]);
        ahead[r] += (float)count;
    }
}

static inline void scores_hits(Values *vals, const float *ahead, const int32_t *targets, long rows, long ignore, long top)
{
    vals->hits = 0;
    for (long r = 0; r < rows; r++)
        vals->hits += targets[r] != ignore && ahead[r] < (float)top;
}

/* From what the chunks of each row have left: lse, and the loss; `most` becomes the lse. */
static inline void scores_loss(float *loss, float *most, const float *sum, const float *hit, const int32_t *targets,
                               const Values *vals, long rows, long ignore, int count)
{
    double all = 0;                         /* ascending over rows, in double: one rounding at the end */
    for (long r = 0; r < rows; r++) {
        most[r] += flog(sum[r]);
        if (targets[r] != ignore)
            all += (double)most[r] - (double)hit[r];
    }
    *loss = loss_mean(all, vals, count);
}
#endif
