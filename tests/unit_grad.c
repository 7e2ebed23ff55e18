/* SPDX-License-Identifier: Apache-2.0
 *
 * unit_grad: the backward half of a small model, against lists written by hand from the rules in gen/rewrite/grad.c and
 * update.c: a table with two uses, a value that one operator takes twice and another once, two losses of one value.
 */
#include "plan.h"
#include "line_of.h"
#include <stdlib.h>
#include <string.h>

static int passed, failed;

static void check(bool ok, const char *what, const char *want, const char *got)
{
    passed += ok;
    failed += !ok;
    if (!ok)
        fprintf(stderr, "unit_grad: %s\n  want %s\n  got  %s\n", what, want, got);
}

static const char yaml[] =
    "dpgen: 1\n"
    "model:\n"
    "  name: tiny\n"
    "  dims: {V: 11, T: 3, D: 4}\n"
    "  inputs:\n"
    "    ids: {shape: [B, T], dtype: i32, range: [0, V]}\n"
    "    want: {shape: [B, T], dtype: i32, range: [0, V]}\n"
    "  graph:\n"
    "    - {op: Embedding, name: e, in: ids, rows: V, out: D}\n"
    "    - {op: LayerNorm, name: n, as: n}\n"
    "    - {op: Linear, name: w, in: n, out: D, as: w}\n"
    "    - {op: Linear, name: again, in: w, out: D, bias: false, tie: w, as: again}\n"
    "    - {op: Linear, name: third, in: n, out: D, tie: w, as: third}\n"
    "    - {op: Add, name: twice, in: [n, n], as: twice}\n"
    "    - {op: Dropout, name: drop, in: twice, p: 0.25, as: drop}\n"
    "    - {op: Add, name: s, in: [drop, again]}\n"
    "    - {op: Mul, name: p, in: [_, third]}\n"
    "    - {op: Linear, name: head, out: V, bias: false, tie: e, as: head}\n"
    "    - {op: SoftmaxCrossEntropy, name: l1, in: head, targets: want, as: l1}\n"
    "    - {op: SoftmaxCrossEntropy, name: l2, in: head, targets: want, ignore: 7, as: l2}\n"
    "    - {op: Add, name: loss, in: [l1, l2], as: loss}\n"
    "  loss: loss\n"
    "train:\n"
    "  precision: {compute: %s}\n"
    "  batch: {global: 8, micro: 2}\n"
    "  steps: 2\n"
    "%s"
    "data:\n"
    "  train: {format: npy, arrays: {ids: a.npy, want: b.npy}}\n"
    "devices:\n"
    "  - {name: cpu, kind: cpu, kernels: portable, memory: 64MiB, threads: 1}\n"
    "plan: {stages: 1, schedule: gpipe}\n";

static const Graph *graph_of(const char *compute, const char *train)
{
    static const Overrides none;
    const char *text = strf(yaml, compute, train);
    const Model *m = model(load_text("tiny.yaml", text, strlen(text)), "tiny.yaml", &none);
    Graph *g = build(m);
    shape(g, m);
    grad(g, m);
    check_graph(g);
    return g;
}

static void same(const char *what, const Graph *g, int from, const char *const *want)
{
    int i = from;
    for (; *want; want++, i++) {
        const char *got = i < g->op.n ? line_of(g, &g->op.at[i]) : "(end)";
        check(!strcmp(*want, got), what, *want, got);
    }
    check(i == g->op.n, what, "(end)", i < g->op.n ? line_of(g, &g->op.at[i]) : "(end)");
}

/* AdamW, one norm.  Readers of n: w, third, twice (both operands); of head: l1, l2; of d.loss both losses. */
static const char *const adamw[] = {
    "I loss loss_seed d.loss",
    "I l2 xent_backward d.head.t1 d.loss head l2.lse want",
    "I l1 xent_backward d.head.t2 d.loss head l1.lse want",
    "I l1 grad_add d.head d.head.t1 d.head.t2",
    "I head linear_backward_x d.p d.head e.weight",
    "W head linear_backward_w e.weight.grad.1 0 d.head p",
    "I p mul_backward d.s d.third d.p s third",
    "I drop dropout_forward d.twice d.s 0",
    "I twice grad_add d.n.s2 d.twice d.twice",
    "I third linear_backward_x d.n.t3 d.third w.weight",
    "I third grad_add d.n.s3 d.n.s2 d.n.t3",
    "W third linear_backward_w w.weight.grad.2 w.bias.grad.1 d.third n",
    "I again linear_backward_x d.w d.s w.weight",
    "W again linear_backward_w w.weight.grad.1 0 d.s w",
    "I w linear_backward_x d.n.t4 d.w w.weight",
    "I w grad_add d.n d.n.s3 d.n.t4",
    "W w linear_backward_w w.weight.grad.0 w.bias.grad.0 d.w n",
    "I n layernorm_backward d.e n.weight.grad.0 n.bias.grad.0 d.n e n.weight n.mean n.rstd 0",
    "W e embedding_backward e.weight.grad.0 d.e ids",
    "U e.weight tie_add e.weight.grad.0 e.weight.grad.1",
    "U e.weight norm_partial norm e.weight.grad.0",
    "U n.weight norm_partial norm n.weight.grad.0",
    "U n.bias norm_partial norm n.bias.grad.0",
    "U w.weight tie_add w.weight.grad.1 w.weight.grad.2",
    "U w.weight tie_add w.weight.grad.0 w.weight.grad.1",
    "U w.weight norm_partial norm w.weight.grad.0",
    "U w.bias tie_add w.bias.grad.0 w.bias.grad.1",
    "U w.bias norm_partial norm w.bias.grad.0",
    "U clip norm_total clip norm",
    "U e.weight adamw_update e.weight 0 e.weight.grad.0 e.weight.m e.weight.v clip",
    "U n.weight adamw_update n.weight 0 n.weight.grad.0 n.weight.m n.weight.v clip",
    "U n.bias adamw_update n.bias 0 n.bias.grad.0 n.bias.m n.bias.v clip",
    "U w.weight adamw_update w.weight 0 w.weight.grad.0 w.weight.m w.weight.v clip",
    "U w.bias adamw_update w.bias 0 w.bias.grad.0 w.bias.m w.bias.v clip",
    NULL
};

/* SGD without momentum, in bf16, a norm each: norms of parameters that are read as f32 have no copy to write. */
static const char *const sgd[] = {
    "U e.weight tie_add e.weight.grad.0 e.weight.grad.1",
    "U e.weight norm_partial e.weight.norm e.weight.grad.0",
    "U n.weight norm_partial n.weight.norm n.weight.grad.0",
    "U n.bias norm_partial n.bias.norm n.bias.grad.0",
    "U w.weight tie_add w.weight.grad.1 w.weight.grad.2",
    "U w.weight tie_add w.weight.grad.0 w.weight.grad.1",
    "U w.weight norm_partial w.weight.norm w.weight.grad.0",
    "U w.bias tie_add w.bias.grad.0 w.bias.grad.1",
    "U w.bias norm_partial w.bias.norm w.bias.grad.0",
    "U e.weight norm_total e.weight.clip e.weight.norm 0",
    "U n.weight norm_total n.weight.clip n.weight.norm 0",
    "U n.bias norm_total n.bias.clip n.bias.norm 0",
    "U w.weight norm_total w.weight.clip w.weight.norm 0",
    "U w.bias norm_total w.bias.clip w.bias.norm 0",
    "U e.weight sgd_update e.weight e.weight.copy e.weight.grad.0 0 e.weight.clip",
    "U n.weight sgd_update n.weight 0 n.weight.grad.0 0 n.weight.clip",
    "U n.bias sgd_update n.bias 0 n.bias.grad.0 0 n.bias.clip",
    "U w.weight sgd_update w.weight w.weight.copy w.weight.grad.0 0 w.weight.clip",
    "U w.bias sgd_update w.bias w.bias.copy w.bias.grad.0 0 w.bias.clip",
    NULL
};

/* No clipping: neither norm nor factor. */
static const char *const plain[] = {
    "U e.weight tie_add e.weight.grad.0 e.weight.grad.1",
    "U w.weight tie_add w.weight.grad.1 w.weight.grad.2",
    "U w.weight tie_add w.weight.grad.0 w.weight.grad.1",
    "U w.bias tie_add w.bias.grad.0 w.bias.grad.1",
    "U e.weight sgd_update e.weight 0 e.weight.grad.0 e.weight.m 0",
    "U n.weight sgd_update n.weight 0 n.weight.grad.0 n.weight.m 0",
    "U n.bias sgd_update n.bias 0 n.bias.grad.0 n.bias.m 0",
    "U w.weight sgd_update w.weight 0 w.weight.grad.0 w.weight.m 0",
    "U w.bias sgd_update w.bias 0 w.bias.grad.0 w.bias.m 0",
    NULL
};

static const Op *op_of(const Graph *g, Phase phase, const char *name, const char *call)
{
    for (int i = 0; i < g->op.n; i++)
        if (g->op.at[i].phase == phase && !strcmp(g->op.at[i].name, name) && !strcmp(g->op.at[i].call, call))
            return &g->op.at[i];
    die("no %s %s", name, call);
}

static const Arg *arg_of(const Op *o, const char *word)
{
    for (int i = 0; i < o->arg.n; i++)
        if (!strcmp(o->arg.at[i].token, word))
            return &o->arg.at[i];
    die("%s has no word %s", o->name, word);
}

static void number(const char *what, int64_t want, int64_t got)
{
    check(want == got, what, strf("%lld", (long long)want), strf("%lld", (long long)got));
}

/* B 2, T 3, D 4, V 11: 6 rows. */
static void test_numbers(const Graph *g)
{
    number("flop of an input gradient, 2 rows in out", 2 * 6 * 4 * 11,
           op_of(g, PH_I, "head", "linear_backward_x")->flop);
    number("flop of a weight gradient", 2 * 6 * 4 * 11, op_of(g, PH_W, "head", "linear_backward_w")->flop);
    number("bytes of an addition: two terms and the sum", 4 * 3 * 6 * 11, op_of(g, PH_I, "l1", "grad_add")->moved);
    number("bytes of a weight gradient: both operands, the sum twice", 4 * (6 * 11 + 6 * 4 + 2 * 11 * 4),
           op_of(g, PH_W, "head", "linear_backward_w")->moved);
    number("n of an update", 11 * 4, arg_of(op_of(g, PH_U, "e.weight", "adamw_update"), "n")->i);
    number("a table decays", 1, arg_of(op_of(g, PH_U, "e.weight", "adamw_update"), "decay")->i);
    number("a norm does not", 0, arg_of(op_of(g, PH_U, "n.weight", "adamw_update"), "decay")->i);
    number("place of w.weight among the norms", 3, arg_of(op_of(g, PH_U, "w.weight", "norm_partial"), "index")->i);
    number("how many norms", 5, arg_of(op_of(g, PH_U, "clip", "norm_total"), "count")->i);
    number("an addition belongs to the smaller reader", op_of(g, PH_F, "w", "linear_forward")->fwd,
           op_of(g, PH_I, "w", "grad_add")->fwd);
    number("updates begin behind backward", 1, g->op.at[g->nb].phase == PH_U && g->op.at[g->nb - 1].phase == PH_W);
}

/* In bf16 losses and their gradients stay f32, and so do accumulators. */
static void test_types(const Graph *g)
{
    for (int i = 0; i < g->tensor.n; i++) {
        const Tensor *t = &g->tensor.at[i];
        if (t->kind == T_GRAD)
            number(t->name, !strcmp(t->name, "d.loss") ? F32 : BF16, t->type);
    }
    for (int i = 0; i < g->state.n; i++)
        if (g->state.at[i].kind == S_GRAD)
            number(g->state.at[i].name, F32, g->state.at[i].type);
}

int main(void)
{
    static const char clipped[] =
        "  optimizer: {type: adamw, lr: 1e-3, weight_decay: 0.1, decay_only: matrices}\n  clip_norm: 1.0\n";
    const Graph *g = graph_of("f32", clipped);
    same("adamw", g, g->nf, adamw);
    test_numbers(g);
    g = graph_of("bf16", "  optimizer: {type: sgd, lr: 0.1}\n  clip_norm: 1.0\n  clip_scope: parameter\n");
    same("sgd, bf16, a norm each", g, g->nb, sgd);
    test_types(g);
    g = graph_of("f32", "  optimizer: {type: sgd, lr: 0.1, momentum: 0.9}\n");
    same("sgd, no clipping", g, g->nb, plain);
    mem_free_all();
    printf("unit_grad: %d passed, %d failed\n", passed, failed);
    return failed > 0;
}
