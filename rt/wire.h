/* SPDX-License-Identifier: Apache-2.0
 *
 * wire.h: messages between processes over MPI, for the program (link_mpi.c) and for the library.
 *
 * A half of a message is MPI_Isend or MPI_Irecv with a fixed peer and tag, no wildcard.  Waiting polls with MPI_Test and gives
 * the processor away in between, so ranks may share a core.  Every return code is looked at.  MPI itself checks tags and
 * sizes: a longer message is an error, a shorter one is seen in its count, and another tag never arrives.
 */
#ifndef WIRE_H
#define WIRE_H
#include <mpi.h>
#include <limits.h>
#include <sched.h>
#include "meet.h"

enum { WIRE_BLOCK = 4096, WIRE_SPINS = 1000 };

typedef struct { MPI_Request request; int sending, peer, tag; long bytes; } WireHalf;
typedef struct {
    int rank;                   /* in `all`: the stage */
    MPI_Comm all;
    MPI_Datatype block;         /* for messages of 2 GiB and more */
    WireHalf half[ALL_REQUESTS];
} Wire;

/* Of whoever includes it: between two looks at a message. */
void wire_look(Stage *st);

static inline void wire_check(Stage *st, const Wire *w, int code, const char *what)
{
    char text[MPI_MAX_ERROR_STRING];
    int n = 0;
    if (code == MPI_SUCCESS)
        return;
    if (MPI_Error_string(code, text, &n) != MPI_SUCCESS)
        text[0] = 0;
    stage_fail(st, "rank %lld: %s: %s", (long long)w->rank, what, text);
}

/* Messages beyond INT_MAX bytes travel in blocks. */
static inline int wire_units(Stage *st, const Wire *w, long bytes, MPI_Datatype *type)
{
    bool large = bytes > INT_MAX;
    *type = large ? w->block : MPI_BYTE;
    if (large && (bytes % WIRE_BLOCK || bytes / WIRE_BLOCK > INT_MAX))
        stage_fail(st, "a message of %lld bytes: more than 2 GiB, and not a multiple of %lld", (long long)bytes,
                   (long long)WIRE_BLOCK);
    return (int)(large ? bytes / WIRE_BLOCK : bytes);
}

static inline void *wire_begin(Wire *w, Stage *st, int request, int sending, void *buffer, int peer, int tag, long bytes)
{
    WireHalf *h = &w->half[request];
    MPI_Datatype type;
    int n = wire_units(st, w, bytes, &type);
    *h = (WireHalf){MPI_REQUEST_NULL, sending, peer, tag, bytes};
    if (sending)
        wire_check(st, w, MPI_Isend(buffer, n, type, peer, tag, w->all, &h->request), "MPI_Isend");
    else
        wire_check(st, w, MPI_Irecv(buffer, n, type, peer, tag, w->all, &h->request), "MPI_Irecv");
    return h;
}

static inline void wire_poll(Stage *st, const Wire *w, MPI_Request *request, MPI_Status *status, const char *what)
{
    int done = 0;
    for (long spins = 0; !done; spins++) {
        wire_check(st, w, MPI_Test(request, &done, status), what);
        wire_look(st);
        if (!done && spins > WIRE_SPINS)
            sched_yield();
    }
}

static inline void wire_wait(Wire *w, Stage *st, void *half)
{
    WireHalf *h = half;
    MPI_Datatype type;
    MPI_Status status;
    int n = wire_units(st, w, h->bytes, &type), got = n;
    wire_poll(st, w, &h->request, &status, h->sending ? "a send failed" : "a receive failed");
    if (!h->sending)
        wire_check(st, w, MPI_Get_count(&status, type, &got), "MPI_Get_count");
    if (got != n)
        stage_fail(st, "stage %lld expects tag %lld, %lld bytes from stage %lld, but gets fewer; the stages are not of one "
                   "plan", (long long)w->rank, (long long)h->tag, (long long)h->bytes, (long long)h->peer);
}

/* Every rank gives `bytes` and gets those of all, in the order of stages. */
static inline void wire_share(Wire *w, Stage *st, const void *mine, void *all, size_t bytes)
{
    MPI_Request request;
    MPI_Status status;
    int n = (int)bytes;
    wire_check(st, w, MPI_Iallgather(mine, n, MPI_BYTE, all, n, MPI_BYTE, w->all, &request), "MPI_Iallgather");
    wire_poll(st, w, &request, &status, "an exchange between all stages failed");
}

/* What all ranks have alike: messages are bytes that nobody turns, and the plan says what they are. */
typedef struct { int one; char plan[64]; } WireCard;        /* one: 1, as this machine writes it */
static inline WireCard wire_card(const char *plan)
{
    WireCard card = {.one = 1};
    for (int i = 0; i < (int)sizeof card.plan && plan[i]; i++)
        card.plan[i] = plan[i];
    return card;
}

/* The stage that a rank does; of: by stage its rank, NULL: its own number. */
static inline int wire_stage(int rank, int stages, const int *of)
{
    int stage = 0;
    while (of && stage < stages - 1 && of[stage] != rank)
        stage++;
    return of ? stage : rank;
}
#endif
