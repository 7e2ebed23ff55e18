/* SPDX-License-Identifier: Apache-2.0
 *
 * rendezvous.h: lists of all devices, played together.
 */
#ifndef RENDEZVOUS_H
#define RENDEZVOUS_H
#include "plan.h"

/* The first device that waits for ever, and at which action; -1: all lists come to an end. */
int rendezvous_stops(const Plan *p, const Actions *list, int *at);
/* Steps of the longest run that can differ: of an asynchronous plan without a period, with one and with several. */
int rendezvous_steps(const Plan *p, bool eval);
/* Stages may meet behind any period (rt/overlap.c): the lists of all devices up to there. */
const Actions *rendezvous_meeting(const Plan *p, int periods);
#endif
