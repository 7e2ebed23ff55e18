/* SPDX-License-Identifier: Apache-2.0
 *
 * build.c: the parts of the emitted folder that build it: its Makefile and README from templates/, and the files of rt/ that
 * files.c has chosen.
 */
#include "emit.h"

void build_template(FILE *f, const char *name, const Fill *fill)
{
    const Embedded *t = embedded_find(name);
    if (!t)
        die("no template %s", name);
    for (const char *at = t->data; *at;) {
        const char *end = *at == '@' ? strchr(at + 1, '@') : NULL;
        const Fill *x = NULL;
        for (const Fill *i = fill; end && i->mark; i++)
            if (strlen(i->mark) == (size_t)(end - at - 1) && !strncmp(i->mark, at + 1, strlen(i->mark)))
                x = i;
        if (x)
            fputs(x->value, f);
        else
            fputc(*at, f);
        at = x ? end + 1 : at + 1;
    }
}

static const char *add_object(const char *text, const char *file)
{
    return strf("%s \\\n  %.*so", text, (int)strlen(file) - 1, file);
}

static const char *objects(const Plan *p, const Strs *files)
{
    const char *text = "launch.o";
    for (int d = 0; d < p->devices; d++)
        text = strf("%s stage%d.o", text, d);
    if (emit_cuda(p))
        text = strf("%s kernels.o", text);
    for (int i = 0; i < files->n; i++)
        if (text_ends(files->at[i], ".c") && !files_sample(files->at[i]))
            text = add_object(text, files->at[i]);
    return text;
}

/* The rules of `sample`, or why there is none. */
static const char *sample_rules(const Strs *files, const char *mute)
{
    static const char rules[] =
        "SAMPLE = %s\n\n"
        "all: sample\n\n"
        "sample.o: launch.c\n"
        "\t$(call say,compile sample) $(CC) $(CPPFLAGS) -DSAMPLE $(CFLAGS) $(DEPEND) -c -o $@ $<\n\n"
        "sample: $(filter-out launch.o,$(OBJ)) $(SAMPLE) .flags.link\n"
        "\t$(call say,link $@) $(CC) $(LDFLAGS) -o $@ $(filter-out launch.o,$(OBJ)) $(SAMPLE) $(LIBS)\n";
    const char *objects = "sample.o";
    for (int i = 0; i < files->n; i++)
        if (files_sample(files->at[i]) && files_source(files->at[i]))
            objects = add_object(objects, files->at[i]);
    if (!mute)
        return strf(rules, objects);
    return strf("SAMPLE =\n\nsample:\n\t@echo sample: %s >&2; exit 2\n\n.PHONY: sample\n", quote_recipe(mute));
}

int build_threads(const Plan *p)
{
    int most = 1;
    for (int d = 0; d < p->devices; d++)
        if (p->m->devices.at[d].threads > most)
            most = p->m->devices.at[d].threads;
    return most;
}

/* A batch script comes with a program that mpirun or srun starts. */
static bool of_slurm(const Plan *p, const char *prefix)
{
    return transport_of(p->m)->batch && emit_program(prefix);
}

/* A name in a line that has no quotes. */
const char *build_isa(const Plan *p)
{
    static const struct { const char *isa, *flags; } table[] = {
        {"native", "-march=native $(VECTOR)"},
        {"x86-64-v4", "-march=x86-64-v4 -mprefer-vector-width=512"},
        {"x86-64-v4+bf16", "-march=x86-64-v4 -mavx512bf16 -mprefer-vector-width=512"},
        {"x86-64-v4+amx", "-march=x86-64-v4 -mavx512bf16 -mamx-tile -mamx-int8 -mamx-bf16 -mprefer-vector-width=512"},
    };
    const char *isa = p->m->devices.at[0].isa;
    int i = INDEX_OF(table, sizeof table / sizeof *table, isa);
    return i < 0 ? strf("-march=%s", isa) : table[i].flags;
}

static const char *usage_of(const Plan *p, const char *prefix, bool mute)
{
    const char *launch = transport_of(p->m)->launch;
    const char *start = launch ? strf("%s -n %d ", launch, emit_ranks(p)) : "", *run = strf("%s./%s", start, prefix);
    if (!emit_program(prefix))
        return strf("    make                             makes %s.o: link it, with what %s, to a\n"
                    "                                     program that includes %s.h and calls %s_main(argc, argv)\n",
                    prefix, emit_cuda(p) ? "make needed prints" : "LIBS in the Makefile names", prefix,
                    prefix);
    if (!strcmp(prefix, "serve"))
        return strf("    make\n    %-32s samples in, results out; --help lists the options\n", run);
    return strf("    make\n    %-32s --help lists the options\n"
                "    %-32s record the first steps; check files and repeat them\n%s", run, "make expected; make verify",
                mute ? "" : strf("    %-32s what the newest checkpoint writes\n", strf("%s./sample", start)));
}

/* kernels.cu, which includes the kernels of this job, and cuda.mk, which finds what builds them. */
static void emit_toolkit(Out *o, const Plan *p, const Strs *files)
{
    const char *all = "", *needs = "";
    FILE *f = out_open(o, "kernels.cu");
    fprintf(f, "/* " EMIT_TAG "\n *\n"
            " * The kernels of this job, in one unit: their headers take longer to compile than they do. */\n");
    for (int i = 0; i < files->n; i++) {
        if (text_ends(files->at[i], ".cu")) {
            fprintf(f, "#include \"%s\"\n", files->at[i]);
            all = strf("%s \\\n  %s", all, files->at[i]);
        }
        const char *library = library_needed(files->at[i]);
        needs = library ? strf("%s %s", needs, library) : needs;
    }
    out_close(o);
    Fill fill[] = {{"tag", EMIT_TAG}, {"arch", p->m->devices.at[0].arch}, {"needs", needs}, {"kernels", all}, {NULL, NULL}};
    build_template(out_open(o, "cuda.mk"), "templates/cuda.mk", fill);
    out_close(o);
}

void emit_build(Out *o, const Plan *p, const char *prefix)
{
    static const char toolkit[] = "    kernels.cu       the kernels of this job as one unit, for nvcc\n"
                                  "    cuda.mk          where the Makefile finds CUDA and its libraries\n";
    static const char launching[] = "#                     make verify MPIRUN='srun --mpi=pmix': what starts the ranks\n";
    static const char batch[] = "    job.sbatch       the job for Slurm: it is warned, stops and is queued again\n";
    const char *mute = emit_mute(p, prefix);
    Strs files = files_of(p, mute);
    if (emit_cuda(p))
        emit_toolkit(o, p, &files);
    const Library *k = emit_library(p);
    const Transport *t = transport_of(p->m);
    const char *memory = "";
    int spare = p->m->devices.at[0].spare;
    for (int d = 0; d < p->devices; d++)
        memory = strf("%s  stage %d: arena %s of %s (lower bound %s)\n", memory, d, size_text(p->dev.at[d].arena),
                      size_text(p->dev.at[d].limit), size_text(p->dev.at[d].bound));
    Fill fill[] = {
        {"tag", EMIT_TAG},
        {"model", quote_comment(p->g->name)}, {"version", DPGEN_VERSION}, {"prefix", prefix}, {"key", quote_comment(p->key)},
        {"recorded", quote_recipe(strf("key %s", p->key))}, {"isa", build_isa(p)},
        {"objects", objects(p, &files)}, {"stages", strf("%d", plan_uneven(p) ? plan_stages(p) : p->devices)},
        {"ranks", strf("%d", emit_ranks(p))},
        {"team", team_shape(p)}, {"schedule", order_name(p)},
        {"transport", t->name}, {"kernels", k->name}, {"memory", memory},
        {"cc", t->cc}, {"openmp", (build_threads(p) > 1 || emit_library(p)->openmp) ? " -fopenmp" : ""},
        {"libs", strf("%s%s-lpthread -lm", k->link, t->link)},
        {"real", strf("%s%s%s", p->g->compute == BF16 ? " -DREAL_BF16" : p->m->train.tf32 ? " -DTF32" : "",
                      p->m->train.fast ? " -DFAST_SUMS" : "", spare ? strf(" -DSPARE=%d", spare) : "")},
        {"static", k->shared || t->shared ? "no" : "yes"},
        {"launch", t->launch ? strf("$(MPIRUN) -n %d ", emit_ranks(p)) : ""},
        {"mpirun", t->launch ? strf("MPIRUN ?= %s\n", t->launch) : ""}, {"launching", t->launch ? launching : ""},
        {"batch", of_slurm(p, prefix) ? batch : ""},
        {"at", "@"}, {"word", text_plain(p->g->name, C_WORD ".-")}, {"threads", strf("%d", build_threads(p))},
        {"nodes", p->m->hosts > 1 ? strf("#SBATCH --nodes=%d\n", p->m->hosts) : ""},
        {"checkpoint", quote_shell(p->m->ckpt.dir ? p->m->ckpt.dir : "run")},
        {"include", emit_cuda(p) ? "include cuda.mk\n" : ""},
        {"toolkit", emit_cuda(p) ? toolkit : ""}, {"usage", usage_of(p, prefix, mute)},
        {"sample", sample_rules(&files, mute)},
        {"product", emit_program(prefix) ? prefix : strf("%s.o", prefix)},
        {"kind", infers(p->m) ? "a pipeline of inference" : "a training job"},
        {"program", emit_program(prefix) ? prefix : "train"},
        {"unrun", infers(p->m) && emit_program(prefix) ? "this job trains nothing: give serve the same samples twice"
            : strf("this folder was made with --prefix: %s.o has no main to run", prefix)}, {NULL, NULL}};
    build_template(out_open(o, "Makefile"), "templates/Makefile", fill);
    out_close(o);
    build_template(out_open(o, "README"), "templates/README", fill);
    out_close(o);
    if (of_slurm(p, prefix)) {
        build_template(out_open(o, "job.sbatch"), "templates/job.sbatch", fill);
        out_close(o);
    }
    for (int i = 0; i < files.n; i++)
        files_print(o, p, &files, embedded_find(files.at[i]));
}
