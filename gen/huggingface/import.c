/* SPDX-License-Identifier: Apache-2.0
 *
 * import.c: dpgen import DIR -o model.yaml: config.json of a published model as a model file, with the names that its weights
 * have.
 *
 * config.json is read by the reader of model files, for JSON is YAML, so that each mistake is shown at its line and column.
 * Every key is one that the family reads, or one that is known to change nothing; another one is refused by name, since it may
 * change what the model computes.
 *
 * fails   with bad() at each key that is unknown, or has a value that dpgen does not do; with err() at keys whose values do not
 *         go together; nothing is written then
 */
#include "hf.h"
#include "import/net.h"
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

static NORETURN void misuse(const char *why)
{
    fail(EXIT_USAGE, "import: %s; write dpgen import DIR -o model.yaml, where DIR has the config.json of a published model",
         why);
}

/* ---- keys -------------------------------------------------------------------------------------------------------- */

/* A field reads it; inner: what is in it alone. */
static bool is_read(const Family *family, const char *key, bool inner)
{
    size_t n = strlen(key);
    for (int i = 0; i < family->fields.n; i++)
        for (int k = 0; k < family->fields.at[i].keys.n; k++) {
            const char *is = family->fields.at[i].keys.at[k];
            if (!strncmp(is, key, n) && ((!inner && !is[n]) || is[n] == '.'))
                return true;
        }
    return false;
}

/* Of the file, or of one of its objects that fields read. */
static void check_keys(const Config *c, const Node *map, const char *above)
{
    for (int i = 0; i < map->n; i++) {
        const char *key = strf("%s%s", above, map->key[i]->text);
        if (!has_word(c->family->harmless, map->key[i]->text) && !is_read(c->family, key, false))
            bad(map->key[i]->loc, "if it changes nothing that is computed, delete it", "'%s' is not known of model type '%s', "
                "and may change what the model computes", key, c->family->type);
        else if (map->at[i]->kind == MAP && is_read(c->family, key, true))
            check_keys(c, map->at[i], strf("%s.", key));
    }
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

static double signed_decimal(const char *text)
{
    const bool minus = *text == '-';
    const double x = number_decimal(text + minus, strlen(text + minus));
    return minus ? -x : x;
}

/* ln_NAME: the natural logarithm of a value; expressions of model files have none. */
static bool look_up(void *ctx, const char *name, double *value)
{
    bool log = !strncmp(name, "ln_", 3);
    const char *text = value_get(ctx, log ? name + 3 : name);
    if (text && *text)
        *value = signed_decimal(text);
    if (text && *text && log) {
        /* The logarithm of x > 0, from the four operations: the same on every machine. */
        double x = *value;
        int twos;
        double m = frexp(x, &twos), t = (m - 1) / (m + 1), power = t, sum = 0;
        for (int k = 1; k < 50; k += 2, power *= t * t)
            sum += power / k;
        *value = 2 * sum + twos * 0x1.62e42fefa39efp-1;       /* ln 2 */
    }
    return text && *text;
}

static const char *config_number(Config *c, const ConfigField *f, Loc at, const char *text)
{
    if (f->kind == INT || f->kind == TEXT)
        return strf("%lld", (long long)expr_int(at, text, look_up, &c->values));
    return number_text(expr_float(at, text, look_up, &c->values), 6);
}

/* The value of a word of the file, `JSON>value` in words or the word itself; NULL: it is none of them, which is named. */
static const char *word_value(const Config *c, const ConfigField *f, const char *key, const Node *n)
{
    const char *known = "";
    size_t k = n->kind == SCALAR ? strlen(n->text) : 0;
    for (const char *p = f->words, *end; *p; p = end + strspn(end, " ")) {
        end = p + strcspn(p, " ");
        size_t word = strcspn(p, "> ");
        const char *value = p[word] == '>' ? p + word + 1 : p;
        bool open = p[word - 1] == '*';             /* 5*: a word that begins so */
        if (n->kind == SCALAR && (open ? word - 1 <= k : word == k) && !strncmp(p, n->text, open ? word - 1 : k))
            return strf("%.*s", (int)(end - value), value);
        known = strf("%s %.*s", known, (int)word, p);
    }
    bad(n->loc, strf("%s%s", strchr(known + 1, ' ') ? "one of:" : "what is done:", known), "%s: dpgen does not do %s for model "
        "type '%s'", key, n->kind == SCALAR ? strf("'%s'", n->text) : "this", c->family->type);
    return NULL;
}

/* Layers of two kinds, of which every n-th is of the second: 0 there, else 1. */
static const char *layers_of(const Config *c, const ConfigField *f, const char *key, const Node *n)
{
    const char *space = strchr(f->words, ' '), *kind[] = {strf("%.*s", (int)(space - f->words), f->words), space + 1};
    int layers = n->kind == LIST ? n->n : 0, at = -1, period = layers;
    for (int i = 0; i < layers; i++) {
        if (!word_value(c, f, key, n->at[i]))
            return NULL;
        if (!strcmp(n->at[i]->text, kind[1]) && at >= 0 && period == layers)
            period = i - at;
        if (!strcmp(n->at[i]->text, kind[1]) && at < 0)
            at = i;
    }
    for (int i = 0; i < layers; i++)
        if (strcmp(n->at[i]->text, kind[at >= 0 && i % period == at % period]) || at >= period) {
            bad(n->at[i]->loc, strf("'%s', and every n-th is '%s'", kind[0], kind[1]),
                "%s: dpgen does not do another order of layers for model type '%s'", key, c->family->type);
            return NULL;
        }
    if (strcmp(strf("%d", layers), value_get(&c->values, "L"))) {
        bad(n->loc, NULL, "%s: a list of %s layers is expected", key, value_get(&c->values, "L"));
        return NULL;
    }
    return at < 0 ? "1" : strf("min(mod(i+%d, %d), 1)", period - at, period);
}

/* What a number is to be, if it is not; else NULL.  One that may be absent is more than 0, which a template would take for
 * absent. */
static const char *out_of_range(const ConfigField *f, const char *text)
{
    const double x = signed_decimal(text);
    if (f->range.text)
        return x >= f->range.least && x <= f->range.most ? NULL : f->range.text;
    return f->kind == REAL && f->otherwise && !*f->otherwise && !(x > 0) ? "more than 0" : NULL;
}

static bool is_number(const Node *n)
{
    return n->kind == SCALAR && !n->quoted && strspn(n->text, "+-.0123456789eE") == strlen(n->text);
}

static const char *given(Config *c, const ConfigField *f, const char *key, const Node *n)
{
    if (f->kind == LIST_OF) {
        for (int i = 0; n->kind == LIST && i < n->n; i++)
            word_value(c, f, key, n->at[i]);
        return "";
    }
    if (f->kind == EVERY)
        return layers_of(c, f, key, n);
    if (f->kind == NUMBERS) {
        const char *text = "";
        for (int i = 0; n->kind == LIST && i < n->n && text; i++)
            text = !is_number(n->at[i]) ? NULL : strf("%s%s%s", text, i ? ", " : "",
                number_text(expr_float(n->at[i]->loc, n->at[i]->text, look_up, &c->values), 6));
        if (n->kind != LIST || !text)
            bad(n->loc, NULL, "%s: a list of numbers is expected", key);
        return n->kind == LIST ? text : NULL;
    }
    if (f->kind == ANY)
        return "";
    if (f->kind == COUNT && n->kind == MAP)
        return strf("%d", n->n);
    if (f->kind == WORD || f->kind == ONLY)
        return word_value(c, f, key, n);
    bool flag = n->kind == SCALAR && (!strcmp(n->text, "true") || !strcmp(n->text, "false"));
    if (f->kind == FLAG ? !flag : !is_number(n) && !(f->kind == SAME && flag))
        bad(n->loc, NULL, "%s: %s is expected", key, f->kind == FLAG ? "true or false" : "a number");
    else if (f->kind == SAME && strcmp(n->text, value_get(&c->values, f->otherwise)))
        bad(n->loc, strf("what is done: %s", value_get(&c->values, f->otherwise)), "%s: dpgen does not do %s for model "
            "type '%s'", key, n->text, c->family->type);
    else {
        const char *text = flag ? n->text : config_number(c, f, n->loc, n->text), *range = flag ? NULL : out_of_range(f, text);
        if (range)
            bad(n->loc, NULL, "%s: %s is expected, not %s", key, range, n->text);
        return range ? NULL : text;
    }
    return NULL;
}

typedef struct { Config *c; const ConfigField *f; const char *text; } Computing;

static void compute(void *ctx)
{
    Computing *x = ctx;
    x->text = config_number(x->c, x->f, x->c->root->loc, x->f->otherwise);
}

static const char *read_otherwise(Config *c, const ConfigField *f)
{
    Computing x = {.c = c, .f = f};
    if (*f->otherwise && (f->kind == INT || f->kind == REAL || f->kind == CAP)) {
        if (!diag_accepts(compute, &x))
            blame_text(c, f->otherwise, diag_refusal());
        return x.text;
    }
    return f->kind == SAME ? f->otherwise : template_line(f->otherwise, &c->values);
}

static void read_field(Config *c, int at, char *begun);

/* What a text names is there before it is computed. */
static void read_named(Config *c, const char *text, char *begun)
{
    for (const char *p = text; p && *p; p += strspn(p, C_LETTERS) + !strspn(p, C_LETTERS))
        for (int i = 0; i < c->family->fields.n; i++) {
            const char *name = c->family->fields.at[i].name;
            if (name && strlen(name) == strspn(p, C_LETTERS) && !strncmp(p, name, strlen(name)))
                read_field(c, i, begun);
        }
}

static void read_field(Config *c, int at, char *begun)
{
    const ConfigField *f = &c->family->fields.at[at];
    const char *text = NULL;
    bool none = false, there = false;
    if (begun[at]++)
        return;
    read_named(c, f->kind == EVERY ? strf("%s L", f->otherwise) : f->otherwise, begun);
    for (int i = 0; i < f->keys.n; i++) {
        const Node *n = node_at(c->root, f->keys.at[i]);
        bool null = n && n->kind == SCALAR && !n->quoted && (!*n->text || !strcmp(n->text, "null"));
        none |= f->kind == CAP && null && node_get(c->root, f->keys.at[i]);
        n = null ? NULL : n;
        text = n ? given(c, f, f->keys.at[i], n) : text;
        there |= n != NULL;
    }
    if (!there && !f->otherwise)
        bad(c->root->loc, NULL, "there is no '%s', which model type '%s' has", f->keys.at[0], c->family->type);
    else if (!there)
        text = none ? "0" : read_otherwise(c, f);
    if (f->name && !text)
        bad_stop();             /* what is computed from it would only repeat the mistake */
    if (f->name)
        *PUSH(&c->values) = (ConfigValue){f->name, text};
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

static const char *template_of(const char *name)
{
    return embedded_find(strf("gen/huggingface/%s", name))->data;
}

typedef struct { const char *out, *loss, *shape; } ImportAsked;
static const Option table[] = {{"-o", "MODEL.yaml", WRITES_FILE, offsetof(ImportAsked, out)},
    {"--loss", "cross-entropy or mse", TAKES_TEXT, offsetof(ImportAsked, loss)},
    {"--shape", "INPUT=N,C,H,W", TAKES_TEXT, offsetof(ImportAsked, shape)}, {0}};

int import_command(int argc, char **argv)
{
    ImportAsked x = {0};
    Strs named = option_words(table, &x, argc, argv, "the folder", 1, misuse);
    const char *folder = named.n ? named.at[0] : NULL, *out = x.out, *loss = x.loss;
    if (!folder || !out)
        misuse(folder ? "no file to write is named" : "no folder is named");
    if (net_knows(folder) && loss && strcmp(loss, "cross-entropy") && strcmp(loss, "mse"))
        misuse(strf("--loss %s: cross-entropy or mse is expected", loss));
    if (net_knows(folder))
        return net_import(folder, out, loss ? loss : "cross-entropy", x.shape);
    if (llmc_knows(folder)) {
        import_kind(folder);
        return llmc_import(folder, out);
    }
    struct stat info;
    const char *path = stat(folder, &info) == 0 && S_ISDIR(info.st_mode) ? strf("%s/config.json", folder) : folder;
    if (access(path, R_OK) != 0)
        file_refuse(path, "name the folder of a published model, with its config.json, or a .pt2, .onnx or .bin");
    import_kind(path);
    if (loss || x.shape)
        misuse(strf("%s is for graphs, .onnx and .pt2", loss ? "--loss" : "--shape"));
    Config c = {.root = load(path)};
    if (c.root->kind != MAP)
        err(c.root->loc, NULL, "this is no config.json of a model");
    c.family = family_of(c.root);
    check_keys(&c, c.root, "");
    *PUSH(&c.values) = (ConfigValue){"family", c.family->type};
    char *begun = alloc((size_t)c.family->fields.n);
    for (int i = 0; i < c.family->fields.n; i++)
        read_field(&c, i, begun);
    heads_read(c.root, c.family, path == folder ? NULL : folder, &c.values);
    bad_stop();
    Text text;
    Strs lines = {0};
    template_write(text_open(&text), template_of(c.family->template), &c.values, &lines);
    if (c.family->tail)
        template_write(text.f, template_of(c.family->tail), &c.values, &lines);
    text_close(&text);
    Loc at;
    const char *why = made_refused(out, &text, &at);
    if (why)
        blame_keys(&c, &lines, &text, at, why);
    FILE *f = file_begin(out);
    fwrite(text.at, 1, text.n, f);
    file_end(f, out);
    const char *file = quote_terminal(quote_shell(out)), *slash = strrchr(path, '/');
    const char *above = slash ? strf("%.*s", (int)(slash - path) + (slash == path), path) : ".";
    printf("wrote %s: dpgen check %s, or dpgen %s -o out && make -C out && out/train --weights %s\n", quote_terminal(out), file,
           file, quote_terminal(quote_shell(path == folder ? above : folder)));
    return 0;
}
