/* SPDX-License-Identifier: Apache-2.0
 *
 * answers_experts.c: an element of a call about experts, in f64 from the call's operands.  Shares are those of the experts that
 * the call chose, for a choice between equal logits is checked by itself.  The formulas are those of docs/operators.md.
 */
#include "answers.h"

/* ---- the choice ---------------------------------------------------------------------------------------------------- */

static double odds(const Call *c, long row, long e, bool softmax)
{
    long experts = of(c, "experts");
    double logit = old(c, "x", row * experts + e), sum = 0;
    for (long k = 0; softmax && k < experts; k++)
        sum += exp(old(c, "x", row * experts + k) - logit);
    return 1 / (softmax ? sum : 1 + exp(-logit));
}

/* Of the chosen experts of a row, by the results of the call or, in backward, its operand. */
static double chosen(const Call *c, long row, long j)
{
    const Operand *p = part_of(c, "expert");
    return p->made ? new_at(p, row * of(c, "top") + j) : old_at(p, row * of(c, "top") + j);
}

static double chosen_odds(const Call *c, long row, long j)
{
    return odds(c, row, (long)chosen(c, row, j), of(c, "scores") == 0);
}

/* 1, or the sum of the chosen. */
static double whole(const Call *c, long row)
{
    double sum = 0;
    for (long j = 0; j < of(c, "top"); j++)
        sum += chosen_odds(c, row, j);
    return of(c, "normalize") ? sum : 1;
}

static Answer route_share(const Call *c, long i)
{
    long row = i / of(c, "top");
    return (Answer){chosen_odds(c, row, i % of(c, "top")) / whole(c, row), 1};
}

/* What the choice compares, of an expert and of a group. */
static double rank_value(const Call *c, long row, long e)
{
    bool corrected = part_of(c, "correction") != NULL;
    if (!corrected && of(c, "best") == 1)
        return old(c, "x", row * of(c, "experts") + e);
    return odds(c, row, e, of(c, "scores") == 0) + (corrected ? old(c, "correction", e) : 0);
}

static double group_value(const Call *c, long row, long g)
{
    long size = of(c, "experts") / of(c, "groups");
    double sum = 0;
    for (long e = g * size; e < (g + 1) * size; e++) {
        long n = 0;
        for (long k = g * size; k < (g + 1) * size; k++)
            n += rank_value(c, row, k) > rank_value(c, row, e) || (rank_value(c, row, k) == rank_value(c, row, e) && k < e);
        sum += n < of(c, "best") ? rank_value(c, row, e) : 0;
    }
    return sum;
}

static bool kept(const Call *c, long row, long e)
{
    long groups = of(c, "groups"), g = e / (of(c, "experts") / groups), n = 0;
    for (long k = 0; groups > 1 && k < groups; k++)
        n += group_value(c, row, k) > group_value(c, row, g) || (group_value(c, row, k) == group_value(c, row, g) && k < g);
    return n < of(c, "kept");
}

/* How many experts of the row stand before one of them. */
static long rank_of(const Call *c, long row, long e)
{
    long n = kept(c, row, e) ? 0 : of(c, "experts");
    for (long k = 0; k < of(c, "experts"); k++) {
        double a = rank_value(c, row, k), b = rank_value(c, row, e);
        n += kept(c, row, k) && (a > b || (a == b && k < e));
    }
    return n;
}

static Answer route_expert(const Call *c, long i)
{
    long e = 0;
    while (e + 1 < of(c, "experts") && rank_of(c, i / of(c, "top"), e) != i % of(c, "top"))
        e++;
    return (Answer){(double)e, 0};
}

static Answer route_slot(const Call *c, long i)
{
    long expert = (long)made(c, "expert", i), n = 0;
    for (long k = 0; k < of(c, "rows") * of(c, "top"); k++)
        n += made(c, "expert", k) < (double)expert || (made(c, "expert", k) == (double)expert && k < i);
    return (Answer){(double)n, 0};
}

static Answer route_offset(const Call *c, long e)
{
    long n = 0;
    for (long k = 0; k < of(c, "rows") * of(c, "top"); k++)
        n += made(c, "expert", k) < (double)e;
    return (Answer){(double)n, 0};
}

/* The gradient of what an expert of the row is given, before softmax or sigmoid; 0: it was not chosen. */
static double slope(const Call *c, long row, long e)
{
    double sum = whole(c, row), all = 0, chosen_d = 0;
    for (long j = 0; j < of(c, "top"); j++) {
        double d = old(c, "dshare", row * of(c, "top") + j);
        all += of(c, "normalize") ? d * chosen_odds(c, row, j) / sum : 0;
        chosen_d += (long)chosen(c, row, j) == e ? d : 0;
    }
    for (long j = 0; j < of(c, "top"); j++)
        if ((long)chosen(c, row, j) == e)
            return (chosen_d - all) / sum;
    return 0;
}

static Answer route_dx(const Call *c, long i)
{
    long row = i / of(c, "experts"), e = i % of(c, "experts");
    bool softmax = of(c, "scores") == 0;
    double p = odds(c, row, e, softmax), dot = 0, terms = 0;
    for (long j = 0; j < of(c, "top"); j++) {
        double by = slope(c, row, (long)chosen(c, row, j));
        dot += by * chosen_odds(c, row, j);
        terms += fabs(by) + fabs(old(c, "dshare", row * of(c, "top") + j)) / whole(c, row);
    }
    return (Answer){softmax ? p * (slope(c, row, e) - dot) : slope(c, row, e) * p * (1 - p), terms};
}

/* ---- rows there and back ------------------------------------------------------------------------------------------- */

static Answer dispatch_y(const Call *c, long i)
{
    long width = of(c, "width"), k = 0;
    while (k + 1 < of(c, "rows") * of(c, "top") && (long)old(c, "slot", k) != i / width)
        k++;
    return (Answer){old(c, "x", k / of(c, "top") * width + i % width), 0};
}

static Answer dispatch_dx(const Call *c, long i)
{
    long width = of(c, "width"), top = of(c, "top");
    Answer a = {0, 0};
    for (long j = 0; j < top; j++)
        plus(&a, old(c, "dy", (long)old(c, "slot", i / width * top + j) * width + i % width));
    return a;
}

static Answer combine_y(const Call *c, long i)
{
    long width = of(c, "width"), top = of(c, "top");
    Answer a = {0, 0};
    for (long j = i / width * top; j < (i / width + 1) * top; j++)
        plus(&a, old(c, "share", j) * old(c, "x", (long)old(c, "slot", j) * width + i % width));
    return a;
}

static Answer combine_dx(const Call *c, long i)
{
    long width = of(c, "width"), k = 0;
    while (k + 1 < of(c, "rows") * of(c, "top") && (long)old(c, "slot", k) != i / width)
        k++;
    return (Answer){old(c, "share", k) * old(c, "dy", k / of(c, "top") * width + i % width), 0};
}

static Answer combine_dshare(const Call *c, long i)
{
    long width = of(c, "width");
    Answer a = {0, 0};
    for (long k = 0; k < width; k++)
        plus(&a, old(c, "dy", i / of(c, "top") * width + k) * old(c, "x", (long)old(c, "slot", i) * width + k));
    return a;
}

/* ---- products ------------------------------------------------------------------------------------------------------ */

static long expert_of(const Call *c, long row)
{
    long e = 0;
    while (e + 1 < of(c, "experts") && (long)old(c, "offset", e + 1) <= row)
        e++;
    return e;
}

static Answer grouped_y(const Call *c, long i)
{
    long in = of(c, "in"), out = of(c, "out"), row = i / out, at = (expert_of(c, row) * out + i % out) * in;
    Answer a = {0, 0};
    for (long k = 0; k < in; k++)
        plus(&a, old(c, "x", row * in + k) * old(c, "weight", at + k));
    if (part_of(c, "bias"))
        plus(&a, old(c, "bias", at / in));
    return a;
}

static Answer grouped_dx(const Call *c, long i)
{
    long in = of(c, "in"), out = of(c, "out"), row = i / in, e = expert_of(c, row);
    Answer a = {0, 0};
    for (long j = 0; j < out; j++)
        plus(&a, old(c, "dy", row * out + j) * old(c, "weight", (e * out + j) * in + i % in));
    return a;
}

static Answer grouped_dweight(const Call *c, long i)
{
    long in = of(c, "in"), out = of(c, "out"), e = i / (in * out);
    Answer a = {0, 0};
    for (long row = (long)old(c, "offset", e); row < (long)old(c, "offset", e + 1); row++)
        plus(&a, old(c, "dy", row * out + i / in % out) * old(c, "x", row * in + i % in));
    return a;
}

static Answer grouped_dbias(const Call *c, long i)
{
    long out = of(c, "out"), e = i / out;
    Answer a = {0, 0};
    for (long row = (long)old(c, "offset", e); row < (long)old(c, "offset", e + 1); row++)
        plus(&a, old(c, "dy", row * out + i % out));
    return a;
}

/* ---- the loss that spreads tokens ---------------------------------------------------------------------------------- */

static double part_that_chose(const Call *c, long e)
{
    long n = 0;
    for (long k = 0; k < of(c, "rows") * of(c, "top"); k++)
        n += (long)old(c, "expert", k) == e;
    return (double)n / number_of(c, "rows");
}

static double weight_of(const Call *c)
{
    return number_of(c, "factor") * number_of(c, "experts") / (number_of(c, "rows") * (double)c->vals->micro);
}

static Answer route_loss(const Call *c, long i)
{
    Answer a = {0, 0};
    (void)i;
    for (long e = 0; e < of(c, "experts"); e++) {
        double f = part_that_chose(c, e);
        for (long row = 0; row < of(c, "rows"); row++)
            plus(&a, weight_of(c) * f * odds(c, row, e, true));
    }
    return a;
}

static Answer route_loss_dx(const Call *c, long i)
{
    long row = i / of(c, "experts"), e = i % of(c, "experts");
    double by = old(c, "dloss", 0) * weight_of(c), p = odds(c, row, e, true), dot = 0;
    for (long k = 0; k < of(c, "experts"); k++)
        dot += odds(c, row, k, true) * part_that_chose(c, k);
    return (Answer){by * p * (part_that_chose(c, e) - dot), fabs(by) * (part_that_chose(c, e) + dot)};
}

#define ROUTE "share=rows*top dshare=rows*top expert=rows*top slot=rows*top offset=experts+1 x=rows*experts dx=rows*experts " \
    "loss=1 dloss=1"
#define DISPATCH "y=rows*top*width x=rows*width slot=rows*top dx=rows*width dy=rows*top*width"
#define COMBINE "y=rows*width x=rows*top*width share=rows*top slot=rows*top dx=rows*top*width dshare=rows*top dy=rows*width"
#define GROUPED "y=rows*out x=rows*in offset=experts+1 weight=experts*out*in dx=rows*in dy=rows*out dweight=experts*out*in " \
    "bias=experts*out dbias=experts*out"

static const Known known[] = {
    {"route_forward", "share", ROUTE, route_share, 0, 0}, {"route_forward", "expert", ROUTE, route_expert, 0, 0},
    {"route_forward", "slot", ROUTE, route_slot, 0, 0}, {"route_forward", "offset", ROUTE, route_offset, 0, 0},
    {"route_backward", "dx", ROUTE, route_dx, 0, 0},
    {"dispatch_forward", "y", DISPATCH, dispatch_y, 0, 0}, {"dispatch_backward", "dx", DISPATCH, dispatch_dx, 0, 0},
    {"combine_forward", "y", COMBINE, combine_y, 0, 0}, {"combine_backward", "dx", COMBINE, combine_dx, 0, 0},
    {"combine_backward", "dshare", COMBINE, combine_dshare, 0, 0},
    {"grouped_forward", "y", GROUPED, grouped_y, 0, 0}, {"grouped_backward_x", "dx", GROUPED, grouped_dx, 0, 0},
    {"grouped_backward_w", "dweight", GROUPED, grouped_dweight, 0, 0},
    {"grouped_backward_w", "dbias", GROUPED, grouped_dbias, 0, 0},
    {"route_loss_forward", "loss", ROUTE, route_loss, 0, 0}, {"route_loss_backward", "dx", ROUTE, route_loss_dx, 16, 0},
    {NULL, NULL, NULL, NULL, 0, 0},
};

const Answers answers_experts = {known};
