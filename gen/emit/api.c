/* SPDX-License-Identifier: Apache-2.0
 *
 * api.c: --library: NAME.h and NAME.c, the job as functions, in place of launch.c's main() and the runtime of a program.
 *
 * NAME.h is rt/library/library_job.h under the name of the job, with the sizes of its arrays; NAME.c is the amalgam of kernels,
 * stage and rt/library/library.c.  An output is a value of the evaluation over whose bytes nothing is written later.
 *
 *   needs   a plan of one stage, as main.c has checked; launch.c as text
 */
#include "amalgam.h"
#include "base/file.h"
#include <ctype.h>
#include <inttypes.h>
#include <string.h>

enum { JOB_ROOM = 1024, JOB_ALIGN = 64 };       /* of an arena, before that of the stage */

typedef struct { const char *name, *text; } Made;

struct Api {
    const Plan *p;
    const char *name, *capitals;
    Amalgam *amalgam;
    VEC(Made) made;             /* files of the folder that stand in it */
    Strs source;                /* the files of the amalgam, in order */
};

const char *api_name(const char *model)
{
    char *name = strf("%s%s", isdigit((unsigned char)*model) ? "job_" : "", model);
    for (char *c = name; *c; c++)
        *c = isalnum((unsigned char)*c) ? *c : '_';
    return name;
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
    text_close(&t);
    return t.at;
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

static Bytes arena_of(const Api *a)
{
    return JOB_ROOM + (a->p->dev.at[0].arena + JOB_ALIGN - 1) / JOB_ALIGN * JOB_ALIGN;
}

static int64_t count_of(const Shape *s)
{
    int64_t n = 1;
    for (int i = 0; i < s->n; i++)
        n *= s->d[i];
    return n;
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
    for (int i = 0; i < p->buf.n; i++) {
        const Buf *x = &p->buf.at[i];
        if (x->eval && x != b && x->first > b->first && x->last >= x->first && x->offset < b->offset + b->bytes &&
            b->offset < x->offset + x->bytes)
            return true;
    }
    return false;
}

static const Tensor *output_of(const Plan *p, const Buf *b)
{
    const Tensor *t = b->eval && b->tensor >= 0 && b->last >= b->first ? &p->g->tensor.at[b->tensor] : NULL;
    bool is = t && t->kind == T_ACT && t->type == p->g->compute && b->pool < 0 && b->origin == MADE && t->shape.n > 1 &&
        t->shape.d[0] % p->g->batch == 0;
    return is && !is_overwritten(p, b) ? t : NULL;
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
        fprintf(f, " *     %-16s %s %s\n", quote_comment(in->name), in->type == I32 ? "int32_t" : "float",
                s ? sample_shape(s, batch) : "unused");
    }
    fprintf(f, " * Outputs, of a sample, by name:\n");
    for (int b = 0; b < p->buf.n; b++) {
        const Tensor *t = output_of(p, &p->buf.at[b]);
        if (t)
            fprintf(f, " *     %-16s float %s\n", quote_comment(t->name), sample_shape(&t->shape, batch));
    }
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
    fprintf(f, "\n};\n%s", rest);
    text_close(&t);
    return t.at;
}

/* ---- the amalgam ------------------------------------------------------------------------------------------------------- */

/* Names of the library that are there already, with another meaning; files of the folder that are called so. */
static void check_name(const Api *a)
{
    Strs all = amalgam_names(a->amalgam);
    const char *small = strf("%s_", a->name), *large = strf("%s_", a->capitals), *why = NULL;
    for (int i = 0; i < all.n; i++)
        for (int k = 0; k < i && (!strncmp(all.at[i], small, strlen(small)) || !strncmp(all.at[i], large, strlen(large))); k++)
            why = strcmp(all.at[i], all.at[k]) ? why : all.at[i];
    if (!strcmp(a->name, "launch") || !strncmp(a->name, "stage", 5))
        why = strf("%s.c", a->name);
    if (why)
        fail(EXIT_USAGE, "a library cannot be called %s: %s is something else in it; --prefix gives another name", a->name,
             why);
}

Api *api_new(const Plan *p, const char *name, const char *launch)
{
    static const char *const host[] = {"rt/number.c", "rt/sha256.c", "rt/begin.c", "rt/values.c", "rt/fold.c"};
    static const char *const ours[] = {"rt/library/inside.h", "rt/library/states.c", "rt/library/library.c"};
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
    Strs kernels = files_kernels(p);
    for (int i = 0; i < kernels.n; i++)
        *PUSH(&a->source) = kernels.at[i];
    *PUSH(&a->source) = "launch.c";
    *PUSH(&a->source) = "rt/library/states.c";
    *PUSH(&a->source) = "rt/library/library.c";
    for (int i = 0; i < a->source.n; i++)
        amalgam_learn(a->amalgam, a->source.at[i]);
    check_name(a);
    return a;
}

Strs api_taken(const Api *a)
{
    return amalgam_names(a->amalgam);
}

static void print_outputs(const Api *a, FILE *f)
{
    const Plan *p = a->p;
    fprintf(f, "\nstatic const Output outputs[] = {\n");
    for (int b = 0; b < p->buf.n; b++) {
        const Tensor *t = output_of(p, &p->buf.at[b]);
        if (t)
            fprintf(f, "    {%s, 0x%08" PRIx64 ", %" PRId64 "},\n", quote_c(t->name), (uint64_t)p->buf.at[b].offset,
                    count_of(&t->shape) / p->g->batch);
    }
    fprintf(f, "    {0}\n};\n");
}

static void print_head(const Api *a, FILE *f)
{
    const Plan *p = a->p;
    fprintf(f, "/* SPDX-License-" "Identifier: Apache-2.0 AND " EMIT_LICENCE "\n *\n"
            " * %s.c: the training of %s, as one file.  Generated by dpgen %s: edit the model, not this file.\n"
            " * What stands below a name rt/... is a file of dpgen, under the Apache License 2.0; launch.c, stage0 are not.\n"
            " * It wants C11 of gcc or clang, and -ffp-contract=off, without which %s_open() refuses. */\n"
            "#include \"%s.h\"\n#include <float.h>\n#include <stddef.h>\n#include <stdint.h>\n#define LIBRARY\n"
            "enum { JOB_ROOM = %d };\n%s%s",
            a->name, quote_comment(p->g->name), DPGEN_VERSION, a->name, a->name, JOB_ROOM,
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
    for (int i = 0; i < a->source.n - 2; i++)
        amalgam_print(a->amalgam, f, a->source.at[i]);
    amalgam_print(a->amalgam, f, "stage0.c");
    amalgam_print(a->amalgam, f, "tables.h");
    print_outputs(a, f);
    for (int i = a->source.n - 2; i < a->source.n; i++)
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
    add_written(a, o, "stage0.h");
    add_written(a, o, "stage0.c");
    out_copy(o, strf("%s.h", a->name), a->made.at[0].text, strlen(a->made.at[0].text));
    emit_amalgam(o, a);
    Fill fill[] = {
        {"tag", EMIT_TAG}, {"name", a->name}, {"capitals", a->capitals}, {"model", quote_comment(p->g->name)},
        {"version", DPGEN_VERSION}, {"key", quote_comment(p->key)}, {"isa", build_isa(p)},
        {"openmp", p->m->devices.at[0].threads > 1 ? "-fopenmp" : ""},
        {"arena", size_text(arena_of(a))}, {"schedule", order_name(p)}, {NULL, NULL}};
    build_template(out_open(o, "Makefile"), "templates/library.mk", fill);
    out_close(o);
    build_template(out_open(o, "README"), "templates/library.txt", fill);
    out_close(o);
}
