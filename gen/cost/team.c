/* SPDX-License-Identifier: Apache-2.0
 *
 * team.c: what the devices of a stage send each other, and how long a call waits for that.
 *
 * Problem: some calls add over the devices of their stage.  Planners of the field price such a sum as a ring of
 * 2 (T-1)/T of its bytes (Narayanan et al., Efficient Large-Scale Language Model Training on GPU Clusters, 2021), at one rate
 * for a whole machine.  The sums here are swaps with device d xor 1, 2, 4 ... (rt/team.c), and the farther ones may leave a
 * host, so each level of the tree has a link of its own.
 *
 * Method, of n floats on T devices, L = log2 T:
 *
 *     sum of a product        at each level 4 n bytes, in pieces of TEAM_PIECE floats
 *     rows of a table         the same, of their bytes in the compute type
 *     scores of a loss        at each level 12 bytes a row
 *     norm of a gradient      (T-1)/T of the device's part, by blocks of the norm, and at each level 2 KiB
 *
 * A piece takes its bytes over the rate, and the latency.  Nothing hides it: it is part of the call.  A GPU sends all at once,
 * and then adds, which takes a launch and 12 n bytes of its memory; processors add what lies in a cache.
 *
 * Cost: linear in operators and classes.  Not handled: GPUs have no such kernels yet, so theirs are the times of a design.
 */
#include "source.h"
#include "rt/team.h"
#include <string.h>

enum { NORM_BLOCKS = 256 };     /* doubles that each norm swaps: rt/op/norm_team.c */

typedef struct { int64_t floats; bool norm; } TeamCall;         /* floats: of a sum, or of a device's part of a gradient */

static TeamCall call_of(const Graph *g, const Op *o)
{
    enum { PAIR = 3 };          /* of a row of scores: the largest, the sum, the target's */
    static const struct { const char *call, *sizes[2]; int each; } sums[] = {
        {"linear_rows_forward", {"rows", "out"}, 1}, {"linear_columns_backward_x", {"rows", "in"}, 1},
        {"norm_team", {"n", NULL}, 0}, {"embedding_rows_forward", {"n", "width"}, 1},
        {"xent_part_forward", {"rows", NULL}, PAIR}, {"linear_xent_part_forward", {"rows", NULL}, PAIR},
        {"linear_xent_part_hits_forward", {"rows", NULL}, PAIR}, {"linear_xent_part_backward", {"rows", "in"}, 1},
    };
    for (size_t i = 0; i < sizeof sums / sizeof *sums && g->team; i++) {
        int64_t n = 1;
        if (strcmp(o->call, sums[i].call))
            continue;
        for (int k = 0; k < o->arg.n; k++)
            for (int s = 0; s < 2 && sums[i].sizes[s]; s++)
                n *= strcmp(o->arg.at[k].token, sums[i].sizes[s]) ? 1 : o->arg.at[k].i;
        bool norm = !sums[i].each, table = !strcmp(o->call, "embedding_rows_forward");
        return (TeamCall){norm ? n / g->team : table ? n * type_bytes(g->compute) / type_bytes(F32) : n * sums[i].each, norm};
    }
    return (TeamCall){0, false};
}

static int levels_of(const Graph *g)
{
    int levels = 0;
    while (1 << levels < g->team)
        levels++;
    return levels;
}

Bytes cost_team_bytes(const Graph *g, const Op *o)
{
    const TeamCall k = call_of(g, o);
    const Bytes sum = k.floats * type_bytes(F32);
    return k.norm ? sum / g->team * (g->team - 1) + levels_of(g) * NORM_BLOCKS * (Bytes)sizeof(double) : levels_of(g) * sum;
}

static int64_t part_of(int64_t n, int64_t of)
{
    return (n + of - 1) / of;
}

/* To each other device: a turn has a block of the norm for each of them, which goes in pieces. */
static int64_t norm_messages(const Model *m, int64_t n)
{
    int64_t each = norm_block(m, n);
    return part_of(part_of(n, each), m->plan.tensor) * part_of(each, TEAM_PIECE);
}

static Ns wait_of(const Cost *c, const Graph *g, const Model *m, TeamCall k, int device)
{
    const bool gpu = target_of(&m->devices.at[device])->gpu;
    Ns sum = 0;
    for (int level = 0; level < c->levels && k.floats; level++)
        if (k.norm)             /* 2^level devices are that far away */
            sum += (1 << level) * links_swap(c, device, level, k.floats / g->team * type_bytes(F32),
                                             gpu ? 1 : norm_messages(m, k.floats * g->team))
                + links_swap(c, device, level, NORM_BLOCKS * (Bytes)sizeof(double), 1);
        else
            sum += links_swap(c, device, level, k.floats * type_bytes(F32), gpu ? 1 : part_of(k.floats, TEAM_PIECE))
                + (gpu ? cost_move(c, device, 1, 3 * k.floats * type_bytes(F32)) : 0);
    return sum;
}

/* Each device adds the squares of its own part, and the call names the whole. */
static void add_waits(Cost *c, const Graph *g, const Model *m, const Ints *first, Ns **ns)
{
    for (int k = 0; k < c->classes; k++)
        for (int o = 0; o < c->ops; o++) {
            TeamCall call = call_of(g, &g->op.at[o]);
            c->sums[k][o] = wait_of(c, g, m, call, first->at[k]);
            ns[k][o] = (call.norm ? ns[k][o] / g->team : ns[k][o]) + c->sums[k][o];
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
