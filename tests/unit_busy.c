/* SPDX-License-Identifier: Apache-2.0
 *
 * unit_busy: the line on a terminal, seen through a pseudo terminal: after a second and not before, in the width of 80
 * columns, gone at the end; nothing in a pipe.
 */
#define _XOPEN_SOURCE 700
#include "base.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int passed, failed;
static char said[4096];

static void check(bool good, const char *what)
{
    passed += good;
    failed += !good;
    if (good)
        return;
    printf("unit_busy: %s:", what);
    for (const char *c = said; *c; c++)
        printf(*c < ' ' ? "\\%o" : "%c", *c);
    printf("\n");
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Signals come in between, so it is no sleep. */
static void work(double seconds)
{
    for (double end = now() + seconds; now() < end;)
        poll(NULL, 0, 10);
}

/* What is written within so many seconds of work, and behind them; the seconds that it took. */
static double told_once(int from, int to, double seconds, const char *form, int a, int b)
{
    int old = dup(STDERR_FILENO);
    double begun = now();
    dup2(to, STDERR_FILENO);
    busy_with("planning");
    busy_at(form, a, b);
    work(seconds);
    busy_end();
    double took = now() - begun;
    fflush(stderr);
    dup2(old, STDERR_FILENO);
    close(old);
    fcntl(from, F_SETFL, O_NONBLOCK);
    size_t used = 0;
    for (ssize_t n; (n = read(from, said + used, sizeof said - 1 - used)) > 0;)     /* a terminal gives write by write */
        used += (size_t)n;
    said[used] = 0;
    return took;
}

/* A machine that stands still for half a second would see the next second's line. */
static void told(int from, int to, double seconds, const char *form, int a, int b)
{
    for (int tries = 0; told_once(from, to, seconds, form, a, b) > seconds + 0.4 && tries < 20; tries++) {}
}

int main(void)
{
    int pipes[2], master = posix_openpt(O_RDWR | O_NOCTTY);
    if (master < 0 || grantpt(master) || unlockpt(master) || pipe(pipes)) {
        printf("unit_busy: skipped: no pseudo terminal\nunit_busy: 0 passed, 0 failed, 5 skipped\n");
        return 0;
    }
    int slave = open(ptsname(master), O_RDWR | O_NOCTTY);
    told(master, slave, 1.4, ", %d of %d", 3, 12);
    check(!strcmp(said, "\r\033[Kdpgen: planning, 3 of 12, 1 s \r\033[K"), "a line, once, and gone");
    told(master, slave, 0.3, ", %d of %d", 3, 12);
    check(!*said, "work of less than a second");
    told(master, slave, 1.2, ", %070d %d", 1, 2);
    check(strlen(said) > 60 && strcspn(said + 4, "\r") < 80, "a long line");
    told(pipes[0], pipes[1], 1.2, ", %d of %d", 3, 12);
    check(!*said, "a pipe");
    busy_at(", %d", 1);
    busy_end();
    work(1.1);              /* a clock that still ran would end the program here */
    check(true, "the end");
    printf("unit_busy: %d passed, %d failed\n", passed, failed);
    return failed > 0;
}
