/* SPDX-License-Identifier: Apache-2.0
 *
 * build.h: what the files between Model and Graph share, and rewrites of a Graph with them.
 *
 *   names.c   names and paths: which are legal, which are taken
 *   attr.c    the keys of an operator's line, as numbers
 *   block.c   scopes: values, block arguments, repetition
 *   build.c   one line of the model -> operators
 *   expand.c expand_lstm.c adapt.c    ... that are rows of several kinds
 *   param.c chosen.c          its parameters; which of them decay, learn, and in which group
 *   row.c bind.c shape.c shape_ops.c shape_move.c shape_image.c shape_language.c
 *   shape_attention.c shape_recurrent.c shape_experts.c
 */
#ifndef BUILD_H
#define BUILD_H
#include "graph.h"

typedef long long Num;          /* for printing */
enum {
    MAX_REPEAT = 4096, MAX_OPS = 1 << 20, MAX_LINES = 1 << 22, MAX_NEST = 32,        /* of blocks */
    MAX_NAME = 63, MAX_PATH = 255,
    MAX_COUNT = 6,                          /* losses that divide by their own number of targets: Values.valid */
    UNKNOWN = -2                            /* a value that was already complained about */
};

/* ---- names.c: text -> number, in one open hash table that keeps no order ------------------------------------- */
typedef struct { const char *text; int value; } BuildEntry;
typedef struct { BuildEntry *at; int n, cap; } Names;
int  names_get(const Names *s, const char *text);               /* -1: absent */
void names_put(Names *s, const char *text, int value);
const char *name_as_c(const char *path);                        /* as a C identifier: h_3_ln_1 */
const char *name_fault(const char *text);                       /* why it is no legal name; NULL: it is */
const char *path_join(const char *scope, const char *name);

/* ---- block.c ---------------------------------------------------------------------------------------------------- */
typedef struct {
    const Model *m;
    Graph *g;
    Names taken;                /* C form of every path and parameter -> index in where */
    VEC(Loc) where;
    Names param;                /* parameter path -> state */
    VEC(BuildEntry) alias;      /* names that parameters of tied operators would have for themselves */
    Ints input;                 /* tensor of each data input, behind its Cast if it needs one */
    int loss;                   /* the value that the model names; -1 */
    VEC(char) type;             /* by tensor: 'r' 'i' 'f', as an Operand's */
    int lines;                  /* read so far, those of every repetition */
    bool failed;                /* bad() was called: repeating a block would repeat its errors */
} Builder;

typedef struct { const char *name; int tensor; Loc loc; } BuildValue;
typedef struct { const char *name; double value; bool set; } BlockArg;
typedef struct Scope {          /* one instance of a block; the graph is the outermost */
    Builder *b;
    const struct Scope *up;
    const char *block;          /* its definition; NULL: the graph */
    const char *path, *layer;
    const Node *body;
    VEC(BuildValue) value;
    VEC(BlockArg) arg;
    int first, last;            /* $in and _; -1: there is none */
    int depth, round;           /* round: 1 + `i` of the repetition whose arguments are read; 0: none */
} Scope;

/* bad() that the builder remembers. */
#define WRONG(b, ...) ((b)->failed = true, bad(__VA_ARGS__))
bool keys_ok(Builder *b, const Node *map, const char *what, const Strs *keys);
double  eval_float(Scope *s, const Node *n);
int64_t eval_int(Scope *s, const Node *n);
bool    eval_bool(Scope *s, const Node *n);
bool    is_on(Scope *s, const Node *line);                      /* `when:`, true if absent */
int  value_of(Scope *s, const Node *name);                      /* tensor, or UNKNOWN */
int  value_last(Scope *s, const Node *line);                    /* `_`, for a line that has no `in` */
void values_name(Scope *s, const Node *as, const Ints *tensors);   /* `as: [a, b]` */
void values_lost(Scope *s, const Node *line);                   /* after a complaint: nobody shall miss its names */
const char *claim(Scope *s, const Node *line, const char *path);   /* the path, now taken */
const char *path_of(Scope *s, const Node *line, const char *kind); /* from `name:`, or made from the kind */
void body_lines(Scope *s, const Node *body);

/* ---- attr.c ------------------------------------------------------------------------------------------------------ */
typedef struct { const char *op, *key, *attr; char kind; const char *def; } BuildKey;
/* keys: the column of ops.def */
void attr_keys(const char *op, const char *keys, Strs *list);   /* appends the keys of an operator's line */
void attr_read(Scope *s, const Node *line, const char *op, const char *keys, Op *o);
const char *attr_word(const Node *line, const char *key);       /* text of a key; "" if absent */

/* ---- build.c --------------------------------------------------------------------------------------------------- */
void op_line(Scope *s, const Node *line);
/* Appends an operator and its results, named path, path.mean, ... */
int op_new(Scope *s, const Node *line, const char *path, int row, Op o);
/* ---- expand.c: one line, several rows -------------------------------------------------------------------------- */
int batch_norm(Scope *s, const Node *line, const char *path, Op o);    /* the last operator, the line's own */
int lstm(Scope *s, const Node *line, const char *path, Op o);          /* the same; expand_lstm.c */
int rounded(Scope *s, const Node *line, const char *path, Op o);       /* the same */
int hits(Scope *s, const Node *line, const char *path, int row, Op o);          /* the same */
/* ---- adapt.c: a Linear beside which two small ones learn; its last operator ------------------------------------ */
int  adapt(Scope *s, const Node *line, const char *path, Op o);
/* Of each pattern that it names a line's Linear. */
void linears_named(const Builder *b, const Strs *patterns, Loc loc, const char *key);
/* ---- chosen.c: parameters that patterns of the section train choose ------------------------------------------- */
void choose_params(Builder *b);
/* ---- quantize.c: Linear with weights of few bits --------------------------------------------------------------- */
void quantize(Builder *b);
/* ---- param.c --------------------------------------------------------------------------------------------------- */
void params(Scope *s, const Node *line, Op *o, int op);         /* fills o->par: new states, or those of `tie:` */

/* ---- shape_ops.c ----------------------------------------------------------------------------------------------- */
typedef struct { Graph *g; const Model *m; Op *o; const Row *r; } Sizer;
typedef struct { const char *name; bool (*size)(Sizer *z); } ShapeRule;
extern const ShapeRule shape_rules[];                           /* ends with a NULL name */
/* Rules of the other files, NAME by size_NAME(). */
#define SHAPE_RULES(RULE) \
    RULE(concat) RULE(slice) RULE(reshape) RULE(transpose) RULE(reduce)                 /* shape_move.c */ \
    RULE(rotary) RULE(rotary_table) RULE(gate) RULE(softcap)                            /* shape_language.c */ \
    RULE(attention) RULE(attention_packed)                                              /* shape_attention.c */ \
    RULE(recur) RULE(additive)                                                          /* shape_recurrent.c */ \
    RULE(route) RULE(dispatch) RULE(grouped) RULE(combine) RULE(route_loss)             /* shape_experts.c */ \
    RULE(conv) RULE(conv_transpose) RULE(pool) RULE(batch_stat) RULE(batch_norm)        /* shape_image.c */ \
    RULE(group_norm) RULE(pad) RULE(upsample)
#define DECLARED(name) bool size_##name(Sizer *z);
SHAPE_RULES(DECLARED)
bool size_image_mean(Sizer *z);
bool documents_fit(Sizer *z, int64_t batch, int64_t seq);
/* shape.c: what a rule may call */
const Shape *in_shape(const Sizer *z, int i);
bool out_shape(Sizer *z, int i, Shape s);                       /* size result i; false after a complaint */
bool par_shape(Sizer *z, int i, Shape s);                       /* size parameter i, or compare with the other use */
void shape_site(Sizer *z);                                      /* Philox key: the same in every plan, another for every path */
bool shape_drop(Sizer *z, int64_t elements);                    /* a probability, for so many elements of a sample */
bool shape_by_sample(Sizer *z, const Shape *x);                 /* samples come first where random numbers are keyed by them */
bool refuse(const Sizer *z, const char *hint, const char *form, ...) PRINTF(3, 4);  /* complains; always false */
void attention_room(Op *o, Bytes whole, int64_t heads);                 /* shape_attention.c: scratch of some of the heads */
void linear_xent_room(const Graph *g, Op *o, int64_t blocks);           /* shape_ops.c: scratch, with sums in so many */
void op_work(Op *o, const Op *fwd, Type compute, const char *text);     /* fills flop, pass_: from a flop column of ops.def */
void bind_forward(Graph *g, Op *o);                                     /* the forward call of its row, and that work */
#endif
