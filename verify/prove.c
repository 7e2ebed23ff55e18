/* SPDX-License-Identifier: Apache-2.0
 *
 * prove.c: the states of all stages after a step against those of the reference: one term each, or the two trees.
 *
 * A step begins with one symbol for each parameter and each moment.  So what holds after one step holds after each: the states
 * that a step leaves are those that the next one begins with.
 */
#include "verify.h"
#include <stdio.h>
#include <string.h>

typedef struct { const Folder *f; const Graph *g; const Machine *reference; Machine *stage; bool eval; } Proof;

static _Noreturn void differ(const Proof *p, int d, const char *what, Term want, Term got)
{
    terms_differ(&want, &got);
    TermView v = term_view(got);
    const char *where = got && v.from.stage >= 0 ? joined_text("stage%d.c:%d", v.from.stage, v.from.line) :
                        joined_text("%s.c", p->stage[d].name);
    stop(NOT_PROVED, "%s: %s is not what one device computes.  Here the two first differ:\n  expected\n%s  found\n%s", where,
         what, term_text(want, 2), term_text(got, 2));
}

static void state(const Proof *p, int d, const Held *h)
{
    const Thing *t = reference_state(p->g, h->param, h->kind);
    int64_t hole = 0;
    if (!t || t->bytes != h->whole)
        stop(NOT_PROVED, "%s.c:%d: the %s of %s, %lld bytes: model.graph has %s", p->stage[d].name, h->line, h->kind, h->param,
             (long long)h->whole, t ? "another size" : "no such state");
    Term want = region_term(&p->reference->region, t->at + h->from, t->at + h->from + h->bytes, &hole);
    Term got = region_term(&p->stage[d].region, h->at, h->at + h->bytes, &hole);
    if (want != got)
        differ(p, d, joined_text("the %s of %s after %s", h->kind, h->param, p->eval ? "an evaluation" : "the step"), want,
               got);
}

/* Each byte of each parameter and moment of the model stands on some stage. */
static void complete(const Proof *p)
{
    Map there = {0};
    LIST(Region) held = {0};
    for (int d = 0; d < p->f->stages; d++)
        for (int i = 0; i < p->f->stage[d].held.n; i++) {
            const Held *h = &p->f->stage[d].held.at[i];
            const char *text = joined_text("%s %s", h->kind, h->param), *key = name_of(text, strlen(text));
            if (map_get(&there, key) < 0) {
                map_put(&there, key, held.n);
                *ADD(&held) = (Region){0};
            }
            region_set(&held.at[map_get(&there, key)], (Piece){h->from, h->from + h->bytes, h->from, 1});
        }
    for (int i = 0; i < p->g->state.n; i++) {
        const Thing *t = &p->g->state.at[i];
        if (!t->of || !strcmp(t->kind, "grad"))
            continue;
        const char *text = joined_text("%s %s", t->kind, t->of);
        int k = map_get(&there, name_of(text, strlen(text)));
        Pieces list = {0};
        if (k >= 0)
            region_get(&held.at[k], 0, t->bytes, &list);
        for (int j = 0; j < list.n; j++)
            k = list.at[j].term ? k : -1;
        if (k < 0)
            stop(NOT_PROVED, "no stage has the %s of %s, or not all of it", t->kind, t->of);
    }
}

/* The loss of a step: of all micro-batches, in their order, on whichever stages computed them.  An evaluation runs one
 * micro-batch on the first pipeline of each replica. */
static void losses(const Proof *p)
{
    int ways = p->eval ? 1 : p->f->ways, copies = p->f->replicas * ways, seen = 0;
    int each = p->eval ? 1 : (int)p->g->micro / copies;
    for (int d = 0; d < p->f->stages; d++) {
        Machine *m = &p->stage[d];
        int replica = d / (p->f->stages / p->f->replicas), copy = p->eval ? 0 : replica * ways + p->f->stage[d].pipeline;
        if (m->loss.n == 0)
            continue;
        if (m->loss.n != each || copy >= copies)
            stop(NOT_PROVED, "%s.c reports the losses of %d micro-batches, not of %d", m->name, m->loss.n, each);
        for (int i = 0; i < each; i++)
            if (m->loss.at[i] != p->reference->loss.at[copy * each + i])
                differ(p, d, joined_text("the loss of micro-batch %d", copy * each + i),
                       p->reference->loss.at[copy * each + i], m->loss.at[i]);
        seen++;
    }
    if (seen < copies)
        stop(NOT_PROVED, "losses are reported by %d stages, not by %d", seen, copies);
}

/* Fields of the step values: the norm of the gradient, the targets that an evaluation found. */
static void field(const Proof *p, int d, int64_t at, const char *what)
{
    int64_t hole, here = p->stage[d].vals + at, there = p->reference->vals + at, bytes = at == VALS_HITS ? 4 : 8;
    Term want = region_term(&p->reference->region, there, there + bytes, &hole);
    Term got = region_term(&p->stage[d].region, here, here + bytes, &hole);
    if (want != got)
        differ(p, d, what, want, got);
}

void prove(const Folder *f, const Graph *g, const Machine *reference, Machine *stage, bool eval)
{
    Proof p = {f, g, reference, stage, eval};
    complete(&p);
    for (int d = 0; d < f->stages; d++)
        for (int i = 0; i < f->stage[d].held.n; i++)
            if (strcmp(f->stage[d].held.at[i].kind, "grad"))
                state(&p, d, &f->stage[d].held.at[i]);
    losses(&p);
    for (int d = 0; d < f->stages; d++) {
        if (stage[d].normed)
            field(&p, d, VALS_NORM, "the norm of the gradient");
        if (stage[d].loss.n && eval)
            field(&p, d, VALS_HITS, "the targets among the best scores");
    }
}
