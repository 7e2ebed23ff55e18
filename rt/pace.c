/* SPDX-License-Identifier: Apache-2.0
 *
 * pace.c: a job whose kernels do nothing, and take exactly the time that was planned for them.
 *
 * A paced job shows whether the simulator tells the truth: its actions, their order, its messages and the addresses in
 * its arenas are those of the plan, on real threads that really wait for each other; only the arithmetic is replaced by
 * sleep.  So eight stages of a machine that is elsewhere run on two cores.  What it cannot show is whether the planned
 * times are right: that is what a profile is for.
 *
 * A stage has a clock, Worker.due.  While it has something to do, each action begins when the one before was due to end and
 * not when this thread woke up: a late wakeup, or the time that it takes here to begin a message, is made up for at once and
 * does not add up.  A stage that finds what it waits for there goes on by its clock; one that really waits reads the time
 * when it wakes.  A message occupies the wire from one stage to the other from when both sides have begun it and the one
 * before is through, and arrives a latency later, as in the simulator; it carries at most PACED_BYTES of its bytes, because
 * copying the rest would take cores from stages that are supposed to have their own.
 */
#include <time.h>
#include "run.h"

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

void pace_wait(Worker *w, int64_t ready)
{
    if (ready <= w->due)
        return;
    sleep_until(ready);
    w->due = now();
}

void pace_action(Worker *w, int number)
{
    const long *pace = w->info->pace;
    if (!pace)
        return;
    if (w->pacing < 0) {
        w->due = now();
    } else if (pace[2 * w->pacing] > 0) {
        w->due += pace[2 * w->pacing];
        sleep_until(w->due);
    }
    w->pacing = number;
}
