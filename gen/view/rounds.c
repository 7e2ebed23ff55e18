/* SPDX-License-Identifier: Apache-2.0
 *
 * rounds.c: values on the slowest link that would gain by a line Round, with the step that this would give.
 *
 * A line Round is the author's choice, since it changes the numbers of the model: so this tells, and changes nothing.
 *
 * Method: the link whose messages take longest in a step.  A value qualifies if all calls of forward that read it are behind
 * the cut.  The plan is copied, its messages of that value have the bytes of codes (rt/few.h), one call more stands behind the
 * value and one in front of its reader, and the simulation gives the step.  The two calls have the estimate of their row.
 *
 * Not handled: another cut, which might be better then; memory of the codes.
 */
#include "cost/prof.h"
#include "rt/few.h"
#include "view.h"

enum { MOST_VALUES = 8 };

/* What messages of two devices to each other occupy of the wires in a step. */
static Ns wire_time(const Plan *p, int one, int other, Bytes *bytes)
{
    Ns all = 0;
    *bytes = 0;
    for (int back = 0; back < 2; back++) {
        int from = back ? other : one, to = back ? one : other;
        const Actions *list = &p->dev.at[from].list;
        for (int i = 0; i < list->n; i++)
            if (list->at[i].kind == K_SEND && list->at[i].peer == to) {
                all += cost_wire(p->c, from, to, list->at[i].bytes);
                *bytes += list->at[i].bytes;
            }
    }
    return all;
}

/* The first call of forward that reads it; -1: one of its own chunk does, or none. */
static int reader_behind(const Plan *p, int t)
{
    const Graph *g = p->g;
    int made = g->tensor.at[t].op, first = -1;
    for (int i = g->nf; made >= 0 && made < g->nf && i-- > 0;)
        for (EACH(const Arg, a, g->op.at[i].arg))
            if (a->kind == ARG_READ && !a->state && a->index == t) {
                if (p->chunk.at[i] == p->chunk.at[made])
                    return -1;
                first = i;
            }
    return first;
}

static Bytes packed(const Tensor *t, int bits)
{
    int64_t width = t->shape.d[t->shape.n - 1];
    return shape_elements(&t->shape) / width * few_words(width, bits) * (Bytes)sizeof(int32_t);
}

static Ns estimated(const Plan *p, int op, const char *name, int flop, int64_t n, Bytes moved)
{
    Op o = {.row = row_find(name), .flop = flop * n, .moved = moved};
    return roof_op(&p->m->devices.at[device_of(p, 0, op)], p->g->compute, &o, 0, 1, 1);
}

static Ns **more(const Cost *c, Ns *const *ns, int op, Ns time, int other, Ns other_time)
{
    Ns **to = ns ? alloc(sizeof *to * (size_t)c->classes) : NULL;
    for (int i = 0; to && i < c->classes; i++) {
        to[i] = alloc(sizeof **to * (size_t)c->ops);
        memcpy(to[i], ns[i], sizeof **to * (size_t)c->ops);
        to[i][op] += time;
        to[i][other] += other_time;
    }
    return to;
}

static Actions shortened(const Actions *list, int t, Bytes bytes)
{
    Actions to = {NULL, 0, 0};
    for (int i = 0; i < list->n; i++) {
        Action k = list->at[i];
        if ((k.kind == K_SEND || k.kind == K_RECV) && k.tensor == t)
            k.bytes = bytes;
        *PUSH(&to) = k;
    }
    return to;
}

static Ns rounded_step(const Plan *p, int t, int reader, int bits)
{
    const Tensor *const x = &p->g->tensor.at[t];
    const Bytes few = packed(x, bits);
    void *mark = mem_mark();
    const int64_t n = shape_elements(&x->shape);
    Cost c = *p->c;
    Plan q = *p;
    const Bytes moved = x->bytes + few;
    Ns round = estimated(p, x->op, "Round", 6, n, moved), unpack = estimated(p, reader, "Unpack", 2, n, moved);
    c.ns = more(p->c, p->c->ns, x->op, round, reader, unpack);
    c.alone = more(p->c, p->c->alone, x->op, round, reader, unpack);
    q.c = &c;
    memset(&q.dev, 0, sizeof q.dev);
    for (int d = 0; d < p->dev.n; d++) {
        DevicePlan x = p->dev.at[d];
        x.list = shortened(&p->dev.at[d].list, t, few);
        x.eval = shortened(&p->dev.at[d].eval, t, few);
        *PUSH(&q.dev) = x;
    }
    sim(&q);
    mem_release(mark);
    return q.step;
}

/* Empty: it would not gain. */
static const char *value_text(const Plan *p, int t, int reader)
{
    static const int offered[] = {8, 4};
    const Tensor *x = &p->g->tensor.at[t];
    const char *text = "";
    for (int i = 0; i < 2; i++) {
        Ns step = rounded_step(p, t, reader, offered[i]);
        if (step < p->step)
            text = strf("%s; with %d bits %s, and a step of %.3f ms", text, offered[i], size_text(packed(x, offered[i])),
                        ms(step));
    }
    return *text ? strf("  %s, %s%s\n", x->name, size_text(x->bytes), text) : "";
}

/* The values that one device sends the other. */
static const char *values_text(const Plan *p, int from, int to)
{
    const char *text = "";
    bool *seen = alloc((size_t)p->g->tensor.n + 1);
    for (int i = 0, values = 0; i < p->dev.at[from].list.n && values < MOST_VALUES; i++) {
        const Action *k = &p->dev.at[from].list.at[i];
        int t = k->kind == K_SEND && k->peer == to ? k->tensor : -1;
        if (t < 0 || seen[t])
            continue;
        seen[t] = true;
        const Tensor *x = &p->g->tensor.at[t];
        int reader = x->kind == T_ACT && x->type == p->g->compute ? reader_behind(p, t) : -1;
        if (reader >= 0) {
            text = strf("%s%s", text, value_text(p, t, reader));
            values++;
        }
    }
    return text;
}

void view_rounds(FILE *f, const Plan *p)
{
    Ns longest = 0;
    Bytes bytes = 0, sent;
    int one = 0, other = 0;
    for (int i = 0; i < p->devices; i++)
        for (int k = i + 1; k < p->devices; k++) {
            Ns time = wire_time(p, i, k, &sent);
            if (time > longest) {
                longest = time;
                bytes = sent;
                one = i;
                other = k;
            }
        }
    const char *text = longest ? strf("%s%s", values_text(p, one, other), values_text(p, other, one)) : "";
    if (*text)
        fprintf(f, "link    %s to %s is the slowest: %s a step in %.3f ms%s.  A line Round would gain here, but changes "
                "numbers:\n%s", list_name(p, one), list_name(p, other), size_text(bytes), ms(longest),
                infers(p->m) ? "" : ", there and back", text);
}
