/* SPDX-License-Identifier: Apache-2.0
 *
 * ahead.h: data that are read beside the step before, as arena.c knows of it.
 */
#ifndef AHEAD_H
#define AHEAD_H
#include <stdbool.h>
#include "device.h"

/* Rooms for reads of at most so many bytes; of a graph they come with it. */
cudaError_t ahead_open(Stage *st, size_t load, bool graph);
/* While a step is recorded: the graph takes the last read from there. */
void ahead_room(Stage *st, unsigned char *room);
/* Behind a step of training, or its recording: it has made all reads that there are. */
void ahead_settle(const Stage *st);
/* What was given out is on its way, and an event of each room says when it has been read. */
void ahead_taken(const Stage *st);
void ahead_close(const Stage *st);
#endif
