/* SPDX-License-Identifier: Apache-2.0
 *
 * Experts: every token goes to `top` of them (N. Shazeer et al., Outrageously Large Neural Networks, 2017; W. Fedus et al.,
 * Switch Transformers, 2022).
 *
 * Route chooses the largest logits of a row, equal ones to the lower expert.  There is no capacity: rows of tokens are laid
 * one behind the other, sorted by expert and in it by token, n top rows whatever the routing.  slot says where the row of a
 * token and choice stands, and offset where each expert begins.  Dispatch lays rows there, and Combine adds them up with
 * their shares.
 *
 *     p = softmax or sigmoid of the logits      share = p of the choice, over the sum of the chosen if normalised
 *
 * A correction is added to p for the choice alone (DeepSeek-AI, DeepSeek-V3 Technical Report, 2024, section 2.1.2).
 * With groups of experts, those of the `kept` groups are chosen whose `best` largest add up to most.  With best 1 and no
 * correction, logits stand for p.
 *
 *     y[token] = sum over choices of share row[slot]
 *
 * The loss that spreads tokens (Switch) is factor experts sum of f p, f the part of the tokens that chose an expert, p its mean
 * probability, over the micro-batches of the step.
 *
 * Order: the sum of a softmax by 16 lanes; over chosen experts, and rows of a token, by rank; f and p over tokens ascending.
 */
#include "experts.h"
#include "../curves.h"

enum { EXPERTS = 1024, GROUPS = 64, BEST = 8, SOFTMAX = 0 };      /* the shape rule refuses more */

/* Probabilities of a row of logits. */
static void odds(float *p, const real *x, long experts, long scores)
{
    float most = row_max(x, experts), sum;
    if (scores != SOFTMAX) {
        for (long e = 0; e < experts; e++)
            p[e] = fsigmoid(get(x, e));
        return;
    }
    for (long e = 0; e < experts; e++)
        p[e] = fexp(get(x, e) - most);
    SUM_OF(sum, experts, e, p[e]);
    for (long e = 0; e < experts; e++)
        p[e] /= sum;
}

/* What a row is chosen by.  A NaN comes last. */
static void rank(float *v, const float *p, const real *x, const float *correction, long experts, long best)
{
    for (long e = 0; e < experts; e++) {
        v[e] = correction ? p[e] + correction[e] : best > 1 ? p[e] : get(x, e);
        v[e] = v[e] == v[e] ? v[e] : -F_INFINITY;
    }
}

/* The `top` largest: each is the first behind the one before it, in the order of larger values and then lower numbers. */
static void choose(int32_t *chosen, const float *v, long n, long top)
{
    float last = F_INFINITY;
    for (long j = 0, before = -1; j < top; j++) {
        long most = -1;
        for (long e = 0; e < n; e++)
            if ((v[e] < last || (v[e] == last && e > before)) && (most < 0 || v[e] > v[most]))
                most = e;
        last = v[most];
        chosen[j] = (int32_t)(before = most);
    }
}

/* The others of a group that is not kept come last. */
static void keep_groups(float *v, long experts, long groups, long kept, long best)
{
    float sum[GROUPS] = {0};
    int32_t chosen[GROUPS > BEST ? GROUPS : BEST];
    char keep[GROUPS] = {0};
    long size = experts / groups;
    for (long g = 0; g < groups; g++) {
        choose(chosen, v + g * size, size, best);
        for (long j = 0; j < best; j++)
            sum[g] += v[g * size + chosen[j]];
    }
    choose(chosen, sum, groups, kept);
    for (long j = 0; j < kept; j++)
        keep[chosen[j]] = 1;
    for (long e = 0; e < experts; e++)
        v[e] = keep[e / size] ? v[e] : -F_INFINITY;
}

static float chosen_sum(const float *p, const int32_t *expert, long top)
{
    float sum = 0;
    for (long j = 0; j < top; j++)
        sum += p[expert[j]];
    return sum;
}

/* Where each row goes: behind those of lower experts and of earlier tokens. */
static void lay_out(int32_t *slot, int32_t *offset, const int32_t *expert, long n, long experts)
{
    int32_t next[EXPERTS];
    memset(offset, 0, (size_t)(experts + 1) * sizeof *offset);
    for (long i = 0; i < n; i++)
        offset[expert[i] + 1]++;
    for (long e = 0; e < experts; e++)
        offset[e + 1] += offset[e];
    memcpy(next, offset, (size_t)experts * sizeof *next);
    for (long i = 0; i < n; i++)
        slot[i] = next[expert[i]]++;
}

void route_forward(Stage *st, real *share, int32_t *expert, int32_t *slot, int32_t *offset, const real *x,
                   const float *correction, long rows, long experts, long top, long normalize, long scores, long groups,
                   long kept, long best)
{
    EACH(rows * experts * top >= 1 << 15)
    for (long r = 0; r < rows; r++) {
        float p[EXPERTS], v[EXPERTS];
        odds(p, x + r * experts, experts, scores);
        rank(v, p, x + r * experts, correction, experts, best);
        if (groups > 1)
            keep_groups(v, experts, groups, kept, best);
        choose(expert + r * top, v, experts, top);
        float sum = normalize ? chosen_sum(p, expert + r * top, top) : 1.0f;
        for (long j = 0; j < top; j++)
            put(share, r * top + j, p[expert[r * top + j]] / sum);
    }
    lay_out(slot, offset, expert, rows * top, experts);
}

void route_backward(Stage *st, real *dx, const real *dshare, const real *x, const int32_t *expert, long rows, long experts,
                    long top, long normalize, long scores)
{
    EACH(rows * experts >= 1 << 12)
    for (long r = 0; r < rows; r++) {
        const int32_t *mine = expert + r * top;
        float p[EXPERTS], slope[EXPERTS] = {0}, whole = 0, dot = 0;
        odds(p, x + r * experts, experts, scores);
        float sum = normalize ? chosen_sum(p, mine, top) : 1.0f;
        for (long j = 0; normalize && j < top; j++)
            whole += get(dshare, r * top + j) * (p[mine[j]] / sum);
        for (long j = 0; j < top; j++) {
            slope[mine[j]] = (get(dshare, r * top + j) - whole) / sum;
            dot += slope[mine[j]] * p[mine[j]];
        }
        for (long e = 0; e < experts; e++)
            put(dx, r * experts + e, scores == SOFTMAX ? p[e] * (slope[e] - dot) : slope[e] * (p[e] * (1.0f - p[e])));
    }
}

/* y[slot[r j]] = x[r] */
void dispatch_forward(Stage *st, real *y, const real *x, const int32_t *slot, long rows, long top, long width)
{
    EACH(rows * top * width >= 1 << 14)
    for (long i = 0; i < rows * top; i++)
        memcpy(y + slot[i] * width, x + i / top * width, (size_t)width * sizeof *y);
}

void dispatch_backward(Stage *st, real *dx, const real *dy, const int32_t *slot, long rows, long top, long width)
{
    add_choices(st, dx, dy, slot, rows, top, width);
}

void combine_forward(Stage *st, real *y, const real *x, const real *share, const int32_t *slot, long rows, long top, long width)
{
    add_shares(st, y, x, share, slot, rows, top, width);
}

void combine_backward(Stage *st, real *dx, real *dshare, const real *dy, const real *x, const real *share, const int32_t *slot,
                      long rows, long top, long width)
{
    share_back(st, dx, dshare, dy, x, share, slot, rows * top, top, width, 0, rows * top);
}

/* ---- the loss that spreads tokens ------------------------------------------------------------------------------------ */

/* The part of the tokens that chose each expert. */
static void parts(float *f, const int32_t *expert, long rows, long experts, long top)
{
    long count[EXPERTS] = {0};
    for (long i = 0; i < rows * top; i++)
        count[expert[i]]++;
    for (long e = 0; e < experts; e++)
        f[e] = (float)count[e] / (float)rows;
}

void route_loss_forward(Stage *st, float *loss, const real *x, const int32_t *expert, const Values *vals, long rows,
                        long experts, long top, float factor)
{
    float f[EXPERTS], p[EXPERTS];
    double sum = 0;
    (void)st;
    parts(f, expert, rows, experts, top);
    for (long r = 0; r < rows; r++) {
        odds(p, x + r * experts, experts, SOFTMAX);
        for (long e = 0; e < experts; e++)
            sum += (double)f[e] * (double)p[e];
    }
    *loss = (float)((double)factor * (double)experts * sum / ((double)rows * (double)vals->micro));
}

void route_loss_backward(Stage *st, real *dx, const float *dloss, const real *x, const int32_t *expert, const Values *vals,
                         long rows, long experts, long top, float factor)
{
    float f[EXPERTS], by = *dloss * factor * (float)experts / ((float)rows * (float)vals->micro);
    parts(f, expert, rows, experts, top);
    EACH(rows * experts >= 1 << 12)
    for (long r = 0; r < rows; r++) {
        float p[EXPERTS], dot;
        odds(p, x + r * experts, experts, SOFTMAX);
        SUM_OF(dot, experts, e, p[e] * f[e]);
        for (long e = 0; e < experts; e++)
            put(dx, r * experts + e, by * (p[e] * (f[e] - dot)));
    }
}
