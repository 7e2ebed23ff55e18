/* SPDX-License-Identifier: Apache-2.0
 *
 * link_local.c: all stages in one process, a thread each.
 *
 * Messages are those of meet.c.  Requests are a table [stage][number], so nothing is allocated after link_open().
 *
 * A launcher of ranks that starts this program several times gets as many whole trainings on the same files.  That is refused.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "link.h"
#include "meet.h"
#include "run.h"

struct Link {
    int stages;
    Meet meet;
    void *room;                 /* of its tables */
    pthread_mutex_t lock;       /* of what follows: link_share() */
    pthread_cond_t all;
    int arrived;
    uint64_t round;
    char *board;                /* [round & 1][stage][LINK_SHARE] */
};

static bool one_rank(void)
{
    Ranks r = launcher_ranks();
    if (r.size > 1 && r.rank == 0)      /* the others end as well: one of them says why */
        complain(STATUS_USAGE, "%s is %d, but all stages of this job run in one process (transport local), so that each rank "
                 "would train on its own; start it without mpirun and srun, or generate it with plan.transport: mpi",
                 r.variable, r.size);
    return r.size <= 1;
}

Link *link_open(int stages, const int *rank, int *argc, char ***argv, int *status)
{
    (void)rank;
    (void)argc, (void)argv;
    if (!one_rank()) {
        *status = STATUS_USAGE;
        return NULL;
    }
    Link *l = calloc(1, sizeof *l);
    if (l) {
        l->room = aligned_alloc(64, meet_bytes(stages, ALL_REQUESTS));
        l->board = calloc(2 * (size_t)stages, LINK_SHARE);
    }
    if (!l || !l->room || !l->board || !meet_open(&l->meet, l->room, stages, ALL_REQUESTS)) {
        *status = complain(STATUS_RUN, "no memory for the transport");
        return NULL;
    }
    l->stages = stages;
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->all, NULL);
    return l;
}

int link_connect(Link *l, const Job *job)
{
    (void)l, (void)job;
    return DONE;
}

int link_first(const Link *l)
{
    (void)l;
    return 0;
}

int link_count(const Link *l)
{
    return l->stages;
}

const char *link_name(void)
{
    return "local";
}

const char *link_host(const Link *l, int stage)
{
    (void)l, (void)stage;
    return NULL;
}

void *link_begin(Stage *st, int request, int sending, void *buffer, int peer, int tag, long bytes)
{
    return meet_begin(&st->link->meet, st, request, sending, buffer, peer, tag, bytes);
}

void link_wait(Stage *st, void *request)
{
    meet_wait(&st->link->meet, st, request);
}

/* Two boards are enough: nobody can be more than one round ahead of the slowest, who may still be reading. */
void link_share(Stage *st, const void *mine, void *all, size_t bytes)
{
    Link *l = st->link;
    pthread_mutex_lock(&l->lock);
    uint64_t round = l->round;
    char *board = l->board + (round & 1) * (size_t)l->stages * LINK_SHARE;
    memcpy(board + (size_t)st->index * LINK_SHARE, mine, bytes);
    if (++l->arrived == l->stages) {
        l->arrived = 0;
        l->round++;
        pthread_cond_broadcast(&l->all);
    }
    while (l->round == round)
        pthread_cond_wait(&l->all, &l->lock);
    pthread_mutex_unlock(&l->lock);
    for (int i = 0; i < l->stages; i++)
        memcpy((char *)all + (size_t)i * bytes, board + (size_t)i * LINK_SHARE, bytes);
}

int link_worst(Link *l, int status)
{
    (void)l;
    return status;
}

void link_close(Link *l)
{
    meet_close(&l->meet);
    free(l->room);
    free(l->board);
    free(l);
}

void link_abort(Link *l, int status)
{
    (void)l;
    _exit(status);
}
