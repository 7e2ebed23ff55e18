/* SPDX-License-Identifier: Apache-2.0
 *
 * block.c: scopes: what a name means on a line of the model, and how a block becomes lines.
 *
 * A block is a function.  Its body sees its own values, its inputs (the first is also called $in), what `pass` gives
 * it, its arguments, and everywhere the dims and the data inputs of the model; nothing else of the place where it is
 * used.  A repetition calls it again with its results as the next inputs.  A value can only be named after the line
 * that makes it, so there are no cycles; a block that uses itself is refused.
 *
 * Cost: linear in the lines of the expanded model, times the names of a scope.  Limits: 4096 repetitions of a line, 32
 * nested blocks, 2^20 operators, 2^22 lines.
 */
#include "build.h"

/* ---- what a line may hold -------------------------------------------------------------------------------------- */

bool keys_ok(Builder *b, const Node *map, const char *what, const Strs *keys)
{
    bool ok = true;
    for (int i = 0; i < map->n; i++) {
        int k = 0;
        while (k < keys->n && strcmp(keys->at[k], map->key[i]->text))
            k++;
        if (k < keys->n)
            continue;
        WRONG(b, map->key[i]->loc, did_you_mean(map->key[i]->text, keys->at, keys->n, NULL), "%s has no key '%s'", what,
              map->key[i]->text);
        ok = false;
    }
    return ok;
}

static bool keys_among(Builder *b, const Node *map, const char *what, const char *const *keys, int n)
{
    Strs list = {0};
    for (int i = 0; i < n; i++)
        *PUSH(&list) = keys[i];
    return keys_ok(b, map, what, &list);
}

/* ---- expressions ----------------------------------------------------------------------------------------------- */

static bool lookup(void *ctx, const char *name, double *value)
{
    const Scope *s = ctx;
    const Model *m = s->b->m;
    for (int i = 0; i < s->arg.n; i++)
        if (s->arg.at[i].set && !strcmp(s->arg.at[i].name, name))
            return *value = s->arg.at[i].value, true;
    for (int i = 0; i < m->dims.n; i++)
        if (!strcmp(m->dims.at[i].name, name))
            return *value = (double)m->dims.at[i].value, true;
    *value = s->round && !strcmp(name, "i") ? (double)(s->round - 1) : (double)s->b->g->batch;
    return !strcmp(name, "B") || (s->round && !strcmp(name, "i"));
}

static const char *scalar(const Node *n)
{
    if (n->kind != SCALAR)
        err(n->loc, NULL, "a number or an expression belongs here");
    return n->text;
}

double eval_float(Scope *s, const Node *n)
{
    return expr_float(n->loc, scalar(n), lookup, s);
}

int64_t eval_int(Scope *s, const Node *n)
{
    return expr_int(n->loc, scalar(n), lookup, s);
}

/* true, false, or a number: 0 is false. */
static double eval_any(Scope *s, const Node *n)
{
    const char *text = scalar(n);
    return !strcmp(text, "true") ? 1 : !strcmp(text, "false") ? 0 : eval_float(s, n);
}

bool eval_bool(Scope *s, const Node *n)
{
    return eval_any(s, n) != 0;
}

bool is_on(Scope *s, const Node *line)
{
    const Node *when = node_get(line, "when");
    return !when || eval_bool(s, when);
}

/* ---- values ---------------------------------------------------------------------------------------------------- */

static const BuildValue *find_value(const Scope *s, const char *name)
{
    int i = INDEX_OF(s->value.at, s->value.n, name);
    return i < 0 ? NULL : &s->value.at[i];
}

static int data_input(const Scope *s, const char *name)
{
    return INDEX_OF(s->b->m->inputs.at, s->b->m->inputs.n, name);
}

/* The line of this body that names the value further down. */
static const Node *named_later(const Node *body, const char *name)
{
    for (int i = 0; body && body->kind == LIST && i < body->n; i++) {
        const Node *as = body->at[i]->kind == MAP ? node_get(body->at[i], "as") : NULL;
        for (int k = 0; as && k < (as->kind == LIST ? as->n : 1); k++) {
            const Node *one = as->kind == LIST ? as->at[k] : as;
            if (one->kind == SCALAR && !strcmp(one->text, name))
                return one;
        }
    }
    return NULL;
}

static const char *value_hint(const Scope *s, const char *name)
{
    const Node *later = named_later(s->body, name);
    if (later)
        return strf("line %d names it, further down: a value exists only after its line", later->loc.line);
    for (const Scope *up = s->up; up; up = up->up)
        if (find_value(up, name))
            return strf("it is a value outside of block %s: give it with pass: {%s: %s}", s->block, name, name);
    if (!name_fault(name) && names_get(&s->b->taken, name_as_c(path_join(s->path, name))) >= 0)
        return strf("an operator is called that; its value is not: add as: %s to its line", name);
    Strs names = {0};
    for (int i = 0; i < s->value.n; i++)
        *PUSH(&names) = s->value.at[i].name;
    if (s->up)
        *PUSH(&names) = "$in";
    for (int i = 0; i < s->b->m->inputs.n; i++)
        *PUSH(&names) = s->b->m->inputs.at[i].name;
    return did_you_mean(name, names.at, names.n, "values are named by 'as'");
}

static int special(Scope *s, const Node *n, int tensor, const char *why)
{
    if (tensor != -1)
        return tensor;
    WRONG(s->b, n->loc, NULL, "%s", why);
    return UNKNOWN;
}

int value_of(Scope *s, const Node *n)
{
    if (n->kind != SCALAR) {
        WRONG(s->b, n->loc, NULL, "the name of a value belongs here");
        return UNKNOWN;
    }
    if (!strcmp(n->text, "_"))
        return special(s, n, s->last, "there is no value before this line");
    if (!strcmp(n->text, "$in"))
        return special(s, n, s->first, "$in is the input of a block; here is none");
    const BuildValue *v = find_value(s, n->text);
    int input = data_input(s, n->text);
    if (v || input >= 0)
        return v ? v->tensor : s->b->input.at[input];
    WRONG(s->b, n->loc, value_hint(s, n->text), "there is no value %s here", n->text);
    return UNKNOWN;
}

int value_last(Scope *s, const Node *line)
{
    if (s->last == -1)
        WRONG(s->b, line->loc, "add in: ...", "there is no value before this line");
    return s->last == -1 ? UNKNOWN : s->last;
}

/* What a block is given may have the name of a data input, and then hides it; `as` may not. */
static void bind_value(Scope *s, const char *name, int tensor, Loc loc, bool given)
{
    const BuildValue *v = find_value(s, name);
    const char *fault = name_fault(name);
    if (fault || !strcmp(name, "_"))
        WRONG(s->b, loc, fault, "%s cannot name a value", name);
    else if (v)
        WRONG(s->b, loc, NULL, "the value %s is already named at line %d", name, v->loc.line);
    else if (!given && data_input(s, name) >= 0)
        WRONG(s->b, loc, NULL, "%s is a data input of the model: choose another name", name);
    else
        *PUSH(&s->value) = (BuildValue){name, tensor, loc};
}

static void value_name(Scope *s, const Node *as, int tensor)
{
    if (as && as->kind != SCALAR)
        WRONG(s->b, as->loc, NULL, "this line has one result: write as: NAME");
    else if (as)
        bind_value(s, as->text, tensor, as->loc, false);
}

void values_name(Scope *s, const Node *as, const Ints *t)
{
    if (!as || as->kind == SCALAR) {
        if (as && t->n != 1)
            WRONG(s->b, as->loc, "write as: [a, b]", "this line has %d results", t->n);
        else
            value_name(s, as, t->at[0]);
        return;
    }
    if (as->kind != LIST || as->n != t->n) {
        WRONG(s->b, as->loc, NULL, "this line has %d result%s, and 'as' does not name as many", t->n,
              t->n == 1 ? "" : "s");
        return;
    }
    for (int i = 0; i < as->n; i++)
        value_name(s, as->at[i], t->at[i]);
}

void values_lost(Scope *s, const Node *line)
{
    const Node *as = node_get(line, "as");
    s->last = UNKNOWN;
    if (as && as->kind == SCALAR && !find_value(s, as->text))
        *PUSH(&s->value) = (BuildValue){as->text, UNKNOWN, as->loc};
    for (int i = 0; as && as->kind == LIST && i < as->n; i++)
        if (as->at[i]->kind == SCALAR && !find_value(s, as->at[i]->text))
            *PUSH(&s->value) = (BuildValue){as->at[i]->text, UNKNOWN, as->at[i]->loc};
}

/* ---- paths ----------------------------------------------------------------------------------------------------- */

const char *claim(Scope *s, const Node *line, const char *path)
{
    Builder *b = s->b;
    const char *c = name_as_c(path);
    int other = names_get(&b->taken, c);
    if (strlen(path) > MAX_PATH)
        WRONG(b, line->loc, NULL, "the path %.40s... is longer than 255 characters", path);
    if (!strncmp(path, "d.", 2))
        WRONG(b, line->loc, NULL, "names that begin with d. are those of gradients");
    if (other >= 0)
        WRONG(b, line->loc, strf("line %d has it; a.b and a_b count as the same", b->where.at[other].line),
              "the name %s is taken", path);
    else
        names_put(&b->taken, c, b->where.n);
    *PUSH(&b->where) = line->loc;
    return path;
}

static const char *lower_case(const char *kind)
{
    char *text = strf("%s", kind);
    for (char *p = text; *p; p++)
        if (*p >= 'A' && *p <= 'Z')
            *p = (char)(*p + ('a' - 'A'));
    return text;
}

/* Inside a block a name may begin with a digit: the block's own stands in front. */
static const char *line_fault(const Scope *s, const Node *line, const Node *name)
{
    if (name->kind != SCALAR)
        return "write name: NAME";
    const char *text = node_get(line, "repeat") ? text_numbered(name->text, 0) : name->text;
    return name_fault(*s->path && *text >= '0' && *text <= '9' ? strf("_%s", text) : text);
}

const char *path_of(Scope *s, const Node *line, const char *kind)
{
    const Node *name = node_get(line, "name");
    if (name) {
        const char *fault = line_fault(s, line, name);
        if (!fault)
            return path_join(s->path, name->text);
        WRONG(s->b, name->loc, fault, "this is no name");
    }
    const char *path = path_join(s->path, lower_case(kind));
    for (int i = 2; names_get(&s->b->taken, name_as_c(path)) >= 0; i++)
        path = path_join(s->path, strf("%s_%d", lower_case(kind), i));
    return path;
}

/* ---- blocks ---------------------------------------------------------------------------------------------------- */

typedef struct { const Node *body, *args, *in, *out; } BuildBlock;

static bool find_block(Scope *s, const Node *use, BuildBlock *k)
{
    const Node *all = s->b->m->blocks, *n = all && use->kind == SCALAR ? node_get(all, use->text) : NULL;
    if (!n) {
        Strs names = {0};
        for (int i = 0; all && i < all->n; i++)
            *PUSH(&names) = all->key[i]->text;
        WRONG(s->b, use->loc, did_you_mean(use->text, names.at, names.n, "blocks are defined under model.blocks"),
              "there is no block of this name");
        return false;
    }
    static const char *const keys[] = {"args", "in", "out", "body"};
    *k = (BuildBlock){.body = n};
    if (n->kind != MAP)
        return true;
    *k = (BuildBlock){node_get(n, "body"), node_get(n, "args"), node_get(n, "in"), node_get(n, "out")};
    if (!k->body)
        WRONG(s->b, n->loc, NULL, "block %s has no body", use->text);
    if (k->args && k->args->kind != MAP)
        WRONG(s->b, k->args->loc, "write args: {name: default}, or name: required", "'args' of a block is a mapping");
    return keys_among(s->b, n, "a block", keys, 4) && k->body && (!k->args || k->args->kind == MAP);
}

static bool list_or_none(Builder *b, const Node *n, const char *what)
{
    if (n && n->kind != LIST)
        WRONG(b, n->loc, strf("write %s: [a, b]", what), "'%s' of a block is a list of names", what);
    return !n || n->kind == LIST;
}

/* What a use says, into the arguments of a block: none of them is set yet. */
static void give_args(Scope *s, Scope *in, const Node *given, const Node *use)
{
    if (given && given->kind != MAP)
        WRONG(s->b, given->loc, "write {name: value}", "arguments are a mapping");
    for (int i = 0; given && given->kind == MAP && i < given->n; i++) {
        int k = 0;
        while (k < in->arg.n && strcmp(in->arg.at[k].name, given->key[i]->text))
            k++;
        if (k < in->arg.n) {
            in->arg.at[k].value = eval_any(s, given->at[i]);
            in->arg.at[k].set = true;
            continue;
        }
        Strs names = {0};
        for (int j = 0; j < in->arg.n; j++)
            *PUSH(&names) = in->arg.at[j].name;
        WRONG(s->b, given->key[i]->loc, did_you_mean(given->key[i]->text, names.at, names.n, NULL),
              "block %s has no argument %s", use->text, given->key[i]->text);
    }
}

/* Arguments in the order of the block: given, or the default, which sees the dims and the arguments above it as they are in
 * this repetition. */
static void bind_args(Scope *s, Scope *in, const Node *line, const BuildBlock *k, bool first, bool last)
{
    const Node *use = node_get(line, "use");
    Scope given = {.b = s->b};
    for (int i = 0; k->args && i < k->args->n; i++)
        *PUSH(&given.arg) = (BlockArg){k->args->key[i]->text, 0, false};
    give_args(s, &given, node_get(line, "args"), use);
    if (first)
        give_args(s, &given, node_get(line, "first"), use);
    if (last)
        give_args(s, &given, node_get(line, "last"), use);
    for (int i = 0; i < given.arg.n; i++) {
        BlockArg a = given.arg.at[i];
        if (!a.set && k->args->at[i]->kind == SCALAR && !strcmp(k->args->at[i]->text, "required"))
            WRONG(s->b, line->loc, strf("add args: {%s: ...}", a.name), "block %s needs the argument %s", use->text, a.name);
        else if (!a.set)
            a = (BlockArg){a.name, eval_any(in, k->args->at[i]), true};
        *PUSH(&in->arg) = a;
    }
}

static void give_values(Scope *s, Scope *in, const Node *line, const BuildBlock *k, const Ints *inputs)
{
    const Node *pass = node_get(line, "pass");
    in->first = in->last = inputs->n ? inputs->at[0] : -1;
    for (int i = 0; k->in && i < k->in->n; i++)
        bind_value(in, k->in->at[i]->kind == SCALAR ? k->in->at[i]->text : "", inputs->at[i],
                   k->in->at[i]->loc, true);
    if (pass && pass->kind != MAP)
        WRONG(s->b, pass->loc, "write pass: {inner: outer}", "'pass' is a mapping");
    for (int i = 0; pass && pass->kind == MAP && i < pass->n; i++)
        bind_value(in, pass->key[i]->text, value_of(s, pass->at[i]), pass->key[i]->loc, true);
}

/* One repetition: values in, values out. */
static Ints instance(Scope *s, const Node *line, const BuildBlock *k, const Ints *inputs, const char *path, int i, int n)
{
    const Node *use = node_get(line, "use");
    Scope in = {.b = s->b, .up = s, .block = use->text, .path = path, .layer = path, .body = k->body,
                .depth = s->depth + 1};
    s->round = i + 1;
    bind_args(s, &in, line, k, i == 0, i == n - 1);
    s->round = 0;
    give_values(s, &in, line, k, inputs);
    Ints out = {0};
    if (s->b->failed)
        return *PUSH(&out) = UNKNOWN, out;
    body_lines(&in, k->body);
    for (int o = 0; k->out && o < k->out->n; o++) {
        int t = value_of(&in, k->out->at[o]);
        *PUSH(&out) = t;
    }
    if (!k->out)
        *PUSH(&out) = value_last(&in, line);
    return out;
}

/* The values that a line names with `in`, or the last one. */
static bool use_inputs(Scope *s, const Node *line, const BuildBlock *k, Ints *inputs)
{
    const Node *in = node_get(line, "in");
    int want = k->in ? k->in->n : 1;
    if (!in && want == 1)
        *PUSH(inputs) = value_last(s, line);
    for (int i = 0; in && i < (in->kind == LIST ? in->n : 1); i++) {
        int t = value_of(s, in->kind == LIST ? in->at[i] : in);
        *PUSH(inputs) = t;
    }
    if (inputs->n != want)
        WRONG(s->b, in ? in->loc : line->loc, k->in ? NULL : "more values go into 'pass', or into 'in' of the block",
              "the block takes %d value%s, and here are %d", want, want == 1 ? "" : "s", inputs->n);
    return inputs->n == want;
}

/* How often; 0 after a complaint too. */
static int repetitions(Scope *s, const Node *line, const BuildBlock *k)
{
    const Node *repeat = node_get(line, "repeat");
    int64_t n = repeat ? eval_int(s, repeat) : 1;
    int ins = k->in ? k->in->n : 1, outs = k->out ? k->out->n : 1;
    if (n < 0 || n > MAX_REPEAT)
        WRONG(s->b, repeat->loc, NULL, "repeat must be from 0 to %d, not %lld", MAX_REPEAT, (long long)n);
    else if (n != 1 && ins != outs)
        WRONG(s->b, repeat->loc, "what stays the same in each repetition goes into 'pass'",
              "a block with %d input%s and %d result%s cannot be repeated", ins, ins == 1 ? "" : "s", outs,
              outs == 1 ? "" : "s");
    else
        return (int)n;
    return 0;
}

static bool nested_wrongly(Scope *s, const Node *use)
{
    for (const Scope *up = s; up; up = up->up)
        if (up->block && !strcmp(up->block, use->text)) {
            WRONG(s->b, use->loc, NULL, "block %s uses itself", use->text);
            return true;
        }
    if (s->depth >= MAX_NEST)
        WRONG(s->b, use->loc, NULL, "blocks are nested more than %d deep", MAX_NEST);
    return s->depth >= MAX_NEST;
}

/* The path of repetition i: with its number in place of {}, or behind a dot. */
static const char *path_in(const Node *line, const char *path, int64_t from, int i)
{
    if (!node_get(line, "repeat"))
        return path;
    return strstr(path, "{}") ? text_numbered(path, from + i) : strf("%s.%lld", path, (long long)from + i);
}

/* `when: false` in nested repetitions makes no operator, and takes time all the same. */
static void count_line(Scope *s, const Node *line)
{
    if (++s->b->lines > MAX_LINES)
        err(line->loc, "make the repetitions around it fewer", "the model has more than %d lines when its blocks are repeated",
            MAX_LINES);
}

static Ints repeated(Scope *s, const Node *line, const BuildBlock *k, Ints values)
{
    const char *path = path_of(s, line, node_get(line, "use")->text);
    const Node *first = node_get(line, "from"), *repeat = node_get(line, "repeat");
    int64_t from = first ? eval_int(s, first) : 0;
    if (first && (!repeat || from < 0 || from > MAX_REPEAT))
        WRONG(s->b, first->loc, repeat ? NULL : "add repeat: ...", "'from' is the number of the first repetition, 0 to %d",
              MAX_REPEAT);
    int n = is_on(s, line) ? repetitions(s, line, k) : 0;
    bool before = s->b->failed;
    s->b->failed = false;
    for (int i = 0; i < n && !s->b->failed; i++) {
        count_line(s, line);
        values = instance(s, line, k, &values, path_in(line, path, from, i), i, n);
    }
    s->b->failed |= before;
    int outs = k->out ? k->out->n : 1;
    if (n == 0 && values.n > outs)
        values.n = outs;                /* the first inputs take the place of the results */
    return values;
}

static void use_line(Scope *s, const Node *line)
{
    static const char *const keys[] = {"use", "name", "repeat", "from", "in", "as", "args", "first", "last", "pass", "when"};
    const Node *use = node_get(line, "use");
    BuildBlock k;
    Ints values = {0};
    if (!keys_among(s->b, line, "a 'use' line", keys, sizeof keys / sizeof *keys) || !find_block(s, use, &k) ||
        !list_or_none(s->b, k.in, "in") || !list_or_none(s->b, k.out, "out") || nested_wrongly(s, use) ||
        !use_inputs(s, line, &k, &values)) {
        values_lost(s, line);
        return;
    }
    values = repeated(s, line, &k, values);
    if (values.n)
        s->last = values.at[values.n - 1];
    values_name(s, node_get(line, "as"), &values);
}

void body_lines(Scope *s, const Node *body)
{
    if (body->kind != LIST)
        WRONG(s->b, body->loc, "write one '- {op: ...}' a line", "operators are a list");
    for (int i = 0; body->kind == LIST && i < body->n; i++) {
        const Node *line = body->at[i];
        count_line(s, line);
        if (line->kind != MAP) {
            WRONG(s->b, line->loc, "write {op: ..., ...} or {use: ..., ...}", "a line of the model must be a mapping");
            s->last = UNKNOWN;
        } else if (node_get(line, "use")) {
            use_line(s, line);
        } else {
            op_line(s, line);
        }
    }
}
