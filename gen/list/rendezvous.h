/* SPDX-License-Identifier: Apache-2.0
 *
 * rendezvous.h: lists of all devices, played together.
 */
#ifndef RENDEZVOUS_H
#define RENDEZVOUS_H
#include "plan.h"

/* The first device that waits for ever; at: the action where it waits.  -1: all lists come to an end. */
int rendezvous_stops(const Plan *p, const Actions *list, int *at);
/* The steps of the longest run that can differ.  Runs of an asynchronous plan have no period, one, or several. */
int rendezvous_steps(const Plan *p, bool eval);
/* The lists of all devices up to the end of a period: stages may meet behind any (rt/overlap.c). */
const Actions *rendezvous_meeting(const Plan *p, int periods);
#endif
