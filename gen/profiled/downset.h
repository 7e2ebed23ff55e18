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
    int prefixes;               /* downward-closed prefixes that were looked at */
    bool all;                   /* these are all there are; else those of one order */
} ForeignChain;
#include "budgets.h"

/* Exactly k stages, none empty; most: prefixes, at most MOST_PREFIXES.  False: there are fewer nodes than stages. */
bool downset_chain(const Dag *d, int k, int most, ForeignChain *c);
#endif
