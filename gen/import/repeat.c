/* SPDX-License-Identifier: Apache-2.0
 *
 * repeat.c: lines of a graph that repeat, as blocks.
 *
 * Modules of PyTorch that repeat are numbered: layer1.0, layer1.1.  So the lines whose parameters have one numbered prefix, and
 * up to six lines without parameters behind them, may be a copy of a block.  It enters by one value and leaves by its last one.
 * Copies agree in operators, names, and who reads what; numbers may differ, and become arguments.  The block that saves most
 * lines comes first, and takes its lines from the others.
 */
#include "net.h"
#include <ctype.h>

enum { MOST_BEHIND = 6, MOST_ARGS = 5 };
typedef struct { const char *scope; int from, core, to, enters; const char *shape; } RepeatCopy;
typedef VEC(RepeatCopy) Copies;
typedef struct {
    Net *g;
    const NetLines *l;
    int *at, *last;             /* of a value: the line that makes it, and reads it last */
    bool *taken;
    Copies scope, copy;
} Finder;

static const Made *line(const Finder *f, int i)
{
    return &f->g->line.at[f->l->used.at[i]];
}

/* Names of a line: of its parameters, and behind them its own, if it has one. */
static int names_of(const Finder *f, int i)
{
    return line(f, i)->roles + (line(f, i)->name != NULL);
}

static const char *name_of(const Finder *f, int i, int k)
{
    const Made *l = line(f, i);
    return k < l->roles ? net_name(&f->g->value.at[l->role[k].value]) : l->name;
}

static const char *role_of(const Finder *f, int i, int k)
{
    return k < line(f, i)->roles ? line(f, i)->role[k].role : "";
}

/* ---- copies ------------------------------------------------------------------------------------------------------------ */

static void add_scope(Finder *f, const char *scope, int i)
{
    for (int k = f->scope.n - 1; k >= 0; k--)
        if (!strcmp(f->scope.at[k].scope, scope)) {
            f->scope.at[k].core = i + 1;
            return;
        }
    *PUSH(&f->scope) = (RepeatCopy){.scope = scope, .from = i, .core = i + 1};
}

/* 0.conv1.weight: copies inside the copy, which are blocks rather than this */
static bool nests(const char *name, const char *role)
{
    size_t n = strspn(name, "0123456789");
    return n > 0 && name[n] == '.' && strcmp(name + n + 1, role);
}

/* One value enters, and only the last one is read outside; parameters all are of the scope. */
static bool closed(const Finder *f, RepeatCopy *c)
{
    c->enters = -1;
    for (int i = c->from; i < c->to; i++) {
        const Made *l = line(f, i);
        for (int k = 0; k < names_of(f, i); k++)
            if ((k < l->roles && l->role[k].tied) || strncmp(name_of(f, i, k), c->scope, strlen(c->scope)) ||
                nests(name_of(f, i, k) + strlen(c->scope), role_of(f, i, k)))
                return false;
        for (int k = 0; k < l->in.n; k++) {
            int value = net_made_by(f->g, l->in.at[k]);
            if (f->at[value] >= c->from || f->g->value.at[value].line < 0)
                continue;
            if (c->enters >= 0 && c->enters != value)
                return false;
            c->enters = value;
        }
        if (i + 1 < c->to && f->last[l->out] >= c->to)
            return false;
    }
    return c->enters >= 0 && c->to - c->from > 1;
}

/* Keys whose numbers are axes, and no sizes */
static bool fixed(const char *key, size_t n)
{
    static const char *const keys[] = {"axis", "axes", "perm", "shared"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strlen(keys[i]) == n && !strncmp(key, keys[i], n))
            return true;
    return false;
}

/* The next number of the attributes, or NULL; its key, and its length. */
static const char *next_number(const char *at, const char **key, size_t *key_n, size_t *n)
{
    while (*at) {
        const char *from = at;
        if (isalpha((unsigned char)*at)) {
            while (isalnum((unsigned char)*at) || *at == '_')
                at++;
            if (*at == ':')
                *key = from, *key_n = (size_t)(at - from);
        } else if (isdigit((unsigned char)*at) || (*at == '-' && isdigit((unsigned char)at[1]))) {
            *n = strspn(at + 1, "0123456789.e+-") + 1;
            if (!fixed(*key, *key_n))
                return at;
            at += *n;
        } else {
            at++;
        }
    }
    return NULL;
}

/* What copies agree in, as a text. */
static const char *shape_of(const Finder *f, const RepeatCopy *c)
{
    Text t;
    FILE *out = text_open(&t);
    for (int i = c->from; i < c->to; i++) {
        const Made *l = line(f, i);
        const char *key = "", *at = l->attributes;
        size_t key_n = 0, n = 0;
        fprintf(out, "%s", l->op);
        for (const char *next; (next = next_number(at, &key, &key_n, &n)); at = next + n)
            fprintf(out, "%.*s#", (int)(next - at), at);
        fprintf(out, "%s", at);
        for (int k = 0; k < names_of(f, i); k++)
            fprintf(out, " %s", name_of(f, i, k) + strlen(c->scope));
        for (int k = 0; k < l->in.n; k++) {
            int value = net_made_by(f->g, l->in.at[k]);
            fprintf(out, " %d", f->at[value] >= c->from ? f->at[value] - c->from : value == c->enters ? -1 : -2 - value);
        }
        fprintf(out, "\n");
    }
    return text_close(&t);
}

ORDER(by_shape, RepeatCopy, strcmp(x->shape, y->shape), order_of(x->from, y->from))

/* ---- arguments --------------------------------------------------------------------------------------------------------- */

/* Numbers of a copy, in the order of its attributes, or their keys. */
static Strs numbers_of(const Finder *f, const RepeatCopy *c, bool keys)
{
    Strs all = {0};
    for (int i = c->from; i < c->to; i++) {
        const char *key = "", *at = line(f, i)->attributes;
        size_t key_n = 0, n = 0;
        for (const char *next; (next = next_number(at, &key, &key_n, &n)); at = next + n)
            *PUSH(&all) = keys ? strf("%.*s", (int)key_n, key) : strf("%.*s", (int)n, next);
    }
    return all;
}

/* arg: its place */
typedef struct { Copies copy; VEC(Strs) number; Strs key; Ints arg; NetBlock *block; int uses; } RepeatGroup;

/* k in place p = k * that in place q, in every copy; 0: no such k */
static long factor(const RepeatGroup *g, int p, int q)
{
    long k = 0;
    for (int c = 0; c < g->copy.n; c++) {
        char *a, *b;
        long x = strtol(g->number.at[c].at[p], &a, 10), y = strtol(g->number.at[c].at[q], &b, 10);
        if (*a || *b || x < 1 || y < 1 || x % y || (k && x / y != k))
            return 0;
        k = x / y;
    }
    return k;
}

static int new_arg(RepeatGroup *g, int p)
{
    const char *name = g->key.at[p];
    for (int n = 2, a = 0; a < g->block->args.n; a++)
        if (!strcmp(g->block->args.at[a], name))
            name = strf("%s%d", g->key.at[p], n++), a = -1;
    *PUSH(&g->arg) = p;
    *PUSH(&g->block->args) = name;
    return g->arg.n - 1;
}

/* The text of place p: a number, an argument that is there or a multiple of it, or a new one with the name of its key. */
static const char *place_text(RepeatGroup *g, int p)
{
    const Strs *first = &g->number.at[0];
    int least = p, arg = -1;
    bool same = true;
    for (int c = 1; c < g->copy.n; c++)
        same &= !strcmp(g->number.at[c].at[p], first->at[p]);
    if (same)
        return first->at[p];
    for (int q = 0; q < g->key.n; q++)          /* the place whose numbers those of p are multiples of */
        if (q != least && factor(g, least, q) > 1)
            least = q;
    for (int a = 0; a < g->arg.n && arg < 0; a++) {
        bool equal = true;
        for (int c = 0; c < g->copy.n; c++)
            equal &= !strcmp(g->number.at[c].at[least], g->number.at[c].at[g->arg.at[a]]);
        arg = equal ? a : -1;
    }
    arg = arg < 0 ? new_arg(g, least) : arg;
    const char *name = g->block->args.at[arg];
    return least == p || factor(g, p, least) == 1 ? name : strf("%ld*%s", factor(g, p, least), name);
}

static void make_body(const Finder *f, RepeatGroup *g)
{
    NetBlock *b = g->block;
    int p = 0;
    b->text = alloc((size_t)(b->to - b->from) * sizeof *b->text);
    for (int i = b->from; i < b->to; i++) {
        const char *key = "", *at = line(f, i)->attributes, *text = "";
        size_t key_n = 0, n = 0;
        for (const char *next; (next = next_number(at, &key, &key_n, &n)); at = next + n)
            text = strf("%s%.*s%s", text, (int)(next - at), at, place_text(g, p++));
        b->text[i - b->from] = strf("%s%s", text, at);
    }
}

/* ---- uses -------------------------------------------------------------------------------------------------------------- */

static bool equal(const Strs *a, const Strs *b)
{
    for (int i = 0; i < a->n; i++)
        if (strcmp(a->at[i], b->at[i]))
            return false;
    return true;
}

static NetUse use_of(const Finder *f, const RepeatGroup *g, int c)
{
    const RepeatCopy *x = &g->copy.at[c];
    size_t n = strlen(x->scope) - 1, digits = 0;
    while (digits < n && isdigit((unsigned char)x->scope[n - digits - 1]))
        digits++;
    bool dot = n > digits + 1 && x->scope[n - digits - 1] == '.';
    NetUse u = {.block = g->block, .number = (int)strtol(x->scope + n - digits, NULL, 10), .repeat = 1, .in = x->enters,
             .out = line(f, x->to - 1)->out};
    u.path = strf("%.*s%s", (int)(n - digits) - dot, x->scope, dot ? "" : "{}");
    for (int a = 0; a < g->arg.n; a++)
        *PUSH(&u.args) = g->number.at[c].at[g->arg.at[a]];
    u.first = u.args;
    return u;
}

/* Copy c goes on where the use ends.  Its arguments are those before it, or those of all copies but the first. */
static bool joins(const Finder *f, const RepeatGroup *g, int c, NetUse *u)
{
    NetUse next = use_of(f, g, c), then = c + 1 < g->copy.n ? use_of(f, g, c + 1) : next;
    bool behind = g->copy.at[c].from == g->copy.at[c - 1].to && next.in == u->out && !strcmp(u->path, next.path) &&
        next.number == u->number + u->repeat && f->last[u->out] < g->copy.at[c].to;
    bool others = u->repeat == 1 && then.number == next.number + 1 && !strcmp(then.path, u->path) &&
        equal(&then.args, &next.args);
    if (!behind || (!equal(&u->args, &next.args) && !others))
        return false;
    u->args = next.args;
    u->out = next.out;
    u->repeat++;
    return true;
}

static void find_uses(const Finder *f, RepeatGroup *g, NetUse **at)
{
    NetUse *use = NULL;
    for (int c = 0; c < g->copy.n; c++) {
        if (use && joins(f, g, c, use))
            continue;
        use = alloc(sizeof *use);
        *use = use_of(f, g, c);
        g->uses++;
        if (at)
            at[g->copy.at[c].from] = use;
    }
}

/* ---- the best of them -------------------------------------------------------------------------------------------------- */

/* Copies n of one shape, less those whose lines are taken */
static RepeatGroup group_of(const Finder *f, const RepeatCopy *from, int n)
{
    RepeatGroup g = {.block = alloc(sizeof *g.block)};
    for (int c = 0; c < n; c++) {
        bool free = g.copy.n == 0 || from[c].from >= g.copy.at[g.copy.n - 1].to;
        for (int i = from[c].from; i < from[c].to; i++)
            free &= !f->taken[i];
        if (free) {
            *PUSH(&g.copy) = from[c];
            *PUSH(&g.number) = numbers_of(f, &from[c], false);
        }
    }
    if (g.copy.n > 1) {
        const RepeatCopy *c = &g.copy.at[0];
        g.key = numbers_of(f, c, true);
        *g.block = (NetBlock){.scope = c->scope, .from = c->from, .to = c->to, .enters = c->enters};
        make_body(f, &g);
        find_uses(f, &g, NULL);
    }
    return g;
}

static int saving(const RepeatGroup *g)
{
    int n = g->block->to - g->block->from;
    return g->copy.n < 2 || g->arg.n > MOST_ARGS ? 0 : g->copy.n * n - n - 1 - (g->arg.n > 0) - g->uses;
}

/* The last part of the scope that is a word, without its number, and one of many: layers.0. is a layer. */
static const char *block_name(const NetLines *l, const char *scope)
{
    const char *name = "block";
    for (const char *at = scope; *at; at += strcspn(at, ".") + 1) {
        size_t n = strcspn(at, ".");
        while (n > 0 && (isdigit((unsigned char)at[n - 1]) || at[n - 1] == '_'))
            n--;
        if (n > 0 && strncmp(at, "features", n) != 0)
            name = strf("%.*s", (int)(n > 2 && at[n - 1] == 's' ? n - 1 : n), at);
    }
    const char *free = name;
    for (int i = 0, k = 2; i < l->block.n; i++)
        if (!strcmp(l->block.at[i]->name, free))
            free = strf("%s%d", name, k++), i = -1;
    return free;
}

static bool take_best(Finder *f, NetLines *l, NetUse **at)
{
    RepeatGroup best = {0};
    for (int i = 0, n; i < f->copy.n; i += n) {
        for (n = 1; i + n < f->copy.n && !strcmp(f->copy.at[i].shape, f->copy.at[i + n].shape);)
            n++;
        RepeatGroup g = n > 1 ? group_of(f, &f->copy.at[i], n) : (RepeatGroup){0};
        if (n > 1 && saving(&g) > (best.block ? saving(&best) : 0))
            best = g;
    }
    if (!best.block)
        return false;
    best.block->name = block_name(l, best.block->scope);
    *PUSH(&l->block) = best.block;
    best.uses = 0;
    find_uses(f, &best, at);
    for (int c = 0; c < best.copy.n; c++)
        for (int i = best.copy.at[c].from; i < best.copy.at[c].to; i++)
            f->taken[i] = true;
    return true;
}

void net_repeats(Net *g, NetLines *l, int result)
{
    size_t values = (size_t)g->value.n + 1, lines = (size_t)l->used.n + 1;
    Finder f = {.g = g, .l = l};
    f.at = alloc(values * sizeof *f.at), f.last = alloc(values * sizeof *f.last), f.taken = alloc(lines * sizeof *f.taken);
    NetUse **at = alloc(lines * sizeof *at);
    for (int i = 0; i < g->value.n; i++)
        f.at[i] = -1;
    for (int i = 0; i < l->used.n; i++) {
        f.at[line(&f, i)->out] = i;
        for (int k = 0; k < line(&f, i)->in.n; k++)
            f.last[net_made_by(g, line(&f, i)->in.at[k])] = i;
    }
    f.last[net_made_by(g, result)] = l->used.n;
    /* Prefixes whose last part ends with a number, of more than one operator: behind layers.0. is not the role of a
     * parameter. */
    for (int i = 0; i < f.l->used.n; i++)
        for (int k = 0; k < names_of(&f, i); k++) {
            const char *name = name_of(&f, i, k), *role = role_of(&f, i, k);
            for (const char *dot = strchr(name, '.'); dot && strcmp(dot + 1, role); dot = strchr(dot + 1, '.'))
                if (isdigit((unsigned char)dot[-1]))
                    add_scope(&f, strf("%.*s.", (int)(dot - name), name), i);
        }
    for (int s = 0; s < f.scope.n; s++) {
        RepeatCopy c = f.scope.at[s];
        for (c.to = c.core; c.to <= f.l->used.n && c.to - c.core <= MOST_BEHIND; c.to++) {
            if (c.to > c.core && names_of(&f, c.to - 1))
                break;
            if (!closed(&f, &c))
                continue;
            c.shape = shape_of(&f, &c);
            *PUSH(&f.copy) = c;
        }
    }
    SORT(f.copy.at, f.copy.n, by_shape);
    while (take_best(&f, l, at))
        ;
    for (int i = 0; i < l->used.n; i++)
        if (at[i] || !f.taken[i])
            *PUSH(&l->item) = (NetItem){i, at[i]};
}
