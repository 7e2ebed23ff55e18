/* SPDX-License-Identifier: Apache-2.0
 *
 * pace.c: a job of kernels that do nothing, and take exactly the time that was planned for them.
 *
 * A paced job shows whether the simulator tells the truth.  Its actions, their order, its messages and its addresses are
 * those of the plan, on real threads that really wait for each other.  Only the arithmetic is replaced by sleep, so eight
 * stages of a distant machine run on two cores.  It cannot show whether the planned times are right; a profile can.
 *
 * A stage has a clock, Worker.due.  While it has something to do, each action begins when the one before was due to end, not
 * when this thread woke up.  A late wakeup, or the time to begin a message here, is made up for at once and does not add up.
 * A stage that finds its message there continues by its clock; one that really waits reads the time when it wakes.
 *
 * A message occupies the wire between two stages as in the simulator.  It starts when both sides have begun it and the one
 * before is through, and arrives a latency later.  It carries at most PACED_BYTES of its bytes, because copying the rest
 * would take cores from stages that are supposed to have their own.
 */
#include <string.h>
#include <time.h>
#include "meet.h"
#include "run.h"

enum { PACED_BYTES = 65536 };

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void sleep_until(int64_t due)
{
    struct timespec t = {(time_t)(due / 1000000000), (long)(due % 1000000000)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) != 0)
        continue;               /* a signal came */
}

static void wait_for(Worker *w, int64_t ready)
{
    if (ready <= w->due)
        return;
    sleep_until(ready);
    w->due = now();
}

static void begin(Worker *w, int number)
{
    const int64_t *pace = w->info->pace;
    if (w->pacing < 0) {
        w->due = now();
    } else if (pace[2 * w->pacing] > 0) {
        w->due += pace[2 * w->pacing];
        sleep_until(w->due);
    }
    w->pacing = number;
}

/* When a message arrives: whoever comes second knows both halves. */
static int64_t carry(const Stage *st, const Message *m, int64_t *wire)
{
    const StageInfo *stage = st->worker->run->job->stage;
    memcpy(m->target, m->source, (size_t)(m->bytes > PACED_BYTES ? PACED_BYTES : m->bytes));
    *wire = (m->from->begun > *wire ? m->from->begun : *wire) + stage[m->from->stage].pace[2 * m->from->at + 1];
    return *wire + stage[m->to->stage].pace[2 * m->to->at + 1];
}

const Pace pace_planned = {begin, wait_for, carry};
