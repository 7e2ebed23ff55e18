/* SPDX-License-Identifier: Apache-2.0
 *
 * rebuild.c: the backward of a chunk, written out.
 *
 * Method: backward runs the gradient operators of a chunk in graph order.  A forward tensor that one of them reads is either
 * saved from forward, or dropped and made again.  The rebuild rule: a dropped tensor is rebuilt at most once per backward,
 * right before its first reader, from tensors that are saved, received or loaded.  Its inputs in between are rebuilt with it
 * and live to their own last reader.  A rebuilt call is the identical call of forward, so its bits are the same.
 *
 * One exception buys time at no cost in calls.  The tensors rebuilt for the first reader that needs any are hoisted in front of
 * the whole backward.  The gradient of the next stage has not arrived yet there, so recomputation hides behind the wait.  With
 * everything recomputed the step then costs 4m + 3(p-1) units instead of 4(m + p-1).
 *
 * An offloaded tensor is there too: comm sees to it that it has come back from the host before its first reader.
 *
 * On GPUs the gradient of a SoftmaxCrossEntropy goes to the end of forward, where each backward of the chunk follows its
 * forward at once and the scores are kept.  One kernel then makes the loss and the gradient (emit/stage.c), and reads the
 * scores once.
 *
 * list.h has the rule for planners: replay/ and rivals/capuchin.c ask it.
 *
 * Cost: linear in operators and operands.
 */
#include "list.h"

int device_of(const Plan *p, int row, int op)
{
    return plan_home(p, row, p->chunk.at[op]);
}

bool runs_on(const Plan *p, int op, int device)
{
    return plan_holds(p, device, p->chunk.at[op]);
}

/* ---- the rule ---------------------------------------------------------------------------------------------------- */

static ListRange take(const Graph *g, Ints *list, int op, ArgKind kind)
{
    ListRange r = {list->n, list->n};
    for (EACH(const Arg, a, g->op.at[op].arg)) {
        bool twice = a->kind != kind || a->state;
        for (int k = r.from; k < list->n && !twice; k++)
            twice = list->at[k] == a->index;
        if (!twice)
            *PUSH(list) = a->index;
    }
    r.to = list->n;
    return r;
}

Operands operands_of(const Graph *g)
{
    Operands x = {.op = alloc(sizeof *x.op * (size_t)g->nb), .maker = alloc(sizeof(int) * (size_t)g->tensor.n)};
    for (int o = 0; o < g->nb; o++) {
        x.op[o].read = take(g, &x.tensor, o, ARG_READ);
        x.op[o].write = take(g, &x.tensor, o, ARG_WRITE);
    }
    for (int t = 0; t < g->tensor.n; t++)
        x.maker[t] = g->tensor.at[t].op < 0 ? -1 : g->op.at[g->tensor.at[t].op].fwd;
    return x;
}

Rebuild rebuild_open(const Graph *g, const Operands *o)
{
    size_t nt = sizeof(int) * (size_t)g->tensor.n, nf = sizeof(int) * (size_t)g->nf;
    return (Rebuild){.op = o->op, .tensor = o->tensor.at, .maker = o->maker, .mark = alloc(nt), .list = alloc(nt),
                     .again = alloc(nf), .line = alloc(nf), .call = alloc(nf), .stack = alloc(nf), .head = alloc(nf)};
}

void rebuild_begin(Rebuild *r, int first, int last, const int *fate)
{
    r->first = first;
    r->last = last;
    r->fate = fate;
    r->round += 2;
    r->n = r->lines = r->fetched = 0;
}

static inline bool dropped(const Rebuild *r, int t)
{
    return r->fate[t] == FATE_RECOMPUTE && rebuild_own(r, t);
}

/* A call reads tensor t.  It is there unless it is dropped. */
static inline void want(Rebuild *r, int t)
{
    if (r->mark[t] >= r->round)
        return;
    r->mark[t] = r->round;
    r->list[r->n++] = t;
    r->fetched += r->fate[t] == FATE_OFFLOAD && rebuild_own(r, t);
}

static void put(Rebuild *r, int op, int call)
{
    const ListRange *w = &r->op[op].write;
    r->call[r->lines] = call;
    r->line[r->lines++] = op;
    for (int i = w->from; i < w->to; i++)
        if (r->mark[r->tensor[i]] < r->round)
            r->mark[r->tensor[i]] = r->round + 1;
}

/* Post-order over dropped tensors without recursion: an operator on the stack goes on with its operand head[]. */
void rebuild_op(Rebuild *r, int op, int call)
{
    int depth = 0;
    for (int next = op;;) {
        if (next >= 0 && r->again[next] != r->round) {
            r->again[next] = r->round;
            r->head[next] = r->op[next].read.from;
            r->stack[depth++] = next;
        }
        if (depth == 0)
            return;
        int o = r->stack[depth - 1], i = r->head[o];
        for (; i < r->op[o].read.to && !dropped(r, r->tensor[i]); i++)
            want(r, r->tensor[i]);
        r->head[o] = i + 1;
        next = i < r->op[o].read.to ? r->maker[r->tensor[i]] : -1;
        if (next < 0)
            put(r, r->stack[--depth], call);
    }
}

void rebuild(Rebuild *r, int first, int last, const int *fate, const int *read, const int *call, int n)
{
    int front = -1;
    rebuild_begin(r, first, last, fate);
    for (int i = 0; i < n; i++)
        if (!dropped(r, read[i]))
            want(r, read[i]);
    for (int i = 0; i < n; i++) {
        if (r->mark[read[i]] >= r->round)
            continue;
        front = front < 0 ? call[i] : front;
        rebuild_op(r, r->maker[read[i]], call[i] == front ? 0 : call[i]);
    }
}

/* ---- of a plan --------------------------------------------------------------------------------------------------- */

/* Does backward follow each forward of the chunk, with no other computation between? */
static bool follows(const Plan *p, int chunk)
{
    for (int d = 0; d < p->devices; d++) {
        const Actions *list = &p->dev.at[d].order;
        for (int i = 0; i < list->n; i++) {
            const Action *k = &list->at[i], *next = i + 1 < list->n ? k + 1 : k;
            if (k->kind == K_F && k->chunk == chunk &&
                ((next->kind != K_B && next->kind != K_I) || next->chunk != chunk || next->mb != k->mb))
                return false;
        }
    }
    return order_overlap(p) == 0;
}

/* The call that makes the gradient of 1 which the loss begins with; -1: another has a part in it. */
static int seed_of(const Graph *g, const Op *back)
{
    for (EACH(const Arg, a, back->arg))
        if (a->kind == ARG_READ && !a->state && arg_role(a) == ROLE_SLOPE)
            return op_is(&g->op.at[g->tensor.at[a->index].op], TRAIT_SEED) ? g->tensor.at[a->index].op : -1;
    return -1;
}

/* The gradient of a forward operator's loss, if it may stand behind the loss; -1: it may not. */
static int loss_back(const Plan *p, int op)
{
    const Graph *g = p->g;
    int back = g->nf;
    if (!op_is(&g->op.at[op], TRAIT_LOSS_PAIR))
        return -1;
    while (back < g->nb && (g->op.at[back].fwd != op || !op_is(&g->op.at[back], TRAIT_LOSS_PAIR)))
        back++;
    int seed = back < g->nb ? seed_of(g, &g->op.at[back]) : -1;
    if (seed < 0 || p->chunk.at[seed] != p->chunk.at[op])      /* a loss that a later chunk adds to another */
        return -1;
    for (EACH(const Arg, a, g->op.at[back].arg))
        if (a->kind == ARG_READ && !a->state && p->fate.at[a->index] != FATE_KEEP)
            return -1;
    return back;
}

static int joined_loss(const Plan *p, int chunk)
{
    for (int o = 0; on_gpus(p->m) && o < p->g->nf; o++)
        if (p->chunk.at[o] == chunk && loss_back(p, o) >= 0)
            return follows(p, chunk) ? o : -1;
    return -1;
}

/* The fates of the tensors that the chunk makes; all others are there. */
static int *fates_of(const Plan *p, int chunk)
{
    int *fate = alloc(sizeof *fate * (size_t)p->g->tensor.n);
    for (int t = 0; t < p->g->tensor.n; t++) {
        int op = p->g->tensor.at[t].op;
        bool local = op >= 0 && op < p->g->nf && p->chunk.at[op] == chunk;
        fate[t] = local ? p->fate.at[t] : FATE_KEEP;
    }
    return fate;
}

static Backward backward_of(const Plan *p, const Operands *x, Rebuild *r, int chunk)
{
    const Graph *g = p->g;
    Ints calls = {0}, read = {0}, call = {0};
    int loss = joined_loss(p, chunk), away = loss < 0 ? -1 : loss_back(p, loss);
    int seed = loss < 0 ? -1 : seed_of(g, &g->op.at[away]);
    for (int o = g->nf; o < g->nb; o++) {
        const ListRange *range = &x->op[o].read;
        if (p->chunk.at[o] != chunk || o == away || o == seed)
            continue;
        for (int i = range->from; i < range->to; i++)
            if (g->tensor.at[x->tensor.at[i]].kind != T_GRAD) {
                *PUSH(&read) = x->tensor.at[i];
                *PUSH(&call) = calls.n;
            }
        *PUSH(&calls) = o;
    }
    rebuild(r, 0, g->nf - 1, fates_of(p, chunk), read.at, call.at, read.n);
    size_t n = (size_t)g->tensor.n;
    Backward back = {.saved = alloc(n), .remade = alloc(n), .fetched = alloc(n), .loss = loss};
    for (int t = 0; t < g->tensor.n; t++) {
        back.saved[t] = rebuild_saved(r, t);
        back.remade[t] = rebuild_remade(r, t);
        back.fetched[t] = rebuild_fetched(r, t);
    }
    while (back.early < r->lines && r->call[back.early] == 0)
        back.early++;
    for (int c = 0, k = 0; c < calls.n; c++) {
        for (; k < r->lines && r->call[k] <= c; k++)
            *PUSH(&back.line) = (Line){r->line[k], true};
        *PUSH(&back.line) = (Line){calls.at[c], false};
    }
    return back;
}

Backward *backwards_of(const Plan *p)
{
    Operands operands = operands_of(p->g);
    Rebuild r = rebuild_open(p->g, &operands);
    Backward *all = alloc(sizeof *all * (size_t)plan_chunks(p));
    for (int c = 0; c < plan_chunks(p); c++)
        all[c] = backward_of(p, &operands, &r, c);
    return all;
}

static bool belongs(ActionKind kind, const Op *o)
{
    return kind == K_B || (kind == K_I && o->phase == PH_I) || (kind == K_W && o->phase == PH_W);
}

/* The calls of one action.  Tensors rebuilt after the early part go with the input gradients. */
Lines calls_of(const Plan *p, const Backward *back, int chunk, ActionKind kind)
{
    Lines line = {0};
    for (int o = 0; kind == K_F && o < p->g->nf; o++) {
        bool both = o == back->loss;
        if (p->chunk.at[o] != chunk)
            continue;
        if (both)
            *PUSH(&line) = (Line){seed_of(p->g, &p->g->op.at[loss_back(p, o)]), false};
        *PUSH(&line) = (Line){o, false};
        if (both)
            *PUSH(&line) = (Line){loss_back(p, o), false};
    }
    for (int i = kind == K_R ? 0 : back->early; kind != K_F && i < (kind == K_R ? back->early : back->line.n); i++) {
        Line l = back->line.at[i];
        if (kind == K_R || (l.again ? kind != K_W : belongs(kind, &p->g->op.at[l.op])))
            *PUSH(&line) = l;
    }
    return line;
}
