/* SPDX-License-Identifier: Apache-2.0
 *
 * progress.c: a run as a person follows it.
 *
 * While it goes on: in a pipe a line a step; on a terminal one line that is written over, cut to the width of the window, at
 * most ten times a second.  At the end: steps and time, the mean step beside the predicted one, losses, their curve.  Where
 * steps took longer than predicted and other processes had the cores, it says so.
 *
 * The curve has at most WIDE buckets of equally many steps each.  When they are full, neighbours are joined, so that the
 * number of steps, which --seconds leaves open, need not be known and nothing is allocated.  A bucket's value is the mean
 * of its losses; one that is no number is left out.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>
#include "link.h"
#include "run.h"

enum { LINE = 1024, HIGH = 10, FEW = 16, MOST_LEFT = 1000000000 };      /* seconds */
static const double REFRESH = 0.1;      /* seconds */
static const double SLOW = 1.2, NOTED = 0.1;    /* times the prediction; share of the cores: worth a word */

/* ---- who else has the cores ------------------------------------------------------------------------------------------ */

/* Its first line: cpu user nice system idle iowait irq softirq steal, in ticks. */
bool cores_read(const char *stat, double tick, Cores *c)
{
    enum { IDLE = 3, IOWAIT, KINDS = 8 };
    const char *at = stat + 3;
    char *end;
    *c = (Cores){0};
    if (strncmp(stat, "cpu ", 4))
        return false;
    for (int i = 0; i < KINDS; i++, at = end) {
        double x = tick * (double)strtoull(at, &end, 10);
        if (end == at)
            return i > IOWAIT;
        c->all += x;
        c->busy += i == IDLE || i == IOWAIT ? 0 : x;
    }
    return true;
}

double cores_others(const Cores *from, const Cores *to)
{
    static const double least = 1;
    double all = to->all - from->all, busy = to->busy - from->busy - (to->process - from->process);
    return all < least ? -1 : busy > 0 ? busy / all : 0;
}

/* Zeros where there is no /proc/stat. */
static Cores cores_now(void)
{
    char text[512];
    Cores c = {0};
    struct rusage r;
    int file = open("/proc/stat", O_RDONLY);
    ssize_t n = file >= 0 ? read(file, text, sizeof text - 1) : -1;
    if (file >= 0)
        close(file);
    text[n > 0 ? n : 0] = 0;
    if (cores_read(text, 1.0 / (double)sysconf(_SC_CLK_TCK), &c) && getrusage(RUSAGE_SELF, &r) == 0)
        c.process = (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) + 1e-6 * (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec);
    return c;
}

void progress_begin(Run *run)
{
    run->progress = (Progress){.begun = seconds(), .shown = -1, .per = 1, .eval = (double)NAN, .cores = cores_now()};
}

bool progress_late(const Run *run)
{
    return run->opt.seconds > 0 && seconds() - run->progress.begun >= (double)run->opt.seconds;
}

/* ---- the curve -------------------------------------------------------------------------------------------------- */

static void join(Progress *p)
{
    for (int i = 0; i < WIDE; i++) {
        bool half = i < WIDE / 2;
        p->sum[i] = half ? p->sum[2 * i] + p->sum[2 * i + 1] : 0;
        p->count[i] = half ? p->count[2 * i] + p->count[2 * i + 1] : 0;
    }
    p->per *= 2;
}

static void keep(Progress *p, double loss)
{
    if (p->steps >= p->per * WIDE)
        join(p);
    if (isfinite(loss)) {
        p->sum[p->steps / p->per] += loss;
        p->count[p->steps / p->per]++;
    }
}

/* The row of a column, 0 the highest; -1: it has no loss. */
static int row_of(const Progress *p, int column, double low, double high)
{
    int used = (int)((p->steps + p->per - 1) / p->per), i = column * used / WIDE;
    if (p->count[i] == 0)
        return -1;
    double x = p->sum[i] / (double)p->count[i];
    return high > low ? (int)((high - x) / (high - low) * (HIGH - 1) + 0.5) : 0;
}

static void limits(const Progress *p, double *low, double *high)
{
    *low = INFINITY, *high = -INFINITY;
    for (int i = 0; i < WIDE; i++)
        if (p->count[i]) {
            double x = p->sum[i] / (double)p->count[i];
            *low = x < *low ? x : *low;
            *high = x > *high ? x : *high;
        }
}

/* What stands there: the curve goes up and down through all rows between two columns. */
static char mark(const Progress *p, int row, int column, double low, double high)
{
    int here = row_of(p, column, low, high), before = column ? row_of(p, column - 1, low, high) : here;
    if (here < 0)
        return ' ';
    before = before < 0 ? here : before;
    return row == here || (row > before && row < here) || (row < before && row > here) ? '*' : ' ';
}

static void curve(const Run *run)
{
    const Progress *p = &run->progress;
    char line[LINE];
    double low, high;
    limits(p, &low, &high);
    if (p->steps < FEW || low > high)
        return;
    for (int row = 0; row < HIGH; row++) {
        Text t = {line, 0, sizeof line};
        text_add(&t, "%9.4f |", high - (high - low) * row / (HIGH - 1));
        for (int i = 0; i < WIDE; i++)
            text_add(&t, "%c", mark(p, row, i, low, high));
        while (t.n > 0 && line[t.n - 1] == ' ')
            t.n--;
        text_add(&t, "\n");
        metrics_show(run, &t);
    }
    Text t = {line, 0, sizeof line};
    text_add(&t, "     loss +");
    for (int i = 0; i < WIDE; i++)
        text_add(&t, "-");
    char first[32];
    int left = snprintf(first, sizeof first, "%lld", (long long)run->start + 1);
    text_add(&t, "\n           %s%*lld\n", first, WIDE - left, (long long)run->start + p->steps);
    metrics_show(run, &t);
}

/* ---- while it runs ------------------------------------------------------------------------------------------------ */

static void clock_text(Text *t, double s)
{
    long n = s > 0 ? (long)(s < MOST_LEFT ? s + 0.5 : MOST_LEFT) : 0;
    if (n >= 3600)
        text_add(t, "%ld:%02ld:%02ld left", n / 3600, n / 60 % 60, n % 60);
    else
        text_add(t, "%ld:%02ld left", n / 60, n % 60);
}

/* By the mean of the steps behind the first, which touches all memory; and by --seconds. */
static double left(const Run *run, int64_t done)
{
    const Progress *p = &run->progress;
    double mean = p->steps > 1 ? (p->wall - p->first) / (double)(p->steps - 1) : p->wall, s;
    s = mean * (double)(run->opt.steps - done);
    double limit = p->begun + (double)run->opt.seconds - seconds();
    return run->opt.seconds > 0 && limit < s ? limit : s;
}

/* Without the last column: some terminals begin a line there. */
static void cut_to_window(Text *t)
{
    struct winsize w;
    size_t wide = ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 1 ? w.ws_col : 80;
    t->n = t->n < wide - 1 ? t->n : wide - 1;
}

static void step_on_terminal(Run *run, const Step *s)
{
    char line[LINE];
    Progress *p = &run->progress;
    Text t = {line, 0, sizeof line - 8};
    if (s->done < run->opt.steps && seconds() - p->shown < REFRESH)
        return;
    p->shown = seconds();
    text_add(&t, "step %lld/%ld  loss %.4f  ", (long long)s->done, run->opt.steps, s->loss);
    text_add(&t, "%.1f ms (predicted %.1f)  ", 1e3 * s->wall, 1e-6 * (double)run->job->step_ns);
    clock_text(&t, left(run, s->done));
    text_add(&t, "  %.0f tokens/s", s->rate);
    if (!(s->norm < 0))
        text_add(&t, "  norm %.3g", s->norm);
    cut_to_window(&t);
    t.cap = sizeof line;
    memmove(line + 1, line, t.n++);
    line[0] = '\r';
    text_add(&t, "\033[K");
    metrics_show(run, &t);
    run->pending = !run->opt.quiet;
}

static void step_in_pipe(const Run *run, const Step *s)
{
    char line[LINE];
    Text t = {line, 0, sizeof line};
    size_t arena = 0;
    for (int i = 0; i < run->job->stages; i++)
        arena = run->job->stage[i].arena > arena ? run->job->stage[i].arena : arena;
    text_add(&t, "step %lld/%ld  loss %.5f  ", (long long)s->done, run->opt.steps, s->loss);
    if (!(s->norm < 0))         /* this job takes one, perhaps NaN */
        text_add(&t, "norm %.4g  ", s->norm);
    text_add(&t, "%.0f tokens/s  %.1f ms (predicted %.1f)  arena %.1f MiB\n", s->rate, 1e3 * s->wall,
             1e-6 * (double)run->job->step_ns, (double)arena / 1048576);
    metrics_show(run, &t);
}

void progress_step(Run *run, const Step *s)
{
    Progress *p = &run->progress;
    keep(p, s->loss);
    if (p->steps++ == 0)
        p->first = s->wall, p->first_loss = s->loss;
    p->wall += s->wall;
    if (run->terminal)
        step_on_terminal(run, s);
    else
        step_in_pipe(run, s);
}

/* ---- the end ------------------------------------------------------------------------------------------------------ */

static void times_text(Text *t, const Run *run)
{
    const Progress *p = &run->progress;
    double predicted = 1e-6 * (double)run->job->step_ns;
    double mean = 1e3 * (p->steps > 1 ? (p->wall - p->first) / (double)(p->steps - 1) : p->wall);
    text_add(t, "%lld step%s in %.1f s: mean step %.1f ms", (long long)p->steps, p->steps == 1 ? "" : "s",
             seconds() - p->begun, mean);
    if (predicted > 0 && mean > 2 * predicted)
        text_add(t, ", predicted %.1f (%.1f times as long)", predicted, mean / predicted);
    else if (predicted > 0)
        text_add(t, ", predicted %.1f (%.1f %% %s)", predicted, fabs(mean / predicted - 1) * 100,
                 mean < predicted ? "less" : "more");
    Cores now = cores_now();            /* of MPI the other ranks are processes, too: nothing is said */
    double others = cores_others(&p->cores, &now);
    if (predicted > 0 && mean > SLOW * predicted && others > NOTED && strcmp(link_name(), "local") == 0)
        text_add(t, "; other processes used %.0f %% of the cores", 100 * others);
    text_add(t, "\n");
}

static void losses_text(Text *t, const Run *run)
{
    const Progress *p = &run->progress;
    int64_t last = (p->steps - 1) / p->per;
    text_add(t, "loss %.4f at step %lld", p->first_loss, (long long)run->start + 1);
    if (p->steps > 1 && p->count[last])
        text_add(t, ", %.4f at the end", p->sum[last] / (double)p->count[last]);
    if (!isnan(p->eval))
        text_add(t, ", %.4f on the data of the evaluation", p->eval);
    text_add(t, "\n");
}

/* The folder's own pictures, where the program still lies in its folder. */
static void report_text(Text *t, const char *program)
{
    const char *slash = program ? strrchr(program, '/') : NULL;
    char path[LINE];
    if (!slash)
        return;
    int n = snprintf(path, sizeof path, "%.*s/report.html", (int)(slash - program), program);
    if (n < (int)sizeof path && access(path, R_OK) == 0)
        text_add(t, "the plan as pictures: %s\n", path);
}

void progress_end(Run *run)
{
    char line[2 * LINE];
    Text t = {line, 0, sizeof line};
    metrics_break(run);
    if (run->progress.steps == 0)
        return;
    curve(run);
    times_text(&t, run);
    losses_text(&t, run);
    if (run->blank)
        text_add(&t, "no valid target in step %lld, the first of that kind\n", (long long)((run->blank - 1) / 8));
    report_text(&t, run->program);
    metrics_show(run, &t);
}
