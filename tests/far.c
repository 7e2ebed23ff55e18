/* SPDX-License-Identifier: Apache-2.0
 *
 * far.c: a table of more than 2^31 numbers: rows far behind that, read and added to by the kernels of ids.  Its pages are those
 * that are touched.  Status 77: this machine has not so many addresses.
 */
#include "rt.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { N = 4 };
static const long rows = 262144, width = 8960;

static float *table(void)
{
    void *at = mmap(NULL, (size_t)(rows * width) * sizeof(float), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        exit(77);
    return at;
}

int main(void)
{
    static const int32_t ids[N] = {262143, 239674, 239675, 1};
    static Stage st;
    float *weight = table(), *gradient = table(), *y = malloc((size_t)(N * width) * sizeof *y);
    long wrong = 0;
    for (long i = 0; i < N * width; i++)
        weight[ids[i / width] * width + i % width] = (float)i;
    embedding_forward(&st, y, ids, weight, N, width, rows);
    for (long i = 0; i < N * width; i++)
        wrong += y[i] != (float)i;
    embedding_backward(&st, gradient, y, ids, 1, N, width, rows);
    for (long i = 0; i < N * width; i++)
        wrong += gradient[ids[i / width] * width + i % width] != (float)i;
    printf("%ld numbers are wrong\n", wrong);
    return wrong != 0;
}
