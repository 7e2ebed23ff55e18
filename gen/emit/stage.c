/* SPDX-License-Identifier: Apache-2.0
 *
 * stage.c: the source of one stage, in the language of docs/emitted.md.
 *
 * The plan decides everything; this file only knows characters.  Comments are printed from plan facts, never literals.
 */
#include "stage.h"
#include "list/list.h"

/* ---- routines ---------------------------------------------------------------------------------------------------- */

/* What a run of calls takes as parameters: a micro-batch, the accumulate flag, slots. */
typedef struct { bool mb, acc; Ints pool; } Params;

static Params params_of(const Stager *w, const Routine *r, int from, int to)
{
    Params x = {0};
    for (int i = from; i < to; i++) {
        const Call *c = &r->call.at[i];
        const Op *o = &w->p->g->op.at[c->op];
        for (int j = 0; j < o->arg.n; j++) {
            x.mb |= o->arg.at[j].kind == ARG_MB;
            x.acc |= o->arg.at[j].kind == ARG_ACC;
        }
    }
    for (int k = 0; k < r->pool.n; k++) {
        bool used = false;
        for (int i = from; i < to; i++)
            for (int j = 0; j < r->call.at[i].buf.n; j++) {
                int b = r->call.at[i].buf.at[j];
                used |= b >= 0 && w->p->buf.at[b].pool == r->pool.at[k];
            }
        if (used && slots_count(w, r->pool.at[k]) > 1)
            *PUSH(&x.pool) = r->pool.at[k];
    }
    return x;
}

/* The names of these parameters, in order. */
static Strs *labels_of(const Stager *w, const Params *x)
{
    Strs *label = alloc(sizeof *label);
    if (x->mb)
        *PUSH(label) = "mb";
    if (x->acc)
        *PUSH(label) = "acc";
    for (int k = 0; k < x->pool.n; k++)
        *PUSH(label) = w->p->pool.at[x->pool.at[k]].name;
    return label;
}

/* Of a routine, with what it is behind it, and its brace. */
void stage_signature(const Stager *w, const char *name, const Strs *label, const char *about)
{
    Strs word = {0};
    *PUSH(&word) = strf("static void %s(Stage *st", name);
    size_t length = strlen(word.at[0]) + strlen(about) + 9;
    for (int i = 0; i < label->n; i++) {
        *PUSH(&word) = strf("int %s", label->at[i]);
        length += strlen(word.at[i + 1]) + 2;
    }
    fprintf(w->f, "\n");
    emit_wrap(w->f, 0, 4, &word, length <= EMIT_COLUMNS ? strf(")  /* %s */", about) : ")");
    fprintf(w->f, length <= EMIT_COLUMNS ? "{\n" : "{\n    /* %s */\n", about);
}

/* Of a state that is here whole, where the part begins that the call is about; of step values, those of the group. */
static Bytes part_at(const Stager *w, const Op *o, const Arg *a, int b)
{
    const Plan *p = w->p;
    const State *s = a->state ? &p->g->state.at[a->index] : NULL;
    if (a->kind == ARG_VALS)
        return a->i * (s->bytes / (1 + p->m->train.param_group.n));
    bool whole = s && (s->kind == S_GRAD || s->kind == S_PARAM || s->kind == S_COPY) && p->buf.at[b].bytes == s->bytes;
    return whole && plan_cuts_op(p, (int)(o - p->g->op.at)) >= 0 ? plan_own(p, plan_replica(p, w->device), a->index).from : 0;
}

/* A literal: of a part, its own number of elements, and its own first block. */
static void print_int(Stager *w, const Op *o, const Arg *a)
{
    int param = plan_cuts_op(w->p, (int)(o - w->p->g->op.at));
    Extent part = param >= 0 ? plan_own(w->p, plan_replica(w->p, w->device), param) : (Extent){0, 0};
    Bytes size = type_bytes(F32);
    if (param >= 0 && arg_role(a) == ROLE_COUNT)
        call_int(w, (part.until - part.from) / size);
    else if (param >= 0 && arg_role(a) == ROLE_FIRST)
        call_int(w, a->i + part.from / size / norm_block(w->p->m, w->p->g->state.at[param].bytes / size));
    else
        call_literal(w, dims_arg(w->dims, w->dim, w->p->g, o, a));
}

/* Where a call draws its random numbers; one that drops nothing draws none.  Below 0 it says that heads are those of a device,
 * and slopes of ALiBi go by the number of a head. */
static void print_site(Stager *w, const Op *o, const Arg *a, bool eval)
{
    const Graph *g = w->p->g;
    bool draws = !eval, slopes = false;
    for (int i = 0; i < o->arg.n; i++) {
        draws &= arg_role(&o->arg.at[i]) != ROLE_DROP || o->arg.at[i].f != 0;
        slopes |= !strcmp(o->arg.at[i].token, "alibi") && o->arg.at[i].f > 0;
    }
    if (draws || (slopes && a->i < 0))
        call_site(w, g->op.at[o->fwd >= 0 ? o->fwd : (int)(o - g->op.at)].name, a->i);
    else
        call_int(w, 0);
}

/* The address of a buffer: of one with slots, in that of the routine's parameter, or of the action that has this one call. */
static void print_address(Stager *w, const Routine *r, int b, Bytes at)
{
    const char *further = at ? strf(" + %" PRId64, at) : "";
    int pool = w->p->buf.at[b].pool, slot = 0;
    for (int i = 0; w->now && i < r->pool.n; i++)
        slot = r->pool.at[i] == pool ? w->now->slots.at[i] : slot;
    if (w->now)
        call_part(w, b, slot, at);
    else if (slots_pooled(w, b))
        call_word(w, "S(%s, %s%s)", w->p->pool.at[pool].name, w->buf[b], further);
    else
        call_word(w, "A(%s%s)", w->buf[b], further);
}

static void print_arg(Stager *w, const Routine *r, const Call *c, const Op *o, int i, Bytes skip)
{
    const Arg *a = &o->arg.at[i];
    int b = c->buf.at[i];
    bool eval = r->eval || infers(w->p->m);
    w->changes = b >= 0 && (a->kind == ARG_ADD || a->kind == ARG_UPDATE || arg_role(a) == ROLE_ONTO);
    if (b >= 0)
        print_address(w, r, b, part_at(w, o, a, b) + skip);
    else if (a->kind == ARG_INT && arg_role(a) == ROLE_SITE)
        print_site(w, o, a, eval);
    else if (a->kind == ARG_INT)
        print_int(w, o, a);
    else if (a->kind == ARG_FLOAT)
        call_float(w, eval && arg_role(a) == ROLE_DROP ? 0.0 : a->f);    /* no dropout in an evaluation */
    else if (a->kind == ARG_LATE)
        call_int(w, order_late(w->p, r->chunk));
    else if (a->kind == ARG_HANDLE)
        call_word(w, "%s", w->handle[c->handle]);
    else if ((a->kind == ARG_MB || a->kind == ARG_ACC) && !w->now)
        call_word(w, "%s", a->kind == ARG_MB ? "mb" : "acc");
    else
        call_int(w, a->kind == ARG_MB ? w->now->mb : a->kind == ARG_ACC ? w->now->acc : 0);
}

static void print_why(const Stager *w, const Call *c)
{
    const Op *o = &w->p->g->op.at[c->op];
    Bytes bytes = 0;
    for (int i = 0; i < o->arg.n; i++)
        if (o->arg.at[i].kind == ARG_WRITE && !o->arg.at[i].state)
            bytes += w->p->g->tensor.at[o->arg.at[i].index].bytes;
    fprintf(w->f, "    /* recompute %s:\n"
            "     * not keeping it frees %s for each micro-batch in flight (%d here), at %.3f ms each. */\n",
            quote_comment(o->name), size_text(bytes), order_flight(w->p, w->p->chunk.at[c->op]),
            (double)cost_alone(w->p->c, w->device, c->op) / 1e6);
}

/* One call, or a pair of them as one, with the call that stands between; how many. */
static int print_call(Stager *w, const Routine *r, const Call *c, int calls)
{
    const Op *o = &w->p->g->op.at[c->op];
    int second;
    const EmitPair *pair = pair_of(w->p, r, c, calls, &second);
    if (second == 2 && !pair->early && !pair->three)
        print_call(w, r, c + 1, 1);
    if (c->again && !pair)
        print_why(w, c);
    call_open(w, pair ? pair->both : o->call);
    for (const char *const *word = pair ? pair->word : NULL; word && *word; word++) {
        int skip = **word == '2' || **word == '3';
        const Call *from = !skip ? c : pair->three ? c + (**word - '1') : c + second;
        const Op *of = &w->p->g->op.at[from->op];
        print_arg(w, r, from, of, pair_word(of, *word + skip), pair_skip(w->p, pair, c, *word + skip));
    }
    for (int i = 0; i < o->arg.n && !pair; i++)
        print_arg(w, r, c, o, i, 0);
    call_close(w, o->loc.line > 0 ? strf("  /* :%d */", o->loc.line) : "");
    if (second == 2 && pair->early)
        print_call(w, r, c + 1, 1);
    return second + 1;
}

static void print_calls(Stager *w, const Routine *r, int from, int to)
{
    while (from < to)
        from += print_call(w, r, &r->call.at[from], to - from);
}

/* As they are printed: a pair is one. */
static int count_calls(const Stager *w, const Routine *r, int from, int to)
{
    int n = to - from, second;
    for (int i = from; i < to; i++)
        n -= pair_of(w->p, r, &r->call.at[i], to - i, &second) != NULL;
    return n;
}

static const char *verb(const Routine *r)
{
    switch (r->kind) {
    case K_F: return r->eval ? "evaluate" : "forward";
    case K_R: return "recompute";
    case K_I: return "backward_x";
    case K_W: return "backward_w";
    case K_U: return r->name;
    default:  return "backward";
    }
}

enum { LONGEST = 400 };         /* calls in a function; compilers are superlinear in its length */

static int run_end(const Stager *w, const Routine *r, int from)
{
    const char *layer = w->p->g->op.at[r->call.at[from].op].layer;
    int to = from + 1, second, until;
    while (to < r->call.n && to - from < LONGEST && !strcmp(layer, w->p->g->op.at[r->call.at[to].op].layer))
        to++;
    until = to;
    for (int i = to - 1; i >= from && i >= to - 2; i--)
        if (pair_of(w->p, r, &r->call.at[i], r->call.n - i, &second) && i + second >= until)
            until = i + second + 1;
    return until;
}

/* The calls of one layer; a pair with one of the next layer's ends it.  NULL: one call, which needs no routine. */
static const char *print_part(Stager *w, const Routine *r, int from, int to, const Strs *label)
{
    const Op *o = &w->p->g->op.at[r->call.at[from].op], *last = &w->p->g->op.at[r->call.at[to - 1].op];
    int calls = count_calls(w, r, from, to);
    if (calls == 1)
        return NULL;
    const char *name = name_new(&w->names, strf("%s_%s", *o->layer ? o->layer : o->name, verb(r)));
    stage_signature(w, name, label, quote_comment(strf("%s: %s%s", count_text(calls, "call"), o->name,
                    strcmp(o->name, last->name) ? strf(" .. %s", last->name) : "")));
    print_calls(w, r, from, to);
    fprintf(w->f, "}\n");
    return name;
}

static const char *about(const Routine *r)
{
    if (r->kind == K_U)
        return strf("Once a step: %s.", count_text(r->call.n, "call"));
    return strf("One micro-batch, chunk %d: %s.", r->chunk, count_text(r->call.n, "call"));
}

/* One function a run of calls of one layer, and one that calls them in order.  A single layer needs no function of its own,
 * and a single call no function at all. */
static void print_routine(Stager *w, int index)
{
    const Routine *r = &w->p->routine.at[index];
    Strs part = {0};
    Ints begin = {0};
    VEC(Strs *) label = {0};
    if (count_calls(w, r, 0, r->call.n) == 1)
        return;
    for (int from = 0, to; from < r->call.n; from = to) {
        to = run_end(w, r, from);
        bool whole = from == 0 && to == r->call.n;
        Params x = params_of(w, r, from, to);
        *PUSH(&begin) = from;
        *PUSH(&label) = labels_of(w, &x);
        *PUSH(&part) = whole ? NULL : print_part(w, r, from, to, label.at[label.n - 1]);
    }
    *PUSH(&begin) = r->call.n;
    Params all = params_of(w, r, 0, r->call.n);
    w->routine[index] = name_new(&w->names, r->kind == K_U && r->update == U_NORM ? "total_norm" : r->name);
    stage_signature(w, w->routine[index], labels_of(w, &all), about(r));
    for (int i = 0; i < part.n; i++) {
        if (!part.at[i]) {
            print_calls(w, r, begin.at[i], begin.at[i + 1]);
            continue;
        }
        call_open_routine(w, part.at[i], label.at[i]);
        for (int k = 0; k < label.at[i]->n; k++)
            call_word(w, "%s", label.at[i]->at[k]);
        call_close(w, "");
    }
    fprintf(w->f, "}\n");
}

/* ---- the straight line ------------------------------------------------------------------------------------------- */

/* The address of the values of an action's step. */
static void call_values(Stager *w, const Action *k)
{
    int b = turns_made(w, w->p->g->vals, 0);
    if (b < 0)
        die("no step values on device %d", w->device);
    call_place(w, b, slots_pooled(w, b) ? version_values(w->p, w->device, k) : 0);
}

static void print_zero(Stager *w)
{
    const Graph *g = w->p->g;
    for (int i = 0; i < g->state.n * plan_ways(w->p); i++) {
        int s = i % g->state.n, kind = g->state.at[s].kind;
        int b = kind == S_NORM || kind == S_BLOCKS ? turns_made(w, s, i / g->state.n) : -1;
        if (b < 0)
            continue;
        call_open(w, "fill_zero");
        call_place(w, b, 0);
        call_int(w, g->state.at[s].bytes);
        call_close(w, "");
    }
}

static void print_compute(Stager *w, const Action *k)
{
    const Routine *r = &w->p->routine.at[k->routine];
    const Strs *turns = turns_words(w, r);
    Params all = {.mb = r->mb, .acc = r->acc};
    for (int i = 0; i < r->pool.n && !turns; i++)
        if (slots_count(w, r->pool.at[i]) > 1)
            *PUSH(&all.pool) = r->pool.at[i];
    /* newer is where an action predicts from; of a fold, `from` */
    int ahead_of = k->kind == K_PREDICT ? order_ahead(w->p, k->chunk, k->forward ? K_F : K_B) : 0;
    Strs word = {0};
    for (int i = 0; turns && i < turns->n; i++) {
        bool last = k->kind == K_PREDICT && i == turns->n - 1;
        int older = k->kind == K_PREDICT && i == 1 ? k->slot : k->group;
        *PUSH(&word) = strf("%d", last ? ahead_of : i == 0 ? k->into : older);
    }
    if (!w->routine[k->routine]) {
        w->now = k;
        if (turns)
            turns_print(w, r, word.at);
        else
            print_calls(w, r, 0, r->call.n);
        w->now = NULL;
        return;
    }
    call_open_routine(w, w->routine[k->routine], turns ? turns : labels_of(w, &all));
    for (int i = 0; i < word.n; i++)
        call_literal(w, word.at[i]);
    if (r->mb)
        call_int(w, k->mb);
    if (r->acc)
        call_int(w, k->acc);
    for (int i = 0; i < all.pool.n; i++)
        for (int j = 0; j < r->pool.n; j++)
            if (r->pool.at[j] == all.pool.at[i])
                call_int(w, slots_number(w, all.pool.at[i], k->slots.at[j]));
    call_close(w, "");
}

/* From the begin of a copy to its wait: calls in between, and the time that they take. */
static void window_of(const Stager *w, const Action *k, int *calls, Ns *ns)
{
    const Actions *list = &w->p->dev.at[w->device].list;
    *calls = 0;
    *ns = 0;
    for (const Action *x = k + 1; x < list->at + list->n; x++) {
        if (x->kind == K_WAIT && x->of == k->kind && x->tensor == k->tensor && x->mb == k->mb)
            return;
        if (x->routine >= 0) {
            *calls += w->p->routine.at[x->routine].call.n;
            *ns += action_time(w->p, w->device, x);
        }
    }
    die("the copy of %s has no end", w->p->g->tensor.at[k->tensor].name);
}

/* At the first micro-batch of each tensor: what the alternatives would cost, or what this way is hidden by. */
static void print_why_copy(Stager *w, const Action *k)
{
    const Plan *p = w->p;
    const Tensor *t = &p->g->tensor.at[k->tensor];
    int bit = k->kind == K_OUT ? 1 : 2, calls;
    Ns copy = cost_host(p->c, w->device, k->bytes), work;
    if (w->told[k->tensor] & bit)
        return;
    w->told[k->tensor] |= bit;
    window_of(w, k, &calls, &work);
    if (k->kind == K_OUT)
        fprintf(w->f, "    /* offload %s: keeping it would hold %s for each micro-batch in flight (%d here);\n"
                "     * making it again costs %.3f ms, moving it %.3f ms each way.  Its place is free %s from here,\n"
                "     * after %.3f ms of work. */\n",
                quote_comment(t->name), size_text(k->bytes), order_flight(p, p->chunk.at[t->op]),
                (double)cost_alone(p->c, w->device, t->op) / 1e6, (double)copy / 1e6, count_text(calls, "call"),
                (double)work / 1e6);
    else
        fprintf(w->f, "    /* offload: %s went to the host after its forward; asked for here, %s early, so that its\n"
                "     * %.3f ms on the link hide behind the next %.3f ms of work. */\n", quote_comment(t->name),
                count_text(calls, "call"),
                (double)copy / 1e6, (double)work / 1e6);
}

/* Of a message, a copy or a load: those of its whole tensor or state, or of a part. */
static void call_bytes(Stager *w, const Action *k)
{
    call_literal(w, dims_bytes(w->dims, w->dim, w->p->g, k->tensor, k->state, k->bytes, 1));
}

static void print_copy(Stager *w, const Action *k)
{
    const char *host = w->host[k->host];
    print_why_copy(w, k);
    call_open(w, k->kind == K_OUT ? "offload_begin" : "fetch_begin");
    call_place(w, k->buf, k->slot);
    if (w->p->host.at[k->host].count > 1)
        call_word(w, "H(%s + %s_slot[%d])", host, host, k->host_slot);
    else
        call_word(w, "H(%s)", host);
    call_int(w, k->request);
    call_bytes(w, k);
    call_close(w, "");
}

static void print_count(Stager *w, const Action *k)
{
    const Count *count = &w->p->g->count.at[k->input];
    call_open(w, "data_count");
    call_values(w, k);
    call_int(w, count->input);
    call_int(w, count->ignore);
    call_int(w, count->count);
    call_close(w, "");
}

static void print_load(Stager *w, const Action *k)
{
    call_open(w, "data_load");
    call_place(w, k->buf, k->slot);
    call_values(w, k);
    call_int(w, k->input);
    call_int(w, k->mb);
    call_bytes(w, k);
    call_close(w, "");
}

static void print_message(Stager *w, const Action *k)
{
    call_open(w, k->kind == K_SEND ? "send_begin" : "recv_begin");
    call_part(w, k->buf, k->slot, k->at);
    call_int(w, k->request);
    call_int(w, k->peer);
    call_int(w, k->tag);
    call_bytes(w, k);
    call_close(w, "");
}

/* What another device has sent is added to what is here: gradients, partial norms. */
static void print_addition(Stager *w, const Action *k)
{
    bool merge = k->kind == K_MERGE && w->p->g->state.at[k->state].kind == S_GRAD;
    bool part = w->p->buf.at[k->buf].death == AT_ALWAYS;        /* what has come becomes the part that is kept */
    int sum = turns_made(w, k->state, k->kind == K_MERGE ? -1 : k->pipeline ? k->pipeline - 1 : 0);
    call_open(w, merge ? "group_fold" : "norm_gather");
    w->changes = true;
    call_part(w, part ? k->buf : sum, k->slot, part ? 0 : k->at);
    call_part(w, part ? sum : k->buf, k->slot, part ? k->at : 0);
    call_int(w, merge ? k->bytes / 4 : w->p->g->state.at[k->state].bytes / 8);
    call_close(w, "");
}

/* The row's part, to its place in the room. */
static void print_room(Stager *w, const Action *k)
{
    call_open(w, "version_copy");
    w->changes = true;
    call_part(w, k->buf, k->slot, k->at);
    call_part(w, turns_made(w, k->state, -1), 0, 0);
    call_int(w, k->bytes);
    call_close(w, "");
}

static void print_step(Stager *w, const Action *k)
{
    call_open(w, k->kind == K_BEGIN ? "step_begin" : "step_end");
    call_values(w, k);
    call_close(w, "");
}

static void print_wait(Stager *w, const Action *k)
{
    call_open(w, is_copy(k) ? "copy_wait" : "transfer_wait");
    call_int(w, k->request);
    call_close(w, "");
}

static void print_move(Stager *w, const Action *k)
{
    static void (*const print[])(Stager *, const Action *) = {[K_BEGIN] = print_step, [K_END] = print_step,
        [K_COUNT] = print_count, [K_LOAD] = print_load, [K_SEND] = print_message, [K_RECV] = print_message,
        [K_WAIT] = print_wait, [K_OUT] = print_copy, [K_IN] = print_copy, [K_MERGE] = print_addition,
        [K_GATHER] = print_addition, [K_ROOM] = print_room};
    if (!print[k->kind])
        die("action %d cannot be emitted", (int)k->kind);
    print[k->kind](w, k);
    /* Partial norms: zeroed at the begin of a step, and where it overlaps with the one before, behind that one. */
    bool inside = k->piece == PIECE_PERIOD || k->piece == PIECE_EPILOGUE;
    if (k->kind == K_BEGIN ? !inside : k->kind == K_END && inside)
        print_zero(w);
}

/* One piece of a list, at one phase: a function of its actions, numbered from `number` on; the next number. */
static int print_piece(Stager *w, const Actions *list, Piece piece, int phase, const char *name, int number)
{
    fprintf(w->f, "\nstatic void stage%d_%s(Stage *st)\n{\n%s", w->device, name, list->n ? "" : "    (void)st;\n");
    for (int i = 0; i < list->n; i++) {
        const Action *k = &list->at[i];
        Action moved = *k;
        if (k->piece != piece)
            continue;
        if (piece != PIECE_STEP || phase > 0) {
            moved.step += phase;
            moved.version += phase;
            version_resolve(w->p, &moved);
            k = &moved;
        }
        call_action(w, number++, action_text(w->p, k));
        if (list == &w->p->dev.at[w->device].list && w->together[i]) {
            call_open(w, "messages_together");
            call_int(w, w->together[i]);
            call_close(w, "");
        }
        if (k->routine >= 0)
            print_compute(w, k);
        else
            print_move(w, k);
    }
    fprintf(w->f, "}\n");
    return number;
}

/* ---- both files -------------------------------------------------------------------------------------------------- */

static const char **identifiers(int n)
{
    return alloc(sizeof(char *) * (size_t)(n + 1));
}

static void find_names(Stager *w)
{
    const Plan *p = w->p;
    for (int i = 0; i < dims_count(w->dims); i++)
        if (dims_at(w->dims, i)->value <= INT32_MAX)
            w->dim[i] = name_dim(&w->names, dims_at(w->dims, i)->name);
    for (int b = 0; b < p->buf.n; b++) {
        const Buf *x = &p->buf.at[b];
        if (x->device == w->device && x->last >= x->first)
            w->buf[b] = name_new(&w->names, x->state == p->g->vals ? "vals" : x->name);
    }
    for (int b = 0; b < p->host.n; b++)
        if (p->host.at[b].device == w->device)
            w->host[b] = name_new(&w->names, p->host.at[b].name);
    handles_name(w);
}

static void print_body(Stager *w)
{
    const Plan *p = w->p;
    for (int r = 0; r < p->routine.n; r++) {
        if (p->routine.at[r].device != w->device)
            continue;
        if (turns_words(w, &p->routine.at[r]))
            turns_routine(w, r);
        else if (p->routine.at[r].call.n > 0)
            print_routine(w, r);
    }
    open_print(w);
    /* A synchronous plan: step and eval.  Else every piece that there is, and eval, in every phase; phases differ in slots
     * alone and share their numbers. */
    const DevicePlan *d = &w->p->dev.at[w->device];
    int overlap = order_overlap(w->p), phases = version_phases(w->p, w->device), number = 0, next = 0;
    for (Piece piece = PIECE_STEP; piece < PIECES; piece++, number = next) {
        if (piece == PIECE_STEP ? overlap > 0 : overlap < (piece == PIECE_ALONE ? 2 : 1))
            continue;
        for (int k = 0; k < (piece == PIECE_STEP ? 1 : phases); k++)
            next = print_piece(w, &d->list, piece, k, emit_piece(piece, k), number);
    }
    for (int k = 0; k < phases; k++)
        print_piece(w, &d->eval, PIECE_STEP, k, overlap ? strf("eval_%d", k) : "eval", number);
    table_print(w);
}

void emit_stage(Out *o, const Plan *p, const EmitDims *dims, int device, const Strs *taken)
{
    Stager w = {.p = p, .device = device, .dims = dims, .dim = identifiers(dims_count(dims)), .buf = identifiers(p->buf.n),
                .routine = identifiers(p->routine.n), .host = identifiers(p->host.n), .together = together_runs(p, device),
                .told = alloc(sizeof(int) * (size_t)p->g->tensor.n)};
    Text body;
    APPEND(&w.names.taken, *taken);
    find_names(&w);
    slots_find(&w);
    call_prototypes(&w);
    w.f = text_open(&body);
    print_body(&w);
    text_close(&body);
    header_print(&w, out_open(o, strf("stage%d.h", device)));
    out_close(o);
    FILE *f = out_open(o, strf("stage%d.c", device));
    head_print(&w, f);
    fwrite(body.at, 1, body.n, f);
    out_close(o);
}
