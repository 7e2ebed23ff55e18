/* SPDX-License-Identifier: Apache-2.0
 *
 * key.h: the numeric key.
 */
#ifndef KEY_H
#define KEY_H
#include "plan.h"

const char *model_hash(const Graph *g);             /* of parameters and forward calls, not of train or plan */
/* Everything that the bits of a run follow from, as text; for Plan.key. */
const char *numeric_key(const Graph *g, const Model *m, const Cost *c);
const char *numeric_bits(const char *key);          /* without the algorithms of a profile */
#endif
