/* SPDX-License-Identifier: Apache-2.0
 *
 * passes.c: how far from the bandwidth of memory are our own kernels?  The large passes of a step of GPT-2 124M, 32 samples of
 * 1024 tokens, over random numbers: microseconds, and TB/s of what each has to read and write; medians of 10, by turns.  A
 * copy of 8192 x 8192 in bf16 is the ceiling: product.c.  Attention by our own kernels, bounded by arithmetic, stands beside,
 * for a look at cuDNN's in the job.  Its gradient by cuDNN is made in parts of fewer samples, too, whose dS the cache may hold.
 * With -DON_GPU, as tests/gpu builds it.
 */
#ifndef ON_GPU
#define ON_GPU
#endif
#include "tests/gpu/shared.h"
#include "rt/op/cuda/attention_own.h"
#include "rt/op/cuda/bias.h"

enum { TIMES = 10, WARM = 3, WIDTH = 768, HEADS = 12, SOME = 1 << 20 };
#ifndef ROWS
#define ROWS 32768
#endif
#define SEQUENCE (ROWS < 1024 ? ROWS : 1024)
#ifndef SCORES
#define SCORES 50304
#endif

static real *x, *y, *dy, *dx, *scores, *slopes;
static float *a, *b, *c, *d;
static int32_t *targets;
static Values *values;
static cudaEvent_t from, until;

static void *room(size_t n)
{
    void *at;
    settled(cudaMalloc(&at, n));
    settled(cudaMemset(at, 0, n));
    return at;
}

/* bf16 in (-2, 2): a block of them again and again. */
static real *numbers(size_t n)
{
    static uint16_t some[SOME];
    uint32_t s = 1;
    real *to = room(n * sizeof(real));
    for (int i = 0; i < SOME; i++) {
        s = s * 1664525u + 1013904223u;
        some[i] = (uint16_t)((s >> 16 & 0x807f) | 0x3f00 | (s >> 8 & 0x80));
    }
    for (size_t i = 0; i < n * sizeof(real); i += sizeof some) {
        size_t left = n * sizeof(real) - i;
        settled(cudaMemcpyAsync((char *)to + i, some, left < sizeof some ? left : sizeof some, cudaMemcpyHostToDevice,
                                device.compute));
    }
    settle();
    return to;
}

static int by_size(const void *p, const void *q)
{
    return (*(const float *)p > *(const float *)q) - (*(const float *)p < *(const float *)q);
}

static void bias(long width) { bias_gradient(st, a, dy, 0, ROWS, width); }
static void loss(long width)
{
    xent_both(st, a, b, slopes, c, scores, targets, values, ROWS, width, -1, 0);
}
static void norm(long width) { add_layernorm_forward(st, dx, y, a, b, x, dy, c, d, ROWS, width, 1e-5f); }
static void attend(long width)
{
    attention_own_forward(st, y, a, x, x + width, x + 2 * width, 3 * width, 3 * width, NULL, NULL, values, 0, ROWS / SEQUENCE,
                          HEADS, HEADS, SEQUENCE, SEQUENCE, width / HEADS, 1, 0.125f, 0, 0);
}
static void attend_back(long width)
{
    attention_own_backward(st, dx, dx + width, dx + 2 * width, NULL, dy, y, x, x + width, x + 2 * width, 3 * width,
                           3 * width, NULL, NULL, a, b, values, 0, ROWS / SEQUENCE, HEADS, HEADS, SEQUENCE, SEQUENCE,
                           width / HEADS, 1, 0.125f, 0, 0);
}
/* Handle n is for n samples. */
static void attend_parts(long parts)
{
    long samples = ROWS / SEQUENCE / parts, rows = samples * SEQUENCE;
    for (long i = 0; i < parts; i++)
        attention_packed_backward(st, dx + i * rows * 3 * WIDTH, NULL, dy + i * rows * WIDTH, y + i * rows * WIDTH,
                                  x + i * rows * 3 * WIDTH, NULL, NULL, a + i * rows * HEADS, slopes, values, 0, (int)samples,
                                  samples, HEADS, SEQUENCE, WIDTH / HEADS, 1, 0.125f, 0, 0);
}
static void norm_back(long width) { layernorm_backward(st, dx, c, d, dy, x, c, a, b, y, 0, ROWS, width); }

/* The call, and how often it reads or writes ROWS x width; 0: as one of so many parts, with the sums of exponentials that own
 * attention has just made. */
#define PARTED "gradient of attention by cuDNN, parts:"
static const struct { const char *what; void (*run)(long); long width; int times; } list[] = {
    { "gradient of a bias", bias, WIDTH, 1 }, { "gradient of a bias", bias, 3 * WIDTH, 1 },
    { "gradient of a bias", bias, 4 * WIDTH, 1 }, { "cross entropy, both ways", loss, SCORES, 2 },
    { "sum and norm", norm, WIDTH, 4 }, { "gradient of a norm, added", norm_back, WIDTH, 4 },
    { "own attention", attend, WIDTH, 4 }, { "gradient of own attention", attend_back, WIDTH, 8 },
    { PARTED, attend_parts, 1, 0 }, { PARTED, attend_parts, 2, 0 }, { PARTED, attend_parts, 4, 0 },
    { PARTED, attend_parts, 8, 0 }, { PARTED, attend_parts, 16, 0 },
};
enum { CALLS = sizeof list / sizeof *list };

int main(void)
{
    static float ms[CALLS][TIMES];
    const Values all = { .valid[0] = ROWS };
    shared(1);                                  /* the GPU, and a stream */
    device.workspace_bytes = 32 << 20;
    device.workspace = room(device.workspace_bytes);
    size_t n = (size_t)ROWS * 4 * WIDTH;
    x = numbers(n), y = numbers(n), dy = numbers(n), dx = numbers(n);
    scores = numbers((size_t)ROWS * SCORES), slopes = room((size_t)ROWS * SCORES * sizeof(real));
    a = room(n), b = room(n), c = room(n), d = room(n);
    targets = room(ROWS * sizeof *targets), values = room(sizeof *values);
    settled(cudaMemcpyAsync(values, &all, sizeof all, cudaMemcpyHostToDevice, device.compute));
    settle();
    settled(cudaEventCreateWithFlags(&from, 0));
    settled(cudaEventCreateWithFlags(&until, 0));
    int calls = CALLS;
    while (list[calls - 1].times == 0 && list[calls - 1].width > ROWS / SEQUENCE)
        calls--;
    for (int i = 0; i < calls; i++)
        if (list[i].times == 0)
            open_attention_packed_backward(st, (int)(ROWS / SEQUENCE / list[i].width), ROWS / SEQUENCE / list[i].width, HEADS,
                                           SEQUENCE, WIDTH / HEADS, 1);
    for (int t = -WARM; t < TIMES; t++)
        for (int i = 0; i < calls; i++) {
            settled(cudaEventRecord(from, device.compute));
            list[i].run(list[i].width);
            settled(cudaEventRecord(until, device.compute));
            settled(cudaEventSynchronize(until));
            settled(cudaEventElapsedTime(&ms[i][t < 0 ? 0 : t], from, until));
        }
    for (int i = 0; i < calls; i++) {
        qsort(ms[i], TIMES, sizeof **ms, by_size);
        double bytes = (double)ROWS * (double)list[i].width * list[i].times * sizeof(real), us = 1e3 * (double)ms[i][TIMES / 2];
        if (list[i].times)
            printf("%s, %d x %ld: %.1f us, %.2f TB/s\n", list[i].what, (int)ROWS, list[i].width, us, bytes / us / 1e6);
        else
            printf("%s %ld: %.1f us\n", list[i].what, list[i].width, us);
    }
    settle();
    return 0;
}
