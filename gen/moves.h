/* SPDX-License-Identifier: Apache-2.0
 *
 * moves.h: the moves of the search by name, so that bench/ablate.sh can take one away and see what it earned.
 *
 * Built with -DABLATE, the environment variable DPGEN_OFF names moves that are off, each between blanks, and a move that is met
 * writes a line.  Built as ever, each move is on, and nothing is read.
 */
#ifndef MOVES_H
#define MOVES_H
#ifdef ABLATE
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static inline bool move_is_on(const char *name)
{
    const char *off = getenv("DPGEN_OFF");
    char word[64];
    snprintf(word, sizeof word, " %s ", name);
    fprintf(stderr, "move %s\n", name);
    return !off || !strstr(off, word);
}
#else
#define move_is_on(name) true
#endif
#endif
