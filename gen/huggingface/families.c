/* SPDX-License-Identifier: Apache-2.0
 *
 * families.c: reads the row of a family from families.yaml, with those of parts.yaml that it is like.
 *
 * The rows that a family has stand behind each other: its own, then those of each row that it is like, in order.  The first
 * that says a name holds.  `= OTHERWISE` alone takes its kind and keys from the next one.
 *
 * fails   with err() at a model_type that is none of the table's, with die() at a mistake in it
 */
#include "hf.h"
#include <math.h>

enum { ROWS = 24 };         /* that a family may be like */
static const char file[] = "gen/huggingface/families.yaml", parts[] = "gen/huggingface/parts.yaml";
static const struct { const char *word; FieldKind kind; Range range; } kinds[] = {
    {"int", INT, {1, INT32_MAX, "1 to 2147483647"}}, {"text", TEXT, {0, INT32_MAX, "0 to 2147483647"}}, {"real", .kind = REAL},
    {"cap", CAP, {0, INT32_MAX, "0 to 2147483647"}}, {"eps", REAL, {0, HUGE_VAL, "at least 0"}},
    {"share", REAL, {0, 0x1.fffffep-1, "0 to below 1"}}, {"base", REAL, {1, 1e12, "1 to 1e12"}},
    {"scale", REAL, {1, 1e6, "1 to 1e6"}}, {"above", REAL, {1e-6, 1e6, "1e-6 to 1e6"}},
    {"part", REAL, {1e-6, 1, "1e-6 to 1"}},
    {"flag", .kind = FLAG}, {"word", .kind = WORD}, {"count", .kind = COUNT}, {"every", .kind = EVERY},
    {"numbers", .kind = NUMBERS}, {"only", .kind = ONLY}, {"list", .kind = LIST_OF}, {"same", .kind = SAME},
    {"any", .kind = ANY}
};

typedef struct { const Node *at[ROWS]; int n; } Rows;

static void add_rows(Rows *r, const Node *table, const Node *row)
{
    const Node *like = node_get(row, "like");
    if (r->n == ROWS)
        die("%s: more than %d rows", file, ROWS);
    r->at[r->n++] = row;
    for (int i = 0; like && i < (like->kind == LIST ? like->n : 1); i++) {
        const char *name = like->kind == LIST ? like->at[i]->text : like->text;
        const Node *part = node_get(node_get(table, "parts"), name);
        part = part && part != row ? part : node_get(node_get(table, "families"), name);
        if (!part)
            die("%s: no row '%s'", file, name);
        add_rows(r, table, part);
    }
}

/* The next text of a name, from row i on; *i: behind it. */
static const char *text_of(const Rows *r, const char *name, int *i)
{
    while (*i < r->n) {
        const Node *n = node_get(r->at[(*i)++], name);
        if (n)
            return n->text;
    }
    return NULL;
}

/* The row of kinds that a text begins with, and where it goes on; -1: it is a value. */
static int kind_of(const char **text)
{
    size_t n = strcspn(*text, " ");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (n == strlen(kinds[i].word) && !strncmp(*text, kinds[i].word, n)) {
            *text += n + strspn(*text + n, " ");
            return (int)i;
        }
    return -1;
}

static const char *cut(const char *from, const char *to)
{
    while (to > from && to[-1] == ' ')
        to--;
    return strf("%.*s", (int)(to - from), from);
}

static ConfigField field_of(const char *name, const char *text, const char *otherwise)
{
    int kind = kind_of(&text);
    const char *open = strchr(text, '('), *equal = strstr(text, "="), *end = text + strlen(text);
    if (kind < 0)
        return (ConfigField){.kind = WORD, .name = name, .otherwise = otherwise ? otherwise : text};
    ConfigField f = {.kind = kinds[kind].kind, .range = kinds[kind].range, .name = name, .otherwise = otherwise};
    if (f.kind >= ONLY) {
        f.name = NULL;
        f.words = text;
        f.otherwise = f.kind == SAME ? text : "";
        *PUSH(&f.keys) = name;
        return f;
    }
    open = open && (!equal || open < equal) ? open : NULL;
    if (open)
        f.words = cut(open + 1, strchr(open, ')'));
    if (equal && !otherwise)
        f.otherwise = cut(equal + 1 + strspn(equal + 1, " "), end);
    end = open ? open : equal ? equal : end;
    for (const char *p = text, *to; p < end; p = to + strspn(to, " ")) {
        to = p + strcspn(p, " ");
        *PUSH(&f.keys) = cut(p, to);
    }
    return f;
}

static bool is_field(const Family *f, const char *name)
{
    static const char *const others[] = {"like", "template", "heads", "what"};
    if (INDEX_OF(others, sizeof others / sizeof *others, name) >= 0)
        return false;
    for (int i = 0; i < f->fields.n; i++)
        if (!strcmp(f->fields.at[i].name ? f->fields.at[i].name : f->fields.at[i].keys.at[0], name))
            return false;
    return true;
}

static void add_field(Family *f, const Rows *r, const char *name)
{
    int i = 0;
    const char *text = text_of(r, name, &i), *otherwise = NULL;
    while (text && *text == '=') {
        otherwise = otherwise ? otherwise : text + 1 + strspn(text + 1, " ");
        text = text_of(r, name, &i);
    }
    if (!text)
        die("%s: %s: '%s' has no kind", file, f->type, name);
    if (strcmp(text, "none"))
        *PUSH(&f->fields) = field_of(name, text, otherwise);
}

static void add_heads(Family *f, const Node *heads)
{
    for (int i = 0; heads && i < heads->n; i++) {
        const char *text = heads->at[i]->text, *p = text;
        while (*p && strcspn(p, ".") >= strcspn(p, " "))        /* a tensor has a dot */
            p += strcspn(p, " ") + strspn(p + strcspn(p, " "), " ");
        *PUSH(&f->heads) = (Heads){heads->key[i]->text, cut(text, p), p};
    }
}

static const Family *family_read(const Node *table, const char *type, const Node *row)
{
    Family *f = alloc(sizeof *f);
    Rows r = {0};
    f->type = type;
    f->harmless = node_get(table, "harmless")->text;
    add_rows(&r, table, row);
    add_rows(&r, table, node_get(table, "all"));
    for (int i = r.n - 1; i >= 0; i--)
        for (int k = 0; k < r.at[i]->n; k++)
            if (is_field(f, r.at[i]->key[k]->text))
                add_field(f, &r, r.at[i]->key[k]->text);
    int at = 0;
    const char *files = text_of(&r, "template", &at), *space = strchr(files, ' ');
    f->template = space ? cut(files, space) : files;
    f->tail = space ? space + 1 : NULL;
    at = 0;
    f->what = text_of(&r, "what", &at);
    for (int i = 0; i < r.n && !f->heads.n; i++)
        add_heads(f, node_get(r.at[i], "heads"));
    return f;
}

const Family *family_of(const Node *root)
{
    const Node *table = load_made(file, strf("%s%s", embedded_find(parts)->data, embedded_find(file)->data));
    const Node *type = node_get(root, "model_type");
    const Node *all = node_get(table, "families"), *missing = node_get(table, "missing");
    if (!type || type->kind != SCALAR)
        err(type ? type->loc : root->loc, NULL, "this is no config.json of a model: it has no 'model_type'");
    const Node *row = node_get(all, type->text);
    if (row)
        return family_read(table, type->text, row);
    for (int i = 0; i < missing->n; i++)
        if (has_word(missing->at[i]->text, type->text))
            err(type->loc, NULL, "dpgen does not do model type '%s' yet: it lacks %s", type->text, missing->key[i]->text);
    const char **names = alloc((size_t)all->n * sizeof *names), *list = "read:";
    for (int i = 0; i < all->n; i++) {
        names[i] = all->key[i]->text;
        list = strf("%s %s", list, names[i]);
    }
    err(type->loc, did_you_mean(type->text, names, all->n, list), "model type '%s' is not known", type->text);
}
