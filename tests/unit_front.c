/* SPDX-License-Identifier: Apache-2.0
 *
 * unit_front.c: from ops.def and a model to the sized forward graph.
 *
 * Expected values are published figures, formulas, or brute force over coordinates; nothing here was copied from
 * what the code printed.  Runs at the root of the project.
 */
#include "build/build.h"
#include "rt/rt.h"
#undef A
#undef S
#include <stdarg.h>
#include <string.h>

static int passed, failed;

static bool check(bool ok, const char *form, ...) PRINTF(2, 3);
static bool check(bool ok, const char *form, ...)
{
    va_list ap;
    va_start(ap, form);
    if (!ok) {
        fputs("unit_front: ", stderr);
        vfprintf(stderr, form, ap);
        fputc('\n', stderr);
    }
    va_end(ap);
    passed += ok;
    failed += !ok;
    return ok;
}

/* The forward graph of a model; set: one --set, or NULL. */
static Graph *forward(const char *path, const char *set, const char *define)
{
    Overrides over = {{NULL, 0, 0}, {NULL, 0, 0}};
    *PUSH(&over.set) = "train.batch.micro=2";
    if (set)
        *PUSH(&over.set) = set;
    if (define)
        *PUSH(&over.define) = define;
    const Model *m = model(load(path), path, &over);
    Graph *g = build(m);
    shape(g, m);
    return g;
}

static const Op *op_named(const Graph *g, const char *name)
{
    for (int i = 0; i < g->op.n; i++)
        if (!strcmp(g->op.at[i].name, name))
            return &g->op.at[i];
    check(false, "%s: there is no operator %s", g->name, name);
    return &g->op.at[0];
}

static const State *state_named(const Graph *g, const char *name)
{
    for (int i = 0; i < g->state.n; i++)
        if (!strcmp(g->state.at[i].name, name))
            return &g->state.at[i];
    check(false, "%s: there is no state %s", g->name, name);
    return &g->state.at[0];
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

static void test_rows(void)
{
    const Row *r = row(row_find("Attention"));
    check(row_find("attention") == -1 && row_find("") == -1, "rows are found by exact names");
    check(r->in.n == 5 && !r->in.at[2].optional && r->in.at[3].optional && r->in.at[4].optional, "Attention: operands");
    check(r->in.at[4].type == 'i' && r->in.at[0].type == 'r' && !strcmp(r->in.at[4].name, "mask"), "Attention: mask");
    check(r->out.n == 2 && r->out.at[1].type == 'f' && !r->internal, "Attention: lse is f32");
    r = row(row_find("LayerNorm"));
    check(r->par.n == 2 && r->par.at[0].type == 'f' && !r->par.at[0].optional && r->par.at[1].optional, "LayerNorm");
    r = row(row_find("Linear"));
    check(r->par.at[1].type == 'r' && r->par.at[1].optional && !strcmp(r->par.at[1].name, "bias"), "Linear: bias:c?");
    check(row(row_find("AttentionPacked"))->internal && row(row_find("GradAdd"))->internal, "rows in brackets");
    for (int i = 0; i < row_count(); i++)
        check(row_find(row(i)->name) == i && row(i)->call[PH_W] && row(i)->flop[PH_I], "row %d: %s", i, row(i)->name);
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

static void test_names(void)
{
    static const struct { const char *name; bool ok; } cases[] = {
        {"a", true}, {"_a9.b", true}, {"h.3", true}, {"", false}, {"9", false}, {".a", false}, {"a.", false},
        {"a..b", false}, {"a-b", false}, {"a b", false}, {"a\nb", false}, {"a/*", false}, {"\xc3\xa4", false},
    };
    char long_name[66];
    memset(long_name, 'a', 65);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check(!name_fault(cases[i].name) == cases[i].ok, "name '%s'", cases[i].name);
    long_name[63] = 0;
    check(!name_fault(long_name), "a name of 63 characters");
    long_name[63] = 'a';
    long_name[64] = 0;
    check(name_fault(long_name) != NULL, "a name of 64 characters");
    Names s = {NULL, 0, 0};
    check(names_get(&s, "x") == -1, "an empty table");
    for (int i = 0; i < 5000; i++)
        names_put(&s, strf("n%d", i * 7 % 5000), i);
    names_put(&s, "n0", 77);
    bool all = names_get(&s, "n0") == 77 && names_get(&s, "n5000") == -1 && s.n == 5000;
    for (int i = 1; i < 5000; i++)
        all &= names_get(&s, strf("n%d", i * 7 % 5000)) == i;
    check(all, "5000 names are found again");
}

/* By definition: * is any run of characters. */
static bool match_slow(const char *p, const char *n)
{
    if (*p == '*')
        return match_slow(p + 1, n) || (*n && match_slow(p, n + 1));
    return *p == *n && (!*p || match_slow(p + 1, n + 1));
}

static void test_match(void)
{
    uint64_t r = 1;
    for (int i = 0; i < 20000; i++) {
        char p[8] = "", n[8] = "";
        for (int k = 0; k < 7; k++) {
            r = r * 6364136223846793005u + 1442695040888963407u;
            p[k] = "ab*\0"[r >> 33 & 3];
            n[k] = "ab\0a"[r >> 40 & 3];
        }
        if (match(p, n) != match_slow(p, n)) {
            check(false, "match '%s' '%s'", p, n);
            return;
        }
    }
    check(match("h.*.ln_1", "h.11.ln_1") && !match("h.*.ln_1", "h.11.ln_12"), "match of paths");
}

/* ---- published figures ------------------------------------------------------------------------------------------- */

static int64_t numbers(const Graph *g, int *tensors)
{
    int64_t n = 0;
    *tensors = 0;
    for (int i = 0; i < g->state.n; i++)
        if (g->state.at[i].kind == S_PARAM) {
            n += shape_size(&g->state.at[i].shape, 0, g->state.at[i].shape.n);
            ++*tensors;
        }
    return n;
}

static void test_published(void)
{
    static const struct { const char *path; int64_t numbers; int tensors; } models[] = {
        {"examples/gpt2-124m.yaml", 124439808, 148},
        {"examples/bert-base.yaml", 110106428, 206},    /* 199 of the encoder and pooler, 5 + 2 of the heads */
        {"examples/t5-small.yaml", 60506624, 131},
        {"examples/vgg16.yaml", 138357544, 32},
    };
    for (int i = 0; i < 4; i++) {
        int tensors;
        Graph *g = forward(models[i].path, NULL, NULL);
        int64_t n = numbers(g, &tensors);
        check(n == models[i].numbers, "%s: %lld parameters", models[i].path, (long long)n);
        check(tensors == models[i].tensors, "%s: %d parameter tensors", models[i].path, tensors);
    }
}

/* torchvision publishes 15.47 G multiply-adds an image for vgg16: by layers 15,470,264,320.  Its features.28 is
 * [512, 512, 3, 3], and a rule `kaiming: fan_out` gives the deviation sqrt(2 / (512*9)). */
static void test_vgg(void)
{
    const Graph *g = forward("examples/vgg16.yaml", NULL, NULL);
    int64_t product = 0;
    for (int i = 0; i < g->nf; i++)
        product += row(g->op.at[i].row)->product ? g->op.at[i].flop : 0;
    check(product == 2 * 2 * INT64_C(15470264320), "vgg16: %lld FLOP of products", (long long)product);
    const State *s = state_named(g, "features.28.weight");
    check(shape_same(&s->shape, &(Shape){4, {512, 512, 3, 3}}), "features.28 is %s", shape_text(&s->shape));
    double want = 2 / (512 * 9.0), error = s->init.b * s->init.b / want - 1;
    check(s->init.kind == INIT_NORMAL && error < 1e-14 && error > -1e-14, "kaiming: %g", s->init.b);
    s = state_named(forward("tests/models/images.yaml", NULL, NULL), "grouped.weight");
    error = s->init.b * s->init.b / (2 / (2 * 3.0)) - 1;        /* fan_in: two channels of a group, three taps */
    check(error < 1e-14 && error > -1e-14, "kaiming, fan_in: %g", s->init.b);
}

/* floor((size + pads - dilate (kernel - 1) - 1) / stride) + 1, ceil where it is asked for; written down from the file. */
static void test_windows(const Graph *g)
{
    static const struct { const char *name; Shape s; } want[] = {
        {"stem", {4, {2, 12, 11, 8}}}, {"half", {4, {2, 6, 6, 8}}}, {"grouped", {4, {2, 6, 6, 8}}},
        {"dilated", {4, {2, 6, 6, 8}}}, {"begins_later", {4, {2, 3, 3, 4}}}, {"even", {4, {2, 3, 3, 8}}},
        {"rounded", {4, {2, 3, 3, 8}}}, {"wide", {4, {2, 2, 2, 12}}}, {"pooled", {2, {2, 12}}}, {"along", {3, {2, 10, 6}}},
    };
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        const Shape *got = &g->tensor.at[op_named(g, want[i].name)->out.at[0]].shape;
        check(shape_same(got, &want[i].s), "%s is %s", want[i].name, shape_text(got));
    }
}

/* 12 D^2 + 13 D a block, V D + T D + 2 D around them; 2 (products) + 4 T (attention) FLOP as in every account of
 * GPT. */
static void test_gpt(void)
{
    const int64_t V = 256, T = 16, D = 24, L = 3, B = 2, rows = B * T;
    int tensors;
    Graph *g = forward("tests/models/tiny-gpt.yaml", NULL, NULL);
    check(numbers(g, &tensors) == L * (12 * D * D + 13 * D) + V * D + T * D + 2 * D, "tiny-gpt: parameters");
    int64_t product = 0, attention = 0;
    for (int i = 0; i < g->nf; i++) {
        const Op *o = &g->op.at[i];
        product += !strcmp(o->call, "linear_forward") ? o->flop : 0;
        attention += !strcmp(o->call, "attention_packed_forward") ? o->flop : 0;
    }
    check(product == 2 * rows * (12 * D * D * L + V * D), "tiny-gpt: products %lld", (long long)product);
    check(attention == 4 * rows * T * D * L, "tiny-gpt: attention %lld", (long long)attention);
    for (int i = 0; i < 3; i++) {
        check(!strcmp(op_named(g, strf("h.%d.mlp.c_fc", i))->layer, strf("h.%d", i)), "layer of block %d", i);
        check(state_named(g, strf("h.%d.attn.c_attn.weight", i))->shape.d[0] == 3 * D, "c_attn is [out in]");
    }
    const Op *head = op_named(g, "lm_head");
    check(head->par.at[0] == state_named(g, "wte.weight")->param && head->par.at[1] == -1, "the head is tied");
    check(!*head->layer && g->nf == g->op.n && g->tensor.at[g->loss].shape.n == 1, "the end of the graph");
    const Arg *w = &head->arg.at[2];
    check(w->state && w->index == head->par.at[0] && w->kind == ARG_READ, "the head reads the table");
    check(head->moved == 4 * (rows * V + rows * D + V * D), "bytes of the head: %lld", (long long)head->moved);
    check(state_named(g, "values")->bytes == (Bytes)sizeof(Values), "values");
}

static void test_start_values(void)
{
    Graph *g = forward("tests/models/tiny-gpt.yaml", NULL, NULL);
    const State *s = state_named(g, "h.1.mlp.c_proj.weight");
    check(s->init.kind == INIT_NORMAL && s->init.b * s->init.b * 6 > 0.000399 && s->init.b * s->init.b * 6 < 0.000401,
          "residual rule: 0.02/sqrt(2*3)");
    check(state_named(g, "h.1.mlp.c_proj.bias")->init.kind == INIT_ZEROS, "biases start as zeros");
    check(state_named(g, "ln_f.weight")->init.kind == INIT_ONES, "norms start as ones");
    check(state_named(g, "wte.weight")->decay && !state_named(g, "ln_f.weight")->decay &&
          !state_named(g, "h.0.attn.c_attn.bias")->decay, "only matrices decay");
    g = forward("examples/bert-base.yaml", NULL, NULL);
    check(state_named(g, "bert.pooler.dense.weight")->decay && !state_named(g, "bert.pooler.dense.bias")->decay &&
          !state_named(g, "bert.embeddings.LayerNorm.weight")->decay, "no_decay by pattern");
}

/* ---- every operator ---------------------------------------------------------------------------------------------- */

/* B 2, T 6, S 5, D 8, H 2, V 32; written down from the file. */
static void test_shapes(const Graph *g)
{
    static const struct { const char *name; Shape s; } want[] = {
        {"table", {3, {2, 6, 8}}}, {"positions", {3, {2, 6, 8}}}, {"ln.mean", {2, {2, 6}}}, {"ln.rstd", {2, {2, 6}}},
        {"memory", {3, {2, 5, 8}}}, {"rms.rstd", {2, {2, 5}}}, {"image_in", {3, {2, 6, 8}}}, {"near", {3, {2, 6, 5}}},
        {"attention", {3, {2, 6, 8}}}, {"attention.lse", {3, {2, 2, 6}}}, {"qkv", {3, {2, 6, 24}}},
        {"attention_2", {3, {2, 6, 8}}}, {"reshape", {4, {2, 6, 2, 4}}}, {"transpose", {4, {2, 2, 6, 4}}},
        {"matmul", {4, {2, 2, 6, 6}}}, {"softmax", {4, {2, 2, 6, 6}}}, {"matmul_2", {4, {2, 2, 6, 4}}},
        {"matmul_3", {4, {2, 2, 4, 4}}}, {"flatten", {2, {2, 32}}}, {"split.1", {3, {2, 6, 4}}},
        {"split_2.0", {3, {2, 1, 8}}}, {"split_2.1", {3, {2, 2, 8}}}, {"split_2.2", {3, {2, 3, 8}}},
        {"slice", {3, {2, 2, 8}}}, {"concat.1", {3, {2, 14, 8}}}, {"concat", {3, {2, 18, 8}}}, {"mean", {2, {2, 8}}},
        {"slice_2", {3, {1, 6, 8}}}, {"add_3", {3, {2, 6, 8}}}, {"softmaxcrossentropy", {1, {1}}},
        {"softmaxcrossentropy.lse", {2, {2, 6}}}, {"meansquarederror", {1, {1}}}, {"head", {3, {2, 6, 32}}},
        {"chunked", {1, {1}}}, {"chunked.lse", {2, {2, 6}}},
    };
    for (size_t i = 0; i < sizeof want / sizeof *want; i++)
        for (int t = 0; t <= g->tensor.n; t++) {
            if (t == g->tensor.n) {
                check(false, "there is no tensor %s", want[i].name);
            } else if (!strcmp(g->tensor.at[t].name, want[i].name)) {
                check(shape_same(&g->tensor.at[t].shape, &want[i].s), "%s is %s", want[i].name,
                      shape_text(&g->tensor.at[t].shape));
                break;
            }
        }
}

/* Each public row stands in the file, each token of a forward call is bound, each operand comes before its reader. */
static void test_complete(const Graph *g, bool *used)
{
    for (int i = 0; i < g->op.n; i++) {
        const Op *o = &g->op.at[i];
        int tokens = 1;
        for (const char *p = row(o->row)->call[PH_F]; *p; p++)
            tokens += *p == ',';
        used[o->row] = true;
        check(o->arg.n == tokens, "%s: %d arguments, and the call has %d", o->name, o->arg.n, tokens);
        for (int k = 0; k < o->in.n; k++)
            check(o->in.at[k] < 0 || g->tensor.at[o->in.at[k]].op < i, "%s reads what comes later", o->name);
        for (int k = 0; k < o->out.n; k++)
            check(o->arg.at[k].kind == ARG_WRITE && o->arg.at[k].index == o->out.at[k], "%s writes its results",
                  o->name);
    }
}

/* Kernels for GPUs lack what is in the other files. */
static void test_every_row(const Graph *ops, const Graph *images, const Graph *language, const Graph *recurrent,
                           const Graph *experts)
{
    bool *used = alloc((size_t)row_count());
    test_complete(ops, used);
    test_complete(images, used);
    test_complete(language, used);
    test_complete(recurrent, used);
    test_complete(experts, used);
    for (int i = 0; i < row_count(); i++)
        check(used[i] || row(i)->internal, "the models of tests/models lack %s", row(i)->name);
    static const char *const made[] = {"AttentionPacked", "AddBroadcast", "LossAdd", "LossScale", "LossReport",
        "AddMiddle", "MulMiddle", "DropoutShared", "AttentionShared", "AttentionWindow", "RMSNormOffset",
        "PositionOffset"};
    for (int i = 0; i < 12; i++)
        check(used[row_find(made[i])], "ops.yaml makes no %s", made[i]);
}

/* FNV-1a over the path, by its definition. */
static int64_t site_of(const char *path)
{
    uint64_t h = 14695981039346656037u;
    for (; *path; path++)
        h = (h ^ (unsigned char)*path) * 1099511628211u;
    return (int64_t)(h & 0x3fffffffffffffff);
}

static void test_sites(const Graph *g)
{
    int seen = 0;
    for (int i = 0; i < g->op.n; i++) {
        const Attr *a = attr_find(&g->op.at[i], "site");
        if (a)
            check(a->i == site_of(g->op.at[i].name) && ++seen, "%s: site", g->op.at[i].name);
    }
    check(seen == 9, "%d operators have a Philox key", seen);
}

static void test_counts(const Graph *g)
{
    if (check(g->count.n == 2, "%d counts in ops", g->count.n))
        for (int i = 0; i < 2; i++)
            check(g->count.at[i].ignore == -1 && g->count.at[i].input == 4 && g->count.at[i].count == i &&
                  !strcmp(g->op.at[g->count.at[i].op].name, i ? "chunked" : "softmaxcrossentropy"), "what ops counts");
    g = forward("tests/models/tiny-bert.yaml", NULL, NULL);
    if (check(g->count.n == 2, "%d counts in tiny-bert", g->count.n))
        check(g->count.at[0].input == 3 && g->count.at[1].input == 4 && g->count.at[1].count == 1 &&
              g->count.at[0].ignore == -100, "two losses, two numbers");
}

/* Which value of an input may lie outside its range: one that all losses over it ignore, and no Embedding reads. */
static void test_ignored(void)
{
    static const char text[] =
        "dpgen: 1\nmodel:\n  name: ids\n  inputs:\n"
        "    a: {shape: [B], dtype: i32, range: [0, 2]}\n    b: {shape: [B], dtype: i32, range: [0, 2]}\n"
        "    c: {shape: [B], dtype: i32, range: [0, 2]}\n    d: {shape: [B], dtype: i32, range: [0, 2]}\n  graph:\n"
        "    - {op: Embedding, name: e, in: a, rows: 2, out: 2, as: e}\n"
        "    - {op: Embedding, name: f, in: d, rows: 2, out: 2, as: f}\n    - {op: Add, in: [e, f], as: x}\n"
        "    - {op: SoftmaxCrossEntropy, in: x, targets: a, as: l0}\n"
        "    - {op: SoftmaxCrossEntropy, in: x, targets: b, ignore: -1, as: l1}\n"
        "    - {op: SoftmaxCrossEntropy, in: x, targets: b, ignore: -2, as: l2}\n"
        "    - {op: SoftmaxCrossEntropy, in: x, targets: c, ignore: -7, as: l3}\n"
        "    - {op: SoftmaxCrossEntropy, in: x, targets: c, ignore: -7, as: l4}\n"
        "    - {op: Add, in: [l0, l1], as: s1}\n    - {op: Add, in: [s1, l2], as: s2}\n"
        "    - {op: Add, in: [s2, l3], as: s3}\n    - {op: Add, in: [s3, l4], as: s4}\n  loss: s4\n"
        "train: {batch: {global: 2, micro: 2}}\ndevices: [{kind: cpu}]\n";
    static const bool want[] = {false, false, true, false};
    Overrides over = {{NULL, 0, 0}, {NULL, 0, 0}};
    const Model *m = model(load_text("ids", text, sizeof text - 1), "ids", &over);
    Graph *g = build(m);
    shape(g, m);
    for (int i = 0; i < 4; i++) {
        int value = 0;
        bool is = input_ignores(g, i, &value);
        check(is == want[i] && (!is || value == -7), "input %d ignores %d: %d", i, value, is);
    }
}

/* ---- brute force over coordinates -------------------------------------------------------------------------------- */

/* Walk all coordinates of a shape; false at the end. */
static bool next(const Shape *s, int64_t *at)
{
    for (int i = s->n - 1; i >= 0; i--) {
        if (++at[i] < s->d[i])
            return true;
        at[i] = 0;
    }
    return false;
}

static int64_t offset(const Shape *s, const int64_t *at)
{
    int64_t o = 0;
    for (int i = 0; i < s->n; i++)
        o = o * s->d[i] + at[i];
    return o;
}

static void test_slice(const Graph *g, const char *name, int axis, int64_t from)
{
    const Op *o = op_named(g, name);
    const Shape *x = &g->tensor.at[o->in.at[0]].shape, *y = &g->tensor.at[o->out.at[0]].shape;
    int64_t whole = attr_int(o, "whole"), start = attr_int(o, "from"), count = attr_int(o, "count"), at[MAXDIM] = {0};
    bool same = attr_int(o, "outer") * count == shape_size(y, 0, y->n);
    do {
        int64_t there[MAXDIM], to = offset(y, at);
        memcpy(there, at, sizeof there);
        there[axis] += from;
        same &= offset(x, there) == to / count * whole + start + to % count;
    } while (next(y, at));
    check(same, "%s takes other elements than it should", name);
}

/* A model of a few lines over x [B T 3 4], T 5; ends with whatever makes a loss of the last value. */
static Graph *of_lines(const char *lines)
{
    const char *text = strf("dpgen: 1\nmodel:\n  name: lines\n  dims: {T: 5}\n  inputs:\n"
                            "    x: {shape: [B, T, 3, 4], dtype: f32}\n"
                            "    y: {shape: [B], dtype: i32, range: [0, 2]}\n  graph:\n"
                            "    - {op: Linear, name: x0, in: x, out: 4, as: v}\n%s    - {op: Flatten}\n"
                            "    - {op: Linear, out: 2}\n    - {op: SoftmaxCrossEntropy, targets: y, as: loss}\n"
                            "  loss: loss\ntrain: {batch: {global: 2, micro: 2}}\ndevices: [{kind: cpu}]\n", lines);
    Overrides over = {{NULL, 0, 0}, {NULL, 0, 0}};
    const Model *m = model(load_text("lines", text, strlen(text)), "lines", &over);
    Graph *g = build(m);
    shape(g, m);
    return g;
}

static void test_transpose(const int *perm, int n, const char *text)
{
    Graph *g = of_lines(strf("    - {op: Reshape, shape: [%s]}\n    - {op: Transpose, perm: [%s]}\n"
                             "    - {op: Reshape, shape: [B, -1]}\n", n == 2 ? "B, -1" : n == 3 ? "B, T, -1" :
                             "B, T, 3, 4", text));
    const Op *o = op_named(g, "transpose");
    const Shape *x = &g->tensor.at[o->in.at[0]].shape, *y = &g->tensor.at[o->out.at[0]].shape;
    Shape d = {4, {0}}, e = {4, {0}};
    int64_t at[MAXDIM] = {0}, p[4], q[4];
    bool forth = true, back = true;
    for (int i = 0; i < 4; i++) {
        d.d[i] = attr_int(o, strf("d%d", i));
        e.d[i] = attr_int(o, strf("e%d", i));
        p[i] = attr_int(o, strf("p%d", i));
        q[i] = attr_int(o, strf("q%d", i));
    }
    do {                                            /* y[at] is x[from]; what the kernel does with p, and with q */
        int64_t from[MAXDIM] = {0}, y4[4] = {0}, x4[4] = {0}, by_p[4], by_q[4];
        for (int i = 0; i < n; i++) {
            from[perm[i]] = at[i];
            y4[4 - n + i] = at[i];
        }
        memcpy(x4 + 4 - n, from, (size_t)n * sizeof *from);
        for (int i = 0; i < 4; i++) {
            by_p[p[i]] = y4[i];
            by_q[q[i]] = x4[i];
        }
        forth &= offset(x, from) == offset(&d, by_p);
        back &= offset(y, at) == offset(&e, by_q);
    } while (next(y, at));
    check(forth, "transpose [%s]: p and d", text);
    check(back, "transpose [%s]: q and e", text);
}

static void test_transposes(void)
{
    test_transpose((int[]){1, 0}, 2, "1, 0");
    test_transpose((int[]){2, 0, 1}, 3, "2, 0, 1");
    test_transpose((int[]){0, 2, 1}, 3, "0, 2, 1");
    test_transpose((int[]){3, 1, 0, 2}, 4, "3, 1, 0, 2");
    test_transpose((int[]){1, 2, 3, 0}, 4, "1, 2, 3, 0");
}

/* The second operand is repeated over the leading dimensions of the first, whichever order they are written in. */
static void test_broadcast(void)
{
    Graph *g = of_lines("    - {op: Slice, axis: 0, from: 0, count: 1, as: one}\n"
                        "    - {op: Reshape, shape: [T, 3, 4], as: p}\n"
                        "    - {op: Add, name: a1, in: [one, v]}\n    - {op: Add, name: a2, in: [p, _]}\n"
                        "    - {op: Mul, name: m1, in: [p, _]}\n    - {op: Mul, name: m2, in: [_, v]}\n"
                        "    - {op: Add, name: a3, in: [_, v]}\n");
    static const struct { const char *op, *call; int64_t nb; } want[] = {
        {"a1", "add_broadcast_forward", 60}, {"a2", "add_broadcast_forward", 60},
        {"m1", "mul_forward", 60}, {"m2", "mul_forward", 120}, {"a3", "add_forward", 120},
    };
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        const Op *o = op_named(g, want[i].op);
        const Shape *a = &g->tensor.at[o->in.at[0]].shape;
        check(!strcmp(o->call, want[i].call) && attr_int(o, "n") == 120 && attr_int(o, "nb") == want[i].nb &&
              shape_size(a, 0, a->n) == 120, "%s: %s, n %lld, nb %lld", want[i].op, o->call,
              (long long)attr_int(o, "n"), (long long)attr_int(o, "nb"));
    }
}

/* v is [2 5 3 4]: ten matrices [3 4]; op(a) op(b) is [m k] [k n]. */
static void test_matmul(void)
{
    Graph *g = of_lines("    - {op: MatMul, name: nt, in: [v, v], transpose_b: true, as: s}\n"
                        "    - {op: MatMul, name: nn, in: [s, v], as: u}\n"
                        "    - {op: MatMul, name: tn, in: [u, v], transpose_a: true, as: w}\n"
                        "    - {op: MatMul, name: tt, in: [v, w], transpose_b: true}\n"
                        "    - {op: MatMul, name: t2, in: [_, s], transpose_a: true, transpose_b: true}\n");
    static const struct { const char *op; int64_t m, n, k; } want[] = {
        {"nt", 3, 3, 4}, {"nn", 3, 4, 3}, {"tn", 4, 4, 3}, {"tt", 3, 4, 4}, {"t2", 4, 3, 3},
    };
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        const Op *o = op_named(g, want[i].op);
        check(attr_int(o, "batch") == 10 && attr_int(o, "m") == want[i].m && attr_int(o, "n") == want[i].n &&
              attr_int(o, "k") == want[i].k && o->flop == 20 * want[i].m * want[i].n * want[i].k, "matmul %s",
              want[i].op);
    }
}

static void test_concat(const Graph *g)
{
    const Op *o = op_named(g, "concat");            /* concat.1 [2 14 8], a [2 1 8], c [2 3 8] along axis 1 */
    check(attr_int(o, "outer") == 2 && attr_int(o, "na") == 112 && attr_int(o, "nb") == 8 && attr_int(o, "nc") == 24 &&
          attr_int(o, "nd") == 0, "concat: sizes");
    check(o->arg.at[4].kind == ARG_NONE && o->arg.at[1].kind == ARG_READ, "concat: absent operands are 0");
}

/* ---- types ------------------------------------------------------------------------------------------------------- */

static void test_bf16(void)
{
    Graph *g = forward("tests/models/ops.yaml", "train.precision.compute=bf16", NULL);
    int casts = 0, copies = 0;
    for (int i = 0; i < g->op.n; i++)
        casts += !strcmp(g->op.at[i].call, "cast_forward");
    check(casts == 2, "%d casts, one for each f32 input expected", casts);
    for (int i = 0; i < g->state.n; i++) {
        const State *s = &g->state.at[i];
        if (s->kind != S_COPY)
            continue;
        copies++;
        check(s->param == i - 1 && s->type == BF16 && 2 * s->bytes == s[-1].bytes, "%s stands behind its master",
              s->name);
    }
    check(copies == 20 - 3, "%d copies: all parameters but those of norms expected", copies);
    const Op *ln = op_named(g, "ln"), *q = op_named(g, "q");
    check(g->state.at[ln->arg.at[4].index].kind == S_PARAM, "norms read the master");
    check(g->state.at[q->arg.at[2].index].kind == S_COPY, "products read the copy");
    check(g->tensor.at[g->loss].type == F32 && g->tensor.at[ln->out.at[1]].type == F32,
          "losses and statistics are f32");
    check(g->tensor.at[ln->out.at[0]].type == BF16 && g->tensor.at[ln->out.at[0]].bytes == 2 * 6 * 8 * 2,
          "results are bf16");
    check(g->tensor.at[op_named(g, "image_in")->in.at[0]].type == BF16, "image_in reads the cast");
}

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

static const char *operand(const Graph *g, const char *op, int i)
{
    return g->tensor.at[op_named(g, op)->in.at[i]].name;
}

static void test_blocks(void)
{
    Graph *g = forward("tests/models/branches.yaml", NULL, NULL);
    int table = state_named(g, "table.weight")->param, uses = 0;
    for (int i = 0; i < g->op.n; i++)
        for (int k = 0; k < g->op.at[i].par.n; k++)
            uses += g->op.at[i].par.at[k] == table;
    check(uses == 3, "the table has %d uses", uses);
    check(op_named(g, "right.a")->par.at[0] == op_named(g, "enter")->par.at[0] &&
          op_named(g, "right.a")->par.at[1] == op_named(g, "enter")->par.at[1], "tie shares weight and bias");
    for (int i = 0; i < g->op.n; i++)
        check(strcmp(g->op.at[i].name, "cells.0.sigmoid") && strcmp(g->op.at[i].name, "cells.0.mul"),
              "first: gate off");
    check(!strcmp(operand(g, "cells.0.add", 0), "cells.0.down"), "when: false forwards the first operand");
    check(!strcmp(operand(g, "cells.1.sigmoid", 0), "enter"), "previous of the second cell is current of the first");
    check(!strcmp(operand(g, "cells.2.add_2", 1), "table"), "pass gives every repetition the same");
    check(state_named(g, "cells.2.up.weight")->shape.d[0] == 36 && state_named(g,
                                                                               "cells.1.up.weight")->shape.d[0] == 24,
          "last: wide");
    check(!strcmp(operand(g, "concat", 2), operand(g, "left", 0)), "an empty branch is the value itself");
    check(!strcmp(operand(g, "add_2", 1), "cells.1.add_2"), "the first result of the last cell is current of it");
    check(!strcmp(op_named(g, "pairs.1.two.ln")->layer, "pairs.1.two"), "layer is the innermost block");
    check(op_named(g, "pairs.1.two.ln")->par.at[1] == -1, "a norm without bias");
    g = forward("tests/models/branches.yaml", NULL, "L=0");
    check(!strcmp(operand(g, "add_2", 1), "table") && !strcmp(operand(g, "left", 0), "enter"), "no repetition at all");
    g = forward("tests/models/tiny-gpt.yaml", NULL, "L=4096");
    check(g->nf == 4096 * 11 + 6 && !strcmp(op_named(g, "h.4095.add_2")->layer, "h.4095"), "4096 layers");
}

/* A default is worked out for each repetition, from the arguments above it as they are there: widths d, 2 d, 2 d + 1 where
 * nothing else is given. */
static void test_defaults(void)
{
    static const char text[] =
        "dpgen: 1\n"
        "model:\n"
        "  name: defaults\n"
        "  inputs: {x: {shape: [B, 4], dtype: f32}, y: {shape: [B, 4], dtype: f32}}\n"
        "  blocks:\n"
        "    k:\n"
        "      args: {d: required, two: 2*d, more: two + 1}\n"
        "      body: [{op: Linear, name: a, out: two}, {op: Linear, name: b, out: more}, {op: Linear, name: c, out: 4}]\n"
        "  graph:\n"
        "    - {use: k, in: x, repeat: 3, args: {d: 5}, first: {two: 3}, last: {d: 7}}\n"
        "    - {op: MeanSquaredError, targets: y, as: loss}\n"
        "  loss: loss\n";
    static const int64_t two[] = {3, 10, 14};
    const Overrides none = {{NULL, 0, 0}, {NULL, 0, 0}};
    const Model *m = model(load_text("defaults", text, sizeof text - 1), "defaults", &none);
    Graph *g = build(m);
    shape(g, m);
    for (int i = 0; i < 3; i++)
        check(state_named(g, strf("k.%d.a.weight", i))->shape.d[0] == two[i] &&
              state_named(g, strf("k.%d.b.weight", i))->shape.d[0] == two[i] + 1, "defaults of repetition %d", i);
}

int main(void)
{
    test_rows();
    test_names();
    test_match();
    test_published();
    test_gpt();
    test_vgg();
    test_windows(forward("tests/models/images.yaml", NULL, NULL));
    test_start_values();
    const Graph *g = forward("tests/models/ops.yaml", NULL, NULL);
    test_shapes(g);
    test_every_row(g, forward("tests/models/images.yaml", NULL, NULL), forward("tests/models/language.yaml", NULL, NULL),
                   forward("tests/models/recurrent.yaml", NULL, NULL), forward("tests/models/experts.yaml", NULL, NULL));
    test_sites(g);
    test_counts(g);
    test_ignored();
    test_slice(g, "split.1", 2, 4);
    test_slice(g, "split_2.2", 1, 3);
    test_slice(g, "slice", 1, 4);
    test_slice(g, "slice_2", 0, 0);
    test_transposes();
    test_broadcast();
    test_matmul();
    test_concat(g);
    test_bf16();
    test_blocks();
    test_defaults();
    mem_free_all();
    printf("unit_front: %d passed, %d failed\n", passed, failed);
    return failed != 0;
}
