/* SPDX-License-Identifier: Apache-2.0
 *
 * search.h: what the search shares: candidates, the list of them, and what is tried behind packing.
 */
#ifndef SEARCH_H
#define SEARCH_H
#include "options.h"
#include "passes.h"
#include "planner.h"

/* ---- search.c: the best plan of a model ---------------------------------------------------------------------------- */
/* micro, replicas: auto as models that leave neither open. */
void search_sizes(const Model *m, Models *all);
/* The best plan of all candidates, with its proof; NULL: there is none, and failed, NULL where there was nothing to try, says
 * what the last candidate lacks. */
Plan *search(const Options *x, const Model *m, Plan **failed);
typedef Plan *SearchOf(const Options *x, const Model *m, const Ask *ask, Plan **failed);
/* The same for one row of many: it gives up sooner while nothing fits. */
Plan *search_brief(const Options *x, const Model *m, Plan **failed);
/* The same as search(), quietly; NULL too where m is no model. */
Plan *search_quiet(const Options *x, const Model *m, Plan **failed);
/* The fastest plan that the search finds, quietly, with an Ask for every candidate; NULL too where m is no model. */
Plan *search_with(const Options *x, const Model *m, const Ask *ask, Plan **failed);
/* Is there any plan that fits?  If not, what its worst device lacks memory for.  budget: of its work and its placement. */
bool search_fits(const Options *x, const Model *m, const Ask *budget, Bytes *need);
/* The graph, lists and devices of a finished plan, planned again with other cuts or another model file; NULL: that is no plan,
 * and failed says why.  spent: the work of one question did not do, so a plan may be slower than the best. */
Plan *search_again(const Plan *p, const Model *m, const Ints *cuts, Plan **failed, bool *spent);

/* ---- candidate.c --------------------------------------------------------------------------------------------------- */
/* one candidate of the search: one graph, one number of stages, one schedule, one Ask; and how far its plan is. */
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
    Plan *failed;               /* the plan that says what is missing */
    int next;                   /* the remedy at hand */
    bool done;                  /* nothing is left to try, or it was finished elsewhere */
    bool alone;                 /* no remedy asks other planners, or for cuts far from its own */
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

/* The next of a ladder that all limits have: steps/2 to steps - 1 times a power of two. */
Bytes rung_below(Bytes limit, int steps);
Bytes largest_arena(const Plan *p);                 /* of its devices */
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

#define REMEDY(move, applies, run, ...) void run(Candidate *k);
#include "remedies.def"
void polish_above(Candidate *k, Ns expected);      /* as polish, of a plan that is slower than that */

/* ---- list.c: the search as a list of candidates, and the loop over it ---------------------------------------------- */
typedef struct {
    const Options *x;
    Ask ask;                    /* for every candidate */
    Purse *loose;               /* steps of those whose layouts only have to fit; the winner of them is laid out in full */
    Candidates all;
    bool improves;              /* the best candidate gets other lists: schedule optimal */
    int best;                   /* the candidate that has the best plan; -1: none has */
    Ns cutoff;                  /* the step of a plan found elsewhere; 0: none was */
    const char *refused;        /* why there was no candidate */
} Search;

/* Appends the candidates of one graph, number of stages and schedule. */
void list_schedule(Search *s, const Graph *g, const Cost *c, const Model *m, int stages, const Schedule *k);
/* Plans each candidate once, then refines them in order of promise, until none can become better than the best. */
void search_all(Search *s);
Plan *search_best(const Search *s);                 /* with its proof; NULL: there is none */
Plan *search_failed(const Search *s);               /* of the last candidate without a plan; NULL: each has one */
bool wins(const Plan *a, const Plan *b);             /* better; an idle device wins only by what is worth one */
Ns with_idle(const Plan *p);                        /* a step that may be this much longer without an idle device */
Ns search_least(const Search *s);                   /* proven: no plan of these candidates takes less */

/* device_order.c: the best plan of one graph, number of stages and schedule under every order of the devices; as one candidate
 * that is finished. */
void search_orders(Search *s, const Graph *g, const Model *m, const Cost *c, int stages, const Schedule *k);

/* ---- arrange.c: which device does which stage, where devices.order is free ----------------------------------------- */
typedef struct {                /* devices of one kind could change places and no plan would notice */
    int n;                      /* kinds */
    int devices;
    int *of;                    /* by device: its kind */
    int *count, *first;         /* by kind: its devices; one of them */
} Kinds;
Kinds kinds_of(const Model *m, const Cost *c);

typedef struct { int *device; Ns least; } DeviceOrder; /* by stage; no plan of it has a shorter step */
typedef VEC(DeviceOrder) Orders;
/* Every different order of so many devices, the given one first; false: there are more than `most`, and these are some. */
bool orders_all(const Kinds *k, int stages, int most, Orders *all);
/* Those of a few that come from `order` by exchanging two stages, or a stage and a device left out. */
void orders_near(const Kinds *k, int stages, const int *order, Orders *all);

/* The longest stage of a micro-batch is never shorter than this, in any order, under any cut: by base times and by states,
 * which must fit; INT64_MAX: they never do; 0: there are too many kinds to say.  order, by stage: one that comes so near. */
Ns orders_longest(const Kinds *k, const Plan *p, const char *cut, int *order);
/* What this order's step takes at least; contiguous: one run a stage, as its list has it. */
Ns order_least(const Question *q, bool contiguous);

/* ---- buckets.c: exchanges of replicas that begin while backward goes on -------------------------------------------- */
/* The best plan of a candidate once more, with pieces, if that could beat a step; 0: its own.  True: it has another plan. */
bool buckets_try(Candidate *k, Ns best);
/* What a plan with pieces says of itself. */
void buckets_note(const Plan *p, Proof *proof);

/* ---- offers.c: rows of schedules.def and numbers of devices of a stage, tried beside the plan at hand -------------- */
/* The best of all rows, from the best plan of gpipe and 1f1b on: that plan, if no row has a better one.  best, NULL: one of all
 * candidates that were listed, found soon.  NULL: these have none.  left, NULL: none: rows that had no work, or too little. */
Plan *offer_rows(const Search *s, Plan *best, const char **left);
/* The plan of a row in full: the row is asked again, alone, if its part of the work was not enough. */
Plan *offer_full(const Search *s, Plan *p, int64_t work, bool unseeded);
/* The plan of the stages, and devices of each, that have the shortest step.  Its note tells what other numbers come to.
 * `each` searches one in full: the first of them, and the best.  `last`, NULL: nothing, is asked where none has a plan. */
Plan *offer_degrees(SearchOf *each, SearchOf *last, const Options *x, const Model *m, const Ask *ask, Plan **failed);

/* ---- least.c: the plan of least bytes ------------------------------------------------------------------------------ */
/* The least --limit under which a plan was found; 0: none was.  It does not depend on the memory of m's devices. */
Bytes least_limit(const Options *x, const Model *m);
/* The plan of least bytes if it fits m's devices; NULL: it does not.  Unequal devices keep the proportions of their memory.
 * least: as Shortfall.least. */
Plan *least_plan(const Options *x, const Model *m, Bytes *least);

/* ---- shorter.c: a step of very many micro-batches, searched as a shorter one --------------------------------------- */
/* The same model with as many micro-batches as its search needs, or so many times as many; m itself, where that is nearly all
 * of them.  spare: that part of each memory is left free; 0: none. */
const Model *shorter(const Options *x, const Model *m, int times, int spare);
/* Does each chunk hold as many micro-batches at once in the longer step, of so many more a replica? */
bool shorter_is_alike(const Graph *g, const Cost *c, const Model *m, int64_t more, int stages, const Schedule *k);
/* The plan of the shorter step as one of `full`; NULL: it does not fit, and the longer step has to be searched. */
Plan *lengthened(const Options *x, const Model *full, const Plan *p);
#endif
