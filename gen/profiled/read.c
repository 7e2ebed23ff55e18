/* SPDX-License-Identifier: Apache-2.0
 *
 * read.c: reads graphs that other systems have profiled.
 *
 * Four forms.  dpgen's own is a text of records as in docs/text.md:
 *
 *     dpgen-nodes 1
 *     graph vgg batch=64 micro=8 optimizer=sgd
 *     node conv1 forward=3.125 backward=6.5 weight=0.5 output=411041792 saved=output params=6912
 *     edge conv1 to=relu1
 *     time conv1 on=gpu forward=1.25 backward=2.5
 *
 * The last record is for devices of different kinds: what a node takes on devices of that name.  A kind that any node names
 * is one of the graph; a node without such a record takes its own time there.
 *
 * PipeDream's is what its profiler writes (github msr-fiddle/pipedream; D. Narayanan et al., PipeDream, SOSP 2019): a line
 * `ID -- description -- forward_compute_time=F, backward_compute_time=B, activation_size=A, parameter_size=P` a node, a line
 * TAB `SRC -- DST` an edge; milliseconds and bytes of one minibatch, A may be a list of several results, which are added up.
 * Sources that are called Input, and then sinks that are called __getitem__, are left out: they stand for data and for
 * unpacking.  Its optimizer charges a stage its activations, so a node saves its output.
 *
 * PipeEdge's is three files of YAML: pipeedge.c.  Piper's is JSON: tmpc.c.
 *
 * Times become nanoseconds, rounded.  Cost: n log n.
 * fails   with err(), file, line and column, at what cannot be read, a time that is negative or not finite, an id that is there
 *         twice or not at all, and a cycle, whose nodes are named.
 */
#include "foreign.h"
#include "build/build.h"
#include "text/text.h"
#include <math.h>

static const Bytes MOST_SIZE = (Bytes)1 << 42;      /* of one tensor */
static const double MOST_MS = 1e9;

typedef struct { const char *from, *to; Loc at, to_at; } ForeignEdge;
typedef struct { const char *node, *on; ForeignTime time; Loc at; } ForeignOn; /* a time of -1: that of the node */
typedef struct {
    Foreign *f;
    VEC(ForeignEdge) edge;
    VEC(ForeignOn) on;
    Strs about;                 /* by node: its description */
} ForeignReader;

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

static double decimal(Loc at, const char *what, const char *text, size_t n)
{
    bool number = n > 0;
    for (size_t i = 0, digits = 0; i < n; i++) {
        number &= strchr("0123456789.eE+-", text[i]) != NULL;
        digits += text[i] >= '0' && text[i] <= '9';
        number &= i + 1 < n || digits > 0;
    }
    if (n > 1 && text[0] == '-')
        err(at, NULL, "%s is negative", what);
    if (!number)
        err(at, "a decimal number", "%s is not a finite number", what);
    return number_decimal(text, n);
}

double foreign_number(const Node *n, const char *what, double most)
{
    if (n->kind != SCALAR)
        err(n->loc, "a decimal number", "%s is not a finite number", what);
    double x = decimal(n->loc, what, n->text, strlen(n->text));
    if (!(x <= most))
        err(n->loc, NULL, "%s is more than %.0f", what, most);
    return x;
}

static Ns time_of(Loc at, const char *what, const char *text, size_t n)
{
    double ms = decimal(at, what, text, n);
    if (!(ms <= MOST_MS))
        err(at, NULL, "%s is more than %.0f ms", what, MOST_MS);
    return (Ns)floor(ms * 1e6 + 0.5);
}

static Bytes size_of(Loc at, const char *what, const char *text, size_t n)
{
    double bytes = decimal(at, what, text, n);
    if (!(bytes <= (double)MOST_SIZE))
        err(at, NULL, "%s is more than 2^42 bytes", what);
    return (Bytes)floor(bytes + 0.5);
}

/* ---- own form ---------------------------------------------------------------------------------------------------- */

static const char *value_of_key(const Record *r, const char *key, Loc *at)
{
    for (int i = 0; i < r->pair.n; i++)
        if (!strcmp(r->pair.at[i].key, key)) {
            *at = text_at(r, r->pair.at[i].value_col);
            return r->pair.at[i].value;
        }
    return NULL;
}

static void check_keys(const Record *r, const char *const *known, int n)
{
    for (int i = 0; i < r->pair.n; i++) {
        const char *key = r->pair.at[i].key;
        bool found = false;
        for (int k = 0; k < n; k++)
            found |= !strcmp(known[k], key);
        if (!found)
            err(text_at(r, r->pair.at[i].key_col), did_you_mean(key, known, n, NULL), "%s has no '%s'", r->word, key);
        for (int k = 0; k < i; k++)
            if (!strcmp(r->pair.at[k].key, key))
                err(text_at(r, r->pair.at[i].key_col), NULL, "'%s' is given twice", key);
    }
}

static void read_head(ForeignReader *x, const Record *r)
{
    static const char *const keys[] = {"batch", "micro", "optimizer"}, *const optimizers[] = {"sgd", "momentum", "adamw"};
    Loc at;
    const char *text;
    check_keys(r, keys, 3);
    if (name_fault(r->name) && r->name[strspn(r->name, C_WORD "-.")])
        err(text_at(r, r->name_col), NULL, "letters, digits, _ - and . make a name");
    x->f->name = r->name;
    x->f->head = r->at;
    if ((text = value_of_key(r, "batch", &at)))
        x->f->batch = text_integer(at, text, 1, 1 << 30);
    if ((text = value_of_key(r, "micro", &at)))
        x->f->micro = text_integer(at, text, 1, 65536);
    if ((text = value_of_key(r, "optimizer", &at))) {
        x->f->optimizer = NULL;
        for (int i = 0; i < 3; i++)
            x->f->optimizer = strcmp(text, optimizers[i]) ? x->f->optimizer : optimizers[i];
        if (!x->f->optimizer)
            err(at, "sgd, momentum or adamw", "no optimizer is called '%s'", text);
    }
}

static void read_node(ForeignReader *x, const Record *r)
{
    static const char *const keys[] = {"name", "forward", "backward", "weight", "output", "saved", "params"};
    ForeignNode *n = PUSH(&x->f->node);
    Loc at;
    const char *text;
    check_keys(r, keys, 7);
    *n = (ForeignNode){.id = r->name, .name = r->name, .saved = 0, .loc = r->at};
    if ((text = value_of_key(r, "name", &at))) {
        if (name_fault(text))
            err(at, NULL, "%s", name_fault(text));
        n->name = text;
    }
    if ((text = value_of_key(r, "forward", &at)))
        n->time.forward = time_of(at, "forward", text, strlen(text));
    if ((text = value_of_key(r, "backward", &at)))
        n->time.backward = time_of(at, "backward", text, strlen(text));
    if ((text = value_of_key(r, "output", &at)))
        n->output = size_of(at, "output", text, strlen(text));
    if ((text = value_of_key(r, "saved", &at)))
        n->saved = strcmp(text, "output") ? size_of(at, "saved", text, strlen(text)) : SAVED_OUTPUT;
    if ((text = value_of_key(r, "params", &at)))
        n->params = size_of(at, "params", text, strlen(text));
    if ((text = value_of_key(r, "weight", &at))) {
        double share = decimal(at, "weight", text, strlen(text));
        if (!(share <= 1))
            err(at, "a share from 0 to 1", "weight is more than all of backward");
        n->apart = share > 0;
        n->share = share;
        if (n->apart && n->params == 0)
            err(at, "give params=, or delete it", "this node has no params, so no weight gradient");
    }
    *PUSH(&x->about) = "";
}

static void read_edge(ForeignReader *x, const Record *r)
{
    Loc at;
    const char *const key = "to", *to = value_of_key(r, key, &at);
    check_keys(r, &key, 1);
    if (!to)
        err(r->at, "edge SOURCE to=READER", "an edge has two ends");
    *PUSH(&x->edge) = (ForeignEdge){r->name, to, text_at(r, r->name_col), at};
}

static void read_time_on(ForeignReader *x, const Record *r)
{
    static const char *const keys[] = {"on", "forward", "backward"};
    ForeignOn *row = PUSH(&x->on);
    Loc at;
    const char *text;
    check_keys(r, keys, 3);
    *row = (ForeignOn){r->name, value_of_key(r, "on", &at), {-1, -1}, r->at};
    if (!row->on)
        err(r->at, "time NODE on=KIND forward=MS", "a time on devices of which kind?");
    if (name_fault(row->on) || strchr(row->on, '.'))
        err(at, "letters, digits and _", "'%s' is no name of devices", row->on);
    if ((text = value_of_key(r, "forward", &at)))
        row->time.forward = time_of(at, "forward", text, strlen(text));
    if ((text = value_of_key(r, "backward", &at)))
        row->time.backward = time_of(at, "backward", text, strlen(text));
}

static void read_own(ForeignReader *x, const char *path)
{
    enum { WORDS = 4 };
    static const struct { const char *word; void (*read)(ForeignReader *, const Record *); } kinds[WORDS] = {
        {"graph", read_head}, {"node", read_node}, {"edge", read_edge}, {"time", read_time_on}};
    Scanner s = {0};
    text_scan(&s, path, "dpgen-nodes 1");
    for (EACH(const Record, r, s.record)) {
        size_t k = 0;
        while (k < WORDS && strcmp(kinds[k].word, r->word))
            k++;
        if (k == WORDS)
            err(r->at, "graph, node, edge or time", "no record begins with '%s'", r->word);
        if (k == 0 && x->f->name)
            err(r->at, NULL, "a second graph");
        kinds[k].read(x, r);
    }
    if (!x->f->name)
        err((Loc){s.file, 1, 1}, "graph NAME", "no record begins with 'graph'");
}

/* ---- PipeDream's form -------------------------------------------------------------------------------------------- */

typedef struct { const char *at; int n, col; } Word;
typedef struct { int file, line; } Where;

static Loc loc_at(Where w, int col)
{
    return (Loc){w.file, w.line, col};
}

/* The words between " -- "; how many. */
static int cut(const char *line, Word *word, int most)
{
    int n = 0;
    for (const char *p = line; p; n++) {
        const char *end = strstr(p, " -- ");
        if (n < most)
            word[n] = (Word){p, (int)(end ? (size_t)(end - p) : strlen(p)), (int)(p - line) + 1};
        p = end ? end + 4 : NULL;
    }
    return n;
}

/* key=NUMBER, or key=[NUMBER; NUMBER], in a list with commas; where it begins. */
static const char *quantity(Where w, const Word *list, const char *key, size_t *n)
{
    size_t k = strlen(key);
    for (const char *p = list->at; p && p < list->at + list->n; p = strstr(p, ", ") ? strstr(p, ", ") + 2 : NULL)
        if (!strncmp(p, key, k) && p[k] == '=') {
            *n = strcspn(p + k + 1, ",");
            return p + k + 1;
        }
    err(loc_at(w, list->col), "forward_compute_time=, backward_compute_time=, activation_size=, parameter_size=",
        "this node has no %s", key);
}

static Bytes sizes(Where w, Loc at, const char *text, size_t n)
{
    Bytes sum = 0;
    if (n < 2 || text[0] != '[')
        return size_of(at, "activation_size", text, n);
    for (const char *p = text + 1, *end = text + n - 1; p < end; p += strspn(p, "; ")) {
        size_t k = strcspn(p, ";]");
        sum += size_of(loc_at(w, at.col + (int)(p - text)), "activation_size", p, k);
        p += k;
        if (*p == ']')
            break;
    }
    return sum;
}

static void read_profile_node(ForeignReader *x, Where w, const char *line, const Word *word)
{
    ForeignNode *node = PUSH(&x->f->node);
    *node = (ForeignNode){.id = strf("%.*s", word[0].n, word[0].at), .saved = SAVED_OUTPUT, .loc = loc_at(w, 1)};
    node->name = node->id;
    struct { const char *key; const char *at; size_t n; } q[] = {
        {"forward_compute_time", NULL, 0}, {"backward_compute_time", NULL, 0}, {"activation_size", NULL, 0},
        {"parameter_size", NULL, 0}};
    Loc at[4];
    for (int i = 0; i < 4; i++) {
        q[i].at = quantity(w, &word[2], q[i].key, &q[i].n);
        at[i] = loc_at(w, (int)(q[i].at - line) + 1);
    }
    node->time.forward = time_of(at[0], q[0].key, q[0].at, q[0].n);
    node->time.backward = time_of(at[1], q[1].key, q[1].at, q[1].n);
    node->output = sizes(w, at[2], q[2].at, q[2].n);
    node->params = size_of(at[3], q[3].key, q[3].at, q[3].n);
    *PUSH(&x->about) = strf("%.*s", word[1].n, word[1].at);
}

static void read_profile_line(ForeignReader *x, Where w, const char *line)
{
    Word word[5];
    bool edge = line[0] == '\t';
    int n = cut(line + edge, word, 5);
    if (edge && n == 2)
        *PUSH(&x->edge) = (ForeignEdge){strf("%.*s", word[0].n, word[0].at), strf("%.*s", word[1].n, word[1].at),
                                        loc_at(w, word[0].col + 1), loc_at(w, word[1].col + 1)};
    else if (!edge && (n == 3 || (n == 4 && !strncmp(word[3].at, "stage_id=", 9))))
        read_profile_node(x, w, line, word);
    else
        err(loc_at(w, 1), edge ? "TAB SRC -- DST" : "ID -- description -- forward_compute_time=F, ...",
            edge ? "an edge has two ends" : "a line that is neither a node nor an edge");
}

/* Lines end at a zero from here on, so the text may hold none. */
static void check_zeros(int file, const char *text, size_t size)
{
    const char *zero = memchr(text, 0, size);
    Where w = {file, 1};
    int col = 1;
    for (const char *p = text; zero && p < zero; p++, col++)
        if (*p == '\n') {
            w.line++;
            col = 0;
        }
    if (zero)
        err(loc_at(w, col), "is it a text file?", "a zero byte, which no text has");
}

static void read_profile(ForeignReader *x, const char *path)
{
    size_t size;
    char *text = file_read(path, "--from names a graph or a plan: docs/text.md", &size);
    Where w = {diag_file(path, text, size), 0};
    check_zeros(w.file, text, size);
    for (char *p = text, *end; *p; p = end) {
        end = p + strcspn(p, "\n");
        if (*end)
            *end++ = 0;
        w.line++;
        p[strcspn(p, "\r")] = 0;
        if (*p)
            read_profile_line(x, w, p);
    }
}

/* ---- nodes and edges ----------------------------------------------------------------------------------------------- */

static Names index_nodes(const Foreign *f)
{
    Names ids = {0};
    for (int i = 0; i < f->node.n; i++) {
        int other = names_get(&ids, f->node.at[i].id);
        if (other >= 0)
            err(f->node.at[i].loc, strf("line %d", f->node.at[other].loc.line), "a second node %s", f->node.at[i].id);
        names_put(&ids, f->node.at[i].id, i);
    }
    return ids;
}

static int node_of(const Foreign *f, const Names *ids, const char *id, Loc at)
{
    int i = names_get(ids, id);
    if (i >= 0)
        return i;
    Strs known = {0};
    for (int k = 0; k < f->node.n && f->node.n <= 10000; k++)
        *PUSH(&known) = f->node.at[k].id;
    err(at, did_you_mean(id, known.at, known.n, NULL), "no node is called '%s'", id);
}

/* A column of times for every kind that a row names. */
static void fill_times(ForeignReader *x, const Names *ids)
{
    Foreign *f = x->f;
    Names kinds = {0};
    for (int i = 0; i < x->on.n; i++)
        if (names_get(&kinds, x->on.at[i].on) < 0) {
            names_put(&kinds, x->on.at[i].on, f->kind.n);
            *PUSH(&f->kind) = x->on.at[i].on;
        }
    for (int i = 0; i < f->node.n; i++)
        for (int k = 0; k < f->kind.n; k++)
            *PUSH(&f->node.at[i].on) = f->node.at[i].time;
    bool *given = alloc((size_t)f->node.n * (size_t)f->kind.n + 1);
    for (EACH(const ForeignOn, r, x->on)) {
        int node = node_of(f, ids, r->node, r->at), k = names_get(&kinds, r->on);
        ForeignTime *t = &f->node.at[node].on.at[k];
        if (given[node * f->kind.n + k])
            err(r->at, NULL, "a second time of %s on %s", r->node, r->on);
        given[node * f->kind.n + k] = true;
        t->forward = r->time.forward < 0 ? t->forward : r->time.forward;
        t->backward = r->time.backward < 0 ? t->backward : r->time.backward;
    }
}

static void connect(ForeignReader *x)
{
    Foreign *f = x->f;
    Names ids = index_nodes(f);
    for (EACH(const ForeignEdge, e, x->edge)) {
        int a = node_of(f, &ids, e->from, e->at), b = node_of(f, &ids, e->to, e->to_at);
        for (int k = 0; k < f->node.at[a].to.n; k++)
            if (f->node.at[a].to.at[k] == b)
                err(e->at, NULL, "an edge from %s to %s is there twice", e->from, e->to);
        *PUSH(&f->node.at[a].to) = b;
        *PUSH(&f->node.at[b].from) = a;
    }
    fill_times(x, &ids);
}

/* Sources that stand for data go first, so that a sink is what is one then. */
static void leave_out(ForeignReader *x, const char *about, bool source)
{
    Foreign *f = x->f;
    int *stay = alloc(sizeof *stay * (size_t)(f->node.n + 1)), n = 0;
    for (int i = 0; i < f->node.n; i++) {
        const ForeignNode *node = &f->node.at[i];
        bool end = (source ? node->from.n : node->to.n) == 0;
        if (end && !strncmp(x->about.at[i], about, strlen(about)))
            continue;
        x->about.at[n] = x->about.at[i];
        stay[n++] = i;
    }
    foreign_pick(f, stay, n);
}

/* ---- names -------------------------------------------------------------------------------------------------------- */

static const char *legal_name(const char *id)
{
    return name_fault(id) ? text_plain(strf("n_%.40s", id), C_WORD) : id;
}

/* ---- the file ------------------------------------------------------------------------------------------------------ */

static bool begins(const char *path, const char *with, bool anywhere)
{
    char line[4096] = "";
    FILE *f = fopen(path, "r");
    if (!f)
        return false;
    size_t n = fread(line, 1, sizeof line - 1, f);
    line[n] = 0;
    fclose(f);
    return anywhere ? strstr(line, with) != NULL : !strncmp(line, with, strlen(with));
}

static bool is_own(const char *path)
{
    return begins(path, "dpgen-nodes ", false);
}

static bool is_tmpc(const char *path)
{
    return begins(path, "{", false) && begins(path, "TMPCs", true);
}

bool foreign_is(const char *path)
{
    bool ours = begins(path, "dpgen-", false);       /* a graph or a plan, whatever its name */
    return is_own(path)
        || (!ours && (pipeedge_is(path) || is_tmpc(path) || begins(path, "forward_compute_time=", true)));
}

Foreign *foreign_read(const char *path)
{
    Foreign *f = alloc(sizeof *f);
    *f = (Foreign){.optimizer = "sgd", .batch = 1, .micro = 8};
    ForeignReader x = {.f = f};
    if (is_own(path)) {
        read_own(&x, path);
        connect(&x);
    } else if (pipeedge_is(path)) {
        pipeedge_read(f, path);
    } else {
        const char *from = strrchr(path, '/');
        from = from ? from + 1 : path;
        size_t n = strspn(from, C_WORD "-");
        f->name = n > 0 && n < 64 ? strf("%.*s", (int)n, from) : "graph";
        f->head = (Loc){diag_file(path, NULL, 0), -1, 0};
        if (is_tmpc(path)) {
            tmpc_read(f, path);
        } else {
            read_profile(&x, path);
            connect(&x);
            leave_out(&x, "Input", true);
            leave_out(&x, "__getitem__", false);
        }
    }
    if (!f->node.n)
        fail(EXIT_MODEL, "%s: the graph has no nodes", path);
    foreign_sort(f);
    Names taken = {0};
    for (int i = 0; i < f->node.n; i++) {
        const char *name = legal_name(f->node.at[i].name);
        for (int k = 2; names_get(&taken, name_as_c(name)) >= 0; k++)
            name = strf("%s_%d", legal_name(f->node.at[i].name), k);
        names_put(&taken, name_as_c(name), i);
        f->node.at[i].name = name;
    }
    return f;
}

/* The model file that such a graph has none of: what stays are the ways to train and to plan. */
Node *foreign_model(const char *path, const char *name, int64_t batch, int64_t micro, int64_t groups, const char *optimizer,
                    const char *devices)
{
    const char *how = !strcmp(optimizer, "adamw") ? "{type: adamw}"
        : !strcmp(optimizer, "momentum") ? "{type: sgd, momentum: 0.9}" : "{type: sgd}";
    const char *text = strf("dpgen: 1\n"
        "model: {name: %s, inputs: {}, graph: [{op: Opaque}], loss: loss, outputs: loss}\n"
        "train: {batch: {micro: %" PRId64 ", global: %" PRId64 ", groups: %" PRId64 "}, optimizer: %s}\n"
        "%s"
        "plan: {schedule: 1f1b, stages: %s}\n", name, batch, batch * micro, groups, how,
        devices ? devices : "devices: [{kind: cpu, count: 64}]\n", devices ? "auto" : "1");
    return load_made(path, text);
}
