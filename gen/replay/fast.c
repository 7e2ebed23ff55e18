/* SPDX-License-Identifier: Apache-2.0
 *
 * fast.c: one run of operators under many choices of fates, each in a fraction of the time of walk.c.
 *
 * Problem: the search for fates (fates.c) asks for the bytes of the same run under hundreds of choices.  Nearly everything that
 * walk.c walks through is the same each time: operands, gradients, scratch, states, times, messages over the borders.
 *
 * Method: bytes that no choice changes are added up when a run is entered.  By forward call these are all live bytes but those
 * that backward will want.  By backward call they are all gradients and scratch, at the call and right before it.  For a
 * choice, list.h tells the saved tensors, and the tensors made again before each call.  A saved tensor is alive from the
 * first call of backward to its last reader, a rebuilt one from the place where it is made.  That makes two sums: along the
 * calls of forward, and along those of backward with recomputation between them.  Only operands of rebuilt tensors are touched.
 * walk.c counts the same call by call; the tests hold one against the other, on all choices they meet.
 *
 * Where the list has W apart from I, the calls of W stand behind those of I, and everything rebuilt stands among those of I.
 *
 * Not handled: copies to the host, because their windows depend on the clock; graphs with a backward that writes tensors which
 * forward reads.  walk.c does both.
 *
 * Cost: a choice takes the calls of backward, the saved tensors, and the operands of rebuilt ones.  Entering a run takes as
 * long as one walk of walk.c.
 */
#include "index.h"

/* A tensor that the run touches: calls counted from the begin of its forward, of its backward. */
typedef struct {
    Bytes bytes;
    int frame;                  /* of which run it is known */
    int first;                  /* of a gradient: backward call that touches it first; else forward call */
    int forward;                /* last forward call that touches it; -1 */
    int backward;               /* last backward call that does; -1 */
    int again;                  /* last operator made again that touches it, by place; -1 */
    bool local, leaves;
    int far;                    /* index_far(), if it leaves */
} ReplayCell;

struct Replay {
    int first, last, chunk, frame;
    int forwards, backwards;    /* calls */
    int inputs;                 /* backward calls up to the end of B or I; the rest is W */
    int *rank;                  /* by backward call: its place in graph order */
    int *front;                 /* by place in graph order: calls of I before it */
    bool plain;                 /* no walk is needed */
    Load base;
    Border border;              /* as if nothing were saved */
    Bytes visiting;
    ReplayCell *cell;           /* by tensor */
    Ints leave;                 /* forward tensors that other runs read */
    Bytes *forward;             /* by forward call: alive but for what rests */
    Bytes *at, *before;         /* by backward call: gradients and scratch alive; gradients right before it */
    Bytes *sent;                /* by call of W: gradients that I still sends, beyond `at` */
    Bytes held;                 /* gradients from I to W */
    /* the choice at hand */
    Bytes *born, *dead;         /* at what is made again, behind it */
    Bytes *rest, *gone;         /* by forward call: rests from there on; by backward call: dead behind it */
};

void replay_open(Live *x)
{
    struct Replay *r = x->replay = alloc(sizeof *r);
    size_t calls = (size_t)(x->g->nb + 2), tensors = (size_t)x->g->tensor.n + 1;
    r->first = -1;
    r->cell = alloc(sizeof *r->cell * tensors);
    r->forward = alloc(sizeof(Bytes) * calls), r->at = alloc(sizeof(Bytes) * calls), r->before = alloc(sizeof(Bytes) * calls);
    r->born = alloc(sizeof(Bytes) * calls), r->dead = alloc(sizeof(Bytes) * calls);
    r->rest = alloc(sizeof(Bytes) * calls), r->gone = alloc(sizeof(Bytes) * calls), r->sent = alloc(sizeof(Bytes) * calls);
    r->rank = alloc(sizeof(int) * calls), r->front = alloc(sizeof(int) * calls);
}

/* ---- once for a run ---------------------------------------------------------------------------------------------- */

static ReplayCell *cell_of(Live *x, struct Replay *r, int t, int call)
{
    ReplayCell *c = &r->cell[t];
    if (c->frame == r->frame)
        return c;
    bool local = index_own(x, t), leaves = index_leaves(x, t);
    *c = (ReplayCell){.bytes = x->bytes[t], .frame = r->frame, .first = call, .forward = -1, .backward = -1, .local = local,
                      .leaves = leaves, .far = leaves ? index_far(x, t) : 0};
    if (leaves && !x->grad[t])
        *PUSH(&r->leave) = t;
    return c;
}

static void sum_up(Bytes *sum, int n)
{
    for (int i = 1; i < n; i++)
        sum[i] += sum[i - 1];
}

static void enter_forward(Live *x, struct Replay *r)
{
    int n = r->forwards = r->last - r->first + 1;
    for (int o = r->first; o <= r->last; o++)
        for (int i = x->op[o].read.from; i < x->op[o].write.to; i++)
            cell_of(x, r, x->touched.at[i], o - r->first)->forward = o - r->first;
    memset(r->forward, 0, sizeof *r->forward * (size_t)(n + 1));
    for (int o = r->first; o <= r->last; o++)
        for (int i = x->op[o].read.from; i < x->op[o].write.to; i++) {
            const ReplayCell *c = &r->cell[x->touched.at[i]];
            if (c->forward != o - r->first)
                continue;
            r->forward[c->local ? c->first : 0] += c->bytes;
            r->forward[c->leaves ? n : c->forward + 1] -= c->bytes;
        }
    sum_up(r->forward, n);
    for (int o = r->first; o <= r->last; o++)
        r->forward[o - r->first] += aligned(x->g->op.at[o].tmp);
}

/* Counts a gradient from its first call to its last; before[c] then holds the gradients that begin with call c.  One that
 * leaves is there to the end of I or W, where what is rebuilt behind the last call of I is beside it.  A received one that only
 * W reads is there before W. */
static void enter_gradient(const Live *x, struct Replay *r, int t)
{
    const ReplayCell *c = &r->cell[t];
    bool late = c->first >= r->inputs;
    int from = c->local ? c->first : late ? r->inputs : 0, to = c->backward, end = late ? r->backwards : r->inputs;
    to = c->leaves && to < end - 1 ? end - 1 : to;
    r->at[from] += c->bytes;
    r->at[to + 1] -= c->bytes;
    r->before[from] += c->local || late ? c->bytes : 0;
    if (r->inputs == r->backwards)
        return;
    r->before[r->inputs] -= c->leaves && to == r->inputs - 1 ? c->bytes : 0;
    if (to >= r->inputs && c->leaves) {
        r->sent[to + 1] += c->bytes;
        r->sent[r->backwards] -= c->bytes;
    }
    r->held += to >= r->inputs && !(late && (c->local || index_company(x, t) == ALONE)) ? c->bytes : 0;
}

static void enter_backward(Live *x, struct Replay *r)
{
    int begin = x->begin[r->last], n = r->backwards;
    for (int k = 0; k < n; k++) {
        const Touched *c = &x->op[begin + r->rank[k]];
        for (int i = c->read.from; i < c->write.to; i++) {
            int t = x->touched.at[i];
            ReplayCell *y = cell_of(x, r, t, k);
            y->backward = k;
            r->plain &= x->grad[t] ? y->forward < 0 : i < c->read.to;
        }
    }
    memset(r->at, 0, sizeof *r->at * (size_t)(n + 1));
    memset(r->before, 0, sizeof *r->before * (size_t)(n + 1));
    memset(r->sent, 0, sizeof *r->sent * (size_t)(n + 2));
    r->held = 0;
    for (int k = 0; k < n; k++) {
        const Touched *c = &x->op[begin + r->rank[k]];
        for (int i = c->read.from; i < c->write.to; i++)
            if (x->grad[x->touched.at[i]] && r->cell[x->touched.at[i]].backward == k)
                enter_gradient(x, r, x->touched.at[i]);
    }
    sum_up(r->at, n);
    sum_up(r->sent, n);
    for (int k = 0; k < n; k++) {
        r->before[k] = r->at[k] - r->before[k];
        r->at[k] += aligned(x->g->op.at[begin + r->rank[k]].tmp);
    }
}

void replay_enter(Live *x, int first, int last, int chunk)
{
    struct Replay *r = x->replay;
    if (r->first == first && r->last == last && r->chunk == chunk)
        return;
    r->first = first, r->last = last, r->chunk = chunk;
    r->frame++;
    r->plain = true;
    r->leave.n = 0;
    r->base = live_constant(x, first, last, chunk, &r->visiting, &r->border);
    enter_forward(x, r);
    int begin = x->begin[r->last], n = r->backwards = x->end[r->first] - begin, late = 0;
    r->inputs = 0;
    for (int k = 0; k < n; k++) {
        bool weight = x->split[r->chunk] && x->g->op.at[begin + k].phase == PH_W;
        r->front[k] = r->inputs;
        if (!weight)
            r->rank[r->inputs++] = k;
        late += weight;
    }
    for (int k = n; k-- > 0 && late > 0;)
        if (x->g->op.at[begin + k].phase == PH_W)
            r->rank[r->inputs + --late] = k;
    enter_backward(x, r);
    memset(r->rest, 0, sizeof *r->rest * (size_t)(r->forwards + 1));
    memset(r->gone, 0, sizeof *r->gone * (size_t)(r->backwards + 1));
}

/* ---- a choice: what is alive ------------------------------------------------------------------------------------- */

/* By tensor: the last rebuilt call that touches it.  By rebuilt call: the bytes that it adds. */
static void find_touches(Live *x, struct Replay *r)
{
    const Rebuild *b = &x->back;
    for (int i = 0; i < b->n; i++)
        r->cell[b->list[i]].again = -1;
    for (int k = 0; k < b->lines; k++) {
        const Touched *o = &x->op[b->line[k]];
        r->born[k] = r->dead[k] = 0;
        for (int i = o->read.from; i < o->write.to; i++)
            r->cell[x->touched.at[i]].again = k;
        for (int i = o->write.from; i < o->write.to; i++)
            r->born[k] += rebuild_remade(b, x->touched.at[i]) ? r->cell[x->touched.at[i]].bytes : 0;
    }
}

/* The place where a tensor ends: its last reader in backward, a call or a rebuilt call. */
static Bytes *end_of(const Live *x, struct Replay *r, const ReplayCell *c)
{
    return c->again < 0 || c->backward >= r->front[x->back.call[c->again]] ? &r->gone[c->backward] : &r->dead[c->again];
}

/* Returns the bytes held from I to W. */
static Bytes set_ends(Live *x, struct Replay *r)
{
    const Rebuild *b = &x->back;
    Bytes held = r->held;
    for (int i = 0; i < b->n; i++) {
        const ReplayCell *c = &r->cell[b->list[i]];
        *end_of(x, r, c) += c->bytes;
        held += c->backward >= r->inputs ? c->bytes : 0;
        if (!c->leaves && c->forward >= 0)
            r->rest[c->forward + 1] += c->bytes;
    }
    for (int k = 0; k < b->lines; k++)
        for (int i = x->op[b->line[k]].write.from; i < x->op[b->line[k]].write.to; i++)
            if (rebuild_remade(b, x->touched.at[i])) {
                const ReplayCell *c = &r->cell[x->touched.at[i]];
                *end_of(x, r, c) += c->bytes;
                held += c->backward >= r->inputs ? c->bytes : 0;
            }
    return held;
}

static Bytes most_forward(struct Replay *r)
{
    Bytes now = 0, most = 0;
    for (int i = 0; i < r->forwards; i++) {
        now += r->rest[i];
        r->rest[i] = 0;
        most = r->forward[i] + now > most ? r->forward[i] + now : most;
    }
    r->rest[r->forwards] = 0;
    return most;
}

static inline void raise_to(Bytes *most, Bytes level)
{
    *most = level > *most ? level : *most;
}

/* Within B or I, within W, and within W while I still sends. */
static void most_backward(const Live *x, const struct Replay *r, Bytes *alive)
{
    const Rebuild *b = &x->back;
    Bytes now = x->load.saved, *most = &alive[BACKWARD];
    for (int c = 0, k = 0; c < r->backwards; c++) {
        for (; k < b->lines && r->front[b->call[k]] <= c; k++) {
            now += r->born[k];
            raise_to(&alive[BACKWARD], now + r->before[c] + aligned(x->g->op.at[b->line[k]].tmp));
            now -= r->dead[k];
        }
        if (c == r->inputs)
            most = &alive[WEIGHT];
        raise_to(most, now + r->at[c]);
        if (c >= r->inputs)
            raise_to(&alive[NEAR], now + r->at[c] + r->sent[c]);
        now -= r->gone[c];
    }
}

/* The forward of the same micro-batch still sends saved tensors: those stay to the end. */
static Bytes most_sending(const Live *x, struct Replay *r)
{
    Bytes alive[KINDS] = {0};
    for (int i = 0; i < r->leave.n; i++)
        if (rebuild_saved(&x->back, r->leave.at[i]))
            *end_of(x, r, &r->cell[r->leave.at[i]]) -= r->cell[r->leave.at[i]].bytes;
    most_backward(x, r, alive);
    return alive[BACKWARD];
}

bool replay_load(Live *x, Load *l)
{
    struct Replay *r = x->replay;
    if (!r->plain || x->back.fetched)
        return false;
    Border b = r->border;
    for (int i = 0; i < r->leave.n; i++) {
        const ReplayCell *c = &r->cell[r->leave.at[i]];
        Bytes saved = rebuild_saved(&x->back, r->leave.at[i]) ? c->bytes : 0;
        *border_out(&b, c->far, FORWARD) -= saved;
        *border_out(&b, c->far, GONE) -= c->backward >= r->inputs ? saved : 0;
    }
    border_own(&b);
    find_touches(x, r);
    Load now = r->base;
    now.saved = l->saved;
    now.again = l->again;
    now.held = set_ends(x, r);
    Bytes alive[KINDS] = {[FORWARD] = most_forward(r)};
    most_backward(x, r, alive);
    if (border_sends(&b, OWN))
        alive[OWN] = most_sending(x, r);
    memset(r->gone, 0, sizeof *r->gone * (size_t)r->backwards);
    Bytes most = live_moments(x, r->chunk, &b, alive, &now);
    *l = now;
    l->need = l->states + (most > r->visiting ? most : r->visiting);
    return true;
}
