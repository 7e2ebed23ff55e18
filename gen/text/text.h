/* SPDX-License-Identifier: Apache-2.0
 *
 * text.h: records of one line, described by tables; shared by text.c, text/graph.c and text/plan.c.
 */
#ifndef TEXT_H
#define TEXT_H
#include "plan.h"

/* ---- references: every thing that a record may name -------------------------------------------------------------- */
typedef enum { R_TENSOR, R_STATE, R_OP, R_BUF, R_POOL, R_HOST, R_ROUTINE, R_KINDS } RefKind;
typedef struct {
    Strs name;                  /* by index; refs_seal() makes them different: x, x#2 */
    int *sorted;                /* indices, by name */
} Refs;
void refs_seal(Refs *r);

/* ---- tables ------------------------------------------------------------------------------------------------------ */
typedef enum {
    V_INT, V_LONG, V_BOOL, V_FLOAT,     /* decimal; a float hexadecimal */
    V_INDEX,                            /* an int that is -1 where there is none */
    V_TEXT,                             /* %XX for what a word cannot hold */
    V_WORD,                             /* an enum: one of `words` */
    V_SHAPE,                            /* 2x16x768 */
    V_REF, V_REFS, V_INTS, V_TIMES, V_TEXTS     /* a name, `-` for -1; lists with commas */
} TextValueKind;
typedef struct {
    const char *key;
    TextValueKind kind;
    size_t at;                  /* offset in the struct */
    const char *const *words;   /* V_WORD: NULL ends */
    RefKind ref;                /* V_REF, V_REFS */
    int only;                   /* n: only where the word at the table's `tag` is n - 1; 0: always */
    bool first;                 /* V_WORD: may be missing, and is then the first of its words */
} TextField;                    /* a NULL key ends a table */
typedef struct {
    const char *word;           /* what the record begins with */
    const TextField *field;
    size_t tag;                 /* offset of the enum that `only` asks about */
} Table;

/* ---- printing ---------------------------------------------------------------------------------------------------- */
typedef struct { FILE *f; Refs ref[R_KINDS]; bool bare; } Printer;    /* bare: no place in the model file */
void text_word(FILE *f, const char *text);
/* " key=value" for all that is not the default */
void text_fields(Printer *w, const Table *t, const void *from);
void text_head(Printer *w, const Table *t, const char *name);
void text_record(Printer *w, const Table *t, const char *name, const void *from, Loc at);    /* all of it */
#define NOWHERE ((Loc){0, 0, 0})
void text_end(Printer *w, Loc at);                                      /* " @file:line:col" and the end of the line */

/* ---- reading ----------------------------------------------------------------------------------------------------- */
typedef struct { const char *key, *value; int key_col, value_col; } TextPair;
typedef struct {
    Loc at;                     /* of the record's first character */
    const char *word, *name;
    int name_col;
    VEC(TextPair) pair;
    Loc from;                   /* what stands behind @ */
} Record;
typedef struct {
    int file;
    VEC(Record) record;
    Refs ref[R_KINDS];
    Strs path;                  /* of @, and their diag_file() */
    Ints path_file;
} Scanner;
void text_scan(Scanner *s, const char *path, const char *version);      /* cuts the whole file into records */
void text_clear(const Table *t, void *to);                              /* the defaults */
void text_take(Scanner *s, const Table *t, const Record *r, int n, void *into);      /* its first n pairs */
int  text_ref(Scanner *s, RefKind kind, Loc at, const char *name);      /* stops where nothing is called that */
Loc  text_at(const Record *r, int col);
Loc  text_value(const Record *r, const char *key);      /* where the value of that key stands; of the record, if it has none */
void text_name(Loc at, const char *name, const char *more);      /* stops at what is not letters, digits, _ . and `more` */
int64_t text_integer(Loc at, const char *text, int64_t low, int64_t high);
double  text_float(Loc at, const char *text);
/* The names of the records of one table, so that others can refer to them; stops at one that is there twice. */
void text_once(Scanner *s, RefKind kind, const Table *t);
void text_known(const Scanner *s, const Table *const *tables);          /* stops at a record of another word */

/* ---- the names of a graph's things, which a plan refers to --------------------------------------------------------- */
/* Fills ref[R_TENSOR], ref[R_STATE], ref[R_OP]: names of tensors and states; F:h.0.ln_1, I:h.0.ln_1, I:h.0.ln_1#2. */
void text_graph_refs(const Graph *g, Refs ref[R_KINDS]);
#endif
