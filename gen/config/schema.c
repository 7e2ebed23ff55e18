/* SPDX-License-Identifier: Apache-2.0
 *
 * schema.c: reading values by tables.
 *
 * Scalars follow the core rules of YAML 1.2 where the field asks for a type: true and false and nothing else are
 * booleans, ~ and null and nothing at all are no value, `no`, `on` and `1e-8` mean what they look like.  A number is
 * an expression over the dims; a size or a rate is one decimal number and a unit.  Octal, hexadecimal and underscored
 * numbers, infinities and not-a-numbers are not numbers here.
 *
 * fails   with bad() at the value, naming its full path; the field then keeps its default and reading goes on
 */
#include "schema.h"
#include <ctype.h>

enum { MOST_SEGMENT = 63, MOST_PATH = 255, MOST_KEYS = 32, MOST_WORDS = 64 };

static const char *kind_name(const Node *node)
{
    static const char *const names[] = { "a text", "a list", "a map" };
    if (node->kind == SCALAR && !node->quoted && (!*node->text || is_word(node, "~") || is_word(node, "null")))
        return "nothing";
    return names[node->kind];
}

bool is_word(const Node *node, const char *word)
{
    return node->kind == SCALAR && !node->quoted && !strcmp(node->text, word);
}

bool want(const Spot *s, NodeKind kind, const char *what)
{
    const char *found = kind_name(s->value);
    if (s->value->kind == kind && strcmp(found, "nothing"))
        return true;
    bad(s->value->loc, NULL, "%s: %s is expected, and %s found", s->path, what, found);
    return false;
}

Node *want_key(Node *map, const char *key, const char *path)
{
    Node *node = node_get(map, key);
    if (!node)
        bad(map->loc, NULL, "%s has no '%s'", path, key);
    return node;
}

static void unknown(const Node *key, const char *path, const Field *fields, int n)
{
    const char *known[MOST_KEYS], *list = "known:";
    for (int i = 0; i < n; i++) {
        known[i] = fields[i].key;
        list = strf("%s %s", list, known[i]);
    }
    bad(key->loc, did_you_mean(key->text, known, n, list), "unknown key '%s' in %s", key->text,
        *path ? path : "the file");
}

void section(Model *m, Node *map, const char *path, const Field *fields, int n, void *to)
{
    Spot all = { m, NULL, path, map, NULL };
    if (n > MOST_KEYS)
        die("%s has more than %d keys", path, MOST_KEYS);
    if (!map || !want(&all, MAP, "a map"))
        return;
    for (int i = 0; i < map->n; i++) {
        int k = INDEX_OF(fields, n, map->key[i]->text);
        if (k < 0) {
            unknown(map->key[i], path, fields, n);
            continue;
        }
        fields[k].read(spot_key(&all, i, &fields[k], (char *)to + fields[k].at));
    }
}

const Spot *spot_as(const Spot *s, const Field *field, void *to)
{
    return COPY((&(Spot){ s->m, field, s->path, s->value, to }));
}

const Spot *spot_to(const Spot *s, void *to)
{
    return spot_as(s, s->field, to);
}

const Spot *spot_item(const Spot *list, int i, const Field *field, void *to)
{
    return COPY((&(Spot){ list->m, field, strf("%s[%d]", list->path, i), list->value->at[i], to }));
}

const Spot *spot_key(const Spot *map, int i, const Field *field, void *to)
{
    const char *key = map->value->key[i]->text;
    return COPY((&(Spot){ map->m, field, *map->path ? strf("%s.%s", map->path, key) : key, map->value->at[i], to }));
}

/* ---- names and texts --------------------------------------------------------------------------------- */

bool name_check(const Node *node, const char *what, bool dashes)
{
    const char *p = node->text, *rule = dashes ? "letters, digits, '_', '.' and '-'" : "letters, digits, '_' and '.'";
    if (!isalpha((unsigned char)*p) && *p != '_') {
        bad(node->loc, "a name begins with a letter or '_'", "%s: '%s' is no name", what, p);
        return false;
    }
    for (const char *q = p; *q; q++)
        if ((unsigned char)*q >= 0x80 || (!isalnum((unsigned char)*q) && !strchr(dashes ? "_.-" : "_.", *q))) {
            bad(node->loc, strf("a name is made of %s", rule), "%s: '%s' is no name", what, p);
            return false;
        }
    if (strlen(p) > MOST_SEGMENT) {
        bad(node->loc, NULL, "%s: a name of %zu characters; at most %d are read", what, strlen(p), MOST_SEGMENT);
        return false;
    }
    return true;
}

void read_name(const Spot *s)
{
    if (want(s, SCALAR, "a name") && name_check(s->value, s->path, false))
        *(const char **)s->to = s->value->text;
}

void read_title(const Spot *s)
{
    if (want(s, SCALAR, "a name") && name_check(s->value, s->path, true))
        *(const char **)s->to = s->value->text;
}

static bool text_check(const Spot *s)
{
    if (!want(s, SCALAR, "a text"))
        return false;
    if (!*s->value->text || strlen(s->value->text) > MOST_PATH) {
        bad(s->value->loc, NULL, "%s: a text of 1 to %d bytes is expected", s->path, MOST_PATH);
        return false;
    }
    return true;
}

void read_text(const Spot *s)
{
    if (text_check(s))
        *(const char **)s->to = s->value->text;
}

static void add_text(const Spot *s, Strs *list)
{
    if (!text_check(s))
        return;
    *PUSH(list) = s->value->text;
    *PUSH(&s->m->marks) = (Mark){ s->value->text, s->value->loc };
}

void read_texts(const Spot *s)
{
    if (s->value->kind != LIST) {
        add_text(s, s->to);
        return;
    }
    if (!s->value->n && s->field && s->field->lo > 0)
        bad(s->value->loc, NULL, "%s is empty", s->path);
    for (int i = 0; i < s->value->n; i++)
        add_text(spot_item(s, i, NULL, NULL), s->to);
}

void read_nothing(const Spot *s)
{
    (void)s;
}

/* ---- choices ----------------------------------------------------------------------------------------- */

static int choose(const Spot *s)
{
    const char *word[MOST_WORDS], *p = s->field->words;
    int n = 0;
    if (!want(s, SCALAR, "a word"))
        return -1;
    for (; *p; p += strcspn(p, " "), p += *p == ' ') {
        if (n == MOST_WORDS)
            die("%s has more than %d choices", s->path, MOST_WORDS);
        word[n] = strf("%.*s", (int)strcspn(p, " "), p);
        if (!strcmp(word[n], s->value->text))
            return n;
        n++;
    }
    bad(s->value->loc, did_you_mean(s->value->text, word, n, strf("one of: %s", s->field->words)),
        "%s: '%s' is not known", s->path, s->value->text);
    return -1;
}

void read_choice(const Spot *s)
{
    int i = choose(s);
    if (i >= 0)
        *(int *)s->to = i;
}

void read_second(const Spot *s)
{
    int i = choose(s);
    if (i >= 0)
        *(bool *)s->to = i == 1;
}

void read_word(const Spot *s)
{
    if (choose(s) >= 0)
        *(const char **)s->to = s->value->text;
}

void read_built(const Spot *s)
{
    int i = choose(s), built = (int)s->field->hi;
    const char *last = s->field->words;
    for (int k = 0; k < built; k++)
        last += strspn(last, " "), last += strcspn(last, " ");
    if (i >= built)
        bad(s->value->loc, strf("built: %.*s", (int)(last - s->field->words), s->field->words), "%s: '%s' is not built yet",
            s->path, s->value->text);
    else if (i >= 0)
        *(const char **)s->to = s->value->text;
}

void read_fixed(const Spot *s)
{
    choose(s);
}

void read_true(const Spot *s)
{
    if (is_word(s->value, "true") || is_word(s->value, "false"))
        *(bool *)s->to = is_word(s->value, "true");
    else
        bad(s->value->loc, "write true or false", "%s: %s is no boolean", s->path,
            s->value->kind == SCALAR && *s->value->text ? strf("'%s'", s->value->text) : kind_name(s->value));
}

/* ---- numbers ----------------------------------------------------------------------------------------- */

bool number_lookup(void *ctx, const char *name, double *value)
{
    const Model *m = ctx;
    int i = INDEX_OF(m->dims.at, m->dims.n, name);
    if (i >= 0)
        *value = (double)m->dims.at[i].value;
    return i >= 0;
}

static bool whole(const Spot *s, int64_t *i)
{
    const Field *f = s->field;
    if (!want(s, SCALAR, "an integer"))
        return false;
    *i = expr_int(s->value->loc, s->value->text, number_lookup, s->m);
    if (*i >= (int64_t)f->lo && *i <= (int64_t)f->hi)
        return true;
    bad(s->value->loc, NULL, "%s: %lld is out of range: %.0f to %.0f", s->path, (long long)*i, f->lo, f->hi);
    return false;
}

void read_int(const Spot *s)
{
    int64_t i;
    if (whole(s, &i))
        *(int64_t *)s->to = i;
}

void read_count(const Spot *s)
{
    int64_t i;
    if (whole(s, &i))
        *(int *)s->to = (int)i;
}

/* below, above: the end of the range is not part of it, nor what becomes that end as a float, which a job has */
static void decimal(const Spot *s, bool below, bool above)
{
    const Field *f = s->field;
    if (!want(s, SCALAR, "a number"))
        return;
    double x = expr_float(s->value->loc, s->value->text, number_lookup, s->m), end = below ? f->hi : f->lo;
    bool is_end = (below || above) && (float)x == (float)end;
    if (x < f->lo || x > f->hi || is_end)
        bad(s->value->loc, is_end && x != end ? strf("as a float of 32 bits it is %g", end) : NULL,
            "%s: %.10g is out of range: %g %s x %s %g", s->path, x, f->lo, above ? "<" : "<=", below ? "<" : "<=", f->hi);
    else
        *(double *)s->to = x;
}

void read_float(const Spot *s)
{
    decimal(s, false, false);
}

void read_below(const Spot *s)
{
    decimal(s, true, false);
}

void read_above(const Spot *s)
{
    decimal(s, false, true);
}

void read_counts(const Spot *s)
{
    Ints *list = s->to;
    if (!want(s, LIST, s->field->words))
        return;
    for (int i = 0; i < s->value->n; i++) {
        int n = -1;
        read_count(spot_item(s, i, s->field, &n));
        if (n >= 0)
            *PUSH(list) = n;
    }
}

bool read_two(const Spot *s, const char *form, const char *kind, const char *hint, void (*read)(const Spot *), size_t size)
{
    if (!want(s, LIST, form))
        return false;
    if (s->value->n != 2) {
        bad(s->value->loc, hint, "%s: two %s are expected, and %d found", s->path, kind, s->value->n);
        return false;
    }
    for (int i = 0; i < 2; i++)
        read(spot_item(s, i, s->field, (char *)s->to + (size_t)i * size));
    return true;
}

void read_pair(const Spot *s)
{
    read_two(s, "a list of two numbers", "numbers", NULL, read_float, sizeof(double));
}

void read_pair_below(const Spot *s)
{
    read_two(s, "a list of two numbers", "numbers", NULL, read_below, sizeof(double));
}

/* ---- sizes and rates --------------------------------------------------------------------------------- */

/* A decimal number and a unit, rounded down to a whole number; -1 and a mistake named if it is not that. */
static double measure(const Spot *s, const Unit *units, const char *behind, const char *example)
{
    SizeFault fault;
    double x = want(s, SCALAR, strf("a size such as %s", example)) ? 0 : -1;
    if (x == 0 && (x = size_read(s->value->text, units, behind, example, &fault)) < 0)
        bad(s->value->loc, fault.hint, "%s: %s", s->path, fault.why);
    return x;
}

void read_bytes(const Spot *s)
{
    double x = measure(s, size_bytes, "", "24GiB or 80GB");
    if (x >= 0 && x < s->field->lo)
        bad(s->value->loc, "write a size such as 8GiB", "%s: nothing fits into %.0f bytes", s->path, x);
    else if (x >= 0)
        *(Bytes *)s->to = (Bytes)x;
}

/* 0 is what is not known, inside: nobody writes it. */
static void set_rate(const Spot *s, double x)
{
    if (x == 0)
        bad(s->value->loc, "leave it out where it is not known", "%s: '%s' is less than one a second", s->path, s->value->text);
    else if (x > 0)
        *(double *)s->to = x;
}

void read_rate(const Spot *s)
{
    set_rate(s, measure(s, size_bytes, "/s", "300GB/s"));
}

void read_flops(const Spot *s)
{
    static const Unit units[] = { { "", 1 }, { "FLOP/s", 1 }, { "MFLOP/s", 1e6 }, { "GFLOP/s", 1e9 },
        { "TFLOP/s", 1e12 }, { "PFLOP/s", 1e15 }, { "MFLOPS", 1e6 }, { "GFLOPS", 1e9 },
        { "TFLOPS", 1e12 }, { "PFLOPS", 1e15 }, { NULL, 0 } };
    set_rate(s, measure(s, units, "", "1.2TFLOP/s"));
}

void read_time(const Spot *s)
{
    static const Unit units[] = { { "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 }, { NULL, 0 } };
    double x = measure(s, units, "", "2.5us"), most = 3600e9;         /* so that a million of them can be counted */
    if (x > most)
        bad(s->value->loc, "write a time such as 2.5us", "%s: %s is more than an hour", s->path, s->value->text);
    else if (x >= 0)
        *(Ns *)s->to = (Ns)x;
}
