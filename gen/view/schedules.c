/* SPDX-License-Identifier: Apache-2.0
 *
 * schedules.c: every synchronous schedule side by side, on one model; the lists of one of them as a drawing.
 *
 * Papers compare schedules at equal stages with messages free, and leave out the memory, or the messages.  Here each row is the
 * plan that `dpgen plan --schedule ROW` finds, with cuts, recomputation and limits of its own.  The bubble of its closed form
 * stands beside the idle share of that plan: units of a chunk's forward, input gradient and weight gradient, messages free.
 *
 * Options of single schedules, as plan.group or plan.warmup, hold for the rows that have them.
 */
#include "compare.h"

typedef struct {
    const Schedule *schedule;
    const Plan *plan;           /* NULL: there is none */
    Outcome of;
    int64_t form;               /* the step by its closed form, in units of a chunk's F, I or W; 0: none is known */
    double idle, bubble;        /* share of the step that a device waits, on average; by the closed form */
    int stages, chunks;
    int fullest, messages, copies;      /* the device that has least room to spare, and its copies of weights */
    Bytes peak;                 /* its arena */
    Bytes lacks;                /* where it does not fit: bytes, on that device */
} Tried;

typedef VEC(Tried) AllTried;

/* ---- a row ----------------------------------------------------------------------------------------------------------- */

typedef struct { const Options *x; const Model *m; Plan *best, *failed; } SchedulesTrial;

static void try_schedule(void *ctx)
{
    SchedulesTrial *t = ctx;
    const PlanSpec *p = &t->m->plan;
    if (t->m->device_order == ORDER_FREE && p->chunks > 1)
        err(t->m->order_at, NULL, "it gives devices several chunks, and devices.order: free takes one a device");
    t->best = search_brief(t->x, t->m, &t->failed);
}

/* The row that the model file writes. */
static bool is_own(const Model *m, const Schedule *k)
{
    return m->plan.custom.word && !strcmp(k->name, m->plan.custom.word);
}

static void measure_row(Tried *r, const Plan *p)
{
    int stages = plan_stages(p), chunks = plan_chunks(p);
    double wait = 0;
    for (int d = 0; d < p->devices; d++) {
        const DevicePlan *x = &p->dev.at[d], *f = &p->dev.at[r->fullest];
        wait += (double)(p->step - x->busy);
        r->fullest = x->limit - x->arena < f->limit - f->arena ? d : r->fullest;
    }
    r->idle = p->step ? wait / (double)p->step / (double)p->devices : 0;
    r->stages = stages;
    r->chunks = p->chunks;
    r->peak = p->dev.at[r->fullest].arena;
    int n = 0;
    for (int d = 0; d < p->devices; d++)
        for (int i = 0; i < p->dev.at[d].list.n; i++)
            n += p->dev.at[d].list.at[i].kind == K_SEND;
    r->messages = n;
    /* The most slots that weights of it have, in one type. */
    int device = r->fullest;
    int most = 0, *slots = alloc(sizeof *slots * (size_t)p->g->state.n);
    for (EACH(const Buf, b, p->buf)) {
        StateKind k = b->state >= 0 ? p->g->state.at[b->state].kind : S_GRAD;
        if (b->device != device || (k != S_PARAM && k != S_COPY) || b->birth != AT_ALWAYS)
            continue;
        slots[b->state] += b->pool >= 0 ? p->pool.at[b->pool].count : 1;
        most = slots[b->state] > most ? slots[b->state] : most;
    }
    r->copies = most;
    int micro = plan_micro(p) * plan_ways(p);
    bool closed = chunks % stages == 0 && !plan_map(p)->n && !plan_uneven(p);
    r->form = closed ? schedule_form(r->schedule, stages, micro, chunks / stages) : 0;
    r->bubble = r->form ? 1 - 3.0 * (chunks / stages) * micro / (double)r->form : 0;
}

/* Without the name of the schedule, which the row has. */
static const char *refusal(const Schedule *k)
{
    const char *text = diag_refusal(), *head = strf("schedule %s: ", k->name);
    return strncmp(text, head, strlen(head)) ? text : text + strlen(head);
}

static Tried plan_row(const Options *x, const Model *m, const Schedule *k)
{
    Tried r = {.schedule = k, .fullest = 0};
    SchedulesTrial t = {x, with_schedule(m, k), NULL, NULL};
    bool model = diag_accepts(try_schedule, &t);
    r.plan = t.best;
    r.of = view_outcome(t.best, t.failed);
    if (t.best)
        measure_row(&r, t.best);
    else if (!model)
        r.of.why = refusal(k);
    else if (t.failed && t.failed->shortfall.stuck)
        r.of.why = t.failed->shortfall.stuck;
    else if (t.failed && (r.lacks = nofit_lacks(t.failed, &r.fullest)) > 0)
        r.of.why = strf("stage %d: %s too much (%" PRId64 " bytes)", r.fullest, size_text(r.lacks), r.lacks);
    else
        r.of.why = strf("no plan; dpgen plan --schedule %s says why", k->name);
    return r;
}

/* Searches take some hundred megabytes each.  Of a row that is not drawn only the numbers and one line stay. */
static Tried row_of(const Options *x, const Model *m, const Schedule *k)
{
    void *mark = mem_mark();
    Tried r = plan_row(x, m, k);
    if (x->out)
        return r;
    char line[4096], widths[4096];
    snprintf(line, sizeof line, "%s", r.of.fits ? r.of.how : r.of.why);
    snprintf(widths, sizeof widths, "%s", r.of.widths ? r.of.widths : "");
    mem_release(mark);
    r.plan = NULL;
    r.of = (Outcome){.fits = r.of.fits, .step = r.of.step, .bound = r.of.bound, .batch = r.of.batch, .micro = r.of.micro,
                     .replicas = r.of.replicas, .tensor = r.of.tensor};
    *(r.of.fits ? &r.of.how : &r.of.why) = strf("%s", line);
    r.of.widths = *widths ? strf("%s", widths) : NULL;
    return r;
}

/* ---- text and data --------------------------------------------------------------------------------------------------- */

static const char *percent(double share, bool known)
{
    return known ? strf("%.1f %%", 100 * share) : "-";
}

static void print_row(const Tried *r)
{
    const Outcome *o = &r->of;
    printf("%-15s", r->schedule->name);
    if (o->fits)
        printf(" %6s %12.3f %7s %7s %7s %11s %6d %8d fits%s%s", strf("%d x %d", r->stages, r->chunks),
               (double)o->step / 1e6, percent(r->idle, true), percent(r->bubble, r->form > 0),
               percent((double)(o->step - o->bound) / (double)o->bound, o->bound > 0), size_text(r->peak), r->copies,
               r->messages,
               o->tensor > 1 ? strf(", %d devices a stage", o->tensor) : "",
               o->widths ? strf(", in %s copies", o->widths) : "");
    else
        printf(" %s", o->why);
    printf("\n");
}

static const char *times_of(const AllTried *all)
{
    for (int i = 0; i < all->n; i++)
        if (all->at[i].of.fits)
            return all->at[i].of.how;
    return "estimated";
}

static void print_text(const AllTried *all, const Model *m)
{
    printf("%s on %s, planner %s, %s times\n", m->name, view_width(m, m->devices.n), m->plan.planner, times_of(all));
    printf("%-15s %6s %12s %7s %7s %7s %11s %6s %8s\n", "schedule", "stages", "step ms", "idle", "bubble", "gap", "peak",
           "copies", "messages");
    for (int i = 0; i < all->n; i++)
        print_row(&all->at[i]);
    printf("  stages: devices x chunks on each.  idle: of the step, average of the devices.  bubble: the same by the closed\n"
           "  form, with equal chunks, F = I = W and messages free.  gap: above the proven bound of the row.  peak, copies of\n"
           "  the weights: of the device with least room.  messages: sends in a step\n");
}

static void print_json(const AllTried *all, const Model *m)
{
    printf("{\"model\": %s, \"devices\": %d, \"times\": \"%s\", \"schedules\": [", quote_json(m->name),
           m->devices.n * m->plan.tensor, times_of(all));
    for (int i = 0; i < all->n; i++) {
        const Tried *r = &all->at[i];
        const Outcome *o = &r->of;
        printf("%s\n  {\"schedule\": \"%s\", \"fits\": %s, ", i ? "," : "", r->schedule->name, o->fits ? "true" : "false");
        if (o->fits) {
            if (m->plan.tensor > 1 || m->plan.tensor_auto)      /* stages have several devices, or may */
                printf("\"tensor\": %d, ", o->tensor);
            if (o->widths)
                printf("\"widths\": [%s], ", o->widths);
            printf("\"stages\": %d, \"replicas\": %d, \"chunks\": %d, \"micro_batches\": %" PRId64 ", \"micro_batch\": %" PRId64
                   ", ", r->stages, o->replicas, r->chunks, o->micro, o->batch);
            printf("\"step_ns\": %" PRId64 ", \"bound_ns\": %" PRId64 ", \"idle\": %.6f, \"closed_form\": %" PRId64
                   ", \"bubble\": %.6f, ", o->step, o->bound, r->idle, r->form, r->bubble);
            printf("\"fullest\": %d, \"arena_bytes\": %" PRId64 ", \"weight_copies\": %d, \"messages\": %d}", r->fullest,
                   r->peak, r->copies, r->messages);
        } else {
            printf("\"lacks_bytes\": %" PRId64 ", \"why\": %s}", r->lacks, quote_json(o->why));
        }
    }
    printf("]}\n");
}

/* ---- the drawing ------------------------------------------------------------------------------------------------------- */

/* The row that plan.schedule names; auto: the fastest. */
static const Tried *drawn(const AllTried *all, const Model *m)
{
    const Tried *best = NULL;
    for (EACH(const Tried, r, *all)) {
        if (!strcmp(r->schedule->name, m->plan.schedule))
            return r;
        if (r->of.fits && (!best || r->of.step < best->of.step))
            best = r;
    }
    return best;
}

static void draw(const AllTried *all, const Model *m, const char *path)
{
    const Tried *r = drawn(all, m);
    if (!r || !r->plan)
        fail(EXIT_NOFIT, "schedule %s has no plan, so nothing is drawn%s%s", m->plan.schedule, r ? ": " : "",
             r ? r->of.why : "");
    FILE *f = file_begin(path);
    emit_lists(f, r->plan);
    file_end(f, path);
}

/* Why it has no table; NULL: it has. */
static const char *no_table(const Schedule *k)
{
    return k->async ? "its steps overlap, and a table is of one step"
        : k->depths || k->improves ? "its lists follow from the times of a plan"
        : k->ways > 1 ? "its stages stand on two devices, and a table has a row for each" : k->given ? "it reads one" : NULL;
}

/* The schedule of --csv. */
static const Schedule *asked(const Options *x, const Model *m)
{
    Strs all = {0};
    for (const Schedule *k = schedules; k->name; k++) {
        const char *why = k->custom && !is_own(m, k) ? "plan.schedule has no such row" : no_table(k);
        if (!strcmp(k->name, x->csv) && why)
            fail(EXIT_USAGE, "--csv %s: %s", x->csv, why);
        if (!strcmp(k->name, x->csv))
            return k;
        if (!why)
            *PUSH(&all) = k->name;
    }
    fail(EXIT_USAGE, "--csv %s: %s", x->csv, did_you_mean(x->csv, all.at, all.n, "no synchronous schedule is called so"));
}

int view_schedules(const Options *x, const Model *m)
{
    AllTried all = {0};
    if (x->csv)
        return view_schedule_csv(x, with_schedule(m, asked(x, m)), asked(x, m));
    bool auto_drawn = schedule_open(m->plan.schedule), any = false;
    if (x->out && !auto_drawn && schedule_of(m->plan.schedule)->async)
        err(m->plan.loc, "a synchronous schedule", "the steps of %s overlap: a step alone is no drawing of it",
            m->plan.schedule);
    busy_heeds(true);
    for (const Schedule *k = schedules; k->name && !busy_stopped(); k++) {
        if (k->async || (k->given && !m->plan.table) || (k->custom && !is_own(m, k)))
            continue;
        busy_with(k->name);
        *PUSH(&all) = row_of(x, m, k);
        all.n -= busy_stopped();
        any |= all.n && all.at[all.n - 1].of.fits;
    }
    bool stopped = busy_stopped();
    busy_end();
    if (all.n == 0)
        fail(EXIT_STOPPED, "interrupted before a schedule was done");
    if (x->json)
        print_json(&all, m);
    else
        print_text(&all, m);
    if (stopped)
        fprintf(stderr, "dpgen: interrupted: schedules that are not listed were not asked\n");
    else if (x->out)
        draw(&all, m, x->out);
    return stopped ? EXIT_STOPPED : any ? 0 : EXIT_NOFIT;
}
