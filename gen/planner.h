/* SPDX-License-Identifier: Apache-2.0
 *
 * planner.h: what a planner is asked and what it answers.  A planner is a row of planners.def and one file of rivals/.  It
 * sees positions, prices and limits; constraints of the model file are already in `cut`, and part.c turns
 * the answer into a Plan.
 */
#ifndef PLANNER_H
#define PLANNER_H
#include "fates/fates.h"
#include "downset/widths.h"

enum { CUT_NEVER, CUT_MAY, CUT_MUST };

typedef struct Planner Planner;
typedef struct {
    const Plan *p;              /* graph, costs, model, ordered lists and home; no chunk yet */
    Prices *prices;
    int n, chunks;              /* forward operators; chunks of all devices */
    const char *cut;            /* after operator i; n-1 is CUT_MUST */
    const int *flight;          /* by chunk: micro-batches in flight */
    const Bytes *limit;         /* by device */
    const Bytes *share;         /* by chunk: of its device's limit, what it may need by its prices */
    const char *objective;      /* "step": the simulated time of a step; "bottleneck": the longest chunk or transfer;
                                   "bound": the bound of the plan, which the tests can enumerate */
    Ns below;                   /* a longer step is of no use: `exact` may stop once that is all there is; 0: any is */
    bool unseeded;              /* `exact` need not prove its plan, nor look at the answers of others if it has one */
    const int *like;            /* last operators of cuts that `exact` begins with; NULL: none are known */
    const Planner *seeds;       /* the table of planners: `exact` begins with the answers of some; NULL: of none */
} Question;

typedef struct {
    int *last;                  /* last operator of each chunk; the planner makes the array */
    int *fate;                  /* by tensor: its own choice, priced by price_with; NULL: price_best of each chunk */
    Ns value;                   /* of the planner's own objective */
    Ns bound;                   /* proven: no plan of its space has a shorter step; 0: it proves nothing.  Without a plan:
                                   there is none below */
    bool proven;                /* by its own prediction none of its space is faster, whatever the bound; one replica */
    const char *note;           /* what the reader of the plan must know of how it was found; NULL: nothing */
} Answer;

/* order: the devices, first stage first.  rate[a * n + b]: of the link between two, both ways. */
typedef void Orderer(const int64_t *rate, int n, int *order);
Orderer spp_order;
/* Copies of each stage that a planner would have, for `least` to q->chunks stages.  The question has no prices. */
typedef void Copier(const Question *q, int least, WidthLists *all);
Copier dapple_copies, pipedream_copies, spp_copies;

typedef bool WidthPlanner(const Widths *w, WidthPlan *plan);
WidthPlanner widths_piper, widths_pipedream, widths_dapple, widths_spp;

struct Planner {
    const char *name;
    bool (*plan)(const Question *q, Answer *a);     /* false: it has no plan (for `exact`: there is none) */
    const char *space;          /* what it chooses among, in words */
    const char *source;         /* authors, year, title */
    int seed;                   /* `exact` begins with its answer for graphs of up to so many operators; 0: it does not */
    int rival;                  /* up to so many, its whole plan is made beside that of `exact` where that takes longer than
                                   predicted; 0: it is not */
    bool complete;              /* if it finds no plan, there is none */
    bool oracle;                /* it enumerates: for small graphs, and compared only where it is asked for */
    bool blind;                 /* it looks at no limit: asked again under others, it has the same answer */
    bool map;                   /* it chooses the chunks of each device too */
    bool layout;                /* it chooses depth, width and micro-batch too */
    WidthPlanner *widths;       /* it plans stages with widths of graphs of other systems; NULL: it does not */
    Copier *copies;             /* it chooses them, where plan.widths leaves them open; NULL: it is asked for each list */
    Orderer *orderer;           /* it orders the devices too, where that is free; NULL: it is asked for each order */
};
/* What a planner is asked of a plan that has its lists, without prices: part.c. */
Question part_question(const Plan *p, const Bytes *limit);
const Plan *part_row(const Plan *p);                /* of several copies of the model the first, as a planner sees it */
extern const Planner planners[];                    /* planners.c; ends with a NULL name; the first is the default */
const char *planner_space(const Planner *k, const Plan *p);      /* the plans it chooses from, less what was given */
extern const char lists_space[];                   /* of a bound over lists */
bool planner_says(const char *space, int chunks);   /* is it what some planner may say of some model of so many chunks? */
const Planner *planner_named(const char *name);     /* of several variants without one the first */

Ns exact_least(const Question *q);                 /* proven by floors of prices: no plan has a shorter step */
bool exact_any(const Question *q, Answer *a);       /* some plan that fits, soon */
/* Cuts whose plans are predicted to take less than that, each chunk under all of its device's memory, the fastest first; false:
 * there may be more of them than the budget of branch and bound meets. */
typedef struct { int *last; Ns value; bool slow; } Cut;         /* slow: laid out once, and no use */
typedef VEC(Cut) Cuts;
bool exact_below(const Question *q, Ns below, Cuts *all);
Ns part_least(const Plan *p, const Bytes *limit);   /* exact_least of a plan that has its lists */
bool part_below(const Plan *p, const Bytes *limit, Ns below, Cuts *all);    /* of a plan that has its lists */
#define PLANNER(word, make, ...) bool make(const Question *q, Answer *a);
#include "planners.def"
#endif
