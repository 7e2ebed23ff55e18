/* SPDX-License-Identifier: Apache-2.0
 *
 * launch.c: launch.c of the emitted folder: what stages have in common as tables of literals, and a main() that hands them to
 * the runtime.
 */
#include "emit.h"
#include "key.h"
#include "cost/prof.h"
#include "list/transport.h"
#include "list/list.h"

typedef struct {
    FILE *f;
    const Plan *p;
    const char *prefix;
    const Graph *whole;         /* parameters as files have them, not as one device of several does */
} Launch;

static const Graph *whole_of(const Graph *g)
{
    Graph *whole = COPY(g);
    if (!g->team)
        return g;
    whole->state.at = alloc((size_t)g->state.n * sizeof *whole->state.at);
    for (int s = 0; s < g->state.n; s++) {
        whole->state.at[s] = g->state.at[s];
        whole->state.at[s].shape = shape_whole(&g->state.at[s]);
    }
    return whole;
}

static const char *number(double x)
{
    return strf("%a", x);
}

static void print_strings(const Launch *w, const char *name, const Strs *list)
{
    fprintf(w->f, "static const char *const %s[] = {", name);
    for (int i = 0; i < list->n; i++)
        fprintf(w->f, "%s, ", quote_c(list->at[i]));
    fprintf(w->f, "0};\n");
}

/* Parameters that files of published weights hold otherwise; how many lines. */
static int print_stored(const Launch *w)
{
    const Graph *g = w->whole;
    const WeightsSpec *x = &w->p->m->weights;
    int n = 0;
    fprintf(w->f, "\nstatic const StoredInfo stored[] = {\n");
    for (int s = 0; s < g->state.n; s++) {
        Stored k;
        if (g->state.at[s].kind != S_PARAM || !weights_stored(w->p->m, g, s, &k))
            continue;
        for (int64_t piece = 0; piece < (k.each ? k.each : 1); piece++, n++) {
            fprintf(w->f, "    {%s, %s, %s, %d, %" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 "},\n",
                    quote_c(k.name), quote_c(weights_tensor(&k, piece)), quote_c(k.also), k.turn, k.from, k.rows, k.groups,
                    piece, k.each);
        }
    }
    fprintf(w->f, "    {0}\n};\n");
    print_strings(w, "ignored", &x->ignore);
    return n;
}

static void print_data(const Launch *w, const char *name, const DataSet *d)
{
    print_strings(w, strf("%s_files", name), &d->files);
    print_strings(w, strf("%s_role", name), &d->role);
    if (d->path.n > 0)
        print_strings(w, strf("%s_path", name), &d->path);
    fprintf(w->f, "static const int %s_input[] = {", name);
    for (int i = 0; i < d->input.n; i++)
        fprintf(w->f, "%d, ", d->input.at[i]);
    fprintf(w->f, "0};\n");
}

static void print_data_field(const Launch *w, const char *field, const char *name, const DataSet *d)
{
    fprintf(w->f, "    .%s = {%s, %s_files, %d, %s_role, %s_input, %s, %d},\n", field, quote_c(d->format), name, d->role.n,
            name, name, d->path.n ? strf("%s_path", name) : "0", d->sequential);
}

static int input_tensor(const Plan *p, int input)
{
    for (int t = 0; t < p->g->tensor.n; t++)
        if (p->g->tensor.at[t].kind == T_INPUT && p->g->tensor.at[t].of == input)
            return t;
    return -1;
}

static int64_t per_sample(const Plan *p, int input)
{
    int t = input_tensor(p, input);
    const Tensor *x = t < 0 ? NULL : &p->g->tensor.at[t];
    return x ? x->bytes / type_bytes(x->type) / p->g->batch : 0;
}

/* Channels, and mean and deviation of each; of more than the file can name, one for all. */
static const char *bytes_text(const Plan *p, int input)
{
    const Input *x = &p->m->inputs.at[input];
    const Shape *shape = &p->g->tensor.at[input_tensor(p, input)].shape;
    int64_t last = shape->n > 1 ? shape->d[shape->n - 1] : 1, channels = last > MAXCHANNEL ? 1 : last;
    const char *text = strf("&(const ByteInfo){%" PRId64, channels);
    for (int k = 0; k < 2; k++) {
        const Channels *of = k ? &x->std : &x->mean;
        text = strf("%s, (const float[]){", text);
        for (int64_t c = 0; c < channels; c++)
            text = strf("%s%s%.9g", text, c ? ", " : "", of->n ? of->at[of->n > 1 ? c : 0] : (double)k);
        text = strf("%s}", text);
    }
    return strf("%s}", text);
}

/* The first or last stage that loads an input; -1: none does. */
static int loads_at(const Plan *p, int input, bool first)
{
    int found = -1;
    for (int d = 0; d < p->devices; d++)
        for (EACH(const Action, k, p->dev.at[d].list))
            if (k->kind == K_LOAD && k->input == input && (found < 0 || !first))
                found = d;
    return found;
}

/* Values that leave a job that infers, and the stage of each. */
static int print_outputs(const Launch *w)
{
    const Plan *p = w->p;
    int n = 0;
    for (int o = 0; o < p->g->nf; o++) {
        if (!op_is(&p->g->op.at[o], TRAIT_END) || !infers(p->m))
            continue;
        fprintf(w->f, "%s", n == 0 ? "\nstatic const OutputInfo output[] = {\n" : "");
        fprintf(w->f, "    {%s, %d},\n", quote_c(p->m->outputs.at[n++]), stage_of(p, p->chunk.at[o]));
    }
    for (int i = 0; i < p->m->inputs.n && n; i++)
        fprintf(w->f, "%s%d,%d", i ? ", " : "};\nstatic const int loads[] = {", loads_at(p, i, true),
                loads_at(p, i, false));
    if (n)
        fprintf(w->f, "};\n");
    return n;
}

/* Ordered pairs of stages that exchange messages, also of further devices of them; of each whether they are all of a few bytes,
 * for transports that have other ways for those. */
static int print_pairs(const Launch *w, bool *talk)
{
    Pairs pairs = transport_pairs(w->p);
    for (int i = 0, n = pairs.n, apart = w->p->devices; i < n * (w->p->g->team - 1); i++) {
        const int more = (i / n + 1) * apart;
        *PUSH(&pairs) = (ListPair){pairs.at[i % n].from + more, pairs.at[i % n].to + more, pairs.at[i % n].talk};
    }
    fprintf(w->f, "\nstatic const int pair[] = {%s", pairs.n ? "" : "0");
    for (int i = 0; i < pairs.n; i++)
        fprintf(w->f, "%s%d,%d", i ? ", " : "", pairs.at[i].from, pairs.at[i].to);
    fprintf(w->f, "};\n");
    *talk = false;
    for (int i = 0; i < pairs.n; i++)
        *talk |= pairs.at[i].talk && transport_of(w->p->m)->gpus;
    for (int i = 0; i < pairs.n && *talk; i++)
        fprintf(w->f, "%s%d%s", i ? ", " : "static const char talk[] = {", pairs.at[i].talk, i == pairs.n - 1 ? "};\n" : "");
    return pairs.n;
}

static int64_t tokens(const Plan *p)
{
    int64_t most = 1;
    for (int i = 0; i < p->g->count.n; i++)
        if (per_sample(p, p->g->count.at[i].input) > most)
            most = per_sample(p, p->g->count.at[i].input);
    return most * p->g->batch * p->g->micro;
}

/* Steps between two meetings of all stages.  Each costs about p-1 micro-batches of waiting: at most a sixteenth of the time,
 * and otherwise about once a second, so that progress is seen and signals are heard. */
static int reports(const Plan *p)
{
    int64_t least = (16 * (p->devices - 1) + p->g->micro - 1) / p->g->micro, second = p->step > 0 ? 1000000000 / p->step : 1;
    second = second < 100 ? second : 100;
    return (int)(least > second ? least : second > 0 ? second : 1);
}

/* A literal of a call; a graph that was read has no attributes. */
static int64_t literal(const Op *o, const char *token)
{
    const Arg *a = op_arg(o, token);
    return a && a->kind == ARG_INT ? a->i : 0;
}

/* Where the targets of a loss are counted: a HitReport reads those of its loss, among its operands. */
static int count_of(const Graph *g, const Op *o)
{
    for (int i = 0; i < g->count.n; i++)
        for (EACH(const Arg, a, o->arg)) {
            const Count *c = &g->count.at[i];
            bool reads = a->kind == ARG_READ && !a->state && g->tensor.at[a->index].kind == T_INPUT;
            if (reads && g->tensor.at[a->index].of == c->input && literal(o, "ignore") == c->ignore)
                return c->count;
        }
    return 0;
}

/* The operators that have an adapter, by its first parameter. */
static void print_adapter(const Launch *w)
{
    static const char tail[] = ".lora_A.weight";
    const AdaptSpec *a = &w->p->m->adapt;
    if (!a->match.n)
        return;
    fprintf(w->f, "\nstatic const char *const adapted[] = {");
    for (EACH(const State, s, w->p->g->state)) {
        size_t n = strlen(s->name), k = sizeof tail - 1;
        if (s->kind == S_PARAM && s->adapter && n > k && !strcmp(s->name + n - k, tail))
            fprintf(w->f, "%s, ", quote_c(strf("%.*s", (int)(n - k), s->name)));
    }
    fprintf(w->f, "0};\nstatic const AdapterInfo adapter = {%" PRId64 ", %s, %s, adapted};\n", a->rank, number(a->alpha),
            number(a->dropout));
}

static void print_job(const Launch *w, int pairs, bool talk, int stored, bool copied, int outputs, const char *plan_hash)
{
    static const char *const lr[] = {"JOB_CONSTANT", "JOB_COSINE", "JOB_LINEAR", "JOB_STEP"};
    const Plan *p = w->p;
    const Model *m = p->m;
    const Train *t = &m->train;
    fprintf(w->f, "\nstatic const Job job = {\n    .program = \"%s\", .name = %s, .kernels = \"%s\",\n    .key = %s,\n"
            "    .model = \"%s\",\n    .plan = \"%s\",\n", w->prefix, quote_c(p->g->name), emit_library(p)->name,
            quote_c(p->key), model_hash(p->g), plan_hash);
    fprintf(w->f, "    .moments = \"%s\", .setting = setting, .version = \"%s\",\n", emit_moments(t), DPGEN_VERSION);
    if (order_overlap(p) > 0)
        fprintf(w->f, "    .versions = \"%s\", .overlap = %d, .report = %d,\n", version_rule(p), order_overlap(p), reports(p));
    fprintf(w->f, "    .stages = %d, .replicas = %d, %s.source = source, .inputs = %d, .input = input,\n", p->devices,
            plan_replicas(p), plan_ways(p) > 1 ? strf(".ways = %d, ", plan_ways(p)) : "", m->inputs.n);
    if (plan_uneven(p))
        fprintf(w->f, "    .homes = %d,\n", plan_stages(p));
    if (p->dev.at[0].entry)
        fprintf(w->f, "    .rank = rank,\n");
    if (emit_cuda(p))
        fprintf(w->f, "    .pairs = %d, .pair = pair,%s\n", pairs, talk ? " .talk = talk," : "");
    if (p->c->profile && *profile_key(p->c->profile, p->g))
        fprintf(w->f, "    .measured = %s,\n", quote_c(profile_measured_on(p->c->profile)));
    print_data_field(w, "train", "train", &m->data);
    print_data_field(w, "eval", "eval", &m->eval);
    fprintf(w->f, "    .eval_every = %" PRId64 ", .eval_batches = %" PRId64 ",\n", m->eval.every, m->eval.batches);
    if (m->eval.keep_best || m->eval.patience)
        fprintf(w->f, "    .keep_best = %d, .patience = %" PRId64 ",\n", m->eval.keep_best, m->eval.patience);
    /* The loss's `top`, where an evaluation reports a share of hits. */
    const Graph *g = w->p->g;
    for (int i = 0; i < g->nf; i++) {
        const Op *o = &g->op.at[i];
        if (!op_is(o, TRAIT_HITS))
            continue;
        fprintf(w->f, "    .top = %" PRId64 ",\n", literal(o, "top"));
        if (count_of(g, o) > 0)
            fprintf(w->f, "    .top_count = %d,\n", count_of(g, o));
    }
    fprintf(w->f, "    .batch = %" PRId64 ", .micro = %" PRId64 ", .groups = %" PRId64 ", .steps = %" PRId64
            ", .tokens = %" PRId64 ", .seed = %" PRIu64 "u,\n", p->g->batch, p->g->micro, p->g->groups, t->steps,
            tokens(p), t->seed);
    if (p->g->team)
        fprintf(w->f, "    .team = %d,\n", p->g->team);
    if (p->g->blocks)
        fprintf(w->f, "    .blocks = %" PRId64 ",\n", p->g->blocks);
    fprintf(w->f, "    .lr_kind = %s, .lr = %s, .final = %s, .factor = %s,\n", lr[t->schedule], number(t->lr),
            number(t->final), number(t->factor));
    fprintf(w->f, "    .beta1 = %s, .beta2 = %s, .weight_decay = %s, .warmup = %" PRId64 ", .every = %" PRId64 ",\n",
            number(t->beta1), number(t->beta2), number(t->weight_decay), t->warmup, t->every);
    if (m->adapt.match.n)
        fprintf(w->f, "    .adapter = &adapter,\n");
    if (t->param_group.n)
        fprintf(w->f, "    .param_groups = %d, .param_group = param_group,\n", t->param_group.n);
    fprintf(w->f, "    .ckpt_dir = %s, .ckpt_every = %" PRId64 ", .ckpt_keep = %" PRId64 ", .ckpt_async = %d,\n    .step_ns = %"
            PRId64 ", .bf16 = %d, .trace = %d,\n", quote_c(m->ckpt.dir), m->ckpt.every, m->ckpt.keep, m->ckpt.async, p->step,
            p->g->compute == BF16, m->trace);
    const StreamTimes times = stream_times(p);
    if (outputs)
        fprintf(w->f, "    .outputs = %d, .output = output, .loads = loads, .latency_ns = %" PRId64 ", .period_ns = %" PRId64
                ",\n", outputs, times.latency, times.period);
    static const char *const type[] = {"JOB_F32", "JOB_F16", "JOB_BF16"};
    if (stored >= 0)
        fprintf(w->f, "    .stored = stored, .stored_n = %d, .ignored = ignored, .published = %s,\n    .prefix = %s,\n", stored,
                type[m->weights.type], quote_c(m->weights.prefix));
    if (copied)
        fprintf(w->f, "    .copied = copied,\n");
    if (m->plan.disk)
        fprintf(w->f, "    .disk = 1, .spill_dir = %s,\n", quote_c(m->plan.dir));
    fprintf(w->f, "};\n");
}

void emit_launch(FILE *f, const Plan *p, const char *prefix, const char *plan_hash, bool library)
{
    Launch w = {.f = f, .p = p, .prefix = prefix, .whole = whole_of(p->g)};
    fprintf(f, "/* " EMIT_TAG "\n *\n * %s: the job as tables.  Generated by dpgen %s: edit the model, not this file.\n"
            " * This file is the output of a program: it belongs to whoever made it, without conditions. */\n"
            "#include \"job.h\"\n#include \"parts.h\"\n\n", quote_comment(p->g->name), DPGEN_VERSION);
    for (int d = 0; d < p->devices; d++)
        fprintf(f, "%svoid stage%d(Stages *to);\n", library ? "static " : "", d);
    Strs stage = {0};
    for (int d = 0; d < p->devices; d++)
        *PUSH(&stage) = strf("stage%d", d);
    emit_wrap(f, fprintf(f, "static void (*const source[])(Stages *) = {"), 4, &stage, "};\n");
    if (!library) {
        files_parts(f, p, emit_mute(p, prefix) != NULL);
        fprintf(f, "\n");
    }
    fprintf(w.f, "static const InputInfo input[] = {\n");
    for (int i = 0; i < w.p->m->inputs.n; i++) {
        const Input *x = &w.p->m->inputs.at[i];
        int ignore = 0, ignores = input_ignores(w.p->g, i, &ignore);
        fprintf(w.f, "    {%s, %s, %" PRId64 ", %" PRId64 ", %" PRId64 ", %d, %d, %s},\n", quote_c(x->name),
                x->type == I32 ? "JOB_I32" : "JOB_F32", per_sample(w.p, i), x->lo, x->hi, ignores, ignores ? ignore : 0,
                x->bytes ? bytes_text(w.p, i) : "0");
    }
    fprintf(w.f, "    {0}\n};\n\n");
    print_data(&w, "train", &p->m->data);
    print_data(&w, "eval", &p->m->eval);
    int stored = p->m->weights.given ? print_stored(&w) : -1;
    /* Tensors that hold a parameter once more; whether there are any. */
    StoredPairs list = {0};
    weights_copies(w.p->m, w.whole, &list);
    if (list.n)
        fprintf(w.f, "\nstatic const CopyInfo copied[] = {\n");
    for (int i = 0; i < list.n; i++)
        fprintf(w.f, "    {%s, %s},\n", quote_c(list.at[i].file), quote_c(list.at[i].name));
    if (list.n)
        fprintf(w.f, "    {0}\n};\n");
    bool copied = list.n > 0;
    emit_settings(f, p);
    print_adapter(&w);
    const Train *t = &p->m->train;
    if (t->param_group.n)
        fprintf(f, "\n/* rate, betas and decay of parameter groups, whose step values lie behind those of the job */\n"
                "static const GroupInfo param_group[] = {\n");
    for (EACH(const ParamGroup, k, t->param_group))
        fprintf(f, "    {%s, %s, %s, %s},\n", number(k->lr), number(k->beta1), number(k->beta2), number(k->weight_decay));
    if (t->param_group.n)
        fprintf(f, "};\n");
    if (p->dev.at[0].entry) {
        fprintf(f, "\n/* stage -> rank: the place of its device in the model file */\nstatic const int rank[] = {");
        for (int d = 0; d < p->devices; d++)
            fprintf(f, "%s%d", d ? ", " : "", emit_rank(p, d));
        fprintf(f, "};\n");
    }
    bool talk = false;
    int outputs = print_outputs(&w);
    int pairs = emit_cuda(p) ? print_pairs(&w, &talk) : 0;
    print_job(&w, pairs, talk, stored, copied, outputs, plan_hash);
    if (library)
        return;
    fprintf(f, "\nint %s_main(int argc, char **argv);\nint %s_main(int argc, char **argv)\n{\n"
            "    return job_%s(&job, argc, argv);\n}\n", prefix, prefix, infers(p->m) ? "serve" : "main");
    if (!emit_program(prefix))
        return;
    bool mute = emit_mute(p, prefix) != NULL;
    fprintf(f, "\nint main(int argc, char **argv)\n{\n");
    if (!mute)
        fprintf(f, "#ifdef SAMPLE\n    return job_sample(&job, argc, argv);\n#else\n");
    fprintf(f, "    return %s_main(argc, argv);\n%s}\n", prefix, mute ? "" : "#endif\n");
}

void emit_header(FILE *f, const Plan *p, const char *prefix)
{
    fprintf(f, "/* " EMIT_TAG "\n *\n"
            " * %s.h: the training of %s as a function.  Generated by dpgen %s.\n"
            " * The arguments are those of a program, argv[0] and NULL included; what it returns is the status of one. */\n"
            "#ifndef DPGEN_%s_H\n#define DPGEN_%s_H\n#ifdef __cplusplus\nextern \"C\"\n#endif\n"
            "int %s_main(int argc, char **argv);\n#endif\n", prefix, quote_comment(p->g->name), DPGEN_VERSION, prefix, prefix,
            prefix);
}
