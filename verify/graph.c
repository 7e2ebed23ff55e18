/* SPDX-License-Identifier: Apache-2.0
 *
 * graph.c: model.graph, the text of docs/text.md, as far as a proof asks for it: sizes, states, and calls with their arguments.
 */
#include "verify.h"
#include <stdlib.h>
#include <string.h>

typedef struct { const Source *s; const char *at, *end; int line; } Scan;

static _Noreturn void fault(const Scan *x, const char *what)
{
    stop(NOT_READ, "%s:%d: %s", x->s->path, x->line, what);
}

/* The next word of the line; NULL: there is none. */
static const char *word(Scan *x)
{
    while (x->at < x->end && *x->at == ' ')
        x->at++;
    const char *from = x->at;
    while (x->at < x->end && *x->at != ' ' && *x->at != '\n')
        x->at++;
    return x->at == from ? NULL : name_of(from, (size_t)(x->at - from));
}

static const char *some_word(Scan *x)
{
    const char *w = word(x);
    if (!w)
        fault(x, "a word is missing");
    return w;
}

static int64_t integer(const Scan *x, const char *at)
{
    char *end;
    long long i = strtoll(at, &end, 10);
    if (end == at || *end)
        fault(x, "this is no whole number");
    return i;
}

typedef struct { const char *key, *value; } Pair;

static bool pair(Scan *x, Pair *p)
{
    const char *w = word(x);
    const char *sign = w ? strchr(w, '=') : NULL;
    if (w && !sign && *w != '@')
        fault(x, "key=value must stand here");
    if (!w || *w == '@')
        return false;
    *p = (Pair){name_of(w, (size_t)(sign - w)), name_of(sign + 1, strlen(sign + 1))};
    return true;
}

static int type_bytes(const Scan *x, const char *type)
{
    static const struct { const char *name; int bytes; } types[] = {{"f32", 4}, {"bf16", 2}, {"i32", 4}, {"f64", 8},
                                                             {"u8", 1}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!strcmp(types[i].name, type))
            return types[i].bytes;
    fault(x, "a type that dpgen-verify does not know");
}

/* Keys of a record: a word, a whole number, a flag, a type. */
typedef enum { WORD, WHOLE, FLAG, TYPE } KeyKind;
typedef struct { const char *key; KeyKind kind; size_t at; } Key;
static const Key of_graph[] = {
    {"compute", WORD, offsetof(Graph, compute)}, {"batch", WHOLE, offsetof(Graph, batch)},
    {"micro", WHOLE, offsetof(Graph, micro)}, {"groups", WHOLE, offsetof(Graph, groups)},
    {"blocks", WHOLE, offsetof(Graph, blocks)}, {"loss", WORD, offsetof(Graph, loss)}, {NULL, WORD, 0}};
static const Key of_thing[] = {
    {"kind", WORD, offsetof(Thing, kind)}, {"type", TYPE, offsetof(Thing, type_bytes)},
    {"bytes", WHOLE, offsetof(Thing, bytes)}, {"shape", WORD, offsetof(Thing, shape)},
    {"input", WHOLE, offsetof(Thing, input)}, {"use", WHOLE, offsetof(Thing, use)}, {"param", WORD, offsetof(Thing, of)},
    {"init", WORD, offsetof(Thing, init)}, {"a", WORD, offsetof(Thing, a)}, {"b", WORD, offsetof(Thing, b)},
    {"values", WORD, offsetof(Thing, values)}, {"tracked", FLAG, offsetof(Thing, tracked)},
    {"frozen", FLAG, offsetof(Thing, frozen)}, {NULL, WORD, 0}};
static const Key of_op[] = {
    {"call", WORD, offsetof(GraphOp, call)}, {"row", WORD, offsetof(GraphOp, row)}, {"tmp", WHOLE, offsetof(GraphOp, tmp)},
    {NULL, WORD, 0}};
static const Key of_count[] = {
    {"input", WHOLE, offsetof(GraphCount, input)}, {"ignore", WHOLE, offsetof(GraphCount, ignore)}, {NULL, WORD, 0}};

/* Others are of no interest here. */
static void keep(const Scan *x, const Key *k, const Pair *p, void *to)
{
    while (k->key && strcmp(k->key, p->key))
        k++;
    void *at = (char *)to + k->at;
    if (!k->key)
        return;
    if (k->kind == WORD)
        *(const char **)at = p->value;
    else if (k->kind == WHOLE)
        *(int64_t *)at = integer(x, p->value);
    else if (k->kind == FLAG)
        *(bool *)at = integer(x, p->value) != 0;
    else
        *(int *)at = type_bytes(x, p->value);
}

static void read_head(Graph *g, Scan *x)
{
    g->name = some_word(x);
    g->batch = g->micro = g->groups = 1;
    g->compute = "";
    for (Pair p; pair(x, &p);)
        keep(x, of_graph, &p, g);
    g->bf16 = !strcmp(g->compute, "bf16");
    if (g->micro < 1 || g->groups < 1 || g->micro % g->groups || g->micro > 1 << 20)
        fault(x, "micro-batches of a step that gradient groups do not divide");
}

static void read_thing(Graph *g, Scan *x, bool state)
{
    Thing t = {.name = some_word(x), .kind = "", .shape = "", .init = "zeros", .a = "0", .b = "0", .values = ""};
    for (Pair p; pair(x, &p); t.whole |= !strcmp(p.key, "type") && !strcmp(p.value, "i32"))
        keep(x, of_thing, &p, &t);
    if (t.bytes < 0 || t.bytes > (int64_t)1 << 50 || t.type_bytes == 0)
        fault(x, "a size that no tensor has");
    Map *m = state ? &g->states : &g->tensors;
    if (map_at(m, t.name) >= 0)
        fault(x, "a name that there is already");
    *(state ? ADD(&g->state) : ADD(&g->tensor)) = t;
    map_set(m, t.name, (state ? g->state.n : g->tensor.n) - 1);
}

/* r:NAME w:NAME R:NAME W:NAME U:NAME A:NAME i:INTEGER f:REAL tmp vals vals:GROUP acc mb h 0 */
static GraphArg argument(const Scan *x, const Pair *p)
{
    GraphArg a = {.token = p->key};
    const char *v = p->value, *behind = v[0] && v[1] == ':' ? v + 2 : NULL;
    char *end;
    if (behind && strchr("rwRWUA", *v)) {
        a.sign = *v;
        a.name = name_of(behind, strlen(behind));
    } else if (behind && *v == 'i') {
        a.sign = 'i';
        a.i = integer(x, behind);
    } else if (behind && *v == 'f') {
        a.sign = 'f';
        a.f = strtod(behind, &end);
        if (end == behind || *end)
            fault(x, "this is no number");
    } else if (!strncmp(v, "vals:", 5)) {
        a.sign = 'v';
        a.i = integer(x, v + 5);
    } else if (!strcmp(v, "0")) {
        a.sign = '0';
    } else {
        static const struct { const char *word; char sign; } words[] = {
            {"tmp", 't'}, {"vals", 'v'}, {"acc", 'c'}, {"mb", 'm'}, {"h", 'h'}, {"late", 'l'}};
        for (size_t i = 0; i < sizeof words / sizeof *words; i++)
            if (!strcmp(words[i].word, v))
                a.sign = words[i].sign;
    }
    if (!a.sign)
        fault(x, "no argument of a call");
    return a;
}

static void read_op(Graph *g, Scan *x)
{
    GraphOp o = {.row = "", .line = x->line};
    const char *name = some_word(x);
    if (!strchr("FIWU", name[0]) || name[1] != ':')
        fault(x, "the name of an operator begins with its phase");
    o.phase = name[0];
    o.name = name + 2;
    for (Pair p; pair(x, &p);)
        if (o.call)
            *ADD(&o.arg) = argument(x, &p);
        else
            keep(x, of_op, &p, &o);
    if (!o.call || !strcmp(o.call, "-"))
        fault(x, "an operator without a call");
    *ADD(&g->op) = o;
}

static void read_count(Graph *g, Scan *x)
{
    GraphCount c = {.count = integer(x, some_word(x))};
    for (Pair p; pair(x, &p);)
        keep(x, of_count, &p, &c);
    if (c.count < 0 || c.count > 5)
        fault(x, "a count has one of six numbers");
    *ADD(&g->count) = c;
}

/* Which model file it is of, and with which options. */
static void read_comment(Graph *g, Scan *x)
{
    const char *first = word(x), *second = first ? word(x) : NULL;
    size_t n = strcspn(x->at, "\n");
    if (first && second && !strcmp(first, "of") && !strcmp(second, "another"))
        g->foreign = true;
    else if (first && second && !strcmp(first, "given") && (!strcmp(second, "-D") || !strcmp(second, "--set")) && n > 1)
        *ADD(&g->given) = joined_text("%s %.*s", second, (int)n - 1, x->at + 1);
}

void graph_read(Graph *g, const Source *s)
{
    Scan x = {s, s->at, s->at + s->n, 1};
    g->path = s->path;
    if (strncmp(s->at, "dpgen-graph 1\n", 14))
        fault(&x, "the first line of a graph is 'dpgen-graph 1'");
    while (x.at < x.end) {
        const char *record = word(&x);
        if (record && !strcmp(record, "graph"))
            read_head(g, &x);
        else if (record && (!strcmp(record, "tensor") || !strcmp(record, "state")))
            read_thing(g, &x, *record == 's');
        else if (record && !strcmp(record, "op"))
            read_op(g, &x);
        else if (record && !strcmp(record, "count"))
            read_count(g, &x);
        else if (record && *record == '#')
            read_comment(g, &x);
        else if (record && x.line > 1)
            fault(&x, "no record of a graph");
        while (x.at < x.end && *x.at != '\n')
            x.at++;
        x.at++;
        x.line++;
    }
    if (!g->name || g->op.n == 0)
        fault(&x, "a graph without operators");
}
