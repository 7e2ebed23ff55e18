/* SPDX-License-Identifier: Apache-2.0
 *
 * passes.c: the list of passes.  This file is the architecture: text becomes Node becomes Model becomes Graph; the Graph is
 * const from there on, and each later pass fills its own fields of a Plan.  A checker runs after every pass.
 */
#include "passes.h"
#include "key.h"
#include "list/transport.h"
#include "list/list.h"
#include "planner.h"

/* ---- dumps ------------------------------------------------------------------------------------------------------- */

static bool wants(const Options *x, char letter)
{
    return x->dump && strchr(x->dump, letter);
}

/* One dump alone is what --from reads; several are told apart by a line before each. */
static void dump_head(const Options *x, const char *pass)
{
    if (x->dump[1])
        printf("> after %s:\n", pass);
}

static void dump_graph(const Options *x, const Graph *g, char letter)
{
    for (int i = 0; dumps[i].pass; i++)
        if (dumps[i].letter == letter && wants(x, letter)) {
            dump_head(x, dumps[i].pass);
            print_graph(stdout, g);
        }
}

void dump_plan(const Options *x, const Plan *p, char letter)
{
    for (int i = 0; dumps[i].pass; i++)
        if (dumps[i].letter == letter && wants(x, letter)) {
            dump_head(x, dumps[i].pass);
            print_plan(stdout, p, letter == 'a' ? 0 : letter);
        }
}

bool is_plan(const char *path)
{
    char line[16] = "";
    FILE *f = path ? fopen(path, "r") : NULL;
    if (f && !fgets(line, sizeof line, f))
        line[0] = 0;
    if (f)
        fclose(f);
    return !strncmp(line, "dpgen-plan ", 11);
}

/* ---- the line, first half: text to const Graph ------------------------------------------------------------------- */

typedef struct { const Options *x; const Model *m; const char *written; } Seer;

static void see_graph(void *ctx, Graph *g, char letter)
{
    Seer *s = ctx;
    if (letter == 's') {
        weights_check(s->m, g);
        bad_stop();
    } else if (letter == 'f') {
        check_graph(g);
        const char *joined = model_hash(g);
        if (strcmp(joined, s->written)) {   /* what was joined has the same bits, and so the same key */
            g->model = s->written;
            g->calls = joined;
        }
    }
    dump_graph(s->x, g, letter);
    if (letter == 's')
        s->written = model_hash(g);
}

/* A graph of --from is one with calls, of the mode of the model, and its inputs are those of the model, if there is one. */
static void check_kind(const Options *x, const Model *m, const Graph *g)
{
    bool backward = g->nf < g->op.n, learns = backward, ends = false;
    if (!g->timed && (g->op.n == 0 || !g->op.at[0].call))
        fail(EXIT_MODEL, "%s is a graph without calls, as before the pass shape; dpgen MODEL.yaml -d f writes one with them",
             x->from);
    for (EACH(const State, s, g->state))
        learns |= s->kind == S_PARAM && !s->frozen;
    for (EACH(const Op, o, g->op))
        ends |= op_is(o, TRAIT_END);
    if (backward == infers(m) || learns == infers(m))
        fail(EXIT_MODEL, "%s is a graph %s, and plan.mode of %s is %s", x->from, backward ? "with backward" : learns
             ? "of a model that learns, before the pass grad" : "of inference", m->path, infers(m) ? "infer" : learns ? "train"
             : "train: --mode infer");
    if (infers(m) && !ends)
        fail(EXIT_MODEL, "%s is a graph that has no output", x->from);
    for (EACH(const Tensor, t, g->tensor))
        if (t->kind == T_INPUT && m->inputs.n && (t->of < 0 || t->of >= m->inputs.n ||
                                                  (m->inputs.at[t->of].type == I32) != (t->type == I32)))
            fail(EXIT_MODEL, "%s: tensor %s has input=%d, and that is no input of %s of such a type", x->from, t->name, t->of,
                 m->path);
    for (int i = 0; m->inputs.n && i < g->count.n; i++)
        if (g->count.at[i].input < 0 || g->count.at[i].input >= m->inputs.n)
            fail(EXIT_MODEL, "%s: count %d has input=%d, and %s has no such input", x->from, i, g->count.at[i].input, m->path);
}

Graph *graph_of(const Options *x, const Model *m)
{
    if (x->foreign) {
        Graph *g = foreign_graph(x->foreign, m);
        dump_graph(x, g, 'f');
        return g;
    }
    if (x->from && !is_plan(x->from)) {
        Graph *g = read_graph(x->from);
        bool none = m->plan.fuse == FUSE_NONE;
        check_kind(x, m, g);
        if ((none && fuse_joined(g)) || (m->plan.fuse == FUSE_SUMS && chains_joined(g)))
            fail(EXIT_MODEL, "%s is a graph with calls that fuse has joined, and plan.fuse %s does not part them; "
                 "dpgen MODEL.yaml --fuse %s -d f writes one where they are apart", x->from, none ? "none" : "sums",
                 none ? "none" : "sums");
        const char *made = g->gpus ? g->gpus : "processors", *arch = on_gpus(m) ? m->devices.at[0].arch : NULL;
        if (!g->timed && strcmp(made, arch ? arch : "processors"))
            fail(EXIT_MODEL, "%s is a graph for %s, and the devices here are %s: calls or scratch differ; "
                 "dpgen MODEL.yaml --devices FILE -d f writes one for them", x->from, made, arch ? arch : "processors");
        if (m->train.blocks != (g->blocks ? g->blocks : 1))
            fail(EXIT_MODEL, "%s is a graph with blocks=%lld, and train.blocks of %s is %lld", x->from, (long long)g->blocks,
                 m->path, (long long)m->train.blocks);
        if (m->plan.tensor != (g->team ? g->team : 1))
            fail(EXIT_MODEL, "%s is a graph with team=%d, and plan.tensor of %s is %d", x->from, g->team, m->path,
                 m->plan.tensor);
        dump_graph(x, g, 'f');
        return g;
    }
    return graph_line(m, see_graph, &(Seer){x, m, NULL});
}

/* Is a graph of --from the one that the model gives?  Then the parts of joined calls are known. */
static bool is_own(const Options *x, const Plan *p)
{
    if (!x->from || is_plan(x->from))
        return true;
    Options plain = *x;
    plain.from = plain.dump = NULL;
    Text a, b;
    print_graph_bare(text_open(&a), p->g);
    text_close(&a);
    print_graph_bare(text_open(&b), graph_of(&plain, p->m));
    text_close(&b);
    return a.n == b.n && !memcmp(a.at, b.at, a.n);
}

/* Of which model: dpgen-verify reads these comments, and compares the graph with the model file. */
void print_reference(FILE *f, const Options *x, const Plan *p)
{
    bool same = is_own(x, p);
    for (int i = 0; i < x->over.set.n; i++)
        same = same && !strchr(x->over.set.at[i], '\n');
    print_graph_bare(f, same ? graph_apart(p->m) : p->g);
    if (!same)
        fprintf(f, "# of another graph\n");
    for (int i = 0; same && i < x->over.set.n; i++)
        if (!strncmp(x->over.set.at[i], "--mode=", 7))
            fprintf(f, "# given --set plan.mode=%s\n", x->over.set.at[i] + 7);
        else if (strncmp(x->over.set.at[i], "--", 2))
            fprintf(f, "# given --set %s\n", x->over.set.at[i]);
    for (int i = 0; same && i < x->over.define.n; i++)
        fprintf(f, "# given -D %s\n", x->over.define.at[i]);
}

/* ---- the line, second half: one Plan ----------------------------------------------------------------------------- */

/* What follows from cuts and fates: of a plan that had the same. */
static void take_over(Plan *p, Plan *same)
{
    Plan with = *same;
    with.ask = p->ask;
    with.target = p->target;
    with.predicted = p->predicted;
    with.chosen = p->chosen;
    with.room = NULL;
    same->lent = true;
    *p = with;
}

/* What it makes goes with it: it reads the plan, or fills fields that are there. */
static void in_scratch(void (*read)(const Plan *p), void (*fill)(Plan *p), Plan *p)
{
    Room *scratch = mem_room(), *room = mem_in(scratch);
    if (read)
        read(p);
    else
        fill(p);
    mem_in(room);
    mem_drop(scratch);
}

static void check(void (*pass)(const Plan *p), Plan *p)
{
    in_scratch(pass, NULL, p);
}

static void predict(Plan *p)
{
    sim(p);
}

static void predict_and_check(Plan *p)
{
    sim(p);
    check_sim(p);
}

static Verdict finish_in_room(const Options *x, Plan *p)
{
    if (comm(p))
        return NO_PLAN;
    check(check_comm, p);
    dump_plan(x, p, 'c');
    if (lower(p))
        return NO_PLAN;
    check(check_lower, p);
    dump_plan(x, p, 'l');
    /* Packing makes nothing faster. */
    if (p->ask.effort.below_step > 0)
        in_scratch(NULL, predict, p);
    if (p->ask.effort.below_step > 0 && p->step > p->ask.effort.below_step)
        return NO_PLAN;
    int over = mem(p);
    if (!over && !p->ask.effort.estimate_only) /* else nobody runs it, or it needs too much: bytes shared would be too few */
        check(check_mem, p);
    dump_plan(x, p, 'm');
    if (over)
        return p->shortfall.host ? OVER_HOST : OVER_DEVICE;
    in_scratch(NULL, predict_and_check, p);
    dump_plan(x, p, 't');
    return PLANNED;
}

/* The lists of a plan have a room of their own, for most plans are only tried. */
static Verdict finish(const Options *x, Plan *p)
{
    p->room = mem_room();
    Room *room = mem_in(p->room);
    Verdict why = finish_in_room(x, p);
    mem_in(room);
    p->shortfall.stuck = p->shortfall.stuck ? strf("%s", p->shortfall.stuck) : NULL;
    return why;
}

void plan_drop(Plan *p)
{
    Plan with = *p;
    if (!p->room || p->lent)
        return;
    mem_drop(p->room);
    with.room = NULL;
    for (int d = 0; d < p->devices; d++) {
        DevicePlan dev = p->dev.at[d];
        dev.list = dev.eval = (Actions){0};
        p->dev.at[d] = dev;
    }
    memset(&with.buf, 0, sizeof with.buf);
    memset(&with.pool, 0, sizeof with.pool);
    memset(&with.host, 0, sizeof with.host);
    memset(&with.routine, 0, sizeof with.routine);
    *p = with;
}

/* With the rule of versions of this plan, in place of that of a plan that the key comes from. */
static void set_key(Plan *p, const char *key)
{
    const char *rule = version_rule(p), *other = strstr(key, " versions=");
    p->key = strf("%.*s%s%s", (int)(other ? (size_t)(other - key) : strlen(key)), key, *rule ? " versions=" : "", rule);
}

Verdict run(const Options *x, Plan *p, const Bytes *limit)
{
    const Plan *ordered = seen_ordered(p);
    if (ordered)
        order_as(p, ordered);
    else if (order(p))
        return NO_PLAN;
    else
        check(check_order, p);
    dump_plan(x, p, 'o');
    if (part(p, limit))
        return NO_PLAN;
    check(check_part, p);
    version_ties(p);
    set_key(p, p->key);
    dump_plan(x, p, 'p');
    if (keep(p))
        return NO_PLAN;
    check(check_keep, p);
    dump_plan(x, p, 'k');
    Verdict why;
    Plan *same = x->dump ? NULL : seen_plan(p, &why);
    if (same) {
        take_over(p, same);
        return why;
    }
    why = finish(x, p);
    if (why != NO_PLAN || p->ask.effort.below_step == 0) /* another question may have less to beat */
        seen_keep_plan(p, why);
    return why;
}

Plan *run_again(const Options *x, const Plan *of, const Ask *ask, Verdict *why)
{
    Plan *p = alloc(sizeof *p);
    *p = (Plan){.g = of->g, .c = of->c, .m = of->m, .schedule = of->schedule, .ask = *ask, .key = of->key,
                .devices = of->devices, .chunks = of->chunks, .replicas = of->replicas, .home = of->home, .slack = of->slack,
                .chunk = of->chunk, .target = of->target, .predicted = of->predicted, .fate = of->fate};
    for (int d = 0; d < of->devices; d++) {
        const DevicePlan *dev = &of->dev.at[d];
        *PUSH(&p->dev) = (DevicePlan){.device = d, .order = dev->order, .limit = dev->limit, .entry = dev->entry};
    }
    *why = finish(x, p);
    return p;
}

Plan *run_longer(const Options *x, const Plan *of, const Graph *g, const Cost *c, const Model *m, Verdict *why)
{
    Ask ask = of->ask;
    ask.more = ask.effort.below_step = ask.effort.cutoff = 0;
    ask.work = ask.layouts = NULL;
    ask.trials = purse_new(NULL, SEARCH_STEPS);   /* as the shorter step, it only has to fit */
    Plan *p = new_plan(g, c, m, plan_stages(of), of->schedule, &ask), with = *p;
    *why = NO_PLAN;
    with.chunk = of->chunk, with.target = of->target, with.fate = of->fate, with.key = numeric_key(g, m, c);
    *p = with;
    if (order(p))
        return p;
    version_ties(p);
    set_key(p, p->key);
    *why = finish(x, p);
    return p;
}

Model *ordered(const Model *m, int stages, const int *device)
{
    Model *with = COPY(m);
    bool *taken = alloc((size_t)m->devices.n);
    with->device_order = ORDER_CHOSEN;
    memset(&with->devices, 0, sizeof with->devices);
    for (int s = 0; s < stages; s++) {
        *PUSH(&with->devices) = m->devices.at[device[s]];
        taken[device[s]] = true;
    }
    for (int d = 0; d < m->devices.n; d++)
        if (!taken[d])
            *PUSH(&with->devices) = m->devices.at[d];
    return with;
}

const Device *same_device(const Model *m, const Device *k)
{
    int d = 0;
    while (m->devices.at[d].entry != k->entry)
        d++;
    return &m->devices.at[d];
}

Plan *under_limits(const Plan *of, const Model *m)
{
    Model *model = COPY(of->m);
    Plan *p = COPY(of);
    memset(&model->devices, 0, sizeof model->devices);
    for (int d = 0; d < of->m->devices.n; d++) {
        *PUSH(&model->devices) = of->m->devices.at[d];
        model->devices.at[d].memory = same_device(m, &of->m->devices.at[d])->memory;
    }
    p->m = model;
    for (int d = 0; d < p->devices; d++)
        p->dev.at[d].limit = transport_limit(p, d);
    return p;
}

/* The model as the plan of a file takes its devices. */
static const Model *in_its_order(const Options *x, const Plan *p, const Model *m)
{
    int *device = alloc(sizeof *device * (size_t)p->devices), placed = 0;
    bool *taken = alloc((size_t)m->devices.n);
    for (int d = 0; d < p->devices; d++)
        placed += p->dev.at[d].entry != 0;
    if (placed == 0)
        return m;
    for (int d = 0; d < p->devices; d++) {
        device[d] = p->dev.at[d].entry - 1;
        if (device[d] < 0 || device[d] >= m->devices.n || taken[device[d]])
            fail(EXIT_MODEL, "%s: device %d has place %d; each has another one, from 1 to %d", x->from, d, p->dev.at[d].entry,
                 m->devices.n);
        taken[device[d]] = true;
    }
    return ordered(m, p->devices, device);
}

typedef struct { const Options *x; const Model *m; Plan *p; } Reading;

static void read_with(void *ctx)
{
    Reading *r = ctx;
    r->p = read_plan(r->x->from, graph_of(r->x, r->m), r->m);
}

/* fuse: auto or fastest has chosen one of the forms, and the operators of the plan say which. */
static Plan *read_any(const Options *x, const Model **m)
{
    const Model *form[FORMS];
    Options quiet = *x;
    int n = fuse_forms(*m, form);
    quiet.dump = NULL;
    for (int k = 0; k < n && n > 1; k++) {
        Reading r = {&quiet, form[k], NULL};
        if (diag_accepts(read_with, &r)) {
            *m = form[k];
            if (x->dump)
                graph_of(x, *m);
            return r.p;
        }
    }
    return read_plan(x->from, graph_of(x, *m), *m);
}

Plan *plan_from(const Options *x, const Model *m)
{
    if (team_open(m))
        err(m->plan.tensor_auto ? m->plan.tensor_at : m->plan.positions == POSITIONS_AUTO ? m->plan.positions_at
            : m->plan.experts == EXPERTS_AUTO ? m->plan.experts_at : m->plan.widths_at, "what dpgen plan told",
            "%s is a plan of one plan.%s, and auto leaves it open", x->from,
            m->plan.tensor_auto ? "tensor" : m->plan.positions == POSITIONS_AUTO ? "positions"
            : m->plan.experts == EXPERTS_AUTO ? "experts" : "widths");
    if (m->train.batch == 0)
        fail(EXIT_MODEL, "%s is a plan of one train.batch.micro, and auto leaves it open: --set train.batch.micro=N, as dpgen "
             "plan told", x->from);
    Plan *p = read_any(x, &m);
    const Graph *g = p->g;
    if (p->devices > m->devices.n)
        fail(EXIT_MODEL, "%s is for %d devices, %s has %d", x->from, p->devices, m->path, m->devices.n);
    p->m = m = in_its_order(x, p, m);
    p->c = cost_with(cost_shared(cost(g, m, x->times), m, p->devices), schedule_of(p->schedule));
    diag_blame(x->from);
    check_order(p);
    check_part(p);
    /* A plan is read with the key of the job at hand, and one that claims to be of another job is refused. */
    const char *read = p->key;
    set_key(p, numeric_key(p->g, p->m, p->c));
    if (read && *read && strcmp(numeric_bits(read), numeric_bits(p->key)))
        err(p->key_at, "plan again, with the same options; or delete key=", "the plan is of another job: here the numeric key "
            "is '%s'", p->key);
    if (p->proof.space && *p->proof.space && !planner_says(p->proof.space, p->chunks))
        err(p->space_at, "plan again; or delete space=", "no planner chooses among '%s'", p->proof.space);
    check_keep(p);
    check_comm(p);
    check_lower(p);
    check_mem(p);
    if (p->step == 0)           /* a plan whose times were taken out has those of the costs at hand */
        sim(p);
    check_sim(p);
    mem_measure(p);
    diag_blame(NULL);
    dump_plan(x, p, 'a');
    return p;
}
