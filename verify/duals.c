/* SPDX-License-Identifier: Apache-2.0
 *
 * duals.c: is the backward half of model.graph the gradient of its forward half, and does each parameter take its own?
 *
 * Method: reverse accumulation by a table of duals, duals.def.  The one order is that of docs/text.md and docs/operators.md:
 *
 *   the seed of the loss; then forward operators, descending: gradients of operands, additions, gradients of parameters
 *   the gradient of a value is the sum of those of its readers, one addition behind the other, in that order
 *   each use of a parameter has a gradient of its own; the later ones are added to the earlier ones; then norms, then updates
 *
 * So the next operator is known, with each of its operands, and one is compared with the other.  A word of a dual call is
 * that of the forward call; a literal that it lacks is bounded by the extents of calls.def, or compared with the model.
 *
 * Cost: linear in operators.  Not compared: a graph of which a forward call has no row in duals.def; the report names it.
 */
#include "verify.h"
#include <string.h>

typedef struct { const char *call, *duals; } Dual;
#define DUAL(call, duals) {#call, duals},
#define ALSO(call, other)
static const Dual duals[] = {
#include "duals.def"
    {NULL, NULL}
};
#undef DUAL
#undef ALSO
#define DUAL(call, duals)
#define ALSO(call, other) {#call, #other},
static const Dual also[] = {
#include "duals.def"
    {NULL, NULL}
};

typedef struct {
    const Graph *g;
    int at;                     /* the operator that is next */
    const GraphOp *f;           /* the forward operator at hand, and the words of its call */
    const Row *row;
    const char **sum, *term[MOST_PARAMS];       /* by tensor: its gradient so far; by word: from this operator */
    bool *wanted, *made;        /* by tensor: does a parameter that learns reach it; is it written */
    int *uses;                  /* by parameter, from 1 on: gradients that no call has added to yet */
    int64_t *blocks;            /* of its norm */
    int *first, *after;         /* states by parameter, from 1 on: a list each; in front that of none */
} Back;

static const char *duals_of(const char *call)
{
    for (const Dual *d = duals; d->call; d++)
        if (!strcmp(d->call, call))
            return d->duals;
    return NULL;
}

/* ---- things ------------------------------------------------------------------------------------------------------ */

static int tensor(const Back *b, const char *name)
{
    return map_at(&b->g->tensors, name);
}

/* The parameter that a state belongs to. */
static int param(const Back *b, const char *state)
{
    const Thing *t = &b->g->state.at[map_at(&b->g->states, state)];
    return t->of ? map_at(&b->g->states, name_of(t->of, strlen(t->of))) : -1;
}

static bool learns(const Thing *t)
{
    return !strcmp(t->kind, "param") && !t->tracked && !t->frozen;
}

/* Of parameter p; -1: of all. */
static const Thing *state_of(const Back *b, int p, const char *kind, int use)
{
    for (int i = b->first[p + 1]; i; i = b->after[i]) {
        const Thing *t = &b->g->state.at[i - 1];
        if (!strcmp(t->kind, kind) && t->use == use)
            return t;
    }
    return NULL;
}

/* ---- what the next operator must be ------------------------------------------------------------------------------ */

static const char *arg_text(const GraphArg *a)
{
    return a->sign == 'i' ? joined_text("i:%lld", (long long)a->i) : a->sign == 'f' ? joined_text("f:%a", a->f) :
        a->name ? joined_text("%c:%s", a->sign, a->name) : a->sign == '0' ? "0" : a->sign == 'v' ? "vals" :
        "another word";
}

static _Noreturn void differs(const Back *b, const GraphOp *o, const char *token, const char *want, const char *got)
{
    stop(NOT_PROVED, "%s:%d: %s: '%s' is %s, and %s must stand there: %s", b->g->path, o->line, o->call, token, got, want,
         b->f ? joined_text("it is the gradient of line %d", b->f->line) : "it is the update");
}

/* The call itself, or the one that may stand in its place. */
static bool is_call(const char *is, const char *call)
{
    bool same = !strcmp(is, call);
    for (const Dual *d = also; d->call; d++)
        same |= !strcmp(d->call, call) && !strcmp(d->duals, is);
    return same;
}

static const GraphOp *next(Back *b, char phase, const char *call)
{
    const GraphOp *o = b->at < b->g->op.n ? &b->g->op.at[b->at++] : NULL;
    if (!o || o->phase != phase || !is_call(o->call, call))
        stop(NOT_PROVED, "%s:%d: %s in phase %c must stand here: %s", b->g->path, o ? o->line : 0, call, phase,
             b->f ? joined_text("it is the gradient of line %d, %s", b->f->line, b->f->call) : "it is the update");
    return o;
}

static const GraphArg *word_of(const GraphOp *o, const char *name)
{
    int k = row_param(row_named(o->call), name);
    return k < 0 ? NULL : &o->arg.at[k];
}

static void want_arg(const Back *b, const GraphOp *o, const char *token, GraphArg other)
{
    const GraphArg *a = word_of(o, token);
    if (a->sign != other.sign || a->name != other.name || a->i != other.i || memcmp(&a->f, &other.f, sizeof a->f))
        differs(b, o, token, arg_text(&other), arg_text(a));
}

static void want(const Back *b, const GraphOp *o, const char *token, char sign, const char *name)
{
    want_arg(b, o, token, (GraphArg){.sign = name ? sign : '0', .name = name});
}

static void want_int(const Back *b, const GraphOp *o, const char *token, int64_t i)
{
    want_arg(b, o, token, (GraphArg){.sign = 'i', .i = i});
}

/* A gradient that is made here, and nowhere else. */
static const char *fresh(const Back *b, const GraphOp *o, const char *token)
{
    const GraphArg *a = word_of(o, token);
    int t = a->sign == 'w' ? tensor(b, a->name) : -1;
    if (t < 0 || strcmp(b->g->tensor.at[t].kind, "grad") || b->made[t])
        differs(b, o, token, "a new gradient", arg_text(a));
    b->made[t] = true;
    return a->name;
}

/* ---- words of a dual call ---------------------------------------------------------------------------------------- */

typedef struct { const char *call, *with; char phase; } DualCall;

/* What a word of a dual call is called in the forward call. */
static const char *bound(const DualCall *c, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = c->with; (p = strstr(p, word)); p += n)
        if (p > c->with && (p[-1] == '[' || p[-1] == ' ') && p[n] == '=')
            return name_of(p + n + 1, strcspn(p + n + 1, " ]"));
    return word;
}

/* dNAME: the word NAME of the forward call; -1: it is none. */
static int gradient_of(const Back *b, const char *word)
{
    return word[0] == 'd' ? row_param(b->row, word + 1) : -1;
}

static bool is_wanted(const Back *b, int k)
{
    const GraphArg *a = &b->f->arg.at[k];
    if (a->sign == 'R') {
        int p = param(b, a->name);
        return p >= 0 && (b->g->state.at[p].tracked || learns(&b->g->state.at[p]));
    }
    return a->sign == 'r' && b->wanted[tensor(b, a->name)];
}

static bool makes(const Param *p)
{
    return p->mode == 'w' || p->mode == 'a';
}

/* A parameter's gradient of this use: uses are numbered from the first, and come from the last. */
static void want_gradient(Back *b, const GraphOp *o, const char *token, int p)
{
    const Thing *t = p >= 0 && b->uses[p + 1] > 0 ? state_of(b, p, "grad", --b->uses[p + 1]) : NULL;
    if (!t)
        stop(NOT_PROVED, "%s:%d: %s has more uses than gradients", b->g->path, o->line, token);
    want(b, o, token, 'A', t->name);
}

/* Axis k of a permutation p of d, back: axis p[k] of what it made is d[k]. */
static int64_t turned(const Back *b, char what, int k)
{
    const GraphArg *a = b->f->arg.at;
    int d0 = row_param(b->row, "d0"), p0 = row_param(b->row, "p0");
    for (int j = 0; j < 4; j++)
        if (what == 'd' ? j == k : a[p0 + j].i == k)
            return what == 'd' ? a[d0 + (a[p0 + j].i & 3)].i : j;
    return -1;
}

static void want_literal(const Back *b, const GraphOp *o, const DualCall *c, int k)
{
    const char *token = row_named(o->call)->param[k].name, *from = bound(c, token);
    bool minus = from[0] == '-', digit = from[0] >= '0' && from[0] <= '9', real = o->arg.at[k].sign == 'f';
    int word = digit ? -1 : row_param(b->row, from + minus);
    if (!digit && word < 0)
        return;                 /* bounded by extents, or compared with the model */
    int value = digit ? from[0] - '0' : 0;
    GraphArg a = {.sign = real ? 'f' : 'i', .i = real ? 0 : value, .f = real ? value : 0};
    if (!digit)
        a = b->f->arg.at[word];
    if (minus)
        a.i = -a.i;
    if (strstr(c->with, "turn") && strchr("dp", token[0]) && token[1] >= '0' && token[1] <= '3')
        a.i = turned(b, token[0], token[1] - '0');
    want_arg(b, o, token, a);
}

/* Statistics of training that the forward call does not read: they stand behind those that it reads. */
static void want_beside(Back *b, const GraphOp *o, const char *word)
{
    int p = 0;
    for (int k = 0; k < b->f->arg.n; k++)
        if (b->f->arg.at[k].sign == 'R')
            p = param(b, b->f->arg.at[k].name) + 1;
    bool is = p > 0 && p < b->g->state.n;
    want_gradient(b, o, word, is ? p : -1);
}

static void want_operand(Back *b, const GraphOp *o, const DualCall *c, int k)
{
    const Param *p = &row_named(o->call)->param[k];
    const char *word = bound(c, p->name);
    int of = gradient_of(b, word), same = row_param(b->row, word);
    const GraphArg *a = of >= 0 ? &b->f->arg.at[of] : same >= 0 ? &b->f->arg.at[same] : NULL;
    if (makes(p) && of < 0)
        want_beside(b, o, word);
    else if (makes(p) && is_wanted(b, of) && a->sign == 'R')
        want_gradient(b, o, p->name, param(b, a->name));
    else if (makes(p) && is_wanted(b, of))
        b->term[of] = fresh(b, o, p->name);
    else if (makes(p) || !a)                            /* nobody wants it; or it is `onto` */
        want(b, o, p->name, '0', NULL);
    else if (of >= 0 && a->sign == 'w')
        want(b, o, p->name, 'r', b->sum[tensor(b, a->name)]);
    else if (of >= 0)
        want(b, o, p->name, 'r', b->term[of]);
    else
        want(b, o, p->name, a->sign == 'w' ? 'r' : a->sign, a->name);
}

static void dual_call(Back *b, const DualCall *c)
{
    const Row *r = row_named(c->call);
    bool any = false;
    for (int k = 0; k < r->n; k++) {
        int of = makes(&r->param[k]) ? gradient_of(b, bound(c, r->param[k].name)) : -1;
        any |= of >= 0 && is_wanted(b, of);
    }
    if (!any)
        return;
    const GraphOp *o = next(b, c->phase, c->call);
    for (int k = 0; k < r->n; k++) {
        char mode = r->param[k].mode;
        if (r->param[k].width && mode != 't')
            want_operand(b, o, c, k);
        else if (strchr("ifns", mode))
            want_literal(b, o, c, k);
        else if (mode == 'v' && o->arg.at[k].i)
            differs(b, o, r->param[k].name, "vals", "those of a group");
    }
}

/* `dx = dy` */
static void alias(Back *b, const char *text)
{
    size_t n = strcspn(text, " ");
    int of = gradient_of(b, name_of(text, n));
    const char *from = text + n + 3;
    if (of >= 0 && is_wanted(b, of) && *from != '0')
        b->term[of] = b->sum[tensor(b, b->f->arg.at[row_param(b->row, name_of(from + 1, strcspn(from, "; |") - 1))].name)];
}

/* ---- one forward operator ---------------------------------------------------------------------------------------- */

/* A loss is one f32; other gradients are added in the compute type. */
static void add_terms(Back *b)
{
    for (int k = 0; k < b->row->n; k++) {
        if (!b->term[k])
            continue;
        int t = tensor(b, b->f->arg.at[k].name);
        if (b->sum[t]) {
            bool loss = !strncmp(b->f->call, "loss_", 5);
            const GraphOp *o = next(b, 'I', loss ? "loss_add_forward" : "grad_add");
            want(b, o, "a", 'r', b->sum[t]);
            want(b, o, "b", 'r', b->term[k]);
            b->sum[t] = fresh(b, o, "y");
        } else {
            b->sum[t] = b->term[k];
        }
    }
}

static bool is_reached(const Back *b, const GraphOp *o)
{
    for (int k = 0; k < o->arg.n; k++)
        if (o->arg.at[k].sign == 'w' && b->sum[tensor(b, o->arg.at[k].name)])
            return true;
    return false;
}

static void one(Back *b, const GraphOp *o)
{
    bool back = is_reached(b, o);
    DualCall c = {.phase = back ? 'I' : 'W'};
    const char *p = duals_of(o->call);
    b->f = o;
    b->row = row_named(o->call);
    memset(b->term, 0, sizeof b->term);
    if (!back && !strstr(p, "_track"))          /* statistics of training, whatever the loss needs */
        return;
    for (p = back ? p : strchr(p, '|'); p && *p; p += strspn(p, "; ")) {
        size_t n = strcspn(p, "|;");
        if (*p == '|') {
            add_terms(b);
            c.phase = 'W';
            p++;
            continue;
        }
        c.call = name_of(p, strcspn(p, " ;|"));
        c.with = name_of(p, n);
        if (strcspn(p, "=") == strcspn(p, " ") + 1)
            alias(b, p);
        else
            dual_call(b, &c);
        p += n;
    }
    if (c.phase == 'I')
        add_terms(b);
}

/* ---- the whole ---------------------------------------------------------------------------------------------------- */

/* Values that a parameter that learns reaches; whole numbers among them only if they are codes of numbers.  Each tensor is
 * written once. */
static void forward(Back *b, const GraphOp *o)
{
    bool reaches = false;
    for (int k = 0; k < o->arg.n; k++) {
        const GraphArg *a = &o->arg.at[k];
        if (a->sign == 'R' && param(b, a->name) >= 0)
            reaches |= learns(&b->g->state.at[param(b, a->name)]);
        else if (a->sign == 'r')
            reaches |= b->wanted[tensor(b, a->name)];
    }
    for (int k = 0; k < o->arg.n; k++) {
        int t = o->arg.at[k].sign == 'w' ? tensor(b, o->arg.at[k].name) : -1;
        if (t < 0)
            continue;
        if (b->made[t] || strcmp(b->g->tensor.at[t].kind, "act"))
            stop(NOT_PROVED, "%s:%d: %s is written here, and is an input or has a value already", b->g->path, o->line,
                 o->arg.at[k].name);
        b->made[t] = true;
        b->wanted[t] = reaches && strcmp(o->row, "StopGradient") &&
            (!b->g->tensor.at[t].whole || !strcmp(o->call, "round_forward") || !strcmp(o->call, "round_both_forward"));
    }
}

/* ---- updates ------------------------------------------------------------------------------------------------------ */

/* The state of that kind that parameter p has, or all together have; 0 where there is none. */
static void want_state(const Back *b, const GraphOp *o, const char *token, char sign, int p, const char *kind)
{
    const Thing *t = strcmp(kind, "param") ? state_of(b, p, kind, 0) : &b->g->state.at[p];
    want(b, o, token, sign, t ? t->name : NULL);
}

static bool in_blocks(const Back *b)
{
    return state_of(b, -1, "blocks", 0) != NULL;
}

/* Later uses are added to earlier ones; then the norm, or its blocks. */
static void sums(Back *b, int p, int index, int64_t *blocks)
{
    int64_t n = b->g->state.at[p].bytes / 4;
    int uses = 1;
    while (state_of(b, p, "grad", uses))
        uses++;
    for (int use = uses - 1; use > 0; use--) {
        const GraphOp *o = next(b, 'U', "tie_add");
        want(b, o, "g", 'U', state_of(b, p, "grad", use - 1)->name);
        want(b, o, "other", 'R', state_of(b, p, "grad", use)->name);
        want_int(b, o, "n", n);
    }
    bool alone = state_of(b, p, "clip", 0) != NULL;
    if (!alone && !state_of(b, -1, "clip", 0))
        return;
    const GraphOp *o = next(b, 'U', in_blocks(b) ? "norm_blocks" : "norm_partial");
    want_state(b, o, "g", 'R', p, "grad");
    want_int(b, o, "n", n);
    if (in_blocks(b)) {
        want_state(b, o, "blocks", 'U', -1, "blocks");
        int64_t each = word_of(o, "each")->i;
        if (b->g->portable || each < 1)      /* kernels of other libraries have other blocks */
            want_int(b, o, "each", each = norm_length(n));
        else
            norm_length_is(n, each);
        want_int(b, o, "first", *blocks);
        *blocks += b->blocks[p] = (n + each - 1) / each;
    } else {
        want_state(b, o, "norm", 'U', alone ? p : -1, "norm");
        want_int(b, o, "index", alone ? 0 : index);
    }
}

static void block_sum(Back *b, int p, int index, int64_t *first)
{
    bool alone = state_of(b, p, "clip", 0) != NULL;
    const GraphOp *o = next(b, 'U', "norm_sum");
    want_state(b, o, "norm", 'U', alone ? p : -1, "norm");
    want_state(b, o, "blocks", 'R', -1, "blocks");
    want_int(b, o, "n", b->blocks[p]);
    want_int(b, o, "first", *first);
    want_int(b, o, "index", alone ? 0 : index);
    *first += b->blocks[p];
}

static void total(Back *b, int p, int count)
{
    const GraphOp *o = next(b, 'U', "norm_total");
    want_state(b, o, "clip", 'W', p, "clip");
    want_state(b, o, "norm", 'R', p, "norm");
    want_arg(b, o, "vals", (GraphArg){.sign = p < 0 ? 'v' : '0'});
    want_int(b, o, "count", count);
}

/* True: its copy in the compute type follows, behind all updates, where replicas have parts. */
static bool update(Back *b, int p)
{
    static const char *const words[][2] = {{"m", "moment1"}, {"v", "moment2"}, {"centre", "centre"}, {"old", "drift"}};
    const char *call = b->at < b->g->op.n ? b->g->op.at[b->at].call : "";
    bool updates = strstr(call, "_update") || !strncmp(call, "sgd_", 4) || !strcmp(call, "rmsprop_centred");
    const GraphOp *o = next(b, 'U', updates ? call : "an update");
    const Thing *copy = state_of(b, p, "copy", 0);
    want_state(b, o, "p", 'U', p, "param");
    bool late = copy && word_of(o, "c")->sign == '0';
    want(b, o, "c", 'W', copy && !late ? copy->name : NULL);
    want_state(b, o, "g", 'R', p, "grad");
    for (int i = 0; i < 4; i++)
        if (word_of(o, words[i][0]))
            want_state(b, o, words[i][0], 'U', p, words[i][1]);
    want_state(b, o, "clip", 'R', state_of(b, p, "clip", 0) ? p : -1, "clip");
    want_int(b, o, "n", b->g->state.at[p].bytes / 4);
    return late;
}

/* Statistics of training: those of a norm are three, one record behind the other. */
static int follow(Back *b, int p)
{
    static const char *const words[2][4] = {{"mean", "var", "count"}, {"amax"}};
    static const char *const sums_of[2][4] = {{"sum_mean", "sum_var", "sum_count"}, {"seen"}};
    const char *dot = strrchr(b->g->state.at[p].name, '.');
    bool sizes = dot && !strcmp(dot, ".amax");
    const GraphOp *o = next(b, 'U', sizes ? "fp8_track" : "batch_track");
    int n = sizes ? 1 : 3;
    for (int i = 0; i < n; i++) {
        if (p + i >= b->g->state.n || !b->g->state.at[p + i].tracked)
            differs(b, o, words[sizes][i], "a state", "none");
        want_state(b, o, words[sizes][i], 'U', p + i, "param");
        want_state(b, o, sums_of[sizes][i], 'R', p + i, "grad");
    }
    want_int(b, o, "n", b->g->state.at[p].bytes / 4);
    return n;
}

static void updates(Back *b)
{
    const Graph *g = b->g;
    LIST(int) all = {0}, late = {0};
    int64_t blocks = 0, first = 0;
    b->f = NULL;
    for (int p = 0; p < g->state.n; p++) {
        if (b->uses[p + 1])
            stop(NOT_PROVED, "%s: %d gradients of %s are made by no call", g->path, b->uses[p + 1], g->state.at[p].name);
        if (learns(&g->state.at[p]))
            *ADD(&all) = p;
    }
    for (int i = 0; i < all.n; i++)
        sums(b, all.at[i], i, &blocks);
    for (int i = 0; i < all.n && in_blocks(b); i++)
        block_sum(b, all.at[i], i, &first);
    if (state_of(b, -1, "clip", 0))
        total(b, -1, all.n);
    for (int i = 0; i < all.n; i++)
        if (state_of(b, all.at[i], "clip", 0))
            total(b, all.at[i], 1);
    for (int i = 0; i < all.n; i++)
        if (update(b, all.at[i]))
            *ADD(&late) = all.at[i];
    for (int i = 0; i < late.n; i++) {
        const GraphOp *o = next(b, 'U', "cast_forward");
        want_state(b, o, "y", 'W', late.at[i], "copy");
        want_state(b, o, "x", 'R', late.at[i], "param");
    }
    for (int p = 0; p < g->state.n;)
        p += !strcmp(g->state.at[p].kind, "param") && g->state.at[p].tracked ? follow(b, p) : 1;
    if (b->at < g->op.n)
        stop(NOT_PROVED, "%s:%d: no operator must stand here any more", g->path, g->op.at[b->at].line);
}

void duals_check(Graph *g)
{
    size_t n = (size_t)g->tensor.n + 1, states = ((size_t)g->state.n + 2) * sizeof(int);
    Back b = {.g = g, .sum = room(n * sizeof *b.sum), .wanted = room(n), .made = room(n),
              .uses = room(states), .first = room(states), .after = room(states), .blocks = room(2 * states)};
    for (int i = 0; i < g->op.n && !g->no_dual; i++)
        if (g->op.at[i].phase == 'F' && !duals_of(g->op.at[i].call))
            g->no_dual = g->op.at[i].call;
    if (g->foreign)
        g->no_dual = "it is of another graph";
    if (g->compared || g->no_dual)
        return;
    g->compared = true;
    for (int i = g->state.n; i-- > 0;) {
        int p = param(&b, g->state.at[i].name);
        b.uses[p + 1] += p >= 0 && !strcmp(g->state.at[i].kind, "grad");
        b.after[i + 1] = b.first[p + 1];
        b.first[p + 1] = i + 1;
    }
    for (; b.at < g->op.n && g->op.at[b.at].phase == 'F'; b.at++)
        forward(&b, &g->op.at[b.at]);
    if (!g->loss && b.at == g->op.n)    /* plan.mode infer, as the model file says, or does not */
        return;
    int last = b.at, loss = g->loss ? tensor(&b, g->loss) : -1;
    if (loss < 0 || !b.made[loss])
        stop(NOT_PROVED, "%s: the loss is no value of the graph", g->path);
    b.f = &g->op.at[0];
    b.sum[loss] = fresh(&b, next(&b, 'I', "loss_seed"), "y");
    for (int i = last; i-- > 0;)
        one(&b, &g->op.at[i]);
    updates(&b);
}
