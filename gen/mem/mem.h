/* SPDX-License-Identifier: Apache-2.0
 *
 * mem.h: the parts that mem.c, layout.c, place.c and lives.c share.  The first three give addresses; lives.c finds the lives.
 */
#ifndef MEM_H
#define MEM_H
#include "plan.h"
#include "pack/pack.h"

typedef struct { int first, last; } Span;
typedef struct { int routine; Span call; } MemLocal; /* of a buffer that one routine alone touches, and where; routine < 0: it
                                                       is touched elsewhere too */
typedef struct { Bytes in, size; const Span *life; MemLocal local; } Tile;  /* life by micro-batch; in: where in a slot */
typedef struct {
    int buf, pool;              /* a buffer and its pool, -1: none; or a pool whose buffers stay together, buf -1 */
    int first;
    Bytes size;                 /* of one slot */
    int64_t ticks;              /* alive, all pieces and micro-batches */
    int64_t key;                /* layout.c: for its next order */
    VEC(Tile) piece;           /* one, or the buffers of the pool */
    bool moves;                 /* a buffer may be elsewhere for each micro-batch; for instance where */
    Ints other;                 /* these pools put it */
    int pipeline;               /* its direction; 2: both.  In slots of the other one it might end behind the arena */
} Item;
typedef struct { Bytes at; int pool; bool is; } Place;  /* of an item, in slot 0 of that pool; is: placed by itself */

typedef struct {
    Plan *p;
    Room *room;                 /* of the plan; all else here is scratch */
    int device, overlap;
    int micro, each;            /* micro-batches of all steps in the list; of one, where steps overlap those of the device */
    Span *live;                 /* [row[buf] * micro + mb]; last < first: never */
    int *life;                  /* by buffer; 0, of all other devices: never alive */
    int rows;
    MemLocal *local;            /* by buffer */
    int *session;               /* by buffer of a room */
    int *sum;                   /* by state: 1 + the buffer of a gradient's sum that does not live for ever; 0: none */
    int ticks;                  /* of the list, or of all its phases */
    int *slot;                  /* [pool * micro + mb] */
    int *ring;                  /* the same, if micro-batches take slots in turn; as slot where that takes more of them */
    int single;                 /* pools from here on hold one buffer each */
    int extra, extras;          /* pools that placing may open: the first, and how many */
    bool apart;                 /* steps overlap in too many ways: slots share no byte with anything */
    Bytes top;                  /* of the states */
    VEC(Item) item;             /* pools as blocks, the buffers of these pools, all others */
    int pools, members;         /* where the second begin, and the third */
} Mem;

/* lives.c */
bool  mem_always(const Buf *b);                     /* alive all the time: a state */
Mem   mem_new(Plan *p, int device);                 /* with the lives of its buffers */
Span *mem_live(const Mem *m, int b, int mb);
int   mem_number(const Mem *m, const Action *k);     /* of the micro-batch that it touches, for mem_live() */
bool  mem_alive(const Mem *m, int b, int mb);       /* on this device, and no state */
void  mem_bound(Mem *m);                            /* fills dev[].bound, live, peak; wants top */
/* unpooled.c: every buffer of every micro-batch by itself, buffers in order */
Block *mem_blocks(const Mem *m, int *n);
/* layout.c */
Bytes mem_place(Mem *m, Place *place);              /* of every item, strides and slots of pools; the top */
#endif
