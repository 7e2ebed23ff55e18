/* SPDX-License-Identifier: Apache-2.0
 *
 * unit_rt_job: what stands around the steps of a job.  No signal is lost, however it falls.
 */
#include <fcntl.h>
#include <signal.h>
#include <time.h>
#include "unit_rt.h"

enum { SIGNALS = 3000 };

/* ---- signals ----------------------------------------------------------------------------------------------------- */

static _Atomic int taken;

static void *send_signals(void *at)
{
    pthread_t to = *(pthread_t *)at;
    for (int i = 0; i < SIGNALS; i++) {
        pthread_kill(to, SIGUSR1);
        for (long spin = 0; atomic_load(&taken) <= i; spin++)
            if (spin > 200000000)
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
    double from = seconds();
    while (atomic_load(&taken) < SIGNALS && seconds() - from < 20)
        for (int i = 0; i < 1000; i++)
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

int main(void)
{
    test_signals();
    return finish("unit_rt_job");
}
