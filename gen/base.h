/* SPDX-License-Identifier: Apache-2.0
 *
 * base.h: what every file of the generator uses: memory, texts, diagnostics, hashes, numbers.
 *
 * Sizes are bytes, times are nanoseconds, both int64_t; no float decides a plan.
 */
#ifndef BASE_H
#define BASE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include "version.h"

#if defined __BYTE_ORDER__ && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "this machine is big endian: dpgen reads and writes files that are little endian, and swaps nothing"
#endif

#define PRINTF(a, b) __attribute__((format(printf, a, b)))
#define NORETURN __attribute__((noreturn))

typedef int64_t Bytes;
typedef int64_t Ns;
enum { ALIGN = 64 };            /* of every buffer: a cache line */
static inline Bytes aligned(Bytes n) { return (n + ALIGN - 1) / ALIGN * ALIGN; }     /* the room that a buffer takes */
enum { EXIT_RUN = 1, EXIT_USAGE, EXIT_MODEL, EXIT_NOFIT, EXIT_STALE, EXIT_MACHINE, EXIT_BUG = 70, EXIT_STOPPED = 130 };

/* ---- base/mem.c: memory lives until exit and starts as zeros; no pass frees ---------------------------- */
void *alloc(size_t n);
char *strf(const char *form, ...) PRINTF(1, 2);     /* a printed string */
void *mem_mark(void);
void  mem_release(void *mark);                      /* frees all that alloc() gave since: for trials of which a number stays */
typedef struct Room Room;
Room *mem_room(void);                               /* opens one, empty; it goes with what alloc() gives now */
Room *mem_in(Room *room);                           /* alloc() fills it from here on; NULL: the first one.  The one before */
Room *mem_now(void);
void  mem_drop(Room *room);                         /* frees all of it */
void  mem_free_all(void);                           /* at exit, so that sanitizers stay silent */
/* A text printed piece by piece: f while it is open; then at, with a zero byte after its n bytes. */
typedef struct { FILE *f; char *at; size_t n; } Text;
FILE *text_open(Text *t);
void  text_close(Text *t);
#define VEC(T) struct { T *at; int n, cap; }
/* Address of a new zeroed element at the end of a VEC. */
#define PUSH(v) ((v)->at = vec_grow((v)->at, (v)->n, &(v)->cap, sizeof *(v)->at), &(v)->at[(v)->n++])
void *vec_grow(void *at, int n, int *cap, size_t size);
typedef VEC(int) Ints;
typedef VEC(const char *) Strs;
typedef VEC(Ns) Times;

/* ---- base/busy.c: a line on a terminal, once a second -------------------------------------------------- */
void busy_with(const char *what);                   /* `planning`: until the next one, or busy_end() */
void busy_at(const char *form, ...) PRINTF(1, 2);   /* how far, put behind it: `, 3 of 12`; nothing where nothing began */
void busy_heeds(bool interrupt);                    /* from here on the first SIGINT is only noted */
bool busy_stopped(void);                            /* one was: show what there is, with status EXIT_STOPPED */
void busy_end(void);                                /* before anything is printed; diag.c calls it */

/* ---- base/diag.c ------------------------------------------------------------------------------------- */
/* Where something stands in an input file: file is what diag_file() gave, line and column count from 1; line -1: in none. */
typedef struct { int file, line, col; } Loc;
int  diag_file(const char *path, const char *text, size_t n);     /* remember a file for caret lines; text NULL: for none */
const char *diag_path(Loc at);
uint32_t diag_char(const char *at, const char *end, int *bytes);  /* next UTF-8 character, its length; 0xfffd, 1: none */
bool diag_unsafe(uint32_t c);                       /* controls, direction marks, zero-width: never printed as they are */
/* file:line:col: error: text, the source line, a caret, the hint (may be NULL) behind the caret. */
void bad(Loc at, const char *hint, const char *form, ...) PRINTF(3, 4);           /* counts, goes on to 20 */
void err(Loc at, const char *hint, const char *form, ...) PRINTF(3, 4) NORETURN;  /* stops, status 3 */
void warn(Loc at, const char *form, ...) PRINTF(2, 3);
void bad_stop(void);                                /* status 3 if bad() was called */
bool diag_accepts(void (*run)(void *ctx), void *ctx);   /* tries something: false, and nothing printed, at its first bad() */
const char *diag_refusal(void);                     /* the text of that, of the last trial that was false */
void fail(int status, const char *form, ...) PRINTF(2, 3) NORETURN;   /* dpgen: text; for what has no place in a file */
#define die(...) die_at(__FILE__, __LINE__, __VA_ARGS__)            /* a bug in dpgen: status 70 */
void die_at(const char *file, int line, const char *form, ...) PRINTF(3, 4) NORETURN;
void diag_blame(const char *path);                  /* until NULL, what checkers find is this file's fault, status 3 */
void diag_forget(void);                             /* as at start: for tests that read many files in one process */
const char *nearest(const char *word, const char *const *names, int n);       /* did you mean; NULL if none is near */
const char *names_remedy(const char *word, const Strs *names);      /* the nearest, or how many there are and the first */

/* ---- base/: sha256.c, sha1.c, quote.c, number.c, words.c ----------------------------------------------------------- */
typedef struct { uint32_t h[8]; uint64_t n; unsigned char block[64]; } Sha256;
void sha256_start(Sha256 *s);
void sha256_add(Sha256 *s, const void *data, size_t n);
void sha256_end(Sha256 *s, char hex[65]);
void sha1_of(const void *data, size_t n, char hex[41]);
void json_text(FILE *f, const char *text);          /* a JSON string, quoted and escaped */
uint64_t hash64(const char *text);                  /* FNV-1a: Philox keys of names */
const char *number_text(double x, int digits);      /* the shortest decimal text that is x, of so many digits at least */
uint64_t number_little(const unsigned char *at, int n);    /* n bytes, the lowest first */
double number_decimal(const char *text, size_t n);  /* nearest double to decimal text (12, 0.5, 1e-8), in any locale */
int64_t number_common(int64_t a, int64_t b);        /* the greatest common divisor; of a and 0: a */
const char *size_text(Bytes n);                     /* 23.61 GiB */
const char *text_without(const char *text, const char *end);    /* what stands before that end; NULL: there is no such */
const char *count_text(int64_t n, const char *thing);   /* 1 stage, 2 stages */
#endif
