/* SPDX-License-Identifier: Apache-2.0
 *
 * memory.c: the four functions that a compiler may call by itself, for a program without libc.
 */
#include <stddef.h>
#pragma GCC optimize ("no-tree-loop-distribute-patterns")       /* which would make a call of memset out of memset */

void *memcpy(void *restrict to, const void *restrict from, size_t n)
{
    unsigned char *t = to;
    const unsigned char *f = from;
    while (n--)
        *t++ = *f++;
    return to;
}

void *memmove(void *to, const void *from, size_t n)
{
    unsigned char *t = to;
    const unsigned char *f = from;
    if (t <= f)
        return memcpy(to, from, n);
    while (n--)
        t[n] = f[n];
    return to;
}

void *memset(void *to, int byte, size_t n)
{
    unsigned char *t = to;
    while (n--)
        *t++ = (unsigned char)byte;
    return to;
}

int memcmp(const void *a, const void *b, size_t n)
{
    const unsigned char *x = a, *y = b;
    for (; n--; x++, y++)
        if (*x != *y)
            return *x - *y;
    return 0;
}
