/* SPDX-License-Identifier: Apache-2.0
 *
 * pipedream_levels.c: PipeDream's program for machines of several devices, over stages of any width.
 *
 * Problem: an existing system's stages, so that ours can be compared with them.
 *
 * Method: as its program optimizer_graph_hierarchical.py computes it.  T is the time of a stage on one device; at the next
 * level, on one machine.  Each level has n machines and a rate B:
 *
 *   A(a, b, m) = min of  (T(a, b) + 4 (m-1) parameters / (m B) / devices of a machine) / m               all of it one stage
 *                        max(A(a, c, m-r), (T(c, b) + 4 (r-1) parameters / (r B)) / r)                    the last one on r
 *   T of the next level is A of all machines of this one
 *
 * a, b and c are downward-closed prefixes.  Transfers and memory are left out, as by the program unless flags say otherwise.
 *
 * Source: Narayanan et al., PipeDream: Generalized Pipeline Parallelism for DNN Training, SOSP 2019.
 * Cost: prefixes cubed times machines squared, squared at the last level.  Above a cube of MOST_LOOKS there is no plan.
 */
#include "planner.h"

typedef struct { Ps value; int cut, machines; } LevelCell;  /* machines of the last stage, behind prefix cut; -1: it is alone */
typedef struct {
    const Widths *w;
    Prefixes p;
    Bytes *params;              /* by prefix */
    bool *within;               /* [a * n + b] */
    LevelCell *cell[WIDTH_LEVELS];      /* [(a * n + b) * (machines + 1) + m] */
    WidthPlan *plan;
} Levels;

static LevelCell *at(const Levels *s, int level, int a, int b, int m)
{
    return &s->cell[level][((size_t)a * (size_t)s->p.n + (size_t)b) * (size_t)(s->w->tier[level].count + 1) + (size_t)m];
}

/* On m machines. */
static Ps stage(const Levels *s, int level, int a, int b, int m, int devices)
{
    Bytes bytes = 4 * (m - 1) * (s->params[b] - s->params[a]) / m;
    Ps alone = level ? at(s, level - 1, a, b, s->w->tier[level - 1].count)->value : s->p.at[b].least - s->p.at[a].least;
    return (alone + widths_ps(bytes, s->w->tier[level].rate) / devices) / m;
}

static void fill(Levels *s, int level, int a, int b)
{
    const int machines = s->w->tier[level].count, devices = level ? s->w->tier[level - 1].count : 1;
    for (int m = 1; m <= machines; m++) {
        LevelCell best = {stage(s, level, a, b, m, devices), -1, m};
        for (int c = a + 1; c < b && m > 1; c++)
            for (int r = 1; r < m && s->within[a * s->p.n + c] && s->within[c * s->p.n + b]; r++) {
                Ps front = at(s, level, a, c, m - r)->value, last = stage(s, level, c, b, r, 1);
                Ps value = front > last ? front : last;
                if (value < best.value)
                    best = (LevelCell){value, c, r};
            }
        *at(s, level, a, b, m) = best;
    }
}

/* The stages between two prefixes on m machines, each of which is so many times copied. */
static void lay_out(Levels *s, int level, int a, int b, int m, int copies)
{
    WidthPlan *plan = s->plan;
    if (level < 0) {
        int n = plan->stage.n ? plan->stage.at[plan->stage.n - 1].last + 1 : 0;
        for (int i = 0; i < s->w->n; i++)
            if (s->p.at[b].bits[i / 64] >> i % 64 & 1 && !(s->p.at[a].bits[i / 64] >> i % 64 & 1))
                plan->sequence[n++] = i;
        *PUSH(&plan->stage) = (WidthStage){.last = n - 1, .copies = copies, .degree = 1};
        return;
    }
    const LevelCell *c = at(s, level, a, b, m);
    if (c->cut >= 0)
        lay_out(s, level, a, c->cut, m - c->machines, copies);
    lay_out(s, level - 1, c->cut < 0 ? a : c->cut, b, level ? s->w->tier[level - 1].count : 0, copies * c->machines);
}

static bool prepare(Levels *s)
{
    const Widths *w = s->w;
    Ps *time = alloc(sizeof *time * (size_t)w->n);
    const Ns *const one = time;
    for (int i = 0; i < w->n; i++)
        time[i] = w->split[i * w->degrees].choice[0].time;
    Dag d = {.n = w->n, .classes = 1, .time = &one, .from = w->from, .to = w->to};
    int64_t most = 1;
    while ((most + 1) * (most + 1) * (most + 1) <= MOST_LOOKS)
        most++;
    if (w->degree[0] != 1 || !downset_prefixes(&d, (int)most, &s->p))
        return false;
    s->params = alloc(sizeof *s->params * (size_t)s->p.n);
    s->within = alloc((size_t)s->p.n * (size_t)s->p.n);
    for (int b = 0; b < s->p.n; b++) {
        for (int i = 0; i < w->n; i++)
            s->params[b] += s->p.at[b].bits[i / 64] >> i % 64 & 1 ? w->split[i * w->degrees].params : 0;
        for (int a = 0; a < b; a++) {
            bool in = s->p.at[a].size < s->p.at[b].size;
            for (int i = 0; i < (w->n + 63) / 64; i++)
                in &= !(s->p.at[a].bits[i] & ~s->p.at[b].bits[i]);
            s->within[a * s->p.n + b] = in;
        }
    }
    return true;
}

bool widths_pipedream(const Widths *w, WidthPlan *plan)
{
    Levels s = {.w = w, .plan = plan};
    if (!prepare(&s))
        return false;
    *plan = (WidthPlan){.prefixes = s.p.n, .all = true, .sequence = alloc(sizeof(int) * (size_t)w->n),
                        .choice = alloc((size_t)w->n)};
    int n = s.p.n, top = w->levels - 1;
    for (int k = 0; k <= top; k++) {
        s.cell[k] = alloc(sizeof **s.cell * (size_t)n * (size_t)n * (size_t)(w->tier[k].count + 1));
        for (int a = 0; a < (k < top ? n : 1); a++)
            for (int b = a + 1; b < n; b++)
                if (s.within[a * n + b])
                    fill(&s, k, a, b);
    }
    lay_out(&s, top, 0, n - 1, w->tier[top].count, 1);
    widths_judge(w, plan);
    plan->claim = at(&s, top, 0, n - 1, w->tier[top].count)->value;
    return true;
}
