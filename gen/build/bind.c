/* SPDX-License-Identifier: Apache-2.0
 *
 * bind.c: from the text of a call in ops.def to arguments.
 *
 * "linear_backward_x(dx, dy, weight, h, rows, in, out)" becomes one Arg a token.  A token is looked up as a word of the call
 * language (tmp vals acc mb h onto).  Then it may be an operand, a parameter or a result of the row; then the gradient of one
 * of these; then an attribute.  The order matters once: Concat has an operand called d.
 *
 * The meaning of a token depends on the phase.  Forward writes its results and reads its operands.  Backward reads all of
 * them. grad knows which gradients it writes, and into which tensors: it passes dt().
 *
 * needs: shapes, states and attributes; for W calls the S_GRAD states of the forward operator. fills: call, arg, tmp, moved.
 * fails: never for a reason in the model; a token nobody knows is a bug in ops.def.
 */
#include "build.h"

typedef struct {
    Graph *g;
    Op *o;
    const Op *src;              /* whose operands the tokens name: the forward operator, or o itself */
    const Row *r;
    int (*dt)(void *ctx, const char *token, bool *write);
    void *ctx;
} Binder;

static void tensor_arg(Arg *a, ArgKind kind, int tensor)
{
    a->kind = tensor < 0 ? ARG_NONE : kind;
    a->index = tensor;
}

/* What a parameter is read from: the f32 master, or the copy beside it where the kernel reads the compute type, or few bits. */
static int read_state(const Graph *g, int param, char type)
{
    if (type == 'f' || (type != 'q' && g->compute == F32))
        return param;
    if (param + 1 >= g->state.n || g->state.at[param + 1].kind != S_COPY)
        die("parameter %s has no copy in the compute type", g->state.at[param].name);
    return param + 1;
}

static bool bind_operand(Binder *b, Arg *a)
{
    int i = INDEX_OF(b->r->in.at, b->r->in.n, a->token);
    if (i >= 0)
        return tensor_arg(a, ARG_READ, b->src->in.at[i]), true;
    i = INDEX_OF(b->r->out.at, b->r->out.n, a->token);
    if (i >= 0)
        return tensor_arg(a, b->dt ? ARG_READ : ARG_WRITE, b->src->out.at[i]), true;
    i = INDEX_OF(b->r->par.at, b->r->par.n, a->token);
    if (i < 0)
        return false;
    int param = b->src->par.at[i];
    a->state = param >= 0;
    tensor_arg(a, ARG_READ, param < 0 ? -1 : read_state(b->g, param, b->r->par.at[i].type));
    return true;
}

/* The accumulator of this operator's use of a parameter.  grad makes all of them right behind the step values, by
 * ascending parameter and operator, before it binds the first W call. */
static int grad_state(const Graph *g, int param, int op)
{
    int lo = g->vals + 1, hi = g->state.n;
    while (lo < hi) {
        int mid = lo + (hi - lo) / 2;
        const State *s = &g->state.at[mid];
        if (s->param < param || (s->param == param && s->op < op))
            lo = mid + 1;
        else
            hi = mid;
    }
    const State *s = &g->state.at[lo];
    if (lo == g->state.n || s->kind != S_GRAD || s->param != param || s->op != op)
        die("no gradient state of parameter %s, operator %s", g->state.at[param].name, g->op.at[op].name);
    return lo;
}

static bool bind_gradient(Binder *b, Arg *a)
{
    const char *of = a->token + 1;
    if (!b->dt || a->token[0] != 'd')
        return false;
    int i = INDEX_OF(b->r->par.at, b->r->par.n, of);
    if (i >= 0) {
        int param = b->src->par.at[i];
        bool none = param < 0 || b->g->state.at[param].frozen;
        a->state = !none;
        tensor_arg(a, ARG_ADD, none ? -1 : grad_state(b->g, param, (int)(b->src - b->g->op.at)));
        return true;
    }
    if (INDEX_OF(b->r->in.at, b->r->in.n, of) < 0 && INDEX_OF(b->r->out.at, b->r->out.n, of) < 0)
        return false;
    bool write = false;
    int t = b->dt(b->ctx, a->token, &write);
    tensor_arg(a, write ? ARG_WRITE : ARG_READ, t);
    return true;
}

static bool bind_word(Binder *b, Arg *a)
{
    static const char *const tmp_of[] = {[PH_F] = "tmp.F", [PH_I] = "tmp.I", [PH_W] = "tmp.W"};
    static const struct { const char *word; ArgKind kind; } words[] = {
        {"tmp", ARG_TMP}, {"vals", ARG_VALS}, {"acc", ARG_ACC}, {"mb", ARG_MB}, {"h", ARG_HANDLE},
        {"onto", ARG_NONE},
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcmp(words[i].word, a->token)) {
            a->kind = words[i].kind;
            a->state = a->kind == ARG_VALS;
            a->index = a->state ? b->g->vals : -1;
            if (a->kind == ARG_TMP) {
                b->o->tmp = attr_int(b->src, tmp_of[b->o->phase]);
                a->kind = b->o->tmp ? ARG_TMP : ARG_NONE;
                b->o->moved += 2 * b->o->tmp;       /* written, and read again; `idle` bytes only where W joins I */
                b->o->moved -= b->o->phase == PH_I ? 2 * attr_int(b->src, "idle") : 0;
            }
            return true;
        }
    return false;
}

static bool bind_attr(Binder *b, Arg *a)
{
    const Attr *at = attr_find(b->src, a->token);
    if (!at)
        return false;
    a->kind = at->is_int ? ARG_INT : ARG_FLOAT;
    a->i = at->i;
    a->f = at->f;
    a->index = -1;
    return true;
}

void bind_call(Graph *g, Op *o, const char *call, const Op *fwd,
               int (*dt)(void *ctx, const char *token, bool *write), void *ctx)
{
    const Op *src = fwd ? fwd : o;
    Binder b = {g, o, src, row(src->row), dt, ctx};
    call += strspn(call, " ");
    size_t n = strcspn(call, "(");
    if (!call[n])
        die("%s: no call: %s", b.r->name, call);
    o->call = strf("%.*s", (int)n, call);
    o->arg.n = 0;
    o->moved = 0;
    for (const char *p = call + n + 1; *p && *p != ')'; p += strspn(p, ", ")) {
        n = strcspn(p, ",) ");
        Arg *a = PUSH(&o->arg);
        *a = (Arg){.token = strf("%.*s", (int)n, p), .index = -1};
        if (!bind_word(&b, a) && !bind_operand(&b, a) && !bind_gradient(&b, a) && !bind_attr(&b, a))
            die("%s, call %s: nothing is called %s", b.r->name, o->call, a->token);
        Bytes bytes = a->kind > ARG_UPDATE ? 0 : a->state ? g->state.at[a->index].bytes : g->tensor.at[a->index].bytes;
        o->moved += a->kind == ARG_ADD || a->kind == ARG_UPDATE ? 2 * bytes : bytes;
        p += n;
    }
}
