/* SPDX-License-Identifier: Apache-2.0
 *
 * layer.c: a line of the model file as calls, by layers.def, against those of model.graph.
 *
 * Keys and operands of a line give the rules their names; rules give literals, and the shapes of results and parameters; calls
 * take them by the words of calls.def.  The operator of model.graph that is next must be that call with those operands.
 */
#include "model.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct { const char *name, *operands, *keys, *params, *rules, *calls; } Layer;
#define LAYER(name, operands, keys, params, rules, calls) {#name, operands, keys, params, rules, calls},
static const Layer layers[] = {
#include "layers.def"
    {NULL, NULL, NULL, NULL, NULL, NULL}
};

typedef struct { const char *word, *state; } ParamName;
typedef struct {
    Model *m;
    const Scope *s;
    const Node *line;
    const Layer *layer;
    const char *path;
    Env env;
    Words value;                /* operands and results, by word */
    LIST(ParamName) param;
} Line;

static const Layer *layer_named(const char *name)
{
    for (const Layer *l = layers; l->name; l++)
        if (!strcmp(l->name, name))
            return l;
    return NULL;
}

/* The next word of a text, which is cut off at any of these signs; NULL: there is none. */
static const char *cut(const char **p, const char *signs)
{
    *p += strspn(*p, " ");
    *p += strspn(*p, signs);
    *p += strspn(*p, " ");
    size_t n = strcspn(*p, signs), k = n;
    const char *from = *p;
    while (k && from[k - 1] == ' ')
        k--;
    *p += n;
    return k ? name_of(from, k) : NULL;
}

const char *layer_operand(const char *op, int k, int *n)
{
    const Layer *l = layer_named(op);
    const char *p = l ? l->operands : "", *word, *got = NULL;
    for (*n = 0; (word = cut(&p, " ")); ++*n)
        got = *n == k ? word : got;
    *n = l ? *n : -1;
    return got;
}

static bool holds(const Line *x, const char *word)
{
    const Val *v = env_get(&x->env, word);
    return v && (v->real ? v->f != 0 : v->i != 0);
}

static const Value *value_named(const Line *x, const char *word)
{
    for (int i = x->value.n; i-- > 0;)
        if (!strcmp(x->value.at[i].word, word))
            return x->value.at[i].value;
    return NULL;
}

/* ---- keys ------------------------------------------------------------------------------------------------------------ */

static Val list_of(const Line *x, const Node *n)
{
    Val v = {.kind = V_LIST};
    for (const Node *c = n->kind == N_LIST ? n->child : n; c; c = n->kind == N_LIST ? c->next : NULL) {
        if (v.n == MOST_AXES)
            model_fault(x->m, n, "a list of too many numbers");
        v.d[v.n++] = model_val(x->m, x->s, c).i;
    }
    return v;
}

static Val word_index(const Line *x, const Node *n, const char *words)
{
    const char *word;
    for (int i = 0; (word = cut(&words, " ")); i++)
        if (n->kind == N_TEXT && !strcmp(word, n->text))
            return val_int(i);
    model_fault(x->m, n, "a word that dpgen-verify does not know here");
}

/* WORD[=NAME] KIND DEFAULT */
static void read_key(Line *x, const char *key)
{
    const char *word = cut(&key, " ="), *name = *key == '=' ? cut(&key, " =") : word, *kind = cut(&key, " ");
    const char *rest = key + strspn(key, " ");
    const Node *n = node_field(x->line, word), given = {.kind = N_TEXT, .text = rest, .line = x->line->line};
    if (!n && (*kind == 'w' || !*rest || *rest == '-')) {
        bool negative = *rest == '-' && rest[1];
        if (*kind == 'w')
            env_set(&x->env, name, val_int(0));
        else if (!*rest)
            model_fault(x->m, x->line, "%s is missing", word);
        if (!negative)
            return;
    }
    Val v = *kind == 'w' ? word_index(x, n, rest) : *kind == 'l' || *kind == 's' ? list_of(x, n ? n : &given) :
        model_val(x->m, x->s, n ? n : &given);
    if (*kind != 'f' && v.real)
        model_fault(x->m, n ? n : x->line, "%s is no whole number", word);
    v.real = *kind == 'f';
    env_set(&x->env, name, v);
}

static void run_rules(Line *x)
{
    const char *rules = x->layer->rules, *rule, *fault = NULL;
    while ((rule = cut(&rules, ";"))) {
        size_t n = strcspn(rule, " ");
        env_set(&x->env, name_of(rule, n), formula(&x->env, rule + n + 3, true, &fault));
        if (fault)
            model_fault(x->m, x->line, "%s: %s", rule, fault);
    }
}

/* ---- parameters ------------------------------------------------------------------------------------------------------ */

static const char *joined_path(const char *path, const char *name)
{
    return *path ? joined_text("%s.%s", path, name) : name;
}

/* The state that `tie` means: looked up in the block of the line, then in those around it. */
static const char *tied(const Line *x, const char *to, const char *word)
{
    size_t n = strlen(to), k = strlen(word);
    bool itself = n > k && to[n - k - 1] == '.' && !strcmp(to + n - k, word);
    for (const Scope *s = x->s; s; s = s->up)
        for (int i = 0; i < 1 + itself; i++) {
            const char *name = joined_path(s->path, i ? to : joined_text("%s.%s", to, word));
            int at = map_at(&x->m->params, name_of(name, strlen(name)));
            if (at >= 0)
                return x->m->g->state.at[at].name;
        }
    return NULL;
}

static const char *shape_text(const Val *v)
{
    const char *text = "";
    for (int i = 0; i < v->n; i++)
        text = joined_text("%s%s%lld", text, i ? "x" : "", (long long)v->d[i]);
    return text;
}

static void read_param(Line *x, const char *word)
{
    const char *to = joined_path(x->path, word), *own = to, *state;
    const Node *tie = node_field(x->line, "tie"), *names = node_field(x->line, "names"), *named = node_field(names, word);
    const Val *shape = env_get(&x->env, word);
    if (named && named->kind == N_TEXT)
        own = joined_path(x->s->path, named->text);
    state = tie && tie->kind == N_TEXT ? tied(x, tie->text, word) : NULL;
    if (!state)
        state = model_claim(x->m, own);
    int at = map_at(&x->m->g->states, name_of(state, strlen(state)));
    if (at < 0 || strcmp(x->m->g->state.at[at].kind, "param"))
        model_fault(x->m, x->line, "model.graph has no parameter %s", state);
    if (strcmp(x->m->g->state.at[at].shape, shape_text(shape)))
        model_fault(x->m, x->line, "parameter %s is %s, and %s in model.graph", state, shape_text(shape),
                    x->m->g->state.at[at].shape);
    map_set(&x->m->params, name_of(to, strlen(to)), at);
    map_set(&x->m->params, name_of(state, strlen(state)), at);
    x->m->g->state.at[at].still = !strcmp(word, "correction") || !strcmp(word, "factors");      /* they have no gradient */
    ParamName *p = ADD(&x->param);
    *p = (ParamName){word, x->m->g->state.at[at].name};
}

static void read_params(Line *x)
{
    const char *params = x->layer->params, *param;
    while ((param = cut(&params, " "))) {
        size_t n = strcspn(param, "?");
        if (!param[n] || holds(x, param + n + 1))
            read_param(x, name_of(param, n));
    }
}

/* ---- calls ----------------------------------------------------------------------------------------------------------- */

static const char *bound(const char *with, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = with; (p = strstr(p, word)); p += n)
        if (p > with && (p[-1] == '[' || p[-1] == ' ') && p[n] == '=')
            return name_of(p + n + 1, strcspn(p + n + 1, " ]"));
    return word;
}

static const char *sign_text(char sign, const char *name)
{
    return sign == '0' ? "0" : joined_text("%c:%s", sign, name ? name : "");
}

static void want(const Line *x, const GraphOp *o, const GraphArg *a, char sign, const char *name)
{
    if (a->sign != sign || (name && (!a->name || strcmp(a->name, name))))
        model_fault(x->m, x->line, "%s of %s, %s:%d, is %s, and %s must stand there", a->token, o->call, x->m->g->path, o->line,
                    sign_text(a->sign, a->name), sign_text(sign, name));
}

static void want_literal(const Line *x, const GraphOp *o, const GraphArg *a, const char *word, const char *path)
{
    const Val *v = env_get(&x->env, word);
    uint64_t site = 0xcbf29ce484222325;                 /* FNV-1a of the path */
    for (; *path; path++)
        site = (site ^ (unsigned char)*path) * 0x100000001b3;
    int64_t i = !strcmp(word, "site") ? (int64_t)(site & (((uint64_t)1 << 62) - 1)) : v ? v->i : 0;
    double f = !v ? 0 : v->real ? v->f : (double)v->i;
    bool same = a->sign == 'i' ? a->i == i && !(v && v->real) : a->sign == 'f' && !memcmp(&a->f, &f, sizeof f);
    if (!same)
        model_fault(x->m, x->line, a->sign == 'f' ? "%s of %s, %s:%d, is %g, and %g must stand there" :
                    "%s of %s, %s:%d, is %.0f, and %.0f must stand there", a->token, o->call, x->m->g->path, o->line,
                    a->sign == 'f' ? a->f : (double)a->i, a->sign == 'f' ? f : (double)i);
}

static void want_read(const Line *x, const GraphOp *o, const GraphArg *a, const Param *p, const char *word)
{
    const Value *v = value_named(x, word);
    const char *state = NULL;
    for (int i = 0; i < x->param.n; i++)
        if (!strcmp(x->param.at[i].word, word))
            state = x->param.at[i].state;
    const Thing *copy = state && p->width < 4 ? reference_state(x->m->g, state, "copy") : NULL;
    want(x, o, a, v ? 'r' : state ? 'R' : '0', v ? v->tensor : copy ? copy->name : state);
}

static void take_result(Line *x, const GraphOp *o, const GraphArg *a, const Param *p, const char *word)
{
    const Val *shape = env_get(&x->env, word);
    Value *v = room(sizeof *v);
    want(x, o, a, 'w', NULL);
    *v = (Value){a->name, shape ? *shape : (Val){.kind = V_NONE}};
    v->shape.loss = !strcmp(p->name, "loss") || !strncmp(o->call, "loss_", 5);
    const Thing *t = &x->m->g->tensor.at[map_at(&x->m->g->tensors, a->name)];
    if (shape && strcmp(t->shape, shape_text(shape)))
        model_fault(x->m, x->line, "%s is %s, and %s in model.graph", a->name, shape_text(shape), t->shape);
    Word *to = ADD(&x->value);
    *to = (Word){word, v};
}

static void statistics(Line *x)
{
    *ADD(&x->m->momentum) = *env_get(&x->env, "momentum");
    *ADD(&x->m->each) = *env_get(&x->env, "each");
}

/* A Linear of sizes that tensor cores take has factors of 8 bits, if the model file says so and it learns; it has a history. */
static bool in_eight_bits(Line *x, const char *with, const char *path)
{
    static const char *const sizes[] = {"rows", "in", "out"};
    const char *weight = bound(with, "weight");
    bool eight = x->m->fp8 && strcmp(x->layer->name, "LSTM");
    for (int i = 0; i < 3 && eight; i++)
        eight = env_get(&x->env, bound(with, sizes[i]))->i % 16 == 0;
    for (int i = 0; i < x->param.n && eight; i++)
        if (!strcmp(x->param.at[i].word, weight))
            eight = !x->m->g->state.at[map_at(&x->m->g->states, x->param.at[i].state)].frozen;
    if (!eight)
        return false;
    const char *name = joined_text("%s.amax", path);
    map_set(&x->m->params, name_of(name, strlen(name)), map_at(&x->m->g->states, name_of(name, strlen(name))));
    ParamName *p = ADD(&x->param);
    *p = (ParamName){"amax", model_claim(x->m, name)};
    return true;
}

/* Forward operators that read a parameter, or its copy. */
static int readers(const Graph *g, const char *state)
{
    const Thing *copy = reference_state(g, state, "copy");
    int n = 0;
    for (int i = 0; i < g->op.n; i++)
        for (int k = 0; k < g->op.at[i].arg.n && g->op.at[i].phase == 'F'; k++) {
            const char *name = strchr("RWUA", g->op.at[i].arg.at[k].sign) ? g->op.at[i].arg.at[k].name : "";
            n += !strcmp(name, state) || (copy && !strcmp(name, copy->name));
        }
    return n;
}

/* A line's Linear has a weight of few bits, if section quantize names it, or no line: frozen, not shared and no adapter. */
static bool in_few_bits(Line *x, const char *with, const char *path)
{
    const Node *quantize = node_field(x->m->root, "quantize"), *names = node_field(quantize, "match");
    const Node *type = node_field(quantize, "type");
    const char *weight = bound(with, "weight"), *state = NULL;
    for (int i = 0; i < x->param.n; i++)
        if (!strcmp(x->param.at[i].word, weight))
            state = x->param.at[i].state;
    bool few = quantize && state && !strncmp(x->layer->name, "Linear", 6) && (!names || model_matches(names, path)) &&
        x->m->g->state.at[map_at(&x->m->g->states, state)].frozen && readers(x->m->g, state) == 1 && !strstr(state, ".lora_");
    if (few)
        env_set(&x->env, "bits", val_int(type && type->text && !strcmp(type->text, "int8") ? 8 : 4));
    return few;
}

/* [?RULE] [word:] call [a=b] */
static void one_call(Line *x, const char *text)
{
    Graph *g = x->m->g;
    const char *p = *text == '?' ? text + strcspn(text, " ") + 1 : text, *colon = strchr(p, ':'), *path = x->path;
    if (colon) {
        path = joined_path(path, joined_text("%.*s", (int)(colon - p), p));
        p = colon + 2;
    }
    const char *call = name_of(p, strcspn(p, " ")), *own = model_claim(x->m, path);
    if (!strcmp(call, "linear_forward") && in_eight_bits(x, p, path))
        call = "linear_fp8_forward";
    else if (!strcmp(call, "linear_forward") && in_few_bits(x, p, path))
        call = "linear_quantized_forward";
    const GraphOp *o = x->m->at < g->op.n ? &g->op.at[x->m->at++] : NULL;
    if (!o || o->phase != 'F' || strcmp(o->call, call) || strcmp(o->name, own))
        model_fault(x->m, x->line, "%s, called %s, must be the next operator of model.graph, line %d", call, own,
                    o ? o->line : 0);
    if (!strcmp(call, "batchstat_forward"))
        statistics(x);
    if (!strcmp(x->layer->name, "StopGradient") != !strcmp(o->row, "StopGradient"))
        model_fault(x->m, x->line, "the row of %s:%d is %s", g->path, o->line, o->row);
    const Row *r = row_named(call);
    for (int k = 0; k < r->n; k++) {
        const Param *q = &r->param[k];
        const char *word = bound(p, q->name);
        if (strchr("ifsn", q->mode))
            want_literal(x, o, &o->arg.at[k], word, path);
        else if (q->mode == 'w')
            take_result(x, o, &o->arg.at[k], q, word);
        else if (q->mode == 'o')
            want(x, o, &o->arg.at[k], '0', NULL);
        else if (q->width && q->mode != 't')
            want_read(x, o, &o->arg.at[k], q, word);
    }
}

static void run_calls(Line *x)
{
    const char *calls = x->layer->calls, *call, *one;
    while ((call = cut(&calls, ";")))
        while ((one = cut(&call, "|"))) {
            size_t n = strcspn(one, " ");
            if (*one != '?' || holds(x, name_of(one + 1, n - 1))) {
                one_call(x, one);
                break;
            }
        }
}

/* ---- lines ----------------------------------------------------------------------------------------------------------- */

/* A loss of targets counts those of an input, but one value. */
static void count(Line *x, const Val *number)
{
    const Value *targets = value_named(x, "targets");
    const Val *ignore = env_get(&x->env, "ignore");
    Graph *g = x->m->g;
    x->m->losses++;
    for (int i = 0; i < g->count.n && targets; i++)
        if (g->count.at[i].count == number->i) {
            int t = map_at(&g->tensors, targets->tensor);
            if (t < 0 || strcmp(g->tensor.at[t].kind, "input") || g->tensor.at[t].input != g->count.at[i].input ||
                g->count.at[i].ignore != ignore->i)
                model_fault(x->m, x->line, "count %d of model.graph counts other targets", (int)number->i);
            return;
        }
    model_fault(x->m, x->line, "model.graph has no count %d", (int)number->i);
}

static void one_line(Line *x, Words *results, int part)
{
    static const char *const words[] = {"y", "loss", "share", "expert", "slot", "offset"};
    env_set(&x->env, "part", val_int(part));
    run_rules(x);
    read_params(x);
    int operands = x->value.n;
    run_calls(x);
    if (strstr(x->layer->rules, "count = losses"))
        count(x, env_get(&x->env, "count"));
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        for (int k = x->value.n; k-- > operands;)
            if (!strcmp(x->value.at[k].word, words[i])) {
                *ADD(results) = x->value.at[k];
                break;
            }
}

/* Concat of more than eight: the first eight become one, until eight are left. */
static Words nested(Model *m, Scope *s, const Node *line, const char *path, Words list)
{
    int most;
    layer_operand("Concat", 0, &most);
    for (int level = 1; list.n > most; level++) {
        Words first = {list.at, most, most}, made = {0}, next = {0};
        layer_line(m, s, line, "Concat", joined_text("%s.%d", path, level), first, &made);
        *ADD(&next) = made.at[0];
        for (int i = most; i < list.n; i++)
            *ADD(&next) = list.at[i];
        list = next;
        for (int i = 0, n; i < list.n && i < most; i++)
            list.at[i].word = layer_operand("Concat", i, &n);
    }
    return list;
}

/* A Linear beside which two small ones learn. */
static const Node *adapted(const Model *m, const char *op, const char *path)
{
    const Node *adapt = node_field(m->root, "adapt");
    return adapt && !strcmp(op, "Linear") && model_matches(node_field(adapt, "match"), path) ? adapt : NULL;
}

static void adapt_names(Line *x, const Node *adapt)
{
    const Node *rank = node_field(adapt, "rank"), *alpha = node_field(adapt, "alpha"), *drop = node_field(adapt, "dropout");
    double r = rank ? model_number(x->m, x->s, rank) : 8, a = alpha ? model_number(x->m, x->s, alpha) : 8;
    env_set(&x->env, "rank", val_int((int64_t)r));
    env_set(&x->env, "factor", (Val){.kind = V_NUMBER, .real = true, .f = a / r});
    env_set(&x->env, "drop", (Val){.kind = V_NUMBER, .real = true, .f = drop ? model_number(x->m, x->s, drop) : 0});
}

void layer_line(Model *m, Scope *s, const Node *line, const char *op, const char *path, Words operands, Words *results)
{
    const Node *adapt = adapted(m, op, path);
    Line x = {.m = m, .s = s, .line = line, .layer = layer_named(adapt ? "LinearAdapted" : op), .path = path};
    if (!strcmp(op, "Concat"))
        operands = nested(m, s, line, path, operands);
    env_set(&x.env, "B", val_int(m->g->batch));
    env_set(&x.env, "losses", val_int(m->losses));
    env_set(&x.env, "outputs", val_int(m->outputs));
    if (adapt)
        adapt_names(&x, adapt);
    for (int i = 0; i < operands.n; i++) {
        *ADD(&x.value) = operands.at[i];
        env_set(&x.env, operands.at[i].word, operands.at[i].value->shape);
    }
    const char *keys = x.layer->keys, *key;
    while ((key = cut(&keys, ";")))
        read_key(&x, key);
    const Val *parts = env_get(&x.env, "parts"), *sizes = env_get(&x.env, "sizes");
    int64_t n = strcmp(op, "Split") ? 1 : parts ? parts->i : sizes ? sizes->n : 0;
    int env = x.env.n, value = x.value.n;
    if (!strcmp(op, "Split"))
        model_claim(m, path);
    for (int i = 0; i < n && i < 4096; i++) {
        if (!strcmp(op, "Split"))
            x.path = joined_text("%s.%d", path, i);
        x.env.n = env;
        x.value.n = value;
        one_line(&x, results, i);
    }
    free(x.env.at);
    free(x.value.at);
    free(x.param.at);
}
