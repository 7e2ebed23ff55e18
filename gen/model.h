/* SPDX-License-Identifier: Apache-2.0
 *
 * model.h: the YAML file as a tree of nodes, and as a Model: checked, with all defaults.
 *
 * Everything keeps the place in the YAML it came from.
 */
#ifndef MODEL_H
#define MODEL_H
#include "base.h"

/* ---- load: config/load.c ---------------------------------------------------------------------------------- */
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
const char *load_library(void);     /* version of libyaml */
/* YAML that dpgen made for the file at path; no mistake is in a line of that file */
Node *load_made(const char *path, const char *text);
/* The value of an option such as `--set train.steps=10`, from byte `skip` of its text; diagnostics name the option. */
Node *load_option(const char *option, const char *text, size_t skip);
Node *node_get(const Node *map, const char *key);   /* NULL if absent */
const Node *node_at(const Node *map, const char *path);     /* ... of train.batch */

/* ---- model: config/model.c --------------------------------------------------------------------------------- */
/* needs: Node.  fills: Model, defaults and all, nothing left to interpret but the graph's own nodes. */
typedef enum { F32, BF16, I32, F64, U8 } Type;      /* F64 and U8 only in states */
enum { MAXDIM = 6, MAXINPUT = 8, MAXCHANNEL = 64 };
typedef struct { int n; double at[MAXCHANNEL]; } Channels;
typedef struct { int n; int64_t d[MAXDIM]; } Shape;

typedef struct { const char *name; int64_t value; } Dim;
typedef struct {                /* one data input of the model */
    const char *name;
    Node *shape;                /* expressions; B is the micro-batch */
    Type type;
    int64_t lo, hi;             /* ids must lie in [lo, hi); lo == hi: no range */
    bool bytes;                 /* f32, of bytes in the file: b becomes (b/255 - mean) / std */
    Channels mean, std;          /* one, or one a channel, which is the last axis; none: 0 and 1 */
    Loc loc;
} Input;
typedef enum { INIT_ZEROS, INIT_ONES, INIT_NORMAL, INIT_UNIFORM, INIT_SINES, INIT_VALUES } InitKind;
typedef enum { FAN_NONE, FAN_IN, FAN_OUT } Fan;
/* normal: mean, deviation; uniform: from, to; sines: theta, less; values: how many, and their text.  With a fan the deviation
 * is sqrt(2/fan): shape knows it. */
typedef struct { const char *name; InitKind kind; double a, b; Fan fan; const char *values; } Init;

typedef struct {                /* files of one data set */
    const char *format;         /* config/train.c has the words */
    Strs files;                 /* patterns, as written */
    Strs role;                  /* role[i] of the format feeds input[i] of the model: tokens, image, or an array's name */
    Ints input;
    Strs path;                  /* of arrays: the file of input[i] */
    int64_t every, batches;     /* eval: every N steps, that many micro-batches */
    bool keep_best;             /* eval: a checkpoint of the best one */
    int64_t patience;           /* eval: so many without a better one end the training; 0: none do */
    bool sequential;            /* order: sequential; samples as they stand in the files, again and again */
    Loc loc;
} DataSet;

typedef struct {
    const char *name;           /* cpu.0 ... when count > 1 */
    const char *kind;           /* a word of targets.def */
    const char *kernels;        /* of targets.def: what it is planned with */
    Bytes memory;               /* limit of the arena, reserve already subtracted, under every max_memory */
    Bytes reserve;
    Bytes workspace;            /* cuda: of library calls, behind the arena's tensors; already subtracted from memory */
    Bytes without;              /* memory before a max_memory of plan.constraints lowered it; 0: none did */
    int threads;
    int spare;                  /* cuda: multiprocessors that products leave to messages */
    /* for estimates; 0: unknown */
    double flops[3];            /* flop/s of products at best, by compute type: F32, BF16; of fp8, 0: twice that of BF16 */
    double vector;              /* flop/s of everything else */
    double bandwidth;           /* bytes/s of its memory */
    double product_share, memory_share;     /* of flops and bandwidth that kernels reach; 0: all of it */
    Ns call;                    /* of starting a kernel */
    const char *isa;            /* cpu: native, x86-64-v4, x86-64-v4+bf16 ...: what the kernels are compiled for */
    const char *arch;           /* cuda: sm_90; NULL: not given */
    int entry;                  /* in the model file; another one than its index where device_order.c chose */
    Loc loc;
} Device;
typedef VEC(Device) Devices;

typedef struct {                /* one entry of links: all pairs of devices, or of a device and its host, that it names */
    const char *from, *to;      /* a device, or an entry of devices: all of it; to NULL: the host; both: of two hosts */
    double rate;                /* bytes/s; 0 unknown */
    Ns latency;                 /* -1: unknown */
    bool half;                  /* both directions share the rate */
} LinkSpec;

/* targets.def: what is known of kinds of device, kernel libraries and transports by their words. */
typedef struct {
    const char *name;
    const char *kernels;            /* where the file names none */
    const char *linked;             /* kernels of the job, whatever it is planned with; NULL: those */
    bool cores;                     /* its threads keep cores of a processor busy */
    bool gpu;                       /* it has an arch and a workspace, and no kernels, threads or isa */
    bool paced;                     /* it waits for its planned times and computes nothing */
} Target;
typedef struct { int64_t product, other, memory; } Speed;   /* of a core, per us: operations of products and others; bytes */
typedef struct { int64_t most, round, least; } Blocks;
typedef struct {
    const char *name;
    const char *folder;             /* of its sources */
    bool whole;                     /* all of them, whatever is called: they lean on each other */
    bool alone;                     /* no portable kernel runs beside it */
    bool handles;                   /* calls are prepared before the first step */
    bool graphs;                    /* plain attention in bf16 is a graph of cuDNN */
    bool anywhere;                  /* the same bits with any threads and instruction set */
    bool openmp;                    /* even of one thread */
    bool shared;                    /* a job cannot be linked statically */
    int sum_order;                  /* of additions: raised by whoever changes one (docs/bits.md) */
    const char *isa;                /* where the file names none */
    const char *link;               /* flags, a blank behind them */
    const char *header;             /* has its version; NULL: the version is that of dpgen */
    const char *version;            /* the macros there: with _MAJOR, _MINOR and _PATCH behind it */
    const char *title, *package;    /* for people: what it calls itself, and what to install */
    Speed speed[2];                 /* F32, BF16, of a device without figures */
    Blocks blocks;                  /* of a gradient's norm: n elements are n / most, rounded up, or the least (op/update.c) */
} Library;
typedef struct {
    const char *name;
    const char *cc;
    const char *link;               /* flags, a blank behind them */
    const char *launch;             /* the program that begins the processes; NULL: none does */
    bool ranks;                     /* each stage is a process */
    bool cpus, gpus;                /* only between these */
    bool shared;                    /* a job cannot be linked statically */
    bool batch;                     /* a batch script comes with it */
    Ns latency;
    double rate, most;              /* bytes/s: of a pair without an entry; of any, 0: as its entry says */
    Bytes pair;                     /* of the memory of a device, for each pair that it is in */
} Transport;
extern const char target_words[], library_words[], transport_words[];      /* config/targets.c; a blank before each */
const Target *target_of(const Device *d);
const Library *library_of(const Device *d);         /* what it is planned with */
const Library *library_linked(const Device *d);     /* what the job has */
const char *library_needed(const char *file);       /* that a job on GPUs with this file is linked with; NULL: none */

/* Micro-batch k, counted through all steps of m, reads version floor((k - lag) / m) of the weights: on stage i of p the lag is
 * 0, m, p-1-i or p-1; FIRST: p-1-i, and all of a step read what its first one reads. */
typedef enum { LAG_NONE, LAG_STEP, LAG_BEHIND, LAG_DEPTH, LAG_FIRST } Lag;
/* It reads that version as it is, or predicted: so many updates further as lag, or lag + floor(i/2), micro-batches make. */
typedef enum { AHEAD_NONE, AHEAD_OWN, AHEAD_TURN } Ahead;

/* schedules.def: what is known of a schedule by its name; gen/sched/ has the lists. */
typedef struct {
    const char *name, *about;
    bool tried;                     /* where plan.schedule is auto */
    bool adjoins;                   /* backward of the last chunk follows its forward at once */
    bool usual;                     /* the one that stands for auto where one has to */
    bool warmups;                   /* it obeys plan.warmup */
    bool depths;                    /* its lists follow from a plan: a depth for each stage; or lead and lag */
    bool one_chunk;                 /* a device holds one chunk, and plan.map is empty */
    bool async;                     /* steps overlap: no flush */
    bool norms;                     /* async: an update may wait for the norms of all stages */
    bool split;                     /* weight gradients are computations of their own */
    bool joins;                     /* ... but where nothing fits so: there a device may have I and W in one */
    const char *lead, *lag, *group; /* sched/beats.c */
    bool grouped;                   /* a group has p micro-batches or more, and so has the last one */
    bool widths;                    /* of plan.widths: copies of stages take micro-batches in turn */
    bool any_map;                   /* it takes any plan.map; slots.c keeps one message under way between two chunks */
    int chunks;                     /* a device, where the model does not say; 0: 1 */
    bool folds;                     /* the chunks go to device 0..p-1, p-1..0, and so on; so many a device, a wave */
    bool waves;                     /* it obeys plan.waves */
    const char *least;              /* micro-batches of a replica, of p devices; NULL: 1 */
    /* Of p devices, m micro-batches, v chunks a device: the step in units of a chunk's F, I or W, messages free, from `holds`
     * micro-batches on; NULL: nobody knows, and from 1 on. */
    const char *form, *holds;
    int ways;                       /* pipelines on the same devices, the second one reversed, p even; 0: 1 */
    const char *multiple;           /* micro-batches of a replica are one of it, of p devices; NULL: 1 */
    bool improves;                  /* it begins with the lists of every row that it may have, and goes on from the best */
    bool given;                     /* its lists are a table of the user */
    bool custom;                    /* lead, lag and group are those of plan.schedule, a map */
    bool infers;                    /* forwards alone: of plan.mode infer, and of no other */
    bool each;                      /* async: an update after every micro-batch */
    Lag forward, backward;          /* async: the version that each of them reads */
    Ahead ahead;                    /* async: what is done to it first */
    const char *optimizer;          /* the type that it is for; NULL: any */
    bool drifts;                    /* async: backward goes back by forward's lag, along the mean of the last updates */
    bool spikes;                    /* async: the update of momentum SGD makes up for forward's delay */
} Schedule;
extern const Schedule schedules[];                  /* config/schedules.c; ends with a NULL name */
extern const char schedule_words[];                 /* auto, those that are built, those that are not */
const Schedule *schedule_of(const char *name);      /* of auto: the usual one; NULL: unknown */
static inline int schedule_ways(const Schedule *k) { return k->ways > 1 ? k->ways : 1; }
int64_t schedule_form(const Schedule *k, int p, int m, int v);      /* the step by its closed form; 0: there is none */

/* config/table.c: a schedule as a table, a row a device. */
typedef struct { Loc at; char kind; int chunk, mb; } TableCell;        /* kind: F I W, or B for I and W at once */
typedef VEC(TableCell) TableRow;
typedef struct {
    int devices, chunks, micro;
    bool split;                     /* some I and W are apart; then each B is an I and a W behind it */
    Ints map;                       /* chunk -> device */
    VEC(TableRow) line;
} OrderTable;
/* Complete lists that end; else a mistake is named at its cell, and dpgen ends with status 3. */
OrderTable *table_read(const char *path);
/* Lists that wait in a circle: a cell, the one that it waits for, and the waiting one of that device; waits NULL: they end. */
typedef struct { const TableCell *waits, *wants, *before; } Circle;
Circle table_circle(const OrderTable *t);
const char *table_name(const TableCell *x);         /* 0F0 */

/* config/schedules.c: a row of schedules.def that the model file writes itself. */
typedef struct {
    const char *word;               /* of the row that has its map; NULL: there is none */
    enum { IN_TURN, THERE_AND_BACK } map;
    const char *lead, *lag, *group; /* expressions of p, i, m, v and g; lag NULL: backward in one; mark_of() has their places */
    Loc at;
} OwnRow;

typedef enum { RECOMPUTE_NONE, RECOMPUTE_FULL, RECOMPUTE_LIST, RECOMPUTE_AUTO } Recompute;
typedef enum { OFFLOAD_NONE, OFFLOAD_LIST, OFFLOAD_AUTO } OffloadKind;
typedef enum { ORDER_AUTO, ORDER_FREE_TIME, ORDER_SAVING } MemoryOrder;
typedef struct {
    int stages_min, stages_max;     /* devices used */
    int chunks; bool chunks_said;   /* per device; by the model, or else by the schedule */
    bool chunks_auto;               /* the search tries several; the schedule's own number before */
    int replicas; bool replicas_auto;   /* of the pipeline, each with its own micro-batches; auto: search.c decides, 1 before */
    Loc replicas_at;
    Ints widths; Loc widths_at;     /* devices that have each stage, where they differ: copies of it.  The most is `replicas` */
    bool widths_auto;               /* search.c decides; none before */
    int tensor; bool tensor_auto;   /* devices of a stage; auto: search.c decides, 1 before */
    Loc tensor_at;
    enum { POSITIONS_WHOLE, POSITIONS_DIVIDED, POSITIONS_AUTO, POSITIONS_EVERYWHERE } positions;
                                /* rows of a device: between divided operators, of all operators; auto: search.c */
    Loc positions_at;
    enum { EXPERTS_DIVIDED, EXPERTS_DEVICES, EXPERTS_AUTO } experts;    /* of a stage: a part of every one, or whole ones */
    Loc experts_at;
    int buckets;                    /* most pieces of backward with exchanges of their own */
    int group;                      /* micro-batches that pass chunk by chunk; 0: as the schedule has them */
    Loc group_at;
    int waves;                      /* of a folded pipeline; 0: 1 */
    Loc waves_at;
    Ints map;                       /* chunk -> device; empty: in turn, or as the schedule folds them */
    Loc map_at;
    const OrderTable *table;             /* plan.order; NULL: the lists are those of the schedule.  Then map is the table's */
    Loc order_at;
    const char *schedule;           /* a word of schedules.def, or auto */
    bool any_row;                   /* the model says auto: beside gpipe and 1f1b, all rows that train alike */
    OwnRow custom;
    enum { WARMUP_A, WARMUP_B, WARMUP_AUTO } warmup;    /* 1f1b: how many forwards go first */
    const char *transport;          /* a word of targets.def */
    const char *planner;            /* a word of planners.def */
    enum { STEP_TIME, BOTTLENECK, THROUGHPUT } objective;
    enum { MODE_TRAIN, MODE_INFER } mode; Loc mode_at;     /* infer: forward alone, and values that leave the job */
    Ns longest, longest_bound; bool longest_all;    /* objective bottleneck: its value; proven; over all prefixes */
    enum { FUSE_AUTO, FUSE_NONE, FUSE_SUMS, FUSE_MOST, FUSE_FASTEST } fuse; Recompute recompute; Loc recompute_at;
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

/* train.shard: what is dealt out to replicas, with all in front of it. */
typedef enum { SHARD_NONE, SHARD_OPTIMIZER, SHARD_GRADIENTS, SHARD_PARAMETERS } Shard;
typedef enum { OPT_SGD, OPT_ADAMW, OPT_NADAMW, OPT_RMSPROP } OptKind;
/* Parameters with numbers of their own in the update: train.optimizer.groups. */
typedef struct { Strs match; double lr, weight_decay, beta1, beta2, eps; bool times; Loc loc; } ParamGroup;
enum { MAX_PARAM_GROUPS = 64 };
typedef enum { LR_CONSTANT, LR_COSINE, LR_LINEAR, LR_STEP } LrKind;
typedef struct {
    Type compute;                   /* F32 or BF16; masters and gradients are F32 */
    Shard shard;
    bool tf32;                      /* F32, with products whose factors have 11 bits */
    bool fp8;                       /* BF16, and Linear with factors of 8 bits */
    bool fast;                      /* fp8, whose sums may lose bits: the library's fast accumulation */
    int64_t batch, micro, groups;   /* samples in a micro-batch (0: auto), micro-batches in a step, gradient groups */
    int64_t global;                 /* batch * micro */
    int64_t blocks;                 /* of sums over axes that may be divided: 1, 2, 4, 8, 16 */
    Loc blocks_at;
    int64_t steps;
    OptKind opt;
    double lr, beta1, beta2, eps, momentum, alpha, weight_decay;
    bool nesterov, centered;        /* sgd; rmsprop */
    bool decay_matrices;            /* decay only parameters of two and more dimensions */
    Strs no_decay;                  /* name patterns that are not decayed */
    VEC(ParamGroup) param_group;    /* the first that has a pattern for it takes a parameter; none: the numbers above */
    Strs freeze;                    /* ... of parameters that do not learn */
    LrKind schedule;
    int64_t warmup, every;          /* steps */
    double final, factor;           /* cosine, linear: last rate as a share of lr; step: factor every N steps */
    double clip;                    /* 0: no clipping */
    bool clip_each;                 /* clip_scope: parameter */
    uint64_t seed;
} Train;

const char *compute_word(const Train *t);       /* of precision.compute */

typedef struct { const char *dir; int64_t every, keep; bool async; } CkptSpec;

/* How files of published weights differ from the parameters of the model: config/weights.c.  A * of a name is one text in all
 * names of its rule. */
typedef struct { const char *name, *file; Loc loc; } StoredPair;
typedef VEC(StoredPair) StoredPairs;
/* In each group rows of these, in turn. */
typedef struct { const char *file; Strs of; int64_t groups; Loc loc; } StoredStack;
typedef VEC(StoredStack) StoredStacks;
typedef struct {
    bool given;
    enum { FILE_F32, FILE_F16, FILE_BF16 } type;    /* of what a job writes */
    const char *prefix;             /* may stand before names, or be missing there; NULL: none */
    Strs turn;                      /* with the last two axes the other way round */
    StoredPairs rename, also;       /* also: another name that is read */
    StoredPairs copies;             /* another tensor that has the same numbers */
    StoredPairs each;               /* parts along the first axis that are tensors of their own: {} is their number */
    StoredStacks stack;
    Strs fresh;                     /* patterns of parameters that start from their rule, whatever the files hold */
    Strs ignore;                    /* tensors that nobody wants */
} WeightsSpec;
/* Adapters: Linear named by match get two small ones beside them; all but these, and what `learn` names, is frozen. */
typedef struct { Strs match, learn; int64_t rank; double alpha, dropout; Loc loc; } AdaptSpec;
/* Frozen weights of Linear named by match, or of all that can, in `bits` a number: 8, 4; 0: none. */
typedef struct { Strs match; int bits; Loc loc; } QuantizeSpec;
typedef struct { const char *text; Loc at; } Mark;

typedef struct {
    const char *path, *name;
    const char *options;            /* that changed the file, as words of a command, a blank before each; "" */
    VEC(Dim) dims;
    VEC(Input) inputs;
    VEC(Init) inits;
    Node *blocks, *graph;           /* checked by build */
    const char *loss; Loc loss_loc;
    Strs outputs;                   /* values that a job of plan.mode infer writes */
    Node *documents;                /* which value lines read that may have documents, and name none; NULL: none */
    Train train;
    DataSet data, eval;             /* eval.format NULL: none */
    Devices devices;                /* stage i is on device i: given by the file, to be chosen, chosen by device_order.c */
    Devices listed;                 /* plan.tensor: those of the file; stage i has devices.at[i].entry and those behind it */
    enum { ORDER_GIVEN, ORDER_FREE, ORDER_CHOSEN } device_order; Loc order_at;
    Bytes memory;                   /* of devices where the file lists none, from --limit; 0: the default */
    VEC(LinkSpec) links;
    int hosts;                      /* machines */
    int cores;                      /* of a machine, for stages on processors; 0: not said */
    Bytes host_memory;              /* of a machine, for what is offloaded there; 0: not said */
    PlanSpec plan;
    CkptSpec ckpt;
    WeightsSpec weights;
    AdaptSpec adapt;                /* match empty: none */
    QuantizeSpec quantize;
    bool trace;
    VEC(Mark) marks;                /* where each text of a list stands: patterns, files.  Found by the pointer */
} Model;
static inline bool infers(const Model *m) { return m->plan.mode == MODE_INFER; }
bool schedule_open(const char *word);               /* auto: the search chooses */
const Model *with_schedule(const Model *m, const Schedule *k);  /* config/schedules.c: its own chunks, if the model says none */
bool cudnn_proven(const Device *d);                 /* the same bits in every run, on this chip: config/targets.c */
int64_t widest_head(const Device *d);               /* that cuDNN takes; 0: none */
int64_t norm_block(const Model *m, int64_t n);      /* elements of a block of the norm of n: config/targets.c */
int devices_for(const Model *m, int stages);          /* config/widths.c: that so many stages take, all copies together */
const char *widths_refuse(const Model *m, const Schedule *s);       /* why that schedule has no plan.widths; NULL: it has */
typedef VEC(Ints) WidthLists;
/* plan.widths: auto: how many there are of so many stages, up to one more than MOST_WIDTHS, and which, if all is not NULL. */
int widths_lists(const Model *m, int stages, WidthLists *all);
int widths_most(const Model *m);                    /* copies of a stage: what the gradient groups can be dealt out to */
const char *widths_text(const Ints *widths);        /* 1, 4, 2 */
Loc mark_of(const Model *m, const char *text, Loc otherwise);
/* -D name=value and --set path=value, in the order given.  An element of set may also be --stages=4, for an option that is
 * short for a --set; mistakes then name that option. */
typedef struct { Strs define, set; } Overrides;
const char *override_path(const char *option);      /* --stages: plan.stages; NULL: it is no such option */
/* Entry `cpu` with a count stands for cpu.0, cpu.1, ...: is device d meant by the n characters at name? */
bool device_is(const Device *d, const char *name, size_t n);
const Transport *transport_of(const Model *m);
bool on_gpus(const Model *m);                       /* its devices are GPUs; never some of them */
/* config/tensor.c: the model with stages of so many devices, and rows whole or divided; err where it can have none. */
typedef struct { int devices, rows, experts; } TeamForm;
typedef VEC(TeamForm) Teams;
bool team_open(const Model *m);             /* does plan.tensor, positions, experts or widths leave it to the search? */
Teams team_offers(const Model *m);                  /* what they leave open, or say */
const Model *with_team(const Model *m, TeamForm form);
const Model *with_widths(const Model *m, const Ints *widths);       /* config/widths.c: of plan.widths: auto */
typedef VEC(const Model *) Models;
Models team_models(const Model *m);                 /* those that there can be; m itself, where nothing is open */
const Device *team_member(const Model *m, int device, int member);  /* the devices of a stage; member 0: the first */
const char *team_text(const Model *m, int device);  /* cpu.0 .. cpu.3 */
int host_of(const Model *m, const Device *d);       /* devices are spread over the hosts in order, evenly */
const char *host_text(const Model *m, int device);  /* of a stage: host 0, hosts 0 to 1; NULL: there is one host */
/* --devices FILE: sections devices, hosts, links of that file, or of one that dpgen carries: a100-40gb */
void override_devices(Node *root, const char *path);
void list_devices(FILE *f);                         /* names of those */
int  new_command(int argc, char **argv);            /* new.c: a model to start from */
Model *model(Node *root, const char *path, const Overrides *over);

/* config/expr.c: + - * / ( ) names numbers sqrt min max ceil.  lookup returns false for an unknown name.  Overflow,
 * division by zero and a fraction where an integer is asked for are errors at `at`. */
typedef bool (*Lookup)(void *ctx, const char *name, double *value);
double  expr_float(Loc at, const char *text, Lookup lookup, void *ctx);
int64_t expr_int(Loc at, const char *text, Lookup lookup, void *ctx);
#endif
