/* SPDX-License-Identifier: Apache-2.0
 *
 * lookup.c: the time of each call by the rows of a profile.
 *
 * A call has the row of its signature.  At a micro-batch that was not measured it has none.  Then the model is built at the
 * sizes that were measured.  There the operator of the same place has other literals and a row, and the time lies on the
 * straight line between the two nearest sizes.  The profile therefore need not know which literal grows with the batch.
 * Every output says that times are interpolated.
 *
 * Calls have two prices: alone, and with all stages of the machine busy (cost_shared chooses).
 *
 *   fails   status 5 if a call has no row and no neighbours
 *
 * Cost: linear in operators times the log of rows; a graph for each size that was measured, once.
 */
#include "prof.h"

/* ---- graphs at the measured sizes -------------------------------------------------------------------------------- */

typedef struct { const Model *m; Graph *g; } LookupTrial;

static void try_graph(void *ctx)
{
    LookupTrial *t = ctx;
    t->g = graph_line(t->m, NULL, NULL);
}

const Graph *profile_graph_at(const Model *m, int64_t batch)
{
    Model *with = COPY(m);
    with->train.batch = batch;
    if (!m->train.micro)
        with->train.micro = m->train.groups;
    LookupTrial t = {with, NULL};
    return diag_accepts(try_graph, &t) ? t.g : NULL;
}

void profile_graphs(Profile *f, const Model *m)
{
    Models teams = team_models(m), all = {0};
    for (int t = 0; t < teams.n; t++) {
        const Model *form[FORMS];
        for (int k = 0, n = fuse_forms(teams.at[t], form); k < n; k++)
            *PUSH(&all) = form[k];
    }
    for (int i = f->graph.n; i < f->batch.n * all.n; i++)
        *PUSH(&f->graph) = profile_graph_at(all.at[i % all.n], f->batch.at[i / all.n]);
}

/* ---- one call ---------------------------------------------------------------------------------------------------- */

static const Measured *row_of(const Profile *f, const Op *o)
{
    return profile_find(f, strf("op %s", cost_signature(o)));
}

/* The row of operator `op` at the i-th size; NULL: none.  Of the forms that fuse leaves open, it is the one of so many
 * operators. */
static const Measured *row_at(const Profile *f, int i, const Graph *g, int op)
{
    int forms = f->graph.n / f->batch.n;
    for (int k = 0; k < forms; k++) {
        const Graph *at = f->graph.at[i * forms + k];
        if (at && at->op.n == g->op.n && at->team == g->team && !strcmp(at->op.at[op].call, g->op.at[op].call))
            return row_of(f, &at->op.at[op]);
    }
    return NULL;
}

/* On the line through (b0, t0) and (b1, t1), whole nanoseconds, rounded down, nothing below zero. */
static Ns on_line(int64_t b, int64_t b0, Ns t0, int64_t b1, Ns t1)
{
    Ns t = t0 + (t1 - t0) * (b - b0) / (b1 - b0);
    return t > 0 ? t : 0;
}

static bool between(const Profile *f, const Graph *g, int op, Ns *alone, Ns *busy)
{
    int hi = 1;
    while (hi < f->batch.n - 1 && f->batch.at[hi] < g->batch)
        hi++;
    if (f->batch.n < 2)
        return false;
    const Measured *x = row_at(f, hi - 1, g, op), *y = row_at(f, hi, g, op);
    if (!x || !y)
        return false;
    int64_t b0 = f->batch.at[hi - 1], b1 = f->batch.at[hi];
    *alone = on_line(g->batch, b0, x->alone.median, b1, y->alone.median);
    *busy = on_line(g->batch, b0, x->busy.median, b1, y->busy.median);
    return true;
}

bool profile_has(const Profile *f, int64_t batch)
{
    for (int i = 0; i < f->batch.n; i++)
        if (f->batch.at[i] == batch)
            return true;
    return false;
}

static NORETURN void missing(const Profile *f, const Model *m, const Op *o)
{
    static const char joined[] = " onto=1";      /* a profile of before calls were joined has them apart */
    const char *signature = cost_signature(o), *at = strstr(signature, joined);
    bool has = at && profile_find(f, strf("op %.*s%s", (int)(at - signature), signature, at + strlen(joined)));
    fail(EXIT_STALE, "%s: no line 'op %s', which %s needs; %s%s", f->path, signature, o->name,
         profile_again(m, f->path ? f->path : profile_name(m)), has ? ", or with calls apart, which it has: --fuse none" : "");
}

static bool price_calls(Cost *c, Cost *busy, const Graph *g, const Model *m, Profile *f)
{
    bool guessed = false;
    for (int o = 0; o < g->op.n; o++) {
        const Measured *x = row_of(f, &g->op.at[o]);
        Ns alone = x ? x->alone.median : 0, other = x ? x->busy.median : 0;
        if (!x) {
            profile_graphs(f, m);
            guessed = true;
            if (profile_has(f, g->batch) || !between(f, g, o, &alone, &other))
                missing(f, m, &g->op.at[o]);
        }
        for (int k = 0; k < c->classes; k++) {
            c->ns[k][o] = alone;
            busy->ns[k][o] = other;
        }
    }
    return guessed;
}

/* ---- messages and copies ----------------------------------------------------------------------------------------- */

static const Bytes sizes[] = {4, 4096, 65536, 1048576, 16777216, 268435456};
enum { SIZES = sizeof sizes / sizeof *sizes };

/* Rows of one or two kinds, the slower one at each size, less `base`; never falling.  NULL: no such rows. */
static Curve *curve_of(const Profile *f, const char *one, const char *two, bool busy, Ns base)
{
    Curve *c = alloc(sizeof *c);
    for (int i = 0; i < SIZES; i++) {
        const Measured *x = profile_find(f, strf("%s bytes=%lld", one, (long long)sizes[i]));
        const Measured *y = profile_find(f, strf("%s bytes=%lld", two, (long long)sizes[i]));
        if (!x || !y)
            continue;
        Ns a = busy ? x->busy.median : x->alone.median, b = busy ? y->busy.median : y->alone.median;
        Ns ns = (a > b ? a : b) - base, least = c->n ? c->ns[c->n - 1] : 0;
        c->bytes[c->n] = sizes[i];
        c->ns[c->n++] = ns > least ? ns : least;
    }
    /* Two messages never take less than one of both: bounds add bytes first.  So the time a byte
     * never grows with the size. */
    for (int i = c->n - 2; i >= 0; i--)
        for (int k = i + 1; k < c->n; k++) {
            /* Where the line from (0, 0) to point k passes point i, rounded up. */
            Ns whole = c->ns[k] / c->bytes[k], rest = c->ns[k] % c->bytes[k];
            c->ns[i] = max_of(c->ns[i], whole * c->bytes[i] + ceil_div(rest * c->bytes[i], c->bytes[k]));
        }
    return c->n ? c : NULL;
}

void priced(Cost *c, Cost *busy, const Graph *g, const Model *m, Profile *f)
{
    Cost *both[] = {c, busy};
    bool guessed = price_calls(c, busy, g, m, f) || f->fitted > 0;
    for (int i = 0; i < 2; i++) {
        const Measured *empty = profile_find(f, "message bytes=4");
        Ns latency = empty ? empty->alone.median : 0;
        links_measured(both[i], empty ? curve_of(f, "message", "message", false, latency) : NULL, latency,
                       curve_of(f, "copy-in", "copy-out", true, 0));
        both[i]->how = guessed ? "interpolated" : "measured";
        both[i]->profile = f;
        both[i]->signature = f->hash;
    }
}

/* ---- the signature of a call ------------------------------------------------------------------------------------- */

/* name, then token=value of each literal, token=0 of each operand that is absent; but onto=1 where fuse has put something
 * there: so a call by itself has the line that it had before calls were joined, and a joined one never takes that line */
char *cost_signature(const Op *o)
{
    char *text = strf("%s", o->call);
    for (int i = 0; i < o->arg.n; i++) {
        const Arg *a = &o->arg.at[i];
        ArgRole role = arg_role(a);
        if (role == ROLE_ONTO)
            text = strf("%s%s", text, a->kind == ARG_NONE ? "" : " onto=1");
        else if (a->kind == ARG_INT && role != ROLE_SITE && role != ROLE_LABEL)
            text = strf("%s %s=%lld", text, a->token, (long long)a->i);
        else if (a->kind == ARG_FLOAT)
            text = strf("%s %s=%a", text, a->token, a->f);
        else if (a->kind == ARG_NONE)
            text = strf("%s %s=0", text, a->token);
    }
    return text;
}
