/* SPDX-License-Identifier: Apache-2.0
 *
 * files.c: the files of rt/ that a job needs.  They are byte-identical to those that the tests compiled, but for two headers
 * with a line for each call: hooks.h and rt.h, of which the calls of the job are taken.
 *
 * A kernel file is taken when it defines a call that the plan uses, or what a header of such a file declares: of the library's
 * folder, else of rt/op; start.c likewise.  Of rt/op/onednn all are, since they share products; a paced job takes those of
 * rt/op/paced alone.  What a job may do without is a part (rt/parts.h): a file that defines an object of one of its types is
 * taken if the job has that part, and launch.c names the object.  Headers are taken with who includes them.
 */
#include "stage.h"
#include "cost/prof.h"
#include <ctype.h>

static bool right_in(const char *name, const char *folder)
{
    return text_begins(name, folder) && !strchr(name + strlen(folder), '/');
}

bool files_source(const char *name)
{
    return text_ends(name, ".c") || text_ends(name, ".cu");
}

static bool lies_in(const char *name, const char *folder)
{
    return right_in(name, folder) && files_source(name);
}

bool files_sample(const char *name)
{
    return right_in(name, "rt/sample/") || right_in(name, "rt/tokens/");
}

/* ---- parts --------------------------------------------------------------------------------------------------------- */

/* Does the job make this call?  Two calls that GPUs have one kernel for are a third. */
static bool calls(const Plan *p, const char *call)
{
    bool found = p->routine.n > 0 && order_overlap(p) > 0 && (!strcmp(call, "predict") || !strcmp(call, "predict_old"));
    for (int o = 0; o < p->g->op.n && !found; o++)
        found = !strcmp(p->g->op.at[o].call, call);
    for (int i = 0; on_gpus(p->m) && i < CALL_PAIRS && !found; i++)
        found = !strcmp(pair_call(i), call) && calls(p, call_pairs[i].first) && calls(p, call_pairs[i].second);
    return found;
}

static bool has_answers(const Plan *p, const char *text)
{
    for (const char *at = text; (at = strstr(at, "{\"")) != NULL; at += 2)
        if (calls(p, strf("%.*s", (int)strcspn(at + 2, "\""), at + 2)))
            return true;
    return false;
}

/* object: data_npy = {"npy", ... */
static bool has_format(const Plan *p, const char *object)
{
    const char *at = strchr(object, '"') + 1, *format = strf("%.*s", (int)strcspn(at, "\""), at);
    return (infers(p->m) && !strcmp(format, "npy")) || (p->m->data.format && !strcmp(p->m->data.format, format)) ||
           (p->m->eval.format && !strcmp(p->m->eval.format, format));
}

/* Are its samples rows, and no stretches of a stream? */
static bool has_rows(const char *format)
{
    return format && strstr(" npy idx cifar10 cifar100 ", strf(" %s ", format));
}

/* Does the model file, or a tie of it, say more of published weights than names? */
static bool has_described(const Plan *p)
{
    StoredPairs list = {0};
    weights_copies(p->m, p->g, &list);
    return p->m->weights.given || list.n > 0;
}

/* Tokens that are bytes need no tokenizer. */
static bool has_words(const Plan *p)
{
    return p->m->eval.format && strcmp(p->m->eval.format, "bytes") != 0;
}

/* What a job may do without: a type, and the list that has its objects, or the member of Parts, or of SampleParts. */
static const struct Extra { const char *type, *list, *member; } extras[] = {
    {"DataFormat", "job_formats", NULL}, {"Answers", "job_answers", NULL}, {"TokenText", NULL, "words"},
    {"SampleHead", NULL, "head"}, {"Adapters", NULL, "adapters"}, {"Bests", NULL, "best"}, {"Divided", NULL, "divided"},
    {"Described", NULL, "described"}, {"Hosts", NULL, "hosts"}, {"Losses", NULL, "losses"}, {"Offload", NULL, "offload"},
    {"Overlap", NULL, "overlap"}, {"Pace", NULL, "pace"}, {"Parted", NULL, "parted"}, {"Quantized", NULL, "quantized"},
    {"SampleRows", NULL, "rows"}, {"Team", NULL, "team"},
};

/* text: of the file that defines the object. */
static bool has(const Plan *p, const struct Extra *x, const char *text, const char *object)
{
    const Model *m = p->m;
    bool few_bits = false;
    for (EACH(const State, s, p->g->state))
        few_bits |= s->bits > 0;
    if (x->list)
        return !strcmp(x->type, "Answers") ? has_answers(p, text) : has_format(p, object);
    const struct { const char *type; bool has; } table[] = {
        {"TokenText", has_words(p)}, {"SampleHead", !calls(p, "xent_forward")}, {"Adapters", m->adapt.match.n > 0},
        {"Bests", m->eval.keep_best || m->eval.patience > 0}, {"Described", has_described(p)}, {"Divided", p->g->team > 0},
        {"Hosts", transport_of(m)->ranks}, {"Losses", plan_replicas(p) * plan_ways(p) > 1}, {"Offload", p->host.n > 0},
        {"Overlap", order_overlap(p) > 0}, {"Pace", emit_paced(p)}, {"Quantized", few_bits},
        {"Parted", m->train.shard != SHARD_NONE || p->g->team > 0},
        {"SampleRows", infers(m) || has_rows(m->data.format) || has_rows(m->eval.format)}, {"Team", p->g->team > 0},
    };
    return table[INDEX_OF(table, sizeof table / sizeof *table, x->type)].has;
}

/* The objects of a part that a file defines and the job has; any: whether the file defines any at all. */
static Strs objects_of(const Plan *p, const Embedded *e, const struct Extra *x, bool *any)
{
    Strs list = {0};
    const char *at = strstr(e->data, strf("\nconst %s ", x->type));
    *any = files_source(e->name) && strcmp(e->name, "rt/parts.c") && at && at[strlen(x->type) + 8] != '*';
    if (!*any)
        return list;
    for (at += strlen(x->type) + 8; ; at = strchr(at, ',') + 1) {
        at += strspn(at, " \n");
        if (p->routine.n > 0 && has(p, x, e->data, at))         /* a benchmark has no parts */
            *PUSH(&list) = strf("%.*s", (int)strcspn(at, " "), at);
        at = strchr(at, '}');
        if (at[1] != ',')
            return list;
    }
}

/* rt/cuda/ has files for GPUs, x.c or x.cu, that stand in for x.c in rt/. */
static bool stood_in(const Plan *p, const char *name)
{
    const char *base = strrchr(name, '/') + 1;
    return emit_cuda(p) && lies_in(name, "rt/") &&
           (embedded_find(strf("rt/cuda/%s", base)) || embedded_find(strf("rt/cuda/%su", base)));
}

static bool left_out(const Plan *p, const Embedded *e)
{
    for (size_t i = 0; i < sizeof extras / sizeof *extras; i++) {
        bool any;
        Strs list = objects_of(p, e, &extras[i], &any);
        if (any && list.n == 0)
            return true;
    }
    return !strcmp(e->name, "rt/parts.c") || (right_in(e->name, "rt/tokens/") && !has_words(p));
}

void files_parts(FILE *f, const Plan *p, bool mute)
{
    Strs member[2] = {{0}, {0}};        /* of the program, of sample */
    fprintf(f, "/* parts of the runtime that this job has */\n");
    for (size_t i = 0; i < sizeof extras / sizeof *extras; i++) {
        const struct Extra *x = &extras[i];
        Strs all = {0};
        for (const Embedded *e = embedded; e->name; e++) {
            bool any, there = !stood_in(p, e->name) && (emit_cuda(p) || !text_begins(e->name, "rt/cuda/"));
            Strs list = objects_of(p, e, x, &any), *to = x->list ? &all : &member[files_sample(e->name)];
            for (int k = 0; k < list.n && there; k++)
                *PUSH(to) = x->list ? strf("&%s", list.at[k]) : strf(".%s = &%s", x->member, list.at[k]);
        }
        *PUSH(&all) = "0";
        if (x->list)
            emit_wrap(f, fprintf(f, "const %s *const %s[] = {", x->type, x->list), 4, &all, "};");
    }
    for (int sample = 0; sample < (mute ? 1 : 2); sample++) {
        if (!member[sample].n)
            *PUSH(&member[sample]) = "0";
        fputs(sample ? "#ifdef SAMPLE\n" : "", f);
        emit_wrap(f, fprintf(f, "const %s = {", sample ? "SampleParts sample_parts" : "Parts job_parts"), 4, &member[sample],
                  "};");
        fputs(sample ? "#endif\n" : "", f);
    }
}

/* ---- files --------------------------------------------------------------------------------------------------------- */

static const Embedded *kernel_file(const Plan *p, const char *call)
{
    const char *folders[] = {emit_library(p)->folder, "rt/op/"};
    for (int i = 0; i < (emit_library(p)->alone ? 1 : 2); i++)
        for (const Embedded *e = embedded; e->name; e++)
            if (lies_in(e->name, folders[i]) && (strstr(e->data, strf("\nvoid %s(", call)) != NULL))
                return e;
    die("no kernel file defines %s", call);
}

/* Taken whatever the plan calls: all of a library whose files lean on each other, else what opens it. */
static bool is_kernel(const Plan *p, const Embedded *e)
{
    const Library *k = emit_library(p);
    const char *start = strf("%sstart.c", k->folder);
    return k->whole ? lies_in(e->name, k->folder) : !strcmp(e->name, embedded_find(start) ? start : "rt/op/start.c");
}

static void take(Strs *list, const char *name)
{
    if (!strs_has(list, name))
        *PUSH(list) = name;
}

/* The runtime, with one transport. */
static bool is_runtime(const Plan *p, const Embedded *e)
{
    const char *link = strf("link_%s.c", p->m->plan.transport), *base = strrchr(e->name, '/') + 1;
    bool ours = (lies_in(e->name, "rt/") && !stood_in(p, e->name)) || (emit_cuda(p) && lies_in(e->name, "rt/cuda/"));
    return ours && (!text_begins(base, "link_") || !strcmp(base, link)) && !left_out(p, e);
}

/* What `#include "PATH"` in a file means: beside it, or in a folder of -I, as all "../" are.  NULL: it is made with the job. */
static const Embedded *included(const char *file, const char *path)
{
    const char *beside = strf("%.*s", (int)(strrchr(file, '/') + 1 - file), file);
    const char *folders[] = {text_begins(path, "../") ? "rt/" : beside, "rt/", "rt/op/", "rt/sample/"};
    const Embedded *e = NULL;
    for (; text_begins(path, "../"); path += 3) { }
    for (size_t i = 0; i < sizeof folders / sizeof *folders && !e; i++)
        e = embedded_find(strf("%s%s", folders[i], path));
    return e;
}

/* Convolutions of single channels, products of many rows and Gelu by erf have kernels of their own.  A job that reaches them
 * nowhere has the file of that name in rt/op/without/. */
static bool reaches(const Plan *p, const char *base)
{
    enum { MANY = 512 };        /* of rt/op/pointwise.c */
    for (EACH(const Op, o, p->g->op)) {
        bool conv = text_begins(o->call, "conv");
        int64_t groups = attr_int(o, "groups");
        if (!strcmp(base, "depthwise.c") ? conv && groups > 1 && groups == attr_int(o, "in") && groups == attr_int(o, "out")
            : !strcmp(base, "pointwise.c") ? conv || attr_int(o, "rows") >= MANY
            : !strcmp(o->call, "gelu_forward") && !attr_int(o, "tanh"))
            return true;
    }
    return false;
}

/* The file that defines what a header of kernels declares: x.c or x.cu for x.h, which a library may have instead. */
static const Embedded *defining(const Plan *p, const Embedded *header)
{
    const Library *k = emit_library(p);
    const char *base = strrchr(header->name, '/') + 1, *folders[] = {k->folder, k->alone ? k->folder : "rt/op/"};
    const Embedded *e = NULL;
    if (emit_cuda(p) ? right_in(header->name, k->folder) : right_in(header->name, "rt/op/") && strstr(header->data, "\nvoid "))
        for (int i = 0; i < 4 && !e; i++)
            e = embedded_find(strf("%s%.*s%s", folders[i / 2], (int)strcspn(base, "."), base, i % 2 ? ".cu" : ".c"));
    const Embedded *without = e ? embedded_find(strf("rt/op/without/%s", strrchr(e->name, '/') + 1)) : NULL;
    return without && !reaches(p, strrchr(e->name, '/') + 1) ? without : e;
}

/* What a taken file includes comes along, and who defines what that declares. */
static void take_included(const Plan *p, Strs *wanted)
{
    static const char begin[] = "#include \"";
    for (int i = 0; i < wanted->n; i++)
        for (const char *at = embedded_find(wanted->at[i])->data; (at = strstr(at, begin)) != NULL;) {
            at += strlen(begin);
            const Embedded *e = included(wanted->at[i], strf("%.*s", (int)strcspn(at, "\""), at));
            for (; e; e = files_source(e->name) ? NULL : defining(p, e))
                take(wanted, e->name);
        }
}

Strs files_kernels(const Plan *p)
{
    Strs list = {0}, sources = {0};
    for (EACH(const Op, o, p->g->op))
        take(&list, kernel_file(p, o->call)->name);
    for (int i = 0; i < CALL_PAIRS && emit_cuda(p); i++)
        if (calls(p, pair_call(i)))
            take(&list, kernel_file(p, pair_call(i))->name);
    take_included(p, &list);
    for (int i = 0; i < list.n; i++)
        if (files_source(list.at[i]))
            *PUSH(&sources) = list.at[i];
    return sources;
}

/* In the order of the embedded table. */
Strs files_of(const Plan *p, bool mute)
{
    static const char *const benches[] = {"templates/bench_shared.h", "templates/bench.c", "templates/bench_cuda.c"};
    Strs wanted = files_kernels(p), list = {0};
    for (const Embedded *e = embedded; e->name; e++)
        if (is_kernel(p, e) || is_runtime(p, e) ||
            (!mute && files_sample(e->name) && files_source(e->name) && !left_out(p, e)) ||
            (infers(p->m) && p->routine.n > 0 && lies_in(e->name, "rt/serve/")))
            take(&wanted, e->name);
    take(&wanted, "rt/parts.h");
    if (emit_cuda(p)) {
        /* What opens handles, where the graph has any to open, and with it a library.  A benchmark has no routines. */
        bool eval = false;
        for (EACH(const Routine, r, p->routine))
            eval |= r->eval;
        for (EACH(const Op, o, p->g->op))
            if (cost_prepared(p->m, p->g, o, false) || (eval && o->phase == PH_F && cost_prepared(p->m, p->g, o, true)))
                take(&wanted, kernel_file(p, strf("open_%s", o->call))->name);
    }
    for (size_t i = 0; p->routine.n == 0 && i < sizeof benches / sizeof *benches - !emit_cuda(p); i++)
        take(&wanted, benches[i]);
    take_included(p, &wanted);
    for (const Embedded *e = embedded; e->name; e++)
        if (text_begins(e->name, "rt/") && strs_has(&wanted, e->name))
            *PUSH(&list) = e->name;
    return list;
}

/* rt/hooks.h: its head, the hook of each call of the job, and the macros that put them in the way. */
static void print_hooks(FILE *f, const Plan *p, const char *at)
{
    static const char hook[] = "HOOK(", macro[] = "#define ";
    for (const char *end; *at; at = end) {
        bool whole = text_begins(at, hook);
        end = whole ? strstr(at, ")\n\n") + 3 : strchr(at, '\n') + 1;
        const char *name = at + (whole ? strlen(hook) : strlen(macro));
        bool of_call = whole || (text_begins(at, macro) && strstr(at, " hooked_") && strstr(at, " hooked_") < end);
        if (!of_call || calls(p, strf("%.*s", (int)strcspn(name, "(,"), name)))
            fwrite(at, 1, (size_t)(end - at), f);
    }
}

static bool defined_in(const Strs *files, const char *prototype)
{
    const char *start = strf("\n%.*s", (int)strcspn(prototype, "(") + 1, prototype);
    for (int i = 0; i < files->n; i++)
        if (files_source(files->at[i]) && strstr(embedded_find(files->at[i])->data, start))
            return true;
    return false;
}

/* rt/rt.h: of the actions and kernels, those that the job's files define.  A comment goes with the last prototype below it. */
static void print_calls(FILE *f, const char *at, const Strs *files)
{
    const char *calls_at = strstr(at, "/* ---- actions"), *comment = NULL, *end;
    fwrite(at, 1, (size_t)(calls_at - at), f);
    for (at = calls_at; *at; at = end) {
        bool prototype = text_begins(at, "void "), remark = text_begins(at, "/*") && !text_begins(at, "/* ----");
        end = prototype ? strstr(at, ";\n") + 2 : remark ? strstr(at, "*/\n") + 3 : strchr(at, '\n') + 1;
        if (remark)
            comment = at;
        if (remark || (prototype && !defined_in(files, at)))
            continue;
        if (comment && isalpha((unsigned char)*at))
            fwrite(comment, 1, (size_t)(strstr(comment, "*/\n") + 3 - comment), f);
        comment = NULL;
        fwrite(at, 1, (size_t)(end - at), f);
    }
}

/* What is printed for the job, where all else is a copy. */
void files_print(Out *o, const Plan *p, const Strs *files, const Embedded *e)
{
    bool hooks = !strcmp(e->name, "rt/hooks.h"), calls = !strcmp(e->name, "rt/rt.h");
    if (hooks)
        print_hooks(out_open(o, e->name), p, e->data);
    else if (calls)
        print_calls(out_open(o, e->name), e->data, files);
    else
        out_copy(o, e->name, e->data, e->n);
    if (hooks || calls)
        out_close(o);
}
