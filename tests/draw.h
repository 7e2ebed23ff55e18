/* SPDX-License-Identifier: Apache-2.0
 *
 * draw.h: counted checks and random numbers, for tests that draw their own small cases and name a failing one by its seed.
 */
#ifndef DRAW_H
#define DRAW_H
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

static const char *test_name;
static int passed, failed;

static inline void check(bool ok, const char *what, int seed)
{
    passed += ok;
    failed += !ok;
    if (!ok)
        fprintf(stderr, "%s: %s, case %d\n", test_name, what, seed);
}

static uint64_t state;

static inline int draw(int from, int to)        /* splitmix64 */
{
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return from + (int)((z ^ z >> 31) % (uint64_t)(to - from + 1));
}
#endif
