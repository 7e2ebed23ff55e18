/* SPDX-License-Identifier: Apache-2.0
 *
 * unit_model: load, expr and model.
 *
 *   goldens    each tests/load/X.yaml and tests/model/X.yaml holds one mistake; X.err is what dpgen prints about it,
 *              and its status is 3.  A first line `# options: -D a=1 --set b=2` gives options.  X.yaml without X.err
 *              is valid
 *   hostile    inputs that are made here because of their size, prefixes and mutations of a valid file: the answer is
 *              a tree or status 3, within seconds, and never anything else
 *   values     expressions against values worked out by hand; each field of a full file; the defaults of a short one
 *
 *     unit_model [--write] [DIR]     DIR holds load/ and model/; default tests.  --write makes goldens: read them
 */
#include "plan.h"
#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int passed, failed;

static void check(bool ok, const char *what, const char *got)
{
    passed += ok;
    failed += !ok;
    if (!ok)
        fprintf(stderr, "unit_model: %s: %s\n", what, got);
}

/* Run in a child that ends itself after ten seconds; its status, and what it wrote to standard error. */
static int run(void (*body)(const void *), const void *arg, char *out, size_t size)
{
    FILE *f = tmpfile();
    int status = 0;
    fflush(NULL);
    pid_t child = fork();
    if (!child) {
        dup2(fileno(f), STDERR_FILENO);
        alarm(10);
        body(arg);
        exit(0);
    }
    waitpid(child, &status, 0);
    rewind(f);
    out[fread(out, 1, size - 1, f)] = 0;
    fclose(f);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static char *read_all(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        return NULL;
    fseek(f, 0, SEEK_END);
    *n = (size_t)ftell(f);      /* no more than needed: a child copies the parent's page tables */
    rewind(f);
    char *text = alloc(*n + 1);
    *n = fread(text, 1, *n, f);
    fclose(f);
    return text;
}

/* ---- goldens --------------------------------------------------------------------------------------------- */

static Overrides options(const char *text)
{
    static const char start[] = "# options:";
    Overrides over = { { NULL, 0, 0 }, { NULL, 0, 0 } };
    if (strncmp(text, start, sizeof start - 1))
        return over;
    const char *p = text + sizeof start - 1, *end = text + strcspn(text, "\n");
    for (const char *option = NULL; p < end; p += strcspn(p, " \n")) {
        p += strspn(p, " ");
        char *word = alloc(strcspn(p, " \n") + 1);
        memcpy(word, p, strcspn(p, " \n"));
        if (option)
            *PUSH(!strcmp(option, "-D") ? &over.define : &over.set) = word;
        option = option ? NULL : word;
    }
    return over;
}

static void golden_body(const void *path)
{
    size_t n;
    char *text = read_all(path, &n);
    Overrides over = options(text ? text : "");
    model(load(path), path, &over);
}

static void golden(const char *dir, const char *file, bool write)
{
    static char got[1 << 16];
    char *cwd = getcwd(alloc(4096), 4096);
    if (chdir(dir))
        return;
    size_t n = 0;
    char *expected = strf("%.*s.err", (int)strlen(file) - 5, file), *want = read_all(expected, &n);
    int status = run(golden_body, file, got, sizeof got);
    if (write && *got) {
        FILE *f = fopen(expected, "wb");
        fputs(got, f);
        fclose(f);
    }
    check(status == (want ? 3 : 0), strf("%s/%s", dir, file), strf("status %d\n%s", status, got));
    check(!strcmp(got, want ? want : ""), strf("%s/%s says", dir, file), got);
    if (chdir(cwd))
        abort();
}

static void goldens(const char *root, const char *part, bool write)
{
    struct dirent **list;
    char *dir = strf("%s/%s", root, part);
    int n = scandir(dir, &list, NULL, alphasort), seen = 0;
    for (int i = 0; i < n; i++) {
        const char *end = strrchr(list[i]->d_name, '.');
        if (end && !strcmp(end, ".yaml") && ++seen)
            golden(dir, list[i]->d_name, write);
        free(list[i]);
    }
    if (n >= 0)
        free(list);
    check(seen >= 10, dir, "fewer than ten files");
}

/* ---- hostile ---------------------------------------------------------------------------------------------- */

typedef struct { const char *text; size_t n; } Given;

static void load_body(const void *arg)
{
    const Given *t = arg;
    load_text("x.yaml", t->text, t->n);
}

static void model_body(const void *arg)
{
    const Given *t = arg;
    Overrides none = { { NULL, 0, 0 }, { NULL, 0, 0 } };
    model(load_text("x.yaml", t->text, t->n), "x.yaml", &none);
}

static Given repeat(const char *head, const char *piece, int times)
{
    size_t n = strlen(head), m = strlen(piece);
    char *text = alloc(n + m * (size_t)times + 1);
    memcpy(text, head, n);
    for (int i = 0; i < times; i++)
        memcpy(text + n + m * (size_t)i, piece, m);
    return (Given){ text, n + m * (size_t)times };
}

static Given different_keys(int count)
{
    char *text = alloc((size_t)count * 10 + 1), *p = text;
    for (int i = 0; i < count; i++)
        p += sprintf(p, "k%06d: \n", i);
    return (Given){ text, (size_t)(p - text) };
}

static void test_hostile(void)
{
    const struct { const char *what; Given text; const char *says; } cases[] = {
        { "2 MiB of [", repeat("", "[", 1 << 21), "more than 1048576 bytes" },
        { "1 MiB of [", repeat("", "[", 1 << 20), "deep" },
        { "1 MiB of - ", repeat("", "- ", 1 << 19), "deep" },
        { "1 MiB of {a: ", repeat("", "{a: ", 1 << 18), "deep" },
        { "1 MiB of ? ", repeat("", "? ", 1 << 19), "a key that is a map" },
        { "a line of 1 MiB", repeat("a: ", "x", (1 << 20) - 4), "a text of 1048572 bytes" },
        { "a quoted line of 1 MiB", repeat("a: \"", "x", (1 << 20) - 5), "quote" },
        { "a text of 4097 bytes", repeat("a: ", "x", 4097), "a text of 4097 bytes" },
        { "a key of 1 MiB", repeat("", "x", (1 << 20) - 2), "1048574 bytes" },
        { "1 MiB of ]", repeat("", "]", 1 << 20), "YAML" },
        { "1 MiB of comments", repeat("", "#\n", 1 << 19), "nothing in here" },
        { "1 MiB of anchors", repeat("", "&a ", 1 << 18), "x.yaml:1:" },
        { "262144 items", repeat("a: [", "b,", 1 << 18), "more than 100000 values" },
        { "100000 different keys", different_keys(100000), "more than 100000 values" },
        { "40000 equal keys", repeat("", "k: v\n", 40000), "20 errors" },
        { "NUL", { "a: \0b", 5 }, "U+0000" },
        { "nothing", { "", 0 }, "nothing in here" },
        { "UTF-16", { "\xff\xfe" "a\0:\0", 6 }, "0xff is not UTF-8" },
    };
    char got[10000];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int status = run(load_body, &cases[i].text, got, sizeof got);
        check(status == 3 && strstr(got, cases[i].says) && strlen(got) < 6000, cases[i].what,
              strf("status %d\n%s", status, got));
    }
    Given many = different_keys(49000);
    check(run(load_body, &many, got, sizeof got) == 0, "49000 different keys", got);
}

/* Prefixes and mutations of a valid file are read, or refused with status 3. */
static void test_fuzz(const char *root)
{
    static const char bytes[] = "\t\n :,-[]{}&*!|>%@`'\"#?\\\xff\0" "0B~/";
    size_t n = 0;
    char *text = read_all(strf("%s/model/full.yaml", root), &n), got[20000];
    uint64_t state = 7;
    int odd = 0;
    check(text != NULL, "full.yaml", "is not there");
    for (size_t i = 0; i < n; i += 29) {
        Given t = { text, i };
        int status = run(model_body, &t, got, sizeof got);
        odd += status != 0 && status != 3;
    }
    for (int i = 0; i < 300; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        char *copy = alloc(n + 1);
        memcpy(copy, text, n);
        copy[(state >> 20) % n] = bytes[(state >> 50) % (sizeof bytes - 1)];
        Given t = { copy, n };
        int status = run(model_body, &t, got, sizeof got);
        odd += status != 0 && status != 3;
    }
    check(!odd, "prefixes and mutations", strf("%d ended with neither 0 nor 3; the last said %s", odd, got));
}

/* ---- expressions ------------------------------------------------------------------------------------------ */

static bool lookup(void *ctx, const char *name, double *value)
{
    (void)ctx;
    *value = *name == 'L' ? 12 : *name == 'D' ? 768 : 0.5;
    return !strcmp(name, "L") || !strcmp(name, "D") || !strcmp(name, "h.p");
}

static void int_body(const void *arg)
{
    const char *text = arg;
    expr_int((Loc){ diag_file("x.yaml", text, strlen(text)), 1, 1 }, text, lookup, NULL);
}

static const struct { const char *text; int64_t value; } ints[] = {
    { "0", 0 }, { "3*D", 2304 }, { "1+2*3", 7 }, { "(1+2)*3", 9 }, { "10-2-3", 5 }, { "64/4/2", 8 }, { "-3", -3 },
    { "--3", 3 }, { "2*-3", -6 }, { "+5", 5 }, { "D/L", 64 }, { "7/2*2", 7 }, { "ceil(7/2)", 4 }, { "ceil(-7/2)", -3 },
    { "mod(7, 3)", 1 }, { "mod(-1, 3)", 2 }, { "mod(6, 3)", 0 },
    { "min(3, D, 2)", 2 }, { "max(3,L,2)", 12 }, { "sqrt(D*D)", 768 }, { "1e3", 1000 }, { "h.p*4", 2 },
    { "9223372036854775807", INT64_MAX }, { "-9223372036854775807-1", INT64_MIN }, { " ( 1 + 2 ) ", 3 },
    { "9007199254740993", 9007199254740993 }, { "9007199254740993*3/3", 9007199254740993 }, { "16/0.5", 32 },
    { "4611686018427387904+4611686018427387903", INT64_MAX },
    { "max(9007199254740993, 9007199254740992)", 9007199254740993 },
};
static const struct { const char *text; double value; } floats[] = {
    { "1e-8", 1e-8 }, { "0.02/sqrt(2*L)", 0.02 / 4.898979485566356 }, { "7/2", 3.5 }, { "6e-4", 6e-4 }, { ".5", 0.5 },
    { "1.", 1 }, { "1E+2", 100 }, { "min(0.5, 1)", 0.5 }, { "-0.5", -0.5 }, { "1/3", 1.0 / 3 },
};
static const struct { const char *text, *says; } wrong[] = {
    { "", "ends where" }, { "1+", "ends where" }, { "(1", "')'" }, { "1)", "an operator" }, { "3D", "an operator" },
    { "0x10", "an operator" }, { "1_000", "an operator" }, { "1 2", "an operator" }, { "Q", "unknown name 'Q'" },
    { "7/2", "not an integer" }, { "1/0", "divides by zero" }, { "1/(L-12)", "divides by zero" }, { ".", "a number" },
    { "9223372036854775808", "64 bits" }, { "9223372036854775807+1", "64 bits" },
    { "4611686018427387904*2", "64 bits" },
    { "-9223372036854775807-2", "64 bits" }, { "(-9223372036854775807-1)/-1", "64 bits" },
    { "sqrt(-1)", "negative" }, { "1e", "operator" },
    { "mod(3)", "it takes two" }, { "mod(3, 0)", "at least 1" }, { "mod(3, 0.5)", "whole" },
    { "sqrt(1, 2)", "it takes one" }, { "min(1)", "two and more" }, { "sqr(4)", "did you mean 'sqrt'" },
    { "1..2", "an operator" }, { "1.2.3", "an operator" }, { "*3", "a number or a name" },
    { "2**3", "a number or a name" },
    { "9007199254740993/2", "not an integer" }, { "sqrt(2)", "not an integer" }, { ".inf", "a number" },
    { "1e999", "no finite" }, { "1e308*10", "no finite" }, { "sqrt(9007199254740993*9007199254740991)", "64 bits" },
};

static void test_expr(void)
{
    char got[10000];
    Loc at = { 0, 0, 0 };
    for (size_t i = 0; i < sizeof ints / sizeof *ints; i++)
        check(expr_int(at, ints[i].text, lookup, NULL) == ints[i].value, "integer", ints[i].text);
    for (size_t i = 0; i < sizeof floats / sizeof *floats; i++) {
        double x = expr_float(at, floats[i].text, lookup, NULL);
        check(fabs(x - floats[i].value) <= 1e-15 * fabs(x), "float", floats[i].text);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        int status = run(int_body, wrong[i].text, got, sizeof got);
        check(status == 3 && strstr(got, wrong[i].says), wrong[i].text, strf("status %d\n%s", status, got));
    }
    Given deep = repeat("", "(", 4000), minus = repeat("", "-", 4000);
    check(run(int_body, deep.text, got, sizeof got) == 3 && strstr(got, "nested"), "4000 brackets", got);
    check(run(int_body, minus.text, got, sizeof got) == 3 && strstr(got, "nested"), "4000 signs", got);
}

/* ---- fields ------------------------------------------------------------------------------------------------ */

#define EQUAL(a, b) check((a) == (b), #a, strf("%.17g, not %.17g", (double)(a), (double)(b)))
#define SAME(a, b) check(!strcmp((a), (b)), #a, strf("%s, not %s", (a), (b)))

static void full_model(const Model *m)
{
    SAME(m->name, "full-1");
    EQUAL(m->dims.n, 5);
    SAME(m->dims.at[4].name, "F");
    EQUAL(m->dims.at[4].value, 64);
    EQUAL(m->dims.at[1].value, 32);             /* -D */
    EQUAL(m->inputs.n, 2);
    SAME(m->inputs.at[1].name, "targets");
    EQUAL(m->inputs.at[1].type, I32);
    EQUAL(m->inputs.at[1].lo, 0);
    EQUAL(m->inputs.at[1].hi, 256);
    EQUAL(m->inputs.at[1].shape->n, 2);
    EQUAL(m->inputs.at[1].loc.line, 7);
    EQUAL(m->inputs.at[1].loc.col, 5);
    EQUAL(m->inits.n, 6);
    EQUAL(m->inits.at[0].kind, INIT_UNIFORM);
    EQUAL(m->inits.at[0].a, -0.5);
    EQUAL(m->inits.at[0].b, 0.25);
    EQUAL(m->inits.at[1].kind, INIT_NORMAL);
    EQUAL(m->inits.at[1].b, 0.02 / 2);
    EQUAL(m->inits.at[2].kind, INIT_ONES);
    SAME(m->inits.at[3].name, "bias");          /* a default */
    EQUAL(m->blocks->n, 1);
    EQUAL(m->graph->n, 2);
    SAME(m->loss, "loss");
    SAME(m->ckpt.dir, "run dir");
    EQUAL(m->ckpt.every, 50);
    EQUAL(m->ckpt.keep, 7);                     /* --set */
    EQUAL(m->trace, true);                      /* --set, a whole section */
}

static void full_train(const Model *m)
{
    const Train *t = &m->train;
    EQUAL(t->compute, BF16);
    EQUAL(t->batch, 4);
    EQUAL(t->global, 32);
    EQUAL(t->micro, 8);
    EQUAL(t->groups, 2);
    EQUAL(t->steps, 20);                        /* --set */
    EQUAL(t->opt, OPT_ADAMW);
    EQUAL(t->lr, 6e-4);
    EQUAL(t->beta1, 0.9);
    EQUAL(t->beta2, 0.95);
    EQUAL(t->eps, 1e-8);
    EQUAL(t->weight_decay, 0.1);
    EQUAL(t->decay_matrices, true);
    EQUAL(t->no_decay.n, 2);
    SAME(t->no_decay.at[1], "wpe.*");
    EQUAL(t->schedule, LR_COSINE);
    EQUAL(t->warmup, 5);
    EQUAL(t->final, 0.1);
    EQUAL(t->clip, 1);
    EQUAL(t->clip_each, true);
    EQUAL(t->seed, 1234);
    SAME(m->data.format, "bytes");
    EQUAL(m->data.files.n, 1);
    EQUAL(m->data.role.n, 2);
    SAME(m->data.role.at[1], "next");
    EQUAL(m->data.input.at[1], 1);
    EQUAL(m->data.sequential, true);
    SAME(m->eval.format, "bytes");              /* from the training set */
    EQUAL(m->eval.files.n, 2);
    EQUAL(m->eval.role.n, 2);
    EQUAL(m->eval.every, 25);
    EQUAL(m->eval.batches, 3);
}

static void full_plan(const Model *m)
{
    EQUAL(m->devices.n, 3);
    SAME(m->devices.at[0].name, "big.0");
    SAME(m->devices.at[1].name, "big.1");
    SAME(m->devices.at[2].name, "small");
    EQUAL(m->devices.at[1].memory, 13107200 - 1000000);     /* --set, less reserve */
    EQUAL(m->devices.at[2].memory, 4 << 20);                /* max_memory */
    EQUAL(m->devices.at[0].threads, 2);
    SAME(m->devices.at[0].kernels, "onednn");
    EQUAL(m->devices.at[0].flops[0], 1.5e12);
    EQUAL(m->devices.at[0].flops[1], 1.5e12);
    EQUAL(m->devices.at[0].bandwidth, 2e10);
    EQUAL(m->links.n, 3);
    SAME(m->links.at[1].from, "big");
    SAME(m->links.at[1].to, "small");
    EQUAL(m->links.at[1].rate, 3e9);
    EQUAL(m->links.at[1].latency, -1);
    SAME(m->links.at[2].from, "small");
    check(!m->links.at[2].to, "small-host", "does not lead to the host");
    EQUAL(m->links.at[2].rate, 5e9);
    EQUAL(m->host_memory, (Bytes)64 << 30);
    EQUAL(m->plan.stages_min, 1);
    EQUAL(m->plan.stages_max, 2);
    EQUAL(m->plan.chunks, 1);
    SAME(m->plan.schedule, "1f1b");
    SAME(m->plan.transport, "mpi");
    SAME(m->plan.planner, "exact");
    EQUAL(m->plan.recompute, RECOMPUTE_LIST);
    EQUAL(m->plan.names.n, 2);
    SAME(m->plan.cut_after.at[0], "h.5");
    SAME(m->plan.no_cut.at[0], "h.*.attn.*");
    SAME(m->plan.keep.at[0], "h.*.ln_1");
    EQUAL(m->plan.same_stage.n, 1);
    SAME(m->plan.same_stage.at[0].at[1], "lm_head");
}

static void test_full(const char *root)
{
    Overrides over = { { NULL, 0, 0 }, { NULL, 0, 0 } };
    *PUSH(&over.define) = "T=32";
    *PUSH(&over.set) = "train.steps=10*L";
    *PUSH(&over.set) = "checkpoint.keep=7";
    *PUSH(&over.set) = "report={trace: chrome}";
    *PUSH(&over.set) = "devices.0.memory=12.5MiB";
    char *path = strf("%s/model/full.yaml", root);
    const Model *m = model(load(path), path, &over);
    full_model(m);
    full_train(m);
    full_plan(m);
}

static const Model *short_model(const char *first, const char *second)
{
    static const char text[] = "dpgen: 1\nmodel:\n  inputs: {x: {shape: [B, 3], dtype: f32}}\n"
                               "  graph: [{op: Mean, as: y}]\n  loss: y\n";
    Overrides over = { { NULL, 0, 0 }, { NULL, 0, 0 } };
    if (first)
        *PUSH(&over.set) = first;
    if (second)
        *PUSH(&over.set) = second;
    return model(load_text("dir/short.v2.yaml", text, strlen(text)), "dir/short.v2.yaml", &over);
}

static void test_defaults(void)
{
    const Model *m = short_model(NULL, NULL);
    SAME(m->name, "short");
    EQUAL(m->train.compute, F32);
    EQUAL(m->train.batch, 1);
    EQUAL(m->train.micro, 8);
    EQUAL(m->train.global, 8);
    EQUAL(m->train.groups, 1);
    EQUAL(m->train.steps, 1000);
    EQUAL(m->train.opt, OPT_ADAMW);
    EQUAL(m->train.beta2, 0.999);
    EQUAL(m->train.clip, 0);
    EQUAL(m->train.decay_matrices, false);
    check(!m->data.format && !m->eval.format && !m->blocks, "defaults", "no data, no blocks");
    EQUAL(m->devices.n, 1);
    SAME(m->devices.at[0].kind, "cpu");
    SAME(m->devices.at[0].kernels, "portable");
    EQUAL(m->devices.at[0].memory, 8589934592);
    EQUAL(m->devices.at[0].threads, 1);
    EQUAL(m->plan.stages_max, 1);
    EQUAL(m->plan.recompute, RECOMPUTE_NONE);
    SAME(m->plan.schedule, "auto");
    SAME(m->plan.transport, "local");
    EQUAL(m->ckpt.keep, 3);
    EQUAL(m->ckpt.every, 0);
    EQUAL(m->trace, false);

    m = short_model("plan.stages=4", NULL);     /* as many devices as stages */
    EQUAL(m->devices.n, 4);
    SAME(m->devices.at[3].name, "cpu.3");
    m = short_model("plan.cuts=[3, 7]", "devices=[{count: 4}]");    /* as many stages as cuts make */
    EQUAL(m->plan.stages_min, 3);
    EQUAL(m->plan.cuts.at[1], 7);
    m = short_model("train.batch.micro=auto", "train.batch.global=12");
    EQUAL(m->train.batch, 0);
    EQUAL(m->train.micro, 0);
    EQUAL(m->train.global, 12);
}

/* A path of keys is what node_get() gives key by key; nothing stands below a text or a list. */
static void test_paths(void)
{
    static const char text[] = "a: {b: {c: 1}, l: [2]}\nt: x";
    const Node *root = load_text("paths", text, sizeof text - 1), *a = node_get(root, "a");
    check(a && node_at(root, "a") == a, "node_at", "a");
    check(node_at(root, "a.b.c") && node_at(root, "a.b.c") == node_get(node_get(a, "b"), "c"), "node_at", "a.b.c");
    check(!node_at(root, "a.c") && !node_at(root, "t.x") && !node_at(root, "a.l.0") && !node_at(root, "b.c"), "node_at",
          "a node where there is none");
    Op o = {.attr = {NULL, 0, 0}};
    ATTRS(&o, {"m", 3}, {"n", -4}, {"m", 5});
    check(o.attr.n == 2 && attr_int(&o, "m") == 5 && attr_int(&o, "n") == -4, "ATTRS", "not the last number of each");
}

int main(int argc, char **argv)
{
    bool write = argc > 1 && !strcmp(argv[1], "--write");
    const char *root = argc > 1 + write ? argv[1 + write] : "tests";
    goldens(root, "load", write);
    goldens(root, "model", write);
    test_paths();
    test_hostile();
    test_expr();
    test_full(root);
    test_defaults();
    test_fuzz(root);
    mem_free_all();
    printf("unit_model: %d passed, %d failed\n", passed, failed);
    return failed > 0;
}
