/* SPDX-License-Identifier: Apache-2.0
 *
 * tfread: an event file of TensorBoard as lines `TIME STEP TAG VALUE`, or why it is none.
 *
 * It shares nothing with gen/view/tfevents.c: sums go by the polynomial from its high end over reflected bytes, where that goes
 * from its low end; fields are taken in any order.
 *   tfread FILE       tfread --check: the sum of "123456789" is e3069283, of 32 zero bytes 8a9136aa (RFC 3720, B.4)
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t reflect(uint32_t x, int bits)
{
    uint32_t y = 0;
    for (int i = 0; i < bits; i++)
        y |= (x >> i & 1) << (bits - 1 - i);
    return y;
}

static uint32_t sum_of(const unsigned char *at, size_t n)
{
    uint32_t rest = 0xffffffff;
    for (size_t i = 0; i < n; i++) {
        rest ^= reflect(at[i], 8) << 24;
        for (int bit = 0; bit < 8; bit++)
            rest = rest & 0x80000000 ? rest << 1 ^ 0x1edc6f41 : rest << 1;
    }
    return ~reflect(rest, 32);
}

static void stop(const char *why)
{
    fprintf(stderr, "tfread: %s\n", why);
    exit(1);
}

static uint64_t little(const unsigned char *at, int n)
{
    uint64_t x = 0;
    for (int i = n; i-- > 0;)
        x = x << 8 | at[i];
    return x;
}

static void check_sum(const unsigned char *at, size_t n, const unsigned char *sum)
{
    uint32_t mask = (uint32_t)little(sum, 4) - 0xa282ead8u;
    if ((mask << 15 | mask >> 17) != sum_of(at, n))
        stop("a wrong sum");
}

typedef struct { int field, type; uint64_t x; const unsigned char *at; size_t n; } Field;
typedef struct { const unsigned char *at, *end; } Span;

static uint64_t varint(Span *s)
{
    uint64_t x = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        if (s->at == s->end)
            stop("a number is cut");
        x |= (uint64_t)(*s->at & 127) << shift;
        if (*s->at++ < 128)
            return x;
    }
    stop("a number is too long");
    return 0;
}

static int next(Span *s, Field *f)
{
    static const int fixed[] = {0, 8, 0, 0, 0, 4};
    if (s->at == s->end)
        return 0;
    uint64_t key = varint(s);
    *f = (Field){(int)(key >> 3), (int)(key & 7), 0, s->at, 0};
    if (f->type == 0) {
        f->x = varint(s);
        return 1;
    }
    if (f->type != 1 && f->type != 2 && f->type != 5)
        stop("a type that is none");
    f->n = f->type == 2 ? (size_t)varint(s) : (size_t)fixed[f->type];
    f->at = s->at;
    if (f->n > (size_t)(s->end - s->at))
        stop("a field is cut");
    s->at += f->n;
    f->x = f->type == 2 ? 0 : little(f->at, (int)f->n);
    return 1;
}

static void print_value(Span s, double time, long step)
{
    Field f;
    char tag[200] = "";
    float value = 0;
    while (next(&s, &f)) {
        if (f.field == 1 && f.type == 2 && f.n < sizeof tag)
            memcpy(tag, f.at, f.n), tag[f.n] = 0;
        if (f.field == 2 && f.type == 5)
            memcpy(&value, f.at, sizeof value);
    }
    printf("%.3f %ld %s ", time, step, tag);
    value == value ? printf("%g\n", value) : printf("nan\n");
}

static void print_event(Span s)
{
    Field f, inner;
    double time = -1;
    long step = 0;
    for (Span t = s; next(&t, &f);) {
        if (f.field == 1 && f.type == 1)
            memcpy(&time, &f.x, sizeof time);
        if (f.field == 2 && f.type == 0)
            step = (long)f.x;
    }
    while (next(&s, &f)) {
        Span t = {f.at, f.at + f.n};
        if (f.field == 3)
            printf("%.3f version %.*s\n", time, (int)f.n, (const char *)f.at);
        while (f.field == 5 && next(&t, &inner))
            if (inner.field == 1)
                print_value((Span){inner.at, inner.at + inner.n}, time, step);
        if (f.field == 7 && next(&t, &inner) && inner.field == 1 && inner.x == 1)
            printf("%.3f %ld start\n", time, step);
    }
}

int main(int argc, char **argv)
{
    static unsigned char data[1 << 20];
    if (argc == 2 && !strcmp(argv[1], "--check"))
        return sum_of((const unsigned char *)"123456789", 9) != 0xe3069283 || sum_of(data, 32) != 0x8a9136aa;
    FILE *f = argc == 2 ? fopen(argv[1], "rb") : NULL;
    if (!f)
        stop("which file?");
    size_t n = fread(data, 1, sizeof data, f);
    for (size_t at = 0; at < n;) {
        uint64_t length = n - at < 12 ? n : little(data + at, 8);
        if (length > n - at || n - at - length < 16)
            stop("a record is cut");
        check_sum(data + at, 8, data + at + 8);
        check_sum(data + at + 12, (size_t)length, data + at + 12 + length);
        print_event((Span){data + at + 12, data + at + 12 + length});
        at += 16 + (size_t)length;
    }
    fclose(f);
    return 0;
}
