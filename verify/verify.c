/* SPDX-License-Identifier: Apache-2.0
 *
 * verify.c: dpgen-verify FOLDER: does what was emitted compute, bit for bit, what one device would?
 *
 *   0 proved   1 not proved   2 usage   3 no folder of dpgen, or one that this program does not know   5 not as MANIFEST says
 *   6 no memory, or no room for the report
 */
#include "verify.h"
#include <stdio.h>
#include <string.h>

static const char usage[] =
    "usage: dpgen-verify [--edited] FOLDER\n"
    "  proves that the stages of a folder of dpgen compute together what one device would, value for value and addition for\n"
    "  addition, for one training step, from stage sources, launch.c and model.graph alone\n"
    "  --edited   leaves MANIFEST aside: for a folder that was edited\n"
    "  --help     prints this\n";

static void same_job(const Folder *f, const Graph *g)
{
    if (f->batch != g->batch || f->micro != g->micro || f->groups != g->groups || f->blocks != g->blocks ||
        f->bf16 != g->bf16)
        stop(NOT_PROVED, "launch.c: batch, micro-batches, groups, blocks or type are not those of model.graph");
}

#define SAY(...) fputs(shown(joined_text(__VA_ARGS__)), stdout)
static void report(const Folder *f, const Graph *g, const char *why, const Machine *stage, const Played *sum,
                   const char *dir, bool edited, int files)
{
    SAY("%s: proved: %d stages%s, %s of %lld micro-batches%s, %lld calls, %lld of them made again\n", dir, f->stages,
           f->devices > 1 ? joined_text(" of %d devices", f->devices) : "",
           f->overlap ? joined_text("%d steps", sum->steps) : "one step", (long long)f->micro,
           f->evaluates ? " and an evaluation" : "", (long long)sum->calls, (long long)sum->again);
    if (f->overlap)
        SAY("  versions  %s\n", f->versions);
    SAY("  %s\n", edited ? "edited: MANIFEST was left aside" : joined_text("files  %d, as MANIFEST has them", files));
    SAY("  trusted  the kernels, the runtime, the compiler\n");
    if (why)
        SAY("  not compared  model.graph with model.yaml: %s\n", why);
    for (int i = 0; i < g->given.n; i++)
        SAY("  %s  %s\n", why ? "given" : "model.yaml with", g->given.at[i]);
    if (g->no_dual)
        SAY("  not compared  the gradient in model.graph: %s\n", g->no_dual);
    SAY("  terms  %d\n  longest chain  %lld calls\n  messages  %lld\n", term_count(), (long long)sum->chain,
           (long long)sum->messages);
    for (int a = 0; a < f->stages; a++)
        for (int b = 0; b < f->stages; b++)
            if (sum->link[a * f->stages + b])
                SAY("  link %d to %d  %lld bytes\n", a, b, (long long)sum->link[a * f->stages + b]);
    for (int d = 0; d < f->stages; d++)
        SAY("  stage%d  %lld calls, %lld bytes of its arena of %lld\n", d, (long long)stage[d].calls,
               (long long)stage[d].top, (long long)stage[d].arena);
}

/* Runs that begin in each phase, and send what the run of phase 0 sends: nobody sees the phase of another stage, so that stages
 * may meet in any combination of their phases. */
static Machine *in_each_phase(const Folder *f, Graph *g, Run run, int phases, Played *sum)
{
    Reference r = reference_run(g, f, run);
    Machine *first = NULL;
    for (run.first = 0; run.first < phases; run.first++) {
        Played other;
        Machine *m = play(f, &r, run, run.first ? &other : sum);
        prove(f, g, &r, m, run);
        first = first ? first : m;
        for (int d = 0; d < f->stages; d++)
            if (m[d].talk != first[d].talk)
                stop(NOT_PROVED, "stage%d.c: its messages in a run that begins in phase %d are not those of phase 0", d,
                     run.first);
    }
    return first;
}

/* Where steps overlap, one run passes each piece of each phase twice, and short ones begin and end in each. */
static Machine *all_runs(const Folder *f, Graph *g, Played *sum)
{
    int phases = 1;
    Played other;
    for (int d = 0; d < f->stages && f->overlap; d++)
        phases = f->stage[d].phases > phases ? f->stage[d].phases : phases;
    Run step = {.steps = f->overlap ? f->overlap + 2 * phases : 1, .infer = !g->loss}, some = {.steps = f->overlap + 3};
    Machine *stage = in_each_phase(f, g, step, 1, sum);
    if (phases > 1)
        in_each_phase(f, g, some, phases, &other);
    if (f->overlap > 1)
        in_each_phase(f, g, (Run){.steps = 1, .alone = true}, phases, &other);
    if (f->evaluates)
        in_each_phase(f, g, (Run){.eval = true}, phases, &other);
    return stage;
}

int verify_run(int argc, char **argv, Compare *compare)
{
    bool edited = false;
    const char *dir = NULL;
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], "--help"))
            return fputs(usage, stdout) < 0 || fflush(stdout) ? NO_MEMORY : PROVED;
        else if (!strcmp(argv[i], "--edited"))
            edited = true;
        else if (argv[i][0] == '-' || dir)
            return fputs(usage, stderr), USAGE;
        else
            dir = argv[i];
    if (!dir)
        return fputs(usage, stderr), USAGE;
    Folder f = {0};
    Graph g = {0};
    Source text;
    Played sum;
    int files = edited ? 0 : manifest_check(dir);
    if (!source_read(&text, dir, "model.graph"))
        stop(NOT_READ, "%s has no model.graph: it is of a dpgen before 0.3.0, or cut off", dir);
    terms_open();
    graph_read(&g, &text);
    rows_open(g.bf16 ? 2 : 4, g.blocks);
    folder_read(&f, dir);
    g.portable = !strcmp(f.kernels, "portable");
    same_job(&f, &g);
    folder_starts(&f, &g);
    Machine *stage = all_runs(&f, &g, &sum);
    const char *why = !compare ? "this dpgen-verify cannot read a model file" : g.foreign ? "it is of another graph" :
        compare(&g, &f, dir);
    report(&f, &g, why, stage, &sum, dir, edited, files);
    if (fflush(stdout) || ferror(stdout))
        stop(NO_MEMORY, "proved, but the standard output cannot be written");
    return PROVED;
}
