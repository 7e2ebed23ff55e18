/* SPDX-License-Identifier: Apache-2.0
 *
 * graph.c: is this a graph?
 *
 * Problem: the passes behind the front end rely on the rules listed here and check none of them again.
 *
 * Method: this runs behind every pass of the front end, in release builds too.  It is written against the contract in plan.h
 * and the text of ops.def, not against the code of build, shape or grad.  It shares nothing with bind.c but the table.
 *
 *   order     forward first, then I and W by descending forward operator, I before W, then updates
 *   tensors   one producer each, made before they are read; bytes that follow from shape and type
 *   calls     every call is one of its row's, every argument of the kind, type and identity that its word says; a
 *             backward call reads the same tensor under a word as its forward operator does
 *   axes      a forward call's operands, parameters and results have the sizes that the axes of its row give them
 *   states    an accumulator is filled by one call of its own use; a parameter has gradients and one update, a frozen one
 *             neither
 *   names     different, also as C identifiers: tensors and states among each other, forward operators among each other
 *
 * Graphs grow, so the checks take the parts that exist.  Before shape an operator has no call and a tensor no bytes; before
 * grad there is no gradient.  The first fault ends the check.  A fault after one of our passes is a bug (check_graph).  A fault
 * in a graph that was read from a file is the file's (graph_fault).
 *
 * Cost: linear in operators and arguments.
 */
#include "build/axes.h"
#include "build/build.h"
#include "rt/quantize.h"

typedef struct {
    const Graph *g;
    const char *fault;
    Loc at;
    bool bound, whole;          /* shape has run; grad has run */
    int *maker;                 /* by tensor: operator that wrote it, -1 none yet */
    int *adds, *updates;        /* by state: calls that accumulate into it; of PH_U that update it */
} GraphCheck;

/* Remembers the first fault; always false. */
#define FAULT(c, loc, ...) ((c)->fault = strf(__VA_ARGS__), (c)->at = (loc), false)
#define OP(o) (o)->name, phase_name[(o)->phase]
static const char *const phase_name[] = {"forward", "input gradient", "weight gradient", "update"};

/* ---- lists ------------------------------------------------------------------------------------------------------- */

static bool in_list(int i, int n)
{
    return i >= 0 && i < n;
}

/* The bytes of a tensor of this shape and type; -1: no legal shape. */
static Bytes bytes_of(const Shape *s, Type type)
{
    if (s->n < 1 || s->n > MAXDIM || (int)type < F32 || (int)type > U8)
        return -1;
    for (int i = 0; i < s->n; i++)
        if (s->d[i] < 1)
            return -1;
    return shape_elements(s) * type_bytes(type);
}

/* Of rows that the devices of a stage share, the gradient may be that of all, and the other way round. */
static bool all_rows(const Graph *g, const Tensor *t, const Tensor *of)
{
    const Bytes all = t->bytes > of->bytes ? t->bytes : of->bytes, room = t->bytes + of->bytes - all;
    return room < all && all <= room * g->team;
}

/* A gradient in few bits has records of its own size (Round). */
static bool other_codes(const Tensor *t, const Tensor *of)
{
    return t->type == I32 && of->type == I32 && t->shape.n == of->shape.n &&
        !memcmp(t->shape.d, of->shape.d, (size_t)(t->shape.n - 1) * sizeof t->shape.d[0]);
}

static bool check_tensor(GraphCheck *c, const Tensor *t)
{
    const Graph *g = c->g;
    if ((int)t->kind < T_INPUT || t->kind > T_GRAD)
        return FAULT(c, t->loc, "tensor %s has kind %d", t->name, (int)t->kind);
    if (c->bound && t->bytes != bytes_of(&t->shape, t->type))
        return FAULT(c, t->loc, "tensor %s has shape %s and %lld bytes", t->name, shape_text(&t->shape),
                     (long long)t->bytes);
    if (t->kind == T_INPUT ? t->op != -1 : !in_list(t->op, g->op.n))
        return FAULT(c, t->loc, "tensor %s has producer %d", t->name, t->op);
    if (t->kind != T_GRAD)
        return true;
    const Tensor *of = in_list(t->of, g->tensor.n) ? &g->tensor.at[t->of] : NULL;
    bool like = of && of->kind == T_ACT && of->type == t->type;
    if (!like || (!shape_same(&of->shape, &t->shape) && !all_rows(g, t, of) && !other_codes(t, of)))
        return FAULT(c, t->loc, "tensor %s is no gradient of a tensor like it", t->name);
    return true;
}

static bool check_state(GraphCheck *c, int index)
{
    const Graph *g = c->g;
    const State *s = &g->state.at[index];
    if ((int)s->kind < S_PARAM || s->kind > S_VALUES)
        return FAULT(c, s->loc, "state %s has kind %d", s->name, (int)s->kind);
    if (c->bound && s->kind != S_VALUES && s->bytes != bytes_of(&s->shape, s->type))
        return FAULT(c, s->loc, "state %s has shape %s and %lld bytes", s->name, shape_text(&s->shape),
                     (long long)s->bytes);
    if (s->kind == S_VALUES)
        return index == g->vals || FAULT(c, s->loc, "state %s is not the step values", s->name);
    bool alone = s->kind == S_NORM || s->kind == S_CLIP || s->kind == S_BLOCKS;
    if (!(alone && s->param == -1) && (!in_list(s->param, g->state.n) || g->state.at[s->param].kind != S_PARAM))
        return FAULT(c, s->loc, "state %s belongs to no parameter", s->name);
    if (s->kind == S_PARAM && s->param != index)
        return FAULT(c, s->loc, "parameter %s does not belong to itself", s->name);
    if (s->outer && !in_list(s->dim, s->shape.n))
        return FAULT(c, s->loc, "parameter %s is divided along no axis of it", s->name);
    const State *p = s->param >= 0 ? &g->state.at[s->param] : NULL;
    bool pairs = p && p->tracked && s->kind == S_GRAD;          /* two floats a number */
    bool few = p && p->bits && s->kind == S_COPY;               /* whole records (rt/quantize.h) */
    bool other = p && (pairs ? s->bytes != 2 * p->bytes : !few ? !shape_same(&s->shape, &p->shape) :
        p->shape.n != 2 || s->bytes != quantized_bytes(p->bits, (long)p->shape.d[0], (long)p->shape.d[1]));
    if (p && !alone && c->bound && other)
        return FAULT(c, s->loc, "state %s has not the shape of its parameter", s->name);
    if (s->param >= 0 && !in_list(s->op, g->nf))
        return FAULT(c, s->loc, "state %s belongs to no forward operator", s->name);
    Type want = few ? U8 : s->kind == S_COPY ? g->compute : s->kind == S_NORM || s->kind == S_BLOCKS ? F64 : F32;
    return s->type == want || FAULT(c, s->loc, "state %s has type %s", s->name, type_name(s->type));
}

/* Names become C identifiers and words of comments.  A graph from a file must not bring others. */
static bool is_legal(const char *name)
{
    return name && *name && !strchr(".0123456789", *name) && !name[strspn(name, C_WORD ".")]
        && strlen(name) < 2 * MAX_PATH;
}

static bool check_names(GraphCheck *c)
{
    const Graph *g = c->g;
    Names tensors = {0}, states = {0}, ops = {0};
    for (int i = 0; i < g->tensor.n + g->state.n + g->nf; i++) {
        int s = i - g->tensor.n, o = s - g->state.n;
        const char *name = s < 0 ? g->tensor.at[i].name : o < 0 ? g->state.at[s].name : g->op.at[o].name;
        Loc at = s < 0 ? g->tensor.at[i].loc : o < 0 ? g->state.at[s].loc : g->op.at[o].loc;
        Names *in = s < 0 ? &tensors : o < 0 ? &states : &ops;
        if (!is_legal(name))
            return FAULT(c, at, "'%s' is no name", name ? name : "");
        if (names_get(in, name_as_c(name)) >= 0)
            return FAULT(c, at, "%s is a name twice", name);
        names_put(in, name_as_c(name), i);
    }
    return true;
}

/* ---- order ------------------------------------------------------------------------------------------------------- */

static bool check_order_of(GraphCheck *c, int i)
{
    const Graph *g = c->g;
    const Op *o = &g->op.at[i], *before = i > g->nf ? o - 1 : NULL;
    if (i < g->nf)
        return (o->phase == PH_F && o->fwd == i) || FAULT(c, o->loc, "%s: a forward operator must stand here", o->name);
    if (i >= g->nb)
        return (o->phase == PH_U && o->fwd == -1) || FAULT(c, o->loc, "%s: an update must stand here", o->name);
    if ((o->phase != PH_I && o->phase != PH_W) || !in_list(o->fwd, g->nf))
        return FAULT(c, o->loc, "%s: a backward operator must stand here", o->name);
    if (before && (before->fwd < o->fwd || (before->fwd == o->fwd && before->phase == PH_W && o->phase == PH_I)))
        return FAULT(c, o->loc, "%s, %s: stands behind %s, %s", OP(o), OP(before));
    return true;
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static bool is_opaque(const Op *o)
{
    return !strcmp(row(o->row)->name, "Opaque");
}

/* Is this one of the calls, such as "da = dy; f(db, dy, n)": the same name, the same words? */
static bool is_call(const Op *o, const char *calls)
{
    size_t n = strlen(o->call);
    for (const char *p = calls; (p = strstr(p, o->call)); p += n) {
        const char *word = p + n;
        bool same = *word++ == '(' && (p == calls || p[-1] == ' ' || p[-1] == ';');
        for (int i = 0; same && i < o->arg.n; i++) {
            size_t k = strcspn(word, ",)");
            same = strlen(o->arg.at[i].token) == k && !memcmp(word, o->arg.at[i].token, k);
            word += k;
            same &= *word == (i == o->arg.n - 1 ? ')' : ',');
            word += strspn(word, ", ");
        }
        if (same)
            return true;
    }
    return false;
}

static bool check_call(GraphCheck *c, const Op *o)
{
    if (!in_list(o->row, row_count()))
        return FAULT(c, o->loc, "%s: no row %d", o->name, o->row);
    if (!is_legal(o->name) || !o->layer || (*o->layer && !is_legal(o->layer)))
        return FAULT(c, o->loc, "'%s' in layer '%s' is no name", o->name, o->layer ? o->layer : "");
    if (!c->bound)
        return true;
    if (o->tmp < 0 || o->flop < 0 || o->moved < 0 || o->ns < 0)
        return FAULT(c, o->loc, "%s, %s: negative scratch, arithmetic, bytes or time", OP(o));
    if (o->on.n && o->on.n != c->g->kind.n)
        return FAULT(c, o->loc, "%s, %s: %d times, of %d kinds", OP(o), o->on.n, c->g->kind.n);
    if (o->pass_flop < 0 || o->pass_flop > o->flop || o->pass_moved < 0 || o->pass_moved > o->moved)
        return FAULT(c, o->loc, "%s, %s: passes over scratch take more than all of the call", OP(o));
    const Row *r = row(o->row);
    static const char *const opaque[] = {"opaque_forward", "opaque_backward", "opaque_weight"};
    if (is_opaque(o) && c->g->timed)
        return (o->call && o->phase <= PH_W && !strcmp(o->call, opaque[o->phase]))
            || FAULT(c, o->loc, "%s, %s: no call of an opaque operator", OP(o));
    static const int call_of[] = {[PH_F] = 0, [PH_I] = 1, [PH_W] = 2, [PH_U] = 0};
    bool by_grad = r->internal && o->phase == PH_I;     /* GradAdd, LossAdd, LossSeed: made by grad, called forward */
    if (!o->call || !(is_call(o, r->call[call_of[o->phase]]) || (by_grad && is_call(o, r->call[0]))))
        return FAULT(c, o->loc, "%s, %s: row %s has no call %s of these words", OP(o), r->name, o->call ? o->call : "");
    return true;
}

/* ---- arguments --------------------------------------------------------------------------------------------------- */

typedef struct { const Op *o; const Arg *a; const Operand *operand; bool par, in, grad, forward; } GraphUse;

static const Operand *find(const Operand *at, int n, const char *word)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(at[i].name, word))
            return &at[i];
    return NULL;
}

/* The meaning of a word of a call by the table: an operand, a result, a parameter, or the gradient of one. */
static GraphUse use_of(const Op *o, const Arg *a)
{
    const Row *r = row(o->row);
    GraphUse u = {.o = o, .a = a};
    u.forward = o->phase == PH_F || (o->phase == PH_I && is_call(o, r->call[0]));
    for (int d = 0; !u.operand && d <= (a->token[0] == 'd'); d++) {
        u.grad = d;
        if ((u.operand = find(r->in.at, r->in.n, a->token + d)))
            u.in = true;
        else if ((u.operand = find(r->par.at, r->par.n, a->token + d)))
            u.par = true;
        else
            u.operand = find(r->out.at, r->out.n, a->token + d);
    }
    return u;
}

static ArgKind kind_of(const GraphUse *u)
{
    if (u->par)
        return u->grad ? ARG_ADD : ARG_READ;
    if (u->forward)
        return u->in ? ARG_READ : ARG_WRITE;
    return u->in && u->grad && u->o->phase == PH_I ? ARG_WRITE : ARG_READ;
}

static Type type_of(const Graph *g, char letter)
{
    return letter == 'f' ? F32 : letter == 'i' ? I32 : letter == 'q' ? U8 : g->compute;
}

/* Equal but for ones in front: Add takes [1, 3] and [3], and hands its gradient to both. */
static bool same_elements(const Shape *a, const Shape *b)
{
    int i = 0, k = 0;
    while (i < a->n - 1 && a->d[i] == 1)
        i++;
    while (k < b->n - 1 && b->d[k] == 1)
        k++;
    return a->n - i == b->n - k && !memcmp(a->d + i, b->d + k, (size_t)(a->n - i) * sizeof a->d[0]);
}

/* The same word must be the same tensor in forward and backward.  dX is made as the gradient of X.  Its reader may read an
 * alias, made for a tensor further down. */
static bool same_as_forward(const Graph *g, const GraphUse *u)
{
    const Arg *f = u->forward ? NULL : op_arg(&g->op.at[u->o->fwd], u->a->token + u->grad);
    if (!f || u->a->kind == ARG_NONE)
        return true;
    if (u->par) {
        const State *s = &g->state.at[u->a->index], *p = f->kind == ARG_NONE ? NULL : &g->state.at[f->index];
        return p && (u->grad ? s->param == p->param && s->kind == S_GRAD && s->op == u->o->fwd : s == p);
    }
    if (!u->grad)
        return u->a->index == f->index;
    const Tensor *t = &g->tensor.at[u->a->index], *of = &g->tensor.at[f->index];
    return t->kind == T_GRAD &&
        (u->in ? t->of == f->index : same_elements(&t->shape, &of->shape) || all_rows(g, t, of) || other_codes(t, of));
}

static bool check_tensor_arg(GraphCheck *c, const GraphUse *u, int i)
{
    const Graph *g = c->g;
    const Op *o = u->o;
    const Tensor *t = &g->tensor.at[u->a->index];
    int *maker = &c->maker[u->a->index];
    if (t->type != type_of(g, u->operand->type))
        return FAULT(c, o->loc, "%s, %s: %s has type %s", OP(o), u->a->token, type_name(t->type));
    if (u->a->kind == ARG_READ && t->kind != T_INPUT && (*maker < 0 || *maker == i))
        return FAULT(c, o->loc, "%s, %s: reads %s before it is made", OP(o), t->name);
    if (u->a->kind == ARG_WRITE && (*maker >= 0 || t->op != i))
        return FAULT(c, o->loc, "%s, %s: makes %s, which another operator makes", OP(o), t->name);
    if (u->a->kind == ARG_WRITE)
        *maker = i;
    return true;
}

static bool check_state_arg(GraphCheck *c, const GraphUse *u)
{
    const State *s = &c->g->state.at[u->a->index];
    Type want = u->grad ? F32 : type_of(c->g, u->operand->type);
    StateKind kind = u->grad ? S_GRAD : want == F32 ? S_PARAM : S_COPY;
    if (s->kind != kind || s->type != want)
        return FAULT(c, u->o->loc, "%s, %s: %s cannot be %s", OP(u->o), u->a->token, s->name);
    if (c->g->state.at[s->param].tracked != u->operand->tracked)
        return FAULT(c, u->o->loc, "%s, %s: %s cannot be %s", OP(u->o), u->a->token, s->name);
    c->adds[u->a->index] += u->grad;
    return true;
}

/* The gradient of a frozen parameter is nowhere. */
static bool frozen(const Graph *g, const GraphUse *u)
{
    const Arg *f = u->par && u->grad ? op_arg(&g->op.at[u->o->fwd], u->a->token + 1) : NULL;
    return f && f->kind == ARG_READ && f->state && g->state.at[g->state.at[f->index].param].frozen;
}

static bool check_operand(GraphCheck *c, const GraphUse *u, int i)
{
    const Graph *g = c->g;
    const Arg *a = u->a;
    if (a->kind == ARG_NONE)
        return u->operand->optional || (u->grad && u->in) || frozen(g, u)
            || FAULT(c, u->o->loc, "%s, %s: %s is missing", OP(u->o), a->token);
    if (a->kind != kind_of(u) || a->state != u->par || !in_list(a->index, u->par ? g->state.n : g->tensor.n))
        return FAULT(c, u->o->loc, "%s, %s: wrong argument for %s", OP(u->o), a->token);
    if (!same_as_forward(g, u))
        return FAULT(c, u->o->loc, "%s, %s: %s is not that of the forward operator", OP(u->o), a->token);
    return u->par ? check_state_arg(c, u) : check_tensor_arg(c, u, i);
}

/* Words of an opaque operator: x0, x1 ... and their gradients are as many as the node has sources. */
static bool check_opaque_arg(GraphCheck *c, const Op *o, const Arg *a, int i)
{
    static const struct { const char *word; Phase phase; ArgKind kind; bool state; } words[] = {
        {"y", PH_F, ARG_WRITE, false}, {"saved", PH_F, ARG_WRITE, false}, {"loss", PH_F, ARG_WRITE, false},
        {"x", PH_F, ARG_READ, false}, {"weight", PH_F, ARG_READ, true},
        {"dx", PH_I, ARG_WRITE, false}, {"dy", PH_I, ARG_READ, false}, {"y", PH_I, ARG_READ, false},
        {"saved", PH_I, ARG_READ, false}, {"weight", PH_I, ARG_READ, true}, {"dweight", PH_I, ARG_ADD, true},
        {"dy", PH_W, ARG_READ, false}, {"y", PH_W, ARG_READ, false}, {"saved", PH_W, ARG_READ, false},
        {"dweight", PH_W, ARG_ADD, true},
    };
    size_t k = 0, n = strcspn(a->token, "0123456789");
    bool number = n > 0 && a->token[n - 1] == 'x' && a->token[n] && !a->token[n + strspn(a->token + n, "0123456789")];
    n = number ? n : strlen(a->token);
    while (k < sizeof words / sizeof *words && (strlen(words[k].word) != n || memcmp(words[k].word, a->token, n)
                                                || words[k].phase != o->phase || number != (words[k].word[n - 1] == 'x')))
        k++;
    if (k == sizeof words / sizeof *words || a->kind != words[k].kind || a->state != words[k].state
        || !in_list(a->index, a->state ? c->g->state.n : c->g->tensor.n))
        return FAULT(c, o->loc, "%s, %s: wrong argument for %s", OP(o), a->token);
    const Operand real = {.name = a->token, .type = 'f'};
    GraphUse u = {.o = o, .a = a, .operand = &real, .par = a->state, .grad = a->token[0] == 'd', .forward = o->phase == PH_F};
    u.in = number;
    if (strcmp(a->token, "dy") && !same_as_forward(c->g, &u))
        return FAULT(c, o->loc, "%s, %s: %s is not that of the forward operator", OP(o), a->token);
    return a->state ? check_state_arg(c, &u) : check_tensor_arg(c, &u, i);
}

/* Words of PH_U. */
static bool check_update_arg(GraphCheck *c, const Op *o, const Arg *a)
{
    static const struct { const char *word; ArgKind kind; StateKind state; } legal[] = {
        {"p", ARG_UPDATE, S_PARAM}, {"c", ARG_WRITE, S_COPY}, {"m", ARG_UPDATE, S_MOMENT1},
        {"v", ARG_UPDATE, S_MOMENT2}, {"centre", ARG_UPDATE, S_CENTRE}, {"old", ARG_UPDATE, S_DRIFT},
        {"g", ARG_READ, S_GRAD}, {"g", ARG_UPDATE, S_GRAD}, {"other", ARG_READ, S_GRAD},
        {"norm", ARG_UPDATE, S_NORM}, {"norm", ARG_READ, S_NORM}, {"clip", ARG_WRITE, S_CLIP},
        {"clip", ARG_READ, S_CLIP}, {"blocks", ARG_UPDATE, S_BLOCKS}, {"blocks", ARG_READ, S_BLOCKS},
        {"y", ARG_WRITE, S_COPY}, {"x", ARG_READ, S_PARAM},
        {"mean", ARG_UPDATE, S_PARAM}, {"var", ARG_UPDATE, S_PARAM}, {"count", ARG_UPDATE, S_PARAM},
        {"amax", ARG_UPDATE, S_PARAM}, {"seen", ARG_READ, S_GRAD},
        {"sum_mean", ARG_READ, S_GRAD}, {"sum_var", ARG_READ, S_GRAD}, {"sum_count", ARG_READ, S_GRAD},
    };
    if (a->kind == ARG_NONE)
        return strchr("cm", a->token[0]) || FAULT(c, o->loc, "%s, %s: %s is missing", OP(o), a->token);
    for (size_t i = 0; i < sizeof legal / sizeof *legal; i++)
        if (!strcmp(legal[i].word, a->token) && legal[i].kind == a->kind && a->state && in_list(a->index, c->g->state.n)
            && legal[i].state == c->g->state.at[a->index].kind) {
            const State *s = &c->g->state.at[a->index];
            c->updates[a->index] += a->kind == ARG_UPDATE;
            const State *p = s->param >= 0 ? &c->g->state.at[s->param] : NULL;
            bool track = strstr(row(o->row)->name, "Track") != NULL;
            if (p && (p->tracked != track || (!track && strcmp(p->name, o->name))))
                return FAULT(c, o->loc, "%s, %s: %s belongs to another parameter", OP(o), s->name);
            return true;
        }
    return FAULT(c, o->loc, "%s, %s: wrong argument for %s", OP(o), a->token);
}

/* The norm of a single parameter is reported nowhere. */
static bool unreported(const Op *o, const Arg *a)
{
    return a->kind == ARG_NONE && !strcmp(a->token, "vals") && !strcmp(o->call, "norm_total");
}

/* Those of the step, or of one of the parameter groups behind them. */
static bool are_values(const Graph *g, const Arg *a)
{
    return a->index == g->vals && a->i >= 0 && a->i < g->state.at[g->vals].bytes / (Bytes)sizeof(Values);
}

static bool check_arg(GraphCheck *c, const Op *o, const Arg *a, int i)
{
    static const struct { const char *word; ArgKind kind; } words[] = {
        {"tmp", ARG_TMP}, {"vals", ARG_VALS}, {"acc", ARG_ACC}, {"mb", ARG_MB}, {"h", ARG_HANDLE},
        {"late", ARG_LATE},
    };
    for (size_t k = 0; k < sizeof words / sizeof *words; k++)
        if (!strcmp(words[k].word, a->token))
            return (a->kind == words[k].kind && (a->kind != ARG_VALS || are_values(c->g, a))) || unreported(o, a)
                || (a->kind == ARG_NONE && words[k].kind == ARG_TMP && !o->tmp)
                || FAULT(c, o->loc, "%s, %s: wrong argument for %s", OP(o), a->token);
    if (is_opaque(o))
        return check_opaque_arg(c, o, a, i);
    if (arg_role(a) == ROLE_ONTO) {
        /* A call may add its result to a tensor that was made before, of the same type and size. */
        static const Operand real = {.name = "onto", .type = 'r'};
        const GraphUse u = {.o = o, .a = a, .operand = &real};
        const Tensor *t = c->g->tensor.at;
        if (a->kind == ARG_NONE)
            return true;
        if (a->kind != ARG_READ || a->state || !in_list(a->index, c->g->tensor.n) || o->arg.at[0].kind != ARG_WRITE
            || t[a->index].bytes != t[o->arg.at[0].index].bytes)
            return FAULT(c, o->loc, "%s, %s: wrong argument for %s", OP(o), a->token);
        return check_tensor_arg(c, &u, i);
    }
    GraphUse u = use_of(o, a);
    if (u.operand)
        return check_operand(c, &u, i);
    if (a->kind == ARG_INT || a->kind == ARG_FLOAT)
        return true;
    return o->phase == PH_U ? check_update_arg(c, o, a)
                            : FAULT(c, o->loc, "%s, %s: wrong argument for %s", OP(o), a->token);
}

/* ---- sizes by axes ----------------------------------------------------------------------------------------------- */

static int64_t number_of(const void *ctx, const char *word)
{
    const Arg *a = op_arg(ctx, word);
    const Attr *attr = a ? NULL : attr_find(ctx, word);
    return a && a->kind == ARG_INT ? a->i : attr && attr->is_int ? attr->i : -1;
}

/* Each operand, parameter and result of a forward call has the elements that the axes of its row give it. */
static bool check_axes(GraphCheck *c, const Op *o)
{
    const Graph *g = c->g;
    const Row *r = row(o->row);
    const RowAxes axes = row_axes(r);
    for (int i = 0; i < axes.lists; i++) {
        int par = i - r->in.n, out = par - r->par.n;
        const char *name = par < 0 ? r->in.at[i].name : out < 0 ? r->par.at[par].name : r->out.at[out].name;
        const Arg *a = op_arg(o, name);
        int64_t want = dims_size(&axes, &axes.list[i], number_of, o);
        if (!a || a->kind == ARG_NONE || want < 0)
            continue;
        Bytes bytes = a->state ? g->state.at[a->index].bytes : g->tensor.at[a->index].bytes;
        Type type = a->state ? g->state.at[a->index].type : g->tensor.at[a->index].type;
        if (bytes != want * type_bytes(type))
            return FAULT(c, o->loc, "%s, %s: %s has %lld bytes, and by its axes %lld elements", OP(o), name,
                         (long long)bytes, (long long)want);
    }
    return true;
}

static bool check_op(GraphCheck *c, int i)
{
    const Op *o = &c->g->op.at[i];
    if (!check_order_of(c, i) || !check_call(c, o))
        return false;
    for (int k = 0; c->bound && k < o->arg.n; k++)
        if (!check_arg(c, o, &o->arg.at[k], i))
            return false;
    return !c->bound || o->phase != PH_F || check_axes(c, o);
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

static bool check_ends(GraphCheck *c)
{
    const Graph *g = c->g;
    Loc none = {0, 0, 0};
    for (int i = 0; c->bound && i < g->tensor.n; i++)
        if (g->tensor.at[i].kind != T_INPUT && c->maker[i] < 0)
            return FAULT(c, g->tensor.at[i].loc, "nothing makes tensor %s", g->tensor.at[i].name);
    if (g->loss == -1 && c->whole)
        return FAULT(c, none, "the graph has a backward, and no loss");
    bool loss = g->loss != -1;
    if (loss && (!in_list(g->loss, g->tensor.n) || g->tensor.at[g->loss].kind != T_ACT || g->tensor.at[g->loss].type != F32))
        return FAULT(c, none, "the graph has no loss");
    if (c->bound && loss && g->tensor.at[g->loss].bytes != type_bytes(F32))
        return FAULT(c, g->tensor.at[g->loss].loc, "the loss is not one number");
    if (c->bound && !in_list(g->vals, g->state.n))
        return FAULT(c, none, "the graph has no step values");
    for (int s = 0; c->whole && s < g->state.n; s++) {
        const State *x = &g->state.at[s];
        if (x->kind == S_GRAD && c->adds[s] != 1)
            return FAULT(c, x->loc, "%s is filled by %d calls", x->name, c->adds[s]);
        if (x->kind == S_GRAD)
            c->adds[x->param]++;
        if (x->kind == S_PARAM && c->updates[s] != !x->frozen)
            return FAULT(c, x->loc, "parameter %s has %d updates", x->name, c->updates[s]);
        if (x->param >= 0 && x->kind != S_PARAM && x->kind != S_COPY && g->state.at[x->param].frozen)
            return FAULT(c, x->loc, "%s belongs to a frozen parameter", x->name);
    }
    for (int s = 0; c->whole && s < g->state.n; s++)
        if (g->state.at[s].kind == S_PARAM && !g->state.at[s].frozen && !c->adds[s])
            return FAULT(c, g->state.at[s].loc, "parameter %s has no gradient", g->state.at[s].name);
    return true;
}

static bool is_hash(const char *text)
{
    return !text || !*text || (strlen(text) == 64 && strspn(text, "0123456789abcdef") == 64);
}

static bool check_sizes(GraphCheck *c)
{
    const Graph *g = c->g;
    Loc none = {0, 0, 0};
    if (g->nf < 1 || g->nf > g->op.n || (c->whole && (g->nb < g->nf || g->nb > g->op.n)))
        return FAULT(c, none, "%d operators, %d of them forward, updates from %d", g->op.n, g->nf, g->nb);
    if ((g->compute != F32 && g->compute != BF16) || g->batch < 1 || g->micro < 1 || g->groups < 1 || g->micro % g->groups)
        return FAULT(c, none, "a batch of %lld samples, %lld micro-batches, %lld groups", (long long)g->batch,
                     (long long)g->micro, (long long)g->groups);
    if (g->blocks < 0 || g->blocks == 1 || g->blocks > 16 || g->blocks & (g->blocks - 1))
        return FAULT(c, none, "%lld blocks: 2, 4, 8 and 16 are, and 0 for one", (long long)g->blocks);
    if (!is_hash(g->model) || !is_hash(g->calls))
        return FAULT(c, none, "model and calls are 64 digits 0-9 a-f each, or not there");
    return true;
}

const char *graph_fault(const Graph *g, Loc *at)
{
    GraphCheck c = {.g = g, .bound = g->op.n > 0 && g->op.at[0].call, .whole = g->op.n > g->nf};
    size_t tensors = (size_t)g->tensor.n * sizeof(int), states = (size_t)g->state.n * sizeof(int);
    c.maker = alloc(tensors);
    c.adds = alloc(states);
    c.updates = alloc(states);
    memset(c.maker, -1, tensors);
    bool good = check_sizes(&c) && check_names(&c);
    for (int i = 0; good && i < g->tensor.n; i++)
        good = check_tensor(&c, &g->tensor.at[i]);
    for (int i = 0; good && i < g->state.n; i++)
        good = check_state(&c, i);
    for (int i = 0; good && i < g->op.n; i++)
        good = check_op(&c, i);
    if (good)
        check_ends(&c);
    *at = c.at;
    return c.fault;
}

void check_graph(const Graph *g)
{
    Loc at;
    const char *fault = graph_fault(g, &at);
    if (fault)
        die("graph: %s:%d: %s", diag_path(at), at.line, fault);
}
