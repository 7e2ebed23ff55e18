/* SPDX-License-Identifier: Apache-2.0
 *
 * interp.c: the reference for every hash: the Graph, run without any plan.
 *
 *     interp MODEL.yaml [-D NAME=VALUE]... [--set PATH=VALUE]... [options of a generated job: --steps N ...]
 *
 * The front end makes the Graph; this program then does what its definition says and nothing more: each tensor and each
 * scratch has a buffer of its own, each state too; micro-batches one after another, operators in graph order; the
 * gradient groups summed as a tree, the update last.  No partition, schedule, recomputation, slot or message exists
 * here, so whatever bits come out cannot depend on one.  Kernels, data, rates, start values, hash and options are those
 * of a generated job: step() stands where a generated stage would.
 *
 * An asynchronous schedule changes what is computed, and this program computes that too, from the definition: the operators of
 * a micro-batch read the weights as they were `lag` micro-batches before, kept here whole, whatever a plan keeps; a lag of one
 * step for 2bw, by the cuts (plan.cuts) for pipedream, by the stages for vertical.
 * spectrain reads them on the line through the version before, as far ahead as its paper says; pb so in forward, and the
 * kernel of its update is told how late the gradients of each stage are.  In xpipe the first micro-batch of a step decides for
 * all of it.  timeprest predicts nothing.
 *
 * Before each micro-batch every tensor is filled with the bytes of a NaN: a read of something that was not made in this
 * micro-batch reaches the loss.  With -fsanitize=address, each buffer has its own guards.
 *
 * Links against the front end and the runtime; built once a compute type.  Not handled: `micro: auto`, which a plan
 * decides.
 */
#include "plan.h"
#include "emit/emit.h"
#define Text RunText            /* the generator has a Text of its own */
#include "rt/run.h"
#undef Text
#include <stdlib.h>
#include <string.h>

typedef union { void *p; long i; float f; } Word;
#include "calls.h"
enum { KERNELS = sizeof kernels / sizeof *kernels, MOST_WORDS = 64 };

static struct {
    const Graph *g;
    const Model *m;
    void **tensor, **state, **tmp;      /* by index; tmp by operator */
    size_t *offset;                     /* by state: in the arena; NOWHERE: a buffer of its own */
    void ***sum;                        /* by group and state: gradient accumulators */
    int *kernel, *handle;               /* by operator */
    size_t arena;
    int versions;                       /* of all weights: the longest lag, and one; two to predict from */
    void ***kept;                       /* by version mod versions, and state */
    float **line;                       /* by state: weights beyond the newest */
    int64_t step;
    bool newest;                        /* an evaluation */
} it;

/* ---- versions ---------------------------------------------------------------------------------------------------- */

static int stage_with(int fwd)
{
    int stage = 0;
    for (int i = 0; i < it.m->plan.cuts.n; i++)
        stage += it.m->plan.cuts.at[i] < fwd;
    return stage;
}

static bool rule_is(const char *names)
{
    return strstr(names, strf(" %s ", it.m->plan.schedule)) != NULL;
}

/* By how many micro-batches the weights are behind that a forward operator, or its backward, reads. */
static int lag_of(int fwd, bool forward)
{
    const PlanSpec *p = &it.m->plan;
    if (rule_is(" 2bw "))
        return (int)it.g->micro;
    if (rule_is(" pipedream nag spectrain-once ") || (forward && rule_is(" spectrain pb pipemare xpipe timeprest ")))
        return p->cuts.n - stage_with(fwd);
    return rule_is(" vertical ") ? p->stages_max - 1 : 0;
}

/* How many updates further they are predicted. */
static int further_of(int fwd, bool forward)
{
    if (rule_is(" pipemare "))
        return forward ? 0 : lag_of(fwd, true);
    int updates = 0, behind = lag_of(fwd, forward) + (rule_is(" spectrain xpipe ") ? stage_with(fwd) / 2 : 0);
    while (rule_is(" spectrain spectrain-once pb xpipe ") && updates * it.g->micro < behind)
        updates++;
    return updates;
}

/* The updates that are done once all but the last `lag` micro-batches before this one have been through backward. */
static int64_t version_of(int lag, int mb)
{
    int64_t through = it.step * it.g->micro + mb - lag;
    return through > 0 ? through / it.g->micro : 0;
}

static bool weights(int state)
{
    const State *s = &it.g->state.at[state];
    return (s->kind == S_PARAM || s->kind == S_COPY) && !it.g->state.at[s->param].frozen;
}

static void keep_weights(int64_t version)
{
    for (int s = 0; s < it.g->state.n && it.versions > 1; s++)
        if (weights(s))
            memcpy(it.kept[version % it.versions][s], it.state[s], (size_t)it.g->state.at[s].bytes);
}

/* The newest weights, so many updates back along the mean of the last ones. */
static void *moved_back(int state, int updates)
{
    const float *now = it.state[state], *drift = now;
    for (int s = 0; s < it.g->state.n; s++)
        if (it.g->state.at[s].kind == S_DRIFT && it.g->state.at[s].param == state)
            drift = it.state[s];
    for (int64_t i = 0; i < it.g->state.at[state].bytes / type_bytes(F32); i++) {
        float back = drift[i] * (float)updates;
        it.line[state][i] = now[i] - back;
    }
    return it.line[state];
}

/* Weights in f32, that many times as far from their version as that is from the one before. */
static void *extended(int state, int64_t version, int further)
{
    if (rule_is(" pipemare "))
        return moved_back(state, further);
    const float *now = it.kept[version % it.versions][state], *before = it.kept[(version - 1) % it.versions][state];
    for (int64_t i = 0; i < it.g->state.at[state].bytes / type_bytes(F32); i++) {
        float step = now[i] - before[i];
        step *= (float)further;
        it.line[state][i] = now[i] + step;
    }
    return it.line[state];
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static void *address(const Op *o, const Arg *a, int mb, int group)
{
    if (a->kind == ARG_TMP)
        return it.tmp[o - it.g->op.at];
    if (a->kind == ARG_NONE)
        return NULL;
    if (!a->state)
        return it.tensor[a->index];
    if (a->kind == ARG_VALS)
        return (Values *)it.state[a->index] + a->i;
    if (it.g->state.at[a->index].kind == S_GRAD)
        return it.sum[group][a->index];
    if (o->phase == PH_U || it.newest || !weights(a->index))
        return it.state[a->index];
    bool forward = o->phase == PH_F;
    int lag = lag_of(o->fwd, forward), further = further_of(o->fwd, forward);
    int64_t version = version_of(lag, forward && rule_is(" xpipe ") ? 0 : mb);
    if (further && version > 0)
        return extended(a->index, version, further);
    return lag ? it.kept[version % it.versions][a->index] : it.state[a->index];
}

static Word word(const Op *o, const Arg *a, int mb, int acc, int group)
{
    switch (a->kind) {
    case ARG_INT:    return (Word){.i = (long)a->i};
    case ARG_FLOAT:  return (Word){.f = (float)a->f};
    case ARG_ACC:    return (Word){.i = acc};
    case ARG_MB:     return (Word){.i = mb};
    case ARG_LATE:   return (Word){.i = lag_of(it.g->state.at[o->arg.at[0].index].op, true)};
    case ARG_HANDLE: return (Word){.i = it.handle[o - it.g->op.at]};
    default:         return (Word){.p = address(o, a, mb, group)};
    }
}

static void run(Stage *st, int op, int mb, int acc, int group)
{
    const Op *o = &it.g->op.at[op];
    Word list[MOST_WORDS];
    if (o->arg.n > MOST_WORDS)
        die("%s: %d arguments", o->name, o->arg.n);
    for (int i = 0; i < o->arg.n; i++)
        list[i] = word(o, &o->arg.at[i], mb, acc, group);
    kernels[it.kernel[op]].call(st, list);
}

/* ---- the step ---------------------------------------------------------------------------------------------------- */

static Values *begin(Stage *st)
{
    Values *vals = it.state[it.g->vals];
    action(st, 0, "step");
    step_begin(st, vals);
    for (int i = 0; i < it.g->count.n; i++) {
        const Count *c = &it.g->count.at[i];
        data_count(st, vals, c->input, c->ignore, c->count);
    }
    return vals;
}

static void forward(Stage *st, Values *vals, int mb)
{
    const Graph *g = it.g;
    for (int t = 0; t < g->tensor.n; t++)
        memset(it.tensor[t], 0xff, (size_t)g->tensor.at[t].bytes);
    for (int t = 0; t < g->tensor.n; t++)
        if (g->tensor.at[t].kind == T_INPUT)
            data_load(st, it.tensor[t], vals, g->tensor.at[t].of, mb, (long)g->tensor.at[t].bytes);
    for (int o = 0; o < g->nf; o++)
        run(st, o, mb, mb > 0, 0);
}

/* Groups 2k and 2k+1, then pairs of pairs: always the right one into the left one. */
static void fold(Stage *st)
{
    const Graph *g = it.g;
    for (int64_t step = 1; step < g->groups; step *= 2)
        for (int64_t left = 0; left + step < g->groups; left += 2 * step)
            for (int s = 0; s < g->state.n; s++)
                if (g->state.at[s].kind == S_GRAD)
                    group_fold(st, it.sum[left][s], it.sum[left + step][s],
                               (long)(g->state.at[s].bytes / type_bytes(F32)));
}

static void step(Stage *st)
{
    const Graph *g = it.g;
    int64_t size = g->micro / g->groups;
    Values *vals = begin(st);
    it.step = vals->step;
    if (it.step == 0)
        keep_weights(0);
    for (int mb = 0; mb < g->micro; mb++) {
        forward(st, vals, mb);
        for (int o = g->nf; o < g->nb; o++)
            run(st, o, mb, mb % size != 0, (int)(mb / size));
    }
    fold(st);
    for (int o = g->nb; o < g->op.n; o++)
        run(st, o, -1, 0, 0);
    keep_weights(it.step + 1);
    step_end(st, vals);
}

static void eval(Stage *st)
{
    Values *vals = begin(st);
    it.newest = true;
    forward(st, vals, 0);
    it.newest = false;
    step_end(st, vals);
}

/* ---- preparation ------------------------------------------------------------------------------------------------- */

static void *buffer(Bytes n)
{
    void *at = malloc(n ? (size_t)n : 1);
    if (!at)
        fail(EXIT_RUN, "out of memory");
    memset(at, 0xff, (size_t)n);
    return at;
}

/* What the runtime starts, hashes and saves lies in its arena. */
static bool in_arena(const State *s)
{
    return s->kind == S_PARAM || s->kind == S_COPY || s->kind == S_MOMENT1 || s->kind == S_MOMENT2 || s->kind == S_CENTRE
        || s->kind == S_DRIFT || s->kind == S_VALUES
        || (s->kind == S_GRAD && s->use == 0 && !it.g->state.at[s->param].tracked);
}

static void lay_out(void)
{
    const Graph *g = it.g;
    it.offset = alloc((size_t)g->state.n * sizeof *it.offset);
    for (int s = 0; s < g->state.n; s++) {
        it.offset[s] = NOWHERE;
        if (in_arena(&g->state.at[s])) {
            it.offset[s] = it.arena;
            it.arena += ((size_t)g->state.at[s].bytes + 255) / 256 * 256;
        }
    }
}

static int kernel_of(const char *name)
{
    for (int k = 0; k < KERNELS; k++)
        if (!strcmp(kernels[k].name, name))
            return k;
    die("no kernel %s", name);
}

/* Equal calls with equal integers share a handle; a Philox key is no property of a product. */
static int handle_of(const Strs *open, const Op *o)
{
    const char *key = o->call;
    for (int i = 0; i < o->arg.n; i++)
        if (o->arg.at[i].kind == ARG_INT && strcmp(o->arg.at[i].token, "site"))
            key = strf("%s %lld", key, (long long)o->arg.at[i].i);
    Strs *list = (Strs *)(uintptr_t)open;
    for (int i = 0; i < list->n; i++)
        if (!strcmp(list->at[i], key))
            return i;
    *PUSH(list) = key;
    return list->n - 1;
}

static void open_handle(Stage *st, const Op *o, int handle)
{
    Word list[MOST_WORDS] = {{.i = handle}};
    int n = 1;
    for (int i = 0; i < o->arg.n; i++)
        if (o->arg.at[i].kind == ARG_INT && strcmp(o->arg.at[i].token, "site"))
            list[n++].i = (long)o->arg.at[i].i;
    kernels[kernel_of(o->call)].open(st, list);
}

static void prepare_calls(Stage *st)
{
    const Graph *g = it.g;
    Strs open = {0};
    for (int o = 0; o < g->op.n; o++) {
        it.kernel[o] = kernel_of(g->op.at[o].call);
        it.tmp[o] = buffer(g->op.at[o].tmp);
        if (!kernels[it.kernel[o]].open)
            continue;
        int known = open.n;
        it.handle[o] = handle_of(&open, &g->op.at[o]);
        if (it.handle[o] == known)
            open_handle(st, &g->op.at[o], known);
    }
}

static void start(Stage *st)
{
    const Graph *g = it.g;
    it.tensor = alloc((size_t)g->tensor.n * sizeof *it.tensor);
    it.state = alloc((size_t)g->state.n * sizeof *it.state);
    it.sum = alloc((size_t)g->groups * sizeof *it.sum);
    it.kernel = alloc((size_t)g->op.n * sizeof *it.kernel);
    it.handle = alloc((size_t)g->op.n * sizeof *it.handle);
    it.tmp = alloc((size_t)g->op.n * sizeof *it.tmp);
    for (int t = 0; t < g->tensor.n; t++)
        it.tensor[t] = buffer(g->tensor.at[t].bytes);
    for (int s = 0; s < g->state.n; s++)
        it.state[s] = it.offset[s] == NOWHERE ? buffer(g->state.at[s].bytes) : st->arena + it.offset[s];
    for (int64_t k = 0; k < g->groups; k++) {
        it.sum[k] = alloc((size_t)g->state.n * sizeof **it.sum);
        for (int s = 0; s < g->state.n; s++)
            if (g->state.at[s].kind == S_GRAD)
                it.sum[k][s] = k ? buffer(g->state.at[s].bytes) : it.state[s];
    }
    for (int o = 0; o < g->nf; o++) {
        int needs = lag_of(o, true) + 1 + (further_of(o, true) > 0);
        it.versions = needs > it.versions ? needs : it.versions;
    }
    it.line = alloc((size_t)g->state.n * sizeof *it.line);
    for (int s = 0; s < g->state.n; s++)
        it.line[s] = weights(s) ? buffer(g->state.at[s].bytes) : NULL;
    it.kept = alloc((size_t)it.versions * sizeof *it.kept);
    for (int v = 0; v < it.versions; v++) {
        it.kept[v] = alloc((size_t)g->state.n * sizeof **it.kept);
        for (int s = 0; s < g->state.n && it.versions > 1; s++)
            it.kept[v][s] = weights(s) ? buffer(g->state.at[s].bytes) : NULL;
    }
    prepare_calls(st);
}

/* ---- the job ----------------------------------------------------------------------------------------------------- */

static const StateInfo *states(int *n)
{
    static const int kind[] = {[S_PARAM] = STATE_PARAM, [S_GRAD] = STATE_GRAD, [S_MOMENT1] = STATE_MOMENT1,
                               [S_MOMENT2] = STATE_MOMENT2, [S_CENTRE] = STATE_CENTRE, [S_DRIFT] = STATE_DRIFT};
    const Graph *g = it.g;
    VEC(StateInfo) list = {0};
    for (int s = 0; s < g->state.n; s++) {
        const State *x = &g->state.at[s];
        if (!in_arena(x) || x->kind == S_COPY || x->kind == S_VALUES)
            continue;
        const State *p = &g->state.at[x->param];
        StateInfo i = {.name = p->name, .kind = kind[x->kind], .owned = 1, .copy = NOWHERE,
                       .offset = copy_alone(g, s) ? NOWHERE : it.offset[s],
                       .n = (long)(x->bytes / type_bytes(F32)), .ndim = p->shape.n,
                       .init = (int)p->init.kind,
                       .a = p->init.a, .b = p->init.b};
        for (int d = 0; d < p->shape.n; d++)
            i.dim[d] = (long)p->shape.d[d];
        const char *value = p->init.values;
        for (int k = 0; value; k++, value = strchr(value, ','), value = value ? value + 2 : NULL)
            i.values[k] = (float)number_decimal(value, strcspn(value, ","));
        if (x->kind == S_PARAM && s + 1 < g->state.n && g->state.at[s + 1].kind == S_COPY)
            i.copy = it.offset[s + 1], i.bits = x->bits;
        *PUSH(&list) = i;
    }
    *n = list.n;
    return list.at;
}

static const ByteInfo *bytes_of(const Input *x, int channels)
{
    ByteInfo *b = alloc(sizeof *b);
    float *mean = alloc(2 * (size_t)channels * sizeof *mean), *std = mean + channels;
    for (int c = 0; c < channels; c++) {
        mean[c] = x->mean.n ? (float)x->mean.at[x->mean.n > 1 ? c : 0] : 0;
        std[c] = x->std.n ? (float)x->std.at[x->std.n > 1 ? c : 0] : 1;
    }
    *b = (ByteInfo){channels, mean, std};
    return b;
}

static const InputInfo *inputs(void)
{
    InputInfo *list = alloc((size_t)(it.m->inputs.n + 1) * sizeof *list);
    for (int i = 0; i < it.m->inputs.n; i++) {
        const Input *x = &it.m->inputs.at[i];
        int ignore = 0, ignores = input_ignores(it.g, i, &ignore);
        list[i] = (InputInfo){x->name, x->type == I32 ? JOB_I32 : JOB_F32, 0, (long)x->lo, (long)x->hi, ignores, ignore, NULL};
    }
    for (int t = 0; t < it.g->tensor.n; t++) {
        const Tensor *x = &it.g->tensor.at[t];
        if (x->kind == T_INPUT)
            list[x->of].per = (long)(x->bytes / type_bytes(x->type) / it.g->batch);
        if (x->kind == T_INPUT && it.m->inputs.at[x->of].bytes)
            list[x->of].bytes = bytes_of(&it.m->inputs.at[x->of], x->shape.n > 1 ? (int)x->shape.d[x->shape.n - 1] : 1);
    }
    return list;
}

static const char *const *strings(const Strs *s)
{
    const char **list = alloc((size_t)(s->n + 1) * sizeof *list);
    for (int i = 0; i < s->n; i++)
        list[i] = s->at[i];
    return list;
}

static DataInfo data_info(const DataSet *d)
{
    return (DataInfo){.format = d->format, .files = strings(&d->files), .roles = d->role.n, .role = strings(&d->role),
                      .input = d->input.at, .path = d->path.n ? strings(&d->path) : NULL, .sequential = d->sequential};
}

static const GroupInfo *param_groups(const Train *t)
{
    GroupInfo *list = alloc((size_t)(t->param_group.n + 1) * sizeof *list);
    for (int i = 0; i < t->param_group.n; i++) {
        const ParamGroup *k = &t->param_group.at[i];
        list[i] = (GroupInfo){k->lr, k->beta1, k->beta2, k->weight_decay};
    }
    return list;
}

static Job job_of(const StageInfo *stage)
{
    const Model *m = it.m;
    const Graph *g = it.g;
    const Train *t = &m->train;
    return (Job){
        .name = g->name, .kernels = m->devices.at[0].kernels, .key = "interpreter", .model = "interpreter",
        .plan = "none", .stages = 1, .stage = stage, .inputs = m->inputs.n, .input = inputs(),
        .train = data_info(&m->data), .eval = data_info(&m->eval), .eval_every = (long)m->eval.every,
        .eval_batches = (long)m->eval.batches, .batch = (long)g->batch, .micro = (long)g->micro, .groups = (long)g->groups,
        .blocks = (int)g->blocks,
        .steps = (long)t->steps, .tokens = (long)(g->batch * g->micro), .seed = t->seed,
        .lr_kind = (int)t->schedule, .lr = t->lr, .final = t->final, .factor = t->factor, .beta1 = t->beta1,
        .beta2 = t->beta2, .weight_decay = t->weight_decay, .warmup = (long)t->warmup, .every = (long)t->every,
        .param_groups = t->param_group.n, .param_group = param_groups(t),
        .step_ns = 1000000000, .bf16 = g->compute == BF16, .moments = emit_moments(t),
    };
}

static const Graph *graph_of(const Model *m)
{
    Graph *g = build(m);
    check_graph(g);
    shape(g, m);
    fp8(g, m);
    check_graph(g);
    grad(g, m);
    check_graph(g);
    fuse(g, m);
    check_graph(g);
    if ((g->compute == BF16) != (sizeof(real) == 2))
        fail(EXIT_USAGE, "this interpreter is built for %s", sizeof(real) == 2 ? "bf16" : "f32");
    return g;
}

typedef struct { const char *file; Overrides over; char **rest; int n; } Words;

static bool is_model(const char *word)
{
    size_t n = strlen(word);
    return n > 5 && !strcmp(word + n - 5, ".yaml");
}

/* Takes the model and its options off the command line, wherever they stand; the rest is the job's, and a hash. */
static Words split(int argc, char **argv)
{
    static char hash[] = "--hash";
    Words x = {.rest = alloc((size_t)(argc + 2) * sizeof *x.rest)};
    for (int i = 0; i < argc; i++) {
        bool define = !strcmp(argv[i], "-D"), set = !strcmp(argv[i], "--set");
        if ((define || set) && i + 1 < argc)
            *PUSH(define ? &x.over.define : &x.over.set) = argv[++i];
        else if (i && !x.file && is_model(argv[i]))
            x.file = argv[i];
        else
            x.rest[x.n++] = argv[i];
    }
    x.rest[x.n++] = hash;
    if (!x.file)
        fail(EXIT_USAGE, "usage: interp MODEL.yaml [-D NAME=VALUE] [--set PATH=VALUE] [--steps N] [--data FILE] ...");
    return x;
}

int main(int argc, char **argv)
{
    Words x = split(argc, argv);
    it.m = model(load(x.file), x.file, &x.over);
    if (!it.m->train.batch)
        fail(EXIT_USAGE, "%s: give the micro-batch a number", x.file);
    it.g = graph_of(it.m);
    lay_out();
    static const int64_t predicted[4];
    StageInfo stage = {.name = "interp", .arena = it.arena, .vals = it.offset[it.g->vals], .actions = 1,
                       .eval_actions = 1, .threads = it.m->devices.at[0].threads, .open = start, .step = step, .eval = eval,
                       .predicted = predicted};
    stage.state = states(&stage.states);
    Job job = job_of(&stage);
    return job_main(&job, x.n, x.rest);
}
