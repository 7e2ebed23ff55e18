/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks of what only GPUs have as kernels: the actions that compute, loops of rt/action.c on the CPU, and what stands around
 * calls of libraries.  See opcheck.h.
 */
#include <string.h>
#include "../opcheck.h"
#include "../../rt/op/cuda/attention_own.h"
#include "../../rt/op/cuda/bias.h"
#include "../../rt/op/cuda/conv_own.h"
#include "../../rt/op/cuda/xent.h"

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

const Check fold_checks[] = {
    {" conv_own_bias conv_own_take scores_narrow ", around},
    {" attention_own_group ", shared},
    {" group_fold norm_gather ", fold},
    {" version_copy fill_zero ", bytes},
    {0, 0},
};
