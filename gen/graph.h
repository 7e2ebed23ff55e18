/* SPDX-License-Identifier: Apache-2.0
 *
 * graph.h: the Graph of operators, tensors and states, and the passes that make it.
 *
 * Operators, tensors, states are referred to by index, never by pointer, so that arrays may grow and dumps are stable.
 * Fixed short names: g graph, o operator, t tensor, s state.
 */
#ifndef GRAPH_H
#define GRAPH_H
#include "model.h"

/* ---- Graph: build/build.c shape.c grad.c fuse.c ------------------------------------------------------------ */
typedef enum { T_INPUT, T_ACT, T_GRAD } TensorKind;
typedef struct {                /* one value of one micro-batch; one producer */
    const char *name;           /* h.3.attn.c_attn, h.3.ln_1.mean; gradients: d.h.3.ln_1, its terms d.h.3.ln_1.t2,
                                   its partial sums d.h.3.ln_1.s2 */
    TensorKind kind;
    Type type;
    Shape shape;                /* of one micro-batch */
    Bytes bytes;
    int op;                     /* producer; -1: an input */
    int of;                     /* T_GRAD: the tensor it is the gradient of; T_INPUT: index in Model.inputs; else -1 */
    Loc loc;
} Tensor;

/* What outlives a micro-batch.  Changed only by accumulating and updating operators. */
typedef enum { S_PARAM, S_COPY, S_GRAD, S_MOMENT1, S_MOMENT2, S_CENTRE, S_DRIFT, S_CLIP, S_NORM, S_BLOCKS,
               S_VALUES } StateKind;
typedef struct {
    const char *name;           /* h.3.attn.c_attn.weight; .copy .grad.0 .m .v .centre behind it */
    StateKind kind;
    Type type;
    Shape shape;
    Bytes bytes;
    int param;                  /* the S_PARAM it belongs to (itself for S_PARAM); -1: none */
    int use;                    /* S_GRAD: number of the use, 0 the first */
    int op;                     /* S_GRAD: the forward operator of that use; S_PARAM: the first */
    bool decay, tracked;        /* S_PARAM; statistics, that phase W adds up and phase U takes in: no optimizer, no versions */
    bool frozen;                /* S_PARAM: no gradient, no update, no versions (train.freeze, adapt) */
    bool versions;              /* S_PARAM, S_COPY: steps that overlap keep versions; graph_uses() */
    int begun_by, ended_by;     /* S_GRAD: the first and the last call that adds to it; 0: none; graph_uses() */
    bool adapter;               /* S_PARAM: of section adapt, and in no file of the model's weights */
    int bits;                   /* S_PARAM: of a number in its copy, 8 or 4 (rt/quantize.h); 0: the copy has the compute type */
    int64_t outer, whole;       /* S_PARAM: it is so many stretches, each in as many parts as Graph.team.  The shape is that of
                                   one device's room, and `whole` its divided axis on all together.  0: whole on each */
    int dim;                    /* that axis */
    int group;                  /* S_PARAM: 1 + its place in Train.param_group; 0: none */
    Init init;                  /* S_PARAM */
    Loc loc;
} State;

typedef enum {
    ARG_READ, ARG_WRITE,        /* a tensor or a state */
    ARG_ADD,                    /* a gradient state: written or accumulated, by the acc flag */
    ARG_UPDATE,                 /* a state read and written */
    ARG_TMP,                    /* scratch of op->tmp bytes */
    ARG_INT, ARG_FLOAT,         /* literals */
    ARG_ACC, ARG_MB, ARG_HANDLE,    /* literals that lower fills in */
    ARG_LATE,                   /* literal: updates between forward and the update, of the plan's schedule */
    ARG_VALS,                   /* the step values (state S_VALUES) */
    ARG_NONE                    /* absent: the literal 0 */
} ArgKind;
typedef struct {
    ArgKind kind;
    const char *token;          /* as in ops.def */
    bool state;                 /* READ WRITE ADD UPDATE: index is a state, else a tensor */
    int index;
    int64_t i;                  /* ARG_INT; ARG_VALS: the State.group whose rates it wants */
    double f;                   /* ARG_FLOAT */
} Arg;

typedef enum { PH_F, PH_I, PH_W, PH_U } Phase;      /* forward, input gradient, weight gradient, update */
typedef struct { const char *name; bool is_int; int64_t i; double f; } Attr;

typedef struct {                /* one kernel call of the model's mathematics */
    const char *name;           /* path: h.3.attn.c_attn; backward: the forward operator's; update: the parameter's */
    const char *layer;          /* h.3, or "" at the top: one function each in the emitted stage */
    int row;                    /* of ops.def */
    Phase phase;
    const char *call;           /* the kernel's name */
    VEC(Arg) arg;               /* in the order of the call */
    int fwd;                    /* the forward operator this belongs to; itself in PH_F; -1 in PH_U */
    const char *with;           /* forward: the operator that fuse has put into this one; NULL or "": none */
    int64_t flop, pass_flop;    /* pass_: of it, what goes into passes over scratch between the call's products */
    Bytes tmp;                  /* scratch */
    Bytes moved, pass_moved;    /* bytes read and written, for estimates */
    Ns ns;                      /* of a graph that is timed: what it takes on any device, unless the graph has kinds; */
    Times on;                   /* ... then what it takes on each of them; none: ns, there too */
    Loc loc;
    /* front end only, before the calls are bound: */
    const char *owner;          /* its parameters have this path; NULL: its name */
    const char *const *par_name;    /* their names, in the order of the row; NULL: those of the row */
    Ints in, out;               /* tensors; -1 an absent optional operand */
    Ints par;                   /* S_PARAM states; -1 an absent one */
    VEC(Attr) attr;
} Op;

/* The targets in data input `input` other than `ignore` go to vals->valid[count]; op is the loss that asks. */
typedef struct { int input, ignore, count, op; Loc loc; } Count;
typedef struct {
    const char *name;
    Type compute;
    int64_t batch, micro, groups;
    int team;                   /* devices of a stage that share its operators; 0: one */
    int64_t blocks;             /* of sums over axes that may be divided; 0: one */
    VEC(Tensor) tensor;
    VEC(State) state;
    VEC(Op) op;                 /* PH_F in model order; then PH_I and PH_W by descending forward operator, I before W;
                                   then PH_U by ascending parameter */
    int nf;                     /* operators of PH_F: op 0 .. nf-1 */
    int nb;                     /* first PH_U operator */
    int loss, vals;             /* a tensor, -1: the graph has no backward (plan.mode infer); the S_VALUES state */
    VEC(Count) count;           /* what data_count() counts before the first forward */
    const char *model, *calls;  /* hash of the forward calls before fuse, and behind it; NULL or "": nothing was joined */
    const char *gpus;           /* the arch of those that its calls and scratch are for; NULL: processors */
    bool timed;                 /* from elsewhere, with the times of its operators; row Opaque has no kernel */
    Strs kind;                  /* of devices, by name, that a timed graph has times for; none: for all */
} Graph;

/* The operator table, parsed once. */
typedef struct {                /* type: 'r' real, 'f' f32, 'i' i32 */
    const char *name;
    bool optional, fixed, tracked;      /* fixed: no gradient goes back, and no line gives it */
    char type;
} Operand;
typedef struct {
    const char *name;           /* without brackets */
    bool internal;              /* in brackets: not a YAML operator */
    VEC(Operand) in, par, out;
    const char *axes;           /* of in, par, out: build/axes.c */
    const char *keys;           /* of the YAML line: build/attr.c */
    bool product, fp8, element; /* its class: cost/roof.c, sched/share.c; fp8 is a product too */
    int traits;                 /* RowTrait, a bit each */
    const char *shape;
    const char *call[3], *flop[3];      /* F, I, W */
} Row;
/* roles.def says what each means, and which rows and tokens have it. */
typedef enum {
    TRAIT_SUM = 1, TRAIT_TIE = 2, TRAIT_NARROW = 4, TRAIT_SEED = 8, TRAIT_LOSS_PAIR = 16, TRAIT_SCORES = 32, TRAIT_HITS = 64,
    TRAIT_STOP = 128, TRAIT_GATHER = 256, TRAIT_CODE = 512, TRAIT_END = 1024
} RowTrait;
typedef enum {
    ROLE_NONE, ROLE_SITE, ROLE_LABEL, ROLE_DROP, ROLE_ONTO, ROLE_COUNT, ROLE_FIRST, ROLE_OFFSET, ROLE_EXPERT, ROLE_SLOPE,
    ROLE_CAUSAL, ROLE_REVERSE
} ArgRole;
ArgRole arg_role(const Arg *a);
int row_count(void);
const Row *row(int i);
int row_find(const char *name);                     /* -1 if there is none */
static inline bool op_is(const Op *o, RowTrait trait) { return row(o->row)->traits & (int)trait; }

/* build: needs Model.  fills ops with in, par, attr, names and locs, tensors without shapes; blocks and repeats expanded. */
Graph *build(const Model *m);
/* shape: fills shapes, types, bytes, states, attributes; binds the forward calls. */
void shape(Graph *g, const Model *m);
/* fp8: LinearFp8, where the model wants it. */
void fp8(Graph *g, const Model *m);
/* prune: without what no output depends on, where the model infers; graph_apart() keeps that. */
void prune(Graph *g, const Model *m);
/* divide: sizes and calls of one device of several, where plan.tensor wants them. */
void divide(Graph *g, const Model *m);
/* join_parts: behind grad, sums over the devices of which each wants its own rows. */
void join_parts(Graph *g);
const char *fp8_text(const Graph *g);               /* 24 of 25 Linear; in bf16, ... */
/* bind one call of a row ("f(y, x, n)") to an operator.  dt: an operand's gradient tensor, or -1; NULL in the forward phase. */
void bind_call(Graph *g, Op *o, const char *call, const Op *fwd,
               int (*dt)(void *ctx, const char *token, bool *write), void *ctx);
/* weights: rules of published files that no parameter fits are mistakes; and a parameter in those files.  False: it is there as
 * it is here. */
typedef struct {
    const char *name, *file, *also;         /* also: NULL, or another name to read */
    bool turn;
    int64_t from, rows, groups;             /* a part: from row `from` of each `rows`, `groups` times; rows 0: all of it */
    int64_t each;                           /* so many tensors, `{}` of file their number; 0: one */
} Stored;
const char *weights_tensor(const Stored *k, int64_t piece);     /* the name in files of one piece of it */
void weights_check(const Model *m, const Graph *g);
bool weights_stored(const Model *m, const Graph *g, int param, Stored *to);
void weights_copies(const Model *m, const Graph *g, StoredPairs *to);   /* parameter, and a tensor that holds it once more */
void weights_print(FILE *f, const Model *m, const Graph *g);       /* NAME D0xD1 of each tensor that has parameters, by name */
/* grad: appends backward and update operators; contributions added in descending consumer order. */
void grad(Graph *g, const Model *m);
/* fuse: joins neighbours to one call where the bits are the same, and renumbers; fuse_joined: are there any? */
void fuse(Graph *g, const Model *m);
bool fuse_joined(const Graph *g);
bool chains_joined(const Graph *g);     /* has it rows of chains.def? */
int joined_operators(const Op *o);      /* how many forward operators were joined into this one; 1: none were */
/* What fuse leaves open.  fastest: the model with auto, none, sums and, where kernels are those of GPUs, most; auto: itself and
 * with sums; another word: the model itself. */
enum { FORMS = FUSE_FASTEST };
const Model *fuse_as(const Model *m, int word);
int fuse_forms(const Model *m, const Model *form[FORMS]);
extern const char *const fuse_words[FORMS];
void join_gelu(Graph *g, const Model *m);
void join_products(Graph *g, const Model *m);
void join_chains(Graph *g, const Model *m);
void join_onto(Graph *g, const Model *m);
/* rewrite/line.c: build, the rewrites and grad in their order, up to fuse.  seen, unless NULL, is called behind build, shape,
 * grad and fuse, with the letter of their dump. */
Graph *graph_line(const Model *m, void (*seen)(void *ctx, Graph *g, char letter), void *ctx);
/* The same as far as calls have bits of their own: nothing is joined that gives the bits of its parts. */
Graph *graph_apart(const Model *m);
void check_graph(const Graph *g);
const char *graph_fault(const Graph *g, Loc *at);    /* of a graph read from a file: what is wrong with it, or NULL */
/* The value of a data input that all who look something up by it pass over; false: there is none.  graph.c */
bool input_ignores(const Graph *g, int input, int *value);
int update_param(const Graph *g, const Op *o);      /* the parameter that it is about; -1: all of them */
#define MAX_BYTES ((Bytes)1 << 48)          /* of one tensor */
/* ---- graph.c --------------------------------------------------------------------------------------------------- */
Bytes type_bytes(Type t);
const char *type_name(Type t);
Arg *op_arg(const Op *o, const char *token);                      /* of its call; NULL if it has none */
const Attr *attr_find(const Op *o, const char *name);           /* NULL if absent */
int64_t attr_int(const Op *o, const char *name);                /* 0 if absent */
void attr_set(Op *o, const char *name, int64_t i);
typedef struct { const char *name; int64_t i; } AttrNumber;
#define ATTRS(o, ...) attrs_set((o), (const AttrNumber[]){__VA_ARGS__, {NULL, 0}})      /* {"rows", n}, ... */
void attrs_set(Op *o, const AttrNumber *list);
void attr_set_float(Op *o, const char *name, double f);
int64_t shape_size(const Shape *s, int from, int to);           /* elements of axes from .. to-1 */
static inline int64_t shape_elements(const Shape *s) { return shape_size(s, 0, s->n); }
static inline int64_t shape_last(const Shape *s) { return s->d[s->n - 1]; }
const char *shape_text(const Shape *s);                         /* [2, 64, 768] */
bool shape_same(const Shape *a, const Shape *b);
const char *divide_text(const Model *m, const char *op);        /* along what, or why not; NULL: stages are of one device */
int *graph_reads(const Graph *g, int from, int to);         /* by tensor: how often operators from .. to-1 read it */
void graph_uses(Graph *g);      /* State.versions, begun_by, ended_by, once its calls are there */
Shape shape_whole(const State *s);              /* of all devices of a stage together */
bool copy_alone(const Graph *g, int state);         /* frozen, and read in bf16: no update wants the master */
bool match(const char *pattern, const char *name);  /* * matches any run of characters */
const char *match_any(const Strs *patterns, const char *name);      /* the first that does; NULL: none */
bool match_block(const char *pattern, const char *name);    /* ... the name, or that of a block it is in */
#endif
