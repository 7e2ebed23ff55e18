/* SPDX-License-Identifier: Apache-2.0
 *
 * Rotary positions (J. Su et al., RoFormer, 2021): of each head's first `dims` numbers, pair j at position t is turned by the
 * angle t f_j, f_j = theta^(-2j/dims); the rest stay as they are.  A pair is (j, j + dims/2), or neighbours (2j, 2j+1).
 * Backward turns the other way.
 *
 * f_j is rounded to float, and so is its product with t, as where weights of today were trained.  Cosine and sine of that
 * angle are made in double from the four operations (rt/number.h), then rounded: the same bits everywhere, and no table.
 * Scaling: linear divides f_j by `factor`; llama3 does so for wavelengths above original/low, leaves those below
 * original/high, and goes from one to the other between (Llama Team, The Llama 3 Herd of Models, 2024, and its code).
 * Threads split positions, in runs of 64.
 */
#include "kernel.h"
#include "../number.h"

#define TURN 0x1.921fb54442d18p+2       /* 2 pi */
enum { NONE, LINEAR, LLAMA3, POSITIONS = 64 };

typedef struct {
    long batch, seq, heads, width, dims, adjacent;
    float theta;
    long scaling;
    float factor, low, high;
    long original;
} Rotary;

static float frequency(const Rotary *r, long pair)
{
    double plain = (float)number_exp(-2.0 * (double)pair / (double)r->dims * number_log(r->theta));
    double turns = (double)r->original * plain / TURN;          /* in the positions of the first training */
    double share = (turns - r->low) / ((double)r->high - r->low);
    if (r->scaling == NONE || (r->scaling == LLAMA3 && turns > r->high))
        return (float)plain;
    if (r->scaling == LINEAR || turns < r->low)
        return (float)(plain / r->factor);
    return (float)((1 - share) * plain / r->factor + share * plain);
}

/* Pair `pair` of every sample and head at positions from .. to-1; sign -1 turns back. */
static void turn_pair(real *y, const real *x, const Rotary *r, long pair, long from, long to, float sign)
{
    float f = frequency(r, pair);
    long i = r->adjacent ? 2 * pair : pair, k = r->adjacent ? i + 1 : pair + r->dims / 2;
    for (long t = from; t < to; t++) {
        float angle = (float)t * f;
        float c = (float)number_cos_turn(angle / TURN), s = sign * (float)number_sin_turn(angle / TURN);
        for (long n = 0; n < r->batch * r->heads; n++) {
            long at = ((n / r->heads * r->seq + t) * r->heads + n % r->heads) * r->width;
            float u = get(x, at + i), v = get(x, at + k);
            put(y, at + i, u * c - v * s);
            put(y, at + k, v * c + u * s);
        }
    }
}

static void turn(Stage *st, real *y, const real *x, const Rotary *r, float sign)
{
    size_t rest = (size_t)(r->width - r->dims) * sizeof *y;
    EACH(r->batch * r->seq * r->heads * r->width >= 1 << 14)
    for (long from = 0; from < r->seq; from += POSITIONS) {
        long to = least(from + POSITIONS, r->seq);
        for (long pair = 0; pair < r->dims / 2; pair++)
            turn_pair(y, x, r, pair, from, to, sign);
        for (long b = 0; rest && b < r->batch; b++)
            for (long row = (b * r->seq + from) * r->heads; row < (b * r->seq + to) * r->heads; row++)
                memcpy(y + row * r->width + r->dims, x + row * r->width + r->dims, rest);
    }
}

void rotary_forward(Stage *st, real *y, const real *x, long batch, long seq, long heads, long width, long dims, long adjacent,
                    float theta, long scaling, float factor, float low, float high, long original)
{
    Rotary r = {batch, seq, heads, width, dims, adjacent, theta, scaling, factor, low, high, original};
    turn(st, y, x, &r, 1.0f);
}

void rotary_backward(Stage *st, real *dx, const real *dy, long batch, long seq, long heads, long width, long dims,
                     long adjacent, float theta, long scaling, float factor, float low, float high, long original)
{
    Rotary r = {batch, seq, heads, width, dims, adjacent, theta, scaling, factor, low, high, original};
    turn(st, dx, dy, &r, -1.0f);
}
