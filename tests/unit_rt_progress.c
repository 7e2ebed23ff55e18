/* SPDX-License-Identifier: Apache-2.0
 *
 * unit_rt_progress: the curve and the closing lines of a run, against values worked out by hand.
 */
#include <math.h>
#include <stdarg.h>
#include "unit_rt.h"

static char said[1 << 16];

/* Everything that steps of these losses print, at the end alone. */
static const Cores nobody;
static void told_beside(Run *run, int64_t steps, double (*loss)(int64_t), Cores before)
{
    int file[2], old = dup(STDOUT_FILENO);
    fflush(stdout);
    progress_begin(run);
    run->progress.cores.all -= before.all;
    run->progress.cores.busy -= before.busy;
    run->progress.cores.process -= before.process;
    run->opt.quiet = true;
    for (int64_t i = 0; i < steps; i++)
        progress_step(run, &(Step){i + 1, loss(i), -1, i ? 0.25 : 100, 1});
    run->opt.quiet = false;
    if (pipe(file) != 0)
        exit(2);
    dup2(file[1], STDOUT_FILENO);
    progress_end(run);
    dup2(old, STDOUT_FILENO);
    close(file[1]);
    ssize_t n = read(file[0], said, sizeof said - 1);
    said[n > 0 ? n : 0] = 0;
    close(file[0]);
    close(old);
}

static void told(Run *run, int64_t steps, double (*loss)(int64_t))
{
    told_beside(run, steps, loss, nobody);
}

static double ramp(int64_t i)
{
    return 60 - (double)i;
}

static double stairs(int64_t i)
{
    return i < 480 ? 3 : 1;
}

static double holes(int64_t i)
{
    return i % 2 ? (double)NAN : 2;
}

static double lost(int64_t i)
{
    (void)i;
    return (double)NAN;
}

/* Line n of the curve from the bar on; 0 is the highest row. */
static const char *row(int n, char *to)
{
    const char *at = said;
    for (int i = 0; i < n && at; i++)
        at = strchr(at, '\n') + 1;
    at = strchr(at, '|') + 1;
    snprintf(to, 128, "%.*s", (int)strcspn(at, "\n"), at);
    return to;
}

/* 60 steps, loss 60-i: column i is in row round(9 i / 59), and a row has no star elsewhere. */
static void test_ramp(Run *run)
{
    char line[128], want[128];
    told(run, 60, ramp);
    for (int r = 0; r < 10; r++) {
        int end = 0;
        memset(want, ' ', sizeof want);
        for (int i = 0; i < 60; i++)
            if ((int)floor(9.0 * i / 59 + 0.5) == r)
                want[i] = '*', end = i + 1;
        want[end] = 0;
        check(!strcmp(row(r, line), want), "row %d of the ramp is [%s], not [%s]", r, line, want);
    }
    check(strstr(said, "  60.0000 |*") == said, "the highest row is not marked 60: %.20s", said);
    check(strstr(said, "\n   1.0000 |") != NULL, "the lowest row is not marked 1");
    check(strstr(said, "loss 60.0000 at step 1, 1.0000 at the end\n") != NULL, "losses: %s", strstr(said, "\nloss"));
    check(strstr(said, "mean step 250.0 ms, predicted 200.0 (25.0 % more)\n") != NULL, "times: %s", said);
}

/* 960 steps: buckets of 16; the first half 3, the second 1: two rows and one fall between them. */
static void test_joined(Run *run)
{
    char line[128];
    told(run, 960, stairs);
    check(strlen(row(0, line)) == 30 && strspn(line, "*") == 30, "the upper stair is [%s]", line);
    check(strlen(row(9, line)) == 60 && strspn(line, " ") == 30, "the lower stair is [%s]", line);
    check(strlen(row(5, line)) == 31 && strspn(line, " ") == 30, "the fall is [%s]", line);
    told(run, 960, ramp);       /* the last bucket: 60-944 .. 60-959 */
    check(strstr(said, "loss 60.0000 at step 1, -891.5000 at the end\n") != NULL, "the last 16 of 960");
    check(strstr(said, "  52.5000 |*") == said, "the first 16 of 960: %.20s", said);
    check(strstr(said, "\n           1                                                        960\n") != NULL, "the axis");
}

/* What is no number is left out; nothing but that has no curve. */
static void test_numbers(Run *run)
{
    char line[128];
    told(run, 120, holes);
    check(strspn(row(0, line), "*") == 60, "a constant with holes is [%s]", line);
    told(run, 120, lost);
    check(!strchr(said, '*'), "a curve of nothing: %s", said);
    told(run, 15, ramp);
    check(!strchr(said, '*'), "a curve of 15 steps: %s", said);
    told(run, 0, ramp);
    check(!*said, "words about no step: %s", said);
}

static void test_clock(Run *run)
{
    progress_begin(run);
    run->opt.seconds = 0;
    run->progress.begun = seconds() - 100;
    check(!progress_late(run), "without --seconds it is late");
    run->opt.seconds = 101;
    check(!progress_late(run), "100 s of 101 are late");
    run->opt.seconds = 99;
    check(progress_late(run), "100 s of 99 are not late");
}

/* 10000 ticks passed, 3500 idle and waiting for disks; of the 6500 this process had 500: 60 %. */
static void test_cores(Run *run)
{
    Cores a, b;
    bool both = cores_read("cpu  1000 100 500 8000 100 20 30 250 7 7\ncpu0 1 2 3\n", 0.01, &a) &&
                cores_read("cpu  6000 600 1300 11000 600 70 80 350 9 9\n", 0.01, &b);
    check(both && fabs(b.all - a.all - 100) < 1e-9 && fabs(b.busy - a.busy - 65) < 1e-9, "of %g s, %g are used", b.all - a.all,
          b.busy - a.busy);
    b.process = a.process + 5;
    check(fabs(cores_others(&a, &b) - 0.6) < 1e-9, "others used %g", cores_others(&a, &b));
    check(cores_others(&a, &a) < 0, "nothing is told of no time");
    check(!cores_read("", 0.01, &a) && !cores_read("cpu 1 2", 0.01, &a) && !cores_read("intr 5", 0.01, &a), "text of others");
    told_beside(run, 60, ramp, (Cores){1000, 650, 50});
    check(strstr(said, "25.0 % more); other processes used 60 % of the cores\n") != NULL, "a loaded machine: %s", said);
    told_beside(run, 60, ramp, (Cores){1000, 850, 790});
    check(!strstr(said, "other processes"), "a machine of our own: %s", said);
    run->job = &(Job){.name = "job", .stages = 1, .stage = run->job->stage, .step_ns = 240000000};
    told_beside(run, 60, ramp, (Cores){1000, 650, 50});
    check(!strstr(said, "other processes"), "steps as predicted: %s", said);
}

int main(void)
{
    StageInfo stage = {.arena = 1 << 20};
    Job job = {.name = "job", .stages = 1, .stage = &stage, .step_ns = 200000000};
    Run run = {.job = &job, .opt.steps = 60, .program = "nowhere/train"};
    test_ramp(&run);
    test_joined(&run);
    test_numbers(&run);
    test_clock(&run);
    test_cores(&run);
    return finish("unit_rt_progress");
}
