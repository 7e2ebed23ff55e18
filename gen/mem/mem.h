/* SPDX-License-Identifier: Apache-2.0
 *
 * mem.h: what the files between lifetimes and addresses share.
 */
#ifndef MEM_H
#define MEM_H
#include "pack/pack.h"

/* ---- mem.c --------------------------------------------------------------------------------------------------------- */
/* the parts that mem.c, layout.c, place.c and lives.c share.  The first three give addresses; lives.c finds the lives. */
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
    int rows, from, until;      /* of all buffers, those of the device lie here */
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
Bytes mem_place(Mem *m, Bytes most, Place *place);  /* of every item, strides and slots of pools; the top */

/* ---- place.c: the parts that place.c and layout.c share.  place.c makes one layout; layout.c looks for a good one -- */
enum { BLOCKS, LOOSE, BUFFERS };
typedef struct { int pieces; bool close, open; } Style;     /* see place.c */
/* The list has 64 equal parts.  some: the parts with a live tick; all: the parts that are alive throughout. */
typedef struct { uint64_t some, all; } Hours;
typedef struct {                /* a piece in one slot */
    Bytes in, size;
    int slot, step;             /* step: the number of its item in the order, once it is placed */
    const Span *span;           /* when alive, ascending */
    int n;
    MemLocal local;
    Hours hours;
} MemPiece;
typedef enum { UNKNOWN, YES, NO } MemKnown;
typedef struct { int pool, room; MemKnown fits; VEC(MemPiece) piece; Span *span; } Form; /* an item by the slots of a pool */
typedef struct { Bytes at, end, reach; Hours hours; const MemPiece *piece; } Placed;  /* reach: no end up to it is larger */
typedef VEC(Placed) Parts;
typedef struct { int slot, mb; } MemTurn;
typedef struct { int64_t left; Bytes top, widest; int opened, pool; } Before;  /* of a piece: what placing it changes; the pool
                                                                                   that it opens, -1: none */
typedef struct {
    Bytes top;
    Bytes *stride;              /* by pool; 0: nothing of it is placed yet */
    int *slot;                  /* as in Mem */
    int opened;                 /* pools of one buffer that are in use */
    Place *spot;                /* by item */
} Layout;

typedef struct {
    Mem *m;
    Style style;
    bool still;                 /* its own pool for a buffer, unless another makes the top lower */
    bool ring, rings;           /* the usual slots of a pool are those in turn; layout.c: they may be */
    Item **sorted;
    int n, done;                /* pieces in order; so many were placed, the last one may be too high */
    Before *before;             /* by piece in order */
    Bytes floor;                /* for buffers without a pool */
    Bytes most;                 /* what ends there or higher is of no use */
    Layout now;
    Form *form, *move, spare;   /* by item: by its own pool, by another; scratch */
    Form *fixed;                /* [item * (pools + 1) + pool + 1] where steps overlap */
    Parts placed, kept, more;   /* ascending; scratch */
    Bytes widest;               /* of all placed */
    MemPiece *piece;            /* scratch, for the pieces of an item and all micro-batches */
    MemTurn *turn;              /* by pool: the micro-batches by slot */
    Hours *hours;               /* as Mem.live; some 0: not asked yet */
    int64_t left;               /* of the budget */
    uint64_t luck;
} Placer;

Placer place_new(Mem *m, int64_t budget);
Layout place_layout(const Mem *m);
void   place_copy(const Mem *m, Layout *to, const Layout *from);
int    place_extra(const Mem *m, const Item *x, int from);      /* the next pool beside its own, from that one on */
bool   place_alone(Mem *m, Layout *best);    /* exact_layout.c: a lower one, by gen/pack, or the proof that none is */
void   place_order(Placer *w, int (*order)(const void *, const void *));    /* the style's pieces, by a total order */
bool   place_all(Placer *w, Bytes most);    /* into w->now; false: the top is not below `most`, or the budget ended */
bool   place_again(Placer *w, Bytes most, int same);    /* the same `most`, and an order whose first `same` pieces are alike */

/* ---- trial_cache.c ------------------------------------------------------------------------------------------------- */
/* the memory shared by all plans of one candidate.  Each plan is made by trial, and a trial before has met most of it. */
/* Finds a layout of the same items, with pools numbered as here.  False: the items are new. */
bool seen_layout(Mem *m, Layout *layout);
void seen_keep_layout(const Mem *m, const Layout *layout);

/* ---- unpooled.c: the known height of an arena, for whoever shows a plan -------------------------------------------- */
/* Fills dev[].unpooled, the lowest known arena without pools (0: unknown), and dev[].proven: no arena is lower. */
void mem_unpooled(Plan *p);
const char *mem_proof(const DevicePlan *d);         /* the same as text */
#endif
