/* SPDX-License-Identifier: Apache-2.0
 *
 * version.h: several copies of weights, gradient sums, step values and tensors where steps overlap, and the one in use.
 */
#ifndef VERSION_H
#define VERSION_H
#include "plan.h"

/* list/version.c, in this order: states with older versions kept, and those of them that are copied before the update; slots of
 * a pool that no life counts, 0: another pool; the slot that an action uses there; steps until a device's slots repeat. */
void version_ties(const Plan *p);                   /* after part: stops where a tied parameter is used on two devices */
bool version_kept(const Plan *p, int state);
bool version_copied(const Plan *p, int state, int chunk);
int  version_slots(const Plan *p, const Pool *x);
int  version_slot(const Plan *p, const Pool *x, const Action *k);
const char *version_rule(const Plan *p);            /* "": synchronous; "2bw"; "pipedream cuts 12,25"; "vertical 4" */
int  version_phases(const Plan *p, int device);
int  version_values(const Plan *p, int device, const Action *k);    /* slot of the step values of its step; 0: there is one */
void version_resolve(const Plan *p, Action *k);     /* slot and slots, into and group: those of the step and version it has */
#endif
