/* SPDX-License-Identifier: Apache-2.0
 *
 * ranks.c: a job of several stages over MPI, a stage a process of the caller's program.
 *
 * The program owns MPI.  It begins and ends it, and gives a communicator.  The library makes one of its own from that, so no
 * message of the program, wildcards included, can meet one of the job, and errors there come back as codes: those of the
 * program's communicator stay the program's.  Calls to MPI come from the thread that calls the job, so MPI_THREAD_SINGLE is
 * enough.
 *
 * PETSc, hypre and SuperLU_DIST take a communicator too.  What their users ask is why a library that was opened on some ranks
 * alone hangs, why the ranks of a failed call do not agree, and why it aborts.  So whatever may be refused is refused by all
 * ranks: they agree before each call, which costs a reduction of two integers, and the rank and its text are told to all.
 *
 * Not handled: a message that fails.  MPI does not say what is left then, so the job takes no call but NAME_close().
 */
#include <setjmp.h>
#include "inside.h"
#include "link.h"
#include "meet.h"
#include "wire.h"

enum { SPREAD = 1 << 30 };      /* bytes of a broadcast */

typedef struct {
    Wire wire;
    bool dead;                  /* a message has failed */
    Tally board[JOB_STAGES];
} Crew;

CREW_FITS();

static Crew *crew_of(library_job *j) { return crew_room(j); }

/* ---- what messages ask for --------------------------------------------------------------------------------------------- */

void wire_look(Stage *st)
{
    (void)st;
}

void *link_begin(Stage *st, int request, int sending, void *buffer, int peer, int tag, long bytes)
{
    return wire_begin(&crew_of(worker_of(st)->job)->wire, st, request, sending, buffer, peer, tag, bytes);
}

void link_wait(Stage *st, void *request)
{
    wire_wait(&crew_of(worker_of(st)->job)->wire, st, request);
}

void stage_waits(Stage *st, int who)
{
    (void)st, (void)who;
}

void stage_fail(Stage *st, const char *form, ...)
{
    library_job *j = worker_of(st)->job;
    va_list given;
    va_start(given, form);
    job_text(j->why, form, given);
    va_end(given);
    crew_of(j)->dead = true;
    longjmp(*(jmp_buf *)worker_of(st)->out, 1);
}

void crew_tell(Worker *w, const char *action)
{
    w->job->told(w->job->with, w->stage.index, action);
}

bool crew_run(library_job *j, bool eval)
{
    Worker *w = &j->worker[j->first];
    Crew *c = crew_of(j);
    jmp_buf out;
    w->out = &out;
    if (setjmp(out))
        return false;
    (eval ? w->info.eval : w->info.step)(&w->stage);
    job_count(w);
    wire_share(&c->wire, &w->stage, &w->tally, c->board, sizeof w->tally);
    for (int i = 0; i < JOB_STAGES; i++)
        j->worker[i].tally = c->board[i];
    return true;
}

/* ---- what all ranks do together ---------------------------------------------------------------------------------------- */

typedef struct { int status, rank; } Worst;

/* The largest status of all ranks and who has it; `text` becomes the text of that rank.  status -1: messages fail. */
static Worst worst_of(MPI_Comm all, int rank, int status, char text[LIBRARY_TEXT])
{
    Worst mine = {status, rank}, worst = mine;
    int code = MPI_Allreduce(&mine, &worst, 1, MPI_2INT, MPI_MAXLOC, all);
    if (code == MPI_SUCCESS && worst.status)
        code = MPI_Bcast(text, LIBRARY_TEXT, MPI_CHAR, worst.rank, all);
    return code == MPI_SUCCESS ? worst : (Worst){-1, rank};
}

static int lose(library_job *j)
{
    crew_of(j)->dead = j->lost = true;
    return job_refuse(j, LIBRARY_LOST, "messages between the ranks have failed: close this job, and open it again");
}

int crew_agree(library_job *j, int status)
{
    Crew *c = crew_of(j);
    char text[LIBRARY_TEXT];
    if (c->dead)
        return lose(j);
    memcpy(text, j->why, sizeof text);
    Worst worst = worst_of(c->wire.all, c->wire.rank, status, text);
    if (worst.status < 0)
        return lose(j);
    return status || !worst.status ? status
         : job_refuse(j, worst.status, "rank %lld refuses this call: %s", (long long)worst.rank, text);
}

void crew_spread(library_job *j, int stage, void *x, size_t bytes)
{
    Crew *c = crew_of(j);
    for (size_t at = 0, n; at < bytes && !c->dead; at += n) {
        n = bytes - at < SPREAD ? bytes - at : SPREAD;
        if (MPI_Bcast((char *)x + at, (int)n, MPI_BYTE, stage, c->wire.all) != MPI_SUCCESS)
            lose(j);
    }
}

/* ---- life -------------------------------------------------------------------------------------------------------------- */

/* Tally alike by all ranks, and without a message. */
static const char *check_ranks(MPI_Comm comm, int *rank)
{
    int begun = 0, ended = 0, between = 0, size = 0;
    MPI_Initialized(&begun);
    MPI_Finalized(&ended);
    if (!begun || ended)
        return "MPI is not under way: open the job between MPI_Init() and MPI_Finalize()";
    if (comm == MPI_COMM_NULL)
        return "the communicator is MPI_COMM_NULL";
    if (MPI_Comm_test_inter(comm, &between) != MPI_SUCCESS || between)
        return "the communicator is one between two groups";
    if (MPI_Comm_size(comm, &size) != MPI_SUCCESS || MPI_Comm_rank(comm, rank) != MPI_SUCCESS || size != JOB_STAGES)
        return "this job wants a communicator of as many ranks as it has stages: LIBRARY_RANKS";
    return NULL;
}

static bool make_wire(Wire *w, MPI_Comm comm, int rank)
{
    const WireCard mine = wire_card(job.plan);
    WireCard first = mine;
    if (MPI_Comm_split(comm, 0, wire_stage(rank, JOB_STAGES, job.rank), &w->all) != MPI_SUCCESS)
        return false;
    MPI_Comm_set_errhandler(w->all, MPI_ERRORS_RETURN);
    return MPI_Comm_rank(w->all, &w->rank) == MPI_SUCCESS &&
           MPI_Type_contiguous(WIRE_BLOCK, MPI_BYTE, &w->block) == MPI_SUCCESS && MPI_Type_commit(&w->block) == MPI_SUCCESS &&
           MPI_Bcast(&first, sizeof first, MPI_BYTE, 0, w->all) == MPI_SUCCESS && !memcmp(&mine, &first, sizeof mine);
}

static const char *say(char *here, const char *form, ...)
{
    va_list given;
    va_start(given, form);
    job_text(here, form, given);
    va_end(given);
    return here;
}

const char *crew_open(library_job *j, const void *over, char *here)
{
    static const char other[] = "it is a library of another plan or byte order, or MPI has failed";
    MPI_Comm comm = *(const MPI_Comm *)over;
    char text[LIBRARY_TEXT];
    int rank = 0;
    const char *fault = check_ranks(comm, &rank);
    if (fault)
        return fault;
    memset(text, 0, sizeof text);
    say(text, "%s", j ? "" : here);
    Worst worst = worst_of(comm, rank, j ? LIBRARY_OK : LIBRARY_USE, text);
    if (!j)
        return here;
    if (worst.status)
        return say(here, "rank %lld has no part of this job: %s", (long long)worst.rank, text);
    bool good = make_wire(&crew_of(j)->wire, comm, rank);
    say(text, "%s", other);
    worst = worst_of(comm, rank, good ? LIBRARY_OK : LIBRARY_USE, text);
    j->first = crew_of(j)->wire.rank;
    j->until = j->first + 1;
    if (!worst.status)
        return NULL;
    crew_of(j)->dead = !good;
    crew_close(j);
    return good ? say(here, "rank %lld: %s", (long long)worst.rank, text) : other;
}

library_job *library_open_on(MPI_Comm comm, void *arena, size_t bytes, char *why)
{
    return job_open(&comm, arena, bytes, why);
}

void crew_close(library_job *j)
{
    Crew *c = crew_of(j);
    int ended = 0;
    MPI_Finalized(&ended);
    if (ended || c->dead)
        return;
    MPI_Type_free(&c->wire.block);
    MPI_Comm_free(&c->wire.all);
}
