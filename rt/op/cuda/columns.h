/* SPDX-License-Identifier: Apache-2.0
 *
 * columns.h: sums over rows: gradients of weights, biases and repeated operands.
 *
 * Problem.  A matrix of many rows is to be added up into one row, in an order that depends on sizes alone.  Method.  A
 * tile is 32 x 16 bytes of columns.  In a chunk of rows 8 threads of each column take rows in turn, each adds ascending in a
 * register, and the 8 are added ascending.  With several chunks the parts go to scratch, and a second kernel adds them the same
 * way: 8 threads of chunks, ascending.  A chunk's length follows from rows and width.  Scratch: at most TILES tiles of sums,
 * whatever the shape; with one chunk none.
 *
 * A block of 256 threads has a tile of a chunk, or where rows are narrower than a tile as many chunks as there are threads for.
 * Which threads add a chunk changes no bit.  What limits a sum is how many bytes are under way: a thread reads AHEAD rows
 * before it adds the first of them.
 *
 * Term::SUMS sums are made at once.  term.read(r, row, i, width, step) reads the Term::READS lines that row `row` has in the
 * columns that take() takes, and term.at(v, r, fixed, row, i, width, step) gives what they add.  Once before comes
 * term.hold(fixed, i, width, step), with Term::FIXED lines for what all rows need.  end.put(sum, column, value) receives each
 * result once.  With `segments` there are that many matrices below each other, in one chunk each, and column counts through all
 * of their results.
 */
#ifndef COLUMNS_H
#define COLUMNS_H
#include "kernel.h"

enum { ROW_LANES = BLOCK / WARP, TILE = WARP * WIDE, TILES = 528, LEAST_ROWS = 32 };

typedef struct { long rows, width, tiles, chunks, each; } Columns;

/* A row of a tile takes `lanes` threads and `pitch` sums; a block has `together` of the `units`, chunks of all segments. */
typedef struct { int lanes, pitch, together; long units; } Share;

/* Adds AHEAD rows to s, or if SOME the first `rows` of them: the last one is read again in place of others. */
template <int AHEAD, int STEP, bool SOME, class Term>
FN void add_rows(float (&s)[Term::SUMS][WIDE], const Term &term, const float (&fixed)[Term::FIXED + !Term::FIXED][WIDE],
                 long row, int rows, long i, long width)
{
    float r[AHEAD][Term::READS][WIDE];
    UNROLL
    for (int a = 0; a < AHEAD; a++)
        term.read(r[a], row + (long)(!SOME || a < rows ? a : rows - 1) * ROW_LANES, i, width, STEP);
    loads_first();
    UNROLL
    for (int a = 0; a < AHEAD; a++) {
        float v[Term::SUMS][WIDE];
        term.at(v, r[a], fixed, row + (long)(!SOME || a < rows ? a : rows - 1) * ROW_LANES, i, width, STEP);
        for (int k = 0; k < Term::SUMS; k++)
            for (int j = 0; j < WIDE; j++) {
                float more = s[k][j] + v[k][j];
                s[k][j] = !SOME || a < rows ? more : s[k][j];
            }
    }
}

/* STEP: 0 where every row begins at a multiple of 16 bytes.  The compiler knows it. */
template <class Term, class End, int STEP>
static __global__ void __launch_bounds__(BLOCK, 2) column_parts(Term term, End end, float *part, Columns c, Share t)
{
    enum { LINES = STEP ? 4 : Term::FIXED > 2 ? 8 : 12, AHEAD = LINES / Term::READS > 0 ? LINES / Term::READS : 1 };
    SHARED(float, sum, ROW_LANES * TILE);
    long tile = blockIdx.x % c.tiles, block = blockIdx.x / c.tiles;
    int line = (int)threadIdx.x / t.lanes, lane = (int)threadIdx.x - line * t.lanes;
    long unit = block * t.together + line / ROW_LANES, segment = quotient(unit, c.chunks), chunk = unit - segment * c.chunks;
    long i = tile * TILE + (STEP ? lane : lane * WIDE), until = (chunk + 1) * c.each, first = chunk * c.each + line % ROW_LANES;
    bool mine = line / ROW_LANES < t.together && unit < t.units && i < c.width;
    until = until < c.rows ? until : c.rows;
    int rounds = mine && first < until ? (int)((until - first + ROW_LANES - 1) / ROW_LANES) : 0;
    float s[Term::SUMS][WIDE], fixed[Term::FIXED + !Term::FIXED][WIDE];
    for (int k = 0; k < Term::SUMS; k++)
        for (int j = 0; j < WIDE; j++)
            s[k][j] = 0;
    if constexpr (Term::FIXED > 0)
        if (rounds)
            term.hold(fixed, i, c.width, STEP);
    first += segment * c.rows;
    int round = 0;
    for (; round + AHEAD <= rounds; round += AHEAD)
        add_rows<AHEAD, STEP, false>(s, term, fixed, first + (long)round * ROW_LANES, AHEAD, i, c.width);
    if (round < rounds)
        add_rows<AHEAD, STEP, true>(s, term, fixed, first + (long)round * ROW_LANES, rounds - round, i, c.width);
    for (int k = 0; k < Term::SUMS; k++) {
        for (int j = 0; j < WIDE; j++) {
            int at = STEP ? lane + j * WARP : lane * WIDE + j;
            if (mine && at < t.pitch)
                sum[line * t.pitch + at] = s[k][j];
        }
        __syncthreads();
        for (int at = (int)threadIdx.x; at < t.together * t.pitch; at += BLOCK) {
            int which = at / t.pitch, column = at - which * t.pitch;
            long to = block * t.together + which;
            if (to >= t.units || tile * TILE + column >= c.width)
                break;
            float all = sum[which * ROW_LANES * t.pitch + column];
            for (int w = 1; w < ROW_LANES; w++)
                all += sum[(which * ROW_LANES + w) * t.pitch + column];
            if (c.chunks == 1)
                end.put(k, to * c.width + tile * TILE + column, all);
            else
                part[(to * Term::SUMS + k) * c.width + tile * TILE + column] = all;
        }
        __syncthreads();
    }
}

/* A thread has parts of all sums under way, 32 of them; those behind the last chunk read that again. */
template <int SUMS, class End> static __global__ void __launch_bounds__(BLOCK, 2)
column_totals(End end, const float *part, Columns c)
{
    enum { AHEAD = 32 / SUMS };
    SHARED(float, sum, SUMS * BLOCK);
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    int rounds = (int)((c.chunks - warp + ROW_LANES - 1) / ROW_LANES);
    long i = (long)blockIdx.x * WARP + lane;
    float s[SUMS];
    UNROLL
    for (int k = 0; k < SUMS; k++)
        s[k] = 0;
    for (int round = 0; round < rounds && i < c.width; round += AHEAD) {
        float v[AHEAD][SUMS];
        UNROLL
        for (int a = 0; a < AHEAD; a++)
            for (int k = 0; k < SUMS; k++) {
                long chunk = warp + (long)(round + a < rounds ? round + a : rounds - 1) * ROW_LANES;
                v[a][k] = part[(chunk * SUMS + k) * c.width + i];
            }
        loads_first();
        UNROLL
        for (int a = 0; a < AHEAD; a++)
            for (int k = 0; k < SUMS; k++)
                s[k] = round + a < rounds ? s[k] + v[a][k] : s[k];
    }
    UNROLL
    for (int k = 0; k < SUMS; k++)
        sum[k * BLOCK + threadIdx.x] = s[k];
    __syncthreads();
    UNROLL
    for (int k = 0; k < SUMS && warp == 0 && i < c.width; k++) {
        for (int w = 1; w < ROW_LANES; w++)
            s[k] += sum[k * BLOCK + w * WARP + lane];
        end.put(k, i, s[k]);
    }
}

/* With `segments` one chunk each. */
static inline Columns columns_of(long rows, long width, long segments)
{
    Columns c = {rows, width, ceil_div(width, TILE), 1, rows};
    long most = ceil_div(rows, LEAST_ROWS), chunks = segments ? 1 : TILES / c.tiles;
    chunks = chunks < most ? chunks : most;
    if (chunks > 1) {
        c.each = ceil_div(ceil_div(rows, chunks), ROW_LANES) * ROW_LANES;
        c.chunks = ceil_div(rows, c.each);
    }
    return c;
}

/* Rows that a team of a norm's gradient holds in registers.  What comes of them is added in its blocks: two on each
 * multiprocessor of the largest GPUs, with room for three sums in so many bytes.  Biases up to a warp's width have this order
 * too, so that the norm's gradient may add them. */
enum { HELD_BLOCKS = 256, HELD_SUMS = 3 };
#define TEAM_OF(width) ((width) < WIDE_ROW ? WARP : BLOCK)
#define HOLDS(width) ((width) % WIDE == 0 && (width) <= 4 * BLOCK * 8)

static inline Columns held_columns(size_t bytes, long rows, long width)
{
    long lanes = BLOCK / TEAM_OF(width), chunks = ceil_div(rows, LEAST_ROWS / ROW_LANES * lanes), most = HELD_BLOCKS;
    long room = (long)(bytes / ((size_t)HELD_SUMS * (size_t)width * sizeof(float)));
    most = room < most ? room : most;
    chunks = chunks < most ? chunks : most;
    Columns c = {rows, width, ceil_div(width, TILE), 1, ceil_div(ceil_div(rows, chunks), lanes) * lanes};
    c.chunks = ceil_div(rows, c.each);
    return c;
}

/* Bytes of scratch that `sums` sums at once take. */
static inline size_t columns_scratch(const Columns &c, int sums)
{
    return c.chunks > 1 ? (size_t)(c.chunks * sums * c.width) * sizeof(float) : 0;
}

template <class Term, class End>
static void column_sums_in(Stage *st, Term term, End end, Columns c, float *part, long segments)
{
    long across = c.width % WIDE ? c.width : c.width / WIDE, lanes = across < WARP ? across : (long)WARP;
    long together = BLOCK / lanes / ROW_LANES, units = segments ? segments : c.chunks;
    Share t = {(int)lanes, (int)(c.width < TILE ? c.width : (long)TILE), (int)together, units};
    unsigned blocks = (unsigned)(ceil_div(units, together) * c.tiles);
    if (c.width % WIDE)
        LAUNCH((column_parts<Term, End, WARP>), blocks, (unsigned)BLOCK, st, term, end, part, c, t);
    else
        LAUNCH((column_parts<Term, End, 0>), blocks, (unsigned)BLOCK, st, term, end, part, c, t);
    if (c.chunks > 1)
        LAUNCH((column_totals<Term::SUMS, End>), (unsigned)ceil_div(c.width, WARP), (unsigned)BLOCK, st, end,
               (const float *)part, c);
}

template <class Term, class End>
static void column_sums(Stage *st, Term term, End end, long rows, long width, long segments = 0)
{
    Columns c = columns_of(rows, width, segments);
    size_t scratch = columns_scratch(c, Term::SUMS);
    column_sums_in(st, term, end, c, scratch ? (float *)workspace_of(st, scratch) : 0, segments);
}

/* The plain sum of x. */
struct Plain {
    enum { SUMS = 1, READS = 1, FIXED = 0 };
    const real *x;
    FIELD void read(float (&r)[1][WIDE], long row, long i, long width, int step) const
    {
        take(r[0], x + row * width, i, width, step);
    }
    FIELD void at(float (&v)[1][WIDE], const float (&r)[1][WIDE], const float (&)[1][WIDE], long, long, long, int) const
    {
        for (int j = 0; j < WIDE; j++)
            v[0][j] = r[0][j];
    }
};

/* The sum of x y. */
struct Product {
    enum { SUMS = 1, READS = 2, FIXED = 0 };
    const real *x, *y;
    FIELD void read(float (&r)[2][WIDE], long row, long i, long width, int step) const
    {
        take(r[0], x + row * width, i, width, step);
        take(r[1], y + row * width, i, width, step);
    }
    FIELD void at(float (&v)[1][WIDE], const float (&r)[2][WIDE], const float (&)[1][WIDE], long, long, long, int) const
    {
        for (int j = 0; j < WIDE; j++)
            v[0][j] = r[0][j] * r[1][j];
    }
};

/* Into f32 gradients: written by the first micro-batch, added by the later ones; a 0 address is one that nobody wants. */
struct Gradient {
    float *to[3];
    int acc;
    FIELD void put(int k, long i, float v) const
    {
        if (to[k])
            to[k][i] = acc ? to[k][i] + v : v;
    }
};

struct Narrow {
    real *to;
    float factor;
    FIELD void put(int, long i, float v) const { set(to, i, v * factor); }
};
#endif
