/* SPDX-License-Identifier: Apache-2.0
 *
 * record.c: a step as one CUDA graph (DPGEN_GRAPH=1).
 *
 * A step queues the same calls with the same arguments each time: step values, dropout's counters and rates lie in the arena,
 * at fixed places.  So before the first step the stage's source runs once while its streams are captured.  Nothing runs on the
 * GPU then.  The captured calls become an executable graph.  From then on a step is: the host's chores, one launch, and
 * the wait for its end.  Memory is taken before the first step, as all else is.
 *
 * The chores of the host are its begin, counts, loads and its end.  They are noted as the source makes them, with a pinned
 * room for each that the graph copies from, and made again in that order.  The host meets the GPU at the end of each step, so a
 * room is free when the next step fills it.  A thread fills those of data before: ahead.c.
 *
 * Cost: pinned memory for all that a step loads.
 *
 * Not handled, and said in a line: several stages in a process: their threads would share one capture; steps that overlap;
 * whoever looks at single calls; values that go over sockets in mid-step.  Evaluations go call by call.
 */
#include <stdlib.h>
#include "ahead.h"
#include "link.h"
#include "record.h"
#include "feed.h"

struct Record {
    cudaGraphExec_t graph;
    Chore *chore;
    unsigned char **room;
    int chores, rooms, next;        /* next: room to be filled */
    long losses;                    /* Stage.losses behind a step */
};

enum { YES, UNASKED, NO_STEP, SEVERAL, OVERLAP, SYNC, LOOKS, TRACED, LINES };
static const char *const reason[] = {
    [SEVERAL] = "several stages run in one process, and a graph is of one", [OVERLAP] = "steps overlap",
    [SYNC] = "DPGEN_SYNC waits for each call", [LOOKS] = "--selftest, DPGEN_NVTX or a profiler looks at each call",
    [TRACED] = "--trace stamps each action", [LINES] = "a GPU has no queues for so many messages, and some go over sockets"
};

bool record_wanted(void)
{
    const char *graph = getenv("DPGEN_GRAPH");
    return graph && *graph && strcmp(graph, "0");
}

bool record_lines(const Job *job)
{
    int most = 0;
    bool any = false;
    for (int stage = 0; stage < job->stages; stage++) {
        int pairs = OTHERS;
        for (int i = 0; i < job->pairs; i++)
            pairs += job->pair[2 * i] == stage || job->pair[2 * i + 1] == stage;
        most = pairs > most ? pairs : most;
    }
    for (int i = 0; job->talk && i < job->pairs; i++)
        any |= job->talk[i];
    return any && (!record_wanted() || most > QUEUES);
}

static int refused(const Worker *w)
{
    const Run *run = w->run;
    if (!record_wanted())
        return UNASKED;
    if (run->start >= run->opt.steps)
        return NO_STEP;
    return run->count > 1 ? SEVERAL : w->ended ? OVERLAP : device_of(&w->stage)->sync ? SYNC
         : w->stage.hook || run->opt.selftest ? LOOKS : run->opt.trace ? TRACED : record_lines(run->job) ? LINES : YES;
}

/* The same answer everywhere: a message that one side has in a graph is one of a graph on the other side. */
static bool agreed(Worker *w)
{
    int64_t why = refused(w), *all = w->board;
    bool good = true;
    link_share(&w->stage, &why, all, sizeof why);
    for (int i = 0; i < w->stage.count && good; i++) {
        good = all[i] == YES;
        if (!good && w->stage.index == 0 && reason[all[i]])
            complain(DONE, "stage %d: a step is no graph: %s; calls go to the GPU one by one", i, reason[all[i]]);
    }
    return good;
}

/* ---- while it is recorded ------------------------------------------------------------------------------------------------ */

static void *one_more(Worker *w, void *list, int n, size_t size)
{
    void *longer = n & (n - 1) ? list : realloc(list, (size_t)(n ? 2 * n : 1) * size);
    if (!longer)
        quit(w->run->link, STATUS_RUN, "%s: no memory to record a step", w->info->name);
    return longer;
}

void arena_chore(Stage *st, Chore c)
{
    const Device *d = device_of(st);
    struct Record *r = d->record;
    if (d->mode != CAPTURES)
        return;
    r->chore = one_more(st->worker, r->chore, r->chores, sizeof c);
    r->chore[r->chores++] = c;
}

/* Pinned memory is made beside the capture, which this thread says it knows. */
static unsigned char *new_room(Stage *st, size_t n)
{
    void *at = NULL;
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    device_check(st, cudaThreadExchangeStreamCaptureMode(&mode), "recording a step");
    device_check(st, cudaHostAlloc(&at, n, cudaHostAllocDefault), "pinned memory for the data of a step");
    device_check(st, cudaThreadExchangeStreamCaptureMode(&mode), "recording a step");
    return at;
}

unsigned char *record_room(Stage *st, size_t n)
{
    const Device *d = device_of(st);
    struct Record *r = d->record;
    if (d->mode == CAPTURES) {
        r->room = one_more(st->worker, r->room, r->rooms, sizeof *r->room);
        r->room[r->rooms++] = new_room(st, n);
    }
    return r->room[r->next++];
}

static void open_graph(Worker *w, struct Record *r, cudaGraph_t graph)
{
    const Stage *st = &w->stage;
    cudaStream_t s = device_of(st)->compute;
    device_check(st, cudaGraphInstantiate(&r->graph, graph, 0), "opening the graph of a step");
    device_check(st, cudaGraphUpload(r->graph, s), "opening the graph of a step");
    device_check(st, cudaStreamSynchronize(s), "opening the graph of a step");
    device_check(st, cudaGraphDestroy(graph), "opening the graph of a step");
}

void arena_record(Worker *w)
{
    Stage *st = &w->stage;
    Device *d = device_of(st);
    cudaGraph_t graph;
    if (!agreed(w))
        return;
    d->record = calloc(1, sizeof *d->record);
    if (!d->record)
        quit(w->run->link, STATUS_RUN, "%s: no memory to record a step", w->info->name);
    w->step = w->run->start;
    d->mode = CAPTURES;
    device_check(st, cudaStreamBeginCapture(d->compute, cudaStreamCaptureModeThreadLocal), "begin");
    w->info->step(st);
    device_check(st, cudaStreamEndCapture(stream_of(st), &graph), "end");
    open_graph(w, d->record, graph);
    d->mode = PLAIN;
    ahead_settle(st);
    d->record->losses = st->losses;
    st->at = -1;
    atomic_store(&w->at, -1);
}

/* ---- steps ----------------------------------------------------------------------------------------------------- */

void record_launch(Stage *st)
{
    const Device *d = device_of(st);
    device_check(st, cudaGraphLaunch(d->record->graph, d->compute), "launching a step");
    ahead_taken(st);
}

void record_close(const Stage *st)
{
    const Device *d = device_of(st);
    struct Record *r = d ? d->record : NULL;
    if (!r)
        return;
    ahead_close(st);                    /* its thread writes to rooms of the graph */
    cudaGraphExecDestroy(r->graph);
    for (int i = 0; i < r->rooms; i++)
        cudaFreeHost(r->room[i]);
    free(r->room);
    free(r->chore);
    free(r);
}

void arena_step(Worker *w)
{
    Device *d = device_of(&w->stage);
    struct Record *r = d->record;
    if (!r) {
        w->info->step(&w->stage);
        return;
    }
    d->mode = REPLAYS;
    r->next = 0;
    w->stage.losses = r->losses;        /* an evaluation in between has counted its own */
    for (int i = 0; i < r->chores; i++)
        r->chore[i].again(&w->stage, &r->chore[i]);
    d->mode = PLAIN;
}
