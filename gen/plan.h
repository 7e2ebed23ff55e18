/* SPDX-License-Identifier: Apache-2.0
 *
 * plan.h: the Plan, and the passes that fill it, in the order in which passes.c runs them.
 *
 * Buffers, actions, routines are referred to by index.  Fixed short names: p plan, c cost, d device, k action, b buffer,
 * r routine.
 */
#ifndef PLAN_H
#define PLAN_H
#include "cost.h"

/* ---- Plan: its fields, and who writes them ----------------------------------------------------------------------
 * The comment of a field begins with the pass that writes it.  tests/writers.sh holds every assignment against that.
 * `A, then B`: B changes a few after A has made them.  text/plan.c, which reads a plan from a file, writes them all. */
typedef enum { FATE_KEEP, FATE_RECOMPUTE, FATE_OFFLOAD } Fate;

typedef enum {
    /* made by order */
    K_F, K_B, K_I, K_W, K_U,    /* compute; B is I and W in merged order.  U: update, its part in `update` */
    /* made by comm */
    K_BEGIN, K_COUNT, K_LOAD,   /* step values, targets counted, a data input */
    K_R,                        /* recompute what backward needs first */
    K_SEND, K_RECV, K_WAIT,     /* begin, begin, end of the transfer with the same request */
    K_OUT, K_IN,                /* begin of an offload, of a fetch */
    K_FOLD, K_GATHER,           /* gradient groups; partial norms */
    K_MERGE,                    /* made by order, and by comm for each gradient: that of another row is added */
    K_END,
    K_VERSION,                  /* order: the newest weights copied, to be updated there; what was copied stays as a version */
    K_PREDICT,                  /* order: the newest weights predicted, for backward or forward */
    K_SHARE,                    /* order: what two rows have of the sum goes to the other one: sched/share.c */
    K_ROOM                      /* order, and by comm for each parameter: the row's part, into the room of the whole */
} ActionKind;

/* The gradients that a fold adds: of a chunk all, those that I adds to, or those of W.  I runs ahead of W, so where one call
 * makes both gradients of some operator, the two have folds of their own. */
typedef enum { FOLD_ALL, FOLD_I, FOLD_W, FOLDS } Fold;

/* The list of an asynchronous schedule has four pieces: from drained to the steady state, one step of that, from there to
 * drained, and one step by itself, for runs too short for the others.  A synchronous list is one piece. */
typedef enum { PIECE_STEP, PIECE_PROLOGUE, PIECE_PERIOD, PIECE_EPILOGUE, PIECE_ALONE, PIECES } Piece;

/* The parts of an update, in the order in which they run; a list has those that it needs.  U_TIES: rows add the uses of a tied
 * parameter before the way down the tree; U_GATHER: ties, and partial norms; U_SUMS: of the blocks of norms; U_NORM: the total;
 * U_STEP: the parameters; U_COPIES: of those that came back in parts.  U_ROOMS is no part of it: parts of copies, rounded into
 * their rooms, in front of the computations that read those. */
typedef enum { U_TIES, U_GATHER, U_SUMS, U_NORM, U_STEP, U_COPIES, U_ROOMS, U_PARTS, U_NONE = -1 } UpdatePart;

typedef struct {
    ActionKind kind;            /* order, then comm: the pass that puts the action into a list */
    int chunk;                  /* order, then comm: -1: none */
    int mb;                     /* order, then comm: micro-batch; -1: none */
    Piece piece;                /* order, then comm */
    int step;                   /* order, then comm: whose micro-batch: from the first step that the piece's backward belongs
                                   to */
    int version;                /* order, then comm: of the weights read, like step: version n is there when step n-1 is
                                   updated; -1 and less at the start of training: version 0.  U and VERSION: the one updated;
                                   PREDICT: the one made */
    union { int variant, update, fold, tree_level, forward; };      /* order, then comm: by kind: U: UpdatePart; FOLD: Fold;
                                   MERGE, SHARE: level of the tree over rows; PREDICT: 0 for backward, 1 for forward */
    int acc;                    /* order, then comm: W: 0 the first micro-batch of a chain, else 1 */
    int group;                  /* order: W, FOLD: slot of the gradient accumulators; SHARE: 0 gradients, 1 parameters,
                                   2 gradients of tied parameters, 3 parameters in rooms */
    int into;                   /* order: FOLD: slot added into */
    int first, until;           /* comm: compute: the calls first .. until-1 of its line (calls_of); 0, 0: all.  Cut by
                                   offload, bucket.  FOLD: the gradients that these operators of backward complete */
    int routine;                /* lower: compute */
    int tensor, state;          /* order, then comm: LOAD SEND RECV WAIT OUT IN GATHER MERGE: what moves; -1: of a MERGE of
                                   order, all gradients of the chunk */
    ActionKind of;              /* comm: WAIT: K_SEND, K_RECV, K_OUT or K_IN */
    int pipeline;               /* comm: SEND RECV WAIT GATHER of a state between stages, where devices hold two pipelines: 1 +
                                   which */
    int from_device;            /* order, then comm: GATHER: whose partial norms; MERGE: whose gradients */
    int buf;                    /* lower: of what moves */
    int slot;                   /* mem: the same: which slot of it */
    int peer, tag, request;     /* comm: SEND RECV WAIT; OUT IN and their WAIT have requests too, numbered apart from these */
    int host;                   /* lower: OUT IN and their WAIT: which host buffer */
    int host_slot;              /* mem: the same: which slot of it */
    int input;                  /* comm: LOAD, COUNT */
    Bytes bytes;                /* comm: of what moves */
    Bytes at;                   /* comm: SEND RECV WAIT MERGE: where in its state that begins */
    bool back;                  /* comm: SEND RECV WAIT: of a SHARE, so that a receive needs no buffer of its own */
    int tick;                   /* lower: first call number in the device's straight line */
    Ints slots;                 /* mem: compute: literal slot of each pool of the routine, in its order */
    Ns from, to;                /* sim: of its computation, or of its transfer */
    Ns wire_from, wire_to;      /* sim: OUT IN, SEND over half duplex: when it has the link */
} Action;

static inline Action action_new(ActionKind kind, int step, int mb)
{
    return (Action){.kind = kind, .step = step, .version = step, .mb = mb, .chunk = -1, .tensor = -1, .state = -1,
                    .from_device = -1, .routine = -1, .buf = -1, .host = -1, .peer = -1, .tag = -1, .request = -1, .input = -1};
}

/* How a buffer comes to life and what it waits for; pools are by (chunk, birth, death). */
typedef enum { AT_F, AT_R, AT_B, AT_W, AT_LOAD, AT_RECV, AT_RECVB, AT_SEND, AT_U, AT_ALWAYS,
               AT_OUT, AT_IN } When;
typedef enum { MADE, REMADE, RECEIVED, FETCHED } Origin;

typedef struct {                /* a range of the arena of one device, in one or several slots */
    const char *name;           /* lower: C identifier, unique on the device */
    int device, chunk;          /* lower */
    bool eval;                  /* lower: of the evaluation's list */
    int tensor, state;          /* lower: one of them; both -1: scratch */
    int pipeline;               /* lower: a state: pipeline of the replica that uses it */
    Origin origin;              /* lower */
    When birth, death;          /* lower */
    int pool;                   /* lower, then mem: -1: not pooled */
    int op;                     /* lower: scratch: its operator */
    Bytes bytes;                /* lower */
    Bytes offset;               /* mem: in the arena, slot 0 */
    int first, last;            /* mem: ticks it is owned, over all slots and micro-batches */
} Buf;

/* Slots of the buffers of one (chunk, birth, death): numbers below count, some unused, stride apart; the name picks one. */
typedef struct {
    int device, chunk;          /* lower, then mem: as all fields of a pool of one buffer, which mem opens */
    bool eval;                  /* lower, then mem */
    const char *name;           /* lower, then mem */
    When birth, death;          /* lower, then mem */
    int count;                  /* mem */
    Bytes stride, offset;       /* mem */
} Pool;

/* Where an offloaded tensor waits in its host: count slots, stride bytes apart; a slot is taken from the begin of its way
 * out to the end of its way in. */
typedef struct {
    const char *name;           /* lower: C identifier, unique on the device */
    int device, tensor;         /* lower */
    Bytes bytes;                /* lower */
    int count;                  /* mem */
    Bytes stride, offset;       /* mem: in the device's host arena, slot 0 */
    int first, last;            /* mem: ticks */
} HostBuf;
typedef struct {                /* one line of a routine */
    int op;                     /* lower */
    bool again;                 /* lower: a recomputation */
    Ints buf;                   /* lower: by argument; -1 where it is no buffer */
    int handle;                 /* lower: -1: none */
} Call;
typedef struct {                /* the straight line of one (chunk, phase) */
    const char *name;           /* lower */
    int device, chunk;          /* lower */
    union { int variant, update, fold; };       /* lower: as in Action */
    int first, until;           /* lower: as in Action */
    ActionKind kind;            /* lower: K_F K_R K_B K_I K_W K_U */
    bool eval;                  /* lower */
    VEC(Call) call;             /* lower */
    Ints pool;                  /* lower, then mem: pools it names, in parameter order */
    bool mb, acc;               /* lower: takes the micro-batch number, the accumulate flag */
} Routine;

typedef VEC(Action) Actions;
static inline Actions actions_copied(const Actions *list)       /* in as many bytes as it takes */
{
    size_t n = sizeof *list->at * (size_t)list->n;
    return (Actions){n ? memcpy(alloc(n), list->at, n) : NULL, list->n, list->n};
}
/* The slack of copies to the host, once memory is short: as long as they take; until the micro-batch after the next needs
 * the place of the same tensor, for there are two; until the next one needs it; no time beside computing. */
typedef enum { COPY_SLACK_ALL, COPY_SLACK_SECOND, COPY_SLACK_NEXT, COPY_SLACK_NONE } CopySlack;
/* What a plan is made of beside what the model says.  Zeros and NULL: as the model says. */
typedef struct {
    const char *planner;
    const Ints *map, *cuts;     /* chunk -> device; the last forward operator of each chunk but the last */
    const Ints *depth;          /* 1f1b*: micro-batches in flight, by stage; NULL: as 1f1b */
    const Ints *lead, *lag;     /* zb*, 1f1b-split: of beats.c, by stage; lag -1: I and W are one computation; NULL: as 1f1b */
    const Schedule *seed;       /* optimal: its lists are those of this row; NULL: of 1f1b */
    const Actions *lists;       /* optimal: its lists, by stage, of F, B, I and W; NULL: those of the seed */
    int warmup;                 /* 1f1b: 1 + WARMUP_A or WARMUP_B */
    CopySlack copy_slack;       /* of copies to the host and back */
    bool no_offload;            /* plan.offload: auto, but this plan sends nothing to the host */
    bool early;                 /* two directions: gradients are merged behind the last computation of their chunk */
    int buckets;                /* pieces of backward, each with its own exchange between replicas; 0, 1: it stands behind */
    bool far;                   /* a send over n stages is awaited n computations later: transport_slack() */
    int narrow;                 /* no cut that more values cross; 0: any */
} Choice;
/* How far a question is answered.  Zeros: in full, with a proof. */
typedef struct {
    bool first_fit;             /* stop at the first plan that fits */
    bool spare;                 /* ... and leave packing some room at first */
    bool any_arena;             /* an arena may be larger than its limit: then the limit is a target, and no more */
    bool estimate_only;         /* only the step time and the missing bytes are wanted: the plan is not emitted */
    bool unproven;              /* exact: skip the proof */
    bool unseeded;              /* exact: skip the proof, and the answers of other planners once it has a plan */
    bool stop_early;            /* give up sooner while nothing fits */
    int proofs;                 /* exact: candidates that share the time for proofs where results may leave; 0: this one */
    Ns cutoff;                  /* discard slower predictions; 0: none */
    Ns below_step;              /* a longer step is of no use, and its memory is not laid out; 0: no bound */
} Effort;
/* What a search asks of the passes beside the model, and what it may cost. */
typedef struct {
    Choice choice;
    Effort effort;
    int64_t more;               /* micro-batches of a replica that the step has beside those of its lists: shorter.c */
    Purse *work;                /* calls replayed for prices, and runs met */
    Purse *trials;              /* placement steps of layouts that only have to fit; NULL: this one is no trial */
    Purse *layouts;             /* ... of those that are no trials, which stop early then */
} Ask;
/* The answer to an Ask: a plan, or the reason why there is none. */
typedef enum { PLANNED, NO_PLAN, OVER_DEVICE, OVER_HOST } Verdict;
/* What is known of a plan beside the plan itself. */
typedef struct {
    Ns value;                   /* the step that its planner predicts */
    Ns alone;                   /* ... where each chunk has all the memory of its device; value, if chunks share none */
    Ns bound;                   /* proven: no plan of its space has a shorter step; 0: nothing is proven */
    const char *space;          /* the plans that the bound is over */
    const char *note;           /* how the plan was found, where a reader must know; NULL: nothing */
} Proof;
/* Why there is no plan. */
typedef struct {
    int device;                 /* that lacks most memory; -1: no cut is possible at all */
    Bytes need;                 /* of that device, or of the host */
    int host;                   /* 1 + the host that lacks memory; 0: no host does */
    const char *stuck;          /* messages leave no list: stages would wait for ever, say; NULL: they do not */
    bool open;                  /* the search gave up: cuts that may fit were not laid out */
    Bytes least;                /* the least limit that has a plan, of all devices alike; -1: none was found; 0: nobody
                                   looked */
} Shortfall;
typedef struct {
    int device;                 /* passes, then order */
    Actions order;              /* order: F B I W U alone */
    Actions list;               /* comm, then lower: the whole step */
    Actions eval;               /* comm, then lower: one evaluation micro-batch */
    int ticks;                  /* lower: calls in the straight line */
    Bytes limit;                /* passes, then mem: of the device */
    Bytes arena, bound;         /* mem: size, lower bound by live bytes */
    Bytes state, unpooled, proven;      /* mem: of it parameters, gradients, moments; mem/unpooled.c */
    int peak;                   /* mem: tick of the bound */
    int requests;               /* comm */
    int handles;                /* lower */
    int entry;                  /* search: 1 + the entry of the model file that it is; 0: entry `device` */
    int copies;                 /* comm: the most offloads and fetches under way at once */
    Bytes host, host_bound;     /* mem: of offloaded tensors in the host's memory or file, lower bound by live bytes */
    Ns busy;                    /* sim */
} DevicePlan;

typedef struct {
    const Graph *g;             /* passes */
    const Cost *c;              /* passes */
    const Model *m;             /* passes */
    const char *schedule;       /* passes */
    Ask ask;                    /* passes */
    struct Seen *seen;          /* search: what trials share; NULL: this plan is the only one */
    const char *key;            /* search, then passes: the numeric key, as text; part adds the rule of versions */
    int devices, chunks;        /* passes: used, of all replicas; the most that one of them holds */
    int replicas;               /* passes: 0: one */
    VEC(DevicePlan) dev;        /* passes, then order */
    VEC(Ints) home;             /* order: [row].at[chunk]: its device; plan_home() reads it */
    int tree_depth;             /* part: of the tree over rows, in a copy whose home has row 0 alone; 0: home has all */
    Ints slack;                 /* order: [2 * chunk + back]: computations until a send of F (of B or I) is waited for */
    Ints chunk;                 /* part: operator -> chunk */
    const Bytes *target;        /* part: the target limits it was given, by device */
    Proof predicted;            /* part: what its planner says */
    Proof proof;                /* search: of the plan that it returns */
    const int *chosen;          /* part: [tensor] fates of the planner, or the cheapest; NULL: nobody chose */
    Ints fate;                  /* keep: by tensor */
    VEC(Buf) buf;               /* lower */
    VEC(Pool) pool;             /* lower, then mem */
    VEC(HostBuf) host;          /* lower */
    VEC(Routine) routine;       /* lower */
    Room *room;                 /* passes: of what comm, lower, mem and sim make; NULL: of another plan, or gone */
    bool lent;                  /* passes: another plan has the same lists */
    Ns step;                    /* sim: predicted time of a step */
    Shortfall shortfall;        /* any: the pass that returned nonzero, or part_blame */
    Loc key_at, space_at;       /* text: of a plan that was read */
} Plan;
/* plan/new.c: before any pass; ask NULL: the model says everything */
Plan *new_plan(const Graph *g, const Cost *c, const Model *m, int stages, const char *schedule, const Ask *ask);
/* sched/ask.c: what is asked, or else what the model says */
const Ints *plan_map(const Plan *p), *plan_cuts(const Plan *p);        /* never NULL */
const char *plan_planner(const Plan *p);
int plan_warmup(const Plan *p);
Proof plan_proof(const Plan *p);                    /* of the search, or else of its planner */

/* ---- order: sched/order.c, and one file a schedule --------------------------------------------------------------- */
/* fills dev[].order, home, from (devices, chunks, micro-batches, groups) alone.  0, or nonzero: not possible. */
int order(Plan *p);
int order_like(Plan *p, const Plan *like);              /* of other leads and lags: devices of equal ones have its lists */
void order_as(Plan *p, const Plan *of);                /* the very lists of another plan */
int order_flight(const Plan *p, int chunk);         /* most micro-batches of it from begin of forward to end of backward */
bool order_split(const Plan *p);                        /* some list has I and W apart */
int order_slack(const Plan *p);                     /* computations from post to reader, from send to its wait */
const char *order_name(const Plan *p);              /* the schedule, and its policy where that is not A */
/* Gradient accumulators a use: a stack for the tree over the groups of a row, for each row of the device; chunk -1: of one. */
int order_accumulators(const Plan *p, int chunk);
/* sched/replica.c: what Plan.home says */
int plan_replicas(const Plan *p), plan_stages(const Plan *p);           /* how many; devices of a replica */
int plan_rows(const Plan *p), plan_ways(const Plan *p);                 /* copies of the model: of all, of a replica */
int plan_chunks(const Plan *p);                                         /* of a row; 0 before order */
static inline int plan_home(const Plan *p, int row, int chunk) { return p->home.at[row].at[chunk]; }
int plan_chunk_at(const Plan *p, int row, int device);     /* the first chunk of the row on that device; -1: none */
static inline int stage_of(const Plan *p, int chunk) { return plan_home(p, 0, chunk); }    /* the device in row 0 */
bool plan_holds(const Plan *p, int device, int chunk);                  /* in any row */
int plan_row_of(const Plan *p, int device, int chunk);                  /* the first one whose copy of the chunk it holds */
bool plan_uneven(const Plan *p);                                        /* plan.widths: stages differ in copies */
int plan_turns(const Plan *p, int chunk);                               /* rows that share a copy of the chunk, in turn */
int plan_copies(const Plan *p, int chunk);                              /* of the chunk; -1: of the model, plan_rows() */
int plan_copy(const Plan *p, int device, int chunk);                    /* which of them it holds */
int plan_depth(const Plan *p, int chunk);                               /* levels of the tree over them */
int plan_replica(const Plan *p, int device);                            /* that it belongs to */
int plan_twin(const Plan *p, int device, int replica);                  /* that has the same chunks in that replica */
int plan_stage(const Plan *p, int device);                              /* the twin in replica 0 */
void plan_keep_row(Plan *p);                                            /* a copy of its lists, of row 0 alone */
void plan_settle(Plan *p, int row, int device);                         /* it holds the next chunk of that row */
int plan_micro(const Plan *p);                                          /* micro-batches of a row */
int plan_first(const Plan *p, int device, int chunk);                   /* the first one that it computes of the chunk */
int plan_share_of(const Plan *p, int chunk);                            /* how many a device computes of the chunk */
int plan_nth(const Plan *p, int device, int chunk, int n);              /* the n-th of them, rows in turn */
int plan_turn(const Plan *p, int chunk, int mb);                        /* the number that it has on its device */
int plan_flight(const Plan *p, int chunk);                              /* under way there: devices from it on, shared out */
int plan_row_at(const Plan *p, int device, int mb);                     /* of a micro-batch that it computes; -1: its own */
int plan_levels(const Plan *p);                                         /* of the tree over rows */
int plan_partner(const Plan *p, int device, int chunk, int level);      /* neighbour in it */
bool plan_may_bucket(const Plan *p);                                    /* may backward be cut for exchanges? */
int plan_buckets(const Plan *p);                                        /* so many pieces; 1: it is not */
/* sched/share.c: the bytes of a gradient that a row has added up when it comes to that level; plan_levels(): its own
 * part. */
typedef struct { Bytes from, until; } Extent;
Extent plan_share(const Plan *p, int row, int state, int level);
Extent plan_own(const Plan *p, int row, int state);
/* train.shard: each row updates its own part of the parameter, and has that part of its moments; those of that operator. */
bool plan_sharded(const Plan *p, int param);
bool plan_drops(const Plan *p, int state);          /* a gradient of which the part alone is kept behind the way up */
/* A parameter of which the row keeps its part alone; a state that computations find whole in a room, gathered for them: its
 * copy, or itself where it has none. */
bool plan_parted(const Plan *p, int param), plan_room(const Plan *p, int state);
/* Without train.shard, or where it returns: the parameter whose uses it adds before they go down the tree; -1. */
int plan_joins_op(const Plan *p, int op);
bool *plan_joined(const Plan *p);           /* by state: a gradient of such a parameter, or one that returns */
int plan_cuts_op(const Plan *p, int op);            /* the parameter of which an update takes a part; -1: it takes all */
Extent plan_summed(const Plan *p, int row, int state);  /* of a gradient, what is whole in the row when its uses are added */
Extent plan_piece(const Plan *p, int row, int state);   /* of a state, what the row updates: its part, or all */
bool plan_across(const Plan *p, int device, const Action *k);           /* a state goes to another row, or comes from one */
/* Why this schedule cannot be made of these numbers; NULL: it can.  Only asynchronous ones have reasons. */
const char *order_refuses(const Graph *g, const Model *m, const Schedule *s, int devices);
/* sched/async.c: the version that micro-batch q, counted through all steps, reads by the rule of the schedule; kind: K_F or of
 * backward; below 0: version 0. */
int order_version(const Plan *p, int chunk, ActionKind kind, int q);
int order_ahead(const Plan *p, int chunk, ActionKind kind);     /* updates that it is moved by; 0: read as it is */
int order_late(const Plan *p, int chunk);           /* updates that gradients are behind, if the update makes up for it */
bool order_apart(const Plan *p);                    /* backward reads something else than forward */
int order_copies(const Plan *p, int chunk);         /* of the weights: the newest, older ones, predicted ones */
/* Of any list: fewest steps of a run through the pieces, 0 of a synchronous one; by how many updates the weights of a chunk are
 * behind at most, which is also the number of older copies; a run of so many steps from drained to drained, written out, steps
 * and versions from its first. */
int order_overlap(const Plan *p);
int order_delay(const Plan *p, int chunk);
Actions order_run(const Plan *p, const Actions *list, int steps);
const Actions *order_lists(const Plan *p, bool eval, int steps);    /* of all devices: the whole lists of such a run, or eval */
int order_steps(const Plan *p, int device);         /* most steps begun and not yet updated there */
bool order_holds(const Plan *p, int device);        /* a step's gradients wait while the next one's are made */
void check_order(const Plan *p);

/* ---- part: plan/part.c, and one file a planner ------------------------------------------------------------------- */
int part(Plan *p, const Bytes *limit);              /* target limits a device; nonzero: none fits */
int *part_last(const Plan *p, int chunks);             /* of so many chunks, each; NULL: it has another number of runs */
bool part_cuts(const Plan *p, Ints *cuts);            /* last operator of all chunks but the last; false: they are no runs */
void part_blame(Plan *p);                           /* then: which device lacks most under the cut that lacks least */
void check_part(const Plan *p);
/* ---- keep: plan/keep.c ------------------------------------------------------------------------------------------- */
int keep(Plan *p);
int *keep_fates(const Plan *p, bool cheap);         /* by tensor, before any chunk is known; cheap: all go that may */
void keep_chunks(const Plan *p, Bytes *need);        /* what each chunk needs, but for packing */
void keep_needs(const Plan *p, Bytes *need);         /* ... each device */
void check_keep(const Plan *p);
/* list/rebuild.c: the backward of one chunk as a line of calls, with what it makes again */
typedef struct { int op; bool again; } Line;
typedef VEC(Line) Lines;
typedef struct {
    Lines line;
    int early;                  /* the first so many calls need no gradient: they run before the wait for it */
    bool *saved;                /* by tensor: must live from forward to backward */
    bool *remade;               /* by tensor: readers in backward take the remade one */
    bool *fetched;              /* by tensor: readers in backward take what came back from the host; then not saved */
    int loss;                   /* forward operator with its gradient behind it, in forward; -1: none */
} Backward;
Backward *backwards_of(const Plan *p);          /* by chunk */
/* The calls of one computation of a chunk, in order: what its routine holds, and what offload cuts into pieces. */
Lines calls_of(const Plan *p, const Backward *back, int chunk, ActionKind kind);
int device_of(const Plan *p, int row, int op);      /* it runs there */
bool runs_on(const Plan *p, int op, int device);    /* in any row */
/* ---- comm: list/comm.c ------------------------------------------------------------------------------------------ */
int comm(Plan *p);
/* list/offload.c: puts the copies of offloaded tensors into the list that comm wrote.
 * What an offloaded tensor costs the arena of its chunk: in forward it is there from its producer until its copy is out, in
 * backward from as long before its first reader as the copy takes, with a quarter to spare, to its last; copies of a
 * direction follow each other.  A window reaches into the neighbouring computations of the list where its own is too short.
 * Beside that nothing: not one copy for each micro-batch in flight. */
void offload(Plan *p, int device, const Backward *back, Actions *list);     /* back by chunk; fills dev[].copies */
Ns offload_window(const Plan *p, int device, Bytes bytes);  /* how long a copy is given: its time, and a quarter more */
/* Of one computation, or backward with what it makes again first, by itself; at[i]: when call i begins, at[calls] the end.
 * Copy i of n takes ns[i].  Out, by ascending after[i], the calls until its last reader: out[i], the calls until it is gone;
 * calls + 1: not within.  In, by ascending first[i], the call that reads it: in[i], the call before which it is begun; -1:
 * before all of them.  over[i]: so much longer the way out takes, so much earlier the way in begins. */
void offload_out(const Ns *at, int calls, int n, const int *after, const Ns *ns, int *out, Ns *over);
void offload_in(const Ns *at, int calls, int n, const int *first, const Ns *ns, int *in, Ns *over);
/* list/bucket.c: Choice.buckets.  Nonzero: too many messages would be under way. */
int bucket(Plan *p, int device, const Backward *back, Actions *list);
int comm_async(Plan *p, const Backward *back);      /* the same where steps overlap: list/comm_async.c */
int comm_stuck(const Plan *p, bool eval);           /* a device that waits for ever under rendezvous; -1: none */
void check_comm(const Plan *p);                     /* the four properties; rendezvous simulation finds deadlock */
/* ---- lower: lower/lower.c ---------------------------------------------------------------------------------------- */
int lower(Plan *p);
void lower_pools(Plan *p, int device);
bool is_copy(const Action *k);                      /* OUT, IN, or the wait for one */
bool fold_takes(const Graph *g, int fold, int state);   /* list/action.c: a gradient of its chunk */
bool fold_in(const Graph *g, int first, int until, int state);  /* one that those operators complete; 0, 0: all do */
UpdatePart update_part(const Plan *p, int op);       /* that the operator belongs to */
const UpdatePart *update_parts(const Plan *p);       /* sched/order.c: those of the plan's lists; U_NONE behind the last */
enum { MOST_REQUESTS = 256 };                       /* rt.h: MAX_REQUESTS; messages that a device has under way at once */
enum { MOST_HANDLES = 1022 };                       /* rt.h: MAX_HANDLES, less what a library keeps for itself */
void check_lower(const Plan *p);                    /* calls, operands, sizes; no addresses yet */
/* ---- mem: mem/mem.c -------------------------------------------------------------------------------------------- */
int mem(Plan *p);
Purse *trials_of(const Ask *ask);                   /* its placement steps for trials, or new ones */
int  host_of_device(const Plan *p, int device);
void host_layout(Plan *p, int device);              /* mem/host.c: the same for the host's memory */
Bytes *mem_at_peak(const Plan *p, int device);       /* by buffer: bytes alive at dev[].peak, over slots and micro-batches */
void mem_unplaced(Plan *p);                          /* state, bound and peak of each device, without an arena */
void mem_measure(Plan *p);                           /* bound and peak alone, of a plan from a file */
/* mem/trial_cache.c: layouts and plans that a search has met already */
typedef struct Seen Seen;
Seen *seen_new(void);
/* A plan with the same cuts and fates, and its verdict; NULL: it is new. */
Plan *seen_plan(const Plan *p, Verdict *why);
void seen_keep_plan(Plan *p, Verdict why);
const Plan *seen_ordered(const Plan *p);                /* one of those kept: all have one order; NULL: there is none */
void check_mem(const Plan *p);                      /* every call reads what it should, byte for byte */
/* ---- sim: lower/sim.c -------------------------------------------------------------------------------------------- */
int sim(Plan *p);
/* Of an action there that calls no kernel of the model: with so many tensors, and bytes that it moves.  -1: on the host. */
Ns action_fixed(const Cost *c, int device, ActionKind kind, int tensors, Bytes bytes);
Ns action_load(const Plan *p, int tensor);          /* of a data input */
Ns call_time(const Plan *p, int device, int op);     /* of a call there, or of its part of an update */
Ns line_time(const Plan *p, const Routine *r, int i);    /* of the i-th call of a routine, behind the others */
Ns action_time(const Plan *p, int device, const Action *k);  /* what an action takes by itself; a wait: nothing */
void check_sim(const Plan *p);
/* lower/latency.c, of plan.mode infer: until the first result of an empty pipeline; between results of a full one. */
typedef struct { Ns latency, period; } StreamTimes;
StreamTimes stream_times(const Plan *p);

/* ---- emit: emit/ ------------------------------------------------------------------------------------------------- */
/* prefix: train, or the name of an object or library; prove: not without dpgen-verify */
typedef struct { const char *prefix; bool library, prove; } EmitAs;
const char *emit(const Plan *p, const char *dir, const EmitAs *as, const Text *reference);
const char *api_name(const char *model);            /* emit/api.c: of a library, where none is given */
/* ---- text/text.c: Graph and Plan as text; read(print(x)) == x ---------------------------------------------------- */
void print_graph(FILE *f, const Graph *g);
void print_graph_bare(FILE *f, const Graph *g);             /* without places in the model file */
void print_plan(FILE *f, const Plan *p, char what);         /* what: a dump letter, or 0 for all of it */
/* Dump letters: what -d prints after which pass.  Ends with a NULL pass. */
typedef struct { char letter; const char *pass, *what; } Dump;
extern const Dump dumps[];
Graph *read_graph(const char *path);
Plan *read_plan(const char *path, const Graph *g, const Model *m);
#endif
