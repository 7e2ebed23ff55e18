/* SPDX-License-Identifier: Apache-2.0
 *
 * divided.c: states that the devices of a stage share, as files and hashes have them: whole, by one name.
 *
 * A state leaves through the first device of its stage: the others pass it their parts, piece by piece.  It comes to all of
 * them whole, and each keeps its own part.  The host sees the arena by arena.c alone, so this is the same on processors and on
 * GPUs.
 *
 * Cost: each element is copied once on its way, and passed on once.
 */
#include "team.h"
#include <string.h>
#include <unistd.h>
#include "parts.h"
#include "real.h"
#include "run.h"
#include "owned.h"

static long at_least(long a, long b) { return a > b ? a : b; }
static long at_most(long a, long b) { return a < b ? a : b; }

/* ---- states leave ------------------------------------------------------------------------------------------------ */

/* Elements in the order of the device's memory, as floats: from `base` on at `data`, or rounded at `copy`.  They are read
 * ahead, `most` at once, and not beyond `end`. */
typedef struct {
    Worker *w;
    const float *data;
    const uint16_t *copy;
    long base, end, most, from, n;
    float x[TEAM_PIECE];
} Reader;

static bool take_floats(void *reader, const void *piece, size_t bytes)
{
    Reader *r = reader;
    memcpy(r->x + r->n, piece, bytes);
    r->n += (long)(bytes / sizeof *r->x);
    return true;
}

static bool take_rounded(void *reader, const void *piece, size_t bytes)
{
    Reader *r = reader;
    long n = (long)(bytes / sizeof *r->copy);
    init_widen(r->x + r->n, piece, n);
    r->n += n;
    return true;
}

/* Some from `at` on, *k of them. */
static const float *read_some(Reader *r, long at, long *k)
{
    if (at < r->from || at >= r->from + r->n) {
        const long n = at_most(at_most(r->most, TEAM_PIECE), r->end - at);
        r->from = at;
        r->n = 0;
        if (r->data)
            arena_read(r->w, r->data + at - r->base, (size_t)n * sizeof *r->data, take_floats, r);
        else
            arena_read(r->w, r->copy + at, (size_t)n * sizeof *r->copy, take_rounded, r);
    }
    *k = r->from + r->n - at;
    return r->x + at - r->from;
}

/* Side by side what this device has of the elements of a walk. */
static long pack_item(float *to, Worker *w, const Item *item, Walk walk)
{
    const StateInfo *s = item->state;
    Reader r = {.w = w, .data = item_data(w, item), .copy = item_copy(w, item), .end = s->outer * s->room};
    long n, begin, local, count = 0;
    r.most = pack(NULL, NULL, NULL, walk);
    while ((n = next(&walk, &begin, &local)) > 0)
        for (long k; n > 0; n -= k, local += k, count += k) {
            const float *x = read_some(&r, local, &k);
            k = at_most(k, n);
            memcpy(to + count, x, (size_t)k * sizeof *to);
        }
    return count;
}

/* All devices of the stage call it; the first one takes, and goes on receiving when `take` has said no. */
static bool read_item(Worker *w, const Item *item, long from, long n, ArenaTake take, void *to)
{
    const StateInfo *s = item->state;
    Stage *st = &w->stage;
    float piece[TEAM_PIECE], part[TEAM_PIECE];
    bool good = true;
    for (long at = from; at < from + n; at += TEAM_PIECE) {
        long k = at_most(from + n - at, TEAM_PIECE);
        for (int d = 0; d < st->shards; d++) {
            Walk range = walk(d, s->n, s->outer, s->room, at, k);
            long count = d == st->shard ? pack_item(part, w, item, range) : pack(NULL, NULL, NULL, range);
            if (count && d == st->shard && d > 0)
                st->team->pass(st, 0, true, part, count * (long)sizeof *part);
            if (count && st->shard == 0 && d > 0)
                st->team->pass(st, d, false, part, count * (long)sizeof *part);
            if (st->shard == 0)
                pack(part, piece, NULL, range);
        }
        good = good && (st->shard > 0 || take(to, piece, (size_t)k * sizeof *piece));
    }
    return good;
}

/* Of the elements that a device has room for, those that this replica keeps: from .. until-1, the first one at `base`. */
typedef struct { long from, until, base; } Kept;

static Kept kept_of(const StateInfo *s)
{
    return s->cut ? (Kept){s->from, s->from + s->part, s->whole ? 0 : s->from} : (Kept){0, s->outer * s->room, 0};
}

static bool give(Worker *w, const Item *item, int file, off_t whole, ArenaTake take, void *to)
{
    const Job *job = w->run->job;
    if (home_at(job, w->stage.index) != item->stage)
        return true;
    Item here = *item;
    here.state = &w->info->state[item->state - job->stage[item->stage].state];
    const StateInfo *s = here.state;
    const Kept kept = kept_of(s);
    Walk range = walk(w->stage.shard, s->n, s->outer, s->room, 0, s->cut || replica_of(w) == 0 ? s->n : 0);
    Reader r = {.w = w, .data = item_data(w, &here), .copy = item_copy(w, &here), .base = kept.base, .end = kept.until,
                .most = TEAM_PIECE};
    long n, begin, local;
    while ((n = next(&range, &begin, &local)) > 0)
        for (long at = at_least(local, kept.from), k; at < at_most(local + n, kept.until); at += k) {
            const float *x = read_some(&r, at, &k);
            k = at_most(k, at_most(local + n, kept.until) - at);
            off_t place = whole + (off_t)(begin + at - local) * (off_t)sizeof *x;
            if (lseek(file, place, SEEK_SET) != place || !take(to, x, (size_t)k * sizeof *x))
                return false;
        }
    return true;
}

/* ---- states come ------------------------------------------------------------------------------------------------- */

/* Neighbours on their way to the device's memory: n from `at` on, to `data` those that are kept, and all of them to `copy`. */
typedef struct { Worker *w; float *data; uint16_t *copy; Kept kept; long at, n; float x[TEAM_PIECE]; } Writer;

static void write_some(Writer *r)
{
    uint16_t narrow[TEAM_PIECE];
    const long first = at_least(r->at, r->kept.from), until = at_most(r->at + r->n, r->kept.until);
    if (r->data && first < until)
        arena_write(r->w, r->data + first - r->kept.base, r->x + first - r->at, (size_t)(until - first) * sizeof *r->x);
    for (long i = 0; r->copy && i < r->n; i++)
        narrow[i] = float_bf16(r->x[i]);
    if (r->copy && r->n)
        arena_write(r->w, r->copy + r->at, narrow, (size_t)r->n * sizeof *narrow);
    r->n = 0;
}

/* n elements at `local` on; from NULL: zeros. */
static void put_some(Writer *r, long local, const float *from, long n)
{
    for (long k; n > 0; n -= k, local += k, from += from ? k : 0) {
        if (r->n == TEAM_PIECE || local != r->at + r->n)
            write_some(r);
        r->at = r->n ? r->at : local;
        k = at_most(n, TEAM_PIECE - r->n);
        if (from)
            memcpy(r->x + r->n, from, (size_t)k * sizeof *from);
        else
            memset(r->x + r->n, 0, (size_t)k * sizeof *r->x);
        r->n += k;
    }
}

/* Of elements first .. first+n-1 of the whole at `from`: those that this device keeps, into `data` and, rounded, into `copy`.
 * Behind the last ones there is room for some more, which are 0. */
static void place(Worker *w, const StateInfo *s, float *data, uint16_t *copy, const float *from, long first, long n)
{
    Walk range = walk(w->stage.shard, s->n, s->outer, s->room, first, n);
    Writer r = {.w = w, .data = data, .copy = copy, .kept = kept_of(s)};
    long k, begin, local, mine = part_here(&w->stage, s->room, s->n / s->outer);
    while ((k = next(&range, &begin, &local)) > 0)
        put_some(&r, local, from + begin - first, k);
    for (long stretch = 0; first + n == s->n && mine < s->room && stretch < s->outer; stretch++)
        put_some(&r, stretch * s->room + mine, NULL, s->room - mine);
    write_some(&r);
}

const Divided divided_states = {read_item, give, place};
