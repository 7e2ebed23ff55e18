/* SPDX-License-Identifier: Apache-2.0
 *
 * rivals.h: what the planners of papers share, and their programs apart from graphs, so that tests can ask them directly.
 */
#ifndef RIVALS_H
#define RIVALS_H
#include "fates/fates.h"
#include "planner.h"

/* unit.c: the coarse chain that layer planners see.  PipeDream, vPipe, MadPipe and PipeDream-2BW never cut inside a layer;
 * a Unit stands for their layer. */
typedef struct {
    int n;                      /* units */
    int *last;                  /* by unit: its last forward operator */
    int *of;                    /* by forward operator: its unit */
    Ns *forward, *time;         /* of one micro-batch on device 0: forward alone; with backward */
    Bytes *out;                 /* forward tensors that are read behind it, each once, of one micro-batch */
    Bytes *made;                /* all results of its forward operators, of one micro-batch */
    Bytes *saved;               /* of them what backward reads somewhere */
    Bytes *params;              /* parameters whose first use is here, in the type that kernels read */
    Bytes *states;              /* all states of parameters whose first use is here, and gradients of every use */
    Bytes *grads;               /* of these the gradients, once */
    bool *must;                 /* a stage has to end behind it */
} Units;

/* cut by forward operator: CUT_NEVER, CUT_MAY or CUT_MUST.  Gives at least `least` units if the graph has so many. */
Units units_of(const Plan *p, const char *cut, int least);

/* Of gradients among copies of the model, once a step: the two halves of a tree, level by level (sched/share.c). */
Ns units_exchange(const Plan *p, int stage, Bytes bytes, int copies);

typedef struct { Ints last; } Repeat;    /* last forward operator of h.0, h.1, ... */
typedef VEC(Repeat) Repeats;
/* The repeated blocks: runs of layers prefix.0, prefix.1, ...; at least two repetitions. */
Repeats repeats_of(const Graph *g);

/* fleet.c: a chain of units over a fleet of devices, each with its own times and links; and three searches over it.  A
 * stage may have several devices, its copies, which share each micro-batch.  Where their numbers are open, they are chosen
 * with the cuts. */
typedef struct Fleet Fleet;
struct Fleet {
    int n, stages;              /* units; stages, front to back */
    int64_t micro;              /* micro-batches of a step */
    Ns **forward, **time;       /* [stage][i]: of units 0 .. i-1 there; forward alone, with backward */
    Ns **send;                  /* [stage][i]: what crosses a cut behind unit i, one way, from that stage to the next */
    Bytes *grads;               /* [i]: gradients of units 0 .. i-1 */
    const bool *must;           /* by unit: a stage has to end behind it; NULL: nowhere */
    const int *copies;          /* [stage]; NULL: open, powers of two up to most, or with `any` every number */
    bool any;
    int most, devices;          /* copies of a stage at most; of all stages together */
    Ns (*exchange)(const void *ctx, int stage, Bytes bytes, int copies);        /* once a step; NULL: none */
    Bytes (*over)(const void *ctx, int first, int last, int stage);   /* how far these units are over its limit; NULL: never */
    const void *ctx;
};
/* Of units from .. to-1 as a stage of so many copies: a micro-batch there and back; its gradients. */
typedef Ns FleetWorth(const Fleet *l, int s, int from, int to, int copies);
FleetWorth fleet_time, fleet_exchange;
/* What crosses the cut behind unit to-1, there and back; 0 behind the last stage. */
Ns fleet_send(const Fleet *l, int s, int to);
bool fleet_joins(const Fleet *l, int unit, int to);   /* may a stage that ends with unit to-1 begin with this one, not later? */
bool fleet_may(const Fleet *l, int s, int copies);    /* may stage s have so many? */

Fleet fleet_of(const Question *q, const Units *u);
Fleet fleet_open(const Question *q, const Units *u);    /* copies are open, as plan.widths: auto leaves them */
/* The cuts of a planner that keeps everything: last by stage, a unit. */
void fleet_answer(const Question *q, const Units *u, const Fleet *l, const int *last, Answer *a);
const char *fleet_note(const Fleet *l, const int *last, const char *text);      /* and whether a stage does not fit */

/* Cuts with the least value of the dearest stage or transfer, by number of stages: fleet_take gives that value, or -1 where
 * there are none.  worth grows with the stage; wire is of the transfer behind stage s, from so many copies to so many; NULL: it
 * is part of worth.  last and copies: by stage, its last unit, its copies. */
typedef Ns FleetWire(const Fleet *l, int s, int to, int copies, int next);
typedef struct FleetTable FleetTable;
const FleetTable *fleet_balance(const Fleet *l, FleetWorth *worth, FleetWire *wire);
Ns fleet_take(const FleetTable *t, int stages, int *last, int *copies);

/* DAPPLE's latency of a step under these cuts and copies, and the least of all; pivot: twice the stage that sets it, and 1 more
 * for the transfer behind it. */
Ns dapple_latency(const Fleet *l, int stages, const int *last, const int *copies, int *pivot);
/* -1: there are none.  The best number of stages from *stages to l->stages; it becomes *stages. */
Ns dapple_cut(const Fleet *l, int *stages, int *last, int *copies);
/* SPP: the longest of a stage's work, a link's work and an exchange, in a step, by number of stages. */
const FleetTable *spp_cut(const Fleet *l);
/* BaPipe: cuts with the least slowest stage; by_links: a transfer is slower, so these have the least of both.  -1: no cuts. */
Ns bapipe_cut(const Fleet *l, int *last, bool *by_links);
bool bapipe_fit(const Fleet *l, int *last, bool by_links);   /* moves borders until all stages fit */

/* moves.c: cuts of a chain made better by moving border units to the neighbouring stage. */
typedef struct { Bytes over; Ns time; } Burden;     /* of a stage: bytes over its limit, 0 if it fits; then its time */
typedef struct {
    int units, stages;
    const bool *must;           /* by unit: a stage has to end behind it; NULL: nowhere */
    Burden (*burden)(void *ctx, int first, int last, int stage);
    void *ctx;
} Moves;
Burden moves_worst(const Moves *m, const int *last);
void moves_improve(const Moves *m, int *last);      /* last unit of each stage: a partition in, one no worse out */

/* pipedream_dp.c: PipeDream's dynamic program over a chain. */
typedef struct {                /* a chain of units, and what is asked of it; all sums are over units */
    int n, machines;
    const Ns *time;             /* forward and backward, a micro-batch */
    const Ns *send;             /* the output of a unit over one link, both ways */
    const Ns *reduce;           /* 4 times the parameters of a unit over one link */
    const Bytes *stash;         /* activations and parameters of a unit, for the published memory check */
    Bytes memory;               /* of that check; 0: it is off */
    bool transfers;             /* they enter the maximum: the compression ratio is given */
    bool replicate;             /* else straight: one machine a stage */
    int most;                   /* replicas of a stage are powers of two up to that; 0: any number */
    const int *given;           /* [machines used]: replicas of the stage that ends there; 0: none does.  NULL: they are open */
    const bool *must;           /* by unit: a stage has to end behind it; NULL: nowhere */
    /* The stage `index` may be first..last; NULL: every one may.  Asked of straight pipelines alone. */
    bool (*fits)(void *ctx, int first, int last, int index);
    /* Neither it nor any longer one around it may, known cheaply; NULL: nothing is known.  With `fits` alone. */
    bool (*never)(void *ctx, int first, int last, int index);
    void *ctx;
} PipedreamChain;

typedef struct { int last, replicas; } ChainStage;
/* Writes the stages, front to back, to `stage` with room for all machines.  Returns their number; 0: there is no plan.
 * value: the objective. */
int chain_plan(const PipedreamChain *c, ChainStage *stage, Ns *value);

/* madpipe_dp.c: MadPipe's dynamic program over a chain. */
typedef struct {                /* a chain of units, for one device of several pieces and others of one */
    int n, devices;             /* devices: the special one counted */
    const Ns *time;             /* forward and backward, a micro-batch */
    const Ns *send;             /* what crosses the cut behind a unit, both ways, over its link */
    const Bytes *once, *copy;   /* of a unit: held once; held once for every micro-batch in flight */
    const Bytes *border;        /* buffers on either side of the cut behind a unit */
    Bytes memory;               /* of each device */
    const bool *must;           /* by unit: a piece has to end behind it; NULL: nowhere */
    int steps;                  /* of the grid for the special device's time and memory and for the delay; 0: no grid */
    int budget;                 /* states met at most for one period */
} Special;

typedef struct { int last; bool special; int flight; } MadpipeSegment; /* flight: micro-batches that 1F1B* stores there */
typedef VEC(MadpipeSegment) Segments;
/* Can the period be kept?  The pieces, front to back. */
bool special_cut(const Special *s, Ns period, Segments *answer);
/* The shortest period that can be kept, to a thousandth.  0: none up to the time of all units and all transfers together. */
Ns special_plan(const Special *s, Segments *answer);

/* dawnpiper_dp.c: DawnPiper's recursive binary partition. */
typedef struct {
    int n, stages;              /* operators */
    const char *cut;            /* CUT_NEVER, CUT_MAY, CUT_MUST behind operator i; n-1 ends anyway */
    const Ns *time;             /* [n+1]: of operators 0..i-1 */
    const Bytes *fixed, *saved; /* [n+1]: bytes a stage holds once; once for every micro-batch in flight */
    const int *flight;          /* by stage */
    const bool *hidden;         /* by operator: messages of a cut behind it hide behind compute; NULL: all do */
    int guard;                  /* cuts tried outside of the interval, on either side */
    bool all;                   /* every cut is tried, not the interval alone: what the theorem is compared with */
    /* Time of operators first..last as `stage` after memory optimisation; false: it does not fit. */
    bool (*price)(void *ctx, int first, int last, int stage, Ns *time);
    void *ctx;
} DawnpiperHalves;
/* The last operator of each stage and the time of the slowest.  False: no plan was found; one may exist nevertheless. */
bool halves(const DawnpiperHalves *x, int *last, Ns *time);

static inline Ns rivals_rate(Ns time, Bytes bytes)          /* of a mebibyte */
{
    return bytes > 0 && time < INT64_MAX / 1048576 ? time * 1048576 / bytes : INT64_MAX;
}

/* capuchin.c: the memory plan of one stage in the order of Capuchin. */
typedef struct Capuchin Capuchin;
/* period: time between two micro-batches.  The stages are not known yet, so it is their mean. */
Capuchin *capuchin_open(const Question *q, Ns period);
/* Fates of the tensors that first..last make go into `fate`; others stay.  Returns the price of the stage with them. */
Price capuchin(Capuchin *x, int first, int last, int chunk, int *fate);
#endif
