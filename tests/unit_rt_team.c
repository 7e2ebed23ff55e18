/* SPDX-License-Identifier: Apache-2.0
 *
 * unit_rt_team: the calls that add over the devices of a stage, against those of one device.
 *
 * Each device is run alone, twice: at first it leaves what it would send, and then finds what the tree makes of all.  So the
 * kernels are tested without messages; tests/width.sh has those, and bf16.
 */
#include "rt/rt.h"
#include "rt/real.h"
#include "rt/team.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static Stage stage;
static int passed, failed;
static uint64_t state = 1;

static double draw(void)        /* -1 .. 1 */
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double)(int64_t)state * 0x1p-63;
}

static void equal(bool good, const char *what, int devices, long blocks)
{
    passed += good;
    failed += !good;
    if (!good)
        fprintf(stderr, "unit_rt_team: %s of %d devices, %ld blocks: other bits than those of one\n", what, devices, blocks);
}

enum { MOST_TEAM = 4, MOST_SUMS = 1 << 13 };
static struct { bool second; float sum[MOST_TEAM][MOST_SUMS]; double part[MOST_TEAM][256]; const float *whole; } left;

static void team_sum(Stage *st, float *x, long n)
{
    for (long i = 0; i < n && left.second; i++) {
        const float *a = &left.sum[0][i];
        x[i] = a[0] + a[MOST_SUMS];
        if (st->shards == 4)
            x[i] += a[2 * MOST_SUMS] + a[3 * MOST_SUMS];
    }
    if (!left.second)
        memcpy(left.sum[st->shard], x, (size_t)n * sizeof *x);
}

static void team_sum_part(Stage *st, float *x, long n, long all) { (void)n, team_sum(st, x, all); }

/* What the others have is there. */
static void team_gather(Stage *st, void *x, const long *from)
{
    static unsigned char all[4 * MOST_SUMS];
    const long mine = from[st->shard], end = from[st->shard + 1];
    if (!left.second)
        memcpy(all + mine, (unsigned char *)x + mine, (size_t)(end - mine));
    else
        memcpy(x, all, (size_t)from[st->shards]);
}

/* Bytes of which one device has each: the others have 0 there. */
static void team_take(Stage *st, void *x, long bytes)
{
    static unsigned char all[4 * MOST_SUMS];
    for (long i = 0; i < bytes; i++)
        if (left.second)
            ((unsigned char *)x)[i] = all[i];
        else
            all[i] = (unsigned char)((st->shard ? all[i] : 0) | ((unsigned char *)x)[i]);
}

/* Blocks of the norm: the first time all of the others at once. */
static void team_swap(Stage *st, int with, const void *mine, long out, void *theirs, long in)
{
    memset(theirs, 0, (size_t)in);
    if (!left.second && (with ^ st->shard) == 1)
        memcpy(left.part[st->shard], mine, (size_t)out);
    for (int d = 0; d < st->shards && left.second && (with ^ st->shard) == 1; d++)
        for (int b = 0; b < 256 && d != st->shard; b++)
            ((double *)theirs)[b] += left.part[d][b];
}

static void team_deal(Stage *st, float *to, const float *g, long whole, long outer, long room, long from, long step, long n)
{
    long first = from + st->shard * step;
    (void)g, (void)outer, (void)room;
    for (long i = 0; i < n && first + i < whole; i++)
        to[i] = left.whole[first + i];
}

/* What each device has for another one, in the order of its messages: the first time it is left there, then read. */
enum { MOST_MAIL = 1 << 20 };
static struct { long sent, got; unsigned char at[MOST_MAIL]; } mail[MOST_TEAM][MOST_TEAM];

static void mail_swap(Stage *st, int with, const void *mine, long out, void *theirs, long in)
{
    long *sent = &mail[st->shard][with].sent, *got = &mail[with][st->shard].got;
    equal(*sent + out <= MOST_MAIL && (!left.second || *got + in <= mail[with][st->shard].sent), "a message", with, out);
    if (!left.second)
        memcpy(mail[st->shard][with].at + *sent, mine, (size_t)out), *sent += out;
    else
        memcpy(theirs, mail[with][st->shard].at + *got, (size_t)in), *got += in;
}

static const Team pairs = {.swap = mail_swap};
static const Team team = {.sum = team_sum, .sum_part = team_sum_part, .gather = team_gather, .take = team_take,
                          .swap = team_swap, .deal = team_deal};

/* Row 0 and column 0: products that are too small, so that a sum without a bias is -0, as on one device. */
static void check_team(int devices, long blocks, bool biased)
{
    enum { ROWS = 7, WIDE = 48, OUT = 24 };
    const long each = WIDE / devices, pieces = 3, piece = WIDE / pieces / devices;
    static real x[ROWS * WIDE], w[OUT * WIDE], turned[WIDE * OUT], all[OUT], want[2][ROWS * OUT], got[ROWS * OUT];
    static float g[OUT * WIDE];
    double norm[2];
    const real *bias = biased ? all : NULL;
    for (long i = 0; i < OUT * WIDE; i++) {
        put(w, i, i < WIDE ? 0x1p-80f : (float)draw());
        put(turned, i, i % OUT == 0 ? 0x1p-80f : (float)draw());
        put(x, i % (ROWS * WIDE), i % (ROWS * WIDE) < WIDE ? -0x1p-80f : (float)draw());
        put(all, i % OUT, (float)draw());
        g[i] = (float)draw();
    }
    left.whole = g;
    stage.blocks = (int)blocks, stage.shards = 0;
    linear_forward(&stage, want[0], x, w, bias, 0, ROWS, WIDE, OUT);
    linear_pieces_backward_x(&stage, want[1], x, turned, 0, ROWS, OUT, WIDE, pieces);        /* dy [7 48], weight [48 24] */
    equal(signbit(get(want[1], 0)) && (biased || signbit(get(want[0], 0))), "no -0", 1, blocks);
    norm_partial(&stage, norm, g, OUT * WIDE, 0);
    stage.team = &team, stage.shards = devices;
    for (int turn = 0; turn < 2 * devices; turn++) {
        real px[ROWS * WIDE], pw[OUT * WIDE];
        stage.shard = turn % devices, left.second = turn >= devices;
        for (long i = 0; i < ROWS * each; i++)
            px[i] = x[i / each * WIDE + stage.shard * each + i % each];
        for (long i = 0; i < OUT * each; i++)
            pw[i] = w[i / each * WIDE + stage.shard * each + i % each];
        linear_rows_forward(&stage, got, px, pw, bias, NULL, 0, ROWS, each, OUT);
        if (left.second)
            equal(!memcmp(got, want[0], sizeof got), "Linear by rows, y", devices, blocks);
    }
    for (int turn = 0; turn < 2 * devices; turn++) {
        real py[ROWS * WIDE], pt[WIDE * OUT];
        stage.shard = turn % devices, left.second = turn >= devices;
        for (long i = 0; i < ROWS * each; i++) {
            long at = i % each / piece * (WIDE / pieces) + stage.shard * piece + i % piece;
            py[i] = x[i / each * WIDE + at];
            for (long k = 0; k < OUT && i < each; k++)
                pt[i * OUT + k] = turned[at * OUT + k];
        }
        linear_columns_backward_x(&stage, got, py, pt, NULL, 0, ROWS, OUT, each, pieces, WIDE);
        if (left.second)
            equal(!memcmp(got, want[1], sizeof got), "Linear by columns, dx", devices, blocks);
        norm_team(&stage, norm + 1, g, OUT * WIDE, 3, piece * OUT, 0);
        if (left.second)
            equal(norm[0] == norm[1], "norm", devices, blocks);
    }
    stage.team = NULL, stage.shards = stage.shard = 0;
}

/* A Conv by channels of x, and by those of y.  Pixel 0 and channel 0: products that are too small; a sum without a bias is 0
 * there, not -0, as on one device. */
static void check_conv(int devices, long blocks, bool biased)
{
    enum { PIXELS = 2 * 4 * 3, IN = 16, OUT = 32, TAPS = 6, W = OUT * IN * TAPS };
    static real x[PIXELS * IN], dy[PIXELS * OUT], w[W], all[OUT], want[2][PIXELS * OUT], got[PIXELS * OUT];
    static real px[PIXELS * IN], py[PIXELS * OUT], by_in[W], by_out[W];
    const long in = IN / devices, out = OUT / devices;
    for (long i = 0; i < W; i++) {
        put(w, i, i / TAPS % IN == 0 || i / TAPS / IN == 0 ? 0x1p-80f : (float)draw());
        put(x, i % (PIXELS * IN), i % (PIXELS * IN) < IN ? -0x1p-80f : (float)draw());
        put(dy, i % (PIXELS * OUT), i % (PIXELS * OUT) < OUT ? -0x1p-80f : (float)draw());
        put(all, i % OUT, (float)draw());
    }
#define SIZES(in, out) 2, 4, 3, in, 4, 3, out, 2, 3, 1, 1, 1, 1, 1
    stage.blocks = (int)blocks, stage.shards = 0;
    conv_forward(&stage, want[0], x, w, biased ? all : NULL, 0, SIZES(IN, OUT));
    conv_backward_x(&stage, want[1], dy, w, 0, SIZES(IN, OUT));
    stage.team = &team, stage.shards = devices;
    for (int turn = 0; turn < 4 * devices; turn++) {
        stage.shard = turn % devices, left.second = turn / devices % 2;
        for (long i = 0; i < PIXELS * in; i++)
            px[i] = x[i / in * IN + stage.shard * in + i % in];
        for (long i = 0; i < PIXELS * out; i++)
            py[i] = dy[i / out * OUT + stage.shard * out + i % out];
        for (long i = 0; i < W / devices; i++) {
            by_in[i] = w[i / (in * TAPS) * IN * TAPS + stage.shard * in * TAPS + i % (in * TAPS)];
            by_out[i] = w[stage.shard * out * IN * TAPS + i];
        }
        if (turn < 2 * devices)
            conv_rows_forward(&stage, got, px, by_in, biased ? all : NULL, NULL, SIZES(in, OUT));
        else
            conv_columns_backward_x(&stage, got, py, by_out, NULL, SIZES(IN, out));
        if (left.second && turn < 2 * devices)
            equal(!memcmp(got, want[0], sizeof got), "Conv by rows, y", devices, blocks);
        else if (left.second)
            equal(!memcmp(got, want[1], sizeof *got * PIXELS * IN), "Conv by columns, dx", devices, blocks);
    }
    stage.team = NULL, stage.shards = stage.shard = 0;
#undef SIZES
}

/* A Linear of n columns that the blocks do not divide.  What stands behind the last ones is not read, and a device without any
 * adds nothing: also of column 0 and row 0, whose sum is -0. */
static void check_uneven(int devices, long blocks, long n)
{
    enum { ROWS = 5, IN = 9, MOST = 32 };
    const long room = (n + blocks - 1) / blocks * (blocks / devices);
    static real dy[ROWS * MOST], w[MOST * IN], want[ROWS * IN], got[ROWS * IN], py[ROWS * MOST], pw[MOST * IN];
    for (long i = 0; i < ROWS * n; i++)
        put(dy, i, i < n ? -0x1p-80f : (float)draw());
    for (long i = 0; i < n * IN; i++)
        put(w, i, i % IN == 0 ? 0x1p-80f : (float)draw());
    stage.blocks = (int)blocks, stage.shards = 0;
    linear_backward_x(&stage, want, dy, w, 0, ROWS, IN, n);
    equal(signbit(get(want, 0)), "no -0", n, blocks);
    stage.team = &team, stage.shards = devices;
    for (int turn = 0; turn < 2 * devices; turn++) {
        stage.shard = turn % devices, left.second = turn >= devices;
        for (long i = 0; i < ROWS * room; i++)
            put(py, i, stage.shard * room + i % room < n ? get(dy, i / room * n + stage.shard * room + i % room) : NAN);
        for (long i = 0; i < room * IN; i++)
            put(pw, i, stage.shard * room + i / IN < n ? get(w, stage.shard * room * IN + i) : NAN);
        linear_columns_backward_x(&stage, got, py, pw, NULL, 0, ROWS, IN, room, 1, n);
        if (left.second)
            equal(!memcmp(got, want, sizeof got), "Linear by uneven columns, dx", devices, n);
    }
    stage.team = NULL, stage.shards = stage.shard = 0;
}

/* The draws of a part are those of its elements in the whole: pieces of more and of fewer elements than are drawn at once. */
static void check_draws(int devices, long run)
{
    enum { SAMPLES = 2, PIECES = 3, MOST_RUN = 1100 };
    static real x[SAMPLES * PIECES * MOST_RUN * MOST_TEAM], want[SAMPLES * PIECES * MOST_RUN * MOST_TEAM];
    static real px[SAMPLES * PIECES * MOST_RUN], got[SAMPLES * PIECES * MOST_RUN];
    const Values vals = {.seed = 7, .step = 3, .batch = SAMPLES};
    long wide = run * devices, per = PIECES * run;
    for (long i = 0; i < SAMPLES * PIECES * wide; i++)
        put(x, i, (float)draw());
    dropout_forward(&stage, want, x, NULL, &vals, 1, SAMPLES, PIECES * wide, 0.4f, 99);
    stage.team = &team, stage.shards = devices;
    for (stage.shard = 0; stage.shard < devices; stage.shard++) {
        bool same = true;
        for (long i = 0; i < SAMPLES * per; i++)
            px[i] = x[i / run * wide + stage.shard * run + i % run];
        dropout_part_forward(&stage, got, px, NULL, &vals, 1, SAMPLES, per, PIECES, 0.4f, 99);
        for (long i = 0; i < SAMPLES * per; i++)
            same &= !memcmp(got + i, want + i / run * wide + stage.shard * run + i % run, sizeof *got);
        equal(same, "Dropout", devices, run);
    }
    stage.team = NULL, stage.shards = stage.shard = 0;
}

/* Rows of the devices: norms, of which each sums its own blocks, and Linear of which each keeps its rows.  The last parts may
 * be shorter, or empty: what stands behind them is not added, and zeros are put there. */
enum { ALL_ROWS = 32, MOST_ROOM = 2 * ALL_ROWS, WIDE = 48, NARROW = 24 };
static struct {
    long rows;
    real x[MOST_ROOM * WIDE], dy[MOST_ROOM * WIDE], w[NARROW * WIDE], y[ALL_ROWS * NARROW], dx[2][ALL_ROWS * WIDE];
    float mean[MOST_ROOM], rstd[MOST_ROOM], weight[WIDE], d[2][2][WIDE], tmp[ALL_ROWS * WIDE];
} of;

/* All rows; or those of a device, which are so many from r on. */
static void norm_back(int kind, bool part, long r, long rows)
{
    const real *dy = of.dy + r * WIDE, *x = of.x + r * WIDE;
    const float *w = of.weight, *mean = of.mean + r, *rstd = of.rstd + r;
    float *dw = of.d[part][0], *db = of.d[part][1];
    real *dx = of.dx[part];
    if (kind == 0 && part)
        layernorm_rows_backward(&stage, dx, dw, db, dy, x, w, mean, rstd, NULL, of.tmp, 1, rows, WIDE, of.rows);
    else if (kind == 0)
        layernorm_backward(&stage, dx, dw, db, dy, x, w, mean, rstd, NULL, 1, rows, WIDE);
    else if (kind == 1 && part)
        rmsnorm_rows_backward(&stage, dx, dw, dy, x, w, rstd, NULL, of.tmp, 1, rows, WIDE, of.rows);
    else if (kind == 1)
        rmsnorm_backward(&stage, dx, dw, dy, x, w, rstd, NULL, 1, rows, WIDE);
    else if (part)
        rmsnorm_offset_rows_backward(&stage, dx, dw, dy, x, w, rstd, NULL, of.tmp, 0, rows, WIDE, 1.0f, of.rows);
    else
        rmsnorm_offset_backward(&stage, dx, dw, dy, x, w, rstd, NULL, 0, rows, WIDE, 1.0f);
}

static long room_of(long rows, int devices, long blocks) { return (rows + blocks - 1) / blocks * (blocks / devices); }

static void check_norm_rows(int kind, int devices, long blocks)
{
    const long room = room_of(of.rows, devices, blocks);
    memset(of.d, 0x3f, sizeof of.d);
    stage.team = NULL, stage.shards = 0;
    norm_back(kind, false, 0, of.rows);
    stage.team = &team, stage.shards = devices;
    for (int turn = 0; turn < 2 * devices; turn++) {
        stage.shard = turn % devices, left.second = turn >= devices;
        memset(of.d[1], 0x3f, sizeof of.d[1]);
        norm_back(kind, true, stage.shard * room, room);
        const real *want = of.dx[0] + stage.shard * room * WIDE;
        bool same = !memcmp(of.dx[1], want, (size_t)(part_here(&stage, room, of.rows) * WIDE) * sizeof *want);
        if (left.second)
            equal(same && !memcmp(of.d[0], of.d[1], sizeof of.d[0]), "a norm's rows", devices, blocks);
    }
}

static bool same_rows(const real *got, const real *all, long room, long width)
{
    const long here = part_here(&stage, room, of.rows) * width;
    bool good = !here || !memcmp(got, all + stage.shard * room * width, (size_t)here * sizeof *got);
    for (long i = here; i < room * width; i++)
        good &= get(got, i) == 0;
    return good;
}

static void check_linear_rows(int devices, long blocks)
{
    const long each = WIDE / devices, part = NARROW / devices, mine = room_of(of.rows, devices, blocks);
    static real px[ALL_ROWS * WIDE], pw[NARROW * WIDE], py[ALL_ROWS * NARROW], got[MOST_ROOM * WIDE], all[ALL_ROWS * NARROW];
    for (int turn = 0; turn < 4 * devices; turn++) {        /* y, then dx: each device twice in a row of turns */
        bool back = turn >= 2 * devices;
        stage.shard = turn % devices, left.second = turn / devices % 2;
        for (long i = 0; i < ALL_ROWS * each; i++)
            px[i] = of.x[i / each * WIDE + stage.shard * each + i % each];
        memset(got, 0xff, sizeof got);
        memset(all, 0xff, sizeof all);
        for (long i = 0; i < NARROW * each; i++)
            pw[i] = of.w[i / each * WIDE + stage.shard * each + i % each];
        for (long i = 0; i < ALL_ROWS * part; i++)
            py[i] = of.y[i / part * NARROW + stage.shard * part + i % part];
        if (back)
            linear_columns_scatter_x(&stage, got, py, of.w + stage.shard * part * WIDE, of.tmp, 0, of.rows, WIDE, part, 1,
                                     NARROW, mine);
        else
            linear_rows_scatter_forward(&stage, got, px, pw, NULL, of.tmp, 0, of.rows, each, NARROW, mine);
        if (left.second)
            equal(back ? same_rows(got, of.dx[0], mine, WIDE) : same_rows(got, of.y, mine, NARROW),
                  back ? "rows of dx" : "rows of y", devices, blocks);
        part_forward(&stage, got, of.y, mine * NARROW, of.rows * NARROW);
        equal(same_rows(got, of.y, mine, NARROW), "a part", devices, blocks);
        gather_forward(&stage, all, got, mine * NARROW, of.rows * NARROW);
        if (left.second)
            equal(!memcmp(all, of.y, (size_t)(of.rows * NARROW) * sizeof *all), "parts gathered", devices, blocks);
    }
}

static void check_rows(int devices, long blocks, long rows)
{
    of.rows = rows;
    memset(&of.x, 0xff, sizeof of.x);
    memset(&of.dy, 0xff, sizeof of.dy);
    for (long i = 0; i < rows * WIDE; i++) {
        put(of.x, i, (float)draw());
        put(of.dy, i, (float)draw());
        put(of.w, i % (NARROW * WIDE), (float)draw());
        of.weight[i % WIDE] = (float)draw();
    }
    stage.blocks = (int)blocks, stage.shards = 0;
    layernorm_forward(&stage, of.dx[0], of.mean, of.rstd, of.x, of.weight, NULL, rows, WIDE, 1e-5f);
    for (int kind = 0; kind < 3; kind++)
        check_norm_rows(kind, devices, blocks);
    stage.team = NULL, stage.shards = stage.shard = 0;
    linear_forward(&stage, of.y, of.x, of.w, NULL, 0, rows, WIDE, NARROW);
    linear_backward_x(&stage, of.dx[0], of.y, of.w, 0, rows, WIDE, NARROW);
    stage.team = &team, stage.shards = devices;
    check_linear_rows(devices, blocks);
    stage.team = NULL, stage.shards = stage.shard = 0;
}

/* Rows of all samples in one piece, of which a device's begin within a sample. */
static void check_row_draws(int devices, long per, long n)
{
    enum { SAMPLES = 3, MOST_PER = 4400 };
    static real x[SAMPLES * MOST_PER + 32], want[SAMPLES * MOST_PER], got[SAMPLES * MOST_PER];
    const Values vals = {.seed = 7, .step = 3, .batch = SAMPLES};
    for (long i = 0; i < SAMPLES * per; i++)
        put(x, i, (float)draw());
    dropout_forward(&stage, want, x, x, &vals, 1, SAMPLES, per, 0.4f, 99);
    stage.team = &team, stage.shards = devices;
    for (stage.shard = 0; stage.shard < devices; stage.shard++) {
        const real *part = x + stage.shard * n;
        const long here = part_here(&stage, n, SAMPLES * per);
        dropout_rows_forward(&stage, got, part, part, &vals, 1, SAMPLES, per, n, 0.4f, 99);
        equal(!memcmp(got, want + stage.shard * n, (size_t)here * sizeof *got), "Dropout of rows", devices, per);
    }
    stage.team = NULL, stage.shards = stage.shard = 0;
}

/* ---- whole experts --------------------------------------------------------------------------------------------------- */

enum { TOKENS = 11, TOP = 2, EXPERTS = 8, ROWS = TOKENS * TOP, IN = 12, OUT = 10 };
static struct {
    real logits[TOKENS * EXPERTS], x[TOKENS * IN], dy[TOKENS * OUT], share[ROWS], w[EXPERTS * OUT * IN], b[EXPERTS * OUT];
    int32_t expert[ROWS], slot[ROWS], offset[EXPERTS + 1];
} token;
typedef struct {
    real rows[ROWS * IN], out[ROWS * OUT], y[TOKENS * OUT], dout[ROWS * OUT], dshare[ROWS], drows[ROWS * IN], dx[TOKENS * IN];
    float dw[EXPERTS * OUT * IN], db[EXPERTS * OUT];
} Made;

static void of_whole(Made *m)
{
    route_forward(&stage, token.share, token.expert, token.slot, token.offset, token.logits, NULL, TOKENS, EXPERTS, TOP, 1, 0,
                  1, 1, 1);
    dispatch_forward(&stage, m->rows, token.x, token.slot, TOKENS, TOP, IN);
    grouped_forward(&stage, m->out, m->rows, token.offset, token.w, token.b, ROWS, IN, OUT, EXPERTS);
    combine_forward(&stage, m->y, m->out, token.share, token.slot, TOKENS, TOP, OUT);
    combine_backward(&stage, m->dout, m->dshare, token.dy, m->out, token.share, token.slot, TOKENS, TOP, OUT);
    grouped_backward_x(&stage, m->drows, m->dout, token.offset, token.w, ROWS, IN, OUT, EXPERTS);
    grouped_backward_w(&stage, m->dw, m->db, m->dout, m->rows, token.offset, 0, ROWS, IN, OUT, EXPERTS);
    dispatch_backward(&stage, m->dx, m->drows, token.slot, TOKENS, TOP, IN);
}

/* One device, of which each call that sends comes second: another turn has what the others sent then. */
static void of_part(Made *m, long experts, int turn)
{
    static real tmp[ROWS * IN];
    const long room = TOKENS * (experts < TOP ? experts : TOP);
    const real *w = token.w + stage.shard * experts * OUT * IN, *b = token.b + stage.shard * experts * OUT;
    if (turn == 0) {
        dispatch_experts_forward(&stage, m->rows, token.x, token.slot, token.offset, TOKENS, TOP, IN, experts);
        grouped_experts_forward(&stage, m->out, m->rows, token.offset, w, b, room, ROWS, IN, OUT, experts);
        combine_experts_forward(&stage, m->y, m->out, token.share, token.slot, token.offset, tmp, TOKENS, TOP, OUT, experts);
        combine_experts_backward(&stage, m->dout, m->dshare, token.dy, m->out, token.share, token.slot, token.offset, TOKENS,
                                 TOP, OUT, experts);
        grouped_experts_backward_x(&stage, m->drows, m->dout, token.offset, w, room, ROWS, IN, OUT, experts);
        grouped_experts_backward_w(&stage, m->dw, m->db, m->dout, m->rows, token.offset, 0, room, ROWS, IN, OUT, experts);
    } else if (turn == 1) {
        combine_experts_forward(&stage, m->y, m->out, token.share, token.slot, token.offset, tmp, TOKENS, TOP, OUT, experts);
        combine_experts_backward(&stage, m->dout, m->dshare, token.dy, m->out, token.share, token.slot, token.offset, TOKENS,
                                 TOP, OUT, experts);
    } else {
        dispatch_experts_backward(&stage, m->dx, m->drows, token.slot, token.offset, tmp, TOKENS, TOP, IN, experts);
    }
}

/* Its rows in front, and zeros behind them. */
static bool rows_here(const real *got, const real *all, long experts, long width)
{
    const long first = token.offset[stage.shard * experts], n = token.offset[(stage.shard + 1) * experts] - first;
    bool good = !memcmp(got, all + first * width, (size_t)(n * width) * sizeof *got);
    for (long i = n * width; i < TOKENS * (experts < TOP ? experts : TOP) * width; i++)
        good &= get(got, i) == 0;
    return good;
}

/* most: tokens go to experts below it, so that some devices have all rows, or none. */
static void check_experts(int devices, long most)
{
    static Made whole, part[MOST_TEAM];
    const long experts = EXPERTS / devices;
    for (long i = 0; i < EXPERTS * OUT * IN; i++) {
        put(token.logits, i % (TOKENS * EXPERTS), (float)draw() - (i % EXPERTS < most ? 0 : 4));
        put(token.x, i % (TOKENS * IN), (float)draw());
        put(token.dy, i % (TOKENS * OUT), (float)draw());
        put(token.w, i, (float)draw());
        put(token.b, i % (EXPERTS * OUT), (float)draw());
    }
    stage.blocks = 8;
    of_whole(&whole);
    stage.team = &team, stage.shards = devices;
    memset(part, 0xff, sizeof part);
    for (int turn = 0; turn < 4; turn++)
        for (stage.shard = 0; stage.shard < devices; stage.shard++) {
            left.second = turn % 2;
            of_part(&part[stage.shard], experts, turn);
        }
    for (stage.shard = 0; stage.shard < devices; stage.shard++) {
        const Made *m = &part[stage.shard];
        const long n = experts * OUT, at = stage.shard * n;
        equal(rows_here(m->rows, whole.rows, experts, IN) && rows_here(m->out, whole.out, experts, OUT), "rows of experts",
              devices, most);
        equal(rows_here(m->dout, whole.dout, experts, OUT) && rows_here(m->drows, whole.drows, experts, IN), "their gradients",
              devices, most);
        equal(!memcmp(m->y, whole.y, sizeof m->y) && !memcmp(m->dx, whole.dx, sizeof m->dx), "tokens", devices, most);
        equal(!memcmp(m->dshare, whole.dshare, sizeof m->dshare), "shares", devices, most);
        equal(!memcmp(m->dw, whole.dw + at * IN, (size_t)(n * IN) * sizeof *m->dw) &&
              !memcmp(m->db, whole.db + at, (size_t)n * sizeof *m->db), "weights of experts", devices, most);
    }
    stage.team = NULL, stage.shards = stage.shard = 0;
}

/* Rows of its tokens alone, in messages of several rows, or of a part of one; all that was sent is wanted. */
static void check_exchange(int devices, long most, long width, long tokens)
{
    enum { ALL = 16, PAIRS = ALL * TOP, MOST_WIDTH = 9000 };
    static real logits[ALL * EXPERTS], share[PAIRS], rows[PAIRS * MOST_WIDTH], mine[PAIRS * MOST_WIDTH];
    static real tmp[PAIRS * MOST_WIDTH];
    static real want[2][ALL * MOST_WIDTH], got[ALL * MOST_WIDTH];
    int32_t expert[PAIRS], slot[PAIRS], offset[EXPERTS + 1];
    const long experts = EXPERTS / devices, room = room_of(tokens, devices, 8);
    for (long i = 0; i < ALL * EXPERTS; i++)
        put(logits, i, (float)draw() - (i % EXPERTS < most ? 0 : 4));
    for (long i = 0; i < PAIRS * width; i++)
        put(rows, i, (float)draw());
    of.rows = tokens;
    route_forward(&stage, share, expert, slot, offset, logits, NULL, tokens, EXPERTS, TOP, 1, 0, 1, 1, 1);
    dispatch_backward(&stage, want[0], rows, slot, tokens, TOP, width);
    combine_forward(&stage, want[1], rows, share, slot, tokens, TOP, width);
    stage.team = &pairs, stage.shards = devices;
    memset(mail, 0, sizeof mail);
    for (int turn = 0; turn < 2 * devices; turn++) {
        stage.shard = turn % devices, left.second = turn >= devices;
        const long first = offset[stage.shard * experts], n = offset[(stage.shard + 1) * experts] - first;
        memcpy(mine, rows + first * width, (size_t)(n * width) * sizeof *mine);
        dispatch_experts_scatter_backward(&stage, got, mine, slot, offset, tmp, tokens, TOP, width, experts, room);
        if (left.second)
            equal(same_rows(got, want[0], room, width), "gradients of tokens", devices, width);
        combine_experts_scatter_forward(&stage, got, mine, share, slot, offset, tmp, tokens, TOP, width, experts, room);
        if (left.second)
            equal(same_rows(got, want[1], room, width), "tokens of a device", devices, width);
    }
    for (int i = 0; i < MOST_TEAM * MOST_TEAM; i++)
        equal(mail[i / MOST_TEAM][i % MOST_TEAM].sent == mail[i / MOST_TEAM][i % MOST_TEAM].got, "messages", devices, width);
    stage.team = NULL, stage.shards = stage.shard = 0;
}

/* Words of a device, whose rows of the table are on all: 21 in blocks of 3. */
static void check_words(int devices, long words, long width)
{
    enum { TABLE = 21, MOST_WIDTH = 9000 };
    static real w[(TABLE + 24) * MOST_WIDTH], want[ALL_ROWS * MOST_WIDTH], got[MOST_ROOM * MOST_WIDTH];
    int32_t ids[ALL_ROWS];
    const long room = room_of(words, devices, 8), rows = room_of(TABLE, devices, 8);
    for (long i = 0; i < TABLE * width; i++)
        put(w, i, (float)draw());
    for (long i = 0; i < words; i++)
        ids[i] = (int32_t)((draw() + 1) / 2 * TABLE) % TABLE;
    of.rows = words;
    embedding_forward(&stage, want, ids, w, words, width, TABLE);
    stage.team = &pairs, stage.shards = devices;
    memset(mail, 0, sizeof mail);
    for (int turn = 0; turn < 2 * devices; turn++) {
        stage.shard = turn % devices, left.second = turn >= devices;
        memset(got, 0xff, sizeof got);
        embedding_rows_scatter_forward(&stage, got, ids, w + stage.shard * rows * width, words, width, rows, TABLE, room);
        if (left.second)
            equal(same_rows(got, want, room, width), "words", devices, width);
    }
    for (int i = 0; i < MOST_TEAM * MOST_TEAM; i++)
        equal(mail[i / MOST_TEAM][i % MOST_TEAM].sent == mail[i / MOST_TEAM][i % MOST_TEAM].got, "messages", devices, width);
    stage.team = NULL, stage.shards = stage.shard = 0;
}

/* Rows of all heads and all rows of some, there and back: stretches of more numbers than are sent at once, too. */
static void check_heads(int devices, long rows, long pieces, long part)
{
    enum { MOST = 1 << 18 };
    static real x[MOST], want[MOST], got[MOST];
    const long width = part * devices, mine = room_of(rows, devices, 8);
    for (long i = 0; i < rows * pieces * width; i++)
        put(x, i, (float)draw());
    of.rows = rows;
    stage.team = &pairs, stage.shards = devices;
    memset(mail, 0, sizeof mail);
    for (int turn = 0; turn < 4 * devices; turn++) {        /* to heads, then back: each device twice in a row of turns */
        const bool back = turn >= 2 * devices;
        stage.shard = turn % devices, left.second = turn / devices % 2;
        if (turn == 2 * devices)
            memset(mail, 0, sizeof mail);
        for (long i = 0; i < rows * pieces * part; i++)
            want[i] = x[i / part * width + stage.shard * part + i % part];
        memset(got, 0xff, sizeof got);
        const long first = stage.shard * mine < rows ? stage.shard * mine : rows;
        if (back)
            heads_to_rows(&stage, got, want, rows, mine, pieces, width);
        else
            rows_to_heads(&stage, got, x + first * pieces * width, rows, mine, pieces, width);
        if (left.second)
            equal(back ? same_rows(got, x, mine, pieces * width)
                  : !memcmp(got, want, (size_t)(rows * pieces * part) * sizeof *got), "rows and heads", devices, rows);
        for (int i = 0; i < MOST_TEAM * MOST_TEAM && turn % (2 * devices) == 2 * devices - 1; i++)
            equal(mail[i / MOST_TEAM][i % MOST_TEAM].sent == mail[i / MOST_TEAM][i % MOST_TEAM].got, "messages", devices, rows);
    }
    stage.team = NULL, stage.shards = stage.shard = 0;
}

/* A weight that all devices have, and the rows of each: onto an earlier micro-batch; frozen, or without a bias. */
static void check_weight(int devices, long blocks, long rows, bool weight, bool bias)
{
    static float dw[2][NARROW * WIDE], db[2][NARROW];
    const long room = room_of(rows, devices, blocks);
    memset(of.x, 0xff, sizeof of.x);
    memset(of.dy, 0xff, sizeof of.dy);
    for (long i = 0; i < rows * WIDE; i++) {
        put(of.x, i, i % WIDE ? (float)draw() : 0x1p-80f);
        put(of.dy, i % (rows * NARROW), i % NARROW ? (float)draw() : -0x1p-80f);
    }
    stage.blocks = (int)blocks, stage.shards = 0;
    for (int acc = 0; acc < 2; acc++) {
        stage.team = NULL, stage.shards = 0;
        linear_backward_w(&stage, weight ? dw[0] : NULL, bias ? db[0] : NULL, of.dy, of.x, 0, acc, rows, WIDE, NARROW);
        stage.team = &team, stage.shards = devices;
        for (int turn = 0; turn < 2 * devices; turn++) {
            stage.shard = turn % devices, left.second = turn >= devices;
            const long first = stage.shard * room < rows ? stage.shard * room : rows;
            memset(dw[1], 0x3f, sizeof dw[1]), memset(db[1], 0x3f, sizeof db[1]);
            for (long i = 0; i < NARROW * WIDE && acc; i++)
                dw[1][i] = left.whole[i], db[1][i % NARROW] = left.whole[NARROW * WIDE + i % NARROW];
            linear_positions_backward_w(&stage, weight ? dw[1] : NULL, bias ? db[1] : NULL, of.dy + first * NARROW,
                                        of.x + first * WIDE, of.tmp, 0, acc, room, WIDE, NARROW, rows);
            if (left.second)
                equal((!weight || !memcmp(dw[0], dw[1], sizeof dw[0])) && (!bias || !memcmp(db[0], db[1], sizeof db[0])),
                      "a weight of all rows", devices, blocks);
        }
        static float before[NARROW * WIDE + NARROW];
        memcpy(before, dw[0], sizeof dw[0]), memcpy(before + NARROW * WIDE, db[0], sizeof db[0]);
        left.whole = before;
    }
    equal(!weight || signbit(dw[0][0]), "no -0", devices, blocks);
    stage.team = NULL, stage.shards = stage.shard = 0;
}

int main(void)
{
    stage.threads = 1;
    for (long blocks = 4; blocks <= 8; blocks *= 2)
        for (int devices = 2; devices <= MOST_TEAM; devices *= 2)
            for (int biased = 0; biased < 2; biased++)
                check_team(devices, blocks, biased), check_conv(devices, blocks, biased);
    for (int devices = 2; devices <= MOST_TEAM; devices *= 2) {
        for (long n = 1; n < 24; n++)
            check_uneven(devices, 8, n);
        for (long blocks = 4; blocks <= 8; blocks *= 2)
            for (long rows = 1; rows <= ALL_ROWS; rows += rows < 18 ? 1 : 7)
                check_rows(devices, blocks, rows);
        for (long most = TOP; most <= EXPERTS; most += 2)
            check_experts(devices, most), check_exchange(devices, most, 12, 16), check_exchange(devices, most, 700, 16);
        check_exchange(devices, EXPERTS, 9000, 16);
        for (long rows = 1; rows <= ALL_ROWS; rows += rows < 18 ? 1 : 7) {
            check_heads(devices, rows, 1, 5), check_heads(devices, rows, 3, 8);
            for (int kind = 1; kind < 4; kind++)
                check_weight(devices, 8, rows, kind & 1, kind & 2);
        }
        check_heads(devices, 5, 2, 9000 / devices), check_heads(devices, 3, 1, 20000 / devices);
        for (long words = 1; words <= ALL_ROWS; words++)
            check_words(devices, words, 12);
        check_words(devices, 31, 9000);
        for (long tokens = 9; tokens < 16; tokens++)
            check_exchange(devices, EXPERTS, 12, tokens);
        for (long more = 0; more < 8; more += 7) {
            check_row_draws(devices, 20, 60 / devices + more);
            check_row_draws(devices, 4400, 13200 / devices + more);
        }
        check_draws(devices, 5);
        check_draws(devices, 1100);
    }
    printf("unit_rt_team: %d passed, %d failed\n", passed, failed);
    return failed != 0;
}
