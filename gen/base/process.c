/* SPDX-License-Identifier: Apache-2.0
 *
 * process.c: a program run to its end, without a shell in between: names of files never become words of a command.  Or one that
 * is linked into this one, in a process of its own.
 */
#include "base.h"
#include <errno.h>
#include <fcntl.h>
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

typedef struct { pid_t id; int from; } Child;            /* id 0: this is the child, and `from` where it writes */

static Child split(const char *name)
{
    int pipes[2];
    fflush(NULL);
    if (pipe(pipes) != 0)
        fail(EXIT_RUN, "cannot start %s: %s", name, strerror(errno));
    pid_t id = fork();
    if (id < 0)
        fail(EXIT_RUN, "cannot start %s: %s", name, strerror(errno));
    close(pipes[id == 0 ? 0 : 1]);
    return (Child){id, pipes[id == 0 ? 1 : 0]};
}

static bool stands(int out, int err)
{
    int in = open("/dev/null", O_RDONLY);
    return in >= 0 && out >= 0 && err >= 0 && dup2(in, 0) >= 0 && dup2(out, 1) >= 0 && dup2(err, 2) >= 0;
}

static int ended(Child c, const char *name, void (*take)(void *ctx, char *line), void *ctx)
{
    int status;
    read_lines(c.from, take, ctx);
    while (waitpid(c.id, &status, 0) < 0)
        if (errno != EINTR)
            fail(EXIT_RUN, "lost %s: %s", name, strerror(errno));
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int process_run(const char *const *argv, const char *log, void (*take)(void *ctx, char *line), void *ctx)
{
    Child c = split(argv[0]);
    if (c.id == 0) {
        if (stands(c.from, open(log ? log : "/dev/null", O_WRONLY | O_CREAT | O_APPEND, 0666)))
            execvp(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    return ended(c, argv[0], take, ctx);
}

int process_call(int (*run)(int argc, char **argv), int argc, char **argv, void (*take)(void *ctx, char *line), void *ctx)
{
    Child c = split(argv[0]);
    if (c.id == 0)
        _exit(stands(open("/dev/null", O_WRONLY), c.from) ? run(argc, argv) : 127);
    return ended(c, argv[0], take, ctx);
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
