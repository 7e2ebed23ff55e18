/* SPDX-License-Identifier: Apache-2.0
 *
 * link.h: what a transport is.  link_local.c, link_mpi.c and cuda/link_nccl.c each implement all of it; the Makefile links
 * one of them.
 *
 * A message is known by its place: the n-th send from a stage to another meets the n-th receive of that pair.  Both
 * name tag and bytes, and a transport that sees them differ ends the job: the plan was not the same on both sides.
 */
#ifndef LINK_H
#define LINK_H
#include "job.h"

enum { LINK_SHARE = 256 };

/* launcher.c: what the launcher says of this process; alone: 0 of 1.  variable: the one that has the size; NULL: none has. */
typedef struct { int rank, size, local; const char *launcher, *variable; } Ranks;
Ranks launcher_ranks(void);

/* Before anything else.  May change the command line.  rank, by stage: which process of several does it; NULL: that of its
 * number.  NULL: said why; *status is set. */
Link *link_open(int stages, const int *rank, int *argc, char ***argv, int *status);
/* Once it is known which job this is: all processes have the same plan, and what it needs is connected.  A status. */
int link_connect(Link *l, const Job *job);
/* The stages that run in this process: first .. first+count-1. */
int link_first(const Link *l);
int link_count(const Link *l);
const char *link_name(void);
/* The host of a stage; NULL: all stages are in this process, or it is not known. */
const char *link_host(const Link *l, int stage);

/* One half of a message; returns what link_wait() wants.  Neither allocates. */
void *link_begin(Stage *st, int request, int sending, void *buffer, int peer, int tag, long bytes);
void link_wait(Stage *st, void *request);

/* Every stage gives `bytes` (at most LINK_SHARE) and gets those of all, in stage order.  Also a barrier. */
void link_share(Stage *st, const void *mine, void *all, size_t bytes);

/* The largest status of any process; the main thread of each calls it while no stage runs. */
int link_worst(Link *l, int status);
/* The orderly end, after every stage of the process has returned. */
void link_close(Link *l);
/* The end of the whole job from any thread. */
_Noreturn void link_abort(Link *l, int status);
#endif
