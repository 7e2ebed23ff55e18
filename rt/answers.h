/* SPDX-License-Identifier: Apache-2.0
 *
 * answers.h: what the files answers_*.c share.  Each computes elements of results of some calls one by one, in f64, from the
 * calls' operands; the formulas are those of docs/operators.md.
 */
#ifndef ANSWERS_H
#define ANSWERS_H
#include <math.h>
#include "selftest.h"

static inline long of(const Call *c, const char *name) { return (long)number_of(c, name); }
static inline double old(const Call *c, const char *name, long i) { return old_of(c, name, i); }
static inline double made(const Call *c, const char *name, long i) { return new_at(part_of(c, name), i); }
static inline Answer exact(double x) { return (Answer){x, 0}; }
static inline Answer near(double x, double size) { return (Answer){x, fabs(size)}; }

static inline void plus(Answer *a, double x)
{
    a->value += x;
    a->terms += fabs(x);
}

/* The sum over j of x[x0 + j xs] y[y0 + j ys]. */
static inline Answer dot(const Operand *x, long x0, long xs, const Operand *y, long y0, long ys, long n)
{
    Answer a = {0, 0};
    for (long j = 0; j < n; j++)
        plus(&a, old_at(x, x0 + j * xs) * old_at(y, y0 + j * ys));
    return a;
}

/* Of a product of the library: in tf32 it rounds each factor to 11 bits. */
static inline Answer product(const Operand *x, long x0, long xs, const Operand *y, long y0, long ys, long n)
{
    Answer a = dot(x, x0, xs, y, y0, ys, n);
#ifdef TF32
    a.terms += 0x1p-10 / F32_SUM * a.terms;
#endif
    return a;
}

/* The call rounds this to the compute type before it goes on. */
static inline void rounded(Answer *a)
{
    if (sizeof(real) != sizeof(float))
        a->terms += 0x1p-8 / F32_SUM * fabs(a->value);
}

/* Of every `step`-th element from one on, n of them. */
static inline Answer column(const Operand *x, long from, long step, long n)
{
    Answer a = {0, 0};
    for (long j = 0; j < n; j++)
        plus(&a, old_at(x, from + j * step));
    return a;
}

static inline double log_sum(const Call *c, long row)
{
    long n = of(c, "width");
    double most = -INFINITY, sum = 0;
    for (long j = 0; j < n; j++)
        most = fmax(most, old(c, "x", row * n + j));
    for (long j = 0; j < n; j++)
        sum += exp(old(c, "x", row * n + j) - most);
    return most + log(sum);
}

static inline Answer sum_y(const Call *c, long i) { return exact(old(c, "a", i) + old(c, "b", i)); }
static inline Answer scale_y(const Call *c, long i) { return exact(old(c, "x", i) * number_of(c, "factor")); }
/* Of a mean over all elements of a step. */
static inline double share(const Call *c) { return 1 / ((double)of(c, "n") * c->vals->micro); }

/* Gelu(x) is 0.5 x (1 + this). */
static inline double gelu_share(double x, long by_tanh)
{
    return by_tanh ? tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)) : erf(x * 0.70710678118654752440);
}

static inline double gelu_slope(double x, long by_tanh)
{
    double t = gelu_share(x, by_tanh), density = 0.39894228040143267794;
    return 0.5 * (1 + t) + x * density * (by_tanh ? (1 - t * t) * (1 + 3 * 0.044715 * x * x) : exp(-0.5 * x * x));
}

/* What slope and row of queries or keys add up to. */
static inline void plus_slope(Answer *a, Answer slope, double by)
{
    a->value += slope.value * by;
    a->terms += fabs(slope.terms * by);
}

/* Of an update: the gradient as it is clipped, and how much weights decay. */
static inline double clipped(const Call *c, long i)
{
    return old(c, "g", i) * (part_of(c, "clip") ? old(c, "clip", 0) : 1);
}

static inline double decay(const Call *c) { return of(c, "decay") ? (double)c->vals->weight_decay : 0; }
#endif
