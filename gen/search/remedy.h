/* SPDX-License-Identifier: Apache-2.0
 *
 * remedy.h: rows of the table in candidate.c: what is tried where packing, or copies to the host, undid a planner's
 * expectation.
 */
#ifndef REMEDY_H
#define REMEDY_H
#include "candidate.h"

void cut_slack(Candidate *k);       /* copies get as little time as they need for the plan to fit */
void take_narrow(Candidate *k);     /* cuts that fewer values cross */
void stay_home(Candidate *k);       /* nothing is copied to the host */
void take_any(Candidate *k);        /* any plan that fits, however slow: one with room may pack */
void ask_rivals(Candidate *k);      /* the plans of other planners, laid out */
void share_limits(Candidate *k);    /* larger limits for each chunk: too much for one may be right for all */
void lay_out_others(Candidate *k);  /* cuts of which `exact` expected a little less */
#endif
