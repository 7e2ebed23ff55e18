/* SPDX-License-Identifier: Apache-2.0
 *
 * offload.c: offloaded tensors in the replay of walk.c: their time on the device, and the time that it waits for them.
 *
 * Problem: an offloaded tensor is on its device from its producer until its copy is out, and from the begin of the copy back
 * to its last reader.  These windows depend on the link and on the whole list.  In warm-up forwards come every f and copies
 * pile up.  In drain backwards come every b and fetches pile up.  On a slow link a window reaches into the neighbouring
 * computations.  One copy, or two, for each tensor is a rule of thumb and wrong at both ends.
 *
 * Method: the plan of list/offload.c, made for one run before there is a list with messages.  Forward and backward are cut into
 * pieces where copies may begin or end.  The pieces of all computations of the chunk's list lie on a clock that only computing
 * advances.  list/copies.c gives the windows.  Bytes beside the pieces are then added to those that walk.c counts within them.
 * Copies take a quarter longer there than their price, as in list/offload.c.
 *
 * Waiting: the same events at the price alone, one link each way or one for both, are replayed from the first piece to the
 * last.  The device then ends later by the time that the link cannot hide; the micro-batches share it.  Waiting for other
 * stages hides more: the price is on the safe side.
 *
 * Cost: linear in pieces and copies of the list.  The cost of list/offload.c is only paid for the cut that is chosen.
 *
 * Not handled: other chunks of the same device, which compute in no time here and use no link.
 */
#include "index.h"
#include "list/list.h"

/* Bytes of copies in front of a piece: begun outwards; gone; come back; of those, operands from here on. */
typedef struct { Bytes out, sent, in, due; } Beside;

/* Gives a VEC room for so many elements.  The caller writes each before reading it. */
#define ROOM(v, count) do { while ((v).cap < (count)) { (v).n = (v).cap; (void)PUSH(&(v)); } (v).n = (count); } while (0)

struct ReplayCopies {
    int *out;                   /* Live.away by the last forward reader; itself it is by the first reader in backward */
    Ns *clock[2];               /* by call of forward, of backward: time before it */
    char *cut[2];               /* by call: a piece begins there */
    int *piece[2];              /* by call: its piece */
    Bytes *most[KINDS];         /* by piece: what walk.c counts, of FORWARD, BACKWARD, OWN, NEAR */
    Ns *time[2];                /* by piece */
    int calls[2], pieces[2];
    int inputs;                 /* pieces of backward up to the end of B or I; the rest is W */
    VEC(CopyStep) step;         /* by computation of the list; one more: the end */
    VEC(Ns) at;                 /* by piece of the list: when it begins */
    VEC(Beside) beside;         /* by piece of the list */
    VEC(CopyTime) copy;         /* [micro-batch * naway + away] */
    VEC(CopyOrder) out_order;   /* of copies on their way out */
    VEC(CopyOrder) in_order;    /* of copies on their way in */
    VEC(Ns) gone, come;         /* by copy: when it ends */
    Ints back, late;            /* computations of the list: B or I; W */
};

void away_open(Live *x)
{
    size_t calls = (size_t)(x->g->nb + x->g->nf + 2), tensors = (size_t)x->g->tensor.n + 1;
    struct ReplayCopies *w = x->ways = alloc(sizeof *w);
    x->away = alloc(sizeof *x->away * tensors);
    w->out = alloc(sizeof *w->out * tensors);
    for (int i = 0; i < 2; i++) {
        w->clock[i] = alloc(sizeof(Ns) * calls);
        w->cut[i] = alloc(calls);
        w->piece[i] = alloc(sizeof(int) * calls);
        w->time[i] = alloc(sizeof(Ns) * calls);
    }
    for (int i = FORWARD; i <= NEAR; i++)
        w->most[i] = alloc(sizeof(Bytes) * calls);
}

/* ---- pieces of one computation ----------------------------------------------------------------------------------- */

static bool is_before(const ReplayCopy *a, const ReplayCopy *b)
{
    return a->first != b->first ? a->first < b->first : a->tensor < b->tensor;
}

static bool goes_behind(const ReplayCopy *a, const ReplayCopy *b)
{
    return a->after != b->after ? a->after > b->after : a->tensor > b->tensor;
}

/* Cuts so long after the begin of whichever computation comes next, or before the end of the one before. */
static void cut_next(struct ReplayCopies *w, Ns after)
{
    for (int k = 0; k < 2 && after > 0; k++) {
        int i = 0;
        while (i < w->calls[k] && w->clock[k][i] < after)
            i++;
        w->cut[k][i] = true;
    }
}

static void cut_last(struct ReplayCopies *w, Ns before)
{
    for (int k = 0; k < 2 && before > 0; k++) {
        int i = w->calls[k];
        while (i > 0 && w->clock[k][w->calls[k]] - w->clock[k][i] < before)
            i--;
        w->cut[k][i] = true;
    }
}

static void cut_forward(Live *x, struct ReplayCopies *w)
{
    Ns free = 0;
    int at = 0;
    for (int i = 0; i < x->naway; i++) {
        const ReplayCopy *a = &x->away[w->out[i]];
        wire_take(&free, w->clock[0][a->after], a->slow);
        while (at < w->calls[0] && w->clock[0][at] < free)
            at++;
        w->cut[0][a->after] = w->cut[0][at] = true;
        cut_next(w, free - w->clock[0][w->calls[0]]);
    }
}

static int piece_from(const struct ReplayCopies *w, int way, int call)
{
    return call < w->calls[way] ? w->piece[way][call] : w->pieces[way];
}

/* ---- pieces of the list ------------------------------------------------------------------------------------------ */

/* Of its way, those of a computation. */
static ListRange pieces_of(const struct ReplayCopies *w, int kind)
{
    switch (kind) {
    case FORWARD:  return (ListRange){0, w->pieces[0]};
    case BACKWARD: return (ListRange){0, w->inputs};
    case WEIGHT:   return (ListRange){w->inputs, w->pieces[1]};
    default:       return (ListRange){0, 0};
    }
}

static void lay_out(Live *x, struct ReplayCopies *w)
{
    const Beats *beats = index_beats(x, x->chunk);
    Ns now = 0;
    int n = 0;
    for (int i = 0; i < beats->n; i++) {
        ListRange r = pieces_of(w, beats->at[i].m.now);
        n += r.to - r.from;
    }
    ROOM(w->at, n + 1);
    ROOM(w->beside, n + 1);
    ROOM(w->step, beats->n + 1);
    n = w->back.n = w->late.n = 0;
    for (int i = 0; i < beats->n; i++) {
        int kind = beats->at[i].m.now;
        ListRange r = pieces_of(w, kind);
        bool computes = kind == FORWARD || kind == BACKWARD || kind == WEIGHT;
        w->step.at[i] = (CopyStep){computes ? 0 : -1, beats->at[i].mb, n, kind == FORWARD};
        for (int k = r.from; k < r.to; k++) {
            w->at.at[n] = now;
            w->beside.at[n++] = (Beside){0};
            now += w->time[kind != FORWARD][k];
        }
        if (kind == BACKWARD || kind == WEIGHT)
            *PUSH(kind == WEIGHT ? &w->late : &w->back) = i;
    }
    w->step.at[beats->n] = (CopyStep){.chunk = -1, .first = n};
    w->at.at[n] = now;
    w->beside.at[n] = (Beside){0};
}

/* The computation of the list that reads an offloaded tensor of micro-batch mb first. */
static int reads(const struct ReplayCopies *w, const ReplayCopy *a, int mb)
{
    return piece_from(w, 1, a->first) < w->inputs ? w->back.at[mb] : w->late.at[mb];
}

/* Copies out in the order of the forwards, each behind the last call that touches its tensor.  Micro-batches go forward and
 * backward in the same order. */
static void find_copies(Live *x, struct ReplayCopies *w)
{
    const Beats *beats = index_beats(x, x->chunk);
    int n = w->back.n * x->naway, copies = 0;
    ROOM(w->copy, n);
    ROOM(w->gone, n);
    ROOM(w->come, n);
    ROOM(w->out_order, n);
    ROOM(w->in_order, n);
    for (int i = 0, mb = 0; i < beats->n && mb < w->back.n; i++) {
        for (int k = 0; beats->at[i].m.now == FORWARD && k < x->naway; k++) {
            const ReplayCopy *a = &x->away[w->out[k]];
            int at = mb * x->naway + w->out[k], reader = reads(w, a, mb), piece = piece_from(w, 1, a->first);
            int out = w->step.at[i].first + piece_from(w, 0, a->after);
            int due = w->step.at[reader].first + piece - (piece < w->inputs ? 0 : w->inputs);
            w->copy.at[at] = (CopyTime){.away = w->out[k], .maker = i, .reader = reader, .out = out, .due = due, .ns = a->slow};
            w->out_order.at[copies++] = (CopyOrder){out, at};
            w->in_order.at[at] = (CopyOrder){due, at};
        }
        mb += beats->at[i].m.now == FORWARD;
    }
    if (w->late.n)              /* else they are in this order */
        qsort(w->in_order.at, (size_t)n, sizeof *w->in_order.at, copies_by_piece);
}

static void plan_windows(Live *x, struct ReplayCopies *w)
{
    find_copies(x, w);
    CopyList l = {w->at.at, w->step.at, w->at.n - 1, w->step.n - 1, x->p->ask.choice.copy_slack};
    copies_out(&l, w->copy.at, w->out_order.at, w->copy.n);
    copies_in(&l, w->copy.at, w->in_order.at, w->copy.n);
    for (EACH(const CopyTime, c, w->copy)) {
        Bytes bytes = x->away[c->away].bytes;
        w->beside.at[c->out].out += bytes;
        w->beside.at[c->sent].sent += bytes;
        w->beside.at[c->in].in += bytes;
        w->beside.at[c->due].due += bytes;
    }
}

/* ---- what it takes ----------------------------------------------------------------------------------------------- */

/* Which of ReplayCopies.most a moment is about. */
static int level_of(const ReplayMoment *m, const Border *b)
{
    int kind = moment_kind(m);
    return m->now == FORWARD ? FORWARD : (kind == OWN || kind == NEAR) && border_sends(b, kind) ? kind : BACKWARD;
}

/* The most that copies hold while messages begin and end, in front of a computation; before: what they held in the one before.
 * Messages begin once copies out have begun.  Then copies that have ended are waited for, and others begin to come back.  What
 * is due is an operand only once the messages that end here have ended. */
static Bytes most_begun(const Beside *k, Bytes before)
{
    return before + k->out + (k->in > k->sent ? k->in - k->sent : 0);
}

static Bytes most_beside(Live *x, struct ReplayCopies *w, const Border *b)
{
    const Beats *beats = index_beats(x, x->chunk);
    Bytes most = 0, now = 0, before = 0;
    for (int i = 0; i < beats->n; i++) {
        const ReplayMoment *m = &beats->at[i].m;
        int from = w->step.at[i].first, kind = level_of(m, b), offset = from - pieces_of(w, m->now).from;
        Bytes rest = moment_resting(m, &x->load) + moment_flying(m, b);
        Bytes between = rest + moment_brought(m, &x->load, b) + moment_sent(&m->due, b);
        Bytes begun = between + most_begun(&w->beside.at[from], before);
        most = begun > most ? begun : most;
        for (int k = from; k < w->step.at[i + 1].first; k++) {
            const Beside *c = &w->beside.at[k];
            now += c->out - c->sent + c->in - c->due;
            Bytes bytes = rest + now + w->most[kind][k - offset];
            most = bytes > most ? bytes : most;
        }
        before = now;
    }
    return most;
}

/* The time by which the device ends later than if copies took no time. */
static Ns stall_of(Live *x, struct ReplayCopies *w, bool half)
{
    const CopyTime *c = w->copy.at;
    const CopyOrder *order = w->out_order.at, *back = w->in_order.at;
    int n = w->copy.n, out = 0, sent = 0, in = 0, due = 0;
    Ns now = 0, wire[2] = {0, 0}, *inwards = &wire[!half];
    for (int i = 0; i < w->at.n; i++) {
        for (; out < n && order[out].piece <= i; out++) {
            wire_take(wire, now, x->away[c[order[out].copy].away].fast);
            w->gone.at[order[out].copy] = *wire;
        }
        for (; sent < out && c[order[sent].copy].sent <= i; sent++)
            now = max_of(now, w->gone.at[order[sent].copy]);
        for (; in < n && c[back[in].copy].in <= i; in++) {
            wire_take(inwards, now, x->away[c[back[in].copy].away].fast);
            w->come.at[back[in].copy] = *inwards;
        }
        for (; due < in && back[due].piece <= i; due++)
            now = max_of(now, w->come.at[back[due].copy]);
        now += i + 1 < w->at.n ? w->at.at[i + 1] - w->at.at[i] : 0;
    }
    return now - w->at.at[w->at.n - 1];
}

/* Finds the windows of the fetched tensors.  away_most then counts live bytes, together with those that walk.c counted. */
void away_cut(Live *x)
{
    struct ReplayCopies *w = x->ways;
    const Ns *time = live_times(x, x->chunk), *alone = live_alone(x, x->chunk);
    w->calls[0] = x->last - x->first + 1;
    w->calls[1] = x->lines;
    for (int i = 0; i < w->calls[0]; i++)
        w->clock[0][i + 1] = w->clock[0][i] + (i ? time : alone)[x->first + i];
    for (int i = 0; i < w->calls[1]; i++)
        w->clock[1][i + 1] = w->clock[1][i] + (x->line[i] < 0 ? alone[~x->line[i]] : time[x->line[i]]);
    for (int k = 0; k < 2; k++)
        for (int i = 0; i <= w->calls[k]; i++)
            w->cut[k][i] = i == 0;
    w->cut[1][x->early] = w->cut[1][x->inputs] = true;
    /* Sorts away by first reader, and out by last forward reader; equal ones by first reader. */
    for (int i = 1; i < x->naway; i++) {        /* nearly so already */
        ReplayCopy a = x->away[i];
        int k = i;
        for (; k > 0 && is_before(&a, &x->away[k - 1]); k--)
            x->away[k] = x->away[k - 1];
        x->away[k] = a;
    }
    for (int i = 0; i < x->naway; i++) {
        int k = i;
        for (; k > 0 && goes_behind(&x->away[w->out[k - 1]], &x->away[i]); k--)
            w->out[k] = w->out[k - 1];
        w->out[k] = i;
    }
    cut_forward(x, w);
    Ns next = w->clock[1][w->calls[1]];
    int at = w->calls[1];
    for (int i = x->naway; i-- > 0;) {
        const ReplayCopy *a = &x->away[i];
        next = (next < w->clock[1][a->first] ? next : w->clock[1][a->first]) - a->slow;
        w->cut[1][a->first] = true;
        while (at > 0 && w->clock[1][at] > next)
            at--;
        w->cut[1][at] = true;
        cut_last(w, -next);
    }
}

void away_level(Live *x, int kind, const Bytes *level)
{
    /* Cuts a kind of computation into pieces. */
    struct ReplayCopies *w = x->ways;
    int inputs = x->inputs;
    int way = kind != FORWARD, n = -1;
    for (int i = 0; i < w->calls[way]; i++) {
        if (w->cut[way][i]) {
            w->most[kind][++n] = 0;
            w->time[way][n] = 0;
        }
        w->piece[way][i] = n;
        w->most[kind][n] = level[i] > w->most[kind][n] ? level[i] : w->most[kind][n];
        w->time[way][n] += w->clock[way][i + 1] - w->clock[way][i];
    }
    w->pieces[way] = n + 1;
    if (way)
        w->inputs = piece_from(w, 1, inputs);
}

Bytes away_most(Live *x, const Border *b)
{
    struct ReplayCopies *w = x->ways;
    lay_out(x, w);
    plan_windows(x, w);
    Ns stall = stall_of(x, w, cost_host_half(x->p->c, stage_of(x->p, x->chunk)));
    x->load.stall = w->back.n ? (stall + w->back.n - 1) / w->back.n : 0;
    return most_beside(x, w, b);
}

int live_copies(const Live *x)
{
    return x->naway ? x->ways->copy.n : 0;
}

int live_free(const Live *x, int i, Ns *time)
{
    const struct ReplayCopies *w = x->ways;
    if (i >= x->naway)
        return -1;
    const ReplayCopy *a = &x->away[i];
    *time = w->clock[0][w->calls[0]] - w->clock[0][a->after] + w->clock[1][a->first] - 2 * a->fast;
    return a->tensor;
}
