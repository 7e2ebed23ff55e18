/* SPDX-License-Identifier: Apache-2.0
 *
 * search.h: the best plan of a model.
 */
#ifndef SEARCH_H
#define SEARCH_H
#include "options.h"

enum { ROUNDS = 4 };            /* of feeding back what packing adds, and what is measured */

/* The best plan of all candidates; NULL: there is none, and failed says how far the last one came. */
Plan *search(const Options *x, const Model *m, Plan **failed);
/* The same, quietly, as views call it back with their Options; NULL too where m is no model. */
Plan *plan_of(void *options, const Model *m, Plan **failed);
/* As nofit() calls it back: would this variant of the model fit?  If not, what it would need. */
bool would_fit(void *options, const Model *m, Bytes *need);
#endif
