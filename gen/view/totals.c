/* SPDX-License-Identifier: Apache-2.0
 *
 * totals.c: the table that `dpgen check` prints.
 */
#include "view.h"

static void line(FILE *f, const char *what, int64_t n, const char *unit)
{
    char digits[24];
    int len = snprintf(digits, sizeof digits, "%" PRId64, n);
    const char *text = "";              /* 124439808 as 124,439,808 */
    for (int i = 0; i < len; i++)
        text = strf("%s%s%c", text, i && (len - i) % 3 == 0 && digits[i - 1] != '-' ? "," : "", digits[i]);
    fprintf(f, "  %-34s %22s%s%s\n", what, text, *unit ? " " : "", unit);
}

static Bytes state_bytes(const Graph *g, StateKind from, StateKind to)
{
    Bytes n = 0;
    for (int i = 0; i < g->state.n; i++)
        if (g->state.at[i].kind >= from && g->state.at[i].kind <= to && !copy_alone(g, i))
            n += g->state.at[i].bytes;
    return n;
}

/* Forward tensors that a backward operator reads; before grad has run, all of them. */
static Bytes saved_bytes(const Graph *g)
{
    const int *read = graph_reads(g, g->nf, g->op.n);
    Bytes n = 0;
    for (int i = 0; i < g->tensor.n; i++)
        if (g->tensor.at[i].kind == T_ACT && (read[i] || g->op.n == g->nf))
            n += g->tensor.at[i].bytes;
    return n;
}

/* How many parameter tensors, and of how many numbers; or those of them that do not learn. */
static int64_t parameters(const Graph *g, int64_t *tensors, bool frozen)
{
    int64_t n = 0;
    *tensors = 0;
    for (int i = 0; i < g->state.n; i++)
        if (g->state.at[i].kind == S_PARAM && !g->state.at[i].tracked && (!frozen || g->state.at[i].frozen)) {
            n += shape_size(&g->state.at[i].shape, 0, g->state.at[i].shape.n);
            ++*tensors;
        }
    return n;
}

/* What a device sends to others of its stage: forward and backward of a micro-batch, each call made once; or in updates. */
static Bytes team_bytes(const Model *m, const Graph *g, bool update)
{
    Bytes sum = 0;
    for (int i = 0; i < g->op.n; i++)
        sum += (g->op.at[i].phase == PH_U) == update ? cost_team_bytes(m, g, &g->op.at[i]) : 0;
    return sum;
}

void team_totals(FILE *f, const Model *m, const Graph *g)
{
    fprintf(f, "%d devices share each stage; one of them, in all stages together\n", g->team);
    line(f, "has parameters, with their copies", state_bytes(g, S_PARAM, S_COPY), "bytes");
    line(f, "has gradients", state_bytes(g, S_GRAD, S_GRAD), "bytes");
    line(f, "has moments", state_bytes(g, S_MOMENT1, S_DRIFT), "bytes");
    line(f, "has activations for backward, at most", saved_bytes(g), "bytes a micro-batch");
    line(f, "sends for sums", team_bytes(m, g, false), "bytes a micro-batch");
    line(f, "sends for norms", team_bytes(m, g, true), "bytes a step");
}

void graph_totals(FILE *f, const Graph *g)
{
    int64_t tensors, still, numbers = parameters(g, &tensors, false), frozen = parameters(g, &still, true);
    struct { int64_t op[4], flop[4]; } sum = {{0}, {0}};
    for (EACH(const Op, o, g->op)) {
        sum.op[o->phase]++;
        sum.flop[o->phase] += o->flop;
    }
    int64_t micro = sum.flop[PH_F] + sum.flop[PH_I] + sum.flop[PH_W];
    fprintf(f, "%s: %s a micro-batch, %s a step, %s\n", g->name, count_text(g->batch, "sample"),
            count_text(g->micro, "micro-batch"), type_name(g->compute));
    line(f, "operators, forward", sum.op[PH_F], "");
    line(f, "operators, input gradient", sum.op[PH_I], "");
    line(f, "operators, weight gradient", sum.op[PH_W], "");
    line(f, "operators, update", sum.op[PH_U], "");
    line(f, "parameters", numbers, "");
    line(f, "parameter tensors", tensors, "");
    if (still > 0) {
        line(f, "of these frozen, parameters", frozen, "");
        line(f, "of these frozen, tensors", still, "");
    }
    line(f, "parameters, with their copies", state_bytes(g, S_PARAM, S_COPY), "bytes");
    line(f, "gradients", state_bytes(g, S_GRAD, S_GRAD), "bytes");
    line(f, "moments", state_bytes(g, S_MOMENT1, S_DRIFT), "bytes");
    line(f, "activations for backward, at most", saved_bytes(g), "bytes a micro-batch");
    int64_t products = 0;               /* matrix products and convolutions forward, as papers count them */
    for (int i = 0; i < g->nf; i++)
        products += row(g->op.at[i].row)->product ? g->op.at[i].flop - g->op.at[i].pass_flop : 0;
    line(f, "multiply-adds of products, forward", products / 2 / g->batch, "a sample");
    line(f, "arithmetic, forward", sum.flop[PH_F], "FLOP a micro-batch");
    line(f, "arithmetic, with backward", micro, "FLOP a micro-batch");
    line(f, "arithmetic, a step", micro * g->micro + sum.flop[PH_U], "FLOP");
}
