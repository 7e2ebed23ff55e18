/* SPDX-License-Identifier: Apache-2.0
 *
 * verify.h: the parts of dpgen-verify.
 *
 * Problem: who signs what an emitted folder computes must not have to believe the program that wrote it.
 *
 * Method: every call is an uninterpreted function of its literals and of the terms of its operands.  Additions between calls
 * are known as additions of two, never as associative ones.  Equal terms are one node.  Then the stages, played from their
 * sources over byte addresses, and the one-device program of model.graph give the same node for each state, or the proof fails.
 * TrainVerify (SOSP 2025) and Scalify prove plans over the real numbers, and stop before code, addresses, messages and bits;
 * here every sum has a written order, so no solver is needed, and the cost is linear in calls.
 *
 * Rule: nothing here is shared with gen/, rt/ or tests/.  docs/verify.md says what is proved and what is trusted.
 */
#ifndef VERIFY_H
#define VERIFY_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Graph Graph;
typedef struct Folder Folder;
typedef const char *Compare(Graph *g, const Folder *f, const char *dir);       /* why not with the model file; NULL: it did */
int verify_main(int argc, char **argv);                 /* alone.c, and model.c, which can read a model file */
int verify_run(int argc, char **argv, Compare *compare);

/* ---- base.c: memory until exit, names, files, the end ------------------------------------------------------------ */
enum { PROVED = 0, NOT_PROVED = 1, USAGE = 2, NOT_READ = 3, FOREIGN = 5, NO_MEMORY = 6 };

void *blank(size_t n, size_t size);                     /* zeroed; the caller's to free */
void *room(size_t bytes);                               /* zeroed */
void *larger(void *at, int have, int *cap, size_t size);
#define LIST(T) struct { T *at; int n, cap; }
#define ADD(v) ((v)->at = larger((v)->at, (v)->n, &(v)->cap, sizeof *(v)->at), &(v)->at[(v)->n++])
const char *name_of(const char *at, size_t n);          /* one address for equal texts */
char *shown(char *text);                                /* the same, as a terminal may have it */
char *joined_text(const char *format, ...) __attribute__((format(printf, 1, 2)));
typedef struct { const char *path, *at; size_t n; } Source;
bool source_read(Source *s, const char *dir, const char *name);     /* false: there is none */
_Noreturn void stop(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));
typedef struct { uint64_t *key, n, cap; uint32_t *value; } Map;     /* values from 1 on */
uint64_t mixed(uint64_t h, uint64_t x);
uint32_t *map_next(const Map *m, uint64_t key, uint64_t *tried);    /* the next value of that key; NULL: no more */
void map_add(Map *m, uint64_t key, uint32_t value);
int map_at(const Map *m, const void *key);             /* by address; -1: not there */
void map_set(Map *m, const void *key, int value);      /* in place of another one */
const char *file_hash(const Source *s);                 /* manifest.c: SHA-256 in hexadecimal */
int manifest_check(const char *dir);                    /* files compared; stops where one differs */

/* ---- token.c: the words of a C text ------------------------------------------------------------------------------ */
typedef enum { T_END, T_NAME, T_INT, T_FLOAT, T_STRING, T_SIGN } TokenKind;
typedef struct { TokenKind kind; int line; const char *text; int64_t i; char type; double f; char sign; } Token;
typedef struct { const char *path, *at, *end; int line; Token t; } Lexer;
void lex_open(Lexer *x, const Source *s);
void lex_next(Lexer *x);
bool lex_is(const Lexer *x, char sign);
bool lex_word(const Lexer *x, const char *word);
void lex_want(Lexer *x, char sign);                     /* that sign, and on */
_Noreturn void lex_fault(const Lexer *x, const char *what);

/* ---- calls.c, calls.def: what each call reads and writes --------------------------------------------------------- */
typedef enum { ROW_CALL, ROW_LANES, ROW_SUM, ROW_COPY, ROW_OTHER, ROW_JOINED, ROW_TEAM } RowKind;
typedef struct {
    const char *name;
    char mode, axis;            /* calls.def; axis: l, q, k, g, or none */
    bool optional;
    int width;                  /* bytes of an element; 0: no operand */
    const char *extent;         /* elements */
} Param;
typedef struct { RowKind kind; const char *name; int n; const Param *param; const char *steps; } Row;
void rows_open(int real, int64_t blocks);               /* bytes of a number of the compute type; blocks of a sum */
extern int rows_real, rows_levels;                      /* those bytes; levels of the tree over blocks */
const Row *row_named(const char *name);                 /* NULL: there is none */
int row_param(const Row *r, const char *name);          /* -1 */
int offset_param(const Row *r);                         /* where a router says that experts begin; -1 */

/* ---- a program: what a stage, or the reference, does ------------------------------------------------------------- */
typedef enum { A_NONE, A_INT, A_FLOAT, A_PLACE, A_HOST } ArgKind;
typedef struct {
    ArgKind kind;
    int64_t i;                  /* number, or bytes from the begin of the arena */
    double f;
    int slots, param;           /* plus slot table [parameter]; slots -1: none.  Of A_INT: the parameter itself; -1: none */
    char type;                  /* in C: 0 an int, 'u' an unsigned one, 'l' of 64 bits */
} Arg;
enum { NO_WORD = -1, BETWEEN = -2, MOST_PARAMS = 48 };
typedef struct {
    const Row *row;
    int *word, *head;           /* word: parameter of the call, NO_WORD, BETWEEN and below */
    const char *along;          /* the parameter of the call that parts are along; axis: the row's, -1: it has none */
    int axis, *whole;           /* whole: heads of the call on the whole */
    int64_t all, mine;          /* elements along it: of the whole, in the room of a device */
    int64_t *front;             /* elements in front of the axis in each operand; 0: it has it not */
} Step;
typedef struct {
    const Row *row;             /* NULL: a routine */
    int routine, line, n;
    Arg *arg;
    int64_t *bytes;             /* by parameter, once bound */
    Step *step;                 /* of a joined call several, else one */
    Step *lift;                 /* of which parts are lifted: the one, or of a joined call all as one; NULL: they are not */
    int steps;
    int op;                     /* of the reference */
} Site;
/* opens: calls that prepare a handle, which is their first argument, for calls of their row */
typedef struct { const char *name; int params, line; const char **param; LIST(Site) site, opens; } Routine;
typedef struct { const char *name; int n; int64_t *at; } Slots;
typedef struct Node Node;       /* a value of a table */
struct Node { enum { N_INT, N_FLOAT, N_TEXT, N_NAME, N_LIST, N_CALL } kind; const char *field, *text; int64_t i; double f;
    int line; Node *child, *next; };
typedef struct { const char *name; Arg value; } Constant;
typedef struct {
    const char *path;
    Map constants, routines, slot_tables, tables;
    LIST(Constant) constant;
    LIST(Routine) routine;
    LIST(Slots) slots;
    LIST(Node *) table;
    const Routine *open;        /* before the first step; NULL: none */
    bool prepares;              /* its library prepares calls */
} Program;
void program_read(Program *p, const Source *s);
Node *program_table(const Program *p, const char *name);
Node *node_field(const Node *n, const char *field);     /* NULL */
int64_t node_int(const Node *n, const char *field, int64_t otherwise);

/* ---- term.c ------------------------------------------------------------------------------------------------------ */
typedef uint32_t Term;          /* 0: nothing was written */
typedef struct { const char *call, *result, *literals; } Head;
enum { H_SLICE = 1, H_JOIN, H_INT, H_INIT, H_DATA, H_COUNT, H_VALS, H_ZERO, H_SUM2, H_SUM4, H_SUM8, H_ABSENT, H_PART,
    H_OTHERS };
enum { MOST_ARGS = 48 };
typedef struct { int stage, line, mb; } Origin;         /* stage -1: the reference, line an operator there */
typedef struct { int head, n; const Term *arg; int64_t bytes; Origin from; } TermView;
void terms_open(void);                                  /* there are none */
int head_of(const char *call, const char *result, const char *literals);
Term term_of(int head, int64_t bytes, int n, const Term *arg);
Term term_int(int64_t i);
Term term_sum(int width, int64_t bytes, Term a, Term b);
Term term_slice(Term t, int64_t from, int64_t bytes);
Term term_part(Term whole, int64_t stretches, int64_t bytes);      /* bytes: the room of a device */
Term part_whole(Term t, int64_t *stretches);            /* 0: it is no part */
Term part_by(Term whole, Term by, int64_t bytes);       /* by: stretches, or the offsets of rows that experts have */
Term part_of(Term t, Term *by);                         /* the whole; 0: it is no part */
TermView term_view(Term t);
const Head *head_view(int head);
extern Origin term_origin;      /* of the terms that are made now */
int term_count(void);
const char *term_text(Term t, int depth);
void terms_differ(Term *want, Term *got);               /* down to where they differ */

/* ---- region.c: bytes to terms ------------------------------------------------------------------------------------ */
typedef struct { int64_t lo, hi, from; Term term; } Piece;   /* bytes lo .. hi-1 are bytes `from` on of the term */
typedef LIST(Piece) Pieces;
void region_set(Pieces *r, Piece p);                    /* term 0: as if nothing was written */
void region_bring(Pieces *to, const Pieces *list, int64_t by);    /* they stand so much further */
Piece region_piece(const Pieces *r, int64_t lo, int64_t hi);   /* what begins there, up to hi; a gap has term 0 */
void region_get(const Pieces *r, int64_t lo, int64_t hi, Pieces *to);   /* appends all pieces */
int64_t region_hole(const Pieces *list);                /* a byte that was not written; -1 */
Term region_term(const Pieces *r, int64_t lo, int64_t hi);     /* 0: a byte was not written */

/* ---- machine.c: one arena and what happens in it ----------------------------------------------------------------- */
/* Half a message, or a copy to the host or back: from begin to wait it owns bytes of the arena, and a copy of the host too. */
typedef struct { const char *what; bool copy, out; int line, number, peer, tag, nth; int64_t lo, bytes, host, clock;
    Pieces piece;
    int64_t run, last; } Transfer;     /* last: of its pair in its run, by number */
enum { MOST_INTS = 64 };        /* parameters of a routine */
typedef struct { const Routine *routine; int at, param[MOST_INTS]; } Frame;
/* Of a step, what the runtime reads at its end. */
typedef struct { Term loss, norm, hits; int first, losses; } Ended;
typedef struct { int output, mb, line; Term term; } Leaves;    /* a value that leaves the job */
typedef struct {
    const char *name;           /* stage0; the reference */
    int stage, devices;         /* -1: the reference; devices that share its calls */
    Program *program;
    Pieces region;
    int64_t arena, top, vals, steps;   /* steps begun */
    LIST(const Routine *) todo;         /* pieces that it runs, one behind the other */
    int done;
    int64_t run, together;      /* runs of messages that leave together; so many of this one are to come */
    LIST(Frame) frame;
    LIST(Transfer *) open;      /* that have begun */
    Pieces host;                /* what waits in the host's memory */
    int64_t host_bytes;
    LIST(Term) loss;            /* of the micro-batches that it reported; those of each step begin there */
    LIST(int) begun;
    LIST(Leaves) leaves;
    LIST(Ended) ended;
    int64_t calls, again, clock;
    Term talk;                  /* its messages and waits, in their order */
    bool evaluates;             /* it is in an evaluation */
} Machine;
#define MOST_BYTES ((int64_t)1 << 56)     /* of an operand; no number of a folder is larger */
enum { VALS_BYTES = 112, VALS_VALID = 16, VALS_LOSS = 64, VALS_NORM = 72, VALS_LR = 80, VALS_HITS = 108 };
void site_bind(const Machine *m, Site *s);              /* bind.c */
void site_scratch(const Site *s, int64_t bytes);        /* calls with these literals have so much, whatever calls.def says */
bool site_draws(const Site *s);                         /* random numbers */
bool site_numbers(const Site *s);                       /* does it go by the numbers of heads? */
bool is_absent(const Site *s, int k);                   /* the operand is 0 */
void step_along(const Machine *m, const Site *s, Step *st, int k);
void step_heads(const Machine *m, const Site *s, Step *st, int64_t mine, int64_t all);
int64_t owned_bytes(const Machine *m, const Site *s, int k);   /* of all rows, of which a device has its own */
int64_t step_whole(const Machine *m, const Step *st, int64_t n);
int64_t part_lift(const Machine *m, const Site *s, Step *st, Term *of, Term *old);      /* parts.c */
void call_do(Machine *m, Site *s, const int *param);    /* of every row but those of messages */
void vals_begin(Machine *m, int64_t at, int64_t sets);   /* one, and one a parameter group */
Term vals_of(Machine *m, const Site *s, int k, const int *param);
void step_ended(Machine *m, int64_t at);
int64_t arg_place(const Machine *m, const Site *s, int k, const int *param);
int64_t arg_int(const Machine *m, const Site *s, int k, const int *param);
_Noreturn void call_refused(const Machine *m, const Site *s, const char *text);
#define call_fault(m, s, ...) call_refused(m, s, joined_text(__VA_ARGS__))
/* May it touch these bytes, of the arena or of the host's memory? */
void may_touch(const Machine *m, const Site *s, bool host, int64_t lo, int64_t hi, bool writes, const char *what);
void machine_take(Machine *m, const Site *s, int64_t lo, int64_t hi, bool writes, const char *what);
Term machine_read(Machine *m, const Site *s, int64_t lo, int64_t hi, const char *what);     /* all written before */
void do_norms(Machine *m, const Site *s, const int *param);     /* norms.c */
int64_t norm_length(int64_t n);                          /* elements in a block of the norm of n */
void norm_length_is(int64_t n, int64_t each);

/* ---- graph.c, reference.c, duals.c: model.graph ------------------------------------------------------------------ */
/* A tensor or a state; whole: of integers. */
typedef struct { const char *name, *kind, *of; int64_t bytes, input, at, use; int type_bytes;
    bool tracked, frozen, still, whole; const char *shape, *init, *a, *b, *values; } Thing;    /* init: how it starts */
typedef struct { const char *token; char sign; const char *name; int64_t i; double f; } GraphArg;
typedef struct { char phase; const char *name, *row, *call; int64_t tmp; int line; LIST(GraphArg) arg; } GraphOp;
typedef struct { int64_t count, input, ignore; } GraphCount;
struct Graph {
    const char *path, *name, *compute;
    bool bf16, portable;        /* portable: kernels with the scratch of calls.def */
    int64_t batch, micro, groups, blocks;
    const char *loss;
    LIST(Thing) tensor, state;
    Map tensors, states;
    LIST(GraphOp) op;
    LIST(GraphCount) count;
    LIST(const char *) given;   /* -D and --set, as dpgen was given them */
    bool foreign;               /* it is not that of model.yaml */
    bool compared;              /* its backward half with its forward half */
    const char *no_dual;        /* a call whose gradient is not known: nothing was compared */
};
void graph_read(Graph *g, const Source *s);
void duals_check(Graph *g);             /* duals.c: the backward half, once */
const Thing *reference_state(const Graph *g, const char *param, const char *kind);

/* ---- folder.c, play.c, prove.c ----------------------------------------------------------------------------------- */
/* A state that a stage holds: bytes `from` on of `whole`, or of the `room` of a device for its part of each of so many
 * stretches; version v in slot v mod `kept`, `stride` bytes apart. */
typedef struct {
    const char *param, *kind;
    int64_t at, bytes, from, whole, stride, stretches, room;
    int kept, line;
    bool part;                  /* the row says that a replica has a part of it */
} Held;
typedef struct {
    const char *name;
    int64_t arena, vals, host;
    LIST(Held) held;
    Program program;
    int pipeline, phases, like, copy, turns;    /* with Folder.homes: its stage; the first copy it is in; how many, in turn */
    LIST(const char *) piece;   /* routines by phase; where steps do not overlap, of one phase the last two */
} Stage;
enum { PROLOGUE, PERIOD, EPILOGUE, ALONE, EVAL, PIECES };
struct Folder {
    int stages, devices, replicas, ways, homes; /* devices of each stage; stages of a copy, where they differ in copies */
    int64_t batch, micro, groups, blocks;
    bool bf16, evaluates;
    const char *kernels, *versions;     /* versions: the rule of a schedule with overlapping steps, else NULL */
    int overlap;                /* fewest steps through the pieces */
    int param_groups;           /* each has step values of its own */
    const Node *job, *group;    /* tables of launch.c; group: rates of those groups, or NULL */
    Stage *stage;
};
void folder_read(Folder *f, const char *dir);
void folder_starts(const Folder *f, const Graph *g);    /* each parameter starts as model.graph says */
typedef struct { int steps; int64_t messages, calls, again, chain, *link; } Played;
/* A run from one point at which the pipeline is drained to the next: `steps` steps from one in phase `first` of each stage's
 * own phases, or an evaluation. */
typedef struct { int first, steps; bool eval, alone, infer; } Run;     /* infer: the step has no backward, and outputs */
/* What a micro-batch reads on a stage: the version of its step and `version`, predicted so far ahead or back. */
typedef struct { int version, ahead, behind; } Reads;
/* The same on one device: its states before, after, and `back` versions of the weights from before. */
typedef struct { const Graph *g; Machine *m; Pieces before; int back; const Slots *version; } Reference;
Reference reference_run(Graph *g, const Folder *f, Run run);
Term reference_value(const Reference *r, const Pieces *at, const Thing *t, int version, Reads reads);
Machine *play(const Folder *f, const Reference *r, Run run, Played *sum);
/* Bytes `from` on of it are in a slot, so many versions older than version `newest` of the run; 0: none that the run knows. */
Term held_term(const Folder *f, const Reference *r, const Machine *m, const Held *h, int newest, int older);
void prove(const Folder *f, const Graph *g, const Reference *r, Machine *stage, Run run);
/* ---- overlap.c ---- */
Reads overlap_reads(const Folder *f, int stage, bool forward, int mb);
int overlap_back(const Folder *f);                      /* the oldest version that a step may read */
bool overlap_known(const char *versions);
Reads overlap_slot(const Folder *f, int stage, int kept, int older);    /* what stands in the slot of a version so many older */
int overlap_late(const Folder *f, int stage);           /* updates that forward's weights are behind */
#endif
