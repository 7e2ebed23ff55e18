/* SPDX-License-Identifier: Apache-2.0
 *
 * answers_image.c: an element of a convolution, a pool, BatchNorm, or an operand repeated in the middle, in f64 from the call's
 * operands.  The formulas are those of docs/operators.md.
 */
#include <string.h>
#include "answers.h"
#include "real.h"

/* ---- windows of images ------------------------------------------------------------------------------------------- */

typedef struct { long sample, line, column, channel; } Spot;
typedef struct {
    const Call *c;
    long height, width, channels, yheight, ywidth, ychannels, kheight, kwidth, stride, top, left, dilate;
} Windows;

/* A pool has as many channels behind it, and does not dilate. */
static Windows windows_of(const Call *c)
{
    bool pool = part_of(c, "channels") != NULL;
    return (Windows){c, of(c, "height"), of(c, "width"), of(c, pool ? "channels" : "in"), of(c, "yheight"), of(c, "ywidth"),
                     of(c, pool ? "channels" : "out"), of(c, "kheight"), of(c, "kwidth"), of(c, "stride"), of(c, "top"),
                     of(c, "left"), pool ? 1 : of(c, "dilate")};
}

static Spot spot_of(long i, long height, long width, long channels)
{
    long pixel = i / channels;
    return (Spot){pixel / width / height, pixel / width % height, pixel % width, i % channels};
}

static Spot spot_of_x(const Windows *w, long i) { return spot_of(i, w->height, w->width, w->channels); }
static Spot spot_of_y(const Windows *w, long i) { return spot_of(i, w->yheight, w->ywidth, w->ychannels); }

/* Where tap t of y's window lies in x, in channel `channel`; -1: outside. */
static long under(const Windows *w, Spot y, long t, long channel)
{
    long row = y.line * w->stride - w->top + t / w->kwidth * w->dilate;
    long column = y.column * w->stride - w->left + t % w->kwidth * w->dilate;
    bool inside = row >= 0 && row < w->height && column >= 0 && column < w->width;
    return inside ? ((y.sample * w->height + row) * w->width + column) * w->channels + channel : -1;
}

/* Which element of y has x under tap t, in channel `channel`; -1: none. */
static long above(const Windows *w, Spot x, long t, long channel)
{
    long row = x.line + w->top - t / w->kwidth * w->dilate, column = x.column + w->left - t % w->kwidth * w->dilate;
    bool inside = row >= 0 && column >= 0 && row % w->stride == 0 && column % w->stride == 0 &&
                  row / w->stride < w->yheight && column / w->stride < w->ywidth;
    return inside ? ((x.sample * w->yheight + row / w->stride) * w->ywidth + column / w->stride) * w->ychannels + channel : -1;
}

/* Element i of y: what x has in its window, by weight [out][in/groups][taps]. */
static Answer of_windows(const Windows *w, const char *x, long i)
{
    Spot y = spot_of_y(w, i);
    long taps = w->kheight * w->kwidth, in = w->channels / of(w->c, "groups"), out = w->ychannels / of(w->c, "groups");
    Answer a = {0, 0};
    for (long t = 0; t < taps; t++)
        for (long k = 0, at; k < in; k++)
            if ((at = under(w, y, t, y.channel / out * in + k)) >= 0)
                plus(&a, old_of(w->c, x, at) * old_of(w->c, "weight", (y.channel * in + k) * taps + t));
    return a;
}

/* Element i of x: what those of y have whose windows it is in. */
static Answer over_windows(const Windows *w, const char *y, long i)
{
    Spot x = spot_of_x(w, i);
    long taps = w->kheight * w->kwidth, in = w->channels / of(w->c, "groups"), out = w->ychannels / of(w->c, "groups");
    Answer a = {0, 0};
    for (long t = 0; t < taps; t++)
        for (long k = 0, at; k < out; k++) {
            long o = x.channel / in * out + k;
            if ((at = above(w, x, t, o)) >= 0)
                plus(&a, old_of(w->c, y, at) * old_of(w->c, "weight", (o * in + x.channel % in) * taps + t));
        }
    return a;
}

/* Element i of the weight: all places of y, by what x has there. */
static Answer all_windows(const Windows *w, const char *x, const char *y, long i)
{
    long taps = w->kheight * w->kwidth, in = w->channels / of(w->c, "groups"), out = w->ychannels / of(w->c, "groups");
    long o = i / taps / in, channel = o / out * in + i / taps % in;
    Answer a = {0, 0};
    for (long p = 0, at; p < of(w->c, "batch") * w->yheight * w->ywidth; p++)
        if ((at = under(w, spot_of_y(w, p * w->ychannels), i % taps, channel)) >= 0)
            plus(&a, old_of(w->c, y, p * w->ychannels + o) * old_of(w->c, x, at));
    return a;
}

static Answer conv_y(const Call *c, long i)
{
    Windows w = windows_of(c);
    Answer a = of_windows(&w, "x", i);
    plus(&a, old_of(c, "bias", i % of(c, "out")));
    return a;
}

static Answer conv_dx(const Call *c, long i)
{
    Windows w = windows_of(c);
    return over_windows(&w, "dy", i);
}

static Answer conv_dweight(const Call *c, long i)
{
    Windows w = windows_of(c);
    return all_windows(&w, "x", "dy", i);
}

static Answer conv_dbias(const Call *c, long i)
{
    Answer a = {0, 0};
    for (long p = 0; p < of(c, "batch") * of(c, "yheight") * of(c, "ywidth"); p++)
        plus(&a, old_of(c, "dy", p * of(c, "out") + i));
    return a;
}

/* ConvTranspose is a convolution of y: its x and y are exchanged. */
static Windows other_way(const Call *c)
{
    Windows w = windows_of(c);
    return (Windows){c, w.yheight, w.ywidth, w.ychannels, w.height, w.width, w.channels, w.kheight, w.kwidth, w.stride, w.top,
                     w.left, w.dilate};
}

static Answer transpose_y(const Call *c, long i)
{
    Windows w = other_way(c);
    Answer a = over_windows(&w, "x", i);
    plus(&a, old_of(c, "bias", i % of(c, "out")));
    return a;
}

static Answer transpose_dx(const Call *c, long i)
{
    Windows w = other_way(c);
    return of_windows(&w, "dy", i);
}

static Answer transpose_dweight(const Call *c, long i)
{
    Windows w = other_way(c);
    return all_windows(&w, "dy", "x", i);
}

/* The first largest of y's window, in x. */
static long largest(const Windows *w, Spot y)
{
    long first = -1;
    for (long t = 0; t < w->kheight * w->kwidth; t++) {
        long at = under(w, y, t, y.channel);
        if (at >= 0 && (first < 0 || old_of(w->c, "x", at) > old_of(w->c, "x", first)))
            first = at;
    }
    return first;
}

static Answer pool_max_y(const Call *c, long i)
{
    Windows w = windows_of(c);
    return exact(old_of(c, "x", largest(&w, spot_of_y(&w, i))));
}

static Answer pool_max_dx(const Call *c, long i)
{
    Windows w = windows_of(c);
    Spot x = spot_of_x(&w, i);
    Answer a = {0, 0};
    for (long t = 0; t < w.kheight * w.kwidth; t++) {
        long at = above(&w, x, t, x.channel);
        if (at >= 0 && largest(&w, spot_of_y(&w, at)) == i)
            plus(&a, old_of(c, "dy", at));
    }
    return a;
}

/* By how many pixels a mean divides. */
static double divisor(const Windows *w, Spot y)
{
    long taps = w->kheight * w->kwidth, n = 0;
    for (long t = 0; t < taps; t++)
        n += of(w->c, "count_pad") || under(w, y, t, y.channel) >= 0;
    return (double)n;
}

static Answer pool_avg_y(const Call *c, long i)
{
    Windows w = windows_of(c);
    Spot y = spot_of_y(&w, i);
    Answer a = {0, 0};
    for (long t = 0, at; t < w.kheight * w.kwidth; t++)
        if ((at = under(&w, y, t, y.channel)) >= 0)
            plus(&a, old_of(c, "x", at) / divisor(&w, y));
    return a;
}

static Answer pool_avg_dx(const Call *c, long i)
{
    Windows w = windows_of(c);
    Spot x = spot_of_x(&w, i);
    Answer a = {0, 0};
    for (long t = 0, at; t < w.kheight * w.kwidth; t++)
        if ((at = above(&w, x, t, x.channel)) >= 0)
            plus(&a, old_of(c, "dy", at) / divisor(&w, spot_of_y(&w, at)));
    return a;
}

/* ---- BatchNorm --------------------------------------------------------------------------------------------------- */

static Answer batch_mean(const Call *c, long i)
{
    Answer a = {0, 0};
    long rows = of(c, "rows");
    for (long r = 0; r < rows; r++)
        plus(&a, old_of(c, "x", r * of(c, "width") + i) / (double)rows);
    return a;
}

static Answer batch_var(const Call *c, long i)
{
    Answer a = {0, 0};
    long rows = of(c, "rows");
    double mean = batch_mean(c, i).value;
    for (long r = 0; r < rows; r++) {
        double d = old_of(c, "x", r * of(c, "width") + i) - mean;
        plus(&a, d * d / (double)rows);
    }
    return near(a.value, a.terms + 0x1p-20 * mean * mean);      /* the call's own mean is rounded */
}

static double spread(const Call *c, long channel) { return 1 / sqrt(old_of(c, "var", channel) + number_of(c, "eps")); }

static Answer batch_y(const Call *c, long i)
{
    long j = i % of(c, "width");
    double x = old_of(c, "x", i), mean = old_of(c, "mean", j), b = old_of(c, "bias", j);
    double w = spread(c, j) * old_of(c, "weight", j);
    return near((x - mean) * w + b, (fabs(x) + fabs(mean)) * fabs(w) + fabs(b));
}

/* A Relu behind it and an addition: the value of an element before the Relu, and dy where it lets something through. */
static Answer batch_relu_y(const Call *c, long i)
{
    Answer a = batch_y(c, i);
    double skip = part_of(c, "skip") ? old_of(c, "skip", i) : 0;
    if (part_of(c, "skip"))
        rounded(&a);
    return near(fmax(a.value + skip, 0), a.terms + fabs(skip));
}

/* What a call has behind the norm and makes again. */
static bool has(const Call *c, const char *what) { return strstr(c->name, what) != NULL; }

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }
static Answer batch_behind_y(const Call *c, long i)
{
    Answer a = batch_y(c, i);
    rounded(&a);
    return has(c, "silu") ? near(a.value * sigmoid(a.value), 2 * a.terms) :
           near(fmin(fmax(a.value, number_of(c, "low")), number_of(c, "high")), a.terms);
}

/* Is the norm's result, which a call makes again, so close to a bound that rounding decides?  Then dy may count or not. */
static double doubt(const Call *c, long i)
{
    Answer y = part_of(c, "bias") ? batch_y(c, i) : exact(1);
    double low = has(c, "clip") ? number_of(c, "low") : 0, high = has(c, "clip") ? number_of(c, "high") : low;
    bool near_one = fmin(fabs(y.value - low), fabs(y.value - high)) <= 0x1p-18 * y.terms && !has(c, "silu");
    return near_one ? 0x1p30 * fabs(old_of(c, "dy", i)) : 0;
}

/* dy, or the sum that it is: rounded, as the call of its own rounds it. */
static double slope(const Call *c, long i)
{
    if (part_of(c, "y") && !(old_of(c, "y", i) > 0))
        return 0;
    double v = part_of(c, "bias") ? batch_y(c, i).value : 1;
    if (has(c, "silu")) {
        double s = sigmoid(v);
        return old_of(c, "dy", i) * (s + v * s * (1 - s));
    }
    if (has(c, "clip") ? !(v > number_of(c, "low") && v < number_of(c, "high")) : !(v > 0))
        return 0;
    if (part_of(c, "dy"))
        return old_of(c, "dy", i);
    real sum;
    put(&sum, 0, (float)(old_of(c, "a", i) + old_of(c, "b", i)));
    return get(&sum, 0);
}

static Answer batch_dskip(const Call *c, long i) { return exact(slope(c, i)); }

/* Sums over the rows of a channel: of dy, or of dy u. */
static Answer slopes(const Call *c, long j, bool with)
{
    Answer a = {0, 0};
    double s = spread(c, j), mean = old_of(c, "mean", j);
    for (long r = 0; r < of(c, "rows"); r++) {
        double x = old_of(c, "x", r * of(c, "width") + j), d = slope(c, r * of(c, "width") + j);
        a.value += with ? d * (x - mean) * s : d;
        d = fabs(d) + doubt(c, r * of(c, "width") + j);
        a.terms += with ? d * (fabs(x) + fabs(mean)) * s : d;
    }
    return a;
}

static Answer batch_dbias(const Call *c, long j) { return slopes(c, j, false); }
static Answer batch_dweight(const Call *c, long j) { return slopes(c, j, true); }

static Answer batch_dx(const Call *c, long i)
{
    long j = i % of(c, "width");
    double s = spread(c, j), w = s * old_of(c, "weight", j), n = number_of(c, "rows"), d = slope(c, i);
    double x = old_of(c, "x", i), mean = old_of(c, "mean", j), u = (x - mean) * s, size = (fabs(x) + fabs(mean)) * s;
    Answer plain = slopes(c, j, false), with = slopes(c, j, true);
    return near(w * (d - plain.value / n - u * with.value / n),
                fabs(w) * (fabs(d) + doubt(c, i) + plain.terms / n + size * with.terms / n));
}

/* Number i % n of an accumulator of n pairs: the upper number has 12 digits, the lower one the rest of v.  `off` adds the
 * number that stood there. */
static Answer tracked(const Call *c, const char *name, long i, long n, double v)
{
    long acc = of(c, "acc"), j = i % n;
    v += acc ? old_of(c, name, j) + old_of(c, name, n + j) : 0;
    int by;
    double digits = frexp((double)(float)v, &by), upper = ldexp(trunc(ldexp(digits, 12)), by - 12);
    double want = i < n ? upper : v - upper;
    return near(want - (acc ? old_of(c, name, i) : 0), i < n ? 0 : 0x1p-10 * fabs(v));
}

/* How much of this micro-batch is left in the end. */
static double left_of(const Call *c)
{
    double weight = of(c, "each") ? number_of(c, "momentum") : 1;
    for (long later = of(c, "mb") + 1; of(c, "each") && later < c->vals->micro; later++)
        weight *= 1 - number_of(c, "momentum");
    return weight;
}

static Answer track_mean(const Call *c, long i)
{
    return tracked(c, "dmean", i, of(c, "width"), left_of(c) * old_of(c, "mean", i % of(c, "width")));
}

static Answer track_var(const Call *c, long i)
{
    long n = of(c, "width"), rows = of(c, "rows");
    double m = old_of(c, "mean", i % n), v = old_of(c, "var", i % n);
    return tracked(c, "dvar", i, n, left_of(c) * (of(c, "each") ? v * (double)rows / (double)(rows - 1) : v + m * m));
}

static Answer track_count(const Call *c, long i) { return tracked(c, "dcount", i, 1, 1); }

static double pair(const Call *c, const char *name, long i, long n) { return old_of(c, name, i) + old_of(c, name, n + i); }

/* The running number behind a step: by its own weight, and by the step's. */
static Answer running(const Call *c, const char *name, long i, double step)
{
    double micro = pair(c, "sum_count", 0, 1), stays = 1 - number_of(c, "momentum"), was = old_of(c, name, i);
    double left = of(c, "each") ? pow(stays, micro) : stays;
    return near(left * was + step, fabs(was) + fabs(step));
}

static Answer running_mean(const Call *c, long i)
{
    double m = pair(c, "sum_mean", i, of(c, "n"));
    return running(c, "mean", i, of(c, "each") ? m : m / pair(c, "sum_count", 0, 1) * number_of(c, "momentum"));
}

static Answer running_var(const Call *c, long i)
{
    double micro = pair(c, "sum_count", 0, 1), all = number_of(c, "rows") * micro, v = pair(c, "sum_var", i, of(c, "n"));
    double m = pair(c, "sum_mean", i, of(c, "n")) / micro;
    v = of(c, "each") ? v : (v / micro - m * m) * all / (all - 1) * number_of(c, "momentum");
    return running(c, "var", i, fmax(v, 0));
}

static Answer running_count(const Call *c, long i)
{
    return exact(old_of(c, "count", i) + (of(c, "each") ? pair(c, "sum_count", 0, 1) : 1));
}

/* ---- GroupNorm over x[batch pixels groups width] ------------------------------------------------------------------ */

/* An element's channel and group; the group's first element, and how far its pixels lie apart. */
typedef struct { long channels, channel, group, first, step; } Member;

static Member member_of(const Call *c, long i)
{
    long width = of(c, "width"), groups = of(c, "groups"), channels = groups * width, channel = i % channels;
    long sample = i / channels / of(c, "pixels");
    return (Member){channels, channel, sample * groups + channel / width,
                    sample * of(c, "pixels") * channels + channel / width * width, channels};
}

/* Element e of the group. */
static long within(const Call *c, const Member *m, long e)
{
    long width = of(c, "width");
    return m->first + e / width * m->step + e % width;
}

static Member first_of(const Call *c, long group)
{
    long width = of(c, "width"), groups = of(c, "groups");
    return member_of(c, group / groups * of(c, "pixels") * groups * width + group % groups * width);
}

static Answer group_mean(const Call *c, long group)
{
    Member m = first_of(c, group);
    long n = of(c, "pixels") * of(c, "width");
    Answer a = {0, 0};
    for (long e = 0; e < n; e++)
        plus(&a, old_of(c, "x", within(c, &m, e)) / (double)n);
    return a;
}

static Answer group_rstd(const Call *c, long group)
{
    Member m = first_of(c, group);
    long n = of(c, "pixels") * of(c, "width");
    double mean = group_mean(c, group).value, var = 0;
    for (long e = 0; e < n; e++) {
        double d = old_of(c, "x", within(c, &m, e)) - mean;
        var += d * d / (double)n;
    }
    double s = 1 / sqrt(var + number_of(c, "eps"));
    return near(s, s + s * s * s * 0x1p-20 * mean * mean);      /* the call's own mean is rounded */
}

static double group_weight(const Call *c, long channel) { return part_of(c, "weight") ? old_of(c, "weight", channel) : 1; }

static Answer group_y(const Call *c, long i)
{
    Member m = member_of(c, i);
    double x = old_of(c, "x", i), mean = group_mean(c, m.group).value, b = old_of(c, "bias", m.channel);
    double w = group_rstd(c, m.group).value * group_weight(c, m.channel);
    return near((x - mean) * w + b, (fabs(x) + fabs(mean)) * fabs(w) + fabs(b));
}

static Answer group_dx(const Call *c, long i)
{
    Member m = member_of(c, i);
    long n = of(c, "pixels") * of(c, "width");
    double mean = old_of(c, "mean", m.group), s = old_of(c, "rstd", m.group);
    Answer plain = {0, 0}, with = {0, 0};
    for (long e = 0; e < n; e++) {
        long at = within(c, &m, e);
        double g = old_of(c, "dy", at) * group_weight(c, at % m.channels) / (double)n, x = old_of(c, "x", at);
        plus(&plain, g);
        with.value += g * (x - mean) * s;
        with.terms += fabs(g) * (fabs(x) + fabs(mean)) * s;
    }
    double g = old_of(c, "dy", i) * group_weight(c, m.channel), x = old_of(c, "x", i), size = (fabs(x) + fabs(mean)) * s;
    return near(s * (g - plain.value - (x - mean) * s * with.value), s * (fabs(g) + plain.terms + size * with.terms));
}

static Answer group_sum(const Call *c, long channel, bool with)
{
    long channels = of(c, "groups") * of(c, "width");
    Answer a = {0, 0};
    for (long r = 0; r < of(c, "batch") * of(c, "pixels"); r++) {
        long i = r * channels + channel, group = member_of(c, i).group;
        double d = old_of(c, "dy", i), x = old_of(c, "x", i), mean = old_of(c, "mean", group), s = old_of(c, "rstd", group);
        a.value += with ? d * (x - mean) * s : d;
        a.terms += with ? fabs(d) * (fabs(x) + fabs(mean)) * s : fabs(d);
    }
    return a;
}

static Answer group_dweight(const Call *c, long channel) { return group_sum(c, channel, true); }
static Answer group_dbias(const Call *c, long channel) { return group_sum(c, channel, false); }

/* ---- Pad and Upsample -------------------------------------------------------------------------------------------- */

static Answer pad_y(const Call *c, long i)
{
    Spot y = spot_of(i, of(c, "yheight"), of(c, "ywidth"), of(c, "channels"));
    long row = y.line - of(c, "top"), column = y.column - of(c, "left"), height = of(c, "height"), width = of(c, "width");
    bool inside = row >= 0 && row < height && column >= 0 && column < width;
    return exact(inside ? old_of(c, "x", ((y.sample * height + row) * width + column) * of(c, "channels") + y.channel)
                        : number_of(c, "value"));
}

/* The share of pixel p of n in pixel r of n*by, along one axis. */
static double pixel(const Call *c, long r, long p, long n, long by, bool nearest)
{
    if (nearest)
        return r / by == p;
    double at = of(c, "align") ? n * by > 1 ? (double)(r * (n - 1)) / (double)(n * by - 1) : 0
                               : fmax(((double)r + 0.5) / (double)by - 0.5, 0);
    double low = floor(at), high = fmin(low + 1, (double)(n - 1));
    return ((double)p == low ? 1 - (at - low) : 0) + ((double)p == high ? at - low : 0);
}

static Answer resized(const Call *c, long i, bool nearest)
{
    long height = of(c, "height"), width = of(c, "width"), fh = of(c, "fheight"), fw = of(c, "fwidth");
    Spot y = spot_of(i, height * fh, width * fw, of(c, "channels"));
    Answer a = {0, 0};
    for (long r = 0; r < height; r++)
        for (long k = 0; k < width; k++) {
            double s = pixel(c, y.line, r, height, fh, nearest) * pixel(c, y.column, k, width, fw, nearest);
            if (s != 0)
                plus(&a, s * old_of(c, "x", ((y.sample * height + r) * width + k) * of(c, "channels") + y.channel));
        }
    return nearest ? exact(a.value) : a;
}

static Answer resized_back(const Call *c, long i, bool nearest)
{
    long height = of(c, "height"), width = of(c, "width"), fh = of(c, "fheight"), fw = of(c, "fwidth");
    Spot x = spot_of(i, height, width, of(c, "channels"));
    Answer a = {0, 0};
    for (long r = 0; r < height * fh; r++)
        for (long k = 0; k < width * fw; k++) {
            double s = pixel(c, r, x.line, height, fh, nearest) * pixel(c, k, x.column, width, fw, nearest);
            if (s != 0)
                plus(&a, s * old_of(c, "dy", ((x.sample * height * fh + r) * width * fw + k) * of(c, "channels") + x.channel));
        }
    return a;
}

static Answer upsample_y(const Call *c, long i) { return resized(c, i, true); }
static Answer upsample_dx(const Call *c, long i) { return resized_back(c, i, true); }
static Answer bilinear_y(const Call *c, long i) { return resized(c, i, false); }
static Answer bilinear_dx(const Call *c, long i) { return resized_back(c, i, false); }

/* ---- operands repeated in the middle ----------------------------------------------------------------------------- */

/* The element of [outer inner] that stands beside element i of [outer mid inner]. */
static long beside(const Call *c, long i)
{
    long inner = of(c, "inner");
    return i / inner / of(c, "mid") * inner + i % inner;
}

static Answer middle_sum(const Call *c, long i) { return exact(old_of(c, "a", i) + old_of(c, "b", beside(c, i))); }
static Answer middle_product(const Call *c, long i) { return exact(old_of(c, "a", i) * old_of(c, "b", beside(c, i))); }
static Answer middle_da(const Call *c, long i) { return exact(old_of(c, "dy", i) * old_of(c, "b", beside(c, i))); }

static Answer middle_db(const Call *c, long i)
{
    long inner = of(c, "inner"), mid = of(c, "mid");
    Answer a = {0, 0};
    for (long m = 0; m < mid; m++) {
        long at = (i / inner * mid + m) * inner + i % inner;
        plus(&a, old_of(c, "dy", at) * old_of(c, "a", at));
    }
    return a;
}

static Answer parameter_y(const Call *c, long i) { return exact(old_of(c, "weight", i % of(c, "n"))); }

static Answer parameter_dweight(const Call *c, long i)
{
    Answer a = {0, 0};
    for (long s = 0; s < of(c, "batch"); s++)
        plus(&a, old_of(c, "dy", s * of(c, "n") + i));
    return a;
}

#define IMAGES "x=batch*height*width*in dx=batch*height*width*in y=batch*yheight*ywidth*out dy=batch*yheight*ywidth*out "
#define CONV IMAGES "weight=out*kheight*kwidth*in/groups dweight=out*kheight*kwidth*in/groups bias=out dbias=out"
#define TRANSPOSE IMAGES "weight=in*kheight*kwidth*out/groups dweight=in*kheight*kwidth*out/groups bias=out dbias=out"
#define POOL "x=batch*height*width*channels dx=batch*height*width*channels y=batch*yheight*ywidth*channels " \
    "dy=batch*yheight*ywidth*channels"
#define BATCH "x=rows*width dx=rows*width y=rows*width dy=rows*width mean=width var=width weight=width bias=width " \
    "dweight=width dbias=width skip=rows*width dskip=rows*width onto=rows*width a=rows*width b=rows*width"
#define TRACK "dmean=2*width dvar=2*width dcount=2 mean=width var=width"
#define RUNNING "mean=n var=n count=1 sum_mean=2*n sum_var=2*n sum_count=2"
#define GROUP "x=batch*pixels*groups*width dx=batch*pixels*groups*width y=batch*pixels*groups*width " \
    "dy=batch*pixels*groups*width mean=batch*groups rstd=batch*groups weight=groups*width bias=groups*width " \
    "dweight=groups*width dbias=groups*width"
#define PAD "x=batch*height*width*channels y=batch*yheight*ywidth*channels"
#define RESIZE "x=batch*height*width*channels dx=batch*height*width*channels " \
    "y=batch*height*width*channels*fheight*fwidth dy=batch*height*width*channels*fheight*fwidth"
#define MIDDLE "y=outer*mid*inner a=outer*mid*inner b=outer*inner dy=outer*mid*inner da=outer*mid*inner db=outer*inner"
#define PARAMETER "y=batch*n dy=batch*n weight=n dweight=n"

static const Known known[] = {
    {"conv_forward", "y", CONV, conv_y, 0, 1}, {"conv_backward_x", "dx", CONV, conv_dx, 0, 0},
    {"conv_backward_w", "dweight", CONV, conv_dweight, 0, 1}, {"conv_backward_w", "dbias", CONV, conv_dbias, 0, 0},
    {"conv_transpose_forward", "y", TRANSPOSE, transpose_y, 16, 0},
    {"conv_transpose_backward_x", "dx", TRANSPOSE, transpose_dx, 16, 0},
    {"conv_transpose_backward_w", "dweight", TRANSPOSE, transpose_dweight, 16, 0},
    {"conv_transpose_backward_w", "dbias", TRANSPOSE, conv_dbias, 16, 0},
    {"pool_max_forward", "y", POOL, pool_max_y, 0, 0}, {"pool_max_backward", "dx", POOL, pool_max_dx, 0, 0},
    {"pool_avg_forward", "y", POOL, pool_avg_y, 0, 0}, {"pool_avg_backward", "dx", POOL, pool_avg_dx, 0, 0},
    {"batchstat_forward", "mean", BATCH, batch_mean, 0, 0}, {"batchstat_forward", "var", BATCH, batch_var, 0, 0},
    {"batchnorm_forward", "y", BATCH, batch_y, 0, 0}, {"batchnorm_backward", "dx", BATCH, batch_dx, 0, 0},
    {"batchnorm_backward", "dweight", BATCH, batch_dweight, 0, 0}, {"batchnorm_backward", "dbias", BATCH, batch_dbias, 0, 0},
    {"batchnorm_relu_forward", "y", BATCH, batch_relu_y, 0, 0}, {"batchnorm_relu_backward", "dx", BATCH, batch_dx, 0, 0},
    {"batchnorm_relu_backward", "dweight", BATCH, batch_dweight, 0, 0},
    {"batchnorm_relu_backward", "dbias", BATCH, batch_dbias, 0, 0},
    {"batchnorm_clip_forward", "y", BATCH, batch_behind_y, 0, 0}, {"batchnorm_clip_backward", "dx", BATCH, batch_dx, 0, 0},
    {"batchnorm_clip_backward", "dweight", BATCH, batch_dweight, 0, 0},
    {"batchnorm_clip_backward", "dbias", BATCH, batch_dbias, 0, 0},
    {"batchnorm_silu_forward", "y", BATCH, batch_behind_y, 0, 0}, {"batchnorm_silu_backward", "dx", BATCH, batch_dx, 0, 0},
    {"batchnorm_silu_backward", "dweight", BATCH, batch_dweight, 0, 0},
    {"batchnorm_silu_backward", "dbias", BATCH, batch_dbias, 0, 0},
    {"batchnorm_add_relu_forward", "y", BATCH, batch_relu_y, 0, 0},
    {"batchnorm_add_relu_backward", "dx", BATCH, batch_dx, 0, 0},
    {"batchnorm_add_relu_backward", "dskip", BATCH, batch_dskip, 0, 0},
    {"batchnorm_add_relu_backward", "dweight", BATCH, batch_dweight, 0, 0},
    {"batchnorm_add_relu_backward", "dbias", BATCH, batch_dbias, 0, 0},
    {"add_batchnorm_relu_backward", "dx", BATCH, batch_dx, 0, 0},
    {"add_batchnorm_relu_backward", "dskip", BATCH, batch_dskip, 0, 0},
    {"add_batchnorm_relu_backward", "dweight", BATCH, batch_dweight, 0, 0},
    {"add_batchnorm_relu_backward", "dbias", BATCH, batch_dbias, 0, 0},
    {"batchstat_track", "dmean", TRACK, track_mean, 0, 0}, {"batchstat_track", "dvar", TRACK, track_var, 0, 0},
    {"batchstat_track", "dcount", TRACK, track_count, 0, 0},
    {"batch_track", "mean", RUNNING, running_mean, 0, 0}, {"batch_track", "var", RUNNING, running_var, 0, 0},
    {"batch_track", "count", RUNNING, running_count, 0, 0},
    {"groupnorm_forward", "y", GROUP, group_y, 16, 0}, {"groupnorm_forward", "mean", GROUP, group_mean, 16, 0},
    {"groupnorm_forward", "rstd", GROUP, group_rstd, 16, 0}, {"groupnorm_backward_x", "dx", GROUP, group_dx, 16, 0},
    {"groupnorm_backward_w", "dweight", GROUP, group_dweight, 16, 0},
    {"groupnorm_backward_w", "dbias", GROUP, group_dbias, 16, 0},
    {"pad_forward", "y", PAD, pad_y, 0, 0},
    {"upsample_forward", "y", RESIZE, upsample_y, 16, 0}, {"upsample_backward", "dx", RESIZE, upsample_dx, 16, 0},
    {"bilinear_forward", "y", RESIZE, bilinear_y, 16, 0}, {"bilinear_backward", "dx", RESIZE, bilinear_dx, 16, 0},
    {"add_middle_forward", "y", MIDDLE, middle_sum, 0, 0}, {"mul_middle_forward", "y", MIDDLE, middle_product, 0, 0},
    {"mul_middle_backward", "da", MIDDLE, middle_da, 0, 0}, {"mul_middle_backward", "db", MIDDLE, middle_db, 0, 0},
    {"parameter_forward", "y", PARAMETER, parameter_y, 0, 0},
    {"parameter_backward", "dweight", PARAMETER, parameter_dweight, 0, 0},
    {NULL, NULL, NULL, NULL, 0, 0},
};

const Answers answers_image = {known};
