/* SPDX-License-Identifier: Apache-2.0
 *
 * unit_prof: the profile as a file and as prices.
 *
 *   text       print(read(x)) == x; every line cut off, damaged, doubled or out of order is refused with status 5
 *   signature  each signed field altered: status 5, the line of that field, both values, what to do; --elsewhere lets the
 *              machine's fields pass, and no others
 *   prices     rows of known times: exact sizes, sizes between and beyond by the formula of docs/planner.md, stages between
 *              alone and busy, messages and copies on their curves, a call without a row
 */
#include "plan.h"
#include "cost/prof.h"
#include "profile/calls.h"
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int passed, failed;
static const char *path, *said;

static void check(bool right, const char *what)
{
    passed += right;
    failed += !right;
    if (!right)
        fprintf(stderr, "unit_prof: %s\n", what);
}

static void equal(const char *what, int64_t got, int64_t want)
{
    check(got == want, strf("%s is %lld, not %lld", what, (long long)got, (long long)want));
}

/* ---- a model ----------------------------------------------------------------------------------------------------- */

static const char text[] =
    "dpgen: 1\n"
    "model:\n"
    "  name: one\n"
    "  inputs: {x: {shape: [B, 8], dtype: f32}, t: {shape: [B, 4], dtype: f32}}\n"
    "  graph:\n"
    "    - {op: Linear, name: fc, in: x, out: 6}\n"
    "    - {op: Gelu, name: act}\n"
    "    - {op: Linear, name: head, out: 4}\n"
    "    - {op: MeanSquaredError, targets: t, as: loss}\n"
    "  loss: loss\n"
    "devices: [{name: cpu, count: 5, threads: 3}]\n";

static Model *model_with(int stages, int batch, const char *more)
{
    const char *all = strf("%splan: {stages: {max: %d}%s}\ntrain: {batch: {global: %d, micro: %d}}\n", text, stages, more,
                           4 * batch, batch);
    return model(load_text("unit_prof.yaml", all, strlen(all)), "unit_prof.yaml", NULL);
}

static const Graph *graph_of(const Model *m)
{
    Graph *g = build(m);
    shape(g, m);
    grad(g, m);
    fuse(g, m);
    return g;
}

/* ---- a profile --------------------------------------------------------------------------------------------------- */

/* Times that no line goes through, and that tell the rows apart. */
static Ns alone_of(int op, int batch) { return 1000 * (op + 1) + 37 * batch * batch + 11; }
static Ns busy_of(int op, int batch) { return alone_of(op, batch) + 300 * (op + 2); }

static void add(Profile *p, const char *what, Ns alone, Ns busy)
{
    for (int i = 0; i < p->measured.n; i++)
        if (!strcmp(p->measured.at[i].what, what))
            return;
    *PUSH(&p->measured) = (Measured){what, {alone, 1}, {busy, 2}};
}

/* Signed for a model of three stages, measured at 1, 2 and 4. */
static Profile *make(void)
{
    static const int batches[] = {1, 2, 4};
    Profile *p = alloc(sizeof *p);
    profile_sign(p, model_with(3, 2, ""), true);
    for (int i = 0; i < 3; i++) {
        const Graph *g = graph_of(model_with(3, batches[i], ""));
        *PUSH(&p->batch) = batches[i];
        for (int o = 0; o < g->op.n; o++)
            add(p, strf("op %s", cost_signature(&g->op.at[o])), alone_of(o, batches[i]), busy_of(o, batches[i]));
    }
    add(p, "message bytes=4", 500, 800);
    add(p, "message bytes=4096", 1524, 2848);
    add(p, "message bytes=65536", 1500, 17408);
    add(p, "copy-in bytes=65536", 100, 6553);
    add(p, "copy-out bytes=65536", 90, 65536);
    add(p, "copy-in bytes=1048576", 900, 1048576);
    add(p, "copy-out bytes=1048576", 901, 1048575);
    add(p, "compute batch=2", 5, 6);
    *PUSH(&p->algorithm) = (Algorithm){"algorithm matmul_backward batch=2 part=0", {1, 2, 3, 4, 5, 6, 7, 8, 9, INT32_MAX}};
    *PUSH(&p->algorithm) = (Algorithm){"algorithm linear_forward rows=1 in=8 out=6 part=1", {0}};
    profile_sort(p);
    return p;
}

static const char *print(const Profile *p)
{
    Text t;
    profile_print(text_open(&t), p);
    text_close(&t);
    return t.at;
}

static void store(const char *content, size_t n)
{
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(content, 1, n, f) != n || fclose(f))
        die("unit_prof cannot write %s", path);
}

/* What opening the file ends with; its words go to `said`. */
static int open_status(int stages, bool elsewhere)
{
    char *words = alloc(4096);
    int pipes[2], status = 0;
    fflush(NULL);
    if (pipe(pipes))
        die("no pipe");
    pid_t child = fork();
    if (child == 0) {
        dup2(pipes[1], 2);
        profile_open(path, model_with(stages, 2, ""), elsewhere);
        _exit(0);
    }
    close(pipes[1]);
    for (ssize_t n = 0, k; (k = read(pipes[0], words + n, 4095 - (size_t)n)) > 0;)
        n += k;
    close(pipes[0]);
    waitpid(child, &status, 0);
    said = words;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

static void refused(const char *what, const char *content, size_t n)
{
    store(content, n);
    int status = open_status(3, false);
    check(status == EXIT_STALE && strstr(said, path), strf("%s: status %d: %s", what, status, said));
}

static size_t line_end(const char *content, int line)
{
    const char *at = content;
    while (line-- > 0)
        at = strchr(at, '\n') + 1;
    return (size_t)(at - content);
}

static int lines_of(const char *content)
{
    int n = 0;
    for (; *content; content++)
        n += *content == '\n';
    return n;
}

static void test_text(void)
{
    const char *good = print(make());
    size_t n = strlen(good);
    int lines = lines_of(good);
    store(good, n);
    check(!strcmp(print(profile_parse(path, "measure again")), good), "read and printed it is another text");
    equal("status of the good one", open_status(3, false), 0);
    for (int line = 0; line < 14; line++)
        refused(strf("ends after line %d", line), good, line_end(good, line));
    refused("ends within a line", good, n - 1);
    refused("ends within a number", good, n - 3);
    for (int line = 0; line < lines; line++) {
        size_t from = line_end(good, line), to = line_end(good, line + 1), k = to - from;
        const char *twice = strf("%.*s%.*s%s", (int)to, good, (int)k, good + from, good + to);
        const char *blank = strf("%.*s\n%s", (int)from, good, good + from);
        refused(strf("line %d twice", line + 1), twice, strlen(twice));
        refused(strf("a blank line before line %d", line + 1), blank, strlen(blank));
    }
    size_t a = line_end(good, lines - 2), b = line_end(good, lines - 1);
    const char *swapped = strf("%.*s%s%.*s", (int)a, good, good + b, (int)(b - a), good + a);
    refused("the last two lines swapped", swapped, strlen(swapped));
    char *zero = strf("%s", good);
    zero[n / 2] = '\0';
    refused("a zero byte", zero, n);
    static const char *const last[] = {"op z alone=1 alone_iqr=1 busy=1\n", "op z alone=-1 alone_iqr=1 busy=1 busy_iqr=1\n",
        "op z alone=01 alone_iqr=1 busy=1 busy_iqr=1\n", "op z alone=1 alone_iqr=1 busy=1 busy_iqr=99999999999999999999\n",
        "op z alone=1000000000001 alone_iqr=1 busy=1 busy_iqr=1\n",
        "op  alone=1 alone_iqr=1 busy=1 busy_iqr=1 \n", "zz bytes=1 alone=1 alone_iqr=1 busy=1 busy_iqr=1\n", "# words\n"};
    for (size_t i = 0; i < sizeof last / sizeof *last; i++)
        refused(last[i], strf("%s%s", good, last[i]), n + strlen(last[i]));
    unlink(path);
    equal("status without a file", open_status(3, false), EXIT_USAGE);
}

/* Whatever happens to a file, it is taken or refused. */
static void test_damage(void)
{
    const char *good = print(make());
    size_t n = strlen(good);
    uint32_t seed = 1;
    for (int turn = 0; turn < 400; turn++) {
        char *bad = strf("%s", good);
        for (int k = 0; k < 1 + turn % 3; k++) {
            seed = seed * 1664525 + 1013904223;
            size_t at = seed % n;
            seed = seed * 1664525 + 1013904223;
            bad[at] = turn % 2 ? (char)(seed >> 24) : " \n0123456789-= x"[seed >> 24 & 15];
        }
        store(bad, n);
        int status = open_status(3, true);
        check(status == 0 || (status == EXIT_STALE && strstr(said, path)),
              strf("damage %d: status %d: %s", turn, status, said));
    }
}

/* ---- signature --------------------------------------------------------------------------------------------------- */

static void test_signature(void)
{
    static const struct { const char *key, *with; bool machine; } fields[SIGNS] = {
        {"device", "Intel 4004", true}, {"compiler", "pcc 1.0.0", true}, {"kernels", "portable 0", true},
        {"isa", "x86-64-v2", false}, {"compute", "bf16", false}, {"threads", "4", false}, {"stages", "2", false},
        {"transport", "mpi", false}, {"runtime", "0123456789abcdef", true}};
    for (int i = 0; i < SIGNS; i++) {
        Profile *p = make();
        const char *had = p->sign[i];
        p->sign[i] = fields[i].with;
        const char *content = print(p);
        store(content, strlen(content));
        int status = open_status(3, false);
        check(status == EXIT_STALE && strstr(said, strf("%s:%d: ", path, i + 2)) && strstr(said, fields[i].key)
              && strstr(said, fields[i].with) && strstr(said, had) && strstr(said, "dpgen profile unit_prof.yaml -o "),
              strf("%s altered: status %d: %s", fields[i].key, status, said));
        equal(strf("%s altered, elsewhere", fields[i].key), open_status(3, true), fields[i].machine ? 0 : EXIT_STALE);
    }
    const char *good = print(make());
    store(good, strlen(good));
    equal("fewer stages than measured", open_status(2, false), 0);
    equal("more stages than measured", open_status(4, false), EXIT_STALE);
    Model *m = model_with(2, 2, "");
    m->plan.replicas = 2;
    equal("two replicas of two stages", profile_computing(m), 4);
}

/* ---- prices ------------------------------------------------------------------------------------------------------ */

/* Each operator's time at a micro-batch; between b0 and b1, or behind them, on their line.  Equal signatures have one row,
 * that of the first operator; update does not depend on the batch and has the row of batch 1. */
static void test_batch(Profile *p, int batch, int b0, int b1, const char *how)
{
    const Model *m = model_with(3, batch, "");
    const Graph *g = graph_of(m), *low = graph_of(model_with(3, b0, ""));
    const Cost *c = cost(g, m, p);
    for (int o = 0; o < g->op.n; o++) {
        int first = 0;
        while (strcmp(cost_signature(&low->op.at[first]), cost_signature(&low->op.at[o])))
            first++;
        bool fixed = !strcmp(cost_signature(&low->op.at[o]), cost_signature(&g->op.at[o])) && b0 != batch;
        Ns t0 = alone_of(first, fixed ? 1 : b0), t1 = alone_of(first, fixed ? 1 : b1);
        if (g->op.at[o].phase == PH_U || !strcmp(g->op.at[o].call, "loss_seed") || !strcmp(g->op.at[o].call, "loss_report"))
            t0 = t1 = alone_of(first, 1);
        Ns want = b0 == b1 ? t0 : t0 + (t1 - t0) * (batch - b0) / (b1 - b0);
        equal(strf("batch %d, %s", batch, g->op.at[o].name), cost_op(c, 4, o), want);
        equal(strf("batch %d, %s, busy", batch, g->op.at[o].name), cost_op(cost_shared(c, m, 3), 0, o),
              want + 300 * (first + 2));
        equal(strf("batch %d, %s, two of three", batch, g->op.at[o].name), cost_op(cost_shared(c, m, 2), 0, o),
              want + 300 * (first + 2) / 2);
    }
    check(!strcmp(c->how, how) && c->profile == p, strf("batch %d is %s", batch, c->how));
    check(!strcmp(cost_shared(c, m, 2)->how, "interpolated"), "two of three stages are interpolated");
    check(cost_shared(c, m, 1) == c, "one stage is alone");
}

static void test_links(Profile *p)
{
    const Model *m = model_with(3, 2, "");
    const Cost *c = cost(graph_of(m), m, p), *busy = cost_shared(c, m, 3);
    equal("latency", cost_latency(c, 0, 1), 500);
    equal("latency, others busy", cost_latency(busy, 0, 1), 500);
    equal("wire of 4096", cost_wire(c, 0, 1, 4096), 1024);
    equal("wire of 4096, others busy", cost_wire(busy, 2, 1, 4096), 1024);
    equal("wire of 2050, half way from (4, 1) to (4096, 1024)", cost_wire(c, 0, 1, 2050), 513);
    equal("a larger message is not faster", cost_wire(c, 0, 1, 65536), 1024);
    equal("behind the last at its rate", cost_wire(busy, 0, 1, 655360), 10241);
    for (Bytes a = 1; a < 200000; a += 997)
        for (Bytes b = 1; b < 200000; b += 7919)
            if (cost_wire(c, 0, 1, a + b) > cost_wire(c, 0, 1, a) + cost_wire(c, 0, 1, b)
                || cost_host(c, 0, a + b) > cost_host(c, 0, a) + cost_host(c, 0, b))
                check(false, strf("%lld and %lld bytes take longer as one", (long long)a, (long long)b));
    equal("copies: the slower way, busy", cost_host(c, 0, 65536), 65536);
    equal("copies, larger", cost_host(busy, 0, 1048576), 1048576);
    equal("copies, between", cost_host(busy, 0, 557056), 557056);
    const Model *mpi = model_with(3, 2, ", transport: mpi");
    equal("ranks on one host are busy", cost_shared(c, mpi, 3) == c, false);
    Model *apart = model_with(3, 2, ", transport: mpi");
    apart->hosts = 3;
    equal("a host for each is not", cost_shared(c, apart, 3) == c, true);
    Model *few = model_with(3, 2, "");          /* three stages on the cores of two: alone * 3 / 2, or busy */
    few->cores = 2 * few->devices.at[0].threads;
    const Cost *turns = cost_shared(c, few, 3);
    for (int o = 0; o < c->ops; o++) {
        Ns turn = (cost_op(c, 0, o) * 3 + 1) / 2, beside = cost_op(busy, 0, o);
        equal(strf("call %d takes turns", o), cost_op(turns, 0, o), turn > beside ? turn : beside);
    }
    equal("two stages there do not", cost_op(cost_shared(c, few, 2), 0, 0), cost_op(cost_shared(c, m, 2), 0, 0));
    few->cores = 1;
    /* threads of three by those of one: its own took turns while it was measured alone */
    Ns own = cost_op(c, 0, 0) * 3;
    equal("its own threads are not counted twice", cost_op(cost_shared(c, few, 3), 0, 0), own);
}

static int lacking(void)
{
    int status = 0;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        Profile *p = make();
        const Model *m = model_with(3, 2, "");
        p->measured.n--;
        if (!freopen("/dev/null", "w", stderr))
            _exit(99);
        cost(graph_of(m), m, p);
        _exit(0);
    }
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

/* A fit of kernels whose time is a multiple of the estimate, or, where three sizes are measured, on a line: the others are told
 * to the nanosecond.  No kernel is without a measured call, and at most three of one are used. */
static void test_fit(void)
{
    enum { SIZES = 7 };
    const Graph *g[SIZES];
    for (int i = 0; i < SIZES; i++)
        g[i] = graph_of(model_with(2, 1 << i, ""));
    Bench *b = bench_of(model_with(2, 4, ""), g, SIZES, g[2]);
    Fit *f = fit_of(b);
    Profile *p = alloc(sizeof *p);
    Ns *time = alloc(sizeof *time * (size_t)b->call.n);
    int judged = 0, apart = 0;
    for (int i = 0; i < b->call.n; i++) {
        int sizes = 0, used = 0;
        for (int k = 0; k < b->call.n; k++) {
            bool same = !strcmp(b->call.at[k].o->call, b->call.at[i].o->call);
            sizes += same;
            used += same && f->why[k] == FIT_USED;
        }
        check(used == (sizes < 6 ? 1 : 3), "calls of a kernel that are used");
        time[i] = 7 * f->work[i] + (sizes < 6 ? 0 : 1000);
        judged += f->why[i] == FIT_JUDGED;
        apart += sizes < 6;
        if (f->why[i] != FIT_NONE)
            *PUSH(&p->measured) = (Measured){strf("op %s", b->call.at[i].signature), {time[i], 0}, {2 * time[i], 0}};
    }
    check(judged > 0 && apart > 0 && p->measured.n == f->few.call.n && p->measured.n < b->call.n, "some are measured");
    for (int i = 0; i < f->few.mix.n; i++)
        check(f->few.mix.at[i] >= 0 && f->few.mix.at[i] < f->few.call.n, "the mix has measured calls alone");
    fit_fill(f, p);
    profile_sort(p);
    check(p->measured.n == b->call.n, "every call has a row");
    for (int i = 0; i < b->call.n; i++) {
        const Measured *row = profile_find(p, strf("op %s", b->call.at[i].signature));
        equal("alone, by the others", row->alone.median, time[i]);
        equal("busy, by the others", row->busy.median, 2 * time[i]);
    }
}

/* A library without headers of others has the version of dpgen, and its own word. */
static void test_kernels(void)
{
    static const char *const words[] = {"portable", "paced"};
    for (int i = 0; i < 2; i++) {
        Device d = {.kind = "cpu", .kernels = words[i]};
        Model m = *model_with(3, 2, "");
        const char *compiler, *kernels;
        m.devices.at = &d;
        machine_compiler(&m, &compiler, &kernels);
        check(!strcmp(kernels, words[i]), strf("kernels %s are called %s", words[i], kernels));
    }
}

int main(void)
{
    const char *folder = getenv("TMPDIR") ? getenv("TMPDIR") : ".";
    path = strf("%s/unit_prof.%ld", folder, (long)getpid());
    equal("status where a call has no row", lacking(), EXIT_STALE);
    test_text();                    /* these fork, so they go first */
    test_damage();
    test_signature();
    unlink(path);
    Profile *p = make();
    test_batch(p, 1, 1, 1, "measured");
    test_batch(p, 2, 2, 2, "measured");
    test_batch(p, 4, 4, 4, "measured");
    test_batch(p, 3, 2, 4, "interpolated");
    test_batch(p, 7, 2, 4, "interpolated");
    test_links(p);
    test_fit();
    test_kernels();
    check(!strcmp(profile_name(model_with(3, 2, "")), "unit_prof.cpu.profile"), "the name beside the model");
    printf("unit_prof: %d passed, %d failed\n", passed, failed);
    mem_free_all();
    return failed > 0;
}
