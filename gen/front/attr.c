/* SPDX-License-Identifier: Apache-2.0
 *
 * attr.c: the keys of an operator's line: what people write, and the attributes that shape and the calls read.
 *
 * Keys are full words; an attribute has the name of its token in ops.def, or a name that no call uses where shape still
 * has to work on it (start -> from).  A list becomes shape.0, shape.1, ...  An operand may be given by key too
 * (targets: labels), and an optional parameter switched off (bias: false): those keys come from the operator's row.
 */
#include "front.h"
#include <string.h>

/* kind: n at least 1, z any integer, f number, b true or false, l list of integers, w one of the words in def, the
 * first the default.  def NULL: must be given; "": may be left out, and there is no attribute then. */
static const Key keys[] = {
    {"Embedding",         "rows",          "rows",        'n', NULL},
    {"Embedding",         "out",           "width",       'n', NULL},
    {"PositionEmbedding", "rows",          "rows",        'n', NULL},
    {"RelativeBias",      "heads",         "heads",       'n', NULL},
    {"RelativeBias",      "query",         "query",       'n', NULL},
    {"RelativeBias",      "key",           "key",         'n', NULL},
    {"RelativeBias",      "buckets",       "buckets",     'n', "32"},
    {"RelativeBias",      "distance",      "distance",    'n', "128"},
    {"RelativeBias",      "bidirectional", "both",        'b', "true"},
    {"Linear",            "out",           "out",         'n', NULL},
    {"MatMul",            "transpose_a",   "ta",          'b', "false"},
    {"MatMul",            "transpose_b",   "tb",          'b', "false"},
    {"Attention",         "heads",         "heads",       'n', NULL},
    {"Attention",         "causal",        "causal",      'b', "false"},
    {"Attention",         "scale",         "scale",       'f', ""},
    {"Attention",         "dropout",       "drop",        'f', "0"},
    {"Attention",         "packed",        "packed",      'w', "none qkv"},
    {"LayerNorm",         "eps",           "eps",         'f', "1e-5"},
    {"RMSNorm",           "eps",           "eps",         'f', "1e-6"},
    {"Gelu",              "approximate",   "tanh",        'w', "none tanh"},
    {"Scale",             "factor",        "factor",      'f', NULL},
    {"Dropout",           "p",             "drop",        'f', NULL},
    {"Concat",            "axis",          "axis",        'z', "-1"},
    {"Split",             "axis",          "axis",        'z', "-1"},
    {"Split",             "parts",         "parts",       'n', ""},
    {"Split",             "sizes",         "sizes",       'l', ""},
    {"Slice",             "axis",          "axis",        'z', "-1"},
    {"Slice",             "from",          "start",       'z', "0"},
    {"Slice",             "count",         "length",      'n', NULL},
    {"Reshape",           "shape",         "shape",       'l', NULL},
    {"Transpose",         "perm",          "perm",        'l', NULL},
    {"Mean",              "axis",          "axis",        'z', NULL},
    {"Sum",               "axis",          "axis",        'z', NULL},
    {"SoftmaxCrossEntropy", "ignore",      "ignore",      'z', "-100"},
    {"LinearCrossEntropy", "out",          "out",         'n', NULL},
    {"LinearCrossEntropy", "chunk",        "chunk",       'n', "8192"},
    {"LinearCrossEntropy", "ignore",       "ignore",      'z', "-100"},
};
enum { KEYS = sizeof keys / sizeof *keys };

const char *attr_word(const Node *line, const char *key)
{
    const Node *n = node_get(line, key);
    return n && n->kind == SCALAR ? n->text : "";
}

void attr_keys(const char *op, Strs *list)
{
    for (int i = 0; i < KEYS; i++)
        if (!strcmp(keys[i].op, op))
            *PUSH(list) = keys[i].key;
}

static int64_t word(Scope *s, const Node *n, const Key *k)
{
    Strs words = {0};
    const char *p = k->def;
    for (size_t len; *p; p += len + (p[len] == ' ')) {
        len = strcspn(p, " ");
        *PUSH(&words) = strf("%.*s", (int)len, p);
        if (n->kind == SCALAR && !strcmp(n->text, words.at[words.n - 1]))
            return words.n - 1;
    }
    const char *near = n->kind == SCALAR ? nearest(n->text, words.at, words.n) : NULL;
    WRONG(s->b, n->loc, near ? strf("did you mean '%s'?", near) : strf("one of: %s", k->def),
          "'%s' of %s cannot be this", k->key, k->op);
    return 0;
}

static void list(Scope *s, const Node *n, const Key *k, Op *o)
{
    if (n->kind != LIST || !n->n) {
        WRONG(s->b, n->loc, strf("write %s: [ ... ]", k->key), "'%s' of %s is a list", k->key, k->op);
        return;
    }
    attr_set(o, k->attr, n->n);
    for (int i = 0; i < n->n; i++)
        attr_set(o, strf("%s.%d", k->attr, i), eval_int(s, n->at[i]));
}

static int64_t natural(Scope *s, const Node *n, const Key *k)
{
    int64_t v = eval_int(s, n);
    if (v < 1)
        WRONG(s->b, n->loc, NULL, "'%s' of %s must be at least 1, not %lld", k->key, k->op, (long long)v);
    return v;
}

static void read_key(Scope *s, const Node *n, const Key *k, Op *o)
{
    switch (k->kind) {
    case 'n': attr_set(o, k->attr, natural(s, n, k)); break;
    case 'z': attr_set(o, k->attr, eval_int(s, n)); break;
    case 'b': attr_set(o, k->attr, eval_bool(s, n)); break;
    case 'f': attr_set_float(o, k->attr, eval_float(s, n)); break;
    case 'w': attr_set(o, k->attr, word(s, n, k)); break;
    case 'l': list(s, n, k, o); break;
    default: die("key kind %c", k->kind);
    }
}

void attr_read(Scope *s, const Node *line, const char *op, Op *o)
{
    for (int i = 0; i < KEYS; i++) {
        const Key *k = &keys[i];
        if (strcmp(k->op, op))
            continue;
        const Node *n = node_get(line, k->key);
        Node def = {.kind = SCALAR, .loc = line->loc, .text = k->def};
        if (k->kind == 'w' && k->def)
            def.text = strf("%.*s", (int)strcspn(k->def, " "), k->def);
        if (!n && !k->def)
            WRONG(s->b, line->loc, strf("add %s: ...", k->key), "%s needs '%s'", op, k->key);
        else if (n || *k->def)
            read_key(s, n ? n : &def, k, o);
    }
}
