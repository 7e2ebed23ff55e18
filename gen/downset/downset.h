/* SPDX-License-Identifier: Apache-2.0
 *
 * downset.h: stages of a directed acyclic graph that need not be runs of one order.
 */
#ifndef DOWNSET_H
#define DOWNSET_H
#include "plan.h"

/* Devices in a row.  A place is a set of devices that were used, and which one is the last. */
typedef struct {
    int device, twin;           /* the last; another one of its kind */
    int class;                  /* whose times it has */
    int used;                   /* devices; 0: none yet */
    Bytes room;                 /* for states, on the last */
    Ints before;                /* places that it follows, with one device fewer; they have smaller numbers */
} ForeignPlace;
/* at[0]: none is used; least, most: stages that are asked for */
typedef struct { VEC(ForeignPlace) at; int least, most; } ForeignPlaces;

typedef struct {                /* nodes in an order in which readers come later */
    int n, classes;
    const Ns *const *time;      /* [class][node] */
    const Bytes *states;        /* of a node, which stay where it is; NULL: they need no room */
    const Bytes *bytes;         /* of what a node makes: leaves a stage once if anybody outside reads it */
    const Ints *from, *to;      /* by node: whom it reads, who reads it */
    const Cost *wire;           /* between devices; NULL: transfers take no time */
    int ways;                   /* 2: as many bytes come back */
} Dag;
typedef struct {
    int *sequence, *last;       /* nodes by stage; position of the last node of each stage */
    int *device, stages;        /* of each stage */
    Ns value, bound;            /* longest stage or transfer; proven: no such stages have a shorter one */
    int prefixes;               /* downward-closed prefixes that were looked at, or those of an order */
    int orders;                 /* that were tried */
    bool all;                   /* these prefixes are all there are */
} ForeignChain;
typedef struct {                /* time: by class, and least of them by node; bits: by node */
    Ns *time, least;
    int size;
    uint64_t *bits;
    Bytes leaves, states;
} Prefix;
typedef VEC(Prefix) Prefixes;
#include "budgets.h"

/* All of them, the empty one first, smaller ones before larger ones; false: there are more than `most`. */
bool downset_prefixes(const Dag *d, int most, Prefixes *all);

/* Device i does stage i, of some of the first ones; room NULL: enough. */
ForeignPlaces places_row(const int *class, const Bytes *room, int least, int most);
/* Any order of any of n devices; those of one kind could change places.  None at all: they are too many. */
ForeignPlaces places_free(const int *kind, const int *class, const Bytes *room, int n, int least, int most);
Ns *places_least(const Dag *d);     /* [node]: on the class that is fastest with it */
/* What leaves the stage of one place reaches that of the other. */
Ns places_sent(const Dag *d, const ForeignPlace *from, const ForeignPlace *to, Bytes leaves);

/* None of the stages empty; most: prefixes, at most MOST_PREFIXES.  False: there are fewer nodes than stages, or the states of
 * no such stages have room. */
bool downset_chain(const Dag *d, const ForeignPlaces *p, int most, ForeignChain *c);
/* orders.c: where there are more prefixes */
bool orders_chain(const Dag *d, const ForeignPlaces *p, int64_t looks, ForeignChain *c);
#endif
