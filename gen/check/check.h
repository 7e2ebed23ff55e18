/* SPDX-License-Identifier: Apache-2.0
 *
 * check.h: what the checkers of a plan share.
 */
#ifndef CHECK_H
#define CHECK_H
#include "plan.h"

/* ---- form.c: are the fields of actions, routines and calls ones that may be used as indexes? ----------------------- */
void check_moves(const Plan *p);            /* of comm: messages, counts */
bool waits_for(const Action *wait, const Action *begun);
void check_routines(const Plan *p);         /* of lower: routines, calls, ticks, handles */

/* ---- value.c ------------------------------------------------------------------------------------------------------- */
/* The values that mem.c finds in memory, and expects there.  A value is a hash of its identity:
 *
 *   tensor       (tensor, micro-batch, step)
 *   parameter    (state, updates so far); a moment, a clip factor likewise.  Forward, backward and recomputation read the
 *                version that the rule of the schedule names for the micro-batch; an update makes the next of the newest
 *                A prediction is (state, updates so far, updates further)
 *   step values  (step)
 *   gradient     (state, step, micro-batches from .. to); a fold joins two neighbours, a tie adds the later use to the earlier
 *                from another row: its sum at this point of the tree over rows, of the part that the two halve
 *   norms        (state, how many partials are in)
 *
 * Evaluations have steps of their own. */
typedef uint64_t CheckValue;
typedef struct { int from, to; } ValueChain; /* micro-batches that an accumulator holds */

CheckValue value_mix(CheckValue a, uint64_t b);
CheckValue value_tensor(int t, int mb, int step);
CheckValue value_gradient(int state, ValueChain c, int step);
CheckValue value_state(int state, int updates);
CheckValue value_predicted(int state, int updates, int ahead);
CheckValue value_norm(int state, int partials, int step);
CheckValue value_step(int step);

/* The bytes of a gradient that a row keeps behind so many levels of the tree over rows: a half of them at each, the upper one
 * if its number has that bit.  They end where a block of the norm ends, and a cache line. */
typedef struct { Bytes from, to; } Kept;
Kept value_kept(const Plan *p, int row, int state, int levels);

/* The sum of the gradients of a row; of a chunk there, when they come to a level of the tree. */
ValueChain value_row(const Plan *p, int row), value_subtree(const Plan *p, int device, int chunk, int level);
/* Is a gradient its row's part alone behind the way up (train.shard: gradients)? */
bool value_dropped(const Plan *p, int state);
/* Does a row keep its part of a parameter alone (train.shard: parameters)?  Is that what computations read a state that is
 * filled for them? */
bool value_parted(const Plan *p, int param), value_filled(const Plan *p, int state);
/* Does the row update its own part alone (train.shard)?  The parameter; -1: the operator takes all of it, or none. */
int value_cut(const Plan *p, const Op *o);
/* Without: does it add the uses of a parameter in the part that its row has summed up, before the sum goes down the tree? */
bool value_joins(const Plan *p, const Op *o);
bool value_joined(const Plan *p, int param);

const int *value_uses(const Graph *g);      /* by gradient: that of the next use of its parameter; -1: this is the last */
/* The sum over the uses of a tied parameter from this one on: use u is added to use u-1, the last first. */
CheckValue value_tied(const int *uses, int state, ValueChain c, int step);

/* ---- ranges.c ------------------------------------------------------------------------------------------------------ */
/* A map from addresses to the values that mem.c expects there.
 *
 * It is a row of pieces without gaps.  A claim cuts pieces at its ends, and no cut is ever mended: a line that is replayed
 * again claims the same ranges, so the pieces are soon all there, and nothing moves any more.  Cost: the pieces of a range; one
 * that was asked for before is found at once, any other in the logarithm of the pieces. */
typedef struct { Bytes from; CheckValue value; } Stretch; /* up to the next one */
typedef struct { VEC(Stretch) piece; int *hint; } Ranges;       /* hint: where an address was, by a hash of it */

void ranges_open(Ranges *r);        /* all addresses hold 0 */
void ranges_claim(Ranges *r, Bytes from, Bytes to, CheckValue value);   /* [from, to) holds it from now on */
Bytes ranges_differ(Ranges *r, Bytes from, Bytes to, CheckValue value); /* the first byte that does not; -1: none */
#endif
