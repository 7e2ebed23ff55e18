/* SPDX-License-Identifier: Apache-2.0
 *
 * candidate.h: one candidate of the search: one graph, one number of stages, one schedule, one Ask; and how far its plan is.
 */
#ifndef CANDIDATE_H
#define CANDIDATE_H
#include "passes.h"

typedef struct {
    /* the question */
    const Options *x;           /* for dumps */
    const Graph *g;
    const Cost *c;
    const Model *m;
    int stages;
    const Schedule *schedule;
    Ask ask;
    const char *key;            /* numeric_key() */
    bool report_only;           /* its planner has no answer: it is planned only to say what is missing */
    const char *note;           /* how the Ask was found; NULL: nothing to tell */
    /* the answer so far */
    Seen *seen;                 /* shared by its trials */
    Bytes *limit;               /* target limits of the plan at hand */
    Plan *first;                /* of the first round: its planner's expectation; NULL: not begun */
    Verdict why;                /* of that plan */
    Plan *best;                 /* NULL: nothing fits yet */
    Proof proof;                /* of it; without one, what the planner said */
    Ns least;                   /* proven before it was planned; 0: nobody asked */
    Plan *failed;               /* the plan that says what is missing */
    int next;                   /* the remedy at hand */
    bool stayed;                /* the last remedy was tried */
    bool done;                  /* nothing is left to try, or it was finished elsewhere */
    bool soon;                  /* the first plan that repack finds will do */
    bool grows;                 /* once it is done, list.c appends candidates that follow from its plan */
} Candidate;
typedef VEC(Candidate) Candidates;

/* Bytes of states of the model beyond the memory of all stages together, which no cut mends; 0: they have room, or nothing is
 * said, since train.shard leaves parts of them to replicas. */
Bytes states_over(const Graph *g, const Model *m, int stages);
Bytes *least_memory(const Model *m, int stages);    /* by device: a stage has the least memory that any of its replicas has */
bool better(const Plan *a, const Plan *b);          /* faster; as fast and smaller */
bool is_exact(const Candidate *k);                  /* its planner proves, and chooses the cuts */
bool is_free(const Candidate *k);                   /* ... and may: no cuts are given, and the first fit is not enough */
bool is_spent(const Candidate *k);                  /* the work of the whole search is done */
Proof below_step(Proof known, const Plan *p);       /* known of the cheapest fates, of a plan whose fates may hide better */
/* Is p, laid out in full, likely to be better than best: faster, or as fast with less alive?  Either may be NULL. */
bool promises(const Plan *p, const Plan *best);

/* Every pass once under target limits, one a stage. */
Plan *pass(const Candidate *k, const Ask *ask, const Bytes *limit, Verdict *why);
/* The same; copies to the host are priced on the safe side, so a planner without a plan is asked again under larger limits,
 * which are then the limits that packing is told of. */
Plan *pass_wide(const Candidate *k, Bytes *limit, Verdict *why);

/* A plan whose layout only had to fit, once more under the targets that it had, in full: with these cuts, or as it was asked.
 * The plan itself, if that is slower.  work: as Ask.work. */
Plan *in_full(const Options *x, Plan *p, const Ints *cuts, int64_t work);

/* Packing makes nothing faster, so the step that `exact` expects is the least.  The value of other planners, and of steps that
 * overlap, is no prediction of the step. */
bool candidate_predicts(const Candidate *k);
/* No cuts and no fates take less, whatever memory there is; INT64_MAX: there are no such lists. */
Ns candidate_least(const Candidate *k);
/* Plans the candidate once.  No better plan than `cutoff` is of use; 0: any is. */
void candidate_start(Candidate *k, Ns cutoff);
/* The least step that it may still come to; INT64_MAX: there is no hope while anything else fits. */
Ns candidate_promise(const Candidate *k);
/* With copies the bound is low, so the search cannot leave out much.  Without them it may come further. */
bool candidate_is_open(const Candidate *k);
/* The next remedy that applies; false: there is none left.  cutoff as above. */
bool candidate_refine(Candidate *k, Ns cutoff);
/* The same question with another Ask, not begun. */
Candidate candidate_with(const Candidate *k, const Ask *ask);
/* All that a planner can do alone: planned once and every remedy that asks no other. */
void candidate_finish(Candidate *k);

/* repack.c: a plan whose arenas are too large once packed is asked again, under the limits that packing leaves. */
void repack(Candidate *k);
/* A plan of `exact` that is slower than was expected, under its target limits or at all: cuts near its own. */
void polish(Candidate *k);
void polish_above(Candidate *k, Ns expected);
#endif
