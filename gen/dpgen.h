/* SPDX-License-Identifier: Apache-2.0
 *
 * dpgen.h: every structure of the generator, and the passes in the order in which passes.c runs them.
 *
 * Operators, tensors, states, buffers are referred to by index, never by pointer, so that arrays may
 * grow and dumps are stable.  Sizes are bytes, times are nanoseconds, both int64_t; no float decides
 * a plan.  Everything keeps the place in the YAML it came from.
 *
 * Fixed short names: g graph, p plan, c cost, o operator, t tensor, s state, d device, k action, b buffer, r routine.
 */
#ifndef DPGEN_H
#define DPGEN_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define DPGEN_VERSION "0.1.0"
#define PRINTF(a, b) __attribute__((format(printf, a, b)))
#define NORETURN __attribute__((noreturn))

typedef int64_t Bytes;
typedef int64_t Ns;
enum { ALIGN = 64, MERGES = 8 };    /* of every buffer: a cache line; most gradients under way between two replicas */
enum { EXIT_RUN = 1, EXIT_USAGE, EXIT_MODEL, EXIT_NOFIT, EXIT_STALE, EXIT_MACHINE, EXIT_BUG = 70 };

/* ---- base/mem.c: memory lives until exit and starts as zeros; no pass frees ---------------------------- */
void *alloc(size_t n);
char *strf(const char *form, ...) PRINTF(1, 2);     /* a printed string */
void *mem_mark(void);
void  mem_release(void *mark);                      /* frees all that alloc() gave since: for trials of which a number stays */
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
void fail(int status, const char *form, ...) PRINTF(2, 3) NORETURN;   /* dpgen: text; for what has no place in a file */
#define die(...) die_at(__FILE__, __LINE__, __VA_ARGS__)            /* a bug in dpgen: status 70 */
void die_at(const char *file, int line, const char *form, ...) PRINTF(3, 4) NORETURN;
void diag_blame(const char *path);                  /* until NULL, what checkers find is this file's fault, status 3 */
const char *nearest(const char *word, const char *const *names, int n);       /* did you mean; NULL if none is near */

/* ---- base/: sha256.c, json.c, number.c ------------------------------------------------------------------- */
typedef struct { uint32_t h[8]; uint64_t n; unsigned char block[64]; } Sha256;
void sha256_start(Sha256 *s);
void sha256_add(Sha256 *s, const void *data, size_t n);
void sha256_end(Sha256 *s, char hex[65]);
void json_text(FILE *f, const char *text);          /* a JSON string, quoted and escaped */
uint64_t hash64(const char *text);                  /* FNV-1a: Philox keys of names */
double number_decimal(const char *text, size_t n);  /* nearest double to decimal text (12, 0.5, 1e-8), in any locale */

/* ---- load: front/load.c ---------------------------------------------------------------------------------- */
/* needs: YAML text.  fills: Node tree, a mark on every node.  fails: syntax, anchors, tags, limits. */
typedef enum { SCALAR, LIST, MAP } NodeKind;
typedef struct Node Node;
struct Node {
    NodeKind kind;
    Loc loc;
    const char *text;           /* SCALAR */
    bool quoted;                /* SCALAR written in quotes: a string, whatever it looks like */
    int n;                      /* LIST, MAP */
    Node **key, **at;           /* MAP: key[i] -> at[i]; LIST: at[i] */
};
Node *load(const char *path);
Node *load_text(const char *path, const char *text, size_t n);
/* The value of an option such as `--set train.steps=10`, from byte `skip` of its text; diagnostics name the option. */
Node *load_option(const char *option, const char *text, size_t skip);
Node *node_get(const Node *map, const char *key);   /* NULL if absent */

/* ---- model: front/model.c --------------------------------------------------------------------------------- */
/* needs: Node.  fills: Model, defaults and all, nothing left to interpret but the graph's own nodes. */
typedef enum { F32, BF16, I32, F64 } Type;          /* F64 only in states */
enum { MAXDIM = 6, MAXINPUT = 8 };
typedef struct { int n; int64_t d[MAXDIM]; } Shape;

typedef struct { const char *name; int64_t value; Loc loc; } Dim;
typedef struct {                /* one data input of the model */
    const char *name;
    Node *shape;                /* expressions; B is the micro-batch */
    Type type;
    int64_t lo, hi;             /* ids must lie in [lo, hi); lo == hi: no range */
    Loc loc;
} Input;
typedef enum { INIT_ZEROS, INIT_ONES, INIT_NORMAL, INIT_UNIFORM } InitKind;
typedef struct { const char *name; InitKind kind; double a, b; } Init;     /* normal: mean, deviation; uniform: from, to */

typedef struct {                /* files of one data set */
    const char *format;         /* bytes, llmc-tokens, megatron, npy */
    Strs files;                 /* patterns, as written */
    Strs role;                  /* role[i] of the format feeds input[i] of the model: tokens, next, or an array's name */
    Ints input;
    Strs path;                  /* npy: the file of input[i] */
    int64_t every, batches;     /* eval: every N steps, that many micro-batches */
    bool sequential;            /* order: sequential; samples as they stand in the files, again and again */
    Loc loc;
} DataSet;

typedef struct {
    const char *name;           /* cpu.0 ... when count > 1 */
    const char *kind;           /* cpu, cuda, paced */
    const char *kernels;        /* cpu: portable, onednn; cuda: cuda */
    Bytes memory;               /* limit of the arena, reserve already subtracted, under every max_memory */
    Bytes reserve;
    Bytes workspace;            /* cuda: of library calls, behind the arena's tensors; already subtracted from memory */
    Bytes without;              /* memory before a max_memory of plan.constraints lowered it; 0: none did */
    int threads;
    /* for estimates; 0: unknown */
    double flops[2];            /* flop/s of products at best, by compute type: F32, BF16 */
    double vector;              /* flop/s of everything else */
    double bandwidth;           /* bytes/s of its memory */
    double product_share, memory_share;     /* of flops and bandwidth that kernels reach; 0: all of it */
    Ns call;                    /* of starting a kernel */
    const char *isa;            /* cpu: native, x86-64-v4, x86-64-v4+bf16 ...: what the kernels are compiled for */
    const char *arch;           /* cuda: sm_90; NULL: not given */
    int place;                  /* in the model file; another one than its index where device_order.c chose */
    Loc loc;
} Device;

typedef struct {                /* one entry of links: all pairs of devices, or of a device and its host, that it names */
    const char *from, *to;      /* a device, or an entry of devices: all of it; to NULL: the host */
    double rate;                /* bytes/s; 0 unknown */
    Ns latency;                 /* -1: unknown */
    bool half;                  /* both directions share the rate */
    Loc loc;
} LinkSpec;

typedef enum { RECOMPUTE_NONE, RECOMPUTE_FULL, RECOMPUTE_LIST, RECOMPUTE_AUTO } Recompute;
typedef enum { OFFLOAD_NONE, OFFLOAD_LIST, OFFLOAD_AUTO } OffloadKind;
typedef enum { ORDER_AUTO, ORDER_FREE_TIME, ORDER_SAVING } MemoryOrder;
typedef struct {
    int stages_min, stages_max;     /* devices used */
    int chunks;                     /* per device */
    int replicas; bool replicas_auto;   /* of the pipeline, each with its own micro-batches; auto: search.c decides, 1 before */
    Loc replicas_at;
    Ints map;                       /* chunk -> device; empty: chunk c on device c mod stages */
    Loc map_at;
    const char *schedule;           /* gpipe, 1f1b, or auto */
    enum { WARMUP_A, WARMUP_B, WARMUP_AUTO } warmup;    /* 1f1b: how many forwards go first; auto: candidate.c tries both */
    Ints depth;                     /* 1f1b*: micro-batches in flight by stage, found by candidate.c; empty: as 1f1b */
    const char *transport;          /* local, mpi */
    const char *planner;            /* exact */
    bool soon; Ns below; int64_t *rough;    /* any plan; none predicted to take longer, 0: any; any arena: layout_rough() */
    const char *objective;          /* step_time, bottleneck */
    Ns longest, longest_bound; bool longest_all;    /* objective bottleneck: its value; proven; over all prefixes */
    enum { FUSE_AUTO, FUSE_NONE } fuse; Recompute recompute;
    Strs names;                     /* RECOMPUTE_LIST: operator names, * matches any run of characters */
    OffloadKind offload; MemoryOrder memory_order;      /* what goes to the host's memory; auto: in which order */
    Strs away;                      /* OFFLOAD_LIST: the same, whose results do */
    bool disk;                      /* ... or in a file, in directory dir; NULL: where the job finds one */
    const char *dir;
    Strs cut_after, no_cut, keep;   /* constraints, as name patterns */
    VEC(Strs) same_stage;
    Ints cuts;                      /* the last forward operator of each chunk but the last; empty: the planner decides */
    Loc cuts_at, loc;
} PlanSpec;

typedef enum { OPT_SGD, OPT_ADAMW } OptKind;
typedef enum { LR_CONSTANT, LR_COSINE, LR_LINEAR, LR_STEP } LrKind;
typedef struct {
    Type compute;                   /* F32 or BF16; masters and gradients are F32 */
    int64_t batch, micro, groups;   /* samples in a micro-batch (0: auto), micro-batches in a step, gradient groups */
    int64_t global;                 /* batch * micro */
    int64_t steps;
    OptKind opt;
    double lr, beta1, beta2, eps, momentum, weight_decay;
    bool decay_matrices;            /* decay only parameters of two and more dimensions */
    Strs no_decay;                  /* name patterns that are not decayed */
    LrKind schedule;
    int64_t warmup, every;          /* steps */
    double final, factor;           /* cosine, linear: last rate as a share of lr; step: factor every N steps */
    double clip;                    /* 0: no clipping */
    bool clip_each;                 /* clip_scope: parameter */
    uint64_t seed;
} Train;

typedef struct { const char *dir; int64_t every, keep; } CkptSpec;
typedef struct { const char *text; Loc at; } Mark;

typedef struct {
    const char *path, *name;
    VEC(Dim) dims;
    VEC(Input) inputs;
    VEC(Init) inits;
    Node *blocks, *graph;           /* checked by build */
    const char *loss; Loc loss_loc;
    Train train;
    DataSet data, eval;             /* eval.format NULL: none */
    VEC(Device) devices;            /* stage i is on device i: given by the file, to be chosen, chosen by device_order.c */
    enum { ORDER_GIVEN, ORDER_FREE, ORDER_CHOSEN } order; Loc order_at;
    Bytes memory;                   /* of devices where the file lists none, from --limit; 0: the default */
    VEC(LinkSpec) links;
    int hosts;                      /* machines */
    Bytes host_memory;              /* of a machine, for what is offloaded there; 0: not said */
    PlanSpec plan;
    CkptSpec ckpt;
    bool trace;
    VEC(Mark) marks;                /* where each text of a list stands: patterns, files.  Found by the pointer */
} Model;
Loc mark_of(const Model *m, const char *text, Loc otherwise);
/* -D name=value and --set path=value, in the order given.  An element of set may also be --stages=4, for an option that is
 * short for a --set; mistakes then name that option. */
typedef struct { Strs define, set; } Overrides;
const char *override_path(const char *option);      /* --stages: plan.stages; NULL: it is no such option */
/* Entry `cpu` with a count stands for cpu.0, cpu.1, ...: is device d meant by the n characters at name? */
bool device_is(const Device *d, const char *name, size_t n);
void override_devices(Node *root, const char *path);    /* --devices FILE: sections devices, hosts, links of that file */
Model *model(Node *root, const char *path, const Overrides *over);

/* front/expr.c: + - * / ( ) names numbers sqrt min max ceil.  lookup returns false for an unknown name.  Overflow,
 * division by zero and a fraction where an integer is asked for are errors at `at`. */
typedef bool (*Lookup)(void *ctx, const char *name, double *value);
double  expr_float(Loc at, const char *text, Lookup lookup, void *ctx);
int64_t expr_int(Loc at, const char *text, Lookup lookup, void *ctx);

/* ---- Graph: front/build.c shape.c grad.c fuse.c ------------------------------------------------------------ */
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
typedef enum { S_PARAM, S_COPY, S_GRAD, S_MOMENT1, S_MOMENT2, S_CLIP, S_NORM, S_VALUES } StateKind;
typedef struct {
    const char *name;           /* h.3.attn.c_attn.weight; .copy .grad.0 .m .v behind it */
    StateKind kind;
    Type type;
    Shape shape;
    Bytes bytes;
    int param;                  /* the S_PARAM it belongs to (itself for S_PARAM); -1: none */
    int use;                    /* S_GRAD: number of the use, 0 the first */
    int op;                     /* S_GRAD: the forward operator of that use; S_PARAM: the first */
    bool decay;                 /* S_PARAM */
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
    ARG_VALS,                   /* the step values (state S_VALUES) */
    ARG_NONE                    /* absent: the literal 0 */
} ArgKind;
typedef struct {
    ArgKind kind;
    const char *token;          /* as in ops.def */
    bool state;                 /* READ WRITE ADD UPDATE: index is a state, else a tensor */
    int index;
    int64_t i;                  /* ARG_INT */
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
    Ns ns;                      /* of a graph that is timed: what it takes on any device */
    Loc loc;
    /* front end only, before the calls are bound: */
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
    VEC(Tensor) tensor;
    VEC(State) state;
    VEC(Op) op;                 /* PH_F in model order; then PH_I and PH_W by descending forward operator, I before W;
                                   then PH_U by ascending parameter */
    int nf;                     /* operators of PH_F: op 0 .. nf-1 */
    int nb;                     /* first PH_U operator */
    int loss, vals;             /* a tensor; the S_VALUES state */
    VEC(Count) count;           /* what data_count() counts before the first forward */
    const char *model, *calls;  /* hash of the forward calls before fuse, and behind it; NULL or "": nothing was joined */
    bool timed;                 /* from elsewhere, with the times of its operators; row Opaque has no kernel */
} Graph;

/* The operator table, parsed once. */
typedef struct { const char *name; bool optional; char type; } Operand;       /* type: 'r' real, 'f' f32, 'i' i32 */
typedef struct {
    const char *name;           /* without brackets */
    bool internal;              /* in brackets: not a YAML operator */
    VEC(Operand) in, par, out;
    const char *shape;
    const char *call[3], *flop[3];      /* F, I, W */
} Row;
int row_count(void);
const Row *row(int i);
int row_find(const char *name);                     /* -1 if there is none */

/* build: needs Model.  fills ops with in, par, attr, names and locs, tensors without shapes; blocks and repeats expanded. */
Graph *build(const Model *m);
/* shape: fills shapes, types, bytes, states, attributes; binds the forward calls. */
void shape(Graph *g, const Model *m);
/* bind one call of a row ("f(y, x, n)") to an operator.  dt: an operand's gradient tensor, or -1; NULL in the forward phase. */
void bind_call(Graph *g, Op *o, const char *call, const Op *fwd,
               int (*dt)(void *ctx, const char *token, bool *write), void *ctx);
/* grad: appends backward and update operators; contributions added in descending consumer order. */
void grad(Graph *g, const Model *m);
/* fuse: joins neighbours to one call where the bits are the same, and renumbers; fuse_joined: are there any? */
void fuse(Graph *g, const Model *m);
bool fuse_joined(const Graph *g);
void check_graph(const Graph *g);
const char *graph_fault(const Graph *g, Loc *at);    /* of a graph read from a file: what is wrong with it, or NULL */
void graph_totals(FILE *f, const Graph *g);         /* the table of dpgen check */
/* The value of a data input that all who look something up by it pass over; false: there is none.  front/graph.c */
bool input_ignores(const Graph *g, int input, int *value);
Bytes type_bytes(Type t);
const char *type_name(Type t);
const char *size_text(Bytes n);                     /* 23.61 GiB; emit/text.c */
const char *count_text(int64_t n, const char *thing);   /* 1 stage, 2 stages */
const char *shape_text(const Shape *s);             /* [2, 64, 768] */
bool match(const char *pattern, const char *name);  /* * matches any run of characters */
bool match_block(const char *pattern, const char *name);    /* ... the name, or that of a block it is in */

/* ---- cost: cost/cost.c prof.c --------------------------------------------------------------------------------- */
typedef struct Profile Profile;                     /* measured times: cost/prof.h */
Profile *profile_open(const char *path, const Model *m, bool elsewhere);    /* elsewhere: not compared with this machine */
const char *profile_name(const Model *m);           /* MODEL.DEVICE.profile, beside the model */
const char *profile_cannot(const Model *m);         /* why no profile can measure this model here; NULL: one can */
Profile *profile_measure(const Model *m, const char *file);     /* in a folder beside that file, which it does not write */
bool profile_has(const Profile *f, int64_t batch);  /* measured at that micro-batch, not interpolated */
void profile_measure_more(Profile *f, const Model *m, int64_t batch, const char *file);
void profile_print(FILE *f, const Profile *p);
const char *profile_key(const Profile *p, const Graph *g);      /* what measured algorithms add to the numeric key; "" */
void profile_write(const Profile *f, const char *file);         /* whole or not at all */

typedef struct { int n; Bytes bytes[8]; Ns ns[8]; } Curve;      /* both ascend */
/* bytes/s, or a curve where that was measured; half: both directions take turns */
typedef struct { double rate; Ns latency; bool half; const Curve *curve; } Wire;
typedef struct Cost Cost;
struct Cost {
    bool measured;
    const char *how;            /* estimated, measured, interpolated */
    const Profile *profile;     /* NULL: estimated */
    const Cost *busy;           /* the same while all stages of one machine compute; NULL: itself */
    const char *signature;      /* of the profile, or "estimate" */
    int classes;                /* of devices: those of one class take the same time for every call */
    Ints of;                    /* by device: its class */
    int ops;
    Ns **ns;                    /* [class][operator] */
    Ns latency;                 /* of a message between two stages */
    double link;                /* bytes/s between two stages */
    double host;                /* bytes/s between a device and its host, each way */
    int devices;
    const Wire *wire;           /* [from * devices + to]; NULL: all as latency and link say */
    const Wire *host_wire;      /* [device]; NULL: all as host says */
};
Cost *cost(const Graph *g, const Model *m, Profile *f);         /* f NULL: estimated */
const Cost *cost_shared(const Cost *c, const Model *m, int devices);    /* what so many devices pay: busy, or c */
char *cost_signature(const Op *o);                  /* what the time of a call depends on: a line of a profile */
Ns cost_op(const Cost *c, int device, int op);      /* one call there */
Ns cost_wire(const Cost *c, int from, int to, Bytes bytes);     /* how long a message occupies the wire between two devices */
Ns cost_latency(const Cost *c, int from, int to);   /* from the end of that to its arrival */
bool cost_half(const Cost *c, int from, int to);    /* messages of both directions take turns on one wire */
Ns cost_host(const Cost *c, int device, Bytes bytes);           /* how long a copy to the host, or back, occupies that link */
bool cost_host_half(const Cost *c, int device);     /* copies out and in take turns */
void check_cost(const Graph *g, const Cost *c);
/* ---- Plan: each field is written by one pass -------------------------------------------------------------------- */
typedef enum { FATE_KEEP, FATE_RECOMPUTE, FATE_OFFLOAD } Fate;

typedef enum {
    /* made by order */
    K_F, K_B, K_I, K_W, K_U,    /* compute; B is I and W in merged order.  U: update, its part in `part` */
    /* made by comm */
    K_BEGIN, K_COUNT, K_LOAD,   /* step values, targets counted, a data input */
    K_R,                        /* recompute what backward needs first */
    K_SEND, K_RECV, K_WAIT,     /* begin, begin, end of the transfer with the same request */
    K_OUT, K_IN,                /* begin of an offload, of a fetch */
    K_FOLD, K_GATHER,           /* gradient groups; partial norms */
    K_MERGE,                    /* made by order, and by comm for each gradient: that of another replica is added */
    K_END,
    K_VERSION                   /* order: the newest weights copied, to be updated there; what was copied stays as a version */
} ActionKind;

/* The list of an asynchronous schedule has four pieces: from drained to the steady state, one step of that, from there to
 * drained, and one step by itself, for runs too short for the others.  A synchronous list is one piece. */
typedef enum { PIECE_STEP, PIECE_PROLOGUE, PIECE_PERIOD, PIECE_EPILOGUE, PIECE_ALONE, PIECES } Piece;

typedef struct {
    ActionKind kind;
    int chunk;                  /* -1: none */
    int mb;                     /* micro-batch; -1: none */
    Piece piece;
    int step;                   /* whose micro-batch: from the first step that the piece's backward belongs to */
    int version;                /* of the weights read, like step: version n is there when step n-1 is updated; -1 and less
                                   at the start of training: version 0.  U and VERSION: the one updated */
    int variant;                /* of the fate row */
    int part;                   /* K_U: 0 ties and norms, 1 total norm, 2 updates; MERGE: level of the tree over replicas */
    int acc;                    /* W: 0 the first micro-batch of a chain, else 1 */
    int group;                  /* W, FOLD: slot of the gradient accumulators */
    int into;                   /* FOLD: slot added into */
    int first, until;           /* compute: the calls first .. until-1 of its line (calls_of); 0, 0: all.  Cut by offload */
    int routine;                /* compute: lower */
    int tensor, state;          /* LOAD SEND RECV WAIT OUT IN GATHER: what moves; -1 */
    ActionKind of;              /* WAIT: K_SEND, K_RECV, K_OUT or K_IN */
    int from_device;            /* GATHER: whose partial norms; MERGE: whose gradients */
    int buf, slot;              /* the same: which buffer (lower), which slot (mem) */
    int peer, tag, request;     /* SEND RECV WAIT; OUT IN and their WAIT have requests too, numbered apart from these */
    int host, host_slot;        /* OUT IN and their WAIT: which host buffer (lower), which slot of it (mem) */
    int input;                  /* LOAD, COUNT */
    Bytes bytes;
    int tick;                   /* first call number in the device's straight line: lower */
    Ints slots;                 /* compute: literal slot of each pool of the routine, in its order: mem */
    Ns from, to;                /* sim */
    Ns wire_from, wire_to;      /* OUT IN, SEND over half duplex: when it has the link: sim */
} Action;

/* How a buffer comes to life and what it waits for; pools are by (chunk, birth, death). */
typedef enum { AT_F, AT_R, AT_B, AT_W, AT_LOAD, AT_RECV, AT_RECVB, AT_SEND, AT_U, AT_ALWAYS,
               AT_OUT, AT_IN } When;
typedef enum { MADE, REMADE, RECEIVED, FETCHED } Origin;

typedef struct {                /* a range of the arena of one device, in one or several slots */
    const char *name;           /* C identifier, unique on the device */
    int device, chunk;
    bool eval;                  /* of the evaluation's list */
    int tensor, state;          /* one of them; both -1: scratch */
    Origin origin;
    int peer;                   /* RECEIVED state: from which device; else -1 */
    When birth, death;
    int pool;                   /* -1: not pooled */
    int op;                     /* scratch: its operator */
    Bytes bytes;
    Bytes offset;               /* in the arena, slot 0: mem */
    int first, last;            /* ticks it is owned, over all slots and micro-batches: mem */
} Buf;

/* Slots of the buffers of one (chunk, birth, death): numbers below count, some unused, stride apart; the name picks one. */
typedef struct { int device, chunk; bool eval; const char *name; When birth, death; int count; Bytes stride, offset; } Pool;

/* Where an offloaded tensor waits in its host: count slots, stride bytes apart; a slot is taken from the begin of its way
 * out to the end of its way in. */
typedef struct {
    const char *name;           /* C identifier, unique on the device */
    int device, tensor;         /* lower */
    Bytes bytes;
    int count;                  /* mem, as what follows */
    Bytes stride, offset;       /* in the device's host arena, slot 0 */
    int first, last;            /* ticks */
} HostBuf;
typedef struct {                /* one line of a routine */
    int op;
    bool again;                 /* a recomputation */
    Ints buf;                   /* by argument; -1 where it is no buffer */
    int handle;                 /* -1: none */
} Call;
typedef struct {                /* the straight line of one (chunk, phase, variant) */
    const char *name;
    int device, chunk, variant, part;
    int first, until;           /* as in Action */
    ActionKind kind;            /* K_F K_R K_B K_I K_W K_U; */
    bool eval;
    VEC(Call) call;
    Ints pool;                  /* pools it names, in parameter order */
    bool mb, acc;               /* takes the micro-batch number, the accumulate flag */
} Routine;

/* How long copies have, once memory lacks: as long as they take; until the next micro-batch needs the place of the same
 * tensor; no time beside computing. */
typedef enum { HURRY_NONE, HURRY_NEXT, HURRY_NOW } Hurry;
typedef VEC(Action) Actions;
typedef struct {
    int device;
    Actions order;              /* F B I W U alone: order */
    Actions list;               /* the whole step: comm */
    Actions eval;               /* one evaluation micro-batch: comm */
    int ticks;                  /* calls in the straight line: lower */
    Bytes arena, bound, limit;  /* mem: size, lower bound by live bytes, limit of the device */
    Bytes state, unpooled, proven;      /* mem: of it parameters, gradients, moments; lower/unpooled.h */
    int peak;                   /* mem: tick of the bound */
    Bytes *live;                /* mem: bytes alive at each tick, [ticks] */
    int requests, handles;
    int place;                  /* search: 1 + the place of its Device in the model file; 0: its own number */
    int copies;                 /* comm: the most offloads and fetches under way at once */
    Bytes host, host_bound;     /* mem: of offloaded tensors in the host's memory or file, lower bound by live bytes */
    Ns busy;                    /* sim */
} DevicePlan;

typedef struct {
    const Graph *g;
    const Cost *c;
    const Model *m; const char *schedule;
    struct Seen *seen;          /* search: lower/seen.h; NULL: this plan is the only one */
    int devices, chunks;        /* used, of all replicas; the most that one of them holds */
    int replicas;               /* 0: one */
    VEC(DevicePlan) dev;        /* order (order), comm (list), mem, sim */
    Ints chunk_device;          /* order: chunk -> device, in the first replica */
    Ints chunk;                 /* part: operator -> chunk */
    const Bytes *soft;          /* part: the limits it was given, by device */
    const char *space;          /* part: what the bound is over */
    Ns bound, value;            /* part: proven of the step, in that space, 0: nothing; what its planner predicts */
    const char *note;           /* part: what to know of how the plan was found; NULL: nothing */
    Ints wish;                  /* part: [tensor] the fates its planner priced, for keep to take; empty: keep decides */
    int variants;               /* keep */
    Ints fate;                  /* keep: [tensor * variants + variant] */
    VEC(Buf) buf;               /* lower, mem */
    VEC(Pool) pool;             /* lower, mem */
    VEC(HostBuf) host;          /* lower, mem */
    VEC(Routine) routine;       /* lower */
    Hurry hurry;                /* main: of copies to the host and back */
    Ns step;                    /* sim: predicted time of a step */
    const char *key;            /* the numeric key, as text: main */
    int nofit_device;           /* why no plan exists: by the pass that returned nonzero, or part_blame */
    Bytes nofit_need;           /* there; nofit_host: 1 + the host that lacks it, 0: it is no host */
    const char *stuck;          /* comm: why its stages would wait for ever; NULL: they do not */
    int nofit_host, nofit_open;         /* nofit_open: cuts that may fit were not laid out, the search gave up */
} Plan;

/* ---- order: sched/order.c, and one file a schedule --------------------------------------------------------------- */
/* fills dev[].order, chunk_device, from (devices, chunks, micro-batches, groups) alone.  0, or nonzero: not possible. */
int order(Plan *p);
int order_flight(const Plan *p, int chunk);         /* most micro-batches of it from begin of forward to end of backward */
int order_slack(const Plan *p);                     /* computations from post to reader, from send to its wait */
const char *order_name(const Plan *p);              /* the schedule, and its policy where that is not A */
int order_accumulators(const Plan *p);              /* gradient accumulators a use: a stack for the tree over its groups */
/* sched/replica.c: device q s + i is stage i of replica q; s stages a replica */
int plan_replicas(const Plan *p), plan_stages(const Plan *p);                           /* s */
int plan_stage(const Plan *p, int device), plan_replica(const Plan *p, int device);     /* i, q */
int plan_micro(const Plan *p), plan_first(const Plan *p, int device);   /* micro-batches of a replica; the device's first */
int plan_levels(const Plan *p), plan_partner(const Plan *p, int device, int level);    /* tree over replicas; neighbour in it */
typedef struct { const char *name; int (*make)(Plan *p); const char *about; bool async; } Schedule;
extern const Schedule schedules[];                  /* ends with a NULL name */
/* Why this schedule cannot be made of these numbers; NULL: it can.  Only asynchronous ones have reasons. */
const char *order_refuses(const Graph *g, const Model *m, const Schedule *s, int devices);
/* sched/async.c, of any list: fewest steps of a run through the pieces, 0 of a synchronous one; by how many updates the weights
 * of a chunk are behind; a run of so many steps from drained to drained, written out, steps and versions from its first. */
int order_overlap(const Plan *p);
int order_delay(const Plan *p, int chunk);
Actions order_run(const Plan *p, const Actions *list, int steps);
const Actions *order_lists(const Plan *p, bool eval, int steps);    /* of all devices: the whole lists of such a run, or eval */
int order_steps(const Plan *p, int device);         /* most steps begun and not yet updated there */
bool order_holds(const Plan *p, int device);        /* a step's gradients wait while the next one's are made */
void check_order(const Plan *p);

/* ---- part: plan/part.c, and one file a planner ------------------------------------------------------------------- */
int part(Plan *p, const Bytes *limit);              /* soft limits a device; nonzero: none fits */
bool part_cuts(const Plan *p, Ints *cuts);            /* last operator of all chunks but the last; false: they are no runs */
void part_blame(Plan *p);                           /* then: which device lacks most under the cut that lacks least */
void check_part(const Plan *p);
/* ---- keep: plan/keep.c ------------------------------------------------------------------------------------------- */
int keep(Plan *p);
int *keep_fates(const Plan *p, bool cheap);         /* by tensor, before any chunk is known; cheap: all go that may */
Bytes keep_need(const Plan *p, int device);         /* what keep expects of the arena: near, no bound; for feeding back */
void check_keep(const Plan *p);
/* lower/rebuild.c: the backward of one chunk as a line of calls, with what it makes again */
typedef struct { int op; bool again; } Line;
typedef VEC(Line) Lines;
typedef struct {
    Lines line;
    int early;                  /* the first so many calls need no gradient: they run before the wait for it */
    bool *saved;                /* by tensor: must live from forward to backward */
    bool *remade;               /* by tensor: readers in backward take the remade one */
    bool *fetched;              /* by tensor: readers in backward take what came back from the host; then not saved */
} Backward;
Backward backward_of(const Plan *p, int chunk, int variant);
/* The calls of one computation of a chunk, in order: what its routine holds, and what offload cuts into pieces. */
Lines calls_of(const Plan *p, const Backward *back, int chunk, ActionKind kind);
int device_of(const Plan *p, int op);               /* in the first replica */
bool runs_on(const Plan *p, int op, int device);    /* in its replica */
/* ---- comm: lower/comm.c ------------------------------------------------------------------------------------------ */
int comm(Plan *p);
/* lower/offload.c: puts the copies of offloaded tensors into the list that comm wrote.
 * What an offloaded tensor costs the arena of its chunk: in forward it is there from its producer until its copy is out, in
 * backward from as long before its first reader as the copy takes, with a quarter to spare, to its last; copies of a
 * direction follow each other.  A window reaches into the neighbouring computations of the list where its own is too short.
 * Beside that nothing: not one copy for each micro-batch in flight. */
void offload(Plan *p, int device, const Backward *back, Actions *list);     /* back by chunk; fills dev[].copies */
/* Of one computation, or backward with what it makes again first, by itself; at[i]: when call i begins, at[calls] the end.
 * Copy i of n takes ns[i].  Out, by ascending after[i], the calls until its last reader: out[i], the calls until it is gone;
 * calls + 1: not within.  In, by ascending first[i], the call that reads it: in[i], the call before which it is begun; -1:
 * before all of them.  over[i], unless NULL: so much longer the way out takes, so much earlier the way in begins. */
void offload_out(const Ns *at, int calls, int n, const int *after, const Ns *ns, int *out, Ns *over);
void offload_in(const Ns *at, int calls, int n, const int *first, const Ns *ns, int *in, Ns *over);
int comm_async(Plan *p, const Backward *back);      /* the same where steps overlap: lower/comm_async.c */
int comm_stuck(const Plan *p, bool eval);           /* a device that waits for ever under rendezvous; -1: none */
void check_comm(const Plan *p);                     /* the four properties; rendezvous simulation finds deadlock */
/* ---- lower: lower/lower.c ---------------------------------------------------------------------------------------- */
int lower(Plan *p);
void lower_pools(Plan *p, int device);
bool is_copy(const Action *k);                      /* OUT, IN, or the wait for one */
int  lower_part(const Op *o);                       /* part of the update: see Action.part */
void check_lower(const Plan *p);                    /* calls, operands, sizes; no addresses yet */
/* ---- mem: lower/mem.c -------------------------------------------------------------------------------------------- */
int mem(Plan *p);
int64_t *layout_rough(const Model *m);               /* m's budget of arenas that only have to fit, or a new one */
int  host_of_device(const Plan *p, int device);
void host_layout(Plan *p, int device);              /* lower/host.c: the same for the host's memory */
Bytes *mem_at_peak(const Plan *p, int device);       /* by buffer: bytes alive at dev[].peak, over slots and micro-batches */
void mem_measure(Plan *p);                           /* bound, peak and live alone, of a plan from a file */
void check_mem(const Plan *p);                      /* every call reads what it should, byte for byte */
/* ---- sim: lower/sim.c -------------------------------------------------------------------------------------------- */
int sim(Plan *p);
Ns sim_action(const Plan *p, int device, const Action *k);  /* what an action takes by itself; a wait: nothing */
void check_sim(const Plan *p);
/* ---- emit: emit/ ------------------------------------------------------------------------------------------------- */
int emit(const Plan *p, const char *dir, const char *prefix);
/* ---- base/text.c: Graph and Plan as text; read(print(x)) == x ---------------------------------------------------- */
void print_graph(FILE *f, const Graph *g);
void print_plan(FILE *f, const Plan *p, char what);         /* what: a dump letter, or 0 for all of it */
Graph *read_graph(const char *path);
Plan *read_plan(const char *path, const Graph *g);
#endif
