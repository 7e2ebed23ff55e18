/* SPDX-License-Identifier: Apache-2.0
 *
 * source.h: what the files of gen/cost share.
 */
#ifndef SOURCE_H
#define SOURCE_H
#include "cost.h"

/* roof.c: one call there, by the roofline of the device's description; but for bytes that it need not read, and with so many
 * launches for so many calls */
Ns roof_op(const Device *d, Type compute, const Op *o, Bytes less, int launches, int calls);
Mover roof_mover(const Device *d, Type compute);    /* for actions that call no kernel of the model */
bool roof_alike(const Device *a, const Device *b);  /* devices that it cannot tell apart */

/* links.c: what every pair of devices, and every device and its host, is joined by */
void links_of(Cost *c, const Model *m);
void links_measured(Cost *c, const Curve *message, Ns latency, const Curve *copy);  /* every pair alike; NULL: not measured */

/* Two devices of a stage, at that level of its tree, send each other so many bytes in so many messages. */
Ns links_swap(const Cost *c, int device, int level, Bytes bytes, int64_t messages);
bool links_alike(const Cost *c, int a, int b);      /* within the two stages */

/* team.c: what calls send to other devices of their stage, on a device of each class */
void team_sums(Cost *c, const Graph *g, const Model *m, const Ints *first);

/* pairs.c: all calls on a device of that class; loss: its gradient stands right behind it */
void estimate(Cost *c, const Graph *g, const Device *d, int class, bool loss);

/* lookup.c: the rows of a profile */
void priced(Cost *c, Cost *busy, const Graph *g, const Model *m, Profile *f);
#endif
