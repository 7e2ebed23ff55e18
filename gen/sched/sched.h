/* SPDX-License-Identifier: Apache-2.0
 *
 * sched.h: the parts that the schedules share.  A schedule puts K_F and K_B (or K_I and K_W) of (chunk, micro-batch) on the
 * devices of home.  It returns 0, or nonzero if it cannot be made; order.c adds the rest.  It sees one replica:
 * plan_stages() devices, plan_micro() micro-batches.
 */
#ifndef SCHED_H
#define SCHED_H
#include "plan.h"

Action *sched_put(Plan *p, int device, ActionKind kind, int chunk, int mb);
void sched_any_map(Plan *p, bool flush);        /* slots.c; flush: GPipe's form */
void sched_replicate(Plan *p);
int sched_widths(Plan *p);                      /* widths.c: the lists of all devices, where plan.widths says how many */
/* What fills the rooms of a chunk (plan_room) on a device, at the end of a list. */
void sched_room(const Plan *p, int device, Actions *list, int chunk);
void sched_slack(Plan *p);
int sched_group(const Schedule *k, const Model *m, int stages, int micro);     /* plan.group, or that of the row */
/* beats.c: of a row of the model file, as order_refuses() */
const char *sched_own_refuses(const Graph *g, const Model *m, const Schedule *s, int devices);
#define SCHEDULE(word, make, ...) int make(Plan *p);
#define LATER(word)
#include "schedules.def"
#undef SCHEDULE
#undef LATER

/* async.c: one device of an asynchronous list.  warm: micro-batches in flight; hold: micro-batches between the last backward
 * of a step and its update; overlap: see order_overlap(). */
typedef struct { int warm, hold, overlap; } SchedPace;
void sched_async(Plan *p, int device, SchedPace pace);
#endif
