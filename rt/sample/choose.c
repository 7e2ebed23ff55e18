/* SPDX-License-Identifier: Apache-2.0
 *
 * choose.c: the next token, from the scores of all.
 *
 * Tokens are ranked by descending score, equal ones by ascending number.  Temperature 0 takes the first.  Otherwise a token
 * weighs e^((score - the largest) / temperature).  Of the ranking the first top_k stay, and of them the fewest whose weights
 * reach top_p of the sum (A. Holtzman et al., The Curious Case of Neural Text Degeneration, 2020).  A random number times the
 * sum of those that stay falls upon one.
 *
 * All sums are of doubles, in the order of the ranking, with the exponential of number.c.  The random number is a function of
 * the seed and the place in the text.  So equal scores give equal text, on any machine.  Cost: a sort of the vocabulary.
 */
#include <math.h>
#include <stdlib.h>
#include "choose.h"
#include "number.h"

static int by_rank(const void *a, const void *b)
{
    const Ranked *x = a, *y = b;
    return x->score != y->score ? (x->score < y->score) - (x->score > y->score) : (x->id > y->id) - (x->id < y->id);
}

static double weight(const Ranked *r, long i, double temperature)
{
    double x = (r[i].score - r[0].score) / temperature;
    return x > -700 ? number_exp(x) : 0;
}

/* The first of n at which the sum of weights is above `part`; n-1 where rounding leaves none. */
static long reach(const Ranked *r, long n, double temperature, double part)
{
    double sum = 0;
    for (long i = 0; i < n; i++) {
        sum += weight(r, i, temperature);
        if (sum > part)
            return i;
    }
    return n - 1;
}

static double total(const Ranked *r, long n, double temperature)
{
    double sum = 0;
    for (long i = 0; i < n; i++)
        sum += weight(r, i, temperature);
    return sum;
}

/* The fewest whose weights are `enough` in sum, at least one. */
static long likeliest(const Ranked *r, long n, double temperature, double enough)
{
    double sum = weight(r, 0, temperature);
    long i = 1;
    while (i < n && sum < enough)
        sum += weight(r, i++, temperature);
    return i;
}

static double draw(uint64_t seed, int64_t at)
{
    uint32_t word[4];
    number_draw(seed, DRAW_TOKEN, 0, (uint64_t)at, word);
    return (double)(((uint64_t)word[1] << 32 | word[0]) >> 11) * 0x1p-53;
}

long choose_token(const double *score, long n, const Taste *t, int64_t at, Ranked *room)
{
    for (long i = 0; i < n; i++) {
        if (isnan(score[i]) || score[i] == INFINITY)
            return -1;
        room[i] = (Ranked){score[i], (int)i};
    }
    qsort(room, (size_t)n, sizeof *room, by_rank);
    if (t->temperature == 0)
        return room[0].id;
    if (t->top_k > 0 && t->top_k < n)
        n = t->top_k;
    if (t->top_p < 1)
        n = likeliest(room, n, t->temperature, t->top_p * total(room, n, t->temperature));
    return room[reach(room, n, t->temperature, draw(t->seed, at) * total(room, n, t->temperature))].id;
}
