/* SPDX-License-Identifier: Apache-2.0
 *
 * alone.c: a job of one device runs in the thread of its caller.
 */
#include "inside.h"

_Static_assert(sizeof(struct library_job) <= JOB_ROOM, "the job has outgrown its room");

const char *crew_open(library_job *j, const void *over, char *here)
{
    (void)over;
    return j ? NULL : here;
}

void crew_close(library_job *j)
{
    (void)j;
}

bool crew_run(library_job *j, bool eval)
{
    Worker *w = j->worker;
    (eval ? w->info.eval : w->info.step)(&w->stage);
    return true;
}

void crew_tell(Worker *w, const char *action)
{
    w->job->told(w->job->with, 0, action);
}
