/* SPDX-License-Identifier: Apache-2.0
 *
 * memory.c: the bytes of an arena that a run never wrote, against the gaps of its plan.
 *
 *     memory PLAN.json STAGE FIRST A SECOND B     FIRST, SECOND: dumps of the arena, filled with bytes A and B before
 *
 * A byte was never written when it is A in the first dump and B in the second: what a run writes is the same in both.
 * Status 0: exactly the gaps; 1: others, named with the buffers that hold them; 2: unreadable.  The one key of plan.json
 * that must be found is "gaps", once a stage, in order; buffers are read for names alone.
 */
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct { char *at; size_t n; } File;

static _Noreturn void stop(const char *what, const char *name)
{
    fprintf(stderr, "memory: %s %s\n", what, name);
    exit(2);
}

static File read_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    File x = {0};
    if (!f || fseek(f, 0, SEEK_END) != 0 || ftell(f) < 0)
        stop("cannot read", path);
    x.n = (size_t)ftell(f);
    x.at = malloc(x.n + 1);
    rewind(f);
    if (!x.at || fread(x.at, 1, x.n, f) != x.n)
        stop("cannot read", path);
    x.at[x.n] = 0;
    fclose(f);
    return x;
}

/* The text behind the key's occurrence number `stage`, counted from 0. */
static const char *section(const char *text, const char *key, int stage)
{
    for (int i = 0; i <= stage; i++) {
        text = strstr(text, key);
        if (!text)
            stop("plan.json: not enough of", key);
        text += strlen(key);
    }
    return text;
}

/* Marks of the planned gaps, a byte for a byte of the arena. */
static char *planned(const char *plan, int stage, size_t n)
{
    char *gap = calloc(n + 1, 1);
    const char *at = section(plan, "\"gaps\": [", stage);
    size_t from, count;
    int used;
    if (!gap)
        stop("no memory for", "the marks");
    while (sscanf(at, " [%zu, %zu]%n", &from, &count, &used) == 2) {
        if (from > n || count > n - from)
            stop("plan.json:", "a gap outside the arena");
        memset(gap + from, 1, count);
        at += used + (at[used] == ',');
    }
    return gap;
}

/* Names of the buffers that hold a byte, in any slot. */
static void print_owners(const char *plan, int stage, size_t byte)
{
    const char *at = section(plan, "\"buffers\": [", stage), *end = strstr(at, "\"gaps\""), *line;
    char name[512];
    size_t bytes, offset, slots, stride;
    for (; (line = strstr(at, "{\"name\": \"")) && line < end; at = line + 1) {
        if (sscanf(line, "{\"name\": \"%511[^\"]\", \"bytes\": %zu, \"offset\": %zu, \"slots\": %zu, \"stride\": %zu",
                   name, &bytes, &offset, &slots, &stride) != 5)
            stop("plan.json: no buffer:", line);
        for (size_t k = 0; k < slots; k++)
            if (byte >= offset + k * stride && byte < offset + k * stride + bytes)
                fprintf(stderr, " %s[slot %zu, byte %zu of %zu]", name, k, byte - offset - k * stride, bytes);
    }
}

int main(int argc, char **argv)
{
    if (argc != 7)
        stop("usage:", "memory PLAN.json STAGE FIRST A SECOND B");
    int stage = atoi(argv[2]), a = (int)strtol(argv[4], NULL, 0), b = (int)strtol(argv[6], NULL, 0);
    File plan = read_file(argv[1]), first = read_file(argv[3]), second = read_file(argv[5]);
    if (first.n != second.n || first.n == 0)
        stop("two dumps of different lengths:", argv[5]);
    char *gap = planned(plan.at, stage, first.n);
    size_t wrong = 0, gaps = 0;
    for (size_t i = 0; i < first.n; i++) {
        bool never = (unsigned char)first.at[i] == a && (unsigned char)second.at[i] == b;
        bool before = i > 0 && (unsigned char)first.at[i - 1] == a && (unsigned char)second.at[i - 1] == b;
        gaps += (size_t)gap[i];
        if (never == !!gap[i])
            continue;
        if (wrong++ < 2000 && (i == 0 || before != never || gap[i - 1] != gap[i])) {
            fprintf(stderr, "memory: stage %d: byte %zu %s:", stage, i, never ? "is planned and never written" :
                    "was written and is a gap");
            print_owners(plan.at, stage, i);
            fputc('\n', stderr);
        }
    }
    printf("stage %d: %zu bytes, %zu of them gaps, %zu wrong\n", stage, first.n, gaps, wrong);
    free(gap), free(plan.at), free(first.at), free(second.at);
    return wrong > 0;
}
