/* SPDX-License-Identifier: Apache-2.0
 *
 * bucket.c: gradients leave for other replicas while backward goes on.
 *
 * Problem: replicas exchange their gradients behind the last backward of a step.  The wire is idle before, and computing is
 * idle then.  But most gradients are complete well before that backward ends.
 *
 * Method: the list of a device, as comm and offload wrote it, is taken apart.  Backward of a chunk is cut into Choice.buckets
 * pieces, behind the calls that complete equal shares of the bytes of its gradients: the same calls for each micro-batch, so
 * a routine is written once.  Folds of gradient groups behind the last one are cut alike.  A bucket is what a piece of the last
 * micro-batch completes.  Behind a piece its bucket begins its way up the tree (share.c), and each gradient that was under way
 * before ends its level and begins the next one.  What is left goes on so behind backward.  Gradients come in turn, those that
 * began first, and a few at once: a queue.  It is the same on both sides of each pair, because nothing but the chunk, its calls
 * and the levels decide on it; one without a part at some level stays in turn.  Copies to the host cut backward by the times of
 * one device, and such a piece ends no bucket.  Those of tied parameters go up the tree so; the way down of their sum stays
 * where it was.  Request numbers are dealt out anew.
 *
 * No addition changes its place in the tree, so the bits stay.  Buffers of what arrives live longer.
 *
 * Source: Li et al., PyTorch Distributed: Experiences on Accelerating Data Parallel Training, VLDB 2020, section 3.2.3, for
 * buckets; the order of additions is our own.
 *
 * Cost: linear in the list, and in the calls of the last micro-batch times their operands.
 *
 * Not handled: two pipelines in a replica (Choice.early has another way), asynchronous schedules, which have no replicas.
 */
#include "transport.h"

typedef struct { Actions begin, end; } Exchange;

typedef struct { int state, number; } BucketTurn;

typedef struct {
    Plan *p;
    int device, exchanges;      /* up and down */
    const Backward *back;
    const bool *joined;         /* plan_joined() */
    Actions old, out;
    Ints *cut;                  /* [2 * chunk + 1 for W]: behind which calls */
    Exchange *exchange;         /* [state * levels + level] */
    int *ready;                 /* by state: 1 + the action that completes it; 0: it is not exchanged */
    VEC(BucketTurn) queue;
    int first;                  /* of the queue */
} Bucket;

/* ---- what is exchanged ------------------------------------------------------------------------------------------- */

static bool is_exchange(const Bucket *x, const Action *k)
{
    ActionKind kind = k->kind == K_WAIT ? k->of : k->kind;
    bool moves = kind == K_SEND || kind == K_RECV || kind == K_MERGE;
    return moves && k->state >= 0 && x->p->g->state.at[k->state].kind == S_GRAD && !(k->back && x->joined[k->state]) &&
           (kind == K_MERGE || plan_across(x->p, x->device, k));
}

/* ---- cuts ---------------------------------------------------------------------------------------------------------- */

static bool makes_weights(ActionKind kind)
{
    return kind == K_B || kind == K_W;
}

/* The gradients that a call adds to. */
static void added(const Graph *g, int op, Ints *list)
{
    list->n = 0;
    for (int i = 0; i < g->op.at[op].arg.n; i++)
        if (g->op.at[op].arg.at[i].kind == ARG_ADD)
            *PUSH(list) = g->op.at[op].arg.at[i].index;
}

/* Behind which calls of its line a computation is cut. */
static Ints cuts_of(const Bucket *x, int chunk, ActionKind kind)
{
    const Graph *g = x->p->g;
    Lines line = calls_of(x->p, &x->back[chunk], chunk, kind);
    Bytes *done = alloc(sizeof *done * (size_t)(line.n + 1)), all = 0, sum = 0;
    int *last = alloc(sizeof *last * (size_t)g->state.n);       /* 1 + the call */
    Ints list = {0}, cut = {0};
    for (int i = 0; i < line.n; i++) {
        added(g, line.at[i].op, &list);
        for (int j = 0; j < list.n; j++)
            last[list.at[j]] = i + 1;
    }
    for (int s = 0; s < g->state.n; s++) {
        done[last[s]] += last[s] ? g->state.at[s].bytes : 0;
        all += last[s] ? g->state.at[s].bytes : 0;
    }
    int parts = plan_buckets(x->p);
    for (int i = 1; i < line.n; i++) {
        Bytes before = sum;
        sum += done[i];
        if (all > 0 && sum * parts / all > before * parts / all)
            *PUSH(&cut) = i;
    }
    return cut;
}

static bool is_last(const Bucket *x, const Action *k)
{
    bool adds = makes_weights(k->kind) || k->kind == K_I || k->kind == K_FOLD;
    return adds && k->mb == plan_first(x->p, x->device, k->chunk) + plan_micro(x->p) - 1;
}

/* Does this piece of a computation complete a bucket? */
static bool ends_bucket(const Bucket *x, const Action *k)
{
    const Ints *cut = makes_weights(k->kind) ? &x->cut[2 * k->chunk + (k->kind == K_W)] : NULL;
    bool end = k->until == 0 || k->kind == K_FOLD || k->until == calls_of(x->p, &x->back[k->chunk], k->chunk, k->kind).n;
    for (int i = 0; cut && i < cut->n && !end; i++)
        end = cut->at[i] == k->until;
    return end;
}

/* The folds of all gradients that a computation of the old list completes, of which this is a piece: from there, so many. */
static int folds_behind(const Actions *old, int i, int *from)
{
    const Action *k = &old->at[i];
    int n = 0, at = i;
    for (int j = i + 1; j < old->n && (is_copy(&old->at[j]) || makes_weights(old->at[j].kind)); j++)
        if (old->at[j].kind == k->kind && old->at[j].chunk == k->chunk && old->at[j].mb == k->mb)
            at = j;
    for (*from = at + 1; *from < old->n; ++*from)
        if (old->at[*from].kind != K_SEND && old->at[*from].kind != K_RECV && !is_copy(&old->at[*from]))
            break;
    while (*from + n < old->n && old->at[*from + n].kind == K_FOLD && old->at[*from + n].fold == FOLD_ALL)
        n++;
    return n;
}

/* Operators of a line, in order: those in front of a call are below this one.  -1: the line is in another order. */
static int operators_until(const Lines *line, int call)
{
    int until = line->n > 0 ? line->at[line->n - 1].op + 1 : 0;
    for (int i = line->n - 1, after = until; i >= 0; i--) {
        if (line->at[i].again)
            continue;
        if (line->at[i].op >= after)
            return -1;
        after = line->at[i].op;
        until = i >= call ? after : until;
    }
    return until;
}

/* The folds of what operators from `first` on complete. */
static void put_folds(Bucket *x, const Action *fold, int n, int first, int until)
{
    for (int i = 0; i < n; i++) {
        Action *k = PUSH(&x->old);
        *k = fold[i];
        k->first = first;
        k->until = until;
    }
}

/* Action i of the list in pieces.  The folds behind a whole one are cut too; returns how many actions that makes. */
static int cut_action(Bucket *x, const Actions *old, int i, const Ints *cuts)
{
    Action k = old->at[i];
    Lines line = calls_of(x->p, &x->back[k.chunk], k.chunk, k.kind);
    int end = k.until == 0 ? line.n : k.until, from = i + 1, first = 0;
    bool parts = cuts->n > 0 && is_last(x, &k) && operators_until(&line, 0) >= 0;
    int folds = parts ? folds_behind(old, i, &from) : 0;
    for (int c = 0; c < cuts->n; c++) {
        int call = cuts->at[c];
        if (call > k.first && call < end) {
            k.until = call;
            *PUSH(&x->old) = k;
            put_folds(x, old->at + from, folds, first, operators_until(&line, call));
            k.first = call;
            k.until = end;
        }
        first = call <= k.first ? operators_until(&line, call) : first;
    }
    *PUSH(&x->old) = k;
    if (folds == 0)
        return 1;
    if (end < line.n) {
        put_folds(x, old->at + from, ends_bucket(x, &k) ? folds : 0, first, operators_until(&line, end));
        return 1;
    }
    for (int j = i + 1; j < from; j++)
        *PUSH(&x->old) = old->at[j];
    put_folds(x, old->at + from, folds, first, x->p->g->nb);
    return from + folds - i;
}

/* The computations of the old list, in pieces. */
static void cut_list(Bucket *x)
{
    bool *known = alloc(2 * (size_t)plan_chunks(x->p));
    Actions old = x->old;
    x->cut = alloc(sizeof *x->cut * 2 * (size_t)plan_chunks(x->p));
    x->old = (Actions){0};
    for (int i = 0, n; i < old.n; i += n) {
        const Action *k = &old.at[i];
        int at = makes_weights(k->kind) ? 2 * k->chunk + (k->kind == K_W) : -1;
        n = 1;
        if (at < 0) {
            *PUSH(&x->old) = *k;
            continue;
        }
        if (!known[at])
            x->cut[at] = cuts_of(x, k->chunk, k->kind);
        known[at] = true;
        n = cut_action(x, &old, i, &x->cut[at]);
    }
}

/* ---- when a gradient is complete ------------------------------------------------------------------------------------- */

static void complete(Bucket *x, int i)
{
    const Graph *g = x->p->g;
    const Action *k = &x->old.at[i];
    int end = i;                /* of its bucket */
    for (const Action *e = k; e->kind != k->kind || e->chunk != k->chunk || !is_last(x, e) || !ends_bucket(x, e); e++)
        end++;
    if (k->kind == K_FOLD) {
        for (int s = 0; s < g->state.n; s++)
            if (fold_takes(g, k->fold, s) && fold_in(g, k->first, k->until, s) && x->p->chunk.at[g->state.at[s].op] == k->chunk)
                x->ready[s] = i + 1;
        return;
    }
    Lines line = calls_of(x->p, &x->back[k->chunk], k->chunk, k->kind);
    Ints list = {0};
    for (int c = k->first; c < (k->until ? k->until : line.n); c++) {
        added(g, line.at[c].op, &list);
        for (int j = 0; j < list.n; j++)
            x->ready[list.at[j]] = end + 1;
    }
}

/* ---- the queue ------------------------------------------------------------------------------------------------------- */

static int under_way(const Bucket *x)
{
    return x->queue.n - x->first;
}

static void enter(Bucket *x, int state, int level)
{
    APPEND(&x->out, x->exchange[state * x->exchanges + level].begin);
    *PUSH(&x->queue) = (BucketTurn){state, level};
}

/* The first one ends its level and begins the next. */
static void turn(Bucket *x)
{
    BucketTurn t = x->queue.at[x->first++];
    APPEND(&x->out, x->exchange[t.state * x->exchanges + t.number].end);
    if (t.number + 1 < (x->joined[t.state] ? plan_levels(x->p) : x->exchanges))
        enter(x, t.state, t.number + 1);
}

/* ---- the new list ---------------------------------------------------------------------------------------------------- */

/* Messages that are begun behind a computation go first: other stages wait for them. */
static void write_list(Bucket *x, int home)
{
    int behind = -1;
    for (int i = 0; i < x->old.n; i++) {
        const Action *k = &x->old.at[i];
        if (behind >= 0 && (i == home || (k->kind != K_SEND && k->kind != K_RECV) || k->state >= 0)) {
            /* Behind action i: what it has completed begins, what was under way goes a level further. */
            int before = under_way(x);
            for (int s = 0; s < x->p->g->state.n; s++) {
                if (x->ready[s] != behind + 1)
                    continue;
                for (; 2 * under_way(x) >= MOST_REQUESTS - 2 * MERGES; before--)     /* two requests each */
                    turn(x);
                enter(x, s, 0);
            }
            for (; before > 0; before--)
                turn(x);
            behind = -1;
        }
        while (i == home && under_way(x) > 0)
            turn(x);
        *PUSH(&x->out) = *k;
        bool folds = i + 1 < x->old.n && x->old.at[i + 1].kind == K_FOLD;       /* of the same piece */
        if (is_last(x, k) && ends_bucket(x, k) && !folds)
            behind = i;
    }
}

/* ---- requests -------------------------------------------------------------------------------------------------------- */

static bool is_message(const Action *k)
{
    ActionKind kind = k->kind == K_WAIT ? k->of : k->kind;
    return kind == K_SEND || kind == K_RECV;
}

/* ... and the least that is free; false: there are not enough. */
static bool deal_requests(Bucket *x)
{
    int *of = alloc(sizeof *of * (size_t)(x->out.n + 1)), most = 0;
    bool busy[MOST_REQUESTS] = {false};
    for (EACH(Action, k, x->out)) {
        if (!is_message(k))
            continue;
        int name = k->request, n = 0;
        while (k->kind != K_WAIT && n < MOST_REQUESTS && busy[n])
            n++;
        if (n == MOST_REQUESTS)
            return false;
        of[name] = k->kind == K_WAIT ? of[name] : n;
        k->request = of[name];
        busy[of[name]] = k->kind != K_WAIT;
        most = of[name] >= most ? of[name] + 1 : most;
    }
    DevicePlan *d = &x->p->dev.at[x->device];
    d->requests = most > d->requests ? most : d->requests;
    return true;
}

/* ---- the pass -------------------------------------------------------------------------------------------------------- */

int bucket(Plan *p, int device, const Backward *back, Actions *list)
{
    Bucket x = {.p = p, .device = device, .exchanges = 2 * plan_levels(p), .back = back, .old = *list,
                .joined = plan_joined(p)};
    if (plan_buckets(p) == 1)
        return 0;
    /* The request of each message becomes a number of its own. */
    int open[MOST_REQUESTS], n = 0;
    for (EACH(Action, k, x.old)) {
        if (is_message(k) && k->kind != K_WAIT)
            open[k->request] = n++;
        if (is_message(k))
            k->request = open[k->request];
    }
    int states = p->g->state.n, home = 0;
    while (home < x.old.n && !is_exchange(&x, &x.old.at[home]))
        home++;
    x.exchange = alloc(sizeof *x.exchange * (size_t)(states * x.exchanges));
    x.ready = alloc(sizeof *x.ready * (size_t)states);
    /* Takes the exchanges out of the list. */
    int kept = 0;
    for (EACH(const Action, k, x.old)) {
        if (!is_exchange(&x, k)) {
            x.old.at[kept++] = *k;
            continue;
        }
        int level = k->back ? 2 * plan_levels(p) - 1 - k->tree_level : k->tree_level;
        Exchange *at = &x.exchange[k->state * x.exchanges + level];
        *PUSH(k->kind == K_SEND || k->kind == K_RECV ? &at->begin : &at->end) = *k;
    }
    x.old.n = kept;
    int rest = x.old.n - home;          /* nothing there is cut */
    cut_list(&x);
    for (int i = 0; i < x.old.n; i++)
        if (is_last(&x, &x.old.at[i]))
            complete(&x, i);
    write_list(&x, x.old.n - rest);
    if (!deal_requests(&x))
        return 1;
    *list = x.out;
    return 0;
}
