/* SPDX-License-Identifier: Apache-2.0
 *
 * unit_text: the text form of graphs and plans, and check_graph.
 *
 *   same      read(print(x)) prints the same bytes, after every pass of the front end, and for whole plans
 *   faults    a good graph with one thing changed: graph_fault() finds each
 *   mistakes  a good text with one word changed: status 3, the place, the cause
 *   noise     a good text with bytes lost, doubled or changed: read or refused, never a crash
 *
 * What ends the process is run in a child.
 */
#include "plan.h"
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int passed, failed;
static const char *scratch;         /* a file of this process */

static void check(bool ok, const char *what, const char *got)
{
    passed += ok;
    failed += !ok;
    if (!ok)
        fprintf(stderr, "unit_text: %s: %s\n", what, got ? got : "(nothing)");
}

/* ---- models ------------------------------------------------------------------------------------------------------ */

/* A parameter used three times, a value read three times and once twice by the same operator, two losses. */
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
    "    - {op: Add, name: twice, in: [n, n], as: twice}\n"
    "    - {op: Dropout, name: drop, in: twice, p: 0.25, as: drop}\n"
    "    - {op: Add, name: s, in: [drop, again], as: s}\n"
    "    - {op: Linear, name: head, in: s, out: V, bias: false, tie: e, as: head}\n"
    "    - {op: SoftmaxCrossEntropy, name: l1, in: head, targets: want, as: l1}\n"
    "    - {op: SoftmaxCrossEntropy, name: l2, in: head, targets: want, ignore: 7, as: l2}\n"
    "    - {op: LinearCrossEntropy, name: l3, in: w, targets: want, out: V, as: l3}\n"
    "    - {op: Add, name: l12, in: [l1, l2]}\n"
    "    - {op: Add, name: loss, in: [_, l3], as: loss}\n"
    "  loss: loss\n"
    "train:\n"
    "  precision: {compute: %s}\n"
    "  batch: {global: 8, micro: 2, groups: 2}\n"
    "  steps: 2\n"
    "  optimizer: {type: adamw, lr: 1e-3, weight_decay: 0.1, decay_only: matrices}\n"
    "  clip_norm: 1.0\n"
    "%s"
    "data:\n"
    "  train: {format: npy, arrays: {ids: a.npy, want: b.npy}}\n"
    "devices:\n"
    "  - {name: cpu, count: 2, kind: cpu, kernels: portable, memory: 64MiB, threads: 1}\n"
    "plan: {stages: 2, schedule: 1f1b, recompute: full}\n";

static Model *model_of(const char *compute, const char *more)
{
    static const Overrides none;
    const char *text = strf(yaml, compute, more);
    return model(load_text("tiny file.yaml", text, strlen(text)), "tiny file.yaml", &none);
}

static Graph *graph_of(const Model *m)
{
    Graph *g = build(m);
    shape(g, m);
    grad(g, m);
    fuse(g, m);
    g->model = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    g->calls = "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210";
    return g;
}

static const Plan *plan_of(const Graph *g, const Model *m)
{
    Plan *p = alloc(sizeof *p);
    Bytes *limit = alloc(2 * sizeof *limit);
    *p = (Plan){.g = g, .c = cost(g, m, NULL), .m = m, .schedule = "1f1b", .devices = 2, .chunks = 1, .key = "a=b, %\n"};
    limit[0] = limit[1] = m->devices.at[0].memory;
    for (int d = 0; d < 2; d++)
        PUSH(&p->dev)->limit = limit[d];
    if (order(p) || part(p, limit) || keep(p) || comm(p) || lower(p) || mem(p) || sim(p))
        die("the tiny model has no plan");
    return p;
}

/* ---- texts ------------------------------------------------------------------------------------------------------- */

static Text text_of(const Graph *g, const Plan *p)
{
    Text t;
    FILE *f = text_open(&t);
    if (p)
        print_plan(f, p, 0);
    else
        print_graph(f, g);
    text_close(&t);
    return t;
}

static void write_text(const char *at, size_t n)
{
    FILE *f = fopen(scratch, "w");
    if (!f || fwrite(at, 1, n, f) != n || fclose(f))
        die("cannot write %s", scratch);
}

/* read(print(x)) prints what print(x) did; of a plan where p is given. */
static void same(const char *what, const Graph *g, const Plan *p)
{
    Text a = text_of(g, p);
    write_text(a.at, a.n);
    Text b = p ? text_of(g, read_plan(scratch, g, NULL)) : text_of(read_graph(scratch), NULL);
    check(a.n == b.n && !memcmp(a.at, b.at, a.n), what, "not the same bytes when read and printed again");
}

static bool alike_loc(Loc a, Loc b)
{
    return !strcmp(diag_path(a), diag_path(b)) && a.line == b.line && a.col == b.col;
}

static bool alike_shape(const Shape *a, const Shape *b)
{
    return a->n == b->n && !memcmp(a->d, b->d, (size_t)a->n * sizeof *a->d);
}

static bool alike_tensor(const Tensor *a, const Tensor *b)
{
    return !strcmp(a->name, b->name) && a->kind == b->kind && a->type == b->type && a->bytes == b->bytes
        && a->op == b->op
        && a->of == b->of && alike_shape(&a->shape, &b->shape) && alike_loc(a->loc, b->loc);
}

static bool alike_state(const State *a, const State *b)
{
    bool init = a->kind != S_PARAM
        || (a->init.kind == b->init.kind && a->init.a == b->init.a && a->init.b == b->init.b);
    return !strcmp(a->name, b->name) && a->kind == b->kind && a->type == b->type && a->bytes == b->bytes && init
        && a->param == b->param && a->use == b->use && a->op == b->op && a->decay == b->decay
        && alike_shape(&a->shape, &b->shape) && alike_loc(a->loc, b->loc);
}

static bool alike_op(const Op *a, const Op *b)
{
    bool same = !strcmp(a->name, b->name) && !strcmp(a->layer, b->layer) && !strcmp(a->call, b->call)
        && a->row == b->row && a->phase == b->phase && a->fwd == b->fwd
        && !strcmp(a->with ? a->with : "", b->with ? b->with : "") && a->flop == b->flop && a->tmp == b->tmp
        && a->moved == b->moved && a->pass_flop == b->pass_flop && a->pass_moved == b->pass_moved
        && a->arg.n == b->arg.n && alike_loc(a->loc, b->loc);
    for (int i = 0; same && i < a->arg.n; i++) {
        const Arg *x = &a->arg.at[i], *y = &b->arg.at[i];
        bool refers = x->kind <= ARG_UPDATE;
        same = x->kind == y->kind && !strcmp(x->token, y->token)
            && (!refers || (x->index == y->index && x->state == y->state))
            && x->i == y->i && x->f == y->f;
    }
    return same;
}

static bool alike_count(const Count *a, const Count *b)
{
    return a->input == b->input && a->ignore == b->ignore && a->count == b->count && a->op == b->op
        && alike_loc(a->loc, b->loc);
}

/* What was read is what was printed, field by field: two tables that lack the same field would print the same bytes. */
static void test_alike(void)
{
    const Graph *a = graph_of(model_of("bf16", ""));
    Text t = text_of(a, NULL);
    write_text(t.at, t.n);
    const Graph *b = read_graph(scratch);
    bool same = !strcmp(a->name, b->name) && !strcmp(a->model, b->model) && !strcmp(a->calls, b->calls)
        && a->compute == b->compute && a->batch == b->batch && a->micro == b->micro
        && a->groups == b->groups && a->nf == b->nf && a->nb == b->nb && a->loss == b->loss && a->vals == b->vals
        && a->tensor.n == b->tensor.n && a->state.n == b->state.n && a->op.n == b->op.n && a->count.n == b->count.n;
    check(same, "a graph that was read", "has another head");
    for (int i = 0; same && i < a->tensor.n; i++)
        check(alike_tensor(&a->tensor.at[i], &b->tensor.at[i]), a->tensor.at[i].name, "another tensor");
    for (int i = 0; same && i < a->state.n; i++)
        check(alike_state(&a->state.at[i], &b->state.at[i]), a->state.at[i].name, "another state");
    for (int i = 0; same && i < a->op.n; i++)
        check(alike_op(&a->op.at[i], &b->op.at[i]), a->op.at[i].name, "another operator");
    for (int i = 0; same && i < a->count.n; i++)
        check(alike_count(&a->count.at[i], &b->count.at[i]), "count", "another one");
}

static void test_same(void)
{
    static const char *const compute[] = {"f32", "bf16"};
    static const char *const more[] = {"", "  clip_scope: parameter\n"};
    for (int i = 0; i < 2; i++) {
        const Model *m = model_of(compute[i], more[i]);
        Graph *g = build(m);
        same("build", g, NULL);
        shape(g, m);
        same("shape", g, NULL);
        grad(g, m);
        same("grad", g, NULL);
        fuse(g, m);
        same("fuse", g, NULL);
        same("plan", g, plan_of(g, m));
    }
}

/* ---- faults: one thing changed in a good graph ------------------------------------------------------------------- */

static Op *op_of(Graph *g, Phase phase, const char *name)
{
    for (int i = 0; i < g->op.n; i++)
        if (g->op.at[i].phase == phase && !strcmp(g->op.at[i].name, name))
            return &g->op.at[i];
    die("no operator %s", name);
}

static Arg *arg_of(Graph *g, Phase phase, const char *name, const char *word)
{
    Op *o = op_of(g, phase, name);
    for (int i = 0; i < o->arg.n; i++)
        if (!strcmp(o->arg.at[i].token, word))
            return &o->arg.at[i];
    die("no word %s", word);
}

static Tensor *tensor_of(Graph *g, const char *name)
{
    for (int i = 0; i < g->tensor.n; i++)
        if (!strcmp(g->tensor.at[i].name, name))
            return &g->tensor.at[i];
    die("no tensor %s", name);
}

static State *state_of(Graph *g, const char *name)
{
    for (int i = 0; i < g->state.n; i++)
        if (!strcmp(g->state.at[i].name, name))
            return &g->state.at[i];
    die("no state %s", name);
}

static void swap_ops(Op *a, Op *b)
{
    Op x = *a;
    *a = *b;
    *b = x;
}

static void drop_last_op(Graph *g) { g->op.n--; }
static void swap_forward(Graph *g) { swap_ops(&g->op.at[1], &g->op.at[2]); g->op.at[1].fwd = 1; g->op.at[2].fwd = 2; }
static void swap_phases(Graph *g) { swap_ops(op_of(g, PH_I, "head"), op_of(g, PH_W, "head")); }
static void wrong_phase(Graph *g) { op_of(g, PH_F, "n")->phase = PH_W; }
static void fwd_far(Graph *g) { op_of(g, PH_I, "n")->fwd = 999; }
static void two_producers(Graph *g) { arg_of(g, PH_F, "w", "y")->index = arg_of(g, PH_F, "n", "y")->index; }
static void reads_later(Graph *g) { arg_of(g, PH_F, "n", "x")->index = arg_of(g, PH_F, "head", "y")->index; }
static void reads_itself(Graph *g) { arg_of(g, PH_F, "n", "x")->index = arg_of(g, PH_F, "n", "y")->index; }
static void other_operand(Graph *g) { arg_of(g, PH_W, "w", "x")->index = arg_of(g, PH_F, "e", "y")->index; }
static void other_gradient(Graph *g) { tensor_of(g, "d.s")->of = (int)(tensor_of(g, "n") - g->tensor.at); }
static void operand_gone(Graph *g) { arg_of(g, PH_F, "n", "x")->kind = ARG_NONE; }
static void index_far(Graph *g) { arg_of(g, PH_F, "n", "x")->index = 12345; }
static void tensor_as_state(Graph *g) { arg_of(g, PH_F, "n", "x")->state = true; }
static void add_as_read(Graph *g) { arg_of(g, PH_W, "w", "dweight")->kind = ARG_READ; }
static void other_use(Graph *g) { arg_of(g, PH_W, "w", "dweight")->index++; }
static void acc_as_number(Graph *g) { arg_of(g, PH_W, "w", "acc")->kind = ARG_INT; }
static void other_call(Graph *g) { op_of(g, PH_F, "n")->call = "rmsnorm_forward"; }
static void other_word(Graph *g) { arg_of(g, PH_F, "n", "eps")->token = "esp"; }
static void a_word_less(Graph *g) { op_of(g, PH_F, "n")->arg.n--; }
static void other_row(Graph *g) { op_of(g, PH_F, "n")->row = row_find("RMSNorm"); }
static void row_far(Graph *g) { op_of(g, PH_F, "n")->row = 4711; }
static void passes_above_all(Graph *g) { op_of(g, PH_F, "l3")->pass_flop = op_of(g, PH_F, "l3")->flop + 1; }
static void pass_bytes_above_all(Graph *g) { op_of(g, PH_I, "l3")->pass_moved = op_of(g, PH_I, "l3")->moved + 1; }
static void bytes_off(Graph *g) { tensor_of(g, "n")->bytes += 4; }
static void no_axes(Graph *g) { tensor_of(g, "n")->shape.n = 0; }
static void type_off(Graph *g) { tensor_of(g, "n.mean")->type = I32; }
static void state_bytes_off(Graph *g) { state_of(g, "w.weight")->bytes--; }
static void state_type_off(Graph *g) { state_of(g, "w.weight.m")->type = I32; }
static void name_twice(Graph *g) { tensor_of(g, "n")->name = "s"; }
static void name_twice_in_c(Graph *g) { tensor_of(g, "n")->name = "d.s"; tensor_of(g, "d.s")->name = "d_s"; }
static void name_is_code(Graph *g) { tensor_of(g, "n")->name = "n */ system(0); /*"; }
static void layer_is_code(Graph *g) { op_of(g, PH_F, "n")->layer = "a b"; }
static void no_update(Graph *g) { op_of(g, PH_U, "n.bias")->name = "n.weight"; }
static void other_moment(Graph *g)
{
    Op *last = &g->op.at[g->op.n - 1];
    for (int i = 0; i < last->arg.n; i++)
        if (!strcmp(last->arg.at[i].token, "v"))
            last->arg.at[i].index = (int)(state_of(g, "e.weight.v") - g->state.at);
}
static void no_gradient(Graph *g)
{
    state_of(g, "w.weight.grad.0")->param = (int)(state_of(g, "e.weight") - g->state.at);
}
static void no_loss(Graph *g) { g->loss = -1; }
static void loss_is_large(Graph *g) { g->loss = (int)(tensor_of(g, "n.mean") - g->tensor.at); }
static void values_gone(Graph *g) { g->vals = -1; }
static void no_batch(Graph *g) { g->micro = 0; }
static void lost_tensor(Graph *g)
{
    Tensor t = *tensor_of(g, "n");
    t.name = "orphan";
    *PUSH(&g->tensor) = t;
}

static const struct { const char *what; void (*change)(Graph *g); const char *want; } faults[] = {
    {"an update is missing", drop_last_op, "has 0 updates"},
    {"two forward operators change places", swap_forward, ""},
    {"I behind W", swap_phases, "stands behind"},
    {"a phase", wrong_phase, "a forward operator must stand here"},
    {"fwd out of range", fwd_far, "a backward operator must stand here"},
    {"two producers", two_producers, "which another operator makes"},
    {"read before made", reads_later, "before it is made"},
    {"reads its own result", reads_itself, "before it is made"},
    {"backward reads another operand", other_operand, "is not that of the forward operator"},
    {"gradient of another tensor", other_gradient, "is not that of the forward operator"},
    {"an operand is missing", operand_gone, "is missing"},
    {"index out of range", index_far, "wrong argument"},
    {"a tensor called a state", tensor_as_state, "wrong argument"},
    {"a gradient that is read", add_as_read, "wrong argument"},
    {"the accumulator of another use", other_use, "is not that of the forward operator"},
    {"acc a number", acc_as_number, "wrong argument"},
    {"another call", other_call, "has no call"},
    {"another word", other_word, "has no call"},
    {"a word less", a_word_less, "has no call"},
    {"another row", other_row, "has no call"},
    {"row out of range", row_far, "no row"},
    {"passes of more arithmetic than the call", passes_above_all, "more than all of the call"},
    {"passes of more bytes than the call", pass_bytes_above_all, "more than all of the call"},
    {"bytes of a tensor", bytes_off, "bytes"},
    {"a tensor without shape", no_axes, "has shape"},
    {"type of a tensor", type_off, "mean has type i32"},
    {"bytes of a state", state_bytes_off, "bytes"},
    {"type of a state", state_type_off, "has type"},
    {"a name twice", name_twice, "is a name twice"},
    {"a name twice in C", name_twice_in_c, "is a name twice"},
    {"a name that is code", name_is_code, "is no name"},
    {"a layer that is code", layer_is_code, "is no name"},
    {"updates of another parameter", no_update, "belongs to another parameter"},
    {"the moment of another parameter", other_moment, "belongs to another parameter"},
    {"an accumulator of another parameter", no_gradient, ""},
    {"no loss", no_loss, "no loss"},
    {"a loss that is no number", loss_is_large, "not one number"},
    {"no step values", values_gone, ""},
    {"no micro-batches", no_batch, "0 micro-batches"},
    {"a tensor nobody makes", lost_tensor, "nothing makes"},
};

static void test_faults(void)
{
    const Model *m = model_of("f32", "");
    Loc at;
    const char *none = graph_fault(graph_of(m), &at);
    check(!none, "a good graph", none);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        Graph *g = graph_of(m);
        faults[i].change(g);
        const char *found = graph_fault(g, &at);
        check(found && strstr(found, faults[i].want), faults[i].what, found);
    }
}

/* ---- mistakes in a text ------------------------------------------------------------------------------------------ */

/* What a child says that reads the text; its status, -1 if a signal ended it. */
static int read_in_child(const char *text, size_t n, const Graph *g, char said[4096])
{
    int pipes[2], status;
    write_text(text, n);
    fflush(NULL);
    if (pipe(pipes))
        die("no pipe");
    pid_t child = fork();
    if (!child) {
        dup2(pipes[1], 2);
        close(pipes[0]);
        if (g)
            read_plan(scratch, g, NULL);
        else
            read_graph(scratch);
        _exit(0);
    }
    close(pipes[1]);
    size_t got = 0;
    for (ssize_t k; (k = read(pipes[0], said + got, 4095 - got)) > 0;)
        got += (size_t)k;
    said[got] = 0;
    close(pipes[0]);
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* The first `from` becomes `to`; where both are NULL the text stays. */
static Text changed(Text t, const char *from, const char *to)
{
    char *p = strstr(t.at, from);
    if (!p)
        die("'%s' is not in the text", from);
    Text x = {.n = t.n - strlen(from) + strlen(to)};
    x.at = strf("%.*s%s%s", (int)(p - t.at), t.at, to, p + strlen(from));
    return x;
}

typedef struct { const char *from, *to, *want; } Mistake;

static const Mistake graph_mistakes[] = {
    {"dpgen-graph 1", "dpgen-graph 2", ":1:1: error: not a file of this kind and version"},
    {"\ntensor n ", "\ntensr n ", "did you mean 'tensor'?"},
    {"kind=act", "kind=atc", "did you mean 'act'?"},
    {"kind=act ", "", "has no kind"},
    {"kind=act", "kind", "key=value"},
    {"kind=act", "kind=act kind=act", "is given twice"},
    {"kind=act", "kind=act of=n", "does not belong to this kind"},
    {"kind=act", "kind=act bites=4", "did you mean 'bytes'?"},
    {"kind=act", " kind=act", "a space too many"},
    {"bytes=", "bytes=0", "expected an integer"},
    {"bytes=", "bytes=99999999999999999999", "is not within"},
    {"shape=2x3x4", "shape=2x3x", "expected an integer"},
    {"shape=2x3x4", "shape=2x0x4", "is not within"},
    {"shape=2x3x4", "shape=1x1x1x1x1x1x1x2x3x4", "more than 6 axes"},
    {"shape=2x3x4", "shape=2x3x5", "has shape"},
    {"loss=loss", "loss=los", "did you mean 'loss'?"},
    {"tensor n ", "tensor s ", "is there twice"},
    {"op F:s ", "op s ", "begins with its phase"},
    {"onto=r:again", "onto=i:3", "wrong argument for onto"},
    {"onto=r:again", "onto=r:d.s", "reads d.s before it is made"},
    {"onto=r:again", "onto=r:n.mean", "wrong argument for onto"},
    {"row=LayerNorm", "row=LayerNrm", "did you mean 'LayerNorm'?"},
    {"eps=f:0x1", "eps=f:1.5z", "expected a floating point number"},
    {"eps=f:0x1", "eps=f:0x.p+1", "expected a floating point number"},
    {"eps=f:0x1", "eps=f:0x1.1.1", "expected a floating point number"},
    {"eps=f:0x1", "eps=f:0x10000000000000001", "expected a floating point number"},
    {"eps=f:0x1", "eps=f:inf", "expected a floating point number"},
    {"eps=f:", "eps=q:", "an argument that cannot be read"},
    {"x=r:e ", "x=r:- ", "nothing can be read or written there"},
    {"x=r:e ", "x=R:e ", "no state is called 'e'"},
    {" call=embedding_forward", "", "has no call"},
    {"call=embedding_forward", "call=system", "has no call system"},
    {"op=F:e", "op=F:f", "no operator is called"},
    {"tensor n ", "tensor n%2 ", "a character that cannot be read"},
    {"tensor n ", "tensor n\t", "not printable ASCII"},
    {"@tiny%20file.yaml:9:", "@9:", "a place that cannot be read"},
    {"graph tiny", "graph tiny\ngraph tiny", "has no compute"},
    {"\ngraph ", "\n# ", "no record begins with 'graph'"},
    {" model=0123", " model=012", "model and calls are 64 digits"},
    {" calls=fed", " calls=%22ed", "model and calls are 64 digits"},
};
static const Mistake plan_mistakes[] = {
    {"dpgen-plan 1", "dpgen-graph 1", "not a file of this kind and version"},
    {"plan tiny", "plan tinny", "a plan of tinny"},
    {"devices=2", "devices=0", "is not within"},
    {"devices=2", "devices=2000000000", "is not within"},
    {"chunk 1 device=1", "chunk 1 device=2", "device 2 is not within"},
    {"chunk 1 ", "chunk 0 ", "chunk 1 should stand here"},
    {"place F:n\n", "place F:w\n", "operators stand in graph order"},
    {"kind=F chunk=0", "kind=F chunk=7", "chunk 7 is not within"},
    {"mb=0", "mb=77", "mb 77 is not within"},
    {"is=recompute", "is=recomputed", "did you mean 'recompute'?"},
    {"\norder 0 ", "\norder 9 ", "is not within"},
    {"birth=load", "birth=lode", "did you mean 'load'?"},
    {"buf 0:", "buf ", "the device's number is missing"},
    {"call 0:chunk0_forward op=F:e ", "call 0:chunk0_forward ", "operator -1 is not within"},
    {"call 0:chunk0_forward op=F:e ", "call 0:chunk9_forward op=F:e ", "no routine is called"},
    {" pool=0:", " pool=0:zz", "no pool is called"},
    {"\nplan ", "\n# ", "no record begins with 'plan'"},
};

static void test_mistakes(Text good, const Graph *g, const Mistake *list, size_t n)
{
    char said[4096];
    int status = read_in_child(good.at, good.n, g, said);
    check(status == 0, "a good text is read", said);
    for (size_t i = 0; i < n; i++) {
        Text t = changed(good, list[i].from, list[i].to);
        status = read_in_child(t.at, t.n, g, said);
        bool placed = !strncmp(said, scratch, strlen(scratch)) && said[strlen(scratch)] == ':';
        check(status == EXIT_MODEL && placed && strstr(said, list[i].want), list[i].want,
              strf("status %d: %s", status, said));
    }
}

static uint64_t draw(void)      /* splitmix64 */
{
    static uint64_t state = 1;
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

/* One to three hurts: a byte changed, a line lost, a line doubled, the end lost. */
static Text hurt(Text t)
{
    static const char letters[] = "abFIWU:=,.#%@-0123456789 \n";
    Text x = {.at = strf("%s", t.at), .n = t.n};
    for (uint64_t k = 1 + draw() % 3; k-- && x.n > 1;) {
        size_t at = (size_t)(draw() % x.n);
        char *line = x.at + at, *end;
        while (line > x.at && line[-1] != '\n')
            line--;
        end = strchr(line, '\n');
        end = end ? end + 1 : x.at + x.n;
        switch (draw() % 8) {
        case 0:  x.at = strf("%.*s%s", (int)(line - x.at), x.at, end); break;
        case 1:  x.at = strf("%.*s%.*s%s", (int)(end - x.at), x.at, (int)(end - line), line, end); break;
        case 2:  x.at[at] = 0; break;
        default: x.at[at] = letters[draw() % (sizeof letters - 1)];
        }
        x.n = strlen(x.at);
    }
    return x;
}

static void test_noise(const char *what, Text good, const Graph *g, int times)
{
    char said[4096];
    int crashed = 0;
    for (int i = 0; i < times; i++) {
        Text t = hurt(good);
        int status = read_in_child(t.at, t.n, g, said);
        if (status != 0 && status != EXIT_MODEL && !crashed++)
            fprintf(stderr, "unit_text: %s, noise %d: status %d: %s\n", what, i, status, said);
    }
    check(!crashed, what, strf("%d of %d texts neither read nor refused", crashed, times));
}

int main(void)
{
    const char *dir = getenv("TMPDIR");
    scratch = strf("%s/unit_text.%ld", dir ? dir : "build", (long)getpid());
    test_same();
    test_alike();
    test_faults();
    const Model *m = model_of("f32", "");
    const Graph *g = graph_of(m);
    Text graph = text_of(g, NULL), plan = text_of(g, plan_of(g, m));
    test_mistakes(graph, NULL, graph_mistakes, sizeof graph_mistakes / sizeof *graph_mistakes);
    test_mistakes(plan, g, plan_mistakes, sizeof plan_mistakes / sizeof *plan_mistakes);
    test_noise("graph", graph, NULL, 200);
    test_noise("plan", plan, g, 200);
    unlink(scratch);
    mem_free_all();
    printf("unit_text: %d passed, %d failed\n", passed, failed);
    return failed > 0;
}
