/* SPDX-License-Identifier: Apache-2.0
 *
 * live.c: what a run of operators will need as a chunk, nearly.
 *
 * Problem: planners ask for the bytes of thousands of runs under many choices of what is kept, and only `lower` and `mem`
 * know the truth.  keep_bound never exceeds it, so it can prove that something does not fit, but not that it does.
 *
 * Method: the routines of the chunk are walked as `lower` will write them, forward and backward with what it makes again,
 * and the bytes alive at each call are counted.  The lists of the device say what else is there while such a routine runs:
 * so many micro-batches at rest with what they saved, messages that are posted for the next computation, results of the
 * previous one still on their way (comm posts receives one computation ahead and waits for sends one behind):
 *
 *   states + max over (computation, the two before, the one after) of the larger of
 *       within it      saved of those at rest + most alive within it + received for the one after + sent by the one before
 *       right before   saved of those at rest + received for it and for the one after + sent by the two before
 *
 * and, in the update, gradients of tied parameters from other devices.  Nothing depends on where the other chunks are, so
 * a run can be priced before a cut is known.
 *
 * Left out: packing, which main.c feeds back; sends that `comm` leaves under way for longer, to avoid a deadlock.
 *
 * Cost: linear in the operands of the run, its backward and what it makes again.  Marks carry the number of the walk, so
 * that starting anew is free and nothing is allocated.
 */
#include "live.h"
#include "span.h"

#include <string.h>

enum { NONE, FORWARD, BACKWARD, OWN, GONE, KINDS };

/* A computation between others, and how many micro-batches have been forward and not backward, at most, without its own.
 * A forward before it is of its own micro-batch (OWN), of one that has been backward since (GONE), or of another one. */
typedef struct { int now, before, second, after, rest; } Moment;
typedef VEC(Moment) Moments;

typedef struct { int from, to; } Range;             /* into Live.touched */
typedef struct { Range read, write; } Touched;      /* of one call: its tensors */
typedef struct { int grad, add; } Use;              /* a use of a parameter: its S_GRAD state */

struct Live {
    const Plan *p;
    const Graph *g;
    int levels;                 /* gradient accumulators a use */
    Touched *op;
    Ints touched;
    int *begin, *end;           /* by forward operator: its backward calls */
    int *made_from;             /* by forward operator: where in `made` its results begin; [nf] the end */
    Ints made;
    int *home;                  /* by tensor: the forward operator it belongs to; -1: an input */
    int *least, *most;          /* by tensor: of the forward operators whose calls read it */
    int *reader;                /* by forward tensor: the first operator whose backward reads it; -1 */
    Bytes *bytes;               /* by tensor */
    bool *grad;
    Ints *use;                  /* by forward operator: S_GRAD states of its uses */
    Bytes *owner, *guest;       /* by S_PARAM: on its home device, on another that uses it; without gradients */
    Bytes *uses;                /* by S_PARAM: its gradients, one accumulator each */
    Bytes fixed, norms;         /* states that every device has; that every one with parameters has */
    Moments *moment;            /* by chunk */
    /* the run at hand */
    int first, last, chunk;
    const int *fate;
    int round;                  /* marks equal to it are of this walk */
    int *saved, *remade, *met, *again;      /* marks: by tensor, tensor, S_PARAM, forward operator */
    int *kept, nkept;           /* saved tensors */
    int *line, lines, *head, early;  /* backward: operators; ~operator if it is made again */
    int *stack;
    int *seen, *from, *to;      /* by tensor and whether it is the remade copy: positions in the routine at hand */
    int *order, n, at;          /* those that are seen */
    int walk;
    Bytes *change, *tmp;        /* by position */
    Load load;
    char *matters;              /* by tensor */
    int *until;                 /* by tensor of a run */
    int *place;                 /* by tensor: in Live.made */
};

/* ---- once for a graph ------------------------------------------------------------------------------------------- */

static void take_operands(Live *x, int op)
{
    const Op *o = &x->g->op.at[op];
    for (int kind = 0; kind < 2; kind++) {
        Range *r = kind ? &x->op[op].write : &x->op[op].read;
        r->from = x->touched.n;
        for (int i = 0; i < o->arg.n; i++) {
            const Arg *a = &o->arg.at[i];
            if (a->kind != (kind ? ARG_WRITE : ARG_READ) || a->state)
                continue;
            bool twice = false;
            for (int k = r->from; k < x->touched.n; k++)
                twice |= x->touched.at[k] == a->index;
            if (!twice)
                *PUSH(&x->touched) = a->index;
        }
        r->to = x->touched.n;
    }
}

static Bytes align(Bytes n)
{
    return (n + ALIGN - 1) / ALIGN * ALIGN;
}

static void find_readers(Live *x)
{
    const Graph *g = x->g;
    for (int t = 0; t < g->tensor.n; t++) {
        const Tensor *y = &g->tensor.at[t];
        x->home[t] = y->op < 0 ? -1 : g->op.at[y->op].fwd;
        x->least[t] = g->nf;
        x->most[t] = x->reader[t] = -1;
        x->bytes[t] = align(y->bytes);
        x->grad[t] = y->kind == T_GRAD;
    }
    for (int o = 0; o < g->nb; o++)
        for (int i = x->op[o].read.from; i < x->op[o].read.to; i++) {
            int t = x->touched.at[i], fwd = g->op.at[o].fwd;
            x->least[t] = fwd < x->least[t] ? fwd : x->least[t];
            x->most[t] = fwd > x->most[t] ? fwd : x->most[t];
            if (o >= g->nf && !x->grad[t] && (x->reader[t] < 0 || fwd < x->reader[t]))
                x->reader[t] = fwd;
        }
}

static void find_calls(Live *x)
{
    const Graph *g = x->g;
    for (int f = 0; f < g->nf; f++) {
        x->made_from[f] = x->made.n;
        for (int i = x->op[f].write.from; i < x->op[f].write.to; i++) {
            x->place[x->touched.at[i]] = x->made.n;
            *PUSH(&x->made) = x->touched.at[i];
        }
    }
    x->made_from[g->nf] = x->made.n;
    for (int f = g->nf - 1, o = g->nf; f >= 0; f--) {
        x->begin[f] = o;
        while (o < g->nb && g->op.at[o].fwd == f)
            o++;
        x->end[f] = o;
    }
}

static void take_state(Live *x, int s)
{
    const State *y = &x->g->state.at[s];
    Bytes bytes = align(y->bytes);
    switch (y->kind) {
    case S_PARAM:
        x->owner[s] += bytes;
        if (x->guest[s] == 0)
            x->guest[s] = bytes;
        break;
    case S_COPY:                /* in bf16 a foreign use reads the copy alone, unless its row wants f32 */
        x->owner[y->param] += bytes;
        x->guest[y->param] = bytes;
        break;
    case S_MOMENT1: case S_MOMENT2:
        x->owner[y->param] += bytes;
        break;
    case S_GRAD:
        x->uses[y->param] += bytes;
        *PUSH(&x->use[y->op]) = s;
        break;
    case S_NORM: case S_CLIP:
        *(y->param < 0 ? &x->norms : &x->owner[y->param]) += bytes;
        break;
    case S_VALUES:
        x->fixed += bytes;
        break;
    default:
        break;
    }
}

static int kind_of(const Action *k, int chunk)
{
    bool here = k->chunk == chunk;
    return here && k->kind == K_F ? FORWARD : here && (k->kind == K_B || k->kind == K_I) ? BACKWARD : NONE;
}

static void add_moment(Moments *list, Moment m)
{
    for (int i = 0; i < list->n; i++) {
        Moment *y = &list->at[i];
        if (y->now == m.now && y->before == m.before && y->second == m.second && y->after == m.after) {
            y->rest = m.rest > y->rest ? m.rest : y->rest;
            return;
        }
    }
    *PUSH(list) = m;
}

/* What the list of a chunk's device says: how many micro-batches rest while it computes between what. */
static void find_moments(Live *x, int chunk)
{
    const Actions *list = &x->p->dev.at[x->p->chunk_device.at[chunk]].order;
    const Action *last = NULL;
    Moment m = {0};
    for (int i = 0; i < list->n; i++) {
        const Action *k = &list->at[i];
        int after = i + 1;
        if (k->kind == K_FOLD)
            continue;
        while (after < list->n && list->at[after].kind == K_FOLD)
            after++;
        m.now = kind_of(k, chunk);
        m.after = after < list->n ? kind_of(&list->at[after], chunk) : NONE;
        m.rest -= m.now == BACKWARD;
        bool same = last && last->mb == k->mb && m.before == FORWARD && m.now == BACKWARD;
        m.before = same ? OWN : m.before;
        add_moment(&x->moment[chunk], m);
        m.rest += m.now == FORWARD;
        m.second = same ? GONE : m.before;
        m.before = m.now;
        last = k;
    }
}

static void make_room(Live *x)
{
    size_t nf = sizeof(int) * (size_t)(x->g->nf + 1), nt = sizeof(int) * (size_t)x->g->tensor.n;
    size_t no = (size_t)(x->g->nb + x->g->nf + 2);
    x->begin = alloc(nf), x->end = alloc(nf), x->made_from = alloc(nf), x->again = alloc(nf);
    x->reader = alloc(nt);
    x->home = alloc(nt), x->least = alloc(nt), x->most = alloc(nt), x->saved = alloc(nt), x->remade = alloc(nt);
    x->kept = alloc(nt);
    x->seen = alloc(2 * nt), x->from = alloc(2 * nt), x->to = alloc(2 * nt), x->order = alloc(2 * nt);
    x->met = alloc(sizeof(int) * (size_t)x->g->state.n);
    x->matters = alloc((size_t)x->g->tensor.n);
    x->until = alloc(nt), x->place = alloc(nt);
    x->bytes = alloc(sizeof(Bytes) * (size_t)x->g->tensor.n);
    x->grad = alloc((size_t)x->g->tensor.n);
    x->op = alloc(sizeof *x->op * (size_t)x->g->nb);
    x->use = alloc(sizeof *x->use * (size_t)x->g->nf);
    x->owner = alloc(sizeof(Bytes) * (size_t)x->g->state.n);
    x->guest = alloc(sizeof(Bytes) * (size_t)x->g->state.n);
    x->uses = alloc(sizeof(Bytes) * (size_t)x->g->state.n);
    x->line = alloc(sizeof(int) * no), x->head = alloc(sizeof(int) * no), x->stack = alloc(sizeof(int) * no);
    x->change = alloc(sizeof(Bytes) * no), x->tmp = alloc(sizeof(Bytes) * no);
    x->moment = alloc(sizeof *x->moment * (size_t)x->p->chunk_device.n);
}

Live *live_open(const Plan *p)
{
    Live *x = alloc(sizeof *x);
    *x = (Live){.p = p, .g = p->g, .levels = order_accumulators(p->g->groups), .first = -1};
    make_room(x);
    for (int o = 0; o < p->g->nb; o++)
        take_operands(x, o);
    find_readers(x);
    find_calls(x);
    for (int s = 0; s < p->g->state.n; s++)
        take_state(x, s);
    for (int c = 0; c < p->chunk_device.n; c++)
        find_moments(x, c);
    return x;
}

int live_others(const Live *x, int chunk)
{
    int most = 0;
    for (int i = 0; i < x->moment[chunk].n; i++)
        most = x->moment[chunk].at[i].rest > most ? x->moment[chunk].at[i].rest : most;
    return most;
}

bool live_alike(const Live *x, int a, int b)
{
    const Moments *m = &x->moment[a], *n = &x->moment[b];
    return m->n == n->n && (!m->n || !memcmp(m->at, n->at, sizeof *m->at * (size_t)m->n));
}

const int *live_made(const Live *x, int first, int last, int *n)
{
    *n = x->made_from[last + 1] - x->made_from[first];
    return x->made.at + x->made_from[first];
}

const int *live_until(Live *x, int first, int last)
{
    int n;
    const int *made = live_made(x, first, last, &n);
    for (int i = 0; i < n; i++)
        x->until[i] = x->home[made[i]];
    for (int o = first; o <= last; o++)
        for (int i = x->op[o].read.from; i < x->op[o].read.to; i++)
            if (x->home[x->touched.at[i]] >= first)
                x->until[x->place[x->touched.at[i]] - x->made_from[first]] = o;
    return x->until;
}

int live_tensors(const Live *x)
{
    return x->g->tensor.n;
}

int live_calls(const Live *x, int first, int last)
{
    return last - first + 1 + x->end[first] - x->begin[last];
}

const int *live_reads(const Live *x, int op, int *n)
{
    *n = x->op[op].read.to - x->op[op].read.from;
    return x->touched.at + x->op[op].read.from;
}

int live_maker(const Live *x, int tensor)
{
    return x->home[tensor];
}

Bytes live_size(const Live *x, int tensor)
{
    return x->bytes[tensor];
}

int live_reader(const Live *x, int tensor)
{
    return x->reader[tensor];
}

Bytes live_operands(const Live *x, int op)
{
    const Touched *c = &x->op[op];
    Bytes sum = align(x->g->op.at[op].tmp);
    for (int i = c->read.from; i < c->write.to; i++)
        sum += x->bytes[x->touched.at[i]];
    for (int i = c->write.from; i < c->write.to; i++)       /* an operand that is a result too */
        for (int k = c->read.from; k < c->read.to; k++)
            sum -= x->touched.at[i] == x->touched.at[k] ? x->bytes[x->touched.at[i]] : 0;
    return sum;
}

Bytes live_home(const Live *x, int op)
{
    Bytes sum = 0;
    for (int i = 0; i < x->use[op].n; i++) {
        const State *s = &x->g->state.at[x->use[op].at[i]];
        bool first = x->g->state.at[s->param].op == op;
        for (int k = 0; k < i; k++)
            first &= x->g->state.at[x->use[op].at[k]].param != s->param;
        sum += x->levels * align(s->bytes) + (first ? x->owner[s->param] : 0);
    }
    return sum;
}

const Ns *live_times(const Live *x, int chunk)
{
    const Cost *c = x->p->c;
    return c->ns[c->of.at[x->p->chunk_device.at[chunk]]];
}

const char *live_matters(Live *x, int first, int last, const bool *may)
{
    int n;
    const int *made = live_made(x, first, last, &n);
    for (int i = 0; i < n; i++)
        x->matters[made[i]] = LIVE_IDLE;
    for (int o = x->begin[last]; o < x->end[first]; o++)
        for (int i = x->op[o].read.from; i < x->op[o].read.to; i++)
            x->matters[x->touched.at[i]] = LIVE_READ;
    for (int o = last; o >= first; o--) {
        bool again = false;
        for (int i = x->op[o].write.from; i < x->op[o].write.to; i++)
            again |= x->matters[x->touched.at[i]] && may[x->touched.at[i]];
        for (int i = x->op[o].read.from; again && i < x->op[o].read.to; i++)
            if (!x->matters[x->touched.at[i]])
                x->matters[x->touched.at[i]] = LIVE_NEEDED;
    }
    return x->matters;
}

/* ---- backward as a line: the rule of rebuild.c ------------------------------------------------------------------ */

static bool own(const Live *x, int t)
{
    return x->home[t] >= x->first && x->home[t] <= x->last;
}

static bool dropped(const Live *x, int t)
{
    return own(x, t) && x->fate[t] == FATE_RECOMPUTE;
}

static void save(Live *x, int t)
{
    x->saved[t] = x->round;
    x->kept[x->nkept++] = t;
    x->load.saved += x->bytes[t];
}

/* Post-order over dropped tensors without recursion: an operator stands on the stack with the operand it goes on with. */
static void remake(Live *x, int op)
{
    int depth = 0;
    x->stack[depth++] = op;
    x->again[op] = x->round;
    x->head[op] = x->op[op].read.from;      /* next operand, by operator */
    while (depth) {
        int o = x->stack[depth - 1], i = x->head[o]++;
        if (i < x->op[o].read.to) {
            int t = x->touched.at[i];
            if (x->saved[t] == x->round || x->remade[t] == x->round)
                continue;
            if (!dropped(x, t)) {
                save(x, t);
            } else if (x->again[x->home[t]] != x->round) {
                x->again[x->home[t]] = x->round;
                x->head[x->home[t]] = x->op[x->home[t]].read.from;
                x->stack[depth++] = x->home[t];
            }
            continue;
        }
        depth--;
        x->line[x->lines++] = ~o;
        x->load.again += live_times(x, x->chunk)[o];
        for (int k = x->op[o].write.from; k < x->op[o].write.to; k++)
            if (x->saved[x->touched.at[k]] != x->round)
                x->remade[x->touched.at[k]] = x->round;
    }
}

static void mark_saved(Live *x)
{
    for (int o = x->begin[x->last]; o < x->end[x->first]; o++)
        for (int i = x->op[o].read.from; i < x->op[o].read.to; i++) {
            int t = x->touched.at[i];
            if (!x->grad[t] && x->saved[t] != x->round && !dropped(x, t))
                save(x, t);
        }
}

/* What the first reader that needs anything made again asks for goes in front of all backward. */
static void write_backward(Live *x)
{
    int first = x->begin[x->last], end = x->end[x->first];
    x->lines = x->early = 0;
    mark_saved(x);
    for (int o = first; o < end; o++) {
        for (int i = x->op[o].read.from; i < x->op[o].read.to; i++) {
            int t = x->touched.at[i];
            if (!x->grad[t] && x->saved[t] != x->round && x->again[x->home[t]] != x->round)
                remake(x, x->home[t]);
        }
        if (x->lines > 0 && x->early == 0) {
            x->early = x->lines;
            for (int k = first; k < o; k++)
                x->line[x->lines++] = k;
        }
        if (x->early)
            x->line[x->lines++] = o;
    }
    for (int o = first; !x->early && o < end; o++)
        x->line[x->lines++] = o;
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

/* Adds up what lives when, from touched positions; the first n of x->order. */
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
        most = now + x->tmp[i] > most ? now + x->tmp[i] : most;
    }
    return most;
}

/* Another chunk reads what this one makes. */
static bool leaves(const Live *x, int t)
{
    return own(x, t) && (x->least[t] < x->first || x->most[t] > x->last);
}

static Bytes most_forward(Live *x)
{
    start(x);
    for (int o = x->first; o <= x->last; o++) {
        x->tmp[x->at] = align(x->g->op.at[o].tmp);
        for (int i = x->op[o].read.from; i < x->op[o].write.to; i++)
            touch(x, 2 * x->touched.at[i]);
        x->at++;
    }
    for (int i = 0; i < x->n; i++) {
        int k = x->order[i], t = k / 2;
        if (!own(x, t))
            x->from[k] = 0;
        if (x->saved[t] == x->round || leaves(x, t))
            x->to[k] = x->at - 1;
    }
    return most_alive(x);
}

/* Saved tensors and received gradients are there before, gradients to send stay, and so does what forward still sends. */
static Bytes most_backward(Live *x, bool sending)
{
    start(x);
    for (int i = 0; i < x->lines; i++, x->at++) {
        bool again = x->line[i] < 0;
        int o = again ? ~x->line[i] : x->line[i];
        const Touched *c = &x->op[o];
        x->tmp[x->at] = align(x->g->op.at[o].tmp);
        for (int k = c->read.from; k < c->read.to; k++)
            touch(x, 2 * x->touched.at[k] + (x->remade[x->touched.at[k]] == x->round));
        for (int k = c->write.from; k < c->write.to; k++)
            touch(x, 2 * x->touched.at[k] + (again && x->remade[x->touched.at[k]] == x->round));
    }
    for (int i = 0; i < x->n; i++) {
        int k = x->order[i], t = k / 2;
        if (!own(x, t) || (k % 2 == 0 && x->saved[t] == x->round))
            x->from[k] = 0;
        if ((x->grad[t] || (sending && k % 2 == 0 && x->saved[t] == x->round)) && leaves(x, t))
            x->to[k] = x->at - 1;
    }
    return most_alive(x);
}

/* ---- sums -------------------------------------------------------------------------------------------------------- */

/* Gradients of uses elsewhere come home for the update. */
static Bytes take_states(Live *x)
{
    Bytes visiting = 0, norms = 0;
    x->load.states = x->fixed;
    for (int o = x->first; o <= x->last; o++)
        for (int i = 0; i < x->use[o].n; i++) {
            const State *s = &x->g->state.at[x->use[o].at[i]];
            bool home = x->g->state.at[s->param].op >= x->first;
            x->load.states += x->levels * align(s->bytes);
            if (x->met[s->param] != x->round) {
                x->met[s->param] = x->round;
                x->load.states += home ? x->owner[s->param] : x->guest[s->param];
                norms = home ? x->norms : norms;
                visiting += home ? x->uses[s->param] : 0;
            }
            visiting -= home ? align(s->bytes) : 0;
        }
    x->load.states += norms;
    return visiting;
}

/* Messages of a computation; of a forward whose micro-batch is still there, what is saved too is not sent beside it. */
typedef struct { Bytes in[KINDS], out[KINDS]; } Border;

static void cross(Live *x, int t, Border *b)
{
    int kind = x->grad[t] ? BACKWARD : FORWARD;
    if (leaves(x, t)) {
        b->out[kind] += x->saved[t] == x->round ? 0 : x->bytes[t];
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

static void begin(Live *x, int first, int last, int chunk, const int *fate)
{
    x->first = first;
    x->last = last;
    x->chunk = chunk;
    x->fate = fate;
    x->round++;
    x->nkept = 0;
    x->load = (Load){0};
}

Load live_sums(Live *x, int first, int last, int chunk, const int *fate)
{
    begin(x, first, last, chunk, fate);
    write_backward(x);
    return x->load;
}

Load live_load(Live *x, int first, int last, int chunk, const int *fate)
{
    begin(x, first, last, chunk, fate);
    Bytes visiting = take_states(x);
    take_times(x);
    write_backward(x);
    Border b = borders(x);
    Bytes alive[KINDS] = {[FORWARD] = most_forward(x), [BACKWARD] = most_backward(x, false)}, most = visiting;
    if (b.out[GONE] > b.out[OWN])
        alive[OWN] = most_backward(x, true);
    for (int i = 0; i < x->moment[chunk].n; i++) {
        const Moment *m = &x->moment[chunk].at[i];
        Bytes flying = b.out[m->before] + b.in[m->after], own = m->now == BACKWARD ? x->load.saved : 0;
        Bytes within = alive[m->before == OWN && alive[OWN] ? OWN : m->now], between = own + b.in[m->now] + b.out[m->second];
        Bytes bytes = m->rest * x->load.saved + flying + (within > between ? within : between);
        most = bytes > most ? bytes : most;
    }
    x->load.need = x->load.states + most;
    return x->load;
}

/* Of a chunk of a cut plan; states as the caller counts them. */
Bytes live_bytes(const Plan *p, int *fate, int chunk, Bytes states)
{
    int first = 0, last;
    while (p->chunk.at[first] != chunk)
        first++;
    for (last = first; last + 1 < p->g->nf && p->chunk.at[last + 1] == chunk;)
        last++;
    Load l = live_load(live_open(p), first, last, chunk, fate);
    return l.need - l.states + states;
}
