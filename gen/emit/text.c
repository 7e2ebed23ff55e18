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

static const char *moved_text(const Plan *p, const Action *k)
{
    const char *name = k->tensor >= 0 ? p->g->tensor.at[k->tensor].name : k->state >= 0 ? p->g->state.at[k->state].name : "";
    return k->mb >= 0 ? strf("%s, micro-batch %d", name, k->mb) : name;
}

const char *action_text(const Plan *p, const Action *k)
{
    static const char *const update[] = {"gather gradients", "norm", "update"};
    switch (k->kind) {
    case K_F: return strf("forward, chunk %d, micro-batch %d", k->chunk, k->mb);
    case K_B: return strf("backward, chunk %d, micro-batch %d", k->chunk, k->mb);
    case K_I: return strf("input gradient, chunk %d, micro-batch %d", k->chunk, k->mb);
    case K_W: return strf("weight gradient, chunk %d, micro-batch %d", k->chunk, k->mb);
    case K_R: return strf("recompute, chunk %d, micro-batch %d", k->chunk, k->mb);
    case K_U: return update[k->part];
    case K_BEGIN: return "begin";
    case K_END: return "end";
    case K_COUNT: return strf("count targets in %s", p->m->inputs.at[p->g->count.at[k->input].input].name);
    case K_LOAD: return strf("load %s", moved_text(p, k));
    case K_SEND: return strf("send to %d: %s", k->peer, moved_text(p, k));
    case K_RECV: return strf("receive from %d: %s", k->peer, moved_text(p, k));
    case K_WAIT: return strf("wait, %s: %s", k->of == K_SEND ? "sent" : "received", moved_text(p, k));
    case K_FOLD: return strf("fold gradient group %d into %d, chunk %d", k->group, k->into, k->chunk);
    case K_GATHER: return strf("add partial norms of %d", k->from_device);
    case K_OUT: return strf("offload %s", moved_text(p, k));
    case K_IN: return strf("fetch %s", moved_text(p, k));
    }
    return "";
}

const char *model_hash(const Graph *g)
{
    char *hex = alloc(65);
    Text t;
    FILE *f = text_open(&t);
    for (int s = 0; s < g->state.n; s++)
        if (g->state.at[s].kind == S_PARAM)
            fprintf(f, "param %s %s\n", g->state.at[s].name, shape_text(&g->state.at[s].shape));
    for (int o = 0; o < g->nf; o++)
        fprintf(f, "op %s %s\n", row(g->op.at[o].row)->name, g->op.at[o].name);
    text_close(&t);
    Sha256 sum;
    sha256_start(&sum);
    sha256_add(&sum, t.at, t.n);
    sha256_end(&sum, hex);
    return hex;
}
