/* SPDX-License-Identifier: Apache-2.0
 *
 * order.c: is a set of lists a legal schedule, whoever made it?
 *
 * Method: nothing here knows a schedule.  The lists are replayed, and these rules hold or dpgen has a bug:
 *
 *   once       each (chunk, micro-batch) has one F, and one B or one I and then one W, on the chunk's device
 *   before     F after F of the chunk before, B or I after that of the chunk behind and after its own F, W after I
 *   alive      the replay ends.  A device takes a message when it comes to the action that reads it.  The number of messages
 *              that must be under way at once is for the list to say; check_comm proves that the jobs never wait in a circle
 *   aligned    messages between two chunks are taken in the order in which they are made
 *   chain      W of a chunk is ascending in micro-batches; the accumulators, replayed as the ranges they hold, end with
 *              the whole step in slot 0, every group an ascending chain, every fold of two equal neighbours
 *   merge      two rows exchange their sums of a chunk at the same place of their lists: equal neighbours of the
 *              tree, and both hold the joined sum from then on
 *   share      behind all merges of a chunk, down the levels, two rows are at the same place of their lists again
 *   update     parts 0, 1, 2, with train.shard 0, 4, 1, 2, 3, in this order, once a chunk and step, after all its W
 *   version    forward and backward of a micro-batch read the version that the rule of the schedule promises, when it is made
 *              and while it is one of delay + 1 copies; an update makes version t+1 of version t, and copies that first;
 *              where the rule predicts, a prediction of that version has been made
 *
 * An asynchronous list is replayed as runs of one step up to a few more than the pieces hold, micro-batches numbered through.
 * Each row, a copy of the model, has chunks and messages of its own; only merges and shares join them.
 *
 * The second row is the data dependence of a chain of chunks.
 *
 * Cost: linear in actions times devices.
 * Not handled: tensors that skip chunks.  check_comm checks them, where messages exist.
 */
#include "check.h"

typedef struct { int64_t from, to; } OrderRange; /* micro-batches summed; from == to: empty */
typedef struct { int *mb, made, taken; } OrderChannel;  /* messages in order; the first `taken` have been read */

typedef struct {
    const Plan *p;
    Actions *list;              /* by device: the run */
    int m, chunks, slots;       /* micro-batches of the run */
    unsigned char *done;        /* [chunk * m + mb]: bits of F, B, I, W */
    OrderChannel *down, *up;    /* by chunk of all rows: to the next one, to the one before */
    OrderRange *sum;            /* [(chunk of all rows * 2 + step % 2) * slots + slot] */
    int *last_w, *update;       /* by chunk of all rows: last micro-batch, next part of the update */
    int *made;                  /* by chunk of all rows: the newest version */
    int *copies;                /* by chunk: versions that it keeps */
    bool *copied;               /* by chunk of all rows: it may be updated */
    int *predicted;             /* by chunk of all rows, for backward and forward: the newest version */
    int *next;                  /* by device */
    bool *merged;               /* by device: its partner has done the merge or share at hand */
    int *shared[4];             /* [Action.group], by chunk of all rows: levels of the tree down which that was shared */
    bool ties;                  /* rows add the uses of some parameter in parts */
    int device, copy, first, base;  /* at hand: its row of Plan.home, and first micro-batch; that row's chunk 0, of all rows */
    int sums;                   /* ... and chunk 0 of the first row that has the device */
} OrderCheck;

enum { DONE_F = 1, DONE_B = 2, DONE_I = 4, DONE_W = 8 };

static void wrong(const Action *k, const char *what)
{
    die("check_order: chunk %d, micro-batch %d: %s", k->chunk, k->mb, what);
}

static unsigned char done(const OrderCheck *x, int chunk, int mb)
{
    return x->done[chunk * x->m + mb];
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

static bool crosses(const OrderCheck *x, int a, int b)
{
    return a >= 0 && b >= 0 && a < x->chunks && b < x->chunks && plan_home(x->p, x->copy, a) != plan_home(x->p, x->copy, b);
}

/* Can this action read the result of chunk `from`?  It was made on this device, or its message is the next one. */
static bool arrived(const OrderCheck *x, const Action *k, int from, const OrderChannel *c, unsigned char bits)
{
    if (from < 0 || from >= x->chunks)
        return true;
    if (!crosses(x, from, k->chunk)) {
        if (!(done(x, from, k->mb) & bits))
            wrong(k, "comes before what it reads, on its own device");
        return true;
    }
    if (c->taken < c->made && c->mb[c->taken] != k->mb)
        wrong(k, "reads another message than the next one");
    return c->taken < c->made;
}

/* Takes the message that is read and leaves the one that is made.  False: another device must be waited for. */
static bool exchange(OrderCheck *x, const Action *k, int from, OrderChannel *in, int to, OrderChannel *out, unsigned char bits)
{
    if (!arrived(x, k, from, in, bits))
        return false;
    if (crosses(x, from, k->chunk))
        in->taken++;
    if (!crosses(x, k->chunk, to))
        return true;
    if (!out->mb)
        out->mb = alloc(sizeof *out->mb * (size_t)x->m);
    if (out->made == x->m)
        wrong(k, "sends more messages than there are micro-batches");
    out->mb[out->made++] = k->mb;
    return true;
}

/* ---- accumulators ------------------------------------------------------------------------------------------------ */

/* The range in an accumulator of the action's step.  Those of the next step are others. */
static OrderRange *sum_of(OrderCheck *x, const Action *k, int slot)
{
    if (slot < 0 || slot >= x->slots)
        wrong(k, "its accumulator is not one of 1 + log2(groups) of each row");
    return &x->sum[((x->sums + k->chunk) * 2 + k->step % 2) * x->slots + slot];
}

static void add(OrderCheck *x, const Action *k)
{
    int64_t size = x->p->g->micro / x->p->g->groups;
    OrderRange *s = sum_of(x, k, k->group);
    int at = k->mb - k->step * (int)x->p->g->micro - x->first + k->step * plan_micro(x->p);
    if (at != ++x->last_w[x->base + k->chunk])
        wrong(k, "weight gradients are not in ascending order");
    if (k->acc != (k->mb % size != 0))
        wrong(k, "a chain begins where a group begins, and only there");
    if (k->acc ? s->to != k->mb || s->from / size != k->mb / size : s->from != s->to)
        wrong(k, "is added to an accumulator that holds something else");
    if (!k->acc)
        s->from = k->mb;
    s->to = k->mb + 1;
}

static void fold(OrderCheck *x, const Action *k)
{
    int64_t size = x->p->g->micro / x->p->g->groups;
    OrderRange *from = sum_of(x, k, k->group), *into = sum_of(x, k, k->into);
    if (into->to != from->from || into->to - into->from != from->to - from->from || from->from == from->to
        || (from->to - from->from) % size != 0)
        wrong(k, "folds two accumulators that are not equal neighbours");
    into->to = from->to;
    from->from = from->to = 0;
}

/* Of an update: with train.shard also the sums of blocks, and the copies of parameters at the end.  Where rows add ties in
 * parts, those come first. */
static const UpdatePart *sequence(const OrderCheck *x)
{
    static const UpdatePart plain[] = {U_TIES, U_GATHER, U_NORM, U_STEP, U_NONE},
                            sharded[] = {U_TIES, U_GATHER, U_SUMS, U_NORM, U_STEP, U_COPIES, U_NONE};
    return (x->p->m->train.shard ? sharded : plain) + !x->ties;
}

static int parts(const OrderCheck *x)
{
    int n = 0;
    while (sequence(x)[n] != U_NONE)
        n++;
    return n;
}

static bool is_merge(const OrderCheck *x, int device, const Action *k)
{
    const Actions *list = &x->list[device];
    const Action *y = x->next[device] < list->n ? &list->at[x->next[device]] : NULL;
    return y && y->kind == k->kind && y->state == k->state && y->group == k->group && y->chunk == k->chunk &&
           y->variant == k->variant && y->from_device == x->device;
}

static int depth(const OrderCheck *x, const Action *k)
{
    return plan_depth(x->p, k->chunk);
}

/* Both sides at once, when both are there.  The other side then finds it done. */
static bool meets(OrderCheck *x, const Action *k, bool *first)
{
    int other = k->from_device, level = k->tree_level, turns = plan_turns(x->p, k->chunk);
    if (level < 0 || level >= depth(x, k) || other != plan_home(x->p, (x->copy / turns ^ 1 << level) * turns, k->chunk))
        wrong(k, "is merged with something else than its neighbour at that level");
    *first = !x->merged[x->device];
    if (*first && (x->merged[other] || !is_merge(x, other, k)))     /* merged: that is the exchange before this one */
        return false;
    x->merged[*first ? other : x->device] = *first;
    return true;
}

/* Every row has summed up, or updated, a part of the whole, and both hand on what they have. */
static bool share(OrderCheck *x, const Action *k)
{
    bool first;
    int at = x->base + k->chunk, what = k->group, done = x->update[at] % parts(x);
    if (what < 0 || what > 3)
        wrong(k, "shares nothing that there is");
    if (!meets(x, k, &first))
        return false;
    if (what == 3) {            /* check_mem replays what is read of it */
        if (k->tree_level != depth(x, k) - 1 - x->shared[what][at]++ % depth(x, k))
            wrong(k, "fills a room in another order than down the tree");
        return true;
    }
    const OrderRange *sum = sum_of(x, k, 0);
    bool whole = sum->to - sum->from == x->p->g->micro;
    bool ready = what == 1 ? done == 4 + x->ties : whole && (what == 0 || done == 1);
    if (!ready || k->tree_level != depth(x, k) - 1 - x->shared[what][at]++)
        wrong(k, "is shared before it is whole, or in another order than down the tree");
    return true;
}

static bool merge(OrderCheck *x, const Action *k)
{
    bool first;
    if (!meets(x, k, &first))
        return false;
    if (k->state >= 0 && x->update[x->base + k->chunk] % parts(x) != 1 + x->ties)
        wrong(k, "blocks are merged before they are all there, or too late");
    if (!first || k->state >= 0)        /* check_mem replays those of blocks */
        return true;
    int turns = plan_turns(x->p, k->chunk), row = (x->copy / turns ^ 1 << k->tree_level) * turns * x->chunks;
    OrderRange *mine = sum_of(x, k, 0), *theirs = &x->sum[((row + k->chunk) * 2 + k->step % 2) * x->slots];
    OrderRange *low = mine->from < theirs->from ? mine : theirs, *high = low == mine ? theirs : mine;
    int64_t size = low->to - low->from, from = low->from - k->step * x->p->g->micro;
    if (low->to != high->from || high->to - high->from != size || size == 0 || from % (2 * size))
        wrong(k, "merges two sums that are not equal neighbours of the tree");
    *low = *high = (OrderRange){low->from, high->to};
    return true;
}

static void update(OrderCheck *x, const Action *k)
{
    OrderRange *all = sum_of(x, k, 0);
    int64_t m = x->p->g->micro;
    int at = x->base + k->chunk, done = x->update[at]++;
    bool summed = all->from == k->step * m && all->to == (k->step + 1) * m && x->shared[0][at] == depth(x, k);
    if (k->update != U_COPIES && !summed)
        wrong(k, "is updated before the gradient is whole");
    if (x->ties && k->update != U_TIES && k->update != U_COPIES && x->shared[2][at] != depth(x, k))
        wrong(k, "is updated before each row has the sum of ties");
    if (k->step != done / parts(x) || k->update != (int)sequence(x)[done % parts(x)])
        wrong(k, "the parts of its update are not in order");
    if (k->update == U_COPIES && x->shared[1][at] != depth(x, k))
        wrong(k, "is copied before each row has all of it");
    if (k->update == U_COPIES)
        x->shared[1][at] = 0;
    if (k->update != U_STEP)
        return;
    if (k->version != x->made[at]++ || x->copied[at] != (order_copies(x->p, k->chunk) > 1))
        wrong(k, "is updated from another version than the newest, or without keeping that");
    x->copied[at] = false;
    *all = (OrderRange){0, 0};
    x->shared[0][at] = x->shared[2][at] = 0;
}

/* ---- versions ---------------------------------------------------------------------------------------------------- */

static void read_version(const OrderCheck *x, const Action *k)
{
    int promised = schedule_of(x->p->schedule)->async ? order_version(x->p, k->chunk, k->kind, k->mb) : k->step;
    int copies = x->copies[k->chunk], made = x->made[x->sums + k->chunk], reads = k->version > 0 ? k->version : 0;
    if (k->version != promised)
        die("check_order: chunk %d, micro-batch %d reads version %d of the weights, and schedule %s promises %d", k->chunk,
            k->mb, k->version, x->p->schedule, promised);
    if (reads > made)
        die("check_order: chunk %d, micro-batch %d reads version %d of the weights, which is not made yet: the newest is %d",
            k->chunk, k->mb, reads, made);
    bool forward = k->kind == K_F || !order_apart(x->p);
    if (reads > 0 && order_ahead(x->p, k->chunk, k->kind) > 0 && x->predicted[2 * (x->sums + k->chunk) + forward] < reads)
        wrong(k, "reads weights that are not predicted yet");
    if (made - reads >= copies)
        die("check_order: chunk %d, micro-batch %d reads version %d of the weights, which is overwritten: there are %d copies, "
            "the newest is %d", k->chunk, k->mb, reads, copies, made);
}

static void copy_version(OrderCheck *x, const Action *k)
{
    int at = x->base + k->chunk;
    if (x->copied[at] || k->version != x->made[at])
        wrong(k, "copies another version than the newest");
    x->copied[at] = true;
}

/* Right behind its update: the version before is still there. */
static void predict(OrderCheck *x, const Action *k)
{
    int at = x->base + k->chunk, *newest = &x->predicted[2 * at + (k->forward == 1)];
    if (k->version != x->made[at] || k->version != *newest + 1 || k->forward < 0 || k->forward > 1 || x->copied[at])
        wrong(k, "predicts from another version than the newest, or that one twice");
    *newest = k->version;
}

/* ---- the replay -------------------------------------------------------------------------------------------------- */

static bool forward(OrderCheck *x, const Action *k)
{
    int c = k->chunk;
    read_version(x, k);
    OrderChannel *down = x->down + x->base;
    if (!exchange(x, k, c - 1, c > 0 ? &down[c - 1] : NULL, c + 1, &down[c], DONE_F))
        return false;
    if (done(x, c, k->mb))
        wrong(k, "has two forwards");
    x->done[c * x->m + k->mb] |= DONE_F;
    return true;
}

static bool backward(OrderCheck *x, const Action *k)
{
    int c = k->chunk;
    read_version(x, k);
    OrderChannel *up = x->up + x->base;
    if (!exchange(x, k, c + 1, &up[c + 1], c - 1, &up[c], DONE_B | DONE_I))
        return false;
    if (done(x, c, k->mb) != DONE_F)
        wrong(k, "backward needs one forward, and no backward before");
    x->done[c * x->m + k->mb] |= k->kind == K_B ? DONE_B : DONE_I;
    if (k->kind == K_B)
        add(x, k);
    return true;
}

/* False: it waits for another device. */
static bool replay(OrderCheck *x, int device, const Action *k)
{
    if (k->chunk < 0 || k->chunk >= x->chunks || !plan_holds(x->p, device, k->chunk))
        die("check_order: an action of chunk %d on device %d", k->chunk, device);
    x->device = device;
    x->copy = plan_row_of(x->p, device, k->chunk);
    x->sums = x->copy * x->chunks;
    int mb = k->mb - k->step * (int)x->p->g->micro;
    if (k->mb >= 0 && plan_turns(x->p, k->chunk) > 1 && mb / plan_micro(x->p) / plan_turns(x->p, k->chunk) ==
        x->copy / plan_turns(x->p, k->chunk))
        x->copy = mb / plan_micro(x->p);
    x->first = x->copy * plan_micro(x->p);
    x->base = x->copy * x->chunks;
    bool whole = k->kind == K_U || k->kind == K_VERSION || k->kind == K_MERGE || k->kind == K_SHARE ||
                 k->kind == K_PREDICT || k->kind == K_ROOM;
    if (!whole && (k->mb >= x->m || mb < x->first || mb >= x->first + plan_micro(x->p)))
        wrong(k, "is not one of its micro-batches");
    switch (k->kind) {
    case K_F:
        return forward(x, k);
    case K_B:
    case K_I:
        return backward(x, k);
    case K_W:
        if (done(x, k->chunk, k->mb) != (DONE_F | DONE_I))
            wrong(k, "W needs one I");
        x->done[k->chunk * x->m + k->mb] |= DONE_W;
        add(x, k);
        return true;
    case K_FOLD:
        if (k->fold != FOLD_I)          /* check_mem replays those that I adds to */
            fold(x, k);
        return true;
    case K_VERSION:
        copy_version(x, k);
        return true;
    case K_PREDICT:
        predict(x, k);
        return true;
    case K_MERGE:
        return merge(x, k);
    case K_SHARE:
        return share(x, k);
    case K_ROOM:
        return true;
    case K_U:
        if (k->update != U_ROOMS)
            update(x, k);
        return true;
    default:
        wrong(k, "is no action of an order");
        return false;
    }
}

/* The lists of a run, micro-batches numbered through. */
static Actions *runs_of(const Plan *p, int steps)
{
    Actions *run = alloc(sizeof *run * (size_t)p->devices);
    for (int d = 0; d < p->devices; d++) {
        run[d] = order_run(p, &p->dev.at[d].order, steps);
        for (int i = 0; i < run[d].n; i++) {
            Action k = run[d].at[i];
            k.mb += k.mb < 0 ? 0 : k.step * (int)p->g->micro;
            run[d].at[i] = k;
        }
    }
    return run;
}

static void open_check(OrderCheck *x, const Plan *p, int steps)
{
    *x = (OrderCheck){.p = p, .list = runs_of(p, steps), .m = (int)p->g->micro * steps, .chunks = plan_chunks(p), .slots = 1};
    for (int64_t n = p->g->groups / plan_rows(p); n > 1; n >>= 1)
        x->slots++;
    int most = 1;
    for (int c = 0; c < x->chunks; c++)
        most = plan_turns(p, c) > most ? plan_turns(p, c) : most;
    x->slots *= most;
    size_t chunks = (size_t)(x->chunks * plan_rows(p));
    x->done = alloc((size_t)x->chunks * (size_t)x->m);
    x->down = alloc(sizeof(OrderChannel) * (chunks + 1));
    x->up = alloc(sizeof(OrderChannel) * (chunks + 1));
    x->sum = alloc(sizeof(OrderRange) * chunks * (size_t)x->slots * 2);
    x->made = alloc(sizeof(int) * chunks);
    x->copies = alloc(sizeof(int) * chunks);
    x->copied = alloc(chunks);
    x->predicted = alloc(sizeof(int) * 2 * chunks);
    x->last_w = alloc(sizeof(int) * chunks);
    x->update = alloc(sizeof(int) * chunks);
    for (int what = 0; what < 4; what++)
        x->shared[what] = alloc(sizeof(int) * chunks);
    for (int o = p->g->nb; o < p->g->op.n; o++)
        x->ties |= value_joins(p, &p->g->op.at[o]);
    for (int s = 0; s < p->g->state.n; s++)
        x->ties |= p->g->state.at[s].kind == S_PARAM && p->m->train.shard && value_joined(p, s);
    x->next = alloc(sizeof(int) * (size_t)p->devices);
    x->merged = alloc((size_t)p->devices);
    for (size_t c = 0; c < chunks; c++)
        x->last_w[c] = -1;
    for (int c = 0; c < x->chunks; c++)
        x->copies[c] = order_delay(p, c) + 1;
}

/* Of a micro-batch in a chunk; without a backward forward is. */
static bool is_all(bool infers, unsigned char done)
{
    return infers ? done == DONE_F : done == (DONE_F | DONE_B) || done == (DONE_F | DONE_I | DONE_W);
}

static void check_run(const Plan *p, int steps)
{
    OrderCheck x;
    open_check(&x, p, steps);
    for (bool moved = true; moved;) {
        moved = false;
        for (int d = 0; d < p->devices; d++) {
            const Actions *list = &x.list[d];
            for (; x.next[d] < list->n && replay(&x, d, &list->at[x.next[d]]); x.next[d]++)
                moved = true;
        }
    }
    for (int d = 0; d < p->devices; d++)
        if (x.next[d] < x.list[d].n)
            die("check_order: device %d waits for ever at action %d of %d", d, x.next[d], x.list[d].n);
    bool infers = schedule_of(p->schedule)->infers;
    for (int c = 0; c < x.chunks * plan_rows(p) && !infers; c++)
        if (c / x.chunks % plan_turns(p, c % x.chunks) == 0 && x.update[c] != parts(&x) * steps)
            die("check_order: chunk %d has %d parts of the update, not %d", c % x.chunks, x.update[c], parts(&x) * steps);
    for (int c = 0; c < x.chunks; c++)
        for (int k = 0; k < x.m; k++)
            if (!is_all(infers, done(&x, c, k)))
                die("check_order: chunk %d, micro-batch %d: not all of F and B, or F, I and W", c, k);
}

/* In a run of `overlap` steps prologue and epilogue meet; three more have the steady state, and every piece beside itself. */
void check_order(const Plan *p)
{
    int overlap = order_overlap(p);
    if (overlap == 0)
        check_run(p, 1);
    for (int steps = 1; overlap > 0 && steps <= overlap + 3; steps++)
        check_run(p, steps);
}
