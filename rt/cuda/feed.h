/* SPDX-License-Identifier: Apache-2.0
 *
 * feed.h: the host's part of a step on a GPU: feed.c has it; arena.c, ahead.c, record.c and ranges.c carry it out.
 */
#ifndef FEED_H
#define FEED_H
#include "data.h"

int ranges_open(Worker *w);                             /* ranges.c */
static inline size_t values_bytes(const Job *job) { return (size_t)(1 + job->param_groups) * sizeof(Values); }

/* In order with the computation of the step: where the host may write what goes to the arena, and that it has.  arena_post()
 * takes any memory of the host, and has read it when it returns.  bytes: the numbers of n bytes belong there; NULL: what is in
 * the room does. */
void *arena_room(Stage *st, size_t n);
void arena_post(Stage *st, void *at, const void *from, size_t n, const ByteInfo *bytes);
/* The host's part of a step of training beside queueing: its begin and end, counts, loads.  Each tells how to do it again:
 * a GPU that has the step as one graph wants no more than that of each further step. */
typedef struct Chore {
    void (*again)(Stage *st, const struct Chore *c);
    void *to;
    Values *vals;
    int input, number, count;
    long bytes;
} Chore;
void arena_chore(Stage *st, Chore c);
/* What a read has to give, where it was made before it was asked for: where that lies, as arena_post() takes it; else NULL. */
void *arena_ahead(Stage *st, const Values *now, const Read *r);
/* The host's copy of the step's values; filled by step_begin(), and from the arena when the step's computation is over. */
Values *arena_values(Stage *st, Values *vals);
void arena_settle(Stage *st, Values *vals);
#endif
