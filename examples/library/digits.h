/* SPDX-License-Identifier: Apache-2.0
 *
 * digits.h: an endless stream of digits of 8 x 8 points, a function of their number.
 */
#ifndef DIGITS_H
#define DIGITS_H
#include <stdint.h>
enum { DIGIT_POINTS = 64 };
/* Digit `number` of the stream: points of 0 to 1, rows from above; what it is.  The left column is always 0. */
int32_t digit_draw(float point[DIGIT_POINTS], uint32_t number);
#endif
