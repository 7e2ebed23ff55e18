/* SPDX-License-Identifier: Apache-2.0
 *
 * optimizer.c: the updates of model.graph against section `train` of the model file: which rule, its numbers, which parameters
 * decay, which group each is of, and the limit of the norm.
 *
 * Rates and how they change, how much decays, and the seed are no part of a step's calls: the runtime reads them from launch.c,
 * and they are compared there.
 */
#include "model.h"
#include <string.h>

typedef struct { const Node *train, *optimizer; const char *type; } Rule;

static double number(const Model *m, const Node *n, double otherwise)
{
    return n ? model_number(m, NULL, n) : otherwise;
}

/* The first of two, or NULL; the second is behind it. */
static const Node *first_beta(const Model *m, const Node *betas)
{
    if (betas && !betas->child)
        model_fault(m, betas, "betas are two numbers");
    return betas ? betas->child : NULL;
}

static bool is_word(const Node *n, const char *word)
{
    return n && n->kind == N_TEXT && !strcmp(n->text, word);
}

static const char *call_of(const Model *m, const Rule *r)
{
    static const char *const calls[][2] = {{"adamw", "adamw_update"}, {"nadamw", "nadamw_update"}, {"sgd", "sgd_update"},
        {"rmsprop", "rmsprop_update"}};
    if (!strcmp(r->type, "sgd") && is_word(node_field(r->optimizer, "nesterov"), "true"))
        return "sgd_nesterov";
    if (!strcmp(r->type, "rmsprop") && is_word(node_field(r->optimizer, "centered"), "true"))
        return "rmsprop_centred";
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (!strcmp(calls[i][0], r->type))
            return calls[i][1];
    model_fault(m, r->optimizer, "an optimizer that dpgen-verify does not know");
}

/* The group of a parameter, from 1 on; 0: none.  The first that names it takes it. */
static int group_of(const Rule *r, const char *param, const Node **group)
{
    const Node *groups = node_field(r->optimizer, "groups");
    int k = 1;
    for (const Node *c = groups ? groups->child : NULL; c; c = c->next, k++)
        if (model_matches(node_field(c, "match"), param))
            return *group = c, k;
    return *group = NULL, 0;
}

static bool decays(const Rule *r, const Thing *p)
{
    bool matrix = strchr(p->shape, 'x') != NULL;
    return (matrix || !is_word(node_field(r->optimizer, "decay_only"), "matrices")) &&
        !model_matches(node_field(r->optimizer, "no_decay"), p->name);
}

static void want(const Model *m, const GraphOp *o, const char *word, double want)
{
    int k = row_param(row_named(o->call), word);
    if (k < 0)
        return;
    const GraphArg *a = &o->arg.at[k];
    double got = a->sign == 'f' ? a->f : (double)a->i;
    if (got != want)
        model_fault(m, m->root, "%s of %s, %s:%d, is %g, and %g must stand there", word, o->call, m->g->path, o->line,
                    got, want);
}

static void one(const Model *m, const Rule *r, const GraphOp *o)
{
    int p = row_param(row_named(o->call), "p"), vals = row_param(row_named(o->call), "vals");
    const Thing *t = &m->g->state.at[map_at(&m->g->states, o->arg.at[p].name)];
    const Node *group, *all = node_field(r->optimizer, "betas");
    int number_of = group_of(r, t->name, &group);
    const Node *betas = first_beta(m, node_field(group, "betas") ? node_field(group, "betas") : all);
    const Node *eps = node_field(group, "eps") ? node_field(group, "eps") : node_field(r->optimizer, "eps");
    const char *call = call_of(m, r);
    int64_t steps = (int64_t)number(m, node_field(r->train, "steps"), 1000);
    /* Schedules with late gradients have momentum SGD of their own */
    bool late = !strcmp(call, "sgd_update") && (!strcmp(o->call, "sgd_spike") || !strcmp(o->call, "sgd_drift"));
    if (strcmp(o->call, call) && !late)
        model_fault(m, r->optimizer ? r->optimizer : m->root, "%s:%d updates by %s, and the optimizer is %s", m->g->path,
                    o->line, o->call, call);
    if (o->arg.at[vals].i != number_of)
        model_fault(m, r->optimizer, "%s:%d: %s is of group %d", m->g->path, o->line, t->name, number_of);
    want(m, o, "momentum", number(m, node_field(r->optimizer, "momentum"), 0));
    want(m, o, "alpha", number(m, node_field(r->optimizer, "alpha"), 0.99));
    want(m, o, "beta1", number(m, betas, 0.9));
    want(m, o, "beta2", number(m, betas ? betas->next : NULL, 0.999));
    want(m, o, "eps", number(m, eps, 1e-8));
    want(m, o, "anneal", steps / 4 ? (double)(steps / 4) : 1);
    want(m, o, "decay", decays(r, t));
}

/* A number of launch.c. */
static void told(const Model *m, const Node *at, const char *name, double want)
{
    double got = at && at->kind == N_FLOAT ? at->f : at && at->kind == N_INT ? (double)at->i : 0;
    if (got != want)
        model_fault(m, m->root, "launch.c: %s is %g, and %g must stand there", name, got, want);
}

static void group_rates(const Model *m, const Rule *r)
{
    const Node *all = node_field(r->optimizer, "betas"), *groups = node_field(r->optimizer, "groups"), *row = m->folder->group;
    double rate = number(m, node_field(r->optimizer, "lr"), 3e-4);
    row = row ? row->child : NULL;
    for (const Node *c = groups ? groups->child : NULL; c; c = c->next, row = row ? row->next : NULL) {
        const Node *lr = node_field(c, "lr"), *betas = node_field(c, "betas"), *decay = node_field(c, "weight_decay");
        const Node *at = row ? row->child : NULL;
        bool times = lr && lr->text && *lr->text == 'x';
        Node own = lr ? *lr : (Node){0};
        own.text += times;
        betas = first_beta(m, betas ? betas : all);
        decay = decay ? decay : node_field(r->optimizer, "weight_decay");
        const struct { const char *name; double want; } numbers[] = {
            {"lr", lr ? number(m, &own, 0) * (times ? rate : 1) : rate}, {"beta1", number(m, betas, 0.9)},
            {"beta2", number(m, betas ? betas->next : NULL, 0.999)}, {"weight_decay", number(m, decay, 0)},
        };
        for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++, at = at ? at->next : NULL)
            told(m, at, joined_text("%s of a parameter group", numbers[i].name), numbers[i].want);
    }
}

static void rates(const Model *m, const Rule *r)
{
    static const char *const kinds[][2] = {{"constant", "JOB_CONSTANT"}, {"cosine", "JOB_COSINE"}, {"linear", "JOB_LINEAR"},
        {"step", "JOB_STEP"}};
    const Node *job = m->folder->job, *schedule = node_field(r->train, "schedule"), *type = node_field(schedule, "type");
    const Node *betas = first_beta(m, node_field(r->optimizer, "betas")), *kind = node_field(job, "lr_kind");
    const char *word = type && type->text ? type->text : "constant", *name = "";
    const struct { const char *name; const Node *n; double otherwise; } numbers[] = {
        {".lr", node_field(r->optimizer, "lr"), 3e-4}, {".steps", node_field(r->train, "steps"), 1000},
        {".beta1", betas, 0.9}, {".beta2", betas ? betas->next : NULL, 0.999},
        {".weight_decay", node_field(r->optimizer, "weight_decay"), 0}, {".warmup", node_field(schedule, "warmup"), 0},
        {".seed", node_field(r->train, "seed"), 1}, {".final", node_field(schedule, "final"), 0},
        {".every", node_field(schedule, "every"), 1}, {".factor", node_field(schedule, "factor"), 0.1},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        told(m, node_field(job, numbers[i].name + 1), numbers[i].name, number(m, numbers[i].n, numbers[i].otherwise));
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        name = strcmp(kinds[i][0], word) ? name : kinds[i][1];
    if (!kind || kind->kind != N_NAME || strcmp(kind->text, name))
        model_fault(m, m->root, "launch.c: .lr_kind is not that of train.schedule.type: %s", word);
    group_rates(m, r);
}

void model_updates(const Model *m)
{
    Rule r = {.train = node_field(m->root, "train")};
    r.optimizer = node_field(r.train, "optimizer");
    const Node *type = node_field(r.optimizer, "type");
    r.type = type && type->text ? type->text : "adamw";
    double limit = number(m, node_field(r.train, "clip_norm"), 0);
    int totals = 0, params = 0;
    for (int i = 0; i < m->g->op.n; i++) {
        const GraphOp *o = &m->g->op.at[i];
        if (!strcmp(o->call, "norm_total")) {
            want(m, o, "limit", limit);
            totals++;
        } else if (o->phase == 'U' && row_param(row_named(o->call), "p") >= 0) {
            one(m, &r, o);
            params++;
        }
    }
    bool each = is_word(node_field(r.train, "clip_scope"), "parameter");
    if (totals != (limit == 0 ? 0 : each ? params : 1))
        model_fault(m, r.train ? r.train : m->root, "%d norms are limited in model.graph", totals);
    rates(m, &r);
}
