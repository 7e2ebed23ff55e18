/* SPDX-License-Identifier: Apache-2.0
 *
 * transport.h: which messages there are, and when one is begun and waited for.  The one owner of these rules.
 *
 * comm.c and comm_async.c write lists by them, exact/preview*.c predict a step by them, replay/ counts bytes by them.  The
 * checkers call none of them: they prove the finished lists by other means.
 *
 *   tensors    one message for each device that reads a tensor of another, once a micro-batch, with its first reader there
 *   states     a state that one device makes and another wants goes there with a part of the update
 *   replicas   two devices send each other a part of every gradient of a chunk, in batches
 *   slack      counted in computations: a receive is posted order_slack() of them ahead of its reader, a send is waited for
 *              Plan.slack of them behind the next one, or with Choice.far for each stage that it goes.  Where devices would
 *              then wait in a circle, sends get twice as much
 *   order      messages between two devices begin in the same order on both: the order in which the sender makes them.  Of
 *              those that one computation makes, the ones that only a W reads come last
 */
#ifndef TRANSPORT_H
#define TRANSPORT_H
#include "budgets.h"
#include "plan.h"

/* ---- slack ------------------------------------------------------------------------------------------------------- */

/* Does it fill a room (sched_room)? */
static inline bool transport_room(const Action *k)
{
    return k->kind == K_ROOM || (k->kind == K_U && k->update == U_ROOMS);
}

/* Is it a computation that slack counts?  A fold or a merge is none: some devices have one between two micro-batches where
 * others have none.  Slack that is shorter on one side lets 1F1B, with a skip over all stages, wait in a circle.  Where steps
 * overlap, an update is none either. */
static inline bool transport_beat(const Action *k, bool overlap)
{
    return overlap ? k->kind == K_F || k->kind == K_B || k->kind == K_I
                   : k->kind != K_FOLD && k->kind != K_MERGE && !transport_room(k) && k->kind != K_SHARE;
}

/* A send that computation `made` has begun: is it waited for right before computation `now`? */
static inline bool transport_due(int made, int now, int slack)
{
    return now - made > slack;
}

/* The slack of a send from one device to another.  The reader of a message that skips stages comes to it later, one forward
 * computation for each stage, or one backward.  A backward takes about two of the three units that two computations take, so
 * that is 4/3 of the stages.  A sender that waits earlier stands still, and one that waits later holds more bytes. */
static inline int transport_slack(const Plan *p, int slack, int from, int to)
{
    return p->ask.choice.far ? slack * (4 * (from < to ? to - from : from - to) / 3) : slack;
}

/* May it be asked for?  Split backwards, several chunks a device and two directions leave messages under way longer already. */
static inline bool transport_may_far(const Plan *p)
{
    return !order_overlap(p) && !order_split(p) && plan_chunks(p) == plan_stages(p) && plan_ways(p) == 1;
}

/* ---- the update -------------------------------------------------------------------------------------------------- */

/* The part of the update before which a state moves: gradients of remote uses, partial norms, the clip factor; U_COPIES,
 * behind all parts: new weights.  It may stay where it is. */
static inline UpdatePart transport_part(StateKind kind)
{
    return kind == S_VALUES || (kind >= S_MOMENT1 && kind <= S_DRIFT) ? U_NONE :
           kind == S_BLOCKS ? U_NONE : kind == S_GRAD ? U_GATHER : kind == S_NORM ? U_NORM : kind == S_CLIP ? U_STEP : U_COPIES;
}

/* Does an operator with such an operand make the state, so that it leaves its device if others want it?  Gradients are made
 * before the update, all other states in it. */
static inline bool transport_makes(StateKind kind, bool update, ArgKind operand)
{
    return operand != ARG_READ && update != (kind == S_GRAD);
}

/* Does such an operator want the state if another device makes it?  The next step wants new weights. */
static inline bool transport_wants(StateKind kind, bool update, ArgKind operand)
{
    bool late = kind == S_PARAM || kind == S_COPY;
    return update != late && (operand == ARG_READ || kind == S_GRAD);
}

/* Parts of gradients cross between two rows in the order of the states, as many at once as make one way of the largest part of
 * the chunk, and at most MERGES: two batches are under way, and take a fourth of the requests.  Does this one end its batch?
 * The last one of a chunk does too.  Of the two parts that cross the larger one counts: both rows have the same batches.  The
 * rows halve a part at level l of the way up, and send back what they got there on the way down. */
enum { MERGES = MOST_REQUESTS / 8 };
typedef struct { Bytes largest, one_way; int n; } Batch;
typedef struct { Extent gets, gives; Bytes bytes; } Halves;      /* of a row at a level; the bytes of the larger one */
static inline Halves transport_halves(const Plan *p, int row, int state, int level, bool back)
{
    Extent all = {0, p->g->state.at[state].bytes};
    if (p->g->state.at[state].kind == S_BLOCKS)         /* no halves */
        return (Halves){all, all, all.until};
    Extent here = plan_share(p, row, state, level + 1), other = plan_share(p, row ^ 1 << level, state, level + 1);
    Bytes mine = here.until - here.from, theirs = other.until - other.from;
    return back ? (Halves){other, here, mine > theirs ? mine : theirs} : (Halves){here, other, mine > theirs ? mine : theirs};
}
static inline bool transport_batch(Batch *b, Bytes bytes)
{
    b->one_way += bytes;
    if (++b->n < MERGES && b->one_way < b->largest)
        return false;
    b->one_way = b->n = 0;
    return true;
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

typedef struct {                /* between stages: a message of every replica */
    int tensor, state;          /* one of them; -1 */
    int pipeline;               /* pipeline of the replica */
    int src, dst;
    int level;                  /* between two rows, of the same chunk: level of their tree; else -1 */
    bool back, joined, room;    /* ... down the tree; a gradient of a tied parameter; a parameter, into its room */
    int made, made_in;          /* a tensor: chunk and phases that produce it */
    int *phases;                /* a tensor: by chunk, bits of the phases that read it on dst */
    int slack;                  /* computations until its send is waited for */
    bool late;                  /* a tensor: only W reads it, in a list that has I and W apart */
} Msg;
typedef VEC(Msg) Msgs;
Msgs transport_messages(const Plan *p);     /* tensors, states, then gradients by level, up and down; the index is the tag */
/* Ordered pairs of devices of which one sends the other something, each once.  talk: a few bytes once a step, and no more. */
typedef struct { int from, to; bool talk; } ListPair;
typedef VEC(ListPair) Pairs;
Pairs transport_pairs(const Plan *p);
/* What goes up at most for a data input, of those that a step has, or also an evaluation; floats: of no others. */
Bytes transport_load(const Plan *p, int device, bool floats);
/* Bytes of a GPU where floats or bytes of a load to come lie while it computes; 0: none. */
Bytes transport_landing(const Plan *p, int device);
/* Its memory, less its landing and what the transport takes for its pairs but those. */
Bytes transport_limit(const Plan *p, int device);
int  transport_phases(ActionKind kind);             /* bits of the phases that a computation runs */
/* Data inputs that a computation reads, in the order of its operators, but for those that its chunk's forward has read. */
Ints transport_loads(const Plan *p, const Action *k);

/* ---- the list of a device, while it is written -------------------------------------------------------------------- */

typedef struct { int msg, beat; Action what; } Pending;
typedef VEC(Pending) Pendings;
typedef struct {
    const Plan *p;
    Msgs msg;
    int device, stage, replica;
    Piece piece;
    Actions *out;
    int beat, more;             /* computations so far; slack of sends beside their own */
    Pendings sent, posted;      /* begun and not waited for */
    bool busy[MOST_REQUESTS];      /* request numbers of those */
} Desk;
void    desk_open(Desk *d, int device, Actions *out);
Action *desk_put(Desk *d, Action a);
Action *desk_new(Desk *d, ActionKind kind, int step, int mb);
void    desk_head(Desk *d, int step);               /* step values and counted targets */
void    desk_load(Desk *d, int tensor, int step, int mb);
Action  desk_transfer(const Desk *d, ActionKind kind, int msg, int step, int mb);
Halves  desk_halves(const Desk *d, int msg);            /* of a message between rows */
Ints    desk_crossing(const Desk *d, const Action *k);  /* of an exchange: messages of the gradients of a chunk at that level */
void    desk_merge(Desk *d, const Action *k, int msg);  /* both ways of an exchange end; of a merge, what came is added */
void    desk_begin(Desk *d, int msg, Action transfer);
void    desk_end(Desk *d, Pendings *list, int i);   /* waits for it */
bool    desk_posted(const Desk *d, int msg, int mb);    /* mb -1: of any micro-batch */
void    desk_wait_recv(Desk *d, int msg, int mb);
/* Those that are due, with so many times their slack; -1: all.  Those of states too. */
void    desk_wait_sends(Desk *d, int times, bool states);
#endif
