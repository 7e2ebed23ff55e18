/* What the benchmarks of dpgen profile, for processors and for GPUs, share: operands and what is said. */
#ifndef BENCH_SHARED_H
#define BENCH_SHARED_H
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "bench.h"
#include "parts.h"
#include "real.h"

/* parts of the runtime that a benchmark has: none */
const DataFormat *const job_formats[] = {0};
const Answers *const job_answers[] = {0};
const Parts job_parts = {0};

typedef struct { double median, quartiles; } Time;      /* ns */

static uint32_t draw(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

static void fill_values(Values *v)
{
    memset(v, 0, sizeof *v);
    v->seed = 1;
    for (int i = 0; i < 6; i++)
        v->valid[i] = 1 << 20;
    v->bias1 = v->bias2 = 1;
    v->micro = 1;
    v->batch = (int32_t)batch;
}

/* What part f of the arena holds, to memory of the host. */
static void fill_part(void *to, const Fill *f)
{
    uint32_t state = 2463534242u;
    if (f->kind == FILL_VALUES)
        fill_values(to);
    for (size_t i = 0; f->kind == FILL_IDS && i < f->bytes / 4; i++)
        ((int32_t *)to)[i] = (int32_t)(f->lo + (long)(draw(&state) % (uint32_t)(f->hi - f->lo)));
    for (size_t i = 0; f->kind == FILL_EVEN && i < f->bytes / 4; i++)
        ((int32_t *)to)[i] = (int32_t)((long)i < f->lo ? (long)i * f->hi / f->lo : f->hi);
    for (size_t i = 0; f->kind == FILL_F32 && i < f->bytes / 4; i++)
        ((float *)to)[i] = (float)(int32_t)draw(&state) * 0x1p-31f;
    for (size_t i = 0; f->kind == FILL_POSITIVE && i < f->bytes / 4; i++)
        ((float *)to)[i] = 0.25f + (float)(draw(&state) >> 9) * 0x1p-24f;
    for (size_t i = 0; f->kind == FILL_REAL && i < f->bytes / sizeof(real); i++)
        put((real *)to, (long)i, (float)(int32_t)draw(&state) * 0x1p-31f);
    if (f->kind == FILL_ZERO)
        memset(to, 0, f->bytes);
}

static void run_row(Stage *st, int r, size_t turn)
{
    const Row *x = &rows[r];
    x->call(st, turn % x->copies[0] * x->stride[0], turn % x->copies[1] * x->stride[1]);
}

static int by_size(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static Time summary(double *sample, int count)
{
    qsort(sample, (size_t)count, sizeof *sample, by_size);
    return (Time){sample[count / 2], sample[count * 3 / 4] - sample[count / 4]};
}

/* name and number say what is measured, for progress and for the message about a crash. */
static void say_at(int *done, int whole, const char *name, long number)
{
    printf("at %d %d %s %ld\n", ++*done, whole, name, number);
    fflush(stdout);
}

static void say(const char *what, long number, Time alone, Time busy)
{
    printf("%s %ld %.0f %.0f %.0f %.0f\n", what, number, alone.median, alone.quartiles, busy.median, busy.quartiles);
}
#endif
