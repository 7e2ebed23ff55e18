/* SPDX-License-Identifier: Apache-2.0
 *
 * job.h: what a generated launch.c tells the runtime about the job.  All literals; launch.c holds one `const Job` and
 * a main() that passes it to job_main().
 */
#ifndef JOB_H
#define JOB_H
#include "rt.h"

#define NOWHERE ((size_t)-1)
enum { STATE_PARAM, STATE_GRAD, STATE_MOMENT1, STATE_MOMENT2, STATE_DRIFT, STATE_CENTRE };
/* Hold it; have nothing to do with it, for it is of this job alone; get it, and never give it; may give it (an adapter). */
enum { FILES_HOLD, FILES_DO_NOT, FILES_GET, FILES_MAY };
enum { JOB_ZEROS, JOB_ONES, JOB_NORMAL, JOB_UNIFORM, JOB_SINES, JOB_VALUES };
enum { START_VALUES = 64 };     /* most that a parameter may begin with */
enum { JOB_CONSTANT, JOB_COSINE, JOB_LINEAR, JOB_STEP };
enum { JOB_F32, JOB_BF16, JOB_I32, JOB_F16 };

typedef struct StateInfo {      /* one state of one stage */
    const char *name;           /* the model's: h.3.attn.c_attn.weight, for every kind */
    int kind, owned;            /* owned 0: a tied parameter's copy, owned by another stage; any of a further replica */
    size_t offset;              /* f32; NOWHERE: this stage holds the copy alone */
    size_t copy;                /* STATE_PARAM: bf16 copy that the kernels read; NOWHERE: none */
    long n;
    int ndim;
    long dim[6];
    int init;                   /* STATE_PARAM: start value, seeded by the name */
    double a, b;                /* normal: mean, deviation; uniform: from, to */
    int kept, copies;           /* where steps overlap: slots at `offset` and at `copy`; 0 and 1: one.  Of a parameter,
                                   version n in slot n mod slots; of a gradient, step n */
    size_t stride;              /* bytes between them */
    int cut;                    /* 1: this replica has elements from .. from+part-1 alone; whole: with room for all, else not */
    long from, part;
    int whole;
    int files;                  /* STATE_PARAM: what files of published weights have to do with it, FILES_... */
    long outer, room;           /* so many stretches, each in parts of `room` elements on a device (team.h); 0: whole on each */
    int bits;                   /* the copy is of 8 or 4 bits a number (quantize.h); 0: it is bf16 */
    float values[START_VALUES]; /* of JOB_VALUES */
} StateInfo;

/* A parameter as a stage's source names it: one row for all its states.  What a row does not say is 0, and no state. */
#define AT(offset) (1 + (size_t)(offset))
#define EMPTY       ((size_t)-1) /* it is there, and the part of this replica is empty */
#define ZEROS      {JOB_ZEROS, 0, 0, {0}}
#define ONES       {JOB_ONES, 0, 0, {0}}
#define NORMAL(mean, deviation) {JOB_NORMAL, mean, deviation, {0}}
#define UNIFORM(from, to)       {JOB_UNIFORM, from, to, {0}}
#define SINES(theta, less)      {JOB_SINES, theta, less, {0}}
#define VALUES(...)             {JOB_VALUES, 0, 0, {__VA_ARGS__}}
enum { CUT_MOMENTS = 1, CUT_GRAD = 2, CUT_PARAM = 4 };     /* sums of these: Parameter.cut */
typedef struct {
    const char *name;
    long shape[6];              /* axes; 0 ends */
    struct { int kind; double a, b; float values[START_VALUES]; } start;
    size_t param, copy, grad, moment1, moment2, centre, drift;
    struct { int kept, copies; size_t stride; } versions;   /* of param and of copy */
    struct { int kept; size_t stride; } sums;               /* of grad */
    int shared;                 /* another stage owns it */
    int cut;                    /* of moments, of the gradient, of the parameter: elements from .. from+part-1 alone */
    long from, part;
    int files;                  /* FILES_... */
    int bits;                   /* of a number in the copy; 0: it is bf16 */
    long outer, room;           /* so many stretches of each state, and the room of a device for one; 0: it is whole */
} Parameter;

typedef struct {                /* a parameter that files of published weights hold otherwise */
    const char *name, *file;    /* the model's, and that of its tensor there */
    const char *also;           /* another name to read; NULL: none */
    int turn;                   /* 1: the last two axes the other way round */
    long from, rows, groups;    /* a part of the tensor: from row `from` of each `rows`, so many times; rows 0: all of it */
    long piece, pieces;         /* the tensor is one of so many parts of the parameter along its first axis; 0: all of it */
} StoredInfo;

/* Section adapt: alpha / rank is the factor of B A; of: the operators, NULL ends. */
typedef struct { long rank; double alpha, dropout; const char *const *of; } AdapterInfo;

typedef struct { const char *file, *name; } CopyInfo;  /* a tensor of such files that holds parameter `name` once more */

/* Bytes of pictures: b becomes (b/255 - mean) / std of its channel, which is the last axis. */
typedef struct { int channels; const float *mean, *std; } ByteInfo;

typedef struct {                /* one data input of the model */
    const char *name;
    int type;                   /* JOB_F32 or JOB_I32 */
    long per;                   /* elements of one sample */
    long lo, hi;                /* lo == hi: no range */
    int ignores;                /* 1: `ignore` is let in too, wherever it lies: nothing is looked up by it */
    long ignore;
    const ByteInfo *bytes;      /* that stand in the file; NULL: numbers as they are */
} InputInfo;

typedef struct { const char *name; int stage; } OutputInfo;    /* of a job that infers, and the stage that has it */

typedef struct {
    const char *format;         /* a word of data.c; NULL: no such data */
    const char *const *files;   /* patterns; NULL ends */
    int roles;
    const char *const *role;    /* tokens, next, image, labels, coarse, or an array's name */
    const int *input;           /* role[i] feeds this input */
    const char *const *path;    /* of arrays: file of role[i] */
    int sequential;             /* 1: samples in the order of the files, else drawn */
} DataInfo;

typedef struct {
    const char *name;           /* of the file, stage0 */
    size_t arena;               /* bytes */
    size_t vals;                /* offset of the step values */
    size_t workspace, workspace_bytes;  /* of library calls on a GPU: offset and bytes; 0 bytes: none */
    size_t load;                /* GPU: most bytes of a data input that it loads; 0: it loads none */
    size_t landing;             /* GPU: from here to its end the arena has floats or bytes of a load to come; 0: none */
    int pipeline;               /* losses of a step are of this pipeline of the replica */
    int like, copy, turns;      /* with Job.homes: its stage; the first copy of the model that it is in; how many, in turn */
    int threads;
    size_t host;                /* bytes of what waits in the host's memory, or file */
    int copies, lanes;          /* to it and back: numbers in use; 2: both directions at once, 1: in turn */
    long actions, eval_actions; /* numbers that action() is called with: 0 .. actions-1 */
    void (*open)(Stage *), (*step)(Stage *), (*eval)(Stage *);
    int phases;                 /* where steps overlap: step n is in phase n mod phases; step and eval are 0 */
    void (*const *piece)(Stage *);  /* [phase * 5]: prologue, period, epilogue, alone, eval */
    int parameters;
    const Parameter *parameter; /* as the stage's source has them; stage_take() makes: */
    int states;
    const StateInfo *state;
    const int64_t *predicted;   /* ns of each action's begin and end, two a number */
    const int64_t *pace;        /* paced: ns that it computes; ns of its message, wire or latency, or copy */
} StageInfo;

typedef struct { double lr, beta1, beta2, weight_decay; } GroupInfo;    /* of some parameters, in place of the job's own */
/* states.c: a stage hands over what it is; the rows of its parameters become states. */
typedef struct { StageInfo *stage; int n, failed, shard; } Stages;      /* shard: of the stage that speaks */
void stage_take(Stages *to, const StageInfo *s);

typedef struct { const char *name, *value; } Setting;  /* of the model file: train.optimizer.lr, 0.01 */

typedef struct {
    const char *program;        /* what the user calls it; NULL: train */
    const char *name, *kernels, *key;       /* model; portable or onednn; the numeric key */
    const char *model;          /* sha256 of parameters and forward calls: a checkpoint belongs to it */
    const char *plan;           /* sha256 of plan.json */
    const char *version;        /* of dpgen; NULL: not said */
    const char *moments;        /* the rule that gives the optimiser's states their meaning; NULL: there is none */
    const Setting *setting;     /* of training; name NULL ends, NULL: none is said */
    const char *versions;       /* the rule by which steps read versions of the weights; NULL: every step the newest */
    int overlap, report;        /* fewest steps through the pieces, 0: no overlap; steps between two meetings of all stages */
    int stages;                 /* of all replicas: those of the first one come first */
    int replicas;               /* 0 and 1: one */
    int homes;                  /* stages of a copy of the model, where they differ in copies; 0: all have as many */
    int team;                   /* devices of each stage, which share its operators; 0 and 1: one.  Then `stages` is that of a
                                 * program with one each, and the runtime counts the first devices of all stages at first */
    int ways;                   /* pipelines on the stages of a replica, each with micro-batches of its own; 0 and 1: one */
    const int *rank;            /* mpi, nccl: by stage; NULL: its own number */
    int pairs;                  /* ordered pairs of stages, from, to, that exchange messages */
    const int *pair;
    const char *talk;           /* by pair: partial norms and factors of clipping alone; NULL: none */
    void (*const *source)(Stages *to);      /* of each stage, its stageN(); NULL: `stage` is there already */
    const StageInfo *stage;
    int inputs;
    const InputInfo *input;
    DataInfo train, eval;
    long eval_every, eval_batches;
    int keep_best;              /* 1: a checkpoint of the best evaluation, and it stays */
    long patience;              /* so many evaluations without a better one end the training; 0: none do */
    long top;                   /* an evaluation tells the share of targets among so many best scores; 0: it does not */
    int   top_count;            /* the loss of that: Values.valid */
    long batch, micro, groups;              /* samples in a micro-batch, micro-batches, gradient groups */
    int blocks;                             /* of sums over axes that may be divided; 0: one */
    long steps, tokens;                     /* steps; tokens in a step */
    uint64_t seed;
    int lr_kind;
    double lr, final, factor, beta1, beta2, weight_decay;
    long warmup, every;
    int param_groups;           /* their step values lie behind those of the job */
    const GroupInfo *param_group;
    const StoredInfo *stored;   /* of published weights: weights.c; names ascend as the graph has them */
    int stored_n;
    const char *const *ignored; /* patterns of tensors that nobody wants; NULL ends, NULL: no such list */
    const AdapterInfo *adapter; /* NULL: none */
    const CopyInfo *copied;     /* file NULL ends; NULL: none */
    const char *prefix;         /* may stand before names, or be missing there; NULL: none */
    int published;              /* type of what is written */
    const char *ckpt_dir;
    long ckpt_every, ckpt_keep;
    int ckpt_async;             /* 1: beside the step, where there is memory for a copy */
    int64_t step_ns;            /* predicted */
    int outputs;                /* of a job that infers; 0: it trains */
    const OutputInfo *output;
    const int *loads;           /* by input the first and the last stage that loads it; -1: none does */
    int64_t latency_ns, period_ns;          /* predicted: of the first micro-batch, of each behind it */
    int bf16, trace;
    const char *measured;       /* the GPU and library that algorithms of products were chosen on; NULL: none was */
    int disk;                   /* what is offloaded goes to a file, in spill_dir; 0: it is the directory of the start */
    const char *spill_dir;
} Job;

int job_main(const Job *job, int argc, char **argv);
int job_sample(const Job *job, int argc, char **argv);  /* sample/sample.c: text out of a language model */
int job_serve(const Job *job, int argc, char **argv);   /* serve/serve.c: samples in, results out */
#endif
