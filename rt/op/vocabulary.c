/* SPDX-License-Identifier: Apache-2.0
 *
 * Embedding, SoftmaxCrossEntropy and its hits, where the devices of a stage share the vocabulary (docs/width.md).  A device has
 * rows of the table, and columns of the scores.  A row of the table is on one device, so no result of Embedding is a sum: the
 * others give bits that are 0, and all take what is there, also -0.  The pairs of a row are merged by the tree (xent.h).
 */
#include "wanted.h"
#include "xent_parts.h"
#include "xent_smooth.h"

enum { ROWS = 256 };

void embedding_rows_forward(Stage *st, real *y, const int32_t *ids, const real *weight, long n, long width, long rows,
                            long whole)
{
    long first = st->shard * rows;
    (void)whole;                /* ids are below it */
    for (long i = 0; i < n; i++)
        if (ids[i] >= first && ids[i] < first + rows)
            memcpy(y + i * width, weight + (ids[i] - first) * width, (size_t)width * sizeof *y);
        else
            memset(y + i * width, 0, (size_t)width * sizeof *y);
    if (st->team)
        st->team->take(st, y, n * width * (long)sizeof *y);
}

/* Each device keeps the rows of its words among n, and has room for `mine`: each pair exchanges what one has and the other
 * wants. */
void embedding_rows_scatter_forward(Stage *st, real *y, const int32_t *ids, const real *weight, long n, long width, long rows,
                                    long whole, long mine)
{
    real out[TEAM_PIECE], in[TEAM_PIECE];
    const long d = st->shard, first = least(d * mine, n);
    (void)whole;
    for (long with = 0; with < parts_of(st); with++)
        for (long col = 0, wide; col < width; col += wide) {
            wide = least(width - col, TEAM_PIECE);
            const long e = d ^ with, most = TEAM_PIECE / wide;
            Wanted away = {ids, least(e * mine, n), least((e + 1) * mine, n), d * rows, (d + 1) * rows};
            Wanted here = {ids, first, least((d + 1) * mine, n), e * rows, (e + 1) * rows};
            while (wanted_next(&away) + wanted_next(&here)) {
                const long got = wanted_count(here, most);
                const long sent = wanted_pack(with ? out : in, weight + col, &away, most, width, wide);
                if (with)
                    st->team->swap(st, (int)e, out, sent * wide * (long)sizeof *out, in, got * wide * (long)sizeof *in);
                for (long i = 0; i < got && wanted_next(&here); i++, here.at++)
                    memcpy(y + (here.at - first) * width + col, in + i * wide, (size_t)wide * sizeof *in);
            }
        }
    fill_zeros(y, part_here(st, mine, n) * width, mine * width);
}

void embedding_rows_backward(Stage *st, float *dweight, const real *dy, const int32_t *ids, int acc, long n, long width,
                             long rows, long whole)
{
    long first = st->shard * rows;
    (void)whole;
    EACH((n + rows) * width >= 1 << 15)
    for (long from = 0; from < width; from += 64) {
        long columns = least(64, width - from);
        for (long r = 0; r < rows && !acc; r++)
            memset(dweight + r * width + from, 0, (size_t)columns * sizeof *dweight);
        for (long i = 0; i < n; i++)
            for (long j = 0; j < columns && ids[i] >= first && ids[i] < first + rows; j++)
                dweight[(ids[i] - first) * width + from + j] += get(dy, i * width + from + j);
    }
}

/* Of each target the score, where this device has it among its n; else bits that are 0. */
static void scores_hit(Stage *st, float *hit, const real *x, const int32_t *targets, long rows, long n, long width)
{
    long first = st->shard * width;
    for (long r = 0; r < rows; r++)
        hit[r] = targets[r] >= first && targets[r] < first + n ? get(x, r * width + targets[r] - first) : 0.0f;
}

/* smooth: the share of all `whole` scores in a target. */
static void part_loss(Stage *st, float *loss, float *lse, const real *x, const int32_t *targets, const Values *vals, long rows,
                      long width, long ignore, int count, float smooth, long whole)
{
    float sum[ROWS], hit[ROWS], total[ROWS] = {0};
    long block = block_of_part(st, width), here = part_here(st, width, whole);
    double all = 0, keep = 1 - (double)smooth, share = (double)smooth / (double)whole;  /* over rows, ascending: rounded once */
    for (long from = 0; from < rows; from += ROWS) {
        long n = least(ROWS, rows - from);
        EACH(n * width >= 1 << 14)
        for (long r = 0; r < n; r++) {
            Scores s = row_sum(x + (from + r) * width, here, block);
            lse[from + r] = s.most;
            sum[r] = s.sum;
            if (smooth != 0)
                total[r] = row_total(x + (from + r) * width, here, block);
        }
        scores_hit(st, hit, x + from * width, targets + from, n, here, width);
        scores_team(st, lse + from, sum, hit, n);
        if (st->team && smooth != 0)
            st->team->sum(st, total, n);
        for (long r = 0; r < n; r++) {
            lse[from + r] += flog(sum[r]);
            if (targets[from + r] != ignore)
                all += (double)lse[from + r] - keep * (double)hit[r] - share * (double)total[r];
        }
    }
    *loss = loss_mean(all, vals, count);
}

void xent_part_forward(Stage *st, float *loss, float *lse, const real *x, const int32_t *targets, const Values *vals,
                       long rows, long width, long ignore, int count, long whole)
{
    part_loss(st, loss, lse, x, targets, vals, rows, width, ignore, count, 0, whole);
}

void xent_smooth_part_forward(Stage *st, float *loss, float *lse, const real *x, const int32_t *targets, const Values *vals,
                              long rows, long width, long ignore, int count, float smooth, long whole)
{
    part_loss(st, loss, lse, x, targets, vals, rows, width, ignore, count, smooth, whole);
}

void xent_smooth_part_backward(Stage *st, real *dx, const float *dloss, const real *x, const float *lse, const int32_t *targets,
                               const Values *vals, long rows, long width, long ignore, int count, float smooth, long whole)
{
    scores_back(st, dx, x, lse, targets, loss_share(dloss, vals, count), rows, st->shard * width,
                part_here(st, width, whole), width, ignore, smooth / (float)whole, 1.0f - smooth);
}

void xent_part_backward(Stage *st, real *dx, const float *dloss, const real *x, const float *lse, const int32_t *targets,
                        const Values *vals, long rows, long width, long ignore, int count, long whole)
{
    scores_back(st, dx, x, lse, targets, loss_share(dloss, vals, count), rows, st->shard * width,
                part_here(st, width, whole), width, ignore, 0, 1);
}

void hit_part_report(Stage *st, const real *x, const int32_t *targets, Values *vals, long rows, long width, long ignore,
                     long top, long whole)
{
    float hit[ROWS], ahead[ROWS];
    long here = part_here(st, width, whole);
    int32_t hits = 0;
    for (long from = 0; from < rows && vals->eval; from += ROWS) {
        long n = least(ROWS, rows - from);
        scores_hit(st, hit, x + from * width, targets + from, n, here, width);
        if (st->team)
            st->team->take(st, hit, n * (long)sizeof *hit);
        memset(ahead, 0, sizeof ahead);
        scores_ahead(st, ahead, hit, x + from * width, targets + from, n, st->shard * width, here, width);
        if (st->team)
            st->team->sum(st, ahead, n);    /* numbers below 2^24: exact */
        scores_hits(vals, ahead, targets + from, n, ignore, top);
        hits += vals->hits;
    }
    vals->hits = hits;
}
