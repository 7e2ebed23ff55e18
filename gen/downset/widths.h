/* SPDX-License-Identifier: Apache-2.0
 *
 * widths.h: stages of several devices each: copies of a stage, a layer divided over devices, and what is computed again.
 *
 * A stage of d copies of t devices works on a micro-batch in
 *
 *     (sum of time + 2 bytes over its borders / rate + 4 (d - 1) parameters / (micro-batches rate)) / d
 *
 * and each of its devices needs the sum of each * ceil(copies from here to the end / d) + fixed.  This is the model of
 * J. Tarnawski, D. Narayanan, A. Phanishayee, Piper: Multidimensional Planner for DNN Parallelization, NeurIPS 2021.
 */
#ifndef WIDTHS_H
#define WIDTHS_H
#include "downset.h"

enum { WIDTH_LEVELS = 2 };
typedef int64_t Ps;             /* picoseconds: a stage of a thousand devices takes few nanoseconds a layer */
typedef struct { Ps time; Bytes each, fixed; } WidthChoice;     /* each: of a micro-batch that is under way */
typedef struct {                /* a node on t devices; no choice: it cannot be there.  One of two is chosen for each node */
    int choices;
    WidthChoice choice[2];
    Bytes params;
} WidthWay;
typedef struct { int from, to; const Bytes *bytes; } WidthEdge;  /* [2 x], [2 x + 1]: the reader's stage pays, the source's */
typedef struct {
    int n;
    const Ints *from, *to;      /* by node, as in Dag */
    int degrees;
    const int *degree;          /* t, ascending */
    const WidthWay *split;       /* [node * degrees + x] */
    int edges;
    const WidthEdge *edge;
    int devices;                /* that there are: some may stay idle */
    int copies;                 /* of a stage, at most; 0: any divisor of the micro-batches */
    int64_t micro;
    Bytes memory, rate;         /* of a device; of its link, a second */
    int levels;                 /* machines in one another, for planners that see them: devices of one, then machines */
    struct { int count; Bytes rate; } tier[WIDTH_LEVELS];
    bool heuristic;             /* choices as Piper makes them: the least time a byte first, until it fits */
} Widths;
typedef struct { int last, copies, degree, again; Bytes memory; Ps time; } WidthStage;   /* last: position in sequence */
typedef struct {
    int *sequence;              /* nodes by stage */
    char *choice;               /* by node */
    VEC(WidthStage) stage;
    Ps value, bound;            /* the longest stage; proven: no plan of the space is below */
    Ps claim;                   /* value of the planner's own objective */
    int prefixes;
    bool all;                   /* these are all downward-closed prefixes; else those of the given order */
    const char *lacks;          /* no plan: what the planner does not look at; NULL: nothing fits */
} WidthPlan;

bool widths_plan(const Widths *w, WidthPlan *plan);     /* false: nothing fits */
void widths_judge(const Widths *w, WidthPlan *plan);    /* value; time, memory and again of its stages: by these costs */
Ps widths_ps(Bytes bytes, int64_t rate);                /* rounded down */
#endif
