/* SPDX-License-Identifier: Apache-2.0
 *
 * key.c: the numeric key, a text that names everything the bits of a run follow from.
 *
 *   model       hash of parameters and forward calls, as they are written, before neighbours are joined; activations are
 *               numbers there, for their names change no bits
 *   train       hash of start values, optimiser, rates, seed and the order of the data
 *   batch, micro, groups; blocks unless they are one, and a hash of the pieces that they cut; compute, target, kernels,
 *   measured algorithms; threads and isa, or order of additions, workspace of libraries, arch and spare multiprocessors
 *
 * Two jobs of one key give the same bits under any synchronous plan (docs/bits.md).  An asynchronous plan adds its rule of
 * weight versions.
 */
#include "key.h"

static const char *hash_of(Text *t)
{
    text_close(t);
    return sha256_of(t->at, t->n);
}

/* Names of lines and inputs change no bits, so an activation is a number: the how manieth that the calls name. */
typedef struct { FILE *f; const Graph *g; int *number, n; } Calls;

/* The place of draws, a hash of the line's name, says nothing where none is made. */
static bool draws(const Op *o)
{
    for (int i = 0; i < o->arg.n; i++)
        if (arg_role(&o->arg.at[i]) == ROLE_DROP)
            return o->arg.at[i].f != 0;
    return true;
}

static const char *calls_hash(const Graph *g)
{
    Text t;
    Calls c = {text_open(&t), g, alloc(((size_t)g->tensor.n + 1) * sizeof *c.number), 0};
    for (int s = 0; s < g->state.n; s++)
        if (g->state.at[s].kind == S_PARAM)
            fprintf(c.f, "param %s %s\n", g->state.at[s].name, shape_text(&g->state.at[s].shape));
    for (int o = 0; o < g->nf; o++) {
        const Op *op = &g->op.at[o];
        fprintf(c.f, "%s", op->call);
        for (int i = 0; i < op->arg.n; i++)
            if (arg_role(&op->arg.at[i]) != ROLE_SITE || draws(op)) {
                const Arg *a = &op->arg.at[i];
                if (a->kind == ARG_INT)
                    fprintf(c.f, " %s=%" PRId64, a->token, a->i);
                else if (a->kind == ARG_FLOAT)
                    fprintf(c.f, " %s=%a", a->token, (double)(float)a->f);        /* as a stage has it */
                else if ((a->kind == ARG_READ || a->kind == ARG_WRITE) && a->state)
                    fprintf(c.f, " %s=%s", a->token, c.g->state.at[a->index].name);
                else if (a->kind == ARG_READ || a->kind == ARG_WRITE) {
                    int *number = &c.number[a->index];
                    *number = *number ? *number : ++c.n;
                    fprintf(c.f, " %s=%d", a->token, *number);
                }
            }
        fprintf(c.f, "%s\n", op_is(op, TRAIT_STOP) ? " stop" : "");
    }
    return hash_of(&t);
}

/* What the parameters mean: every forward call with its operands and attributes; no place in a file, no plan.  What fuse has
 * joined counts as it was written, unless somebody has changed it in a file since. */
const char *model_hash(const Graph *g)
{
    const char *calls = calls_hash(g);
    bool joined = g->model && *g->model && g->calls && !strcmp(g->calls, calls);
    return joined ? g->model : calls;
}

static void print_bytes(FILE *f, const Input *x)
{
    if (!x->bytes)
        return;
    fprintf(f, "bytes %s", x->name);
    for (int i = 0; i < x->mean.n; i++)
        fprintf(f, " %a", x->mean.at[i]);
    for (int i = 0; i < x->std.n; i++)
        fprintf(f, " /%a", x->std.at[i]);
    fprintf(f, "\n");
}

/* What happens to them: start values, optimiser, rates, seed, the order of the data. */
/* Of start values, optimiser, rates and seed */
static const char *train_hash(const Graph *g, const Model *m)
{
    const Train *x = &m->train;
    Text t;
    FILE *f = text_open(&t);
    for (int s = 0; s < g->state.n; s++) {
        const State *p = &g->state.at[s];
        if (p->kind == S_PARAM)
            fprintf(f, "%s %d %a %a %d%s%s%s\n", p->name, (int)p->init.kind, p->init.a, p->init.b, p->decay,
                    p->init.values ? p->init.values : "", p->frozen ? " frozen" : "",
                    p->group ? strf(" group %d", p->group) : "");
    }
    fprintf(f, "optimizer %d lr %a %a %a eps %a momentum %a decay %a\n", (int)x->opt, x->lr, x->beta1, x->beta2, x->eps,
            x->momentum, x->weight_decay);
    for (EACH(const ParamGroup, k, x->param_group))
        fprintf(f, "group lr %a %a %a eps %a decay %a\n", k->lr, k->beta1, k->beta2, k->eps, k->weight_decay);
    if (x->nesterov || x->opt == OPT_RMSPROP)
        fprintf(f, "nesterov %d alpha %a%s\n", x->nesterov, x->alpha, x->centered ? " centered" : "");
    fprintf(f, "schedule %d warmup %" PRId64 " every %" PRId64 " final %a factor %a steps %" PRId64 "\n", (int)x->schedule,
            x->warmup, x->every, x->final, x->factor, x->steps);
    fprintf(f, "data %s %d\n", m->data.format ? m->data.format : "none", m->data.sequential);
    for (int i = 0; i < m->inputs.n; i++)
        print_bytes(f, &m->inputs.at[i]);
    fprintf(f, "clip %a %d seed %" PRIu64 "\n", x->clip, x->clip_each, x->seed);
    return hash_of(&t);
}

/* Of the products whose sums are cut by pieces, the how manieth they are and in how many; "": there are none. */
static const char *pieces_of(const Graph *g)
{
    Text t;
    FILE *f = text_open(&t);
    int number = 0, cut = 0;
    for (int o = g->nf; o < g->nb; o++) {
        const Op *op = &g->op.at[o];
        number += op->phase == PH_I && row(op->row)->product;
        for (int i = 0; i < op->arg.n; i++)
            if (op->arg.at[i].kind == ARG_INT && op->arg.at[i].i > 1 && !strcmp(op->arg.at[i].token, "pieces"))
                fprintf(f, "%d %" PRId64 "\n", number, op->arg.at[i].i), cut++;
    }
    const char *hash = hash_of(&t);
    return cut ? strf(" pieces=%.16s", hash) : "";
}

const char *numeric_key(const Graph *g, const Model *m, const Cost *c)
{
    const Device *d = &m->devices.at[0];
    const char *hardware = library_of(d)->anywhere ? ""
                         : target_of(d)->gpu ? strf(" workspace=%" PRId64 " arch=%s%s", d->workspace, d->arch ? d->arch : "any",
                                                    d->spare ? strf(" spare=%d", d->spare) : "")
                         : strf(" threads=%d isa=%s", d->threads, d->isa);
    const char *compute = m->train.compute == g->compute ? compute_word(&m->train) : type_name(g->compute);
    return strf("model=%.16s train=%.16s batch=%" PRId64 " micro=%" PRId64 " groups=%" PRId64 "%s compute=%s target=%s"
                " kernels=%s order=%d%s%s", model_hash(g), train_hash(g, m), g->batch, g->micro, g->groups,
                g->blocks ? strf(" blocks=%" PRId64 "%s", g->blocks, pieces_of(g)) : "", compute,
                d->kind, d->kernels, library_of(d)->sum_order, hardware, c->profile ? profile_key(c->profile, g) : "");
}

/* Algorithms of a profile are looked up when a plan is emitted, so a plan that was read may have others. */
const char *numeric_bits(const char *key)
{
    const char *algorithms = strstr(key, " algorithms="), *versions = strstr(key, " versions=");
    const char *rest = versions ? versions : key + strlen(key);
    return strf("%.*s%s", (int)((algorithms ? algorithms : rest) - key), key, rest);
}
