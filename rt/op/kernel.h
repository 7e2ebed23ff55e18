/* SPDX-License-Identifier: Apache-2.0
 *
 * kernel.h: what the portable kernels share.  Three tools keep their bits independent of compiler, vector width
 * and thread count: a parallel loop over independent outputs, and a sum whose order is written down.  docs/bits.md
 * states the rules.
 */
#ifndef KERNEL_H
#define KERNEL_H
#include <string.h>
#include "../fmath.h"

/* How each file of kernels rounds, for start.c to ask: its name if a product and a sum are fused there, else NULL.  The
 * square of 1 + 2^-12 is 1 + 2^-11 + 2^-24; as a float it has no room for the last term, fused it keeps it. */
static const char *kernel_fused(void)
{
    volatile float x = 0x1.001p0f, minus = -0x1.002p0f;
    float a = x;
    return a * a + minus != 0 ? __BASE_FILE__ : NULL;
}
typedef const char *(*KernelFile)(void);
#ifndef LIBRARY                 /* which is one unit, and asks itself */
static KernelFile kernel_file __attribute__((used, section("kernel_files"))) = kernel_fused;
#endif

static inline long least(long a, long b) { return a < b ? a : b; }
static inline long ceil_div(long a, long b) { return (a + b - 1) / b; }

/* Run the iterations of the loop that follows on the stage's threads, if there is enough to do.  Each iteration writes
 * outputs of its own; sums are never split. */
#ifdef _OPENMP
#define PRAGMA(text) _Pragma(#text)
#define EACH(worth) PRAGMA(omp parallel for schedule(static) num_threads(st->threads) if (worth))
#else
#define EACH(worth) for (int once_ = ((void)st, (void)(worth), 1); once_; once_ = 0)    /* a prefix, as the pragma is */
#endif

/* The loop over single elements, cut into spans for the threads. */
enum { SPAN = 4096 };
#define MAP(n, i) \
    EACH((n) >= 4 * SPAN) \
    for (long span_ = 0; span_ < (n); span_ += SPAN) \
        for (long i = span_, end_ = least(span_ + SPAN, n); i < end_; i++)

/* The written order of a sum: lane j adds elements j, j+16, j+32, ... ascending; then lane j adds lane j+8, then j+4,
 * j+2, j+1.  Sixteen lanes are one AVX-512 register, two of AVX2, four of SSE2, or plain floats: the same additions. */
enum { LANES = 16, CHUNK = 256 };
typedef struct { float lane[LANES]; } Sum;
typedef float Sixteen __attribute__((vector_size(64), aligned(4), may_alias));

/* Add n more values; all calls but the last take a multiple of 16. */
static inline void sum_add(Sum *s, const float *x, long n)
{
    Sixteen t = *(Sixteen *)s->lane;
    long i = 0;
    for (; i + LANES <= n; i += LANES)
        t += *(const Sixteen *)(x + i);
    *(Sixteen *)s->lane = t;
    for (long j = 0; i + j < n; j++)
        s->lane[j] += x[i + j];
}

static inline float sum_end(const Sum *s)
{
    float t[LANES];
    memcpy(t, s->lane, sizeof t);
    for (int half = LANES / 2; half; half /= 2)
        for (int j = 0; j < half; j++)
            t[j] += t[j + half];
    return t[0];
}

/* Sum over i of a term in i: computed in chunks, which vectorise, then added by lanes. */
#define SUM_OF(result, n, i, term) \
    do { \
        Sum sum_ = {{0}}; \
        float chunk_[CHUNK]; \
        for (long from_ = 0; from_ < (n); from_ += CHUNK) { \
            long len_ = least(CHUNK, (n) - from_); \
            for (long i_ = 0; i_ < len_; i_++) { \
                long i = from_ + i_; \
                chunk_[i_] = (term); \
            } \
            sum_add(&sum_, chunk_, len_); \
        } \
        (result) = sum_end(&sum_); \
    } while (0)

/* The largest of n values; exact, so its order is free.  Lanes let it vectorise. */
static inline float row_max(const real *x, long n)
{
    float lane[LANES], most = -F_INFINITY;
    for (int j = 0; j < LANES; j++)
        lane[j] = -F_INFINITY;
    long i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++)
            lane[j] = get(x, i + j) > lane[j] ? get(x, i + j) : lane[j];
    for (; i < n; i++)
        lane[0] = get(x, i) > lane[0] ? get(x, i) : lane[0];
    for (int j = 0; j < LANES; j++)
        most = lane[j] > most ? lane[j] : most;
    return most;
}

/* A sum over an axis that may be divided among devices is cut into blocks of this length, the last one shorter.  Each block is
 * added as any sum; the blocks are added by a binary tree, of which a device has a subtree (docs/bits.md). */
enum { LEVELS = 4 };            /* of at most 16 blocks */
static inline long block_of(const Stage *st, long n) { return st->blocks > 1 ? ceil_div(n, st->blocks) : n; }

/* A binary counter walks the tree.  Behind block `number` each set bit at its lower end is a subtree that is complete, and
 * behind the last block each set bit.  Is there more to take at this level, or above? */
static inline int block_takes(long number, int level, int last)
{
    return last ? number >> level != 0 : (int)(number >> level & 1);
}

/* sum[n] of a block takes subtrees in from `rest`, LEVELS of `room` floats, and rests there; the last one is the whole. */
static inline void block_ends(float *sum, float *rest, long room, long n, long number, int last)
{
    int level = 0;
    for (; block_takes(number, level, last); level++)
        for (long i = 0; i < n && number >> level & 1; i++)
            sum[i] += rest[level * room + i];
    if (!last)
        memcpy(rest + level * room, sum, (size_t)n * sizeof *sum);
}

/* The sums of n columns go on with these rows, ascending.  A sum is in a register for DOWN rows. */
static inline void column_sums_on(float *sum, const real *at, long rows, long width, long n)
{
    enum { DOWN = 8 };
    long r = 0;
    for (; r + DOWN <= rows; r += DOWN, at += DOWN * width)
        for (long i = 0; i < n; i++) {
            float t = sum[i];
            for (long k = 0; k < DOWN; k++)
                t += get(at, k * width + i);
            sum[i] = t;
        }
    for (; r < rows; r++, at += width)
        for (long i = 0; i < n; i++)
            sum[i] += get(at, i);
}

/* sum[i] = the sum over rows r, ascending, of x[r][from+i]. */
static inline void column_sums(float *sum, const real *x, long rows, long width, long from, long n)
{
    memset(sum, 0, (size_t)n * sizeof *sum);
    column_sums_on(sum, x + from, rows, width, n);
}

/* What a call with the operand `onto` stores: v; or the sum of onto[i] and v, as if v had been stored and read. */
static inline float added(const real *onto, long i, float v)
{
    real stored;
    put(&stored, 0, v);
    return onto ? get(onto, i) + get(&stored, 0) : v;
}

/* Hand a finished sum to a weight gradient: written by the first micro-batch, added by the later ones. */
static inline void give(float *to, const float *sum, long n, int acc)
{
    for (long i = 0; i < n; i++)
        to[i] = acc ? to[i] + sum[i] : sum[i];
}

/* Columns of a task that goes down the rows: CHUNK at most, and as many for each thread. */
static inline long columns_each(const Stage *st, long width)
{
    long threads = st->threads > 0 ? st->threads : 1, tasks = ceil_div(ceil_div(width, CHUNK), threads) * threads;
    return ceil_div(ceil_div(width, tasks), LANES) * LANES;
}

/* The gradient of a bias: the column sums of dy[rows width], in blocks of rows. */
static inline void bias_blocks(Stage *st, float *dbias, const real *dy, int acc, long rows, long width, long block)
{
    long each = columns_each(st, width);
    EACH(rows * width >= 1 << 15)
    for (long j = 0; j < width; j += each) {
        float sum[CHUNK] = {0}, rest[LEVELS * CHUNK];
        long n = least(each, width - j);
        for (long from = 0, number = 0; from < rows; from += block, number++) {
            column_sums(sum, dy + from * width, least(block, rows - from), width, j, n);
            block_ends(sum, rest, CHUNK, n, number, from + block >= rows);
        }
        give(dbias + j, sum, n, acc);
    }
}

#endif
