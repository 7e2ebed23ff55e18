/* SPDX-License-Identifier: Apache-2.0
 *
 * offload.c: when an offloaded tensor leaves its device, and when it comes back.
 *
 * Problem: a tensor that backward reads long after forward made it may wait in the host's memory meanwhile.  Begun too late,
 * its return stalls the device.  Begun too early, it takes the room that it was sent away to free.
 *
 * Method: the list of a device, as comm wrote it, is laid out along a clock that only computations advance.  Time lost in
 * waiting for other stages comes on top and gives copies more room, never less.  On that clock
 *
 *   out    begins behind the last call of forward that touches the tensor; its wait stands where the copy has had time
 *          to end, behind the copies before it
 *   in     is due before its first reader.  All fetches of the step, warm-up and drain included, are planned from the last
 *          to the first.  Each is begun as late as the link allows, since the ones behind it want the link too.  This is
 *          earliest deadline first, run backwards: no order of copies begins later without being late
 *
 * Computations are cut into pieces at these places, the same for each micro-batch, so that their routines stay one text.  If
 * that takes more memory than there is, the search asks for it again in a hurry (copies.c).
 *
 * Copies take a quarter longer here than their price, and twice that where both directions share the link.  If a fetch would
 * have to begin before its tensor has gone out, it begins right then.  The device waits, and sim says for how long.
 *
 * The list says where copies stand; predicted times decide only where that is.  mem reads the lifetime of a buffer off the list
 * again, so a plan from a file keeps its bytes under any profile.
 *
 *   needs   the list of comm; Backward of its chunks     fills   the list, dev[].copies
 *   keeps   every other action, and their order: copies wait for nobody but the link, so no deadlock can come of them
 *   fails   status 4 above COPIES under way
 *
 * vDNN (Rhu et al., MICRO 2016) asks for the next layer's map one layer early and waits at each layer.  Capuchin (Peng et al.,
 * ASPLOS 2020) starts at the access before the deadline less the swap time and corrects itself while it runs.  Here the whole
 * step is known, so nothing is corrected.
 *
 * Source: Jackson's rule, Scheduling a production line to minimize maximum tardiness, 1955.
 *
 * Cost: n log n in copies of the step, linear in its calls.
 * Not handled: copies that share a wire with the pipeline's messages; asynchronous lists, refused with status 4.
 */
#include "list.h"

enum { COPIES = 4096, KINDS = K_R + 1 };       /* copies: as docs/emitted.md says */

typedef struct { Lines line; Ints cut; Ns *at; } OffloadTrack; /* of one computation; at: ns before call i; [n] the whole */
typedef struct {                /* an offloaded tensor of this device */
    int tensor, chunk;
    int after;                  /* calls of forward until its last reader there */
    ActionKind kind;            /* the computation of its first reader in backward, and which call of it */
    int first;
    Ns ns;                      /* a copy */
} Away;
typedef struct { int first, until; } OffloadSegment;

typedef struct {
    Plan *p;
    int device;
    const Backward *back;
    const Actions *old;
    OffloadTrack *track;        /* [chunk * KINDS + kind] */
    VEC(Away) away;
    VEC(OffloadSegment) piece;
    VEC(CopyStep) step;         /* by action; one more: the end */
    int *action;                /* [(chunk * KINDS + kind) * micro-batches + mb]; -1: none */
    Ns *clock;                  /* by piece: when it begins; [n] the end */
    VEC(CopyTime) copy;
    Actions out;
    bool busy[COPIES];
} Offload;

static bool cuts(ActionKind kind)
{
    return kind == K_F || kind == K_R || kind == K_B || kind == K_I || kind == K_W;
}

Ns offload_window(const Plan *p, int device, Bytes bytes)
{
    Ns ns = cost_host(p->c, device, bytes);
    return (ns + ns / 4) * (cost_host_half(p->c, device) ? 2 : 1);
}

void offload_out(const Ns *at, int calls, int n, const int *after, const Ns *ns, int *out, Ns *over)
{
    Ns free = 0;
    for (int i = 0; i < n; i++) {
        wire_take(&free, at[after[i]], ns[i]);
        out[i] = after[i];
        while (out[i] <= calls && at[out[i]] < free)
            out[i]++;
        over[i] = out[i] > calls ? free - at[calls] : 0;
    }
}

void offload_in(const Ns *at, int calls, int n, const int *first, const Ns *ns, int *in, Ns *over)
{
    Ns next = at[calls];
    for (int i = n - 1; i >= 0; i--) {
        next = (next < at[first[i]] ? next : at[first[i]]) - ns[i];
        in[i] = first[i];
        while (in[i] >= 0 && at[in[i]] > next)
            in[i]--;
        over[i] = in[i] < 0 ? -next : 0;
    }
}

static bool touches(const Op *o, int tensor, bool write)
{
    for (EACH(const Arg, a, o->arg))
        if (!a->state && a->index == tensor && (a->kind == ARG_READ || (write && a->kind == ARG_WRITE)))
            return true;
    return false;
}

/* ---- tracks ------------------------------------------------------------------------------------------------------ */

static OffloadTrack *track(const Offload *x, int chunk, ActionKind kind)
{
    OffloadTrack *t = &x->track[chunk * KINDS + (int)kind];
    if (t->at)
        return t;
    t->line = calls_of(x->p, &x->back[chunk], chunk, kind);
    t->at = alloc(sizeof(Ns) * (size_t)(t->line.n + 1));
    for (int i = 0; i < t->line.n; i++)
        t->at[i + 1] = t->at[i] + (i && !t->line.at[i].again ? cost_op : cost_alone)(x->p->c, x->device, t->line.at[i].op);
    return t;
}

static void cut(OffloadTrack *t, int at)
{
    int i = 0;
    while (i < t->cut.n && t->cut.at[i] < at)
        i++;
    if (at <= 0 || at >= t->line.n || (i < t->cut.n && t->cut.at[i] == at))
        return;
    (void)PUSH(&t->cut);
    for (int k = t->cut.n - 1; k > i; k--)
        t->cut.at[k] = t->cut.at[k - 1];
    t->cut.at[i] = at;
}

/* ---- what is offloaded ------------------------------------------------------------------------------------------- */

static int *action_of(const Offload *x, int chunk, ActionKind kind, int mb)
{
    return &x->action[(size_t)(chunk * KINDS + (int)kind) * (size_t)x->p->g->micro + (size_t)mb];
}

static bool in_list(const Offload *x, int chunk, ActionKind kind)
{
    return *action_of(x, chunk, kind, plan_first(x->p, x->device, chunk)) >= 0;
}

static void find_away(Offload *x, int chunk)
{
    static const ActionKind kinds[] = {K_R, K_B, K_I, K_W};
    const Graph *g = x->p->g;
    for (int t = 0; t < g->tensor.n; t++) {
        Away a = {.tensor = t, .chunk = chunk, .first = -1};
        if (!x->back[chunk].fetched[t])
            continue;
        const OffloadTrack *f = track(x, chunk, K_F);
        for (int i = 0; i < f->line.n; i++)
            if (touches(&g->op.at[f->line.at[i].op], t, true))
                a.after = i + 1;
        for (int k = 0; k < 4 && a.first < 0; k++) {
            const OffloadTrack *b = track(x, chunk, kinds[k]);
            for (int i = 0; in_list(x, chunk, kinds[k]) && i < b->line.n && a.first < 0; i++)
                if (touches(&g->op.at[b->line.at[i].op], t, false)) {
                    a.kind = kinds[k];
                    a.first = i;
                }
        }
        if (a.first < 0)
            die("device %d: nothing reads %s when it has come back", x->device, g->tensor.at[t].name);
        a.ns = offload_window(x->p, x->device, g->tensor.at[t].bytes);
        *PUSH(&x->away) = a;
    }
}

/* ---- cuts: the same for each micro-batch, as if it were alone ------------------------------------------------------ */

ORDER(by_after, Away, order_of(x->chunk, y->chunk), order_of(x->after, y->after), order_of(x->tensor, y->tensor))

static int rank(ActionKind kind)
{
    return kind == K_R ? 0 : kind == K_W ? 2 : 1;
}

ORDER(by_first, Away, order_of(x->chunk, y->chunk), order_of(rank(x->kind), rank(y->kind)), order_of(x->first, y->first),
      order_of(x->tensor, y->tensor))

/* The number of actions from i on that are of one chunk. */
static int same_chunk(const Offload *x, int i)
{
    int n = 1;
    while (i + n < x->away.n && x->away.at[i + n].chunk == x->away.at[i].chunk)
        n++;
    return n;
}

/* Backward of a chunk along one axis: early recomputation, then the input gradients, then the rest. */
typedef struct { OffloadTrack *track[3]; int from[3], n, calls; Ns *at; } Axis;

static Axis axis_of(Offload *x, int chunk, bool forward)
{
    static const ActionKind kinds[] = {K_F, K_R, K_B, K_I, K_W};
    Axis a = {.n = 0};
    for (int k = forward ? 0 : 1; k < (forward ? 1 : 5); k++)
        if (in_list(x, chunk, kinds[k])) {
            a.track[a.n] = track(x, chunk, kinds[k]);
            a.from[a.n] = a.calls;
            a.calls += a.track[a.n++]->line.n;
        }
    a.at = alloc(sizeof(Ns) * (size_t)(a.calls + 1));
    for (int k = 0; k < a.n; k++)
        for (int i = 1; i <= a.track[k]->line.n; i++)
            a.at[a.from[k] + i] = a.at[a.from[k]] + a.track[k]->at[i];
    return a;
}

static void cut_axis(const Axis *a, int call)
{
    for (int k = 0; k < a->n; k++)
        cut(a->track[k], call - a->from[k]);
}

/* Cuts where a copy ends, so long after the begin of a computation, whichever it is. */
static void cut_later(Offload *x, int chunk, Ns ns)
{
    for (int forward = 0; forward < 2 && ns > 0; forward++) {
        Axis a = axis_of(x, chunk, forward);
        int i = 0;
        while (i < a.calls && a.at[i] < ns)
            i++;
        cut_axis(&a, i);
    }
}

/* Cuts where a copy is begun, so long before the end of a computation. */
static void cut_earlier(Offload *x, int chunk, Ns ns)
{
    for (int forward = 0; forward < 2 && ns > 0; forward++) {
        Axis a = axis_of(x, chunk, forward);
        int i = a.calls;
        while (i > 0 && a.at[a.calls] - a.at[i] < ns)
            i--;
        cut_axis(&a, i);
    }
}

static void cut_forward(Offload *x)
{
    SORT(x->away.at, x->away.n, by_after);
    for (int i = 0, n; i < x->away.n; i += n) {
        n = same_chunk(x, i);
        OffloadTrack *f = track(x, x->away.at[i].chunk, K_F);
        int *after = alloc(sizeof(int) * (size_t)n), *out = alloc(sizeof(int) * (size_t)n);
        Ns *ns = alloc(sizeof(Ns) * (size_t)n), *over = alloc(sizeof(Ns) * (size_t)n);
        for (int k = 0; k < n; k++) {
            after[k] = x->away.at[i + k].after;
            ns[k] = x->away.at[i + k].ns;
        }
        offload_out(f->at, f->line.n, n, after, ns, out, over);
        for (int k = 0; k < n; k++) {
            cut(f, after[k]);
            cut(f, out[k]);
            cut_later(x, x->away.at[i].chunk, over[k]);
        }
    }
}

static void cut_backward(Offload *x)
{
    SORT(x->away.at, x->away.n, by_first);
    for (int i = 0, n; i < x->away.n; i += n) {
        n = same_chunk(x, i);
        Axis a = axis_of(x, x->away.at[i].chunk, false);
        int *first = alloc(sizeof(int) * (size_t)n), *in = alloc(sizeof(int) * (size_t)n);
        Ns *ns = alloc(sizeof(Ns) * (size_t)n), *over = alloc(sizeof(Ns) * (size_t)n);
        for (int k = 0; k < n; k++) {
            const Away *w = &x->away.at[i + k];
            for (int t = 0; t < a.n; t++)
                if (a.track[t] == track(x, w->chunk, w->kind))
                    first[k] = a.from[t] + w->first;
            ns[k] = w->ns;
        }
        offload_in(a.at, a.calls, n, first, ns, in, over);
        for (int k = 0; k < n; k++) {
            cut_axis(&a, first[k]);
            cut_axis(&a, in[k]);
            cut_earlier(x, x->away.at[i].chunk, over[k]);
        }
    }
}

/* ---- pieces and their clock ---------------------------------------------------------------------------------------- */

static void lay_out(Offload *x)
{
    VEC(Ns) clock = {0};
    Ns now = 0;
    for (EACH(const Action, k, *x->old)) {
        *PUSH(&x->step) = (CopyStep){cuts(k->kind) ? k->chunk : -1, k->mb, x->piece.n, k->kind == K_F};
        if (!cuts(k->kind))
            continue;
        const OffloadTrack *t = track(x, k->chunk, k->kind);
        for (int c = 0, first = 0; c <= t->cut.n; c++) {
            int until = c < t->cut.n ? t->cut.at[c] : t->line.n;
            *PUSH(&x->piece) = (OffloadSegment){first, until};
            *PUSH(&clock) = now;
            now += t->at[until] - t->at[first];
            first = until;
        }
    }
    *PUSH(&clock) = now;
    *PUSH(&x->step) = (CopyStep){-1, 0, x->piece.n, false};
    x->clock = clock.at;
}

/* The piece of an action that begins with this call; end: the piece that ends right before it. */
static int piece_at(const Offload *x, int action, int call, bool end)
{
    for (int i = x->step.at[action].first; i < x->step.at[action + 1].first; i++)
        if ((end ? x->piece.at[i].until : x->piece.at[i].first) == call)
            return i;
    die("device %d: action %d is not cut at call %d", x->device, action, call);
}

static void find_copies(Offload *x)
{
    for (int j = 0; j < (x->away.n ? plan_share_of(x->p, x->away.at[0].chunk) : 0); j++)
        for (int a = 0; a < x->away.n; a++) {
            const Away *w = &x->away.at[a];
            int mb = plan_first(x->p, x->device, w->chunk) + j;
            int f = *action_of(x, w->chunk, K_F, mb), b = *action_of(x, w->chunk, w->kind, mb);
            if (f < 0 || b < 0)
                die("device %d: micro-batch %d of chunk %d is not computed here", x->device, mb, w->chunk);
            *PUSH(&x->copy) = (CopyTime){.away = a, .maker = f, .reader = b, .ns = w->ns,
                                         .out = piece_at(x, f, w->after, true) + 1, .due = piece_at(x, b, w->first, false)};
        }
}

ORDER(by_due, CopyTime, order_of(x->due, y->due), order_of(x->away, y->away))

/* ---- the new list -------------------------------------------------------------------------------------------------- */

static int take_number(Offload *x)
{
    int n = 0, *most = &x->p->dev.at[x->device].copies;
    while (n < COPIES && x->busy[n])
        n++;
    if (n == COPIES)
        fail(EXIT_NOFIT, "device %d has more than %d copies to and from its host under way at once; offload less",
             x->device, COPIES);
    x->busy[n] = true;
    *most = n + 1 > *most ? n + 1 : *most;
    return n;
}

/* Copies by boundary.  The link takes them in the order of planning. */
typedef struct { CopyOrder *at; int n, next; } Events;

static Events events(const Offload *x, size_t field)
{
    Events e = {alloc(sizeof(CopyOrder) * (size_t)(x->copy.n + 1)), x->copy.n, 0};
    for (int i = 0; i < e.n; i++)
        e.at[i] = (CopyOrder){*(const int *)(const void *)((const char *)&x->copy.at[i] + field), i};
    SORT(e.at, e.n, copies_by_piece);
    return e;
}

typedef struct { Events out, sent, in, due; int *number; } Agenda;      /* number: by copy, of its way out or in */

static void put(Offload *x, Agenda *a, Events *e, int boundary, ActionKind kind, bool wait)
{
    for (; e->next < e->n && e->at[e->next].piece == boundary; e->next++) {
        int c = e->at[e->next].copy;
        a->number[c] = wait ? a->number[c] : take_number(x);
        const Away *of = &x->away.at[x->copy.at[c].away];
        Action k = action_new(kind, 0, x->step.at[x->copy.at[c].maker].mb);
        k.chunk = of->chunk;
        k.tensor = of->tensor;
        k.request = a->number[c];
        k.bytes = x->p->g->tensor.at[k.tensor].bytes;
        if (wait) {
            k.kind = K_WAIT;
            k.of = kind;
            x->busy[a->number[c]] = false;
        }
        *PUSH(&x->out) = k;
    }
}

/* Begins fetches behind the waits for copies that were sent out before them. */
static void put_boundary(Offload *x, Agenda *a, int boundary)
{
    put(x, a, &a->sent, boundary, K_OUT, true);
    put(x, a, &a->in, boundary, K_IN, false);
}

static void put_pieces(Offload *x, Agenda *a, int action)
{
    for (int i = x->step.at[action].first; i < x->step.at[action + 1].first; i++) {
        const OffloadSegment *c = &x->piece.at[i];
        bool whole = c->first == 0 && c->until == track(x, x->old->at[action].chunk, x->old->at[action].kind)->line.n;
        put_boundary(x, a, i);
        put(x, a, &a->due, i, K_IN, true);
        Action *k = PUSH(&x->out);
        *k = x->old->at[action];
        k->first = whole ? 0 : c->first;
        k->until = whole ? 0 : c->until;
        put(x, a, &a->out, i + 1, K_OUT, false);
    }
}

void offload(Plan *p, int device, const Backward *back, Actions *list)
{
    Offload x = {.p = p, .device = device, .back = back, .old = list};
    bool any = false;
    for (int c = 0; c < plan_chunks(p); c++)
        for (int t = 0; plan_holds(p, device, c) && t < p->g->tensor.n && !any; t++)
            any = back[c].fetched[t];
    p->dev.at[device].copies = 0;
    if (!any)
        return;
    x.track = alloc(sizeof(OffloadTrack) * KINDS * (size_t)plan_chunks(p));
    size_t n = (size_t)plan_chunks(x.p) * KINDS * (size_t)x.p->g->micro;
    x.action = alloc(sizeof(int) * n);
    for (size_t i = 0; i < n; i++)
        x.action[i] = -1;
    for (int i = 0; i < x.old->n; i++)
        if (cuts(x.old->at[i].kind))
            *action_of(&x, x.old->at[i].chunk, x.old->at[i].kind, x.old->at[i].mb) = i;
    for (int c = 0; c < plan_chunks(p); c++)
        if (plan_holds(p, device, c))
            find_away(&x, c);
    cut_forward(&x);
    cut_backward(&x);
    lay_out(&x);
    find_copies(&x);
    SORT(x.copy.at, x.copy.n, by_due);
    CopyList l = {x.clock, x.step.at, x.piece.n, x.old->n, p->ask.choice.copy_slack};
    copies_out(&l, x.copy.at, events(&x, offsetof(CopyTime, out)).at, x.copy.n);
    copies_in(&l, x.copy.at, events(&x, offsetof(CopyTime, due)).at, x.copy.n);
    /* Actions that may block stand behind the messages that are begun there: other stages wait for those. */
    Agenda a = {events(&x, offsetof(CopyTime, out)), events(&x, offsetof(CopyTime, sent)),
                events(&x, offsetof(CopyTime, in)), events(&x, offsetof(CopyTime, due)),
                alloc(sizeof(int) * (size_t)(x.copy.n + 1))};
    int boundary = 0;
    for (int i = 0; i < x.old->n; i++) {
        ActionKind kind = x.old->at[i].kind;
        if (kind != K_SEND && kind != K_RECV)
            put_boundary(&x, &a, boundary);
        if (x.step.at[i].chunk < 0) {
            *PUSH(&x.out) = x.old->at[i];
            continue;
        }
        put_pieces(&x, &a, i);
        boundary = x.step.at[i + 1].first;
    }
    *list = x.out;
}
