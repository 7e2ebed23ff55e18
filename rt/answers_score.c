/* SPDX-License-Identifier: Apache-2.0
 *
 * answers_score.c: LinearCrossEntropy; log sums that backward is given are taken as they are.
 */
#include "answers.h"

/* Of a score in bf16 its own rounding counts, else those of its sum. */
static Answer score_of(const Call *c, long row, long column)
{
    long in = of(c, "in");
    Answer a = product(part_of(c, "x"), row * in, 1, part_of(c, "weight"), column * in, 1, in);
    plus(&a, old_of(c, "bias", column));
    return sizeof(real) == sizeof(float) ? a : near(a.value, a.value);
}

static Answer linear_xent_lse(const Call *c, long row)
{
    double most = -INFINITY, sum = 0, size = 1;
    for (long j = 0; j < of(c, "out"); j++) {
        Answer s = score_of(c, row, j);
        double top = fmax(s.value, most);
        sum = sum * exp(most - top) + exp(s.value - top);
        most = top, size = fmax(s.terms, size);
    }
    return (Answer){most + log(sum), size};
}

static Answer linear_xent_loss(const Call *c, long i)
{
    int64_t valid = c->vals->valid[of(c, "count")];
    Answer a = {0, 0};
    (void)i;
    for (long row = 0; row < of(c, "rows") && valid; row++) {
        long target = (long)old_of(c, "targets", row);
        if (target == of(c, "ignore"))
            continue;
        plus(&a, new_at(part_of(c, "lse"), row) / (double)valid);
        plus_slope(&a, score_of(c, row, target), -1 / (double)valid);
    }
    return a;
}

/* (e^(s - lse) - [target]) dloss / valid */
static Answer score_slope(const Call *c, long row, long column)
{
    int64_t valid = c->vals->valid[of(c, "count")];
    long target = (long)old_of(c, "targets", row);
    if (!valid || target == of(c, "ignore"))
        return (Answer){0, 0};
    Answer s = score_of(c, row, column);
    double p = exp(s.value - old_of(c, "lse", row)), by = old_of(c, "dloss", 0) / (double)valid;
    return (Answer){(p - (target == column)) * by, (p * (1 + s.terms) + (target == column)) * fabs(by)};
}

/* Only an evaluation counts hits; the loss of the step stays. */
static Answer linear_xent_vals(const Call *c, long i) { return (void)i, (Answer){c->vals->loss, 0}; }

static Answer linear_xent_dx(const Call *c, long i)
{
    long in = of(c, "in");
    Answer a = {0, 0};
    for (long j = 0; j < of(c, "out"); j++)
        plus_slope(&a, score_slope(c, i / in, j), old_of(c, "weight", j * in + i % in));
    return a;
}

static Answer linear_xent_dweight(const Call *c, long i)
{
    long in = of(c, "in");
    Answer a = {0, 0};
    for (long row = 0; row < of(c, "rows"); row++)
        plus_slope(&a, score_slope(c, row, i / in), old_of(c, "x", row * in + i % in));
    return a;
}

static Answer linear_xent_dbias(const Call *c, long i)
{
    Answer a = {0, 0};
    for (long row = 0; row < of(c, "rows"); row++)
        plus_slope(&a, score_slope(c, row, i), 1);
    return a;
}

#define XENT "loss=1 lse=rows x=rows*in weight=out*in bias=out targets=rows dx=rows*in dweight=out*in dbias=out dloss=1"

static const Known known[] = {
    {"linear_xent_forward", "lse", XENT, linear_xent_lse, 4, 1},
    {"linear_xent_forward", "loss", XENT, linear_xent_loss, 0, 1},
    {"linear_xent_hits_forward", "lse", XENT, linear_xent_lse, 4, 1},
    {"linear_xent_hits_forward", "loss", XENT, linear_xent_loss, 0, 1},
    {"linear_xent_hits_forward", "vals", XENT, linear_xent_vals, 0, 0},
    {"linear_xent_backward", "dx", XENT, linear_xent_dx, 4, 1},
    {"linear_xent_backward", "dweight", XENT, linear_xent_dweight, 4, 1},
    {"linear_xent_backward", "dbias", XENT, linear_xent_dbias, 4, 1},
    {NULL, NULL, NULL, NULL, 0, 0},
};

const Answers answers_score = {known};
