/* SPDX-License-Identifier: Apache-2.0
 *
 * board.h: what the program has of its board.
 */
#ifndef BOARD_H
#define BOARD_H
#include <stdint.h>
void board_say(const char *text);
uint64_t board_instructions(void);      /* so far, near enough; 0: nobody counts */
int board_main(int steps);
#endif
