/* SPDX-License-Identifier: Apache-2.0
 *
 * inside.h: what the files of the library share.
 */
#ifndef INSIDE_H
#define INSIDE_H
#include <stdbool.h>
#include "kernel.h"
#include "library_job.h"
#include "tables.h"

/* JOB_ROOM, the bytes of the job in front of the stage's arena, stands in NAME.c.  dpgen prints it, and counts it in
 * NAME_ARENA. */
enum { JOB_MARK = 0x6a6f6201 };

struct library_job {
    Stage stage;                /* first: calls of the stage have no other way here */
    uint32_t mark;              /* JOB_MARK while it is open */
    bool busy, taken;           /* a step is under way; the arena is our memory */
    bool partial;               /* of a forward: inputs may be absent, and samples may be fewer than a micro-batch has */
    StageInfo info;
    const library_array *in;
    size_t samples;
    int64_t done, micro;        /* steps; micro-batches of what is under way, or the number of the one in an evaluation */
    int64_t of;                 /* micro-batches of an evaluation; 0: a step */
    void (*told)(void *with, const char *action);
    void *with;
    char why[LIBRARY_TEXT];
};
/* library.c: the text of a call that fails, of %s and of %d, an int64_t; its status.  May this call be made now? */
int job_refuse(library_job *job, int status, const char *form, ...);
int job_enter(library_job *job);
int order_of(const char *a, const char *b);     /* as bytes */
/* states.c: what the stage says, into the job; its start values. */
void job_describe(library_job *job);
void job_start(library_job *job);
#endif
