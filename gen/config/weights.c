/* SPDX-License-Identifier: Apache-2.0
 *
 * weights.c: section `weights`, how files of published weights differ from the parameters of the model.
 *
 * A rule has a pattern with one * at most.  The text that * stands for goes into the other names of the rule: with
 * `"*.LayerNorm.weight": "*.LayerNorm.gamma"` the parameter a.LayerNorm.weight is a.LayerNorm.gamma in the file.  Everything is
 * resolved here, a parameter at a time; the job gets a table of names and numbers and compares no patterns of parameters.
 *
 * needs   a Graph with names and shapes of its parameters
 * fills   Stored of a parameter
 * fails   with bad() at a rule that names no parameter, or stacks what does not fit
 */
#include "schema.h"

/* ---- the section --------------------------------------------------------------------------------------- */

static bool one_star(const Node *node, const char *path)
{
    const char *star = node->kind == SCALAR ? strchr(node->text, '*') : NULL;
    if (node->kind == SCALAR && *node->text && !(star && strchr(star + 1, '*')))
        return true;
    bad(node->loc, "such as \"*.LayerNorm.weight\"", "%s: a name with one * at most is expected", path);
    return false;
}

static void read_pairs(const Spot *s)
{
    if (!want(s, MAP, "a map of the model's names and the file's"))
        return;
    for (int i = 0; i < s->value->n; i++)
        if (one_star(s->value->key[i], s->path) && one_star(s->value->at[i], s->path))
            *PUSH((StoredPairs *)s->to) = (StoredPair){s->value->key[i]->text, s->value->at[i]->text, s->value->key[i]->loc};
}

/* The file's name has the place of a number. */
static void read_each(const Spot *s)
{
    int n = ((StoredPairs *)s->to)->n;
    read_pairs(s);
    for (int i = n; i < ((StoredPairs *)s->to)->n; i++) {
        const char *file = ((StoredPairs *)s->to)->at[i].file, *place = strstr(file, "{}");
        if (!place || strstr(place + 1, "{}"))
            bad(((StoredPairs *)s->to)->at[i].loc, "such as \"*.experts.{}.w1.weight\"", "%s: '%s' has {} once, where numbers "
                "stand", s->path, file);
    }
}

static void read_patterns(const Spot *s)
{
    read_texts(s);
    for (int i = 0; s->value->kind == LIST && i < s->value->n; i++)
        one_star(s->value->at[i], s->path);
}

static void read_stack(const Spot *s)
{
    static const Field fields[] = {
        { "file", read_text, offsetof(StoredStack, file), 0, 0, NULL },
        { "of", read_patterns, offsetof(StoredStack, of), 1, 0, NULL },
        { "groups", read_int, offsetof(StoredStack, groups), 1, 1 << 20, NULL },
    };
    if (!want(s, LIST, "a list of {file: NAME, of: [NAMES]}"))
        return;
    for (int i = 0; i < s->value->n; i++) {
        StoredStack *to = PUSH((StoredStacks *)s->to);
        const Spot *item = spot_item(s, i, NULL, NULL);
        *to = (StoredStack){.groups = 1, .loc = item->value->loc};
        section(s->m, item->value, item->path, fields, COUNT(fields), to);
        if (item->value->kind == MAP && want_key(item->value, "file", item->path))
            want_key(item->value, "of", item->path);
    }
}

void model_weights(Model *m, Node *node)
{
    static const Field fields[] = {
        { "type", read_choice, offsetof(WeightsSpec, type), 0, 0, "f32 f16 bf16" },
        { "prefix", read_text, offsetof(WeightsSpec, prefix), 0, 0, NULL },
        { "turn", read_patterns, offsetof(WeightsSpec, turn), 1, 0, NULL },
        { "rename", read_pairs, offsetof(WeightsSpec, rename), 0, 0, NULL },
        { "also", read_pairs, offsetof(WeightsSpec, also), 0, 0, NULL },
        { "copies", read_pairs, offsetof(WeightsSpec, copies), 0, 0, NULL },
        { "each", read_each, offsetof(WeightsSpec, each), 0, 0, NULL },
        { "stack", read_stack, offsetof(WeightsSpec, stack), 0, 0, NULL },
        { "fresh", read_texts, offsetof(WeightsSpec, fresh), 1, 0, NULL },
        { "ignore", read_texts, offsetof(WeightsSpec, ignore), 1, 0, NULL },
    };
    m->weights.given = node;
    section(m, node, "weights", fields, COUNT(fields), &m->weights);
}

/* ---- one parameter ------------------------------------------------------------------------------------- */

/* The text that * stands for: "" where the pattern has none.  NULL: the name is another. */
static const char *star_of(const char *pattern, const char *name)
{
    const char *star = strchr(pattern, '*');
    if (!star)
        return strcmp(pattern, name) ? NULL : "";
    size_t head = (size_t)(star - pattern), tail = strlen(star + 1), n = strlen(name);
    if (n < head + tail || strncmp(pattern, name, head) || strcmp(star + 1, name + n - tail))
        return NULL;
    return strf("%.*s", (int)(n - head - tail), name + head);
}

static const char *put_star(const char *pattern, const char *text)
{
    const char *star = strchr(pattern, '*');
    return star ? strf("%.*s%s%s", (int)(star - pattern), pattern, text, star + 1) : pattern;
}

static const char *renamed(const StoredPairs *pairs, const char *name)
{
    for (int i = 0; i < pairs->n; i++) {
        const char *text = star_of(pairs->at[i].name, name);
        if (text)
            return put_star(pairs->at[i].file, text);
    }
    return NULL;
}

static bool turned(const Model *m, const char *name)
{
    for (int i = 0; i < m->weights.turn.n; i++)
        if (star_of(m->weights.turn.at[i], name))
            return true;
    return false;
}

static int param_named(const Graph *g, const char *name)
{
    for (int s = 0; s < g->state.n; s++)
        if (g->state.at[s].kind == S_PARAM && !strcmp(g->state.at[s].name, name))
            return s;
    return -1;
}

static bool stacked(const Model *m, const Graph *g, const char *name, Stored *to)
{
    for (EACH(const StoredStack, k, m->weights.stack)) {
        const char *text = NULL;
        for (int part = 0; part < k->of.n && !text; part++)
            text = star_of(k->of.at[part], name);
        if (!text)
            continue;
        to->file = put_star(k->file, text);
        to->groups = k->groups;
        for (int part = 0; part < k->of.n; part++) {
            const char *other = put_star(k->of.at[part], text);
            if (!strcmp(other, name))
                to->from = to->rows;
            int param = param_named(g, other);
            to->rows += param < 0 ? 0 : g->state.at[param].shape.d[0] / k->groups;
        }
        return true;
    }
    return false;
}

bool weights_stored(const Model *m, const Graph *g, int param, Stored *to)
{
    const char *name = g->state.at[param].name, *file = renamed(&m->weights.rename, name);
    *to = (Stored){.name = name, .file = file ? file : name, .also = renamed(&m->weights.also, name), .groups = 1};
    to->turn = turned(m, name);
    const char *each = renamed(&m->weights.each, name);
    if (each) {
        to->file = each;
        to->each = g->state.at[param].shape.d[0];
        return true;
    }
    return stacked(m, g, name, to) || file || to->also || to->turn;
}

/* A tied operator's parameter by the name that it would have for itself, and what `copies` names. */
void weights_copies(const Model *m, const Graph *g, StoredPairs *to)
{
    for (int i = 0; i < g->nf; i++)
        for (int k = 0; k < g->op.at[i].arg.n; k++) {
            const Op *o = &g->op.at[i];
            const Arg *a = &o->arg.at[k];
            int param = a->kind == ARG_READ && a->state ? g->state.at[a->index].param : -1;
            const State *s = param >= 0 ? &g->state.at[param] : NULL;
            const char *full = s ? strf("%s.%s", o->name, a->token) : NULL;
            if (s && s->op != i && param_named(g, full) < 0)
                *PUSH(to) = (StoredPair){s->name, full, s->loc};
        }
    for (int s = 0; s < g->state.n; s++)
        for (int i = 0; i < m->weights.copies.n && g->state.at[s].kind == S_PARAM; i++) {
            const StoredPair *c = &m->weights.copies.at[i];
            const char *text = star_of(c->name, g->state.at[s].name);
            if (text)
                *PUSH(to) = (StoredPair){g->state.at[s].name, put_star(c->file, text), c->loc};
        }
}

/* ---- the list ------------------------------------------------------------------------------------------- */

const char *weights_tensor(const Stored *k, int64_t piece)
{
    return k->each ? text_numbered(k->file, piece) : k->file;
}

/* NAME D0xD1... of a tensor as --export writes it; part: of those that one parameter holds */
static const char *tensor_text(const State *s, const Stored *k, int64_t part)
{
    const char *text = weights_tensor(k, part);
    for (int d = k->each > 0; d < s->shape.n; d++) {
        int axis = k->turn && d >= s->shape.n - 2 ? 2 * s->shape.n - 3 - d : d;
        int64_t size = d == 0 && k->rows ? k->rows * k->groups : s->shape.d[axis];
        text = strf("%s%s%lld", text, d > (k->each > 0) ? "x" : " ", (long long)size);
    }
    return text;
}

void weights_print(FILE *f, const Model *m, const Graph *g)
{
    Strs list = {0};
    for (int i = 0; i < g->state.n; i++) {
        const State *s = &g->state.at[i];
        Stored k;
        if (s->kind != S_PARAM)
            continue;
        weights_stored(m, g, i, &k);
        for (int64_t part = 0; k.from == 0 && part < (k.each ? k.each : 1); part++)     /* a stack once */
            *PUSH(&list) = tensor_text(s, &k, part);
    }
    SORT(list.at, list.n, text_order);
    for (int i = 0; i < list.n; i++)
        fprintf(f, "%s\n", list.at[i]);
}

/* ---- slips of the pen ---------------------------------------------------------------------------------- */

static void check_named(const Graph *g, const char *pattern, Loc at, const char *key)
{
    Strs names = {0};
    for (int s = 0; s < g->state.n; s++)
        if (g->state.at[s].kind == S_PARAM) {
            *PUSH(&names) = g->state.at[s].name;
            if (match(pattern, g->state.at[s].name))
                return;
        }
    bad(at, names_remedy(pattern, &names), "weights.%s: no parameter is named '%s'", key, pattern);
}

static void check_pairs(const Graph *g, const StoredPairs *pairs, const char *key)
{
    for (int i = 0; i < pairs->n; i++)
        check_named(g, pairs->at[i].name, pairs->at[i].loc, key);
}

/* Parts of one tensor: all there, of one width, of whole groups. */
static void check_stack(const Model *m, const Graph *g, const StoredStack *k)
{
    for (int part = 0; part < k->of.n; part++)
        check_named(g, k->of.at[part], mark_of(m, k->of.at[part], k->loc), "stack");
    for (int s = 0; s < g->state.n && k->of.n; s++) {
        const State *first = &g->state.at[s];
        const char *text = first->kind == S_PARAM ? star_of(k->of.at[0], first->name) : NULL;
        for (int part = 0; text && part < k->of.n; part++) {
            const char *name = put_star(k->of.at[part], text);
            int other = param_named(g, name);
            const Shape *x = other < 0 ? NULL : &g->state.at[other].shape;
            if (!x)
                bad(k->loc, NULL, "weights.stack: no parameter is named '%s', beside '%s'", name, first->name);
            else if (x->n != first->shape.n || (x->n > 1 && x->d[1] != first->shape.d[1]) || x->d[0] % k->groups || x->n > 2)
                bad(k->loc, NULL, "weights.stack: '%s' %s does not fit below '%s' %s in groups: %lld", name, shape_text(x),
                    first->name, shape_text(&first->shape), (long long)k->groups);
            else if (turned(m, name))
                bad(k->loc, NULL, "weights.stack: '%s' is turned, too; a tensor is one or the other", name);
        }
    }
}

/* A rule that says which tensor holds a parameter.  Of the names of `rename` the first that fits counts; else there is one. */
typedef struct { const char *name, *key; Loc at; } WeightsRule;

static bool is_second(const WeightsRule *now, WeightsRule *first, const char *param)
{
    if (!star_of(now->name, param))
        return false;
    if (first->key)
        bad(now->at, "leave out one of the two; also: another name that is read, copies: another tensor with the same numbers",
            "weights.%s: weights.%s names '%s' already, and one tensor holds it", now->key, first->key, param);
    bool second = first->key != NULL;
    *first = *now;
    return second;
}

static bool has_two_rules(const Model *m, const char *param)
{
    const WeightsSpec *w = &m->weights;
    WeightsRule first = {0};
    bool two = false;
    for (EACH(const StoredPair, k, w->rename))
        two |= !first.key && is_second(&(WeightsRule){k->name, "rename", k->loc}, &first, param);
    for (EACH(const StoredPair, k, w->each))
        two |= is_second(&(WeightsRule){k->name, "each", k->loc}, &first, param);
    for (EACH(const StoredStack, k, w->stack))
        for (int part = 0; part < k->of.n; part++)
            two |= is_second(&(WeightsRule){k->of.at[part], "stack", mark_of(m, k->of.at[part], k->loc)}, &first, param);
    return two;
}

typedef struct { const char *file, *name; int64_t from, to; } WeightsPart;

ORDER(by_tensor, WeightsPart, strcmp(x->file, y->file), order_of(x->from, y->from), strcmp(x->name, y->name))

/* An export writes each tensor once.  The first mistake is enough. */
static void check_tensors(const Model *m, const Graph *g)
{
    VEC(WeightsPart) list = {0};
    Stored k = {0};
    for (int i = 0; i < g->state.n; i++)
        for (int64_t n = g->state.at[i].kind != S_PARAM ? 0 : weights_stored(m, g, i, &k) && k.each ? k.each : 1; n-- > 0;)
            *PUSH(&list) = (WeightsPart){weights_tensor(&k, n), g->state.at[i].name, k.from,
                                         k.rows ? k.from + g->state.at[i].shape.d[0] / k.groups : INT64_MAX};
    SORT(list.at, list.n, by_tensor);
    for (int i = 0; i < list.n; i++) {
        const WeightsPart *x = &list.at[i], *before = i && !strcmp(x[-1].file, x->file) ? x - 1 : NULL;
        const WeightsSpec *w = &m->weights;
        Loc at = w->stack.n ? w->stack.at[0].loc : w->each.n ? w->each.at[0].loc : (Loc){0, 0, 0};
        if (!before || x->from == before->to)
            continue;
        for (EACH(const StoredPair, p, w->rename))
            at = star_of(p->name, x->name) || star_of(p->name, before->name) ? p->loc : at;
        bad(at, "a name of its own for each; * stands for the same text in both",
            "weights: '%s' and '%s' are both tensor '%s' of files", before->name, x->name, x->file);
        return;
    }
}

/* Each pattern names a parameter, and one at least comes from the files. */
static void check_fresh(const Model *m, const Graph *g)
{
    const Strs *fresh = &m->weights.fresh;
    int left = 0, all = 0;
    for (EACH(const State, s, g->state)) {
        all += s->kind == S_PARAM;
        left += s->kind == S_PARAM && !match_any(fresh, s->name);
    }
    for (int i = 0; i < fresh->n; i++)
        check_named(g, fresh->at[i], mark_of(m, fresh->at[i], (Loc){0, 0, 0}), "fresh");
    if (fresh->n && !left)
        bad(mark_of(m, fresh->at[0], (Loc){0, 0, 0}), "leave out what the files hold, or train without --weights",
            "weights.fresh: all %d parameters start from their rules: no file would be read", all);
}

void weights_check(const Model *m, const Graph *g)
{
    const WeightsSpec *w = &m->weights;
    check_fresh(m, g);
    for (int i = 0; i < w->turn.n; i++)
        check_named(g, w->turn.at[i], mark_of(m, w->turn.at[i], (Loc){0, 0, 0}), "turn");
    for (int s = 0; s < g->state.n; s++)
        if (g->state.at[s].kind == S_PARAM && g->state.at[s].shape.n < 2 && turned(m, g->state.at[s].name))
            bad(mark_of(m, w->turn.at[0], (Loc){0, 0, 0}), NULL, "weights.turn: '%s' %s has no two axes", g->state.at[s].name,
                shape_text(&g->state.at[s].shape));
    check_pairs(g, &w->rename, "rename");
    check_pairs(g, &w->also, "also");
    check_pairs(g, &w->copies, "copies");
    check_pairs(g, &w->each, "each");
    for (int s = 0; s < g->state.n; s++) {
        const State *x = &g->state.at[s];
        if (x->kind == S_PARAM && renamed(&m->weights.each, x->name) && x->shape.n < 2)
            bad(m->weights.each.at[0].loc, NULL, "weights.each: '%s' %s has no parts with axes of their own", x->name,
                shape_text(&x->shape));
        if (x->kind == S_PARAM && renamed(&m->weights.each, x->name) && turned(m, x->name))
            bad(m->weights.each.at[0].loc, NULL, "weights.each: '%s' is turned, too", x->name);
    }
    for (int i = 0; i < w->stack.n; i++)
        check_stack(m, g, &w->stack.at[i]);
    for (int s = 0; s < g->state.n; s++)        /* the first mistake is enough */
        if (g->state.at[s].kind == S_PARAM && has_two_rules(m, g->state.at[s].name))
            break;
    if (w->given)
        check_tensors(m, g);
}
