/* SPDX-License-Identifier: Apache-2.0
 *
 * link_mpi.c: a stage a process, over MPI.
 *
 * The rank is the stage.  If a plan chose the device of each stage, a communicator puts the launcher's ranks into that
 * order.  Messages are those of wire.h.
 *
 * While it waits, the only thread that may call MPI (MPI_THREAD_FUNNELED) notices a watchdog that has expired.  An error
 * (MPI_ERRORS_RETURN) ends the whole job through MPI_Abort.
 *
 * The launcher notices a rank that is killed; the watchdogs of the waiting ranks notice one that is frozen, and a message of
 * another tag, which never arrives.
 */
#include <mpi.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "link.h"
#include "run.h"
#include "wire.h"

enum { HOST = 64, LAST = 60 };         /* seconds */

struct Link {
    Wire wire;
    pthread_t main;             /* the thread that may call MPI */
    _Atomic int aborting;       /* status wanted by another thread; 0 none */
    char *host;                 /* by stage, HOST bytes each */
    Stage none;                 /* of what no stage asks for */
};

static void check(Link *l, int code, const char *what)
{
    wire_check(&l->none, &l->wire, code, what);
}

static char given_up[256];      /* what aborted() says, in one piece: other ranks write too */

/* UCX calls abort() when it writes into a process that was killed.  Launchers take the status of the rank that ends first, and
 * with Hydra that of a rank that a signal ends is its number: 6 here, which is a status of ours.  So this rank waits until the
 * launcher has seen the other one.  If nobody ends it then, it ends with a status that is true. */
static void aborted(int number)
{
    struct timespec grace = {2, 0};
    (void)number;
    write_all(STDERR_FILENO, given_up, strlen(given_up));
    nanosleep(&grace, NULL);
    _exit(STATUS_RUN);
}

/* Wrong start: every rank knows it, the first says it, and nobody is left waiting. */
static Link *refuse(Link *l, int rank, int *status, const char *form, int a, int b)
{
    if (rank == 0)
        complain(STATUS_USAGE, form, a, b);
    *status = STATUS_USAGE;
    MPI_Finalize();
    free(l);
    return NULL;
}

/* The ranks in the order of their stages. */
static void number(Link *l, int stages, const int *of)
{
    l->wire.all = MPI_COMM_WORLD;
    if (!of)
        return;
    int stage = wire_stage(l->wire.rank, stages, of);
    check(l, MPI_Comm_split(MPI_COMM_WORLD, 0, stage, &l->wire.all), "MPI_Comm_split");
    l->wire.rank = stage;
}

static void name_hosts(Link *l, int stages)
{
    char mine[MPI_MAX_PROCESSOR_NAME + HOST] = "";
    int n = 0;
    l->host = calloc((size_t)stages, HOST);
    if (!l->host)
        quit(l, STATUS_RUN, "no memory for the transport");
    check(l, MPI_Get_processor_name(mine, &n), "MPI_Get_processor_name");
    mine[HOST - 1] = 0;
    check(l, MPI_Allgather(mine, HOST, MPI_BYTE, l->host, HOST, MPI_BYTE, l->wire.all), "MPI_Allgather");
}

/* A rank alone, whose launcher has started more: one of them says so.  by: what started it, as seen before MPI began, which
 * sets such names itself. */
static void complain_of_launcher(const Ranks *by, const char *pmix)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int n = 0;
    MPI_Get_library_version(version, &n);
    version[strcspn(version, ",\n")] = 0;
    if (pmix ? atoi(pmix) == 0 : by->rank == 0)
        complain(STATUS_USAGE, "%s started more than this process, but it is alone in its MPI (%s): launcher and mpicc are of "
                 "two MPIs, or srun needs --mpi=pmix (Open MPI) or --mpi=pmi2 (MPICH)", pmix ? "PMIx" : by->launcher, version);
}

Link *link_open(int stages, const int *of, int *argc, char ***argv, int *status)
{
    int level = 0, size = 0, rank = 0;
    Ranks by = launcher_ranks();
    const char *pmix = by.variable ? NULL : getenv("PMIX_RANK");    /* a launcher that does not say how many */
    Link *l = calloc(1, sizeof *l);
    if (!l || MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &level) != MPI_SUCCESS) {
        *status = complain(STATUS_RUN, l ? "MPI does not start" : "no memory for the transport");
        free(l);
        return NULL;
    }
    l->none.link = l;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    l->main = pthread_self();
    check(l, MPI_Comm_size(MPI_COMM_WORLD, &size), "MPI_Comm_size");
    check(l, MPI_Comm_rank(MPI_COMM_WORLD, &rank), "MPI_Comm_rank");
    l->wire.rank = rank;
    snprintf(given_up, sizeof given_up, "%s: a library ended rank %d (abort): is another rank gone?\n", program_name, rank);
    signal(SIGABRT, aborted);
    if (size == 1 && stages > 1 && (by.size > 1 || pmix))
        complain_of_launcher(&by, pmix), rank = -1;
    if (size != stages)
        return refuse(l, rank, status, "this job has %d stages, each in a rank of its own; ranks started: %d; start it with "
                      "as many (mpirun -n, srun -n)", stages, size);
    if (level < MPI_THREAD_FUNNELED)
        return refuse(l, rank, status, "this MPI allows no threads (level %d, %d needed)", level, MPI_THREAD_FUNNELED);
    number(l, stages, of);
    name_hosts(l, stages);
    check(l, MPI_Type_contiguous(WIRE_BLOCK, MPI_BYTE, &l->wire.block), "MPI_Type_contiguous");
    check(l, MPI_Type_commit(&l->wire.block), "MPI_Type_commit");
    return l;
}

const char *link_host(const Link *l, int stage)
{
    return l->host + stage * HOST;
}

int link_connect(Link *l, const Job *job)
{
    const WireCard mine = wire_card(job->plan);
    int stages = 0, status = DONE;
    check(l, MPI_Comm_size(l->wire.all, &stages), "MPI_Comm_size");
    WireCard *all = calloc((size_t)stages, sizeof *all);
    if (!all)
        quit(l, STATUS_RUN, "no memory for the transport");
    check(l, MPI_Allgather(&mine, sizeof mine, MPI_BYTE, all, sizeof mine, MPI_BYTE, l->wire.all), "MPI_Allgather");
    for (int s = 0; s < stages && status == DONE && l->wire.rank == 0; s++)
        if (all[s].one != mine.one)
            status = complain(STATUS_MACHINE, "rank %d, on %s, has another byte order than rank 0, on %s, and messages are not "
                              "turned; take machines of one order", s, link_host(l, s), link_host(l, 0));
        else if (memcmp(&all[s], &mine, sizeof mine) != 0)
            status = complain(STATUS_USAGE, "rank %d, on %s, runs another plan than rank 0, on %s; give all ranks one folder",
                              s, link_host(l, s), link_host(l, 0));
    free(all);
    return status;
}

int link_first(const Link *l)
{
    return l->wire.rank;
}

int link_count(const Link *l)
{
    (void)l;
    return 1;
}

const char *link_name(void)
{
    return "mpi";
}

/* Another thread wants the end. */
void wire_look(Stage *st)
{
    if (atomic_load(&st->link->aborting))
        link_abort(st->link, atomic_load(&st->link->aborting));
}

void *link_begin(Stage *st, int request, int sending, void *buffer, int peer, int tag, long bytes)
{
    return wire_begin(&st->link->wire, st, request, sending, buffer, peer, tag, bytes);
}

void link_wait(Stage *st, void *request)
{
    wire_wait(&st->link->wire, st, request);
}

void link_share(Stage *st, const void *mine, void *all, size_t bytes)
{
    wire_share(&st->link->wire, st, mine, all, bytes);
}

int link_worst(Link *l, int status)
{
    MPI_Request request;
    MPI_Status ignored;
    int worst = status;
    check(l, MPI_Iallreduce(&status, &worst, 1, MPI_INT, MPI_MAX, l->wire.all, &request), "MPI_Iallreduce");
    wire_poll(&l->none, &l->wire, &request, &ignored, "a maximum over all processes failed");
    return worst;
}

static char late[256];          /* what too_late() says, in one piece: other ranks write too */

/* A host that is gone when all is done would keep MPI_Finalize for good, and the watchdog no longer looks. */
static void too_late(int number)
{
    (void)number;
    write_all(STDERR_FILENO, late, strlen(late));
    _exit(STATUS_RUN);
}

void link_close(Link *l)
{
    snprintf(late, sizeof late, "%s: the job is done, and MPI does not end: is a host or a link gone?\n", program_name);
    signal(SIGALRM, too_late);
    alarm(LAST);
    MPI_Type_free(&l->wire.block);
    if (l->wire.all != MPI_COMM_WORLD)
        MPI_Comm_free(&l->wire.all);
    MPI_Finalize();
    alarm(0);
    free(l->host);
    free(l);
}

/* Another thread leaves the call to the one that may make it; if that one no longer comes back, the process ends by
 * itself, without MPI_Finalize, which launchers take for a failure of the job. */
void link_abort(Link *l, int status)
{
    if (!pthread_equal(pthread_self(), l->main)) {
        struct timespec grace = {2, 0};
        atomic_store(&l->aborting, status);
        nanosleep(&grace, NULL);
        _exit(status);
    }
    MPI_Abort(MPI_COMM_WORLD, status);
    _exit(status);
}
