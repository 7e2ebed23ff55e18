/* SPDX-License-Identifier: Apache-2.0
 *
 * parts.h: what the parts of the exact search share: the best plan so far, what is proven, and what is spent.
 */
#ifndef EXACT_PARTS_H
#define EXACT_PARTS_H
#include "exact.h"
#include "budgets.h"

#define NEVER INT64_MAX

typedef struct { int *last; const Price **price; Ns value; int *fate; } ExactBest;
typedef struct { Ns room; int last; } Branch;
typedef VEC(Branch) Branches;

typedef struct {
    const Question *q;
    Facts *x;
    Reach *r;
    Preview *view;
    ExactBest best;             /* value NEVER: none yet */
    Ns refuted;                 /* no plan meets this target */
    Ns closed;                  /* the same by base times alone */
    Ns least;                   /* of the cuts compared by branch and bound: no fates take less, if all that is dropped hides */
    bool proven;                /* by branch and bound: none is better than `best` */
    int64_t actions, priced, buys;      /* buys: what `priced` may reach */
    int *last;                  /* of the plan at hand */
    const Price **price;
    Price *guess;
    Branches *list;             /* by chunk: of branch and bound */
    bool many;                  /* some device has several chunks */
    const int *all;             /* by tensor: fates with all dropped that may be; NULL: there is no choice, or no step */
    Cuts *met;                  /* all plans that are better than `best`, which stays; NULL: not asked for */
    bool by_bound;              /* compare plans by bound_plan: what the tests can enumerate */
} ExactSearch;

/* Price a cut and compare it with the best; true if it is better. */
bool exact_judge(ExactSearch *s, const int *last);
/* The same with fates that are given: those of another planner may hide where the cheapest do not. */
bool exact_judge_with(ExactSearch *s, const int *last, int *fate);
bool exact_spent(const ExactSearch *s);         /* the prices of one part, or of the whole search */
void exact_improve(ExactSearch *s, int64_t actions); /* one cut at a time, or the runs between two; `actions`: its budget */
void exact_improve_more(ExactSearch *s);        /* two and three cuts in a row, if nothing is proven */
#endif
