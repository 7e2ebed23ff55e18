/* SPDX-License-Identifier: Apache-2.0
 *
 * answers_language.c: an element of a rotary position, a gate, a soft cap, or a table of positions that begins later, in f64
 * from the call's operands.  The formulas are those of docs/operators.md.
 */
#include "answers.h"

/* ---- positions ----------------------------------------------------------------------------------------------------- */

/* Of position i of all samples in its own: of its document, where there are documents. */
static long place_of(const Call *c, long i)
{
    const Operand *documents = part_of(c, "documents");
    long t = i % of(c, "seq"), place = documents ? 0 : t;
    while (documents && place < t && old_at(documents, i - place - 1) == old_at(documents, i))
        place++;
    return place;
}

static Answer offset_y(const Call *c, long i)
{
    long width = of(c, "width"), row = of(c, "offset") + place_of(c, i / width);
    return (Answer){old(c, "x", i) + old(c, "weight", row * width + i % width), 0};
}

static Answer offset_dweight(const Call *c, long i)
{
    Answer a = {0, 0};
    long width = of(c, "width"), at = i / width - of(c, "offset"), rows = of(c, "batch") * of(c, "seq");
    for (long row = 0; row < rows && at >= 0; row++) {
        double d = place_of(c, row) == at ? old(c, "dy", row * width + i % width) : 0;
        a = (Answer){a.value + d, a.terms + fabs(d)};
    }
    return a;
}

/* Frequencies and angles are floats, as where weights of today were trained. */
static double angle(const Call *c, long t, long pair)
{
    enum { NONE, LINEAR, LLAMA3, YARN };
    if (part_of(c, "factors"))
        return (float)((float)t * (float)((float)pow(number_of(c, "theta"), -2.0 * (double)pair / (double)of(c, "dims")) /
                       old(c, "factors", pair)));
    double f = (float)pow(number_of(c, "theta"), -2.0 * (double)pair / (double)of(c, "dims"));
    long scaling = of(c, "scaling");
    double turns = (double)of(c, "original") * f / (2 * acos(-1)), low = number_of(c, "low"), high = number_of(c, "high");
    double dims = (double)of(c, "dims"), base = 2 * log(number_of(c, "theta"));
    double wide = (double)of(c, "original") / (2 * acos(-1));
    double from = dims * log(wide / high) / base, to = dims * log(wide / low) / base;
    from = fmax(scaling == YARN ? floor(from) : from, 0);
    to = fmin(scaling == YARN ? ceil(to) : to, dims - 1);
    double share = scaling >= YARN ? 1 - fmin(fmax(((double)pair - from) / (to == from ? 0.001 : to - from), 0), 1)
        : scaling == LINEAR ? 0 : scaling == NONE ? 1 : fmin(fmax((turns - low) / (high - low), 0), 1);
    return (float)((float)t * (float)(share * f + (1 - share) * f / number_of(c, "factor")));
}

static Answer turned(const Call *c, const char *name, long i, double sign)
{
    long width = of(c, "width"), half = of(c, "dims") / 2, j = i % width, t = place_of(c, i / width / of(c, "heads"));
    if (j >= 2 * half)
        return (Answer){old(c, name, i), 0};
    bool adjacent = of(c, "adjacent"), first = adjacent ? j % 2 == 0 : j < half;
    double by = angle(c, t, adjacent ? j / 2 : j % half), here = old(c, name, i);
    double other = old(c, name, i + (first ? 1 : -1) * (adjacent ? 1 : half));
    return (Answer){here * cos(by) + (first ? -sign : sign) * other * sin(by), (fabs(here) + fabs(other)) * (1 + by)};
}

static Answer rotary_y(const Call *c, long i) { return turned(c, "x", i, 1); }
static Answer rotary_dx(const Call *c, long i) { return turned(c, "dy", i, -1); }

/* ---- gates --------------------------------------------------------------------------------------------------------- */

enum { SILU, GELU, GELU_TANH, RELU };

/* The share of x that is let through, and its slope. */
static double share_of(const Call *c, double x, double *slope)
{
    const double pi = acos(-1), inner = sqrt(2 / pi) * (x + 0.044715 * x * x * x), s = 1 / (1 + exp(-x)), t = tanh(inner);
    switch (of(c, "act")) {
    case GELU:
        *slope = exp(-0.5 * x * x) / sqrt(2 * pi);
        return 0.5 * (1 + erf(x / sqrt(2)));
    case GELU_TANH:
        *slope = 0.5 * (1 - t * t) * sqrt(2 / pi) * (1 + 3 * 0.044715 * x * x);
        return 0.5 * (1 + t);
    case RELU:
        *slope = 0;
        return x > 0;
    default:
        *slope = s * (1 - s);
        return s;
    }
}

static double act(const Call *c, double x)
{
    double slope, share = share_of(c, x, &slope);
    return of(c, "act") <= RELU ? x * share : share;
}

static double act_slope(const Call *c, double x)
{
    double slope, share = share_of(c, x, &slope);
    return of(c, "act") <= RELU ? share + x * slope : slope;
}

static Answer gate_y(const Call *c, long i)
{
    double a = old(c, "a", i), b = old(c, "b", i);
    return (Answer){act(c, a) * b, (1 + fabs(a)) * fabs(b)};
}

static Answer gate_da(const Call *c, long i)
{
    double a = old(c, "a", i), d = old(c, "dy", i) * old(c, "b", i);
    return (Answer){d * act_slope(c, a), fabs(d) * (1 + fabs(a))};
}

static Answer gate_db(const Call *c, long i)
{
    double a = old(c, "a", i), d = old(c, "dy", i);
    return (Answer){d * act(c, a), (1 + fabs(a)) * fabs(d)};
}

static Answer softcap_y(const Call *c, long i)
{
    double cap = number_of(c, "cap");
    return (Answer){cap * tanh(old(c, "x", i) / cap), cap};
}

static Answer softcap_dx(const Call *c, long i)
{
    double t = tanh(old(c, "x", i) / number_of(c, "cap")), d = old(c, "dy", i);
    return (Answer){d * (1 - t * t), fabs(d)};
}

#define PLACE "y=batch*seq*width x=batch*seq*width weight=seq*width+offset*width dweight=rows*width dy=batch*seq*width " \
    "documents=batch*seq"
#define ROTARY "y=batch*seq*heads*width x=batch*seq*heads*width dy=batch*seq*heads*width dx=batch*seq*heads*width " \
    "documents=batch*seq factors=dims/2"
#define ELEMENT "y=n x=n a=n b=n dx=n dy=n da=n db=n"

static const Known known[] = {
    {"position_offset_forward", "y", PLACE, offset_y, 0, 0},
    {"position_offset_backward", "dweight", PLACE, offset_dweight, 0, 0},
    {"position_documents_forward", "y", PLACE, offset_y, 0, 0},
    {"position_documents_backward", "dweight", PLACE, offset_dweight, 0, 0},
    {"rotary_forward", "y", ROTARY, rotary_y, 0, 0}, {"rotary_backward", "dx", ROTARY, rotary_dx, 0, 0},
    {"rotary_documents_forward", "y", ROTARY, rotary_y, 0, 0}, {"rotary_documents_backward", "dx", ROTARY, rotary_dx, 0, 0},
    {"rotary_table_forward", "y", ROTARY, rotary_y, 0, 0}, {"rotary_table_backward", "dx", ROTARY, rotary_dx, 0, 0},
    {"gate_forward", "y", ELEMENT, gate_y, 0, 1}, {"gate_backward", "da", ELEMENT, gate_da, 0, 1},
    {"gate_backward", "db", ELEMENT, gate_db, 0, 1},
    {"softcap_forward", "y", ELEMENT, softcap_y, 0, 0}, {"softcap_backward", "dx", ELEMENT, softcap_dx, 0, 0},
    {NULL, NULL, NULL, NULL, 0, 0},
};

const Answers answers_language = {known};
