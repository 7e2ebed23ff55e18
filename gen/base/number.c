/* SPDX-License-Identifier: Apache-2.0
 *
 * number.c: decimal text to the nearest double, in any locale.
 *
 * Problem: the result of strtod() depends on the locale and, in some C libraries, on luck in the last bit.  The generator's
 * output may depend on neither.  Method: the number is written as a fraction of two exact integers, num/den, both scaled by
 * powers of two until 1 <= num/den < 2.  Its bits come from a long division one by one, and the remainder decides the
 * rounding, to even in a tie.  Subnormal results take fewer bits.
 *
 * Source: William D. Clinger, How to Read Floating Point Numbers Accurately, 1990, section 3 (the exact algorithm; its fast
 * paths are not needed for the few numbers of a model file).  Cost: 53 passes over at most 1 KiB.  Not handled: hexadecimal
 * and infinities.  Digits after the 800th only count as being there or not; a tie between two doubles has at most 767.
 */
#include "base.h"
#include <ctype.h>
#include <math.h>

enum { LIMBS = 200, MOST_DIGITS = 800 };
typedef struct { int n; uint32_t d[LIMBS]; } BaseBig;   /* d[0] is the lowest; n limbs, the highest not zero */

static void times_add(BaseBig *b, uint32_t factor, uint32_t more)
{
    uint64_t carry = more;
    for (int i = 0; i < b->n; i++) {
        carry += (uint64_t)b->d[i] * factor;
        b->d[i] = (uint32_t)carry;
        carry >>= 32;
    }
    if (carry && b->n == LIMBS)
        die("a number outgrows %d limbs", LIMBS);
    if (carry)
        b->d[b->n++] = (uint32_t)carry;
}

static void double_up(BaseBig *b, int times)
{
    for (; times >= 31; times -= 31)
        times_add(b, UINT32_C(1) << 31, 0);
    times_add(b, UINT32_C(1) << times, 0);
}

static int bits(const BaseBig *b)
{
    int n = 32 * b->n;
    for (uint32_t top = b->n ? b->d[b->n - 1] : 0; b->n && !(top >> 31); top <<= 1)
        n--;
    return n;
}

static int compare(const BaseBig *a, const BaseBig *b)
{
    if (a->n != b->n)
        return a->n - b->n;
    for (int i = a->n - 1; i >= 0; i--)
        if (a->d[i] != b->d[i])
            return a->d[i] < b->d[i] ? -1 : 1;
    return 0;
}

static void subtract(BaseBig *a, const BaseBig *b)
{
    int64_t borrow = 0;
    for (int i = 0; i < a->n; i++) {
        borrow += (int64_t)a->d[i] - (i < b->n ? b->d[i] : 0);
        a->d[i] = (uint32_t)borrow;
        borrow >>= 32;
    }
    while (a->n && !a->d[a->n - 1])
        a->n--;
}

/* num/den, rounded; both are positive and are used up */
static double quotient(BaseBig *num, BaseBig *den)
{
    int e = bits(num) - bits(den);
    double_up(e > 0 ? den : num, abs(e));
    if (compare(num, den) < 0) {
        double_up(num, 1);
        e--;
    }
    int wanted = e >= -1022 ? 53 : 53 + 1022 + e;
    uint64_t m = 0;
    if (wanted < 0)
        return 0;
    for (int i = 0; i < wanted; i++) {
        bool bit = compare(num, den) >= 0;
        if (bit)
            subtract(num, den);
        m = m << 1 | bit;
        double_up(num, 1);
    }
    int rest = compare(num, den);
    m += rest > 0 || (rest == 0 && (m & 1));
    return ldexp((double)m, e - wanted + 1);
}

double number_decimal(const char *text, size_t n)
{
    BaseBig num = { 0, { 0 } }, den = { 1, { 1 } };
    int digits = 0;
    long power = 0;
    bool point = false, more = false;
    size_t i;
    for (i = 0; i < n && (isdigit((unsigned char)text[i]) || text[i] == '.'); i++) {
        if (text[i] == '.') {
            point = true;
            continue;
        }
        bool kept = digits < MOST_DIGITS;
        if (kept)
            times_add(&num, 10, (uint32_t)(text[i] - '0'));
        digits += num.n > 0;
        more |= !kept && text[i] != '0';
        power += !kept - point;
    }
    if (i + 1 < n) {            /* e, a sign, digits: a long is enough for any that matters */
        long e = strtol(text + i + 1, NULL, 10);
        power += e > 100000 ? 100000 : e < -100000 ? -100000 : e;
    }
    if (!num.n || digits + power < -330)
        return 0;
    if (digits + power > 310)
        return HUGE_VAL;
    if (more) {
        times_add(&num, 10, 1);
        power--;
    }
    for (BaseBig *b = power > 0 ? &num : &den; power; power += power > 0 ? -1 : 1)
        times_add(b, 10, 0);
    return quotient(&num, &den);
}

const char *number_text(double x, int digits)
{
    const char *text = strf("%.*g", digits, x);
    while (digits < 17 && number_decimal(text, strlen(text)) != x)
        text = strf("%.*g", ++digits, x);
    return text;
}

uint64_t number_little(const unsigned char *at, int n)
{
    uint64_t x = 0;
    for (int i = 0; i < n; i++)
        x |= (uint64_t)at[i] << (8 * i);
    return x;
}

int64_t number_common(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}
