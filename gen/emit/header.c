/* SPDX-License-Identifier: Apache-2.0
 *
 * header.c: stageN.h, the names of one stage, each with its number.  Sizes of the model, constants, handles, the slots of
 * pools, offsets in the arena with bytes, type, shape and owner, offsets in the memory of the host.  tests/emitted.c reads
 * the comments of offsets too.
 */
#include "stage.h"

/* ---- offsets ----------------------------------------------------------------------------------------------------- */

static const char *when_text(When w)
{
    static const char *const text[] = {[AT_F] = "forward", [AT_R] = "recompute", [AT_B] = "backward", [AT_W] = "weights",
        [AT_LOAD] = "load", [AT_RECV] = "receive", [AT_RECVB] = "receive", [AT_SEND] = "send", [AT_U] = "update",
        [AT_ALWAYS] = "always", [AT_OUT] = "out", [AT_IN] = "fetch"};
    return text[w];
}

const char *stage_shape(const Stager *w, const Buf *b, const Shape *s)
{
    const char *text = "";
    for (int i = 0; i < s->n; i++)
        text = strf("%s%s%s", text, i ? ", " : "", dims_axis(w->dims, w->dim, w->p->g, b, i));
    return text;
}

static const char *what_of(const Stager *w, const Buf *x)
{
    const Graph *g = w->p->g;
    if (x->tensor >= 0)
        return strf("%s [%s]", type_name(g->tensor.at[x->tensor].type), stage_shape(w, x, &g->tensor.at[x->tensor].shape));
    const State *s = x->state >= 0 ? &g->state.at[x->state] : NULL;
    if (s && x->bytes < s->bytes)       /* a part of it has no shape of its own */
        return strf("%s [%" PRId64 "]", type_name(s->type), x->bytes / type_bytes(s->type));
    if (s)
        return strf("%s [%s]", type_name(s->type), stage_shape(w, x, &s->shape));
    return "scratch";
}

static const char *life_of(const Stager *w, const Buf *x)
{
    static const char *const role[] = {[S_PARAM] = "parameter", [S_COPY] = "parameter, copy", [S_GRAD] = "gradient",
        [S_MOMENT1] = "moment 1", [S_MOMENT2] = "moment 2", [S_CENTRE] = "mean of gradients",
        [S_DRIFT] = "drift of the weights", [S_CLIP] = "clip factor", [S_NORM] = "partial norms",
        [S_BLOCKS] = "sums of squares", [S_VALUES] = "step values"};
    if (x->birth != AT_ALWAYS)
        return strf("%s to %s", when_text(x->birth), when_text(x->death));
    return strf("%s%s", role[w->p->g->state.at[x->state].kind], x->origin == RECEIVED ? ", owned by another stage" : "");
}

enum { WIDE = 28, WIDEST = 52 };       /* columns of names */

/* Its row stands behind an offset, or where that is too long, below it. */
static void print_place(FILE *f, int wide, const char *name, Bytes offset, const char *comma, const char *row)
{
    const char *text = strf("    %-*s = 0x%08" PRIx64 "%s", wide, name, (uint64_t)offset, comma);
    bool fits = strlen(text) + strlen(row) + 8 <= EMIT_COLUMNS;
    fprintf(f, "%s%s/* %s */\n", text, fits ? "  " : "\n        ", row);
}

/* By address, so that neighbours in memory are neighbours on the page. */
typedef struct { Bytes at; int first, buf; } HeaderLine;
ORDER(by_address, HeaderLine, order_of(x->at, y->at), order_of(x->first, y->first), order_of(x->buf, y->buf))

/* ---- slots ------------------------------------------------------------------------------------------------------- */

static void print_table(FILE *f, const char *name, const Bytes *at, int n, const char *what)
{
    Strs word = {0};
    for (int i = 0; i < n; i++)
        *PUSH(&word) = strf("0x%" PRIx64, (uint64_t)at[i]);
    emit_wrap(f, fprintf(f, "static const size_t %s_slot[%d] = { ", name, n), 4, &word, strf(" };  /* %s */", what));
}

/* What takes turns in its slots. */
static const char *turns_of(const Pool *x)
{
    if (x->birth != AT_ALWAYS)
        return strf("%s to %s", when_text(x->birth), when_text(x->death));
    return x->death == AT_U ? "versions of the weights" : x->death == AT_F ? "values of the steps under way" : "gradient sums";
}

static bool is_shown(const Stager *w, int pool)
{
    for (int b = 0; b < w->p->buf.n; b++)
        if (w->buf[b] && w->p->buf.at[b].pool == pool)
            return slots_pooled(w, b);
    return false;
}

static void print_pools(const Stager *w, FILE *f)
{
    const Plan *p = w->p;
    bool any = false;
    for (int x = 0; x < p->pool.n; x++) {
        if (p->pool.at[x].device != w->device || !is_shown(w, x))
            continue;
        int n = slots_count(w, x);
        Bytes *at = alloc(sizeof *at * (size_t)n);
        for (int i = 0; i < n; i++)
            at[i] = slots_at(w, x, i);
        fprintf(f, "%s", any ? "" : "\n/* Slots: how far behind its offset a buffer lies in each slot of its pool, "
                "one for each place that is used. */\n");
        print_table(f, p->pool.at[x].name, at, n, turns_of(&p->pool.at[x]));
        any = true;
    }
}

/* ---- the host ---------------------------------------------------------------------------------------------------- */

static void print_hosts(const Stager *w, FILE *f)
{
    const Plan *p = w->p;
    const DevicePlan *d = &p->dev.at[w->device];
    int last = -1;
    for (int i = 0; i < p->host.n; i++)
        last = w->host[i] ? i : last;
    if (last < 0)
        return;
    fprintf(f, "\n/* Offsets in the host's %s, %" PRId64 " bytes; the lower bound is %" PRId64 ".  Owned from the begin of "
            "the way out to the end of the way in. */\nstatic const size_t\n", p->m->plan.disk ? "file" : "memory", d->host,
            d->host_bound);
    fprintf(f, "    %-*s = 0x%08" PRIx64 ",\n", WIDE, "host_bytes", (uint64_t)d->host);
    for (int i = 0; i <= last; i++) {
        if (!w->host[i])
            continue;
        const HostBuf *x = &p->host.at[i];
        const Tensor *t = &p->g->tensor.at[x->tensor];
        Buf as = {.tensor = x->tensor, .state = -1};
        const char *slots = x->count > 1 ? strf(", slots %s", w->host[i]) : "";
        print_place(f, WIDE, w->host[i], x->offset, i < last ? "," : ";",
                    strf("%10" PRId64 "  %s [%s]  [%d,%d]  out to fetch%s", x->bytes, type_name(t->type),
                         stage_shape(w, &as, &t->shape), x->first, x->last, slots));
    }
    for (int i = 0; i <= last; i++) {
        if (!w->host[i] || p->host.at[i].count < 2)
            continue;
        Bytes *at = alloc(sizeof *at * (size_t)p->host.at[i].count);
        for (int k = 0; k < p->host.at[i].count; k++)
            at[k] = k * p->host.at[i].stride;
        print_table(f, w->host[i], at, p->host.at[i].count, "out to fetch");
    }
}

/* ---- sizes and constants ----------------------------------------------------------------------------------------- */

/* Floats behind their labels, then where random numbers are drawn. */
static void print_constants(const Stager *w, FILE *f)
{
    for (int whole = 0; whole < 2; whole++) {
        int left = 0;
        for (int i = 0; i < w->constant.n; i++)
            left += w->constant.at[i].whole == whole;
        if (left > 0)
            fprintf(f, whole ? "\n/* Where random numbers are drawn. */\nstatic const int64_t\n"
                             : "\n/* Constants of calls, by the names of their parameters. */\nstatic const float\n");
        for (int i = 0; i < w->constant.n; i++) {
            const Constant *c = &w->constant.at[i];
            if (c->whole != whole)
                continue;
            const char *end = --left ? "," : ";";
            if (whole)
                fprintf(f, "    %-28s = %" PRId64 "%s\n", c->name, c->i, end);
            else
                fprintf(f, "    %-28s = %af%s  /* %s */\n", c->name, (double)c->f, end, call_decimal(c->f));
        }
    }
}

void header_print(Stager *w, FILE *f)
{
    fprintf(f, "/* " EMIT_TAG "\n"
            " * stage%d.h: the names of stage%d.c and their numbers.  Generated by dpgen %s: edit the model, not this "
            "file.\n"
            " * This file is the output of a program: it belongs to whoever made it, without conditions. */\n", w->device,
            w->device, DPGEN_VERSION);
    Strs word = {0};
    for (int i = 0; i < dims_count(w->dims); i++)
        if (w->dim[i])
            *PUSH(&word) = strf("%s = %" PRId64, w->dim[i], dims_at(w->dims, i)->value);
    fprintf(f, "\n/* Sizes: B is samples in a micro-batch, the others are the dims of model.yaml. */\n");
    emit_wrap(f, fprintf(f, "enum { "), 4, &word, " };");
    print_constants(w, f);
    handles_print(w, f);
    print_pools(w, f);
    VEC(HeaderLine) list = {0};
    int wide = WIDE;
    for (int b = 0; b < w->p->buf.n; b++)
        wide = w->buf[b] ? (int)max_of(wide, min_of((int64_t)strlen(w->buf[b]), WIDEST)) : wide;
    for (int b = 0; b < w->p->buf.n; b++)
        if (w->buf[b])
            *PUSH(&list) = (HeaderLine){slots_offset(w, b), w->p->buf.at[b].first, b};
    SORT(list.at, list.n, by_address);
    Bytes arena = w->p->dev.at[w->device].arena;
    fprintf(f, "\n/* Offsets in the arena, %" PRId64 " bytes.\n"
            " *  %-*s   offset               bytes  type shape  owned [first,last] call  "
            "from when to when */\nstatic const size_t\n", arena, wide, "name");
    fprintf(f, "    %-*s = 0x%08" PRIx64 ",\n", wide, "arena_bytes", (uint64_t)arena);
    for (int i = 0; i < list.n; i++) {
        int b = list.at[i].buf;
        const Buf *x = &w->p->buf.at[b];
        const char *slots = slots_pooled(w, b) ? strf(", slots %s", w->p->pool.at[x->pool].name) : "";
        print_place(f, wide, w->buf[b], list.at[i].at, i + 1 < list.n ? "," : ";", strf("%10" PRId64 "  %s  [%d,%d]  %s%s",
                    x->bytes, what_of(w, x), x->first, x->last, life_of(w, x), slots));
    }
    print_hosts(w, f);
}
