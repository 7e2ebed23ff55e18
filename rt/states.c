/* SPDX-License-Identifier: Apache-2.0
 *
 * states.c: what a stage says of itself, as the runtime reads it.
 *
 * A stage's source has one row for a parameter, with the offsets of all its states.  The runtime goes through states: what
 * is saved, hashed or started is chosen by kind.  So each row becomes a row of each kind that it has.
 */
#include <stdlib.h>
#include "run.h"

enum { KINDS = STATE_CENTRE + 1 };

static StateInfo state_of(const Parameter *p, int kind, size_t at)
{
    StateInfo s = {.name = p->name, .kind = kind, .owned = !p->shared, .offset = at && at != EMPTY ? at - 1 : NOWHERE,
                   .copy = NOWHERE, .n = 1, .init = p->start.kind, .a = p->start.a, .b = p->start.b, .kept = 1, .copies = 1,
                   .files = p->files};
    for (; s.ndim < 6 && p->shape[s.ndim] > 0; s.ndim++) {
        s.dim[s.ndim] = p->shape[s.ndim];
        s.n *= p->shape[s.ndim];
    }
    if (kind == STATE_PARAM) {
        s.copy = p->copy ? p->copy - 1 : NOWHERE;
        s.kept = p->versions.kept;
        s.copies = p->versions.copies;
        s.stride = p->versions.stride;
        return s;
    }
    if (kind == STATE_GRAD) {
        s.kept = p->sums.kept;
        s.stride = p->sums.stride;
    }
    s.cut = p->cut;
    s.from = p->from;
    s.part = p->part;
    s.whole = p->cut && kind == STATE_GRAD;
    return s;
}

void stage_take(Stages *to, const StageInfo *s)
{
    StageInfo *x = &to->stage[to->n++];
    StateInfo *state = calloc((size_t)s->parameters * KINDS + 1, sizeof *state);
    *x = *s;
    x->parameter = NULL;                /* its rows live as long as this call */
    x->state = state;
    to->failed |= !state;
    for (int i = 0; state && i < s->parameters; i++) {
        const Parameter *p = &s->parameter[i];
        const size_t at[KINDS] = {[STATE_PARAM] = p->param, [STATE_GRAD] = p->grad, [STATE_MOMENT1] = p->moment1,
            [STATE_MOMENT2] = p->moment2, [STATE_DRIFT] = p->drift, [STATE_CENTRE] = p->centre};
        for (int kind = 0; kind < KINDS; kind++)
            if (at[kind] || (kind == STATE_PARAM && p->copy))
                state[x->states++] = state_of(p, kind, at[kind]);
    }
}

const Job *stages_open(const Job *job)
{
    if (!job->source)
        return job;
    Job *full = malloc(sizeof *full);
    Stages all = {calloc((size_t)job->stages, sizeof *all.stage), 0, 0};
    for (int i = 0; all.stage && i < job->stages; i++)
        job->source[i](&all);
    if (full && all.stage) {
        *full = *job;
        full->stage = all.stage;
    }
    return full && all.stage && !all.failed ? full : NULL;
}

void stages_close(const Job *job)
{
    for (int i = 0; i < job->stages; i++)
        free((void *)(uintptr_t)job->stage[i].state);
    free((void *)(uintptr_t)job->stage);
    free((void *)(uintptr_t)job);
}
