/* SPDX-License-Identifier: Apache-2.0
 *
 * parted.c: states of which each replica, or each device of a stage, has a part.
 *
 * Files and hashes have a parameter whole, from the first replica.  Into a checkpoint all replicas write, at places that nobody
 * else writes to; then the first one reads the file for its hash.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include "ckpt_write.h"
#include "link.h"
#include "run.h"
#include "team.h"

static const StateInfo *twin_state(const Job *job, const Item *item, int replica)
{
    const StageInfo *first = &job->stage[item->stage];
    return &job->stage[item->stage + replica * homes_of(job)].state[item->state - first->state];
}

/* Whose part has that element. */
static int owner_of(const Job *job, const Item *item, long at)
{
    int r = 0;
    for (; r < replicas_of(job); r++) {
        const StateInfo *s = twin_state(job, item, r);
        if (s->from <= at && at < s->from + s->part)
            break;
    }
    return r;
}

static void pass_on(Worker *w, int peer, bool sending, float *x, long n)
{
    Stage *st = &w->stage;
    void *half = link_begin(st, TEAM_REQUEST + !sending, sending, x, peer, 0, n * (long)sizeof *x);
    atomic_store_explicit(&w->waits, sending ? -1 - peer : 1 + peer, memory_order_relaxed);
    link_wait(st, half);
    atomic_store_explicit(&w->waits, 0, memory_order_relaxed);
    atomic_fetch_add_explicit(&w->beat, 1, memory_order_relaxed);
}

/* All replicas call it.  The first one takes, and goes on receiving when `take` has said no. */
static bool read_parts(Worker *w, const Item *item, long from, long n, ArenaTake take, void *to)
{
    const Job *job = w->run->job;
    int mine = w->stage.index / homes_of(job);
    float piece[TEAM_PIECE];
    bool good = true;
    for (long at = from, k; at < from + n; at += k) {
        int owner = owner_of(job, item, at);
        const StateInfo *s = twin_state(job, item, owner);
        k = s->from + s->part < from + n ? s->from + s->part - at : from + n - at;
        k = k < TEAM_PIECE ? k : TEAM_PIECE;
        if (owner == mine)
            memcpy(piece, state_data(w, s, w->done) + (at - s->from), (size_t)k * sizeof *piece);
        if (owner != 0 && (mine == owner || mine == 0))
            pass_on(w, item->stage + (mine ? 0 : owner) * homes_of(job), mine != 0, piece, k);
        if (mine == 0)
            good = good && take(to, piece, (size_t)k * sizeof *piece);
    }
    return good;
}

/* The parts of a further device of a stage, for the first one. */
static void lend_items(Worker *w, const Item *item, int n)
{
    for (int i = 0; i < n; i++)
        if (item[i].state->outer && item_here(w, &item[i]))
            item_read(w, &item[i], 0, item[i].state->n, NULL, NULL);
}

/* Of each item the part that this replica has. */
static bool put_parts(Worker *w, Put *to, const Item **broken)
{
    const Checkpoint *c = w->run->checkpoint;
    int stage = w->stage.index - w->run->first;
    const Item *item = c->local[stage];
    off_t at = (off_t)c->header[stage].n;
    for (int i = 0; i < c->owns[stage]; i++) {
        long from = 0, k = 0;
        const float *data = item[i].state->outer ? NULL : item_part(w, &item[i], &from, &k);
        off_t here = at + (off_t)from * (off_t)sizeof *data;
        if (item[i].state->outer && !job_parts.divided->give(w, &item[i], to->file, at, ckpt_floats, to))
            return false;
        if (k > 0 && lseek(to->file, here, SEEK_SET) != here)
            return false;
        if (k > 0 && !(data ? arena_read(w, data, (size_t)k * sizeof *data, ckpt_floats, to)
                            : item_read(w, &item[i], 0, k, ckpt_floats, to)))
            return false;
        if (to->nan && !*broken)
            *broken = &item[i];
        at += (off_t)item[i].state->n * (off_t)sizeof *data;
    }
    return true;
}

static void sum_part(Worker *w, int64_t step, Written *out)
{
    char path[CKPT_PATH];
    unsigned char piece[1 << 14];
    Digest d;
    ssize_t n = -1;
    ckpt_stage(path, w, step);
    digest_start(&d);
    int file = open(path, O_RDONLY);
    while (file >= 0 && (n = read(file, piece, sizeof piece)) > 0)
        digest_add(&d, piece, (size_t)n);
    out->bytes = (int64_t)d.n;
    if (n < 0)
        out->status = complain(STATUS_RUN, "%s: cannot read what was written: %s; the last committed checkpoint is as it was",
                               path, strerror(errno));
    if (file >= 0)
        close(file);
    digest_end(&d, out->sha);
}

/* The files of all stages. */
static void write_files(Worker *w, int64_t step, Written *mine)
{
    const Checkpoint *c = w->run->checkpoint;
    bool first = copy_of(w) == 0;
    int k = w->stage.index - w->run->first;
    if (c->cut || first)
        ckpt_file(w, step, c->cut ? put_parts : ckpt_items, mine);
    else
        lend_items(w, c->local[k], c->owns[k]);
    if (!c->cut)
        return;
    mine->status = worst(w, mine->status);
    if (mine->status == DONE && first)
        sum_part(w, step, mine);
}

const Parted parted_states = {read_parts, write_files, sum_part};
