/* SPDX-License-Identifier: Apache-2.0
 *
 * Rotary positions: formulas as in rt/op/rotary.c.  A block has one position of some samples.  It makes cosine and sine of up
 * to 256 pairs, in double, and turns these pairs in all heads of those samples before it makes the next ones.  With documents
 * a block has one sample: its threads look for where the document begins, 256 positions at a time.
 */
#include "kernel.h"
extern "C" {
#include "../../number.h"
}

#define FULL_TURN 0x1.921fb54442d18p+2       /* 2 pi */
enum { NO_SCALING, BY_FACTOR, BY_TURNS, YARN, YARN_EXACT, TURNING = 1056 };     /* TURNING: blocks wanted */

typedef struct {
    long batch, seq, heads, width, dims, adjacent;
    double ratio;               /* of one pair's frequency to that before it */
    long scaling;
    float factor, low, high;
    long original;
    const int32_t *documents;   /* [batch seq]; 0: a sample is one */
    double from, to;            /* yarn: pairs between which its ramp lies */
} Rotary;

FN double power(double x, long n)
{
    double y = 1;
    for (; n; n /= 2, x *= x)
        y = n % 2 ? y * x : y;
    return y;
}

template <bool TABLE>
FN float frequency(const Rotary &r, const float *table, long pair)
{
    double plain = (double)(float)power(r.ratio, pair);
    if (TABLE)
        return (float)(plain / (double)table[pair]);
    double turns = (double)r.original * plain / FULL_TURN;
    double share = (turns - (double)r.low) / ((double)r.high - (double)r.low);
    if (r.scaling >= YARN) {
        double ramp = ((double)pair - r.from) / (r.to - r.from);
        ramp = ramp < 0 ? 0 : ramp > 1 ? 1 : ramp;
        return (float)(plain / (double)r.factor * ramp + plain * (1 - ramp));
    }
    if (r.scaling == NO_SCALING || (r.scaling != BY_FACTOR && turns > (double)r.high))
        return (float)plain;
    if (r.scaling == BY_FACTOR || turns < (double)r.low)
        return (float)(plain / (double)r.factor);
    return (float)((1 - share) * plain / (double)r.factor + share * plain);
}

/* Of one head: pair `pair` of x, turned. */
FN void turn_pair(real *y, const real *x, const Rotary &r, long pair, float c, float s)
{
    long i = r.adjacent ? 2 * pair : pair, k = r.adjacent ? i + 1 : pair + r.dims / 2;
    float u = one(x, i), v = one(x, k);
    set(y, i, u * c - v * s);
    set(y, k, v * c + u * s);
}

/* Where the document of position t begins; all threads of the block. */
FN long begin_of(const int32_t *documents, long t)
{
    SHARED(int, begin, BLOCK);
    int mine = 0;
    for (long i = 1 + (long)threadIdx.x; i <= t; i += BLOCK)
        mine = documents[i] != documents[i - 1] ? (int)i : mine;
    begin[threadIdx.x] = mine;
    for (int way = BLOCK / 2; way; way /= 2) {
        __syncthreads();
        if ((int)threadIdx.x < way && begin[threadIdx.x + way] > begin[threadIdx.x])
            begin[threadIdx.x] = begin[threadIdx.x + way];
    }
    __syncthreads();
    return begin[0];
}

template <bool TABLE>
static __global__ void turn(real *y, const real *x, Rotary r, float sign, const float *table)
{
    SHARED(float, cosine, BLOCK);
    SHARED(float, sine, BLOCK);
    long t = blockIdx.x, pairs = r.dims / 2, rest = r.width - r.dims;
    long place = r.documents ? t - begin_of(r.documents + blockIdx.y * r.seq, t) : t;
    for (long from = 0; from < pairs; from += BLOCK) {
        long n = pairs - from < BLOCK ? pairs - from : (long)BLOCK;
        __syncthreads();
        if (threadIdx.x < n) {
            double s, c;
            sincospi(2.0 * ((double)((float)place * frequency<TABLE>(r, table, from + threadIdx.x)) / FULL_TURN), &s, &c);
            cosine[threadIdx.x] = (float)c;
            sine[threadIdx.x] = sign * (float)s;
        }
        __syncthreads();
        for (long b = blockIdx.y; b < r.batch; b += gridDim.y)
            UNROLL_4
            for (long at = threadIdx.x; at < r.heads * n; at += BLOCK) {
                long head = quotient(at, n), row = ((b * r.seq + t) * r.heads + head) * r.width;
                turn_pair(y + row, x + row, r, from + at - head * n, cosine[at - head * n], sine[at - head * n]);
            }
    }
    for (long b = blockIdx.y; b < r.batch && rest; b += gridDim.y)
        for (long at = threadIdx.x; at < r.heads * rest; at += BLOCK) {
            long head = quotient(at, rest), i = ((b * r.seq + t) * r.heads + head) * r.width + r.dims + at - head * rest;
            y[i] = x[i];
        }
}

static double whole(double x)
{
    double t = (double)(long)x;
    return t > x ? t - 1 : t;
}

static double pair_of(const Rotary &r, double theta, double times)
{
    return (double)r.dims * number_log((double)r.original / (times * FULL_TURN)) / (2 * number_log(theta));
}

/* As in rt/op/rotary.c. */
static void set_ramp(Rotary *r, double theta)
{
    double most = (double)(r->dims - 1);
    r->from = pair_of(*r, theta, (double)r->high);
    r->to = pair_of(*r, theta, (double)r->low);
    if (r->scaling == YARN) {
        r->from = whole(r->from);
        r->to = -whole(-r->to);
    }
    r->from = r->from > 0 ? r->from : 0;
    r->to = r->to < most ? r->to : most;
    r->to = r->to == r->from ? r->to + 0.001 : r->to;
}

/* table: [dims/2]; 0: none */
static void turn_all(Stage *st, real *y, const real *x, Rotary r, float theta, float sign, const float *table = 0)
{
    long wanted = r.documents ? r.batch : ceil_div(TURNING, r.seq);
    r.ratio = number_exp(-2.0 / (double)r.dims * number_log((double)theta));
    if (r.scaling >= YARN)
        set_ramp(&r, (double)theta);
    dim3 blocks((unsigned)r.seq, (unsigned)(wanted < r.batch ? wanted : r.batch));
    if (table)
        LAUNCH((turn<true>), blocks, (unsigned)BLOCK, st, y, x, r, sign, table);
    else
        LAUNCH((turn<false>), blocks, (unsigned)BLOCK, st, y, x, r, sign, table);
}

void rotary_forward(Stage *st, real *y, const real *x, long batch, long seq, long heads, long width, long dims, long adjacent,
                    float theta, long scaling, float factor, float low, float high, long original)
{
    Rotary r = {batch, seq, heads, width, dims, adjacent, 0, scaling, factor, low, high, original, 0, 0, 0};
    turn_all(st, y, x, r, theta, 1.0f);
}

void rotary_backward(Stage *st, real *dx, const real *dy, long batch, long seq, long heads, long width, long dims,
                     long adjacent, float theta, long scaling, float factor, float low, float high, long original)
{
    Rotary r = {batch, seq, heads, width, dims, adjacent, 0, scaling, factor, low, high, original, 0, 0, 0};
    turn_all(st, dx, dy, r, theta, -1.0f);
}

void rotary_documents_forward(Stage *st, real *y, const real *x, const int32_t *documents, long batch, long seq, long heads,
                              long width, long dims, long adjacent, float theta, long scaling, float factor, float low,
                              float high, long original)
{
    Rotary r = {batch, seq, heads, width, dims, adjacent, 0, scaling, factor, low, high, original, documents, 0, 0};
    turn_all(st, y, x, r, theta, 1.0f);
}

void rotary_documents_backward(Stage *st, real *dx, const real *dy, const int32_t *documents, long batch, long seq, long heads,
                               long width, long dims, long adjacent, float theta, long scaling, float factor, float low,
                               float high, long original)
{
    Rotary r = {batch, seq, heads, width, dims, adjacent, 0, scaling, factor, low, high, original, documents, 0, 0};
    turn_all(st, dx, dy, r, theta, -1.0f);
}

void rotary_table_forward(Stage *st, real *y, const real *x, const int32_t *documents, const float *factors, long batch,
                          long seq, long heads, long width, long dims, long adjacent, float theta)
{
    Rotary r = {batch, seq, heads, width, dims, adjacent, 0, NO_SCALING, 1, 1, 4, 1, documents, 0, 0};
    turn_all(st, y, x, r, theta, 1.0f, factors);
}

void rotary_table_backward(Stage *st, real *dx, const real *dy, const int32_t *documents, const float *factors, long batch,
                           long seq, long heads, long width, long dims, long adjacent, float theta)
{
    Rotary r = {batch, seq, heads, width, dims, adjacent, 0, NO_SCALING, 1, 1, 4, 1, documents, 0, 0};
    turn_all(st, dx, dy, r, theta, -1.0f, factors);
}
