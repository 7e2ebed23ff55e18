/* SPDX-License-Identifier: Apache-2.0
 *
 * little.h: files, hashes and saved states have numbers with the low byte first, and a big-endian machine turns them.
 */
#ifndef LITTLE_H
#define LITTLE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline bool little_here(void)
{
    const uint16_t one = 1;
    return *(const unsigned char *)&one;
}

/* n numbers of `width` bytes, in place: as files have them, or from there. */
static inline void little(void *numbers, size_t n, size_t width)
{
    unsigned char *at = (unsigned char *)numbers, byte;
    for (size_t i = 0; !little_here() && i < n; i++, at += width)
        for (size_t k = 0; k < width / 2; k++)
            byte = at[k], at[k] = at[width - 1 - k], at[width - 1 - k] = byte;
}

/* Bytes of f32 to `take`, as files have them.  False: `take` was false. */
static inline bool little_floats(const void *x, size_t bytes, bool (*take)(void *to, const void *piece, size_t n), void *to)
{
    uint32_t piece[1024];
    bool good = !little_here() || take(to, x, bytes);
    for (size_t from = 0, n; !little_here() && good && from < bytes; from += n) {
        n = bytes - from < sizeof piece ? bytes - from : sizeof piece;
        little(memcpy(piece, (const char *)x + from, n), n / sizeof *piece, sizeof *piece);
        good = take(to, piece, n);
    }
    return good;
}
#endif
