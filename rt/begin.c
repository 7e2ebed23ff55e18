/* SPDX-License-Identifier: Apache-2.0
 *
 * begin.c: start values of a parameter, a function of (seed, name, element).
 *
 * Normal values come in pairs from two uniform numbers (Box and Muller, A note on the generation of random normal deviates,
 * 1958): no rejection, so that position i needs no other.
 */
#include <string.h>
#include "number.h"
#include "values.h"

/* FNV-1a of 64 bits (Fowler, Noll, Vo). */
uint64_t name_key(const char *name, uint64_t from)
{
    uint64_t h = 0xcbf29ce484222325u ^ from;
    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * 0x100000001b3u;
    return h;
}

/* Uniform in [0, 1), 53 bits. */
static double unit(uint32_t high, uint32_t low)
{
    return (double)(((uint64_t)high << 21) | (low >> 11)) * 0x1p-53;
}

/* Two elements from one draw. */
static void normal_pair(double x[2], const uint32_t word[4])
{
    double r = number_sqrt(-2 * number_log(1 - unit(word[0], word[1]))), turn = unit(word[2], word[3]);
    x[0] = r * number_cos_turn(turn);
    x[1] = r * number_sin_turn(turn);
}

static void uniform_pair(double x[2], const uint32_t word[4])
{
    x[0] = unit(word[0], word[1]);
    x[1] = unit(word[2], word[3]);
}

/* Elements first .. first+n-1, first even: x = from + scale * pair. */
static void random_fill(float *x, long first, long n, uint64_t key, uint64_t seed, double from, double scale,
                        void (*pair)(double *, const uint32_t *))
{
    for (long i = 0; i < n; i += 2) {
        uint32_t word[4];
        double two[2];
        number_draw(seed, DRAW_PARAMETER, key, (uint64_t)(first + i) / 2, word);
        pair(two, word);
        x[i] = (float)(from + scale * two[0]);
        if (i + 1 < n)
            x[i + 1] = (float)(from + scale * two[1]);
    }
}

static void constant_fill(float *x, long n, float value)
{
    for (long i = 0; i < n; i++)
        x[i] = value;
}

/* Row t of a table: the sines of the angles t f_i, then their cosines, f_i = theta^(-i/(half-less)) (A. Vaswani et al.,
 * Attention Is All You Need, 2017, section 3.5; those who put sines first divide by half or by half-1).  The last number of an
 * odd width is 0. */
static void sine_fill(float *x, const Start *s, long first, long n)
{
    long half = s->width / 2;
    for (long i = first; i < first + n; i++) {
        long row = i / s->width, at = i % s->width;
        double angle = (double)row * number_exp(-number_log(s->a) * (double)(at % half) / ((double)half - s->b));
        double turn = angle / 0x1.921fb54442d18p+2;
        x[i - first] = (float)(at < half ? number_sin_turn(turn) : at < 2 * half ? number_cos_turn(turn) : 0);
    }
}

void start_fill(float *x, const char *name, const Start *s, uint64_t seed, long first, long n)
{
    switch (s->kind) {
    case JOB_ONES:
        constant_fill(x, n, 1);
        break;
    case JOB_NORMAL:
        random_fill(x, first, n, name_key(name, 0), seed, s->a, s->b, normal_pair);
        break;
    case JOB_UNIFORM:
        random_fill(x, first, n, name_key(name, 0), seed, s->a, s->b - s->a, uniform_pair);
        break;
    case JOB_VALUES:
        memcpy(x, s->values + first, (size_t)n * sizeof *x);
        break;
    case JOB_SINES:
        sine_fill(x, s, first, n);
        break;
    default:
        constant_fill(x, n, 0);
    }
}
