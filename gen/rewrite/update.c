/* SPDX-License-Identifier: Apache-2.0
 *
 * update.c: the end of a step: gradients of tied uses added up, the norm, the optimiser.
 *
 * In parts, each by ascending parameter, because every value of one part must be there before the next begins:
 *
 *   0  TieAdd       uses n-1 .. 1, each into the use before it: the sum is that of a chain in descending use order
 *      NormPartial  sum of squares of one parameter's gradient, tied uses counted once
 *      NormBlocks   with train.shard instead: those of its blocks, since a replica has a part of the gradient alone
 *      NormTeam     where the devices of a stage each have a part of the gradient
 *   4  NormSum      the blocks of all replicas, added as NormPartial adds its own: behind part 0
 *   1  NormTotal    the factor that all gradients are multiplied with: the partial sums added in global parameter
 *                   order, so that the bits do not depend on who holds which parameter (Pascanu, Mikolov and Bengio, On
 *                   the difficulty of training recurrent neural networks, 2013, section 3.2)
 *   2  AdamW, Sgd   AdamW: Loshchilov and Hutter, Decoupled Weight Decay Regularization, 2019, algorithm 2
 *      NAdamW       AdamW with Nesterov's momentum: Dozat, Incorporating Nesterov Momentum into Adam, 2016, its momentum
 *                   held constant
 *      SgdNesterov, RmsProp, RmsPropCentred
 *      SgdDrift     instead of Sgd, where the schedule follows how the weights drift
 *      BatchTrack   the running statistics of a BatchStat: no norm, no decay
 *      Fp8Track     the history of sizes of a LinearFp8
 *      SgdSpike     instead of Sgd, where the schedule makes up for late gradients (sched/async.c)
 *
 *   3  Narrow       with train.shard, behind the exchange of parameters: their copies in the compute type
 *
 * clip_scope: parameter gives every parameter a norm and a factor of its own; part 1 then needs nobody else, and no norm
 * is reported.
 *
 * These rows have no operands of the model, so their words are not looked up by bind_call but in a short list that says
 * what each means for the parameter at hand.
 *
 * needs   S_GRAD states.  fills  S_MOMENT1, S_MOMENT2, S_CENTRE, S_DRIFT, S_NORM, S_CLIP, S_BLOCKS, operators of PH_U.
 */
#include "rewrite.h"

typedef struct {                /* one parameter */
    int p, c, m, v, centre, drift;       /* states; -1: there is none */
    int norm, clip;
    int64_t n, index;
    int64_t each, first, blocks;    /* of a norm in blocks */
    Ints use;                   /* accumulators, ascending */
} Param;

typedef VEC(Param) ParamList;
typedef struct {
    Graph *g;
    const Model *m;
    const Train *t;
    Names *taken;
    ParamList param;
    int blocks;                 /* the sums of all of them; -1: no norm is in blocks */
    ParamList tracked;          /* mean, variance and count of each BatchStat, side by side; of a LinearFp8 its history */
    const Schedule *schedule;
    int group;                  /* of the update at hand; 0: rates of the job */
    VEC(Arg) word;              /* what the words of the next call mean */
} Update;

/* ---- one call ---------------------------------------------------------------------------------------------------- */

static void word_state(Update *u, const char *token, ArgKind kind, int state)
{
    *PUSH(&u->word) = (Arg){.kind = state < 0 ? ARG_NONE : kind, .token = token, .state = state >= 0, .index = state};
}

static void word_int(Update *u, const char *token, int64_t i)
{
    *PUSH(&u->word) = (Arg){.kind = ARG_INT, .token = token, .index = -1, .i = i};
}

static void word_float(Update *u, const char *token, double f)
{
    *PUSH(&u->word) = (Arg){.kind = ARG_FLOAT, .token = token, .index = -1, .f = f};
}

static const Arg *meaning(const Update *u, const char *token)
{
    for (int i = 0; i < u->word.n; i++)
        if (!strcmp(u->word.at[i].token, token))
            return &u->word.at[i];
    die("update: nothing is called %s", token);
}

static Bytes moved(const Graph *g, const Op *o)
{
    Bytes sum = 0;
    for (EACH(const Arg, a, o->arg))
        if (a->state && a->kind != ARG_VALS)
            sum += g->state.at[a->index].bytes * (a->kind == ARG_UPDATE ? 2 : 1);
    return sum;
}

/* One operator for parameter `param`; -1: for all of them. */
static void put(Update *u, const char *name, int param)
{
    Graph *g = u->g;
    const Row *r = row(row_find(name));
    const char *call = r->call[PH_F];
    Op *o = PUSH(&g->op);
    *o = (Op){.name = "clip", .layer = "", .row = row_find(name), .phase = PH_U, .fwd = -1, .loc = g->op.at[0].loc};
    if (param >= 0) {
        o->name = g->state.at[param].name;
        o->layer = g->op.at[g->state.at[param].op].layer;
        o->loc = g->state.at[param].loc;
    }
    *PUSH(&u->word) = (Arg){.kind = ARG_VALS, .token = "vals", .state = true, .index = g->vals, .i = u->group};
    size_t n = strcspn(call, "(");
    o->call = strf("%.*s", (int)n, call);
    for (const char *p = call + n + 1; *p && *p != ')'; p += strspn(p, ", ")) {
        n = strcspn(p, ",) ");
        Arg *a = PUSH(&o->arg);
        *a = *meaning(u, strf("%.*s", (int)n, p));
        if (a->kind == ARG_INT)
            attr_set(o, a->token, a->i);        /* for its arithmetic */
        p += n;
    }
    o->moved = moved(g, o);
    op_work(o, o, g->compute, r->flop[PH_F]);
    u->word.n = 0;
}

/* ---- states ------------------------------------------------------------------------------------------------------ */

static int new_state(Update *u, const char *name, StateKind kind, Type type, Shape shape, int param)
{
    Graph *g = u->g;
    State s = {.name = grad_name(u->taken, name), .kind = kind, .type = type, .shape = shape, .param = param, .op = -1,
               .bytes = shape_size(&shape, 0, shape.n) * type_bytes(type), .loc = g->op.at[0].loc};
    if (param >= 0) {
        s.op = g->state.at[param].op;
        s.loc = g->state.at[param].loc;
    }
    *PUSH(&g->state) = s;
    return g->state.n - 1;
}

static int of_param(Update *u, int p, const char *suffix, StateKind kind)
{
    return new_state(u, strf("%s.%s", u->g->state.at[p].name, suffix), kind, F32, u->g->state.at[p].shape, p);
}

static void list_params(Update *u)
{
    const Graph *g = u->g;
    int *slot = alloc((size_t)g->state.n * sizeof *slot);
    for (int s = 0; s < g->state.n; s++) {
        const State *x = &g->state.at[s];
        if (x->param < 0 || g->state.at[x->param].frozen)
            continue;
        ParamList *list = g->state.at[x->param].tracked ? &u->tracked : &u->param;
        if (x->kind == S_PARAM) {
            slot[s] = list->n;
            *PUSH(list) = (Param){.p = s, .c = -1, .m = -1, .v = -1, .centre = -1, .drift = -1, .norm = -1, .clip = -1,
                                  .index = list->n - 1, .n = shape_size(&x->shape, 0, x->shape.n)};
        } else if (x->kind == S_COPY) {
            list->at[slot[x->param]].c = s;
        } else if (x->kind == S_GRAD) {
            *PUSH(&list->at[slot[x->param]].use) = s;
        }
    }
}

static void make_blocks(Update *u)
{
    Shape all = {1, {0}};
    for (EACH(Param, q, u->param)) {
        if (u->g->state.at[q->p].outer)
            continue;
        q->each = norm_block(u->m, q->n);
        q->blocks = (q->n + q->each - 1) / q->each;
        q->first = all.d[0];
        all.d[0] += q->blocks;
    }
    if (all.d[0])           /* not where the devices share all that learns */
        u->blocks = new_state(u, "norm.blocks", S_BLOCKS, F64, all, -1);
}

static void make_states(Update *u)
{
    const Train *t = u->t;
    Shape one = {1, {1}}, all = {1, {u->param.n}};
    for (EACH(Param, q, u->param)) {
        if (t->opt == OPT_ADAMW || t->opt == OPT_NADAMW || t->momentum != 0)
            q->m = of_param(u, q->p, "m", S_MOMENT1);
        if (t->opt != OPT_SGD)
            q->v = of_param(u, q->p, "v", S_MOMENT2);
        if (t->centered)
            q->centre = of_param(u, q->p, "centre", S_CENTRE);
        if (u->schedule->drifts)
            q->drift = of_param(u, q->p, "drift", S_DRIFT);
    }
    if (t->clip == 0 || u->param.n == 0)
        return;
    int norm = t->clip_each ? -1 : new_state(u, "norm", S_NORM, F64, all, -1);
    int clip = t->clip_each ? -1 : new_state(u, "clip", S_CLIP, F32, one, -1);
    for (EACH(Param, q, u->param)) {
        const char *name = u->g->state.at[q->p].name;
        q->norm = t->clip_each ? new_state(u, strf("%s.norm", name), S_NORM, F64, one, q->p) : norm;
        q->clip = t->clip_each ? new_state(u, strf("%s.clip", name), S_CLIP, F32, one, q->p) : clip;
        q->index = t->clip_each ? 0 : q->index;
    }
    if (t->shard)
        make_blocks(u);
}

/* ---- operators --------------------------------------------------------------------------------------------------- */

static void put_sums(Update *u, const Param *q)
{
    for (int k = q->use.n - 1; k > 0; k--) {
        word_state(u, "g", ARG_UPDATE, q->use.at[k - 1]);
        word_state(u, "other", ARG_READ, q->use.at[k]);
        word_int(u, "n", q->n);
        put(u, "TieAdd", q->p);
    }
    if (q->norm < 0)
        return;
    word_state(u, "norm", ARG_UPDATE, q->norm);
    word_state(u, "blocks", ARG_UPDATE, u->blocks);
    word_state(u, "g", ARG_READ, q->use.at[0]);
    int64_t outer = u->g->state.at[q->p].outer;
    Shape whole = shape_whole(&u->g->state.at[q->p]);
    word_int(u, "n", shape_elements(&whole));
    word_int(u, "outer", outer);
    word_int(u, "room", outer ? q->n / outer : 0);
    word_int(u, "index", q->index);
    word_int(u, "each", q->each);
    word_int(u, "first", q->first);
    put(u, outer ? "NormTeam" : u->blocks < 0 ? "NormPartial" : "NormBlocks", q->p);
}

static void put_block_sum(Update *u, const Param *q)
{
    word_state(u, "norm", ARG_UPDATE, q->norm);
    word_state(u, "blocks", ARG_READ, u->blocks);
    word_int(u, "n", q->blocks);
    word_int(u, "first", q->first);
    word_int(u, "index", q->index);
    put(u, "NormSum", q->p);
}

/* What a step reports is the norm of the whole gradient: those of single parameters go nowhere. */
static void put_total(Update *u, const Param *q, int64_t count, int param)
{
    if (param >= 0)
        word_state(u, "vals", ARG_NONE, -1);
    word_state(u, "clip", ARG_WRITE, q->clip);
    word_state(u, "norm", ARG_READ, q->norm);
    word_int(u, "count", count);
    word_float(u, "limit", u->t->clip);
    put(u, "NormTotal", param);
}

static void put_update(Update *u, const Param *q)
{
    const Train *t = u->t;
    const ParamGroup all = {.beta1 = t->beta1, .beta2 = t->beta2, .eps = t->eps};
    u->group = u->g->state.at[q->p].group;
    const ParamGroup *k = u->group ? &t->param_group.at[u->group - 1] : &all;
    word_state(u, "p", ARG_UPDATE, q->p);
    word_state(u, "c", ARG_WRITE, t->shard ? -1 : q->c);
    word_state(u, "g", ARG_READ, q->use.at[0]);
    word_state(u, "m", ARG_UPDATE, q->m);
    word_state(u, "v", ARG_UPDATE, q->v);
    word_state(u, "centre", ARG_UPDATE, q->centre);
    word_state(u, "old", ARG_UPDATE, q->drift);
    word_state(u, "clip", ARG_READ, q->clip);
    word_int(u, "n", q->n);
    word_int(u, "anneal", t->steps / 4 ? t->steps / 4 : 1);
    word_float(u, "momentum", t->momentum);
    word_float(u, "beta1", k->beta1);
    word_float(u, "beta2", k->beta2);
    word_float(u, "eps", k->eps);
    word_float(u, "alpha", t->alpha);
    word_int(u, "decay", u->g->state.at[q->p].decay);
    *PUSH(&u->word) = (Arg){.kind = ARG_LATE, .token = "late", .index = -1};
    static const char *const name[] = {[OPT_SGD] = "Sgd", [OPT_ADAMW] = "AdamW", [OPT_NADAMW] = "NAdamW",
                                       [OPT_RMSPROP] = "RmsProp"};
    put(u, u->schedule->spikes ? "SgdSpike" : u->schedule->drifts ? "SgdDrift" : t->nesterov ? "SgdNesterov"
         : t->centered ? "RmsPropCentred" : name[t->opt], q->p);
    u->group = 0;
}

static void put_narrow(Update *u, const Param *q)
{
    if (!u->t->shard || q->c < 0)
        return;
    word_state(u, "y", ARG_WRITE, q->c);
    word_state(u, "x", ARG_READ, q->p);
    word_int(u, "n", q->n);
    put(u, "Narrow", q->p);
}

/* One call for the three states of a BatchStat. */
static void put_tracked(Update *u, const Param *q)
{
    static const char *const word[] = {"mean", "var", "count"}, *const sum[] = {"sum_mean", "sum_var", "sum_count"};
    const Op *stat = &u->g->op.at[u->g->state.at[q->p].op];
    for (int i = 0; i < 3; i++) {
        word_state(u, word[i], ARG_UPDATE, q[i].p);
        word_state(u, sum[i], ARG_READ, q[i].use.at[0]);
    }
    word_int(u, "rows", attr_int(stat, "rows"));
    word_int(u, "n", q->n);
    word_float(u, "momentum", attr_find(stat, "momentum")->f);
    word_int(u, "each", attr_int(stat, "each"));
    put(u, "BatchTrack", q->p);
}

static void put_history(Update *u, const Param *q)
{
    word_state(u, "amax", ARG_UPDATE, q->p);
    word_state(u, "seen", ARG_READ, q->use.at[0]);
    word_int(u, "n", q->n);
    word_int(u, "history", attr_int(&u->g->op.at[u->g->state.at[q->p].op], "history"));
    put(u, "Fp8Track", q->p);
}

/* What an operator tracks: a BatchStat three states, a LinearFp8 one.  How many. */
static int put_followed(Update *u, const Param *q)
{
    bool fp8 = row(u->g->op.at[u->g->state.at[q->p].op].row)->fp8;
    (fp8 ? put_history : put_tracked)(u, q);
    return fp8 ? 1 : 3;
}

void update(Graph *g, const Model *m, Names *taken)
{
    Update u = {.g = g, .m = m, .t = &m->train, .blocks = -1, .taken = taken, .schedule = schedule_of(m->plan.schedule)};
    list_params(&u);
    make_states(&u);
    for (int i = 0; i < u.param.n; i++)
        put_sums(&u, &u.param.at[i]);
    for (int i = 0; i < u.param.n && u.blocks >= 0; i++)
        if (!g->state.at[u.param.at[i].p].outer)        /* of the others NormTeam has made the norm */
            put_block_sum(&u, &u.param.at[i]);
    if (m->train.clip != 0 && !m->train.clip_each && u.param.n)
        put_total(&u, &u.param.at[0], u.param.n, -1);
    for (int i = 0; m->train.clip_each && m->train.clip != 0 && i < u.param.n; i++)
        put_total(&u, &u.param.at[i], 1, u.param.at[i].p);
    for (int i = 0; i < u.param.n; i++)
        put_update(&u, &u.param.at[i]);
    for (int i = 0; i < u.param.n; i++)
        put_narrow(&u, &u.param.at[i]);
    for (int i = 0; i < u.tracked.n;)
        i += put_followed(&u, &u.tracked.at[i]);
}
