/* SPDX-License-Identifier: Apache-2.0
 *
 * async.c: schedules that do not drain the pipeline between two steps.
 *
 * Problem: 1F1B with a flush leaves p-1 micro-batches of idle time a step.  Without a flush a stage already runs forwards of
 * later steps while backwards of earlier ones are under way.  So a forward cannot read the weights of a synchronous step: some
 * update is not there yet.
 *
 * Method: the version that is read is a rule of the schedule, a row of schedules.def.  Micro-batch k, counted through all
 * steps of m micro-batches, reads version max(0, floor((k - lag) / m)) on stage i of p, in forward and in backward:
 *
 *   2bw         lag m: step t reads version t-1 on every stage       (Narayanan et al., Memory-Efficient Pipeline-Parallel
 *               DNN Training, 2021, section 3.1, PipeDream-2BW: double-buffered weight updates)
 *   pipedream   lag p-1-i: the newest weights that are there when the forward runs   (Narayanan et al., PipeDream: Generalized
 *               Pipeline Parallelism for DNN Training, 2019, section 3.3, weight stashing; m = 1 there)
 *   vertical    lag p-1: what stage 0 reads, on every stage          (the same, vertical sync)
 *
 * The gradient of step t is taken off the newest version, t, to make version t+1.  The bits of 2bw depend on m alone, those of
 * pipedream on the cuts, those of vertical on p.  Stage i has p-i micro-batches in flight.  The period of equal stages is
 * m (f+b).
 *
 * A version lives from the update that makes it to the last backward that reads it.  The copies follow from a replay; with lag
 * l they are 1 + ceil(l / m).  A version must be there when it is read.  The forward of micro-batch k runs when k - (p-1-i)
 * micro-batches have been through backward, so the lag is at least p-1-i.  So two versions serve 2bw from m = p-1 on; the
 * paper, and order.c, ask for m >= p.
 *
 * With plan.widths a device counts the micro-batches that it computes, in its turn, and m is their number.  Each of the r rows
 * of replica.c has ceil(n/r) in flight, of n devices from the stage on, in place of p-i.  A device that is in k rows has k
 * times as many, and the lag of pipedream is one less.  That of 2bw is a step, whoever computes it.  Copies exchange their sums
 * in front of an update, and nothing else is begun meanwhile.
 *
 *   nag         that of pipedream, with an update that steps ahead: NAdamW, AdamW with Nesterov's momentum   (Ajanthan et al.,
 *               Nesterov Method for Asynchronous Pipeline Parallel Optimization, 2025).  What follows the look-ahead there is
 *               a gradient of older weights, weighed with 1 - beta1; so beta1 near 1, 0.99 in the paper, discounts it.  Its
 *               authors run PyTorch's NAdam, where the momentum grows over the steps.  Here it is constant, as in the paper
 *
 * Some rules read a version v predicted, s updates further on a straight line: W(v) + s (W(v) - W(v-1)).  After momentum SGD
 * this is W(v) - s lr u, with u the momentum, the prediction of the paper; it goes with any other update, too.  Nothing is
 * predicted before the first update, nor with s = 0.
 *
 * s is that of the row where an update is one micro-batch; else so many updates as that number of micro-batches makes, rounded
 * up.
 *
 *   spectrain        forward lag p-1-i, s = floor(i/2) + p-1-i; backward lag 0, s = floor(i/2)   (Chen, Yang, Cheng: Efficient
 *                    and Robust Parallel DNN Training through Model Parallelism on Multi-GPU Platform, 2018, SpecTrain).
 *                    Both aim at the version that is newest when stage 0 is through with the micro-batch
 *   spectrain-once   forward and backward lag p-1-i, s = p-1-i: predicted once, and kept from forward to backward.  The
 *                    authors' code takes one more, p-i.  Then one stage would not be the synchronous job, so dpgen does not
 *
 *   pb               forward lag p-1-i, s = p-1-i; backward lag 0, as it is; and the update of momentum SGD makes up for the
 *                    D = p-1-i updates that forward's version is behind: u = mu u + g, W -= lr (a u + b g) with a = mu^D and
 *                    b = 1 + mu + ... + mu^(D-1) = (1 - mu^D) / (1 - mu)   (Kosson et al., Pipelined Backpropagation at
 *                    Scale, 2020: linear weight prediction and spike compensation).  A gradient moves the weights as far in
 *                    all as it does in SGD: a / (1 - mu) + b = 1 / (1 - mu).  In the paper a forward and a backward take one
 *                    beat together, and D is 2(p-1-i).  Of two forms of the prediction, by velocity and by the difference of
 *                    weights, which agree for SGD and not with spikes, this is the second
 *
 *   xpipe            spectrain with m micro-batches an update: forward predicts for the first one of a step, the bellwether,
 *                    and the others of that step read the same   (Guan, Yin, Li, Lu: XPipe: Efficient Pipeline Model
 *                    Parallelism for Multi-GPU DNN Training, 2019).  s = (p-1-i+floor(i/2))/m and floor(i/2)/m, rounded up.
 *                    After Adam the line is the prediction of the paper, lr m / (sqrt(v) + eps) a step; after AdamW it has
 *                    the decay too.  The sources round the second number otherwise, and then one stage would predict
 *
 *   timeprest        forward lag p-1-i, backward lag 0, nothing predicted: what is newest when either runs   (Dutta, Chaki,
 *                    De: TiMePReSt: Time and Memory Efficient Pipeline Parallel DNN Training with Removed Staleness, 2024).
 *                    There a mini-batch goes forward in m micro-batches and back as one.  Here it goes back in m, which makes
 *                    the same sum of gradients of the same weights
 *
 *   pipemare         timeprest with m = 1 and momentum SGD, and two corrections for the D = p-1-i updates that forward's
 *                    version is behind   (Yang et al., PipeMare: Asynchronous Pipeline Parallel DNN Training, 2019).
 *                    The rate is lr / D^q, q = 1 - step/K falling to 0; where D is 0, lr.  Backward reads W - D d, a
 *                    guess of what forward read, with d' = c d + (1 - c) (W' - W)
 *                    at each update and c = exp(-2/D).  In the paper D is (2(p-i)+1)/N, K is a choice,
 *                    and c = C^(1/D) with C a choice near exp(-2).  Here K is a quarter of
 *                    train.steps.  d is a state of its own, and checkpoints hold it.  The paper's warm-up with a flush is not
 *                    built: its first steps are those of another list
 *
 * A prediction is made behind the update that makes its version, while the version before it is still there.  That of forward
 * takes the place of the version before, so such a rule has one copy more.  That of backward lies where the next version will
 * be, in another copy.  The papers hold one copy.  Their forward predicts when it runs, from the newest weights.  A run that is
 * drained for a checkpoint would then read others than one that is not.
 *
 * The rule does not mention time, so draining the pipeline does not change a bit.  A run may stop anywhere for a checkpoint or
 * an evaluation, and goes on as if it had not.  Published systems lack that: their checkpoints hold one version (pipedream's
 * own runtime saves the newest), and a resumed run takes another path.
 *
 * A run of S steps of a device with w micro-batches in flight, cut where `hold` micro-batches of the next step are done:
 *
 *   prologue    w forwards, then `hold` pairs
 *   period      m times B, F of the micro-batch w later, and in between the update; S - overlap of them
 *   epilogue    the rest of `overlap` steps: B and F while there are any, then B alone
 *   alone       one step from drained to drained, for runs of fewer than `overlap` steps
 *
 * The update of a step follows its last backward.  With clipping by global norm it waits for the norms of all stages.  The sums
 * go out at once.  The update itself comes `hold` micro-batches later, when stage 0, the last to finish, has had time to
 * answer: i on stage i, which finishes i micro-batches earlier.  The next step meanwhile adds into a second gradient buffer
 * (mem/mem.c).  A longer hold would let a period of stage i ask for a forward of the next period of stage 0, and stages may
 * meet in between.  A lag below p-1 would ask for an update that is held.  So 2bw alone takes such clipping.
 *
 * Cost: linear in the actions.  Not handled: several chunks a device, a split backward, hold without clipping, predictions in
 * bf16, where the differences are of the size of the rounding.
 */
#include "sched.h"

typedef struct {
    Plan *p;
    int device, stage, m;       /* m micro-batches of a step, on this device */
    SchedPace pace;
    Piece piece;
    bool keeps;                 /* some backward reads an older version than the newest */
} AsyncWriter;

static int floor_div(int a, int b)
{
    return a >= 0 ? a / b : -((-a + b - 1) / b);
}

static int lag_of(const Plan *p, int chunk, ActionKind kind)
{
    const Schedule *k = schedule_of(p->schedule);
    int last = plan_stages(p) - 1, behind = plan_flight(p, chunk) - 1;
    const int lag[] = {[LAG_NONE] = 0, [LAG_STEP] = plan_share_of(p, chunk), [LAG_BEHIND] = behind, [LAG_DEPTH] = last,
                       [LAG_FIRST] = behind};
    return lag[kind == K_F ? k->forward : k->backward];
}

int order_version(const Plan *p, int chunk, ActionKind kind, int q)
{
    int all = (int)p->g->micro, m = plan_share_of(p, chunk), t = floor_div(q, all);
    bool first = kind == K_F && schedule_of(p->schedule)->forward == LAG_FIRST;
    return floor_div(t * m + (first ? 0 : plan_turn(p, chunk, q - t * all)) - lag_of(p, chunk, kind), m);
}

int order_ahead(const Plan *p, int chunk, ActionKind kind)
{
    const Ahead ahead = schedule_of(p->schedule)->ahead;
    if (schedule_of(p->schedule)->drifts)
        return kind == K_F ? 0 : lag_of(p, chunk, K_F);
    int behind = ahead == AHEAD_NONE ? 0 : lag_of(p, chunk, kind) + (ahead == AHEAD_TURN ? chunk / 2 : 0);
    return -floor_div(-behind, (int)p->g->micro);
}

int order_late(const Plan *p, int chunk)
{
    const Schedule *k = schedule_of(p->schedule);
    return k->spikes || k->drifts ? lag_of(p, chunk, K_F) : 0;
}

bool order_apart(const Plan *p)
{
    return schedule_of(p->schedule)->forward != schedule_of(p->schedule)->backward;
}

/* Micro-batch q of the run, counted through all steps of the device. */
static Action *put(AsyncWriter *w, ActionKind kind, int q)
{
    int t = floor_div(q, w->m), mb = plan_nth(w->p, w->device, w->stage, q - t * w->m);
    Action *k = sched_put(w->p, w->device, kind, w->stage, mb);
    k->piece = w->piece;
    k->step = t;
    k->version = order_version(w->p, w->stage, kind, t * (int)w->p->g->micro + mb);
    return k;
}

static void put_update(AsyncWriter *w, int step, UpdatePart part)
{
    Action *k;
    if (part == U_STEP && w->keeps) {
        k = put(w, K_VERSION, step * w->m);
        k->mb = -1;
        k->version = k->step;
    }
    k = put(w, K_U, step * w->m);
    k->mb = -1;
    k->update = part;
    k->version = k->step;
}

/* Puts the backward of q, the forward of the micro-batch `warm` later, if the run of `steps` has them, and the updates due. */
static void put_beat(AsyncWriter *w, int q, int steps)
{
    int m = w->m, hold = w->pace.hold, after = q - hold + 1, next = q + w->pace.warm;
    bool ends = q >= 0 && q % m == m - 1;
    if (q >= 0)
        put(w, K_B, q);
    if (ends) {
        put_update(w, q / m, U_GATHER);
        put_update(w, q / m, U_NORM);
        if (hold == 0 || q == steps * m - 1)
            put_update(w, q / m, U_STEP);
        /* The weights that the update of a step has made, predicted for backward (part 0) and for forward (part 1). */
        int step = q / m;
        for (int part = order_apart(w->p) ? 0 : 1; part < 2; part++) {
            if (order_ahead(w->p, w->stage, part ? K_F : K_B) == 0)
                continue;
            Action *k = put(w, K_PREDICT, step * w->m);
            k->mb = -1;
            k->forward = part;
            k->version = k->step + 1;
        }
    }
    if (next < steps * m)
        put(w, K_F, next);
    if (hold > 0 && after > 0 && after % m == 0)
        put_update(w, after / m - 1, U_STEP);
}

static void put_piece(AsyncWriter *w, Piece piece, int from, int to, int steps)
{
    w->piece = piece;
    for (int q = from; q < to; q++)
        put_beat(w, q, steps);
}

enum { FOREVER = 1 << 14 };     /* steps of a run without an end in sight: times m an int still */

void sched_async(Plan *p, int device, SchedPace pace)
{
    int stage = plan_stage(p, device), m = plan_share_of(p, stage), hold = pace.hold;
    AsyncWriter w = {.p = p, .device = device, .stage = stage, .m = m, .pace = pace};
    w.keeps = lag_of(p, stage, K_F) > 0 || order_ahead(p, stage, K_F) > 0;
    put_piece(&w, PIECE_PROLOGUE, -pace.warm, hold, FOREVER);
    put_piece(&w, PIECE_PERIOD, hold, hold + m, FOREVER);
    put_piece(&w, PIECE_EPILOGUE, hold, pace.overlap * m, pace.overlap);
    if (pace.overlap > 1)
        put_piece(&w, PIECE_ALONE, -pace.warm, m, 1);
}

int schedule_async(Plan *p)
{
    bool norms = p->m->train.clip != 0 && !p->m->train.clip_each;
    int overlap = 1;
    if (p->chunks != 1)
        return 1;
    for (int s = 0; s < plan_stages(p); s++) {
        int m = plan_share_of(p, s), n = (plan_flight(p, s) + m - 1) / m;
        overlap = n > overlap ? n : overlap;
    }
    for (int d = 0; d < p->devices; d++) {
        int s = plan_stage(p, d);
        sched_async(p, d, (SchedPace){.warm = plan_flight(p, s), .hold = norms ? s : 0, .overlap = overlap});
    }
    return 0;
}

/* ---- what a list says of itself ---------------------------------------------------------------------------------- */

int order_overlap(const Plan *p)
{
    const Actions *list = &p->dev.at[0].order;
    int most = 0;
    for (int i = 0; i < list->n; i++)
        if (list->at[i].piece == PIECE_EPILOGUE && list->at[i].step >= most)
            most = list->at[i].step + 1;
    return most;
}

/* The newest version where a piece begins.  The first update of the period makes the version after it. */
static int newest_at(const Actions *list, Piece piece)
{
    for (int i = 0; i < list->n && piece == PIECE_PERIOD; i++)
        if (list->at[i].piece == piece && list->at[i].kind == K_U && list->at[i].update == U_STEP)
            return list->at[i].version;
    return 0;
}

int order_delay(const Plan *p, int chunk)
{
    const Actions *list = &p->dev.at[stage_of(p, chunk)].order;
    int most = 0;
    for (Piece piece = PIECE_PROLOGUE; piece <= PIECE_PERIOD; piece++)
        for (int i = 0, newest = newest_at(list, piece); i < list->n; i++) {
            const Action *k = &list->at[i];
            if (k->piece != piece)
                continue;
            if (k->kind == K_U && k->update == U_STEP)
                newest = k->version + 1;
            else if ((k->kind == K_F || k->kind == K_B) && newest - k->version > most)
                most = newest - k->version;
        }
    return most;
}

int order_copies(const Plan *p, int chunk)
{
    bool forward = order_ahead(p, chunk, K_F) > 0, backward = order_apart(p) && order_ahead(p, chunk, K_B) > 0;
    return order_delay(p, chunk) + 1 + forward + backward;
}

static void take(Actions *run, const Actions *list, Piece piece, int step)
{
    for (int i = 0; i < list->n; i++) {
        if (list->at[i].piece != piece)
            continue;
        Action *k = PUSH(run);
        *k = list->at[i];
        k->step += step;
        k->version += step;
    }
}

Actions order_run(const Plan *p, const Actions *list, int steps)
{
    int overlap = order_overlap(p), step = 0;
    Actions run = {0};
    if (overlap == 0 || steps < overlap) {
        for (; step < steps; step++)
            take(&run, list, overlap ? PIECE_ALONE : PIECE_STEP, step);
        return run;
    }
    take(&run, list, PIECE_PROLOGUE, 0);
    for (; step < steps - overlap; step++)
        take(&run, list, PIECE_PERIOD, step);
    take(&run, list, PIECE_EPILOGUE, step);
    return run;
}

const Actions *order_lists(const Plan *p, bool eval, int steps)
{
    Actions *list = alloc(sizeof *list * (size_t)p->devices);
    for (int d = 0; d < p->devices; d++) {
        const DevicePlan *x = &p->dev.at[d];
        bool whole = !eval && (steps > 1 || order_overlap(p) > 0);
        list[d] = whole ? order_run(p, &x->list, steps) : eval ? x->eval : x->list;
    }
    return list;
}

int order_steps(const Plan *p, int device)
{
    int overlap = order_overlap(p);
    if (overlap == 0)
        return 1;
    Actions run = order_run(p, &p->dev.at[device].order, overlap + 2);
    int begun = 0, ended = 0, most = 0;
    for (EACH(const Action, k, run)) {
        if (k->kind == K_F && k->step >= begun)
            begun = k->step + 1;
        if (k->kind == K_U && k->update == U_STEP)
            ended = k->step + 1;
        if (begun - ended > most)
            most = begun - ended;
    }
    return most;
}

bool order_holds(const Plan *p, int device)
{
    int overlap = order_overlap(p), made = -1;
    if (overlap == 0)
        return false;
    Actions run = order_run(p, &p->dev.at[device].order, overlap + 2);
    for (EACH(const Action, k, run)) {
        if (k->kind == K_B || k->kind == K_W)
            made = k->step;
        if (k->kind == K_U && k->update == U_STEP && k->step < made)
            return true;
    }
    return false;
}
