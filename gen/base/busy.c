/* SPDX-License-Identifier: Apache-2.0
 *
 * busy.c: one line on a terminal about work that takes more than a second.
 *
 * Whoever begins such work names it, and may say how far it is.  A clock writes the line, once a second, from a signal handler:
 * so a single step that takes minutes is seen to go on, and the steps themselves ask no clock.  In a pipe nothing is set up
 * and nothing is written.
 *
 * Work that has something to show before its end asks whether it was interrupted.  A first SIGINT is such a question, a second
 * one ends the process.
 */
#include "base.h"

#include <signal.h>
#include <stdarg.h>
#include <unistd.h>

enum { WIDE = 64 };                                 /* with number and mark below 80 columns */

static char text[WIDE];
static size_t named;                                /* characters of the name at its front */
static volatile sig_atomic_t length, seconds_, shown;   /* length 0: the text is being changed */

static volatile sig_atomic_t stopped;

static void on_interrupt(int signal_)
{
    (void)signal_;
    stopped = 1;
}

void busy_heeds(bool interrupt)
{
    struct sigaction a;
    if (sigaction(SIGINT, NULL, &a) != 0 || a.sa_handler == SIG_IGN)    /* nohup, or a shell's background */
        return;
    memset(&a, 0, sizeof a);
    sigemptyset(&a.sa_mask);
    a.sa_handler = interrupt ? on_interrupt : SIG_DFL;
    a.sa_flags = interrupt ? (int)(SA_RESTART | SA_RESETHAND) : 0;
    sigaction(SIGINT, &a, NULL);
}

bool busy_stopped(void)
{
    return stopped;
}

static void put(char *to, size_t *n, const char *from, size_t k)
{
    memcpy(to + *n, from, k);
    *n += k;
}

static void on_second(int signal_)
{
    (void)signal_;
    char line[WIDE + 64], digit[16];
    size_t n = 0, k = 0;
    seconds_ = seconds_ + 1;
    for (int s = seconds_; s > 0 && k < sizeof digit; s /= 10)
        digit[k++] = (char)('0' + s % 10);
    put(line, &n, "\r\033[Kdpgen: ", 11);
    put(line, &n, text, (size_t)length);
    put(line, &n, ", ", 2);
    while (k > 0)
        line[n++] = digit[--k];
    put(line, &n, " s ", 3);
    if (length > 0) {
        shown = 1;
        if (write(STDERR_FILENO, line, n) < 0)
            return;
    }
    alarm(1);
}

void busy_with(const char *what)
{
    struct sigaction a;
    busy_end();
    if (!isatty(STDERR_FILENO))
        return;
    length = 0;
    named = strlen(what) < WIDE ? strlen(what) : WIDE - 1;
    memcpy(text, what, named);
    length = (sig_atomic_t)named;
    memset(&a, 0, sizeof a);
    sigemptyset(&a.sa_mask);
    a.sa_handler = on_second;
    a.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &a, NULL);
    alarm(1);
}

void busy_at(const char *form, ...)
{
    if (named == 0)
        return;
    va_list list;
    char detail[WIDE];
    va_start(list, form);
    int n = vsnprintf(detail, sizeof detail, form, list);
    va_end(list);
    length = 0;
    size_t room = WIDE - named, k = n < 0 ? 0 : (size_t)n < room ? (size_t)n : room;
    memcpy(text + named, detail, k);
    length = (sig_atomic_t)(named + k);
}

void busy_end(void)
{
    if (named == 0)
        return;
    alarm(0);
    signal(SIGALRM, SIG_IGN);
    named = 0;
    length = seconds_ = 0;
    if (shown)
        fprintf(stderr, "\r\033[K");
    shown = 0;
}
