/* SPDX-License-Identifier: Apache-2.0
 *
 * The recurrent part of an LSTM: rt/op/recur.c has the formulas.
 *
 * Method.  Forward is a kernel a step.  The 64 columns of a block's product are the four gates of 16 units, so that a thread
 * has all gates of a unit for four samples, and finishes them.  h goes from one step to the next through two halves of scratch.
 * Backward has two kernels a step: the slopes of the gates, then dz weight.  The gradient of the weight is one product over
 * all steps.  Products: square.h.  With dropout a kernel before each pass writes what is left of the weight.
 *
 * Order: as in rt/op/recur.c, but that sums over rows of the bias are those of columns.h.  Cost: no tensor cores.
 */
#include "bias.h"
#include "drop.h"
#include "square.h"

struct Steps {
    const int32_t *mask;
    long batch, time, hidden, reverse;
    FIELD long row(long b, long n) const { return b * time + (reverse ? time - 1 - n : n); }
    FIELD bool on(long at) const { return !mask || mask[at]; }
};

/* What is left of the weight. */
static __global__ void recur_leave(real *to, const real *weight, const Values *vals, long mb, long n, float drop, int64_t site)
{
    bool off = vals->eval != 0;
    Drop d = drop_of(vals, mb, drop, site);
    GRID(g, n / FOURS) {
        Philox r = drop_block(&d, g);
        for (int k = 0; k < FOURS; k++) {
            float v = one(weight, g * FOURS + k);
            set(to, g * FOURS + k, off ? v : v * drop_factor(&d, r.v[k]));
        }
    }
}

static const real *left_of(Stage *st, real *to, const real *weight, const Values *vals, int mb, long n, float drop,
                           int64_t site)
{
    if (drop == 0)
        return weight;
    LAUNCH(recur_leave, blocks_for(n / FOURS), (unsigned)BLOCK, st, to, weight, vals, (long)mb, n, drop, site);
    return to;
}

/* h, and its weight where column 4 u + k is gate k of unit u. */
struct LastState {
    const real *h;
    long batch, hidden;
    FIELD float operator()(long i, long k) const { return i < batch ? one(h, i * hidden + k) : 0.0f; }
};

struct GateWeight {
    const real *weight;
    long hidden;
    FIELD float operator()(long k, long j) const
    {
        return j / FOURS < hidden ? one(weight, (j % FOURS * hidden + j / FOURS) * hidden + k) : 0.0f;
    }
};

/* Step n: h from `from` to `to`. */
static __global__ void recur_step(real *y, float *c, real *gates, real *to, const real *from, const real *x, const real *weight,
                                  const real *bias, Steps s, long n)
{
    SHARED(float, room, 2 * DEEP * SQUARE_PITCH);
    long wide = (4 * s.hidden + SQUARE - 1) / SQUARE, down = blockIdx.x / wide * SQUARE, across = blockIdx.x % wide * SQUARE;
    float z[FOURS][FOURS] = {};
    if (n)
        add_square(z, SHARED_AT(room, 0), LastState{from, s.batch, s.hidden}, GateWeight{weight, s.hidden}, down, across,
                   s.hidden);
    long u = (across + square_across()) / FOURS;
    for (int i = 0; i < FOURS; i++) {
        long b = down + square_down() + i, at = s.row(b, n);
        if (b >= s.batch || u >= s.hidden)
            continue;
        float before = n ? c[s.row(b, n - 1) * s.hidden + u] : 0.0f, a[FOURS] = {}, cell = before, h = 0;
        bool on = s.on(at);
        for (int k = 0; k < FOURS && on; k++) {
            a[k] = one(x, at * 4 * s.hidden + k * s.hidden + u) + (z[i][k] + (bias ? one(bias, k * s.hidden + u) : 0.0f));
            a[k] = k == 2 ? ftanh(a[k]) : fsigmoid(a[k]);
        }
        if (on) {
            cell = a[1] * before + a[0] * a[2];
            h = a[3] * ftanh(cell);
        }
        for (int k = 0; k < FOURS; k++)
            set(gates, at * 4 * s.hidden + k * s.hidden + u, a[k]);
        c[at * s.hidden + u] = cell;
        set(y, at * s.hidden + u, h);
        set(to, b * s.hidden + u, on ? h : n ? one(from, b * s.hidden + u) : 0.0f);
    }
}

/* tmp: two h [batch hidden], what is left of the weight. */
void recur_forward(Stage *st, real *y, float *c, real *gates, const real *x, const int32_t *mask, const real *weight,
                   const real *bias, void *tmp, const Values *vals, int mb, int h, long batch, long time, long hidden,
                   long reverse, float drop, int64_t site)
{
    Steps s = {mask, batch, time, hidden, reverse};
    real *last[2] = {(real *)tmp, (real *)tmp + batch * hidden};
    (void)h;
    weight = left_of(st, last[1] + batch * hidden, weight, vals, mb, 4 * hidden * hidden, drop, site);
    for (long n = 0; n < time; n++)
        LAUNCH(recur_step, (unsigned)(ceil_div(batch, SQUARE) * ceil_div(4 * hidden, SQUARE)), (unsigned)BLOCK, st, y, c, gates,
               last[n % 2], (const real *)last[1 - n % 2], x, weight, bias, s, n);
}

/* ---- backward ---------------------------------------------------------------------------------------------------- */

/* dz of step n, and dc of the step before. */
static __global__ void recur_slopes(real *dx, float *dc, const float *dh, const real *dy, const float *c, const real *gates,
                                    Steps s, long n)
{
    GRID(e, s.batch * s.hidden) {
        long b = quotient(e, s.hidden), u = e - b * s.hidden, at = s.row(b, n), to = at * 4 * s.hidden + u;
        float d[FOURS] = {};
        if (s.on(at)) {
            float i = one(gates, to), f = one(gates, to + s.hidden), g = one(gates, to + 2 * s.hidden);
            float o = one(gates, to + 3 * s.hidden), t = ftanh(c[at * s.hidden + u]);
            float h = (n < s.time - 1 ? dh[e] : 0.0f) + one(dy, at * s.hidden + u);
            float cell = (n < s.time - 1 ? dc[e] : 0.0f) + h * o * (1.0f - t * t);
            d[0] = cell * g * i * (1.0f - i);
            d[1] = cell * (n ? c[s.row(b, n - 1) * s.hidden + u] : 0.0f) * f * (1.0f - f);
            d[2] = cell * i * (1.0f - g * g);
            d[3] = h * t * o * (1.0f - o);
            dc[e] = cell * f;
        } else if (n == s.time - 1) {
            dc[e] = 0;
        }
        for (int k = 0; k < FOURS; k++)
            set(dx, to + k * s.hidden, d[k]);
    }
}

/* dz of step n. */
struct StepSlopes {
    const real *dx;
    Steps s;
    long n;
    FIELD float operator()(long i, long k) const { return i < s.batch ? one(dx, s.row(i, n) * 4 * s.hidden + k) : 0.0f; }
};

struct UnitWeight {
    const real *weight;
    long hidden;
    FIELD float operator()(long k, long j) const { return j < hidden ? one(weight, k * hidden + j) : 0.0f; }
};

/* dh of the step before: dz weight; where step n is hidden, it stays. */
static __global__ void recur_carry(float *dh, const real *dx, const real *weight, Steps s, long n)
{
    SHARED(float, room, 2 * DEEP * SQUARE_PITCH);
    long wide = (s.hidden + SQUARE - 1) / SQUARE, down = blockIdx.x / wide * SQUARE, across = blockIdx.x % wide * SQUARE;
    float d[FOURS][FOURS] = {};
    add_square(d, SHARED_AT(room, 0), StepSlopes{dx, s, n}, UnitWeight{weight, s.hidden}, down, across, 4 * s.hidden);
    for (int i = 0; i < FOURS; i++)
        for (int j = 0; j < FOURS; j++) {
            long b = down + square_down() + i, u = across + square_across() + j;
            if (b >= s.batch || u >= s.hidden)
                continue;
            if (s.on(s.row(b, n)))
                dh[b * s.hidden + u] = d[i][j];
            else if (n == s.time - 1)
                dh[b * s.hidden + u] = 0;
        }
}

void recur_backward(Stage *st, real *dx, const real *dy, const float *c, const real *gates, const int32_t *mask,
                    const real *weight, void *tmp, const Values *vals, int mb, long batch, long time, long hidden,
                    long reverse, float drop, int64_t site)
{
    Steps s = {mask, batch, time, hidden, reverse};
    float *dh = (float *)tmp, *dc = dh + batch * hidden;
    weight = left_of(st, (real *)(dc + batch * hidden), weight, vals, mb, 4 * hidden * hidden, drop, site);
    for (long n = time - 1; n >= 0; n--) {
        LAUNCH(recur_slopes, blocks_for(batch * hidden), (unsigned)BLOCK, st, dx, dc, (const float *)dh, dy, c, gates, s, n);
        if (n)
            LAUNCH(recur_carry, (unsigned)(ceil_div(batch, SQUARE) * ceil_div(hidden, SQUARE)), (unsigned)BLOCK, st, dh,
                   (const real *)dx, weight, s, n);
    }
}

/* before[batch time hidden] = h of the step before each. */
static __global__ void recur_lay_out(real *before, const real *y, Steps s)
{
    GRID(e, s.batch * s.hidden) {
        long b = quotient(e, s.hidden), u = e - b * s.hidden;
        float h = 0;
        for (long n = 0; n < s.time; n++) {
            long at = s.row(b, n);
            set(before, at * s.hidden + u, h);
            h = s.on(at) ? one(y, at * s.hidden + u) : h;
        }
    }
}

struct Turned {
    const real *dx;
    long rows;
    FIELD float operator()(long i, long k) const { return i < rows ? one(dx, k * rows + i) : 0.0f; }
};

static __global__ void recur_weight(float *dweight, const real *dx, const real *before, const Values *vals, long mb, int acc,
                                    long rows, long hidden, float drop, int64_t site)
{
    bool dropped = drop != 0 && !vals->eval;
    Drop by = drop_of(vals, mb, drop, site);
    SHARED(float, room, 2 * DEEP * SQUARE_PITCH);
    long wide = (hidden + SQUARE - 1) / SQUARE, down = blockIdx.x / wide * SQUARE, across = blockIdx.x % wide * SQUARE;
    float d[FOURS][FOURS] = {};
    add_square(d, SHARED_AT(room, 0), Turned{dx, 4 * hidden}, UnitWeight{before, hidden}, down, across, rows);
    for (int i = 0; i < FOURS; i++)
        for (int j = 0; j < FOURS; j++) {
            long r = down + square_down() + i, u = across + square_across() + j;
            if (r < 4 * hidden && u < hidden) {
                float v = dropped ? d[i][j] * drop_one(&by, r * hidden + u) : d[i][j];
                dweight[r * hidden + u] = acc ? dweight[r * hidden + u] + v : v;
            }
        }
}

void recur_backward_w(Stage *st, float *dweight, float *dbias, const real *dx, const real *y, const int32_t *mask, void *tmp,
                      const Values *vals, int mb, int acc, long batch, long time, long hidden, long reverse, float drop,
                      int64_t site)
{
    Steps s = {mask, batch, time, hidden, reverse};
    real *before = (real *)tmp;
    if (dweight) {
        LAUNCH(recur_lay_out, blocks_for(batch * hidden), (unsigned)BLOCK, st, before, y, s);
        LAUNCH(recur_weight, (unsigned)(ceil_div(4 * hidden, SQUARE) * ceil_div(hidden, SQUARE)), (unsigned)BLOCK, st, dweight,
               dx, (const real *)before, vals, (long)mb, acc, batch * time, hidden, drop, site);
    }
    if (dbias)
        bias_gradient(st, dbias, dx, acc, batch * time, 4 * hidden);
}
