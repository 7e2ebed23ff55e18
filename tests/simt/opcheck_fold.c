/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks of what only GPUs have as kernels: the actions that compute, loops of rt/action.c on the CPU, and what stands around
 * calls of libraries.  See opcheck.h.
 */
#include <math.h>
#include <string.h>
#include "../opcheck.h"
#include "../../rt/cuda/pictures.h"
#include "../../rt/op/cuda/attention_own.h"
#include "../../rt/op/cuda/bias.h"
#include "../../rt/op/cuda/conv_own.h"
#include "../../rt/op/cuda/sums.h"
#include "../../rt/op/cuda/xent.h"
#include "../../rt/team.h"

static const long sizes[] = {1, 3, 64, 1027, 70001};
enum { SIZES = sizeof sizes / sizeof *sizes };

static void fold(void)
{
    for (int s = 0; s < SIZES; s++) {
        long n = sizes[s];
        Tensor *a = operand(FLOAT, n, -1, 1), *b = operand(FLOAT, n, -1, 1);
        double *want = numbers(n), *into = numbers(n), *from = numbers(n);
        for (long i = 0; i < n; i++) {
            want[i] = a->v[i] + b->v[i];
            into[i] = a->v[i], from[i] = b->v[i];
        }
        group_fold(stage, a->k, b->k, n);
        check_values("group_fold", a, want);
        norm_gather(stage, into, from, n);
        expect(!memcmp(into, want, (size_t)n * sizeof *want), "norm_gather of %ld: not the sums", n);
        case_end();
    }
}

static void bytes(void)
{
    for (int s = 0; s < SIZES; s++) {
        long n = sizes[s];
        unsigned char *from = (unsigned char *)ids(n / 4 + 2, 0, 1 << 30), *to = (unsigned char *)ids(n / 4 + 2, 1, 2);
        unsigned char after = to[n];
        int wrong = 0;
        version_copy(stage, to, from, n);
        expect(!memcmp(to, from, (size_t)n) && to[n] == after, "version_copy of %ld bytes: not the same", n);
        fill_zero(stage, to, n);
        for (long i = 0; i < n; i++)
            wrong += to[i] != 0;
        expect(!wrong && to[n] == after, "fill_zero of %ld bytes: %d are not", n, wrong);
        case_end();
    }
}

/* Numbers of bytes of pictures: the bits of the formula, and nothing behind them. */
static void pictures(void)
{
    static const int channels[] = {1, 3, 64};
    float mean[64], deviation[64];
    for (int c = 0; c < 64; c++)
        mean[c] = 0.485f - (float)c / 150, deviation[c] = 0.229f + (float)c / 7;
    for (int s = 0; s < SIZES * 3; s++) {
        long n = sizes[s % SIZES], wrong = 0;
        int all = channels[s / SIZES];
        unsigned char *from = (unsigned char *)ids(n / 4 + 2, 0, 1 << 30);
        float *to = (float *)ids(n + 1, 7, 8);
        for (long i = 0; i < n; i++)
            from[i] = (unsigned char)(i * 77 / 3);
        picture_numbers(stage, to, from, mean, deviation, all, n);
        for (long i = 0; i < n; i++) {
            float want = ((float)from[i] / 255.0f - mean[i % all]) / deviation[i % all];
            wrong += memcmp(&to[i], &want, 4) != 0;
        }
        expect(wrong == 0, "%ld of %ld bytes in %d channels are other numbers", wrong, n, all);
        expect(((int32_t *)to)[n] == 7, "picture_numbers of %ld bytes: more is written", n);
        case_end();
    }
}

/* Behind a convolution of cuDNN: y += bias, the f32 gradient = or += one of the job's type.  Behind a product: f32 += f32, or
 * f32 as the job's type. */
static void around(void)
{
    static const long shapes[][2] = {{1, 1}, {5, 3}, {33, 24}, {700, 257}};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        long rows = shapes[s][0], out = shapes[s][1], n = rows * out;
        Conv v = {.batch = 1, .yheight = rows, .ywidth = 1, .out = out, .in = rows, .groups = 1, .kheight = 1, .kwidth = 1};
        Tensor *y = operand(REAL, n, -1, 1), *bias = operand(REAL, out, -1, 1), *part = operand(REAL, n, -1, 1);
        Tensor *to = result(FLOAT, n);
        double *want = numbers(n);
        for (long i = 0; i < n; i++)
            want[i] = y->v[i] + bias->v[i % out];
        conv_own_bias(stage, y->k, bias->k, &v);
        check_values("conv_own_bias", y, want);
        for (int acc = 0; acc < 2; acc++) {
            conv_own_take(stage, to->k, part->k, acc, &v);
            for (long i = 0; i < n; i++)
                want[i] = part->v[i] * (1 + acc);
            check_values("conv_own_take", to, want);
        }
        scores_narrow(stage, y->k, to->k, n);
        check_values("scores_narrow", y, to->v);
        case_end();
    }
}

/* Gradients of keys that query heads share, behind cuDNN's of each head. */
static void shared(void)
{
    static const long shapes[][3] = {{1, 1, 1}, {5, 3, 7}, {66, 4, 64}};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        long rows = shapes[s][0], share = shapes[s][1], width = shapes[s][2], n = rows * width;
        Tensor *from[2], *to[2];
        for (int k = 0; k < 2; k++)
            from[k] = operand(REAL, n * share, -1, 1), to[k] = result(REAL, n);
        attention_own_group(stage, to[0]->k, to[1]->k, from[0]->k, from[1]->k, rows, share, width);
        for (int k = 0; k < 2; k++) {
            double *want = numbers(n);
            for (long i = 0; i < n; i++) {
                want[i] = 0;
                for (long h = 0; h < share; h++)
                    want[i] += from[k]->v[(i / width * share + h) * width + i % width];
            }
            check_values("attention_own_group", to[k], want);
        }
        case_end();
    }
}

static float tree(const float *const *of, int parts, long i)
{
    float v[16];
    for (int p = 0; p < parts; p++)
        v[p] = of[p][i];
    for (int wide = 1; wide < parts; wide *= 2)
        for (int p = 0; p < parts; p += 2 * wide)
            v[p] += v[p + wide];
    return v[0];
}

/* To the bit: every other order than that of the tree is another sum.  Some begin at no multiple of 16 bytes. */
static void trees(const Tensor *x, const Tensor *other)
{
    for (int parts = 2; parts <= 16; parts *= 2) {
        const long from = parts % 3 % 2 && x->n > 1, n = x->n - from;
        const float *all[16];
        Tensor *to = result(FLOAT, x->n);
        int wrong = 0;
        for (int p = 0; p < parts; p++)
            all[p] = (const float *)(p % 3 ? x->k : other->k) + from;
        sums_tree(stage, (float *)to->k + from, all, parts, n);
        for (long i = 0; i < n; i++)
            wrong += tree(all, parts, i) != ((const float *)to->k)[from + i];
        expect(!wrong, "sums_tree of %d times %ld: %d are not the sums of the tree", parts, x->n, wrong);
    }
}

/* Between the messages of a stage of several devices. */
static void sums(void)
{
    for (int s = 0; s < SIZES; s++) {
        long n = sizes[s];
        Tensor *x = operand(FLOAT, n, -1, 1), *other = operand(FLOAT, n, -1, 1);
        double *want = numbers(n);
        for (long i = 0; i < n; i++)
            want[i] = x->v[i] + other->v[i];
        trees(x, other);
        sums_add(stage, x->k, other->k, n);
        check_values("sums_add", x, want);
        sums_add(stage, (float *)x->k + 1, (float *)other->k + 1, n - 1);   /* from another place than a multiple of 16 bytes */
        for (long i = 1; i < n; i++)
            want[i] += other->v[i];
        check_values("sums_add", x, want);
        unsigned char *a = (unsigned char *)ids(n / 4 + 2, 0, 1 << 30), *b = (unsigned char *)ids(n / 4 + 2, 1, 1 << 30);
        int wrong = 0;
        for (long i = 0; i < n; i++)
            a[i] = i % 3 ? 0 : a[i], b[i] = i % 3 ? b[i] : 0;
        unsigned char after = a[n], first = a[0], *was = (unsigned char *)ids(n / 4 + 2, 0, 1);
        memcpy(was, a, (size_t)n);
        sums_join(stage, a, b, n);
        for (long i = 0; i < n; i++)
            wrong += a[i] != (i % 3 ? b[i] : was[i]);
        expect(!wrong && a[0] == first && a[n] == after, "sums_join of %ld bytes: %d are not those of either", n, wrong);
        case_end();
    }
    for (int biased = 0; biased < 2; biased++) {
        enum { ROWS = 37, OUT = 29 };
        Tensor *sum = operand(FLOAT, ROWS * OUT, -1, 1), *bias = operand(REAL, OUT, -1, 1), *y = result(REAL, ROWS * OUT);
        double *want = numbers(ROWS * OUT);
        for (long i = 0; i < ROWS * OUT; i++)
            want[i] = sum->v[i] + (biased ? bias->v[i % OUT] : 0);
        sums_put(stage, y->k, sum->k, biased ? bias->k : 0, ROWS, OUT);
        check_values("sums_put", y, want);
        case_end();
    }
}

/* ---- train.blocks: whole rows, and those of each device ------------------------------------------------------------------ */

enum { FOUR = 4 };
static float *given;            /* what a device gives to the sum */
static void give(Stage *st, float *x, long n)
{
    (void)st;
    memcpy(given, x, (size_t)n * sizeof *x);
}

/* Device d of four, which has `each` of the rows, the last ones fewer or none: what it gives is the gradient of its rows. */
static void norm_of_device(int d, Tensor *const *of, const float *want, long rows, long width, long each)
{
    const Team team = {.sum = give};
    const long first = d * each < rows ? d * each : rows, n = rows - first < each ? rows - first : each;
    Tensor *x = filled(REAL, each * width, 0), *dy = filled(REAL, each * width, 0), *mean = filled(FLOAT, each, 0);
    Tensor *rstd = filled(FLOAT, each, 0), *dx = result(REAL, each * width), *dw = result(FLOAT, width);
    Tensor *db = result(FLOAT, width), *tmp = result(FLOAT, 2 * width);
    memcpy(x->k, (real *)of[0]->k + first * width, (size_t)(n * width) * sizeof(real));
    memcpy(dy->k, (real *)of[1]->k + first * width, (size_t)(n * width) * sizeof(real));
    memcpy(mean->k, (float *)of[3]->k + first, (size_t)n * sizeof(float));
    memcpy(rstd->k, (float *)of[4]->k + first, (size_t)n * sizeof(float));
    given = (float *)numbers(width);
    stage->team = &team, stage->shard = d, stage->shards = FOUR;
    layernorm_rows_backward(stage, dx->k, dw->k, db->k, dy->k, x->k, of[2]->k, mean->k, rstd->k, 0, tmp->k, 0, each, width,
                            rows);
    stage->team = NULL, stage->shard = 0, stage->shards = 0;
    int wrong = memcmp(given, want, (size_t)(2 * width) * sizeof *want) != 0;
    wrong += memcmp(dx->k, (real *)of[5]->k + first * width, (size_t)(n * width) * sizeof(real)) != 0;
    for (long i = n * width; i < each * width; i++)
        wrong += get(dx->k, i) != 0;
    expect(!wrong, "layernorm_rows_backward of device %d, rows %ld, width %ld: not the gradient of its rows", d, rows, width);
}

/* The gradient of all rows in four blocks is the tree over those of the blocks, one by one; of none it is -0. */
static void norm_blocks_alike(long rows, long width)
{
    const long each = (rows + FOUR - 1) / FOUR;
    Tensor *x = operand(REAL, rows * width, -1, 1), *dy = operand(REAL, rows * width, -1, 1), *w = operand(FLOAT, width, -1, 1);
    Tensor *mean = result(FLOAT, rows), *rstd = result(FLOAT, rows), *y = result(REAL, rows * width), *part[FOUR];
    Tensor *dx[2] = {result(REAL, rows * width), result(REAL, rows * width)}, *got = operand(FLOAT, 2 * width, -1, 1);
    float *dw = got->k;
    const float *all[FOUR];
    int wrong = 0;
    layernorm_forward(stage, y->k, mean->k, rstd->k, x->k, w->k, w->k, rows, width, 1e-5f);
    layernorm_backward(stage, dx[0]->k, 0, 0, dy->k, x->k, w->k, mean->k, rstd->k, 0, 0, rows, width);
    for (int b = 0; b < FOUR; b++) {
        const long first = b * each < rows ? b * each : rows, n = rows - first < each ? rows - first : each;
        part[b] = filled(FLOAT, 2 * width, -0.0);
        all[b] = part[b]->k;
        if (n)
            layernorm_backward(stage, 0, part[b]->k, (float *)part[b]->k + width, (real *)dy->k + first * width,
                               (real *)x->k + first * width, w->k, (float *)mean->k + first, (float *)rstd->k + first, 0, 0, n,
                               width);
        norm_of_device(b, (Tensor *const[]){x, dy, w, mean, rstd, dx[0]}, part[b]->k, rows, width, each);
    }
    stage->blocks = FOUR;
    layernorm_backward(stage, dx[1]->k, dw, dw + width, dy->k, x->k, w->k, mean->k, rstd->k, 0, 1, rows, width);
    stage->blocks = 0;
    for (long i = 0; i < 2 * width; i++)
        wrong += dw[i] != (float)got->v[i] + tree(all, FOUR, i);
    expect(!wrong, "layernorm_backward in blocks, rows %ld, width %ld: %d are not the tree of them", rows, width, wrong);
    alike("layernorm_backward in blocks", dx[1], dx[0]);
    case_end();
}

/* A product of experts in blocks of its inner index is the tree of products of the blocks, rounded once. */
static void expert_blocks(void)
{
    enum { ROWS = 70, IN = 29, OUT = 33, EXPERTS = 2, EACH = (IN + FOUR - 1) / FOUR };
    const int32_t offset[EXPERTS + 1] = {0, 40, ROWS};
    Tensor *x = operand(REAL, ROWS * IN, -1, 1), *w = operand(REAL, EXPERTS * OUT * IN, -1, 1), *y = result(REAL, ROWS * OUT);
    Tensor *want = result(REAL, ROWS * OUT);
    const float *all[FOUR];
    for (int b = 0; b < FOUR; b++) {
        const long n = IN - b * EACH < EACH ? IN - b * EACH : EACH;
        Tensor *part_x = result(REAL, ROWS * n), *part_w = result(REAL, EXPERTS * OUT * n), *sum = result(FLOAT, ROWS * OUT);
        for (long i = 0; i < ROWS * n; i++)
            put(part_x->k, i, get(x->k, i / n * IN + b * EACH + i % n));
        for (long i = 0; i < EXPERTS * OUT * n; i++)
            put(part_w->k, i, get(w->k, i / n * IN + b * EACH + i % n));
        grouped_rows_forward(stage, want->k, part_x->k, offset, part_w->k, 0, sum->k, ROWS, n, OUT, EXPERTS);
        all[b] = sum->k;
    }
    for (long i = 0; i < ROWS * OUT; i++)
        put(want->k, i, tree(all, FOUR, i));
    stage->blocks = FOUR;
    grouped_forward(stage, y->k, x->k, offset, w->k, 0, ROWS, IN, OUT, EXPERTS);
    stage->blocks = 0;
    alike("grouped_forward in blocks", y, want);
    case_end();
}

static void in_blocks(void)
{
    static const long shapes[][2] = {{10, 70}, {3, 64}, {17, 1100}, {700, 40}};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        norm_blocks_alike(shapes[s][0], shapes[s][1]);
    expert_blocks();
}

/* What the other device tells: its rows of three numbers. */
static const float *told;
static void tell(Stage *st, int with, const void *mine, long out, void *theirs, long in)
{
    (void)with, (void)mine, (void)out;
    version_copy(st, theirs, told, in);
}

/* Two devices: e^largest times the sum is that of both; a part without scores adds nothing. */
static void pairs(void)
{
    enum { ROWS = 9000, FIRST = 1 << 13 };      /* more than go at once */
    const Team two = {.swap = tell};
    for (int shard = 0; shard < 2; shard++) {
        Tensor *most = operand(FLOAT, ROWS, -4, 4), *sum = operand(FLOAT, ROWS, 1, 9), *hit = operand(FLOAT, ROWS, -1, 1);
        Tensor *other = operand(FLOAT, 3 * ROWS, 1, 4);
        double *top = numbers(ROWS), *all = numbers(ROWS), *aim = numbers(ROWS);
        for (long r = 0; r < ROWS; r++) {
            float *o = (float *)other->k + 3 * r;
            double less = r % 5 ? 0 : 1;
            if (r % 5 == 0)
                o[0] = -INFINITY, o[1] = 0;
            top[r] = r % 5 && o[0] > most->v[r] ? o[0] : most->v[r];
            all[r] = sum->v[r] * exp(most->v[r] - top[r]) + (less > 0 ? 0 : o[1] * exp(o[0] - top[r]));
            o[2] = r % 2 ? 0 : o[2];
            ((float *)hit->k)[r] = r % 2 ? (float)hit->v[r] : 0;
            aim[r] = r % 2 ? hit->v[r] : o[2];
        }
        told = (const float *)other->k;
        stage->team = &two, stage->shards = 2, stage->shard = shard;
        scores_team(stage, most->k, sum->k, hit->k, FIRST);
        told += 3 * FIRST;
        scores_team(stage, (float *)most->k + FIRST, (float *)sum->k + FIRST, (float *)hit->k + FIRST, ROWS - FIRST);
        stage->team = 0, stage->shards = 0, stage->shard = 0;
        check_values("scores_team, the largest", most, top);
        check_values("scores_team, the sum", sum, all);
        check_values("scores_team, the target's", hit, aim);
        case_end();
    }
}

const Check fold_checks[] = {
    {" sums_add sums_tree sums_join sums_put ", sums},
    {" sums_none layernorm_backward layernorm_rows_backward grouped_forward grouped_rows_forward ", in_blocks},
    {" scores_team ", pairs},
    {" conv_own_bias conv_own_take scores_narrow ", around},
    {" attention_own_group ", shared},
    {" group_fold norm_gather ", fold},
    {" version_copy fill_zero ", bytes},
    {" picture_numbers ", pictures},
    {0, 0},
};
