/* SPDX-License-Identifier: Apache-2.0
 *
 * number.c: logarithm, exponential, root, cosine and power of double from the four operations, and keyed random words.
 *
 * Problem: start values and learning rates belong to the numeric key, and the last bit of log() or cos() differs between
 * mathematical libraries.  Method: exact argument reduction, then a series.  It is long enough that its remainder lies below
 * half a unit in the last place of the result; the bound stands next to each.  Compiled without contraction, every conforming
 * compiler gives the same bits.  Errors stay below 4 units in the last place; a test compares with the library's long double
 * functions.  Not handled: zero, negative, subnormal and infinite arguments, which no caller has.
 */
#include <string.h>
#include "number.h"
#include "philox.h"

static uint64_t bits_of(double x)
{
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static double of_bits(uint64_t u)
{
    double x;
    memcpy(&x, &u, sizeof x);
    return x;
}

double number_power(double x, int64_t n)
{
    double y = 1;
    for (; n > 0; n >>= 1, x *= x)
        if (n & 1)
            y *= x;
    return y;
}

/* x = m 2^e with m in [sqrt 1/2, sqrt 2); log m = 2 atanh s, s = (m-1)/(m+1), |s| < 0.1716; the first term left out is
 * 2 s^25/25 < 2^-66 s. */
double number_log(double x)
{
    static const double ln2_high = 0x1.62e42feep-1, ln2_low = 0x1.a39ef35793c76p-33;
    uint64_t u = bits_of(x);
    int e = (int)(u >> 52) - 1023;
    double m = of_bits((u & 0xfffffffffffffu) | 0x3ff0000000000000u);
    if (m > 1.4142135623730951) {
        m *= 0.5;
        e++;
    }
    double s = (m - 1) / (m + 1), z = s * s, sum = 0;
    for (int k = 23; k >= 3; k -= 2)
        sum = (sum + 1.0 / k) * z;
    return e * ln2_high + (2 * s + (2 * s * sum + e * ln2_low));
}

/* x = n ln 2 + r, |r| < 0.3466; the first term left out is r^15/15! < 2^-63. */
double number_exp(double x)
{
    static const double ln2_high = 0x1.62e42feep-1, ln2_low = 0x1.a39ef35793c76p-33;
    double q = x * 0x1.71547652b82fep+0, sum = 1;
    int64_t n = (int64_t)(q < 0 ? q - 0.5 : q + 0.5);
    double r = (x - (double)n * ln2_high) - (double)n * ln2_low;
    for (int k = 14; k >= 1; k--)
        sum = 1 + sum * r / k;
    return sum * of_bits((uint64_t)(n + 1023) << 52);
}

/* Halving the exponent gives a start within 6 %; Newton squares the error: 6e-2, 2e-3, 2e-6, 2e-12, 2e-24. */
double number_sqrt(double x)
{
    if (x == 0)
        return 0;
    double y = of_bits((bits_of(x) >> 1) + 0x1ff8000000000000u);
    for (int i = 0; i < 5; i++)
        y = 0.5 * (y + x / y);
    return y;
}

/* cos and sin on |x| <= pi/4; the first terms left out are x^18/18! < 2^-58 and x^19/19! < 2^-62. */
static double cos_near(double x)
{
    double z = x * x, sum = 1;
    for (int k = 16; k >= 2; k -= 2)
        sum = 1 - sum * z / (k * (k - 1));
    return sum;
}

static double sin_near(double x)
{
    double z = x * x, sum = 1;
    for (int k = 17; k >= 3; k -= 2)
        sum = 1 - sum * z / (k * (k - 1));
    return x * sum;
}

/* cos of x turns and `quarters` of a quarter turn.  The quarter and what is left of it are exact: only the product with
 * pi/2 rounds. */
static double turn(double x, int quarters)
{
    static const double half_pi = 0x1.921fb54442d18p+0;
    double q = 4 * x;
    int64_t k = (int64_t)(q + 0.5);
    double r = (q - (double)k) * half_pi;
    switch ((k + quarters) & 3) {
    case 0: return cos_near(r);
    case 1: return -sin_near(r);
    case 2: return -cos_near(r);
    default: return sin_near(r);
    }
}

double number_cos_turn(double x)
{
    return turn(x, 0);
}

double number_sin_turn(double x)
{
    return turn(x, 3);
}

void number_draw(uint64_t seed, int purpose, uint64_t name, uint64_t index, uint32_t word[4])
{
    Philox c = {{(uint32_t)index, (uint32_t)(index >> 32), (uint32_t)name, (uint32_t)(name >> 32)}};
    uint32_t apart = (uint32_t)purpose * 0x9e3779b9u;
    c = philox(c, (uint32_t)seed ^ apart, (uint32_t)(seed >> 32) ^ ~apart);
    memcpy(word, c.v, sizeof c.v);
}
