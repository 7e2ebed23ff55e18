/* SPDX-License-Identifier: Apache-2.0
 *
 * Embedding backward without atomics: dweight[r] = the sum of dy[i] over the tokens i with ids[i] = r.
 *
 * A block owns 256 columns of some rows of the table, and reads all ids, 1024 at a time.  Tokens of its rows go into a list in
 * shared memory, in ascending order: a thread counts the hits among its 4 ids, and a prefix sum over the block says where they
 * go.
 * When the list may not hold the next 1024, and at the end, it is sorted by row, tokens still ascending, and added: of the
 * tokens of a row, warp w takes w, w + 8, ..., and the 8 warps are added ascending.  A row of up to 8 tokens, as most are, is
 * left to one warp, which adds them in the same order.  So the order follows from the ids alone.  Rows that the first list
 * does not hit get zero from the first micro-batch.
 *
 * Cost: the ids are read once a block, from the cache, and compared with its rows: n x blocks, with at most 192 rows a block.
 * The rest is writing the table, and reading dy once.  No scratch.  A warp loads 1/8 of the tokens of a frequent word, for its
 * columns alone.  Weak: tables of a few rows; n beyond some 100 000.
 */
#include "kernel.h"

enum { OWN = 192, IDS = 4, TURN = BLOCK * IDS, LIST = 2 * TURN, SPAN = WARP * WIDE, WARPS = BLOCK / WARP, BLOCKS_WANTED = 264 };

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

/* by_row: the n tokens by row, ascending in each; those of row r from start[r] to start[r + 1]. */
FN void sort_by_row(int *by_row, int *start, const int *token, const unsigned char *row, int n, int rows)
{
    int lane = threadIdx.x % WARP;
    for (int r = threadIdx.x / WARP; r < rows; r += WARPS) {
        int count = 0;
        for (int i = lane; i - lane < n; i += WARP)
            count += __popc(__ballot_sync(0xffffffffu, i < n && row[i] == r));
        if (lane == 0)
            start[r + 1] = count;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        start[0] = 0;
        for (int r = 0; r < rows; r++)
            start[r + 1] += start[r];
    }
    __syncthreads();
    for (int r = threadIdx.x / WARP; r < rows; r += WARPS) {
        int at = start[r];
        for (int i = lane; i - lane < n; i += WARP) {
            bool hit = i < n && row[i] == r;
            unsigned set = __ballot_sync(0xffffffffu, hit);
            if (hit)
                by_row[at + __popc(set & ((1u << lane) - 1))] = token[i];
            at += __popc(set);
        }
    }
    __syncthreads();
}

/* to = (acc: +=) the sum of the rows of dy that `token` names, in the block's columns. */
static FIELD void add_row(float *to, const int *token, int n, const real *dy, bool acc, long width)
{
    SHARED(float, part, WARPS * SPAN);
    int step = width % WIDE ? WARP : 0, lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    for (long from = (long)blockIdx.y * SPAN; from < width; from += (long)gridDim.y * SPAN) {
        long i = from + (step ? lane : lane * WIDE);
        float s[WIDE], v[WIDE];
        for (int j = 0; j < WIDE; j++)
            s[j] = 0;
        UNROLL_4
        for (int h = warp; h < (i < width ? n : 0); h += WARPS) {
            take(v, dy + token[h] * width, i, width, step);
            for (int j = 0; j < WIDE; j++)
                s[j] += v[j];
        }
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

/* The same of up to WARPS tokens, by one warp. */
static FIELD void add_few(float *to, const int *token, int n, const real *dy, bool acc, long width)
{
    int step = width % WIDE ? WARP : 0, lane = threadIdx.x % WARP;
    for (long from = (long)blockIdx.y * SPAN; from < width; from += (long)gridDim.y * SPAN) {
        long i = from + (step ? lane : lane * WIDE);
        float s[WIDE], v[WIDE];
        if (i >= width)
            continue;
        for (int j = 0; j < WIDE; j++)
            s[j] = 0;
        for (int h = 0; h < n; h++) {
            take(v, dy + token[h] * width, i, width, step);
            for (int j = 0; j < WIDE; j++)
                s[j] += v[j];
        }
        if (acc) {
            take(v, to, i, width, step);
            for (int j = 0; j < WIDE; j++)
                s[j] = v[j] + s[j];
        }
        leave(to, s, i, width, step);
    }
}

/* The ids of this thread, as rows from `first` on; -1 behind the last one. */
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

static __global__ void __launch_bounds__(BLOCK, 5) scatter_rows(float *dweight, const real *dy, const int32_t *ids, int acc,
                                                                long n, long width, long base, long rows, int each)
{
    SHARED(int, token, LIST);
    SHARED(int, by_row, LIST);
    SHARED(int, start, OWN + 1);
    SHARED(unsigned char, tag, LIST);
    int first = (int)blockIdx.x * each;                     /* rows of a table are below 2^31: an id is an int */
    int here = rows - first < each ? (int)(rows - first) : each, len = 0;
    bool add = acc != 0;
    for (long from = 0; from < n; from += TURN) {
        int row[IDS], all, count = 0;
        long mine = from + threadIdx.x * IDS;
        take_ids(row, ids, mine, n, base + first);
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
        sort_by_row(SHARED_AT(by_row, 0), SHARED_AT(start, 0), SHARED_AT(token, 0), SHARED_AT(tag, 0), len, here);
        for (int r = threadIdx.x / WARP; r < here; r += WARPS) {
            int hits = start[r + 1] - start[r];
            if (hits <= WARPS && (hits || !add))
                add_few(dweight + (long)(first + r) * width, SHARED_AT(by_row, 0) + start[r], hits, dy, add, width);
        }
        for (int r = 0; r < here; r++)
            if (start[r + 1] - start[r] > WARPS)
                add_row(dweight + (long)(first + r) * width, SHARED_AT(by_row, 0) + start[r], start[r + 1] - start[r], dy, add,
                        width);
        len = 0;
        add = true;
    }
}

/* Ids base .. base+rows-1 are those of the table. */
static void add_tokens(Stage *st, float *dweight, const real *dy, const int32_t *ids, int acc, long n, long width, long base,
                       long rows)
{
    long each = ceil_div(rows, BLOCKS_WANTED);
    each = each > OWN ? (long)OWN : each;
    dim3 grid((unsigned)ceil_div(rows, each), (unsigned)ceil_div(width, SPAN));
    LAUNCH(scatter_rows, grid, (unsigned)BLOCK, st, dweight, dy, ids, acc, n, width, base, rows, (int)each);
}

void embedding_backward(Stage *st, float *dweight, const real *dy, const int32_t *ids, int acc, long n, long width,
                        long rows)
{
    add_tokens(st, dweight, dy, ids, acc, n, width, 0, rows);
}

/* A device has rows of the table. */
void embedding_rows_backward(Stage *st, float *dweight, const real *dy, const int32_t *ids, int acc, long n, long width,
                             long rows, long)
{
    add_tokens(st, dweight, dy, ids, acc, n, width, st->shard * rows, rows);
}
