/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks of the actions that compute: on the CPU they are loops in rt/action.c, on the GPU kernels.  Only checked there.
 * See opcheck.h.
 */
#include <string.h>
#include "../opcheck.h"

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

const Check fold_checks[] = {
    {" group_fold norm_gather ", fold},
    {" version_copy fill_zero ", bytes},
    {0, 0},
};
