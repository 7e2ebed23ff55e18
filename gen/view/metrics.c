/* SPDX-License-Identifier: Apache-2.0
 *
 * metrics.c: `dpgen metrics`: the log of a job (rt/metrics.c) as an event file for TensorBoard.
 *
 * A line of the log is one object.  Each number of a step is a series train/NAME, those of an evaluation are eval/loss and
 * eval/accuracy.  A resumed run may begin behind steps that were done before: the record of its start takes back what the
 * first run did beyond it.  The time of a record is that of its line, 0 in logs that have none, so that one log always makes
 * the same file.
 */
#include "events.h"
#include "base/file.h"
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

enum { NAME = 256, OF_STEP = 1, OF_EVAL = 2 };
static const struct { const char *name; int of; } series[] = {
    {"loss", OF_STEP | OF_EVAL}, {"norm", OF_STEP}, {"lr", OF_STEP}, {"tokens_per_s", OF_STEP}, {"ms", OF_STEP},
    {"accuracy", OF_EVAL}};
enum { SERIES = sizeof series / sizeof *series };
typedef struct { char event[NAME]; int64_t step; double time, value[SERIES]; bool has[SERIES], null[SERIES]; } Entry;

static int series_of(const char *key)
{
    for (int i = 0; i < SERIES; i++)
        if (!strcmp(key, series[i].name))
            return i;
    return -1;
}

static bool read_value(Json *j, Entry *l, int i)
{
    bool good = json_number(j, &l->value[i]);
    l->has[i] = good;
    l->null[i] = l->value[i] != l->value[i];
    return good;
}

static bool read_line(Json *j, Entry *l)
{
    char key[NAME];
    *l = (Entry){.event = ""};
    for (bool first = true, good = true; good && json_member(j, &first, key, sizeof key);)
        good = !strcmp(key, "event") ? json_string(j, l->event, sizeof l->event)
             : !strcmp(key, "step") ? json_integer(j, &l->step)
             : !strcmp(key, "time") ? json_number(j, &l->time)
             : series_of(key) >= 0 ? read_value(j, l, series_of(key)) : json_skip(j);
    return !j->why;
}

/* A norm that is null was not taken; a loss that is null is no number, and shown as such. */
static int write_line(FILE *f, const Entry *l)
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

static bool blank(const char *from, const char *end)
{
    while (from < end && memchr(" \t\r\n", *from, 4))
        from++;
    return from == end;
}

const char *metrics_tensorboard(const char *log, const char *dir)
{
    static const char remedy[] = "out/train --log FILE writes one";
    const char *to = strf("%s/events.out.tfevents.0.dpgen", dir);
    size_t n;
    const char *text = file_read(log, remedy, &n);
    Json j = json_open(text, n);
    Entry l;
    Text t;
    FILE *f = text_open(&t);
    int written = 0;
    for (bool first = true; !blank(j.at, text + n) && read_line(&j, &l); first = false) {
        if (first)
            tf_begin(f, l.time);
        written += write_line(f, &l);
    }
    text_close(&t);
    json_stop(&j, log, n, remedy);
    if (!written)
        fail(EXIT_MODEL, "%s has no step and no evaluation; %s", log, remedy);
    if (mkdir(dir, 0777) != 0 && errno != EEXIST)
        fail(EXIT_RUN, "cannot make the folder %s: %s", dir, strerror(errno));
    f = file_begin(to);
    fwrite(t.at, 1, t.n, f);
    file_end(f, to);
    return to;
}
