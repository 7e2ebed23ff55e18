/* SPDX-License-Identifier: Apache-2.0
 *
 * order.c: the computations of each device in a step, and their order.
 *
 * Problem: a schedule (one file each beside this one) lists forward and backward actions over (chunk, micro-batch) and nothing
 * else.  The rules that hold for all of them are added here, so that no schedule can get them wrong: the gradient accumulator
 * of each micro-batch, the folds of accumulators, and the update at the end.
 *
 *   needs   devices, chunks, schedule; micro and groups of the graph
 *   fills   dev[].device, dev[].order, home
 *   keeps   W ascending in micro-batches for each chunk, whatever the schedule does: check_order proves it
 *   fails   nonzero if the schedule cannot be made of these numbers
 *
 * Method: the sum of gradients is part of the model, not of the plan.  `groups` cuts the micro-batches into contiguous groups
 * of equal size.  Inside a group they are added in ascending order, over the groups by a fixed binary tree.  The number of
 * groups is a power of two, so a binary counter walks the tree.  Group j sums into slot popcount(j).  When it is complete, as
 * many folds follow as j has trailing ones.  At most 1 + log2(groups) accumulators live at once.  Slot 0 ends up with the
 * whole, or with the sum over the groups of a replica.  replica.c does the rest of the tree.
 *
 * Cost: time and size linear in the actions.
 */
#include "sched.h"

#define LATER(word)
/* By the row of schedules[]: the lists of all devices, or nonzero. */
static int (*const makers[])(Plan *p) = {
#define SCHEDULE(word, make, ...) make,
#include "schedules.def"
};

Action *sched_put(Plan *p, int device, ActionKind kind, int chunk, int mb)
{
    Action *to = PUSH(&p->dev.at[device].order), k = action_new(kind, 0, mb);
    k.chunk = chunk;
    k.slot = -1;
    *to = k;
    return to;
}

static int ones(int64_t j)
{
    int n = 0;
    for (; j; j &= j - 1)
        n++;
    return n;
}

/* An operator adds to a gradient of weights with its input gradient. */
static bool joint(const Graph *g)
{
    for (int o = g->nf; o < g->nb; o++)
        for (int i = 0; g->op.at[o].phase == PH_I && i < g->op.at[o].arg.n; i++)
            if (g->op.at[o].arg.at[i].kind == ARG_ADD && g->state.at[g->op.at[o].arg.at[i].index].kind == S_GRAD)
                return true;
    return false;
}

static void fold(Plan *p, int device, const Action *of, Fold part, int from, int into)
{
    Action *k = sched_put(p, device, K_FOLD, of->chunk, of->mb);
    k->group = from;
    k->into = into;
    k->fold = (int)part;
    k->piece = of->piece;
    k->step = k->version = of->step;
}

/* The accumulator of a weight gradient, and the folds once its group is complete.  I has both too, if there are weights whose
 * gradient one kernel makes with the input gradient. */
static void accumulate(Plan *p, int device, Action *k)
{
    int64_t size = p->g->micro / p->g->groups, j = k->mb % plan_micro(p) / size;      /* of its row */
    int mb = k->mb, each = order_accumulators(p, -1), row = mb / plan_micro(p) % plan_turns(p, k->chunk);
    int slot = row * each + ones(j);
    const Action of = *k;
    k->group = slot;
    k->acc = mb % size != 0;
    if (mb % size != size - 1 || (of.kind == K_I && !joint(p->g)))
        return;
    Fold part = of.kind == K_B || !joint(p->g) ? FOLD_ALL : of.kind == K_I ? FOLD_I : FOLD_W;
    for (; j & 1; j >>= 1, slot--)
        fold(p, device, &of, part, slot, slot - 1);
    /* The rows of the device, each with its sum in its first accumulator: every row ends behind the one before it. */
    bool ends = mb % plan_micro(p) == plan_micro(p) - 1;
    for (int step = 1; ends && row & step; step *= 2)
        fold(p, device, &of, part, (row & -step) * each, (row & -2 * step) * each);
}

/* One level of an exchange between rows: of the chunk, or of all that the device holds: -1.  what: Action.group. */
static void exchange(Plan *p, int device, ActionKind kind, int chunk, int level, int what)
{
    for (int c = 0; c < plan_chunks(p); c++)
        if ((chunk < 0 ? plan_holds(p, device, c) : c == chunk) && level < plan_depth(p, c)) {
            Action *k = sched_put(p, device, kind, c, -1);
            k->tree_level = level;
            k->group = what;
        }
}

/* what: Action.group */
static void share(Plan *p, int device, int chunk, int what)
{
    for (int level = plan_levels(p); level-- > 0;)
        exchange(p, device, K_SHARE, chunk, level, what);
}

/* Up the tree, where each row keeps a part, and down again, until each has all of it: share.c. */
static void merge(Plan *p, int device, int chunk)
{
    for (int level = 0; level < plan_levels(p); level++)
        exchange(p, device, K_MERGE, chunk, level, 0);
    share(p, device, chunk, 0);
}

/* The sums of squares of all blocks go up the tree whole: each row has those of its own parts, and zeros. */
static void merge_blocks(Plan *p, int device)
{
    int blocks = 0, chunk = 0;
    while (blocks < p->g->state.n && p->g->state.at[blocks].kind != S_BLOCKS)
        blocks++;
    while (!plan_holds(p, device, chunk))
        chunk++;
    for (int level = 0; blocks < p->g->state.n && level < plan_levels(p); level++) {
        Action *k = sched_put(p, device, K_MERGE, chunk, -1);
        k->tree_level = level;
        k->state = blocks;
    }
}

/* With train.shard norms need the blocks of all rows, and each row hands on what it has updated before copies are made.
 * Rows add ties in parts, and hand those on before norms. */
const UpdatePart *update_parts(const Plan *p)
{
    static const UpdatePart plain[] = {U_TIES, U_GATHER, U_NORM, U_STEP, U_NONE},
                            sharded[] = {U_TIES, U_GATHER, U_SUMS, U_NORM, U_STEP, U_COPIES, U_NONE};
    const bool *joined = plan_joined(p);
    bool ties = false;
    for (int s = 0; s < p->g->state.n; s++)
        ties |= joined[s];
    return (p->m->train.shard ? sharded : plain) + !ties;
}

static void update(Plan *p, int device)
{
    const UpdatePart *parts = update_parts(p);
    for (int i = 0; parts[i] != U_NONE; i++) {
        UpdatePart part = parts[i];
        if (i > 0 && parts[i - 1] == U_TIES)
            share(p, device, -1, 2);
        if (part == U_COPIES)
            share(p, device, -1, 1);
        if (part == U_SUMS)
            merge_blocks(p, device);
        for (int c = 0; c < plan_chunks(p); c++)
            if (plan_holds(p, device, c))
                sched_put(p, device, K_U, c, -1)->update = part;
    }
}

/* ---- rooms ------------------------------------------------------------------------------------------------------- */

static bool reads(const Action *k)
{
    return k->mb >= 0 && k->kind != K_FOLD;
}

/* The run of computations that keep a room: from that at i on, those of its chunk, as long as no other chunk has one that goes
 * the same way.  An interleaved list has runs of both ways under way at once.  Returns the last one of the run. */
static int run_end(const Actions *list, int i)
{
    int end = i;
    for (int j = i + 1; j < list->n; j++) {
        const Action *k = &list->at[j];
        if (!reads(k) || (k->kind == K_F) != (list->at[i].kind == K_F))
            continue;
        if (k->chunk != list->at[i].chunk)
            break;
        end = j;
    }
    return end;
}

/* ... and of what overlaps with it, or follows at once: all need the room once. */
static int session_end(const Actions *list, int i)
{
    int chunk = list->at[i].chunk, end = run_end(list, i);
    for (int j = i + 1, gap = 0; j < list->n && (j <= end || !gap); j++) {
        const Action *k = &list->at[j];
        gap |= j > end && reads(k) && k->chunk != chunk;
        if (reads(k) && k->chunk == chunk && run_end(list, j) > end)
            end = run_end(list, j);
    }
    return end;
}

/* A room is filled in front of its session, and free behind it.  Each row puts its part there, and hands on what it has. */
static void put_rooms(Plan *p, int device)
{
    Actions made = p->dev.at[device].order;
    int *until = alloc(sizeof *until * (size_t)(plan_chunks(p) + 1));
    p->dev.at[device].order = (Actions){0};
    for (int i = 0; i < made.n; i++) {
        const Action k = made.at[i];
        if (reads(&k) && until[k.chunk] <= i) {
            until[k.chunk] = session_end(&made, i) + 1;
            sched_room(p, device, &p->dev.at[device].order, k.chunk);
        }
        *PUSH(&p->dev.at[device].order) = k;
    }
}

void sched_room(const Plan *p, int device, Actions *list, int chunk)
{
    Action k = action_new(K_U, 0, -1);
    k.chunk = chunk;
    k.slot = -1;
    k.update = U_ROOMS;
    *PUSH(list) = k;
    k.update = 0;
    k.kind = K_ROOM;
    *PUSH(list) = k;
    k.kind = K_SHARE;
    k.group = 3;
    for (k.tree_level = plan_levels(p); k.tree_level-- > 0;) {
        k.from_device = plan_partner(p, device, chunk, k.tree_level);
        *PUSH(list) = k;
    }
}

/* Two directions mirror each other: both devices of a chunk are through with it at the same place of their lists. */
static bool merges_early(const Plan *p)
{
    return p->ask.choice.early && plan_ways(p) > 1;
}

static bool is_last(const Plan *p, int device, const Action *k)
{
    return (k->kind == K_B || k->kind == K_W) && k->mb == plan_first(p, device, k->chunk) + plan_share_of(p, k->chunk) - 1;
}

/* Where steps overlap: in front of an update. */
static void merge_at(Plan *p, int device, const Action *update)
{
    Actions *list = &p->dev.at[device].order;
    int from = list->n;
    merge(p, device, update->chunk);
    for (int i = from; i < list->n; i++) {
        list->at[i].piece = update->piece;
        list->at[i].step = list->at[i].version = update->step;
    }
}

static void finish_device(Plan *p, int device)
{
    Actions *list = &p->dev.at[device].order, made = *list;
    const Schedule *schedule = schedule_of(p->schedule);
    if (schedule->infers)
        return;
    bool updated = false;       /* asynchronous schedules place the update themselves */
    /* Without folds nothing goes between computations: they stay where they are. */
    const bool stays = order_accumulators(p, -1) == 1 && !plan_uneven(p) && !merges_early(p) && !schedule->async;
    if (!stays)
        *list = (Actions){0};
    for (int i = 0; i < made.n; i++) {
        if (made.at[i].kind == K_U && made.at[i].update == U_GATHER)
            merge_at(p, device, &made.at[i]);
        Action *k = stays ? &list->at[i] : PUSH(list);
        *k = made.at[i];
        updated |= k->kind == K_U;
        if (k->kind == K_B || k->kind == K_I || k->kind == K_W)
            accumulate(p, device, k);
        if (merges_early(p) && is_last(p, device, &made.at[i]))
            merge(p, device, made.at[i].chunk);
    }
    if (!merges_early(p) && !updated)
        merge(p, device, -1);
    if (!updated)
        update(p, device);
    if (p->m->train.shard == SHARD_PARAMETERS && plan_levels(p) > 0)
        put_rooms(p, device);
}

/* A group of at least p micro-batches hides the way through all devices; so must the last one. */
static bool is_group(int group, int devices, int micro)
{
    return group >= devices && group <= micro && (micro % group == 0 || micro % group >= devices);
}

static const char *at_most(int stages)
{
    return strf("take at most %d stage%s", stages, stages > 1 ? "s" : "");
}

static const char *group_refuses(const Graph *g, const Model *m, const Schedule *s, int devices)
{
    int micro = (int)(g->micro / m->plan.replicas), group = sched_group(s, m, devices, micro);
    if (m->plan.map.n)
        return "it deals chunks out in turn; delete plan.map, and say plan.chunks";
    if (micro < devices)
        return strf("it takes at least as many micro-batches as devices, %d, and a replica has %d; make train.batch.micro "
                    "smaller, or %s", devices, micro, at_most(micro));
    if (!s->grouped || is_group(group, devices, micro))
        return NULL;
    int far = 1;                /* all m are a group */
    while (!is_group(group - far, devices, micro) && !is_group(group + far, devices, micro))
        far++;
    return strf("a group has p to m micro-batches, and the last group p or more: p is %d, m is %d, and plan.group %d; set "
                "plan.group to %d", devices, micro, group, is_group(group - far, devices, micro) ? group - far : group + far);
}

static const char *ways_refuses(const Graph *g, const Model *m, const Schedule *s, int devices);

static bool look_up(void *ctx, const char *name, double *value)
{
    *value = *(int *)ctx;
    return !strcmp(name, "p");
}

/* Copies of stages under 2bw: a device of stage i, of w, is in r/w copies and has so many times ceil(n/r) micro-batches under
 * way, n devices from stage i on.  All but one are of the step before: at most m/w. */
static int least_of_copies(const Ints *widths, int r)
{
    int least = 1;
    for (int i = widths->n - 1, n = 0; i >= 0; i--) {
        n += widths->at[i];
        int needs = (n + r - 1) / r * r - widths->at[i];
        least = least > needs ? least : needs;
    }
    return (least + r - 1) / r * r;
}

static int least_micro(const Schedule *s, const Model *m, int devices)
{
    if (s->forward == LAG_STEP && m->plan.widths.n)
        return least_of_copies(&m->plan.widths, m->plan.replicas);
    return s->least ? (int)expr_int(m->plan.loc, s->least, look_up, &devices) : 1;
}

/* The row says where the chunks are. */
static const char *fold_refuses(const Graph *g, const Model *m, const Schedule *s, int devices)
{
    int micro = (int)(g->micro / m->plan.replicas), chunks = s->chunks * (m->plan.waves ? m->plan.waves : 1), most = devices;
    if (m->plan.map.n)
        return "it folds the pipeline itself; delete plan.map";
    if (s->improves)
        return m->plan.chunks <= 2 ? NULL : strf("it takes one chunk a device or two, and plan.chunks is %d", m->plan.chunks);
    if (m->plan.chunks != chunks)
        return strf("it takes %d chunks a device, and plan.chunks is %d; delete plan.chunks%s", chunks, m->plan.chunks,
                    s->waves ? ", and say plan.waves" : "");
    if (micro >= least_micro(s, m, devices))
        return NULL;
    while (most > 1 && least_micro(s, m, most) > micro)
        most--;
    const char *fewer = least_micro(s, m, most) > micro ? "" : strf(", or %s", at_most(most));
    return strf("%d devices take at least %d micro-batches, and a replica has %d; make train.batch.micro smaller%s", devices,
                least_micro(s, m, devices), micro, fewer);
}

/* The even number of stages next to an odd one: the one that is legal, or the larger one, if there are devices for it. */
static int even_near(const Graph *g, const Model *m, const Schedule *s, int devices)
{
    int least = s->ways, more = devices + 1, less = devices > least ? devices - 1 : more;
    if (more > m->devices.n / m->plan.replicas || (ways_refuses(g, m, s, more) && !ways_refuses(g, m, s, less)))
        return less;
    return more;
}

/* The next number of micro-batches of a replica that is a multiple of both, and no less than that. */
static int64_t multiple_near(int64_t micro, int64_t least, int64_t of, int64_t other)
{
    int64_t unit = of;
    while (unit % other)
        unit += of;
    int64_t near = (micro + unit / 2) / unit * unit;
    return near >= least && near > 0 ? near : (least + unit - 1) / unit * unit;
}

/* Devices hold two stages, and no device the same one twice. */
static const char *ways_refuses(const Graph *g, const Model *m, const Schedule *s, int devices)
{
    int64_t replicas = m->plan.replicas, micro = g->micro / replicas, ways = s->ways;
    if (devices % 2)
        return strf("it takes an even number of stages, and there %s %d; take %d", devices == 1 ? "is" : "are", devices,
                    even_near(g, m, s, devices));
    if (g->groups % (replicas * ways))
        return strf("each of its %lld pipelines sums up gradient groups of its own, and train.batch.groups is %lld; set it "
                    "to %lld, or a multiple: another numeric key", (long long)(replicas * ways), (long long)g->groups,
                    (long long)(replicas * ways));
    int64_t of = expr_int(m->plan.loc, s->multiple, look_up, &devices), least = least_micro(s, m, devices);
    if (micro % of || micro < least)
        return strf("%d devices take a multiple of %lld micro-batches%s, and a replica has %lld; set train.batch.global to "
                    "%lld", devices, (long long)of, least > 1 ? strf(", %lld at least", (long long)least) : "",
                    (long long)micro, (long long)(multiple_near(micro, least, of, g->groups / replicas) * replicas * g->batch));
    return NULL;
}

static const char *table_refuses(const Graph *g, const Model *m)
{
    int micro = (int)(g->micro / m->plan.replicas), has = m->plan.table ? m->plan.table->micro : 0;
    if (!m->plan.table)
        return "plan.order names no file";
    return micro == has ? NULL : strf("the table of plan.order has %s, and a replica has %d; make train.batch.micro %s",
                                      count_text(has, "micro-batch"), micro, micro < has ? "smaller" : "larger");
}

static const char *const optimizers[] = {[OPT_SGD] = "sgd", [OPT_ADAMW] = "adamw", [OPT_NADAMW] = "nadamw",
                                        [OPT_RMSPROP] = "rmsprop"};

const char *order_refuses(const Graph *g, const Model *m, const Schedule *s, int devices)
{
    const Train *t = &m->train;
    bool norms = t->clip != 0 && !t->clip_each;
    if (s->infers != infers(m))
        return s->infers ? "it has forwards alone, and this job trains; set plan.mode: infer, or take another schedule"
            : "it orders a backward, and this job has none; delete plan.schedule";
    if (t->fp8 && s->async)
        return "its steps overlap, and the scales of fp8 follow whole steps; set train.precision.compute: bf16, or take a "
               "synchronous schedule";
    const char *uneven = m->plan.widths.n ? widths_refuse(m, s) : NULL;
    if (uneven)
        return uneven;
    if (t->shard && s->async)
        return "it has no replicas to deal optimiser states out to; set train.shard: none, or take a synchronous schedule";
    if (t->shard && s->ways > 1)
        return "its two pipelines keep their states to themselves; set train.shard: none, or take another schedule";
    if (t->shard == SHARD_PARAMETERS && m->eval.format && m->eval.batches % m->plan.replicas)
        return strf("replicas gather parameters for each micro-batch of an evaluation, all at once, and %d of them cannot "
                    "share %lld; set data.eval.batches to %lld", m->plan.replicas, (long long)m->eval.batches,
                    (long long)((m->eval.batches / m->plan.replicas + 1) * m->plan.replicas));
    if (s->async && g->micro < least_micro(s, m, devices))
        return strf("two weight versions serve %d stages%s from %d micro-batches a step on, and there are %lld; make "
                    "train.batch.micro smaller or train.batch.global larger%s", devices, m->plan.widths.n
                        ? strf(" in %s copies", widths_text(&m->plan.widths)) : "", least_micro(s, m, devices),
                    (long long)g->micro, m->plan.widths.n ? "" : strf(", or %s", at_most((int)g->micro)));
    if (s->each && g->micro != 1)
        return strf("it updates after every micro-batch, and a step has %lld; make train.batch.micro and train.batch.global "
                    "equal", (long long)g->micro);
    if ((s->ahead != AHEAD_NONE || s->drifts) && g->compute != F32)
        return "it guesses weights from the difference of two versions, which bf16 is too coarse for; set "
               "train.precision.compute: f32";
    if (s->optimizer && strcmp(s->optimizer, optimizers[t->opt]))
        return strf("its update is one of its own; set train.optimizer.type: %s", s->optimizer);
    if ((s->spikes || s->drifts) && t->nesterov)
        return "its update is one of its own; delete train.optimizer.nesterov";
    if (s->one_chunk && (m->plan.chunks > 1 || m->plan.map.n))
        return "it takes one chunk a device; delete plan.chunks and plan.map";
    const char *two = s->ways > 1 ? ways_refuses(g, m, s, devices) : NULL;
    if (two)
        return two;
    const char *why = s->given ? table_refuses(g, m) : s->folds ? fold_refuses(g, m, s, devices)
        : s->lead && !s->one_chunk ? group_refuses(g, m, s, devices) : NULL;
    if (!why && s->custom)
        why = sched_own_refuses(g, m, s, devices);
    if (why)
        return why;
    if (s->async && !s->norms && norms)
        return "the norm of the whole gradient needs every stage before any may update, which stalls it; set "
               "train.clip_scope: parameter, or train.clip_norm: 0, or schedule 2bw";
    return NULL;
}

/* The table: neighbours in turn, there and back if the schedule folds, or the user's map; replicas on devices of their own, and
 * in each, odd rows the other way. */
static void settle(Plan *p)
{
    const Ints *map = plan_map(p);
    bool folds = schedule_of(p->schedule)->folds;
    int stages = plan_stages(p), rows = plan_rows(p), ways = plan_ways(p);
    for (int q = 0; q < rows; q++)
        for (int c = 0; c < (map->n ? map->n : stages * p->chunks); c++) {
            bool back = (folds && c / stages % 2) != (q % ways > 0);
            int home = map->n ? map->at[c] : back ? stages - 1 - c % stages : c % stages;
            plan_settle(p, q, q / ways * stages + home);
        }
}

/* plan.widths: the devices of the first row, then those that the next one has more, and so on. */
static void settle_widths(Plan *p)
{
    const Ints *widths = &p->m->plan.widths;
    for (int q = 0, device = 0; q < p->m->plan.replicas; q++)
        for (int s = 0; s < widths->n; s++) {
            int turns = p->m->plan.replicas / widths->at[s];
            plan_settle(p, q, q % turns ? plan_home(p, q - q % turns, s) : device++);
        }
}

static int make_order(Plan *p, const Plan *like)
{
    const Schedule *k = schedule_of(p->schedule);
    if (!k)
        die("order: no schedule '%s'", p->schedule);
    memset(&p->home, 0, sizeof p->home);
    if (p->g->groups % plan_rows(p) || ones(plan_rows(p)) != 1)
        die("order: %d copies of the model for %lld gradient groups", plan_rows(p), (long long)p->g->groups);
    if (p->g->groups < 1 || p->g->micro % p->g->groups || ones(p->g->groups) != 1)
        die("order: %lld gradient groups of %lld micro-batches", (long long)p->g->groups, (long long)p->g->micro);

    memset(&p->dev, 0, sizeof p->dev);
    for (int d = 0; d < p->devices; d++)
        PUSH(&p->dev)->device = d;
    int stages = plan_stages(p);
    const Choice *x = &p->ask.choice, *y = like ? &like->ask.choice : NULL;
    for (int d = 0; like && d < stages; d++)
        if (x->lead->at[d] == y->lead->at[d] && x->lag->at[d] == y->lag->at[d])
            p->dev.at[d].order = like->dev.at[d].order;
    (plan_uneven(p) ? settle_widths : settle)(p);
    if ((plan_uneven(p) && !k->async ? sched_widths : makers[k - schedules])(p))
        return 1;
    for (int d = 0; d < (plan_uneven(p) ? p->devices : stages); d++)
        if (!like || p->dev.at[d].order.at != like->dev.at[d].order.at)
            finish_device(p, d);
    sched_slack(p);
    sched_replicate(p);
    return 0;
}

static Ints copied(const Ints *list)
{
    Ints to = {0};
    APPEND(&to, *list);
    return to;
}

int order(Plan *p)
{
    return order_like(p, NULL);
}

int order_like(Plan *p, const Plan *like)
{
    Room *scratch = mem_room(), *room = mem_in(scratch);
    int none = make_order(p, like);
    mem_in(room);
    p->dev.at = memcpy(alloc(sizeof *p->dev.at * (size_t)p->dev.n), p->dev.at, sizeof *p->dev.at * (size_t)p->dev.n);
    for (int d = 0; d < p->devices; d++)
        if (!like || p->dev.at[d].order.at != like->dev.at[d].order.at)
            p->dev.at[d].order = actions_copied(&p->dev.at[d].order);
    p->home.at = memcpy(alloc(sizeof *p->home.at * (size_t)p->home.n), p->home.at, sizeof *p->home.at * (size_t)p->home.n);
    for (int row = 0; row < p->home.n; row++)
        p->home.at[row] = copied(&p->home.at[row]);
    p->slack = copied(&p->slack);
    p->dev.cap = p->dev.n;
    p->home.cap = p->home.n;
    mem_drop(scratch);
    return none;
}

void order_as(Plan *p, const Plan *of)
{
    memset(&p->dev, 0, sizeof p->dev);
    for (int d = 0; d < of->devices; d++)
        *PUSH(&p->dev) = (DevicePlan){.device = d, .order = of->dev.at[d].order};
    memcpy(&p->home, &of->home, sizeof p->home);
    p->slack = of->slack;
}

int order_accumulators(const Plan *p, int chunk)
{
    int n = 1;
    for (int64_t groups = p->g->groups / plan_rows(p); groups > 1; groups >>= 1)
        n++;
    return n * plan_turns(p, chunk);
}

int order_flight(const Plan *p, int chunk)
{
    const Actions *list = &p->dev.at[stage_of(p, chunk)].order;
    int now = 0, most = 0;
    if (schedule_of(p->schedule)->infers)       /* nothing waits for a backward */
        return 1;
    for (EACH(const Action, k, *list)) {
        if (k->chunk != chunk)
            continue;
        now += k->kind == K_F;
        if (now > most)
            most = now;
        now -= k->kind == K_B || k->kind == K_I;
    }
    return most;
}

bool order_split(const Plan *p)
{
    for (int d = 0; d < p->dev.n; d++)
        for (int i = 0; i < p->dev.at[d].order.n; i++)
            if (p->dev.at[d].order.at[i].kind == K_W)
                return true;
    return false;
}

/* Does the list alternate, with forwards behind the first backward? */
static bool alternates(const Plan *p, int chunk)
{
    const Actions *list = &p->dev.at[stage_of(p, chunk)].order;
    bool back = false;
    for (int i = 0; i < list->n; i++) {
        if (back && list->at[i].kind == K_F && list->at[i].chunk == chunk)
            return true;
        back |= list->at[i].kind == K_B || list->at[i].kind == K_I;
    }
    return false;
}

/* Does a chunk hold more micro-batches than computing keeps busy? */
static bool spare(const Plan *p, int chunk)
{
    return !plan_uneven(p) && order_flight(p, chunk) > plan_chunks(p) - chunk;
}

/* One computation is enough if no spare micro-batches are in flight.  Spare ones let messages take longer than a forward:
 * (f+b)/2.  A receive posted one forward early would begin too late to use them. */
int order_slack(const Plan *p)
{
    for (int c = 0; c < plan_chunks(p); c++)
        if (spare(p, c) && alternates(p, c))
            return 2;
    return 1;
}

const char *order_name(const Plan *p)
{
    bool more = false;
    for (int c = 0; c < plan_chunks(p); c++)
        more |= spare(p, c);
    return more && schedule_of(p->schedule)->warmups ? strf("%s, warm-up B", p->schedule) : p->schedule;
}
