/* SPDX-License-Identifier: Apache-2.0
 *
 * place.h: the parts that place.c and layout.c share.  place.c makes one layout; layout.c looks for a good one.
 */
#ifndef PLACE_H
#define PLACE_H
#include "mem.h"

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
typedef struct { Bytes at, end; Hours hours; const MemPiece *piece; } Placed;
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
#endif
