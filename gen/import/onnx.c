/* SPDX-License-Identifier: Apache-2.0
 *
 * onnx.c: files of ONNX, opsets 11 to 20: ModelProto of onnx.proto, by its numbers of fields.
 *
 * Tensors are used where they lie, in the file or in one beside it.  Fields that are not known are passed over, as the format
 * wants; operators that are not known end dpgen by name.
 */
#include "net.h"

enum { FIRST_OPSET = 11, LAST_OPSET = 20 };
typedef struct { Net *g; int opset; const char *dir; NetNames named; Strs outputs; } OnnxReader;

static const struct { int type; const char *name; } types[] = {
    {1, "F32"}, {2, "U8"}, {3, "I8"}, {5, "I16"}, {6, "I32"}, {7, "I64"}, {9, "BOOL"}, {10, "F16"}, {11, "F64"}, {16, "BF16"}
};

static const char remedy[] =
    "export it with torch.onnx.export(model, x, 'model.onnx', dynamo=False, training=torch.onnx.TrainingMode.TRAINING, "
    "do_constant_folding=False, opset_version=17)";

static NORETURN void broken(const OnnxReader *r, const char *why)
{
    net_refuse(r->g, "this is no file of ONNX, or it is cut short: %s", why);
}

static void stop_at(const OnnxReader *r, const ProtoWire *w)
{
    if (w->why)
        broken(r, w->why);
}

/* ---- tensors ----------------------------------------------------------------------------------------------------------- */

typedef struct {
    const char *name, *location;
    Dims dims;
    int type, too_many;
    const unsigned char *raw;
    size_t bytes, offset, length;
    Numbers number;             /* in place of raw: int32_data, int64_data, */
    VEC(uint32_t) real;         /* float_data, */
    VEC(uint64_t) wide;         /* double_data */
} OnnxTensor;

static void take_dim(void *to, uint64_t bits)
{
    OnnxTensor *t = to;
    if (t->dims.n == MOST_DIMS)
        t->too_many = 1;
    else
        t->dims.d[t->dims.n++] = (int64_t)bits;
}

static void take_integer(void *to, uint64_t bits)
{
    *PUSH(&((OnnxTensor *)to)->number) = (double)(int64_t)bits;
}

static void take_fixed(OnnxTensor *t, const ProtoField *f, int bytes)
{
    ProtoWire one = {0};
    if (f->kind != 2) {
        *PUSH(&t->wide) = f->bits;
        return;
    }
    for (one = f->in; one.end - one.at >= bytes; one.at += bytes)
        *PUSH(&t->wide) = number_little(one.at, bytes);
}

static void take_external(OnnxTensor *t, ProtoWire w)
{
    const char *key = "", *text = "";
    for (ProtoField f; wire_next(&w, &f);)
        *(f.number == 1 ? &key : &text) = wire_text(&f);
    if (!strcmp(key, "location"))
        t->location = text;
    if (!strcmp(key, "offset"))
        t->offset = (size_t)number_decimal(text, strlen(text));
    if (!strcmp(key, "length"))
        t->length = (size_t)number_decimal(text, strlen(text));
}

static OnnxTensor read_fields(const OnnxReader *r, ProtoWire w)
{
    OnnxTensor t = {.name = ""};
    for (ProtoField f; wire_next(&w, &f);)
        if (f.number == 1)
            wire_each(&w, &f, take_dim, &t);
        else if (f.number == 2)
            t.type = (int)f.bits;
        else if (f.number == 5 || f.number == 7)
            wire_each(&w, &f, take_integer, &t);
        else if (f.number == 4 || f.number == 10)
            take_fixed(&t, &f, f.number == 4 ? 4 : 8);
        else if (f.number == 8)
            t.name = wire_text(&f);
        else if (f.number == 9 && f.kind == 2)
            t.raw = f.in.at, t.bytes = (size_t)(f.in.end - f.in.at);
        else if (f.number == 13 && f.kind == 2)
            take_external(&t, f.in);
    stop_at(r, &w);
    if (t.too_many)
        net_refuse(r->g, "tensor '%s' has more than %d axes", t.name, MOST_DIMS);
    return t;
}

static void find_external(const OnnxReader *r, OnnxTensor *t)
{
    size_t n;
    if (strchr(t->location, '/') || *t->location == '.' || !*t->location)
        net_refuse(r->g, "tensor '%s' lies in '%s', which leads out of the folder", t->name, t->location);
    const unsigned char *at = file_map(strf("%s%s", r->dir, t->location), EXIT_USAGE, &n);
    if (t->offset > n || t->length > n - t->offset)
        net_refuse(r->g, "tensor '%s' lies behind the end of %s: that is cut short", t->name, t->location);
    t->raw = at + t->offset, t->bytes = t->length;
}

/* Fields of numbers as the bytes that raw data would have. */
static void make_raw(OnnxTensor *t, const char *type, int64_t count)
{
    int size = (int)safe_bytes(type, 0, NULL), n = t->wide.n ? t->wide.n : t->number.n;
    unsigned char *to = alloc((size_t)n * (size_t)size + 1);
    if (count != n)
        return;
    for (int i = 0; i < n; i++) {
        uint64_t x = t->wide.n ? t->wide.at[i] : (uint64_t)(int64_t)t->number.at[i];
        for (int k = 0; k < size; k++)
            to[i * size + k] = (unsigned char)(x >> (8 * k));
    }
    t->raw = to;
    t->bytes = (size_t)n * (size_t)size;
}

/* result: of the node whose constant it is, for names of such tensors need not differ; NULL: it is an initializer. */
static int read_tensor(const OnnxReader *r, ProtoWire w, const char *result)
{
    OnnxTensor t = read_fields(r, w);
    const char *type = NULL;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].type == t.type)
            type = types[i].name;
    if (!type)
        net_refuse(r->g, "tensor '%s' has type %d of ONNX, which is not read", t.name, t.type);
    if (t.location)
        find_external(r, &t);
    else if (!t.raw)
        make_raw(&t, type, dims_elements(&t.dims));
    const char *name = result && *result ? result : t.name;
    int weight = net_weight(r->g, name, type, t.dims, t.raw, (int64_t)t.bytes);
    NetValue *v = value_of(r->g, weight);
    /* One number that training changes has an axis: exporters write constants without one, or name them so. */
    v->learns = !v->whole && v->dims.n > 0 && !strstr(name, "onst") && strncmp(name, "onnx::", 6);
    /* Names that exporters give to what they have made of several tensors. */
    v->folded = !result && (text_begins(name, "onnx::") || text_without(name, ".weight_bias"));
    return weight;
}

/* ---- nodes ------------------------------------------------------------------------------------------------------------- */

static void take_list(void *to, uint64_t bits)
{
    *PUSH((Numbers *)to) = (double)(int64_t)bits;
}

static NetArgument read_attribute(const OnnxReader *r, ProtoWire w, const char *node)
{
    NetArgument a = {.name = "", .text = ""};
    enum { NONE, FLOAT, INT };
    uint64_t type = NONE;
    double one = 0;
    for (ProtoField f; wire_next(&w, &f);)
        if (f.number == 1)
            a.name = wire_text(&f);
        else if (f.number == 2 || f.number == 3)        /* some writers have both, one of them 0 */
            one += f.number == 2 ? (double)wire_float(f.bits) : (double)(int64_t)f.bits;
        else if (f.number == 4)
            a.text = wire_text(&f);
        else if (f.number == 5 && f.kind == 2)
            *PUSH(&a.tensor) = read_tensor(r, f.in, node);
        else if (f.number == 8)
            wire_each(&w, &f, take_list, &a.number);
        else if (f.number == 20)
            type = f.bits;
    if (type == FLOAT || type == INT || (type == NONE && !a.number.n && !a.tensor.n && !*a.text))
        *PUSH(&a.number) = one;
    stop_at(r, &w);
    return a;
}

static void read_node(OnnxReader *r, ProtoWire w)
{
    NetNode n = {.op = "", .name = "", .domain = ""};
    Strs in = {0};
    Ints results = {0};
    VEC(ProtoWire) attributes = {0};
    for (ProtoField f; wire_next(&w, &f);)
        if (f.number == 1)
            *PUSH(&in) = wire_text(&f);
        else if (f.number == 2)
            *PUSH(&n.out) = wire_text(&f);
        else if (f.number == 3 || f.number == 4 || f.number == 7)
            *(f.number == 3 ? &n.name : f.number == 4 ? &n.op : &n.domain) = wire_text(&f);
        else if (f.number == 5 && f.kind == 2)
            *PUSH(&attributes) = f.in;
    stop_at(r, &w);
    r->g->node = strf("node '%s' (%s)", *n.name ? n.name : n.out.n ? n.out.at[0] : "", n.op);
    for (int i = 0; i < attributes.n; i++)
        *PUSH(&n.argument) = read_attribute(r, attributes.at[i], n.out.n ? n.out.at[0] : "");
    for (int i = 0; i < in.n; i++) {
        int value = *in.at[i] ? net_last(&r->named, in.at[i]) : -1;
        if (*in.at[i] && value < 0)
            net_refuse(r->g, "nothing before it is called '%s'", in.at[i]);
        *PUSH(&n.in) = value;
    }
    if (*n.domain && strcmp(n.domain, "ai.onnx"))
        net_refuse(r->g, "operators of %s are not known", n.domain);
    onnx_node(r->g, &n, r->opset, &results);
    for (int i = 0; i < results.n && i < n.out.n; i++)
        *PUSH(&r->named) = (NetName){n.out.at[i], results.at[i]};
    r->g->node = NULL;
}

/* ---- inputs ------------------------------------------------------------------------------------------------------------ */

typedef struct { const char *name, *symbol[MOST_DIMS]; int type; Dims dims; bool shaped, too_many; } Info;

static void read_shape(Info *x, ProtoWire w)
{
    x->shaped = true;
    for (ProtoField f; wire_next(&w, &f);) {
        if (f.number != 1 || f.kind != 2)
            continue;
        int64_t n = 0;
        const char *symbol = NULL;
        for (ProtoField d; wire_next(&f.in, &d);)
            if (d.number == 1)
                n = (int64_t)d.bits;
            else if (d.number == 2)
                symbol = wire_text(&d);
        x->too_many |= x->dims.n == MOST_DIMS;
        if (x->dims.n < MOST_DIMS) {
            x->symbol[x->dims.n] = n > 0 ? NULL : symbol ? symbol : "?";
            x->dims.d[x->dims.n++] = n;
        }
    }
}

static Info read_info(const OnnxReader *r, ProtoWire w)
{
    Info x = {.name = ""};
    for (ProtoField f; wire_next(&w, &f);) {
        if (f.number == 1)
            x.name = wire_text(&f);
        if (f.number != 2 || f.kind != 2)
            continue;
        for (ProtoField t; wire_next(&f.in, &t);)
            for (ProtoField e; t.number == 1 && t.kind == 2 && wire_next(&t.in, &e);)
                if (e.number == 1)
                    x.type = (int)e.bits;
                else if (e.number == 2 && e.kind == 2)
                    read_shape(&x, e.in);
    }
    stop_at(r, &w);
    return x;
}

/* --shape: the sizes of an input, NAME=N,C,H,W, and others behind blanks. */
static void ask_shape(const OnnxReader *r, Info *x)
{
    size_t n = strlen(x->name);
    const char *p = r->g->shape;
    while (p && *p && !(!strncmp(p, x->name, n) && p[n] == '='))
        p += strcspn(p, " "), p += strspn(p, " ");
    for (int i = 0; p && *p && i < x->dims.n; i++) {
        p += i ? 0 : n;
        char *end;
        long long size = strtoll(p + 1, &end, 10);
        bool last = i == x->dims.n - 1;
        bool good = *p == (i ? ',' : '=') && end > p + 1 && size > 0 && size < 1 << 24;
        if (!good || (last ? *end && *end != ' ' : *end != ','))
            fail(EXIT_USAGE, "--shape %s: input '%s' has %s, written as in %s=2,3,48,192", r->g->shape, x->name,
                 count_text(x->dims.n, "size"), x->name);
        if (!x->symbol[i] && x->dims.d[i] != size)
            net_refuse(r->g, "--shape %s: axis %d of input '%s' is %lld in the file", r->g->shape, i, x->name,
                       (long long)x->dims.d[i]);
        x->dims.d[i] = size;
        x->symbol[i] = NULL;
        p = end;
    }
}

static void read_input(OnnxReader *r, ProtoWire w)
{
    Info x = read_info(r, w);
    if (net_last(&r->named, x.name) >= 0)
        return;                 /* an initializer that may be replaced */
    bool whole = x.type == 6 || x.type == 7;
    if (!x.shaped || x.dims.n == 0 || x.too_many || (!whole && x.type != 1 && x.type != 10 && x.type != 11 && x.type != 16))
        net_refuse(r->g, "input '%s' is no tensor of known rank, of floats or of integers", x.name);
    ask_shape(r, &x);
    for (int i = 0; i < x.dims.n; i++)
        if (x.symbol[i] && i > 0)
            net_advise(r->g, strf("export it without dynamic_axes and dynamic_shapes, with an x of the size that is trained, "
                                  "or say the sizes: --shape %s=...", x.name),
                       "axis %d of input '%s' has no fixed size ('%s')", i, x.name, x.symbol[i]);
        else if (x.symbol[i])
            x.dims.d[i] = NET_ANY_BATCH;
    *PUSH(&r->named) = (NetName){x.name, net_input(r->g, x.name, x.dims, whole)};
}

/* ---- the file ---------------------------------------------------------------------------------------------------------- */

static void read_graph(OnnxReader *r, ProtoWire graph)
{
    enum { NODE = 1, INITIALIZER = 5, INPUT = 11, OUTPUT = 12, SPARSE = 15 };
    for (int pass = 0; pass < 3; pass++) {
        ProtoWire w = graph;
        for (ProtoField f; wire_next(&w, &f);) {
            if (f.kind != 2)
                continue;
            if (pass == 0 && f.number == INITIALIZER) {
                int v = read_tensor(r, f.in, NULL);
                *PUSH(&r->named) = (NetName){r->g->value.at[v].name, v};
            } else if (pass == 1 && f.number == INPUT) {
                read_input(r, f.in);
            } else if (pass == 1 && f.number == OUTPUT) {
                *PUSH(&r->outputs) = read_info(r, f.in).name;
            } else if (pass == 2 && f.number == NODE) {
                read_node(r, f.in);
            } else if (f.number == SPARSE) {
                net_refuse(r->g, "sparse tensors are not read");
            }
        }
        stop_at(r, &w);
    }
}

/* Each name of --shape is that of an input. */
static void check_shape(const Net *g)
{
    for (const char *p = g->shape, *end; p && *p; p = end + strspn(end, " ")) {
        size_t n = strcspn(p, "= ");
        const char *names = "";
        bool is = false;
        end = p + strcspn(p, " ");
        for (int i = 0; i < g->inputs.n; i++) {
            const char *name = g->value.at[g->inputs.at[i]].name;
            is |= strlen(name) == n && !strncmp(name, p, n);
            names = strf("%s %s", names, name);
        }
        if (!is)
            fail(EXIT_USAGE, "--shape %s: no input has that name; there is%s", g->shape, names);
    }
}

static void read_opset(OnnxReader *r, ProtoWire w)
{
    const char *domain = "";
    int64_t version = 0;
    for (ProtoField f; wire_next(&w, &f);)
        if (f.number == 1)
            domain = wire_text(&f);
        else if (f.number == 2)
            version = (int64_t)f.bits;
    if (!*domain || !strcmp(domain, "ai.onnx"))
        r->opset = version > 1000 || version < 0 ? 1000 : (int)version;
}

int onnx_read(Net *g, const unsigned char *at, size_t n)
{
    const char *slash = strrchr(g->path, '/');
    OnnxReader r = {.g = g, .dir = slash ? strf("%.*s", (int)(slash - g->path) + 1, g->path) : ""};
    ProtoWire w = {at, at + n, NULL}, graph = {0};
    g->remedy = remedy;
    for (ProtoField f; wire_next(&w, &f);)
        if (f.number == 7 && f.kind == 2)
            graph = f.in;
        else if (f.number == 8 && f.kind == 2)
            read_opset(&r, f.in);
        else if (f.number == 25)
            net_refuse(g, "it has functions of its own, which are not read; %s", remedy);
    stop_at(&r, &w);
    if (!graph.at || r.opset == 0)
        broken(&r, "there is no graph, or no version of operators");
    if (r.opset < FIRST_OPSET || r.opset > LAST_OPSET)
        net_refuse(g, "its operators are those of opset %d; %d to %d are read; %s", r.opset, FIRST_OPSET, LAST_OPSET, remedy);
    read_graph(&r, graph);
    check_shape(g);
    if (g->inputs.n == 0 || r.outputs.n != 1 || net_last(&r.named, r.outputs.at[0]) < 0)
        net_advise(g, "train one of its results, and leave the others out of the file", "a graph with inputs and one result is "
                   "expected; this one has %d and %d", g->inputs.n, r.outputs.n);
    return net_last(&r.named, r.outputs.at[0]);
}
