/* SPDX-License-Identifier: Apache-2.0
 *
 * mem.c: memory that lives until exit.
 *
 * A compiler of one file needs no lifetimes: a later pass reads everything that a pass makes, and the process ends soon
 * after.  So nothing is freed, every block starts as zeros, and no caller ever sees a failed allocation.  The exception is a
 * search that plans hundreds of variants to keep a number of each.  It sets a mark, and later releases everything made
 * since.
 *
 * A room is a second place to fill: for the scratch of a pass, and for the lists of a plan that is only tried.  It goes when it
 * is dropped, or when a release takes what stood where it was opened.
 *
 * A block is a slice of a large chunk: what a search releases and asks for again a thousand times costs no call of malloc(),
 * and the system sees none of it.  With sanitizers each block is a chunk of its own, so that they see the end of every array.
 *
 * Cost: a vector takes at most twice its size; one that is the newest block grows where it is, another leaves its old place.
 */
#include "base.h"
#include <stdarg.h>

typedef struct Chunk {
    struct Chunk *below;
    size_t room, used, dirty;   /* bytes behind `dirty` were never used: they are zeros still */
    max_align_t data[];
} Chunk;

#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
enum { CHUNK = 0 };
#else
enum { CHUNK = 1 << 20 };
#endif

enum { UNIT = _Alignof(max_align_t) };         /* a block begins at a multiple of it */

static Chunk *top, *spare;      /* of the room that is filled; of CHUNK bytes each, released and kept */

struct Room {
    Room *older;
    Chunk *top;                 /* while another room is filled */
    const void *anchor;         /* a block of the room that it was opened in; with that the room goes */
};
static Room first, *filled = &first, *rooms;

enum { SPARE = 64 };            /* chunks: bert-base of the corpus takes 77 MB without them, 39 with them */

/* A chunk that has room for n bytes; NULL: there is no more memory.  For a block that is larger than a chunk, as many kept ones
 * go back.  SPARE of them stay. */
static Chunk *new_chunk(size_t n)
{
    Chunk *c = spare;
    if (c && n <= CHUNK) {
        spare = c->below;
        return c;
    }
    Chunk **rest = &spare;
    for (int i = 0; i < SPARE && *rest; i++)
        rest = &(*rest)->below;
    for (size_t back = 0; *rest && back < n; back += CHUNK) {
        c = *rest;
        *rest = c->below;
        free(c);
    }
    size_t room = n < CHUNK ? CHUNK : n;
    c = room < PTRDIFF_MAX - sizeof *c ? calloc(1, sizeof *c + room) : NULL;
    if (c)
        c->room = room;
    return c;
}

static void drop_chunk(Chunk **from)
{
    Chunk *c = *from;
    *from = c->below;
    if (c->room != CHUNK || !CHUNK) {
        free(c);
        return;
    }
    c->used = 0;
    c->below = spare;
    spare = c;
}

void *alloc(size_t n)
{
    size_t at = top ? (top->used + UNIT - 1) / UNIT * UNIT : 0;
    if (!top || !CHUNK || at > top->room || n > top->room - at) {
        Chunk *c = new_chunk(n);
        if (!c)
            fail(EXIT_RUN, "out of memory: %zu bytes more were asked for", n);
        c->below = top;
        top = c;
        at = 0;
    }
    char *block = (char *)top->data + at;
    top->used = at + n;
    if (at < top->dirty)
        memset(block, 0, n < top->dirty - at ? n : top->dirty - at);
    if (top->dirty < top->used)
        top->dirty = top->used;
    return block;
}

void *mem_mark(void)
{
    return top ? (char *)top->data + top->used : NULL;
}

static bool holds(const Chunk *c, const void *mark)
{
    uintptr_t data = (uintptr_t)c->data, at = (uintptr_t)mark;
    return at >= data && at <= data + c->used;
}

/* ---- rooms --------------------------------------------------------------------------------------------------------------- */

static bool is_held(const void *block)
{
    for (const Chunk *c = top; c; c = c->below)
        if (holds(c, block))
            return true;
    for (const Room *r = rooms; r; r = r->older)
        for (const Chunk *c = r == filled ? NULL : r->top; c; c = c->below)
            if (holds(c, block))
                return true;
    for (const Chunk *c = filled == &first ? NULL : first.top; c; c = c->below)
        if (holds(c, block))
            return true;
    return false;
}

Room *mem_in(Room *room)
{
    Room *was = filled;
    filled->top = top;
    filled = room ? room : &first;
    top = filled->top;
    return was;
}

Room *mem_now(void)
{
    return filled;
}

Room *mem_room(void)
{
    Room *r = malloc(sizeof *r);
    if (!r)
        fail(EXIT_RUN, "out of memory");
    *r = (Room){rooms, NULL, alloc(1)};
    return rooms = r;
}

void mem_drop(Room *room)
{
    Room **at = &rooms;
    if (room == filled)
        die("the room that is filled is dropped");
    while (*at != room)
        at = &(*at)->older;
    *at = room->older;
    while (room->top)
        drop_chunk(&room->top);
    free(room);
}

/* Blocks to come are larger than a chunk: what was kept of the small ones goes back. */
static void drop_spare(void)
{
    for (Chunk *c = spare; c; c = spare) {
        spare = c->below;
        free(c);
    }
}

void mem_drop_since(Room *room)
{
    while (rooms != room)
        mem_drop(rooms);
    mem_drop(room);
    drop_spare();
}

void mem_release(void *mark)
{
    while (top && !(mark && holds(top, mark)))
        drop_chunk(&top);
    if (top)
        top->used = (size_t)((char *)mark - (char *)top->data);
    while (rooms && rooms != filled && !is_held(rooms->anchor))
        mem_drop(rooms);
}

void mem_free_all(void)
{
    mem_in(NULL);
    mem_release(NULL);
    drop_spare();
}

void *alloc_copy(const void *at, size_t n)
{
    return memcpy(alloc(n), at, n);
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
char *text_close(Text *t)
{
    if (fclose(t->f) != 0)
        fail(EXIT_RUN, "out of memory: a text of %zu bytes", t->n);
    char *copy = memcpy(alloc(t->n + 1), t->at, t->n + 1);
    free(t->at);
    t->f = NULL;
    return t->at = copy;
}

/* Where `have` bytes at `at` find `want`: in place, if nothing was made since and the chunk has the room. */
static void *vec_place(void *at, size_t have, size_t want)
{
    if (have && top && (char *)at + have == (char *)top->data + top->used && want - have <= top->room - top->used) {
        top->used += want - have;
        if (top->dirty < top->used)
            top->dirty = top->used;
        return at;
    }
    void *place = alloc(want);
    if (have)
        memcpy(place, at, have);
    return place;
}

/* Room for element n; it is zeroed even where a caller took elements off the end before. */
void *vec_grow(void *at, int n, int *cap, size_t size)
{
    if (n == *cap) {
        if (n > INT32_MAX / 2)
            fail(EXIT_RUN, "out of memory: a list of more than %d elements", n);
        *cap = n ? 2 * n : 8;
        at = vec_place(at, (size_t)n * size, (size_t)*cap * size);
    }
    memset((char *)at + (size_t)n * size, 0, size);
    return at;
}
