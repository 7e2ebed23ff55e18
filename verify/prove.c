/* SPDX-License-Identifier: Apache-2.0
 *
 * prove.c: the states of all stages after a step against those of the reference: one term each, or the two trees.
 *
 * A step begins with one symbol for each parameter and each moment.  So what holds after one step holds after each: the states
 * that a step leaves are those that the next one begins with.
 */
#include "verify.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct { const Folder *f; const Graph *g; const Reference *reference; Machine *stage; Run run; } Proof;

static _Noreturn void differ(const Proof *p, int d, const char *what, Term want, Term got)
{
    terms_differ(&want, &got);
    TermView v = term_view(got);
    const char *where = got && v.from.stage >= 0 ? joined_text("stage%d.c:%d", v.from.stage, v.from.line) :
                        joined_text("%s.c", p->stage[d].name);
    stop(NOT_PROVED, "%s: %s is not what one device computes.  Here the two first differ:\n  expected\n%s  found\n%s", where,
         what, term_text(want, 2), term_text(got, 2));
}

Term held_term(const Folder *f, const Reference *r, const Machine *m, const Held *h, int newest, int older)
{
    const Pieces *at = newest ? &r->m->region : &r->before;
    const Thing *t = reference_state(r->g, h->param, h->kind);
    if (!t || t->bytes != h->whole)
        stop(NOT_PROVED, "%s.c:%d: the %s of %s, %lld bytes: model.graph has %s", m->name, h->line, h->kind, h->param,
             (long long)h->whole, t ? "another size" : "no such state");
    Reads reads = overlap_slot(f, m->stage, h->kept, older);
    int version = newest + reads.version;
    if (version - (reads.ahead > 0) < -r->back)
        return 0;
    Term x = reference_value(r, at, t, version, reads);
    return h->stretches ? term_part(x, h->stretches, h->room) : x;
}

static void state(const Proof *p, int d, const Held *h, int older)
{
    int steps = p->run.eval ? 0 : p->run.steps, slot = ((p->run.first + steps - older) % h->kept + h->kept) % h->kept;
    int64_t here = h->at + slot * h->stride;
    Term want = term_slice(held_term(p->f, p->reference, &p->stage[d], h, steps, older), h->from, h->bytes);
    Term got = region_term(&p->stage[d].region, here, here + h->bytes);
    if (want && want != got)
        differ(p, d, joined_text("the %s of %s after %s", h->kind, h->param, p->run.eval ? "an evaluation" : "the step"), want,
               got);
}

/* A parameter that no call takes, but its copy: a frozen one in bf16. */
static bool spared(const Graph *g, const Thing *t)
{
    if (strcmp(t->kind, "param") || !reference_state(g, t->of, "copy"))
        return false;
    for (int i = 0; i < g->op.n; i++)
        for (int k = 0; k < g->op.at[i].arg.n; k++)
            if (g->op.at[i].arg.at[k].name == t->name && strchr("RWUA", g->op.at[i].arg.at[k].sign))
                return false;
    return true;
}

/* A copy that nobody holds, since each step makes it of the parts of a parameter that replicas have. */
static bool made_again(const Proof *p, const Thing *t)
{
    bool held = false, parts = false;
    for (int d = 0; d < p->f->stages && !strcmp(t->kind, "copy"); d++)
        for (int k = 0; k < p->f->stage[d].held.n; k++) {
            const Held *h = &p->f->stage[d].held.at[k];
            held |= h->param == t->of && !strcmp(h->kind, "copy");
            parts |= h->param == t->of && !strcmp(h->kind, "param") && h->part;
        }
    return parts && !held;
}

/* Each byte of each parameter and moment of the model stands on some stage. */
static void complete(const Proof *p)
{
    for (int i = 0; i < p->g->state.n; i++) {
        const Thing *t = &p->g->state.at[i];
        Pieces there = {0};
        if (!t->of || !strcmp(t->kind, "grad") || !strcmp(t->kind, "norm") || !strcmp(t->kind, "clip") || spared(p->g, t) ||
            made_again(p, t))
            continue;
        for (int d = 0; d < p->f->stages; d++)
            for (int k = 0; k < p->f->stage[d].held.n; k++) {
                const Held *h = &p->f->stage[d].held.at[k];
                int64_t all = h->stretches ? p->f->devices : 1;     /* devices together have all of what each has a part of */
                int64_t from = all * h->from, until = from + all * h->bytes;
                if (h->param == t->of && !strcmp(h->kind, t->kind))
                    region_set(&there, (Piece){from, until, from, 1 + (Term)h->stretches});
            }
        Piece whole = region_piece(&there, 0, t->bytes);
        if (!whole.term || whole.hi < t->bytes)
            stop(NOT_PROVED, "no stage has the %s of %s, or not all of it", t->kind, t->of);
        free(there.at);
    }
}

/* The losses of a step's micro-batches, in their order, on whichever stages computed them.  An evaluation runs one micro-batch
 * on the first pipeline of each replica. */
static void losses(const Proof *p)
{
    int ways = p->run.eval ? 1 : p->f->ways, copies = p->run.eval && p->f->homes ? 1 : p->f->replicas * ways, seen = 0;
    int each = p->run.eval ? 1 : (int)p->g->micro / copies;
    const Machine *r = p->reference->m;
    for (int d = 0; d < p->f->stages; d++) {
        const Machine *m = &p->stage[d];
        int replica = p->f->homes ? p->f->stage[d].copy : d / (p->f->stages / p->f->replicas);
        int copy = p->run.eval ? 0 : replica * ways + p->f->stage[d].pipeline, turns = p->run.eval ? 1 : p->f->stage[d].turns;
        for (int k = 0; k < m->ended.n; k++) {
            const Ended *got = &m->ended.at[k], *want = &r->ended.at[k];
            if (got->losses == 0)
                continue;
            if (got->losses != each * turns || copy + turns > copies || want->losses < (copy + turns) * each)
                stop(NOT_PROVED, "%s.c reports the losses of %d micro-batches, not of %d; model.graph has %d", m->name,
                     got->losses, each * turns, want->losses);
            for (int i = 0; i < each * turns; i++) {
                int mb = (copy + i % turns) * each + i / turns;
                if (m->loss.at[got->first + i] != r->loss.at[want->first + mb])
                    differ(p, d, joined_text("the loss of micro-batch %d", mb), r->loss.at[want->first + mb],
                           m->loss.at[got->first + i]);
            }
            seen += turns;
        }
    }
    if (seen < copies * r->ended.n)
        stop(NOT_PROVED, "losses are reported by %d stages, not by %d", seen, copies * r->ended.n);
}

/* What the runtime reads at the end of each step: the sum of the losses, the norm, the targets that an evaluation found. */
static void ended(const Proof *p, int k)
{
    bool norm = p->run.eval, loss = p->f->replicas * p->f->ways > 1;
    Ended want = p->reference->m->ended.at[k];
    Term zero = term_of(H_ZERO, 8, 0, NULL);
    int found = 0;      /* stages that tell hits, which the runtime adds: one a replica, and not always that of the loss */
    for (int d = 0; d < p->f->stages; d++) {
        Ended got = p->stage[d].ended.at[k];
        if (got.loss != zero && got.loss != want.loss && p->f->replicas * p->f->ways == 1)
            differ(p, d, joined_text("the loss of step %d", k), want.loss, got.loss);
        if (got.norm != zero && got.norm != want.norm)
            differ(p, d, joined_text("the norm of the gradient of step %d", k), want.norm, got.norm);
        if (p->run.eval && got.hits != zero && got.hits != want.hits)
            differ(p, d, "the targets among the best scores", want.hits, got.hits);
        found += got.hits != zero;
        norm |= got.norm == want.norm;
        loss |= got.loss == want.loss;
    }
    if (!norm || !loss)
        stop(NOT_PROVED, "no stage tells the %s of step %d", norm ? "loss" : "norm of the gradient", k);
    int tell = want.hits == zero ? 0 : p->f->homes ? 1 : p->f->replicas;
    if (p->run.eval && found != tell)
        stop(NOT_PROVED, "%d stages tell the targets among the best scores, not %d", found, tell);
}

/* Each output of each micro-batch leaves once, from whichever stage has it. */
static void outputs(const Proof *p)
{
    const Machine *r = p->reference->m;
    int found = 0;
    for (int d = 0; d < p->f->stages; d++)
        for (int i = 0; i < p->stage[d].leaves.n; i++) {
            const Leaves *got = &p->stage[d].leaves.at[i], *want = NULL;
            for (int k = 0; k < r->leaves.n; k++)
                if (r->leaves.at[k].output == got->output && r->leaves.at[k].mb == got->mb)
                    want = &r->leaves.at[k];
            if (!want)
                stop(NOT_PROVED, "stage%d.c:%d: model.graph has no output %d of micro-batch %d", d, got->line, got->output,
                     got->mb);
            if (want->term != got->term)
                differ(p, d, joined_text("output %d of micro-batch %d", got->output, got->mb), want->term, got->term);
            for (int e = 0; e < d; e++)
                for (int k = 0; k < p->stage[e].leaves.n; k++)
                    if (p->stage[e].leaves.at[k].output == got->output)
                        stop(NOT_PROVED, "stage%d.c:%d: output %d leaves from stage %d too", d, got->line, got->output, e);
            found++;
        }
    if (found != r->leaves.n || found == 0)
        stop(NOT_PROVED, "%d outputs leave the stages, and %d that of one device", found, r->leaves.n);
}

void prove(const Folder *f, const Graph *g, const Reference *r, Machine *stage, Run run)
{
    Proof p = {f, g, r, stage, run};
    if (!run.infer)             /* else what no output needs is on no stage */
        complete(&p);
    for (int d = 0; d < f->stages; d++)
        for (int i = 0; i < f->stage[d].held.n; i++)
            for (int k = 0; k < f->stage[d].held.at[i].kept; k++)
                if (strcmp(f->stage[d].held.at[i].kind, "grad"))
                    state(&p, d, &f->stage[d].held.at[i], k);
    for (int d = 0; d < f->stages; d++)
        if (stage[d].ended.n != r->m->ended.n)
            stop(NOT_PROVED, "%s.c ends %d steps, not %d", stage[d].name, stage[d].ended.n, r->m->ended.n);
    if (run.infer)
        outputs(&p);
    else if (!f->overlap || f->replicas * f->ways > 1)
        losses(&p);
    for (int k = 0; k < r->m->ended.n && !run.infer; k++)
        ended(&p, k);
}
