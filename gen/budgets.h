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
                                   parameters */
    SHORTER_SPARE = 128,        /* part of the memory that its layouts leave free: 64 of 256 micro-batches took 0.9 % less */
    SEARCH_WORK = 200000000,    /* calls replayed for prices in one search, some 8 s; then the best so far is the answer.  As
                                   many for the plan of least bytes: tinyllama on five devices of 11 GiB */
    FIRST_WORK = 100000000,     /* ... while no plan is found; of all rows; of all remedies of a report that nothing fits */
    QUESTION_WORK = 25000000,   /* ... of one of them, of a row of a table, of one more question about a plan; then the first
                                   choices that fit are the answer */
    LEAST_QUESTION = 5000000,   /* ... of one for the plan of least bytes: those that fit take 1 to 5 million, others all */
    ROW_WORK = 2500000,         /* ... of a row that schedule: auto tries beside gpipe and 1f1b */
    SHOWN_OPERATORS = 20000,    /* of graphs that a report lays out: one layout costs the square of its buffers */
    LEAST_FAST = 9,             /* targets of fast plans, a 128th apart, where chunks share a device: near-least.yaml had no
                                   plan at 40 KiB, and one at 38; it goes on from a smaller plan */
    LEAST_PROBES = 6,           /* limits tried below a plan, a 256th apart: 1771 MiB of a t5-small became 1733 */
    LAID_OUT = 10,              /* ... and each call of a step that is laid out, ... */
    LISTED_CALLS = 100000,      /* ... but for so many: PASSES stand for them */
    PASSES = 100,               /* calls that all passes over one operator of a plan count as */
    BUILDING = 300,             /* ... and building its graph, with its costs */
    ROUNDS = 4,             /* feeding packed sizes back to a planner; cuts and rooms that `optimal` climbs under; not tuned */
    REPACKS = 8,            /* plans of one bisection of target limits: 1/256 of a limit; rounds of asking chunks that share a
                               device to be smaller */
    NEAR_PART = 16,         /* of a step, that a plan may take longer and still be worth a look: with its cuts packed, with
                               other fates, or without other depths */
    TRIALS = 24,            /* moved cuts: four rounds of six moves; not tuned */
    TRIED = 8000,           /* operators of all moved cuts together, and of all device orders: large models try fewer */
    TRIAL_REPACKS = 3,      /* plans for one moved cut: enough to see whether it can win */
    CUTS_TRIED = 4000,      /* operators of all cuts laid out once */
    CUTS_PACKED = 2400,     /* ... and of those packed again under other limits, which takes up to REPACKS plans each */
    PERIODS = 8,            /* periods that 1f1b* tries: the first that change a depth; not tuned */
    GROUPED_STAGES = 3,     /* stages of a group, as if loads were equal, that 1f1b* tries; not tuned */
    PROVEN_DEPTHS = 3,      /* that 1f1b* plans with a proof, of those expected within an eighth of the best; not tuned */
    LEAST_GAIN = 64,            /* of the step, that a row has to promise: below, messages and packing decide */
    CHUNKS = 4,             /* a device, at most, of plan.chunks: auto: each number is a search, and messages grow with it */
    PACE_TRIALS = 400,      /* leads and lags that zb* compares for one cut: eight devices meet a hundred before they stop */
    OPTIMAL_STEPS = 40000000,   /* computations that `optimal` looks at for one cut, some 0.5 s; every start has its share */
    OPTIMAL_MOVES = 200000, /* ... and so many moves at most */
    OPTIMAL_STARTS = 6,     /* lists it climbs from: the best ones of the rows, and of greedy ones */
    ORDERS = 1000,          /* device orders written down, of graphs of up to a thousand operators */
    LEAST_ORDERS = 8,       /* orders planned at least ... */
    MOST_ORDERS = 64,       /* ... and at most */
    DAPPLE_LABELS = 64,     /* of a state of DAPPLE's program: GNMT on 32 devices has thousands, and the same answer with 16 */
    FLEET_WORK = 400000000, /* devices cubed times nodes squared, up to which DAPPLE and SPP plan graphs of others: 4 s */
    MOST_WIDTHS = 16384,    /* lists of devices of each stage that plan.widths: auto looks at: those of 16 devices are 12,000 */
    TRIED_WIDTHS = 64,      /* ... and those of them that it searches, the best guesses first; equal ones are not counted.  With
                               32 two questions of 24 took 6 and 13 % longer, with 128 none less */
    MOST_SETS = 1 << 16,    /* of devices that the dynamic program over orders may meet: its table has a row for each */
};

/* ---- exact/ ------------------------------------------------------------------------------------------------------ */
enum {
    REACHED_RUNS = 750000,      /* met by reach() to find plans, and as many again for every thousand operators */
    MORE_RUNS = 4,              /* times as many, once there is a plan to prove: one gap of bench/gap.sh is 9 % for 15 */
    BOUGHT_OPERATORS = 20000,   /* in runs that are bought for the proof; as many for each grid, and for branches: T5-large at
                                   the most samples that fit needs three times what smaller graphs do */
    SPENT_PART = 40,            /* of those, once the work of the whole search is spent: a few plans of 500 operators */
    RESERVED_PART = 4,          /* of the work of the whole search, for packing what is found: T5-large near its largest size */
    PREVIEWED_ACTIONS = 400000, /* simulated by comparing plans, and as many again for branch and bound */
    PREVIEWED_FREE = 4096,      /* computations of one preview that the work of the search is not charged with */
    APART_ACTIONS = 6000000,    /* ... for branch and bound where results may leave the device: only previews of floors tell */
    APART_PROOFS = 4,           /* candidates that may take so many each; more share what these do */
    APART_PARTS = 16,           /* of the way from what is refuted to the best plan: a first target; the next is twice as far */
    GRID_CUTS = 384,            /* cuts on the grid, and 8 a chunk: reach() costs the square of them */
    COARSE_CUTS = 96,           /* ... and before, where memory is short: prices are needed, few cuts get by with few */
    NEAR_OPERATORS = 4,         /* at the end of a run, one of them begins its path: see frontier.c; ends of the longest run */
    BRUTE_OPERATORS = 24,       /* of planner brute: binomial(24, 4) cuts */
    BRUTE_CHUNKS = 5,
};

/* ---- fates/, replay/ ----------------------------------------------------------------------------------------------- */
enum {
    FATE_TENSORS = 12,          /* kept or made again: so many choices of a run are all tried, and by planner brute too */
    HUNT_CALLS = 50000,         /* calls replayed by a larger run: three times as many changed no plan by a ten-millionth */
    LEAST_REPLAYS = 40,         /* ... and this at least, however long a replay is */
    KNAPSACK_WIDTH = 512,       /* points of a row of the table: its memory is width times layers */
    KNAPSACK_LAYERS = 256,      /* of the table: equal tensors take one for each power of two of their number */
    BRIEF_PATTERNS = 32,        /* blocks at most, once the work of the whole search is spent */
    OFFLOAD_REPLAYS = 200,      /* beside those left, for each order of sending tensors away */
    HALVINGS = 12,              /* of the bytes that a knapsack frees, a floor's interval, the longest full chunk's time */
    PRICE_CLASSES = 32,         /* prices a byte that a floor tells apart: its cost grows with them */
    FLOOR_ROUNDS = 6,           /* of taking what is made again from the time of copies: later ones add little */
};

/* ---- mem/ -------------------------------------------------------------------------------------------------------- */
#define LAYOUT_STEPS INT64_C(300000000)     /* a device: with two thirds of it tiny-t5 in 16 micro-batches was not within 3 % of
                                               its live bytes */
#define LEAST_STEPS  INT64_C(800000000)     /* of all questions for the plan of least bytes, and of all remedies of a report;
                                               with less than 740 near-least.yaml has no plan below 53 KiB */
#define SEARCH_STEPS INT64_C(5000000000)    /* of all trials of a question, which only have to fit, and of its other layouts;
                                               with 3 a plan near its least limit was 33 % slower */
enum {
    LONG_STEPS = 5000000,       /* of LAYOUT_STEPS, before gen/pack is asked; and of each device after SEARCH_STEPS */
    IDLE_STEPS = 40000000,      /* between two questions whether a layout that does not fit is far from it: by more than ... */
    IDLE_PART = 5,              /* of them, without a lower layout, end the search of one that fits: a tenth less time */
    FAR_PART = 64,              /* ... this part is given up: zb* of GPT-2 774M on V100s takes half the time, and is faster */
    SOON_STEPS = 1500000,       /* of LAYOUT_STEPS, for the fixed orders and for the first shaken ones */
    PROMOTED_ORDERS = 30,       /* made from one order by promotion, before the next one is drawn */
    ALONE_STEPS = 80000000,     /* that gen/pack may take for the layout of one device */
    ALONE_RECTANGLES = 4000,    /* that it is asked about: the cost grows with the square */
    UNPOOLED_STEPS = 20000000,  /* that it may take for the bound without pools, which is only printed */
    EXTRA_POOLS = 48,           /* that a device may open beside those of lower ... */
    OPENED_POOLS = 12,          /* ... and those of one buffer each, by first fit */
    HOST_SLOTS = 16,            /* of a host block, placed one by one: a pair of blocks costs the product of their slots */
};

/* ---- pack/: a step looks at one block, a second is some hundred millions ------------------------------------------- */
#define PACK_STEPS INT64_C(1500000000)      /* of one command */
enum {
    FIRST_TRY_STEPS = 4000000,  /* of the first tries of each height; later ones are longer by powers of two */
    EQUAL_TRIES = 3,            /* tries of one length: one for each style of choosing */
    PACK_PASSES = 2,            /* over the heights where a capacity is wanted: 4 of 60 drawn instances were missed in one */
    PASS_TRIES = 3000,          /* whose luck belongs to one pass: a multiple of EQUAL_TRIES, above what the budget allows */
    FAILED_PARTS = 1 << 18,     /* most failed parts that are remembered; newer ones replace older: the memory of a table */
    PACK_DEPTH = 10000,         /* calls of solve() in each other: what the machine's stack holds for certain */
};

/* ---- list/ ------------------------------------------------------------------------------------------------------- */
enum {
    BUCKET_ITEMS = 100,         /* gradients under way at once while backward goes on: two requests each */
    MERGES = 32,                /* most gradients in a batch between two rows: two batches are a fourth of the requests */
};

/* ---- plan/ ------------------------------------------------------------------------------------------------------- */
enum {
    SHARE_PRICES = 12,          /* of memory that a chunk is priced under, to share that of a device */
    SHARE_FAR = 4,              /* over the limit by more than such a part of it is far: 70B on 64 stages, by 1.6 */
    OPS_SOME = 600,             /* operators of graphs for which exact begins with the answer of a planner that lists what fits,
                                   or plans three times; of those with expected cuts that are laid out */
    OPS_MANY = 1200,            /* ... of a planner of small cost, or whole plans of DawnPiper stand beside exact's where it is
                                   not near its bound; T5-large at 128 on four V100 had a plan of interval alone */
    OPS_HUGE = 6000,            /* ... whole plans of a planner of small cost do: AmoebaNet-D of 72 layers has 4,600 */
};

/* ---- rivals/: as their papers say, or within a second -------------------------------------------------------------- */
enum {
    MOVE_PASSES = 64,           /* over all borders, while a move helps */
    PREFIX_STRIDES = 16,        /* of Capuchin's list: its need does not fall steadily, so strides come before bisection */
    MADPIPE_GRID = 24,          /* steps of MadPipe's grid, and ... */
    MADPIPE_STATES = 200000,    /* ... states a period: within a second for a hundred units on eight devices */
};

/* ---- foreign/ ---------------------------------------------------------------------------------------------------- */
enum {
    MOST_PREFIXES = 60000,      /* downward-closed, of a graph: they are kept, each as a set of nodes */
    MOST_PLACES = 8192,         /* of a pipeline in its devices: a set of them and the last one; 45 each of two kinds */
    MOST_ENDS = 20000000,       /* places times prefixes, which are remembered: 160 MB */
    MOST_LOOKS = 400000000,     /* at a node while enumerating, a pair while bisecting, an end where orders are searched */
    WIDTH_PREFIXES = 40000,     /* where stages have widths: every pair of them is priced */
    LEVEL_PREFIXES = 700,       /* of PipeDream's program, which costs their cube at every level but the last */
    KNAPSACK_LOOKS = 200000,    /* at a choice of what is computed again in one stage */
};
#endif
