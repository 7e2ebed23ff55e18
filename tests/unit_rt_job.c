/* SPDX-License-Identifier: Apache-2.0
 *
 * unit_rt_job: what stands around the steps of a job.  No signal is lost, however it falls; start values and open()
 * show the watchdog life; the log says what was taken and nothing else.  The date of this program is in the past: whoever
 * waits by it wakes at once.
 */
#include <fcntl.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "unit_rt.h"

enum { MANY = 1 << 20, ARENA = 4 * MANY + 128, SIGNALS = 3000 };

/* In place of the one of libc. */
int clock_gettime(clockid_t clock, struct timespec *t)
{
    int status = (int)syscall(SYS_clock_gettime, clock, t);
    t->tv_sec -= clock == CLOCK_REALTIME ? 100000 : 0;
    return status;
}

/* ---- signals ----------------------------------------------------------------------------------------------------- */

static _Atomic int taken;

/* Of the processor: on a busy machine each signal may wait for its turn as long as it likes. */
static double spent(void)
{
    return (double)clock() / CLOCKS_PER_SEC;
}

static void *send_signals(void *at)
{
    pthread_t to = *(pthread_t *)at;
    for (int i = 0; i < SIGNALS; i++) {
        pthread_kill(to, SIGUSR1);
        for (double from = spent(); atomic_load(&taken) <= i; sched_yield())
            if (spent() - from > 10)
                return at;          /* lost: the count stays behind */
    }
    return NULL;
}

static int take_signals(void *at)
{
    pthread_t self = pthread_self(), sender;
    void *lost = NULL;
    (void)at;
    signal_open();
    if (pthread_create(&sender, NULL, send_signals, &self) != 0)
        return 2;
    for (double from = spent(); atomic_load(&taken) < SIGNALS && spent() - from < 20; sched_yield())
        for (int i = 0; i < 100000; i++)
            if (signal_take() & WANT_SAVE)
                atomic_fetch_add(&taken, 1);
    if (atomic_load(&taken) < SIGNALS)
        return 1;
    pthread_join(sender, &lost);
    return lost != NULL;
}

static void test_signals(void)
{
    char said[256];
    check(in_child(take_signals, NULL, said, sizeof said) == 0, "of %d signals one was lost", SIGNALS);
}

/* Answers to signals, a bit each: behind a checkpoint that other ranks asked for, once more, and behind that checkpoint; then
 * behind one that was due, and behind one that is heard of while it is written. */
static int late_signals(void *at)
{
    int said = 0, n = 0;
    (void)at;
    signal_open();
    signal_saved(true);
    for (int i = 0; i < 3; i++) {
        raise(SIGUSR1);
        said |= (signal_take() & WANT_SAVE) << n++;
        if (i == 1)
            signal_saved(true);
    }
    signal_saved(false);
    raise(SIGUSR1);
    said |= (signal_take() & WANT_SAVE) << n++;
    signal_saved(true);
    raise(SIGUSR1);
    signal_saved(true);
    said |= (signal_take() & WANT_SAVE) << n++;
    raise(SIGUSR1);
    return said | (signal_take() & WANT_SAVE) << n;
}

static void test_late_signals(void)
{
    char said[256];
    int got = in_child(late_signals, NULL, said, sizeof said);
    check(got == 0x2e, "signals that come late are answered by %#x", (unsigned)got);
}

/* at: NULL, or the parent ignores the signal. */
static int hang_up(void *at)
{
    signal(SIGHUP, at ? SIG_IGN : SIG_DFL);
    signal_open();
    raise(SIGHUP);
    return signal_take();
}

static void test_hang_up(void)
{
    char said[256];
    check(in_child(hang_up, NULL, said, sizeof said) == WANT_STOP, "SIGHUP asks for no stop");
    check(in_child(hang_up, said, said, sizeof said) == 0, "SIGHUP under nohup is heard");
}

/* ---- a job of one parameter -------------------------------------------------------------------------------------- */

static int open_patience, step_patience;
static uint64_t first_beat;
static double norm;
static long asleep;               /* ns of each step */

static void open_(Stage *st)
{
    open_patience = atomic_load(&st->worker->patience);
}

static void step(Stage *st)
{
    first_beat = atomic_load(&st->worker->beat);
    action(st, 0, "everything");
    step_begin(st, A(0));
    step_patience = atomic_load(&st->worker->patience);
    Values *v = A(0);
    v->norm = norm < 0 ? v->norm : norm;
    nanosleep(&(struct timespec){0, asleep}, NULL);
    step_end(st, A(0));
}

static char two[] = "2", *silence = two;

static int run_job(void *at)
{
    static const StateInfo state = {"a.weight", STATE_PARAM, 1, 128, NOWHERE, MANY, 1, {MANY}, JOB_NORMAL, 0, 1, 1, 1, 0,
                                     0, 0, 0, 0, 0, 0, 0, 0, {0}};
    static const StageInfo stage = {.name = "stage0", .arena = ARENA, .threads = 1, .actions = 1, .open = open_,
                                    .step = step, .states = 1, .state = &state};
    const Job job = {.name = "tiny", .kernels = "none", .key = "key", .model = "m", .plan = "p", .stages = 1,
                     .stage = &stage, .batch = 1, .micro = 1, .groups = 1, .steps = 1, .tokens = 1, .lr = 1};
    char quiet[] = "--quiet", log[] = "--log", train[] = "train", dog[] = "--watchdog";
    char *argv[] = {train, quiet, log, at, dog, silence, NULL};
    int status = job_main(&job, 6, argv);
    if (status)
        return status;
    /* one life sign for 64 Ki elements: 2 ms at the cost that init.c gives; and time to prepare kernels */
    return first_beat < MANY >> 20 ? 101 : open_patience != PATIENT ? 102 : step_patience != 1 ? 103 : 0;
}

static void logs(const char *what, const char *text, bool there)
{
    char path[] = "/var/tmp/unit_rt_job.XXXXXX", said[512], log[4096] = "";
    int file = mkstemp(path), status = in_child(run_job, path, said, sizeof said);
    check(status == 0, "%s: status %d (101: no beats while values are made, 102: no patience in open, 103: patience "
          "left over): %s", what, status, said);
    check(read(file, log, sizeof log - 1) > 0 && !strstr(log, text) == !there, "%s: `%s` in %s", what, text, log);
    close(file);
    unlink(path);
}

int main(void)
{
    test_signals();
    test_late_signals();
    test_hang_up();
    norm = -1;
    logs("no norm was taken", "\"norm\":null", true);
    norm = 0;
    logs("all gradients are zero", "\"norm\":0,", true);
    norm = 2.5;
    logs("a norm", "\"norm\":2.5,", true);
    char null[] = "/dev/null", said[512];
    norm = INFINITY;            /* of a loss that is 0 */
    check(in_child(run_job, null, said, sizeof said) == STATUS_BROKEN && strstr(said, "after step 1 the norm"),
          "an infinite norm: %s", said);
    norm = 2.5;
    asleep = 600000000;
    check(in_child(run_job, null, said, sizeof said) == 0, "the watchdog of 2 s after 0.6 s: %s", said);
    silence = (char[]){"2305843009213693952"};
    check(in_child(run_job, null, said, sizeof said) == 0, "the watchdog of 2^61 s after 0.6 s: %s", said);
    asleep = 0;
    logs("portable kernels hold nothing", "\"library_bytes\":0,", true);
    return finish("unit_rt_job");
}
