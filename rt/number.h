/* SPDX-License-Identifier: Apache-2.0
 *
 * number.h: the few functions of double that start values, rates and angles need.  They are made of + - * / alone, so their
 * bits do not depend on a mathematical library.
 */
#ifndef NUMBER_H
#define NUMBER_H
#include <stdint.h>

double number_power(double x, int64_t n);       /* x^n, n >= 0 */
double number_log(double x);                    /* x a positive normal number */
double number_exp(double x);                    /* e^x, |x| < 700 */
double number_sqrt(double x);                   /* x a positive normal number, or 0 */
double number_cos_turn(double x);               /* cos(2 pi x), 0 <= x < 2^20 */
double number_sin_turn(double x);

/* Four random words, a function of the arguments alone.  purpose keeps the uses of one seed apart. */
enum { DRAW_PARAMETER = 1, DRAW_WINDOW, DRAW_ORDER, DRAW_TOKEN };
void number_draw(uint64_t seed, int purpose, uint64_t name, uint64_t index, uint32_t word[4]);
#endif
