/* SPDX-License-Identifier: Apache-2.0
 *
 * lives.c: the life of each buffer, and the bytes alive at once.
 *
 * Method: a device's straight line is replayed in program order.  Noted for each buffer and micro-batch are the ticks (calls)
 * from its first touch to its last; a transfer touches from begin to wait.  The most bytes alive at any tick, aligned, are the
 * bound: no packing, pooled or not, can be below it.
 */
#include "mem.h"

/* An asynchronous plan's list is a run of one period with a step alone behind it.  Micro-batches are numbered through both. */
int mem_number(const Mem *m, const Action *k)
{
    int from = k->piece == PIECE_EPILOGUE ? 1 : k->piece == PIECE_ALONE ? 1 + m->overlap : 0;
    int chunk = plan_stage(m->p, m->device), mb = k->mb < 0 || !m->overlap ? k->mb : plan_turn(m->p, chunk, k->mb);
    return (k->step + from) * m->each + (mb < 0 ? 0 : mb);
}

bool mem_always(const Buf *b)
{
    return b->birth == AT_ALWAYS;
}

/* A room lives from where it is filled to its last reader: of these lives it has as many as micro-batches, and the last one may
 * be of several.  What fills it again, behind a reader, begins the next. */
static int session(Mem *m, int b, int mb, bool reads)
{
    const Buf *x = &m->p->buf.at[b];
    if (x->state < 0 || x->origin != REMADE)
        return mb;
    int *at = &m->session[b];           /* 2 * session + it has been read */
    if (!reads && *at % 2)
        *at += 1;
    *at |= reads;
    return *at / 2 < m->micro ? *at / 2 : m->micro - 1;
}

static void touch(Mem *m, int b, int mb, int tick)
{
    Span *s = mem_live(m, b, mb);
    if (s->last < s->first)
        *s = (Span){tick, tick};
    else
        s->last = tick;
    Buf *x = &m->p->buf.at[b];
    if (x->last < x->first)
        x->first = tick;
    x->last = tick;
}

/* Notes that call c of routine r touches buffer b.  r < 0: an action that is no call touches it. */
static void note(Mem *m, int b, int r, int c)
{
    enum { NONE = -1, SEVERAL = -2 };
    MemLocal *h = &m->local[b];
    if (h->routine == NONE && r >= 0)
        *h = (MemLocal){r, {c, c}};
    else if (h->routine != r || r < 0)
        h->routine = SEVERAL;
    else
        h->call = (Span){c < h->call.first ? c : h->call.first, c > h->call.last ? c : h->call.last};
}

static void replay(Mem *m, const Actions *list)
{
    for (EACH(const Action, k, *list)) {
        if (k->buf >= 0) {
            touch(m, k->buf, session(m, k->buf, mem_number(m, k), false), k->tick);
            note(m, k->buf, -1, 0);
            int sum = k->kind == K_MERGE ? m->sum[k->state] - 1 : -1;       /* that it reads beside what has come */
            if (sum >= 0) {
                touch(m, sum, 0, k->tick);
                note(m, sum, -1, 0);
            }
        }
        if (k->routine < 0)
            continue;
        const Routine *r = &m->p->routine.at[k->routine];
        for (int c = 0; c < r->call.n; c++)
            for (int j = 0; j < r->call.at[c].buf.n; j++)
                if (r->call.at[c].buf.at[j] >= 0) {
                    int b = r->call.at[c].buf.at[j], of = r->call.at[c].op;
                    bool pair = r->eval && c > 0 && on_gpus(m->p->m) && cost_joins(m->p->g, of, false);
                    if (pair && m->p->g->op.at[of].arg.at[j].kind == ARG_WRITE)        /* as emit/pair.c wants it */
                        touch(m, b, mem_number(m, k), k->tick + c - 1), note(m, b, k->routine, c - 1);
                    touch(m, b, session(m, b, mem_number(m, k), k->kind != K_U), k->tick + c);
                    note(m, b, k->routine, c);
                }
    }
}

/* The sum of a gradient is there from its first micro-batch on.  The part that stays of it is that of the last step until the
 * next one: files may want it. */
static void join_sums(Mem *m, int b)
{
    Buf *x = &m->p->buf.at[b];
    bool part = x->death == AT_ALWAYS, sum = x->state >= 0 && !mem_always(x) && (x->origin == MADE || part);
    if (!sum || x->device != m->device || x->last < x->first)
        return;
    for (int mb = 1; mb < m->micro; mb++)
        *mem_live(m, b, mb) = (Span){0, -1};
    x->last = part ? m->p->dev.at[m->device].ticks - 1 : x->last;
    *mem_live(m, b, 0) = (Span){x->first, x->last};
}

static void find_lives(Mem *m)
{
    Plan *p = m->p;
    for (int i = 0; i < m->rows * m->micro; i++)
        m->live[i] = (Span){0, -1};
    for (int b = m->from; b < m->until; b++) {
        m->local[b].routine = -1;
        p->buf.at[b].first = p->buf.at[b].device == m->device ? 0 : p->buf.at[b].first;
        p->buf.at[b].last = p->buf.at[b].device == m->device ? -1 : p->buf.at[b].last;
    }
    replay(m, &p->dev.at[m->device].list);
    replay(m, &p->dev.at[m->device].eval);
    for (int b = m->from; b < m->until; b++)
        if (p->buf.at[b].device == m->device && mem_always(&p->buf.at[b])) {
            p->buf.at[b].first = 0;
            p->buf.at[b].last = p->dev.at[m->device].ticks - 1;
        }
    for (int b = m->from; b < m->until; b++)
        join_sums(m, b);
}

Span *mem_live(const Mem *m, int b, int mb)
{
    return &m->live[(size_t)m->life[b] * (size_t)m->micro + (size_t)mb];
}

bool mem_alive(const Mem *m, int b, int mb)
{
    const Buf *x = &m->p->buf.at[b];
    const Span *s = mem_live(m, b, mb);
    return x->device == m->device && !mem_always(x) && s->last >= s->first;
}

void mem_bound(Mem *m)
{
    DevicePlan *d = &m->p->dev.at[m->device];
    Bytes *change = alloc(sizeof(Bytes) * (size_t)(d->ticks + 2)), now = m->top;
    for (int b = m->from; b < m->until; b++)
        for (int mb = 0; mb < m->micro; mb++) {
            const Span *s = mem_live(m, b, mb);
            if (!mem_alive(m, b, mb))
                continue;
            change[s->first] += aligned(m->p->buf.at[b].bytes);
            change[s->last + 1] -= aligned(m->p->buf.at[b].bytes);
        }
    d->bound = now;
    for (int t = 0; t < d->ticks; t++) {
        now += change[t];
        if (now > d->bound) {
            d->bound = now;
            d->peak = t;
        }
    }
}

Mem mem_new(Plan *p, int device)
{
    Mem m = {.p = p, .room = mem_now(), .device = device, .overlap = order_overlap(p), .micro = (int)p->g->micro,
             .each = (int)p->g->micro,
             .ticks = p->dev.at[device].ticks};
    if (m.overlap)
        m.each = plan_share_of(p, plan_stage(p, device)), m.micro = m.each * (m.overlap + 2);
    m.life = alloc(sizeof *m.life * (size_t)p->buf.n);
    m.rows = 1;
    m.sum = alloc(sizeof *m.sum * (size_t)p->g->state.n);
    for (int b = 0; b < p->buf.n; b++) {
        const Buf *x = &p->buf.at[b];
        m.life[b] = x->device == device ? m.rows++ : 0;
        m.from = m.life[b] == 1 ? b : m.from;
        m.until = m.life[b] ? b + 1 : m.until;
        if (x->device == device && x->state >= 0 && x->origin == MADE && !mem_always(x))
            m.sum[x->state] = b + 1;
    }
    m.live = alloc(sizeof(Span) * (size_t)m.rows * (size_t)m.micro);
    m.session = alloc(sizeof *m.session * (size_t)p->buf.n);
    m.local = alloc(sizeof *m.local * (size_t)p->buf.n);
    find_lives(&m);
    return m;
}

Bytes *mem_at_peak(const Plan *p, int device)
{
    Plan here = *p;             /* only read */
    Bytes *alive = alloc(sizeof *alive * (size_t)p->buf.n);
    Room *scratch = mem_room(), *room = mem_in(scratch);
    Mem m = mem_new(&here, device);
    for (int b = m.from; b < m.until; b++) {
        const Buf *x = &p->buf.at[b];
        int slots = x->pool >= 0 ? p->pool.at[x->pool].count : 1, peak = p->dev.at[device].peak;
        if (x->device == device && mem_always(x))
            alive[b] = aligned(x->bytes) * slots;
        for (int mb = 0; x->device == device && !mem_always(x) && mb < m.micro; mb++) {
            const Span *s = mem_live(&m, b, mb);
            alive[b] += s->first <= peak && peak <= s->last ? aligned(x->bytes) : 0;
        }
    }
    mem_in(room);
    mem_drop(scratch);
    return alive;
}

/* bound and peak of a plan that was read from a file. */
void mem_measure(Plan *p)
{
    for (int d = 0; d < p->devices; d++) {
        Room *scratch = mem_room(), *room = mem_in(scratch);
        Mem m = mem_new(p, d);
        m.top = p->dev.at[d].state;
        mem_bound(&m);
        mem_in(room);
        mem_drop(scratch);
    }
}
