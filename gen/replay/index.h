/* SPDX-License-Identifier: Apache-2.0
 *
 * index.h: the facts of a graph and its ordered lists that walk.c has before any run is asked for, and its room to walk in.
 */
#ifndef INDEX_H
#define INDEX_H
#include "walk.h"
#include "list/list.h"

/* A computation: F; B or I; W.  As the maker of a message that is under way, also by what the list has done since with its
 * micro-batch.  Of F: OWN it is in B or I now, GONE it has been, PAST it has been in W too.  Of B or I: NEAR it is in W now,
 * DONE it has been. */
enum { NONE, FORWARD, BACKWARD, WEIGHT, OWN, GONE, PAST, NEAR, DONE, KINDS };

/* Stages that a message goes beyond the next one, with Choice.far; those that go further count as the last.  Then no list has W
 * apart, and no kind above GONE sends. */
enum { FARS = 6 };
/* Computations whose sends are under way or waited for, by kind: of messages to the next stage, and by stages beyond it. */
typedef struct { int near[KINDS]; unsigned char far[FARS][GONE + 1]; } Sends;

/* A computation and what is under way beside it.  rest: at most so many micro-batches have been in F and not in B or I, without
 * its own.  hold: so many have been in I and not in W.  out: by kind, the computations before it whose sends are under way.
 * due: those whose sends are waited for now.  sends: its own micro-batch still does.  Receives of `after` are posted, and with
 * a slack of two (order_slack) those of `later`.  A W in `after` or `later` is DONE if its micro-batch was in I before now: its
 * messages are among those held, but for those that come alone: in[DONE].  sums: of gradients that drop. */
enum { SUMS_NONE, SUMS_COME, SUMS_HERE };
typedef struct { int now, after, later, sends, sums; Sends out, due; int rest, hold; } ReplayMoment;
typedef VEC(ReplayMoment) Moments;

/* A computation of a device's list that slack counts. */
typedef struct { int mb; ReplayMoment m; } Beat;
typedef VEC(Beat) Beats;
/* Bytes of messages by kind of computation; far: those that go further, of the first `fars` distances.  A micro-batch may still
 * be there: then a tensor that is saved or held, and sent, counts once. */
typedef struct { Bytes in[KINDS], out[KINDS], far[FARS][GONE + 1]; int fars; } Border;
/* An offloaded tensor of the run.  after: calls of forward until its last reader there.  first: the first call of backward that
 * reads it.  fast: the time of a copy.  slow: the time that offload.c sets aside for one. */
typedef struct { int tensor, after, first; Ns fast, slow; Bytes bytes; } ReplayCopy;

struct Live {
    const Plan *p;
    const Graph *g;
    int *accumulators;          /* by chunk: gradient accumulators a use */
    bool merges;                /* other copies of the model send their gradients */
    bool drops;                 /* plan_drops() of some */
    bool *apart;                /* by chunk: then no other chunk of its device computes while its gradients are added up */
    bool *alone;                /* by chunk: its device has no other one */
    int *delay, *steps;         /* by chunk: copies of the weights beside the newest; steps under way at once */
    Operands operands;
    const Touched *op;          /* of those: by operator, into touched */
    Ints touched;
    int *begin, *end;           /* by forward operator: its backward calls */
    int *made_from;             /* by forward operator: where in `made` its results begin; [nf] the end */
    Ints made;
    const int *maker;           /* by tensor: Operands.maker */
    int *least, *most;          /* by tensor: of the forward operators whose calls read it */
    int *reader;                /* by forward tensor: the first operator whose backward reads it; -1 */
    Bytes *bytes;               /* by tensor */
    bool *grad;
    Ints *use;                  /* by forward operator: S_GRAD states of its uses */
    Bytes *owner, *guest;       /* by S_PARAM: on its home device, on another that uses it; without gradients */
    Bytes *room;                /* by S_PARAM: of where computations find it, beside what is at home */
    Bytes *version;             /* by S_PARAM: of it and its copy what forward and backward read */
    Bytes *uses;                /* by S_PARAM: its gradients, one accumulator each */
    Bytes fixed, norms;         /* states that every device has; that every one with parameters has */
    int slack;                  /* order_slack() */
    bool *known;                /* by chunk: its moments are, and what else its list says */
    bool *split;                /* by chunk: its list has I and W apart */
    int fars;                   /* distances beyond the next stage that slack tells apart; 0: none */
    int *stage;                 /* by forward operator, where cuts are given; NULL: they are not */
    Ns *until_op;               /* [nf + 1] times of the operators before, forward and backward */
    Moments *moment;            /* by chunk, each once */
    Moments *worst;             /* of those: none needs less than another, whatever the run */
    Beats *beat;                /* by chunk, all of them; index_beats() */
    /* the run at hand */
    int first, last, chunk;
    const int *fate;
    Rebuild back;               /* what is there and what is made again */
    Ints read, call;            /* what its backward reads, by first reader; which of its calls that is */
    int read_first, read_last;  /* of which run */
    int round;
    int *met;                   /* mark by S_PARAM, equal to round */
    ReplayCopy *away;           /* what is fetched, and offload.c's room */
    int naway;
    struct ReplayCopies *ways;
    Bytes *alive, *other;       /* by position: alive; room for those of another walk */
    int *line, lines, early;    /* backward: operators; ~operator if it is made again */
    int inputs, *weights;       /* of them up to the end of B or I; scratch for the rest, which is W */
    Ns ready;                   /* time of the first `early` of them */
    int *seen, *from, *to;      /* by tensor and whether it is the remade copy: positions in the routine at hand */
    int *sequence, n, at;       /* those that are seen */
    int walk;
    Bytes *change, *tmp;        /* by position */
    Load load;
    char *matters;              /* by tensor */
    int *until;                 /* by tensor of a run */
    int *made_at;               /* by tensor: in Live.made */
    struct Replay *replay;
};

/* The kind of a computation.  OWN and NEAR tell it apart where an earlier one of its micro-batch still sends. */
static inline int moment_kind(const ReplayMoment *m)
{
    return !m->sends ? m->now : m->now == BACKWARD ? OWN : NEAR;
}

/* The bytes at rest: saved ones before B or I, held ones before W. */
static inline Bytes moment_resting(const ReplayMoment *m, const Load *l)
{
    return m->rest * l->saved + m->hold * l->held;
}

/* The bytes of its own micro-batch that are there before it begins. */
static inline Bytes moment_brought(const ReplayMoment *m, const Load *l, const Border *b)
{
    return m->now == WEIGHT ? l->held : b->in[m->now] + (m->now == BACKWARD ? l->saved : 0);
}

static inline Bytes moment_sent(const Sends *count, const Border *b)
{
    Bytes sum = 0;
    for (int k = FORWARD; k < KINDS; k++)
        sum += count->near[k] * b->out[k];
    for (int i = 0; i < b->fars; i++)
        for (int k = FORWARD; k <= GONE; k++)
            sum += count->far[i][k] * b->far[i][k];
    return sum;
}

/* The bytes of messages under way all through it.  Where the next I follows at once, a message for W of this micro-batch is
 * ahead of those for that I. */
static inline Bytes moment_flying(const ReplayMoment *m, const Border *b)
{
    Bytes ahead = m->now == BACKWARD && m->after == BACKWARD ? b->in[WEIGHT] - b->in[DONE] : 0;
    return moment_sent(&m->out, b) + b->in[m->after] + b->in[m->later] + ahead;
}

/* Does the run at hand make the tensor? */
static inline bool index_own(const Live *x, int t)
{
    return x->maker[t] >= x->first && x->maker[t] <= x->last;
}

/* Does the run at hand make it and another one read it? */
static inline bool index_leaves(const Live *x, int t)
{
    return index_own(x, t) && (x->least[t] < x->first || x->most[t] > x->last);
}

/* index.c: apart, alone, split and moment of a chunk, before they are read: most chunks are never asked for. */
void index_moments(Live *x, int chunk);
/* All of its computations, behind index_moments(): only copies to the host ask. */
const Beats *index_beats(Live *x, int chunk);
/* index.c: of a state, what the row has that has most of it. */
Bytes index_part(const Live *x, int s);
/* index.c: of a gradient, what comes home from another stage. */
Bytes index_home(const Live *x, int s);
/* index.c: how many stages beyond the next one a tensor that leaves the run at hand goes, at most Live.fars. */
int index_far(const Live *x, int t);
/* How a received gradient comes that only weight gradients read.  ALONE: right before them, as the run reads nothing else from
 * that device.  ALONG: with others, as messages between two devices keep their order.  UNKNOWN: no cuts are given. */
typedef enum { UNKNOWN, ALONE, ALONG } Company;
Company index_company(const Live *x, int t);
static inline Bytes *border_out(Border *b, int far, int kind) { return far ? &b->far[far - 1][kind] : &b->out[kind]; }
void border_own(Border *b);                         /* OWN from FORWARD */
/* Are more bytes alive within a computation while an earlier one of its micro-batch still sends?  kind: OWN, NEAR. */
static inline bool border_sends(const Border *b, int kind)
{
    return b->out[kind == OWN ? PAST : DONE] > b->out[kind];
}

/* walk.c: live_constant gives the part of a load that no choice of fates changes, with the border as if nothing were saved.
 * live_moments gives the most bytes besides the states, from those alive within each kind of computation; 0 for OWN or NEAR
 * means as for the plain one. */
Load  live_constant(Live *x, int first, int last, int chunk, Bytes *visiting, Border *b);
Bytes live_moments(const Live *x, int chunk, const Border *b, const Bytes *alive, const Load *l);

/* fast.c: a run is entered before its fates are chosen.  replay_load then is live_load where nothing is offloaded; false: it
 * has to be walked. */
void replay_open(Live *x);
void replay_enter(Live *x, int first, int last, int chunk);
bool replay_load(Live *x, Load *l);

/* offload.c: with offloaded tensors.  away_cut comes once the walks know after and first of each.  away_level takes the counted
 * bytes of FORWARD, of BACKWARD, and of OWN and NEAR where border_sends().  away_most comes last and gives the stall too. */
void  away_open(Live *x);
void  away_cut(Live *x);
void  away_level(Live *x, int kind, const Bytes *level);
Bytes away_most(Live *x, const Border *b);
#endif
