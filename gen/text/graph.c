/* SPDX-License-Identifier: Apache-2.0
 *
 * graph.c: Graph as text.
 *
 *     dpgen-graph 1
 *     graph ref-gpt compute=f32 batch=2 micro=3 groups=1 loss=loss vals=values
 *     tensor h.0.ln_1 kind=act type=f32 shape=2x16x9 bytes=1152 @gpt.yaml:12:9
 *     state h.0.ln_1.weight kind=param type=f32 shape=9 bytes=36 param=... op=F:h.0.ln_1 ... @gpt.yaml:12:9
 *     op F:h.0.ln_1 row=LayerNorm layer=h.0 flop=2304 call=layernorm_forward y=w:h.0.ln_1 ... rows=i:32
 *     count 0 input=1 op=F:loss
 *
 * An operator is called by its phase and its name.  What follows `call=` are its arguments, in order: the word of
 * ops.def, then what stands there (docs/text.md).  Before shape there are no calls; then `call=-`, attributes follow,
 * and operands are lists.  Producers of tensors, nf and nb follow from the operators and are not written.
 *
 * needs   any graph, bound or not.  fails  reading: with err() at what is wrong; what is read has passed graph_fault().
 */
#include "text.h"
#include <math.h>

/* ---- tables ------------------------------------------------------------------------------------------------------ */

static const char *const types[] = {"f32", "bf16", "i32", "f64", "u8", NULL};
static const char *const tensor_kinds[] = {"input", "act", "grad", NULL};
static const char *const state_kinds[] = {
    "param", "copy", "grad", "moment1", "moment2", "centre", "drift", "clip", "norm", "blocks", "values", NULL
};
static const char *const inits[] = {"zeros", "ones", "normal", "uniform", "sines", "values", NULL};
static const char phases[] = "FIWU";

static const TextField graph_fields[] = {
    {"compute", V_WORD, offsetof(Graph, compute), .words = types},
    {"batch", V_LONG, .at = offsetof(Graph, batch)}, {"micro", V_LONG, .at = offsetof(Graph, micro)},
    {"groups", V_LONG, .at = offsetof(Graph, groups)}, {"blocks", V_LONG, .at = offsetof(Graph, blocks)},
    {"team", V_INT, .at = offsetof(Graph, team)},
    {"loss", V_REF, offsetof(Graph, loss), .ref = R_TENSOR}, {"vals", V_REF, offsetof(Graph, vals), .ref = R_STATE},
    {"model", V_TEXT, .at = offsetof(Graph, model)}, {"calls", V_TEXT, .at = offsetof(Graph, calls)},
    {"gpus", V_TEXT, .at = offsetof(Graph, gpus)},
    {"timed", V_BOOL, .at = offsetof(Graph, timed)}, {"kinds", V_TEXTS, .at = offsetof(Graph, kind)},
    {0}
};
static const TextField tensor_fields[] = {
    {"kind", V_WORD, offsetof(Tensor, kind), .words = tensor_kinds},
    {"type", V_WORD, offsetof(Tensor, type), .words = types},
    {"shape", V_SHAPE, .at = offsetof(Tensor, shape)}, {"bytes", V_LONG, .at = offsetof(Tensor, bytes)},
    {"input", V_INDEX, offsetof(Tensor, of), .only = T_INPUT + 1},
    {"of", V_REF, offsetof(Tensor, of), .ref = R_TENSOR, .only = T_GRAD + 1},
    {0}
};
static const TextField state_fields[] = {
    {"kind", V_WORD, offsetof(State, kind), .words = state_kinds},
    {"type", V_WORD, offsetof(State, type), .words = types},
    {"shape", V_SHAPE, .at = offsetof(State, shape)}, {"bytes", V_LONG, .at = offsetof(State, bytes)},
    {"param", V_REF, offsetof(State, param), .ref = R_STATE},
    {"use", V_INT, offsetof(State, use), .only = S_GRAD + 1},
    {"op", V_REF, offsetof(State, op), .ref = R_OP},
    {"decay", V_BOOL, offsetof(State, decay), .only = S_PARAM + 1},
    {"tracked", V_BOOL, offsetof(State, tracked), .only = S_PARAM + 1},
    {"frozen", V_BOOL, offsetof(State, frozen), .only = S_PARAM + 1},
    {"adapter", V_BOOL, offsetof(State, adapter), .only = S_PARAM + 1},
    {"bits", V_INT, offsetof(State, bits), .only = S_PARAM + 1},
    {"group", V_INT, offsetof(State, group), .only = S_PARAM + 1},
    {"outer", V_LONG, offsetof(State, outer), .only = S_PARAM + 1},
    {"whole", V_LONG, offsetof(State, whole), .only = S_PARAM + 1},
    {"dim", V_INT, offsetof(State, dim), .only = S_PARAM + 1},
    {"init", V_WORD, offsetof(State, init.kind), .words = inits, .first = true, .only = S_PARAM + 1},
    {"rule", V_TEXT, offsetof(State, init.name), .only = S_PARAM + 1},
    {"a", V_FLOAT, offsetof(State, init.a), .only = S_PARAM + 1},
    {"b", V_FLOAT, offsetof(State, init.b), .only = S_PARAM + 1},
    {"values", V_TEXT, offsetof(State, init.values), .only = S_PARAM + 1},
    {0}
};
static const TextField op_fields[] = {
    {"row", V_TEXT, .at = offsetof(Op, call)},             /* by name: print_op() and read_op() put it there */
    {"layer", V_TEXT, .at = offsetof(Op, layer)},
    {"fwd", V_REF, offsetof(Op, fwd), .ref = R_OP}, {"with", V_TEXT, .at = offsetof(Op, with)},
    {"flop", V_LONG, .at = offsetof(Op, flop)}, {"tmp", V_LONG, .at = offsetof(Op, tmp)},
    {"moved", V_LONG, .at = offsetof(Op, moved)}, {"pass_flop", V_LONG, .at = offsetof(Op, pass_flop)},
    {"pass_moved", V_LONG, .at = offsetof(Op, pass_moved)}, {"ns", V_LONG, .at = offsetof(Op, ns)},
    {"on", V_TIMES, .at = offsetof(Op, on)},
    {"in", V_REFS, offsetof(Op, in), .ref = R_TENSOR}, {"par", V_REFS, offsetof(Op, par), .ref = R_STATE},
    {"out", V_REFS, offsetof(Op, out), .ref = R_TENSOR},
    {0}
};
static const TextField count_fields[] = {
    {"input", V_INT, .at = offsetof(Count, input)}, {"ignore", V_INT, .at = offsetof(Count, ignore)},
    {"count", V_INT, .at = offsetof(Count, count)}, {"op", V_REF, offsetof(Count, op), .ref = R_OP},
    {0}
};
static const Table graph_table = {"graph", graph_fields, 0};
static const Table tensor_table = {"tensor", tensor_fields, offsetof(Tensor, kind)};
static const Table state_table = {"state", state_fields, offsetof(State, kind)};
static const Table op_table = {"op", op_fields, 0};
static const Table count_table = {"count", count_fields, 0};
static const Table *const tables[] = {&graph_table, &tensor_table, &state_table, &op_table, &count_table, NULL};

/* What an argument is, in front of its value. */
enum { NOTHING, THING, INTEGER, NUMBER };
static const struct { const char *sign; ArgKind kind; bool state; int value; } signs[] = {
    {"r:", ARG_READ, false, THING}, {"w:", ARG_WRITE, false, THING}, {"R:", ARG_READ, true, THING},
    {"W:", ARG_WRITE, true, THING}, {"A:", ARG_ADD, true, THING}, {"U:", ARG_UPDATE, true, THING},
    {"i:", ARG_INT, false, INTEGER}, {"f:", ARG_FLOAT, false, NUMBER}, {"tmp", ARG_TMP, false, NOTHING},
    {"acc", ARG_ACC, false, NOTHING}, {"mb", ARG_MB, false, NOTHING}, {"h", ARG_HANDLE, false, NOTHING},
    {"vals", ARG_VALS, true, NOTHING},
    {"vals:", ARG_VALS, true, INTEGER}, {"late", ARG_LATE, false, NOTHING},
    {"0", ARG_NONE, false, NOTHING},
};
enum { SIGNS = sizeof signs / sizeof *signs };

/* ---- printing ---------------------------------------------------------------------------------------------------- */

void text_graph_refs(const Graph *g, Refs ref[R_KINDS])
{
    for (int i = 0; i < g->tensor.n; i++)
        *PUSH(&ref[R_TENSOR].name) = g->tensor.at[i].name;
    for (int i = 0; i < g->state.n; i++)
        *PUSH(&ref[R_STATE].name) = g->state.at[i].name;
    for (int i = 0; i < g->op.n; i++)
        *PUSH(&ref[R_OP].name) = strf("%c:%s", phases[g->op.at[i].phase], g->op.at[i].name);
    refs_seal(&ref[R_TENSOR]);
    refs_seal(&ref[R_STATE]);
    refs_seal(&ref[R_OP]);
}

static void print_arg(Printer *w, const Arg *a)
{
    int i = 0;
    while (i < SIGNS && (signs[i].kind != a->kind || (signs[i].value == THING && signs[i].state != a->state)
                         || (a->kind == ARG_VALS && (signs[i].value == INTEGER) != (a->i != 0))))
        i++;
    if (i == SIGNS)
        die("text: argument %s of kind %d", a->token, (int)a->kind);
    fprintf(w->f, " %s=%s", a->token, signs[i].sign);
    if (signs[i].value == THING)
        text_word(w->f, w->ref[a->state ? R_STATE : R_TENSOR].name.at[a->index]);
    else if (signs[i].value == INTEGER)
        fprintf(w->f, "%" PRId64, a->i);
    else if (signs[i].value == NUMBER)
        fprintf(w->f, "%a", a->f);
}

static void print_op(Printer *w, const Op *o, const char *name)
{
    Op x = *o;                                  /* without what follows from the rest */
    x.call = row(o->row)->name;
    if (o->phase == PH_F)
        x.fwd = -1;
    if (o->call)
        x.in.n = x.out.n = x.par.n = 0;
    text_head(w, &op_table, name);
    text_fields(w, &op_table, &x);
    fprintf(w->f, " call=%s", o->call ? o->call : "-");
    for (int i = 0; o->call && i < o->arg.n; i++)
        print_arg(w, &o->arg.at[i]);
    for (int i = 0; !o->call && i < o->attr.n; i++) {
        const Attr *a = &o->attr.at[i];
        print_arg(w, &(Arg){.kind = a->is_int ? ARG_INT : ARG_FLOAT, .token = a->name, .i = a->i, .f = a->f});
    }
    text_end(w, o->loc);
}

static void print_all(Printer w, const Graph *g)
{
    FILE *f = w.f;
    text_graph_refs(g, w.ref);
    fprintf(f, "dpgen-graph 1\n");
    text_record(&w, &graph_table, g->name, g, NOWHERE);
    for (int i = 0; i < g->tensor.n; i++)
        text_record(&w, &tensor_table, w.ref[R_TENSOR].name.at[i], &g->tensor.at[i], g->tensor.at[i].loc);
    for (int i = 0; i < g->state.n; i++)
        text_record(&w, &state_table, w.ref[R_STATE].name.at[i], &g->state.at[i], g->state.at[i].loc);
    for (int i = 0; i < g->op.n; i++)
        print_op(&w, &g->op.at[i], w.ref[R_OP].name.at[i]);
    for (int i = 0; i < g->count.n; i++)
        text_record(&w, &count_table, strf("%d", i), &g->count.at[i], g->count.at[i].loc);
}

void print_graph(FILE *f, const Graph *g)
{
    print_all((Printer){.f = f}, g);
}

void print_graph_bare(FILE *f, const Graph *g)
{
    print_all((Printer){.f = f, .bare = true}, g);
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static const char *base_name(const char *name)
{
    return strf("%.*s", (int)strcspn(name, "#"), name);
}

static void read_tensor(Scanner *s, const Record *r, Graph *g)
{
    Tensor *t = PUSH(&g->tensor);
    *t = (Tensor){.name = base_name(r->name), .op = -1, .of = -1, .loc = r->from};
    text_take(s, &tensor_table, r, r->pair.n, t);
}

static void read_state(Scanner *s, const Record *r, Graph *g)
{
    State *x = PUSH(&g->state);
    text_clear(&state_table, x);
    x->name = base_name(r->name);
    x->loc = r->from;
    text_take(s, &state_table, r, r->pair.n, x);
}

static Arg read_arg(Scanner *s, const Record *r, const TextPair *p, const Graph *g)
{
    Arg a = {.token = p->key, .index = -1};
    for (int i = 0; i < SIGNS; i++) {
        size_t n = strlen(signs[i].sign);
        if (signs[i].value == NOTHING ? strcmp(p->value, signs[i].sign) : strncmp(p->value, signs[i].sign, n))
            continue;
        a.kind = signs[i].kind;
        a.state = signs[i].state;
        Loc at = text_at(r, p->value_col + (int)n);
        if (signs[i].value == THING)
            a.index = text_ref(s, a.state ? R_STATE : R_TENSOR, at, p->value + n);
        else if (signs[i].value == INTEGER)
            a.i = text_integer(at, p->value + n, INT64_MIN, INT64_MAX);
        else if (signs[i].value == NUMBER)
            a.f = text_float(at, p->value + n);
        if (!isfinite((float)a.f))
            err(at, "a call takes floats of 32 bits", "'%s' is too large", p->value + n);
        if (signs[i].value == THING && a.index < 0)
            err(at, "an absent one is 0", "nothing can be read or written there");
        if (a.kind == ARG_VALS)
            a.index = g->vals;
        return a;
    }
    err(text_at(r, p->value_col), "one of r: w: R: W: A: U: i: f: tmp acc mb h vals 0",
        "an argument that cannot be read");
}

static void take_arg(Op *o, const Arg *a, Loc at)
{
    if (o->call) {
        *PUSH(&o->arg) = *a;
        return;
    }
    if (a->kind != ARG_INT && a->kind != ARG_FLOAT)
        err(at, "i: or f:", "an operator without a call has attributes, which are numbers");
    *PUSH(&o->attr) = (Attr){a->token, a->kind == ARG_INT, a->i, a->f};
}

static int row_of(const Record *r, const char *name)
{
    int i = row_find(name);
    if (i >= 0)
        return i;
    Strs names = {0};
    for (int k = 0; k < row_count(); k++)
        *PUSH(&names) = row(k)->name;
    err(r->at, did_you_mean(name, names.at, names.n, NULL), "operator %s: no row is called '%s'", r->name, name);
}

static void read_op(Scanner *s, const Record *r, Graph *g)
{
    int call = 0, index = g->op.n;
    while (call < r->pair.n && strcmp(r->pair.at[call].key, "call"))
        call++;
    if (call == r->pair.n)
        err(r->at, "call=NAME, or call=- before it is known", "operator %s has no call", r->name);
    Op *o = PUSH(&g->op);
    text_clear(&op_table, o);
    text_take(s, &op_table, r, call, o);
    o->row = row_of(r, o->call);
    const char *name = r->pair.at[call].value, *phase = *r->name ? strchr(phases, *r->name) : NULL;
    o->call = strcmp(name, "-") ? name : NULL;
    if (!phase || r->name[1] != ':')
        err(text_at(r, r->name_col), "F:name, I:name, W:name or U:name", "an operator's name begins with its phase");
    o->name = base_name(r->name + 2);
    if (o->with && *o->with)
        text_name(text_value(r, "with"), o->with, "");
    o->phase = (Phase)(phase - phases);
    o->loc = r->from;
    if (o->phase == PH_F)
        o->fwd = index;
    for (int i = call + 1; i < r->pair.n; i++) {
        Arg a = read_arg(s, r, &r->pair.at[i], g);
        take_arg(o, &a, text_at(r, r->pair.at[i].value_col));
    }
}

static void read_count(Scanner *s, const Record *r, Graph *g)
{
    Count *c = PUSH(&g->count);
    text_clear(&count_table, c);
    c->loc = r->from;
    text_take(s, &count_table, r, r->pair.n, c);
}

static void read_header(Scanner *s, const Record *r, Graph *g)
{
    if (g->name)
        err(r->at, NULL, "a second graph");
    text_name(text_at(r, r->name_col), r->name, "-");
    g->name = r->name;
    text_take(s, &graph_table, r, r->pair.n, g);
}

Graph *read_graph(const char *path)
{
    static const struct { const Table *t; void (*read)(Scanner *, const Record *, Graph *); } readers[] = {
        {&graph_table, read_header}, {&tensor_table, read_tensor}, {&state_table, read_state}, {&op_table, read_op},
        {&count_table, read_count}};
    Scanner s = {0};
    Graph *g = alloc(sizeof *g);
    text_scan(&s, path, "dpgen-graph 1");
    text_known(&s, tables);
    /* First round: a place for every record, so that names can be looked up. */
    text_once(&s, R_TENSOR, &tensor_table);
    text_once(&s, R_STATE, &state_table);
    text_once(&s, R_OP, &op_table);
    g->loss = g->vals = -1;
    for (size_t k = 0; k < sizeof readers / sizeof *readers; k++)
        for (int i = 0; i < s.record.n; i++)
            if (!strcmp(s.record.at[i].word, readers[k].t->word))
                readers[k].read(&s, &s.record.at[i], g);
    if (!g->name)
        err((Loc){s.file, 1, 1}, "graph NAME compute=f32 ...", "no record begins with 'graph'");
    /* What is not written because it follows. */
    while (g->nf < g->op.n && g->op.at[g->nf].phase == PH_F)
        g->nf++;
    g->nb = g->nf;
    while (g->nb < g->op.n && g->op.at[g->nb].phase != PH_U)
        g->nb++;
    for (int i = 0; i < g->op.n; i++) {
        const Op *o = &g->op.at[i];
        for (int k = 0; k < o->out.n; k++)
            if (o->out.at[k] >= 0)
                g->tensor.at[o->out.at[k]].op = i;
        for (int k = 0; k < o->arg.n; k++)
            if (o->arg.at[k].kind == ARG_WRITE && !o->arg.at[k].state)
                g->tensor.at[o->arg.at[k].index].op = i;
    }
    Loc at;
    const char *fault = graph_fault(g, &at);
    if (fault)
        err((Loc){s.file, 1, 1}, NULL, "%s", fault);
    else
        graph_uses(g);
    return g;
}
