/* SPDX-License-Identifier: Apache-2.0
 *
 * trace.c: predicted and measured actions side by side, as Trace Event JSON (chrome://tracing, Perfetto).
 *
 * action() stamps a ring that was allocated at the start; the newest stamps win.  An action ends where the next
 * begins, the last one of a step with the mark -1.  Process 1 is the prediction, repeated for the last whole step,
 * process 2 what was measured; a thread is a stage, and each direction of its copies to the host one more.  Messages are flow
 * events.  An argument of each event is the number of its action in the list of the stage, and the plan of the job is named:
 * `dpgen report` reads both.
 * Clocks of several hosts are put in line by a common barrier before the first step, which is good to the latency of the
 * network.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "link.h"
#include "run.h"

enum { RING = 1 << 16, COPIES = 1000 };         /* COPIES: threads of copies are COPIES + 2 stage + direction */

typedef struct { double at; int number; } Stamp;
typedef struct { double origin; uint64_t n; Stamp stamp[RING]; } Ring;

/* The prediction is drawn where the last step began, so that both can be laid over each other. */
typedef struct { Worker *w; Text t; int file; bool good; double last; } Writer;

int trace_open(Run *run)
{
    if (!run->opt.trace)
        return DONE;
    for (int i = 0; i < run->count; i++) {
        run->worker[i].stage.trace = calloc(1, sizeof(Ring));
        if (!run->worker[i].stage.trace)
            return complain(STATUS_RUN, "no memory for the trace");
    }
    return DONE;
}

void trace_origin(Stage *st)
{
    Ring *r = st->trace;
    if (r)
        r->origin = seconds();
}

void trace_stamp(Stage *st, int number)
{
    Ring *r = st->trace;
    if (!r)
        return;
    Stamp *s = &r->stamp[r->n++ % RING];
    s->number = number;
    arena_clock(st, &s->at);
}

/* Of an action by its name, as in trace.json. */
static const char *kind_of(const char *name, int thread)
{
    static const struct { const char *begins, *kind; } kinds[] = {
        {"wait", "wait"}, {"send", "message"}, {"receive", "message"}, {"load", "data"}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds && thread < COPIES; i++)
        if (!strncmp(name, kinds[i].begins, strlen(kinds[i].begins)))
            return kinds[i].kind;
    return thread < COPIES ? "compute" : "copy";
}

static void flush(Writer *o)
{
    if (o->t.n > o->t.cap / 2) {
        o->good = o->good && write_all(o->file, o->t.at, o->t.n < o->t.cap ? o->t.n : o->t.cap - 1);
        o->t.n = 0;
        atomic_fetch_add(&o->w->beat, 1);
    }
}

static void event(Writer *o, int process, int thread, long number, double from, double length)
{
    const char *name = action_name(o->w, number);
    text_add(&o->t, ",\n{\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,\"name\":", process,
             thread, 1e6 * from, 1e6 * length);
    text_json(&o->t, name);
    text_add(&o->t, ",\"cat\":\"%s\",\"args\":{\"action\":%ld}}", kind_of(name, thread), number);
    flush(o);
}

/* An arrow from `send to 1: x` of a stage to `wait, received: x` of stage 1, in the same step, counted from the last.  Both
 * stages find its number by themselves, from receiver, step and x: of 52 bits, for viewers read doubles.  Predictions begin
 * where their stage began: none there. */
static void flow(Writer *o, long number, double from, double to, long step)
{
    static const char sends[] = "send to ", waits[] = "wait, received: ";
    const char *name = action_name(o->w, number), *what = strchr(name, ':');
    bool send = !strncmp(name, sends, strlen(sends)), wait = !strncmp(name, waits, strlen(waits));
    if ((!send && !wait) || !what || number >= o->w->info->actions)
        return;
    long receiver = send ? strtol(name + strlen(sends), NULL, 10) : o->w->stage.index;
    text_add(&o->t, ",\n{\"ph\":\"%c\",\"pid\":2,\"tid\":%d,\"ts\":%.3f,\"id\":%llu,\"name\":\"message\","
             "\"cat\":\"message\"%s}", send ? 's' : 'f', o->w->stage.index, 1e6 * (send ? from : to),
             (unsigned long long)name_key(what, (uint64_t)receiver << 32 ^ (uint64_t)step) & ((1ull << 52) - 1),
             send ? "" : ",\"bp\":\"e\"");
    flush(o);
}

static void name_process(Writer *o, int process, const char *name)
{
    text_add(&o->t, "%s{\"ph\":\"M\",\"pid\":%d,\"name\":\"process_name\",\"args\":{\"name\":\"%s\"}},\n"
             "{\"ph\":\"M\",\"pid\":%d,\"name\":\"process_sort_index\",\"args\":{\"sort_index\":%d}}",
             process == 1 ? "" : ",\n", process, name, process, process);
}

/* Stages of one process have one clock: the moment at which a thread comes out of the barrier is no part of it. */
static double origin_of(const Writer *o)
{
    return ((const Ring *)o->w->run->worker[0].stage.trace)->origin;
}

static void measured(Writer *o)
{
    double origin = origin_of(o);
    const Ring *r = o->w->stage.trace;
    const StageInfo *info = o->w->info;
    long known = info->actions + info->eval_actions;
    uint64_t first = r->n > RING ? r->n - RING : 0;
    text_add(&o->t, ",\n{\"ph\":\"M\",\"pid\":2,\"tid\":%d,\"name\":\"thread_name\",\"args\":{\"name\":\"%s\"}}",
             o->w->stage.index, info->name);
    long step = 0;
    for (uint64_t i = first; i < r->n; i++)
        step += r->stamp[i % RING].number == 0;
    for (uint64_t i = first; i + 1 < r->n; i++) {
        const Stamp *a = &r->stamp[i % RING], *b = &r->stamp[(i + 1) % RING];
        if (a->number == 0) {
            o->last = a->at - origin;
            step--;
        }
        if (a->number < 0 || a->number >= known)
            continue;
        event(o, 2, o->w->stage.index, a->number, a->at - origin, b->at - a->at);
        flow(o, a->number, a->at - origin, b->at - origin, step);
    }
}

static void copied(Writer *o, int direction)
{
    double origin = origin_of(o);
    const StageInfo *info = o->w->info;
    int thread = COPIES + 2 * o->w->stage.index + direction;
    uint64_t n;
    const Copied *c = offloads(o->w) ? job_parts.offload->trace(o->w, direction, 0, &n) : NULL;
    if (!c)
        return;
    text_add(&o->t, ",\n{\"ph\":\"M\",\"pid\":2,\"tid\":%d,\"name\":\"thread_name\",\"args\":{\"name\":\"%s %s\"}}", thread,
             info->name, direction ? "from the host" : "to the host");
    for (uint64_t i = 0; i < n; i++) {
        c = job_parts.offload->trace(o->w, direction, i, &n);
        event(o, 2, thread, c->number, c->from - origin, c->to - c->from);
    }
}

static void predicted(Writer *o)
{
    const StageInfo *info = o->w->info;
    text_add(&o->t, ",\n{\"ph\":\"M\",\"pid\":1,\"tid\":%d,\"name\":\"thread_name\",\"args\":{\"name\":\"%s\"}}",
             o->w->stage.index, info->name);
    for (long i = 0; info->predicted && i < info->actions; i++) {
        double from = 1e-9 * (double)info->predicted[2 * i], to = 1e-9 * (double)info->predicted[2 * i + 1];
        event(o, 1, o->w->stage.index, i, o->last + from, to - from);
    }
}

static int write_stage(Worker *w, const char *path)
{
    char store[16384];
    int index = w->stage.index, file = index ? open(path, O_WRONLY | O_APPEND) : part_open(w, path);
    Writer o = {w, {store, 0, sizeof store}, file, file >= 0, 0};
    if (index == 0) {
        text_add(&o.t, "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"plan\":\"%s\"},\"traceEvents\":[\n", w->run->job->plan);
        name_process(&o, 1, "predicted");
        name_process(&o, 2, "measured");
    }
    measured(&o);
    copied(&o, 0);
    copied(&o, 1);
    predicted(&o);
    if (index == w->stage.count - 1)
        text_add(&o.t, "\n]}\n");
    o.good = o.good && write_all(file, o.t.at, o.t.n);
    int why = errno;
    if (index && file >= 0)
        o.good = close(file) == 0 && o.good;
    return o.good ? DONE : complain(STATUS_RUN, "%s: cannot write the trace: %s", path, strerror(why));
}

/* One stage after the other: each adds its part to the file, and the last puts it in place. */
int trace_write(Worker *w, const char *path)
{
    char part[PART_PATH];
    int status = DONE;
    bool last = w->stage.index == w->stage.count - 1;
    part_name(part, path);
    for (int i = 0; i < w->stage.count && status == DONE; i++)
        status = worst(w, i == w->stage.index ? write_stage(w, part) : DONE);
    return worst(w, last ? part_end(part, path, status) : status);
}
