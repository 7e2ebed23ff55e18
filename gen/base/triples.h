/* SPDX-License-Identifier: Apache-2.0
 *
 * triples.h: what a search has met already: three numbers -> their place in the order of meeting.
 */
#ifndef TRIPLES_H
#define TRIPLES_H
#include "base.h"

typedef struct { int a, b, c, index; } MemoKey;     /* index: 1 + that of the value; 0: free */
typedef struct { MemoKey *at; int n, cap; } Memo;   /* zeros: empty */
/* Index of (a, b, c): 0, 1, 2, ... ; equal to the n before the call if it is new. */
int memo_index(Memo *m, int a, int b, int c);
#endif
