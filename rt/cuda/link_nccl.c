/* SPDX-License-Identifier: Apache-2.0
 *
 * link_nccl.c: a stage a process, each on its own GPU, over NCCL.
 *
 * Problem.  NCCL knows no tags and runs its calls in order.  Sends and receives that wait for each other on one communicator
 * can stop a pipeline for good.
 *
 * Method.  Each ordered pair of stages that exchanges messages has a communicator of two, and a stream on either side.  The
 * n-th send of a pair meets its n-th receive; the plan has proved that they are the same message.  A half begins after the
 * work that the stage's computation has been given so far, and ends in an event.  Nothing blocks the host.
 *
 * A receive that waits for its peer is a kernel that spins.  Streams that share one of the GPU's queues run in the order in
 * which they were given work.  A kernel that is loaded by its first launch may wait for all that run.  Either could hold back
 * a send that the peer waits for.  So there are as many queues as the driver allows, one for each stream, and whatever a step
 * launches is loaded before (arena_warm).  Settings of the environment that would change this are refused.
 *
 * The devices of a stage that share its operators have a communicator of all of them.  A swap of theirs is one group, on the
 * stream of the computation, which waits for it anyway.  They make the same calls in the same order.
 *
 * A pair that has only partial norms or factors of clipping to exchange uses a socket instead, and its hosts wait: stage 0 has
 * two such pairs with every other stage.
 *
 * Communicators are opened before the first step, those of a process in one group of NCCL, and so in the time of one.  The
 * first call on one keeps its host until the peer calls too, which in a step could be never: two replicas that exchange
 * gradients both receive first.  So a byte is sent on each, in a group too.  Facts that stages exchange once a step, and the
 * end of a process, go through the sockets of meeting.c.  A peer that dies ends the job with its number, and no kernel waits
 * for good.
 *
 * Messages that the stage's source says to be together leave behind the last of them: those of a pair as groups of NCCL, each
 * one kernel.  So do the gradients of a bucket.  A group ends where it is so large that a kernel more costs little: what has
 * come with it is used while the next is on its way.
 *
 * A step may be one graph (record.c) with messages of several communicators.  NCCL's means to run graphs and other calls at
 * once can hang there; nobody needs it here, so it is off.
 *
 * Source: NCCL user guide, point-to-point communication, Using NCCL with CUDA Graphs.  NVIDIA refuses two ranks on one GPU
 * unless it is asked, and so does this file.  The names of the GPUs tell whether two ranks share one: a launcher may show each
 * process one GPU, or all of them.  Not run yet with more than one GPU (docs/cuda.md).
 */
#include <limits.h>
#include <nccl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "device.h"
#include "link.h"
#include "meeting.h"
#include "record.h"
#include "run.h"

enum { LARGE = 4 << 20 };           /* bytes, for which a link takes several times as long as a launch */
enum { CHANNELS = 4 };              /* blocks that a receive keeps busy while it waits: multiprocessors that no product has */

typedef struct { int from, to, line; ncclComm_t comm; cudaStream_t stream; } Pair;      /* line -1: over NCCL */
typedef struct { const Pair *pair; void *buffer; size_t bytes; } Awaited;       /* pair NULL: nothing comes over a line */

struct Link {
    int stages, stage, rank;
    Meeting *meeting;
    Pair *pair;                 /* of this stage */
    int pairs;
    _Atomic int opened;         /* pairs whose communicator is asked for faults */
    _Atomic bool joined;        /* and so is that of the team */
    _Atomic int trying;         /* pairs that are being connected, all at once */
    _Atomic int64_t late;       /* seconds(), when it has taken too long */
    ncclComm_t team;            /* NULL: the stage has one device */
    int shard, shards, apart;   /* of this process in it, as in a Stage */
    bool grouped;               /* halves of a swap have begun, and none has been waited for */
    unsigned char request[ALL_REQUESTS];
    Awaited awaited[MAX_REQUESTS];
};

/* A call of CUDA that fails in the library is one for memory. */
static int failed(const char *what, ncclResult_t e)
{
    size_t left = 0, total = 0;
    if (e == ncclUnhandledCudaError && cudaMemGetInfo(&left, &total) == cudaSuccess)
        return complain(STATUS_RUN, "%s: %s; %zu of %zu bytes of its GPU are free, and NCCL takes about 40 MiB for each "
                        "direction of messages: end what else runs there, or plan with more devices.reserve", what,
                        ncclGetErrorString(e), left, total);
    return complain(STATUS_RUN, "%s: %s; NCCL_DEBUG=WARN says more", what, ncclGetErrorString(e));
}

static void check(const Stage *st, ncclResult_t e, const char *what)
{
    if (e != ncclSuccess)
        quit(st->link, STATUS_RUN, "stage %d: %s: %s; NCCL_DEBUG=WARN says more", st->index, what, ncclGetErrorString(e));
}

/* Settings from outside.  Beyond `least` .. `most`, stages wait for each other for good, or may.  usual: said where nobody says
 * anything, so that NCCL's files of settings change nothing. */
#define FEW_BLOCKS "1", 1, CHANNELS, "with which a receive that waits keeps more of the GPU from products"
static const struct { const char *name, *usual; long least, most; const char *why; } settings[] = {
    {"CUDA_LAUNCH_BLOCKING", NULL, 0, 0, "with which a receive keeps the host, and two that receive first never send"},
    {"CUDA_DEVICE_MAX_CONNECTIONS", "32", QUEUES, LONG_MAX, "with which a send may wait behind a receive"},
    {"NCCL_LAUNCH_ORDER_IMPLICIT", "0", 0, 0, "with which a send waits behind a receive of another stage"},
    {"NCCL_COMM_BLOCKING", "1", 1, 1, "with which communicators are not open when the call returns"},
    {"NCCL_MIN_CTAS", FEW_BLOCKS},
    {"NCCL_MAX_CTAS", FEW_BLOCKS},
    {"NCCL_MIN_NCHANNELS", FEW_BLOCKS},
    {"NCCL_MIN_P2P_NCHANNELS", FEW_BLOCKS},
    {"NCCL_GRAPH_MIXING_SUPPORT", "0", 0, 0, "with which graphs of several communicators can wait for each other"},
};

/* The number of the first that does not go here, from 1; 0: none. */
static int setting_refused(void)
{
    int n = (int)(sizeof settings / sizeof *settings) - !record_wanted();       /* the last is about graphs */
    for (int i = 0; i < n; i++) {
        const char *value = getenv(settings[i].name);
        long is = value ? strtol(value, NULL, 0) : 0;
        if (!value || !*value) {
            if (settings[i].usual)
                setenv(settings[i].name, settings[i].usual, 1);
        } else if (is < settings[i].least || is > settings[i].most) {
            return i + 1;
        }
    }
    return 0;
}

/* The same answer everywhere; the first stage with such a setting says why. */
static int share_settings(Link *l)
{
    int mine = setting_refused(), first = 0, *all = calloc((size_t)l->stages, sizeof *all);
    if (!all || !meeting_share(l->meeting, &mine, all, sizeof mine))
        return complain(STATUS_RUN, "a stage has ended while settings were compared");
    while (first < l->stages && !all[first])
        first++;
    free(all);
    if (first == l->stage)
        complain(STATUS_MACHINE, "stage %d has %s=%s, %s; unset it", first, settings[mine - 1].name,
                 getenv(settings[mine - 1].name), settings[mine - 1].why);
    return first < l->stages ? STATUS_MACHINE : DONE;
}

/* The stage whose device has this rank. */
static int stage_of(int rank, int stages, const int *of)
{
    int stage = 0;
    while (of && stage < stages - 1 && of[stage] != rank)
        stage++;
    return of ? stage : rank;
}

static int refuse(const Ranks *r, int stages)
{
    if (r->size != stages && r->rank == 0)
        complain(STATUS_USAGE, "this job has %d stages and runs one in each process, but %s started %d; start it with as "
                 "many as stages (mpirun -n, srun -n)", stages, r->launcher, r->size);
    return r->size != stages ? STATUS_USAGE : DONE;
}

Link *link_open(int stages, const int *of, int *argc, char ***argv, int *status)
{
    Ranks r = launcher_ranks();
    Link *l = calloc(1, sizeof *l);
    (void)argc, (void)argv;
    *status = l ? refuse(&r, stages) : complain(STATUS_RUN, "no memory for the transport");
    if (*status == DONE) {
        l->stages = stages;
        l->rank = r.rank;
        l->stage = stage_of(r.rank, stages, of);
        l->meeting = meeting_open(l->stage, stages, status);
    }
    if (*status == DONE)
        *status = share_settings(l);        /* before anything wakes the driver */
    if (*status == DONE)
        return l;
    free(l);
    return NULL;
}

/* ---- opening ------------------------------------------------------------------------------------------------------------ */

static void gone(void *with, int number)
{
    const Link *l = with;
    complain(STATUS_RUN, "the process of stage %d has ended before this one (stage %d); its own message says why", number,
             l->stage);
    _exit(STATUS_RUN);
}

/* Some run, and do not reach each other: the library waits for good.  Of those that it connects at once it names none. */
static void look_at_opening(const Link *l)
{
    int trying = atomic_load(&l->trying);
    if (!trying || (int64_t)seconds() < atomic_load(&l->late))
        return;
    const Pair team = {.from = l->stage, .to = l->stage + (l->shard ? -l->apart : l->apart)};
    const Pair *p = l->pairs ? &l->pair[0] : &team;
    complain(STATUS_RUN, "stages %d and %d run%s, and NCCL has not connected them within %d s: does the network that it takes "
             "join their hosts?  NCCL_SOCKET_IFNAME names one, NCCL_DEBUG=INFO says more, DPGEN_TIMEOUT how long to wait",
             p->from, p->to, trying > 2 ? " with others that exchange messages" : "", meeting_patience());
    _exit(STATUS_RUN);
}

static ncclResult_t fault_of(ncclComm_t comm)
{
    ncclResult_t e = ncclSuccess;
    return ncclCommGetAsyncError(comm, &e) != ncclSuccess || e == ncclInProgress ? ncclSuccess : e;
}

/* A fault of the network: the kernel that waits would do so for good. */
static void look(const void *with)
{
    const Link *l = with;
    look_at_opening(l);
    for (int i = 0; i < atomic_load(&l->opened); i++) {
        const Pair *p = &l->pair[i];
        ncclResult_t e = fault_of(p->comm);
        if (e == ncclSuccess)
            continue;
        complain(STATUS_RUN, "messages from stage %d to stage %d: %s: the other one has ended, or the network has a fault; "
                 "NCCL_DEBUG=WARN says more", p->from, p->to, ncclGetErrorString(e));
        _exit(STATUS_RUN);
    }
    if (atomic_load(&l->joined) && fault_of(l->team) != ncclSuccess) {
        complain(STATUS_RUN, "sums of stage %d, device %d: %s: another device of the stage has ended, or the network has a "
                 "fault; NCCL_DEBUG=WARN says more", l->stage % l->apart, l->shard, ncclGetErrorString(fault_of(l->team)));
        _exit(STATUS_RUN);
    }
}

/* How many communicators the sender of pair i makes before its own. */
static int round_of(const Job *job, const char *talk, int i)
{
    int round = 0;
    for (int k = 0; k < i; k++)
        round += job->pair[2 * k] == job->pair[2 * i] && !(talk && talk[k]);
    return round;
}

/* A round of names: each stage makes at most one, and all hear it.  *left: there are more. */
static int share_round(Link *l, const Job *job, const char *talk, int round, ncclUniqueId *all, ncclUniqueId *name, bool *left)
{
    ncclUniqueId mine = {{0}};
    ncclResult_t e = ncclSuccess;
    *left = false;
    for (int i = 0; i < job->pairs; i++) {
        bool counts = !(talk && talk[i]);
        *left |= counts && round_of(job, talk, i) > round;
        if (counts && job->pair[2 * i] == l->stage && round_of(job, talk, i) == round)
            e = ncclGetUniqueId(&mine);
    }
    if (e != ncclSuccess)
        return failed("making a communicator", e);
    if (!meeting_share(l->meeting, &mine, all, sizeof mine))
        return complain(STATUS_RUN, "a stage has ended while communicators were made");
    for (int i = 0; i < job->pairs; i++) {
        const int *p = &job->pair[2 * i];
        if ((talk && talk[i]) || (p[0] != l->stage && p[1] != l->stage))
            continue;
        if (round_of(job, talk, i) == round)
            *name = all[p[0]];
        name++;
    }
    return DONE;
}

/* The names of this stage's communicators. */
static int share_names(Link *l, const Job *job, const char *talk, ncclUniqueId *name)
{
    ncclUniqueId *all = calloc((size_t)l->stages, sizeof *all);
    int status = all ? DONE : STATUS_RUN;
    bool left = true;
    for (int round = 0; left && status == DONE; round++)
        status = share_round(l, job, talk, round, all, name, &left);
    free(all);
    return status;
}

/* That of the team: its first device makes it. */
static int share_team(Link *l, ncclUniqueId *name)
{
    ncclUniqueId mine = {{0}}, *all = calloc((size_t)l->stages, sizeof *all);
    ncclResult_t e = l->shards > 1 && l->shard == 0 ? ncclGetUniqueId(&mine) : ncclSuccess;
    int status = !all || e != ncclSuccess ? failed("making a communicator", e) : DONE;
    if (status == DONE && l->shards > 1 && !meeting_share(l->meeting, &mine, all, sizeof mine))
        status = complain(STATUS_RUN, "a stage has ended while communicators were made");
    if (status == DONE && l->shards > 1)
        *name = all[l->stage % l->apart];
    free(all);
    return status;
}

/* Communicators of two, and that of the team, at once: NCCL has a thread for each, so the time is that of one. */
static int open_communicators(Link *l, const ncclUniqueId *name, ncclUniqueId team)
{
    ncclConfig_t few = NCCL_CONFIG_INITIALIZER;
    few.minCTAs = 1;
    few.maxCTAs = CHANNELS;
    ncclResult_t e = ncclGroupStart(), ended;
    for (int i = 0; i < l->pairs && e == ncclSuccess; i++)
        e = ncclCommInitRankConfig(&l->pair[i].comm, 2, name[i], l->stage == l->pair[i].to, &few);
    if (l->shards > 1 && e == ncclSuccess)
        e = ncclCommInitRankConfig(&l->team, l->shards, team, l->shard, &few);
    ended = ncclGroupEnd();
    e = e == ncclSuccess ? ended : e;
    if (e != ncclSuccess)
        return failed("opening a communicator", e);
    for (int i = 0; i < l->pairs; i++) {
        cudaError_t s = cudaStreamCreateWithFlags(&l->pair[i].stream, cudaStreamNonBlocking);
        if (s != cudaSuccess)
            return complain(STATUS_RUN, "opening a communicator: %s", cudaGetErrorString(s));
    }
    return DONE;
}

/* NCCL connects two when both have called, and until then keeps the host.  Bytes of all pairs go at once, so no order of pairs
 * can make two wait for each other.  */
static int connect_pairs(const Link *l, unsigned char *byte)
{
    cudaStream_t joint = l->pairs ? l->pair[0].stream : NULL;
    if (l->team && !joint && cudaStreamCreateWithFlags(&joint, cudaStreamNonBlocking) != cudaSuccess)
        return complain(STATUS_RUN, "connecting a communicator: no stream");
    ncclResult_t e = ncclGroupStart(), ended;
    for (int i = 0; i < l->pairs && e == ncclSuccess; i++) {
        const Pair *p = &l->pair[i];
        e = l->stage == p->from ? ncclSend(byte, 1, ncclInt8, 1, p->comm, p->stream)
                                : ncclRecv(byte, 1, ncclInt8, 0, p->comm, p->stream);
    }
    for (int d = 0; d < l->shards && l->team && e == ncclSuccess; d++) {
        if (d != l->shard)
            e = ncclSend(byte, 1, ncclInt8, d, l->team, joint);
        if (d != l->shard && e == ncclSuccess)
            e = ncclRecv(byte + 1, 1, ncclInt8, d, l->team, joint);
    }
    ended = ncclGroupEnd();
    e = e == ncclSuccess ? ended : e;
    if (e != ncclSuccess)
        return failed("connecting a communicator", e);
    if (joint && cudaStreamSynchronize(joint) != cudaSuccess)
        return complain(STATUS_RUN, "connecting a communicator: the devices of a stage");
    for (int i = 0; i < l->pairs; i++) {
        cudaError_t s = cudaStreamSynchronize(l->pair[i].stream);
        if (s != cudaSuccess)
            return complain(STATUS_RUN, "connecting a communicator: %s", cudaGetErrorString(s));
    }
    return DONE;
}

/* Each says this of itself: the plan, whether steps are to be graphs, and the GPU by the name that no other in the world
 * has. */
typedef struct { char plan[MEETING_SHARE - 18], graph, shares, gpu[16]; } Card;     /* shares: its GPU, if need be */

/* Several ranks on one GPU: NCCL knows that since 2.30.3, and only where it is asked for. */
static bool one_gpu_will_do(void)
{
    const char *asked = getenv("NCCL_MULTI_RANK_GPU_ENABLE");
    int version = 0;
    return asked && atoi(asked) == 1 && ncclGetVersion(&version) == ncclSuccess && version >= 23003;
}

/* The same answer everywhere; whoever it is about says why. */
static int compare_cards(const Link *l, const Card *card)
{
    int status = DONE;
    for (int i = 0; i < l->stages; i++) {
        bool other = strcmp(card[i].plan, card->plan) != 0, taken = false, graph = card[i].graph != card->graph;
        for (int k = 0; k < i && !other && !taken && !(card[k].shares && card[i].shares); k++)
            if ((taken = !memcmp(card[k].gpu, card[i].gpu, sizeof card->gpu)) && i == l->stage)
                complain(STATUS_MACHINE, "stages %d and %d are on one GPU, and NCCL wants one for each; start fewer processes "
                         "on a host, or generate with plan.transport: local, which runs several stages on a GPU; NCCL 2.30.3 "
                         "lets them share it, slowly, with NCCL_MULTI_RANK_GPU_ENABLE=1 everywhere", k, i);
        if (other && i == l->stage)
            complain(STATUS_USAGE, "stage %d runs another plan than stage 0; start the same folder everywhere", i);
        if (graph && !other && i == l->stage)
            complain(STATUS_USAGE, "stage %d has another DPGEN_GRAPH than stage 0; start all with the same", i);
        status = other || graph ? STATUS_USAGE : taken && status == DONE ? STATUS_MACHINE : status;
    }
    return status;
}

static int share_cards(Link *l, const Job *job)
{
    Card mine = {{0}, 0, one_gpu_will_do(), {0}}, *card = calloc((size_t)l->stages, sizeof *card);
    struct cudaDeviceProp p;
    int gpu, status = STATUS_RUN;
    cudaError_t e = card ? cudaGetDevice(&gpu) : cudaErrorMemoryAllocation;
    if (e == cudaSuccess)
        e = cudaGetDeviceProperties(&p, gpu);
    if (e != cudaSuccess)
        quit(l, STATUS_RUN, "stage %d: looking for the name of its GPU: %s", l->stage, cudaGetErrorString(e));
    strncpy(mine.plan, job->plan, sizeof mine.plan - 1);
    memcpy(mine.gpu, &p.uuid, sizeof mine.gpu);
    mine.graph = record_wanted();
    if (meeting_share(l->meeting, &mine, card, sizeof mine))
        status = compare_cards(l, card);
    free(card);
    return status;
}

/* Norms and factors of clipping, which stage 0 exchanges with all, go over sockets: any number of stages has a way. */
static int open_lines(Link *l, const Job *job)
{
    int *line = malloc(sizeof *line * (size_t)job->pairs);
    int status = line ? meeting_lines(l->meeting, job->pair, job->talk, job->pairs, line) : STATUS_RUN;
    for (int i = 0; i < job->pairs && status == DONE; i++)
        if (line[i] >= 0)
            l->pair[l->pairs++] = (Pair){.from = job->pair[2 * i], .to = job->pair[2 * i + 1], .line = line[i]};
    free(line);
    return status;
}

static int open_pairs(Link *l, const Job *job)
{
    int status = DONE;
    const char *talk = record_lines(job) ? job->talk : NULL;
    void *byte = NULL;
    ncclUniqueId *name = calloc((size_t)job->pairs + 1, sizeof *name), team = {{0}};
    l->pair = calloc((size_t)job->pairs + 1, sizeof *l->pair);
    if (!name || !l->pair)
        return complain(STATUS_RUN, "no memory for the transport");
    for (int i = 0; i < job->pairs; i++)
        if ((job->pair[2 * i] == l->stage || job->pair[2 * i + 1] == l->stage) && !(talk && talk[i]))
            l->pair[l->pairs++] = (Pair){.from = job->pair[2 * i], .to = job->pair[2 * i + 1], .line = -1};
    if (l->pairs + OTHERS > QUEUES)
        status = complain(STATUS_MACHINE, "stage %d exchanges messages in %d directions, and a GPU has queues for %d; let "
                          "fewer stages read what it makes, or use transport local", l->stage, l->pairs, QUEUES - OTHERS);
    if (status == DONE && cudaMalloc(&byte, 2) != cudaSuccess)
        status = complain(STATUS_RUN, "stage %d: no byte is left on its GPU", l->stage);
    if (status == DONE)
        status = share_names(l, job, talk, name);
    if (status == DONE)
        status = share_team(l, &team);
    atomic_store(&l->late, (int64_t)seconds() + meeting_patience());
    atomic_store(&l->trying, l->pairs + (l->shards > 1 ? 2 * (l->shards - 1) : 0));
    if (status == DONE)
        status = open_communicators(l, name, team);
    if (status == DONE)
        status = connect_pairs(l, byte);
    atomic_store(&l->trying, 0);
    if (status == DONE)
        atomic_store(&l->opened, l->pairs);
    if (status == DONE)
        atomic_store(&l->joined, l->team != NULL);
    if (talk && status == DONE)
        status = open_lines(l, job);
    cudaFree(byte);
    free(name);
    return status;
}

/* A stage that has no communicator ends at once, and so the others, who wait for it in the library or for its next word. */
int link_connect(Link *l, const Job *job)
{
    int status = share_cards(l, job);
    if (status != DONE)
        return status;
    l->shards = team_of(job);
    l->apart = firsts_of(job);
    l->shard = l->stage / l->apart;
    if (!meeting_watch(l->meeting, gone, look, l))
        status = complain(STATUS_RUN, "no thread to watch the other stages; check `ulimit -u` (processes) and `ulimit -v` "
                          "(memory)");
    if (status == DONE)
        status = open_pairs(l, job);
    if (status != DONE)
        link_abort(l, status);
    return status;
}

int link_first(const Link *l)
{
    return l->stage;
}

int link_count(const Link *l)
{
    (void)l;
    return 1;
}

const char *link_name(void)
{
    return "nccl";
}

const char *link_host(const Link *l, int stage)
{
    (void)l, (void)stage;
    return NULL;
}

/* ---- messages ----------------------------------------------------------------------------------------------------------- */

static Pair *pair_of(Stage *st, int from, int to)
{
    Link *l = st->link;
    for (int i = 0; i < l->pairs; i++)
        if (l->pair[i].from == from && l->pair[i].to == to)
            return &l->pair[i];
    quit(l, STATUS_RUN, "stage %d has no way from stage %d to stage %d; this folder is not what dpgen wrote", st->index, from,
         to);
}

/* The host waits for what is sent, and for what it receives.  Both are a few bytes once a step. */
static void say(Stage *st, const Pair *p, const void *buffer, size_t bytes)
{
    Device *d = device_of(st);
    if (bytes > ARENA_PIECE)
        quit(st->link, STATUS_RUN, "stage %d has %zu bytes for a line; this folder is not what dpgen wrote", st->index, bytes);
    device_check(st, cudaMemcpyAsync(d->bounce, buffer, bytes, cudaMemcpyDeviceToHost, stream_of(st)), "a message");
    device_check(st, cudaStreamSynchronize(stream_of(st)), "a message");
    meeting_pass(st->link->meeting, p->line, p->to, d->bounce, bytes, true);
}

static void hear(Stage *st, const Awaited *a)
{
    Device *d = device_of(st);
    meeting_pass(st->link->meeting, a->pair->line, a->pair->from, d->bounce, a->bytes, false);
    device_check(st, cudaMemcpyAsync(a->buffer, d->bounce, a->bytes, cudaMemcpyHostToDevice, stream_of(st)), "a message");
    device_check(st, cudaStreamSynchronize(stream_of(st)), "a message");
}

static void *begin_line(Stage *st, const Pair *p, int request, int sending, void *buffer, size_t bytes)
{
    if (sending)
        say(st, p, buffer, bytes);
    st->link->awaited[request] = (Awaited){p, buffer, sending ? 0 : bytes};
    return &st->link->request[request];
}

/* The halves of a swap are one group, which the first wait closes: NCCL runs them at once.  On the stream of the computation
 * they come behind what it has been given, and before what it is given from now on. */
static void *begin_swap(Stage *st, int request, int sending, void *buffer, int with, size_t bytes)
{
    Link *l = st->link;
    cudaStream_t s = stream_of(st);
    if (!l->grouped)
        check(st, ncclGroupStart(), "a sum of the devices of a stage");
    l->grouped = true;
    check(st, sending ? ncclSend(buffer, bytes, ncclInt8, with, l->team, s)
                      : ncclRecv(buffer, bytes, ncclInt8, with, l->team, s), "a sum of the devices of a stage");
    return &l->request[request];
}

static void end_swap(Stage *st)
{
    Link *l = st->link;
    if (l->grouped)
        check(st, ncclGroupEnd(), "a sum of the devices of a stage");
    l->grouped = false;
    device_check(st, cudaSuccess, "a sum of the devices of a stage");
}

typedef struct { const Pair *pair; void *buffer; size_t bytes; int request, sending; } Leaving;

/* The stream of the computation has the operands of all of them when the first may leave. */
static void leave_together(Stage *st, const void *rows, int n)
{
    Device *d = device_of(st);
    const Leaving *m = rows;
    device_check(st, cudaEventRecord(d->ready[m->request], d->compute), "beginning a message");
    unsigned char group[GATHERED / sizeof(Leaving)] = {0};      /* 1 + its first; 0: it has not left */
    for (int i = 0; i < n; i++) {
        const Pair *p = m[i].pair;
        size_t bytes = 0;
        if (group[i])
            continue;
        device_check(st, cudaStreamWaitEvent(p->stream, d->ready[m->request], 0), "beginning a message");
        check(st, ncclGroupStart(), "a message");
        for (int k = i; k < n && bytes < LARGE; k++)
            if (m[k].pair == p && !group[k]) {
                check(st, m[k].sending ? ncclSend(m[k].buffer, m[k].bytes, ncclInt8, 1, p->comm, p->stream)
                                       : ncclRecv(m[k].buffer, m[k].bytes, ncclInt8, 0, p->comm, p->stream), "a message");
                group[k] = (unsigned char)(i + 1);
                bytes += m[k].bytes;
            }
        check(st, ncclGroupEnd(), "a message");
        for (int k = i; k < n; k++)
            if (group[k] == i + 1)
                device_check(st, cudaEventRecord(d->arrived[m[k].request], p->stream), "a message");
    }
}

void *link_begin(Stage *st, int request, int sending, void *buffer, int peer, int tag, long bytes)
{
    if (request >= TEAM_REQUEST)
        return begin_swap(st, request, sending, buffer, peer / st->apart, (size_t)bytes);
    Pair *p = sending ? pair_of(st, st->index, peer) : pair_of(st, peer, st->index);
    (void)tag;
    if (p->line >= 0)
        return begin_line(st, p, request, sending, buffer, (size_t)bytes);
    st->link->awaited[request].pair = NULL;
    Leaving row = {p, buffer, (size_t)bytes, request, sending};
    gather_row(st, leave_together, &row, sizeof row);
    if (--st->together <= 0)
        stream_of(st);
    return &st->link->request[request];
}

void link_wait(Stage *st, void *request)
{
    Device *d = device_of(st);
    long number = (unsigned char *)request - st->link->request;
    if (number >= TEAM_REQUEST) {
        end_swap(st);
        return;
    }
    const Awaited *a = &st->link->awaited[number];
    if (a->pair && a->bytes > 0)
        hear(st, a);
    if (a->pair)
        return;
    device_check(st, cudaStreamWaitEvent(stream_of(st), d->arrived[number], 0), "waiting for a message");
}

/* ---- everyone ----------------------------------------------------------------------------------------------------------- */

void link_share(Stage *st, const void *mine, void *all, size_t bytes)
{
    if (!meeting_share(st->link->meeting, mine, all, bytes))
        quit(st->link, STATUS_RUN, "stage %d: another stage has ended; its own message says why", st->index);
}

int link_worst(Link *l, int status)
{
    int mine = status, *all = calloc((size_t)l->stages, sizeof *all);
    if (!all || !meeting_share(l->meeting, &mine, all, sizeof mine))
        mine = mine == DONE ? STATUS_RUN : mine;
    for (int i = 0; all && i < l->stages; i++)
        mine = all[i] > mine ? all[i] : mine;
    free(all);
    return mine;
}

void link_close(Link *l)
{
    meeting_close(l->meeting);
    for (int i = 0; i < l->pairs; i++)
        if (l->pair[i].line >= 0)
            close(l->pair[i].line);
        else
            ncclCommDestroy(l->pair[i].comm);
    if (l->team)
        ncclCommDestroy(l->team);
    free(l->pair);
    free(l);
}

void link_abort(Link *l, int status)
{
    (void)l;
    _exit(status);
}
