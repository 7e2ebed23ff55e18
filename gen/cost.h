/* SPDX-License-Identifier: Apache-2.0
 *
 * cost.h: the time of every operator, message and copy, measured or estimated.
 */
#ifndef COST_H
#define COST_H
#include "graph.h"

/* ---- cost: cost/cost.c prof.c --------------------------------------------------------------------------------- */
typedef struct Profile Profile;                     /* measured times: cost/prof.h */
Profile *profile_open(const char *path, const Model *m, bool elsewhere);    /* elsewhere: not compared with this machine */
/* What it was measured with and this model has not, for a message; NULL: nothing */
const char *profile_other_model(const char *path, const Model *m);
const char *profile_name(const Model *m);           /* MODEL.DEVICE.profile, beside the model */
const char *profile_cannot(const Model *m);         /* why no profile can measure this model here; NULL: one can */
/* Around the next ones, and their writing: one dpgen measures for a file at a time.  The second waits for the first. */
void profile_begin(const char *file);
void profile_end(void);
/* In a folder beside that file, which it does not write.  few: some calls, and the others by these. */
Profile *profile_measure(const Model *m, const char *file, bool few);
bool profile_has(const Profile *f, int64_t batch);  /* measured at that micro-batch, not interpolated */
void profile_measure_more(Profile *f, const Model *m, int64_t batch, const char *file);
void profile_print(FILE *f, const Profile *p);
const char *profile_key(const Profile *p, const Graph *g);      /* what measured algorithms add to the numeric key; "" */
void profile_write(const Profile *f, const char *file);         /* whole or not at all */

typedef struct { int n; Bytes bytes[8]; Ns ns[8]; } Curve;      /* both ascend */
/* bytes/s, or a curve where that was measured; half: both directions take turns */
typedef struct { double rate; Ns latency; bool half; const Curve *curve; } Wire;
/* Actions that are no kernel call of the model: a fixed part, a part by call, and bytes that they read and write. */
typedef struct { Ns fixed, call; int64_t per_us; } Mover;
typedef struct Cost Cost;
struct Cost {
    const char *how;            /* estimated, measured, interpolated */
    const Profile *profile;     /* NULL: estimated */
    const Cost *busy;           /* the same while all stages of one machine compute; NULL: itself */
    const Cost *base;           /* what cost_shared() made this of; NULL: it did not */
    const char *signature;      /* of the profile, or "estimate" */
    int classes;                /* of devices: those of one class take the same time for every call */
    Ints of;                    /* by device: its class */
    int ops;
    Ns **ns;                    /* [class][operator] */
    Ns **alone;                 /* the same where the call that it is one kernel with is not in front of it; NULL: ns */
    Ns latency;                 /* of a message between two stages */
    double link;                /* bytes/s between two stages */
    double host;                /* bytes/s between a device and its host, each way */
    int devices;
    const Wire *wire;           /* [from * devices + to]; NULL: all as latency and link say */
    const Wire *host_wire;      /* [device]; NULL: all as host says */
    int levels;                 /* of the tree over the devices of a stage */
    const Wire *team_wire;      /* [device * levels + level]: between those that swap there, the slowest */
    Ns **sums;                  /* [class][operator]: what of ns are messages of a stage's devices; NULL: nothing */
    const Mover *mover;         /* [device]; NULL: all are processors */
    const Cost *adjoined, *apart;   /* the same where the gradient of the loss stands behind it, and is one kernel with it, and
                                   where not; NULL: itself */
};
/* Calls that GPUs have one kernel for: second behind first, with these operands in one buffer. */
typedef struct { const char *first, *second, *same[2]; } CallPair;
enum { PAIR_LOSS, PAIR_LAYERNORM, PAIR_RMSNORM, PAIR_BATCH, PAIR_EIGHT, PAIR_BIAS, PAIR_SLOPE, CALL_PAIRS };
extern const CallPair call_pairs[CALL_PAIRS];
bool cost_joins(const Graph *g, int o, bool loss);     /* is it the second of one, with the loss's gradient right behind it? */
const Cost *cost_with(const Cost *c, const Schedule *k);        /* that of plans of this schedule */
Cost *cost(const Graph *g, const Model *m, Profile *f);         /* f NULL: estimated */
const Cost *cost_shared(const Cost *c, const Model *m, int devices);    /* what so many devices pay: busy, c, or taking turns */
int64_t cost_threads(const Model *m, int devices);  /* of the first devices, that keep cores busy */
char *cost_signature(const Op *o);                  /* what the time of a call depends on: a line of a profile */
Ns cost_op(const Cost *c, int device, int op);      /* one call there */
Ns cost_alone(const Cost *c, int device, int op);   /* where its chunk begins, or where it is made again */
/* What a call sends to other devices of its stage; bytes 0: nothing. */
Bytes cost_team_bytes(const Model *m, const Graph *g, const Op *o);
Ns cost_wire(const Cost *c, int from, int to, Bytes bytes);     /* how long a message occupies the wire between two devices */
Ns cost_latency(const Cost *c, int from, int to);   /* from the end of that to its arrival */
bool cost_half(const Cost *c, int from, int to);    /* messages of both directions take turns on one wire */
Ns cost_host(const Cost *c, int device, Bytes bytes);           /* how long a copy to the host, or back, occupies that link */
bool cost_host_half(const Cost *c, int device);     /* copies out and in take turns */
Ns cost_move(const Cost *c, int device, int calls, Bytes moved);    /* what calls no kernel of the model; -1: on the host */
void check_cost(const Graph *g, const Cost *c);
#endif
