/* SPDX-License-Identifier: Apache-2.0
 *
 * mem.h: what mem.c, which gives addresses, and lives.c, which says who lives when, share.
 */
#ifndef MEM_H
#define MEM_H
#include "dpgen.h"

typedef struct { int first, last; } Span;
typedef struct { int routine; Span call; } Home;    /* of a buffer that one routine alone touches, and where; routine < 0: it
                                                       is touched elsewhere too */
typedef struct {
    Bytes at, size;             /* at: in the arena once placed, in the item before */
    Span *span;
    int n;
    Home home;
} Part;
typedef VEC(Part) Parts;
typedef struct {
    int buf, pool;              /* a local buffer, or a pool, or both */
    Bytes size;
    int first;
    Parts part;                 /* pool: by buffer and slot; local: one, or by slot */
    int host;                   /* local: item of the pool whose slots it may live in; -1: none */
    Parts in_slot;              /* local: by slot of the host */
} Item;
typedef struct { Bytes at; bool hosted; } Place;    /* of an item; hosted: in each slot of its host, at is that in slot 0 */

typedef struct {
    Plan *p;
    int device, overlap;
    int micro;                  /* micro-batches of all steps in the list */
    Span *live;                 /* [buf * micro + mb]; last < first: never */
    Home *home;                 /* by buffer */
    int *slot;                  /* [pool * micro + mb] */
    int own;                    /* pools from here on hold one buffer each */
    Bytes top;                  /* of the states */
    VEC(Item) item;             /* pools, then locals */
    int pools;                  /* so many items are pools of several buffers */
} Mem;

/* lives.c */
Bytes mem_align(Bytes n);
bool  mem_always(const Buf *b);                     /* alive all the time: a state */
Mem   mem_new(Plan *p, int device);                 /* with the lives of its buffers */
Span *mem_live(const Mem *m, int b, int mb);
void  mem_bound(Mem *m);                            /* fills dev[].bound, live, peak; wants top */
#endif
