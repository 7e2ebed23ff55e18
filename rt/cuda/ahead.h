/* SPDX-License-Identifier: Apache-2.0
 *
 * ahead.h: data that are read beside the step before, as arena.c knows of it.
 */
#ifndef AHEAD_H
#define AHEAD_H
#include "device.h"

/* Rooms for reads of at most so many bytes. */
cudaError_t ahead_open(Stage *st, size_t load);
/* Behind a step of training: the first one has made all reads that there are. */
void ahead_settle(const Stage *st);
/* The last room that was given out is on its way, and taken[] of its ring says when it has been read. */
void ahead_taken(const Stage *st);
void ahead_close(const Stage *st);
#endif
