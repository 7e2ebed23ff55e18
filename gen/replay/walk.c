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
 * on their way (comm posts receives one computation ahead and waits for sends one behind):
 *
 *   states + max over (computation, the two before, the one after) of the larger of
 *       within it      saved of those at rest + most alive within it + received for the one after + sent by the one before
 *       right before   saved of those at rest + received for it and for the one after + sent by the two before
 *
 * In the update, gradients of tied parameters from other devices are added.  Nothing depends on the place of the other chunks,
 * so a run can be priced before a cut is known.
 *
 * Cost: linear in the operands of the run, its backward and its recomputation.  Marks carry the number of the walk, so starting
 * anew is free and nothing is allocated.  Where nothing is offloaded fast.c answers instead, in a fraction of the time.
 *
 * Not handled: packing, which repack.c feeds back; sends that `comm` leaves under way for longer, to avoid a deadlock.
 */
#include "index.h"
#include "list/transport.h"

/* ---- backward as a line ------------------------------------------------------------------------------------------ */

static bool own(const Live *x, int t)
{
    return index_own(x, t);
}

static bool rests(const Live *x, int t)
{
    return rebuild_saved(&x->back, t);
}

static bool remade(const Live *x, int t)
{
    return rebuild_remade(&x->back, t);
}

static void begin(Live *x, int first, int last, int chunk)
{
    x->first = first;
    x->last = last;
    x->chunk = chunk;
    x->round++;
    x->naway = 0;
    x->load = (Load){0};
}

static void find_reads(Live *x)
{
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

static Way way_of(const Live *x, int t)
{
    int device = plan_home(x->p, 0, x->chunk);
    Bytes bytes = x->g->tensor.at[t].bytes;
    return (Way){.tensor = t, .fast = cost_host(x->p->c, device, bytes), .slow = offload_window(x->p, device, bytes),
                 .bytes = x->bytes[t]};
}

/* Finds the tensors that are saved, sent to the host and made again under these fates. */
static void choose(Live *x, int first, int last, int chunk, const int *fate)
{
    const Ns *time = live_times(x, chunk);
    bool known = x->read_first == first && x->read_last == last;
    begin(x, first, last, chunk);
    x->read_first = first, x->read_last = last;
    if (!known)
        find_reads(x);
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
        x->load.again += time[x->back.line[k]];
        x->ready = x->back.call[k] ? x->ready : x->load.again;
    }
}

static void write_backward(Live *x)
{
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
}

/* ---- the most bytes alive ---------------------------------------------------------------------------------------- */

static void touch(Live *x, int i)
{
    if (x->seen[i] != x->walk) {
        x->seen[i] = x->walk;
        x->from[i] = x->at;
        x->order[x->n++] = i;
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
        int k = x->order[i];
        x->change[x->from[k]] += x->bytes[k / 2];
        x->change[x->to[k] + 1] -= x->bytes[k / 2];
    }
    for (int i = 0; i < x->at; i++) {
        now += x->change[i];
        x->level[i] = now + x->tmp[i];
        most = x->level[i] > most ? x->level[i] : most;
    }
    return most;
}

static bool leaves(const Live *x, int t)
{
    return index_leaves(x, t);
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
        int k = x->order[i], t = k / 2;
        if (!own(x, t))
            x->from[k] = 0;
        if (rests(x, t) || leaves(x, t))
            x->to[k] = x->at - 1;
    }
    return most_alive(x);
}

/* Saved tensors and received gradients are there before.  Gradients to send stay, and so do tensors that forward still sends.
 * */
static Bytes most_backward(Live *x, bool sending)
{
    start(x);
    for (int i = 0; i < x->lines; i++, x->at++) {
        bool again = x->line[i] < 0;
        int o = again ? ~x->line[i] : x->line[i];
        const Touched *c = &x->op[o];
        x->tmp[x->at] = aligned(x->g->op.at[o].tmp);
        for (int k = c->read.from; k < c->read.to; k++)
            touch(x, 2 * x->touched.at[k] + remade(x, x->touched.at[k]));
        for (int k = c->write.from; k < c->write.to; k++)
            touch(x, 2 * x->touched.at[k] + (again && remade(x, x->touched.at[k])));
    }
    for (int i = 0; i < x->naway; i++)
        x->away[i].first = x->from[2 * x->away[i].tensor];
    for (int i = 0; i < x->n; i++) {
        int k = x->order[i], t = k / 2;
        if (!own(x, t) || (k % 2 == 0 && rests(x, t)))
            x->from[k] = 0;
        if ((x->grad[t] || (sending && k % 2 == 0 && rests(x, t))) && leaves(x, t))
            x->to[k] = x->at - 1;
    }
    return most_alive(x);
}

/* ---- sums -------------------------------------------------------------------------------------------------------- */

/* The bytes of another replica's gradients that are here at once. */
static Bytes take_merges(const Live *x)
{
    Batch batch = {0};
    Bytes now = 0, most = 0;
    for (int s = 0; s < 2 * x->g->state.n; s++) {
        const State *y = &x->g->state.at[s % x->g->state.n];
        if (y->kind != S_GRAD || y->op < x->first || y->op > x->last)
            continue;
        if (s < x->g->state.n) {        /* the largest first */
            batch.largest = y->bytes > batch.largest ? y->bytes : batch.largest;
            continue;
        }
        now += aligned(y->bytes);
        most = now > most ? now : most;
        now = transport_batch(&batch, y->bytes) ? 0 : now;
    }
    return most;
}

/* Before the update, gradients of other replicas arrive, a few at a time (comm.c); in it, those of uses elsewhere come
 * home. */
static Bytes take_states(Live *x)
{
    Bytes visiting = 0, norms = 0, merged = x->p->m->plan.replicas > 1 ? take_merges(x) : 0;
    x->load.states = x->fixed * x->steps[x->chunk];
    for (int o = x->first; o <= x->last; o++)
        for (int i = 0; i < x->use[o].n; i++) {
            const State *s = &x->g->state.at[x->use[o].at[i]];
            bool home = x->g->state.at[s->param].op >= x->first;
            x->load.states += x->levels[x->chunk] * aligned(s->bytes);
            if (x->met[s->param] != x->round) {
                x->met[s->param] = x->round;
                x->load.states += home ? x->owner[s->param] : x->guest[s->param];
                x->load.states += home ? x->delay[x->chunk] * x->version[s->param] : 0;
                norms = home ? x->norms : norms;
                visiting += home ? x->uses[s->param] : 0;
            }
            visiting -= home ? aligned(s->bytes) : 0;
        }
    x->load.states += norms;
    return visiting > merged ? visiting : merged;
}

static void cross(Live *x, int t, Border *b)
{
    int kind = x->grad[t] ? BACKWARD : FORWARD;
    if (leaves(x, t)) {
        b->out[kind] += rests(x, t) ? 0 : x->bytes[t];
        b->out[GONE] += kind == FORWARD ? x->bytes[t] : 0;
        x->load.sent += kind == FORWARD ? x->bytes[t] : 0;
    } else if (!own(x, t) && x->home[t] >= 0) {
        b->in[kind] += x->bytes[t];
        x->load.received += kind == FORWARD ? x->bytes[t] : 0;
    }
}

static Border borders(Live *x)
{
    Border b = {0};
    start(x);
    for (int pass = 0; pass < 2; pass++) {
        int from = pass ? x->begin[x->last] : x->first, to = pass ? x->end[x->first] : x->last + 1;
        for (int o = from; o < to; o++)
            for (int i = x->op[o].read.from; i < x->op[o].write.to; i++) {
                int t = x->touched.at[i];
                if (x->seen[2 * t] == x->walk)
                    continue;
                x->seen[2 * t] = x->walk;
                cross(x, t, &b);
            }
    }
    b.out[OWN] = b.out[FORWARD];
    return b;
}

static void take_times(Live *x)
{
    const Ns *time = live_times(x, x->chunk);
    for (int o = x->first; o <= x->last; o++)
        x->load.forward += time[o];
    for (int o = x->begin[x->last]; o < x->end[x->first]; o++)
        x->load.backward += time[o];
}

Bytes live_moments(const Live *x, int chunk, const Border *b, const Bytes *alive, Bytes saved)
{
    Bytes most = 0;
    for (int i = 0; i < x->moment[chunk].n; i++) {
        const Moment *m = &x->moment[chunk].at[i];
        Bytes flying = moment_flying(m, b), own = m->now == BACKWARD ? saved : 0;
        Bytes within = alive[moment_own(m) && alive[OWN] ? OWN : m->now];
        Bytes between = own + b->in[m->now] + b->out[m->second];
        Bytes bytes = m->rest * saved + flying + (within > between ? within : between);
        most = bytes > most ? bytes : most;
    }
    return most;
}

/* Nothing is offloaded: each moment once. */
static Bytes most_resting(Live *x, const Border *b)
{
    Bytes alive[KINDS] = {[FORWARD] = most_forward(x), [BACKWARD] = most_backward(x, false)};
    if (b->out[GONE] > b->out[OWN])
        alive[OWN] = most_backward(x, true);
    return live_moments(x, x->chunk, b, alive, x->load.saved);
}

/* Windows reach from one computation into others: the whole list. */
static Bytes most_away(Live *x, const Border *b)
{
    most_forward(x);
    most_backward(x, true);
    away_cut(x);
    away_level(x, 2, x->level);
    most_backward(x, false);
    away_level(x, 1, x->level);
    most_forward(x);
    away_level(x, 0, x->level);
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
    write_backward(x);
    Border b = borders(x);
    Bytes most = x->naway ? most_away(x, &b) : most_resting(x, &b);
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
