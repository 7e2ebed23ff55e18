/* SPDX-License-Identifier: Apache-2.0
 *
 * attr.c: the keys of an operator's line: what people write, and the attributes that shape and the calls read.
 *
 * Keys stand in the operator's row of ops.def, which says their form.  An attribute has the name of its token there, or a
 * name that no call uses where shape still has to work on it (start -> from).  A list becomes shape.0, shape.1, ...  An operand
 * may be given by key too (targets: labels), and an optional parameter switched off (bias: false).
 */
#include "build.h"
#include <float.h>
#include <math.h>

/* The next key of a row; false behind the last. */
static bool next_key(const char **text, const char *op, BuildKey *k)
{
    *text += strspn(*text, "; ");
    size_t n = strcspn(*text, ";"), name = strcspn(*text, " ="), end = strcspn(*text, " ");
    if (!n)
        return false;
    const char *p = *text, *def = p + end + 2 + (p[end + 2] == ' ');
    *k = (BuildKey){op, strf("%.*s", (int)name, p), p[name] == '=' ? strf("%.*s", (int)(end - name - 1), p + name + 1) : NULL,
                    p[end + 1], def < p + n ? strf("%.*s", (int)(p + n - def), def) : NULL};
    k->attr = k->attr ? k->attr : k->key;
    if (k->def && !strcmp(k->def, "-"))
        k->def = "";
    *text += n;
    return true;
}

const char *attr_word(const Node *line, const char *key)
{
    const Node *n = node_get(line, key);
    return n && n->kind == SCALAR ? n->text : "";
}

void attr_keys(const char *op, const char *text, Strs *list)
{
    for (BuildKey k; next_key(&text, op, &k);)
        *PUSH(list) = k.key;
}

static int64_t word(Scope *s, const Node *n, const BuildKey *k)
{
    Strs words = {0};
    const char *p = k->def;
    for (size_t len; *p; p += len + (p[len] == ' ')) {
        len = strcspn(p, " ");
        *PUSH(&words) = strf("%.*s", (int)len, p);
        if (n->kind == SCALAR && !strcmp(n->text, words.at[words.n - 1]))
            return words.n - 1;
    }
    WRONG(s->b, n->loc, did_you_mean(n->text, words.at, words.n, strf("one of: %s", k->def)),
          "'%s' of %s cannot be this", k->key, k->op);
    return 0;
}

static void list(Scope *s, const Node *n, const BuildKey *k, Op *o)
{
    if (n->kind != LIST || !n->n) {
        WRONG(s->b, n->loc, strf("write %s: [ ... ]", k->key), "'%s' of %s is a list", k->key, k->op);
        return;
    }
    attr_set(o, k->attr, n->n);
    for (int i = 0; i < n->n; i++)
        attr_set(o, strf("%s.%d", k->attr, i), eval_int(s, n->at[i]));
}

static int64_t natural(Scope *s, const Node *n, const BuildKey *k)
{
    int64_t v = eval_int(s, n);
    if (v < 1)
        WRONG(s->b, n->loc, NULL, "'%s' of %s must be at least 1, not %lld", k->key, k->op, (long long)v);
    return v;
}

/* A job has it as a float. */
static double number(Scope *s, const Node *n, const BuildKey *k)
{
    double f = eval_float(s, n);
    if (!isfinite((float)f))
        WRONG(s->b, n->loc, NULL, "'%s' of %s is %g, and a float of 32 bits ends at %.6g", k->key, k->op, f, (double)FLT_MAX);
    return f;
}

static void read_key(Scope *s, const Node *n, const BuildKey *k, Op *o)
{
    switch (k->kind) {
    case 'n': attr_set(o, k->attr, natural(s, n, k)); break;
    case 'z': attr_set(o, k->attr, eval_int(s, n)); break;
    case 'b': attr_set(o, k->attr, eval_bool(s, n)); break;
    case 'f': attr_set_float(o, k->attr, number(s, n, k)); break;
    case 'w': attr_set(o, k->attr, word(s, n, k)); break;
    case 's':
        if (n->kind == SCALAR) {
            ATTRS(o, {k->attr, 1}, {strf("%s.0", k->attr), eval_int(s, n)});
            break;
        }       /* else as a list */
    /* fallthrough */
    case 'l': list(s, n, k, o); break;
    default: die("key kind %c", k->kind);
    }
}

void attr_read(Scope *s, const Node *line, const char *op, const char *text, Op *o)
{
    for (BuildKey k; next_key(&text, op, &k);) {
        const Node *n = node_get(line, k.key);
        Node def = {.kind = SCALAR, .loc = line->loc, .text = k.def};
        if (k.kind == 'w' && k.def)
            def.text = strf("%.*s", (int)strcspn(k.def, " "), k.def);
        if (!n && !k.def)
            WRONG(s->b, line->loc, strf("add %s: ...", k.key), "%s needs '%s'", k.op, k.key);
        else if (n || *k.def)
            read_key(s, n ? n : &def, &k, o);
    }
}
