/* SPDX-License-Identifier: Apache-2.0
 *
 * text.c: small texts that several emitted files share.
 */
#include "emit.h"

void emit_wrap(FILE *f, int from, int indent, const Strs *word, const char *behind)
{
    int at = from;
    for (int i = 0; i < word->n; i++) {
        bool last = i + 1 == word->n;
        int n = (int)strlen(word->at[i]) + (int)(last ? strlen(behind) : 1);
        if (i > 0 && at + 1 + n > EMIT_COLUMNS)
            at = fprintf(f, "\n%*s%s%s", indent, "", word->at[i], last ? "" : ",") - 1;
        else
            at += fprintf(f, "%s%s%s", i ? " " : "", word->at[i], last ? "" : ",");
    }
    fprintf(f, "%s\n", behind);
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
    static const char *const update[U_PARTS] = {[U_TIES] = "add ties", [U_GATHER] = "gather gradients", [U_SUMS] = "sum blocks",
                                                [U_NORM] = "norm", [U_STEP] = "update", [U_COPIES] = "copies",
                                                [U_ROOMS] = "round copies into their rooms"};
    switch (k->kind) {
    case K_F: return computed("forward", k);
    case K_B: return computed("backward", k);
    case K_I: return computed("input gradient", k);
    case K_W: return computed("weight gradient", k);
    case K_R: return computed("recompute", k);
    case K_U: return update[k->update];
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
    case K_SHARE: return strf("share %s, level %d", k->group ? "parameters" : "gradients", k->tree_level);
    case K_ROOM: return strf("open the room of %s", p->g->state.at[k->state].name);
    case K_GATHER: return strf("add partial norms of %d", k->from_device);
    case K_OUT: return strf("offload %s", moved_text(p, k));
    case K_IN: return strf("fetch %s", moved_text(p, k));
    case K_VERSION: return strf("keep the weights as they are, chunk %d", k->chunk);
    case K_PREDICT: return strf("predict the weights for %s, chunk %d", k->forward ? "forward" : "backward", k->chunk);
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

int emit_rank(const Plan *p, int device)
{
    int rank = 0;
    for (int d = 0; d < p->devices; d++)
        rank += p->dev.at[d].entry < p->dev.at[device].entry;
    return p->dev.at[device].entry ? rank : device;
}

bool emit_paced(const Plan *p)
{
    return target_of(&p->m->devices.at[0])->paced;
}

bool emit_cuda(const Plan *p)
{
    return on_gpus(p->m);
}

const Library *emit_library(const Plan *p)
{
    return library_linked(&p->m->devices.at[0]);
}

int emit_ranks(const Plan *p)
{
    return p->devices * (p->g->team ? p->g->team : 1);
}

Bytes emit_offloaded(const Plan *p, int device)
{
    Bytes sum = 0;
    for (int i = 0; i < p->host.n; i++)
        sum += p->host.at[i].device == device ? p->host.at[i].bytes : 0;
    return sum;
}
