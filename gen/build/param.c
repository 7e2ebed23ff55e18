/* SPDX-License-Identifier: Apache-2.0
 *
 * param.c: parameters of an operator: made, or shared by `tie:`.
 *
 * A parameter is named after the operator that has it first: h.3.ln_1.weight.  `tie: wte` shares every parameter
 * that both operators have under the same name, `tie: wte.weight` that one.  The name is looked up in the block
 * instance of the line, then in the ones around it.  The other operator must come earlier in the file: the first use
 * names the parameter.
 *
 * Start values: `init:` of the line for the weight; else the rules `weight`, `bias`, `norm` of model.init; else
 * normal with deviation 0.02 (Radford et al., Language Models are Unsupervised Multitask Learners, 2019), zeros for
 * biases, ones for the weights of norms.  In bf16 jobs a parameter that a kernel reads in the compute type has its
 * copy right behind it in the list: bind_call counts on that.
 */
#include "build.h"

static const Init *rule(const Model *m, const char *name)
{
    static const Init fixed[] = {{"zeros", INIT_ZEROS, 0, 0, FAN_NONE, NULL}, {"ones", INIT_ONES, 0, 0, FAN_NONE, NULL}};
    int given = INDEX_OF(m->inits.at, m->inits.n, name), i = INDEX_OF(fixed, 2, name);
    return given >= 0 ? &m->inits.at[given] : i < 0 ? NULL : &fixed[i];
}

/* Running statistics: of numbers with mean 0 and deviation 1 */
static Init at_first(const char *par)
{
    static const Init zeros = {"zeros", INIT_ZEROS, 0, 0, FAN_NONE, NULL}, ones = {"ones", INIT_ONES, 0, 0, FAN_NONE, NULL};
    return strcmp(par, "running_var") ? zeros : ones;
}

static Init by_default(const Model *m, const Row *r, const char *par)
{
    static const Init norm = {"norm", INIT_ONES, 0, 0, FAN_NONE, NULL}, bias = {"bias", INIT_ZEROS, 0, 0, FAN_NONE, NULL},
                      weight = {"weight", INIT_NORMAL, 0, 0.02, FAN_NONE, NULL};
    bool norms = strstr(r->shape, "norm") || !strcmp(par, "normalize_scalar");
    const Init *def = !strcmp(par, "bias") || !strcmp(par, "normalize_bias") ? &bias : norms ? &norm : &weight;
    const Init *given = rule(m, def->name);
    return given ? *given : *def;
}

static Init by_line(Scope *s, const Node *n)
{
    const Model *m = s->b->m;
    const Init *i = n->kind == SCALAR ? rule(m, n->text) : NULL;
    if (i)
        return *i;
    Strs names = {0};
    for (int k = 0; k < m->inits.n; k++)
        *PUSH(&names) = m->inits.at[k].name;
    *PUSH(&names) = "zeros";
    *PUSH(&names) = "ones";
    WRONG(s->b, n->loc, did_you_mean(n->text, names.at, names.n, "a rule of model.init, zeros, or ones"),
          "no such rule for start values");
    return (Init){0};
}

static const char *own_name(const Op *o, int i)
{
    return o->par_name ? o->par_name[i] : row(o->row)->par.at[i].name;
}

/* `names: {weight: in_proj_weight}` names a parameter beside the operator, not below it. */
static const char *par_name(Scope *s, const Node *line, const Op *o, const Operand *par)
{
    int i = (int)(par - row(o->row)->par.at);
    const Node *names = node_get(line, "names"), *named = names && names->kind == MAP ? node_get(names, own_name(o, i)) : NULL;
    const char *fault = !named ? NULL : named->kind == SCALAR ? name_fault(named->text) : "write names: {weight: NAME}";
    if (fault)
        WRONG(s->b, named->loc, fault, "this is no name");
    return named && !fault ? path_join(s->path, named->text) :
        path_join(o->owner ? o->owner : o->name, own_name(o, i));
}

static int make(Scope *s, const Node *line, const Op *o, int op, const Operand *par, Init init)
{
    Graph *g = s->b->g;
    int index = g->state.n;
    State st = {.kind = S_PARAM, .type = F32, .param = index, .op = op, .init = init, .tracked = par->tracked,
                .frozen = par->fixed, .loc = o->loc};
    st.name = claim(s, line, par_name(s, line, o, par));
    *PUSH(&g->state) = st;
    names_put(&s->b->param, st.name, index);
    if (g->compute == BF16 && par->type == 'r')
        *PUSH(&g->state) = (State){.name = strf("%s.copy", st.name), .kind = S_COPY, .type = BF16, .param = index,
                                   .op = op, .loc = o->loc};
    return index;
}

/* The state that `tie: to` means for a parameter: an operator's of the same name, or the parameter itself. */
static int tied(const Scope *s, const char *to, const char *par)
{
    size_t n = strlen(to), k = strlen(par);
    bool itself = n > k && to[n - k - 1] == '.' && !strcmp(to + n - k, par);
    for (const Scope *in = s; in; in = in->up) {
        int state = names_get(&s->b->param, path_join(path_join(in->path, to), par));
        if (state < 0 && itself)
            state = names_get(&s->b->param, path_join(in->path, to));
        if (state >= 0)
            return state;
    }
    return -1;
}

static void no_tie(Scope *s, const Node *tie)
{
    const Graph *g = s->b->g;
    Strs names = {0};
    for (int i = 0; i < g->state.n; i++) {
        const char *name = g->state.at[i].name;
        if (g->state.at[i].kind == S_PARAM && !g->state.at[i].tracked) {
            *PUSH(&names) = strf("%.*s", (int)(strrchr(name, '.') - name), name);
            *PUSH(&names) = name;
        }
    }
    WRONG(s->b, tie->loc, did_you_mean(tie->text, names.at, names.n, "tie the later operator to the earlier one"),
          "no operator above has a parameter to share under the name %s", tie->text);
}

static int share_or_make(Scope *s, const Node *line, const Op *o, int op, int i, int *shared)
{
    const Row *r = row(o->row);
    const Operand *par = &r->par.at[i];
    const Node *tie = node_get(line, "tie"), *init = node_get(line, "init");
    /* Is this parameter of the row absent?  `affine: false` stands for all of them; a key of its name may have a default. */
    const Node *n = node_get(line, par->name);
    const char *key = attr_find(o, "affine") ? "affine" : par->name;
    bool none = attr_find(o, key) && !attr_int(o, key);
    if (par->optional && (n ? !eval_bool(s, n) : none))
        return -1;
    if (par->tracked)
        return make(s, line, o, op, par, at_first(par->name));
    int state = tie && tie->kind == SCALAR ? tied(s, tie->text, own_name(o, i)) : -1;
    if (state < 0)
        return make(s, line, o, op, par, init && !i ? by_line(s, init) : by_default(s->b->m, r, par->name));
    const Graph *g = s->b->g;
    names_put(&s->b->param, path_join(o->name, own_name(o, i)), state);
    *PUSH(&s->b->alias) = (BuildEntry){path_join(o->name, own_name(o, i)), state};
    ++*shared;
    if (par->type != row(g->op.at[g->state.at[state].op].row)->par.at[0].type)
        WRONG(s->b, tie->loc, NULL, "%s and %s read their parameters in different types: they cannot be tied", o->name,
              g->op.at[g->state.at[state].op].name);
    return state;
}

/* The keys of `names`: the parameters of the row, and of both rows of a BatchNorm. */
static Strs names_keys(int of)
{
    const int both[] = {row_find("BatchStat"), row_find("BatchNormalize")};
    bool batch = of == both[0] || of == both[1];
    Strs keys = {0};
    for (int k = 0; k < 1 + batch; k++) {
        const Row *r = row(batch ? both[k] : of);
        for (int i = 0; i < r->par.n; i++)
            *PUSH(&keys) = r->par.at[i].name;
    }
    return keys;
}

void params(Scope *s, const Node *line, Op *o, int op)
{
    const Node *tie = node_get(line, "tie");
    int shared = 0;
    const Node *names = node_get(line, "names");
    Strs keys = names_keys(o->row);
    if (names && names->kind != MAP)
        WRONG(s->b, names->loc, "write names: {weight: NAME}", "'names' is a mapping");
    else if (names)
        keys_ok(s->b, names, "'names'", &keys);
    for (int i = 0; i < row(o->row)->par.n; i++) {
        int state = share_or_make(s, line, o, op, i, &shared);
        *PUSH(&o->par) = state;
    }
    if (tie && tie->kind != SCALAR)
        WRONG(s->b, tie->loc, "write tie: wte", "'tie' names one operator or parameter");
    else if (tie && !shared && !row(o->row)->par.at[0].tracked)
        no_tie(s, tie);
}
