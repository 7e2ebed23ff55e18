/* SPDX-License-Identifier: Apache-2.0
 *
 * best.c: the checkpoint of the best evaluation, which stays, and the end of a training that gets no better.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "ckpt.h"

static bool is_over(const Worker *w)
{
    long patience = w->run->job->patience;
    return patience > 0 && w->best.since >= patience;
}

/* All stages have the same loss, so that they decide alike. */
static int note(Worker *w, int64_t done, double loss)
{
    Best *b = &w->best;
    b->is = loss == loss && (b->at < 0 || !(loss >= b->loss));     /* never a NaN; one of an old checkpoint gives way */
    b->since = b->is ? 0 : b->since + 1;
    b->loss = b->is ? loss : b->loss;
    b->at = b->is ? done : b->at;
    return is_over(w) ? WANT_END : 0;
}

static bool is_best(const Worker *w, int64_t done)
{
    return w->run->job->keep_best && w->best.is && w->best.at == done;
}

static void describe(Text *t, const Job *job, const Best *b)
{
    if (!job->keep_best && !job->patience)
        return;
    if (b->at >= 0)
        text_add(t, "\"best_loss\":\"%a\",\"best_step\":%lld,\n", b->loss, (long long)b->at);
    text_add(t, "\"best_since\":%lld,\n", (long long)b->since);
}

/* DIR/best leads to the checkpoint of the best evaluation. */
static void point_best(const Run *run, int64_t step)
{
    char link[CKPT_PATH], part[CKPT_PATH], to[CKPT_NAME];
    const char *dir = run->opt.checkpoint;
    snprintf(to, sizeof to, "step-%06lld", (long long)step);
    if ((size_t)snprintf(link, sizeof link, "%s/best", dir) >= sizeof link ||
        (size_t)snprintf(part, sizeof part, "%s/best.part", dir) >= sizeof part)
        return;
    unlink(part);
    if (symlink(to, part) != 0 || rename(part, link) != 0)
        complain(DONE, "%s: cannot point to %s: %s; that checkpoint is kept all the same", link, to, strerror(errno));
}

static int64_t stays(const Run *run, int64_t step, const Best *b)
{
    if (!run->job->keep_best)
        return -1;
    if (b->at == step)
        point_best(run, step);
    return b->at;
}

const Bests best_evaluation = {is_over, note, is_best, describe, stays};
