/* SPDX-License-Identifier: Apache-2.0
 *
 * model.c: the node tree of a model file to a Model in which nothing is left to interpret but the graph's own nodes.
 *
 * needs   Node tree, -D and --set
 * fills   Model, every field, with the defaults of docs/model.md where the file is silent: a model section alone is
 *         enough for `dpgen check`
 * keeps   blocks and graph as nodes: build checks them, because only it knows the operators
 * fails   with bad() for whatever the schema refuses, all of it in one run; bad expressions stop at once
 *
 * The order of reading is fixed and not that of the file: dims before every number, devices before the plan that
 * names them.  Cost: linear but for dims and inputs, whose names are compared pairwise.
 */
#include "schema.h"

#define MOST_DIM 0x1p48         /* a tensor has less than 2^48 bytes, and such a dim is exact in a double */
enum { MOST_DIMS = 256, MOST_INITS = 64 };

/* ---- dims -------------------------------------------------------------------------------------------- */

static void dim(const Spot *s, const Node *key)
{
    static const char *const taken[] = { "B", "sqrt", "min", "max", "ceil", "mod" };
    if (!name_check(key, "model.dims", false))
        return;
    for (int i = 0; i < COUNT(taken); i++)
        if (!strcmp(key->text, taken[i])) {
            bad(key->loc, i ? "choose another name" : "set train.batch.micro; B stands for it everywhere",
                i ? "'%s' is a function, not a dim" : "the dim '%s' is the micro-batch and is not set here", key->text);
            return;
        }
    int64_t n = 0;
    read_int(spot_to(s, &n));
    *PUSH(&s->m->dims) = (Dim){ key->text, n };
}

static void dims(const Spot *s)
{
    static const Field bound = { NULL, NULL, 0, 0, MOST_DIM, NULL };
    if (!want(s, MAP, "a map of names and integers"))
        return;
    if (s->value->n > MOST_DIMS)
        bad(s->value->loc, NULL, "%d dims; at most %d are read", s->value->n, MOST_DIMS);
    else
        for (int i = 0; i < s->value->n; i++)
            dim(spot_key(s, i, &bound, NULL), s->value->key[i]);
}

/* ---- inputs ------------------------------------------------------------------------------------------ */

static bool shape_lookup(void *m, const char *name, double *value)
{
    if (strcmp(name, "B"))
        return number_lookup(m, name, value);
    *value = 1;
    return true;
}

static void read_shape(const Spot *s)
{
    if (!want(s, LIST, "a list of dimensions"))
        return;
    if (s->value->n < 1 || s->value->n > MAXDIM) {
        bad(s->value->loc, NULL, "%s: %d dimensions; 1 to %d are read", s->path, s->value->n, MAXDIM);
        return;
    }
    for (int i = 0; i < s->value->n; i++) {
        const Spot *item = spot_item(s, i, NULL, NULL);
        if (!want(item, SCALAR, "a dimension"))
            return;
        int64_t n = expr_int(item->value->loc, item->value->text, shape_lookup, s->m);
        if (n < 1 || (double)n > MOST_DIM)
            bad(item->value->loc, NULL, "%s is %lld; a dimension is 1 to 2^48", item->path, (long long)n);
    }
    if (strcmp(s->value->at[0]->text, "B"))
        bad(s->value->at[0]->loc, "the first dimension counts samples: B", "%s does not begin with B", s->path);
    *(Node **)s->to = s->value;
}

/* [lo, hi): the two follow each other in Input. */
static void read_range(const Spot *s)
{
    const int64_t *to = s->to;
    if (read_two(s, "[from, to]", "integers", "write [FROM, TO]; TO is not in the range", read_int, sizeof *to)
        && to[0] >= to[1])
        bad(s->value->loc, NULL, "%s: nothing lies from %lld up to %lld", s->path, (long long)to[0], (long long)to[1]);
}

/* bf16 has its own mistake; who writes f16 is not sent there. */
static void read_dtype(const Spot *s)
{
    static const Field words = { NULL, NULL, 0, 0, 0, "f32 i32 u8" };
    Input *to = s->to;
    int kind = 1;               /* what is taken for an unknown word: no second mistake follows from it */
    if (is_word(s->value, "bf16")) {
        bad(s->value->loc, "write f32; it is narrowed where it is used", "an input of type bf16");
        kind = 0;
    } else {
        read_choice(spot_as(s, &words, &kind));
    }
    to->type = kind == 1 ? I32 : F32;
    to->bytes = kind == 2;
}

/* mean and std of bytes: one number, or one a channel. */
static void read_numbers(const Spot *s)
{
    const Field bound = { NULL, NULL, 0, s->field->lo, 1e30, NULL };
    Channels *to = s->to;
    bool list = s->value->kind == LIST;
    if (list && (s->value->n < 1 || s->value->n > MAXCHANNEL)) {
        bad(s->value->loc, NULL, "%s: 1 to %d numbers are expected, and %d found", s->path, MAXCHANNEL, s->value->n);
        return;
    }
    for (to->n = 0; to->n < (list ? s->value->n : 1); to->n++)
        read_float(list ? spot_item(s, to->n, &bound, &to->at[to->n]) : spot_as(s, &bound, &to->at[to->n]));
}

static void read_inputs(const Spot *s)
{
    static const Field fields[] = {
        { "shape", read_shape, offsetof(Input, shape), 0, 0, NULL },
        { "dtype", read_dtype, 0, 0, 0, NULL },
        { "range", read_range, offsetof(Input, lo), -0x1p31, 0x1p31, NULL },
        { "mean", read_numbers, offsetof(Input, mean), -1e30, 0, NULL },
        { "std", read_numbers, offsetof(Input, std), 1e-30, 0, NULL },
    };
    if (!want(s, MAP, "a map of names and inputs"))
        return;
    if (s->value->n > MAXINPUT)
        bad(s->value->loc, NULL, "%d inputs; at most %d are read", s->value->n, MAXINPUT);
    for (int i = 0; i < s->value->n && i < MAXINPUT; i++) {
        Node *key = s->value->key[i], *at = s->value->at[i];
        Input *input = PUSH(&s->m->inputs);
        *input = (Input){ .name = key->text, .type = I32, .loc = key->loc };
        name_check(key, s->path, false);
        const char *path = strf("%s.%s", s->path, key->text);
        section(s->m, at, path, fields, COUNT(fields), input);
        if (at->kind != MAP || !want_key(at, "shape", path) || !want_key(at, "dtype", path))
            continue;
        if (input->type != I32 && node_get(at, "range"))
            bad(node_get(at, "range")->loc, NULL, "a range is for inputs of type i32");
        const Node *about = node_get(at, "mean") ? node_get(at, "mean") : node_get(at, "std");
        if (about && !input->bytes)
            bad(about->loc, "write dtype: u8, or delete it", "mean and std are for inputs of type u8");
    }
}

/* ---- init -------------------------------------------------------------------------------------------- */

/* The numbers of a parameter, in its order. */
static void read_values(const Spot *s)
{
    static const Field bound = { NULL, NULL, 0, -1e30, 1e30, NULL };
    Init *to = s->to;
    if (!want(s, LIST, "a list of numbers"))
        return;
    if (s->value->n < 1 || s->value->n > MAXCHANNEL) {
        bad(s->value->loc, NULL, "%s: 1 to %d numbers are expected, and %d found", s->path, MAXCHANNEL, s->value->n);
        return;
    }
    to->a = s->value->n;
    to->values = "";
    for (int i = 0; i < s->value->n; i++) {
        double x = 0;
        read_float(spot_item(s, i, &bound, &x));
        to->values = strf("%s%s%.9g", to->values, i ? ", " : "", x);
    }
}

static void init_rule(const Spot *s)
{
    static const Field plain = { NULL, NULL, 0, 0, 0, "zeros ones" };
    static const Field fields[] = {
        { "normal", read_pair, offsetof(Init, a), -1e30, 1e30, NULL },
        { "uniform", read_pair, offsetof(Init, a), -1e30, 1e30, NULL },
        { "sines", read_pair, offsetof(Init, a), -1e30, 1e30, NULL },
        { "values", read_values, 0, 0, 0, NULL },
        { "kaiming", read_choice, offsetof(Init, fan), 0, 0, "fan_in fan_out" },
    };
    Init *init = s->to;
    int kind = INIT_ZEROS;
    if (s->value->kind == SCALAR) {
        read_choice(spot_as(s, &plain, &kind));
        init->kind = (InitKind)kind;
        return;
    }
    if (s->value->kind == LIST || s->value->n != 1) {
        bad(s->value->loc, "write zeros, ones, {normal: [mean, deviation]}, {uniform: [from, to]}, {kaiming: fan_out}, "
            "{sines: [theta, less]} or {values: [...]}", "%s is not one rule", s->path);
        return;
    }
    section(s->m, s->value, s->path, fields, COUNT(fields), init);
    init->fan = node_get(s->value, "kaiming") ? init->fan + FAN_IN : FAN_NONE;
    init->kind = node_get(s->value, "uniform") ? INIT_UNIFORM : node_get(s->value, "sines") ? INIT_SINES :
                 node_get(s->value, "values") ? INIT_VALUES : INIT_NORMAL;
    if (init->kind == INIT_SINES && (init->a < 2 || (init->b != 0 && init->b != 1)))
        bad(s->value->at[0]->loc, "sines: [10000, 0]", "%s: theta is at least 2, and less is 0 or 1", s->path);
    else if (init->kind == INIT_NORMAL ? init->b < 0 : init->kind == INIT_UNIFORM && init->b < init->a)
        bad(s->value->at[0]->loc, NULL, init->kind == INIT_NORMAL ? "%s: a negative deviation"
            : "%s: the range ends before it begins", s->path);
}

static void read_init(const Spot *s)
{
    if (!want(s, MAP, "a map of names and rules"))
        return;
    if (s->value->n > MOST_INITS)
        bad(s->value->loc, NULL, "%d rules; at most %d are read", s->value->n, MOST_INITS);
    for (int i = 0; i < s->value->n && i < MOST_INITS; i++) {
        Init *init = PUSH(&s->m->inits);
        init->name = s->value->key[i]->text;
        name_check(s->value->key[i], s->path, false);
        init_rule(spot_key(s, i, NULL, init));
    }
}

static void init_default(Model *m, Init init)
{
    if (INDEX_OF(m->inits.at, m->inits.n, init.name) < 0)
        *PUSH(&m->inits) = init;
}

/* ---- the model section ------------------------------------------------------------------------------- */

static void read_blocks(const Spot *s)
{
    if (want(s, MAP, "a map of names and blocks"))
        s->m->blocks = s->value;
}

static void read_graph_list(const Spot *s)
{
    if (!want(s, LIST, "a list of operators"))
        return;
    s->m->graph = s->value;
    if (!s->value->n)
        bad(s->value->loc, NULL, "%s is empty", s->path);
}

/* A value in every line that has such an operand: build looks it up. */
static void read_documents(const Spot *s)
{
    if (want(s, SCALAR, "the name of an input"))
        s->m->documents = s->value;
}

static void model_model(Model *m, Node *node)
{
    static const Field fields[] = {
        { "name", read_title, offsetof(Model, name), 0, 0, NULL },
        { "dims", read_nothing, 0, 0, 0, NULL },
        { "inputs", read_inputs, 0, 0, 0, NULL },
        { "init", read_init, 0, 0, 0, NULL },
        { "blocks", read_blocks, 0, 0, 0, NULL },
        { "graph", read_graph_list, 0, 0, 0, NULL },
        { "loss", read_name, offsetof(Model, loss), 0, 0, NULL },
        { "outputs", read_texts, offsetof(Model, outputs), 1, 0, NULL },
        { "documents", read_documents, 0, 0, 0, NULL },
    };
    if (node_get(node, "dims")) {
        Spot s = { m, NULL, "model.dims", node_get(node, "dims"), NULL };
        dims(&s);
        bad_stop();             /* what names a dim could only repeat the mistake */
    }
    section(m, node, "model", fields, COUNT(fields), m);
    const Node *loss = node_get(node, "loss");
    m->loss_loc = loss ? loss->loc : m->loss_loc;
    if (node->kind == MAP) {
        want_key(node, "inputs", "model");
        want_key(node, "graph", "model");
    }
    init_default(m, (Init){ "weight", INIT_NORMAL, 0, 0.02, FAN_NONE, NULL });
    init_default(m, (Init){ "bias", INIT_ZEROS, 0, 0, FAN_NONE, NULL });
    init_default(m, (Init){ "zeros", INIT_ZEROS, 0, 0, FAN_NONE, NULL });
    init_default(m, (Init){ "ones", INIT_ONES, 0, 0, FAN_NONE, NULL });
}

/* ---- the file ---------------------------------------------------------------------------------------- */

static const struct { const char *key; void (*read)(Model *m, Node *node); } sections[] = {
    { "model", model_model },            /* dims first of all */
    { "train", model_train },
    { "data", model_data },              /* names the model's inputs */
    { "devices", model_devices },
    { "hosts", model_hosts },
    { "links", model_links },            /* name devices */
    { "plan", model_plan },              /* names devices, asks how many there are */
    { "checkpoint", model_checkpoint },
    { "weights", model_weights },
    { "adapt", model_adapt },
    { "quantize", model_quantize },     /* says no to devices */
    { "report", model_report },
};

Loc mark_of(const Model *m, const char *text, Loc otherwise)
{
    for (int i = 0; i < m->marks.n; i++)
        if (m->marks.at[i].text == text)
            return m->marks.at[i].at;
    return otherwise;
}

Model *model(Node *root, const char *path, const Overrides *over)
{
    const char *known[COUNT(sections) + 1] = { "dpgen" };
    Model *m = alloc(sizeof *m);
    if (root->kind != MAP)
        err(root->loc, "begin with a line 'dpgen: 1'", "a map of sections is expected");
    override(root, over);
    Node *node = node_get(root, "dpgen");
    if (!node)
        err(root->loc, "add a line 'dpgen: 1'", "this is no dpgen model file, or it does not say so");
    if (node->kind != SCALAR || strcmp(node->text, "1"))
        err(node->loc, NULL, "this dpgen reads version 1 of the schema%s", node->kind == SCALAR
            ? strf(", not '%s'", node->text) : "");
    m->path = path;
    m->options = "";
    const char *from = strrchr(path, '/');
    from = from ? from + 1 : path;
    size_t n = strcspn(from, ".");
    m->name = n && n == strspn(from, C_WORD "-") && n < 64
            ? strf("%.*s", (int)n, from) : "model";
    for (int i = 0; i < COUNT(sections); i++)
        known[i + 1] = sections[i].key;
    for (int i = 0; i < root->n; i++) {
        const char *key = root->key[i]->text, *near = nearest(key, known, COUNT(known));
        if (!near || strcmp(near, key))
            bad(root->key[i]->loc, did_you_mean(key, known, COUNT(known), NULL), "unknown section '%s'", key);
    }
    if (!node_get(root, "model"))
        err(root->loc, NULL, "the file has no 'model'");
    for (int i = 0; i < COUNT(sections); i++)
        sections[i].read(m, node_get(root, sections[i].key));
    model_mode(m, root);
    bad_stop();
    /* A plan for chips that have no such products would have times of nothing. */
    enum { LEAST_FP8 = 89 };
    for (int i = 0; i < m->devices.n && m->train.fp8; i++) {
        const Device *d = &m->devices.at[i];
        if (d->arch && atoi(d->arch + 3) < LEAST_FP8)
            err(mark_of(m, d->arch, d->loc), "train.precision.compute: bf16, or a later chip",
                "'%s' is %s, and products in fp8 need sm_%d", d->name, d->arch, LEAST_FP8);
    }
    return m;
}
