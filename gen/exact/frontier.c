/* SPDX-License-Identifier: Apache-2.0
 *
 * frontier.c: how far the first s chunks can reach under a target, and how early the last ones must begin.
 *
 * Problem: reach.c is exact and looks at every run.  For 10,000 operators on 64 devices it must be told where to look.  Where
 * even that is too much, something must still be proven.
 *
 * Method: two of the bounds of a chunk (bound.c) are taken in base times alone.  Each splits into a part that depends on the
 * begin of the run and a part that depends on its end.  F and T include data inputs, which count one time less in all chunks
 * but the first:
 *
 *     head(a) + m T(a..b)                    =  [head(a) - m T(a)] + m T(b+1)
 *     head(a) + kf F(a..b) + kb B(a..b) + 2 path(b), with kf, kb, path as there
 *
 * Two minima are kept: of the first part over all begins so far, and of the second part over all ends from there on.  Bisection
 * over them gives the last possible end of each chunk.  Head and path are longest ways over single operators.  Head goes
 * through the sources of the first operator.  Path goes through readers of one of the last NEAR_OPERATORS operators; a
 * shorter run is held against the first bound alone.  The same walk from the other end gives the first possible begin.
 *
 * Source: a relaxation of the search of Pinar and Aykanat, Fast optimal load balancing algorithms for 1D partitioning, 2004.
 *
 * Cost: O(chunks n) once, then O(chunks log n) a target.
 */
#include "exact.h"
#include "budgets.h"

typedef struct { Ns *begin, *end; } Parts;      /* begin[a]: least up to a; end[b]: least from b on */
struct Frontier {
    const Facts *x;
    Parts *path, *whole;                        /* by chunk: with the path; m times the run */
};

static void accumulate(Parts *p, int n)
{
    for (int a = 1; a < n; a++)
        p->begin[a] = min_of(p->begin[a], p->begin[a - 1]);
    for (int b = n - 2; b >= 0; b--)
        p->end[b] = min_of(p->end[b], p->end[b + 1]);
}

static Parts parts_of(const Facts *x, int chunk, const Ns *head, const Ns *path, int times, int64_t kf, int64_t kb)
{
    size_t bytes = sizeof(Ns) * (size_t)x->n;
    Parts p = {alloc(bytes), alloc(bytes)};
    const Ns *f = x->forward[x->class[chunk]], *b = x->back[x->class[chunk]];
    int64_t loads = x->step ? kf - (chunk > 0) : 0;
    for (int i = 0; i < x->n; i++) {
        p.begin[i] = (head ? head[i] : 0) - kf * f[i] - loads * x->load[i] - kb * b[i];
        p.end[i] = kf * f[i + 1] + loads * x->load[i + 1] + kb * b[i + 1] + (path ? times * path[i] : 0);
    }
    accumulate(&p, x->n);
    return p;
}

Frontier *frontier_open(const Facts *x)
{
    Frontier *k = alloc(sizeof *k);
    const Ns *head = x->step ? bound_heads(x) : NULL, *path = x->step ? bound_paths(x, NEAR_OPERATORS) : NULL;
    int64_t m = x->step ? x->m : 1;
    int end = x->chunks - 1;
    *k = (Frontier){x, alloc(sizeof(Parts) * (size_t)x->chunks), alloc(sizeof(Parts) * (size_t)x->chunks)};
    for (int s = 0; s <= end; s++) {
        bool both = x->warm[s] < m;
        k->whole[s] = parts_of(x, s, head, NULL, 0, m, m);
        if (!x->step || x->split)
            k->path[s] = k->whole[s];
        else
            k->path[s] = parts_of(x, s, head, s == end ? NULL : path, 1 + both, m + x->warm[end] - x->warm[s],
                                  both ? m + x->cool[end] - x->cool[s] : m);
    }
    return k;
}

/* The last b with begin + end[b] <= target; a - 1: none. */
static int last_end(const Facts *x, const Parts *p, int a, Ns target)
{
    int low = a - 1, high = x->n - 1;
    Ns begin = p->begin[a];
    while (low < high) {
        int mid = low + (high - low + 1) / 2;
        if (begin + p->end[mid] <= target)
            low = mid;
        else
            high = mid - 1;
    }
    return low;
}

/* The first a with begin[a] + end <= target; b + 1: none. */
static int first_begin(const Parts *p, int b, Ns target)
{
    int low = 0, high = b + 1;
    Ns end = p->end[b];
    while (low < high) {
        int mid = low + (high - low) / 2;
        if (p->begin[mid] + end <= target)
            high = mid;
        else
            low = mid + 1;
    }
    return low;
}

bool frontier(const Frontier *k, Ns target, ExactWindow *window)
{
    const Facts *x = k->x;
    int far = -1;
    window[0] = (ExactWindow){0, 0};
    for (int s = 0; s < x->chunks; s++) {
        int whole = last_end(x, &k->whole[s], far + 1, target), way = last_end(x, &k->path[s], far + 1, target);
        way = way > far + NEAR_OPERATORS - 1 ? way : far + NEAR_OPERATORS - 1;
        far = way < whole ? way : whole;
        if (far < x->n - 1 && (s == x->chunks - 1 || far + 1 <= s))
            return false;
        far = far > x->n - 2 ? x->n - 2 : far;
        window[s + 1].last = far + 1;
    }
    window[x->chunks] = (ExactWindow){x->n, x->n};
    for (int s = x->chunks - 1, next = x->n; s > 0; s--) {
        int whole = first_begin(&k->whole[s], next - 1, target), way = first_begin(&k->path[s], next - 1, target);
        way = way < next - NEAR_OPERATORS + 1 ? way : next - NEAR_OPERATORS + 1;
        next = way > whole ? way : whole;
        next = next < s ? s : next;
        window[s].first = next;
        if (next > window[s].last)
            return false;
    }
    return true;
}

Ns frontier_bound(const Frontier *k, Ns refuted)
{
    ExactWindow *window = alloc(sizeof *window * ((size_t)k->x->chunks + 1));
    Ns step = refuted / 16 + 1, high = refuted + step;
    while (!frontier(k, high, window) && high < INT64_MAX / 4) {
        refuted = high;
        step *= 2;
        high += step;
    }
    while (high - refuted > 1) {
        Ns mid = refuted + (high - refuted) / 2;
        if (frontier(k, mid, window))
            high = mid;
        else
            refuted = mid;
    }
    return refuted;
}
