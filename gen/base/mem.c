/* SPDX-License-Identifier: Apache-2.0
 *
 * mem.c: memory that lives until exit.
 *
 * A compiler of one file needs no lifetimes: a later pass reads everything that a pass makes, and the process ends soon
 * after.  So nothing is freed, every block starts as zeros, and no caller ever sees a failed allocation.  The exception is a
 * search that plans hundreds of variants to keep a number of each.  It sets a mark, and later releases everything made
 * since.  Each block is one calloc() on a chain, not a slice of a larger one: sanitizers then see the end of every single
 * array.
 *
 * Cost: 16 bytes a block; an outgrown vector stays where it was, so a vector costs at most twice its size.
 */
#include "base.h"
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

typedef union Block {
    union Block *next;
    max_align_t align;          /* what follows is aligned for any type */
} Block;

static Block *blocks;

void *alloc(size_t n)
{
    Block *b = n < PTRDIFF_MAX - sizeof *b ? calloc(1, sizeof *b + n) : NULL;
    if (!b)
        fail(EXIT_RUN, "out of memory: %zu bytes more were asked for", n);
    b->next = blocks;
    blocks = b;
    return b + 1;
}

/* What a search gives back it asks for again soon.  The system's pages cost more than the work in them: so they stay. */
void mem_keep(void)
{
#ifdef __GLIBC__
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    mallopt(M_MMAP_THRESHOLD, 1 << 25);
#endif
}

void *mem_mark(void)
{
    return blocks;
}

void mem_release(void *mark)
{
    while (blocks && blocks != mark) {
        Block *b = blocks;
        blocks = b->next;
        free(b);
    }
}

void mem_free_all(void)
{
    mem_release(NULL);
}

char *strf(const char *form, ...)
{
    char some[256];
    va_list list;
    va_start(list, form);
    int n = vsnprintf(some, sizeof some, form, list);
    va_end(list);
    if (n < 0)
        die("a text cannot be printed");
    char *text = alloc((size_t)n + 1);
    if ((size_t)n < sizeof some)
        return memcpy(text, some, (size_t)n + 1);
    va_start(list, form);
    vsnprintf(text, (size_t)n + 1, form, list);
    va_end(list);
    return text;
}

FILE *text_open(Text *t)
{
    t->f = open_memstream(&t->at, &t->n);
    if (!t->f)
        fail(EXIT_RUN, "out of memory");
    return t->f;
}

/* The stream's own buffer would have an owner; the copy lives until exit like all else. */
void text_close(Text *t)
{
    if (fclose(t->f) != 0)
        fail(EXIT_RUN, "out of memory: a text of %zu bytes", t->n);
    char *copy = memcpy(alloc(t->n + 1), t->at, t->n + 1);
    free(t->at);
    t->at = copy;
    t->f = NULL;
}

/* Room for element n; it is zeroed even where a caller took elements off the end before. */
void *vec_grow(void *at, int n, int *cap, size_t size)
{
    if (n == *cap) {
        if (n > INT32_MAX / 2)
            fail(EXIT_RUN, "out of memory: a list of more than %d elements", n);
        *cap = n ? 2 * n : 8;
        void *old = at;
        at = alloc((size_t)*cap * size);
        if (n)
            memcpy(at, old, (size_t)n * size);
    }
    memset((char *)at + (size_t)n * size, 0, size);
    return at;
}
