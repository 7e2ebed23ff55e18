/* SPDX-License-Identifier: Apache-2.0
 *
 * metrics.c: what a person sees and what a program reads.
 *
 * Progress on standard output (progress.c).  --log appends JSON lines, each written at once and whole:
 *
 *   {"event":"start","name":..,"stages":..,"replicas":..,"transport":..,"model":..,"plan":..,"parameters":..,"step":..,
 *    "library_bytes":..,"library_by_stage":[..],"predicted_ms":..,"time":..}
 *            library: what kernels hold outside the arenas, all stages and each
 *   {"event":"step","step":1,"loss":..,"norm":..,"lr":..,"tokens_per_s":..,"ms":..,"time":..}
 *            step: how many are done; norm: of the whole gradient, null in a job that does not take it
 *   {"event":"eval","step":50,"loss":..,"time":..}     with `top` of a loss: "top":1,"accuracy":0.93 too
 *   {"event":"blank","step":3,"input":"targets","time":..}     the first step without a valid target
 *   {"event":"checkpoint" or "stop","step":50,"detail":..,"time":..}
 *
 * time: seconds since the epoch when the line was written.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "ckpt.h"
#include "link.h"
#include "run.h"

enum { LINE = 1024, LISTED = 32, DETAIL = LINE + 6 * CKPT_PATH };     /* of a path each character may be an escape */

/* A line that a full disk or a crash has cut; what is appended must not become a part of it. */
static bool torn(const char *path)
{
    struct stat info;
    char last;
    int file = open(path, O_RDONLY | O_NONBLOCK);
    if (file < 0)
        return false;
    bool cut = fstat(file, &info) == 0 && S_ISREG(info.st_mode) && pread(file, &last, 1, info.st_size - 1) == 1 && last != '\n';
    close(file);
    return cut;
}

/* A whole line or none of it. */
static bool append(int file, const char *line, size_t n)
{
    struct stat info;
    off_t end = lseek(file, 0, SEEK_END);       /* -1: a pipe */
    size_t done = 0;
    for (ssize_t k; done < n; done += (size_t)k)
        if ((k = write(file, line + done, n - done)) < 0 && errno == EINTR)
            k = 0;
        else if (k <= 0)
            break;
    int why = errno;
    if (done > 0 && done < n && end >= 0 && fstat(file, &info) == 0 && info.st_size == end + (off_t)done &&
        ftruncate(file, end) != 0)
        complain(STATUS_RUN, "a line of the log is cut: %s", strerror(errno));
    errno = why;
    return done == n;
}

int metrics_open(Run *run)
{
    run->log = -1;
    run->terminal = isatty(STDOUT_FILENO) && !strcmp(link_name(), "local");     /* mpirun gives one to rank 0 */
    if (!run->main || !run->opt.log)
        return DONE;
    run->log = open(run->opt.log, O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK, 0666);
    if (run->log < 0 && errno == ENXIO)     /* without O_NONBLOCK it would wait for one */
        return complain(STATUS_RUN, "%s: this pipe has no reader; start that first", run->opt.log);
    if (run->log < 0 || fcntl(run->log, F_SETFL, O_APPEND) != 0)
        return complain(STATUS_RUN, "%s: cannot write metrics: %s", run->opt.log, strerror(errno));
    if (torn(run->opt.log) && !append(run->log, "\n", 1))
        return complain(STATUS_RUN, "%s: cannot write metrics: %s", run->opt.log, strerror(errno));
    return DONE;
}

/* The end of a line, when it was written, and the line. */
static void put(Run *run, Text *t)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    text_add(t, ",\"time\":%lld.%03ld}\n", (long long)now.tv_sec, now.tv_nsec / 1000000);
    size_t n = t->n < t->cap ? t->n : t->cap - 1;
    if (run->log >= 0 && !append(run->log, t->at, n)) {
        complain(STATUS_RUN, "%s: metrics are lost from here on: %s", run->opt.log, strerror(errno));
        run->log = -1;
    }
}

/* Ends the line that a terminal shows the progress in. */
void metrics_break(Run *run)
{
    if (run->pending)
        write_all(STDOUT_FILENO, "\n", 1);
    run->pending = false;
}

void metrics_show(const Run *run, const Text *t)
{
    if (!run->opt.quiet)
        write_all(STDOUT_FILENO, t->at, t->n < t->cap ? t->n : t->cap - 1);
}

static double mega(size_t bytes)
{
    return (double)bytes / 1048576;
}

static long parameter_count(const Run *run)
{
    long n = 0;
    for (int i = 0; i < run->parameters; i++)
        n += run->parameter[i].state->n;
    return n;
}

void metrics_start(Run *run, const int64_t *by_stage)
{
    char line[LINE];
    const Job *job = run->job;
    int64_t library = 0;
    Text t = {line, 0, sizeof line};
    int r = replicas_of(job), stages = homes_of(job), team = team_of(job);
    text_add(&t, "%s: %ld parameters, ", job->name, parameter_count(run));
    if (r > 1 && !job->homes)
        text_add(&t, "%d replicas of ", r);
    text_add(&t, "%d stage%s ", stages, stages == 1 ? "" : "s");
    if (team > 1)
        text_add(&t, "of %d devices ", team);
    if (job->homes)
        text_add(&t, "in 1 to %d copies ", r);
    for (int i = 0; i < job->stages; i++)
        library += by_stage[i];
    text_add(&t, "over %s, kernels %s; arenas", link_name(), job->kernels);
    for (int i = 0; i < job->stages && i < 16; i++)
        text_add(&t, "%s %.1f", i ? "," : "", mega(job->stage[i].arena));
    text_add(&t, "%s MiB", job->stages > 16 ? ", ..." : "");
    if (library > 0)
        text_add(&t, ", and %.1f MiB of the kernels' own", mega((size_t)library));
    text_add(&t, "\n");
    metrics_show(run, &t);
    t.n = 0;
    text_add(&t, "{\"event\":\"start\",\"name\":");
    text_json(&t, job->name);
    text_add(&t, ",\"stages\":%d,\"replicas\":%d,\"transport\":\"%s\",\"model\":\"%s\",\"plan\":\"%s\"", stages, r, link_name(),
             job->model, job->plan);
    if (team > 1)
        text_add(&t, ",\"devices_a_stage\":%d", team);
    text_add(&t, ",\"parameters\":%ld,\"step\":%lld,\"library_bytes\":%lld", parameter_count(run), (long long)run->start,
             (long long)library);
    for (int i = 0; library > 0 && i < job->stages && i < LISTED; i++)          /* as long as a line has room */
        text_add(&t, "%s%lld", i ? "," : ",\"library_by_stage\":[", (long long)by_stage[i]);
    text_add(&t, library > 0 ? "]" : "");
    text_add(&t, ",\"predicted_ms\":%.3f", 1e-6 * (double)job->step_ns);
    put(run, &t);
}

void metrics_step(Run *run, int64_t step, double loss, double norm, double lr, double wall)
{
    char line[LINE];
    Text t = {line, 0, sizeof line};
    double rate = wall > 0 ? (double)run->job->tokens / wall : 0;
    progress_step(run, &(Step){step + 1, loss, norm, wall, rate});
    if (run->opt.record) {
        text_add(&t, "loss %lld %.17g\n", (long long)step + 1, loss);
        write_all(STDOUT_FILENO, line, t.n);
        t.n = 0;
    }
    text_add(&t, "{\"event\":\"step\",\"step\":%lld,\"loss\":", (long long)step + 1);
    text_number(&t, loss);
    text_add(&t, ",\"norm\":");
    text_number(&t, norm < 0 ? (double)NAN : norm);
    text_add(&t, ",\"lr\":%.9g,\"tokens_per_s\":%.1f,\"ms\":%.3f", lr, rate, 1e3 * wall);
    put(run, &t);
}

void metrics_eval(Run *run, int64_t step, double loss, double share)
{
    char line[LINE];
    long top = run->job->top;
    Text t = {line, 0, sizeof line};
    run->progress.eval = loss;
    text_add(&t, "step %lld/%ld  eval loss %.5f", (long long)step + 1, run->opt.steps, loss);
    if (top > 1)
        text_add(&t, "  top-%ld", top);
    if (top > 0)
        text_add(&t, "%s accuracy %.2f %%", top > 1 ? "" : " ", 100 * share);
    text_add(&t, "\n");
    metrics_break(run);
    metrics_show(run, &t);
    t.n = 0;
    text_add(&t, "{\"event\":\"eval\",\"step\":%lld,\"loss\":", (long long)step + 1);
    text_number(&t, loss);
    if (top > 0)
        text_add(&t, ",\"top\":%ld,\"accuracy\":%.9g", top, share);
    put(run, &t);
}

void metrics_blank(Run *run, int64_t blank)
{
    char line[LINE];
    Text t = {line, 0, sizeof line};
    long long step = (long long)((blank - 1) / 8);
    const char *input = run->job->input[(blank - 1) % 8].name;
    run->blank = blank;
    metrics_break(run);
    complain(DONE, "step %lld has no valid target: every one of input `%s` is ignored, so their loss is 0 and has no gradient; "
             "is it a mask, or a label, that `ignore` hides?  Further steps of this kind are not told", step, input);
    text_add(&t, "{\"event\":\"blank\",\"step\":%lld,\"input\":", step);
    text_json(&t, input);
    put(run, &t);
}

void metrics_line(Run *run, const char *event, int64_t step, const char *detail)
{
    char line[DETAIL];
    Text t = {line, 0, sizeof line};
    text_add(&t, "step %lld/%ld  %s %s\n", (long long)step, run->opt.steps, event, detail);
    metrics_break(run);
    metrics_show(run, &t);
    t.n = 0;
    text_add(&t, "{\"event\":\"%s\",\"step\":%lld,\"detail\":", event, (long long)step);
    text_json(&t, detail);
    put(run, &t);
}

void metrics_close(Run *run)
{
    metrics_break(run);
    if (run->log >= 0)
        close(run->log);
    run->log = -1;
}
