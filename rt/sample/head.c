/* SPDX-License-Identifier: Apache-2.0
 *
 * head.c: scores of losses that have no whole row of them: LinearCrossEntropy, and devices that share a vocabulary.
 *
 * linear_xent_forward() reads hidden vectors and weights.  The row is computed here: a sum of doubles, ascending, a score.
 * Where devices share a vocabulary, each has its scores, and the first one gets those of all.
 */
#include <stdlib.h>
#include <string.h>
#include "real.h"
#include "sample.h"
#include "team.h"

typedef struct { const double *x; double *to; double sum; long in, at; } Head;

/* Rows of the weight, piece by piece. */
static bool multiply(void *to, const void *piece, size_t bytes)
{
    Head *h = to;
    for (size_t i = 0; i < bytes / sizeof(real); i++) {
        h->sum += h->x[h->at] * (double)get(piece, (long)i);
        if (++h->at < h->in)
            continue;
        *h->to++ += h->sum;     /* onto the bias */
        h->sum = 0, h->at = 0;
    }
    return true;
}

static void multiply_row(Worker *w, long at, double *score, long width, const Given *x, const Given *weight, const Given *bias,
                         long in)
{
    double *hidden = malloc((size_t)in * sizeof *hidden);
    if (!hidden)
        quit(w->run->link, STATUS_RUN, "no memory for %ld numbers", in);
    sample_row(w, hidden, (const real *)x->p + at * in, in);
    if (bias->p)
        sample_row(w, score, bias->p, width);
    Head h = {hidden, score, 0, in, 0};
    arena_read(w, weight->p, (size_t)(width * in) * sizeof(real), multiply, &h);
    free(hidden);
}

static bool is_call(const char *call, const char *name)
{
    size_t n = strlen(name);
    return !strncmp(call, name, n) && call[n] == '(';
}

/* Operands by their places in rt.h. */
static void look(Worker *w, const char *call, const Given *of, long at, double *(*room)(Worker *w, long width))
{
    enum { X = 2, WIDTH = 6, WEIGHT = 3, BIAS = 4, ALL = 9, IN = 10, OUT = 11, HEAD_ALL = 15, HITS_ALL = 16 };
    Stage *st = &w->stage;
    bool rows = is_call(call, "xent_part_forward");
    int all_at = rows ? ALL : is_call(call, "linear_xent_part_forward") ? HEAD_ALL :
        is_call(call, "linear_xent_part_hits_forward") ? HITS_ALL : 0;
    bool part = all_at > 0;
    if (!part && !is_call(call, "linear_xent_forward") && !is_call(call, "linear_xent_hits_forward"))
        return;
    if (st->shard && !part)
        return;                 /* the first device of the stage has them too */
    long each = (long)of[rows ? WIDTH : OUT].i, wide = part ? (long)of[all_at].i : each;
    long width = part ? part_here(st, each, wide) : each;
    double *all = st->shard ? malloc((size_t)wide * sizeof *all) : room(w, wide), *score = all + (width ? st->shard * each : 0);
    if (!all)
        quit(w->run->link, STATUS_RUN, "no memory for the scores of %ld tokens", wide);
    memset(all, 0, (size_t)wide * sizeof *all);
    if (rows)
        sample_row(w, score, (const real *)of[X].p + at * each, width);
    else
        multiply_row(w, at, score, width, &of[X], &of[WEIGHT], &of[BIAS], (long)of[IN].i);
    if (part)
        st->team->take(st, all, wide * (long)sizeof *all);
    w->scored = !st->shard;
    if (st->shard)
        free(all);
}

const SampleHead sample_head = {look};
