/* SPDX-License-Identifier: Apache-2.0
 *
 * write.c: the lines of a graph as a model file, and its weights as safetensors.
 *
 * Only lines that the result depends on are written, and those that repeat as a block (repeat.c).  A line without `in` reads
 * the one before it, and a result that another line reads gets a name.  Parameters keep their names; one that is no name here
 * gets another, and section weights says so.
 * Weights have the shapes that the model wants: MODEL.safetensors beside MODEL.yaml, which out/train --weights reads.
 */
#include "net.h"

typedef struct { const char *name, *file; const NetRole *role; } NetParameter;
typedef struct {
    Net *g;
    NetLines lines;
    VEC(NetParameter) parameter;
    const char **as, *labels;
    Strs taken;                 /* names of inputs, operators and parameters, with _ for each dot */
    int names, last;
} NetWriter;
enum { LONGEST_NAME = 63 };

/* ---- names ------------------------------------------------------------------------------------------------------------- */

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* Letters, digits, dots: a name of the model file. */
static const char *legal(const char *name)
{
    char *to = strf("%s%s", is_letter(*name) && strncmp(name, "d.", 2) ? "" : "net.", name);     /* d.: of gradients */
    for (char *c = to; *c; c++)
        if (!is_letter(*c) && (*c < '0' || *c > '9') && (*c != '.' || c[1] == '.' || !c[1]))
            *c = '_';
    return to;
}

const char *net_name(const NetValue *v)
{
    return v->here ? v->here : legal(v->name);
}

static bool is_taken(const NetWriter *x, const char *name)
{
    for (int i = 0; i < x->taken.n; i++) {
        size_t n = 0;
        const char *other = x->taken.at[i];
        while (name[n] && (name[n] == '.' ? '_' : name[n]) == other[n])
            n++;
        if (!name[n] && !other[n])
            return true;
    }
    return false;
}

static const char *take(NetWriter *x, const char *name)
{
    char *c = strf("%s", name);
    for (char *p = c; *p; p++)
        if (*p == '.')
            *p = '_';
    *PUSH(&x->taken) = c;
    return name;
}

/* This name, or the first with a number behind it, that nothing has */
static const char *free_name(NetWriter *x, const char *name)
{
    const char *as = name;
    for (int n = 2; is_taken(x, as); n++)
        as = strf("%s_%d", name, n);
    return take(x, as);
}

static const char *without(const char *name, const char *role)
{
    size_t n = strlen(name), k = strlen(role);
    return n > k + 1 && name[n - k - 1] == '.' && !strcmp(name + n - k, role) ? strf("%.*s", (int)(n - k - 1), name) : NULL;
}

/* What names of all its parameters have in front; NULL: nothing. */
static const char *common(const NetWriter *x, const Made *l)
{
    const char *stem = NULL;
    for (int i = 0; i < l->roles; i++) {
        if (l->role[i].tied)
            continue;
        const char *this = without(net_name(&x->g->value.at[l->role[i].value]), l->role[i].role);
        if (!this || (stem && strcmp(stem, this)))
            return NULL;
        stem = this;
    }
    return stem;
}

static const char *in_lower(const char *op)
{
    char *to = strf("%s", op);
    for (char *c = to; *c; c++)
        if (*c >= 'A' && *c <= 'Z')
            *c = (char)(*c + 32);
    return to;
}

/* ---- what is used ------------------------------------------------------------------------------------------------------ */

static void use(NetWriter *x, int value)
{
    Net *g = x->g;
    Ints todo = {0};
    *PUSH(&todo) = value;
    while (todo.n > 0) {
        int v = todo.at[--todo.n], line = g->value.at[v].line;
        if (line < 0 || g->line.at[line].used)
            continue;
        g->line.at[line].used = true;
        APPEND(&todo, g->line.at[line].in);
    }
    for (int i = 0; i < g->line.n; i++) {
        const Made *l = &g->line.at[i];
        if (!l->used)
            continue;
        *PUSH(&x->lines.used) = i;
        for (int r = 0; r < l->roles; r++) {
            const char *file = g->value.at[l->role[r].value].name;
            const NetRole *owner = NULL;        /* the parameter of a line above that is this tensor */
            for (EACH(const NetParameter, q, x->parameter))
                owner = !owner && !strcmp(q->file, file) ? q->role : owner;
            g->node = l->node;
            if (owner && (owner->turned != l->role[r].turned || !dims_same(&owner->dims, &l->role[r].dims)))
                net_refuse(g, "two operators share '%s' in two shapes, which is not done", file);
            g->line.at[i].role[r].tied = owner;
            NetValue *v = &g->value.at[l->role[r].value];
            /* A name of a parameter that is free here, and so is the operator's, which is what stands before the role. */
            const char *name = net_name(v), *stem = without(name, l->role[r].role);
            v->here = owner ? g->value.at[owner->value].here
                : free_name(x, stem && is_taken(x, stem) ? strf("net.%s", name) : name);
            if (!owner)
                *PUSH(&x->parameter) = (NetParameter){v->here, file, &l->role[r]};
        }
    }
    g->node = NULL;
}

static bool inside(const char *name, const char *module)
{
    size_t n = strlen(module);
    return !strncmp(name, module, n) && (!name[n] || name[n] == '.');
}

/* A module of this line alone: it has no parameters, and no other line. */
static bool is_alone(const NetWriter *x, int line)
{
    const char *module = x->g->line.at[line].module;
    if (!module || !*module)
        return false;
    for (int i = 0; i < x->parameter.n; i++)
        if (inside(x->parameter.at[i].name, legal(module)))
            return false;
    for (int i = 0; i < x->lines.used.n; i++) {
        int other = x->lines.used.at[i];
        if (other != line && x->g->line.at[other].module && inside(x->g->line.at[other].module, module))
            return false;
    }
    return true;
}

/* A value whose axes only have other names is the result of its line. */
int net_made_by(const Net *g, int value)
{
    const NetValue *v = &g->value.at[value];
    for (int i = 0; v->line < 0 && i < g->inputs.n; i++)
        if (g->value.at[g->inputs.at[i]].name == v->name)
            return g->inputs.at[i];
    return v->line < 0 ? value : g->line.at[v->line].out;
}

static const Made *line_of(const NetWriter *x, int i)
{
    return &x->g->line.at[x->lines.used.at[i]];
}

/* A value gets a name where a line reads it that does not stand behind it. */
static void name_read(NetWriter *x, int value, bool follows, const char *like)
{
    while (!follows && !x->as[value]) {
        const char *name = strf("%s%d", in_lower(like), ++x->names);
        x->as[value] = is_taken(x, name) ? NULL : name;
    }
}

static void name_line(NetWriter *x, const Made *l, int before)
{
    for (int k = 0; k < l->in.n; k++) {
        int in = net_made_by(x->g, l->in.at[k]);
        const Made *of = net_made(x->g, in);
        name_read(x, in, in == before, of ? of->op : "x");
    }
}

static void name_body(NetWriter *x, const NetBlock *b)
{
    const char *outside = x->as[b->enters];
    int names = x->names;
    x->as[b->enters] = "$in";
    x->names = 0;
    for (int i = b->from; i < b->to; i++)
        name_line(x, line_of(x, i), i > b->from ? line_of(x, i - 1)->out : b->enters);
    x->as[b->enters] = outside;
    x->names = names;
}

static const char *maker(const NetWriter *x, int value)
{
    for (int i = 0; i < x->lines.item.n; i++)
        if (x->lines.item.at[i].use && x->lines.item.at[i].use->out == value)
            return x->lines.item.at[i].use->block->name;
    const Made *l = net_made(x->g, value);
    return l ? l->op : "x";
}

/* Parts of idioms that stand alone */
static void check_lines(const NetWriter *x)
{
    static const struct { const char *op, *does; bool norm; } parts[] = {
        {"?Plus", "it adds a constant number", false}, {"?Pow", "it takes a power", true},
        {"?Sqrt", "it takes a root", true}, {"?Reciprocal", "it divides by data", true},
        {"?Erf", "it computes erf, and is no part of a Gelu", false},
        {"?Draw", "it draws numbers, and is no part of a Dropout", false},
        {"?LogSoftmax", "it is a LogSoftmax that is not the result", false}
    };
    Net *g = x->g;
    for (int i = 0; i < g->line.n; i++)
        for (size_t k = 0; g->line.at[i].used && k < sizeof parts / sizeof *parts; k++) {
            if (strcmp(parts[k].op, g->line.at[i].op))
                continue;
            g->node = g->line.at[i].node;
            if (parts[k].norm && strstr(g->remedy, "opset"))
                net_advise(g, strf("if it is part of a LayerNorm, that stays whole from opset 17 on: %s; if not, make the "
                                   "model without it", g->remedy), "%s, for which dpgen has no operator", parts[k].does);
            net_refuse(g, "%s, for which dpgen has no operator", parts[k].does);
        }
}

/* ---- the model file ---------------------------------------------------------------------------------------------------- */

/* Of axis i in the model file. */
static int64_t size_here(const NetValue *v, int i)
{
    return v->dims.d[v->last && i > 0 ? i + 1 < v->dims.n ? i + 1 : 1 : i];
}

static void put_shape(FILE *f, const NetValue *v, int axes)
{
    fprintf(f, "[B");
    for (int i = 1; i < axes; i++)
        fprintf(f, ", %lld", (long long)size_here(v, i));
    fprintf(f, "]");
}

/* Rows of the table that ids of this input are looked up in; 0: none is. */
static int64_t rows_of(const Net *g, int input)
{
    for (int i = 0; i < g->line.n; i++)
        if (!strcmp(g->line.at[i].op, "Embedding") && g->line.at[i].in.at[0] == input)
            return g->line.at[i].role[0].dims.d[0];
    return 0;
}

static void put_inputs(FILE *f, const NetWriter *x, const NetValue *result, const char *loss)
{
    const Net *g = x->g;
    fprintf(f, "  inputs:\n");
    for (int i = 0; i < g->inputs.n; i++) {
        const NetValue *v = &g->value.at[g->inputs.at[i]];
        fprintf(f, "    %s: {shape: ", x->as[g->inputs.at[i]]);
        put_shape(f, v, v->dims.n);
        fprintf(f, ", dtype: %s", v->whole ? "i32" : "f32");
        if (v->whole && rows_of(g, g->inputs.at[i]))
            fprintf(f, ", range: [0, %lld]", (long long)rows_of(g, g->inputs.at[i]));
        fprintf(f, "}\n");
    }
    fprintf(f, "    %s: {shape: ", x->labels);
    const bool entropy = !strcmp(loss, "cross-entropy");        /* its classes are the last axis */
    put_shape(f, result, result->dims.n - entropy);
    if (entropy)
        fprintf(f, ", dtype: i32, range: [0, %lld]}\n", (long long)size_here(result, result->dims.n - 1));
    else
        fprintf(f, ", dtype: f32}\n");
}

/* Without what a Conv does anyway: repeat.c wants to see it */
static const char *without_default(const char *op, const char *attributes)
{
    static const char one[] = ", stride: 1";
    const char *at = strstr(op, "Conv") ? strstr(attributes, one) : NULL;
    bool whole = at && (at[sizeof one - 1] == ',' || !at[sizeof one - 1]);
    return whole ? strf("%.*s%s", (int)(at - attributes), attributes, at + sizeof one - 1) : attributes;
}

static void put_line(FILE *f, NetWriter *x, const Made *l, const char *scope, const char *attributes)
{
    const Net *g = x->g;
    fprintf(f, "- {op: %s", l->op);
    /* Behind what names of the block have in front */
    const char *stem = common(x, l), *list = "", *tie = "";
    size_t n = strlen(scope);
    if (l->name)
        stem = l->name;
    for (int i = 0; i < l->roles; i++) {
        const char *name = net_name(&x->g->value.at[l->role[i].value]);
        if (l->role[i].tied)
            tie = strf(", tie: %s", name);
        else
            list = strf("%s%s%s: %s", list, *list ? ", " : "", l->role[i].role, name + n);
    }
    if (stem && strlen(stem) > n)
        fprintf(f, is_letter(stem[n]) ? ", name: %s" : ", name: \"%s\"", stem + n);
    else if (*list)
        fprintf(f, ", names: {%s}", list);
    fprintf(f, "%s", tie);
    if (l->in.n == 1 && net_made_by(g, l->in.at[0]) != x->last)
        fprintf(f, ", in: %s", x->as[net_made_by(g, l->in.at[0])]);
    for (int i = 0; l->in.n > 1 && i < l->in.n; i++) {
        int in = net_made_by(g, l->in.at[i]);
        fprintf(f, "%s%s%s", i ? ", " : ", in: [", in == x->last ? "_" : x->as[in], i + 1 == l->in.n ? "]" : "");
    }
    fprintf(f, "%s%s}\n", without_default(l->op, attributes), x->as[l->out] ? strf(", as: %s", x->as[l->out]) : "");
    x->last = l->out;
}

static void put_block(FILE *f, NetWriter *x, const NetBlock *b)
{
    const char *outside = x->as[b->enters], *last = x->as[line_of(x, b->to - 1)->out];
    fprintf(f, "    %s:\n", b->name);
    for (int a = 0; a < b->args.n; a++)
        fprintf(f, "%s%s: required%s", a ? ", " : "      args: {", b->args.at[a], a + 1 == b->args.n ? "}\n      body:\n" : "");
    x->as[b->enters] = "$in";
    x->as[line_of(x, b->to - 1)->out] = NULL;
    x->last = b->enters;
    for (int i = b->from; i < b->to; i++) {
        fprintf(f, b->args.n ? "        " : "      ");
        put_line(f, x, line_of(x, i), b->scope, b->text[i - b->from]);
    }
    x->as[b->enters] = outside;
    x->as[line_of(x, b->to - 1)->out] = last;
}

static void put_args(FILE *f, const char *key, const NetUse *u, const Strs *value, const Strs *but)
{
    bool any = false;
    for (int a = 0; a < value->n; a++)
        if (!but || strcmp(value->at[a], but->at[a])) {
            fprintf(f, "%s%s: %s", any ? ", " : strf(", %s: {", key), u->block->args.at[a], value->at[a]);
            any = true;
        }
    fprintf(f, any ? "}" : "");
}

static void put_use(FILE *f, NetWriter *x, const NetUse *u)
{
    bool braces = strstr(u->path, "{}");
    const char *name = strf("%.*s", (int)(strlen(u->path) - 2 * braces), u->path);
    fprintf(f, "- {use: %s, name: ", u->block->name);
    if (u->repeat == 1)
        fprintf(f, braces ? "%s%d" : "%s.%d", name, u->number);
    else
        fprintf(f, braces ? "\"%s{}\"" : "%s", name);
    if (u->repeat > 1 && u->number)
        fprintf(f, ", from: %d", u->number);
    if (u->repeat > 1)
        fprintf(f, ", repeat: %d", u->repeat);
    if (u->in != x->last)
        fprintf(f, ", in: %s", x->as[u->in]);
    put_args(f, "args", u, &u->args, NULL);
    put_args(f, "first", u, &u->first, &u->args);
    fprintf(f, "%s}\n", x->as[u->out] ? strf(", as: %s", x->as[u->out]) : "");
    x->last = u->out;
}

static void put_model(FILE *f, NetWriter *x, int result, const char *loss)
{
    Net *g = x->g;
    const NetValue *v = &g->value.at[result];
    const char *name = strrchr(g->path, '/') ? strrchr(g->path, '/') + 1 : g->path;
    fprintf(f, "# Written by dpgen import from %s.\n", quote_comment(name));
    fprintf(f, "dpgen: 1\nmodel:\n  name: %.40s\n", legal(strf("%.*s", (int)strcspn(name, "."), name)));
    put_inputs(f, x, v, loss);
    for (int i = 0; i < x->lines.block.n; i++) {
        fprintf(f, i ? "" : "  blocks:\n");
        put_block(f, x, x->lines.block.at[i]);
    }
    fprintf(f, "  graph:\n");
    x->last = -1;
    for (EACH(const NetItem, item, x->lines.item)) {
        fprintf(f, "    ");
        if (item->use)
            put_use(f, x, item->use);
        else
            put_line(f, x, line_of(x, item->line), "", line_of(x, item->line)->attributes);
    }
    bool entropy = !strcmp(loss, "cross-entropy");
    fprintf(f, "    - {op: %s, targets: %s, as: loss}\n", entropy ? "SoftmaxCrossEntropy" : "MeanSquaredError", x->labels);
    fprintf(f, "  loss: loss\n");
    bool any = false;
    for (int i = 0; i < x->parameter.n; i++)
        if (strcmp(x->parameter.at[i].name, x->parameter.at[i].file)) {
            fprintf(f, "%s\"%s\": %s", any ? ", " : "\nweights:\n  rename: {", x->parameter.at[i].name,
                    quote_json(x->parameter.at[i].file));
            any = true;
        }
    fprintf(f, "%s", any ? "}\n" : "");
    fprintf(f, "\ntrain:\n  batch: {global: 256, micro: 8}\n  steps: 10000\n"
            "  optimizer: {type: sgd, lr: 0.1, momentum: 0.9}\n\ndata:\n  train: {format: npy, arrays: {");
    for (int i = 0; i < x->g->inputs.n; i++)
        fprintf(f, "%s: %s.npy, ", x->as[x->g->inputs.at[i]], x->as[x->g->inputs.at[i]]);
    fprintf(f, "%s: %s.npy}}\n\ndevices:\n"
            "  - {name: cpu, kind: cpu, count: 4, memory: 32GiB, threads: 4, kernels: portable}\n\n"
            "plan: {stages: 4, schedule: 1f1b}\n", x->labels, x->labels);
}

/* ---- weights ----------------------------------------------------------------------------------------------------------- */

ORDER(by_file, NetParameter, strcmp(x->file, y->file))

/* Doubles become floats; a matrix is turned where the model wants it so. */
static void put_bytes(FILE *f, const NetValue *v, const NetRole *r)
{
    int64_t n = dims_elements(&r->dims), rows = v->dims.n == 2 ? v->dims.d[0] : 1, columns = rows ? n / rows : 0;
    size_t size = (size_t)safe_bytes(v->type, 0, NULL);
    for (int64_t i = 0; i < n; i++) {
        int64_t at = r->turned ? i % rows * columns + i / rows : i;
        const unsigned char *from = v->at + (size_t)at * size;
        double d;
        if (strcmp(v->type, "F64")) {
            fwrite(from, 1, size, f);
        } else {
            memcpy(&d, from, sizeof d);
            float narrow = (float)d;
            fwrite(&narrow, 1, sizeof narrow, f);
        }
    }
}

static void put_safetensors(NetWriter *x, const char *path)
{
    const Net *g = x->g;
    VEC(SafeTensor) list = {0};
    SORT(x->parameter.at, x->parameter.n, by_file);
    for (EACH(const NetParameter, p, x->parameter)) {
        const NetValue *v = &g->value.at[p->role->value];
        bool counter = !strcmp(v->type, "I64") && p->role->dims.n == 0;
        if (*v->type != 'F' && *v->type != 'B' && !counter)
            net_advise(g, "parameters are floats: change its type in the file", "'%s' has numbers of type %s", p->file,
                       v->type);
        SafeTensor t = {.name = p->file, .type = (strcmp(v->type, "F64") ? v->type : "F32"), .ndim = p->role->dims.n};
        memcpy(t.dim, p->role->dims.d, sizeof p->role->dims.d);
        t.bytes = safe_bytes(t.type, t.ndim, t.dim);
        *PUSH(&list) = t;
    }
    FILE *f = file_begin(path);
    safe_header(f, list.at, list.n);
    for (int i = 0; i < x->parameter.n; i++)
        put_bytes(f, &g->value.at[x->parameter.at[i].role->value], x->parameter.at[i].role);
    file_end(f, path);
}

/* What a graph does not say for sure, whether it learns these: the tensors of lines `Parameter`. */
static void put_note(const NetWriter *x, bool constant, const char *what)
{
    const char *first = NULL;
    int n = 0;
    for (int i = 0; i < x->lines.used.n; i++) {
        const Made *l = &x->g->line.at[x->lines.used.at[i]];
        const NetValue *v = strcmp(l->op, "Parameter") ? NULL : &x->g->value.at[l->role[0].value];
        if (!v || (constant ? v->learns : !v->learns || x->g->views || dims_elements(&v->dims) > 1))
            continue;
        first = first ? first : v->name;
        n++;
    }
    if (n > 0)
        fprintf(stderr, "dpgen: %s: '%s'%s: %s there, and trained here\n", x->g->path, quote_terminal(first),
                n == 1 ? "" : strf(" and %d more", n - 1), what);
}

/* ---- both -------------------------------------------------------------------------------------------------------------- */

void net_write(Net *g, int result, const char *loss, const char *out)
{
    const Made *end = net_made(g, result);
    if (!end || g->value.at[result].view)
        net_refuse(g, "it computes nothing, or the first axis of its result is not that of the samples");
    if (!strcmp(loss, "cross-entropy") && (!strcmp(end->op, "Softmax") || !strcmp(end->op, "?LogSoftmax")))
        result = end->in.at[0];         /* the loss has it inside */
    NetWriter x = {.g = g, .last = -1};
    x.as = alloc(((size_t)g->value.n + 1) * sizeof *x.as);
    for (int i = 0; i < g->inputs.n; i++)
        x.as[g->inputs.at[i]] = free_name(&x, legal(g->value.at[g->inputs.at[i]].name));
    x.labels = free_name(&x, "labels");
    take(&x, "loss");
    use(&x, result);
    check_lines(&x);
    /* What is dropped follows from the name of the line.  So that is the module's, whatever becomes a block. */
    for (int i = 0; i < x.lines.used.n; i++) {
        Made *l = &x.g->line.at[x.lines.used.at[i]];
        if (!strcmp(l->op, "Dropout") && is_alone(&x, x.lines.used.at[i]))
            l->name = legal(l->module);
    }
    net_repeats(g, &x.lines, result);
    /* Names of lines outside of blocks that are too long; in a block they begin behind its own. */
    for (int i = 0; i < x.lines.item.n; i++) {
        const Made *l = x.lines.item.at[i].use ? NULL : line_of(&x, x.lines.item.at[i].line);
        for (int r = 0; l && r < l->roles; r++) {
            NetValue *v = &x.g->value.at[l->role[r].value];
            if (l->role[r].tied || strlen(v->here) <= LONGEST_NAME)
                continue;
            const char *old = v->here;
            v->here = free_name(&x, legal(old + strlen(old) - LONGEST_NAME / 2));
            for (int k = 0; k < x.parameter.n; k++)
                if (x.parameter.at[k].name == old)
                    x.parameter.at[k].name = v->here;
        }
    }
    for (int i = 0, before = -1; i < x.lines.item.n; i++) {
        const NetItem *item = &x.lines.item.at[i];
        if (item->use)
            name_read(&x, item->use->in, item->use->in == before, maker(&x, item->use->in));
        else
            name_line(&x, line_of(&x, item->line), before);
        before = item->use ? item->use->out : line_of(&x, item->line)->out;
    }
    for (int i = 0; i < x.lines.block.n; i++)
        name_body(&x, x.lines.block.at[i]);
    const char *stem = text_without(out, ".yaml"), *weights = strf("%s.safetensors", stem ? stem : out);
    Text text;
    put_model(text_open(&text), &x, result, loss);
    text_close(&text);
    made_check(g->path, out, &text);
    files_begin(NULL, false);
    put_safetensors(&x, weights);
    FILE *f = file_begin(out);
    fwrite(text.at, 1, text.n, f);
    file_end(f, out);
    files_end();
    put_note(&x, true, "a constant");
    put_note(&x, false, "one number");
    const char *file = quote_terminal(quote_shell(out));
    printf("wrote %s and %s: dpgen check %s, or dpgen %s -o out && make -C out && out/train --weights %s\n",
           quote_terminal(out), quote_terminal(weights), file, file, quote_terminal(quote_shell(weights)));
}
