/* SPDX-License-Identifier: Apache-2.0
 *
 * search.h: the best plan of a model.
 */
#ifndef SEARCH_H
#define SEARCH_H
#include "options.h"

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
#endif
