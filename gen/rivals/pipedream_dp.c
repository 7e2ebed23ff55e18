/* SPDX-License-Identifier: Apache-2.0
 *
 * pipedream_dp.c: the best pipeline of replicated stages over a chain of units.
 *
 * Problem: cut a chain of layers into stages and give each a number of machines, all machines used, so that the slowest stage
 * or transfer takes least.
 *
 * Method: the dynamic program of PipeDream, as its published optimiser computes it.  That is not quite as the paper has it:
 *
 *   A(j, m) = min over the last stage k+1..j on r machines of max(A(k, m-r), T(k+1..j, r), in, out)
 *   T       = (time + 4 (r-1) parameters / (r rate)) / r         summed, not the larger of the two
 *   in, out = 2 bytes / (r rate), only if a compression ratio is given
 *   memory  = (activations + parameters) ceil((machines - m) / r), only if asked for; m counts the stage's own
 *
 * So the last stage stashes nothing, and the bytes of the front are not those of weight stashing.  Both are kept: it is a
 * baseline.  `fits` puts a caller's own memory model in the place of the published one.
 *
 * Candidates for a last stage are tried in the order of their value, from a heap.  So the caller's model, which may be dear, is
 * asked only until it agrees.  Equal values: the smallest k, then the fewest machines.  In straight pipelines the time and the
 * bytes of a last stage grow with its length.  Candidates end where its time is above a value that is sure to be reached, where
 * its bytes are above the memory, or where the caller knows that nothing as long fits.
 *
 * Source: Narayanan et al., PipeDream: Generalized Pipeline Parallelism for DNN Training, SOSP 2019.
 *
 * Cost: O(n n m m) for n units and m machines, about n/m of n n m for straight pipelines.  Each refusal of `fits` adds log n.
 * Not handled: the hierarchy of slower and faster networks; branches, which have to be a chain before.
 */
#include "rivals.h"

typedef struct { Ns value; int from, replicas; } PipedreamCell; /* from: units before the last stage */
#define NONE INT64_MAX

typedef struct {
    const PipedreamChain *c;
    int64_t *time, *reduce, *stash;     /* prefix sums */
    int *musts;
    PipedreamCell *cell;        /* [units in front * (machines+1) + machines] */
    PipedreamCell *candidate;
} PipedreamTable;

static int64_t *sums(const int64_t *of, int n)
{
    int64_t *sum = alloc(sizeof *sum * (size_t)(n + 1));
    for (int i = 0; of && i < n; i++)
        sum[i + 1] = sum[i] + of[i];
    return sum;
}

static PipedreamCell *cell(const PipedreamTable *x, int units, int machines)
{
    return &x->cell[units * (x->c->machines + 1) + machines];
}

/* The value of units k..j-1 on r machines as a last stage. */
static Ns stage_value(const PipedreamTable *x, int k, int j, int r)
{
    const PipedreamChain *c = x->c;
    Ns value = x->time[j] - x->time[k];
    if (r > 1)
        value = (value + (r - 1) * (x->reduce[j] - x->reduce[k]) / r) / r;
    if (c->transfers && k > 0)
        value = max_of(value, c->send[k - 1] / r);
    if (c->transfers && j < c->n && k > 0)      /* a first stage's output is the next one's input */
        value = max_of(value, c->send[j - 1] / r);
    return value;
}

/* The published memory check. */
static bool too_large(const PipedreamTable *x, int k, int j, int r, int m)
{
    const PipedreamChain *c = x->c;
    return c->memory > 0 && (x->stash[j] - x->stash[k]) * ((c->machines - m + r - 1) / r) > c->memory;
}

/* Of equal values the longest last stage, then the fewest machines. */
static bool before(const PipedreamCell *a, const PipedreamCell *b)
{
    if (a->value != b->value)
        return a->value < b->value;
    return a->from != b->from ? a->from < b->from : a->replicas < b->replicas;
}

/* Straight pipelines: no candidate that begins as early as k can win. */
static bool enough(const PipedreamTable *x, int k, int j, int m, Ns best)
{
    const PipedreamChain *c = x->c;
    if (c->replicate)
        return false;
    if (too_large(x, k, j, 1, m))
        return true;
    if (c->fits)
        return c->never && c->never(c->ctx, k, j - 1, m - 1);
    return x->time[j] - x->time[k] > best;
}

/* May the stage that ends with machine m have r? */
static bool may(const PipedreamChain *c, int m, int r)
{
    return c->given ? c->given[m] == r : !c->most || (r <= c->most && !(r & (r - 1)));
}

static int candidates(PipedreamTable *x, int j, int m)
{
    int n = 0;
    Ns best = NONE;
    for (int k = j - 1; k >= 0 && x->musts[j - 1] <= x->musts[k] && !enough(x, k, j, m, best); k--)
        for (int r = 1; r <= (x->c->replicate ? m : 1); r++) {
            Ns front = cell(x, k, m - r)->value;
            if (front == NONE || !may(x->c, m, r) || too_large(x, k, j, r, m))
                continue;
            x->candidate[n++] = (PipedreamCell){max_of(front, stage_value(x, k, j, r)), k, r};
            best = x->candidate[n - 1].value < best ? x->candidate[n - 1].value : best;
        }
    return n;
}

static void sink(PipedreamCell *heap, int n, int i)
{
    for (int child; (child = 2 * i + 1) < n; i = child) {
        child += child + 1 < n && before(&heap[child + 1], &heap[child]);
        if (before(&heap[i], &heap[child]))
            return;
        PipedreamCell swap = heap[i];
        heap[i] = heap[child];
        heap[child] = swap;
    }
}

static void fill(PipedreamTable *x, int j, int m)
{
    const PipedreamChain *c = x->c;
    int n = candidates(x, j, m);
    PipedreamCell *heap = x->candidate, *best = cell(x, j, m);
    for (int i = 0; i < n && !c->fits; i++)
        *best = before(&heap[i], best) ? heap[i] : *best;
    if (!c->fits)
        return;
    for (int i = n / 2; i-- > 0;)
        sink(heap, n, i);
    for (; n > 0 && !c->fits(c->ctx, heap[0].from, j - 1, m - 1); sink(heap, n, 0))
        heap[0] = heap[--n];
    if (n > 0)
        *best = heap[0];
}

static int trace(const PipedreamTable *x, ChainStage *stage)
{
    int n = 0;
    for (int j = x->c->n, m = x->c->machines; j > 0; n++) {
        const PipedreamCell *at = cell(x, j, m);
        stage[n] = (ChainStage){j - 1, at->replicas};
        j = at->from;
        m -= at->replicas;
    }
    for (int i = 0; i < n / 2; i++) {
        ChainStage swap = stage[i];
        stage[i] = stage[n - 1 - i];
        stage[n - 1 - i] = swap;
    }
    return n;
}

int chain_plan(const PipedreamChain *c, ChainStage *stage, Ns *value)
{
    size_t cells = (size_t)(c->n + 1) * (size_t)(c->machines + 1);
    PipedreamTable x = {.c = c, .time = sums(c->time, c->n), .reduce = sums(c->reduce, c->n), .stash = sums(c->stash, c->n)};
    x.cell = alloc(sizeof *x.cell * cells);
    x.candidate = alloc(sizeof *x.candidate * (size_t)c->n * (size_t)c->machines);
    x.musts = alloc(sizeof *x.musts * (size_t)(c->n + 1));
    for (int i = 0; i < c->n; i++)
        x.musts[i + 1] = x.musts[i] + (c->must && c->must[i]);
    for (size_t i = 0; i < cells; i++)
        x.cell[i].value = NONE;
    cell(&x, 0, 0)->value = 0;
    for (int m = 1; m <= c->machines; m++)
        for (int j = 1; j <= c->n; j++)
            fill(&x, j, m);
    *value = cell(&x, c->n, c->machines)->value;
    return *value == NONE ? 0 : trace(&x, stage);
}
