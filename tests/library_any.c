/* SPDX-License-Identifier: Apache-2.0
 *
 * library_any.c: a library of any job on arrays of NumPy, one for each input in the order of NAME.h: steps on the samples as
 * they stand in the files, again and again, and the hash.  Compiled with -DJOB=NAME and -include NAME.h.
 *
 *     library_any STEPS SAMPLES FILE...       SAMPLES: of a step
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    a.step = malloc((size_t)(samples * a.bytes));
    return a;
}

int main(int argc, char **argv)
{
    Array array[INPUTS];
    CALL(array) in[INPUTS];
    char why[192], hex[65];
    long steps = argc > 2 ? atol(argv[1]) : 0, samples = argc > 2 ? atol(argv[2]) : 0;
    CALL(job) *job = CALL(open)(NULL, 0, why);
    if (!job)
        return puts(why), 1;
    for (int i = 3; i < argc; i++)
        array[i - 3] = read_array(argv[i], samples);
    for (long step = 0; step < steps; step++) {
        for (int i = 0; i < argc - 3; i++) {
            Array *a = &array[i];
            for (long k = 0; k < samples; k++)
                memcpy(a->step + k * a->bytes, a->at + (step * samples + k) % a->rows * a->bytes, (size_t)a->bytes);
            in[i].at = a->step;
            in[i].n = (size_t)(samples * a->bytes / 4);
            in[i].type = a->type;
        }
        if (CALL(step)(job, in, NULL))
            return puts(CALL(why)(job)), 1;
    }
    CALL(hash)(job, hex);
    printf("sha256 %s\n", hex);
    CALL(close)(job);
    return 0;
}
