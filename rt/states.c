/* SPDX-License-Identifier: Apache-2.0
 *
 * states.c: what a stage says of itself, as the runtime reads it.
 *
 * A stage's source has one row for a parameter, with the offsets of all its states.  The runtime goes through states: what
 * is saved, hashed or started is chosen by kind.  So each row becomes a row of each kind that it has.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "run.h"

enum { KINDS = STATE_CENTRE + 1 };

static StateInfo state_of(const Parameter *p, int kind, size_t at, int shard)
{
    StateInfo s = {.name = p->name, .kind = kind, .owned = !p->shared && !shard, .outer = p->outer, .room = p->room,
                   .offset = at && at != EMPTY ? at - 1 : NOWHERE, .copy = NOWHERE, .n = 1, .init = p->start.kind,
                   .a = p->start.a, .b = p->start.b, .kept = 1, .copies = 1, .files = p->files};
    memcpy(s.values, p->start.values, sizeof s.values);
    for (; s.ndim < 6 && p->shape[s.ndim] > 0; s.ndim++) {
        s.dim[s.ndim] = p->shape[s.ndim];
        s.n *= p->shape[s.ndim];
    }
    if (kind == STATE_PARAM) {
        s.copy = p->copy ? p->copy - 1 : NOWHERE;
        s.bits = p->bits;
        s.kept = p->versions.kept;
        s.copies = p->versions.copies;
        s.stride = p->versions.stride;
        if (!(p->cut & CUT_PARAM))
            return s;
    }
    if (kind == STATE_GRAD) {
        s.kept = p->sums.kept;
        s.stride = p->sums.stride;
    }
    s.cut = p->cut;
    s.from = p->from;
    s.part = p->part;
    s.whole = p->cut && kind == STATE_GRAD && !(p->cut & CUT_GRAD);
    return s;
}

/* stage0.1: its second device. */
static const char *shard_name(const char *stage, int shard)
{
    size_t n = strlen(stage) + 16;
    char *name = malloc(n);
    if (name)
        snprintf(name, n, "%s.%d", stage, shard);
    return name;
}

void stage_take(Stages *to, const StageInfo *s)
{
    StageInfo *x = &to->stage[to->n++];
    StateInfo *state = calloc((size_t)s->parameters * KINDS + 1, sizeof *state);
    *x = *s;
    x->parameter = NULL;                /* its rows live as long as this call */
    x->name = to->shard ? shard_name(s->name, to->shard) : s->name;
    to->failed |= !x->name;
    x->state = state;
    to->failed |= !state;
    for (int i = 0; state && i < s->parameters; i++) {
        const Parameter *p = &s->parameter[i];
        const size_t at[KINDS] = {[STATE_PARAM] = p->param, [STATE_GRAD] = p->grad, [STATE_MOMENT1] = p->moment1,
            [STATE_MOMENT2] = p->moment2, [STATE_DRIFT] = p->drift, [STATE_CENTRE] = p->centre};
        for (int kind = 0; kind < KINDS; kind++)
            if (at[kind] || (kind == STATE_PARAM && p->copy))
                state[x->states++] = state_of(p, kind, at[kind], to->shard);
    }
}

const Job *stages_open(const Job *job)
{
    if (!job->source)
        return job;
    Job *full = malloc(sizeof *full);
    int n = job->stages * team_of(job);
    Stages all = {calloc((size_t)n, sizeof *all.stage), 0, 0, 0};
    for (int i = 0; all.stage && i < n; i++) {
        all.shard = i / job->stages;
        job->source[i % job->stages](&all);
    }
    if (full && all.stage) {
        *full = *job;
        full->stage = all.stage;
        full->stages = n;
    }
    return full && all.stage && !all.failed ? full : NULL;
}

void stages_close(const Job *job)
{
    for (int i = 0; i < job->stages; i++) {
        free((void *)(uintptr_t)job->stage[i].state);
        if (i >= job->stages / team_of(job))
            free((void *)(uintptr_t)job->stage[i].name);
    }
    free((void *)(uintptr_t)job->stage);
    free((void *)(uintptr_t)job);
}
