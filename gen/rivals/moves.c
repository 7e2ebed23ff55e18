/* SPDX-License-Identifier: Apache-2.0
 *
 * moves.c: local search over the cuts of a chain, by moving border units between neighbours.
 *
 * Problem: the heaviest stage of a pipeline should be as light as possible.  The weight of a stage is known only by asking,
 * because its memory plan has to be made.
 *
 * Method: in one pass the heaviest stage gives its first or its last unit away, whichever leaves the lighter worst stage.  It
 * does so also where that makes things worse for the moment, so that a unit can travel over several stages.  A border moves
 * one way only in a pass.  The next pass begins at the best partition seen in this one.  The search ends with a pass that
 * finds nothing better.  A stage that does not fit is heavier than any that does, by its excess, so the search first makes
 * things fit.  Equal choices: the left border.
 *
 * Source: Kernighan and Lin, An Efficient Heuristic Procedure for Partitioning Graphs, 1970, on the borders of a chain.  This
 * is our reading of vPipe's re-partition.
 *
 * Cost: each pass at most units * stages moves of two questions each, and passes while they help.
 * Not handled: the answer is not optimal, and is not meant to be: it is a baseline.
 */
#include "rivals.h"
#include "budgets.h"

static bool lighter(Burden a, Burden b)
{
    return a.over != b.over ? a.over < b.over : a.time < b.time;
}

static Burden of_stage(const Moves *m, const int *last, int s)
{
    return m->burden(m->ctx, s ? last[s - 1] + 1 : 0, last[s], s);
}

static int heaviest(const Moves *m, const int *last, Burden *worst)
{
    int at = 0;
    *worst = of_stage(m, last, 0);
    for (int s = 1; s < m->stages; s++) {
        Burden b = of_stage(m, last, s);
        if (lighter(*worst, b)) {
            *worst = b;
            at = s;
        }
    }
    return at;
}

Burden moves_worst(const Moves *m, const int *last)
{
    Burden worst;
    heaviest(m, last, &worst);
    return worst;
}

/* May stage s give a unit to stage s + step, -1 or +1?  Their border then moves the other way. */
static bool may_move(const Moves *m, const int *last, const int *way, int s, int step)
{
    int b = step < 0 ? s - 1 : s, n = last[s] - (s ? last[s - 1] : -1);
    return b >= 0 && b < m->stages - 1 && n > 1 && way[b] != step && !(m->must && m->must[last[b]]);
}

/* The better of the two moves of the heaviest stage; false: it has none. */
static bool step(const Moves *m, int *last, int *way)
{
    Burden worst, best = {0, 0};
    int s = heaviest(m, last, &worst), chosen = 0;
    for (int k = -1; k <= 1; k += 2) {
        if (!may_move(m, last, way, s, k))
            continue;
        int b = k < 0 ? s - 1 : s;
        last[b] -= k;
        Burden now = moves_worst(m, last);
        last[b] += k;
        if (!chosen || lighter(now, best)) {
            best = now;
            chosen = k;
        }
    }
    if (!chosen)
        return false;
    int b = chosen < 0 ? s - 1 : s;
    last[b] -= chosen;
    way[b] = -chosen;
    return true;
}

static bool pass(const Moves *m, int *last)
{
    size_t bytes = sizeof(int) * (size_t)m->stages;
    int *work = alloc(bytes), *way = alloc(bytes);      /* way: +1 the border went right in this pass, -1 left */
    Burden best = moves_worst(m, last);
    bool better = false;
    memcpy(work, last, bytes);
    while (step(m, work, way)) {
        Burden now = moves_worst(m, work);
        if (!lighter(now, best))
            continue;
        best = now;
        better = true;
        memcpy(last, work, bytes);
    }
    return better;
}

void moves_improve(const Moves *m, int *last)
{
    while (pass(m, last))       /* each is lighter than the one before */
        ;
}
