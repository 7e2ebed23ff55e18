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
    static const struct { const char *name; int bytes; } types[] = {{"f32", 4}, {"bf16", 2}, {"i32", 4}, {"f64", 8}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!strcmp(types[i].name, type))
            return types[i].bytes;
    fault(x, "a type that dpgen-verify does not know");
}

static void read_head(Graph *g, Scan *x)
{
    Pair p;
    g->name = some_word(x);
    g->batch = g->micro = g->groups = 1;
    while (pair(x, &p)) {
        if (!strcmp(p.key, "compute"))
            g->bf16 = !strcmp(p.value, "bf16");
        else if (!strcmp(p.key, "batch"))
            g->batch = integer(x, p.value);
        else if (!strcmp(p.key, "micro"))
            g->micro = integer(x, p.value);
        else if (!strcmp(p.key, "groups"))
            g->groups = integer(x, p.value);
        else if (!strcmp(p.key, "blocks"))
            g->blocks = integer(x, p.value);
        else if (!strcmp(p.key, "loss"))
            g->loss = p.value;
    }
    if (g->micro < 1 || g->groups < 1 || g->micro % g->groups || g->micro > 1 << 20)
        fault(x, "micro-batches of a step that gradient groups do not divide");
}

static void read_thing(Graph *g, Scan *x, bool state)
{
    Pair p;
    Thing t = {.name = some_word(x), .kind = "", .shape = ""};
    while (pair(x, &p)) {
        if (!strcmp(p.key, "kind"))
            t.kind = p.value;
        else if (!strcmp(p.key, "type"))
            t.type_bytes = type_bytes(x, p.value), t.whole = !strcmp(p.value, "i32");
        else if (!strcmp(p.key, "bytes"))
            t.bytes = integer(x, p.value);
        else if (!strcmp(p.key, "shape"))
            t.shape = p.value;
        else if (!strcmp(p.key, "input"))
            t.input = integer(x, p.value);
        else if (!strcmp(p.key, "use"))
            t.use = integer(x, p.value);
        else if (!strcmp(p.key, "tracked"))
            t.tracked = integer(x, p.value) != 0;
        else if (!strcmp(p.key, "frozen"))
            t.frozen = integer(x, p.value) != 0;
        else if (!strcmp(p.key, "param"))
            t.of = p.value;
    }
    if (t.bytes < 0 || t.bytes > (int64_t)1 << 50 || t.type_bytes == 0)
        fault(x, "a size that no tensor has");
    Map *m = state ? &g->states : &g->tensors;
    if (map_at(m, t.name) >= 0)
        fault(x, "a name that there is already");
    if (state) {
        map_set(m, t.name, g->state.n);
        *ADD(&g->state) = t;
    } else {
        map_set(m, t.name, g->tensor.n);
        *ADD(&g->tensor) = t;
    }
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
    Pair p;
    GraphOp o = {.row = "", .line = x->line};
    const char *name = some_word(x);
    if (!strchr("FIWU", name[0]) || name[1] != ':')
        fault(x, "the name of an operator begins with its phase");
    o.phase = name[0];
    o.name = name + 2;
    while (pair(x, &p)) {
        if (o.call)
            *ADD(&o.arg) = argument(x, &p);
        else if (!strcmp(p.key, "call"))
            o.call = p.value;
        else if (!strcmp(p.key, "row"))
            o.row = p.value;
        else if (!strcmp(p.key, "tmp"))
            o.tmp = integer(x, p.value);
    }
    if (!o.call || !strcmp(o.call, "-"))
        fault(x, "an operator without a call");
    *ADD(&g->op) = o;
}

static void read_count(Graph *g, Scan *x)
{
    Pair p;
    GraphCount c = {.count = integer(x, some_word(x))};
    while (pair(x, &p)) {
        if (!strcmp(p.key, "input"))
            c.input = integer(x, p.value);
        else if (!strcmp(p.key, "ignore"))
            c.ignore = integer(x, p.value);
    }
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
