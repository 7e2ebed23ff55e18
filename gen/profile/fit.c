/* SPDX-License-Identifier: Apache-2.0
 *
 * fit.c: `dpgen profile --fit`: a device that nobody has measured, from a few calls.
 *
 * Source: Y. Chen et al., AccEPT: An Acceleration Scheme for Speeding Up Edge Pipeline-parallel Training, 2023, predicts the
 * times of layers on a device from few samples of it, by a network learned on other devices.  Here the roofline of the device
 * (cost/roof.c) is in the place of the network, and the samples say by how much each kernel misses it.
 *
 * Method: calls of one kernel are sorted by their estimate.  Of up to five sizes the middle one is measured, of more the first,
 * the middle and the last.  The time of another is on the line between its neighbours by estimate, or in proportion to the
 * nearest one.  Of every second kernel with another size one call more is measured and takes no part: by how much it differs
 * from its prediction is printed, and the middle difference is what a predicted row has for quartiles.
 *
 * needs   a Bench of all calls.  fills   rows of calls that were not measured.  cost   n log n
 * Not handled: steps of a kernel's time at the size of a cache; messages and copies, which are measured.
 */
#include "calls.h"

enum { FEW = 6 };               /* sizes of a kernel from which on three of them are measured */

/* ---- which calls ------------------------------------------------------------------------------------------------- */

static const char *kernel(const Fit *f, int call) { return f->all->call.at[call].o->call; }

static bool before(const Fit *f, int a, int b)
{
    int names = strcmp(kernel(f, a), kernel(f, b));
    if (names || f->work[a] != f->work[b])
        return names ? names < 0 : f->work[a] < f->work[b];
    return a < b;
}

static void choose(Fit *f)
{
    int kernels = 0;
    for (int from = 0, until; from < f->sorted.n; from = until) {
        /* Calls order[from ..] of one kernel; the first one behind them. */
        int i = from + 1;
        while (i < f->sorted.n && !strcmp(kernel(f, f->sorted.at[i]), kernel(f, f->sorted.at[from])))
            i++;
        until = i;
        int n = until - from, *why = f->why;
        const int *call = f->sorted.at + from;
        why[call[n / 2]] = FIT_USED;
        if (n >= FEW)
            why[call[0]] = why[call[n - 1]] = FIT_USED;
        if (n > 1 && kernels++ % 2 == 0)
            why[call[n >= FEW ? n / 4 : n - 1 == n / 2 ? 0 : n - 1]] = FIT_JUDGED;
    }
}

static void take_part(Fit *f)
{
    const Bench *all = f->all;
    int *now = alloc(sizeof *now * (size_t)(all->call.n + 1));
    f->few = *all;
    memset(&f->few.call, 0, sizeof f->few.call);
    memset(&f->few.mix, 0, sizeof f->few.mix);
    for (int i = 0; i < all->call.n; i++)
        if (f->why[i] != FIT_NONE) {
            now[i] = f->few.call.n;
            *PUSH(&f->few.call) = all->call.at[i];
        }
    for (int i = 0; i < all->mix.n; i++)
        if (f->why[all->mix.at[i]] != FIT_NONE)
            *PUSH(&f->few.mix) = now[all->mix.at[i]];
    for (int i = 0; !f->few.mix.n && i < f->few.call.n; i++)
        *PUSH(&f->few.mix) = i;
}

Fit *fit_of(const Bench *all)
{
    Fit *f = alloc(sizeof *f);
    size_t n = (size_t)all->call.n + 1;
    *f = (Fit){.all = all, .work = alloc(n * sizeof *f->work), .why = alloc(n * sizeof *f->why)};
    for (int i = 0; i < all->call.n; i++) {
        Ns work = roof_op(&all->m->devices.at[0], all->call.at[i].g->compute, all->call.at[i].o, 0, 1, 1);
        f->work[i] = work > 0 ? work : 1;
    }
    for (int i = 0; i < f->all->call.n; i++) {
        int k = f->sorted.n;
        *PUSH(&f->sorted) = i;
        for (; k > 0 && before(f, i, f->sorted.at[k - 1]); k--)
            f->sorted.at[k] = f->sorted.at[k - 1];
        f->sorted.at[k] = i;
    }
    choose(f);
    take_part(f);
    return f;
}

/* ---- what the others take ---------------------------------------------------------------------------------------- */

static const Measured *row_of(const Profile *p, const char *signature)
{
    int i = INDEX_OF(p->measured.at, p->measured.n, strf("op %s", signature));
    return i < 0 ? NULL : &p->measured.at[i];
}

static Ns median_of(const Measured *m, bool busy) { return busy ? m->busy.median : m->alone.median; }

static Ns scaled(Ns t, Ns work, Ns of) { return (Ns)((double)t * (double)work / (double)of + 0.5); }

/* By the calls of its kernel that were used. */
static Ns predicted(const Fit *f, const Profile *p, int call, bool busy)
{
    int below = -1, above = -1;
    for (int i = 0; i < f->sorted.n; i++) {
        int k = f->sorted.at[i];
        if (f->why[k] != FIT_USED || strcmp(kernel(f, k), kernel(f, call)))
            continue;
        if (f->work[k] <= f->work[call])
            below = k;
        else if (above < 0)
            above = k;
    }
    int near = below >= 0 ? below : above;
    Ns t = median_of(row_of(p, f->all->call.at[near].signature), busy);
    if (below < 0 || above < 0)
        return scaled(t, f->work[call], f->work[near]);
    Ns end = median_of(row_of(p, f->all->call.at[above].signature), busy);
    return t + scaled(end - t, f->work[call] - f->work[below], f->work[above] - f->work[below]);
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void fit_fill(const Fit *f, Profile *p)
{
    double *off = alloc(sizeof *off * (size_t)(f->all->call.n + 1));
    /* How far off it is of the calls that took no part, sorted: |predicted / measured - 1|. */
    int n = 0;
    for (int i = 0; i < f->all->call.n; i++)
        if (f->why[i] == FIT_JUDGED) {
            double is = (double)median_of(row_of(p, f->all->call.at[i].signature), false);
            double told = (double)predicted(f, p, i, false);
            off[n++] = is > 0 ? (told > is ? told - is : is - told) / is : 0;
        }
    SORT(off, n, by_size);
    int judged = n, used = f->few.call.n - judged, rest = 0;
    double middle = judged ? off[judged / 2] : 0;
    VEC(Measured) more = {0};
    for (int i = 0; i < f->all->call.n; i++) {
        if (f->why[i] != FIT_NONE)
            continue;
        Ns alone = predicted(f, p, i, false), busy = predicted(f, p, i, true);
        *PUSH(&more) = (Measured){strf("op %s", f->all->call.at[i].signature), {alone, (Ns)(2 * middle * (double)alone)},
                                  {busy, (Ns)(2 * middle * (double)busy)}};
        rest++;
    }
    APPEND(&p->measured, more);
    p->fitted = rest;
    fprintf(stderr, "dpgen: %d calls are predicted by %d that were measured; %d more judge that: half are at most %.1f %% off, "
            "nine of ten at most %.1f %%\n", rest, used, judged, 100 * middle, judged ? 100 * off[judged * 9 / 10] : 0.0);
}
