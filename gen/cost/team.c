/* SPDX-License-Identifier: Apache-2.0
 *
 * team.c: what the devices of a stage send each other, and how long a call waits for that.
 *
 * Problem: some calls add over the devices of their stage.  Planners of the field price such a sum as a ring of
 * 2 (T-1)/T of its bytes (Narayanan et al., Efficient Large-Scale Language Model Training on GPU Clusters, 2021), at one rate
 * for a whole machine.  The sums here are swaps with device d xor 1, 2, 4 ... (rt/team.c), and the farther ones may leave a
 * host, so each level of the tree has a link of its own.
 *
 * Method, on T devices, L = log2 T:
 *
 *     a call of a PART row    at each level the bytes of its column in ops.def, in pieces of TEAM_PIECE floats
 *     `each` in that column   T/2 parts of so many bytes to the nearest device, then half as many at each level
 *     `pairs`                 so many bytes to each other device, of which 2^k differ in bit k at last
 *     `some` in front of it   the even part.  Hosts of GPUs do not know which rows these are.  So GPUs send T times as much:
 *                             in place of `pairs` as `each`, and in place of `each` as a sum
 *     norm of a gradient      (T-1)/T of the device's part, by blocks of the norm, and at each level 2 KiB
 *
 * A piece takes its bytes over the rate, and the latency.  Nothing hides it: it is part of the call.  A GPU sends as much at
 * once as half its workspace holds, and then adds, which takes a launch and 12 n bytes of its memory; processors add what lies
 * in a cache.  The norm of a gradient is on GPUs a number of each device, which the tree adds: 8 bytes a level.
 *
 * Cost: linear in operators and classes.  Not handled: GPUs of a process that read each other's memory are taken to swap, too.
 */
#include "build/axes.h"
#include "prof.h"
#include "rt/team.h"

enum { NORM_BLOCKS = 256 };     /* doubles that each norm swaps: rt/op/norm_team.c */

/* bytes: of a sum, of a part of rows, of a device's part of a gradient. */
typedef enum { WHOLE_SUM, ROWS_EACH, PAIRS, GRADIENT_NORM } TeamMove;
typedef struct { Bytes bytes; TeamMove what; } TeamCall;
typedef struct { const Graph *g; const Op *o; } TeamWords;

static bool value_of(void *ctx, const char *word, double *to)
{
    const TeamWords *w = ctx;
    const bool real = !strcmp(word, "real");
    if (real || !strcmp(word, "team")) {
        *to = real ? (double)type_bytes(w->g->compute) : w->g->team;
        return true;
    }
    const Arg *a = op_arg(w->o, word);
    if (a)
        *to = a->kind == ARG_INT ? (double)a->i : a->kind != ARG_NONE;
    return a;
}

static bool word(const char **at, const char *text)
{
    const size_t n = strlen(text);
    const bool found = !strncmp(*at, text, n);
    *at += found ? n : 0;
    return found;
}

static TeamCall call_of(const Model *m, const Graph *g, const Op *o)
{
    const TeamWords words = {g, o};
    const bool norm = !strcmp(o->call, "norm_team");
    const char *swaps = norm ? "4*n" : row_swaps(row(o->row), o->phase);
    const bool all = word(&swaps, "some ") && on_gpus(m);
    const bool pairs = word(&swaps, "pairs "), each = word(&swaps, "each ");
    /* GPUs send zeros for rows that they have not: of what goes to each other device a part of rows, of a part of rows all. */
    TeamMove what = norm ? GRADIENT_NORM : pairs ? (all ? ROWS_EACH : PAIRS) : each && !all ? ROWS_EACH : WHOLE_SUM;
    const char *up = strf("ceil(%s)", swaps);           /* a mean of devices may be no whole number */
    Bytes bytes = g->team && *swaps ? expr_int(o->loc, up, value_of, (void *)(uintptr_t)&words) : 0;
    return (TeamCall){all ? bytes * g->team : norm && g->team ? bytes / g->team : bytes, what};
}

static int levels_of(const Graph *g)
{
    int levels = 0;
    while (1 << levels < g->team)
        levels++;
    return levels;
}

Bytes cost_team_bytes(const Model *m, const Graph *g, const Op *o)
{
    const TeamCall k = call_of(m, g, o);
    if (k.what == GRADIENT_NORM && on_gpus(m))
        return levels_of(g) * (Bytes)sizeof(double);
    return k.what == GRADIENT_NORM ? k.bytes / g->team * (g->team - 1) + levels_of(g) * NORM_BLOCKS * (Bytes)sizeof(double)
         : (k.what == WHOLE_SUM ? levels_of(g) : g->team - 1) * k.bytes;
}

/* To each other device: a turn has a block of the norm for each of them, which goes in pieces. */
static int64_t norm_messages(const Model *m, int64_t n)
{
    int64_t each = norm_block(m, n);
    return ceil_div(ceil_div(n, each), m->plan.tensor) * ceil_div(each, TEAM_PIECE);
}

static Ns wait_of(const Cost *c, const Graph *g, const Model *m, TeamCall k, int device)
{
    const Device *d = &m->devices.at[device];
    const bool gpu = target_of(d)->gpu;
    Ns sum = 0;
    for (int level = 0; level < c->levels && k.bytes; level++) {
        const int64_t times = k.what == ROWS_EACH ? g->team >> (level + 1) : k.what == PAIRS ? 1 << level : 1;
        if (k.what == GRADIENT_NORM && gpu)
            sum += links_swap(c, device, level, sizeof(double), 1) + cost_move(c, device, 1, 3 * (Bytes)sizeof(double));
        else if (k.what == GRADIENT_NORM)       /* 2^level devices are that far away */
            sum += (1 << level) * links_swap(c, device, level, k.bytes / g->team,
                                             norm_messages(m, ceil_div(k.bytes * g->team, type_bytes(F32))))
                + links_swap(c, device, level, NORM_BLOCKS * (Bytes)sizeof(double), 1);
        else
            sum += links_swap(c, device, level, times * k.bytes,
                              gpu ? ceil_div(times * k.bytes, d->workspace / 2)
                                  : times * ceil_div(k.bytes, TEAM_PIECE * type_bytes(F32)))
                + (gpu ? cost_move(c, device, 1, 3 * times * k.bytes) : 0);
    }
    return sum;
}

/* Each device adds the squares of its own part, and the call names the whole. */
static void add_waits(Cost *c, const Graph *g, const Model *m, const Ints *first, Ns **ns)
{
    for (int k = 0; k < c->classes; k++)
        for (int o = 0; o < c->ops; o++) {
            TeamCall call = call_of(m, g, &g->op.at[o]);
            c->sums[k][o] = wait_of(c, g, m, call, first->at[k]);
            ns[k][o] = (call.what == GRADIENT_NORM ? ns[k][o] / g->team : ns[k][o]) + c->sums[k][o];
        }
}

void team_sums(Cost *c, const Graph *g, const Model *m, const Ints *first)
{
    if (!g->team)
        return;
    c->sums = alloc(sizeof *c->sums * (size_t)c->classes);
    for (int k = 0; k < c->classes; k++)
        c->sums[k] = alloc(sizeof **c->sums * (size_t)c->ops);
    add_waits(c, g, m, first, c->ns);
    if (c->alone && c->alone != c->ns)
        add_waits(c, g, m, first, c->alone);
}
