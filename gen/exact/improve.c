/* SPDX-License-Identifier: Apache-2.0
 *
 * improve.c: a plan is improved by moving its cuts.
 *
 * One cut moves by powers of two while that helps.  Where devices have several chunks, neighbouring cuts move together.  This
 * ends at a plan that no single move improves.  Under tight limits such a plan may be 1 % slower than another, for each move
 * alone makes one chunk too long or too large.  So two and three cuts in a row move too, if nothing is proven.
 *
 * Cost: a price and a preview for each cut that is tried, within budgets of their own.  Four cuts and more are not tried.
 */
#include "exact.h"

static bool is_legal(const ExactSearch *s, const int *last)
{
    bool legal = true;
    for (int c = 0, first = 0; c < s->q->chunks && legal; first = last[c++] + 1)
        legal = first <= last[c] && last[c] < s->q->n && s->q->cut[last[c]] != CUT_NEVER && s->r->must[first] >= last[c];
    return legal;
}

/* Cuts c .. end, together. */
static bool move_cuts(ExactSearch *s, int c, int end)
{
    for (int step = 1; step < s->q->n; step *= 2)
        for (int way = -1; way <= 1; way += 2) {
            memcpy(s->last, s->best.last, sizeof *s->last * (size_t)s->q->chunks);
            for (int k = c; k <= end; k++)
                s->last[k] += way * step;
            if (!is_legal(s, s->last))
                continue;
            if (exact_judge(s, s->last) || (s->best.fate && exact_judge_with(s, s->last, s->best.fate)))
                return true;
        }
    return false;
}

/* No target is a good guide where devices have several chunks: what one chunk gains, any other loses. */
static bool move_runs(ExactSearch *s, int64_t end)
{
    for (int c = 0; c + 2 < s->q->chunks && s->r->share > 1; c++)
        for (int k = c + 1; k + 1 < s->q->chunks && s->actions < end && !prices_spent(s->q->prices); k++)
            if (move_cuts(s, c, k))
                return true;
    return false;
}

/* n cuts in a row, each by one or two operators, in all directions: one alone would make a chunk too long or too large. */
static bool move_several(ExactSearch *s, int c, int n)
{
    static const int by[] = {-1, 1, -2, 2};
    for (int way = 0; way < 1 << 2 * n; way++) {
        memcpy(s->last, s->best.last, sizeof *s->last * (size_t)s->q->chunks);
        for (int k = 0; k < n; k++)
            s->last[c + k] += by[way >> 2 * k & 3];
        if (is_legal(s, s->last) && exact_judge(s, s->last))
            return true;
    }
    return false;
}

void exact_improve(ExactSearch *s, int64_t actions)
{
    int64_t end = s->actions + actions;
    for (bool moved = true; moved && s->best.value < NEVER && s->best.value > s->refuted + 1;) {
        moved = false;
        for (int c = 0; c + 1 < s->q->chunks && s->actions < end; c++)
            while (s->actions < end && !prices_spent(s->q->prices) && move_cuts(s, c, c))
                moved = true;
        moved = moved || move_runs(s, end);
    }
}

/* Where nothing is proven: two and three cuts in a row, and from what is better one at a time again. */
void exact_improve_more(ExactSearch *s)
{
    int64_t end = s->actions + PREVIEWED_ACTIONS;
    s->buys = s->priced + BOUGHT_OPERATORS;
    for (bool moved = true; moved && !s->proven && s->best.value < NEVER && s->best.value > s->refuted + 1;) {
        moved = false;
        for (int n = 2; n <= 3 && !moved; n++)
            for (int c = 0; c + n < s->q->chunks && s->actions < end && !exact_spent(s) && !moved; c++)
                moved = move_several(s, c, n);
        if (moved && s->actions < end)
            exact_improve(s, end - s->actions);
    }
}
