/* SPDX-License-Identifier: Apache-2.0
 *
 * inside.h: what the files of the library share.
 */
#ifndef INSIDE_H
#define INSIDE_H
#include <stdarg.h>
#include <stdbool.h>
#include "kernel.h"
#include "library_job.h"
#include "tables.h"

/* JOB_ROOM, the bytes of the job in front of the arenas of its stages, stands in NAME.c.  dpgen prints it, and counts it in
 * NAME_ARENA.  So do JOB_SOURCES, the stages of all replicas; JOB_HOMES, those of one; JOB_STAGES, their devices; JOB_LOSSES,
 * the most micro-batches of a step whose losses a device keeps apart. */
enum { JOB_MARK = 0x6a6f6201, JOB_REPLICAS = JOB_SOURCES / JOB_HOMES };

/* What a device says behind a run: the loss that it has seen, 0 where it sees none; losses of micro-batches, if apart. */
typedef struct { double loss, norm; int64_t losses; float each[JOB_LOSSES + 1]; } Tally;

typedef struct Worker {         /* a device */
    Stage stage;                /* first: calls of the stage have no other way here */
    library_job *job;
    StageInfo info;
    int64_t micro;              /* of an evaluation: its micro-batch */
    void *out;                  /* where it goes on when the step has failed */
    Tally tally;
} Worker;

struct library_job {
    uint32_t mark;              /* JOB_MARK while it is open */
    bool busy, taken;           /* a step is under way; the arena is our memory */
    bool partial;               /* of a forward: inputs may be absent, and samples may be fewer than a micro-batch has */
    bool lost;                  /* a step has failed half-way */
    const library_array *in;
    size_t samples;
    int64_t done;               /* steps */
    int64_t of;                 /* micro-batches of an evaluation; 0: a step */
    const Output *wanted;       /* of a job that infers: the output that goes to `to`, which has room for `room` elements */
    float *to;
    size_t room;
    void (*told)(void *with, int stage, const char *action);
    void *with;
    char why[LIBRARY_TEXT];
    int first, until;           /* devices of this process: first .. until-1 */
    Worker worker[JOB_STAGES];
};
/* Who runs the stages has what it needs behind the job, from CREW_AT on: its Crew. */
enum { CREW_AT = (sizeof(struct library_job) + 63) / 64 * 64 };
#define CREW_FITS() _Static_assert(CREW_AT + sizeof(Crew) <= JOB_ROOM, "the job has outgrown its room")
static inline void *crew_room(library_job *j) { return (unsigned char *)j + CREW_AT; }

/* The device of a stage that a call of its source names. */
static inline Worker *worker_of(const Stage *st) { return (Worker *)(void *)(uintptr_t)st; }

/* library.c: the text of a call that fails, of %s, of %d, an int64_t, and of %lld; its status.  May this call be made now? */
int job_refuse(library_job *job, int status, const char *form, ...);
void job_text(char *to, const char *form, va_list given);
int job_enter(library_job *job);
int job_enter_lost(library_job *job);           /* one that makes the parameters whole */
int order_of(const char *a, const char *b);     /* as bytes */
/* states.c: what the stages say, into the job; its start values. */
void job_describe(library_job *job);
void job_start(library_job *job);

void job_count(Worker *w);                        /* fills `tally` behind a run */
/* over: of the crew.  What library_open() is. */
library_job *job_open(const void *over, void *arena, size_t bytes, char *why);
/* Will all processes do it?  The status of this one, or, if it has none, of another one that refuses. */
int job_agree(library_job *job, int status);

/* ---- who runs the stages: alone.c, threads.c, or over MPI ranks.c ------------------------------------------------------ */
/* Behind the job in its room.  NULL: it is ready; else why not, and nothing is left of it.  job NULL: it cannot be made here,
 * and `here` says why. */
const char *crew_open(library_job *job, const void *over, char *here);
void crew_close(library_job *job);
/* The step, or the evaluation, of every device.  false: it has failed, and the job has the text. */
bool crew_run(library_job *job, bool eval);
void crew_tell(Worker *w, const char *action);
#ifdef LIBRARY_RANKS
int crew_agree(library_job *job, int status);
void crew_spread(library_job *job, int stage, void *x, size_t bytes);   /* what the process of a stage has: to all others */
#else
static inline int crew_agree(const library_job *job, int status)
{
    (void)job;
    return status;
}

static inline void crew_spread(const library_job *job, int stage, const void *x, size_t bytes)
{
    (void)job, (void)stage, (void)x, (void)bytes;
}
#endif
#endif
