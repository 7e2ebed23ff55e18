/* SPDX-License-Identifier: Apache-2.0
 *
 * load.c: YAML text to a tree of nodes, each with its line and column.
 *
 * libyaml splits the text into events.  A loop with its own stack of 32 levels builds the tree, so that no input can make it
 * recurse.  Every limit is checked before the work that it bounds: bytes of the file before it is scanned, depth before a
 * level is opened, nodes and lengths before memory is taken.
 *
 * A model file needs a small part of YAML.  The rest is refused rather than guessed at: anchors and aliases (a short file
 * that unfolds into a huge one), tags, merge keys, directives but %YAML, several documents, keys that are no scalars, tabs.
 * Characters that a reader of the file cannot see (controls, direction marks, zero-width) are refused wherever they stand,
 * also in an escape.
 *
 * needs   YAML text, any bytes at all fills   Node tree.  A scalar stays text; its field decides its type, so `no` and `1e-8`
 * cannot be read by the rules of the wrong
 *         YAML version
 * fails   at the first mistake, except duplicate keys, which are all named
 *
 * Source: libyaml 0.2, its event interface (yaml.h); YAML Ain't Markup Language, revision 1.2.2, chapters 5 to 9.  Cost:
 * linear; n log n in the keys of one map for duplicates.  Not handled: UTF-16, block scalars of several lines.
 */
#include "graph.h"
#include <yaml.h>

enum { MOST_BYTES = 1 << 20, MOST_DEPTH = 32, MOST_NODES = 100000, MOST_KEY = 64, MOST_SCALAR = 4096 };

typedef struct {                /* a list or map whose end has not been seen */
    Node *node;
    VEC(Node *) key, at;
} Nest;

typedef struct {
    yaml_parser_t yaml;
    int file, nodes, depth;
    bool made;                  /* by dpgen */
    Nest nest[MOST_DEPTH];
    Node *root;
} Loader;

/* ---- characters -------------------------------------------------------------------------------------- */

static void check_text(int file, const char *text, size_t n)
{
    Loc at = { file, 1, 1 };
    int bytes;
    for (const char *p = text, *end = text + n; p < end; p += bytes, at.col++) {
        uint32_t c = diag_char(p, end, &bytes);
        if (c == '\n' || (c == '\r' && p + 1 < end && p[1] == '\n')) {
            at.line += c == '\n';
            at.col = 0;
        } else if (c == '\t') {
            err(at, "use spaces", "a tab");
        } else if (c == 0xfffd && bytes == 1) {
            err(at, "save the file as UTF-8", "byte 0x%02x is not UTF-8", (unsigned char)*p);
        } else if (diag_unsafe(c) || (c & 0xfffe) == 0xfffe) {
            err(at, "delete it", "character U+%04X, which cannot be seen", (unsigned)c);
        }
    }
}

/* ---- one event --------------------------------------------------------------------------------------- */

static Loc place(const Loader *l, yaml_mark_t mark)
{
    return (Loc){ l->file, l->made ? -1 : (int)mark.line + 1, (int)mark.column + 1 };
}

static void refuse_marks(Loc at, const yaml_char_t *anchor, const yaml_char_t *tag)
{
    if (anchor)
        err(at, "write the value where it is used, or make it a dim or a block", "anchors are not read");
    if (tag)
        err(at, "write the value without it", "tags are not read");
}

static Node *node_new(Loader *l, NodeKind kind, Loc at)
{
    if (++l->nodes > MOST_NODES)
        err(at, "use blocks with repeat", "more than %d values in one file", MOST_NODES);
    Node *node = alloc(sizeof *node);
    node->kind = kind;
    node->loc = at;
    return node;
}

/* Hang a node where it belongs: the root, the next key, or the next value. */
static void hang(Loader *l, Node *node)
{
    if (!l->depth) {
        l->root = node;
        return;
    }
    Nest *top = &l->nest[l->depth - 1];
    if (top->node->kind == MAP && top->key.n == top->at.n) {
        if (node->kind != SCALAR)
            err(node->loc, "use a name", "a key that is a %s", node->kind == LIST ? "list" : "map");
        if (!*node->text)
            err(node->loc, "write NAME: VALUE", "an empty key");
        if (!node->quoted && !strcmp(node->text, "<<"))
            err(node->loc, "write the keys out", "merge keys are not read");
        if (strlen(node->text) > MOST_KEY)
            err(node->loc, NULL, "a key of %zu bytes; at most %d are read", strlen(node->text), MOST_KEY);
        *PUSH(&top->key) = node;
    } else {
        *PUSH(&top->at) = node;
    }
}

static void begin(Loader *l, NodeKind kind, Loc at)
{
    Node *node = node_new(l, kind, at);
    hang(l, node);
    if (l->depth == MOST_DEPTH)
        err(at, NULL, "lists and maps inside one another more than %d deep", MOST_DEPTH);
    l->nest[l->depth++] = (Nest){ .node = node };
}

ORDER(by_text, Node *, strcmp((*x)->text, (*y)->text), order_of((*x)->loc.line, (*y)->loc.line),
      order_of((*x)->loc.col, (*y)->loc.col))

static void end(Loader *l)
{
    Nest *top = &l->nest[--l->depth];
    top->node->n = top->at.n;
    top->node->at = top->at.at;
    top->node->key = top->key.at;
    if (top->key.n > 1) {
        int n = top->key.n;
        Node **sorted = alloc((size_t)n * sizeof *sorted);
        memcpy(sorted, top->key.at, (size_t)n * sizeof *sorted);
        SORT(sorted, n, by_text);
        for (int i = 1, first = 0; i < n; i++) {
            if (strcmp(sorted[i]->text, sorted[first]->text))
                first = i;
            else
                bad(sorted[i]->loc, strf("it is set in line %d", sorted[first]->loc.line), "key '%s' a second time",
                    sorted[i]->text);
        }
    }
}

static void scalar(Loader *l, const yaml_event_t *e, Loc at)
{
    size_t n = e->data.scalar.length;
    refuse_marks(at, e->data.scalar.anchor, e->data.scalar.tag);
    if (n > MOST_SCALAR)
        err(at, NULL, "a text of %zu bytes; at most %d are read", n, MOST_SCALAR);
    /* Escapes in double quotes can still make what the file itself may not hold. */
    const char *text = (const char *)e->data.scalar.value;
    int bytes;
    for (const char *p = text, *end = text + n; p < end; p += bytes) {
        uint32_t c = diag_char(p, end, &bytes);
        if (c == '\n')
            err(at, "write it on one line", "a text with line breaks in it");
        if (diag_unsafe(c))
            err(at, NULL, "a text with character U+%04X in it, which cannot be seen", (unsigned)c);
    }
    Node *node = node_new(l, SCALAR, at);
    node->text = strf("%s", (const char *)e->data.scalar.value);
    node->quoted = e->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    hang(l, node);
}

static void document(const Loader *l, const yaml_event_t *e, Loc at)
{
    if (l->root)
        err(at, "split the file", "a second document");
    if (e->data.document_start.tag_directives.start != e->data.document_start.tag_directives.end)
        err(at, "delete it", "tag directives are not read");
}

/* ---- the loop ---------------------------------------------------------------------------------------- */

/* libyaml says what its parser missed; say what a writer of a model file most likely did. */
static const char *remedy(const char *problem)
{
    static const char *const table[][2] = {
        { "mapping values are not allowed", "quote a text with ': ' in it, or check the indentation" },
        { "could not find expected ':'", "write NAME: VALUE, with a space after the colon" },
        { "did not find expected ',' or '}'", "is a comma or a } missing?" },
        { "did not find expected ',' or ']'", "is a comma or a ] missing?" },
        { "did not find expected key", "check the indentation of this line" },
        { "did not find expected '-'", "check the indentation of this line" },
        { "did not find expected alphabetic", "a value may not begin with * or &" },
        { "cannot start any token", "quote a text that begins with this character" },
        { "unexpected end of stream", "is the closing quote missing?" },
        { "block sequence entries are not", "put the list on its own lines, or in [ ]" },
        { "unknown directive", "delete it" },
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strstr(problem, table[i][0]))
            return table[i][1];
    return NULL;
}

NORETURN static void syntax(const Loader *l)
{
    const yaml_parser_t *y = &l->yaml;
    const char *problem = y->problem ? y->problem : "this cannot be read";
    if (y->error == YAML_MEMORY_ERROR)
        fail(EXIT_RUN, "out of memory while reading YAML");
    if (y->context && strstr(problem, "end of stream"))     /* where it began says more than where the file ends */
        err(place(l, y->context_mark), remedy(problem), "YAML: %s %s", problem, y->context);
    if (y->context && y->context_mark.line != y->problem_mark.line)
        err(place(l, y->problem_mark), remedy(problem), "YAML: %s %s that begins in line %zu", problem, y->context,
            y->context_mark.line + 1);
    err(place(l, y->problem_mark), remedy(problem), "YAML: %s", problem);
}

static bool step(Loader *l)
{
    yaml_event_t e;
    if (!yaml_parser_parse(&l->yaml, &e))
        syntax(l);
    Loc at = place(l, e.start_mark);
    bool more = e.type != YAML_STREAM_END_EVENT;
    switch (e.type) {
    case YAML_DOCUMENT_START_EVENT:
        document(l, &e, at);
        break;
    case YAML_ALIAS_EVENT:
        err(at, "write the value itself; an expression may not begin with *", "aliases are not read");
    case YAML_SCALAR_EVENT:
        scalar(l, &e, at);
        break;
    case YAML_SEQUENCE_START_EVENT:
        refuse_marks(at, e.data.sequence_start.anchor, e.data.sequence_start.tag);
        begin(l, LIST, at);
        break;
    case YAML_MAPPING_START_EVENT:
        refuse_marks(at, e.data.mapping_start.anchor, e.data.mapping_start.tag);
        begin(l, MAP, at);
        break;
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        end(l);
        break;
    default:
        break;
    }
    yaml_event_delete(&e);
    return more;
}

static Node *parse(int file, const char *text, size_t n, bool made)
{
    Loader *l = alloc(sizeof *l);
    l->file = file;
    l->made = made;
    if (!yaml_parser_initialize(&l->yaml))
        fail(EXIT_RUN, "out of memory while reading YAML");
    yaml_parser_set_encoding(&l->yaml, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&l->yaml, (const unsigned char *)text, n);
    while (step(l))
        ;
    yaml_parser_delete(&l->yaml);
    if (!l->root)
        err((Loc){ file, 1, 1 }, NULL, "there is nothing in here");
    return l->root;
}

/* YAML 1.2, section 5.2: a byte order mark may begin a stream. */
Node *load_text(const char *path, const char *text, size_t n)
{
    size_t mark = n >= 3 && !memcmp(text, "\xEF\xBB\xBF", 3) ? 3 : 0;
    text += mark;
    n -= mark;
    int file = diag_file(path, text, n);
    if (n > MOST_BYTES)
        err((Loc){ file, 1, 1 }, NULL, "more than %d bytes", MOST_BYTES);
    check_text(file, text, n);
    Node *root = parse(file, text, n, false);
    bad_stop();
    return root;
}

Node *load_option(const char *option, const char *text, size_t skip)
{
    size_t n = strlen(text);
    int file = diag_file(option, text, n);
    if (n > MOST_SCALAR)
        err((Loc){ file, 1, 1 }, NULL, "an option of more than %d bytes", MOST_SCALAR);
    if (skip == n)
        err((Loc){ file, 1, (int)n + 1 }, NULL, "there is no value behind the =");
    check_text(file, text, n);
    char *blank = strf("%s", text);     /* spaces instead of what is skipped: columns stay those of the option */
    memset(blank, ' ', skip);
    return parse(file, blank, n, false);
}

Node *load_made(const char *path, const char *text)
{
    return parse(diag_file(path, NULL, 0), text, strlen(text), true);
}

Node *load(const char *path)
{
    static const char remedy[] = "a model is a YAML file, such as those in examples/; --devices takes one of devices/";
    size_t n;
    if (!strcmp(path, file_stdin)) {
        const char *all = file_read(path, remedy, &n);
        return load_text(path, all, n);
    }
    FILE *f = file_open(path, remedy);
    char *text = alloc(MOST_BYTES + 1);
    n = fread(text, 1, MOST_BYTES + 1, f);
    if (ferror(f))
        file_refuse(path, remedy);
    fclose(f);
    return load_text(path, text, n);
}

Node *node_get(const Node *map, const char *key)
{
    if (map && map->kind == MAP)
        for (int i = 0; i < map->n; i++)
            if (!strcmp(map->key[i]->text, key))
                return map->at[i];
    return NULL;
}

const Node *node_at(const Node *map, const char *path)
{
    for (const char *dot; map && path; path = dot ? dot + 1 : NULL) {
        dot = strchr(path, '.');
        map = node_get(map, dot ? strf("%.*s", (int)(dot - path), path) : path);
    }
    return map;
}

const char *load_library(void)
{
    return yaml_get_version_string();
}
