/* SPDX-License-Identifier: Apache-2.0
 *
 * letters.c: the classes of a character, by bisection in a table of runs.
 */
#include "tokens.h"

static const struct { uint32_t from, to; int bits; } runs[] = {
#define R(from, to, bits) {from, to, bits},
#include "letters.def"
#undef R
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
