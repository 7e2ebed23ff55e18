/* SPDX-License-Identifier: Apache-2.0
 *
 * text.c: messages, bounded text, the clock.
 *
 * Text is built in buffers that exist before the first step, and leaves through write(2).  No line of a running job needs the
 * allocator, and the line of one stage is never torn by that of another.
 */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "link.h"
#include "meet.h"
#include "run.h"

enum { LINE = 1024 };

bool write_all(int file, const void *data, size_t n)
{
    const char *at = data;
    while (n > 0) {
        ssize_t k = write(file, at, n);
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            return false;
        at += k;
        n -= (size_t)k;
    }
    return true;
}

bool write_piece(void *file, const void *piece, size_t n)
{
    return write_all(*(int *)file, piece, n);
}

bool copy_piece(void *next, const void *piece, size_t n)
{
    char **to = next;
    memcpy(*to, piece, n);
    *to += n;
    return true;
}

/* A program that has another name defines it once more, and that holds. */
__attribute__((weak)) const char program_name[] = "train";

static void say(const char *form, va_list list)
{
    char line[LINE];
    int n = snprintf(line, sizeof line, "%s: ", program_name);
    int k = vsnprintf(line + n, sizeof line - (size_t)n - 1, form, list);
    size_t end = k < 0 ? (size_t)n : strlen(line);
    for (char *c = line; c < line + end; c++)       /* names come from files that nobody has checked */
        if ((unsigned char)*c < ' ' || *c == 127)
            *c = '?';
    line[end] = '\n';
    write_all(STDERR_FILENO, line, end + 1);
}

int complain(int status, const char *form, ...)
{
    va_list list;
    va_start(list, form);
    say(form, list);
    va_end(list);
    return status;
}

void quit(Link *link, int status, const char *form, ...)
{
    va_list list;
    va_start(list, form);
    say(form, list);
    va_end(list);
    link_abort(link, status);
}

void stage_fail(Stage *st, const char *form, ...)
{
    va_list list;
    va_start(list, form);
    say(form, list);
    va_end(list);
    link_abort(st->link, STATUS_RUN);
}

/* Here the first failure is the end of the process. */
void stage_leave(Stage *st)
{
    link_abort(st->link, STATUS_RUN);
}

void text_add(Text *t, const char *form, ...)
{
    va_list list;
    size_t room = t->n < t->cap ? t->cap - t->n : 0;
    va_start(list, form);
    int k = vsnprintf(room ? t->at + t->n : NULL, room, form, list);
    va_end(list);
    if (k > 0)
        t->n += (size_t)k;
}

void text_json(Text *t, const char *string)
{
    text_add(t, "\"");
    for (const char *c = string; *c; c++)
        if (*c == '"' || *c == '\\')
            text_add(t, "\\%c", *c);
        else if ((unsigned char)*c < ' ')
            text_add(t, "\\u%04x", (unsigned)*c);
        else
            text_add(t, "%c", *c);
    text_add(t, "\"");
}

void text_number(Text *t, double x)
{
    if (isfinite(x))
        text_add(t, "%.17g", x);
    else
        text_add(t, "null");
}

double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
