/* SPDX-License-Identifier: Apache-2.0
 *
 * cost.h: what the files of gen/cost share.
 */
#ifndef COST_H
#define COST_H
#include "../dpgen.h"

/* roof.c: one call there, by the roofline of the device's description */
Ns roof_op(const Device *d, Type compute, const Op *o);
bool roof_alike(const Device *a, const Device *b);  /* devices that it cannot tell apart */

/* links.c: what every pair of devices, and every device and its host, is joined by */
void links_of(Cost *c, const Model *m);
void links_all(Cost *c, Wire wire);                 /* every pair alike */
Ns   link_ns(double rate, Bytes bytes);             /* rounded up, without overflow */

/* prof.c: a profile read, whole or not at all */
void profile_read(Cost *c, const Graph *g, const Model *m, const char *path);
#endif
