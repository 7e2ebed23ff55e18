/* SPDX-License-Identifier: Apache-2.0
 *
 * unit_fuse: what fuse joins and what not, against lists written by hand from the rules in gen/rewrite/fuse.c and grad.c.
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
        fprintf(stderr, "unit_fuse: %s\n  want %s\n  got  %s\n", what, want, got);
}

static void number(const char *what, int64_t want, int64_t got)
{
    check(want == got, what, strf("%lld", (long long)want), strf("%lld", (long long)got));
}

/* Joined: s1 and s2, by either operand; s4, of one tensor with itself.  Not: d0, before a norm; t, since s2 has its addition;
 * d3, which is read twice by one addition; d5, with an operator between; d6, which is read by another one too; q's gradient
 * and its addition, which belongs to z: another chunk may hold that. */
static const char yaml[] =
    "dpgen: 1\n"
    "model:\n"
    "  name: tiny\n"
    "  dims: {V: 11, T: 3, D: 4}\n"
    "  inputs:\n"
    "    ids: {shape: [B, T], dtype: i32, range: [0, V]}\n"
    "    want: {shape: [B, T], dtype: i32, range: [0, V]}\n"
    "    noise: {shape: [B, T, D], dtype: f32}\n"
    "  graph:\n"
    "    - {op: Embedding, name: e, in: ids, rows: V, out: D}\n"
    "    - {op: Dropout, name: d0, p: 0.1, as: d0}\n"
    "    - {op: Add, name: z, in: [d0, noise]}\n"
    "    - {op: Dropout, name: q, p: 0.1, as: q}\n"
    "    - {op: LayerNorm, name: n, in: d0}\n"
    "    - {op: Linear, name: w, out: D}\n"
    "    - {op: Dropout, name: d1, p: 0.1}\n"
    "    - {op: Add, name: s1, in: [_, d0], as: s1}\n"
    "    - {op: RMSNorm, name: r}\n"
    "    - {op: Linear, name: v, out: D}\n"
    "    - {op: Dropout, name: d2, p: 0.1}\n"
    "    - {op: Add, name: s2, in: [s1, _]}\n"
    "    - {op: Add, name: t, in: [_, d0]}\n"
    "    - {op: Dropout, name: d3, p: 0.1}\n"
    "    - {op: Add, name: s3, in: [_, _], as: s3}\n"
    "    - {op: Dropout, name: d4, p: 0.1}\n"
    "    - {op: Add, name: s4, in: [_, s3], as: s4}\n"
    "    - {op: Dropout, name: d5, p: 0.1, as: d5}\n"
    "    - {op: Gelu, name: g, in: s4}\n"
    "    - {op: Add, name: s5, in: [d5, _], as: s5}\n"
    "    - {op: LayerNorm, name: m}\n"
    "    - {op: Dropout, name: d6, p: 0.1, as: d6}\n"
    "    - {op: Add, name: s6, in: [_, s5]}\n"
    "    - {op: Mul, name: p, in: [_, d6]}\n"
    "    - {op: Mul, name: o, in: [_, q]}\n"
    "    - {op: Linear, name: head, out: V, bias: false}\n"
    "    - {op: SoftmaxCrossEntropy, name: l, targets: want, ignore: 7, as: l}\n"
    "  loss: l\n"
    "train:\n"
    "  batch: {global: 8, micro: 2}\n"
    "  steps: 2\n"
    "  optimizer: {type: sgd, lr: 0.1}\n"
    "data:\n"
    "  train: {format: npy, arrays: {ids: a.npy, want: b.npy, noise: c.npy}}\n"
    "devices:\n"
    "  - {name: cpu, kind: cpu, kernels: portable, memory: 64MiB, threads: 1}\n"
    "plan: {stages: 1, %s}\n";

static const char *const joined[] = {
    "F e embedding_forward e ids e.weight",
    "F d0 dropout_forward d0 e 0",
    "F z add_forward z d0 noise",
    "F q dropout_forward q z 0",
    "F n layernorm_forward n n.mean n.rstd d0 n.weight n.bias",
    "F w linear_forward w n w.weight w.bias",
    "F s1 dropout_forward s1 w d0",
    "F r rmsnorm_forward r r.rstd s1 r.weight",
    "F v linear_forward v r v.weight v.bias",
    "F s2 dropout_forward s2 v s1",
    "F t add_forward t s2 d0",
    "F d3 dropout_forward d3 t 0",
    "F s3 add_forward s3 d3 d3",
    "F s4 dropout_forward s4 s3 s3",
    "F d5 dropout_forward d5 s4 0",
    "F g gelu_forward g s4",
    "F s5 add_forward s5 d5 g",
    "F m layernorm_forward m m.mean m.rstd s5 m.weight m.bias",
    "F d6 dropout_forward d6 m 0",
    "F s6 add_forward s6 d6 s5",
    "F p mul_forward p s6 d6",
    "F o mul_forward o p q",
    "F head linear_forward head o head.weight 0",
    "F l xent_forward l l.lse head want",
    "F loss_report loss_report l",
    "I l loss_seed d.l",
    "I l xent_backward d.head d.l head l.lse want",
    "I head linear_backward_x d.o d.head head.weight",
    "I o mul_backward d.p d.q d.o p q",
    "I p mul_backward d.s6 d.d6.t1 d.p s6 d6",
    "I s6 grad_add d.d6 d.d6.t1 d.s6",
    "I d6 dropout_forward d.m d.d6 0",
    "I m layernorm_backward d.s5 m.weight.grad.0 m.bias.grad.0 d.m s5 m.weight m.mean m.rstd d.s6",
    "I g gelu_backward d.s4.t1 d.s5 s4",
    "I d5 dropout_forward d.s4 d.s5 d.s4.t1",
    "I s4 dropout_forward d.s3 d.s4 d.s4",
    "I s3 grad_add d.d3 d.s3 d.s3",
    "I d3 dropout_forward d.t d.d3 0",
    "I s2 dropout_forward d.v d.t 0",
    "I v linear_backward_x d.r d.v v.weight",
    "I r rmsnorm_backward d.s1 r.weight.grad.0 d.r s1 r.weight r.rstd d.t",
    "I s1 grad_add d.d0.s2 d.t d.s1",
    "I s1 dropout_forward d.w d.s1 0",
    "I w linear_backward_x d.n d.w w.weight",
    "I n layernorm_backward d.d0.s3 n.weight.grad.0 n.bias.grad.0 d.n d0 n.weight n.mean n.rstd d.d0.s2",
    "I q dropout_forward d.z d.q 0",
    "I z grad_add d.d0 d.d0.s3 d.z",
    "I d0 dropout_forward d.e d.d0 0",
    NULL
};

/* ---- a Relu and the BatchNorm before it --------------------------------------------------------------------------- */

/* Joined: r1, without an addition; r2 and r4, with one, by either operand.  The shortcut of r4 is what its norm reads: its term
 * is there before that of the norm, and no call adds to a tensor that it makes itself.  a8: a draw for whole samples, and its
 * addition; and the gradient of g8, with what m8 gives to s8.  Not: r3, since a3 is read twice, but a3
 * takes in n3; r5, whose operand is no norm; r6, with an operator between. */
static const char images[] =
    "dpgen: 1\n"
    "model:\n"
    "  name: tiny\n"
    "  dims: {C: 4}\n"
    "  inputs:\n"
    "    x: {shape: [B, 3, 3, C], dtype: f32}\n"
    "    want: {shape: [B], dtype: i32, range: [0, 5]}\n"
    "  graph:\n"
    "    - {op: Conv, name: c1, in: x, out: C, kernel: 1, bias: false}\n"
    "    - {op: BatchNorm, name: n1}\n"
    "    - {op: Relu, name: r1, as: r1}\n"
    "    - {op: Conv, name: c2, out: C, kernel: 1, bias: false}\n"
    "    - {op: BatchNorm, name: n2}\n"
    "    - {op: Add, name: a2, in: [_, r1]}\n"
    "    - {op: Relu, name: r2, as: r2}\n"
    "    - {op: BatchNorm, name: n3}\n"
    "    - {op: Add, name: a3, in: [r1, _], as: a3}\n"
    "    - {op: Relu, name: r3, as: r3}\n"
    "    - {op: Add, name: s3, in: [r3, a3], as: s3}\n"
    "    - {op: BatchNorm, name: n4}\n"
    "    - {op: Add, name: a4, in: [s3, _]}\n"
    "    - {op: Relu, name: r4}\n"
    "    - {op: Clip, name: k}\n"
    "    - {op: Relu, name: r5, as: r5}\n"
    "    - {op: BatchNorm, name: n6, as: n6}\n"
    "    - {op: Clip, name: k6, in: r5, as: k6}\n"
    "    - {op: Relu, name: r6, in: n6}\n"
    "    - {op: Add, name: a6, in: [_, k6]}\n"
    "    - {op: BatchNorm, name: n7}\n"
    "    - {op: Clip, name: k7, min: -1, max: 1, as: k7}\n"
    "    - {op: BatchNorm, name: n8}\n"
    "    - {op: Silu, name: s8, as: s8}\n"
    "    - {op: GlobalAvgPool, name: g8, keep: true}\n"
    "    - {op: Mul, name: m8, in: [s8, _]}\n"
    "    - {op: Dropout, name: q8, p: 0.1, shared: [1, 2, 3]}\n"
    "    - {op: Add, name: a8, in: [_, k7]}\n"
    "    - {op: Mean, name: p, axis: [1, 2]}\n"
    "    - {op: Linear, name: l, out: 5}\n"
    "    - {op: SoftmaxCrossEntropy, name: e, targets: want, as: e}\n"
    "  loss: e\n"
    "train:\n"
    "  batch: {global: 4, micro: 2}\n"
    "  steps: 2\n"
    "  optimizer: {type: sgd, lr: 0.1}\n"
    "data:\n"
    "  train: {format: npy, arrays: {x: a.npy, want: b.npy}}\n"
    "devices:\n"
    "  - {name: cpu, kind: cpu, kernels: portable, memory: 64MiB, threads: 1}\n"
    "plan: {stages: 1, %s}\n";

static const char *const joined_images[] = {
    "F c1 conv_forward c1 x c1.weight 0",
    "F n1.stat batchstat_forward n1.stat n1.stat.var c1 n1.running_mean n1.running_var",
    "F r1 batchnorm_relu_forward r1 c1 n1.stat n1.stat.var n1.weight n1.bias",
    "F c2 conv_forward c2 r1 c2.weight 0",
    "F n2.stat batchstat_forward n2.stat n2.stat.var c2 n2.running_mean n2.running_var",
    "F r2 batchnorm_add_relu_forward r2 r1 c2 n2.stat n2.stat.var n2.weight n2.bias",
    "F n3.stat batchstat_forward n3.stat n3.stat.var r2 n3.running_mean n3.running_var",
    "F a3 batchnorm_forward a3 r2 n3.stat n3.stat.var n3.weight n3.bias r1",
    "F r3 relu_forward r3 a3",
    "F s3 add_forward s3 r3 a3",
    "F n4.stat batchstat_forward n4.stat n4.stat.var s3 n4.running_mean n4.running_var",
    "F r4 batchnorm_add_relu_forward r4 s3 s3 n4.stat n4.stat.var n4.weight n4.bias",
    "F k clip_forward k r4",
    "F r5 relu_forward r5 k",
    "F n6.stat batchstat_forward n6.stat n6.stat.var r5 n6.running_mean n6.running_var",
    "F n6 batchnorm_forward n6 r5 n6.stat n6.stat.var n6.weight n6.bias 0",
    "F k6 clip_forward k6 r5",
    "F r6 relu_forward r6 n6",
    "F a6 add_forward a6 r6 k6",
    "F n7.stat batchstat_forward n7.stat n7.stat.var a6 n7.running_mean n7.running_var",
    "F k7 batchnorm_clip_forward k7 a6 n7.stat n7.stat.var n7.weight n7.bias",
    "F n8.stat batchstat_forward n8.stat n8.stat.var k7 n8.running_mean n8.running_var",
    "F s8 batchnorm_silu_forward s8 k7 n8.stat n8.stat.var n8.weight n8.bias",
    "F g8 reduce_forward g8 s8",
    "F m8 mul_middle_forward m8 s8 g8",
    "F a8 dropout_shared_forward a8 m8 k7",
    "F p reduce_forward p a8",
    "F l linear_forward l p l.weight l.bias",
    "F e xent_forward e e.lse l want",
    "F loss_report loss_report e",
    "I e loss_seed d.e",
    "I e xent_backward d.l d.e l e.lse want",
    "I l linear_backward_x d.p d.l l.weight",
    "I p reduce_backward d.a8 d.p 0",
    "I a8 dropout_shared_forward d.m8 d.a8 0",
    "I m8 mul_middle_backward d.s8.t1 d.g8 d.m8 s8 g8",
    "I g8 reduce_backward d.s8 d.g8 d.s8.t1",
    "I s8 batchnorm_silu_backward d.k7 n8.weight.grad.0 n8.bias.grad.0 d.s8 k7 n8.stat n8.stat.var n8.weight n8.bias d.a8",
    "I k7 batchnorm_clip_backward d.a6 n7.weight.grad.0 n7.bias.grad.0 d.k7 a6 n7.stat n7.stat.var n7.weight n7.bias 0",
    "I r6 relu_backward d.n6 d.a6 r6",
    "I k6 clip_backward d.r5.t1 d.a6 r5",
    "I n6 batchnorm_backward d.r5 n6.weight.grad.0 n6.bias.grad.0 d.n6 r5 n6.stat n6.stat.var n6.weight d.r5.t1",
    "I r5 relu_backward d.k d.r5 r5",
    "I k clip_backward d.r4 d.k r4",
    "I r4 batchnorm_add_relu_backward d.s3.t2 d.s3.t1 n4.weight.grad.0 n4.bias.grad.0 d.r4 r4 s3 n4.stat n4.stat.var "
    "n4.weight 0",
    "I r4 grad_add d.s3 d.s3.t1 d.s3.t2",
    "I r3 relu_backward d.a3.t2 d.s3 r3",
    "I r3 grad_add d.a3 d.s3 d.a3.t2",
    "I a3 batchnorm_backward d.r2 n3.weight.grad.0 n3.bias.grad.0 d.a3 r2 n3.stat n3.stat.var n3.weight 0",
    "I r2 batchnorm_add_relu_backward d.c2 d.r1.t2 n2.weight.grad.0 n2.bias.grad.0 d.r2 r2 c2 n2.stat n2.stat.var n2.weight 0",
    "I r2 grad_add d.r1.s2 d.a3 d.r1.t2",
    "I c2 conv_backward_x d.r1.t3 d.c2 c2.weight",
    "I c2 grad_add d.r1 d.r1.s2 d.r1.t3",
    "I r1 batchnorm_relu_backward d.c1 n1.weight.grad.0 n1.bias.grad.0 d.r1 c1 n1.stat n1.stat.var n1.weight n1.bias 0",
    NULL
};

/* ---- the tests ----------------------------------------------------------------------------------------------------- */

static Graph *graph_of(const char *form, const char *plan, bool with)
{
    static const Overrides none;
    const char *text = strf(form, plan);
    const Model *m = model(load_text("tiny.yaml", text, strlen(text)), "tiny.yaml", &none);
    Graph *g = build(m);
    shape(g, m);
    if (with)
        join_chains(g, m);
    grad(g, m);
    if (with)
        fuse(g, m);
    check_graph(g);
    return g;
}

static void test_lines(const Graph *g, const char *const *want)
{
    for (int i = 0; i < g->nb; i++) {
        if (g->op.at[i].phase == PH_W)
            continue;
        const char *got = line_of(g, &g->op.at[i]);
        check(*want && !strcmp(*want, got), "an operator", *want ? *want : "(end)", got);
        want += *want != NULL;
    }
    check(!*want, "the end", "(end)", *want ? *want : "");
}

static const Op *op_of(const Graph *g, Phase phase, const char *name)
{
    for (int i = 0; i < g->op.n; i++)
        if (g->op.at[i].phase == phase && !strcmp(g->op.at[i].name, name))
            return &g->op.at[i];
    die("no %s", name);
}

/* B 2, T 3, D 4: 24 numbers, 6 rows. */
static void test_numbers(const Graph *g, const Graph *apart)
{
    const Op *s1 = op_of(g, PH_F, "s1"), *n = op_of(g, PH_I, "n");
    number("arithmetic of dropout and of the addition", 24 + 24, s1->flop);
    number("bytes: two operands and the sum", 3 * 4 * 24, s1->moved);
    number("arithmetic of a norm's gradient, and one addition", (16 + 1) * 24, n->flop);
    number("bytes: dy, x, the sum so far, the sum; weight, mean, rstd; two gradients, read and written",
           4 * 4 * 24 + 4 * 4 + 2 * 4 * 6 + 2 * 2 * 4 * 4, n->moved);
    check(s1->with && !strcmp(s1->with, "d1"), "what s1 has taken in", "d1", s1->with ? s1->with : "nothing");
    number("it stands where the addition does", op_of(apart, PH_F, "s1")->loc.line, s1->loc.line);
    number("its backward where dropout does", op_of(apart, PH_I, "d2")->loc.line, op_of(g, PH_I, "s2")->loc.line);
    number("who counts targets", op_of(g, PH_F, "l")->fwd, g->count.at[0].op);
    check(!strcmp(g->tensor.at[g->loss].name, "l"), "the loss", "l", g->tensor.at[g->loss].name);
    number("three forward and five backward operators less", apart->op.n - 8, g->op.n);
    number("tensors", apart->tensor.n - 8, g->tensor.n);
    for (int s = 0; s < g->state.n; s++) {
        const State *x = &g->state.at[s], *y = &apart->state.at[s];
        check(x->op < 0 ? y->op < 0 : !strcmp(g->op.at[x->op].name, apart->op.at[y->op].name), x->name, "the same operator",
              "another one");
    }
}

/* Names of the forward operators that have taken in others under a section plan. */
static void check_names(const char *form, const char *plan, const char *want)
{
    const Graph *g = graph_of(form, plan, true);
    const char *got = "";
    for (int o = 0; o < g->nf; o++)
        if (g->op.at[o].with)
            got = strf("%s%s ", got, g->op.at[o].name);
    check(!strcmp(want, got), plan, want, got);
}

static void test_names(void)
{
    static const struct { const char *plan, *want; } of_images[] = {
        {"fuse: auto", "r1 r2 a3 r4 k7 s8 a8 "}, {"fuse: none", ""}, {"recompute: [n2]", "r1 a3 r4 k7 s8 a8 "},
        {"recompute: [a4]", "r1 r2 a3 a4 k7 s8 a8 "},
        {"recompute: [r4]", "r1 r2 a3 r4 k7 s8 a8 "}, {"constraints: [{cut_after: n1.stat}]", "r1 r2 a3 r4 k7 s8 a8 "},
        {"constraints: [{cut_after: n1}]", "r2 a3 r4 k7 s8 a8 "},
    };
    static const struct { const char *plan, *want; } cases[] = {
        {"fuse: auto", "s1 s2 s4 "}, {"fuse: none", ""}, {"recompute: [d1]", "s2 s4 "}, {"recompute: [s2, d4]", "s1 s2 "},
        {"recompute: ['*']", "s1 s2 s4 "}, {"recompute: ['d*']", ""}, {"offload: [d2]", "s1 s4 "},
        {"constraints: [{cut_after: d1}]", "s2 s4 "}, {"constraints: [{cut_after: s1}]", "s1 s2 s4 "},
        {"constraints: [{no_cut: d4}]", "s1 s2 "}, {"constraints: [{keep: [d1, s1]}]", "s2 s4 "},
        {"constraints: [{same_stage: [w, s1]}, {same_stage: [d2, s2]}]", "s1 s4 "},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_names(yaml, cases[i].plan, cases[i].want);
    for (size_t i = 0; i < sizeof of_images / sizeof *of_images; i++)
        check_names(images, of_images[i].plan, of_images[i].want);
}

/* With nothing to join a graph stays as it was. */
static void test_none(const Graph *apart)
{
    const Graph *g = graph_of(yaml, "fuse: none", true);
    number("operators", apart->op.n, g->op.n);
    for (int i = 0; i < g->op.n && i < apart->op.n; i++)
        check(!strcmp(line_of(apart, &apart->op.at[i]), line_of(g, &g->op.at[i])), "fuse: none",
              line_of(apart, &apart->op.at[i]), line_of(g, &g->op.at[i]));
}

int main(void)
{
    const Graph *g = graph_of(yaml, "fuse: auto", true), *apart = graph_of(yaml, "fuse: auto", false);
    test_lines(g, joined);
    test_lines(graph_of(images, "fuse: auto", true), joined_images);
    test_numbers(g, apart);
    test_names();
    test_none(apart);
    mem_free_all();
    printf("unit_fuse: %d passed, %d failed\n", passed, failed);
    return failed > 0;
}
