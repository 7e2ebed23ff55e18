/* SPDX-License-Identifier: Apache-2.0
 *
 * run.h: what the files of the runtime share and generated code does not see.
 *
 * A process runs one or more stages: all of them with the transport `local`, one with `mpi`.  Each has a Worker, the
 * runtime's half of a Stage, and a thread.  A Run is the whole of one process.  Everything is allocated before
 * the first step; from then on nothing here calls an allocator.  There is no mutable state at file level except the
 * flag of signal.c.
 */
#ifndef RUN_H
#define RUN_H
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>
#include "job.h"
#include "parts.h"
#include "values.h"

enum { DONE, STATUS_RUN, STATUS_USAGE, STATUS_STALE = 5, STATUS_MACHINE, STATUS_BROKEN, STATUS_DIFFERS, STATUS_AGAIN = 75 };

typedef struct {                /* options.c */
    long steps;                 /* stop after this many; rates follow job->steps whatever this is */
    const char **data, **eval_data;     /* patterns, NULL ends; NULL: as the model file says */
    const char *checkpoint, *weights, *adapter, *log, *publish, *gradients, *trace, *dump, *spill;
    bool resume, hash, quiet, none, nan, record, selftest, evaluates;
    int fill;                   /* byte that arenas are filled with */
    long watchdog;              /* seconds; 0 never, -1 from the prediction */
    long seconds;               /* stop after the step that ends so late; 0 never */
} Options;

enum { SHARED_MARK = 128 };
typedef struct Run Run;
typedef struct Checkpoint Checkpoint;
typedef struct Publish Publish;
typedef struct { char *at; size_t n, cap; } Text;      /* what does not fit is counted and not stored */

/* Evaluations so far, the same on all stages: the least loss, the steps that were done then (-1: there was none), and how many
 * came since.  is: the last one was the best. */
typedef struct { double loss; int64_t at, since; bool is; } Best;

enum { PATIENT = 4 };

/* blank: of the first step without a valid target, 8 times its number plus 1 plus the input; 0: there was none */
typedef struct { double loss, norm; int64_t blank; int want, writing; } Report;
typedef struct { double loss, norm, at; float lr; float *losses; long n; } Ended;

enum { WIDE = 60 };
typedef struct { double all, busy, process; } Cores;   /* seconds of all cores: passed, used, used by this process */
typedef struct {                /* progress.c: what has been seen of this run */
    Cores cores;                /* at its begin */
    double begun, shown;        /* seconds: the first step begins; the terminal was written to */
    double wall, first;         /* seconds of all steps; of the first */
    int64_t steps, per;         /* steps of this run; steps in a bucket of the curve */
    double first_loss, eval;    /* eval: of the last evaluation; NaN: there was none */
    double sum[WIDE];
    int64_t count[WIDE];
} Progress;
typedef struct { int64_t done; double loss, norm, wall, rate; } Step;  /* done: steps so far; norm below 0: none is taken */

typedef struct Worker {
    Stage stage;
    Run *run;
    const StageInfo *info;
    pthread_t thread;
    int64_t step;               /* of training; in an evaluation the number of its micro-batch */
    bool eval;
    int status;                 /* how its thread ended */
    double begun;               /* seconds: step_begin() */
    const Values *last;         /* of the last step that ended */
    int64_t blank;              /* as in a Report */
    int64_t done;               /* steps whose updates are in the arena, when nothing is under way */
    /* overlap.c; ended NULL: steps do not overlap */
    Ended *ended;               /* step n at n mod endings */
    int64_t endings, next;      /* next: the step to begin */
    double shown;               /* seconds: the end of the last step that was told of */
    Best best;
    bool writing;               /* some stage writes its part of a checkpoint; of the last report */
    const char *broken;         /* the first number that was not finite; NULL: none */
    int64_t broken_at;          /* steps that were done then */
    void *board;                /* answers of link_share(), all stages */
    Text text;                  /* room for headers of files */
    bool scored;                /* sample/sample.c: this stage has seen the scores */
    float *room;                /* publish.c; NULL: nothing is */
    float *eval_loss, *losses;  /* losses.c: of this stage's micro-batches of an evaluation; of all replicas */
    int64_t eval_valid[6];      /* as Values.valid, of all micro-batches of an evaluation; 0: not counted yet */
    long *counts, *turn;
    /* watchdog.c: the only fields that another thread reads */
    _Atomic int64_t at;         /* action under way; -1 none */
    _Atomic(const char *) *names;        /* by action: what it was, when it last began */
    _Atomic uint64_t beat;      /* counts up with every sign of life */
    _Atomic int waits;          /* 1 + the stage that it receives from, -1 - the one that it sends to; 0: does not wait */
    _Atomic int patience;       /* deadlines that may pass in silence: PATIENT at start and while files are written */
    /* pace.c */
    int pacing;                 /* action under way in a paced job; -1 none */
    int64_t due;                /* ns of a clock that only goes forward: when the action before was to end */
    int partial;                /* stage 0: the file that is being written, locked until it has its place; 0: none */
} Worker;

/* What a program of the job does with its stages: main.c trains, sample/sample.c writes text. */
typedef struct {
    const struct JobOption *table;         /* options.h: of its command line */
    const char *verb;                   /* what it does with the job, for --help */
    int (*options)(Run *run, char **argv);    /* -1: go on; else the status to end with */
    int (*prepare)(Run *run);           /* all that may fail or allocate */
    void (*stage)(Worker *w);           /* in the thread of each stage; sets its status */
    void (*close)(Run *run);            /* NULL: nothing of its own */
} Program;

struct Run {
    const Job *job;
    const Program *does;
    struct Sample *sample;      /* sample/sample.c */
    struct Serve *serve;        /* serve/serve.c */
    Options opt;
    Link *link;
    Loader *loader;
    Checkpoint *checkpoint;
    Publish *publish;           /* NULL: nothing is */
    char mark[SHARED_MARK];     /* of the process of stage 0, in files that all others have to see */
    char data[65];              /* for checkpoints: data_fingerprint() */
    int first, count;           /* stages of this process */
    Worker *worker;
    int64_t start;              /* first step */
    int64_t blank;              /* as in a Report, once it is said */
    int log;                    /* descriptor of the metrics; -1 none */
    bool terminal, main;        /* progress goes to a terminal; stage 0 runs here */
    bool pending;               /* the terminal shows a line of progress that has no end yet */
    Progress progress;
    Best best;                  /* of a run that this one goes on from */
    const char *program;        /* as it was called */
    struct Item *parameter, *gradient;  /* of all stages, by name */
    int parameters, gradients;
};

/* ---- ends and texts: text.c ------------------------------------------------------------------------------- */
#define RT_PRINTF(a, b) __attribute__((format(printf, a, b)))
extern const char program_name[];       /* what its messages begin with */
/* One line on standard error; returns `status`. */
int complain(int status, const char *form, ...) RT_PRINTF(2, 3);
/* The same, and the end of every stage of the job. */
_Noreturn void quit(Link *link, int status, const char *form, ...) RT_PRINTF(3, 4);
void text_add(Text *t, const char *form, ...) RT_PRINTF(2, 3);
void text_json(Text *t, const char *string);            /* quoted and escaped */
void text_number(Text *t, double x);                    /* null for what JSON cannot say */
bool write_all(int file, const void *data, size_t n);
bool write_piece(void *file, const void *piece, size_t n);      /* of an int: an ArenaTake */
bool copy_piece(void *next, const void *piece, size_t n);       /* another one, to memory: a char *, which goes on */
double seconds(void);                                   /* a clock that only goes forward */

/* ---- start ------------------------------------------------------------------------------------------------- */
int job_run(const Job *job, const Program *does, int argc, char **argv);        /* main.c, as are these two */
int prepare_workers(Run *run);
int start_values(Run *run);
const Job *stages_open(const Job *job);                 /* states.c: the job with what its stages say; NULL: no memory */
void stages_close(const Job *job);
/* options.c: NULL terminated argv.  -1: go on; else the status to end with. */
int options_read(Options *o, const Job *job, char **argv, bool speak);
int machine_check(const Run *run);                      /* machine.c */
void machine_cores(Worker *w);                          /* every stage calls it */
int arena_open(Worker *w);                              /* arena.c */
void arena_close(Worker *w);                            /* and what arena_shared() gave to the stage */
void arena_warm(Worker *w);                             /* behind `open`; what is in the arena is lost */
/* ---- the arena as the host sees it.  Blocking, while no step is under way: */
void arena_enter(Worker *w);                            /* first thing in the thread of a stage */
enum { ARENA_PIECE = 1 << 18 };
typedef bool (*ArenaTake)(void *to, const void *piece, size_t n);
/* Hands n bytes from `at` on to `take`, piece by piece, in memory of the host, until it says no. */
bool arena_read(Worker *w, const void *at, size_t n, ArenaTake take, void *to);
void arena_write(Worker *w, void *at, const void *from, size_t n);
void arena_record(Worker *w);                           /* behind all that opens; every stage calls it */
void arena_step(Worker *w);
void arena_clock(Stage *st, double *at);                 /* seconds(), when the computation has come so far */
void *arena_shared(size_t n);                           /* zeroed memory of the host that kernels may write */
const char *action_name(const Worker *w, int64_t number);       /* action.c: its text; "?": it has not begun yet */
typedef struct { double from, to; int number; } Copied; /* a copy as it was: seconds, and the action that began it */
struct Offload {                                        /* spill.c, of stages that have copies */
    int (*open)(Worker *w);                             /* before the first step */
    void (*close)(Worker *w);                           /* after the last one */
    void (*report)(const Worker *w);                    /* for the watchdog: what is under way */
    /* The newest n of a direction, the oldest of them at first; 0 out, 1 in.  While no copy is under way. */
    const Copied *(*trace)(const Worker *w, int direction, uint64_t i, uint64_t *n);
};
static inline bool offloads(const Worker *w) { return job_parts.offload && w->info->copies > 0; }
int arena_dump(Worker *w);                              /* export.c: --dump-arena */
int init_parameters(Worker *w);                         /* init.c: a status */
void init_widen(float *to, const uint16_t *from, long n);
/* Elements first .. first+n-1 of a version of a parameter, in f32 and as bf16 copy, wherever the stage has them. */
void init_place(Worker *w, const StateInfo *s, int64_t version, const float *from, long first, long n);

/* ---- copies of the model, and devices of a stage ----------------------------------------------------------------- */
static inline int replicas_of(const Job *job) { return job->replicas > 1 ? job->replicas : 1; }
static inline int team_of(const Job *job) { return job->team > 1 ? job->team : 1; }        /* devices of a stage */

/* Stages of the first copy: of each replica and device of a team. */
static inline int homes_of(const Job *job)
{
    return job->homes ? job->homes : job->stages / (replicas_of(job) * team_of(job));
}

/* Its stage in the first copy. */
static inline int home_at(const Job *job, int stage)
{
    return job->homes ? job->stage[stage].like : stage % homes_of(job);
}

/* First devices of all stages and replicas: they come first. */
static inline int firsts_of(const Job *job) { return job->stages / team_of(job); }

/* Which copy of the model a stage is in; 0: the first one. */
static inline int copy_of(const Worker *w)
{
    const Job *job = w->run->job;
    return job->homes ? w->stage.index / firsts_of(job) * replicas_of(job) + w->info->copy : w->stage.index / homes_of(job);
}

static inline int replica_of(const Worker *w) { return copy_of(w) % replicas_of(w->run->job); }

/* Copies that each have a share of the micro-batches of a step.  An evaluation runs through the first one of a replica, and
 * where stages are in different numbers of copies, of the first replica. */
static inline int copies_of(const Job *job) { return replicas_of(job) * (job->ways > 1 ? job->ways : 1); }
static inline bool evaluates(const Worker *w) { return !w->run->job->homes || replica_of(w) == 0; }

/* Where a replica begins, or ends, with n of an evaluation. */
static inline long eval_begin(const Worker *w, int end, long n)
{
    const Job *job = w->run->job;
    return job->homes ? end * n : n * (replica_of(w) + end) / replicas_of(job);
}

struct Losses {                                         /* losses.c */
    int (*open)(Worker *w);
    void (*close)(Worker *w);
    long (*each)(const Worker *w);                      /* micro-batches of a step that it computes */
    double (*sum)(Worker *w, const float *mine, long n);
};

/* items.c: states of home stages, by name.  kinds: bits 1 << STATE_...; stage -1: of all.  NULL: no memory. */
/* age: 0 the newest version, n the one n updates before it. */
typedef struct Item { const StateInfo *state; int stage, age; char suffix[16]; } Item;
enum { STATE_OLD = 8 };         /* a bit of kinds: versions of parameters that later steps read, too */
Item *items_make(const Job *job, unsigned kinds, int stage, int *n);
float *item_data(const Worker *w, const Item *item);    /* NULL: */
/* Must this stage call item_read(): it is the item's home, or has a part that its home asks for. */
bool item_here(const Worker *w, const Item *item);
/* What this stage writes of an item of its own or of its twin in replica 0: elements from .. from+n-1.  Where replicas have
 * parts, its own; else all, in replica 0. */
const float *item_part(const Worker *w, const Item *item, long *from, long *n);
const uint16_t *item_copy(const Worker *w, const Item *item);   /* this version exists in bf16 alone */
struct Divided {                                        /* divided.c: states that devices of a stage share, in files */
    /* Elements from .. from+n-1, piece by piece, to `take` of the first device.  All call it. */
    bool (*read)(Worker *w, const Item *item, long from, long n, ArenaTake take, void *to);
    /* The elements of an item that this device of this replica has to give, to `take` with the file at their place: the whole
     * lies at `at`. */
    bool (*give)(Worker *w, const Item *item, int file, off_t at, ArenaTake take, void *to);
    /* Of elements first .. first+n-1 at `from` those of this device: into `data`, and rounded into `copy`; NULL: not there. */
    void (*place)(Worker *w, const StateInfo *s, float *data, uint16_t *copy, const float *from, long first, long n);
};
struct Written;
struct Parted {                                         /* parted.c: states of which stages have parts */
    bool (*read)(Worker *w, const Item *item, long from, long n, ArenaTake take, void *to);
    void (*files)(Worker *w, int64_t step, struct Written *mine);   /* of a checkpoint, where no copy is written */
    void (*sum)(Worker *w, int64_t step, struct Written *out);      /* of a file that all have written into */
};
struct Quantized {                                      /* quantized.c: of a state with `bits` */
    bool (*read)(Worker *w, const StateInfo *s, long from, long n, ArenaTake take, void *to);
    void (*place)(Worker *w, const StateInfo *s, const float *from, long first, long n);
    long (*each)(const StateInfo *s);                   /* numbers of a record */
};
/* Elements from .. from+n-1 of an item of this stage, as floats: those in bf16 alone are widened. */
bool item_read(Worker *w, const Item *item, long from, long n, ArenaTake take, void *to);
int  state_versions(const StateInfo *s);
/* Of version n, or of step n: in f32, NULL where there is none; in bf16, likewise. */
float *state_data(const Worker *w, const StateInfo *s, int64_t n);
uint16_t *state_copy(const Worker *w, const StateInfo *s, int64_t n);
void state_suffix(char to[16], int kind, int age);      /* behind the name of a state in files */
long items_room(const Item *item, int n);               /* bytes that their text in a header may need */

/* ---- data.c ------------------------------------------------------------------------------------------------- */
Loader *data_open(Run *run, int *status);               /* NULL: said why, status set */
/* The same n ids for every sample of an evaluation, of whoever may change them between two; name: what messages call them. */
Loader *data_given(const Job *job, const int32_t *ids, int64_t n, const char *name, int *status);
/* Rows of arrays, in order, as an evaluation has them; the loader frees `array`.  rows_are: so many of them from now on. */
struct Array;
Loader *data_rows(const Job *job, const DataInfo *info, struct Array *array, int *status);
void data_rows_are(Loader *l, int64_t rows);
void data_close(Loader *l);
/* A place in the training stream, for checkpoints: samples used before `step`. */
int64_t data_cursor(const Job *job, int64_t step);
/* data_sum.c: of the data of training; of each file, to standard output. */
void data_fingerprint(const Loader *l, char hex[65]);
int  data_record(const Loader *l);

/* ---- the rest ------------------------------------------------------------------------------------------------ */
int  metrics_open(Run *run);                            /* metrics.c */
void metrics_start(Run *run, const int64_t *by_stage);  /* bytes that kernels hold outside the arenas */
void metrics_step(Run *run, int64_t step, double loss, double norm, double lr, double wall);
void metrics_eval(Run *run, int64_t step, double loss, double share);
void metrics_blank(Run *run, int64_t blank);            /* of a Report: said once */
void metrics_line(Run *run, const char *event, int64_t step, const char *detail);
void metrics_break(Run *run);                           /* before anything else is written to standard output */
void metrics_show(const Run *run, const Text *t);       /* unless it shall be quiet */
void metrics_close(Run *run);
void progress_begin(Run *run);                          /* progress.c; stage 0 calls these */
bool progress_late(const Run *run);                     /* --seconds are over */
void progress_step(Run *run, const Step *s);
void progress_end(Run *run);
bool cores_read(const char *stat, double tick, Cores *c);       /* all, busy: of the text of /proc/stat */
double cores_others(const Cores *from, const Cores *to);        /* share that other processes used; -1: too short to tell */

void signal_open(void);                                 /* signal.c */
/* SAVE, STOP: asked for by a signal; END by the clock; BROKEN by a number that is not finite. */
enum { WANT_SAVE = 1, WANT_STOP = 2, WANT_END = 4, WANT_BROKEN = 8 };
void signal_saved(bool asked);                          /* a checkpoint of the newest step is there; asked: by a signal */
void signal_leave(void);                                /* this process is one of several, and on its way out */
int  signal_take(void);                                 /* what was asked for since the last call; a stop stays */

struct Message;
struct Pace {                   /* pace.c */
    void (*begin)(Worker *w, int number);               /* the next action; -1: the step is over */
    void (*wait)(Worker *w, int64_t ready);             /* ns, of the same clock as `due` */
    int64_t (*carry)(const Stage *st, const struct Message *m, int64_t *wire);  /* message_carry() */
};
static inline bool paced(const Stage *st)
{
    return st->worker && st->worker->info->pace;
}

void selftest_open(Worker *w);                          /* selftest.c; before the first step */
int  selftest_end(Worker *w);

typedef struct Watchdog Watchdog;                       /* watchdog.c */
Watchdog *watchdog_open(Run *run);
void watchdog_close(Watchdog *d);

/* part.c: stage 0 writes `path` from its begin, and closes it when it has its place.  -1: errno */
int  part_open(Worker *w, const char *path);
void part_close(Worker *w);
int  part_lock(const char *path, bool waits);           /* the same, of whoever closes it; EWOULDBLOCK: another has it */
bool part_try(const char *path);                        /* it could be written; leaves nothing.  False: errno */
enum { PART_PATH = 4200 };
void part_name(char *to, const char *path);             /* where it is written first; of PART_PATH bytes */
int  part_end(const char *part, const char *path, int status);          /* DONE: it takes its place; else it goes */
bool part_sync(int file, bool good);                    /* synced and closed; errno says why not */
/* A file of all stages: stage 0 writes the header, then each adds what it has, which is false for a file below 0. */
int  part_write(Worker *w, const char *part, const char *path, const Text *header, bool (*mine)(Worker *w, int file));

int  trace_open(Run *run);                              /* trace.c */
void trace_origin(Stage *st);                           /* at a common barrier */
void trace_stamp(Stage *st, int number);                /* -1: the step is over */
int  trace_write(Worker *w, const char *path);

struct Hosts {                                          /* shared.c */
    int (*check)(const Run *run, bool locked);          /* before the first step; the same answer everywhere */
    int (*processes)(const Run *run);                   /* of the job on this host */
};
int  ckpt_open(Run *run);                               /* ckpt.c; before the first step */
int  ckpt_seen(const Run *run);                         /* by all processes?  Behind ckpt_open() */
void ckpt_close(Run *run);                              /* after the last step of all stages */
int  ckpt_load(Run *run);                               /* ckpt_load.c; sets run->start */
int  ckpt_weights(Run *run, const char *path);
int  weights_read(Run *run, const char *path);          /* weights.c: published ones; every parameter of these stages */
/* Every stage calls these; the same answer everywhere.  now: it is committed, else it may be written while training goes on;
 * turn: what may go on with it, goes on; settle: it is committed. */
int  ckpt_save(Worker *w, int64_t step, bool now);
int  ckpt_turn(Worker *w);
int  ckpt_settle(Worker *w);
bool ckpt_writing(const Worker *w);                     /* this stage */

int  export_probe(const Run *run);      /* export.c: can what is written at the end be written? */
/* Every stage calls these; the same answer everywhere. */
void export_hash(Worker *w, char hex[65]);
int  export_gradients(Worker *w, const char *path);
/* publish.c: parameters as published weights.  Before the first step: the first two, in this order. */
int  publish_open(Run *run);
int  publish_room(Worker *w);
int  publish_write(Worker *w);
void publish_close(Run *run);
/* main.c: loss, norm and wants of all stages */
Report worker_share(Worker *w, double loss, double norm);
void worker_rest(Worker *w);                            /* no action is under way */
void worker_eval(Worker *w);                            /* a micro-batch of an evaluation */
int  worker_judge(Worker *w, int64_t done, const Report *r);      /* WANT_BROKEN where a number is not finite, or 0 */
struct Bests {                                          /* best.c */
    bool (*is_over)(const Worker *w);                   /* too many evaluations came without a better one */
    int (*note)(Worker *w, int64_t done, double loss);  /* of an evaluation: WANT_END, or 0 */
    bool (*is_best)(const Worker *w, int64_t done);     /* the last one was, and its checkpoint shall stay */
    void (*describe)(Text *t, const Job *job, const Best *b);   /* in the index of a checkpoint */
    int64_t (*stays)(const Run *run, int64_t step, const Best *b);     /* the step that stays; -1: none.  Behind a commit */
};
struct Overlap {                                        /* overlap.c */
    int (*open)(Worker *w);
    /* Steps from..*to-1, the pipeline drained before and behind: at a checkpoint, an evaluation, the end, or when a signal asks
     * for it; what for. */
    int (*run)(Worker *w, int64_t from, int64_t *to);
    void (*ended)(Worker *w, const Values *v);          /* step_end() of a step that is not the only one under way */
    void (*spread)(Worker *w);                          /* every version is the first one */
    void (*eval)(Worker *w);
};
/* The largest status of any stage. */
int  worst(Worker *w, int status);
#endif
