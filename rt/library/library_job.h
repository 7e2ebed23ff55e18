/* SPDX-License-Identifier: Apache-2.0
 *
 * A training job as functions.  The program owns the loop, the data and the memory: nothing here opens a file, ends the
 * program, changes a signal or prints, and there is no state outside the arena.  Any number of jobs may be open at once.
 *
 * Calls of one job come one at a time, from any thread; two jobs may be called at the same time.  A job of one stage runs in
 * the thread that calls.  One of several stages has a thread for each further one: library_open() starts them, they sleep
 * between calls, get no signal of the program, and library_close() waits until they have ended.  A child of fork() has none
 * of them, and must not call such a job.
 *
 * A call that can fail returns a status, and library_why() has its text: what is wrong, the numbers, the remedy.  A call
 * that is refused changes nothing, and the job goes on.  Sizes are elements, unless a name says bytes.  Floats and integers
 * are those of the machine.
 */
#ifndef LIBRARY_JOB_H
#define LIBRARY_JOB_H
#include <stddef.h>
#include <stdint.h>
#ifdef LIBRARY_RANKS
#include <mpi.h>
#endif
#ifdef __cplusplus
extern "C" {
#endif

enum {
    LIBRARY_OK = 0,
    LIBRARY_DATA = 1,           /* a value that the model has no room for, such as a class out of range */
    LIBRARY_USE = 2,            /* a call out of order, a wrong size, type or name */
    LIBRARY_LOST = 4,           /* a stage has failed half-way: load what was saved, or restart */
    LIBRARY_FOREIGN = 5,        /* saved bytes that are damaged, or of another job */
    LIBRARY_MACHINE = 6,        /* this machine, as it is set up, would not give the bits of the job */
    LIBRARY_NOT_FINITE = 7      /* the loss or the gradient is not finite; the step was taken */
};
enum { LIBRARY_F32 = 1, LIBRARY_I32 = 2 };      /* types of arrays: float, int32_t */
enum { LIBRARY_ALIGN = 64, LIBRARY_TEXT = 192, LIBRARY_AXES = 6 };

typedef struct library_job library_job;         /* lies in its arena */

/* n elements of one type, samples one behind the other; read during the call alone.  Absent: all 0. */
typedef struct { const void *at; size_t n; int type; } library_array;

/* What a step or an evaluation came to.  norm: of the gradient before clipping; -1: the job does not clip, and takes none. */
typedef struct { int64_t step; double loss, norm, rate; } library_result;

/* A parameter: axes that it does not have are 1. */
typedef struct { const char *name; size_t n; int axes; int64_t shape[LIBRARY_AXES]; } library_about;

/* ---- life: the arena ------------------------------------------------------------------------------------------------ */
size_t library_bytes(void);                     /* of the arena; LIBRARY_ARENA is the same as a constant */
/* The job at its first step, with its start values.  The arena begins at a multiple of LIBRARY_ALIGN, and is the job's until
 * library_close().  NULL, 0: the library takes memory itself; a freestanding one cannot.  NULL comes back where it fails, and
 * `why`, of LIBRARY_TEXT characters or NULL, says why. */
library_job *library_open(void *arena, size_t bytes, char *why);
#ifdef LIBRARY_RANKS
/* Over MPI: the same on a communicator of LIBRARY_RANKS ranks, each of which has one stage and its own arena; library_open()
 * takes MPI_COMM_WORLD.  Behind MPI_Init(), and library_close() before MPI_Finalize(): the library calls neither, and works
 * on a communicator that it makes of this one.  Each rank makes the same calls of the job with the same arrays, and gets the
 * same answers; where one of them refuses, all do. */
library_job *library_open_on(MPI_Comm comm, void *arena, size_t bytes, char *why);
#endif
void library_close(library_job *job);           /* NULL does nothing */
int library_restart(library_job *job);          /* back to the first step and the start values */

/* ---- work: arrays in the order of LIBRARY_INPUT_... ----------------------------------------------------------------- */
/* One step of training, on LIBRARY_STEP_SAMPLES of each input.  got may be NULL. */
int library_step(library_job *job, const library_array *in, library_result *got);
/* The loss of any multiple of LIBRARY_BATCH samples under the parameters as they are. */
int library_evaluate(library_job *job, const library_array *in, library_result *got);
/* One output of the model for any number of samples: n floats, so many a sample as the list of outputs says.  Inputs that only
 * the loss reads may be absent. */
int library_forward(library_job *job, const library_array *in, const char *output, float *to, size_t n);

/* ---- states by name ------------------------------------------------------------------------------------------------- */
int library_parameter(int i, library_about *about);     /* parameter i by name, from 0; LIBRARY_USE behind the last */
int library_read(library_job *job, const char *name, float *to, size_t n);
int library_write(library_job *job, const char *name, const float *from, size_t n);     /* rounded where the job has bf16 */
int library_hash(library_job *job, char hex[65]);       /* of all parameters; that of the program's --hash */

/* ---- what outlives the program: step, parameters and moments; docs/library.md has the format ------------------------ */
size_t library_saved(void);                             /* bytes, always the same */
int library_save(library_job *job, void *to, size_t bytes);
int library_load(library_job *job, const void *from, size_t bytes);     /* refused whole: the job stays as it is */

/* ---- about ---------------------------------------------------------------------------------------------------------- */
int64_t library_steps(const library_job *job);          /* done so far; -1: there is no such job */
const char *library_why(const library_job *job);        /* the text of its last call that failed; "" at first */
const char *library_key(void);                          /* the numeric key: equal keys and data, equal bits */
/* told(with, stage, text) as each action of a step begins, in the thread of its stage, and never twice at once.  It returns,
 * and must not call the job.  NULL: nobody is told, as at first. */
void library_listen(library_job *job, void (*told)(void *with, int stage, const char *action), void *with);

#ifdef __cplusplus
}
#endif
#endif
