/* SPDX-License-Identifier: Apache-2.0
 *
 * metrics.c: `dpgen metrics`: the log of a job (rt/metrics.c) as an event file for TensorBoard.
 *
 * A line of the log is one object, and a line that is broken is named and left out.  Each number of a step is a series
 * train/NAME, those of an evaluation are eval/loss and eval/accuracy.  A resumed run may begin behind steps that were done
 * before: the record of its start takes back what the first run did beyond it.  The time of a record is that of its line, 0 in
 * logs that have none, so that one log always makes the same file.
 */
#include "view.h"

enum { NAME = 256, OF_STEP = 1, OF_EVAL = 2, NAMED = 20 };
static const struct { const char *name; int of; } series[] = {
    {"loss", OF_STEP | OF_EVAL}, {"norm", OF_STEP}, {"lr", OF_STEP}, {"tokens_per_s", OF_STEP}, {"ms", OF_STEP},
    {"accuracy", OF_EVAL}};
enum { SERIES = sizeof series / sizeof *series };
typedef struct { char event[NAME]; int64_t step; double time, value[SERIES]; bool has[SERIES], null[SERIES]; } MetricsEntry;

static bool read_value(Json *j, MetricsEntry *l, int i)
{
    bool good = json_number(j, &l->value[i]);
    l->has[i] = good;
    l->null[i] = l->value[i] != l->value[i];
    return good;
}

static bool read_line(Json *j, MetricsEntry *l)
{
    char key[NAME];
    *l = (MetricsEntry){.event = ""};
    for (bool first = true, good = true; good && json_member(j, &first, key, sizeof key);)
        good = !strcmp(key, "event") ? json_string(j, l->event, sizeof l->event)
             : !strcmp(key, "step") ? json_integer(j, &l->step)
             : !strcmp(key, "time") ? json_number(j, &l->time)
             : INDEX_OF(series, SERIES, key) >= 0 ? read_value(j, l, INDEX_OF(series, SERIES, key)) : json_skip(j);
    return !j->why;
}

/* A norm that is null was not taken; a loss that is null is no number, and shown as such. */
static int write_line(FILE *f, const MetricsEntry *l)
{
    bool eval = !strcmp(l->event, "eval");
    int n = 0;
    if (!strcmp(l->event, "start"))
        tf_start(f, l->time, l->step + 1);
    if (!eval && strcmp(l->event, "step"))
        return 0;
    for (int i = 0; i < SERIES; i++) {
        if (!l->has[i] || (i > 0 && l->null[i]) || !(series[i].of & (eval ? OF_EVAL : OF_STEP)))
            continue;
        tf_scalar(f, l->time, l->step, strf("%s/%s", eval ? "eval" : "train", series[i].name), l->value[i]);
        n++;
    }
    return n;
}

typedef struct { const char *text; size_t n; int file, number, broken; } Log;

static void leave_out(Log *x, int column, const char *why)
{
    if (++x->broken <= NAMED)
        warn((Loc){x->file, x->number, column}, "%s: this line is left out%s", why, x->broken < NAMED ? "" : ", as may others");
}

/* A full disk and a crash cut a line, and what is appended may have become a part of it: such a line is named and left out.
 * The last one has no end while a job still writes it. */
static int write_lines(FILE *f, Log *x)
{
    int written = 0;
    bool first = true;
    MetricsEntry l;
    for (const char *at = x->text, *last = at + x->n, *end; at < last; at = end + 1) {
        end = memchr(at, '\n', (size_t)(last - at));
        x->number++;
        if (!end)
            leave_out(x, 1, "the end of the line is missing");
        if (!end)
            break;
        const char *from = at;
        while (from < end && memchr(" \t\r\n", *from, 4))
            from++;
        if (from == end)
            continue;
        Json j = json_open(at, (size_t)(end - at));
        bool good = read_line(&j, &l) && json_end(&j);
        if (!good)
            leave_out(x, (int)(j.at - at) + 1, j.why);
        if (good && first)
            tf_begin(f, l.time);
        written += good ? write_line(f, &l) : 0;
        first &= !good;
    }
    return written;
}

const char *metrics_tensorboard(const char *log, const char *dir)
{
    static const char remedy[] = "out/train --log FILE writes one";
    const char *to = strf("%s/events.out.tfevents.0.dpgen", dir);
    size_t n;
    file_writes(to);
    const char *text = file_read(log, remedy, &n);
    Log x = {.text = text, .n = n, .file = diag_file(log, text, n)};
    Text t;
    int written = write_lines(text_open(&t), &x);
    text_close(&t);
    if (!written)
        fail(EXIT_MODEL, "%s has no step and no evaluation; %s", log, remedy);
    files_begin(dir, false);
    FILE *f = file_begin(to);
    fwrite(t.at, 1, t.n, f);
    file_end(f, to);
    files_end();
    return to;
}
