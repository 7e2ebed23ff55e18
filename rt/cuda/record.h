/* SPDX-License-Identifier: Apache-2.0
 *
 * record.h: a step as one graph, as arena.c and link_nccl.c know of it.
 */
#ifndef RECORD_H
#define RECORD_H
#include <stdbool.h>
#include "device.h"
#include "job.h"

/* DPGEN_GRAPH */
bool record_wanted(void);
/* Do values for which hosts need not wait go over sockets?  Not in a graph, as far as the queues of a GPU go. */
bool record_lines(const Job *job);
/* Where the host puts what a recorded step loads: a place for each load. */
unsigned char *record_room(Stage *st, size_t n);
void record_launch(Stage *st);
/* A communicator ends when the graphs that use it are gone. */
void record_close(const Stage *st);
#endif
