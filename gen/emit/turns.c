/* SPDX-License-Identifier: Apache-2.0
 *
 * turns.c: routines of buffers that take turns in slots: sums of gradients, and versions of the weights.
 *
 * A group's sums are folded into another's; where steps overlap, the newest weights are copied to the slot of the next update,
 * or predicted further.  One buffer is one call, and then there is no routine: the call stands in the action.
 */
#include "stage.h"
#include "list/list.h"

/* The buffer of a state that is made here; way -1: of any pipeline.  -1: there is none. */
int turns_made(const Stager *w, int state, int way)
{
    for (int b = 0; b < w->p->buf.n; b++) {
        const Buf *x = &w->p->buf.at[b];
        if (x->device == w->device && x->state == state && x->origin == MADE && (way < 0 || x->pipeline == way))
            return b;
    }
    return -1;
}

static const Strs folded = {(const char *[]){"into", "from"}, 2, 2}, copied = {(const char *[]){"newer", "older"}, 2, 2},
    ahead = {(const char *[]){"into", "newer", "older", "ahead"}, 4, 4},
    behind = {(const char *[]){"into", "newer", "behind"}, 3, 3};

static bool drifts(const Stager *w)
{
    return schedule_of(w->p->schedule)->drifts;
}

const Strs *turns_words(const Stager *w, const Routine *r)
{
    return r->kind == K_FOLD ? &folded : r->kind == K_VERSION ? &copied : r->kind != K_PREDICT ? NULL
         : drifts(w) ? &behind : &ahead;
}

/* The buffers of such a routine: sums of gradients, or weights that have versions. */
static Ints turning(const Stager *w, const Routine *r)
{
    const Plan *p = w->p;
    Ints list = {0};
    for (int b = 0; b < p->buf.n; b++) {
        const Buf *x = &p->buf.at[b];
        if (x->device != w->device || x->state < 0)
            continue;
        bool sum = r->kind == K_FOLD && fold_takes(p->g, r->fold, x->state) && x->pool >= 0 && x->chunk == r->chunk &&
                   fold_in(p->g, r->first, r->until, x->state);
        if (sum || (r->kind != K_FOLD && x->origin == MADE && version_copied(p, x->state, r->chunk)))
            *PUSH(&list) = b;
    }
    return list;
}

/* Its calls; word: of each parameter of the routine, its name, or in an action its literal. */
void turns_print(Stager *w, const Routine *r, const char *const *word)
{
    const Ints list = turning(w, r);
    bool predicts = r->kind == K_PREDICT, back = predicts && drifts(w);
    for (int i = 0; i < list.n; i++) {
        const Buf *x = &w->p->buf.at[list.at[i]];
        call_open(w, r->kind == K_FOLD ? "group_fold" : back ? "predict_old" : predicts ? "predict" : "version_copy");
        w->changes = r->kind == K_FOLD;
        for (int k = 0; k < (predicts ? 2 + !back : 2); k++)
            call_word(w, "A(%s + %s_slot[%s])", w->buf[list.at[i]], w->p->pool.at[x->pool].name, word[k]);
        if (back) {
            /* The mean of what updates add to a weight. */
            for (int s = 0; s < w->p->g->state.n; s++)
                if (w->p->g->state.at[s].kind == S_DRIFT && w->p->g->state.at[s].param == x->state)
                    call_word(w, "A(%s)", w->buf[turns_made(w, s, -1)]);
        }
        if (predicts && strspn(word[2 + !back], "-0123456789") > 0)
            call_literal(w, word[2 + !back]);
        else if (predicts)
            call_word(w, "%s", word[2 + !back]);
        int per = r->kind == K_VERSION ? 1 : 4;
        call_literal(w, dims_bytes(w->dims, w->dim, w->p->g, -1, x->state, x->bytes, per));
        call_close(w, "");
    }
}

void turns_routine(Stager *w, int index)
{
    const Routine *r = &w->p->routine.at[index];
    const Strs *word = turns_words(w, r);
    if (turning(w, r).n == 1)
        return;
    w->routine[index] = name_new(&w->names, r->name);
    const char *about = r->kind == K_FOLD ? "Gradients of slot `from` are added to those of slot `into`"
            : r->kind == K_VERSION ? "The newest weights, to the slot where they will be updated"
            : drifts(w) ? "The newest weights, `behind` updates back along their drift"
            : "The newest weights, `ahead` updates further on the line through those before";
    stage_signature(w, w->routine[index], word, about);
    turns_print(w, r, word->at);
    fprintf(w->f, "}\n");
}

