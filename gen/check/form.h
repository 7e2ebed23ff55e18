/* SPDX-License-Identifier: Apache-2.0
 *
 * form.h: are the fields of actions, routines and calls ones that may be used as indexes?
 */
#ifndef FORM_H
#define FORM_H
#include "plan.h"

void check_moves(const Plan *p);            /* of comm: messages, counts */
bool waits_for(const Action *wait, const Action *begun);
void check_routines(const Plan *p);         /* of lower: routines, calls, ticks, handles */
#endif
