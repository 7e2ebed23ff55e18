/* SPDX-License-Identifier: Apache-2.0
 *
 * answers_recur.c: an element of a recurrent call, or of additive scores, in f64 from the call's operands.  A step of an LSTM
 * is held against the step before as the call left it, so that roundings do not add up.  The formulas are those of
 * docs/operators.md.
 */
#include "answers.h"
#include "philox.h"

static double logistic(double x) { return 1 / (1 + exp(-x)); }

/* ---- an LSTM ------------------------------------------------------------------------------------------------------- */

static bool is_on(const Call *c, long row) { return !part_of(c, "mask") || old(c, "mask", row) != 0; }

/* What the steps make of element i of the weight. */
static double factor(const Call *c, long i)
{
    double drop = number_of(c, "drop");
    float f = 1;
    Drop d = drop_of(c->vals, of(c, "mb"), (float)drop, part_of(c, "site")->given.i);
    if (drop != 0 && !c->vals->eval)
        drop_factors(&f, &d, i, 1);
    return f;
}

static double weight(const Call *c, long i) { return old(c, "weight", i) * factor(c, i); }

/* The rows of a sample, in the order of its steps: the one before, and the next; -1: there is none. */
static long before(const Call *c, long row)
{
    long t = row % of(c, "time");
    return of(c, "reverse") ? (t + 1 < of(c, "time") ? row + 1 : -1) : t > 0 ? row - 1 : -1;
}

static long after(const Call *c, long row)
{
    long t = row % of(c, "time");
    return of(c, "reverse") ? (t > 0 ? row - 1 : -1) : t + 1 < of(c, "time") ? row + 1 : -1;
}

/* The row whose y is h before this one; -1: h is 0. */
static long state_before(const Call *c, long row)
{
    for (row = before(c, row); row >= 0 && !is_on(c, row);)
        row = before(c, row);
    return row;
}

static Answer recur_gates(const Call *c, long i)
{
    long hidden = of(c, "hidden"), row = i / (4 * hidden), j = i % (4 * hidden), h = state_before(c, row);
    Answer a = {0, 0};
    if (!is_on(c, row))
        return a;
    plus(&a, old(c, "x", i));
    plus(&a, old(c, "bias", j));
    for (long k = 0; h >= 0 && k < hidden; k++)
        plus(&a, made(c, "y", h * hidden + k) * weight(c, j * hidden + k));
    a.value = j / hidden == 2 ? tanh(a.value) : logistic(a.value);
    return a;
}

static Answer recur_c(const Call *c, long i)
{
    long hidden = of(c, "hidden"), row = i / hidden, u = i % hidden, last = before(c, row), at = row * 4 * hidden + u;
    double was = last >= 0 ? made(c, "c", last * hidden + u) : 0;
    Answer a = {0, 0};
    if (!is_on(c, row))
        return (Answer){was, 0};
    plus(&a, made(c, "gates", at + hidden) * was);
    plus(&a, made(c, "gates", at) * made(c, "gates", at + 2 * hidden));
    a.terms += 1;               /* the gates of the call were not yet rounded */
    return a;
}

static Answer recur_y(const Call *c, long i)
{
    long hidden = of(c, "hidden"), row = i / hidden, u = i % hidden;
    if (!is_on(c, row))
        return (Answer){0, 0};
    return (Answer){made(c, "gates", (row * 4 + 3) * hidden + u) * tanh(made(c, "c", i)), 1};
}

/* What comes to h of a row from the next step that is on. */
static void plus_next(Answer *a, const Call *c, long row, long u)
{
    long hidden = of(c, "hidden");
    for (row = after(c, row); row >= 0 && !is_on(c, row);)
        row = after(c, row);
    for (long j = 0; row >= 0 && j < 4 * hidden; j++)
        plus(a, made(c, "dx", row * 4 * hidden + j) * weight(c, j * hidden + u));
}

/* The gradients of h and of the cell at a row: the cell's goes through all later steps. */
static void state_back(const Call *c, long row, long u, Answer *h, Answer *cell)
{
    long hidden = of(c, "hidden"), end = row, at = row * hidden + u, gate = row * 4 * hidden + u;
    *cell = (Answer){0, 0};
    while (after(c, end) >= 0)
        end = after(c, end);
    for (long r = end;; r = before(c, r)) {
        at = r * hidden + u;
        gate = r * 4 * hidden + u;
        *h = (Answer){0, 0};
        if (is_on(c, r)) {
            double t = tanh(old(c, "c", at)), by = old(c, "gates", gate + 3 * hidden) * (1 - t * t);
            plus(h, old(c, "dy", at));
            plus_next(h, c, r, u);
            cell->value += h->value * by;
            cell->terms += h->terms;
        }
        if (r == row)
            return;
        if (is_on(c, r))
            cell->value *= old(c, "gates", gate + hidden);
    }
}

static Answer recur_dx(const Call *c, long i)
{
    long hidden = of(c, "hidden"), row = i / (4 * hidden), k = i / hidden % 4, u = i % hidden, last = before(c, row);
    double gate[4];
    Answer h, cell;
    if (!is_on(c, row))
        return (Answer){0, 0};
    for (int j = 0; j < 4; j++)
        gate[j] = old(c, "gates", (row * 4 + j) * hidden + u);
    state_back(c, row, u, &h, &cell);
    double was = last >= 0 ? old(c, "c", last * hidden + u) : 0;
    double by[] = {gate[2] * gate[0] * (1 - gate[0]), was * gate[1] * (1 - gate[1]), gate[0] * (1 - gate[2] * gate[2]),
                   tanh(old(c, "c", row * hidden + u)) * gate[3] * (1 - gate[3])};
    const Answer *from = k == 3 ? &h : &cell;
    return (Answer){from->value * by[k], from->terms * fmax(1, fabs(was))};
}

static Answer recur_dweight(const Call *c, long i)
{
    long hidden = of(c, "hidden"), j = i / hidden, k = i % hidden;
    Answer a = {0, 0};
    for (long row = 0; row < of(c, "batch") * of(c, "time"); row++) {
        long h = state_before(c, row);
        if (h >= 0)
            plus(&a, old(c, "dx", row * 4 * hidden + j) * old(c, "y", h * hidden + k));
    }
    double by = factor(c, i);
    return (Answer){a.value * by, a.terms * by};
}

static Answer recur_dbias(const Call *c, long j)
{
    Answer a = {0, 0};
    for (long row = 0; row < of(c, "batch") * of(c, "time"); row++)
        plus(&a, old(c, "dx", row * 4 * of(c, "hidden") + j));
    return a;
}

/* ---- additive scores ----------------------------------------------------------------------------------------------- */

static double length(const Call *c)
{
    double sum = 0;
    for (long i = 0; i < of(c, "width"); i++)
        sum += old(c, "linear_att", i) * old(c, "linear_att", i);
    return sqrt(sum);
}

static double weight_at(const Call *c, double size, long i)
{
    return old(c, "normalize_scalar", 0) * old(c, "linear_att", i) / size;
}

static bool is_seen(const Call *c, long b, long s)
{
    return !part_of(c, "mask") || old(c, "mask", b * of(c, "key") + s) != 0;
}

/* tanh of a query's row, a key of the same sample, and an element. */
static double pair(const Call *c, long row, long s, long i)
{
    long width = of(c, "width"), key = row / of(c, "query") * of(c, "key") + s;
    return tanh(old(c, "q", row * width + i) + old(c, "k", key * width + i) + old(c, "normalize_bias", i));
}

static Answer additive_y(const Call *c, long i)
{
    long row = i / of(c, "key"), s = i % of(c, "key");
    double size = length(c);
    Answer a = {0, 0};
    if (!is_seen(c, row / of(c, "query"), s))
        return (Answer){-65504, 0};
    for (long k = 0; k < of(c, "width"); k++)
        plus(&a, weight_at(c, size, k) * pair(c, row, s, k));
    return a;
}

/* What a pair adds to the sum before tanh. */
static void plus_pair(Answer *a, const Call *c, double v, long row, long s, long i)
{
    double t = pair(c, row, s, i);
    if (is_seen(c, row / of(c, "query"), s))
        plus(a, old(c, "dy", row * of(c, "key") + s) * v * (1 - t * t));
}

static Answer additive_dq(const Call *c, long at)
{
    long row = at / of(c, "width"), i = at % of(c, "width");
    double v = weight_at(c, length(c), i);
    Answer a = {0, 0};
    for (long s = 0; s < of(c, "key"); s++)
        plus_pair(&a, c, v, row, s, i);
    return a;
}

static Answer additive_dk(const Call *c, long at)
{
    long row = at / of(c, "width"), i = at % of(c, "width"), query = of(c, "query");
    double v = weight_at(c, length(c), i);
    Answer a = {0, 0};
    for (long t = 0; t < query; t++)
        plus_pair(&a, c, v, row / of(c, "key") * query + t, row % of(c, "key"), i);
    return a;
}

static Answer additive_dbias(const Call *c, long i)
{
    double v = weight_at(c, length(c), i);
    Answer a = {0, 0};
    for (long row = 0; row < of(c, "batch") * of(c, "query"); row++)
        for (long s = 0; s < of(c, "key"); s++)
            plus_pair(&a, c, v, row, s, i);
    return a;
}

/* The gradient of an element of v. */
static Answer of_v(const Call *c, long i)
{
    Answer a = {0, 0};
    for (long row = 0; row < of(c, "batch") * of(c, "query"); row++)
        for (long s = 0; s < of(c, "key"); s++)
            if (is_seen(c, row / of(c, "query"), s))
                plus(&a, old(c, "dy", row * of(c, "key") + s) * pair(c, row, s, i));
    return a;
}

static Answer additive_dscale(const Call *c, long i)
{
    double size = length(c);
    Answer a = {0, 0};
    for (i = 0; i < of(c, "width"); i++) {
        Answer v = of_v(c, i);
        a.value += v.value * old(c, "linear_att", i) / size;
        a.terms += v.terms * fabs(old(c, "linear_att", i)) / size;
    }
    return a;
}

static Answer additive_da(const Call *c, long i)
{
    double size = length(c), by = old(c, "normalize_scalar", 0) / size, part = old(c, "linear_att", i) / size;
    Answer v = of_v(c, i), scale = additive_dscale(c, 0);
    return (Answer){by * (v.value - scale.value * part), fabs(by) * (v.terms + scale.terms * fabs(part))};
}

#define RECUR "y=batch*time*hidden c=batch*time*hidden gates=batch*time*4*hidden x=batch*time*4*hidden mask=batch*time " \
    "weight=4*hidden*hidden bias=4*hidden dx=batch*time*4*hidden dy=batch*time*hidden dweight=4*hidden*hidden dbias=4*hidden"
#define ADDITIVE "y=batch*query*key dy=batch*query*key q=batch*query*width dq=batch*query*width k=batch*key*width " \
    "dk=batch*key*width mask=batch*key linear_att=width dlinear_att=width normalize_scalar=1 dnormalize_scalar=1 " \
    "normalize_bias=width dnormalize_bias=width"

static const Known known[] = {
    {"recur_forward", "gates", RECUR, recur_gates, 0, 0}, {"recur_forward", "c", RECUR, recur_c, 0, 1},
    {"recur_forward", "y", RECUR, recur_y, 0, 1}, {"recur_backward", "dx", RECUR, recur_dx, 0, 1},
    {"recur_backward_w", "dweight", RECUR, recur_dweight, 0, 0}, {"recur_backward_w", "dbias", RECUR, recur_dbias, 0, 0},
    {"additive_forward", "y", ADDITIVE, additive_y, 0, 0}, {"additive_backward", "dq", ADDITIVE, additive_dq, 0, 0},
    {"additive_backward", "dk", ADDITIVE, additive_dk, 0, 0},
    {"additive_backward", "dlinear_att", ADDITIVE, additive_da, 2, 0},      /* each asks for all pairs and all of v */
    {"additive_backward", "dnormalize_scalar", ADDITIVE, additive_dscale, 0, 0},
    {"additive_backward", "dnormalize_bias", ADDITIVE, additive_dbias, 8, 0},
    {NULL, NULL, NULL, NULL, 0, 0},
};

const Answers answers_recurrent = {known};
