/* SPDX-License-Identifier: Apache-2.0
 *
 * signal.c: signals of batch systems and terminals.
 *
 * SIGUSR1: checkpoint and continue.  SIGTERM, SIGINT, SIGHUP (the terminal is gone): checkpoint at the end of the step and
 * stop with 75.  A second one of the same stops now, since the first restores the default action.  A signal that the parent
 * ignores stays ignored: nohup keeps a job.  The handler only sets a flag.  Stages agree on it with the numbers that they
 * exchange at the end of each step, so that all stop at the same one.
 */
#include <signal.h>
#include <string.h>
#include "mapped.h"
#include "run.h"

static volatile sig_atomic_t want_save, want_stop;

static void on_signal(int number)
{
    if (number == SIGUSR1)
        want_save = 1;
    else
        want_stop = 1;
}

void signal_open(void)
{
    static const struct { int number, flags; } table[] = {
        {SIGUSR1, SA_RESTART}, {SIGTERM, SA_RESTART | SA_RESETHAND}, {SIGINT, SA_RESTART | SA_RESETHAND},
        {SIGHUP, SA_RESTART | SA_RESETHAND}
    };
    struct sigaction a;
    memset(&a, 0, sizeof a);
    sigemptyset(&a.sa_mask);
    a.sa_handler = on_signal;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct sigaction old;
        a.sa_flags = table[i].flags;
        sigaction(table[i].number, &a, &old);
        if (old.sa_handler == SIG_IGN)      /* as nohup and a shell's background jobs want it */
            sigaction(table[i].number, &old, NULL);
    }
    a.sa_flags = 0;
    a.sa_handler = SIG_IGN;         /* a closed pipe, or a file that is too large, is an error of write(), with a message */
    sigaction(SIGPIPE, &a, NULL);
    sigaction(SIGXFSZ, &a, NULL);
    mapped_watch(program_name);
}

/* One signal of a launcher reaches the ranks at different times.  Who hears it while the checkpoint is written has what it asks
 * for.  So has who hears it up to LATE seconds behind one that the others asked for; a second signal is no late one. */
enum { LATE = 10 };
static bool heard;              /* since the last checkpoint */
static double late;             /* until then the next one is that of the others; 0: it is not */

void signal_saved(bool asked)
{
    late = asked && !heard && !want_save ? seconds() + LATE : 0;
    want_save = heard = 0;
}

/* srun and mpirun end the others by SIGTERM when the first has ended with a status.  They are as good as done: the job's status
 * is theirs, and not that of a signal. */
void signal_leave(void)
{
    signal(SIGTERM, SIG_IGN);
}

int signal_take(void)
{
    int want = want_stop ? WANT_STOP : 0;
    if (want_save) {            /* cleared only when seen: a signal in between is this one, not lost */
        want_save = 0;
        heard = seconds() >= late;
        late = 0;
        if (heard)
            want |= WANT_SAVE;
    }
    return want;
}
