/* SPDX-License-Identifier: Apache-2.0
 *
 * process.c: a program run to its end, without a shell in between: names of files never become words of a command.
 */
#include "process.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LONGEST = 4096 };

static void read_lines(int in, void (*take)(void *ctx, char *line), void *ctx)
{
    FILE *f = fdopen(in, "r");
    char *line = alloc(LONGEST);
    while (f && fgets(line, LONGEST, f)) {
        line[strcspn(line, "\n")] = 0;
        take(ctx, line);
    }
    if (f)
        fclose(f);
}

int process_run(const char *const *argv, const char *log, void (*take)(void *ctx, char *line), void *ctx)
{
    int pipes[2], status;
    fflush(NULL);
    if (pipe(pipes) != 0)
        fail(EXIT_RUN, "cannot start %s: %s", argv[0], strerror(errno));
    pid_t child = fork();
    if (child < 0)
        fail(EXIT_RUN, "cannot start %s: %s", argv[0], strerror(errno));
    if (child == 0) {
        close(pipes[0]);
        int out = pipes[1];
        int err = open(log ? log : "/dev/null", O_WRONLY | O_CREAT | O_APPEND, 0666);
        int in = open("/dev/null", O_RDONLY);
        if (err < 0 || in < 0 || dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0)
            _exit(127);
        execvp(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    close(pipes[1]);
    read_lines(pipes[0], take, ctx);
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            fail(EXIT_RUN, "lost %s: %s", argv[0], strerror(errno));
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Of a compiler's output the line with the first error. */
const char *process_last(const char *log)
{
    FILE *f = fopen(log, "r");
    char *line = alloc(LONGEST), *last = alloc(LONGEST);
    bool error = false;
    while (f && !error && fgets(line, LONGEST, f)) {
        line[strcspn(line, "\n")] = 0;
        error = strstr(line, "error: ") != NULL;
        if (*line)
            memcpy(last, line, LONGEST);
    }
    if (f)
        fclose(f);
    return last;
}
