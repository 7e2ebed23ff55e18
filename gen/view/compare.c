/* SPDX-License-Identifier: Apache-2.0
 *
 * compare.c: every planner side by side, on one model, device list, schedule and number of micro-batches.
 *
 * Papers compare planners by numbers of different models of cost.  Here every row is planned, laid out and simulated
 * by the same passes, under the same limits and prices, so that rows differ in what their planner chose and in nothing
 * else; each row names the space it chose from, and the proven bound stands beside all of them.
 *
 * b* is the largest micro-batch of largest.c, at a fixed number of micro-batches in a step; batch* the samples of that step.
 */
#include "view.h"
#include "search/search.h"
#include "base/file.h"
#include "emit/emit.h"
#include "search/largest.h"
#include "plan/planner.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MOST_BATCH = 1 << 16 };

typedef struct {                /* what a plan comes to */
    bool fits;
    Ns step, bound;
    double rate;                /* samples/s */
    Bytes arena, dropped, moved;        /* largest; of one micro-batch, all devices */
    Bytes *arenas;              /* by device */
    const Model *m;             /* with its devices in the order of the plan */
    int devices;
    int replicas;
    int64_t batch, micro;       /* samples in a micro-batch, micro-batches in a step */
    const char *order;          /* schedule and warm-up */
    const char *why;            /* where it does not fit */
    const char *note;           /* how it was found; NULL: nothing to say */
} Outcome;

typedef struct {
    const Planner *planner;
    Outcome here;               /* at the model's own micro-batch */
    double seconds;             /* of planning that */
    Largest most;
} Entry;

typedef struct {
    const Options *x;
    const Model *m;
    const char *schedule;
    int64_t micro;              /* micro-batches in a step */
    bool quick;                 /* no b*: as asked, or because the graph is of one micro-batch size */
    VEC(Entry) entry;
    Ns bound;                   /* the best proven bound of a step: that of `exact` */
    const Planner *planner;     /* of the row at hand */
} Compare;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static Outcome outcome(const Plan *p, const Plan *failed)
{
    Outcome o = {.why = "no plan"};
    if (!p && failed && failed->lack.device >= 0)
        o.why = strf("stage %d does not fit", failed->lack.device);
    if (!p)
        return o;
    o = (Outcome){.fits = true, .replicas = plan_replicas(p), .batch = p->g->batch, .micro = p->g->micro, .note = plan_proof(p).note,
                  .order = order_name(p), .m = p->m, .step = p->step, .bound = plan_proof(p).bound, .devices = p->devices,
                  .rate = (double)(p->g->batch * p->g->micro) * 1e9 / (double)p->step};
    o.arenas = alloc(sizeof *o.arenas * (size_t)p->devices);
    for (int d = 0; d < p->devices; d++) {
        StageSum s = view_stage(p, d);
        o.arenas[d] = p->dev.at[d].arena;
        o.arena = o.arenas[d] > o.arena ? o.arenas[d] : o.arena;
        o.dropped += s.dropped_bytes;
        o.moved += s.moved_bytes;
    }
    return o;
}

/* open: what the model leaves open and the planner may choose stays so, the samples of a step are the same for all: depth where
 * width is open, and for PipeDream-2BW, which chooses both with the micro-batch, that as well. */
static Outcome plan_at(Compare *c, int64_t batch, bool open)
{
    bool twobw = !strcmp(c->planner->name, "twobw");
    Model *with = alloc(sizeof *with);
    *with = *c->m;
    with->plan.planner = c->planner->name;
    with->plan.schedule = c->schedule;
    if (!open || (!twobw && !c->m->plan.replicas_auto))
        with->plan.stages_min = with->plan.stages_max;
    with->train.batch = open && twobw && c->m->train.batch == 0 ? 0 : batch;
    with->train.micro = c->micro;
    with->train.global = batch * c->micro;
    Plan *failed = NULL;
    Ask ask = {.steps_left = open ? NULL : layout_budget(&(Ask){0})};   /* of the rest: does it fit, and how long does it take */
    const Plan *p = search_with(c->x, with, &ask, &failed);
    return outcome(p, failed);
}

static Ns probe(void *ctx, int64_t batch)
{
    Compare *c = ctx;
    void *mark = mem_mark();
    Outcome o = plan_at(c, batch, false);
    mem_release(mark);
    return !o.fits ? 0 : o.step / (batch * c->micro) * 1000 + o.step % (batch * c->micro) * 1000 / (batch * c->micro);
}

/* ---- rows ----------------------------------------------------------------------------------------------------------- */

static void add_row(Compare *c, const Planner *planner, int64_t batch)
{
    Entry *r = PUSH(&c->entry);
    r->planner = c->planner = planner;
    double from = now();
    r->here = plan_at(c, batch, true);
    r->seconds = now() - from;
    if (planner == planners)
        c->bound = r->here.bound;
    if (c->quick)
        return;
    r->most = largest(probe, c, MOST_BATCH, 0);
}

/* What fits with another planner fits with `exact`, but whether a size fits is not monotone: it may have stopped below. */
static void ask_again(Compare *c)
{
    Entry *r = &c->entry.at[0];
    int64_t hint = 0;
    for (int i = 1; i < c->entry.n; i++)
        hint = c->entry.at[i].most.b > hint ? c->entry.at[i].most.b : hint;
    c->planner = r->planner;
    if (r->planner == planners && hint > r->most.b)
        r->most = largest(probe, c, MOST_BATCH, hint);
}

/* The bound is of one depth, width, micro-batch and schedule: those of `exact`. */
static bool bounded(const Compare *c, const Entry *r)
{
    const Outcome *a = &r->here, *b = &c->entry.at[0].here;
    return a->fits && c->bound > 0 && a->devices == b->devices && a->replicas == b->replicas && a->batch == b->batch &&
        !strcmp(a->order, b->order);
}

static const char *gap(const Compare *c, const Entry *r)
{
    if (!bounded(c, r))
        return "-";
    return strf("%.1f %%", 100.0 * (double)(r->here.step - c->bound) / (double)c->bound);
}

/* samples/s from ns of a thousand */
static double rate_of(Ns ns)
{
    return ns > 0 ? 1e12 / (double)ns : 0;
}

static void print_row(const Compare *c, const Entry *r)
{
    const Outcome *o = &r->here;
    if (o->fits)
        printf("%-20s %12.3f %11.1f %8s %11s %11s %11s", r->planner->name, (double)o->step / 1e6, o->rate, gap(c, r),
               size_text(o->arena), size_text(o->dropped), size_text(o->moved));
    else
        printf("%-20s %-69s", r->planner->name, o->why);
    if (!c->quick)
        printf(" %6" PRId64 " %8" PRId64 " %11.1f", r->most.b, r->most.b * c->micro, rate_of(r->most.at_b));
    printf(" %8.3f", r->seconds);
    if (r->most.any > r->most.b)
        printf("  %" PRId64 " fits, below half the best rate", r->most.any);
    printf("\n");
}

/* Where more than the cut was open: what was taken. */
static const char *choice(const Compare *c, const Entry *r, int64_t batch)
{
    const Outcome *o = &r->here;
    if (!o->fits || (!c->m->plan.replicas_auto && o->batch == batch))
        return "";
    return strf("; took %s, %s, %s of %" PRId64, count_text(o->devices / o->replicas, "stage"),
                count_text(o->replicas, "replica"), count_text(o->micro, "micro-batch"), o->batch);
}

static const char *note(const Entry *r)
{
    return r->here.note ? strf("; %s", r->here.note) : "";
}

static void print_table(const Compare *c, int64_t batch)
{
    printf("%s on %d devices, %s, %" PRId64 " micro-batches; steps at %" PRId64 " samples a micro-batch\n", c->m->name,
           c->m->plan.stages_max, c->schedule, c->micro, batch);
    printf("%-20s %12s %11s %8s %11s %11s %11s", "planner", "step ms", "samples/s", "gap", "peak", "recompute", "offload");
    if (!c->quick)
        printf(" %6s %8s %11s", "b*", "batch*", "samples/s*");
    printf(" %8s\n", "plan s");
    for (int i = 0; i < c->entry.n; i++)
        print_row(c, &c->entry.at[i]);
    if (c->bound > 0)
        printf("%-20s %12.3f  proven: no plan of the space of %s has a shorter step%s\n", "bound", (double)c->bound / 1e6,
               planners->name, c->m->plan.replicas_auto ? ", of as many stages and replicas" : "");
    for (int i = 0; i < c->entry.n; i++) {
        const Entry *r = &c->entry.at[i];
        printf("  %-18s chooses %s%s%s\n", r->planner->name, planner_space(r->planner, &(Plan){.m = c->m}), choice(c, r, batch), note(r));
    }
}

static void print_json(const Compare *c, int64_t batch)
{
    printf("{\"model\": ");
    json_text(stdout, c->m->name);
    printf(", \"devices\": %d, \"schedule\": \"%s\", \"micro_batches\": %" PRId64 ", \"micro_batch\": %" PRId64
           ", \"bound_ns\": %" PRId64, c->m->plan.stages_max, c->schedule, c->micro, batch, c->bound);
    if (!strcmp(c->m->plan.objective, "bottleneck"))
        printf(", \"bottleneck_ns\": %" PRId64 ", \"bottleneck_bound_ns\": %" PRId64 ", \"bottleneck_all_prefixes\": %s",
               c->m->plan.longest, c->m->plan.longest_bound, c->m->plan.longest_all ? "true" : "false");
    printf(", \"planners\": [");
    for (int i = 0; i < c->entry.n; i++) {
        const Entry *r = &c->entry.at[i];
        const Outcome *o = &r->here;
        printf("%s\n  {\"planner\": \"%s\", \"fits\": %s, \"step_ns\": %" PRId64
               ", \"samples_per_s\": %.3f, \"arena_bytes\": [",
               i ? "," : "", r->planner->name, o->fits ? "true" : "false", o->step, o->rate);
        for (int d = 0; d < o->devices; d++)
            printf("%s%" PRId64, d ? ", " : "", o->arenas[d]);
        printf("], \"on\": [");
        for (int d = 0; d < o->devices; d++)
            printf("%s\"%s\"", d ? ", " : "", o->m->devices.at[d].name);
        printf("], \"recompute_bytes\": %" PRId64 ", \"offload_bytes\": %" PRId64, o->dropped, o->moved);
        if (!c->quick)
            printf(", \"largest_micro_batch\": %" PRId64 ", \"largest_any\": %" PRId64 ", \"largest_samples_per_s\": %.3f",
                   r->most.b, r->most.any, rate_of(r->most.at_b));
        if (o->fits)
            printf(", \"depth\": %d, \"width\": %d, \"samples\": %" PRId64, o->devices / o->replicas, o->replicas, o->batch);
        printf(", \"space\": ");
        json_text(stdout, planner_space(r->planner, &(Plan){.m = c->m}));
        printf(", \"note\": ");
        json_text(stdout, o->note ? o->note : "");
        printf("}");
    }
    printf("]}\n");
}

/* ---- the picture ----------------------------------------------------------------------------------------------------- */

enum { WIDE = 900, LEFT = 160, TALL = 20 };

static void print_bar(FILE *f, int row, const char *colour, double share, const char *name, const char *text)
{
    int y = row * (TALL + 4), wide = (int)(share * (WIDE - LEFT - 160));
    fprintf(f, "<text x=\"0\" y=\"%d\">%s</text><rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"%s\"/>"
            "<text x=\"%d\" y=\"%d\">%s</text>\n", y + 14, name, LEFT, y, wide, TALL, colour, LEFT + wide + 6, y + 14, text);
}

static void print_steps(FILE *f, const Compare *c)
{
    Ns most = 1;
    for (int i = 0; i < c->entry.n; i++)
        most = c->entry.at[i].here.step > most ? c->entry.at[i].here.step : most;
    fprintf(f, "<h2>Predicted step</h2>\n<svg width=\"%d\" height=\"%d\">\n", WIDE, c->entry.n * (TALL + 4) + 4);
    for (int i = 0; i < c->entry.n; i++) {
        const Entry *r = &c->entry.at[i];
        print_bar(f, i, "#6baed6", (double)r->here.step / (double)most, r->planner->name,
                  r->here.fits ? strf("%.3f ms", (double)r->here.step / 1e6) : r->here.why);
    }
    int x = LEFT + (int)((double)c->bound / (double)most * (WIDE - LEFT - 160));
    if (c->bound > 0)
        fprintf(f, "<line x1=\"%d\" x2=\"%d\" y1=\"0\" y2=\"%d\" stroke=\"#31a354\"/>\n", x, x, c->entry.n * (TALL + 4));
    fprintf(f, "</svg>\n<p>Green: the proven bound, %.3f ms.</p>\n", (double)c->bound / 1e6);
}

static void print_arenas(FILE *f, const Compare *c)
{
    fprintf(f, "<h2>Memory of each device</h2>\n");
    for (int i = 0; i < c->entry.n; i++) {
        const Outcome *o = &c->entry.at[i].here;
        if (!o->fits)
            continue;
        fprintf(f, "<h3>%s</h3>\n<svg width=\"%d\" height=\"%d\">\n", c->entry.at[i].planner->name, WIDE,
                o->devices * (TALL + 4));
        for (int d = 0; d < o->devices; d++) {
            const Device *x = &o->m->devices.at[d];
            Bytes limit = x->memory;
            print_bar(f, d, "#fd8d3c", (double)o->arenas[d] / (double)limit, x->name,
                      strf("%s of %s", size_text(o->arenas[d]), size_text(limit)));
        }
        fprintf(f, "</svg>\n");
    }
}

static void write_picture(const Compare *c, const char *path)
{
    FILE *f = file_begin(path);
    fprintf(f, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>%s</title><style>"
            "body{font:14px/1.5 sans-serif;max-width:1000px;margin:2em auto}text{font:12px sans-serif}</style></head><body>\n"
            "<h1>%s: planners side by side</h1>\n<p>%d devices, %s, %" PRId64 " micro-batches. Every row is planned, laid out "
            "and simulated by the same passes.</p>\n", c->m->name, c->m->name, c->m->plan.stages_max, c->schedule, c->micro);
    print_steps(f, c);
    print_arenas(f, c);
    fprintf(f, "</body></html>\n");
    file_end(f, path);
}

/* ---- which ----------------------------------------------------------------------------------------------------------- */

static const Planner *find_planner(const char *list, const char *word)
{
    Strs all = {0};
    for (const Planner *p = planners; p->name; p++) {
        if (!strcmp(p->name, word))
            return p;
        *PUSH(&all) = p->name;
    }
    const char *near = nearest(word, all.at, all.n), *text = "";
    for (int i = 0; i < all.n; i++)
        text = strf("%s %s", text, all.at[i]);
    fail(EXIT_USAGE, "--planners %s: %s; the planners are%s", list, near ? strf("did you mean %s?", near) : strf("no %s", word),
         text);
}

/* Of a list with commas; NULL: all, but for the oracle of small graphs.  In the order of the table. */
static bool *choose_planners(const char *list)
{
    int n = 0;
    while (planners[n].name)
        n++;
    bool *asked = alloc((size_t)n);
    for (int i = 0; !list && i < n; i++)
        asked[i] = planners[i].plan != brute;
    for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        const char *word = strf("%.*s", (int)strcspn(at, ","), at);
        bool *one = &asked[find_planner(list, word) - planners];
        if (*one)
            fail(EXIT_USAGE, "--planners %s: %s is there twice", list, word);
        *one = true;
    }
    return asked;
}

int view_compare(const Options *x, const Model *m)
{
    bool any = !strcmp(m->plan.schedule, "auto"), *asked = choose_planners(x->planners);
    Compare c = {.x = x, .m = m, .schedule = any ? "1f1b" : m->plan.schedule,
                 .quick = x->quick || x->from};
    int64_t batch = m->train.batch > 0 ? m->train.batch : 1;
    c.micro = m->train.batch > 0 ? m->train.micro : 4 * m->plan.stages_max;
    for (int i = 0; planners[i].name; i++)
        if (asked[i]) {
            busy_with(strf(c.quick ? "%s" : "%s, its largest micro-batch (--quick: not)", planners[i].name));
            add_row(&c, &planners[i], batch);
        }
    if (!c.quick)
        ask_again(&c);
    busy_end();
    if (x->json)
        print_json(&c, batch);
    else
        print_table(&c, batch);
    if (x->out)
        write_picture(&c, x->out);
    if (c.entry.at[0].here.fits)
        return 0;
    fprintf(stderr, "dpgen: %s has no plan; dpgen plan --planner %s says why\n", c.entry.at[0].planner->name,
            c.entry.at[0].planner->name);
    return EXIT_NOFIT;
}
