/* SPDX-License-Identifier: Apache-2.0
 *
 * compare.h: what `dpgen compare` found: compare.c plans and prints it, compare_page.c shows it in a browser.  schedules.c
 * has the same outcome for `dpgen schedules`.
 */
#ifndef COMPARE_H
#define COMPARE_H
#include "view.h"
#include "view/largest.h"

typedef struct {                /* what a plan comes to */
    bool fits;
    Ns step, bound;
    double rate;                /* samples/s */
    Bytes arena, dropped, moved;        /* largest; of one micro-batch, all devices */
    Bytes *arenas;              /* by device */
    const Model *m;             /* with its devices in the order of the plan */
    int devices, stages;
    int replicas, tensor;       /* devices of a stage */
    const char *widths;         /* copies of each stage, where they differ; NULL: they do not */
    int64_t batch, micro;       /* samples in a micro-batch, micro-batches in a step */
    const char *schedule;       /* schedule and warm-up */
    const char *how;            /* its times: estimated, measured */
    const char *why;            /* where it does not fit */
    const char *note;           /* how it was found; NULL: nothing to say */
} Outcome;
Outcome view_outcome(const Plan *p, const Plan *failed);        /* p NULL: none was found, and failed, if not NULL, says why */

typedef struct {
    const Planner *planner;
    Outcome here;               /* at the model's own micro-batch */
    double seconds;             /* of planning that */
    Largest most;
} CompareEntry;

typedef struct {
    const Options *x;
    const Model *m;
    const char *schedule;
    int64_t micro;              /* micro-batches in a step */
    bool quick;                 /* no b*: as asked, or because the graph is of one micro-batch size */
    VEC(CompareEntry) entry;    /* in the order of the table; to be shown, by step */
    Outcome first;              /* of the first in the table: of `exact`, unless others were asked for */
    Ns bound;                   /* the best proven bound of a step: that of `exact` */
    const Planner *planner;     /* of the row at hand */
} Compare;

bool *compare_planners(const char *list);                        /* of --planners: those of the table that are asked for */
const char *compare_gap(const Compare *c, const CompareEntry *r); /* above the bound; "-" where that is of other plans */
double compare_rate(Ns ns);                                     /* samples/s from ns of a thousand */
const char *compare_choice(const Compare *c, const CompareEntry *r, int64_t batch);
const char *compare_times(const Compare *c);                    /* estimated, measured */
void compare_page(const Compare *c, int64_t batch, const char *path);
#endif
