/* SPDX-License-Identifier: Apache-2.0
 *
 * budgets.h: how much work each part of a search may do, and why so much.
 *
 * Every budget counts steps of an algorithm, never time, so the same question gets the same answer on any machine.
 */
#ifndef BUDGETS_H
#define BUDGETS_H
#include <stdint.h>

/* ---- search/ ----------------------------------------------------------------------------------------------------- */
enum {
    SHORTER_PLACES = 4096,      /* micro-batches of all devices in a step that is searched for a longer one: 9 s for 70 billion
                                   parameters; the preview of a step with so many computations costs no work */
    SEARCH_WORK = 200000000,    /* calls replayed for prices in one search, some 8 s; then the best so far is the answer.  As
                                   many for the plan of least bytes: tinyllama on five devices of 11 GiB */
    FIRST_WORK = 100000000,     /* ... while no plan is found; of all rows; of all remedies of a report that nothing fits; of
                                   cuts near the best: with a quarter tinyllama in zb-h2 takes 9 % longer */
    QUESTION_WORK = 25000000,   /* ... of one of them, of a row of a table, of one more question about a plan; then the first
                                   choices that fit are the answer */
    ROW_WORK = 2500000,         /* ... of a row that schedule: auto tries beside gpipe and 1f1b; twice as many of a target for
                                   the plan of least bytes */
    LAID_OUT = 10,              /* calls that each call of a step that is laid out counts as */
    PASSES = 100,               /* ... and all passes over one operator of a plan, or of a graph that is built */
    ROUNDS = 4,                 /* tries that take a search or several plans each: packed sizes fed back to a planner, chunks
                                   a device, depths planned with a proof, plans for one moved cut, lists to climb from; not
                                   tuned.  With a plan to prove, so many times REACHED_RUNS: a gap of bench/gap.sh is 9 % for
                                   15 */
    TRIES = 8,                  /* tries that take a plan or a price each: of one bisection of limits, 1/256 of a limit; of
                                   limits below a plan; of periods, shares and orders; not tuned */
    NEAR_PART = 16,         /* of a step, that a plan may take longer and still be worth a look: with its cuts packed, with
                               other fates, or without other depths */
    PACKED_PART = 64,           /* what messages and packing decide: of the step, that a row has to promise; of the memory of
                                   a device, that layouts of a longer step want (64 of 256 micro-batches took 0.9 % less),
                                   and that a layout may lack and still be searched: zb* of GPT-2 774M on V100s takes half
                                   the time, and is faster */
    TRIED = 8000,               /* operators of all moved cuts together, of all cuts laid out, and of all device orders */
    OPTIMAL_STEPS = 40000000,   /* computations that `optimal` looks at for one cut, some 0.5 s; every start has its share */
    OPTIMAL_MOVES = 200000,     /* ... and so many moves at most */
    ORDERS = 1000,              /* device orders written down, of graphs of up to a thousand operators; leads and lags that zb*
                                   compares for one cut: eight devices meet a hundred before they stop */
    MOST_TRIED = 64,            /* of a list, the best guesses first: widths, orders of devices, labels of DAPPLE.  With 32
                                   two questions of 24 about widths took 6 and 13 % longer, with 128 none less */
    MOST_WIDTHS = 16384,        /* lists of devices of each stage that plan.widths: auto looks at: 16 devices have 12,000 */
};

/* ---- exact/ ------------------------------------------------------------------------------------------------------ */
enum {
    REACHED_RUNS = 750000,      /* met by reach() to find plans, and as many again for every thousand operators */
    BOUGHT_OPERATORS = 20000,   /* in runs that are bought for the proof; as many for each grid, and for branches: T5-large at
                                   the most samples that fit needs three times what smaller graphs do */
    RESERVED_PART = 4,          /* of the work of the whole search, for packing what is found: T5-large near its largest size;
                                   without it GPT-2 355M with copies takes 1.6 times the time, and 0.2 % less a step */
    PREVIEWED_ACTIONS = 400000, /* simulated by comparing plans, and as many again for branch and bound */
    APART_ACTIONS = 6000000,    /* ... for branch and bound where results may leave the device: only previews of floors
                                   tell.  All candidates share them */
    GRID_CUTS = 384,            /* cuts on the grid, and 8 a chunk: reach() costs the square of them */
    BRUTE_PLANS = 10000,        /* of planner brute: 24 operators have 8,855 in five chunks */
    NEAR_OPERATORS = 4,         /* at the end of a run, one of them begins its path: see frontier.c; ends of the longest run */
};

/* ---- fates/, replay/ ----------------------------------------------------------------------------------------------- */
enum {
    FATE_TENSORS = 12,          /* kept or made again: so many choices of a run are all tried, and by planner brute too */
    HUNT_CALLS = 50000,         /* calls replayed by a larger run: three times as many changed no plan by a ten-millionth */
    LEAST_REPLAYS = 40,         /* ... and this at least, however long a replay is; five times as many for each order of sending
                                   tensors away: with as many mobilenetv2 on three A100 wants 0.3 % more memory */
    KNAPSACK_WIDTH = 512,       /* points of a row of the table: its memory is width times layers */
    HALVINGS = 12,              /* of the bytes that a knapsack frees, a floor's interval, the longest full chunk's time */
    PRICE_CLASSES = 32,         /* prices a byte that a floor tells apart: its cost grows with them */
};

/* ---- mem/ -------------------------------------------------------------------------------------------------------- */
#define LAYOUT_STEPS INT64_C(300000000)     /* a device: with two thirds of it tiny-t5 in 16 micro-batches was not within 3 % of
                                               its live bytes */
#define LEAST_STEPS  INT64_C(800000000)     /* of all questions for the plan of least bytes, and of all remedies of a report;
                                               with less than 740 near-least.yaml has no plan below 53 KiB */
#define SEARCH_STEPS INT64_C(5000000000)    /* of all trials of a question, which only have to fit, and of its other layouts;
                                               with 3 a plan near its least limit was 33 % slower */
enum {
    LONG_STEPS = 5000000,       /* of LAYOUT_STEPS, before gen/pack is asked; and of each device after SEARCH_STEPS; without a
                                   lower layout, the end for one that fits; of the first tries of gen/pack */
    IDLE_STEPS = 40000000,      /* between two questions whether a layout that does not fit is far from it */
    SOON_STEPS = 1500000,       /* of LAYOUT_STEPS, for the fixed orders and for the first shaken ones */
    PROMOTED_ORDERS = 30,       /* made from one order by promotion, before the next one is drawn */
    ALONE_STEPS = 80000000,     /* that gen/pack may take for the layout of one device */
    EXTRA_POOLS = 48,           /* that a device may open beside those of lower, where gen/pack lays it out ... */
    OPENED_POOLS = 12,          /* ... and for one buffer each, by first fit */
    HOST_SLOTS = 16,            /* of a host block, placed one by one: a pair of blocks costs the product of their slots */
};

/* ---- pack/: a step looks at one block, a second is some hundred millions ------------------------------------------- */
#define PACK_STEPS INT64_C(1500000000)      /* of one command */
enum {
    BOXINGS = 16,               /* draws of boxes, of which the one that leaves fewest is searched: of 120 drawn instances 2 are
                                   missed with 1 */
    PACK_DEPTH = 10000,         /* calls of solve() in each other: what the machine's stack holds for certain */
};

/* ---- plan/ ------------------------------------------------------------------------------------------------------- */
enum {
    SHARE_FAR = 4,              /* over the limit by more than such a part of it is far: 70B on 64 stages, by 1.6; with 16
                                   bytes-gpt at nine tenths of its memory takes 1.6 % longer */
    OPS_SOME = 600,             /* operators of graphs for which exact begins with the answer of a planner that lists what fits,
                                   or plans three times; of those with expected cuts that are laid out */
    OPS_MANY = 1200,            /* ... of a planner of small cost, or whole plans of DawnPiper stand beside exact's where it is
                                   not near its bound; T5-large at 128 on four V100 had a plan of interval alone */
    OPS_HUGE = 6000,            /* ... whole plans of a planner of small cost do: AmoebaNet-D of 72 layers has 4,600; of larger
                                   ones no report lays out a plan, which costs the square of its buffers */
};

/* ---- rivals/: as their papers say, or within a second -------------------------------------------------------------- */
enum {
    MADPIPE_GRID = 24,          /* steps of MadPipe's grid: within a second for a hundred units on eight devices */
};

/* ---- foreign/ ---------------------------------------------------------------------------------------------------- */
enum {
    MOST_PREFIXES = 60000,      /* downward-closed, of a graph: they are kept, each as a set of nodes */
    MOST_PLACES = 8192,         /* of a pipeline in its devices: a set of them and the last one; 45 each of two kinds */
    MOST_ENDS = 20000000,       /* places times prefixes, which are remembered: 160 MB */
    MOST_LOOKS = 400000000,     /* at a node while enumerating, a pair while bisecting, an end where orders are searched;
                                   devices cubed times nodes squared of DAPPLE and SPP, prefixes cubed of PipeDream: 4 s */
    MOST_STATES = 200000,       /* of a program that remembers them: MadPipe's, a second for a hundred units on eight devices;
                                   sets of devices; what a stage computes again; parts that could not be packed */
};
#endif
