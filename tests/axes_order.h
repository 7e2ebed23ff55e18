/* SPDX-License-Identifier: Apache-2.0
 *
 * axes_order.h: the sums of Linear, of Conv and of losses over a vocabulary, in 1 to 16 blocks, against their definition: a
 * chain a block, two halves added or merged, an absent one left out.  A part of tests/axes.c.
 */
/* Terms a[i*step] b[i*other], i from lo to hi-1: what blocks `first` .. first+count-1 of `each` terms add up to, by definition:
 * a block is a chain from 0, two halves are added, an absent one adds nothing.  False: there are none. */
static bool sum_of(float *to, const real *a, long step, const real *b, long other, long n, long each, long first, long count)
{
    float left = 0, right = 0;
    if (first * each >= n)
        return false;
    if (count == 1) {
        for (long i = first * each; i < n && i < (first + 1) * each; i++)
            left = b ? fmaf(get(a, i * step), get(b, i * other), left) : left + get(a, i * step);
        return *to = left, true;
    }
    sum_of(&left, a, step, b, other, n, each, first, count / 2);
    bool more = sum_of(&right, a, step, b, other, n, each, first + count / 2, count / 2);
    return *to = more ? left + right : left, true;
}

static void equal(bool good, const char *what, long n, long blocks)
{
    passed += good;
    failed += !good;
    if (!good)
        fprintf(stderr, "axes: %s: a sum of %ld terms in %ld blocks is not that of docs/bits.md\n", what, n, blocks);
}

/* A sum of blocks, as they are there. */
static float tree_of(float *part, long count)
{
    for (long step = 1; step < count; step *= 2)
        for (long k = 0; k + step < count; k += 2 * step)
            part[k] += part[k + step];
    return part[0];
}

/* A sum of three pieces of n terms each: block b has the b-th block of each of them, one behind the other in one chain. */
static void check_pieces(long n, long blocks)
{
    enum { PIECES = 3, ROWS = 2, COLUMNS = 35 };
    long each = (n + blocks - 1) / blocks, all = PIECES * n, count = 0, at = 0;
    real *dy = room((size_t)(ROWS * all) * sizeof *dy), *w = room((size_t)(COLUMNS * all) * sizeof *w), dx[ROWS * COLUMNS];
    bool good = true;
    for (long i = 0; i < COLUMNS * all; i++) {
        put(w, i, (float)draw());
        put(dy, i % (ROWS * all), (float)draw());
    }
    stage.blocks = (int)blocks;
    linear_pieces_backward_x(&stage, dx, dy, w, 0, ROWS, COLUMNS, all, PIECES);
    for (long i = 0; i < ROWS * COLUMNS; i++) {
        float part[16];
        real one;
        for (count = 0, at = 0; count < blocks && at < n; at += each, count++) {
            part[count] = 0;
            for (long piece = 0; piece < PIECES; piece++)
                for (long k = piece * n + at; k < piece * n + (at + each < n ? at + each : n); k++)
                    part[count] = fmaf(get(dy, i / COLUMNS * all + k), get(w, k * COLUMNS + i % COLUMNS), part[count]);
        }
        put(&one, 0, tree_of(part, count));
        good &= !memcmp(&one, &dx[i], sizeof one);
    }
    equal(good, "Linear, dx of three pieces", n, blocks);
}

/* Linear with 7 rows and 35 columns, so whole tiles and parts of one, around a sum of n terms. */
static void check_order(long n, long blocks)
{
    enum { ROWS = 7, COLUMNS = 35 };
    long each = (n + blocks - 1) / blocks;
    real *x = room((size_t)(ROWS * n) * sizeof *x), *w = room((size_t)(COLUMNS * n) * sizeof *w), y[ROWS * COLUMNS], one;
    float dw[ROWS * COLUMNS], more[ROWS * COLUMNS], db[ROWS], want;
    for (long i = 0; i < COLUMNS * n; i++) {
        put(w, i, (float)draw());
        put(x, i % (ROWS * n), (float)draw());
    }
    bool good[4] = {true, true, true, true};
    stage.blocks = (int)blocks;
    linear_forward(&stage, y, x, w, NULL, 0, ROWS, n, COLUMNS);
    for (long i = 0; i < ROWS * COLUMNS; i++) {
        sum_of(&want, x + i / COLUMNS * n, 1, w + i % COLUMNS * n, 1, n, each, 0, blocks);
        put(&one, 0, want);
        good[0] &= !memcmp(&one, &y[i], sizeof one);
    }
    linear_backward_x(&stage, y, x, w, 0, ROWS, COLUMNS, n);                     /* dy [7 n], weight [n 35] */
    for (long i = 0; i < ROWS * COLUMNS; i++) {
        sum_of(&want, x + i / COLUMNS * n, 1, w + i % COLUMNS, COLUMNS, n, each, 0, blocks);
        put(&one, 0, want);
        good[1] &= !memcmp(&one, &y[i], sizeof one);
    }
    linear_backward_w(&stage, dw, db, x, w, 0, 0, n, COLUMNS, ROWS);            /* dy [n 7], x [n 35] */
    memcpy(more, dw, sizeof dw);
    linear_backward_w(&stage, more, NULL, x, w, 0, 1, n, COLUMNS, ROWS);        /* onto an earlier micro-batch */
    for (long i = 0; i < ROWS * COLUMNS; i++) {
        sum_of(&want, x + i / COLUMNS, ROWS, w + i % COLUMNS, COLUMNS, n, each, 0, blocks);
        float sum = want + dw[i];
        good[2] &= !memcmp(&want, &dw[i], sizeof want) && !memcmp(&sum, &more[i], sizeof sum);
    }
    for (long i = 0; i < ROWS; i++)
        good[3] &= sum_of(&want, x + i, ROWS, NULL, 0, n, each, 0, blocks) && !memcmp(&want, &db[i], sizeof want);
    check_pieces(n, blocks);
    equal(good[0], "Linear, y", n, blocks);
    equal(good[1], "Linear, dx", n, blocks);
    equal(good[2], "Linear, dweight", n, blocks);
    equal(good[3], "Linear, dbias", n, blocks);
}

/* One number of a Conv of [H, W] pixels, n channels that are added and m others: a block is one chain, kernel rows, kernel
 * columns, channels.  back: of the gradient of x, whose channels are those of y. */
static float conv_of(const real *from, const real *w, bool back, long row, long column, long other, long m, long n, long blocks)
{
    enum { H = 3, W = 4, KH = 2, KW = 3 };
    float part[16];
    long count = 0, each = (n + blocks - 1) / blocks;
    for (long at = 0; at < n; at += each, count++) {
        part[count] = 0;
        for (long i = 0; i < KH; i++)
            for (long j = 0; j < KW; j++) {
                long r = back ? row + 1 - i : row - 1 + i, c = back ? column + 1 - j : column - 1 + j;
                for (long k = at; k < at + each && k < n && r >= 0 && r < H && c >= 0 && c < W; k++)
                    part[count] = fmaf(get(from, (r * W + c) * n + k),
                                       get(w, ((back ? k * m + other : other * n + k) * KH + i) * KW + j), part[count]);
            }
    }
    return tree_of(part, count) + 0;            /* a bias of nothing: no -0 */
}

static void check_conv(long n, long blocks)
{
    enum { PIXELS = 12, OTHERS = 5, TAPS = 6 };
    real *x = room((size_t)(PIXELS * n) * sizeof *x), *w = room((size_t)(OTHERS * n * TAPS) * sizeof *w);
    real y[PIXELS * OTHERS], one;
    bool good[2] = {true, true};
    for (long i = 0; i < OTHERS * n * TAPS; i++) {
        put(w, i, (float)draw());
        put(x, i % (PIXELS * n), (float)draw());
    }
    stage.blocks = (int)blocks;
    for (int back = 0; back < 2; back++) {
        if (back)
            conv_backward_x(&stage, y, x, w, 0, 1, 3, 4, OTHERS, 3, 4, n, 2, 3, 1, 1, 1, 1, 1);
        else
            conv_forward(&stage, y, x, w, NULL, 0, 1, 3, 4, n, 3, 4, OTHERS, 2, 3, 1, 1, 1, 1, 1);
        for (long i = 0; i < PIXELS * OTHERS; i++) {
            put(&one, 0, conv_of(x, w, back, i / OTHERS / 4, i / OTHERS % 4, i % OTHERS, OTHERS, n, blocks));
            good[back] &= !memcmp(&one, &y[i], sizeof one);
        }
    }
    equal(good[0], "Conv, y", n, blocks);
    equal(good[1], "Conv, dx", n, blocks);
}

/* The largest of n scores, and the sum of e^(score - that): by 16 lanes, then halves. */
static void pair_of(float to[2], const real *x, long n)
{
    float lane[16] = {0};
    to[0] = -F_INFINITY;
    for (long i = 0; i < n; i++)
        to[0] = get(x, i) > to[0] ? get(x, i) : to[0];
    for (long i = 0; i < n; i++)
        lane[i % 16] += fexp(get(x, i) - to[0]);
    for (int half = 8; half; half /= 2)
        for (int i = 0; i < half; i++)
            lane[i] += lane[i + half];
    to[1] = lane[0];
}

/* As sum_of: of pairs, each sum scaled to the larger score. */
static bool merged(float to[2], const real *x, long n, long each, long first, long count)
{
    float other[2];
    if (first * each >= n)
        return false;
    if (count == 1)
        return pair_of(to, x + first * each, n - first * each < each ? n - first * each : each), true;
    merged(to, x, n, each, first, count / 2);
    if (!merged(other, x, n, each, first + count / 2, count / 2))
        return true;
    float top = to[0] > other[0] ? to[0] : other[0], a = to[1] * fexp(to[0] - top), b = other[1] * fexp(other[0] - top);
    to[0] = top;
    to[1] = a + b;
    return true;
}

/* The losses over n scores of 3 rows, 5 wide before the head; the second one has the vocabulary in chunks of 64. */
static void check_losses(long n, long blocks)
{
    enum { ROWS = 3, IN = 5, CHUNK = 64 };
    long each = (n + blocks - 1) / blocks;
    int32_t targets[ROWS] = {0, (int32_t)(n - 1), (int32_t)(n / 2)};
    real x[ROWS * IN], dx[ROWS * IN], *w = room((size_t)(IN * n) * sizeof *w), *s = room((size_t)(ROWS * n) * sizeof *s);
    real *ds = room((size_t)(ROWS * n) * sizeof *ds), one;
    float loss, other, lse[ROWS], again[ROWS], *dw = room((size_t)(IN * n) * sizeof *dw), dloss = 1, want, pair[2];
    bool good[3] = {true, true, true};
    for (long i = 0; i < ROWS * IN; i++)
        put(x, i, (float)(2 * draw()));
    for (long i = 0; i < IN * n; i++)
        put(w, i, (float)(4 * draw()));
    vals.valid[0] = ROWS;
    stage.blocks = 0;
    linear_forward(&stage, s, x, w, NULL, 0, ROWS, IN, n);
    stage.blocks = (int)blocks;
    xent_forward(&stage, &loss, lse, s, targets, &vals, ROWS, n, -100, 0);
    xent_backward(&stage, ds, &dloss, s, lse, targets, &vals, ROWS, n, -100, 0);
    for (long r = 0; r < ROWS; r++) {
        merged(pair, s + r * n, n, each, 0, blocks);
        want = pair[0] + flog(pair[1]);
        good[0] &= !memcmp(&want, &lse[r], sizeof want);
    }
    linear_xent_forward(&stage, &other, again, x, w, NULL, targets, scratch, &vals, 0, ROWS, IN, n, CHUNK, -100, 0);
    good[1] = each > CHUNK || (!memcmp(lse, again, sizeof lse) && !memcmp(&loss, &other, sizeof loss));
    linear_xent_backward(&stage, dx, dw, NULL, &dloss, x, w, NULL, lse, targets, scratch, &vals, 0, 0, ROWS, IN, n, CHUNK, -100,
                         0);
    for (long i = 0; i < ROWS * IN; i++) {
        sum_of(&want, ds + i / IN * n, 1, w + i % IN, IN, n, each, 0, blocks);
        put(&one, 0, want);
        good[2] &= !memcmp(&one, &dx[i], sizeof one);
    }
    equal(good[0], "SoftmaxCrossEntropy, lse", n, blocks);
    equal(good[1], "LinearCrossEntropy, lse", n, blocks);
    equal(good[2], "LinearCrossEntropy, dx", n, blocks);
}
