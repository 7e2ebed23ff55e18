/* SPDX-License-Identifier: Apache-2.0
 *
 * Does every call read what it should, byte for byte?  A check of mem, lower and comm that trusts none of them.
 *
 * Replays each device's straight line over a map from address ranges to values.  A value is (tensor, micro-batch) or a
 * state.  A write claims its range; a read must find its whole range holding the value it names; a receive is in flight
 * until its wait, a sent range must still hold its value when the send is waited for.  Whatever intervals the planner
 * believed in do not matter here: two owners of one byte show as a read that finds something else.
 *
 * Cost: calls times operands times the ranges that one write splits.
 */
#include "dpgen.h"
#include <string.h>

typedef struct { Bytes from, to; int64_t value; } Range;
typedef struct {
    const Plan *p;
    int device;
    VEC(Range) range;           /* sorted, disjoint */
    const Action *k;
} Memory;

enum { IN_FLIGHT = 1 };

/* Numbers of values: tensors of a micro-batch even, states negative even, the same in flight odd. */
static int64_t value_of(const Memory *m, const Buf *b, int mb)
{
    if (b->state >= 0)
        return -2 - 2 * ((int64_t)b->state * (m->p->devices + 1) + (b->origin == RECEIVED ? b->peer + 1 : 0));
    return 2 * ((int64_t)(b->tensor < 0 ? m->p->g->tensor.n : b->tensor) * m->p->g->micro + (mb < 0 ? 0 : mb)) + 2;
}

/* Index of the first range that ends after `at`. */
static int find(const Memory *m, Bytes at)
{
    int lo = 0, hi = m->range.n;
    while (lo < hi) {
        int mid = (lo + hi) / 2;
        if (m->range.at[mid].to <= at)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* [from, to) holds value from now on. */
static void claim(Memory *m, Bytes from, Bytes to, int64_t value)
{
    int i = find(m, from), j = i;
    Range left = {0, 0, 0}, right = {0, 0, 0};
    while (j < m->range.n && m->range.at[j].from < to)
        j++;
    if (j > i && m->range.at[i].from < from)
        left = (Range){m->range.at[i].from, from, m->range.at[i].value};
    if (j > i && m->range.at[j - 1].to > to)
        right = (Range){to, m->range.at[j - 1].to, m->range.at[j - 1].value};
    Range fresh[3];
    int n = 0;
    if (left.to)
        fresh[n++] = left;
    fresh[n++] = (Range){from, to, value};
    if (right.to)
        fresh[n++] = right;
    int tail = m->range.n - j;
    for (int grow = n - (j - i); grow > 0; grow--)
        (void)PUSH(&m->range);
    memmove(&m->range.at[i + n], &m->range.at[j], sizeof(Range) * (size_t)tail);
    memcpy(&m->range.at[i], fresh, sizeof(Range) * (size_t)n);
    m->range.n = i + n + tail;
}

static void expect(const Memory *m, Bytes from, Bytes to, int64_t value, const Buf *b, const char *who)
{
    for (int i = find(m, from); from < to; i++) {
        if (i >= m->range.n || m->range.at[i].from > from || m->range.at[i].value != value)
            die("device %d, tick %d: %s reads %s at %lld, which does not hold it", m->device, m->k->tick, who, b->name,
                (long long)from);
        from = m->range.at[i].to;
    }
}

static Bytes address(const Memory *m, int b, int slot)
{
    const Buf *x = &m->p->buf.at[b];
    Bytes at = x->offset + (x->pool >= 0 ? slot * m->p->pool.at[x->pool].stride : 0);
    if (at < 0 || at + x->bytes > m->p->dev.at[m->device].arena)
        die("device %d: %s lies outside the arena", m->device, x->name);
    return at;
}

static int slot_in(const Memory *m, const Routine *r, int b)
{
    for (int i = 0; i < r->pool.n; i++)
        if (r->pool.at[i] == m->p->buf.at[b].pool)
            return m->k->slots.at[i];
    return 0;
}

/* Gradient accumulators differ by slot: the value of a state in slot 0 is the one that the update reads. */
static void run_call(Memory *m, const Routine *r, const Call *c)
{
    const Op *o = &m->p->g->op.at[c->op];
    for (int pass = 0; pass < 2; pass++)                    /* all reads, then all writes */
        for (int i = 0; i < o->arg.n; i++) {
            const Arg *a = &o->arg.at[i];
            int b = c->buf.at[i];
            if (b < 0)
                continue;
            const Buf *x = &m->p->buf.at[b];
            Bytes at = address(m, b, slot_in(m, r, b));
            bool reads = a->kind == ARG_READ || a->kind == ARG_UPDATE || a->kind == ARG_VALS ||
                         (a->kind == ARG_ADD && m->k->acc);
            int64_t value = value_of(m, x, m->k->mb);
            if (pass == 0 && reads)
                expect(m, at, at + x->bytes, value, x, o->name);
            if (pass == 1 && a->kind != ARG_READ)
                claim(m, at, at + x->bytes, value);
        }
}

static void run_move(Memory *m, const Action *k)
{
    if (k->buf < 0)
        return;
    const Buf *b = &m->p->buf.at[k->buf];
    Bytes at = address(m, k->buf, k->slot);
    int64_t value = value_of(m, b, k->mb);
    bool wait = k->kind == K_WAIT, receive = k->kind == K_RECV || (wait && k->of == K_RECV);
    if (k->kind == K_LOAD)
        claim(m, at, at + b->bytes, value);
    else if (receive && !wait)
        claim(m, at, at + b->bytes, value + IN_FLIGHT);
    else if (receive) {
        expect(m, at, at + b->bytes, value + IN_FLIGHT, b, "wait");
        claim(m, at, at + b->bytes, value);
    } else {
        expect(m, at, at + b->bytes, value, b, wait ? "wait" : "send");
    }
}

static void run_list(Memory *m, const Actions *list)
{
    for (int i = 0; i < list->n; i++) {
        m->k = &list->at[i];
        const Routine *r = m->k->routine >= 0 ? &m->p->routine.at[m->k->routine] : NULL;
        for (int c = 0; r && c < r->call.n; c++)
            run_call(m, r, &r->call.at[c]);
        if (!r)
            run_move(m, m->k);
    }
}

/* What is there before the first step: states that live for ever, in every slot. */
static void claim_states(Memory *m)
{
    const Plan *p = m->p;
    for (int b = 0; b < p->buf.n; b++) {
        const Buf *x = &p->buf.at[b];
        int slots = x->pool >= 0 ? p->pool.at[x->pool].count : 1;
        for (int s = 0; x->device == m->device && x->birth == AT_ALWAYS && s < slots; s++) {
            Bytes at = address(m, b, s);
            int i = find(m, at);
            if (i < m->range.n && m->range.at[i].from < at + x->bytes)
                die("device %d: %s shares bytes with another state", m->device, x->name);
            claim(m, at, at + x->bytes, value_of(m, x, -1));
        }
    }
}

/* A second step must find the states of the first where they were: the line is replayed twice, with evaluations between. */
void check_mem(const Plan *p)
{
    for (int d = 0; d < p->devices; d++) {
        Memory m = {.p = p, .device = d};
        if (p->dev.at[d].arena < p->dev.at[d].bound)
            die("device %d: the arena is smaller than what is alive in it", d);
        claim_states(&m);
        for (int step = 0; step < 2; step++) {
            run_list(&m, &p->dev.at[d].list);
            run_list(&m, &p->dev.at[d].eval);
        }
    }
}
