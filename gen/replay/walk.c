/* SPDX-License-Identifier: Apache-2.0
 *
 * walk.c: the need of a run of operators as a chunk, nearly.
 *
 * Problem: planners ask for the bytes of thousands of runs under many choices of fates, and only `lower` and `mem` know the
 * truth.  floor.c never exceeds it.  So floor.c can prove that something does not fit, but not that it does.
 *
 * Method: the routines of the chunk are walked as `lower` will write them, forward and backward with recomputation, and the
 * bytes alive at each call are counted.  The lists of the device tell what else is there while such a routine runs:
 * micro-batches at rest with their saved tensors, messages posted for the next computation, results of the previous one still
 * on their way (comm posts receives one computation ahead and waits for sends Plan.slack behind):
 *
 *   states + max over (computation, the ones before, the one after) of the larger of
 *       within it      saved of those at rest + most alive within it + received for the one after + sent by those before
 *       right before   saved of those at rest + received for it and for the one after + sent by one more before
 *
 * Where the list has W behind I, a micro-batch rests twice.  Saved tensors rest from F to I.  Gradients and tensors that weight
 * gradients read are held from I to W.
 *
 * In the update, gradients of tied parameters from other devices are added.  So nothing depends on the place of the other
 * chunks, and a run can be priced before a cut is known.  With Choice.far sends that skip stages take longer.  Then
 * the stage of the last reader counts: that of the given cuts, or else the stage that it has where all take equal times.
 *
 * Cost: linear in the operands of the run, its backward and its recomputation.  Marks carry the number of the walk, so starting
 * anew is free and nothing is allocated.  Where nothing is offloaded fast.c answers instead, in a fraction of the time.
 *
 * Not handled: packing, which repack.c feeds back; sends that `comm` leaves under way for longer, to avoid a deadlock;
 * far sends of a tensor that is saved, which are taken to last through B where any send of its micro-batch does.
 */
#include "index.h"
#include "list/transport.h"

/* ---- backward as a line ------------------------------------------------------------------------------------------ */

static void begin(Live *x, int first, int last, int chunk)
{
    index_moments(x, chunk);
    x->first = first;
    x->last = last;
    x->chunk = chunk;
    x->round++;
    x->naway = 0;
    x->load = (Load){0};
}

static ReplayCopy way_of(const Live *x, int t)
{
    int device = stage_of(x->p, x->chunk);
    Bytes bytes = x->g->tensor.at[t].bytes;
    return (ReplayCopy){.tensor = t, .fast = cost_host(x->p->c, device, bytes), .slow = offload_window(x->p, device, bytes),
                        .bytes = x->bytes[t]};
}

/* Finds the tensors that are saved, sent to the host and made again under these fates. */
static void choose(Live *x, int first, int last, int chunk, const int *fate)
{
    const Ns *alone = live_alone(x, chunk);
    bool known = x->read_first == first && x->read_last == last;
    begin(x, first, last, chunk);
    x->read_first = first, x->read_last = last;
    if (!known) {
        x->read.n = x->call.n = 0;
        x->walk++;
        for (int o = x->begin[x->last]; o < x->end[x->first]; o++)
            for (int i = x->op[o].read.from; i < x->op[o].read.to; i++) {
                int t = x->touched.at[i];
                if (x->grad[t] || x->seen[2 * t] == x->walk)
                    continue;
                x->seen[2 * t] = x->walk;
                *PUSH(&x->read) = t;
                *PUSH(&x->call) = o - x->begin[x->last];
            }
    }
    rebuild(&x->back, first, last, fate, x->read.at, x->call.at, x->read.n);
    for (int i = 0; i < x->back.n; i++) {
        int t = x->back.list[i];
        bool away = x->back.fetched && rebuild_fetched(&x->back, t);
        *(away ? &x->load.moved : &x->load.saved) += x->bytes[t];
        if (away)
            x->away[x->naway++] = way_of(x, t);
    }
    x->ready = 0;
    for (int k = 0; k < x->back.lines; k++) {
        x->load.again += alone[x->back.line[k]];
        x->ready = x->back.call[k] ? x->ready : x->load.again;
    }
}

/* Puts weight gradients behind all others.  Operators that only they want made again stay with the others. */
static void split(Live *x)
{
    int late = 0;
    x->inputs = 0;
    for (int i = 0; i < x->lines; i++)
        *(x->line[i] >= 0 && x->g->op.at[x->line[i]].phase == PH_W ? &x->weights[late++] : &x->line[x->inputs++]) = x->line[i];
    for (int i = 0; i < late; i++)
        x->line[x->inputs + i] = x->weights[i];
}

/* ---- the most bytes alive ---------------------------------------------------------------------------------------- */

static void touch(Live *x, int i)
{
    if (x->seen[i] != x->walk) {
        x->seen[i] = x->walk;
        x->from[i] = x->at;
        x->sequence[x->n++] = i;
    }
    x->to[i] = x->at;
}

static void start(Live *x)
{
    x->walk++;
    x->at = x->n = 0;
}

/* Adds up live bytes by position, from the touched positions of the first n of x->order. */
static Bytes most_alive(Live *x)
{
    Bytes now = 0, most = 0;
    for (int i = 0; i <= x->at; i++)
        x->change[i] = 0;
    for (int i = 0; i < x->n; i++) {
        int k = x->sequence[i];
        x->change[x->from[k]] += x->bytes[k / 2];
        x->change[x->to[k] + 1] -= x->bytes[k / 2];
    }
    for (int i = 0; i < x->at; i++) {
        now += x->change[i];
        x->alive[i] = now + x->tmp[i];
        most = x->alive[i] > most ? x->alive[i] : most;
    }
    return most;
}

static Bytes most_forward(Live *x)
{
    start(x);
    for (int o = x->first; o <= x->last; o++) {
        x->tmp[x->at] = aligned(x->g->op.at[o].tmp);
        for (int i = x->op[o].read.from; i < x->op[o].write.to; i++)
            touch(x, 2 * x->touched.at[i]);
        x->at++;
    }
    for (int i = 0; i < x->naway; i++)
        x->away[i].after = x->to[2 * x->away[i].tensor] + 1;
    for (int i = 0; i < x->n; i++) {
        int k = x->sequence[i], t = k / 2;
        if (!index_own(x, t))
            x->from[k] = 0;
        if (rebuild_saved(&x->back, t) || index_leaves(x, t))
            x->to[k] = x->at - 1;
    }
    return most_alive(x);
}

/* Is it held from I to W?  Both touch it, or it is saved or received.  A received gradient that only W reads is not, where it
 * comes alone. */
static bool held(const Live *x, int k)
{
    bool before = x->from[k] < x->inputs || (k % 2 == 0 && rebuild_saved(&x->back, k / 2)) ||
                  (!index_own(x, k / 2) && !(x->grad[k / 2] && index_company(x, k / 2) == ALONE));
    return x->to[k] >= x->inputs && before;
}

/* The first call beside which a tensor of backward is there.  Saved tensors and received gradients are there before; those that
 * only W reads are there before W. */
static int begins(const Live *x, int k)
{
    if (k % 2 == 0 && rebuild_saved(&x->back, k / 2))
        return 0;
    return index_own(x, k / 2) ? x->from[k] : x->from[k] < x->inputs ? 0 : x->inputs;
}

/* The last call beside which it is there.  A tensor that leaves is there to the end of I or W. */
static int ends(const Live *x, int k, int sends)
{
    int end = x->from[k] < x->inputs ? x->inputs : x->lines, to = x->to[k];
    bool leaving = index_leaves(x, k / 2), still = sends == OWN && k % 2 == 0 && rebuild_saved(&x->back, k / 2);
    if (leaving && (x->grad[k / 2] || still))
        to = to > end - 1 ? to : end - 1;
    return leaving && sends == NEAR && x->grad[k / 2] && to >= x->inputs ? x->lines - 1 : to;
}

/* The most within B or I, and within W.  sends: OWN or NEAR where an earlier computation of the micro-batch still sends. */
static void most_backward(Live *x, int sends, Bytes *input, Bytes *weight)
{
    start(x);
    for (int i = 0; i < x->lines; i++, x->at++) {
        bool again = x->line[i] < 0;
        int o = again ? ~x->line[i] : x->line[i];
        const Touched *c = &x->op[o];
        x->tmp[x->at] = aligned(x->g->op.at[o].tmp);
        for (int k = c->read.from; k < c->read.to; k++)
            touch(x, 2 * x->touched.at[k] + rebuild_remade(&x->back, x->touched.at[k]));
        for (int k = c->write.from; k < c->write.to; k++)
            touch(x, 2 * x->touched.at[k] + (again && rebuild_remade(&x->back, x->touched.at[k])));
    }
    for (int i = 0; i < x->naway; i++)
        x->away[i].first = x->from[2 * x->away[i].tensor];
    x->load.held = 0;
    for (int i = 0; i < x->n; i++) {
        int k = x->sequence[i], to = ends(x, k, sends);
        x->load.held += held(x, k) ? x->bytes[k / 2] : 0;
        x->from[k] = begins(x, k);
        x->to[k] = to;
    }
    most_alive(x);
    *input = *weight = 0;
    for (int i = 0; i < x->lines; i++) {
        Bytes *most = i < x->inputs ? input : weight;
        *most = x->alive[i] > *most ? x->alive[i] : *most;
    }
}

/* ---- sums -------------------------------------------------------------------------------------------------------- */

/* The bytes of another row's gradients that are here at once, at one level of the tree. */
static Bytes take_level(const Live *x, int row, int level)
{
    Batch batch = {0};
    Bytes now = 0, before = 0, most = 0;        /* two batches are under way */
    for (int s = 0; s < 2 * x->g->state.n; s++) {
        const State *y = &x->g->state.at[s % x->g->state.n];
        if (y->kind != S_GRAD || y->op < x->first || y->op > x->last)
            continue;
        Halves k = transport_halves(x->p, row, s % x->g->state.n, level, false);
        if (s < x->g->state.n) {        /* the largest first */
            batch.largest = k.bytes > batch.largest ? k.bytes : batch.largest;
            continue;
        }
        now += aligned(k.gets.until - k.gets.from);
        most = before + now > most ? before + now : most;
        if (transport_batch(&batch, k.bytes)) {
            before = now;
            now = 0;
        }
    }
    return most;
}

static Bytes take_merges(const Live *x)
{
    Bytes most = 0;
    int row = plan_copy(x->p, stage_of(x->p, x->chunk), x->chunk);
    for (int level = 0; level < plan_depth(x->p, x->chunk); level++) {
        Bytes now = take_level(x, row, level);
        most = now > most ? now : most;
    }
    return most;
}

/* One that drops is here from backward until it has been exchanged, and its part behind that: with other chunks on the device,
 * beside those.  Returns the bytes that stay for the update. */
static Bytes take_sum(Live *x, int s)
{
    Bytes bytes = x->accumulators[x->chunk] * aligned(x->g->state.at[s].bytes), part = 0;
    bool drops = x->drops && plan_drops(x->p, s), apart = drops && x->apart[x->chunk];
    *(apart ? &x->load.sums : &x->load.states) += bytes;
    if (drops)
        part = index_part(x, s);
    if (!apart || x->alone[x->chunk])
        return part;
    x->load.states += part;
    return 0;
}

/* Before the update, gradients of other replicas arrive, a few at a time (comm.c); in it, those of uses elsewhere come
 * home. */
static Bytes take_states(Live *x)
{
    Bytes visiting = 0, parts = 0, norms = 0, merged = x->merges ? take_merges(x) : 0;
    x->load.states = x->fixed * x->steps[x->chunk];
    for (int o = x->first; o <= x->last; o++)
        for (int i = 0; i < x->use[o].n; i++) {
            const State *s = &x->g->state.at[x->use[o].at[i]];
            bool home = x->g->state.at[s->param].op >= x->first;
            parts += take_sum(x, x->use[o].at[i]);
            if (x->met[s->param] != x->round) {
                x->met[s->param] = x->round;
                x->load.rooms += x->room[s->param];
                x->load.states += home ? x->owner[s->param] : x->guest[s->param];
                x->load.states += home ? x->delay[x->chunk] * x->version[s->param] : 0;
                norms = home ? x->norms : norms;
                visiting += home ? x->uses[s->param] : 0;
            }
            visiting -= home ? index_home(x, x->use[o].at[i]) : 0;
        }
    x->load.states += norms;
    merged += x->load.sums, visiting += parts;
    return visiting > merged ? visiting : merged;
}

/* kind: the computation that touches it first; late: W does too, or alone. */
static void cross(Live *x, int t, int kind, bool late, Border *b)
{
    bool grad = x->grad[t];
    int far = index_leaves(x, t) ? index_far(x, t) : 0;
    if (index_leaves(x, t) && grad) {
        *border_out(b, far, kind) += kind == BACKWARD && late ? 0 : x->bytes[t];
        b->out[DONE] += kind == BACKWARD ? x->bytes[t] : 0;
    } else if (index_leaves(x, t)) {
        *border_out(b, far, FORWARD) += rebuild_saved(&x->back, t) ? 0 : x->bytes[t];
        *border_out(b, far, GONE) += rebuild_saved(&x->back, t) && late ? 0 : x->bytes[t];
        b->out[PAST] += x->bytes[t];
    } else if (!index_own(x, t) && x->maker[t] >= 0) {
        b->in[grad ? kind : FORWARD] += x->bytes[t];
        b->in[DONE] += grad && kind == WEIGHT && index_company(x, t) == ALONE ? x->bytes[t] : 0;
    }
}

/* The operators of a computation of the run at hand: F, I, W; where B is one, it is as I. */
static bool part_of(const Live *x, int kind, int op)
{
    bool weight = x->split[x->chunk] && x->g->op.at[op].phase == PH_W;
    return kind == FORWARD ? op < x->g->nf : weight == (kind == WEIGHT);
}

static void touch_part(Live *x, int kind)
{
    int from = kind == FORWARD ? x->first : x->begin[x->last], to = kind == FORWARD ? x->last + 1 : x->end[x->first];
    for (int o = from; o < to; o++)
        for (int i = x->op[o].read.from; i < x->op[o].write.to && part_of(x, kind, o); i++) {
            x->at = kind;
            touch(x, 2 * x->touched.at[i]);
        }
}

static Border borders(Live *x)
{
    Border b = {.fars = x->fars};
    start(x);
    touch_part(x, FORWARD);
    touch_part(x, BACKWARD);
    if (x->split[x->chunk])
        touch_part(x, WEIGHT);
    for (int i = 0; i < x->n; i++)
        cross(x, x->sequence[i] / 2, x->from[x->sequence[i]], x->to[x->sequence[i]] == WEIGHT, &b);
    border_own(&b);
    b.out[NEAR] = b.out[BACKWARD];
    return b;
}

static void take_times(Live *x)
{
    const Ns *time = live_times(x, x->chunk);
    for (int o = x->first; o <= x->last; o++)
        x->load.forward += time[o];
    x->load.forward += live_alone(x, x->chunk)[x->first] - time[x->first];
    for (int o = x->begin[x->last]; o < x->end[x->first]; o++)
        x->load.backward += time[o];
}

Bytes live_moments(const Live *x, int chunk, const Border *b, const Bytes *alive, const Load *l)
{
    Bytes most = 0;
    for (EACH(const ReplayMoment, m, x->worst[chunk])) {
        int kind = moment_kind(m);
        Bytes within = alive[alive[kind] ? kind : m->now];
        Bytes between = moment_brought(m, l, b) + moment_sent(&m->due, b);
        within = within > between ? within : between;
        within = m->sums == SUMS_HERE ? within + l->sums : m->sums == SUMS_COME && l->sums > within ? l->sums : within;
        Bytes bytes = l->rooms + moment_resting(m, l) + moment_flying(m, b) + within;
        most = bytes > most ? bytes : most;
    }
    return most;
}

/* Nothing is offloaded: each moment once. */
static Bytes most_resting(Live *x, const Border *b)
{
    Bytes alive[KINDS] = {[FORWARD] = most_forward(x)}, other;
    most_backward(x, NONE, &alive[BACKWARD], &alive[WEIGHT]);
    if (border_sends(b, OWN))
        most_backward(x, OWN, &alive[OWN], &other);
    if (border_sends(b, NEAR))
        most_backward(x, NEAR, &other, &alive[NEAR]);
    return live_moments(x, x->chunk, b, alive, &x->load);
}

/* Windows reach from one computation into others: the whole list. */
static Bytes most_away(Live *x, const Border *b)
{
    Bytes input, weight, *forward = x->alive;
    most_forward(x);
    x->alive = x->other, x->other = forward;
    most_backward(x, NONE, &input, &weight);
    away_cut(x);
    away_level(x, FORWARD, forward);
    away_level(x, BACKWARD, x->alive);
    for (int kind = OWN; kind <= NEAR; kind += NEAR - OWN)
        if (border_sends(b, kind)) {
            most_backward(x, kind, &input, &weight);
            away_level(x, kind, x->alive);
        }
    return away_most(x, b);
}

Load live_constant(Live *x, int first, int last, int chunk, Bytes *visiting, Border *b)
{
    begin(x, first, last, chunk);
    rebuild_begin(&x->back, first, last, NULL);
    *visiting = take_states(x);
    take_times(x);
    *b = borders(x);
    return x->load;
}

Load live_sums(Live *x, int first, int last, int chunk, const int *fate)
{
    choose(x, first, last, chunk, fate);
    return x->load;
}

Ns live_early(Live *x, int first, int last, int chunk, const int *fate)
{
    choose(x, first, last, chunk, fate);
    return x->ready;
}

static Load walk(Live *x)
{
    Bytes visiting = take_states(x);
    take_times(x);
    const Rebuild *r = &x->back;
    int first = x->begin[x->last], end = x->end[x->first];
    x->lines = x->early = 0;
    while (x->early < r->lines && r->call[x->early] == 0)
        x->early++;
    for (int o = first, k = 0; o < end; o++) {
        for (; k < r->lines && r->call[k] <= o - first; k++)
            x->line[x->lines++] = ~r->line[k];
        x->line[x->lines++] = o;
    }
    x->inputs = x->lines;
    if (x->split[x->chunk])
        split(x);
    Border b = borders(x);
    Bytes most = x->naway ? x->load.sums + x->load.rooms + most_away(x, &b) : most_resting(x, &b);
    x->load.need = x->load.states + (most > visiting ? most : visiting);
    return x->load;
}

Load live_walk(Live *x, int first, int last, int chunk, const int *fate)
{
    choose(x, first, last, chunk, fate);
    return walk(x);
}

Load live_load(Live *x, int first, int last, int chunk, const int *fate)
{
    replay_enter(x, first, last, chunk);
    choose(x, first, last, chunk, fate);
    return replay_load(x, &x->load) ? x->load : walk(x);
}
