/* SPDX-License-Identifier: Apache-2.0
 *
 * host.c: a desktop as the board.
 */
#include <stdio.h>
#include <stdlib.h>
#include "board.h"

void board_say(const char *text)
{
    fputs(text, stdout);
}

uint64_t board_instructions(void)
{
    return 0;
}

int main(int argc, char **argv)
{
    return board_main(argc > 1 ? atoi(argv[1]) : 400);
}
