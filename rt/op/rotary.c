/* SPDX-License-Identifier: Apache-2.0
 *
 * Rotary positions (J. Su et al., RoFormer, 2021): of each head's first `dims` numbers, pair j at position t is turned by the
 * angle t f_j, f_j = theta^(-2j/dims); the rest stay as they are.  A pair is (j, j + dims/2), or neighbours (2j, 2j+1).
 * Backward turns the other way.
 *
 * f_j is rounded to float, and so is its product with t, as where weights of today were trained.  Cosine and sine of that
 * angle are made in double from the four operations (rt/number.h), then rounded: the same bits everywhere, and no table.
 * Scaling: linear divides f_j by `factor`; llama3 does so for wavelengths above original/low, leaves those below
 * original/high, and goes from one to the other between (Llama Team, The Llama 3 Herd of Models, 2024, and its code).  yarn
 * divides pairs that turn fewer than `low` times in `original` positions, leaves those that turn more than `high` times, and
 * goes from one to the other by the number of the pair (B. Peng et al., YaRN, 2023, section 3.2); the bounds are whole
 * numbers, which yarn-exact leaves as they are.
 * A table divides the frequency of each pair by a number of its own (Y. Ding et al., LongRoPE, 2024).
 * documents: the positions of each document of a sample begin at 0.
 * Threads split positions, in runs of 64.
 */
#include "documents.h"
#include "kernel.h"
#include "../number.h"

#define TURN 0x1.921fb54442d18p+2       /* 2 pi */
enum { NONE, LINEAR, LLAMA3, YARN, YARN_EXACT, POSITIONS = 64, PAIRS = 64 };

typedef struct {
    long batch, seq, heads, width, dims, adjacent;
    float theta;
    long scaling;
    float factor, low, high;
    long original;
    const int32_t *documents;   /* [batch seq]; 0: a sample is one */
    const float *table;         /* [dims/2]; 0: none */
} Rotary;

static double whole(double x)
{
    double t = (double)(long)x;
    return t > x ? t - 1 : t;
}

/* The number of the pair that turns so many times in the positions of the first training. */
static double pair_of(const Rotary *r, double times)
{
    return (double)r->dims * number_log((double)r->original / (times * TURN)) / (2 * number_log(r->theta));
}

/* 0: the pair stays, 1: it is divided. */
static double yarn(const Rotary *r, long pair)
{
    double from = pair_of(r, r->high), to = pair_of(r, r->low), most = (double)(r->dims - 1);
    if (r->scaling == YARN) {
        from = whole(from);
        to = -whole(-to);
    }
    from = from > 0 ? from : 0;
    to = to < most ? to : most;
    to = to == from ? to + 0.001 : to;
    double share = ((double)pair - from) / (to - from);
    return share < 0 ? 0 : share > 1 ? 1 : share;
}

static float frequency(const Rotary *r, long pair)
{
    double plain = (float)number_exp(-2.0 * (double)pair / (double)r->dims * number_log(r->theta));
    double turns = (double)r->original * plain / TURN;          /* in the positions of the first training */
    double share = (turns - r->low) / ((double)r->high - r->low);
    if (r->table)
        return (float)(plain / r->table[pair]);
    if (r->scaling == NONE || (r->scaling == LLAMA3 && turns > r->high))
        return (float)plain;
    if (r->scaling >= YARN)
        return (float)(plain / r->factor * yarn(r, pair) + plain * (1 - yarn(r, pair)));
    if (r->scaling == LINEAR || turns < r->low)
        return (float)(plain / r->factor);
    return (float)((1 - share) * plain / r->factor + share * plain);
}

/* Cosines and sines of a position; sign -1 turns back. */
static void directions(float *c, float *s, const float *f, long n, long t, float sign)
{
    for (long j = 0; j < n; j++) {
        float angle = (float)t * f[j];
        c[j] = (float)number_cos_turn(angle / TURN);
        s[j] = sign * (float)number_sin_turn(angle / TURN);
    }
}

static void turn_halves(real *y, const real *x, const float *c, const float *s, long n, long half)
{
    for (long j = 0; j < n; j++) {
        float u = get(x, j), v = get(x, half + j);
        put(y, j, u * c[j] - v * s[j]);
        put(y, half + j, v * c[j] + u * s[j]);
    }
}

static void turn_neighbours(real *y, const real *x, const float *c, const float *s, long n)
{
    for (long j = 0; j < n; j++) {
        float u = get(x, 2 * j), v = get(x, 2 * j + 1);
        put(y, 2 * j, u * c[j] - v * s[j]);
        put(y, 2 * j + 1, v * c[j] + u * s[j]);
    }
}

/* Pairs pair .. pair+n-1 of every sample and head at positions from .. to-1 */
static void turn_pairs(real *y, const real *x, const Rotary *r, long pair, long n, long from, long to, float sign)
{
    float f[PAIRS], c[PAIRS], s[PAIRS];
    for (long j = 0; j < n; j++)
        f[j] = frequency(r, pair + j);
    long begin = r->documents ? document_begin(r->documents, from) : 0;
    for (long t = from; t < to; t++) {
        begin = r->documents && t && r->documents[t] != r->documents[t - 1] ? t : begin;
        directions(c, s, f, n, t - begin, sign);
        for (long i = 0; i < r->batch * r->heads; i++) {
            long at = ((i / r->heads * r->seq + t) * r->heads + i % r->heads) * r->width + (r->adjacent ? 2 * pair : pair);
            if (r->adjacent)
                turn_neighbours(y + at, x + at, c, s, n);
            else
                turn_halves(y + at, x + at, c, s, n, r->dims / 2);
        }
    }
}

/* Samples with one numbering of positions. */
static void turn_samples(Stage *st, real *y, const real *x, const Rotary *r, float sign)
{
    size_t rest = (size_t)(r->width - r->dims) * sizeof *y;
    EACH(r->batch * r->seq * r->heads * r->width >= 1 << 14)
    for (long from = 0; from < r->seq; from += POSITIONS) {
        long to = least(from + POSITIONS, r->seq);
        for (long pair = 0; pair < r->dims / 2; pair += PAIRS)
            turn_pairs(y, x, r, pair, least(PAIRS, r->dims / 2 - pair), from, to, sign);
        for (long b = 0; rest && b < r->batch; b++)
            for (long row = (b * r->seq + from) * r->heads; row < (b * r->seq + to) * r->heads; row++)
                memcpy(y + row * r->width + r->dims, x + row * r->width + r->dims, rest);
    }
}

static void turn(Stage *st, real *y, const real *x, const Rotary *r, float sign)
{
    if (!r->documents)
        turn_samples(st, y, x, r, sign);
    for (long b = 0; r->documents && b < r->batch; b++) {
        Rotary one = *r;
        long at = b * r->seq * r->heads * r->width;
        one.batch = 1;
        one.documents = r->documents + b * r->seq;
        turn_samples(st, y + at, x + at, &one, sign);
    }
}

void rotary_forward(Stage *st, real *y, const real *x, long batch, long seq, long heads, long width, long dims, long adjacent,
                    float theta, long scaling, float factor, float low, float high, long original)
{
    Rotary r = {batch, seq, heads, width, dims, adjacent, theta, scaling, factor, low, high, original, 0, 0};
    turn(st, y, x, &r, 1.0f);
}

void rotary_backward(Stage *st, real *dx, const real *dy, long batch, long seq, long heads, long width, long dims,
                     long adjacent, float theta, long scaling, float factor, float low, float high, long original)
{
    Rotary r = {batch, seq, heads, width, dims, adjacent, theta, scaling, factor, low, high, original, 0, 0};
    turn(st, dx, dy, &r, -1.0f);
}

void rotary_documents_forward(Stage *st, real *y, const real *x, const int32_t *documents, long batch, long seq, long heads,
                              long width, long dims, long adjacent, float theta, long scaling, float factor, float low,
                              float high, long original)
{
    Rotary r = {batch, seq, heads, width, dims, adjacent, theta, scaling, factor, low, high, original, documents, 0};
    turn(st, y, x, &r, 1.0f);
}

void rotary_documents_backward(Stage *st, real *dx, const real *dy, const int32_t *documents, long batch, long seq, long heads,
                               long width, long dims, long adjacent, float theta, long scaling, float factor, float low,
                               float high, long original)
{
    Rotary r = {batch, seq, heads, width, dims, adjacent, theta, scaling, factor, low, high, original, documents, 0};
    turn(st, dx, dy, &r, -1.0f);
}

static void turn_by_table(Stage *st, real *y, const real *x, const int32_t *documents, const float *factors, long batch,
                          long seq, long heads, long width, long dims, long adjacent, float theta, float sign)
{
    Rotary r = {batch, seq, heads, width, dims, adjacent, theta, NONE, 1, 1, 4, 1, documents, factors};
    turn(st, y, x, &r, sign);
}

void rotary_table_forward(Stage *st, real *y, const real *x, const int32_t *documents, const float *factors, long batch,
                          long seq, long heads, long width, long dims, long adjacent, float theta)
{
    turn_by_table(st, y, x, documents, factors, batch, seq, heads, width, dims, adjacent, theta, 1.0f);
}

void rotary_table_backward(Stage *st, real *dx, const real *dy, const int32_t *documents, const float *factors, long batch,
                           long seq, long heads, long width, long dims, long adjacent, float theta)
{
    turn_by_table(st, dx, dy, documents, factors, batch, seq, heads, width, dims, adjacent, theta, -1.0f);
}
