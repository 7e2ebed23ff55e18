/* SPDX-License-Identifier: Apache-2.0
 *
 * Embedding backward without atomics: dweight[r] = the sum of dy[i] over the tokens i with ids[i] = r.
 *
 * A block owns a few rows of the table and reads all ids, 2048 at a time.  Tokens of its rows go into a list in shared
 * memory, in ascending order: a thread counts the hits among its 8 ids, and a prefix sum over the block says where they go.
 * When the list may not hold the next 2048, and at the end, its tokens are added: for each row, warp w takes the hits w,
 * w + 8, ..., which it finds by ballots, and the 8 warps are added ascending.  So the order follows from the ids alone.
 * Rows that no list has hit get zero from the first micro-batch.
 *
 * Cost: the ids are read once a block, from the cache: n x blocks x 4 bytes, with at most 32 rows a block; the rest is
 * writing the table, and reading dy once.  No scratch.  Weak: tables of a few rows, since a row belongs to one block and
 * 8 warps; n beyond some 100 000.
 */
#include "kernel.h"

enum { OWN = 32, IDS = 8, TURN = BLOCK * IDS, LIST = 2 * TURN, SPAN = WARP * WIDE, WARPS = BLOCK / WARP, BLOCKS_WANTED = 264 };

/* Where this thread's `count` entries begin among those of the block, in the order of threads; *all: how many there are. */
FN int before_me(int count, int *all)
{
    SHARED(int, sum, WARPS);
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, upto = count;
    for (int way = 1; way < WARP; way *= 2) {
        int left = __shfl_up_sync(0xffffffffu, upto, way);
        upto += lane >= way ? left : 0;
    }
    if (lane == WARP - 1)
        sum[warp] = upto;
    __syncthreads();
    int from = 0, whole = 0;
    for (int w = 0; w < WARPS; w++) {
        from += w < warp ? sum[w] : 0;
        whole += sum[w];
    }
    __syncthreads();
    *all = whole;
    return from + upto - count;
}

/* Tokens of the rows that a block owns, ascending, each with its row. */
struct Hits { const int *token; const unsigned char *row; int n; };

/* How many of them are of `row`; with `s`, what every 8th of these, from the warp's own on, adds to columns i .. */
FN int add_hits(float (*s)[WIDE], Hits h, int row, const real *dy, long i, long width, int step)
{
    int lane = threadIdx.x % WARP, next = threadIdx.x / WARP, count = 0;
    for (int from = 0; from < h.n; from += WARP) {
        unsigned set = __ballot_sync(0xffffffffu, from + lane < h.n && h.row[from + lane] == row);
        for (; set && s; set &= set - 1) {
            if (count++ != next)
                continue;
            next += WARPS;
            if (i < width) {
                float v[WIDE];
                take(v, dy + (long)h.token[from + __ffs((int)set) - 1] * width, i, width, step);
                for (int j = 0; j < WIDE; j++)
                    (*s)[j] += v[j];
            }
        }
        count += __popc(set);
    }
    return count;
}

static FIELD void add_row(float *to, Hits h, int row, const real *dy, bool acc, long width)
{
    SHARED(float, part, WARPS * SPAN);
    int step = width % WIDE ? WARP : 0, lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    for (long from = 0; from < width; from += SPAN) {
        float s[WIDE];
        for (int j = 0; j < WIDE; j++)
            s[j] = 0;
        add_hits(&s, h, row, dy, from + (step ? lane : lane * WIDE), width, step);
        for (int j = 0; j < WIDE; j++)
            part[warp * SPAN + (step ? lane + j * WARP : lane * WIDE + j)] = s[j];
        __syncthreads();
        for (int at = threadIdx.x; at < SPAN && from + at < width; at += BLOCK) {
            float sum = part[at];
            for (int w = 1; w < WARPS; w++)
                sum += part[w * SPAN + at];
            to[from + at] = acc ? to[from + at] + sum : sum;
        }
        __syncthreads();
    }
}

/* The 8 ids of this thread, as rows from `first` on; -1 behind the last one. */
FN void take_ids(int (&row)[IDS], const int32_t *ids, long mine, long n, long first)
{
    if (mine + IDS <= n) {
        Words<IDS> w = *(const Words<IDS> *)(ids + mine);
        for (int j = 0; j < IDS; j++)
            row[j] = (int)w.at[j] - (int)first;
    } else {
        for (int j = 0; j < IDS; j++)
            row[j] = mine + j < n ? ids[mine + j] - (int)first : -1;
    }
}

static __global__ void scatter_rows(float *dweight, const real *dy, const int32_t *ids, int acc, long n, long width,
                                    long rows, int own)
{
    SHARED(int, token, LIST);
    SHARED(unsigned char, tag, LIST);
    long first = (long)blockIdx.x * own;
    int here = rows - first < own ? (int)(rows - first) : own, len = 0;
    bool add = acc != 0;
    for (long from = 0; from < n; from += TURN) {
        int row[IDS], all, count = 0;
        long mine = from + threadIdx.x * IDS;
        take_ids(row, ids, mine, n, first);
        for (int j = 0; j < IDS; j++)
            count += row[j] >= 0 && row[j] < here;
        int at = len + before_me(count, &all);
        for (int j = 0; j < IDS; j++)
            if (row[j] >= 0 && row[j] < here) {
                token[at] = (int)(mine + j);
                tag[at++] = (unsigned char)row[j];
            }
        len += all;
        if (len <= LIST - TURN && from + TURN < n)
            continue;
        __syncthreads();
        Hits h = {SHARED_AT(token, 0), SHARED_AT(tag, 0), len};
        for (int r = 0; r < here; r++) {
            float *to = dweight + (first + r) * width;
            if (add_hits(0, h, r, dy, 0, 0, 0))
                add_row(to, h, r, dy, add, width);
            else if (!add)
                for (long i = threadIdx.x; i < width; i += BLOCK)
                    to[i] = 0;
        }
        len = 0;
        add = true;
    }
}

void embedding_backward(Stage *st, float *dweight, const real *dy, const int32_t *ids, int acc, long n, long width,
                        long rows)
{
    long own = rows / BLOCKS_WANTED;
    own = own < 1 ? 1 : own > OWN ? (long)OWN : own;
    LAUNCH(scatter_rows, (unsigned)ceil_div(rows, own), (unsigned)BLOCK, st, dweight, dy, ids, acc, n, width, rows,
           (int)own);
}
