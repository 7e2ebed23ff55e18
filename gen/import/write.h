/* SPDX-License-Identifier: Apache-2.0
 *
 * write.h: lines of a model file, between write.c, which prints them, and repeat.c, which finds those that repeat.
 */
#ifndef NET_WRITE_H
#define NET_WRITE_H
#include "net.h"

/* NetLines that come again: the body is that of one copy, with arguments in place of the numbers that differ. */
typedef struct {
    const char *name, *scope;   /* scope: what names have in front in this copy, with a dot */
    int from, to, enters;       /* its lines, and the value that is $in */
    const char **text;          /* attributes of each line */
    Strs args;
} NetBlock;

/* A use of it: copies behind each other. */
typedef struct {
    const NetBlock *block;
    const char *path;           /* with {} in place of the number, or no number where that follows a dot */
    int number, repeat, in, out;
    Strs args, first;           /* values, by argument; first: of the first copy */
} NetUse;

typedef struct { int line; const NetUse *use; } NetItem;      /* of the graph; line: of `used` */
typedef struct { Ints used; VEC(NetBlock *) block; VEC(NetItem) item; } NetLines;

const char *net_name(const NetValue *v);                /* of a parameter, in the model file */
int net_made_by(const Net *g, int value);               /* whose result this is, under other axes */
void net_repeats(Net *g, NetLines *l, int result);         /* fills block and item */
#endif
