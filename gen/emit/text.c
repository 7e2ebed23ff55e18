/* SPDX-License-Identifier: Apache-2.0
 *
 * Small texts that several emitted files share.
 */
#include "emit.h"
#include <inttypes.h>
#include <string.h>

const char *size_text(Bytes n)
{
    static const struct { Bytes unit; const char *name; } units[] = {
        {(Bytes)1 << 30, "GiB"}, {(Bytes)1 << 20, "MiB"}, {(Bytes)1 << 10, "KiB"}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (n >= units[i].unit)
            return strf("%.2f %s", (double)n / (double)units[i].unit, units[i].name);
    return strf("%" PRId64 " bytes", n);
}

const char *count_text(int64_t n, const char *thing)
{
    return strf("%" PRId64 " %s%s", n, thing, n == 1 ? "" : strchr("sxh", thing[strlen(thing) - 1]) ? "es" : "s");
}

const char *emit_piece(Piece piece, int phase)
{
    static const char *const name[] = {"step", "prologue", "period", "epilogue", "alone"};
    return piece == PIECE_STEP ? name[piece] : strf("%s_%d", name[piece], phase);
}

static const char *moved_text(const Plan *p, const Action *k)
{
    const char *name = k->tensor >= 0 ? p->g->tensor.at[k->tensor].name : k->state >= 0 ? p->g->state.at[k->state].name : "";
    return k->mb >= 0 ? strf("%s, micro-batch %d", name, k->mb) : name;
}

static const char *computed(const char *what, const Action *k)
{
    return strf("%s, chunk %d, micro-batch %d%s", what, k->chunk, k->mb,
                k->until ? strf(", calls %d to %d", k->first, k->until - 1) : "");
}

const char *action_text(const Plan *p, const Action *k)
{
    static const char *const update[] = {"gather gradients", "norm", "update"};
    switch (k->kind) {
    case K_F: return computed("forward", k);
    case K_B: return computed("backward", k);
    case K_I: return computed("input gradient", k);
    case K_W: return computed("weight gradient", k);
    case K_R: return computed("recompute", k);
    case K_U: return update[k->part];
    case K_BEGIN: return "begin";
    case K_END: return "end";
    case K_COUNT: return strf("count targets in %s", p->m->inputs.at[p->g->count.at[k->input].input].name);
    case K_LOAD: return strf("load %s", moved_text(p, k));
    case K_SEND: return strf("send to %d: %s", k->peer, moved_text(p, k));
    case K_RECV: return strf("receive from %d: %s", k->peer, moved_text(p, k));
    case K_WAIT:
        if (is_copy(k))
            return strf("wait, %s: %s", k->of == K_OUT ? "offloaded" : "fetched", moved_text(p, k));
        return strf("wait, %s: %s", k->of == K_SEND ? "sent" : "received", moved_text(p, k));
    case K_FOLD: return strf("fold gradient group %d into %d, chunk %d", k->group, k->into, k->chunk);
    case K_MERGE: return strf("add %s of %d", p->g->state.at[k->state].name, k->from_device);
    case K_GATHER: return strf("add partial norms of %d", k->from_device);
    case K_OUT: return strf("offload %s", moved_text(p, k));
    case K_IN: return strf("fetch %s", moved_text(p, k));
    case K_VERSION: return strf("keep the weights as they are, chunk %d", k->chunk);
    }
    return "";
}

/* The runs of forward operators on a device: first .. last, first .. last */
const char *covers_text(const Plan *p, int device)
{
    const Graph *g = p->g;
    const char *text = "";
    for (int o = 0; o < g->nf; o++) {
        if (!runs_on(p, o, device) || (o > 0 && runs_on(p, o - 1, device)))
            continue;
        int last = o;
        while (last + 1 < g->nf && runs_on(p, last + 1, device))
            last++;
        text = strf("%s%s%s .. %s", text, *text ? ", " : "", g->op.at[o].name, g->op.at[last].name);
    }
    return text;
}

static const char *hash_of(Text *t)
{
    char *hex = alloc(65);
    Sha256 sum;
    text_close(t);
    sha256_start(&sum);
    sha256_add(&sum, t->at, t->n);
    sha256_end(&sum, hex);
    return hex;
}

static void print_arg(FILE *f, const Graph *g, const Arg *a)
{
    if (a->kind == ARG_INT)
        fprintf(f, " %s=%" PRId64, a->token, a->i);
    else if (a->kind == ARG_FLOAT)
        fprintf(f, " %s=%a", a->token, a->f);
    else if (a->kind == ARG_READ || a->kind == ARG_WRITE)
        fprintf(f, " %s=%s", a->token, a->state ? g->state.at[a->index].name : g->tensor.at[a->index].name);
}

static const char *calls_hash(const Graph *g)
{
    Text t;
    FILE *f = text_open(&t);
    for (int s = 0; s < g->state.n; s++)
        if (g->state.at[s].kind == S_PARAM)
            fprintf(f, "param %s %s\n", g->state.at[s].name, shape_text(&g->state.at[s].shape));
    for (int o = 0; o < g->nf; o++) {
        fprintf(f, "%s %s", g->op.at[o].name, g->op.at[o].call);
        for (int i = 0; i < g->op.at[o].arg.n; i++)
            print_arg(f, g, &g->op.at[o].arg.at[i]);
        fprintf(f, "\n");
    }
    return hash_of(&t);
}

/* What the parameters mean: every forward call with its operands and attributes; no place in a file, no plan.  What fuse has
 * joined counts as it was written, unless somebody has changed it in a file since. */
const char *model_hash(const Graph *g)
{
    const char *calls = calls_hash(g);
    bool joined = g->model && *g->model && g->calls && !strcmp(g->calls, calls);
    return joined ? g->model : calls;
}

/* What happens to them: start values, optimiser, rates, seed, the order of the data. */
const char *train_hash(const Graph *g, const Model *m)
{
    const Train *x = &m->train;
    Text t;
    FILE *f = text_open(&t);
    for (int s = 0; s < g->state.n; s++) {
        const State *p = &g->state.at[s];
        if (p->kind == S_PARAM)
            fprintf(f, "%s %d %a %a %d\n", p->name, (int)p->init.kind, p->init.a, p->init.b, p->decay);
    }
    fprintf(f, "optimizer %d lr %a %a %a eps %a momentum %a decay %a\n", (int)x->opt, x->lr, x->beta1, x->beta2, x->eps,
            x->momentum, x->weight_decay);
    fprintf(f, "schedule %d warmup %" PRId64 " every %" PRId64 " final %a factor %a steps %" PRId64 "\n", (int)x->schedule,
            x->warmup, x->every, x->final, x->factor, x->steps);
    fprintf(f, "data %s %d\n", m->data.format ? m->data.format : "none", m->data.sequential);
    fprintf(f, "clip %a %d seed %" PRIu64 "\n", x->clip, x->clip_each, x->seed);
    return hash_of(&t);
}

int emit_rank(const Plan *p, int device)
{
    int rank = 0;
    for (int d = 0; d < p->devices; d++)
        rank += p->dev.at[d].place < p->dev.at[device].place;
    return p->dev.at[device].place ? rank : device;
}

bool emit_paced(const Plan *p)
{
    return !strcmp(p->m->devices.at[0].kind, "paced");
}

bool emit_cuda(const Plan *p)
{
    return !strcmp(p->m->devices.at[0].kind, "cuda");
}

const char *emit_kernels(const Plan *p)
{
    return emit_paced(p) ? "paced" : p->m->devices.at[0].kernels;
}
