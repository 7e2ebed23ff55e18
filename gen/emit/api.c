/* SPDX-License-Identifier: Apache-2.0
 *
 * api.c: --library: NAME.h and NAME.c, the job as functions, in place of launch.c's main() and the runtime of a program.
 *
 * NAME.h is rt/library/library_job.h under the name of the job, with the sizes of its arrays; NAME.c is the amalgam of kernels,
 * stage and rt/library/library.c.  An output is a value of the evaluation over whose bytes nothing is written later.
 *
 *   needs   a plan of one stage, as main.c has checked; launch.c as text
 */
#include "emit.h"
#include <ctype.h>

/* Of an arena, before those of the stages: the job, and for several stages what a device has, each of its messages, and each
 * pair of devices.  The library looks whether it fits. */
enum { JOB_ROOM = 1024, DEVICE_ROOM = 1024, HALF_ROOM = 128, PAIR_ROOM = 128, JOB_ALIGN = 64 };

typedef struct { const char *name, *text; } Made;

struct Api {
    const Plan *p;
    const char *name, *capitals;
    Amalgam *amalgam;
    VEC(Made) made;             /* files of the folder that stand in it */
    Strs source;                /* the files of the amalgam, in order */
    int kernels;                /* so many of them stand before the stages */
};

const char *api_name(const char *model)
{
    return text_plain(strf("%s%s", isdigit((unsigned char)*model) ? "job_" : "", model), C_WORD);
}

/* library_x and LIBRARY_X under the name of the job. */
static const char *renamed(const Api *a, const char *text)
{
    Text t;
    FILE *f = text_open(&t);
    for (const char *at = text; *at; at++) {
        bool small = !strncmp(at, "library_", 8), large = !strncmp(at, "LIBRARY_", 8);
        if (small || large)
            fprintf(f, "%s_", small ? a->name : a->capitals);
        else
            fputc(*at, f);
        at += small || large ? 7 : 0;
    }
    return text_close(&t);
}

static void add_made(Api *a, const char *name, const char *text)
{
    *PUSH(&a->made) = (Made){name, text};
}

static const char *find(const void *with, const char *name, const char **path)
{
    static const char *const folders[] = {"", "rt/", "rt/op/", "rt/library/"};
    const Api *a = with;
    while (!strncmp(name, "../", 3))
        name += 3;
    for (int i = 0; i < a->made.n; i++) {
        const char *base = strrchr(a->made.at[i].name, '/');
        *path = a->made.at[i].name;
        if (!strcmp(*path, name) || (base && !strcmp(base + 1, name)))
            return a->made.at[i].text;
    }
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        const Embedded *e = embedded_find(strf("%s%s", folders[i], name));
        if (e && strcmp(name, "hooks.h")) {
            *path = e->name;
            return e->data;
        }
    }
    return NULL;
}

/* ---- NAME.h ------------------------------------------------------------------------------------------------------------ */

/* Most messages that a device has under way, by number. */
static int requests_of(const Plan *p)
{
    int most = 1;
    for (int d = 0; d < p->devices; d++)
        most = p->dev.at[d].requests > most ? p->dev.at[d].requests : most;
    return most;
}

/* Most micro-batches of a step whose losses a device keeps apart; 0: it keeps their sum. */
static int64_t losses_of(const Plan *p)
{
    int copies = plan_replicas(p) * plan_ways(p);
    return copies > 1 ? p->g->micro / copies : 0;
}

static bool is_over_ranks(const Plan *p)
{
    return emit_ranks(p) > 1 && transport_of(p->m)->ranks;
}

static Bytes room_of(const Plan *p)
{
    Bytes n = emit_ranks(p), device = DEVICE_ROOM + HALF_ROOM * (requests_of(p) + 2) + 8 * losses_of(p);
    return n == 1 ? JOB_ROOM : (JOB_ROOM + n * (device + n * PAIR_ROOM) + JOB_ALIGN - 1) / JOB_ALIGN * JOB_ALIGN;
}

static Bytes arena_of(const Api *a)
{
    Bytes sum = 0, most = 0;
    for (int d = 0; d < a->p->devices; d++) {
        Bytes one = (a->p->dev.at[d].arena + JOB_ALIGN - 1) / JOB_ALIGN * JOB_ALIGN;
        sum += one * (emit_ranks(a->p) / a->p->devices);
        most = one > most ? one : most;
    }
    return room_of(a->p) + (is_over_ranks(a->p) ? most : sum);
}

static const char *sample_shape(const Shape *s, int64_t batch)
{
    const char *text = "";
    for (int i = 0; i < s->n; i++)
        text = strf("%s%s%" PRId64, text, i ? ", " : "", i || s->d[i] % batch ? s->d[i] : s->d[i] / batch);
    return s->n && s->d[0] == batch ? strf("[%s]", strchr(text, ',') ? strchr(text, ',') + 2 : "") : strf("[%s]", text);
}

/* Does a value of the evaluation that comes later lie on it? */
static bool is_overwritten(const Plan *p, const Buf *b)
{
    for (EACH(const Buf, x, p->buf))
        if (x->device == b->device && x->eval && x != b && x->first > b->first && x->last >= x->first &&
            x->offset < b->offset + b->bytes && b->offset < x->offset + x->bytes)
            return true;
    return false;
}

static int homes_of(const Plan *p)
{
    return p->devices / plan_replicas(p);
}

static const Tensor *output_of(const Plan *p, const Buf *b)
{
    const Tensor *t = b->eval && b->tensor >= 0 && b->last >= b->first ? &p->g->tensor.at[b->tensor] : NULL;
    bool is = t && t->kind == T_ACT && t->type == p->g->compute && b->pool < 0 && b->origin == MADE && t->shape.n > 1 &&
        t->shape.d[0] % p->g->batch == 0;
    return is && !is_overwritten(p, b) ? t : NULL;
}

typedef struct { const Tensor *t; int device; Bytes at; } Leaves;        /* t NULL: there are no more */

/* Output `k`, of which a job that infers has those that it names, and one that trains those that its evaluation leaves. */
static Leaves output_at(const Plan *p, int k)
{
    for (int o = 0; o < p->g->nf && infers(p->m); o++) {
        const Op *op = &p->g->op.at[o];
        if (op_is(op, TRAIT_END) && k-- == 0)
            return (Leaves){&p->g->tensor.at[op->arg.at[0].index], stage_of(p, p->chunk.at[o]), 0};
    }
    for (int b = 0; b < p->buf.n && !infers(p->m); b++) {
        const Tensor *t = output_of(p, &p->buf.at[b]);
        if (t && k-- == 0)
            return (Leaves){t, p->buf.at[b].device, p->buf.at[b].offset};
    }
    return (Leaves){NULL, 0, 0};
}

static const char *output_name(const Plan *p, int k)
{
    return infers(p->m) ? p->m->outputs.at[k] : output_at(p, k).t->name;
}

static void print_tables(const Api *a, FILE *f)
{
    const Plan *p = a->p;
    int64_t batch = p->g->batch;
    fprintf(f, " *\n * Inputs, of a sample:\n");
    for (int i = 0; i < p->m->inputs.n; i++) {
        const Input *in = &p->m->inputs.at[i];
        const Shape *s = NULL;
        for (int t = 0; t < p->g->tensor.n && !s; t++)
            if (p->g->tensor.at[t].kind == T_INPUT && p->g->tensor.at[t].of == i)
                s = &p->g->tensor.at[t].shape;
        fprintf(f, " *     %-16s %s %s%s\n", quote_comment(in->name), in->type == I32 ? "int32_t" : "float",
                s ? sample_shape(s, batch) : "unused", in->bytes ? ", (byte/255 - mean) / std of the model file" : "");
    }
    fprintf(f, " * Outputs, of a sample, by name:\n");
    Leaves x;
    for (int k = 0; (x = output_at(p, k)).t; k++)
        if (x.device < homes_of(p))
            fprintf(f, " *     %-16s float %s\n", quote_comment(output_name(p, k)), sample_shape(&x.t->shape, batch));
}

static const char *header_text(const Api *a)
{
    static const char at[] = "#include <stdint.h>\n";
    const Plan *p = a->p;
    const char *body = renamed(a, embedded_find("rt/library/library_job.h")->data), *rest = strstr(body, at) + sizeof at - 1;
    Idents names = {0};
    Text t;
    FILE *f = text_open(&t);
    fprintf(f, "%.*s\n/* The job: %s, generated by dpgen %s.", (int)(rest - body), body, quote_comment(p->g->name),
            DPGEN_VERSION);
    fprintf(f, "\n * %s\n", quote_comment(p->key));
    print_tables(a, f);
    fprintf(f, " */\n#define %s_ARENA %" PRId64 "  /* bytes */\nenum {\n    %s_BATCH = %" PRId64 ", %s_STEP_SAMPLES = %" PRId64
            ", %s_INPUTS = %d", a->capitals, arena_of(a), a->capitals, p->g->batch, a->capitals, p->g->batch * p->g->micro,
            a->capitals, p->m->inputs.n);
    for (int i = 0; i < p->m->inputs.n; i++)
        fprintf(f, ",\n    %s_INPUT_%s = %d", a->capitals, name_new(&names, p->m->inputs.at[i].name), i);
    fprintf(f, "\n};\n");
    if (is_over_ranks(p))
        fprintf(f, "#define %s_RANKS %d  /* stages, each in a rank */\n", a->capitals, p->devices);
    fputs(rest, f);
    return text_close(&t);
}

/* ---- the amalgam ------------------------------------------------------------------------------------------------------- */

/* Names of the library that are there already, with another meaning, or that a kernel has which this job has not; files of the
 * folder that are called so; headers of C, which a program finds with -I in front of the system's. */
static void check_name(const Api *a)
{
    Strs all = amalgam_names(a->amalgam);
    const char *small = strf("%s_", a->name), *large = strf("%s_", a->capitals), *why = NULL;
    for (int i = 0; i < all.n; i++)
        for (int k = 0; k < i && (!strncmp(all.at[i], small, strlen(small)) || !strncmp(all.at[i], large, strlen(large))); k++)
            why = strcmp(all.at[i], all.at[k]) ? why : all.at[i];
    for (int i = 0; i < all.n; i++)
        if (!strncmp(all.at[i], small, strlen(small)) && strstr(embedded_find("rt/rt.h")->data, strf(" %s(", all.at[i])))
            why = all.at[i];
    if (!strcmp(a->name, "launch") || !strncmp(a->name, "stage", 5))
        why = strf("%s.c", a->name);
    for (const Embedded *e = embedded; e->name; e++)
        if (!strncmp(e->name, "rt/", 3) && strstr(e->data, strf("#include <%s.h>", a->name)))
            why = strf("%s.h", a->name);
    if (!strcmp(a->name, "Makefile"))       /* make would link one from Makefile.o */
        why = a->name;
    if (why)
        fail(EXIT_USAGE, "a library cannot be called %s: %s is something else in it; --prefix gives another name", a->name,
             why);
}

Api *api_new(const Plan *p, const char *name, const char *launch)
{
    static const char *const host[] = {"rt/number.c", "rt/sha256.c", "rt/begin.c", "rt/values.c", "rt/fold.c"};
    static const char *const ours[] = {"rt/library/inside.h", "rt/library/states.c", "rt/library/library.c",
                                       "rt/library/alone.c", "rt/library/threads.c", "rt/library/ranks.c"};
    const char *crew = is_over_ranks(p) ? ours[5] : emit_ranks(p) > 1 ? ours[4] : ours[3];
    Api *a = alloc(sizeof *a);
    char *capitals = strf("%s", name);
    for (char *c = capitals; *c; c++)
        *c = (char)toupper((unsigned char)*c);
    *a = (Api){.p = p, .name = name, .capitals = capitals};
    a->amalgam = amalgam_new(find, a);
    add_made(a, strf("%s_job.h", name), header_text(a));       /* as the files below include it */
    add_made(a, "launch.c", launch);
    add_made(a, "parts.h", "");
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        add_made(a, ours[i], renamed(a, embedded_find(ours[i])->data));
    for (size_t i = 0; i < sizeof host / sizeof *host; i++)
        *PUSH(&a->source) = host[i];
    if (emit_ranks(p) > 1)
        *PUSH(&a->source) = "rt/transfer.c";
    if (crew == ours[4])
        *PUSH(&a->source) = "rt/meet.c";
    Strs kernels = files_kernels(p);
    APPEND(&a->source, kernels);
    *PUSH(&a->source) = "launch.c";
    a->kernels = a->source.n;
    *PUSH(&a->source) = "rt/library/states.c";
    *PUSH(&a->source) = crew;
    *PUSH(&a->source) = "rt/library/library.c";
    for (int i = 0; i < a->source.n; i++)
        amalgam_learn(a->amalgam, a->source.at[i]);
    check_name(a);
    return a;
}

/* Names of several stages are macros, each in its stage: none may be a member of what a stage's table is made of. */
Strs api_taken(const Api *a)
{
    static const char *const member[] = {"name", "shape", "start", "param", "copy", "grad", "moment1", "moment2", "centre",
        "drift", "versions", "kept", "copies", "stride", "sums", "shared", "cut", "part", "files", "bits", "outer", "room",
        "arena", "vals", "pipeline", "threads", "actions", "eval_actions", "open", "step", "eval", "parameters"};
    Strs all = amalgam_names(a->amalgam);
    for (size_t i = 0; i < sizeof member / sizeof *member && a->p->devices > 1; i++)
        *PUSH(&all) = member[i];
    return all;
}

static const char *no_board(const Plan *p)
{
    return strf("%d devices are as many threads or processes, which a board without a system has not: generate with --stages 1",
                emit_ranks(p));
}

static void print_head(const Api *a, FILE *f)
{
    const Plan *p = a->p;
    const char *several = strf("#if !__STDC_HOSTED__\n#error \"%s\"\n#endif\n", no_board(p));
    fprintf(f, "/* SPDX-License-" "Identifier: Apache-2.0 AND " EMIT_LICENCE "\n *\n"
            " * %s.c: the training of %s, as one file.  Generated by dpgen %s: edit the model, not this file.\n"
            " * What stands below a name rt/... is a file of dpgen, under the Apache License 2.0; launch.c, stage0 are not.\n"
            " * It wants C11 of gcc or clang, and -ffp-contract=off, without which %s_open() refuses. */\n"
            "%s#include \"%s.h\"\n#include <float.h>\n#include <stddef.h>\n#include <stdint.h>\n#define LIBRARY\n"
            "enum { JOB_ROOM = %" PRId64 ", JOB_STAGES = %d, JOB_SOURCES = %d, JOB_HOMES = %d, JOB_REQUESTS = %d, "
            "JOB_LOSSES = %" PRId64 " };\n%s%s%s",
            a->name, quote_comment(p->g->name), DPGEN_VERSION, a->name,
            emit_ranks(p) > 1 ? "#ifndef _POSIX_C_SOURCE\n#define _POSIX_C_SOURCE 200809L\n#endif\n" : "", a->name,
            room_of(p), emit_ranks(p), p->devices, homes_of(p), requests_of(p), losses_of(p),
            emit_ranks(p) > 1 ? several : "",
            p->g->compute == BF16 ? "#define REAL_BF16\n" : "", p->m->train.fast ? "#define FAST_SUMS\n" : "");
    fprintf(f, "#pragma GCC diagnostic ignored \"-Wunused-function\"\n#pragma GCC diagnostic ignored \"-Wunknown-pragmas\"\n\n"
            "/* All that it takes from outside. */\nvoid *memcpy(void *to, const void *from, size_t n);\n"
            "void *memset(void *to, int byte, size_t n);\nint memcmp(const void *a, const void *b, size_t n);\n\n");
}

static void emit_amalgam(Out *o, Api *a)
{
    FILE *f = out_open(o, strf("%s.c", a->name));
    print_head(a, f);
    amalgam_begin(a->amalgam);
    amalgam_skip(a->amalgam, a->made.at[0].name);
    for (int i = 0; i < a->kernels; i++)
        amalgam_print(a->amalgam, f, a->source.at[i]);
    if (a->p->devices == 1)
        amalgam_print(a->amalgam, f, "stage0.c");
    for (int d = 0; d < a->p->devices && a->p->devices > 1; d++)
        amalgam_print_apart(a->amalgam, f, strf("stage%d.h", d), strf("stage%d.c", d), d);
    amalgam_print(a->amalgam, f, "tables.h");
    const Plan *p = a->p;
    fprintf(f, "\nstatic const Output outputs[] = {\n");
    Leaves x;
    for (int k = 0; (x = output_at(p, k)).t; k++)
        fprintf(f, "    {%s, %d, 0x%08" PRIx64 ", %" PRId64 "},\n", quote_c(output_name(p, k)), x.device, (uint64_t)x.at,
                shape_elements(&x.t->shape) / p->g->batch);
    fprintf(f, "    {0}\n};\n");
    for (int i = a->kernels; i < a->source.n; i++)
        amalgam_print(a->amalgam, f, a->source.at[i]);
    out_close(o);
}

static void add_written(Api *a, const Out *o, const char *name)
{
    size_t n;
    add_made(a, name, file_read(strf("%s/%s", out_place(o), name), "it was written just now", &n));
}

void api_emit(Out *o, Api *a)
{
    const Plan *p = a->p;
    for (int d = 0; d < p->devices; d++) {
        add_written(a, o, strf("stage%d.h", d));
        add_written(a, o, strf("stage%d.c", d));
    }
    out_copy(o, strf("%s.h", a->name), a->made.at[0].text, strlen(a->made.at[0].text));
    emit_amalgam(o, a);
    Fill fill[] = {
        {"tag", EMIT_TAG}, {"name", a->name}, {"capitals", a->capitals}, {"model", quote_comment(p->g->name)},
        {"version", DPGEN_VERSION}, {"key", quote_comment(p->key)}, {"isa", build_isa(p)},
        {"cc", is_over_ranks(p) ? "mpicc" : "cc"},
        {"threads", strf("%s%s", build_threads(p) > 1 ? "-fopenmp " : "", emit_ranks(p) > 1 ? "-pthread " : "")},
        {"board", emit_ranks(p) > 1 ? strf("$(error %s)\n", no_board(p)) : ""},
        {"stages", emit_ranks(p) == 1 ? "one stage"
                   : strf("%d stages, each in a %s", p->devices, is_over_ranks(p) ? "rank of MPI" : "thread")},
        {"arena", size_text(arena_of(a))}, {"schedule", order_name(p)}, {NULL, NULL}};
    build_template(out_open(o, "Makefile"), "templates/library.mk", fill);
    out_close(o);
    build_template(out_open(o, "README"), "templates/library.txt", fill);
    out_close(o);
}
