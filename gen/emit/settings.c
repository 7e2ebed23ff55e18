/* SPDX-License-Identifier: Apache-2.0
 *
 * settings.c: what a checkpoint has to know of the training that wrote it.
 *
 * Its moments are numbers that an optimiser gave a meaning.  The rule is that meaning: the type, and what else decides which
 * sums are kept.  Under another rule they would be read as something else, so a job refuses them.  The settings are numbers
 * that each step reads anew, by their names in the model file.  With others a job may go on, and it says which.
 */
#include "emit.h"

const char *emit_moments(const Train *t)
{
    static const char *const type[] = {[OPT_SGD] = "sgd", [OPT_ADAMW] = "adamw", [OPT_NADAMW] = "nadamw",
                                       [OPT_RMSPROP] = "rmsprop"};
    return strf("%s%s%s", type[t->opt], t->opt == OPT_RMSPROP && t->centered ? " centered" : "",
                t->opt != OPT_ADAMW && t->opt != OPT_NADAMW && t->momentum != 0 ? " momentum" : "");
}

static void put(FILE *f, const char *name, const char *value)
{
    fprintf(f, "    {%s, ", quote_c(name));
    fprintf(f, "%s},\n", quote_c(value));
}

static void put_number(FILE *f, const char *name, double x)
{
    put(f, name, number_text(x, 6));
}

static void put_list(FILE *f, const char *name, const double *x, int n)
{
    const char *text = "";
    for (int i = 0; i < n; i++)
        text = strf("%s%s%s", text, i ? ", " : "", number_text(x[i], 6));
    put(f, name, strf("[%s]", text));
}

enum { FROZEN, DECAYED = -1 };

/* How many parameters are in a group, or frozen, or decayed, and a hash of their names: patterns differ more than these. */
static int chosen(const Graph *g, int group, char hex[65])
{
    int n = 0;
    Digest sum;
    digest_start(&sum);
    for (EACH(const State, s, g->state)) {
        if (s->kind != S_PARAM || !(group > 0 ? s->group == group : group == DECAYED ? s->decay : s->frozen))
            continue;
        n++;
        digest_add(&sum, s->name, strlen(s->name) + 1);
    }
    digest_end(&sum, hex);
    return n;
}

static const char *decayed(const Graph *g)
{
    char hex[65];
    int n = chosen(g, DECAYED, hex), all = 0;
    for (int i = 0; i < g->state.n; i++)
        all += g->state.at[i].kind == S_PARAM && !g->state.at[i].tracked;
    return strf("%d of %d parameters are decayed (%.8s)", n, all, hex);
}

static void put_optimizer(FILE *f, const Graph *g, const Train *t)
{
    bool adam = t->opt == OPT_ADAMW || t->opt == OPT_NADAMW;
    put_number(f, "train.optimizer.lr", t->lr);
    if (adam)
        put_list(f, "train.optimizer.betas", (double[]){t->beta1, t->beta2}, 2);
    if (t->opt != OPT_SGD)
        put_number(f, "train.optimizer.eps", t->eps);
    if (!adam)
        put_number(f, "train.optimizer.momentum", t->momentum);
    if (t->opt == OPT_SGD)
        put(f, "train.optimizer.nesterov", t->nesterov ? "true" : "false");
    if (t->opt == OPT_RMSPROP)
        put_number(f, "train.optimizer.alpha", t->alpha);
    put_number(f, "train.optimizer.weight_decay", t->weight_decay);
    if (t->weight_decay != 0)
        put(f, "train.optimizer.no_decay", decayed(g));
}

static void put_chosen(FILE *f, const Graph *g, const Train *t)
{
    char hex[65];
    int n = chosen(g, FROZEN, hex);
    if (n)
        put(f, "train.freeze", strf("%d parameters (%.8s)", n, hex));
    for (int i = 0; i < t->param_group.n; i++) {
        const ParamGroup *k = &t->param_group.at[i];
        n = chosen(g, i + 1, hex);
        put(f, strf("train.optimizer.groups.%d", i), strf("%d parameters (%.8s), lr %s, betas %s %s, eps %s, weight_decay %s",
            n, hex, number_text(k->lr, 6), number_text(k->beta1, 6), number_text(k->beta2, 6), number_text(k->eps, 6),
            number_text(k->weight_decay, 6)));
    }
}

static void put_schedule(FILE *f, const Train *t)
{
    static const char *const type[] = {[LR_CONSTANT] = "constant", [LR_COSINE] = "cosine", [LR_LINEAR] = "linear",
                                       [LR_STEP] = "step"};
    bool ends = t->schedule == LR_COSINE || t->schedule == LR_LINEAR;
    put(f, "train.schedule.type", type[t->schedule]);
    put_number(f, "train.schedule.warmup", (double)t->warmup);
    if (ends)
        put_number(f, "train.schedule.final", t->final);
    if (ends)
        put_number(f, "train.steps", (double)t->steps);
    if (t->schedule == LR_STEP)
        put_number(f, "train.schedule.every", (double)t->every);
    if (t->schedule == LR_STEP)
        put_number(f, "train.schedule.factor", t->factor);
}

void emit_settings(FILE *f, const Plan *p)
{
    const Model *m = p->m;
    const Train *t = &m->train;
    fprintf(f, "\n/* for checkpoints: a job with others goes on, and says so */\nstatic const Setting setting[] = {\n");
    put_optimizer(f, p->g, t);
    put_schedule(f, t);
    put_chosen(f, p->g, t);
    put_number(f, "train.clip_norm", t->clip);
    if (t->clip != 0)
        put(f, "train.clip_scope", t->clip_each ? "parameter" : "global");
    put(f, "data.train.order", m->data.sequential ? "sequential" : "shuffled");
    for (EACH(const Input, x, m->inputs)) {
        if (x->mean.n)
            put_list(f, strf("model.inputs.%s.mean", x->name), x->mean.at, x->mean.n);
        if (x->std.n)
            put_list(f, strf("model.inputs.%s.std", x->name), x->std.at, x->std.n);
    }
    fprintf(f, "    {0}\n};\n");
}
