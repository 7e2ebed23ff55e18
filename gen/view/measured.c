/* SPDX-License-Identifier: Apache-2.0
 *
 * measured.c: `dpgen report`: the page of a folder with a measured step beside the predicted one.
 *
 * The page is the report.html of the folder; the measured step takes the place of its mark.  The trace of the run names the
 * plan, and the actions of each stage by number: a whole step is all of them in order.  All stages run the same steps, and the
 * newest are in the trace, so the k-th last of one is the k-th last of all.  The median step is drawn.  The first is left out
 * where there are three: it touches its memory for the first time.
 *
 * Not handled: schedules whose steps overlap.  None of their steps stands alone.
 */
#include "view.h"

enum { PREDICTED = 1, MEASURED, COPIES = 1000, ROW = 22, PAIR = 52, NAME = 1024, MOST_DRAWN = 4000, FAR = 2,
       MOST_STAGES = 4096 };

typedef struct { int process, thread; int64_t number; Ns from, length; const char *name; } MeasuredEvent;
typedef VEC(MeasuredEvent) Events;
typedef struct { int first, n; Ns from, to; } Whole;    /* a whole step: events of the list, when it began and ended */
typedef struct {
    Events plan, run, copy;     /* predicted, measured; copies to the host and back */
    VEC(Whole) step;
} MeasuredTrack;                 /* of a stage */
typedef struct {
    const char *path;
    char plan[80];              /* its hash */
    VEC(MeasuredTrack) stage;
    int steps;                  /* that all stages have whole */
    int shown;                  /* the median, counted from the last, which is 0 */
} Trace;

/* ---- the trace ----------------------------------------------------------------------------------------------------------- */

static bool read_args(Json *j, MeasuredEvent *e)
{
    char key[NAME];
    for (bool first = true; json_member(j, &first, key, sizeof key);)
        if (!(strcmp(key, "action") ? json_skip(j) : json_integer(j, &e->number)))
            return false;
    return !j->why;
}

static bool read_event(Json *j, MeasuredEvent *e, char *kind)
{
    char key[NAME], name[NAME] = "";
    double process = 0, thread = 0, from = 0, length = 0;
    *e = (MeasuredEvent){.number = -1};
    *kind = 0;
    for (bool first = true, good = true; good && json_member(j, &first, key, sizeof key);)
        good = !strcmp(key, "ph") ? json_string(j, name, sizeof name) && (*kind = *name, true)
             : !strcmp(key, "name") ? json_string(j, name, sizeof name) && (e->name = strf("%s", name), true)
             : !strcmp(key, "args") ? read_args(j, e)
             : !strcmp(key, "pid") ? json_number(j, &process)
             : !strcmp(key, "tid") ? json_number(j, &thread)
             : !strcmp(key, "ts") ? json_number(j, &from)
             : !strcmp(key, "dur") ? json_number(j, &length) : json_skip(j);
    e->process = process >= 0 && process <= MEASURED ? (int)process : 0;
    e->thread = thread >= 0 && thread < COPIES + 2 * MOST_STAGES ? (int)thread : -1;
    bool far = !(from > -1e12 && from < 1e12 && length >= 0 && length < 1e12);
    e->from = far ? 0 : (Ns)(1000 * from + 0.5);
    e->length = far ? 0 : (Ns)(1000 * length + 0.5);
    return !j->why;
}

static void take_event(Trace *t, const MeasuredEvent *e)
{
    int stage = e->thread < COPIES ? e->thread : (e->thread - COPIES) / 2;
    if (e->process == 0 || e->thread < 0 || e->number < 0 || !e->name)
        return;
    while (t->stage.n <= stage)
        PUSH(&t->stage);
    MeasuredTrack *l = &t->stage.at[stage];
    *PUSH(e->thread >= COPIES ? &l->copy : e->process == PREDICTED ? &l->plan : &l->run) = *e;
}

static bool read_events(Json *j, Trace *t)
{
    MeasuredEvent e;
    char kind;
    for (bool first = true; json_member(j, &first, NULL, 0);) {
        if (!read_event(j, &e, &kind))
            return false;
        if (kind == 'X')
            take_event(t, &e);
    }
    return !j->why;
}

static bool read_other(Json *j, Trace *t)
{
    char key[NAME];
    for (bool first = true; json_member(j, &first, key, sizeof key);)
        if (!(strcmp(key, "plan") ? json_skip(j) : json_string(j, t->plan, sizeof t->plan)))
            return false;
    return !j->why;
}

static void read_trace(Trace *t)
{
    static const char remedy[] = "out/train --trace FILE writes one";
    size_t n;
    const char *text = file_read(t->path, remedy, &n);
    char key[NAME];
    Json j = json_open(text, n);
    for (bool first = true, good = true; good && json_member(&j, &first, key, sizeof key);)
        good = !strcmp(key, "traceEvents") ? read_events(&j, t) : !strcmp(key, "otherData") ? read_other(&j, t) : json_skip(&j);
    json_end(&j);
    json_stop(&j, t->path, n, remedy);
}

/* ---- steps --------------------------------------------------------------------------------------------------------------- */

static void find_steps(MeasuredTrack *l)
{
    for (int i = 0; i + l->plan.n <= l->run.n; i++) {
        int n = 0;
        while (n < l->plan.n && l->run.at[i + n].number == n)
            n++;
        if (n == 0 || n < l->plan.n)
            continue;
        const MeasuredEvent *last = &l->run.at[i + n - 1];
        *PUSH(&l->step) = (Whole){i, n, l->run.at[i].from, last->from + last->length};
        i += n - 1;
    }
}

static const Whole *step_of(const Trace *t, int stage, int back)
{
    const MeasuredTrack *l = &t->stage.at[stage];
    return &l->step.at[l->step.n - 1 - back];
}

static Ns begin_of(const Trace *t, int back)
{
    Ns least = INT64_MAX;
    for (int s = 0; s < t->stage.n; s++)
        least = step_of(t, s, back)->from < least ? step_of(t, s, back)->from : least;
    return least;
}

static Ns length_of(const Trace *t, int back)
{
    Ns most = 0;
    for (int s = 0; s < t->stage.n; s++)
        most = step_of(t, s, back)->to > most ? step_of(t, s, back)->to : most;
    return most - begin_of(t, back);
}

typedef struct { Ns length; int back; } Timed;

ORDER(by_length, Timed, order_of(x->length, y->length), order_of(y->back, x->back))

/* ---- the page ------------------------------------------------------------------------------------------------------------ */

/* Who sends what a stage waits for, by the names of the actions: `send to 1: x` and `wait, received: x`; -1: nobody. */
static int sender(const Trace *t, int stage, const char *what)
{
    const char *name = strf("send to %d: %s", stage, what);
    for (int s = 0; s < t->stage.n; s++)
        for (int i = 0; i < t->stage.at[s].plan.n; i++)
            if (!strcmp(t->stage.at[s].plan.at[i].name, name))
                return s;
    return -1;
}

/* A wait says for whom. */
static const char *told(const Trace *t, int stage, const char *name)
{
    static const char got[] = "wait, received: ";
    int from = strncmp(name, got, strlen(got)) ? -1 : sender(t, stage, name + strlen(got));
    return from < 0 ? name : strf("waits for stage %d: %s", from, name + strlen(got));
}

typedef struct { const Trace *t; int stage, y, tall; Ns begin, length; } Strip;    /* of events that are drawn */

static void draw(FILE *f, const Strip *l, const MeasuredEvent *e)
{
    bool copy = e->thread >= COPIES;
    const char *class = action_class(e->name, copy), *number = strstr(e->name, "micro-batch ");
    if (!class || e->length <= 0)
        return;
    Box b = {.class = class, .title = strf("%s: %s", told(l->t, l->stage, e->name), page_time(e->length)), .stage = l->stage,
             .calls = -1, .from = e->from - l->begin, .to = e->from - l->begin + e->length, .y = l->y, .tall = l->tall,
             .measured = e->process == MEASURED};
    if (*class == 'u')
        b.number = "u";
    else if (number && strchr("fbwr", *class))
        b.number = strf("%d", atoi(number + strlen("micro-batch ")));
    page_box(f, &b, l->length);
}

/* The message of a send: the wait of the same name on the stage that it names, behind as many of that name as here. */
static const MeasuredEvent *arrival(const Trace *t, const MeasuredEvent *step, int at, int *to)
{
    static const char sends[] = "send to ";
    const char *name = step[at].name, *what = strstr(name, ": ");
    int before = 0;
    long stage = what && !strncmp(name, sends, strlen(sends)) ? strtol(name + strlen(sends), NULL, 10) : -1;
    if (stage < 0 || stage >= t->stage.n)
        return NULL;
    *to = (int)stage;
    for (int i = 0; i < at; i++)
        before += !strcmp(step[i].name, name);
    const char *wait = strf("wait, received%s", what);
    const Whole *w = step_of(t, *to, t->shown);
    for (int i = w->first; i < w->first + w->n; i++)
        if (!strcmp(t->stage.at[*to].run.at[i].name, wait) && before-- == 0)
            return &t->stage.at[*to].run.at[i];
    return NULL;
}

static void draw_messages(FILE *f, const Trace *t, int stage, Ns length)
{
    const Whole *w = step_of(t, stage, t->shown);
    const MeasuredEvent *step = &t->stage.at[stage].run.at[w->first];
    Ns begin = begin_of(t, t->shown);
    int to, middle = ROW + 4 + ROW / 2;
    for (int i = 0; i < w->n && w->n <= MOST_DRAWN; i++) {
        const MeasuredEvent *e = arrival(t, step, i, &to);
        if (e)
            page_arrow(f, &(Arrow){step[i].from - begin, e->from + e->length - begin, stage * PAIR + middle,
                                   to * PAIR + middle}, length);
    }
}

static void draw_stage(FILE *f, const Trace *t, int stage, Ns planned, Ns length)
{
    const MeasuredTrack *l = &t->stage.at[stage];
    const Whole *w = step_of(t, stage, t->shown);
    Ns begin = begin_of(t, t->shown);
    int y = stage * PAIR;
    for (int i = 0; i < l->plan.n; i++)
        draw(f, &(Strip){t, stage, y + 2, ROW, l->plan.at[0].from, planned}, &l->plan.at[i]);
    for (int i = w->first; i < w->first + w->n; i++)
        draw(f, &(Strip){t, stage, y + ROW + 4, ROW, begin, length}, &l->run.at[i]);
    for (EACH(const MeasuredEvent, e, l->copy)) {
        int up = e->thread % 2 ? 3 : 6;
        if (e->from >= w->from && e->from <= w->to)
            draw(f, &(Strip){t, stage, y + ROW + 4 + ROW - up, 3, begin, length}, e);
    }
}

static Ns sum_of(const MeasuredEvent *e, int n, const char *classes)
{
    Ns sum = 0;
    for (int i = 0; i < n; i++) {
        const char *class = action_class(e[i].name, false);
        sum += class && strchr(classes, *class) ? e[i].length : 0;
    }
    return sum;
}

static void print_sums(FILE *f, const char *what, const char *name, const MeasuredEvent *e, int n, Ns length)
{
    static const char *const classes[] = {"f", "bw", "r", "u", "fbwru"};
    fprintf(f, "<tr><td>%s</td><td class=\"left\">%s</td>", name, what);
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        fprintf(f, "<td>%.3f</td>", (double)sum_of(e, n, classes[i]) / 1e6);
    fprintf(f, "<td>%.3f</td></tr>\n", (double)(length - sum_of(e, n, "fbwru")) / 1e6);
}

static const char *classes_of(const Trace *t)
{
    const char *text = ARROW;
    for (int s = 0; s < t->stage.n; s++) {
        const MeasuredTrack *l = &t->stage.at[s];
        const Whole *w = step_of(t, s, t->shown);
        for (int i = 0; i < l->plan.n + w->n + l->copy.n; i++) {
            const MeasuredEvent *e = i < l->plan.n ? &l->plan.at[i]
                                   : i < l->plan.n + w->n ? &l->run.at[w->first + i - l->plan.n]
                                   : &l->copy.at[i - l->plan.n - w->n];
            const char *class = action_class(e->name, e->thread >= COPIES);
            if (class && e->length > 0 && !strchr(text, *class))
                text = strf("%s%s", text, class);
        }
    }
    return text;
}

static void print_measured(FILE *f, const Trace *t, const Timed *step, int n)
{
    /* The trace has the prediction of each stage where that stage began its last step; predicted, all begin at once. */
    Ns most = 0;
    for (int s = 0; s < t->stage.n; s++) {
        const Events *plan = &t->stage.at[s].plan;
        const MeasuredEvent *last = plan->n ? &plan->at[plan->n - 1] : NULL;
        Ns length = last ? last->from + last->length - plan->at[0].from : 0;
        most = length > most ? length : most;
    }
    Ns predicted = most, measured = length_of(t, t->shown);
    Ns length = predicted > measured ? predicted : measured;
    fprintf(f, "<section>\n<h2>Measured beside predicted</h2>\n<p>The step took %.3f ms, the median of %s (%.3f to %.3f ms); "
            "%.3f ms were predicted: %+.1f %%. It is drawn below each prediction.</p>\n",
            (double)measured / 1e6, count_text(n, "measured step"), (double)step[0].length / 1e6,
            (double)step[n - 1].length / 1e6, (double)predicted / 1e6,
            predicted ? 100 * (double)(measured - predicted) / (double)predicted : 0);
    page_table(f, "stages, measured");
    fprintf(f, "<tr><th>stage</th><th></th><th>forward</th><th>backward</th><th>recomputation</th>"
            "<th>update</th><th>busy</th><th>waiting and the rest, ms</th></tr>\n");
    for (int s = 0; s < t->stage.n; s++) {
        const MeasuredTrack *l = &t->stage.at[s];
        const Whole *w = step_of(t, s, t->shown);
        print_sums(f, "predicted", strf("%d", s), l->plan.at, l->plan.n, predicted);
        print_sums(f, "measured", "", &l->run.at[w->first], w->n, measured);
    }
    fprintf(f, "</table></div>\n");
    /* Where the run took far longer than the plan, the rows of the plan have a scale of their own, and can still be read. */
    Ns planned = predicted > 0 && measured / FAR > predicted ? predicted : length;
    int tall = PAIR * t->stage.n;
    if (planned != length)
        fprintf(f, "<p>Rows of the plan have a scale of their own, %.1f times as wide as that of the axis.</p>\n",
                (double)length / (double)planned);
    page_legend(f, classes_of(t));
    fprintf(f, "<div class=\"tools\" data-for=\"measured\"></div>\n<div class=\"plot\"><svg height=\"%d\">", tall + AXIS);
    for (int s = 0; s < t->stage.n; s++)
        fprintf(f, "<text y=\"%d\">%d plan</text><text y=\"%d\">%d run</text>", s * PAIR + 17, s, s * PAIR + ROW + 20, s);
    fprintf(f, "</svg><div class=\"scroll\"><div><svg class=\"time\" id=\"measured\" tabindex=\"0\" role=\"group\" "
            "aria-label=\"schedule, measured below predicted\" data-length=\"%" PRId64 "\" height=\"%d\">\n", length,
            tall + AXIS);
    for (int s = 0; s < 2 * t->stage.n; s++)
        fprintf(f, "<rect class=\"row\" y=\"%d\" width=\"100%%\" height=\"%d\"/>", s / 2 * PAIR + 2 + s % 2 * (ROW + 2), ROW);
    page_axis(f, length, tall);
    for (int s = 0; s < t->stage.n; s++)
        draw_stage(f, t, s, planned, length);
    for (int s = 0; s < t->stage.n; s++)
        draw_messages(f, t, s, length);
    fprintf(f, "</svg></div></div></div>\n<div class=\"panel calls\" data-for=\"measured\"><p class=\"soft\">How long a box "
            "took and was predicted to take stands here: point at it, or use the arrow keys in the picture.</p></div>\n");
    fprintf(f, "</section>\n");
}

const char *report_measured(const char *dir, const char *trace, const char *out)
{
    size_t n;
    const char *path = strf("%s/report.html", dir), *page = file_read(path, "dpgen MODEL.yaml -o DIR writes it", &n);
    const char *mark = strstr(page, report_mark), *to = out ? out : strf("%s/measured.html", dir);
    Trace t = {.path = trace};
    file_writes(to);
    read_trace(&t);
    /* The page says of which plan it is. */
    if (!*t.plan)
        fail(EXIT_MODEL, "%s names no plan: out/train --trace FILE writes a trace of a run; trace.json is the prediction alone",
             t.path);
    if (strlen(t.plan) != 64 || !strstr(page, strf("<meta name=\"plan\" content=\"%s\">", t.plan)))
        fail(EXIT_STALE, "%s is of another plan than %s: trace a run of this folder, out/train --trace FILE", t.path, path);
    if (!mark)
        fail(EXIT_MODEL, "%s has no place for a measured step: dpgen MODEL.yaml -o DIR writes a new one", path);
    t.steps = INT32_MAX;
    for (int s = 0; s < t.stage.n; s++) {
        find_steps(&t.stage.at[s]);
        t.steps = t.stage.at[s].step.n < t.steps ? t.stage.at[s].step.n : t.steps;
    }
    if (t.stage.n == 0 || t.steps == 0)
        fail(EXIT_MODEL, "%s has no whole step of every stage; out/train --trace FILE writes a trace, and where steps of a "
             "schedule overlap none stands alone", t.path);
    int steps = t.steps > 2 ? t.steps - 1 : t.steps;            /* without the first of three and more */
    Timed *list = alloc(sizeof *list * (size_t)steps);
    for (int i = 0; i < steps; i++)
        list[i] = (Timed){length_of(&t, i), i};
    SORT(list, steps, by_length);
    t.shown = list[(steps - 1) / 2].back;
    FILE *f = file_begin(to);
    fwrite(page, 1, (size_t)(mark - page), f);
    print_measured(f, &t, list, steps);
    fputs(mark + strlen(report_mark), f);
    file_end(f, to);
    return to;
}
