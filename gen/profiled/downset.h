/* SPDX-License-Identifier: Apache-2.0
 *
 * downset.h: stages of a directed acyclic graph that need not be runs of one order.
 */
#ifndef DOWNSET_H
#define DOWNSET_H
#include "plan.h"

typedef struct {                /* nodes in an order in which readers come later */
    int n;
    const Ns *time;
    const Bytes *bytes;         /* of what a node makes: leaves a stage once if anybody outside reads it */
    const Ints *from, *to;      /* by node: whom it reads, who reads it */
    const Cost *wire;           /* cut j is sent from device j to j + 1; NULL: transfers take no time */
} Dag;
typedef struct {
    int *sequence, *last;       /* nodes by stage; position of the last node of each stage */
    Ns value, bound;            /* longest stage or transfer; proven: no k stages have a shorter one */
    int prefixes;               /* downward-closed prefixes that were looked at, or those of an order */
    int orders;                 /* that were tried */
    bool all;                   /* these prefixes are all there are */
} ForeignChain;
#include "budgets.h"

/* Exactly k stages, none empty; most: prefixes, at most MOST_PREFIXES.  False: there are fewer nodes than stages. */
bool downset_chain(const Dag *d, int k, int most, ForeignChain *c);
void orders_chain(const Dag *d, int k, int64_t looks, ForeignChain *c);         /* orders.c: asked where there are more */
#endif
