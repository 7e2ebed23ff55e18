/* SPDX-License-Identifier: Apache-2.0
 *
 * pt2.c: programs of torch.export: a zip archive with models/model.json, and the weights as they lie in memory.
 *
 * Source: PyTorch, PT2 Archive Spec, and torch/_export/serde/schema.py, version 8.  JSON is read where it is wanted, without a
 * tree.  Operators that work in place give their operand a new value.
 */
#include "net.h"
#include "rt/tokens/json_part.h"

enum { LONGEST = 4096, MAJOR = 8 };
typedef struct { Net *g; Archive files; JsonPart values; NetNames named; char room[LONGEST]; } Pt2Reader;

/* By the numbers of schema.py */
static const char *const types[] = {
    [1] = "U8", [2] = "I8", [3] = "I16", [4] = "I32", [5] = "I64", [6] = "F16", [7] = "F32", [8] = "F64", [12] = "BOOL",
    [13] = "BF16"
};

static const char remedy[] = "export it with torch.export.save(torch.export.export(model.train(), (x,)), 'model.pt2')";

/* ---- JSON -------------------------------------------------------------------------------------------------------------- */

static void stop_at(const Pt2Reader *r, const Json *j)
{
    if (j->why)
        net_refuse(r->g, "models/model.json is none of torch.export: %s", j->why);
}

static JsonPart value(const Pt2Reader *r, Json *j)
{
    JsonPart p = json_value(j);
    stop_at(r, j);
    return p;
}

static bool opens(JsonPart p, char with)
{
    return p.n > 0 && *p.at == with;
}

static JsonPart member(Pt2Reader *r, JsonPart object, const char *key)
{
    Json j = json_open(object.at, object.n);
    JsonPart found = opens(object, '{') ? json_find(&j, key, r->room, sizeof r->room) : (JsonPart){"", 0};
    stop_at(r, &j);
    return found;
}

/* The only member of an object, and its key in r->room. */
static JsonPart only(Pt2Reader *r, JsonPart object)
{
    Json j = json_open(object.at, object.n);
    bool first = true;
    *r->room = 0;
    if (!opens(object, '{') || !json_member(&j, &first, r->room, sizeof r->room))
        return (JsonPart){"", 0};
    return value(r, &j);
}

static const char *text(Pt2Reader *r, JsonPart p)
{
    Json j = json_open(p.at, p.n);
    return opens(p, '"') && json_string(&j, r->room, sizeof r->room) ? strf("%s", r->room) : "";
}

static double number(JsonPart p)
{
    bool minus = opens(p, '-');
    double x = p.n == 0 ? 0 : !strncmp(p.at, "true", 4) ? 1 : number_decimal(p.at + minus, p.n - minus);
    return minus ? -x : x;
}

/* Takes each element of a list. */
static void each(Pt2Reader *r, JsonPart list, void (*take)(Pt2Reader *r, JsonPart p, void *to), void *to)
{
    Json j = json_open(list.at, list.n);
    for (bool first = true; opens(list, '[') && json_member(&j, &first, NULL, 0);)
        take(r, value(r, &j), to);
    if (opens(list, '['))
        stop_at(r, &j);
}

/* ---- tensors ----------------------------------------------------------------------------------------------------------- */

int net_named(const Net *g, const char *name)
{
    for (int i = 0; i < g->value.n; i++)
        if (g->value.at[i].kind == VALUE_WEIGHT && !strcmp(g->value.at[i].name, name))
            return i;
    return -1;
}

typedef struct { Dims dims; bool symbol, too_many; } Pt2Sizes;

static void take_size(Pt2Reader *r, JsonPart p, void *to)
{
    Pt2Sizes *s = to;
    JsonPart n = member(r, p, "as_int");
    s->symbol |= n.n == 0;
    s->too_many |= s->dims.n == MOST_DIMS;
    if (!s->too_many)
        s->dims.d[s->dims.n++] = (int64_t)number(n);
}

static Dims sizes_of(Pt2Reader *r, JsonPart meta, const char *key, const char *name)
{
    Pt2Sizes s = {0};
    each(r, member(r, meta, key), take_size, &s);
    if (s.symbol || s.too_many)
        net_advise(r->g, "export it without dynamic_shapes", "'%s' has axes without a size, or more than %d", name, MOST_DIMS);
    return s.dims;
}

static const char *type_of(Pt2Reader *r, JsonPart meta)
{
    double type = number(member(r, meta, "dtype"));
    int n = type >= 0 && type < (double)(sizeof types / sizeof *types) ? (int)type : 0;
    return types[n] ? types[n] : "";
}

/* Elements in their order, without holes */
static void check_strides(Pt2Reader *r, JsonPart meta, const char *name, const Dims *d)
{
    Dims stride = sizes_of(r, meta, "strides", name);
    int64_t n = 1;
    bool good = stride.n == d->n && number(member(r, member(r, meta, "storage_offset"), "as_int")) == 0;
    for (int i = d->n - 1; i >= 0 && good; i--) {
        good = stride.d[i] == n || d->d[i] == 1;
        n *= d->d[i];
    }
    if (!good)
        net_advise(r->g, "make it contiguous() before the export", "the elements of '%s' do not stand in their order", name);
}

/* A parameter or buffer, from one of the two folders of data. */
static int read_weight(Pt2Reader *r, const char *name)
{
    static const char *const folders[] = {"weights", "constants"};
    for (int i = 0; i < 2; i++) {
        const Packed *list = zip_find(&r->files, strf("data/%s/model_%s_config.json", folders[i], folders[i]));
        JsonPart all = list ? (JsonPart){(const char *)list->at, list->n} : (JsonPart){"", 0};
        JsonPart entry = member(r, member(r, all, "config"), name), meta = member(r, entry, "tensor_meta");
        const char *path = text(r, member(r, entry, "path_name"));
        const Packed *p = *path ? zip_find(&r->files, strf("data/%s/%s", folders[i], path)) : NULL;
        if (!p)
            continue;
        if (number(member(r, entry, "use_pickle")))
            net_refuse(r->g, "'%s' is pickled, and is not read", name);
        Dims d = sizes_of(r, meta, "sizes", name);
        check_strides(r, meta, name, &d);
        for (int v = 0; v < r->g->value.n; v++)         /* of two names the first, as named_parameters() has it */
            if (r->g->value.at[v].at == p->at && dims_same(&r->g->value.at[v].dims, &d))
                return v;
        return net_weight(r->g, name, type_of(r, meta), d, p->at, (int64_t)p->n);
    }
    net_refuse(r->g, "there is no data of '%s'", name);
}

static void take_input(Pt2Reader *r, JsonPart p, void *to)
{
    static const struct { const char *word, *name; } stored[] = {
        {"parameter", "parameter_name"}, {"buffer", "buffer_name"}, {"tensor_constant", "tensor_constant_name"}
    };
    JsonPart of = only(r, p), arg;
    const char *word = strf("%s", r->room);
    (void)to;
    arg = member(r, of, "arg");
    for (size_t i = 0; i < sizeof stored / sizeof *stored; i++)
        if (!strcmp(word, stored[i].word)) {
            int weight = read_weight(r, text(r, member(r, of, stored[i].name)));
            r->g->value.at[weight].learns |= i == 0;
            *PUSH(&r->named) = (NetName){text(r, member(r, arg, "name")), weight};
            return;
        }
    const char *name = text(r, member(r, member(r, arg, "as_tensor"), "name"));
    JsonPart meta = member(r, r->values, name);
    if (strcmp(word, "user_input") || meta.n == 0)
        net_refuse(r->g, "an input is of kind %s, and no tensor", word);
    const char *type = type_of(r, meta);
    if (*type != 'F' && *type != 'B' && strcmp(type, "I64") && strcmp(type, "I32"))
        net_refuse(r->g, "input '%s' is neither of floats nor of integers", name);
    *PUSH(&r->named) = (NetName){name, net_input(r->g, name, sizes_of(r, meta, "sizes", name), *type == 'I')};
}

static void take_output(Pt2Reader *r, JsonPart p, void *to)
{
    JsonPart of = only(r, p);
    bool user = !strcmp(r->room, "user_output");
    if (user)
        *PUSH((Strs *)to) = text(r, member(r, member(r, member(r, of, "arg"), "as_tensor"), "name"));
}

/* ---- nodes ------------------------------------------------------------------------------------------------------------- */

static void take_tensor(Pt2Reader *r, JsonPart p, void *to)
{
    const char *name = text(r, member(r, p, "name"));
    int v = net_last(&r->named, name);
    if (v < 0)
        net_refuse(r->g, "nothing before it is called '%s'", name);
    *PUSH(&((NetArgument *)to)->tensor) = v;
}

static void take_number(Pt2Reader *r, JsonPart p, void *to)
{
    JsonPart n = opens(p, '{') ? member(r, p, "as_int") : p;
    if (n.n == 0)
        net_advise(r->g, "export it without dynamic_shapes", "a size depends on the data");
    *PUSH(&((NetArgument *)to)->number) = number(n);
}

static void take_argument(Pt2Reader *r, JsonPart p, void *to)
{
    NetNode *n = to;
    NetArgument a = {.name = text(r, member(r, p, "name")), .text = ""};
    JsonPart of = only(r, member(r, p, "arg"));
    const char *word = strf("%s", r->room);
    if (!strcmp(word, "as_none"))
        a.none = true;
    else if (!strcmp(word, "as_tensor"))
        take_tensor(r, of, &a);
    else if (!strcmp(word, "as_tensors"))
        each(r, of, take_tensor, &a);
    else if (!strcmp(word, "as_string"))
        a.text = text(r, of);
    else if (opens(of, '['))
        each(r, of, take_number, &a);
    else if (!opens(of, '{') || !strncmp(word, "as_sym_", 7))       /* others are types, devices and layouts */
        take_number(r, of, &a);
    *PUSH(&n->argument) = a;
}

static void take_name(Pt2Reader *r, JsonPart p, void *to)
{
    *PUSH((Strs *)to) = text(r, member(r, p, "name"));
}

static void take_result(Pt2Reader *r, JsonPart p, void *to)
{
    JsonPart of = only(r, p);
    if (opens(of, '['))
        each(r, of, take_name, to);
    else
        take_name(r, of, to);
}

static void take_node(Pt2Reader *r, JsonPart p, void *to)
{
    NetNode n = {.op = text(r, member(r, p, "target"))};
    Ints results = {0};
    (void)to;
    each(r, member(r, p, "outputs"), take_result, &n.out);
    r->g->node = strf("node '%s' (%s)", n.out.n ? n.out.at[0] : "", n.op);
    /* The innermost of `L__self__,,Class;L__self___layers,layers,Class`: the part between its commas */
    const char *stack = text(r, member(r, member(r, p, "metadata"), "nn_module_stack"));
    const char *last = strrchr(stack, ';'), *from = strchr(last ? last : stack, ',');
    r->g->module = from ? strf("%.*s", (int)strcspn(from + 1, ","), from + 1) : "";
    each(r, member(r, p, "inputs"), take_argument, &n);
    aten_node(r->g, &n, &results);
    if (results.n) {
        /* relu_ and the like change their first operand, under all its names. */
        const char *dot = strrchr(n.op, '.');
        bool place = dot && dot > n.op && dot[-1] == '_' && n.argument.n && n.argument.at[0].tensor.n == 1;
        for (int i = 0; place && i < r->named.n; i++)
            if (r->named.at[i].value == n.argument.at[0].tensor.at[0])
                r->named.at[i].value = results.at[0];
    }
    for (int i = 0; i < results.n && i < n.out.n; i++)
        *PUSH(&r->named) = (NetName){n.out.at[i], results.at[i]};
    r->g->node = r->g->module = NULL;
}

/* ---- the file ---------------------------------------------------------------------------------------------------------- */

int pt2_read(Net *g, const unsigned char *at, size_t n)
{
    Pt2Reader *r = alloc(sizeof *r);
    Strs outputs = {0};
    r->g = g;
    g->remedy = remedy;
    g->views = true;
    r->files = zip_open(g, at, n);
    const Packed *model = zip_find(&r->files, "models/model.json");
    if (!model)
        net_refuse(g, "there is no models/model.json in it: it is of an older PyTorch than 2.8, or none of torch.export; %s",
                   remedy);
    JsonPart all = {(const char *)model->at, model->n};
    while (all.n && strchr(" \t\r\n", *all.at))
        all.at++, all.n--;
    double major = number(member(r, member(r, all, "schema_version"), "major"));
    if (major != MAJOR)
        net_refuse(g, "its schema is version %g; %d is read", major, MAJOR);
    JsonPart module = member(r, all, "graph_module"), graph = member(r, module, "graph");
    JsonPart signature = member(r, module, "signature");
    r->values = member(r, graph, "tensor_values");
    each(r, member(r, signature, "input_specs"), take_input, NULL);
    each(r, member(r, graph, "nodes"), take_node, NULL);
    each(r, member(r, signature, "output_specs"), take_output, &outputs);
    if (g->inputs.n == 0 || outputs.n != 1 || net_last(&r->named, outputs.at[0]) < 0)
        net_advise(g, "train one of its results, and leave the others out of the file", "a graph with inputs and one result is "
                   "expected; this one has %d and %d", g->inputs.n, outputs.n);
    return net_last(&r->named, outputs.at[0]);
}
