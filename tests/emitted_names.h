/* SPDX-License-Identifier: Apache-2.0
 *
 * emitted_names.h: the names of a stage, by rt.h and stageN.h, and what a place or a slot may be.  A part of emitted.c.
 */

/* ---- the table ------------------------------------------------------------------------------------------ */

/* The entry of a name, or an empty one where it would be; open addressing, FNV-1a. */
static Symbol *find(Reader *r, Name n)
{
    uint64_t h = 14695981039346656037u;
    for (int i = 0; i < n.n; i++)
        h = (h ^ (unsigned char)n.at[i]) * 1099511628211u;
    size_t i = h & (r->symbols - 1);
    while (r->symbol[i].name.n && !same(r->symbol[i].name, n))
        i = (i + 1) & (r->symbols - 1);
    return &r->symbol[i];
}

static Symbol *define(Reader *r, Name n, Kind kind)
{
    Symbol *s = find(r, n);
    if (s->kind != NOTHING || same(n, (Name){"st", 2}))
        bad(r, r->at, "%.*s is defined twice", n.n, n.at);
    s->name = n;
    s->kind = kind;
    return s;
}

static Symbol *parameter_of(Reader *r, Name n)
{
    Symbol *s = find(r, n);
    return s->inside == r->routine ? s : NULL;
}

static Symbol *known(Reader *r, Name n, Kind kind, const char *what)
{
    Symbol *s = find(r, n);
    if (s->kind == kind)
        return s;
    bad(r, r->at, "%.*s is not %s of the header", n.n, n.at, what);
    return NULL;
}

static void *copy_of(const void *at, size_t n)
{
    void *to = malloc(n + 1);
    if (!to)
        abort();
    return memcpy(to, at, n);
}

/* Parameters behind `st`: their names, kinds, and the slots that each may be. */
static void take_parameters(Symbol *s, const Name *name, const char *sig, const Slots *takes, int n)
{
    free(s->param);
    free(s->takes);
    free(s->sig);
    s->n = n;
    s->param = copy_of(name, sizeof *name * (size_t)n);
    s->takes = copy_of(takes, sizeof *takes * (size_t)n);
    s->sig = copy_of(sig, (size_t)n);
}

/* Prototypes of rt.h: "void NAME(Stage *st, TYPE NAME, ...);" at the start of a line. */
static void prototypes(Reader *r, const char *text)
{
    static const Slots any[MAXARGS];
    for (const char *p = text; (p = strstr(p, "\nvoid ")) != NULL; ) {
        Name name[MAXARGS];
        char sig[MAXARGS], changes[MAXARGS];
        Symbol *s = define(r, (Name){p + 6, (int)strcspn(p + 6, "(")}, ROUTINE);
        const char *end = strchr(p, ')');
        int n = 0;
        for (p = strchr(p, ','); p && p < end && n < MAXARGS; p = strchr(p + 1, ',')) {
            size_t len = strcspn(p + 1, ",)"), word = len;
            while (isalnum((unsigned char)p[word]) || p[word] == '_')
                word--;
            name[n] = (Name){p + 1 + word, (int)(len - word)};
            changes[n] = !strncmp(p + 1, " float *", 8) || !strncmp(p + 1, " double *", 9);
            sig[n++] = !strncmp(p + 1, " const char *", 13) ? 's' : memchr(p + 1, '*', len) ? 'p' :
                       !strncmp(p + 1, " float ", 7) ? 'f' :
                       !strncmp(p + 1, " size_t ", 8) ? 'h' : 'i';
        }
        take_parameters(s, name, sig, any, n);
        s->changes = copy_of(changes, (size_t)n);
        s->in_rt = 1;
        p = end;
    }
}

/* The comment behind the token. */
static Name note_behind(const Reader *r)
{
    const char *p = r->p + strspn(r->p, " \n"), *end = strncmp(p, "/*", 2) ? NULL : strstr(p, "*/");
    return end ? (Name){p + 2, (int)(end - p) - 2} : (Name){"", 0};
}

/* ---- numbers --------------------------------------------------------------------------------------------- */

/* DIM, or a product of them behind an integer: D, B*T, 3*D.  Dims are ints, so a larger product begins with a long: 4L*V*D. */
static int64_t product(Reader *r)
{
    int is_long = r->token == INTEGER && r->text.at[r->text.n - 1] == 'L', more = 1;
    int64_t value = 1;
    if (r->token == INTEGER) {
        value = integer(r);
        more = take(r, "*");
    }
    for (; more; more = take(r, "*")) {
        Name n = r->text;
        Symbol *s = r->token == NAME ? find(r, n) : NULL;
        if (!s || s->kind != DIM)
            stop(r, "a size");
        next(r);
        value *= s->value;
        if (!is_long && value > INT_MAX)
            bad(r, r->at, "this product does not fit an int");
    }
    return value;
}

/* static const float NAME = FLOAT, and its decimal behind; static const int64_t NAME = INTEGER. */
static void constants(Reader *r, int whole)
{
    do {
        Symbol *s = define(r, name(r), whole ? LONG : CONSTANT);
        want(r, "=");
        if (whole) {
            s->value = integer(r);
            continue;
        }
        if (r->token != FLOAT)
            stop(r, "a float");
        float value = strtof(r->text.at, NULL);
        Name text = (next(r), note_behind(r));
        if (text.n == 0 || strtof(text.at, NULL) != value)
            bad(r, r->at, "%.*s has another decimal", s->name.n, s->name.at);
    } while (take(r, ","));
    want(r, ";");
}

/* ---- stageN.h -------------------------------------------------------------------------------------------- */

/* enum { NAME = INTEGER, ... }: dims, and H_ handles, which ascend. */
static void numbers(Reader *r)
{
    int64_t last = -1;
    want(r, "{");
    do {
        Name n = name(r);
        int handle = n.n > 2 && !memcmp(n.at, "H_", 2);
        Symbol *s = define(r, n, handle ? HANDLE : DIM);
        want(r, "=");
        s->value = integer(r);
        if (s->value < INT_MIN || s->value > INT_MAX)
            bad(r, r->at, "%.*s does not fit its type", n.n, n.at);
        if (handle && s->value <= last)
            bad(r, r->at, "%.*s is not above the handle before it", n.n, n.at);
        last = handle ? s->value : last;
    } while (take(r, ","));
    want(r, "}");
    want(r, ";");
}

static const char *space(const char *p) { return p + strspn(p, " "); }

static int word_end(const char *p)
{
    int n = 0;
    while (isalnum((unsigned char)p[n]) || p[n] == '_')
        n++;
    return n;
}

/* "[V, 672]": the product; 0: it is none. */
static int64_t shape(Reader *r, const char **at)
{
    int64_t product = 1;
    const char *p = space(*at + 1);
    while (*p != ']') {
        Name n = {p, word_end(p)};
        int is_number = isdigit((unsigned char)*p);
        Symbol *s = is_number ? NULL : known(r, n, DIM, "a size");
        product *= is_number ? strtoll(p, NULL, 10) : s ? s->value : 0;
        p = space(p + n.n);
        if (n.n == 0 || (*p != ',' && *p != ']' && *p != '*'))
            return 0;
        if (*p != ']' && *(p = space(p + 1)) == ']')
            return 0;
    }
    *at = p + 1;
    return product;
}

/* BYTES TYPE SHAPE [FIRST,LAST] WORDS, or BYTES scratch [FIRST,LAST] WORDS; WORDS may end with ", slots POOL". */
static void row(Reader *r, Symbol *s, Name note)
{
    static const struct { const char *name; int bytes; } types[] = {
        {"f32", 4}, {"bf16", 2}, {"i32", 4}, {"f64", 8}, {"u8", 1}, {"scratch", 0}};
    char *end;
    const char *p = space(note.at), *pool;
    int64_t product = 0;
    if (note.n == 0 || !isdigit((unsigned char)*p)) {
        bad(r, r->at, "%.*s has no row of bytes, type and shape", s->name.n, s->name.at);
        return;
    }
    s->bytes = strtoll(p, &end, 10);
    p = space(end);
    Name type = {p, word_end(p)};
    p = space(p + type.n);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (same(type, (Name){types[i].name, (int)strlen(types[i].name)}))
            product = types[i].bytes ? *p == '[' ? types[i].bytes * shape(r, &p) : 0 : s->bytes;
    if (product != s->bytes)
        bad(r, r->at, "%.*s has %lld bytes, its shape %lld", s->name.n, s->name.at, (long long)s->bytes, (long long)product);
    for (pool = p; pool < note.at + note.n && strncmp(pool, ", slots ", 8); )
        pool++;
    if (pool < note.at + note.n)
        s->pool = (Name){pool + 8, word_end(pool + 8)};
}

/* NAME [N] = { INTEGER, ... }: behind the offset of a buffer, its slots. */
static void table(Reader *r, Name n)
{
    Symbol *s = define(r, n, TABLE);
    s->n = 0;
    int64_t count = integer(r), at[SLOTS];
    want(r, "]");
    want(r, "=");
    want(r, "{");
    do {
        if (s->n == SLOTS)
            stop(r, "fewer slots");
        at[s->n++] = integer(r);
    } while (take(r, ","));
    if (s->n != count)
        bad(r, r->at, "%.*s has %d slots, not %lld", n.n, n.at, s->n, (long long)count);
    free(s->slot);
    s->slot = copy_of(at, sizeof *at * (size_t)s->n);
    want(r, "}");
    want(r, ";");
}

/* The size of an arena and the offsets in it; or a table of slots. */
static void offsets(Reader *r)
{
    Name total = name(r);
    int host = same(total, (Name){"host_bytes", 10});
    if (take(r, "[")) {
        table(r, total);
        return;
    }
    if (!host && !same(total, (Name){"arena_bytes", 11}))
        bad(r, r->at, "arena_bytes or host_bytes comes first");
    want(r, "=");
    r->total[host] = integer(r);
    define(r, total, SIZE);
    while (take(r, ",")) {
        Symbol *s = define(r, name(r), OFFSET);
        want(r, "=");
        s->value = integer(r);
        s->host = host;
        s->line = r->at;
        row(r, s, note_behind(r));
    }
    want(r, ";");
}

static Symbol *table_of(Reader *r, Name pool)
{
    char text[300];
    int n = snprintf(text, sizeof text, "%.*s_slot", pool.n, pool.at);
    Symbol *s = n < (int)sizeof text ? find(r, (Name){text, n}) : NULL;
    return s && s->kind == TABLE ? s : NULL;
}

/* How far the slots of a buffer may lie from its offset. */
static int64_t room_of(const Reader *r, const Symbol *x) { return r->total[x->host] - x->value - x->bytes; }

/* A buffer without slots lies in its arena; of one with slots, each that it is used in. */
static void check_bounds(Reader *r)
{
    for (size_t i = 0; i < r->symbols; i++) {
        const Symbol *s = &r->symbol[i];
        if (s->kind != OFFSET)
            continue;
        if (s->pool.n && !table_of(r, s->pool))
            bad(r, s->line, "%.*s has slots %.*s, without a table", s->name.n, s->name.at, s->pool.n, s->pool.at);
        if (s->value < 0 || room_of(r, s) < 0)
            bad(r, s->line, "%.*s ends behind its arena", s->name.n, s->name.at);
    }
}

static void header(Reader *r)
{
    if (strncmp(r->p, "/*", 2))
        stop(r, "a comment at the start");
    for (next(r); r->token != END; )
        if (take(r, "enum")) {
            numbers(r);
        } else {
            want(r, "static");
            want(r, "const");
            if (is(r, "float") || is(r, "int64_t")) {
                constants(r, !take(r, "float") && (next(r), 1));
                continue;
            }
            want(r, "size_t");
            offsets(r);
        }
    check_bounds(r);
}

/* ---- places ---------------------------------------------------------------------------------------------- */

/* Slot `k` is one of those: the number itself, or a parameter, which from now on is one of them. */
static void check_slot(Reader *r, int line, Name what, int64_t k, Symbol *parameter, Slots of)
{
    if (!of.table)
        return;
    if (parameter && parameter->is.table && parameter->is.table != of.table)
        bad(r, line, "%.*s chooses from two pools", parameter->name.n, parameter->name.at);
    if (parameter && (!parameter->is.table || of.room < parameter->is.room))
        parameter->is = of;
    if (!parameter && (k < 0 || k >= of.table->n))
        bad(r, line, "%.*s has no slot %lld in '%.*s'", what.n, what.at, (long long)k, of.table->name.n, of.table->name.at);
    else if (!parameter && of.table->slot[k] > of.room)
        bad(r, line, "%.*s ends behind its arena in slot %lld", what.n, what.at, (long long)k);
}

/* The number of a slot: a literal, or a parameter, which it returns. */
static Symbol *slot_of(Reader *r, int64_t *k)
{
    *k = 0;
    if (r->token == INTEGER) {
        *k = integer(r);
        return NULL;
    }
    Name n = name(r);
    Symbol *s = parameter_of(r, n);
    if (!s)
        bad(r, r->at, "%.*s is not a parameter of this routine", n.n, n.at);
    return s;
}

/* A(x), A(x + pool_slot[k]), S(pool, x), and H( as A(.  A literal may come last, but in H(: bytes further, in the buffer. */
static void address(Reader *r, char form, Call *c)
{
    const Symbol *table = NULL;
    Symbol *parameter = NULL;
    Name pool = {"", 0};
    want(r, "(");
    c->slot = 0;
    if (form == 'S') {
        pool = r->text;
        table = table_of(r, pool);
        if (!table)
            bad(r, r->at, "S(%.*s, ..) without a table %.*s_slot", pool.n, pool.at, pool.n, pool.at);
        parameter = slot_of(r, &c->slot);
        want(r, ",");
    }
    c->place = name(r);
    Symbol *x = known(r, c->place, OFFSET, "an offset");
    int more = take(r, "+");
    if (more && form != 'S' && r->token == NAME) {
        Name n = name(r);
        pool = (Name){n.at, n.n > 5 ? n.n - 5 : 0};
        table = known(r, n, TABLE, "a table of slots");
        want(r, "[");
        parameter = slot_of(r, &c->slot);
        want(r, "]");
        more = take(r, "+");
    }
    int64_t further = more ? integer(r) : 0;
    want(r, ")");
    if (!x)
        return;
    if (more && (form == 'H' || further <= 0 || further >= x->bytes || further % 4))
        bad(r, r->at, "no element of %.*s is %lld bytes further", x->name.n, x->name.at, (long long)further);
    c->further = c->first ? c->further : further;
    if (!same(pool, x->pool))
        bad(r, r->at, "%.*s has slots '%.*s', not '%.*s'", x->name.n, x->name.at, x->pool.n, x->pool.at, pool.n, pool.at);
    check_slot(r, r->at, x->name, c->slot, parameter, (Slots){table, room_of(r, x)});
    if (x->host != (form == 'H'))
        bad(r, r->at, "%.*s is of the other memory", x->name.n, x->name.at);
    c->first = c->first ? c->first : x;
}
