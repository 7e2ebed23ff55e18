/* SPDX-License-Identifier: Apache-2.0
 *
 * team.c: the devices of a stage that share its operators.
 *
 * Problem: sums over devices with the bits of one device, and states that files and hashes have whole.
 *
 * Method.  Device d has neighbouring blocks of each divided sum, so a whole subtree (docs/bits.md).  The upper levels are
 * messages: at level k it swaps what it has with device d xor 2^k, and both add.  Addition is commutative, so all have the same
 * bits (recursive doubling: R. Thakur, R. Rabenseifner, W. Gropp, Optimization of Collective Communication Operations in MPICH,
 * 2005).  Libraries choose an order of their own by size and number, so none is asked.
 *
 * Where rows are divided too, each device keeps its own rows of a sum, and sends half of what is left at each level (recursive
 * halving); the same way back gathers rows.
 *
 * A state leaves through the first device of its stage: the others send it their parts, piece by piece.
 *
 * Cost: log2 of the devices times the bytes of a sum.  Not handled: GPUs, which have memory of their own, and a sum that other
 * work hides.
 */
#include "team.h"
#include <string.h>
#include "link.h"
#include "meet.h"
#include "real.h"
#include "run.h"

static int peer_of(const Stage *st, int shard)
{
    return st->index + (shard - st->shard) * st->apart;
}

static void wait_for(Stage *st, int peer, bool sending, void *half)
{
    stage_waits(st, sending ? -1 - peer : 1 + peer);
    link_wait(st, half);
    stage_waits(st, 0);
}

static void one_way(Stage *st, int with, bool sending, void *buffer, long bytes)
{
    int peer = peer_of(st, with);
    wait_for(st, peer, sending, link_begin(st, TEAM_REQUEST + !sending, sending, buffer, peer, 0, bytes));
}

static void swap(Stage *st, int with, const void *mine, long out, void *theirs, long in)
{
    int peer = peer_of(st, with);
    void *sent = out ? link_begin(st, TEAM_REQUEST, 1, (void *)(uintptr_t)mine, peer, 0, out) : NULL;
    void *got = in ? link_begin(st, TEAM_REQUEST + 1, 0, theirs, peer, 0, in) : NULL;
    if (sent)
        wait_for(st, peer, true, sent);
    if (got)
        wait_for(st, peer, false, got);
}

static void sum(Stage *st, float *x, long n)
{
    float theirs[TEAM_PIECE];
    for (long from = 0; from < n; from += TEAM_PIECE) {
        long k = n - from < TEAM_PIECE ? n - from : TEAM_PIECE;
        for (int level = 1; level < st->shards; level *= 2) {
            swap(st, st->shard ^ level, x + from, k * (long)sizeof *theirs, theirs, k * (long)sizeof *theirs);
            for (long i = 0; i < k; i++)
                x[from + i] += theirs[i];
        }
    }
}

static long at_least(long a, long b) { return a > b ? a : b; }
static long at_most(long a, long b) { return a < b ? a : b; }

/* Level by level as in sum(), so each element has the same tree.  Devices that are alike in the bits of the levels so far share
 * elements that are not whole yet: each sends its partner those that the partner keeps, half of them. */
static void sum_part(Stage *st, float *x, long n, long all)
{
    float theirs[TEAM_PIECE];
    for (long level = 1; level < st->shards; level *= 2)
        for (long part = st->shard % (2 * level); part < st->shards; part += 2 * level)
            for (long from = 0; from < n; from += TEAM_PIECE) {
                long k = at_most(TEAM_PIECE, n - from), mine = at_most(part * n + from, all);
                long away = at_most((part ^ level) * n + from, all), in = at_most(k, all - mine);
                swap(st, st->shard ^ (int)level, x + away, at_most(k, all - away) * (long)sizeof *theirs, theirs,
                     in * (long)sizeof *theirs);
                for (long i = 0; i < in; i++)
                    x[mine + i] += theirs[i];
            }
}

/* The way back: at each level a device has twice as many parts. */
static void gather(Stage *st, void *x, const long *from)
{
    const long piece = TEAM_PIECE * (long)sizeof(float);
    unsigned char *all = x;
    for (long level = st->shards / 2; level > 0; level /= 2)
        for (long part = st->shard % (2 * level); part < st->shards; part += 2 * level) {
            long mine = from[part], theirs = from[part ^ level], out = from[part + 1] - mine;
            long in = from[(part ^ level) + 1] - theirs;
            for (long at = 0; at < out || at < in; at += piece)
                swap(st, st->shard ^ (int)level, all + at_most(mine + at, mine + out), at_least(0, at_most(piece, out - at)),
                     all + at_most(theirs + at, theirs + in), at_least(0, at_most(piece, in - at)));
        }
}

static void take(Stage *st, void *x, long bytes)
{
    unsigned char theirs[TEAM_PIECE * sizeof(float)], *mine = x;
    for (long from = 0; from < bytes; from += (long)sizeof theirs) {
        long k = bytes - from < (long)sizeof theirs ? bytes - from : (long)sizeof theirs;
        for (int level = 1; level < st->shards; level *= 2) {
            swap(st, st->shard ^ level, mine + from, k, theirs, k);
            for (long i = 0; i < k; i++)
                mine[from + i] |= theirs[i];
        }
    }
}

/* ---- parts ------------------------------------------------------------------------------------------------------- */

typedef struct { long run, each; int shard; long at, end; } Walk;       /* over elements at .. end-1 of the whole */

/* The next elements that lie together on the device, and where there; 0: there are no more. */
static long next(Walk *w, long *begin, long *local)
{
    while (w->at < w->end) {
        long stretch = w->at / w->run, in = w->at % w->run, first = w->shard * w->each;
        long stop = in < first ? first : in < first + w->each ? first + w->each : w->run;
        long n = (stop < w->run ? stop : w->run) - in;
        bool here = in >= first && in < first + w->each;
        *begin = w->at;
        *local = stretch * w->each + in - first;
        n = n < w->end - w->at ? n : w->end - w->at;
        w->at += n;
        if (here)
            return n;
    }
    return 0;
}

/* Elements from .. until-1 that a device has: into `to` side by side, or from there to their places in `whole`, which begins
 * with element `from`.  How many. */
static long pack(float *to, float *whole, const float *data, Walk w)
{
    long n, begin, local, count = 0, from = w.at;
    for (; (n = next(&w, &begin, &local)) > 0; count += n)
        if (data)
            memcpy(to + count, data + local, (size_t)n * sizeof *to);
        else if (whole)
            memcpy(whole + (begin - from), to + count, (size_t)n * sizeof *to);
    return count;
}

static Walk walk(int shard, long whole, long outer, long room, long from, long n)
{
    long end = from + n < whole ? from + n : whole;
    return (Walk){whole / outer, room, shard, from, from < end ? end : from};
}

static void deal(Stage *st, float *to, const float *g, long whole, long outer, long room, long from, long step, long n)
{
    float mine[TEAM_PIECE], theirs[TEAM_PIECE];
    for (int with = 0; with < st->shards; with++) {
        int d = st->shard ^ with;
        Walk away = walk(st->shard, whole, outer, room, from + d * step, n);
        Walk here = walk(d, whole, outer, room, from + st->shard * step, n);
        long out = pack(mine, NULL, g, away), in = pack(NULL, NULL, NULL, here);
        if (with == 0)
            memcpy(theirs, mine, (size_t)out * sizeof *mine);
        if (with)
            swap(st, d, mine, out * (long)sizeof *mine, theirs, in * (long)sizeof *mine);
        pack(theirs, to, NULL, here);
    }
}

/* ---- states leave ------------------------------------------------------------------------------------------------ */

/* Side by side what this device has of the elements of a walk, as floats. */
static long pack_item(float *to, const Worker *w, const Item *item, Walk walk)
{
    const float *data = item_data(w, item);
    const uint16_t *copy = item_copy(w, item);
    long n, begin, local, count = 0;
    if (data)
        return pack(to, NULL, data, walk);
    for (; (n = next(&walk, &begin, &local)) > 0; count += n)
        init_widen(to + count, copy + local, n);
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
        long k = from + n - at < TEAM_PIECE ? from + n - at : TEAM_PIECE;
        for (int d = 0; d < st->shards; d++) {
            Walk range = walk(d, s->n, s->outer, s->room, at, k);
            long count = d == st->shard ? pack_item(part, w, item, range) : pack(NULL, NULL, NULL, range);
            if (count && d == st->shard && d > 0)
                one_way(st, 0, true, part, count * (long)sizeof *part);
            if (count && st->shard == 0 && d > 0)
                one_way(st, d, false, part, count * (long)sizeof *part);
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

static bool give(Worker *w, const Item *item, bool (*take)(void *to, long begin, const float *x, long n), void *to)
{
    const Job *job = w->run->job;
    if (home_at(job, w->stage.index) != item->stage)
        return true;
    Item here = *item;
    here.state = &w->info->state[item->state - job->stage[item->stage].state];
    const StateInfo *s = here.state;
    const Kept kept = kept_of(s);
    Walk range = walk(w->stage.shard, s->n, s->outer, s->room, 0, s->cut || replica_of(w) == 0 ? s->n : 0);
    const float *data = item_data(w, &here);
    const uint16_t *copy = item_copy(w, &here);
    float piece[TEAM_PIECE];
    long n, begin, local;
    while ((n = next(&range, &begin, &local)) > 0)
        for (long at = at_least(local, kept.from), k; at < at_most(local + n, kept.until); at += k) {
            k = at_most(at_most(local + n, kept.until) - at, TEAM_PIECE);
            if (!data)
                init_widen(piece, copy + at, k);
            if (!take(to, begin + at - local, data ? data + at - kept.base : piece, k))
                return false;
        }
    return true;
}

/* ---- states come ------------------------------------------------------------------------------------------------- */

/* Of elements first .. first+n-1 of the whole at `from`: those that this device keeps, into `data` and, rounded, into `copy`.
 * Behind the last ones there is room for some more, which are 0. */
static void place(Worker *w, const StateInfo *s, float *data, uint16_t *copy, const float *from, long first, long n)
{
    Walk range = walk(w->stage.shard, s->n, s->outer, s->room, first, n);
    const Kept kept = kept_of(s);
    long k, begin, local, mine = part_here(&w->stage, s->room, s->n / s->outer);
    while ((k = next(&range, &begin, &local)) > 0) {
        long at = at_least(local, kept.from), until = at_most(local + k, kept.until);
        if (data && at < until)
            memcpy(data + at - kept.base, from + (begin - first + at - local), (size_t)(until - at) * sizeof *data);
        for (long i = 0; copy && i < k; i++)
            copy[local + i] = float_bf16(from[begin - first + i]);
    }
    for (long stretch = 0; first + n == s->n && mine < s->room && stretch < s->outer; stretch++) {
        long end = (stretch + 1) * s->room, until = at_most(end, kept.until);
        long at = at_least(stretch * s->room + mine, kept.from);
        if (data && at < until)
            memset(data + at - kept.base, 0, (size_t)(until - at) * sizeof *data);
        if (copy)
            memset(copy + end - (s->room - mine), 0, (size_t)(s->room - mine) * sizeof *copy);
    }
}

const Team team_links = {sum, sum_part, gather, take, swap, deal, read_item, give, place};
