/* SPDX-License-Identifier: Apache-2.0
 *
 * Factors of 8 bits (../../fp8.h).
 *
 * A tensor is read once: each block narrows its share, by the scale of the history, and leaves the largest magnitude that it
 * has seen.  A maximum has no order, so blocks share work as they like and bits do not change.  Only where the history is
 * empty, in the first step, a launch before it finds the tensor's own maximum; later its blocks leave at once.
 *
 * Turned factors go through a tile of 64 x 64 codes in shared memory: rows of 16 bytes in, columns of 16 bytes out.  One that
 * is wanted both ways is read once: its codes also go out as they come, 8 bytes a thread.
 *
 * A block takes tiles below each other, a strip, and so adds up columns too, for the gradient of a bias: a thread every
 * 4 WIDE-th row, ascending, then these lanes, ascending, then strips as columns.h adds chunks.  A strip's length follows from
 * the sizes.
 */
#include "factor.h"
#include "columns.h"
#include "../../formula.h"

enum { FACTOR_TILE = 64, FACTOR_LINE = FACTOR_TILE + 4, FACTOR_OWN = FP8_UNITS / 4, FACTOR_SEEN = FACTOR_OWN + 3 * FP8_PIECES };

FN float magnitude(float v)
{
    return bits_float(float_bits(v) & 0x7fffffff);
}

template <int N> FN void keep_larger(float *most, const float (&v)[N])
{
    for (int j = 0; j < N; j++) {
        float size = magnitude(v[j]);
        *most = size > *most ? size : *most;
    }
}

/* Two codes as float_fp8() makes them.  The GPU's instruction would make infinity the largest number: x + 0 x is NaN then. */
template <int TYPE> FN uint32_t two_codes(float low, float high)
{
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 890
    uint16_t w;
    low = __fmaf_rn(low, 0.0f, low), high = __fmaf_rn(high, 0.0f, high);
    if (TYPE == E4M3)
        asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(w) : "f"(high), "f"(low));
    else
        asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(w) : "f"(high), "f"(low));
    return w;
#else
    return float_fp8(low, (Fp8)TYPE) | (uint32_t)float_fp8(high, (Fp8)TYPE) << 8;
#endif
}

/* WIDE codes, as words. */
template <int TYPE> FN Words<WIDE / 4> codes_of(const float (&v)[WIDE], float scale)
{
    Words<WIDE / 4> w;
    for (int k = 0; k < WIDE / 4; k++)
        w.at[k] = two_codes<TYPE>(v[4 * k] * scale, v[4 * k + 1] * scale) |
                  two_codes<TYPE>(v[4 * k + 2] * scale, v[4 * k + 3] * scale) << 16;
    return w;
}

/* The largest of a block's or of several blocks' finds: every thread gets it. */
FN float largest_piece(const float *piece, int n)
{
    float most = 0;
    for (int i = (int)threadIdx.x; i < n; i += BLOCK)
        most = piece[i] > most ? piece[i] : most;
    return team_max<BLOCK>(most);
}

/* The largest bin that still counts, or -1. */
FN int counting_bin(const float *bins)
{
    float bin = threadIdx.x < FP8_BINS && bins[threadIdx.x] > 0 ? (float)threadIdx.x : -1.0f;
    return (int)team_max<BLOCK>(bin);
}

/* WIDE numbers of a factor.  SLOPE: through a Gelu, rounded as a call of its own does. */
template <bool SLOPE> FN void take_factor(float (&v)[WIDE], const Eight *f, long i)
{
    load(v, f->from + i);
    if (SLOPE) {
        float x[WIDE];
        load(x, f->pre + i);
        for (int j = 0; j < WIDE; j++)
            v[j] *= f->tanh ? slope_tanh(x[j]) : slope_erf(x[j]);
        narrow(v, f->from);
    }
}

/* ---- own maxima --------------------------------------------------------------------------------------------------- */

FN Eight one_of(const Eight &a, const Eight &b, const Eight &c, long which)
{
    return which == 0 ? a : which == 1 ? b : c;
}

/* `share` blocks for a, those behind them for b, then c; `always`, or where there is no history. */
static __global__ void factor_sizes(Eight a, Eight b, Eight c, float *piece, long share, int always)
{
    long block = blockIdx.x % share, which = blockIdx.x / share;
    Eight f = one_of(a, b, c, which);
    long n = f.rows * f.cols;
    float most = 0;
    if (!always && counting_bin(f.bins) >= 0)
        return;
    for (long i = (block * BLOCK + threadIdx.x) * WIDE; i < n; i += share * BLOCK * WIDE) {
        float v[WIDE];
        if (f.pre)
            take_factor<true>(v, &f, i);
        else
            take_factor<false>(v, &f, i);
        keep_larger(&most, v);
    }
    most = team_max<BLOCK>(most);
    if (threadIdx.x == 0)
        piece[which * FP8_PIECES + block] = most;
}

/* ---- narrowing ---------------------------------------------------------------------------------------------------- */

template <int TYPE> FN float factor_straight(const Eight *f, float scale, long block, long share)
{
    float most = 0;
    for (long i = (block * BLOCK + threadIdx.x) * WIDE; i < f->rows * f->cols; i += share * BLOCK * WIDE) {
        float v[WIDE];
        load(v, f->from + i);
        keep_larger(&most, v);
        *(Words<WIDE / 4> *)(f->to + i) = codes_of<TYPE>(v, scale);
    }
    return most;
}

/* Codes of the tile at (row, col), turned, into shared memory: a line is a column.  Straight ones go out. */
template <int TYPE, bool SUMS, bool SLOPE, class Tile>
FN void tile_in(Tile &tile, const Eight *f, float scale, float *most, float (&sum)[WIDE], long row, long col)
{
    enum { ACROSS = FACTOR_TILE / WIDE };
    for (int r = (int)threadIdx.x / ACROSS, c = (int)threadIdx.x % ACROSS * WIDE; r < FACTOR_TILE; r += BLOCK / ACROSS) {
        float v[WIDE];
        if (row + r >= f->rows || col + c >= f->cols)
            continue;
        take_factor<SLOPE>(v, f, (row + r) * f->cols + col + c);
        keep_larger(most, v);
        for (int j = 0; j < WIDE && SUMS; j++)
            sum[j] += v[j];
        Words<WIDE / 4> w = codes_of<TYPE>(v, scale);
        if (f->straight)
            *(Words<WIDE / 4> *)(f->straight + (row + r) * f->cols + col + c) = w;
        UNROLL
        for (int j = 0; j < WIDE; j++)
            tile[(c + j) * FACTOR_LINE + r] = (uint8_t)(w.at[j / 4] >> j % 4 * 8);
    }
}

template <class Tile> FN void tile_out(const Tile &tile, const Eight *f, long row, long col)
{
    int c = (int)threadIdx.x / 4, r = (int)threadIdx.x % 4 * 16;
    Words<4> w;
    if (col + c >= f->cols || row + r >= f->rows)
        return;
    UNROLL
    for (int k = 0; k < 4; k++)
        w.at[k] = *(const uint32_t *)SHARED_AT(tile, c * FACTOR_LINE + r + 4 * k);
    *(Words<4> *)(f->to + (col + c) * f->rows + row + r) = w;
}

/* The sums of a strip of tiles, from those of its threads. */
template <class Lanes> FN void strip_out(Lanes &lanes, const float (&sum)[WIDE], float *part, long columns)
{
    enum { ACROSS = FACTOR_TILE / WIDE };
    int at = (int)threadIdx.x / ACROSS * FACTOR_TILE + (int)threadIdx.x % ACROSS * WIDE, c = (int)threadIdx.x;
    for (int j = 0; j < WIDE; j++)
        lanes[at + j] = sum[j];
    __syncthreads();
    if (c < FACTOR_TILE && c < columns) {
        float all = lanes[c];
        for (int l = 1; l < BLOCK / ACROSS; l++)
            all += lanes[l * FACTOR_TILE + c];
        part[c] = all;
    }
    __syncthreads();
}

template <int TYPE, bool SUMS, bool SLOPE, class Tile, class Lanes>
FN float factor_turned(Tile &tile, Lanes &lanes, const Eight *f, float scale, long block, long share)
{
    long across = (f->cols + FACTOR_TILE - 1) / FACTOR_TILE;
    float most = 0;
    for (long unit = block; unit < across * f->strips; unit += share) {
        long strip = quotient(unit, across), col = (unit - strip * across) * FACTOR_TILE;
        float sum[WIDE];
        for (int j = 0; j < WIDE; j++)
            sum[j] = 0;
        for (long t = strip * f->each; t < (strip + 1) * f->each && t * FACTOR_TILE < f->rows; t++) {
            tile_in<TYPE, SUMS, SLOPE>(tile, f, scale, &most, sum, t * FACTOR_TILE, col);
            __syncthreads();
            tile_out(tile, f, t * FACTOR_TILE, col);
            __syncthreads();
        }
        if (SUMS && f->strip_sums)
            strip_out(lanes, sum, f->strip_sums + strip * f->cols + col, f->cols - col);
    }
    return most;
}

template <int TYPE, bool SUMS, class Tile, class Lanes>
FN float factor_any(Tile &tile, Lanes &lanes, const Eight *f, float scale, long block, long share)
{
    return f->turned ? factor_turned<TYPE, SUMS, false>(tile, lanes, f, scale, block, share)
                     : factor_straight<TYPE>(f, scale, block, share);
}

/* `pieces` blocks for each, and as many maxima of factor_sizes().  Eight blocks are all threads of a multiprocessor; with SUMS,
 * the gradient of a bias, it holds five, and with SLOPE, where `a` is dy and goes through a Gelu, four. */
template <bool SUMS, bool SLOPE>
static __global__ void __launch_bounds__(BLOCK, SLOPE ? 4 : SUMS ? 5 : 8)
factor_narrow(Eight a, Eight b, Eight c, float *room, int pieces)
{
    long block = blockIdx.x % pieces, which = blockIdx.x / pieces;
    SHARED(uint8_t, tile, FACTOR_TILE * FACTOR_LINE);
    SHARED(float, lanes, SUMS ? BLOCK * WIDE : 1);
    Eight f = one_of(a, b, c, which);
    int bin = counting_bin(f.bins);
    if (bin < 0)
        bin = fp8_bin(largest_piece(room + FACTOR_OWN + which * FP8_PIECES, pieces));
    int power = fp8_scale(bin, f.type);
    float scale = fp8_power(power);
    float most = SLOPE && which == 0 ? factor_turned<E5M2, SUMS, true>(tile, lanes, &f, scale, block, pieces)
               : f.type == E4M3 ? factor_any<E4M3, SUMS>(tile, lanes, &f, scale, block, pieces)
                                : factor_any<E5M2, SUMS>(tile, lanes, &f, scale, block, pieces);
    most = team_max<BLOCK>(most);
    if (threadIdx.x != 0)
        return;
    room[FACTOR_SEEN + which * FP8_PIECES + block] = most;
    if (block == 0)
        room[4 * which] = fp8_power(-power);
}

/* Blocks for each of several tensors of at most n elements. */
static int pieces_for(long n)
{
    long each = ceil_div(n, (long)BLOCK * WIDE * 2);
    return each < FP8_PIECES ? (int)each : (int)FP8_PIECES;
}

/* A factor that is not made counts nothing. */
static int pieces_of(Eight a, Eight b, Eight c)
{
    long first = a.rows * a.cols, second = b.rows * b.cols, third = c.to ? c.rows * c.cols : 0;
    second = second > third ? second : third;
    return pieces_for(first > second ? first : second);
}

/* Tiles below each other that a block has: `each` of them in a strip.  They follow from the tensor's own size, so that sums of
 * columns do, whatever is made beside it. */
static void cut_strips(Eight *f)
{
    long tiles = ceil_div(f->rows, (long)FACTOR_TILE), across = ceil_div(f->cols, (long)FACTOR_TILE);
    long down = f->to ? pieces_for(f->rows * f->cols) / across : 1;
    f->each = ceil_div(tiles, down > 1 ? down : 1);
    f->strips = ceil_div(tiles, f->each > 1 ? f->each : 1);
}

Units factors_make(Stage *st, Eight a, Eight b, Eight c, float *room)
{
    int pieces = pieces_of(a, b, c), n = c.to ? 3 : 2;
    cut_strips(&a), cut_strips(&b), cut_strips(&c);
    Columns sums = {a.rows, a.cols, 1, a.strips, a.each * FACTOR_TILE};
    a.strip_sums = a.dbias ? (float *)workspace_of(st, (size_t)(a.strips * a.cols) * sizeof(float)) : 0;
    LAUNCH(factor_sizes, (unsigned)(n * pieces), (unsigned)BLOCK, st, a, b, c, room + FACTOR_OWN, (long)pieces, 0);
    if (a.pre && a.dbias)
        LAUNCH((factor_narrow<true, true>), (unsigned)(n * pieces), (unsigned)BLOCK, st, a, b, c, room, pieces);
    else if (a.pre)
        LAUNCH((factor_narrow<false, true>), (unsigned)(n * pieces), (unsigned)BLOCK, st, a, b, c, room, pieces);
    else if (a.dbias)
        LAUNCH((factor_narrow<true, false>), (unsigned)(n * pieces), (unsigned)BLOCK, st, a, b, c, room, pieces);
    else
        LAUNCH((factor_narrow<false, false>), (unsigned)(n * pieces), (unsigned)BLOCK, st, a, b, c, room, pieces);
    Gradient end = {{a.dbias, 0}, a.acc};
    if (a.dbias)
        LAUNCH((column_totals<1, Gradient>), (unsigned)ceil_div(a.cols, WARP), (unsigned)BLOCK, st, end,
               (const float *)a.strip_sums, sums);
    return Units{room, room + 4, room + 8};
}

/* ---- the note ------------------------------------------------------------------------------------------------------ */

/* Pieces of dy, x and weight; those of the weight are 0 for all micro-batches but the first, which sees the same weight. */
static __global__ void factor_note(float *damax, const float *seen, int pieces, int of_weight, int acc)
{
    enum { ALL = FP8_TENSORS * FP8_BINS };
    int bin[FP8_TENSORS];
    bin[FP8_DY] = fp8_bin(largest_piece(seen, pieces));
    bin[FP8_X] = fp8_bin(largest_piece(seen + FP8_PIECES, pieces));
    bin[FP8_WEIGHT] = fp8_bin(largest_piece(seen + 2 * FP8_PIECES, of_weight));
    UNROLL
    for (int t = 0; t < FP8_TENSORS; t++)
        if (threadIdx.x < FP8_BINS) {
            float *to = damax + t * FP8_BINS + threadIdx.x;
            *to = (acc ? *to : 0) + (bin[t] == (int)threadIdx.x ? 1.0f : 0.0f);
            if (!acc)
                to[ALL] = 0;        /* accumulators have two floats a number, and a count needs one */
        }
}

void factors_note(Stage *st, float *damax, Eight dy, Eight x, Eight weight, float *room, int acc)
{
    float *seen = room + FACTOR_SEEN;
    int pieces = pieces_of(dy, x, weight), of_weight = acc ? 0 : weight.to ? pieces : pieces_for(weight.rows * weight.cols);
    if (of_weight && !weight.to)
        LAUNCH(factor_sizes, (unsigned)of_weight, (unsigned)BLOCK, st, weight, weight, weight, seen + 2 * FP8_PIECES,
               (long)of_weight, 1);
    LAUNCH(factor_note, 1u, (unsigned)BLOCK, st, damax, seen, pieces, of_weight, acc);
}

static __global__ void factor_age(float *amax, const float *seen, long n, float history)
{
    GRID(i, n)
        amax[i] = seen[i] > 0 ? history : amax[i] > 0 ? amax[i] - 1 : 0;
}

void fp8_track(Stage *st, float *amax, const float *seen, long n, long history)
{
    LAUNCH(factor_age, blocks_for(n), (unsigned)BLOCK, st, amax, seen, n, (float)history);
}
