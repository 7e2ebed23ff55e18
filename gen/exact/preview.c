/* SPDX-License-Identifier: Apache-2.0
 *
 * preview.c: the time of a step, before there are routines and messages.
 *
 * Problem: the objective is the simulated time of the real action lists (lower/sim.c).  But a planner compares thousands of
 * cuts, and to write out one of them takes as long as hundreds of simulations.  Closed forms do not do: sum + (m-1) max is off
 * by -21 to +4 % for 1F1B.
 *
 * Method: the same event simulation, over the ordered lists alone.  A forward or backward is one computation; its chunk's
 * price gives its time.  All that one chunk sends another for one micro-batch is one message.  transport.h says when a message
 * is posted, begun and waited for; list.h says when it has the wire.  Data inputs are loaded before activations are waited
 * for, and recomputation runs before the gradient is waited for.  preview_ends.c adds what comes before and after.  Where
 * nothing is copied to the host, the answer is that of sim.c to the nanosecond.
 *
 * Where devices would wait for each other in a circle, sends are waited for twice as many computations later (transport.h).
 *
 * Not handled: copies to the host, half duplex links (but in preview_ends.c), replicas on devices of other speeds, or
 * with longer parts of gradients than the first one.
 *
 * Ask.more micro-batches take a beat each, that of the longest device.
 *
 * A search asks whether a plan is faster than another one.  It is not, once a device has less time left than its computations
 * take without waits.
 *
 * Cost: linear in the edges of the graph, and in computations times messages a computation.
 */
#include "exact.h"
#include "list/transport.h"
#include "list/list.h"

typedef enum { PART_F, PART_I, PART_W, PARTS } PreviewPhase; /* of a chunk; without split lists W is in I */

typedef struct {                /* what one chunk sends another for each micro-batch */
    int to;                     /* a chunk */
    PreviewPhase read;          /* by the first reader */
    int last;                   /* of its tensors */
    Ns wire;                    /* of each tensor by itself: times are rounded up, and a measured link is no straight line */
    int from_device, to_device;
} Pipe;

/* sent, posted, end: -1: not yet; wire: how long; beat: computations its sender had done; number: in its lane; slack: of its
 * send */
typedef struct { Ns sent, posted, wire, end; int beat, number, slack; } PreviewMessage;
typedef VEC(PreviewMessage *) Messages;
/* from one device to another, in the order of the sender; receives are posted in that order, too */
typedef struct { Messages queue; int posted, ended; Ns free, latency; } PreviewLane;

typedef struct {                /* an action of a list, as far as it is played: many times */
    const Action *of;
    ActionKind kind;
    int chunk, mb, ahead;       /* ahead: of a computation, the one whose receives are posted with it, by place; -1: none */
    int first, end;             /* the Parts that it runs, of in and out */
} PreviewTurn;
typedef VEC(PreviewTurn) PreviewTurns;

struct Preview {
    const Facts *x;
    Finish *finish;
    const Plan *p;
    int64_t m;                  /* micro-batches of the lists */
    PreviewTurns *list;         /* by device */
    int *last;                  /* the cuts that pipes, lanes and loads are of */
    int *count;                 /* [PARTS * chunk + Part]: computations of the lists */
    int *chunk, *seen;          /* by forward operator; by device: the tensor that it was sent last, + 1 */
    VEC(Pipe) pipe;
    Ints *in, *out;             /* [PARTS * chunk + Part]: pipes that it reads, that it fills */
    PreviewMessage *message;    /* [pipe * m + micro-batch] */
    int room;                   /* pipes that `message` has room for */
    PreviewLane *lane;          /* [from * devices + to] */
    Ints used;                  /* lanes that carry something */
    Messages *sent;             /* by device: sends that are not yet waited for */
    int *beat;                  /* by device: computations that are done */
    int ahead;                  /* computations that a receive is posted before its reader */
    int times;                  /* how often the slack of sends */
    int *next;                  /* by device */
    bool *posted;               /* by device: receives of action `next` are */
    Ns *now, *left;             /* by device; what its computations take that are not done, without waits */
    Ns most;                    /* from there on no time is of use */
    bool over, circle;          /* it takes so long; devices waited for each other in a circle, under some cuts */
    Ns *load, *forward, *early, *back, *weight; /* by chunk */
    Ns *fold;                   /* [chunk * FOLDS + Fold] */
};

/* ---- what is sent ------------------------------------------------------------------------------------------------ */

static Pipe *pipe_of(Preview *v, int from, PreviewPhase made, int to, PreviewPhase read)
{
    Ints *out = &v->out[PARTS * from + (int)made], *in = &v->in[PARTS * to + (int)read];
    for (int i = 0; i < out->n; i++) {
        Pipe *k = &v->pipe.at[out->at[i]];
        if (k->to == to && k->read == read)
            return k;
    }
    *PUSH(out) = *PUSH(in) = v->pipe.n;
    Pipe *k = PUSH(&v->pipe);
    *k = (Pipe){.to = to, .read = read, .from_device = stage_of(v->p, from),
                .to_device = stage_of(v->p, to)};
    return k;
}

/* What makes a tensor. */
static PreviewPhase made_by(const Preview *v, int tensor)
{
    const Graph *g = v->p->g;
    Phase phase = g->op.at[g->tensor.at[tensor].op].phase;
    return phase == PH_F ? PART_F : v->x->split && phase == PH_W ? PART_W : PART_I;
}

/* What reads the tensor of the edge at i first in its chunk. */
static PreviewPhase read_by(const Preview *v, int i)
{
    const Facts *x = v->x;
    const ExactEdge *e = &x->edge.at[i];
    bool late = x->split && e->weight;
    for (int k = i + 1; late && k < x->edge.n && x->edge.at[k].tensor == e->tensor; k++)
        late = v->chunk[x->edge.at[k].to] != v->chunk[e->to] || x->edge.at[k].weight;
    return !e->read_back ? PART_F : late ? PART_W : PART_I;
}

/* Where a computation makes several, one is under way when its last tensor is.  Those for weight gradients come behind. */
static bool comes_later(const Pipe *a, const Pipe *b)
{
    return (a->read == PART_W) != (b->read == PART_W) ? a->read == PART_W : a->last > b->last;
}

static void sort_pipes(const Preview *v, Ints *list)
{
    for (int i = 1; i < list->n; i++)
        for (int k = i; k > 0 && comes_later(&v->pipe.at[list->at[k - 1]], &v->pipe.at[list->at[k]]); k--) {
            int one = list->at[k];
            list->at[k] = list->at[k - 1];
            list->at[k - 1] = one;
        }
}

/* Chunks of one device hand tensors over; a device receives a tensor once, with its first reader. */
static void find_pipes(Preview *v, const int *last)
{
    const Facts *x = v->x;
    int *chunk = v->chunk, *seen = v->seen;
    for (int i = 0; i < PARTS * x->chunks; i++)
        v->in[i].n = v->out[i].n = 0;
    for (int d = 0; d < v->p->devices; d++)
        seen[d] = 0;
    v->pipe.n = 0;
    for (int o = 0, s = 0; o < x->n; s += o == last[s], o++)
        chunk[o] = s;
    for (int i = 0; i < x->edge.n; i++) {
        const ExactEdge *e = &x->edge.at[i];
        int from = chunk[e->from], to = chunk[e->to], device = stage_of(v->p, to);
        if (from == to || stage_of(v->p, from) == device || seen[device] == e->tensor + 1)
            continue;
        seen[device] = e->tensor + 1;
        Pipe *k = pipe_of(v, from, made_by(v, e->tensor), to, read_by(v, i));
        k->wire += cost_wire(v->p->c, k->from_device, k->to_device, v->p->g->tensor.at[e->tensor].bytes);
        k->last = e->tensor;
    }
    for (int i = 0; i < PARTS * x->chunks; i++)
        sort_pipes(v, &v->out[i]);
}

/* A device loads an input once for each micro-batch, with the first chunk that reads it. */
static void find_loads(Preview *v)
{
    const Facts *x = v->x;
    for (int s = 0; s < x->chunks; s++)
        v->load[s] = 0;
    for (int i = 0; i < x->reader.n; i++) {
        const ExactReader *k = &x->reader.at[i];
        int s = v->chunk[k->op], device = stage_of(v->p, s);
        bool loaded = false;
        for (int j = i - 1; j >= 0 && !loaded && x->reader.at[j].tensor == k->tensor; j--)
            loaded = stage_of(v->p, v->chunk[x->reader.at[j].op]) == device;
        v->load[s] += loaded ? 0 : k->load;
    }
}

/* A message that device d makes, behind those to the same device. */
static void add_message(Preview *v, int d, int pipe, int mb)
{
    PreviewMessage *x = &v->message[pipe * v->m + mb];
    const int to = v->pipe.at[pipe].to_device, at = d * v->p->devices + to;
    PreviewLane *w = &v->lane[at];
    if (w->queue.n == 0) {
        *PUSH(&v->used) = at;
        w->latency = cost_latency(v->p->c, d, to);
    }
    x->number = w->queue.n;
    *PUSH(&w->queue) = x;
}

static void find_lanes(Preview *v)
{
    for (int i = 0; i < v->used.n; i++)
        v->lane[v->used.at[i]].queue.n = 0;
    v->used.n = 0;
    for (int d = 0; d < v->p->devices; d++)
        for (EACH(const PreviewTurn, a, v->list[d]))
            for (int k = a->first; k < a->end; k++)
                for (int i = 0; i < v->out[k].n; i++)
                    add_message(v, d, v->out[k].at[i], a->mb);
}

/* Nothing is sent or posted. */
static void empty_lanes(Preview *v)
{
    for (int i = 0; i < v->used.n; i++) {
        PreviewLane *w = &v->lane[v->used.at[i]];
        w->posted = w->ended = 0;
        w->free = 0;
        for (int k = 0; k < w->queue.n; k++)
            w->queue.at[k]->sent = w->queue.at[k]->posted = w->queue.at[k]->end = -1;
    }
}

/* ---- events ------------------------------------------------------------------------------------------------------ */

/* Transfers that both sides have begun, in order. */
static void carry(const Preview *v, int from, int to)
{
    PreviewLane *w = &v->lane[from * v->p->devices + to];
    for (; w->ended < w->posted && w->queue.at[w->ended]->sent >= 0; w->ended++) {
        PreviewMessage *k = w->queue.at[w->ended];
        wire_take(&w->free, max_of(k->sent, k->posted), k->wire);
        k->end = w->free + w->latency;
    }
}

static void post_one(Preview *v, int device, int pipe, int mb)
{
    int from = v->pipe.at[pipe].from_device, number = v->message[pipe * v->m + mb].number;
    PreviewLane *w = &v->lane[from * v->p->devices + device];
    while (w->posted <= number)
        w->queue.at[w->posted++]->posted = v->now[device];
    carry(v, from, device);
}

static void post(Preview *v, int device, const PreviewTurn *a)
{
    for (int k = a->first; k < a->end; k++)
        for (int i = 0; i < v->in[k].n; i++)
            post_one(v, device, v->in[k].at[i], a->mb);
}

static void send_one(Preview *v, int device, int pipe, const PreviewTurn *a)
{
    const Pipe *k = &v->pipe.at[pipe];
    PreviewMessage *x = &v->message[pipe * v->m + a->mb];
    x->sent = v->now[device];
    x->beat = v->beat[device];
    x->slack = transport_slack(v->p, v->p->slack.at[2 * a->chunk + (a->kind != K_F)], device, k->to_device);
    x->wire = k->wire;
    *PUSH(&v->sent[device]) = x;
    carry(v, device, k->to_device);
}

/* When those sends have ended; -1: not known yet. */
static Ns sends_end(const Preview *v, int device)
{
    const Messages *s = &v->sent[device];
    Ns end = v->now[device];
    for (int i = 0; i < s->n; i++) {
        if (!transport_due(s->at[i]->beat, v->beat[device], v->times * s->at[i]->slack))
            continue;
        if (s->at[i]->end < 0)
            return -1;
        end = max_of(end, s->at[i]->end);
    }
    return end;
}

static Ns arrivals(const Preview *v, const PreviewTurn *a, Ns now)
{
    for (int k = a->first; k < a->end; k++)
        for (int i = 0; i < v->in[k].n; i++) {
            const PreviewMessage *x = &v->message[v->in[k].at[i] * v->m + a->mb];
            if (x->end < 0)
                return -1;
            now = max_of(now, x->end);
        }
    return now;
}

/* Time that a computation spends before it waits for messages. */
static Ns early_of(const Preview *v, const PreviewTurn *a)
{
    switch (a->kind) {
    case K_F: return v->load[a->chunk];
    case K_B: case K_I: return v->early[a->chunk];
    default:  return 0;
    }
}

static Ns length(const Preview *v, const PreviewTurn *a)
{
    switch (a->kind) {
    case K_F: return v->forward[a->chunk];
    case K_B: return v->back[a->chunk] + v->weight[a->chunk];
    case K_I: return v->back[a->chunk];
    case K_W: return v->weight[a->chunk];
    default:  return 0;
    }
}

/* One computation; false: it waits for another device. */
static bool compute(Preview *v, int device, const PreviewTurn *a)
{
    if (!v->posted[device] && a->ahead >= 0)
        post(v, device, &v->list[device].at[a->ahead]);
    v->posted[device] = true;
    Ns start = sends_end(v, device), ready = start < 0 ? -1 : arrivals(v, a, start + early_of(v, a));
    if (ready < 0)
        return false;
    Messages *s = &v->sent[device];
    int n = 0;
    for (int i = 0; i < s->n; i++)
        if (!transport_due(s->at[i]->beat, v->beat[device], v->times * s->at[i]->slack))
            s->at[n++] = s->at[i];
    s->n = n;
    v->now[device] = ready + length(v, a);
    v->left[device] -= early_of(v, a) + length(v, a);
    v->over |= v->now[device] + v->left[device] >= v->most;
    for (int k = a->first; k < a->end; k++)
        for (int i = 0; i < v->out[k].n; i++)
            send_one(v, device, v->out[k].at[i], a);
    v->beat[device]++;
    v->posted[device] = false;
    return true;
}

/* Device d as far as it gets; false if it could not do anything. */
static bool run_device(Preview *v, int d)
{
    const PreviewTurns *list = &v->list[d];
    int first = v->next[d];
    for (; v->next[d] < list->n && !v->over; v->next[d]++) {
        const PreviewTurn *a = &list->at[v->next[d]];
        v->now[d] += a->kind == K_FOLD ? v->fold[a->chunk * FOLDS + a->of->fold] : 0;
        if (a->kind == K_MERGE || (a->kind == K_SHARE && a->of->group != 2))    /* that of ties: finish() */
            v->now[d] = finish_merge(v->finish, d, a->of, v->now[d]);
        if (a->end > 0 && !compute(v, d, a))
            break;
    }
    return v->next[d] > first;
}

/* ---- the answer -------------------------------------------------------------------------------------------------- */

/* The place of the computation `behind` places after that at `from`; -1: the update comes first. */
static int computation(const Actions *list, int from, int behind)
{
    for (; from < list->n; from++)
        if (transport_beat(&list->at[from], false) && behind-- == 0)
            break;
    return from < list->n && list->at[from].mb >= 0 ? from : -1;
}

static PreviewTurns turns_of(Preview *v, const Actions *list)
{
    PreviewTurns all = {alloc(sizeof *all.at * (size_t)list->n), list->n, list->n};
    for (int i = 0; i < list->n; i++) {
        const Action *a = &list->at[i];
        const bool none = a->mb < 0 || a->kind == K_FOLD;
        const int first = none ? 0 : PARTS * a->chunk + (int)(a->kind == K_F ? PART_F : a->kind == K_W ? PART_W : PART_I);
        const int end = none ? 0 : first + 1 + (a->kind == K_B);
        all.at[i] = (PreviewTurn){a, a->kind, a->chunk, a->mb, none ? -1 : computation(list, i, v->ahead), first, end};
        for (int k = first; k < end; k++)
            v->count[k]++;
    }
    return all;
}

Preview *preview_open(const Facts *x)
{
    Preview *v = alloc(sizeof *v);
    *v = (Preview){.x = x, .p = x->q->p, .m = x->q->p->g->micro, .ahead = x->ahead};
    size_t devices = (size_t)v->p->devices, chunks = (size_t)x->chunks, ns = sizeof(Ns) * chunks;
    v->chunk = alloc(sizeof(int) * (size_t)x->n);
    v->seen = alloc(sizeof(int) * devices);
    v->in = alloc(sizeof(Ints) * PARTS * chunks);
    v->out = alloc(sizeof(Ints) * PARTS * chunks);
    v->lane = alloc(sizeof *v->lane * devices * devices);
    v->sent = alloc(sizeof *v->sent * devices);
    v->beat = alloc(sizeof *v->beat * devices);
    v->next = alloc(sizeof *v->next * devices);
    v->posted = alloc(devices);
    v->now = alloc(sizeof(Ns) * devices);
    v->left = alloc(sizeof(Ns) * devices);
    v->last = alloc(sizeof(int) * chunks);
    v->count = alloc(sizeof(int) * PARTS * chunks);
    v->last[0] = -1;
    v->list = alloc(sizeof *v->list * devices);
    for (int d = 0; d < v->p->devices; d++)
        v->list[d] = turns_of(v, &v->p->dev.at[d].order);
    v->load = alloc(ns);
    v->forward = alloc(ns);
    v->early = alloc(ns);
    v->back = alloc(ns);
    v->weight = alloc(ns);
    v->fold = alloc(ns * FOLDS);
    v->finish = x->finish;
    return v;
}

static void start(Preview *v, const int *last, const Price *const *price)
{
    const Facts *x = v->x;
    const size_t cuts = sizeof *last * (size_t)x->chunks;
    if (memcmp(v->last, last, cuts)) {
        memcpy(v->last, last, cuts);
        find_pipes(v, last);
        if (v->pipe.n > v->room) {
            v->room = 2 * v->pipe.n;
            v->message = alloc(sizeof *v->message * (size_t)v->m * (size_t)v->room);
        }
        find_lanes(v);
        find_loads(v);
    }
    empty_lanes(v);
    for (int d = 0; d < v->p->devices; d++) {
        v->sent[d].n = v->beat[d] = v->next[d] = 0;
        v->posted[d] = false;
        v->left[d] = 0;
    }
    finish_begin(v->finish, v->chunk, v->now);
    for (int s = 0, first = 0; s < x->chunks; first = last[s++] + 1) {
        const Ns *w = x->weight[x->class[s]];
        for (int fold = 0; fold < FOLDS; fold++)
            v->fold[s * FOLDS + fold] = finish_fold(v->finish, s, first, last[s], fold);
        v->forward[s] = price[s]->forward;
        v->weight[s] = w[last[s] + 1] - w[first];
        v->early[s] = price[s]->early;
        v->back[s] = price[s]->backward - v->early[s] - v->weight[s];
        const int *n = &v->count[PARTS * s];
        v->left[stage_of(v->p, s)] += n[PART_F] * (v->load[s] + v->forward[s]) + n[PART_I] * (v->early[s] + v->back[s])
            + n[PART_W] * v->weight[s];
    }
}

/* All devices as far as they get; false: they wait for each other. */
static bool run(Preview *v)
{
    bool done = true;
    v->over = false;
    for (int d = 0; d < v->p->devices; d++)
        for (int n = 0, at; n < v->ahead; n++)
            if ((at = computation(&v->p->dev.at[d].order, 0, n)) >= 0)
                post(v, d, &v->list[d].at[at]);
    for (bool moved = true; moved && !v->over;) {
        moved = false;
        for (int d = 0; d < v->p->devices; d++)
            moved |= run_device(v, d);
    }
    for (int d = 0; d < v->p->devices; d++)
        done &= v->next[d] == v->list[d].n;
    return done || v->over;
}

/* A beat of the full pipeline: of the device that computes for longest. */
static Ns beat_of(const Preview *v)
{
    Ns most = 0;
    for (int d = 0; d < v->p->devices; d++) {
        Ns sum = 0;
        for (int c = 0; c < v->x->chunks; c++)
            if (stage_of(v->p, c) == d)
                sum += v->load[c] + v->forward[c] + v->early[c] + v->back[c] + v->weight[c];
        most = max_of(most, sum);
    }
    return most;
}

/* Where devices wait in a circle, sends are waited for later, and a step may take less.  Such a plan is played to its end. */
Ns preview(Preview *v, const int *last, const Price *const *price, Ns most)
{
    v->times = 1;
    start(v, last, price);
    const Ns beats = v->p->ask.more ? v->p->ask.more * beat_of(v) : 0;
    v->most = v->circle ? INT64_MAX : most - beats;
    for (; !run(v); start(v, last, price)) {
        if ((v->times *= 2) > 8 * v->m * v->x->chunks)       /* more computations than there are: no send is waited for */
            die("preview: devices wait for each other for ever");
        v->circle = true;
        v->most = INT64_MAX;
    }
    return v->over ? most : finish(v->finish, v->chunk, last, v->now) + beats;
}
