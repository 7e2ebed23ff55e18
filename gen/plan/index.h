/* SPDX-License-Identifier: Apache-2.0
 *
 * index.h: what live.c knows of a graph and of the ordered lists before any run is asked for, and its room to walk in.
 */
#ifndef INDEX_H
#define INDEX_H
#include "live.h"

enum { NONE, FORWARD, BACKWARD, OWN, GONE, KINDS };

/* A computation between others, and how many micro-batches have been forward and not backward, at most, without its own.
 * A forward before it is of its own micro-batch (OWN), of one that has been backward since (GONE), or of another one. */
typedef struct { int now, before, second, after, rest; } Moment;
typedef VEC(Moment) Moments;

typedef struct { int from, to; } Range;             /* into Live.touched */
typedef struct { Range read, write; } Touched;      /* of one call: its tensors */


struct Live {
    const Plan *p;
    const Graph *g;
    int *levels;                /* by chunk: gradient accumulators a use */
    int *delay, *steps;         /* by chunk: weight versions beside the newest; steps under way at once */
    Touched *op;
    Ints touched;
    int *begin, *end;           /* by forward operator: its backward calls */
    int *made_from;             /* by forward operator: where in `made` its results begin; [nf] the end */
    Ints made;
    int *home;                  /* by tensor: the forward operator it belongs to; -1: an input */
    int *least, *most;          /* by tensor: of the forward operators whose calls read it */
    int *reader;                /* by forward tensor: the first operator whose backward reads it; -1 */
    Bytes *bytes;               /* by tensor */
    bool *grad;
    Ints *use;                  /* by forward operator: S_GRAD states of its uses */
    Bytes *owner, *guest;       /* by S_PARAM: on its home device, on another that uses it; without gradients */
    Bytes *version;             /* by S_PARAM: of it and its copy what forward and backward read */
    Bytes *uses;                /* by S_PARAM: its gradients, one accumulator each */
    Bytes fixed, norms;         /* states that every device has; that every one with parameters has */
    Moments *moment;            /* by chunk */
    /* the run at hand */
    int first, last, chunk;
    const int *fate;
    int round;                  /* marks equal to it are of this walk */
    int *saved, *remade, *met, *again;      /* marks: by tensor, tensor, S_PARAM, forward operator */
    int *kept, nkept;           /* saved tensors */
    int *gone, ngone;           /* offloaded ones, which are marked as saved too: something brings them back */
    int *away;                  /* marks of those, by tensor */
    struct Windows *windows;    /* away.c */
    int *line, lines, *head, early;  /* backward: operators; ~operator if it is made again */
    int *stack;
    int *seen, *from, *to;      /* by tensor and whether it is the remade copy: positions in the routine at hand */
    int *order, n, at;          /* those that are seen */
    int walk;
    Bytes *change, *tmp;        /* by position */
    Load load;
    char *matters;              /* by tensor */
    int *until;                 /* by tensor of a run */
    int *place;                 /* by tensor: in Live.made */
};

/* away.c: offloaded tensors leave, and come back, within a walk that has touched what its calls name; the bytes of those that
 * the neighbouring computation sees too. */
struct Windows *away_room(int tensors, int calls);
Bytes away_forward(Live *x);
Bytes away_backward(Live *x);
static inline bool away(const Live *x, int t)
{
    return x->away[t] == x->round && x->ngone > 0;
}

static inline Bytes index_align(Bytes n)
{
    return (n + ALIGN - 1) / ALIGN * ALIGN;
}
#endif
