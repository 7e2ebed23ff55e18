/* SPDX-License-Identifier: Apache-2.0
 *
 * unit_rt.h: what the unit tests of the runtime share: counting, and calls that are expected to end the process, made
 * in a child whose words are read back.
 */
#ifndef UNIT_RT_H
#define UNIT_RT_H
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "rt/link.h"
#include "rt/run.h"

static int passed, failed;

__attribute__((format(printf, 2, 3))) static inline void check(int good, const char *form, ...)
{
    va_list list;
    passed += good != 0;
    failed += !good;
    if (good)
        return;
    va_start(list, form);
    vfprintf(stderr, form, list);
    va_end(list);
    fputc('\n', stderr);
}

/* Runs f(with) in a child; its exit status, and in `said` the start of what it wrote to standard error. */
static inline int in_child(int (*f)(void *), void *with, char *said, size_t room)
{
    int pipe_[2], status = 0;
    size_t used = 0;
    ssize_t n;
    fflush(stdout);
    if (pipe(pipe_) != 0)
        return -1;
    pid_t child = fork();
    if (child == 0) {
        dup2(pipe_[1], STDERR_FILENO);
        close(pipe_[0]);
        close(pipe_[1]);
        _exit(f(with));
    }
    close(pipe_[1]);
    while (used + 1 < room && (n = read(pipe_[0], said + used, room - used - 1)) > 0)
        used += (size_t)n;
    said[used] = 0;
    close(pipe_[0]);
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* The child must end with `status` and say `text`. */
static inline void refuse(const char *what, int (*f)(void *), void *with, int status, const char *text)
{
    char said[4096];
    int got = in_child(f, with, said, sizeof said);
    check(got == status, "%s: status %d, not %d: %s", what, got, status, said);
    check(strstr(said, text) != NULL, "%s: `%s` is not in: %s", what, text, said);
}

static inline int finish(const char *name)
{
    printf("%s: %d passed, %d failed\n", name, passed, failed);
    return failed != 0;
}
#endif
