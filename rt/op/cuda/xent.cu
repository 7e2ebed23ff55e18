/* SPDX-License-Identifier: Apache-2.0
 *
 * SoftmaxCrossEntropy, and the rows of LinearCrossEntropy: formulas and ignored rows as in rt/op/xent.c and xent.h.  The
 * largest score and the sum of exponentials are made in one pass (kernel.h); probabilities are never stored.
 *
 * The losses of rows are added in double: totals.h.
 */
#include "../../team.h"
#include "totals.h"
#include "xent.h"

template <int TEAM> static __global__ void xent_rows(float *lse, const real *x, long rows, long width)
{
    long r = ROW_OF(TEAM);
    if (r >= rows)
        return;
    Online o = row_online<TEAM>(x + r * width, width, row_step(width, TEAM));
    if (threadIdx.x % TEAM == 0)
        lse[r] = o.most + flog(o.sum);
}

/* The loss of a row: the logarithm of the sum less the target's score. */
struct RowLoss {
    const float *lse;
    const real *x;
    const int32_t *targets;
    long width, ignore;
    FIELD double at(long r) const
    {
        return targets[r] == ignore ? 0.0 : (double)lse[r] - (double)one(x, r * width + targets[r]);
    }
};

/* row_step(), of a part of each row too. */
FN int part_step(const ScoreRows &x, int team) { return row_step(x.n, team) ? team : row_step(x.pitch, team); }

/* With smoothing the scores of a row have a part in its loss. */
template <int TEAM>
static __global__ void smooth_rows(float *part, ScoreRows x, long rows, float share)
{
    long r = ROW_OF(TEAM);
    int step = part_step(x, TEAM);
    if (r >= rows)
        return;
    float sum = 0;
    ROW(i, TEAM, step, x.n) {
        float v[WIDE];
        take(v, x.at + r * x.pitch, i, x.n, step);
        for (int j = 0; j < WIDE; j++)
            sum += v[j];
    }
    sum = team_sum<TEAM>(sum);
    if (threadIdx.x % TEAM == 0)
        part[r] = sum * share;
}

struct SmoothLoss {
    const float *lse, *average;
    const real *x;
    const int32_t *targets;
    long width, ignore;
    float kept;
    FIELD double at(long r) const
    {
        return targets[r] == ignore ? 0.0
            : (double)lse[r] - (double)kept * (double)one(x, r * width + targets[r]) - (double)average[r];
    }
};

struct MeanOfRows {
    float *loss;
    const Values *vals;
    int count;
    FIELD void put(double sum) const
    {
        *loss = vals->valid[count] ? (float)(sum / (double)vals->valid[count]) : 0.0f;
    }
};

/* Counts are whole numbers: every order of them has one sum. */
/* One thread a row's score: what the products make of it, but for the order of the sum. */
template <int TEAM>
static __global__ void aim_rows(float *aim, float *ahead, const real *x, const real *weight, const real *bias,
                                const int32_t *targets, const Values *vals, long rows, long in, long first, long out)
{
    long r = ROW_OF(TEAM);
    if (r >= rows || !vals->eval)
        return;
    long target = targets[r] - first;
    bool inside = target >= 0 && target < out;
    float sum = 0;
    for (long i = threadIdx.x % TEAM; inside && i < in; i += TEAM)
        sum += one(x, r * in + i) * one(weight, target * in + i);
    sum = team_sum<TEAM>(sum);
    if (threadIdx.x % TEAM == 0) {
        real stored[1];
        set(stored, 0, sum + (inside && bias ? one(bias, target) : 0.0f));
        aim[r] = one(stored, 0);
        ahead[r] = 0;
    }
}

template <int TEAM>
static __global__ void ahead_rows(float *ahead, const float *aim, ScoreRows x, const int32_t *targets, const Values *vals,
                                  long rows)
{
    long r = ROW_OF(TEAM);
    if (r >= rows || !vals->eval)
        return;
    long target = targets[r] - x.from;
    float count = 0, at = aim[r];
    for (long i = threadIdx.x % TEAM; i < x.n; i += TEAM) {
        float v = one(x.at, r * x.pitch + i);
        count += i != target && (!(v <= at) || (i < target && v == at)) ? 1.0f : 0.0f;
    }
    count = team_sum<TEAM>(count);
    if (threadIdx.x % TEAM == 0)
        ahead[r] += count;
}

static __global__ void ahead_total(const float *ahead, const int32_t *targets, Values *vals, long rows, long ignore, long top)
{
    double hits = 0;
    if (!vals->eval)
        return;
    for (long r = threadIdx.x; r < rows; r += BLOCK)
        hits += targets[r] != ignore && ahead[r] < (float)top;
    hits = team_sum<BLOCK>(hits);
    if (threadIdx.x == 0)
        vals->hits = (int32_t)hits;
}

/* The score of each row's target, where the scores lie in memory. */
static __global__ void seen_rows(float *aim, float *ahead, const real *x, const int32_t *targets, const Values *vals, long rows,
                                 long width, long ignore)
{
    GRID(r, rows) {
        aim[r] = vals->eval && targets[r] != ignore ? one(x, r * width + targets[r]) : 0.0f;
        ahead[r] = 0;
    }
}

struct Slope {
    float shift, factor;
    long target;
    FIELD void of(float (&v)[WIDE], long i, int step) const
    {
        long at = target - i, each = step ? step : 1;
        for (int j = 0; j < WIDE; j++)
            v[j] = fexp_below(v[j] - shift);
        if (at >= 0 && at < WIDE * each)
            for (int j = 0; j < WIDE; j++)
                v[j] = j * each == at ? __fadd_rn(v[j], -1.0f) : v[j];
        for (int j = 0; j < WIDE; j++)
            v[j] = factor == 0.0f ? 0.0f : v[j] * factor;
    }
};

template <int TEAM>
static __global__ void xent_rows_back(real *dx, const float *dloss, ScoreRows x, const float *lse, const int32_t *targets,
                                      const Values *vals, long rows, long ignore, int count)
{
    long r = ROW_OF(TEAM);
    int step = part_step(x, TEAM);
    if (r >= rows)
        return;
    Slope slope = {lse[r], vals->valid[count] && targets[r] != ignore ? *dloss / (float)vals->valid[count] : 0.0f,
                   targets[r] - x.from};
    real *to = dx + r * x.pitch;
    over_row<TEAM>(x.at + r * x.pitch, x.n, step, 0.0f, [&](float (&v)[WIDE], long i) {
        slope.of(v, i, step);
        leave(to, v, i, x.n, step);
    });
    for (long i = x.n + threadIdx.x % TEAM; i < x.pitch; i += TEAM)
        set(to, i, 0.0f);
}

/* A row in shared memory: each thread's own vectors of 16 bytes, in groups that come while it computes. */
enum { KEPT = 4, KEPT_GROUPS = 7 };     /* up to 112 KiB, which leave_room() has for a block at most on sm_90 */

FN long kept_at(int group, int k) { return ((group * KEPT + k) * BLOCK + (long)threadIdx.x) * WIDE; }

template <class To> FN void fetch_group(const To &kept, const real *x, int width, int group)
{
    UNROLL
    for (int k = 0; k < KEPT; k++)
        if (kept_at(group, k) < width)
            fetch_16(SHARED_AT(kept, kept_at(group, k)), x + kept_at(group, k));
    fetches_close();
}

/* Both at once.  A block has some rows; as it leaves the gradient of one, the next takes its place in shared memory.  Behind
 * each group that is waited for another is closed, an empty one, so that so many are always under way. */
static __global__ void xent_kept_both(real *dx, float *lse, const float *dloss, const real *x, const int32_t *targets,
                                      const Values *vals, long rows, int width, long ignore, int count)
{
    SHARED_ROW(real, kept, width);
    float v[WIDE], share = vals->valid[count] ? *dloss / (float)vals->valid[count] : 0.0f;
    for (int g = 0; g < KEPT_GROUPS; g++)
        fetch_group(kept, x + (long)blockIdx.x * width, width, g);
    for (long r = blockIdx.x, next; r < rows; r = next) {
        next = r + gridDim.x;
        long target = targets[r];
        Online o = {-F_INFINITY, 0.0f};
        for (int g = 0; g < KEPT_GROUPS; g++) {
            fetches_wait<KEPT_GROUPS - 1>();
            UNROLL
            for (int k = 0; k < KEPT; k++)
                if (kept_at(g, k) < width) {
                    load(v, SHARED_AT(kept, kept_at(g, k)));
                    absorb(&o, v);
                }
            fetches_close();
        }
        o = team_online<BLOCK>(o);
        Slope slope = {o.most + flog(o.sum), target != ignore ? share : 0.0f, target};
        if (threadIdx.x == 0)
            lse[r] = slope.shift;
        for (int g = 0; g < KEPT_GROUPS; g++) {
            UNROLL
            for (int k = 0; k < KEPT; k++)
                if (kept_at(g, k) < width) {
                    load(v, SHARED_AT(kept, kept_at(g, k)));
                    slope.of(v, kept_at(g, k), 0);
                    store(dx + r * width + kept_at(g, k), v);
                }
            fetch_group(kept, x + next * width, next < rows ? width : 0, g);
        }
    }
}

/* Both at once: the row is read again, from the cache. */
template <int TEAM>
static __global__ void xent_rows_both(real *dx, float *lse, const float *dloss, const real *x, const int32_t *targets,
                                      const Values *vals, long rows, long width, long ignore, int count)
{
    long r = ROW_OF(TEAM);
    int step = row_step(width, TEAM);
    if (r >= rows)
        return;
    Online o = row_online<TEAM>(x + r * width, width, step);
    Slope slope = {o.most + flog(o.sum),
                   vals->valid[count] && targets[r] != ignore ? *dloss / (float)vals->valid[count] : 0.0f, targets[r]};
    if (threadIdx.x % TEAM == 0)
        lse[r] = slope.shift;
    over_row<TEAM>(x + r * width, width, step, 0.0f, [&](float (&v)[WIDE], long i) {
        slope.of(v, i, step);
        leave(dx + r * width, v, i, width, step);
    });
}

template <int TEAM>
static __global__ void smooth_rows_back(real *dx, const float *dloss, ScoreRows x, const float *lse, const int32_t *targets,
                                        const Values *vals, long rows, long ignore, int count, float smooth, long whole)
{
    long r = ROW_OF(TEAM);
    int step = part_step(x, TEAM);
    if (r >= rows)
        return;
    float factor = vals->valid[count] && targets[r] != ignore ? *dloss / (float)vals->valid[count] : 0.0f, shift = lse[r];
    float share = smooth / (float)whole;
    ROW(i, TEAM, step, x.n) {
        float v[WIDE];
        take(v, x.at + r * x.pitch, i, x.n, step);
        for (int j = 0; j < WIDE; j++) {
            float p = fexp(v[j] - shift) - share;
            p = i + j * (step ? step : 1) == targets[r] - x.from ? p - (1.0f - smooth) : p;
            v[j] = factor == 0.0f ? 0.0f : p * factor;
        }
        leave(dx + r * x.pitch, v, i, x.n, step);
    }
    for (long i = x.n + threadIdx.x % TEAM; i < x.pitch; i += TEAM)
        set(dx, r * x.pitch + i, 0.0f);
}

template <int TEAM>
static __global__ void absorb_rows(float *most, float *sum, float *hit, ScoreRows x, const int32_t *targets, long rows,
                                   int begin)
{
    long r = ROW_OF(TEAM), target = r < rows ? targets[r] - x.from : 0;
    if (r >= rows)
        return;
    Online o = row_online<TEAM>(x.at + r * x.pitch, x.n, part_step(x, TEAM));
    if (threadIdx.x % TEAM != 0)
        return;
    float top = !begin && most[r] > o.most ? most[r] : o.most;
    float shift = top == -F_INFINITY ? 0.0f : top, here = o.sum * fexp(o.most - shift);
    sum[r] = begin ? o.sum : sum[r] * fexp(most[r] - shift) + here;
    most[r] = top;
    if (target >= 0 && target < x.n)
        hit[r] = one(x.at, r * x.pitch + target);
    else if (begin)
        hit[r] = 0;
}

/* ---- the devices of a stage tell each other their rows: the largest score, the sum, the target's score ----------------- */

struct Told { float most, sum, hit; };

static __global__ void tell_rows(Told *told, const float *most, const float *sum, const float *hit, long rows)
{
    GRID(r, rows)
        told[r] = Told{most[r], sum[r], hit[r]};
}

/* Both sums are scaled to the larger score, then added, the lower part first.  The target's score is on one device, and 0
 * elsewhere. */
static __global__ void merge_rows(Told *mine, const Told *theirs, int upper, long rows)
{
    GRID(r, rows) {
        Told low = upper ? theirs[r] : mine[r], high = upper ? mine[r] : theirs[r];
        float top = low.most > high.most ? low.most : high.most, shift = top == -F_INFINITY ? 0.0f : top;
        float a = low.sum * fexp(low.most - shift), b = high.sum * fexp(high.most - shift);
        mine[r] = Told{top, __fadd_rn(a, b), low.hit + high.hit};
    }
}

static __global__ void hear_rows(float *most, float *sum, float *hit, const Told *told, long rows)
{
    GRID(r, rows) {
        most[r] = told[r].most;
        sum[r] = told[r].sum;
        hit[r] = told[r].hit;
    }
}

/* The same of rows that came in chunks; `most` becomes the logarithm of the sum.  share: of the sum of all scores, with
 * smoothing; 0: none. */
struct AbsorbedLoss {
    float *most;
    const float *sum, *hit, *scores;
    const int32_t *targets;
    long ignore;
    float kept, share;
    FIELD double at(long r) const
    {
        float lse = most[r] + flog(sum[r]), others = share == 0.0f ? 0.0f : scores[r] * share;
        most[r] = lse;
        return targets[r] == ignore ? 0.0 : (double)lse - (double)kept * (double)hit[r] - (double)others;
    }
};

static __global__ void narrow_all(real *to, const float *from, long n)
{
    GROUPS(i, step, WIDE, n) {
        float v[WIDE];
        take(v, from, i, n, step);
        leave(to, v, i, n, step);
    }
}

void scores_absorb(Stage *st, float *most, float *sum, float *hit, ScoreRows x, const int32_t *targets, long rows, int begin)
{
    LAUNCH_ROWS(absorb_rows, rows, x.n, st, most, sum, hit, x, targets, rows, begin);
}

/* In the lower half of the workspace, at its end: the upper half is the team's. */
void scores_team(Stage *st, float *most, float *sum, float *hit, long rows)
{
    enum { ROWS = 1 << 13 };
    const size_t half = workspace_room(st) / 2 / 256 * 256, bytes = ROWS * sizeof(Told);
    if (!st->team)
        return;
    Told *mine = (Told *)((char *)workspace_of(st, 2 * half) + half - 2 * bytes), *theirs = mine + ROWS;
    for (long from = 0; from < rows; from += ROWS) {
        long n = rows - from < ROWS ? rows - from : (long)ROWS, size = n * (long)sizeof *mine;
        LAUNCH(tell_rows, blocks_for(n), (unsigned)BLOCK, st, mine, most + from, sum + from, hit + from, n);
        for (int level = 1; level < st->shards; level *= 2) {
            st->team->swap(st, st->shard ^ level, mine, size, theirs, size);
            LAUNCH(merge_rows, blocks_for(n), (unsigned)BLOCK, st, mine, theirs, st->shard & level, n);
        }
        LAUNCH(hear_rows, blocks_for(n), (unsigned)BLOCK, st, most + from, sum + from, hit + from, mine, n);
    }
}

void scores_loss(Stage *st, float *loss, float *most, const float *sum, const float *hit, const int32_t *targets,
                 const Values *vals, long rows, long ignore, int count)
{
    scores_smooth_loss(st, loss, most, sum, hit, 0, targets, vals, rows, ignore, count, 0, 1);
}

void scores_smooth_loss(Stage *st, float *loss, float *most, const float *sum, const float *hit, const float *scores,
                        const int32_t *targets, const Values *vals, long rows, long ignore, int count, float smooth, long whole)
{
    total(st, AbsorbedLoss{most, sum, hit, scores, targets, ignore, 1.0f - smooth, smooth / (float)whole},
          MeanOfRows{loss, vals, count}, rows);
}

void scores_sum(Stage *st, float *to, ScoreRows x, long rows, float share)
{
    LAUNCH_ROWS(smooth_rows, rows, x.n, st, to, x, rows, share);
}

void scores_smooth_back(Stage *st, real *dx, const float *dloss, ScoreRows x, const float *lse, const int32_t *targets,
                        const Values *vals, long rows, long ignore, int count, float smooth, long whole)
{
    LAUNCH_ROWS(smooth_rows_back, rows, x.n, st, dx, dloss, x, lse, targets, vals, rows, ignore, count, smooth, whole);
}

void scores_back(Stage *st, real *dx, const float *dloss, ScoreRows x, const float *lse, const int32_t *targets,
                 const Values *vals, long rows, long ignore, int count)
{
    LAUNCH_ROWS(xent_rows_back, rows, x.n, st, dx, dloss, x, lse, targets, vals, rows, ignore, count);
}

void scores_aim(Stage *st, float *aim, float *ahead, const real *x, const real *weight, const real *bias,
                const int32_t *targets, const Values *vals, long rows, long in, long first, long out)
{
    LAUNCH_ROWS(aim_rows, rows, in, st, aim, ahead, x, weight, bias, targets, vals, rows, in, first, out);
}

void scores_ahead(Stage *st, float *ahead, const float *aim, ScoreRows x, const int32_t *targets, const Values *vals, long rows)
{
    LAUNCH_ROWS(ahead_rows, rows, x.n, st, ahead, aim, x, targets, vals, rows);
}

void scores_hits(Stage *st, Values *vals, const float *ahead, const int32_t *targets, long rows, long ignore, long top)
{
    LAUNCH(ahead_total, 1u, (unsigned)BLOCK, st, ahead, targets, vals, rows, ignore, top);
}

void scores_narrow(Stage *st, real *to, const float *from, long n)
{
    LAUNCH(narrow_all, blocks_for(ceil_div(n, WIDE)), (unsigned)BLOCK, st, to, from, n);
}

void xent_forward(Stage *st, float *loss, float *lse, const real *x, const int32_t *targets, const Values *vals,
                  long rows, long width, long ignore, int count)
{
    LAUNCH_ROWS(xent_rows, rows, width, st, lse, x, rows, width);
    total(st, RowLoss{lse, x, targets, width, ignore}, MeanOfRows{loss, vals, count}, rows);
}

void xent_backward(Stage *st, real *dx, const float *dloss, const real *x, const float *lse, const int32_t *targets,
                   const Values *vals, long rows, long width, long ignore, int count)
{
    scores_back(st, dx, dloss, ScoreRows{x, width, 0, width}, lse, targets, vals, rows, ignore, count);
}

void xent_both(Stage *st, float *loss, float *lse, real *dx, const float *dloss, const real *x, const int32_t *targets,
               const Values *vals, long rows, long width, long ignore, int count)
{
    size_t bytes = (size_t)width * sizeof(real), most = (size_t)KEPT_GROUPS * KEPT * BLOCK * 16;
    bool kept = width >= WIDE_ROW && width % WIDE == 0 && bytes <= most;
    unsigned blocks = kept ? leave_room(st, (const void *)xent_kept_both, BLOCK, bytes) : 0;
    if (blocks)
        LAUNCH_WITH(xent_kept_both, bytes, rows < blocks ? (unsigned)rows : blocks, (unsigned)BLOCK, st, dx, lse, dloss, x,
                    targets, vals, rows, (int)width, ignore, count);
    else
        LAUNCH_ROWS(xent_rows_both, rows, width, st, dx, lse, dloss, x, targets, vals, rows, width, ignore, count);
    total(st, RowLoss{lse, x, targets, width, ignore}, MeanOfRows{loss, vals, count}, rows);
}

/* The workspace begins with the parts of the total. */
void xent_smooth_forward(Stage *st, float *loss, float *lse, const real *x, const int32_t *targets, const Values *vals,
                         long rows, long width, long ignore, int count, float smooth)
{
    size_t ahead = PIECES * sizeof(double);
    float *part = (float *)((char *)workspace_of(st, ahead + (size_t)rows * sizeof *part) + ahead);
    LAUNCH_ROWS(xent_rows, rows, width, st, lse, x, rows, width);
    scores_sum(st, part, ScoreRows{x, width, 0, width}, rows, smooth / (float)width);
    total(st, SmoothLoss{lse, part, x, targets, width, ignore, 1.0f - smooth}, MeanOfRows{loss, vals, count}, rows);
}

void xent_smooth_backward(Stage *st, real *dx, const float *dloss, const real *x, const float *lse, const int32_t *targets,
                          const Values *vals, long rows, long width, long ignore, int count, float smooth)
{
    scores_smooth_back(st, dx, dloss, ScoreRows{x, width, 0, width}, lse, targets, vals, rows, ignore, count, smooth, width);
}

void hit_report(Stage *st, const real *x, const int32_t *targets, Values *vals, long rows, long width, long ignore, long top)
{
    float *aim = (float *)workspace_of(st, (size_t)(2 * rows) * sizeof *aim), *ahead = aim + rows;
    LAUNCH(seen_rows, blocks_for(rows), (unsigned)BLOCK, st, aim, ahead, x, targets, vals, rows, width, ignore);
    scores_ahead(st, ahead, aim, ScoreRows{x, width, 0, width}, targets, vals, rows);
    scores_hits(st, vals, ahead, targets, rows, ignore, top);
}
