/* SPDX-License-Identifier: Apache-2.0
 *
 * safe.c: a file of published weights from a list of its tensors, so that tests need no Python.
 *
 *     safe LIST FILE       a line of LIST: NAME TYPE D0xD1..., F32, BF16 or F16, tensors in the order of the file
 *                          NAME=OTHER: with the numbers of the tensor OTHER
 *                          U8: the high byte of what the number follows from, or 118 to 125 in NAME_scales
 *
 * Number i of a tensor is a multiple of 1/256 in [-1/4, 1/4), or of 1/128 about 1 for the weights of norms, so that each type
 * has it exactly.  It follows from the low 32 bits of the FNV-1a hash of the name and from i: tests/ref/make_hf.py has the same
 * ones.
 */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 512 };
typedef struct { char name[256], type[8], shape[64]; int64_t n, bytes; } Tensor;

static int64_t number(const Tensor *t, uint64_t hash, int64_t i)
{
    size_t length = strlen(t->name);
    uint64_t x = ((hash & 0xffffffff) + (uint64_t)i) * 0x9e3779b97f4a7c15;
    x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9;
    if (t->bytes == 1)
        return length > 7 && !strcmp(t->name + length - 7, "_scales") ? 118 + (int64_t)(x >> 56) % 8 : (int64_t)(x >> 56);
    int64_t k = (int64_t)(x >> 57) - 64;
    bool norm = !strchr(t->shape, 'x') && length > 7 && !strcmp(t->name + length - 7, ".weight");
    return norm ? 2 * k + 256 : k;          /* in units of 1/256 */
}

/* k/256 as a float, a half or a bfloat16: its sign, the exponent of its first bit, and the bits behind that. */
static uint32_t bits(int64_t k, int exponent, int mantissa)
{
    uint32_t sign = k < 0, u = (uint32_t)(k < 0 ? -k : k), first = 0;
    if (u == 0)
        return 0;
    while (u >> (first + 1))
        first++;
    uint32_t bias = (1u << (exponent - 1)) - 1, rest = (uint32_t)((uint64_t)(u ^ 1u << first) << mantissa >> first);
    return sign << (exponent + mantissa) | (first + bias - 8) << mantissa | rest;
}

static void write_tensor(FILE *f, const Tensor *t)
{
    uint64_t hash = 0xcbf29ce484222325;
    const char *other = strchr(t->name, '=');
    for (const char *c = other ? other + 1 : t->name; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 0x100000001b3;
    for (int64_t i = 0; i < t->n; i++) {
        int64_t k = number(t, hash, i);
        uint32_t u = t->bytes == 1 ? (uint32_t)k : t->type[0] == 'B' ? bits(k, 8, 7) :
                     t->bytes == 2 ? bits(k, 5, 10) : bits(k, 8, 23);
        for (int b = 0; b < t->bytes; b++)
            putc((int)(u >> (8 * b) & 0xff), f);
    }
}

static void write_length(FILE *f, size_t n)
{
    for (int b = 0; b < 8; b++)
        putc((int)((uint64_t)n >> (8 * b) & 0xff), f);
}

/* The entry of the next tensor in the header; its bytes begin at `at`. */
static void write_entry(FILE *f, Tensor *t, int64_t at)
{
    t->n = 1;
    t->bytes = !strcmp(t->type, "F32") ? 4 : !strcmp(t->type, "U8") ? 1 : 2;
    fprintf(f, ",\"%.*s\":{\"dtype\":\"%s\",\"shape\":[", (int)strcspn(t->name, "="), t->name, t->type);
    for (char *p = t->shape;;) {
        long dim = strtol(p, &p, 10);
        t->n *= dim;
        fprintf(f, "%ld%s", dim, *p ? "," : "]");
        if (!*p++)
            break;
    }
    fprintf(f, ",\"data_offsets\":[%" PRId64 ",%" PRId64 "]}", at, at + t->n * t->bytes);
}

int main(int argc, char **argv)
{
    static Tensor tensor[MOST];
    char *head;
    size_t used;
    int n = 0;
    int64_t at = 0;
    FILE *list = argc == 3 ? fopen(argv[1], "r") : NULL, *f = list ? fopen(argv[2], "wb") : NULL;
    FILE *h = f ? open_memstream(&head, &used) : NULL;
    if (!h)
        return 2;
    fprintf(h, "{\"__metadata__\":{\"format\":\"pt\"}");
    for (Tensor *t = tensor; n < MOST && fscanf(list, "%255s %7s %63s", t->name, t->type, t->shape) == 3; n++, t++) {
        write_entry(h, t, at);
        at += t->n * t->bytes;
    }
    fputc('}', h);
    fclose(h);
    write_length(f, (used + 7) / 8 * 8);
    fprintf(f, "%-*s", (int)((used + 7) / 8 * 8), head);
    for (int i = 0; i < n; i++)
        write_tensor(f, &tensor[i]);
    return fclose(f) != 0;
}
