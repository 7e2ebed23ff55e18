/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_jobs.c: what turns a model file into jobs of tests/fuzz.sh.
 *
 *     fuzz_jobs data MODEL.yaml DIR            arrays for its inputs: DIR/INPUT.npy, always the same ones
 *     fuzz_jobs plans MODEL.yaml SEED COUNT    so many lines of options for dpgen, a plan each
 *     fuzz_jobs async MODEL.yaml SEED TYPE     two lines for a plan whose steps overlap: what it trains, for dpgen and the
 *                                              interpreter alike, and the rest, for dpgen
 *
 * Both read the model with the front end of dpgen, so they serve any model, also one that a person shrank by hand: inputs
 * have the shapes of the graph, and plans name its operators.  Ids are uniform in their declared range,
 * but for one in eight where a value may be ignored.  Reals are
 * +-m 2^e with e from -6 to 2: sums of them depend on their order.
 */
#include "plan.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 37, MOST_STAGES = 5, MOST_CHUNKS = 9, MOST_DEVICES = 10 };
/* ROWS: samples in each array, a prime, so that steps differ */

static uint64_t state;

static uint64_t draw(void)
{
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}
static int below(int n) { return (int)(draw() % (uint64_t)n); }
static bool chance(int percent) { return below(100) < percent; }

static const Graph *graph_of(const Model *m)
{
    Graph *g = build(m);
    bad_stop();
    shape(g, m);
    fp8(g, m);
    bad_stop();
    join_chains(g, m);
    grad(g, m);
    fuse(g, m);
    return g;
}

/* ---- data ---------------------------------------------------------------------------------------------------------------- */

static void write_header(FILE *file, Type type, const Shape *s)
{
    const char *shape = "";
    for (int i = 1; i < s->n; i++)
        shape = strf("%s%" PRId64 ", ", shape, s->d[i]);
    const char *text = strf("{'descr': '%s', 'fortran_order': False, 'shape': (%d, %s), }", type == I32 ? "<i4" : "<f4", ROWS,
                            shape);
    int room = (int)((10 + strlen(text) + 1 + 63) / 64 * 64 - 10);
    fwrite("\x93NUMPY\x01\x00", 1, 8, file);
    fputc(room & 255, file);
    fputc(room >> 8, file);
    fprintf(file, "%-*s\n", room - 1, text);
}

/* Little-endian, as npy says. */
static void write_word(FILE *file, uint32_t u)
{
    for (int i = 0; i < 4; i++)
        fputc((int)(u >> 8 * i & 255), file);
}

static uint32_t draw_id(const Input *in, const int *ignore)
{
    int64_t range = in->hi > in->lo ? in->hi - in->lo : 2;
    return ignore && below(8) == 0 ? (uint32_t)*ignore : (uint32_t)(in->lo + (int64_t)(draw() % (uint64_t)range));
}

/* ignore: NULL, or what stands for a target that does not count */
static void write_array(const char *path, const Input *in, const Shape *s, const int *ignore)
{
    FILE *file = fopen(path, "wb");
    if (!file)
        fail(EXIT_RUN, "%s: cannot write", path);
    state = hash64(in->name);
    write_header(file, in->type, s);
    int64_t n = ROWS;
    for (int i = 1; i < s->n; i++)
        n *= s->d[i];
    for (int64_t i = 0; i < n; i++) {
        float x = ldexpf((float)(1 + draw() % 4096), below(9) - 18) * (chance(50) ? 1.0f : -1.0f);
        uint32_t bits;
        memcpy(&bits, &x, sizeof bits);
        write_word(file, in->type == I32 ? draw_id(in, ignore) : bits);
    }
    if (fclose(file))
        fail(EXIT_RUN, "%s: cannot write", path);
}

static void write_data(const Model *m, const Graph *g, const char *dir)
{
    for (int t = 0; t < g->tensor.n; t++) {
        const Tensor *x = &g->tensor.at[t];
        int value, *ignore = x->kind == T_INPUT && input_ignores(g, x->of, &value) ? &value : NULL;
        if (x->kind == T_INPUT)
            write_array(strf("%s/%s.npy", dir, m->inputs.at[x->of].name), &m->inputs.at[x->of], &x->shape, ignore);
    }
}

/* ---- plans --------------------------------------------------------------------------------------------------------------- */

static int ascending(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* So many different positions below nf - 1, in order. */
static const char *cuts(const Graph *g, int n)
{
    int list[MOST_CHUNKS];
    const char *text = "";
    for (int i = 0; i < n;) {
        int at = below(g->nf - 1);
        bool twice = false;
        for (int k = 0; k < i; k++)
            twice |= list[k] == at;
        list[i] = at;
        i += !twice;
    }
    qsort(list, (size_t)n, sizeof *list, ascending);
    for (int i = 0; i < n; i++)
        text = strf("%s%s%d", text, i ? "," : "", list[i]);
    return text;
}

static bool fits_list(const Graph *g, int op, const char *text)
{
    return strcmp(g->op.at[op].name, "loss_report") && strlen(text) < 2000;
}

/* A list of names of operators, each with that chance, none of which is taken; takes them. */
static const char *some_of(const Graph *g, int share, bool *taken)
{
    const char *text = "";
    for (int i = 0; i < g->nf; i++) {
        bool twice = false;         /* equal names: all of them, or none */
        for (int k = 0; k < g->nf; k++)
            twice |= taken[k] && !strcmp(g->op.at[k].name, g->op.at[i].name);
        if (twice || !fits_list(g, i, text) || !chance(share))
            continue;
        taken[i] = true;
        text = strf("%s%s%s", text, *text ? ", " : "", g->op.at[i].name);
    }
    return text;
}

/* What waits in the host's memory, or a file, behind a link of any speed. */
static void print_offload(const Graph *g, bool *taken)
{
    const char *text = some_of(g, 20 + below(80), taken);
    if (!*text)
        return;
    if (chance(30))
        printf(" --offload \"{to: disk, what: [%s]}\"", text);
    else
        printf(" --offload \"[%s]\"", text);
    if (chance(60))
        printf(" --set links.cpu-host.rate=%dMB/s --set links.cpu-host.latency=%dns", 1 << below(16), 1 + below(5000));
    if (chance(30))
        printf(" --set links.cpu-host.rate=1GB/s --set links.cpu-host.duplex=half");
}

static const char *recomputed(const Graph *g, bool *taken)
{
    static const char *const words[] = {"none", "full", "auto"};
    if (chance(50))
        return words[below(3)];
    const char *text = some_of(g, 10 + below(80), taken);
    return *text ? strf("\"[%s]\"", text) : "none";
}

/* Each device at least one chunk, in any order. */
static const char *map(int chunks, int stages)
{
    int device[MOST_CHUNKS];
    const char *text = "";
    for (int c = 0; c < chunks; c++)
        device[c] = c < stages ? c : below(stages);
    for (int c = chunks - 1; c > 0; c--) {
        int other = below(c + 1), held = device[c];
        device[c] = device[other];
        device[other] = held;
    }
    for (int c = 0; c < chunks; c++)
        text = strf("%s%s%d", text, c ? "," : "", device[c]);
    return text;
}

/* From draws of its own, so that all others are what they were. */
static bool chance_aside(int percent)
{
    uint64_t kept = state;
    state = ~kept;
    bool yes = chance(percent);
    state = kept;
    return yes;
}

/* ---- plans of the other synchronous rows -------------------------------------------------------------------------------- */

typedef struct { const Schedule *row; int stages, replicas; } Way;

/* The model with that row, and the chunks and waves it has. */
static Model with_row(const Model *m, const Schedule *row, int replicas)
{
    Model with = *m;
    with.plan.schedule = row->name;
    with.plan.replicas = replicas;
    with.plan.chunks = row->chunks ? row->chunks : 1;
    return with;
}

static bool is_drawn(const Schedule *k)
{
    return !k->async && !k->depths && !k->improves && !k->given && !k->custom &&
           strcmp(k->name, "gpipe") && strcmp(k->name, "1f1b");
}

/* All numbers of stages and replicas with which this row takes the model. */
static int ways_of(const Model *m, const Graph *g, const Schedule *row, Way *way)
{
    int n = 0;
    for (int replicas = 1; replicas <= 4 && g->groups % replicas == 0; replicas *= 2)
        for (int stages = 1; stages <= MOST_STAGES && stages * replicas <= MOST_DEVICES; stages++) {
            Model with = with_row(m, row, replicas);
            if (g->nf >= stages * with.plan.chunks && !order_refuses(g, &with, row, stages))
                way[n++] = (Way){row, stages, replicas};
        }
    return n;
}

static void print_row(const Model *m, const Graph *g)
{
    enum { MOST_ROWS = 64, MOST_WAYS = 3 * MOST_STAGES };
    Way all[MOST_ROWS][MOST_WAYS];
    int many[MOST_ROWS], n = 0;
    for (const Schedule *k = schedules; k->name && n < MOST_ROWS; k++)
        if (is_drawn(k) && (many[n] = ways_of(m, g, k, all[n])) > 0)
            n++;
    if (n == 0)
        return;
    int row = below(n);
    Way x = all[row][below(many[row])];
    int chunks = x.stages * (x.row->chunks ? x.row->chunks : 1);
    bool *taken = alloc((size_t)g->nf);
    printf("--stages %d --schedule %s", x.stages, x.row->name);
    if (x.replicas > 1)
        printf(" --replicas %d%s", x.replicas, (row + x.stages) % 2 && !x.row->async && x.row->ways < 2
               ? (row + x.stages) % 4 > 1 ? " --set train.shard=gradients" : " --set train.shard=optimizer" : "");
    if (chunks > 1 && chunks <= MOST_CHUNKS && chance(60))
        printf(" --cuts %s", cuts(g, chunks - 1));
    printf(" --recompute %s", recomputed(g, taken));
    if (chance(40))
        print_offload(g, taken);
    printf("\n");
}

/* From draws of its own, too. */
static void print_row_aside(const Model *m, const Graph *g)
{
    uint64_t kept = state;
    state = ~kept;
    draw();
    print_row(m, g);
    state = kept;
}

static void print_plans(const Model *m, const Graph *g, int n)
{
    for (int i = 0; i < n; i++) {
        int most = g->nf < MOST_STAGES ? g->nf : MOST_STAGES, stages = i ? 1 + below(most) : most < 3 ? most : 3;
        int chunks = stages;
        bool one = chance(60);
        printf("--stages %d --schedule %s", stages, one ? "1f1b" : "gpipe");
        if (g->nf > stages && chance(40)) {
            chunks += 1 + below(g->nf - stages < MOST_CHUNKS - stages ? g->nf - stages : MOST_CHUNKS - stages);
            printf(" --map %s", map(chunks, stages));
        } else if (one && chance_aside(40)) {
            printf(" --set plan.warmup=B");
        }
        for (int r = 4; r > 1; r /= 2)
            if (g->groups % r == 0 && stages * r <= MOST_DEVICES && chance(60)) {
                printf(" --replicas %d", r);
                break;
            }
        if (chunks > 1 && chance(60))
            printf(" --cuts %s", cuts(g, chunks - 1));
        bool *taken = alloc((size_t)g->nf);
        printf(" --recompute %s", recomputed(g, taken));
        if (chance(40))
            print_offload(g, taken);
        if (chance_aside(25))
            printf(" --fuse none");
        printf("\n");
        if (i == 0 || n > 2)      /* each costs a job */
            print_row_aside(m, g);
    }
}

static bool tied(const Graph *g)
{
    for (int s = 0; s < g->state.n; s++)
        if (g->state.at[s].kind == S_GRAD && g->state.at[s].use > 0)
            return true;
    return false;
}

/* The rule takes the model, once options have changed it. */
typedef struct { const char *name; bool single, f32, newest; int opt; } Rule;
static const Rule rules[] = {       /* single: one micro-batch a step; newest: backward reads other weights than forward */
    {"2bw", false, false, false, -1}, {"pipedream", false, false, false, -1}, {"vertical", false, false, false, -1},
    {"spectrain-once", true, true, false, -1}, {"spectrain", true, true, true, -1}, {"pb", true, true, true, OPT_SGD},
    {"xpipe", false, true, true, -1}, {"timeprest", false, false, true, -1}, {"nag", false, false, false, OPT_ADAMW},
    {"pipemare", true, false, true, OPT_SGD},
};
enum { RULES = sizeof rules / sizeof *rules };

static const Rule *some_rule(const Model *m, bool f32)
{
    const Rule *k;
    do
        k = &rules[below(RULES)];
    while ((k->f32 && !f32) || (k->opt >= 0 && k->opt != (int)m->train.opt) || (k->opt == OPT_SGD && m->train.nesterov));
    return k;
}

/* 2bw wants as many micro-batches as stages; the others no norm of all; those that predict f32; some one micro-batch a step, as
 * the others often have; a tied weight one stage.  nag is AdamW with Nesterov's momentum.  Often two stages: over more, values
 * that skip some make dpgen refuse many of these models. */
static void print_async(const Model *m, const Graph *g, bool f32)
{
    const Rule *k = some_rule(m, f32);
    bool two = !strcmp(k->name, "2bw");
    int most = g->nf < MOST_STAGES ? g->nf : MOST_STAGES;
    if (two && g->micro < most)
        most = (int)g->micro;
    int stages = tied(g) ? 1 : most > 2 && chance(50) ? 2 + below(most - 1) : most < 2 ? most : 2;
    printf("--set plan.schedule=%s --set plan.stages=%d", k->name, stages);
    if (k->single || (!two && chance(50)))
        printf(" --set train.batch.global=%" PRId64 " --set train.batch.groups=1", m->train.batch);
    if (!strcmp(k->name, "nag"))
        printf(" --set train.optimizer.type=nadamw");
    if (!two && m->train.clip > 0 && !m->train.clip_each)
        printf(" --set train.clip_%s", chance(50) ? "norm=0" : "scope=parameter");
    if (stages > 1)
        printf(" --set plan.cuts=[%s]", cuts(g, stages - 1));
    const char *again = recomputed(g, alloc((size_t)g->nf));
    printf("\n--recompute %s\n", k->newest ? "none" : again);      /* forward's weights are gone */
}

int main(int argc, char **argv)
{
    bool data = argc == 4 && !strcmp(argv[1], "data"), plans = argc == 5 && !strcmp(argv[1], "plans");
    bool async = argc == 5 && !strcmp(argv[1], "async");
    if (!data && !plans && !async)
        fail(EXIT_USAGE, "usage: fuzz_jobs data MODEL.yaml DIR, plans MODEL.yaml SEED COUNT, or async MODEL.yaml SEED TYPE");
    const Overrides none = {{NULL, 0, 0}, {NULL, 0, 0}};
    const Model *m = model(load(argv[2]), argv[2], &none);
    bad_stop();
    const Graph *g = graph_of(m);
    state = plans || async ? strtoull(argv[3], NULL, 0) * 0x2545f4914f6cdd1du : 0;
    if (data)
        write_data(m, g, argv[3]);
    else if (async)
        print_async(m, g, !strcmp(argv[4], "f32"));
    else
        print_plans(m, g, atoi(argv[4]));
    mem_free_all();
    return 0;
}
