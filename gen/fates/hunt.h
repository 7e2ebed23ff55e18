/* SPDX-License-Identifier: Apache-2.0
 *
 * hunt.h: the search of fates.c for runs too large to enumerate, in parts: starting choices, and steps that improve them.
 */
#ifndef HUNT_H
#define HUNT_H
#include "fates.h"

/* A tensor that matters and has a choice. */
typedef struct { int tensor, op; char may; bool read; Bytes bytes; Ns time; } HuntItem;
/* An operator with items.  Dropping it costs its time once and frees those of its results that backward reads.  Nobody saves
 * operands that backward does not read.  They have to be made again with it, or saved for it. */
typedef struct {
    int op, item, items;
    Ns time;                    /* alone */
    Bytes bytes;                /* of its results, those that backward reads; 0: it is only an operand of others */
    Bytes size;                 /* of all its items */
    int operand, operands;      /* in Hunt.operand: drops that only serve this one, directly or through each other */
    bool alone;                 /* cheaper without them: they are saved */
    Ns price;                   /* as far as known: what dropping it adds, and frees */
    Bytes worth;
} Drop;

typedef struct { int drop; Ns time; Bytes bytes; } Rank;
/* Of one choice.  copies: live_copies() */
typedef struct { Load load; int copies; } HuntLoad;

struct Hunt {
    Live *live;
    const char *may;
    MemoryOrder memory_order;   /* in which tensors are offloaded */
    Bytes host;                 /* what the device may hold in its host's memory */
    int first, last, chunk;
    Bytes limit;
    int *fate;                  /* by tensor: the choice at hand */
    HuntItem *item;
    int n;                      /* by operator, then by tensor */
    Drop *drop;
    int drops;
    Ints operand;
    int *of;                    /* by tensor of the run: its drop; -1 */
    int *ranked, ordered;       /* drops that backward reads, cheapest first */
    int others;                 /* micro-batches at rest */
    const int *made;            /* tensors of the run, and their number */
    int tensors;
    int *best;                  /* by those: fate; of the best choice so far */
    Load load;                  /* of it */
    int calls;                  /* forward and backward, and one */
    int budget;                 /* replays left; a replay with copies counts as many as those take */
    Purse *work;                /* of the whole search, in calls */
    bool spent;                 /* that is spent: the first choice that fits, and no climbing */
    int *heap, *was, *before;   /* scratch by drop; by tensor of the run */
    Rank *rank;
    Rank *out;                  /* what can be offloaded, in order */
    int outs;
    int *count;                 /* by operator of the run */
    Bytes *width, *total;       /* the same */
    struct Knapsack *knapsack;
    HuntLoad *met;              /* by number of a choice of all items, where they are enumerated; need -1: not yet */
    int mets;                   /* room for so many */
};

void hunt_set(Hunt *h, int drop, int fate);         /* all results of an operator */
void hunt_all(Hunt *h, int fate);                   /* of all of them */
void hunt_keep(Hunt *h);                            /* whatever has a choice */
void hunt_drop(Hunt *h, int drop);                  /* with its operands, unless it is cheaper alone */
bool hunt_dropped(const Hunt *h, int drop);
void hunt_pay(Hunt *h, int64_t calls);               /* work of the whole search */
bool hunt_spent(const Hunt *h);                     /* none of it is left */
Load hunt_judge(Hunt *h);                           /* the choice at hand */
bool hunt_better(const Hunt *h, const Load *a, const Load *b);      /* fits and b does not; faster; smaller if none fits */
bool hunt_take(Hunt *h, const Load *l);             /* the choice at hand becomes the best if it is better */
void hunt_copy(const Hunt *h, int *to);             /* the choice at hand, by tensor of the run, and back */
void hunt_back(Hunt *h, const int *from);
bool hunt_cheaper(Ns time, Bytes bytes, Ns than, Bytes than_bytes); /* less time a byte */

void seed_prefixes(Hunt *h);                        /* seeds.c: by price, as many as it takes; fills order */
Load seed_patterns(Hunt *h);                        /* blocks made again from what crosses between them; the choice at hand */
void seed_knapsack(Hunt *h);                        /* knapsack.c: least time for so many bytes, by that order's prices */
void hunt_items(Hunt *h, bool sent);                /* what has a choice; sent: but for what is offloaded at hand */
void send(Hunt *h);                                 /* offload_choice.c: offload first, drop the rest */
void improve(Hunt *h, Load now);                    /* improve.c: improves the choice at hand, step by step */
#endif
