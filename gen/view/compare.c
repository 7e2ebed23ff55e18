/* SPDX-License-Identifier: Apache-2.0
 *
 * compare.c: every planner side by side, on one model, device list, schedule and number of micro-batches.
 *
 * Papers compare planners by numbers of different models of cost.  Here the same passes plan, lay out and simulate every row,
 * under the same limits and prices.  Rows differ only in the choice of their planner.  Each row names the space it chose
 * from, and the proven bound stands next to all of them.
 *
 * b* is the largest micro-batch of largest.c, at a fixed number of micro-batches in a step; batch* the samples of that step.
 */
#include "compare.h"
#include <time.h>
#include <unistd.h>

enum { MOST_BATCH = 1 << 16 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* In a few words: what the last pass, or the planner, says of the plan that came nearest. */
static const char *why_none(const Plan *failed)
{
    const char *note = failed ? plan_proof(failed).note : NULL;
    int device = failed ? failed->shortfall.device : -1;
    if (!failed)
        return "no plan: this planner has none for this schedule and model";
    if (failed->shortfall.stuck)
        return strf("no plan: %s", failed->shortfall.stuck);
    if (failed->shortfall.host)
        return strf("no plan: the memory of host %d is too small", failed->shortfall.host - 1);
    Bytes more = device < 0 && !note ? nofit_lacks(failed, &device) :
                 device >= 0 ? failed->shortfall.need - failed->dev.at[device].limit : 0;
    if (device >= 0 && more > 0)
        return strf("no plan: stage %d does not fit, by %s", device, size_text(more));
    return note ? strf("no plan: %s", note) : "no plan: it finds no cut for this schedule and these limits";
}

Outcome view_outcome(const Plan *p, const Plan *failed)
{
    if (!p)
        return (Outcome){.why = why_none(failed)};
    Outcome o = {.fits = true, .replicas = plan_replicas(p), .tensor = p->m->plan.tensor, .batch = p->g->batch,
                  .micro = p->g->micro,
                  .note = plan_proof(p).note,
                  .schedule = order_name(p), .how = p->c->how, .m = p->m, .step = p->step,
                  .bound = plan_proof(p).bound, .devices = p->devices, .stages = plan_stages(p),
                  .widths = plan_uneven(p) ? widths_text(&p->m->plan.widths) : NULL,
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
    bool layout = c->planner->layout;
    Model *with = COPY(c->m);
    with->plan.planner = c->planner->name;
    with->plan.schedule = open ? c->m->plan.schedule : schedule_of(c->m->plan.schedule)->name;
    if (!open || (!layout && !c->m->plan.replicas_auto && !team_open(c->m)))
        with->plan.stages_min = with->plan.stages_max;
    with->train.batch = open && layout && c->m->train.batch == 0 ? 0 : batch;
    with->train.micro = c->micro;
    with->train.global = batch * c->micro;
    Plan *failed = NULL;
    Ask none = {.more = 0}, ask = {.trials = open ? NULL : trials_of(&none)};   /* else asked whether it fits, and its time */
    const bool whole = open && c->planner->complete;                            /* as dpgen plan asks */
    const Plan *p = whole ? search_quiet(c->x, with, &failed) : search_with(c->x, with, &ask, &failed);
    return view_outcome(p, failed);
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
    CompareEntry *r = PUSH(&c->entry);
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
    CompareEntry *r = &c->entry.at[0];
    int64_t hint = 0;
    for (int i = 1; i < c->entry.n; i++)
        hint = c->entry.at[i].most.b > hint ? c->entry.at[i].most.b : hint;
    c->planner = r->planner;
    if (r->planner == planners && hint > r->most.b)
        r->most = largest(probe, c, MOST_BATCH, hint);
}

const char *compare_gap(const Compare *c, const CompareEntry *r)
{
    /* The bound is of one depth, width, micro-batch and schedule: those of `exact`. */
    const Outcome *a = &r->here, *b = &c->first;
    bool bounded = a->fits && c->bound > 0 && a->devices == b->devices && a->stages == b->stages &&
        a->replicas == b->replicas && a->tensor == b->tensor && a->batch == b->batch && !strcmp(a->schedule, b->schedule);
    return !bounded ? "-" : strf("%.1f %%", 100.0 * (double)(r->here.step - c->bound) / (double)c->bound);
}

/* samples/s from ns of a thousand */
double compare_rate(Ns ns)
{
    return ns > 0 ? 1e12 / (double)ns : 0;
}

static void print_row(const Compare *c, const CompareEntry *r, int wide)
{
    const Outcome *o = &r->here;
    if (o->fits)
        printf("%-*s %12.3f %11.1f %8s %11s %11s %11s", wide, r->planner->name, (double)o->step / 1e6, o->rate,
               compare_gap(c, r), size_text(o->arena), size_text(o->dropped), size_text(o->moved));
    else
        printf("%-*s %-69s", wide, r->planner->name, strlen(o->why) < 69 ? o->why : "no plan: see below");
    if (!c->quick)
        printf(" %6" PRId64 " %8" PRId64 " %11.1f", r->most.b, r->most.b * c->micro, compare_rate(r->most.at_b));
    printf(" %8.3f", r->seconds);
    if (r->most.any > r->most.b)
        printf("  %" PRId64 " fits, below half the best rate", r->most.any);
    printf("\n");
}

const char *compare_times(const Compare *c)
{
    for (int i = 0; i < c->entry.n; i++)
        if (c->entry.at[i].here.fits)
            return c->entry.at[i].here.how;
    return "estimated";
}

/* Where more than the cut was open: what was taken. */
const char *compare_choice(const Compare *c, const CompareEntry *r, int64_t batch)
{
    const Outcome *o = &r->here;
    if (!o->fits)
        return "";
    const char *schedule = schedule_open(c->m->plan.schedule) ? strf("; took schedule %s", o->schedule) : "";
    if (!c->m->plan.replicas_auto && !team_open(c->m) && o->batch == batch)
        return schedule;
    const char *team = o->tensor > 1 ? strf(" of %d devices", o->tensor) : "";
    const char *copies = o->widths ? strf(" in %s copies", o->widths) : strf(", %s", count_text(o->replicas, "replica"));
    return strf("%s; took %s%s%s, %s of %" PRId64, schedule, count_text(o->stages, "stage"), team, copies,
                count_text(o->micro, "micro-batch"), o->batch);
}

/* By step, the shortest first; equal ones in the order of the table; without a plan last. */
static int by_step(const void *a, const void *b)
{
    const CompareEntry *x = a, *y = b;
    if (x->here.fits != y->here.fits)
        return x->here.fits ? -1 : 1;
    if (x->here.fits && x->here.step != y->here.step)
        return x->here.step < y->here.step ? -1 : 1;
    return x->planner < y->planner ? -1 : 1;
}

static void print_table(const Compare *c, int64_t batch)
{
    int wide = 10;
    for (int i = 0; i < c->entry.n; i++)
        wide = (int)max_of(wide, (int64_t)strlen(c->entry.at[i].planner->name));
    printf("%s on %s, %s, %" PRId64 " micro-batches; steps at %" PRId64 " samples a micro-batch, %s times\n",
           c->m->name, view_width(c->m, devices_for(c->m, c->m->plan.stages_max)), c->schedule, c->micro, batch,
           compare_times(c));
    printf("%-*s %12s %11s %8s %11s %11s %11s", wide, "planner", "step ms", "samples/s", "gap", "peak", "recompute", "offload");
    if (!c->quick)
        printf(" %6s %8s %11s", "b*", "batch*", "samples/s*");
    printf(" %8s\n", "plan s");
    for (int i = 0; i < c->entry.n; i++)
        print_row(c, &c->entry.at[i], wide);
    if (c->bound > 0)
        printf("%-*s %12.3f  proven: no plan of the space of %s has a shorter step%s\n", wide, "bound", (double)c->bound / 1e6,
               planners->name, c->m->plan.replicas_auto ? ", of as many stages and replicas" : "");
    if (!c->quick)
        printf("  b* is the largest micro-batch that fits, batch* the samples of a step of such, samples/s* its rate\n");
    for (EACH(const CompareEntry, r, c->entry)) {
        const char *note = r->here.fits ? r->here.note : strlen(r->here.why) < 69 ? NULL : r->here.why;
        printf("  %-*s chooses %s%s%s%s\n", wide, r->planner->name, planner_space(r->planner, &(Plan){.m = c->m}),
               compare_choice(c, r, batch), note ? "; " : "", note ? note : "");
    }
}

static void print_json(const Compare *c, int64_t batch)
{
    printf("{\"model\": %s, \"devices\": %d, \"schedule\": \"%s\", \"micro_batches\": %" PRId64 ", \"micro_batch\": %" PRId64
           ", \"bound_ns\": %" PRId64, quote_json(c->m->name), devices_for(c->m, c->m->plan.stages_max) * c->m->plan.tensor,
           c->schedule, c->micro, batch, c->bound);
    if (c->m->plan.objective == BOTTLENECK)
        printf(", \"bottleneck_ns\": %" PRId64 ", \"bottleneck_bound_ns\": %" PRId64 ", \"bottleneck_all_prefixes\": %s",
               c->m->plan.longest, c->m->plan.longest_bound, c->m->plan.longest_all ? "true" : "false");
    printf(", \"planners\": [");
    for (int i = 0; i < c->entry.n; i++) {
        const CompareEntry *r = &c->entry.at[i];
        const Outcome *o = &r->here;
        printf("%s\n  {\"planner\": \"%s\", \"fits\": %s, \"step_ns\": %" PRId64
               ", \"samples_per_s\": %.3f, \"arena_bytes\": [",
               i ? "," : "", r->planner->name, o->fits ? "true" : "false", o->step, o->rate);
        for (int d = 0; d < o->devices; d++)
            printf("%s%" PRId64, d ? ", " : "", o->arenas[d]);
        printf("], \"on\": [");
        for (int d = 0; d < o->devices; d++)
            printf("%s%s", d ? ", " : "", quote_json(o->m->devices.at[d].name));
        printf("], \"recompute_bytes\": %" PRId64 ", \"offload_bytes\": %" PRId64, o->dropped, o->moved);
        if (!c->quick)
            printf(", \"largest_micro_batch\": %" PRId64 ", \"largest_any\": %" PRId64 ", \"largest_samples_per_s\": %.3f",
                   r->most.b, r->most.any, compare_rate(r->most.at_b));
        if (o->fits)
            printf(", \"schedule\": \"%s\", \"depth\": %d, \"width\": %d, \"samples\": %" PRId64, o->schedule,
                   o->stages, o->replicas, o->batch);
        if (o->fits && o->widths)
            printf(", \"widths\": [%s]", o->widths);
        if (o->fits && o->tensor > 1)
            printf(", \"tensor\": %d", o->tensor);
        printf(", \"space\": %s, \"note\": %s}", quote_json(planner_space(r->planner, &(Plan){.m = c->m})),
               quote_json(!o->fits ? o->why : o->note ? o->note : ""));
    }
    printf("]}\n");
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
    const char *text = "";
    for (int i = 0; i < all.n; i++)
        text = strf("%s %s", text, all.at[i]);
    const char *why = did_you_mean(word, all.at, all.n, strf("no %s", word));
    fail(EXIT_USAGE, "--planners %s: %s; the planners are%s", list, why, text);
}

/* Of a list with commas; NULL: all, but for the oracle of small graphs.  In the order of the table. */
bool *compare_planners(const char *list)
{
    int n = 0;
    while (planners[n].name)
        n++;
    bool *asked = alloc((size_t)n);
    for (int i = 0; !list && i < n; i++)
        asked[i] = !planners[i].oracle;
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
    bool *asked = compare_planners(x->planners);
    busy_heeds(true);
    Compare c = {.x = x, .m = m, .schedule = m->plan.schedule,
                 .quick = x->quick || x->from};
    int64_t batch = m->train.batch > 0 ? m->train.batch : 1;
    c.micro = m->train.batch > 0 ? m->train.micro : 4 * m->plan.stages_max;
    for (int i = 0; planners[i].name; i++)
        if (asked[i] && !busy_stopped()) {
            busy_with(strf(c.quick ? "%s" : "%s, its largest micro-batch (--quick: not)", planners[i].name));
            add_row(&c, &planners[i], batch);
            c.entry.n -= busy_stopped();        /* it is not known how far it would have come */
        }
    if (c.entry.n == 0)
        fail(EXIT_STOPPED, "interrupted before a planner was done");
    if (!c.quick && !busy_stopped())
        ask_again(&c);
    busy_end();
    const CompareEntry first = c.entry.at[0];
    c.first = first.here;
    if (x->json)
        print_json(&c, batch);
    SORT(c.entry.at, c.entry.n, by_step);
    if (!x->json)
        print_table(&c, batch);
    if (x->out)
        compare_page(&c, batch, x->out);
    if (busy_stopped()) {
        fprintf(stderr, "dpgen: interrupted: planners that are not listed were not asked\n");
        return EXIT_STOPPED;
    }
    if (first.here.fits)
        return 0;
    fprintf(stderr, "dpgen: %s has no plan; dpgen plan --planner %s says why\n", first.planner->name,
            first.planner->name);
    return EXIT_NOFIT;
}
