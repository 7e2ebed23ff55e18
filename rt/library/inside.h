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

typedef struct Worker {         /* a device */
    Stage stage;                /* first: calls of the stage have no other way here */
    library_job *job;
    StageInfo info;
    int64_t micro;              /* of an evaluation: its micro-batch */
    bool idle;                  /* of an evaluation: there is none for its replica */
    void *out;                  /* where it goes on when the step has failed */
    float loss[JOB_LOSSES + 1];
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
    void (*told)(void *with, int stage, const char *action);
    void *with;
    char why[LIBRARY_TEXT];
    Worker worker[JOB_STAGES];
};
/* library.c: the text of a call that fails, of %s, of %d, an int64_t, and of %lld; its status.  May this call be made now? */
int job_refuse(library_job *job, int status, const char *form, ...);
void job_text(char *to, const char *form, va_list given);
int job_enter(library_job *job);
int job_enter_lost(library_job *job);           /* one that makes the parameters whole */
int order_of(const char *a, const char *b);     /* as bytes */
/* states.c: what the stages say, into the job; its start values. */
void job_describe(library_job *job);
void job_start(library_job *job);

/* ---- who runs the stages: alone.c or threads.c ------------------------------------------------------------------------- */
/* Behind the job in its room.  NULL: it is ready; else why not, and nothing is left of it. */
const char *crew_open(library_job *job);
void crew_close(library_job *job);
/* The step, or the evaluation, of every device.  false: it has failed, and the job has the text. */
bool crew_run(library_job *job, bool eval);
void crew_tell(Worker *w, const char *action);
#endif
