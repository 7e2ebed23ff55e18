/* SPDX-License-Identifier: Apache-2.0
 *
 * base.h: what the tokenizer of rt/tokens takes from dpgen, for the program sample.  Memory lives until exit.
 */
#ifndef BASE_H
#define BASE_H
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PRINTF(a, b) __attribute__((format(printf, a, b)))
#define NORETURN __attribute__((noreturn))
enum { EXIT_RUN = 1, EXIT_USAGE, EXIT_MODEL = EXIT_USAGE };

/* sample.c: says it once, and goes back to where the tokenizer was called */
void token_fail(int status, const char *why) NORETURN;

static inline NORETURN PRINTF(2, 3) void fail(int status, const char *form, ...)
{
    char text[1024];
    va_list list;
    va_start(list, form);
    vsnprintf(text, sizeof text, form, list);
    va_end(list);
    token_fail(status, text);
}

static inline void *alloc(size_t n)
{
    void *at = calloc(n ? n : 1, 1);
    if (!at)
        fail(EXIT_RUN, "no memory for a tokenizer: %zu bytes", n);
    return at;
}

static inline PRINTF(1, 2) char *strf(const char *form, ...)
{
    va_list list, again;
    va_start(list, form);
    va_copy(again, list);
    int n = vsnprintf(NULL, 0, form, list);
    va_end(list);
    char *to = alloc((size_t)n + 1);
    vsnprintf(to, (size_t)n + 1, form, again);
    va_end(again);
    return to;
}

#define VEC(T) struct { T *at; int n, cap; }
#define PUSH(v) ((v)->at = vec_grow((v)->at, (v)->n, &(v)->cap, sizeof *(v)->at), &(v)->at[(v)->n++])
static inline void *vec_grow(void *at, int n, int *cap, size_t size)
{
    if (n == *cap) {
        *cap = n ? 2 * n : 8;
        at = n > INT32_MAX / 2 ? NULL : realloc(at, (size_t)*cap * size);
        if (!at)
            fail(EXIT_RUN, "no memory for a tokenizer: a list of %d", n);
    }
    memset((char *)at + (size_t)n * size, 0, size);
    return at;
}
typedef VEC(int) Ints;
#endif
