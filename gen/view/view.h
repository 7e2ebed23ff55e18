/* SPDX-License-Identifier: Apache-2.0
 *
 * view.h: a finished plan, told to a person: `dpgen plan`, `dpgen explain`, `dpgen compare`, `dpgen
 * schedules`.
 *
 * Views answer "and if not?" by planning again with a change.
 */
#ifndef VIEW_H
#define VIEW_H
#include "search/search.h"
#include "emit/emit.h"
#include "rt/json.h"

/* What one device does and holds. */
typedef struct {
    int ops;                    /* forward operators */
    int flight;                 /* micro-batches, over all its chunks */
    Ns forward, backward, again;        /* one micro-batch of each chunk; backward without what is made again */
    Ns idle;                    /* of a step */
    int kept, dropped, moved;   /* tensors that backward reads */
    Bytes dropped_bytes, moved_bytes;   /* of one micro-batch */
    Bytes at_peak[H_KINDS];     /* alive at the call where most is: their sum is the lower bound of the arena */
} StageSum;
StageSum view_stage(const Plan *p, int device);
const char *holdings_text(const Bytes *at);         /* by kind, a blank in front of each */
static inline double ms(Ns ns) { return (double)ns / 1e6; }

/* What a device has beside its arena and workspace: its bytes, and whose they are.  plan.c */
Bytes view_beside(const Plan *p, int device, const char **what);
const char *view_width(const Model *m, int n);      /* 4 devices; 4 stages of 2 devices.  plan.c */
void view_plan(FILE *f, const Plan *p);                                 /* plan.c */
void view_table(FILE *f, const Plan *p);                                /* the same, a line a stage */
void view_one(FILE *f, const Plan *p, int device);                      /* one stage of it */
/* The step, were cut i after operator `at` and all others as they are: by how much it changes, or why there is none.  plan.c */
const char *view_moved(const Plan *p, const Ints *cuts, int i, int at);
/* What the neighbours of the cut after operator `at` would cost; nothing where no cut is there.  plan.c */
void view_cut(FILE *f, const Plan *p, int at);
/* Values on the slowest link that would gain by a line Round.  rounds.c */
void view_rounds(FILE *f, const Plan *p);
int  view_compare(const Options *x, const Model *m);     /* compare.c; a status */
int  view_widths(const Options *x, const Model *m);      /* widths.c: plan and compare, of stages with widths; a status */
void graph_totals(FILE *f, const Graph *g);         /* totals.c */
void team_totals(FILE *f, const Model *m, const Graph *g);          /* of the graph of one device of several */
int  view_schedules(const Options *x, const Model *m);   /* schedules.c; a status */
int  view_schedule_csv(const Options *x, const Model *m, const Schedule *k);     /* its table; schedule_csv.c; a status */
/* What is called so, or with `next` the place between two operators.  explain.c; a status */
int  view_explain(FILE *f, const Plan *p, const char *what, const char *next);

/* ---- events.c: what a job has written, read back: its trace and its log.  JSON through the reader of rt/json.c ----- */
bool json_number(Json *j, double *x);               /* any number; null: not a number */
/* Status 3 at the place of the reader's first error, if there is one. */
void json_stop(const Json *j, const char *path, size_t n, const char *remedy);

/* measured.c: `dpgen report`; the name of what it wrote */
const char *report_measured(const char *dir, const char *trace, const char *out);
/* metrics.c: `dpgen metrics` */
const char *metrics_tensorboard(const char *log, const char *dir);
/* tfevents.c */
void tf_begin(FILE *f, double time);                            /* the version, first record of a file */
void tf_start(FILE *f, double time, int64_t step);              /* a run starts there: what was from that step on is void */
void tf_scalar(FILE *f, double time, int64_t step, const char *tag, double value);

/* ---- nofit.c: the answer when no plan fits ---- */
/* failed: the last plan tried, NULL if there was none to try.  Ends with status 4. */
void nofit(const Options *x, const Plan *failed) NORETURN;
/* By how many bytes it does not fit the device that lacks most; device is -1 where no device does, but a host or a cut. */
Bytes nofit_lacks(const Plan *failed, int *device);
#endif
