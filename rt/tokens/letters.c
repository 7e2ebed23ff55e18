/* SPDX-License-Identifier: Apache-2.0
 *
 * letters.c: the classes of a character and its small letter, by bisection in tables of runs; texts that grow.
 */
#include "tokens.h"
#include <string.h>

static const struct { uint32_t from, to; int bits; } runs[] = {
#define R(from, to, bits) {from, to, bits},
#define L(from, last, step, to)
#include "letters.def"
#undef R
#undef L
};
static const struct { uint32_t from, last, step, to; } smalls[] = {
#define R(from, to, bits)
#define L(from, last, step, to) {from, last, step, to},
#include "letters.def"
#undef R
#undef L
};

int char_class(uint32_t c)
{
    int low = 0, high = (int)(sizeof runs / sizeof *runs) - 1;
    while (low <= high) {
        int mid = (low + high) / 2;
        if (c < runs[mid].from)
            high = mid - 1;
        else if (c > runs[mid].to)
            low = mid + 1;
        else
            return runs[mid].bits;
    }
    return 0;
}

uint32_t char_lower(uint32_t c)
{
    int low = 0, high = (int)(sizeof smalls / sizeof *smalls) - 1;
    while (low <= high) {
        int mid = (low + high) / 2;
        uint32_t at = c - smalls[mid].from;
        if (c < smalls[mid].from)
            high = mid - 1;
        else if (c > smalls[mid].last)
            low = mid + 1;
        else
            return at % smalls[mid].step ? c : smalls[mid].to + at;
    }
    return c;
}

void text_put(Grown *to, const char *at, size_t n)
{
    if (n > to->room - to->n) {
        size_t room = 2 * to->room + n + 64;
        char *moved = alloc(room);
        if (to->n)
            memcpy(moved, to->at, to->n);
        to->at = moved;
        to->room = room;
    }
    if (n)
        memcpy(to->at + to->n, at, n);
    to->n += n;
}

void text_char(Grown *to, uint32_t c)
{
    static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    char spelt[4] = {(char)c};
    int n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (int i = n - 1; i > 0; i--, c >>= 6)
        spelt[i] = (char)(0x80 | (c & 0x3f));
    if (n > 1)
        spelt[0] = (char)(lead[n] | c);
    text_put(to, spelt, (size_t)n);
}
