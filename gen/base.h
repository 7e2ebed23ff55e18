/* SPDX-License-Identifier: Apache-2.0
 *
 * base.h: what every file of the generator uses: memory, texts, diagnostics, hashes, numbers.
 *
 * Sizes are bytes, times are nanoseconds, both int64_t; no float decides a plan.
 */
#ifndef BASE_H
#define BASE_H
#include "sha256.h"
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
static inline int64_t max_of(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int64_t min_of(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t ceil_div(int64_t n, int64_t size) { return (n + size - 1) / size; }
enum { EXIT_RUN = 1, EXIT_USAGE, EXIT_MODEL, EXIT_NOFIT, EXIT_STALE, EXIT_MACHINE, EXIT_BUG = 70, EXIT_STOPPED = 130 };

/* ---- base/mem.c: memory lives until exit and starts as zeros; no pass frees ---------------------------- */
void *alloc(size_t n);
#define COPY(x) alloc_copy((x), sizeof *(x))        /* what x points to, once more */
void *alloc_copy(const void *at, size_t n);
char *strf(const char *form, ...) PRINTF(1, 2);     /* a printed string */
void *mem_mark(void);
void  mem_release(void *mark);                      /* frees all that alloc() gave since: for trials of which a number stays */
typedef struct Room Room;
Room *mem_room(void);                               /* opens one, empty; it goes with what alloc() gives now */
Room *mem_in(Room *room);                           /* alloc() fills it from here on; NULL: the first one.  The one before */
Room *mem_now(void);
void  mem_drop(Room *room);                         /* frees all of it */
void  mem_drop_since(Room *room);                   /* that and all that were opened behind it */
void  mem_free_all(void);                           /* at exit, so that sanitizers stay silent */
/* A text printed piece by piece: f while it is open; then at, with a zero byte after its n bytes. */
typedef struct { FILE *f; char *at; size_t n; } Text;
FILE *text_open(Text *t);
char *text_close(Text *t);
#define VEC(T) struct { T *at; int n, cap; }
/* Address of a new zeroed element at the end of a VEC. */
#define PUSH(v) ((v)->at = vec_grow((v)->at, (v)->n, &(v)->cap, sizeof *(v)->at), &(v)->at[(v)->n++])
/* for (EACH(const Op, o, g->op)): o points to each element, from the first on; the VEC does not grow meanwhile. */
#define EACH(T, x, v) T *x = (v).at; x && x < (v).at + (v).n; x++
/* All elements of another VEC, behind those that are there. */
#define APPEND(v, from) for (int from_ = 0; from_ < (from).n; from_++) *PUSH(v) = (from).at[from_]
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
Loc  diag_place(int file, const char *text, const char *at);      /* of a byte of its text */
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
Loc  diag_refused_at(void);                         /* its place */
void fail(int status, const char *form, ...) PRINTF(2, 3) NORETURN;   /* dpgen: text; for what has no place in a file */
#define die(...) die_at(__FILE__, __LINE__, __VA_ARGS__)            /* a bug in dpgen: status 70 */
void die_at(const char *file, int line, const char *form, ...) PRINTF(3, 4) NORETURN;
void diag_blame(const char *path);                  /* until NULL, what checkers find is this file's fault, status 3 */
void diag_forget(void);                             /* as at start: for tests that read many files in one process */
const char *nearest(const char *word, const char *const *names, int n);       /* NULL if none is near, or no word is given */
const char *did_you_mean(const char *word, const char *const *names, int n, const char *otherwise);     /* a remedy */
const char *names_remedy(const char *word, const Strs *names);      /* the nearest, or how many there are and the first */

/* ---- base/: sha1.c, quote.c, number.c, words.c ----------------------------------------------------------- */
void sha1_of(const void *data, size_t n, char hex[41]);
void json_text(FILE *f, const char *text);          /* a JSON string, quoted and escaped */
const char *quote_json(const char *text);           /* the same as a text */
uint64_t hash64(const char *text);                  /* FNV-1a: Philox keys of names */
const char *number_text(double x, int digits);      /* the shortest decimal text that is x, of so many digits at least */
uint64_t number_little(const unsigned char *at, int n);    /* n bytes, the lowest first */
double number_decimal(const char *text, size_t n);  /* nearest double to decimal text (12, 0.5, 1e-8), in any locale */
int64_t number_common(int64_t a, int64_t b);        /* the greatest common divisor; of a and 0: a */
const char *size_text(Bytes n);                     /* 23.61 GiB */
bool text_begins(const char *text, const char *with);
bool text_ends(const char *text, const char *with);
#define C_LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"
#define C_WORD C_LETTERS "0123456789"
char *text_plain(const char *text, const char *letters);    /* with _ for what is none of these letters */
bool strs_has(const Strs *list, const char *text);
/* The first of n structs, or texts, that begins with this text; -1: none does. */
#define INDEX_OF(at, n, text) text_index((at), (int)(n), sizeof *(at), (text))
int  text_index(const void *at, int n, size_t size, const char *text);
int  text_order(const void *a, const void *b);      /* for SORT: of texts, or of structs whose first field is one */
#define SORT(at, n, by) sort_by((at), (int)(n), sizeof *(at), (by))
void sort_by(void *at, int n, size_t size, int (*by)(const void *, const void *));
static inline int order_of(int64_t a, int64_t b) { return (a > b) - (a < b); }
/* An order of values T for SORT: each key compares *x with *y, and the first that tells them apart decides. */
#define ORDER(name, T, ...) \
    static int name(const void *a, const void *b) \
    { \
        T const *x = a; \
        T const *y = b; \
        const int key[] = {__VA_ARGS__}; \
        for (size_t i = 0; i < sizeof key / sizeof *key; i++) \
            if (key[i]) \
                return key[i]; \
        return 0; \
    }
const char *text_without(const char *text, const char *end);    /* what stands before that end; NULL: there is no such */
const char *text_numbered(const char *text, int64_t n);  /* with n in place of its {} */
const char *count_text(int64_t n, const char *thing);   /* 1 stage, 2 stages */

/* ---- base/file.c: files that the command line names ---------------------------------------------------------------- */
extern const char file_stdin[];     /* the path of the standard input, which file_read() reads once and hands out again */
/* A whole file, a zero byte behind its n.  What cannot be read ends dpgen with status 2 and a remedy. */
char *file_read(const char *path, const char *remedy, size_t *n);
FILE *file_open(const char *path, const char *remedy);
void  file_refuse(const char *path, const char *remedy) NORETURN;      /* by errno */
/* An output is no input and no other output, whatever links lead to it: status 2 as soon as the second of them is named.  All
 * that is opened here is told; options tell earlier. */
void  file_reads(const char *path);
void  file_writes(const char *path);
void  file_rewrites(const char *path);      /* its reader has all of it and keeps all of it: it may be written over */
/* Written beside path and put in its place at the end; what cannot be ends dpgen with status 1. */
FILE *file_begin(const char *path);
void  file_end(FILE *f, const char *path);
/* Those between take their places one after the other at the end, or none does.  dir: a folder, which is made; NULL none.
 * alone: one dpgen at a time writes there. */
void  files_begin(const char *dir, bool alone);
void  files_end(void);

/* ---- base/folder.c: a folder that appears whole or not at all, and the files that dpgen carries inside it ---------- */
const char *sha256_of(const void *data, size_t n);      /* in hex, 64 digits */
typedef struct Out Out;
void  out_check(const char *dir);                   /* ends with a message where out_begin() would */
Out  *out_begin(const char *dir);
FILE *out_open(Out *o, const char *name);           /* printable text; name is fixed by dpgen, at most one folder deep */
void  out_close(Out *o);
void  out_copy(Out *o, const char *name, const char *data, size_t n);
typedef struct { const char *name; char hex[65], sha1[41]; } OutFile;    /* hex: of SHA-256 */
const OutFile *out_files(Out *o, int *n);           /* what was written so far, by name */
const char *out_place(const Out *o);                 /* where its files are until it has its name */
const char *out_end(Out *o);                        /* MANIFEST, then into place; the SHA-256 of MANIFEST */
void  out_remove(const char *dir);                  /* a folder, whatever is in it */

/* embed: files of templates/ and rt/, inside the binary, with their sums; made by tools/embed.c; ends with a NULL name */
typedef struct { const char *name; const char *data; size_t n; const char *sha1, *sha256; } Embedded;
extern const Embedded embedded[];
const Embedded *embedded_find(const char *name);

/* ---- base/option.c: the options of a command as a table ----------------------------------------------------------- */
/* Each name, what its value is, and the text of a struct that it fills.  A row without a name ends a table.  A file that is
 * rewritten may be one that is read. */
/* TAKES_NOTHING sets a bool; what is TAKEN_ELSEWHERE is for others to read. */
typedef enum { TAKES_TEXT, READS_FILE, READS_FOLDER, WRITES_FILE, REWRITES_FILE, WRITES_FOLDER, TAKES_NOTHING,
    TAKEN_ELSEWHERE } OptionKind;
typedef struct { const char *name, *value; OptionKind kind; size_t field; } Option;

/* argv[0] is an option with its value behind it or behind a =: fills it, and returns how many words those were; 0: it is none
 * of the table.  A value that is missing or empty ends dpgen with status 2; so does a file to write that is one to read. */
int option_take(const Option *table, void *to, char **argv);
bool option_is_value(const char *word);             /* neither missing nor empty nor an option */
/* The same of a word that is no option. */
const char *option_word(const char *what, const char *word);
/* All of a command line: fills the options, and returns the other words, at most so many.  misuse: ends dpgen. */
Strs option_words(const Option *table, void *to, int argc, char **argv, const char *what, int most,
                  void (*misuse)(const char *why));

/* ---- base/process.c: other programs -------------------------------------------------------------------------------- */
/* Runs a program; each line of its standard output goes to take(); standard error to the file log, if there is one.  Returns
 * its exit status, 128 + signal, or 127 where it does not start. */
int process_run(const char *const *argv, const char *log, void (*take)(void *ctx, char *line), void *ctx);
/* Calls what is the main() of a program, in a process of its own, which ends without the handlers of this one.  Each line of
 * its standard error goes to take(); standard output is lost.  Returns as process_run() does. */
int process_call(int (*run)(int argc, char **argv), int argc, char **argv, void (*take)(void *ctx, char *line), void *ctx);
const char *process_last(const char *log);          /* last line that says something; "" if none does */

/* ---- base/purse.c: how much a part of a search may still do, in steps that it counts; never in time ---------------- */
/* A purse may be a part of another one.  What is spent of a part is spent of the whole too, so nothing is settled afterwards:
 * what one part leaves is there for the next.  NULL is a purse without an end. */
typedef struct Purse Purse;
struct Purse {
    Purse *of;                  /* that this is a part of; NULL: of none */
    int64_t left, kept;         /* kept: of left, for later */
    bool ended;                 /* there was nothing left, perhaps but what was kept */
};

Purse *purse_new(Purse *of, int64_t most);          /* at most so much of it */
int64_t purse_left(const Purse *p);                 /* at least 0; INT64_MAX: without an end */
void purse_spend(Purse *p, int64_t steps);
bool purse_ended(const Purse *p);                   /* was it, or one that it is a part of, ever spent? */

/* ---- base/quote.c: text of a file or of the command line, made harmless for where it is printed: a new text -------- */
const char *quote_c(const char *text);          /* a C string literal with its quotes; NULL: 0 */
const char *quote_comment(const char *text);    /* inside a comment of C or make, or a line of a README */
const char *quote_html(const char *text);       /* inside an element, or an attribute in double quotes */
const char *quote_shell(const char *text);      /* one word of a command that a person may copy */
const char *quote_recipe(const char *text);     /* one word of a recipe of make */
const char *quote_terminal(const char *text);   /* a line on a terminal */

/* ---- base/safe.c: files of safetensors: a header of JSON, then the bytes of the tensors ---------------------------- */
typedef struct {
    const char *name, *type;            /* F32, BF16, ... */
    int ndim;
    int64_t dim[8];
    int64_t bytes;
    const unsigned char *at;            /* of a file that is read */
} SafeTensor;
typedef struct { VEC(SafeTensor) tensor; } SafeFile;

/* A whole file, mapped until the end of dpgen; what cannot be read ends it with that status. */
const unsigned char *file_map(const char *path, int status, size_t *n);
/* What is no such file ends dpgen with status 5. */
SafeFile *safe_open(const char *path);              /* tensors by name */
const SafeTensor *safe_find(const SafeFile *f, const char *name);      /* NULL: it has not */
int64_t safe_bytes(const char *type, int ndim, const int64_t *dim);     /* of a tensor; -1: an unknown type, or too large */
/* Length and header; the bytes of the tensors follow in this order. */
void safe_header(FILE *f, const SafeTensor *tensor, int n);

/* ---- base/size.c: quantities as people write them: a decimal number and a unit ------------------------------------- */
typedef struct { const char *name; double factor; } Unit;       /* a row without a name ends a table */
extern const Unit size_bytes[];                     /* B, kB, MB, ..., KiB, MiB, ... */

typedef struct { const char *why, *hint; } SizeFault;
/* Rounded down to a whole number, at most 2^60; -1: `fault` says why.  behind: what follows each unit, such as /s. */
double size_read(const char *text, const Unit *units, const char *behind, const char *example, SizeFault *fault);

/* ---- base/triples.c: what a search has met already: three numbers -> their place in the order of meeting ----------- */
typedef struct { int a, b, c, index; } MemoKey;     /* index: 1 + that of the value; 0: free */
typedef struct { MemoKey *at; int n, cap; } Memo;   /* zeros: empty */
/* Index of (a, b, c): 0, 1, 2, ... ; equal to the n before the call if it is new. */
int memo_index(Memo *m, int a, int b, int c);
#endif
