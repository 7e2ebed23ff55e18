/* SPDX-License-Identifier: Apache-2.0
 *
 * model.c: does model.graph compute what model.yaml says?
 *
 * Problem: a proof against model.graph is worth what model.graph is worth.  Method: the blocks, repetitions, expressions and
 * ties of the model file are followed once more, by docs/model.md; each line is one operator of model.graph, or some, which
 * layers.def names.  Operators, operands, literals, shapes and parameters are compared one by one, in the order of the file.
 *
 * Cost: linear in lines.  A line with an operator that layers.def lacks is named in the report, and then nothing is compared.
 */
#include "model.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_LINES = 1 << 18, DEEPEST = 32, MOST_REPEATED = 4096 };

void model_fault(const Model *m, const Node *at, const char *format, ...)
{
    char text[900];
    va_list of;
    va_start(of, format);
    vsnprintf(text, sizeof text, format, of);
    va_end(of);
    stop(NOT_PROVED, "%s:%d: %s", m->path, at->line, text);
}

/* ---- numbers --------------------------------------------------------------------------------------------------------- */

Val model_val(const Model *m, const Scope *s, const Node *n)
{
    const char *fault = NULL;
    if (n->kind != N_TEXT)
        model_fault(m, n, "a number must stand here");
    if (!strcmp(n->text, "true") || !strcmp(n->text, "false"))
        return val_int(n->text[0] == 't');
    Val v = formula(s ? &s->env : &m->dims, n->text, false, &fault);
    if (fault)
        model_fault(m, n, "%s: %s", n->text, fault);
    return v;
}

double model_number(const Model *m, const Scope *s, const Node *n)
{
    return model_val(m, s, n).f;
}

static bool is_on(const Model *m, const Scope *s, const Node *line)
{
    const Node *when = node_field(line, "when");
    return !when || model_number(m, s, when) != 0;
}

/* `*` stands for any run of characters: of the last one the shortest that does. */
static bool matches(const char *p, const char *name)
{
    const char *star = NULL, *from = name;
    while (*name)
        if (*p == '*') {
            star = ++p;
            from = name;
        } else if (*p == *name) {
            p++;
            name++;
        } else if (star) {
            p = star;
            name = ++from;
        } else {
            return false;
        }
    return !p[strspn(p, "*")];
}

bool model_matches(const Node *patterns, const char *name)
{
    bool any = patterns && patterns->kind == N_TEXT && matches(patterns->text, name);
    for (const Node *c = patterns ? patterns->child : NULL; c; c = c->next)
        any |= c->kind == N_TEXT && matches(c->text, name);
    return any;
}

/* The first entry of a map, each of which has a key. */
static const Node *entries(const Model *m, const Node *map)
{
    for (const Node *c = map ? map->child : NULL; c; c = c->next)
        if (!c->field)
            model_fault(m, map, "a map must stand here");
    return map ? map->child : NULL;
}

/* ---- values and names ------------------------------------------------------------------------------------------------ */

static const Value *find(const Words *list, const char *name)
{
    for (int i = list->n; i-- > 0;)
        if (!strcmp(list->at[i].word, name))
            return list->at[i].value;
    return NULL;
}

const Value *model_value(const Model *m, const Scope *s, const Node *n)
{
    const Value *v = NULL;
    if (n->kind != N_TEXT)
        model_fault(m, n, "the name of a value must stand here");
    if (!strcmp(n->text, "_"))
        v = s->last;
    else if (!strcmp(n->text, "$in"))
        v = s->first;
    else if (!(v = find(&s->value, n->text)))
        v = find(&m->input, n->text);
    if (!v)
        model_fault(m, n, "there is no value %s here", n->text);
    return v;
}

static const Value *before(const Model *m, const Scope *s, const Node *line)
{
    if (!s->last)
        model_fault(m, line, "there is no value before this line");
    return s->last;
}

static void name_value(Scope *s, const char *name, const Value *v)
{
    Word *w = ADD(&s->value);
    *w = (Word){name, v};
}

static const char *as_c(const char *path)
{
    char *text = room(strlen(path) + 1);
    for (size_t i = 0; path[i]; i++)
        text[i] = path[i] == '.' ? '_' : path[i];
    return name_of(text, strlen(text));
}

const char *model_claim(Model *m, const char *path)
{
    map_set(&m->taken, as_c(path), 1);
    return path;
}

static const char *below(const char *path, const char *name)
{
    return *path ? joined_text("%s.%s", path, name) : name;
}

/* The name of a line; else its operator or block in lower case, with a number where that is taken. */
const char *model_path(Model *m, const Scope *s, const Node *line, const char *kind)
{
    const Node *name = node_field(line, "name");
    char lower[256];
    size_t n = 0;
    if (name && name->kind == N_TEXT)
        return below(s->path, name->text);
    for (; kind[n] && n + 1 < sizeof lower; n++)
        lower[n] = kind[n] >= 'A' && kind[n] <= 'Z' ? (char)(kind[n] + 'a' - 'A') : kind[n];
    lower[n] = 0;
    const char *path = below(s->path, joined_text("%s", lower));
    for (int i = 2; map_at(&m->taken, as_c(path)) >= 0; i++)
        path = below(s->path, joined_text("%s_%d", lower, i));
    return path;
}

/* ---- operators ------------------------------------------------------------------------------------------------------- */

static void add_operand(Words *list, const char *op, int k, const Value *v)
{
    int n;
    const char *word = layer_operand(op, k, &n);
    Word *w = ADD(list);
    *w = (Word){word ? word : strcmp(op, "Concat") ? "" : "more", v};
}

static void branches(Model *m, Scope *s, const Node *line, const char *op, Words *list)
{
    const Node *in = node_field(line, "in");
    const Value *from = in ? model_value(m, s, in) : before(m, s, line);
    int k = 0;
    for (const Node *b = node_field(line, "branches")->child; b; b = b->next) {
        s->last = from;
        model_body(m, s, b);
        add_operand(list, op, k++, s->last);
    }
}

/* By position, then by name; without any the first is the value before.  Of two that commute the larger comes first. */
static Words operands(Model *m, Scope *s, const Node *line, const char *op)
{
    Words list = {0};
    const Node *in = node_field(line, "in");
    int n, k = 0;
    if (node_field(line, "branches"))
        branches(m, s, line, op, &list);
    else
        for (const Node *c = in && in->kind == N_LIST ? in->child : in; c; c = in->kind == N_LIST ? c->next : NULL)
            add_operand(&list, op, k++, model_value(m, s, c));
    const char *first = layer_operand(op, 0, &n);
    if (list.n == 0 && first && !node_field(line, first))
        add_operand(&list, op, 0, before(m, s, line));
    for (k = list.n; k < n; k++) {
        const Node *key = node_field(line, layer_operand(op, k, &n));
        if (!key && !strcmp(layer_operand(op, k, &n), "documents"))
            key = node_field(m->model, "documents");
        if (key)
            add_operand(&list, op, k, model_value(m, s, key));
    }
    bool swap = (!strcmp(op, "Add") || !strcmp(op, "Mul")) && list.n == 2;
    if (swap && val_size(&list.at[0].value->shape, 0, list.at[0].value->shape.n) <
        val_size(&list.at[1].value->shape, 0, list.at[1].value->shape.n)) {
        const Value *v = list.at[0].value;
        list.at[0].value = list.at[1].value;
        list.at[1].value = v;
    }
    return list;
}

static void finish(Model *m, Scope *s, const Node *line, const Words *results)
{
    const Node *as = node_field(line, "as");
    int k = 0;
    if (results->n == 0)
        return;
    s->last = results->at[results->n - 1].value;
    for (const Node *c = as && as->kind == N_LIST ? as->child : as; c; c = as->kind == N_LIST ? c->next : NULL) {
        if (c->kind != N_TEXT || k == results->n)
            model_fault(m, as, "more names than results");
        name_value(s, c->text, results->at[k++].value);
    }
}

static void op_line(Model *m, Scope *s, const Node *line)
{
    const Node *op = node_field(line, "op"), *packed = node_field(line, "packed"), *in = node_field(line, "in");
    Words results = {0};
    if (!op || op->kind != N_TEXT)
        model_fault(m, line, "a line without an operator");
    if (!is_on(m, s, line)) {
        Word *w = ADD(&results);
        const Node *one = in && in->kind == N_LIST ? in->child : in;
        *w = (Word){"y", one ? model_value(m, s, one) : before(m, s, line)};
    } else {
        bool one = !strcmp(op->text, "Attention") && packed && packed->kind == N_TEXT && !strcmp(packed->text, "qkv");
        const char *name = one ? "AttentionPacked" : op->text;
        int n;
        if (!layer_operand(name, 0, &n) && n < 0) {
            m->unknown = name;
            return;
        }
        const char *path = model_path(m, s, line, op->text);
        layer_line(m, s, line, name, path, operands(m, s, line, name), &results);
    }
    finish(m, s, line, &results);
}

/* ---- blocks ---------------------------------------------------------------------------------------------------------- */

static void give_args(Model *m, const Scope *s, Env *to, const Node *given)
{
    for (const Node *c = entries(m, given); c; c = c->next)
        env_set(to, c->field, model_val(m, s, c));
}

/* Arguments in the order of the block: what the line gives, or the default, which sees those above it. */
static void arguments(Model *m, const Scope *s, Scope *in, const Node *line, const Node *args, bool first, bool last)
{
    Env given = {0};
    give_args(m, s, &given, node_field(line, "args"));
    give_args(m, s, &given, first ? node_field(line, "first") : NULL);
    give_args(m, s, &given, last ? node_field(line, "last") : NULL);
    for (const Node *c = entries(m, args); c; c = c->next) {
        const Val *v = env_get(&given, c->field);
        env_set(&in->env, c->field, v ? *v : model_val(m, in, c));
    }
    free(given.at);
}

static int list_length(const Node *n)
{
    int k = 0;
    for (const Node *c = n ? n->child : NULL; c; c = c->next)
        k++;
    return n ? k : 1;
}

static Words instance(Model *m, Scope *s, const Node *line, const Node *block, Words inputs, const char *path, int i, int n)
{
    bool longer = node_field(block, "body") != NULL;
    const Node *ins = longer ? node_field(block, "in") : NULL, *outs = longer ? node_field(block, "out") : NULL;
    Scope in = {.up = s, .path = path, .block = node_field(line, "use")->text, .env = {.up = &m->dims}};
    int env = s->env.n, k = 0;
    Words out = {0};
    if (!env_get(&s->env, "i") || node_field(line, "repeat"))
        env_set(&s->env, "i", val_int(i));
    arguments(m, s, &in, line, longer ? node_field(block, "args") : NULL, i == 0, i == n - 1);
    s->env.n = env;
    in.first = in.last = inputs.n ? inputs.at[0].value : NULL;
    for (const Node *c = ins ? ins->child : NULL; c && k < inputs.n; c = c->next)
        name_value(&in, c->text ? c->text : "", inputs.at[k++].value);
    const Node *pass = node_field(line, "pass");
    for (const Node *c = entries(m, pass); c; c = c->next)
        name_value(&in, c->field, model_value(m, s, c));
    model_body(m, &in, longer ? node_field(block, "body") : block);
    for (const Node *c = outs ? outs->child : NULL; c && !m->unknown; c = c->next) {
        Word *w = ADD(&out);
        *w = (Word){"", model_value(m, &in, c)};
    }
    Word *w = outs ? NULL : ADD(&out);
    if (w)
        *w = (Word){"", before(m, &in, line)};
    free(in.env.at);
    free(in.value.at);
    return out;
}

static const char *numbered(const Node *line, const char *path, int64_t k)
{
    const char *at = strstr(path, "{}");
    if (!node_field(line, "repeat"))
        return path;
    return at ? joined_text("%.*s%lld%s", (int)(at - path), path, (long long)k, at + 2) :
        joined_text("%s.%lld", path, (long long)k);
}

static void use_line(Model *m, Scope *s, const Node *line)
{
    const Node *use = node_field(line, "use"), *block = node_field(node_field(m->model, "blocks"), use->text ? use->text : "");
    const Node *in = node_field(line, "in"), *repeat = node_field(line, "repeat"), *from = node_field(line, "from");
    Words values = {0};
    if (!block)
        model_fault(m, use, "there is no such block");
    int deep = 0;
    for (const Scope *up = s; up; up = up->up)
        if (deep++ > DEEPEST || (up->block && !strcmp(up->block, use->text)))
            model_fault(m, use, "a block that uses itself, or is nested too deep");
    for (const Node *c = in && in->kind == N_LIST ? in->child : in; c; c = in->kind == N_LIST ? c->next : NULL) {
        Word *w = ADD(&values);
        *w = (Word){"", model_value(m, s, c)};
    }
    if (!in && s->last) {
        Word *w = ADD(&values);
        *w = (Word){"", s->last};
    }
    const char *path = model_path(m, s, line, use->text);
    int64_t n = !is_on(m, s, line) ? 0 : repeat ? model_val(m, s, repeat).i : 1, first = from ? model_val(m, s, from).i : 0;
    if (n > MOST_REPEATED)
        model_fault(m, repeat, "more repetitions than a line has");
    for (int64_t i = 0; i < n && !m->unknown; i++)
        values = instance(m, s, line, block, values, numbered(line, path, first + i), (int)i, (int)n);
    int outs = node_field(block, "body") ? list_length(node_field(block, "out")) : 1;
    if (values.n > outs)
        values.n = outs;
    finish(m, s, line, &values);
}

void model_body(Model *m, Scope *s, const Node *body)
{
    for (const Node *line = body->child; line && !m->unknown; line = line->next) {
        if (++m->lines > MOST_LINES)
            model_fault(m, line, "more lines than a model has");
        (node_field(line, "use") ? use_line : op_line)(m, s, line);
    }
}

/* ---- the whole ------------------------------------------------------------------------------------------------------- */

static void input(Model *m, Scope *top, const Node *n, int index)
{
    int at = map_at(&m->g->tensors, n->field);
    const Thing *t = at < 0 ? NULL : &m->g->tensor.at[at];
    const Node *shape = node_field(n, "shape"), *type = node_field(n, "dtype");
    Value *v = room(sizeof *v);
    v->tensor = n->field;
    v->shape.kind = V_LIST;
    for (const Node *c = shape ? shape->child : NULL; c && v->shape.n < MOST_AXES; c = c->next)
        v->shape.d[v->shape.n++] = model_val(m, top, c).i;
    bool whole = type && type->kind == N_TEXT && !strcmp(type->text, "i32");
    if (!t || strcmp(t->kind, "input") || t->input != index || t->whole != whole ||
        val_size(&v->shape, 0, v->shape.n) * t->type_bytes != t->bytes)
        model_fault(m, n, "model.graph has no such input, or of another place, type or size");
    model_claim(m, n->field);
    Word *w = ADD(&m->input);
    *w = (Word){n->field, v};
}

/* In bf16 each input of numbers is narrowed once; readers take that. */
static void inputs(Model *m, Scope *top)
{
    const Node *list = node_field(m->model, "inputs");
    int index = 0;
    for (const Node *n = entries(m, list); n; n = n->next)
        input(m, top, n, index++);
    index = 0;
    for (const Node *n = list && m->g->bf16 ? list->child : NULL; n; n = n->next, index++) {
        const char *type = node_field(n, "dtype") && node_field(n, "dtype")->text ? node_field(n, "dtype")->text : "";
        Words one = {0}, made = {0};
        if (!strcmp(type, "i32"))
            continue;
        add_operand(&one, "Cast", 0, m->input.at[index].value);
        layer_line(m, top, n, "Cast", joined_text("%s.cast", n->field), one, &made);
        m->input.at[index].value = made.at[0].value;
    }
}

static void loss(Model *m, Scope *top)
{
    const Node *name = node_field(m->model, "loss");
    static const Node none;
    Words one = {0}, made = {0};
    if (!name)
        model_fault(m, m->model, "no loss");
    const Value *v = model_value(m, top, name);
    if (!m->g->loss || strcmp(v->tensor, m->g->loss))
        model_fault(m, name, "the loss is %s, and %s in model.graph", v->tensor, m->g->loss ? m->g->loss : "none");
    add_operand(&one, "LossReport", 0, v);
    layer_line(m, top, name, "LossReport", model_path(m, top, &none, "loss_report"), one, &made);
}

/* plan.mode infer: model.outputs, a name or several. */
static void outputs(Model *m, Scope *top)
{
    const Node *list = node_field(m->model, "outputs");
    static const Node none;
    if (m->g->loss || !list)
        model_fault(m, m->model, m->g->loss ? "plan.mode is infer, and model.graph has a loss" : "no outputs");
    for (const Node *n = list->kind == N_LIST ? list->child : list; n; n = list->kind == N_LIST ? n->next : NULL) {
        Words one = {0}, made = {0};
        add_operand(&one, "Output", 0, model_value(m, top, n));
        layer_line(m, top, n, "Output", model_path(m, top, &none, joined_text("output.%d", m->outputs)), one, &made);
        m->outputs++;
    }
}

/* Each parameter is one of the model; frozen are those that it names. */
static void parameters(const Model *m)
{
    const Node *freeze = node_field(node_field(m->root, "train"), "freeze"), *adapt = node_field(m->root, "adapt");
    for (int i = 0; i < m->g->state.n; i++) {
        const Thing *t = &m->g->state.at[i];
        if (strcmp(t->kind, "param"))
            continue;
        if (map_at(&m->params, name_of(t->name, strlen(t->name))) != i)
            model_fault(m, m->model, "the model has no parameter %s", t->name);
        bool small = strstr(t->name, ".lora_A.") || strstr(t->name, ".lora_B.");
        bool frozen = adapt ? !small && !model_matches(node_field(adapt, "learn"), t->name) : model_matches(freeze, t->name);
        frozen = frozen || m->infers;
        if (!t->tracked && t->frozen != (frozen || t->still))
            model_fault(m, m->model, "parameter %s %s", t->name, frozen ? "is frozen, and learns in model.graph" :
                        "learns, and is frozen in model.graph");
    }
}

/* Numbers of statistics, in the order of the file, where model.graph adds them up and where it follows them. */
static void followed(const Model *m)
{
    int back = m->momentum.n, next = 0;
    for (int i = 0; i < m->g->op.n; i++) {
        const GraphOp *o = &m->g->op.at[i];
        bool adds = !strcmp(o->call, "batchstat_track"), follows = !strcmp(o->call, "batch_track");
        if (!adds && !follows)
            continue;
        int k = adds ? --back : next++;
        const Row *r = row_named(o->call);
        if (k < 0 || k >= m->momentum.n || o->arg.at[row_param(r, "momentum")].f != m->momentum.at[k].f ||
            o->arg.at[row_param(r, "each")].i != m->each.at[k].i)
            model_fault(m, m->model, "%s:%d: momentum or each is not that of the line", m->g->path, o->line);
    }
}

/* The type of numbers, and how a step is divided. */
static void settings(Model *m)
{
    const Node *train = node_field(m->root, "train"), *compute = node_field(node_field(train, "precision"), "compute");
    const Node *batch = node_field(train, "batch"), *micro = node_field(batch, "micro"), *all = node_field(batch, "global");
    const Node *groups = node_field(batch, "groups"), *blocks = node_field(train, "blocks");
    const char *type = compute && compute->text ? compute->text : "f32";
    Graph *g = m->g;
    m->fp8 = !strncmp(type, "fp8", 3);
    if (g->bf16 != (m->fp8 || !strcmp(type, "bf16")))
        model_fault(m, compute ? compute : m->root, "numbers are of type %s, and of another in model.graph", type);
    if (micro && strcmp(micro->text ? micro->text : "", "auto") && model_val(m, NULL, micro).i != g->batch)
        model_fault(m, micro, "a micro-batch has %lld samples in model.graph", (long long)g->batch);
    if (all && model_val(m, NULL, all).i != g->batch * g->micro)
        model_fault(m, all, "a step has %lld micro-batches of %lld samples in model.graph", (long long)g->micro,
                    (long long)g->batch);
    if ((groups && !m->infers ? model_val(m, NULL, groups).i : 1) != g->groups)
        model_fault(m, groups ? groups : m->root, "gradients are of %lld groups in model.graph", (long long)g->groups);
    int64_t cut = blocks ? model_val(m, NULL, blocks).i : 1;
    if ((cut > 1 ? cut : 0) != g->blocks)
        model_fault(m, blocks ? blocks : m->root, "sums are of %lld blocks in model.graph", (long long)g->blocks);
}

/* ---- options --------------------------------------------------------------------------------------------------------- */

static Node *child(Node *n, const char *key)
{
    bool number = key[strspn(key, "0123456789")] == 0;
    int k = 0;
    Node **last = &n->child;
    for (Node *c = n->child; c; last = &c->next, c = c->next)
        if (c->field ? !strcmp(c->field, key) : number && k++ == atoi(key))
            return c;
    *last = room(sizeof **last);
    **last = (Node){.kind = N_LIST, .field = key, .line = n->line};
    return *last;
}

/* PATH=VALUE: keys with dots between; the value is YAML. */
static void set(Model *m, const char *path, const char *text)
{
    Node *n = (Node *)(uintptr_t)m->root;
    const char *equal = strchr(text, '=');
    for (const char *p = path; p && *p; p = *p == '.' ? p + 1 : p) {
        size_t k = strcspn(p, ".=");
        n = child(n, name_of(p, k));
        p += k;
        if (*p == '=' || !*p)
            break;
    }
    Node *v = equal ? yaml_read("--set", equal + 1, strlen(equal + 1)) : n;
    n->kind = v->kind;
    n->text = v->text;
    n->child = v->child;
}

static void options(Model *m)
{
    for (int i = 0; i < m->g->given.n; i++) {
        const char *text = m->g->given.at[i];
        if (!strncmp(text, "--set ", 6))
            set(m, text + 6, text);
        else
            set(m, joined_text("model.dims.%s", text + 3), text);
    }
}

static const char *compare(Graph *g, const Folder *f, const char *dir)
{
    Source text;
    Model m = {.g = g, .folder = f};
    Scope top = {.path = ""};
    if (!source_read(&text, dir, "model.yaml"))
        return "there is no model.yaml";
    for (int i = 0; i < g->op.n; i++)
        if (!strcmp(g->op.at[i].call, "linear_gelu_forward"))
            return "fuse: most has other bits, so a Linear and its Gelu are one operator in model.graph";
        else if (!strcmp(g->op.at[i].call, "linear_add_forward"))
            return "fuse: most has other bits, so a Linear and an addition are one operator in model.graph";
    m.path = text.path;
    m.root = yaml_read(text.path, text.at, text.n);
    options(&m);
    const Node *mode = node_field(node_field(m.root, "plan"), "mode");
    m.infers = mode && mode->text && !strcmp(mode->text, "infer");
    m.model = node_field(m.root, "model");
    if (!m.model || !node_field(m.model, "graph"))
        model_fault(&m, m.root, "there is no model");
    const Node *dims = node_field(m.model, "dims");
    for (const Node *c = entries(&m, dims); c; c = c->next)
        env_set(&m.dims, c->field, model_val(&m, NULL, c));
    env_set(&m.dims, "B", val_int(g->batch));
    top.env.up = &m.dims;
    settings(&m);
    inputs(&m, &top);
    model_body(&m, &top, node_field(m.model, "graph"));
    if (m.unknown)
        return joined_text("operator %s", m.unknown);
    (m.infers ? outputs : loss)(&m, &top);
    if (m.at < g->op.n && g->op.at[m.at].phase == 'F')
        model_fault(&m, m.model, "%s:%d: the model has no such operator", g->path, g->op.at[m.at].line);
    parameters(&m);
    if (m.infers)
        return NULL;
    followed(&m);
    model_updates(&m);
    return NULL;
}

int verify_main(int argc, char **argv)
{
    return verify_run(argc, argv, compare);
}
