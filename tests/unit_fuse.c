/* SPDX-License-Identifier: Apache-2.0
 *
 * unit_fuse: what fuse joins and what not, against lists written by hand from the rules in gen/front/fuse.c and grad.c.
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

static Graph *graph_of(const char *plan, bool with)
{
    static const Overrides none;
    const char *text = strf(yaml, plan);
    const Model *m = model(load_text("tiny.yaml", text, strlen(text)), "tiny.yaml", &none);
    Graph *g = build(m);
    shape(g, m);
    grad(g, m);
    if (with)
        fuse(g, m);
    check_graph(g);
    return g;
}

static void test_lines(const Graph *g)
{
    const char *const *want = joined;
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

/* Names of the additions that are joined under a section plan. */
static void test_names(void)
{
    static const struct { const char *plan, *want; } cases[] = {
        {"fuse: auto", "s1 s2 s4 "}, {"fuse: none", ""}, {"recompute: [d1]", "s2 s4 "}, {"recompute: [s2, d4]", "s1 s2 "},
        {"recompute: ['*']", "s1 s2 s4 "}, {"recompute: ['d*']", ""}, {"offload: [d2]", "s1 s4 "},
        {"constraints: [{cut_after: d1}]", "s2 s4 "}, {"constraints: [{cut_after: s1}]", "s1 s2 s4 "},
        {"constraints: [{no_cut: d4}]", "s1 s2 "}, {"constraints: [{keep: [d1, s1]}]", "s2 s4 "},
        {"constraints: [{same_stage: [w, s1]}, {same_stage: [d2, s2]}]", "s1 s4 "},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const Graph *g = graph_of(cases[i].plan, true);
        const char *got = "";
        for (int o = 0; o < g->nf; o++)
            if (g->op.at[o].with)
                got = strf("%s%s ", got, g->op.at[o].name);
        check(!strcmp(cases[i].want, got), cases[i].plan, cases[i].want, got);
    }
}

/* With nothing to join a graph stays as it was. */
static void test_none(const Graph *apart)
{
    const Graph *g = graph_of("fuse: none", true);
    number("operators", apart->op.n, g->op.n);
    for (int i = 0; i < g->op.n && i < apart->op.n; i++)
        check(!strcmp(line_of(apart, &apart->op.at[i]), line_of(g, &g->op.at[i])), "fuse: none",
              line_of(apart, &apart->op.at[i]), line_of(g, &g->op.at[i]));
}

int main(void)
{
    const Graph *g = graph_of("fuse: auto", true), *apart = graph_of("fuse: auto", false);
    test_lines(g);
    test_numbers(g, apart);
    test_names();
    test_none(apart);
    mem_free_all();
    printf("unit_fuse: %d passed, %d failed\n", passed, failed);
    return failed > 0;
}
