/* SPDX-License-Identifier: Apache-2.0
 *
 * library_any.c: a library of any job on arrays of NumPy, one for each input in the order of NAME.h: steps on the samples as
 * they stand in the files, again and again, and the hash.  Compiled with -DJOB=NAME and -include NAME.h.  With -DOTHER=NAME
 * too, another plan of the same job goes on from what the first has saved, and the first from what the other has.  With
 * -DSAVED="FILE" what is saved goes there.
 *
 *     library_any STEPS SAMPLES FILE...       SAMPLES: of a step
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../rt/little.h"

#define JOINED(a, b) a##_##b
#define NAMED(a, b) JOINED(a, b)
#define CALL(b) NAMED(JOB, b)
enum { INPUTS = 8, F32 = 1, I32 = 2 };

typedef struct { unsigned char *at, *step; long rows, bytes; int type; } Array;

/* Version 1.0, C order: the header has 'descr': '<f4' or '<i4', and 'shape': (ROWS, ... */
static Array read_array(const char *name, long samples)
{
    FILE *f = fopen(name, "rb");
    Array a = {.at = malloc(1 << 22)};
    long n = f ? (long)fread(a.at, 1, (1 << 22) - 1, f) : 0, head = n > 128 ? 10 + a.at[8] + 256 * a.at[9] : 0;
    if (!head)
        exit(2);
    fclose(f);
    a.at[head - 1] = 0;
    const char *text = (char *)a.at + 10;
    a.type = strstr(text, "'<f4'") ? F32 : I32;
    a.rows = atol(strchr(strstr(text, "'shape'"), '(') + 1);
    a.bytes = (n - head) / a.rows;
    a.at += head;
    little(a.at, (size_t)(a.rows * a.bytes / 4), 4);
    a.step = malloc((size_t)(samples * a.bytes));
    return a;
}

static Array array[INPUTS];
static CALL(array) in[INPUTS];

static void take(int arrays, long step, long samples)
{
    for (int i = 0; i < arrays; i++) {
        Array *a = &array[i];
        for (long k = 0; k < samples; k++)
            memcpy(a->step + k * a->bytes, a->at + (step * samples + k) % a->rows * a->bytes, (size_t)a->bytes);
        in[i].at = a->step;
        in[i].n = (size_t)(samples * a->bytes / 4);
        in[i].type = a->type;
    }
}

static int fail(const char *why)
{
    puts(why);
    return 1;
}

#ifdef OTHER
#define OTHERS(b) NAMED(OTHER, b)
/* A step of each from the same bytes: the same loss, and the same bytes again. */
static int turn(CALL(job) *job)
{
    char why[192];
    size_t n = CALL(saved)();
    void *one = malloc(n), *two = malloc(n);
    CALL(result) r;
    OTHERS(result) s;
    OTHERS(array) their[INPUTS];
    for (int i = 0; i < INPUTS; i++)
        their[i] = (OTHERS(array)){in[i].at, in[i].n, in[i].type};
    OTHERS(job) *other = OTHERS(open)(NULL, 0, why);
    if (!other || n != OTHERS(saved)() || CALL(save)(job, one, n) || OTHERS(load)(other, one, n))
        return fail(other ? OTHERS(why)(other) : why);
    if (CALL(step)(job, in, &r) || OTHERS(step)(other, their, &s) || r.loss != s.loss || r.norm != s.norm)
        return fail("a step from what is saved: another loss or norm");
    if (CALL(evaluate)(job, in, &r) || OTHERS(evaluate)(other, their, &s) || r.loss != s.loss)
        return fail("an evaluation: another loss");
    if (CALL(save)(job, one, n) || OTHERS(save)(other, two, n) || memcmp(one, two, n))
        return fail("other bytes are saved");
    if (CALL(restart)(job) || CALL(load)(job, two, n) || CALL(save)(job, one, n) || memcmp(one, two, n))
        return fail("the way back");
    OTHERS(close)(other);
    free(one), free(two);
    return 0;
}
#else
static int turn(CALL(job) *job)
{
    (void)job;
    return 0;
}
#endif

/* False: not all of it. */
static int write_saved(CALL(job) *job)
{
#ifdef SAVED
    size_t n = CALL(saved)();
    void *bytes = malloc(n);
    FILE *f = fopen(SAVED, "wb");
    int good = f && !CALL(save)(job, bytes, n) && fwrite(bytes, 1, n, f) == n;
    free(bytes);
    return f && fclose(f) == 0 && good;
#else
    (void)job;
    return 1;
#endif
}

int main(int argc, char **argv)
{
    char why[192], hex[65];
    long steps = argc > 2 ? atol(argv[1]) : 0, samples = argc > 2 ? atol(argv[2]) : 0;
    CALL(job) *job = CALL(open)(NULL, 0, why);
    CALL(result) r, first = {0};
    if (!job)
        return fail(why);
    for (int i = 3; i < argc; i++)
        array[i - 3] = read_array(argv[i], samples);
    for (long step = 0; step < steps; step++) {
        take(argc - 3, step, samples);
        if (CALL(step)(job, in, &r))
            return fail(CALL(why)(job));
        first = step ? first : r;
    }
    CALL(hash)(job, hex);
    printf("sha256 %s\n", hex);
    if (turn(job) || !write_saved(job))
        return 1;
    CALL(close)(job);
    return first.step != 1;
}
