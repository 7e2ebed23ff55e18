/* SPDX-License-Identifier: Apache-2.0
 *
 * live.c: what a chunk will need, nearly.
 *
 * keep_bound never exceeds the truth, so it can prove that something does not fit, but not that it does: it leaves out
 * what is rebuilt side by side, gradients that wait, messages under way.  Here the routines of one chunk are walked as
 * lower will write them, and the bytes alive at each call are counted, with all other micro-batches in flight at rest:
 *
 *   states + (k-1) saved + the most alive during forward, or during backward, + messages of the neighbouring
 *   computation
 *
 * Within 3 % of the live bytes that mem finds for GPT-2, BERT and T5 on up to four stages: which messages overlap is
 * guessed.  What remains is packing, which main.c feeds back.  Cost: linear in the operands of the graph.
 */
#include "span.h"

typedef struct {
    const Plan *p;
    const Backward *back;
    int chunk;
    int *from, *to;  /* by tensor and whether it is remade: positions in the routine at hand; to < 0: untouched */
    int at;
    Bytes in[2], out[2];        /* messages: [0] activations, [1] gradients */
} Walk;

/* Tensor t is touched at the current position; the remade copy is another buffer. */
static void touch(Walk *w, int t, bool remade)
{
    int i = 2 * t + remade;
    if (w->to[i] < 0)
        w->from[i] = w->at;
    w->to[i] = w->at;
}

static void touch_call(Walk *w, const Op *o, bool backward, bool again)
{
    for (int i = 0; i < o->arg.n; i++) {
        const Arg *a = &o->arg.at[i];
        if ((a->kind != ARG_READ && a->kind != ARG_WRITE) || a->state)
            continue;
        bool remade = backward && w->back->remade[a->index] && (a->kind == ARG_READ || again);
        touch(w, a->index, remade);
    }
    w->at++;
}

static bool is_here(const Walk *w, int op)
{
    return op >= 0 && w->p->chunk.at[op] == w->chunk;
}

/* Saved tensors and received gradients are there before, saved tensors and results to send after. */
static void hold(Walk *w, bool backward, const bool *sent)
{
    const Graph *g = w->p->g;
    for (int t = 0; t < g->tensor.n; t++) {
        const Tensor *x = &g->tensor.at[t];
        int *from = &w->from[2 * t], *to = &w->to[2 * t];
        bool stranger = !is_here(w, x->op);
        if (*to < 0 && !(backward && w->back->saved[t]))
            continue;
        if ((backward && w->back->saved[t]) || stranger)
            *from = 0;
        if ((!backward && w->back->saved[t]) || (sent[t] && !stranger && (x->kind == T_GRAD) == backward))
            *to = w->at - 1;
    }
}

/* The most bytes alive at one position; tmp[position] is the scratch of its call. */
static Bytes most_alive(const Walk *w, const Bytes *tmp)
{
    const Graph *g = w->p->g;
    Bytes *change = alloc(sizeof *change * (size_t)(w->at + 1)), now = 0, most = 0;
    for (int i = 0; i < 2 * g->tensor.n; i++)
        if (w->to[i] >= 0) {
            change[w->from[i]] += g->tensor.at[i / 2].bytes;
            change[w->to[i] + 1] -= g->tensor.at[i / 2].bytes;
        }
    for (int i = 0; i < w->at; i++) {
        now += change[i];
        most = now + tmp[i] > most ? now + tmp[i] : most;
    }
    return most;
}

static void start(Walk *w)
{
    w->at = 0;
    for (int i = 0; i < 2 * w->p->g->tensor.n; i++)
        w->to[i] = -1;
}

static Bytes most_forward(Walk *w, const bool *sent)
{
    const Graph *g = w->p->g;
    Bytes *tmp = alloc(sizeof *tmp * (size_t)g->nf);
    start(w);
    for (int o = 0; o < g->nf; o++)
        if (is_here(w, o)) {
            tmp[w->at] = g->op.at[o].tmp;
            touch_call(w, &g->op.at[o], false, false);
        }
    hold(w, false, sent);
    return most_alive(w, tmp);
}

static Bytes most_backward(Walk *w, const bool *sent)
{
    const Graph *g = w->p->g;
    const Lines *line = &w->back->line;
    Bytes *tmp = alloc(sizeof *tmp * (size_t)(line->n + 1));
    start(w);
    for (int i = 0; i < line->n; i++) {
        tmp[i] = g->op.at[line->at[i].op].tmp;
        touch_call(w, &g->op.at[line->at[i].op], true, line->at[i].again);
    }
    hold(w, true, sent);
    return most_alive(w, tmp);
}

/* sent[t]: another chunk reads what this one makes; sums of what comes and goes. */
static bool *find_messages(Walk *w)
{
    const Graph *g = w->p->g;
    bool *sent = alloc((size_t)g->tensor.n), *come = alloc((size_t)g->tensor.n);
    for (int o = 0; o < g->nb; o++)
        for (int i = 0; i < g->op.at[o].arg.n; i++) {
            const Arg *a = &g->op.at[o].arg.at[i];
            if (a->kind != ARG_READ || a->state || g->tensor.at[a->index].op < 0)
                continue;
            bool made = is_here(w, g->tensor.at[a->index].op), read = is_here(w, o);
            sent[a->index] |= made && !read;
            come[a->index] |= read && !made;
        }
    for (int t = 0; t < g->tensor.n; t++) {
        int grad = g->tensor.at[t].kind == T_GRAD;
        w->in[grad] += come[t] ? g->tensor.at[t].bytes : 0;
        w->out[grad] += sent[t] ? g->tensor.at[t].bytes : 0;
    }
    return sent;
}

static Bytes larger(Bytes a, Bytes b)
{
    return a > b ? a : b;
}

Bytes live_bytes(const Plan *plan, int *fate, int chunk, Bytes states)
{
    Plan p = *plan;
    p.variants = 1;
    p.fate = (Ints){fate, p.g->tensor.n, p.g->tensor.n};
    Backward back = backward_of(&p, chunk, 0);
    size_t n = 2 * (size_t)p.g->tensor.n;
    Walk w = {.p = &p, .back = &back, .chunk = chunk, .from = alloc(sizeof(int) * n), .to = alloc(sizeof(int) * n)};
    const bool *sent = find_messages(&w);
    Bytes saved = 0;
    for (int t = 0; t < p.g->tensor.n; t++)
        saved += back.saved[t] ? p.g->tensor.at[t].bytes : 0;
    Bytes forward = most_forward(&w, sent) + w.in[1] + w.out[1],
        backward = most_backward(&w, sent) + w.in[0] + w.out[0];
    return states + (order_flight(&p, chunk) - 1) * saved + larger(forward, backward);
}
