/* SPDX-License-Identifier: Apache-2.0
 *
 * digits.c: digits of 5 x 7 points somewhere in a field of 8 x 8, some points brighter than others.  All of it is integers, and
 * floats that are exact, so that every machine draws the same.
 */
#include "digits.h"

/* Five points a row, the left one first. */
static const unsigned char form[10][7] = {
    {14, 17, 19, 21, 25, 17, 14}, {4, 12, 4, 4, 4, 4, 14}, {14, 17, 1, 2, 4, 8, 31}, {31, 2, 4, 2, 1, 17, 14},
    {2, 6, 10, 18, 31, 2, 2}, {31, 16, 30, 1, 1, 17, 14}, {6, 8, 16, 30, 17, 17, 14}, {31, 1, 2, 4, 8, 8, 8},
    {14, 17, 17, 14, 17, 17, 14}, {14, 17, 17, 15, 1, 2, 12}
};

/* Bits that follow from a number (Steele, Lea, Flood, Fast Splittable Pseudorandom Number Generators, 2014). */
static uint32_t mixed(uint32_t x)
{
    uint64_t z = (x + 1ull) * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (uint32_t)(z >> 32);
}

int32_t digit_draw(float point[DIGIT_POINTS], uint32_t number)
{
    uint32_t r = mixed(number);
    int digit = (int)(r % 10), right = 1 + (int)(r >> 8 & 1), down = (int)(r >> 9 & 1);
    for (int i = 0; i < DIGIT_POINTS; i++) {
        int x = i % 8 - right, y = i / 8 - down;
        int lit = x >= 0 && x < 5 && y >= 0 && y < 7 && (form[digit][y] >> (4 - x) & 1);
        uint32_t noise = mixed(number * 64 + (uint32_t)i + 77) & 63;
        point[i] = i % 8 == 0 ? 0 : (float)(lit ? 192 + noise : noise) / 256.0f;
    }
    return digit;
}
