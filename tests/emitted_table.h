/* SPDX-License-Identifier: Apache-2.0
 *
 * emitted_table.h: the end of a stage, what the runtime knows of it.  A part of emitted.c.
 *
 * A row of a parameter names each state by its offset.  Its shape gives the bytes that each must have; no offset stands
 * twice.  The last call has the routines, the sizes and the counts, which are those of the text above.
 */
typedef struct { int64_t elements, first, bits; int cut, rows, times; } Table;     /* but rows, times: of the row being read */

/* Words with a blank between them. */
static void wants(Reader *r, const char *words)
{
    for (char word[16]; *words; words += *words == ' ') {
        int n = (int)strcspn(words, " ");
        snprintf(word, sizeof word, "%.*s", n, words);
        want(r, word);
        words += n;
    }
}

/* AT(OFFSET): of `size` bytes an element. */
static void state(Reader *r, Name field, const Table *t)
{
    int copy = same(field, (Name){"copy", 4});
    if (take(r, "EMPTY"))
        return;
    wants(r, "AT (");
    Symbol *s = known(r, name(r), OFFSET, "an offset");
    want(r, ")");
    if (!s)
        return;
    if (s->used++)
        bad(r, r->at, "%.*s is a second state", s->name.n, s->name.at);
    int64_t few = t->bits == 8 ? t->elements + 4 * t->first : (t->elements + 63) / 64 * 36;     /* records, rt/quantize.h */
    int64_t whole = !copy ? 4 * t->elements : t->bits ? few : 2 * t->elements;
    if (s->host || (s->bytes != whole && !(t->cut && !copy && s->bytes <= whole)))
        bad(r, r->at, "%.*s has %lld bytes, its parameter %lld", s->name.n, s->name.at, (long long)s->bytes, (long long)whole);
}

static void decimal(Reader *r)
{
    char *end;
    strtod(r->text.at, &end);
    if (end == r->text.at || isalpha((unsigned char)*r->text.at))
        stop(r, "a decimal");
    r->p = end;
    next(r);
}

/* ZEROS, ONES, NORMAL(MEAN, DEVIATION), UNIFORM(FROM, TO), SINES(THETA, LESS), VALUES(NUMBER, ...) */
static void start(Reader *r)
{
    if (take(r, "ZEROS") || take(r, "ONES"))
        return;
    if (take(r, "VALUES")) {
        want(r, "(");
        do
            decimal(r);
        while (take(r, ","));
        want(r, ")");
        return;
    }
    if (!take(r, "NORMAL") && !take(r, "SINES"))
        want(r, "UNIFORM");
    want(r, "(");
    decimal(r);
    want(r, ",");
    decimal(r);
    want(r, ")");
}

/* {NUMBER, ...}; the product. */
static int64_t list(Reader *r, int *n, int64_t *first)
{
    int64_t all = 1;
    *n = 0;
    want(r, "{");
    while (!is(r, "}")) {
        int64_t one = product(r);
        all *= one;
        *first = (*n)++ ? *first : one;
        if (!take(r, ","))
            break;
    }
    want(r, "}");
    return all;
}

static Name field(Reader *r)
{
    want(r, ".");
    Name n = name(r);
    want(r, "=");
    return n;
}

/* {.name = TEXT, .shape = {..}, .start = ..., .param = AT(..), ...} */
static void parameter(Reader *r, Table *t)
{
    static const char *const states[] = {"param", "copy", "grad", "moment1", "moment2", "centre", "drift"};
    t->elements = 1;
    t->bits = t->cut = 0;
    do {
        Name f = field(r);
        int is_state = 0, n;
        int64_t first;
        for (size_t i = 0; i < sizeof states / sizeof *states; i++)
            is_state |= same(f, (Name){states[i], (int)strlen(states[i])});
        if (is_state)
            state(r, f, t);
        else if (same(f, (Name){"name", 4}))
            string(r);
        else if (same(f, (Name){"shape", 5}))
            t->elements = list(r, &n, &t->first);
        else if (same(f, (Name){"start", 5}))
            start(r);
        else if (is(r, "{"))
            list(r, &n, &first);
        else if (take(r, "FILES_GET") || take(r, "FILES_DO_NOT") || take(r, "FILES_MAY"))
            continue;
        else if (same(f, (Name){"outer", 5}))
            t->elements = product(r);               /* the shape is that of all devices of the stage */
        else if (same(f, (Name){"bits", 4}))
            t->bits = product(r);
        else if (same(f, (Name){"room", 4}))
            t->elements *= product(r);
        else
            t->cut |= product(r) && same(f, (Name){"cut", 3});
    } while (take(r, ","));
}

static void parameters(Reader *r, Table *t)
{
    for (want(r, "{"); ; t->rows++) {
        want(r, "{");
        if (take(r, "0"))
            break;
        parameter(r, t);
        want(r, "}");
        want(r, ",");
    }
    wants(r, "} } ;");
}

/* Of a routine without parameters that stands above; 0: there is none. */
static void known_routine(Reader *r)
{
    Symbol *s = find(r, r->text);
    if (!is(r, "0") && (s->kind != ROUTINE || s->n != 0 || s->in_rt))
        bad(r, r->at, "%.*s is no list of this stage", r->text.n, r->text.at);
    next(r);
}

/* static const int64_t NAME[] = {..}, or static void (*const piece[])(Stage *) = {..} */
static void array(Reader *r, Table *t)
{
    if (take(r, "void")) {
        wants(r, "( * const piece [ ] ) ( Stage * ) = {");
        while (!is(r, "}")) {
            known_routine(r);
            if (!take(r, ","))
                break;
        }
        want(r, "}");
    } else {
        wants(r, "const int64_t");
        int n, predicted = is(r, "predicted");
        int64_t first;
        name(r);
        wants(r, "[ ] =");
        list(r, &n, &first);
        t->times = predicted ? n : t->times;
    }
    want(r, ";");
}

/* A number of the last call is that of the text. */
static void expect(Reader *r, Name f, const char *what, int64_t value, int64_t is)
{
    if (same(f, (Name){what, (int)strlen(what)}) && value != is)
        bad(r, r->at, "%s is %lld here, not %lld", what, (long long)is, (long long)value);
}

/* stage_take(to, &(const StageInfo){FIELD, ...}); */
static void take_stage(Reader *r, const Table *t)
{
    int64_t actions = 0, eval = 0;
    wants(r, "stage_take ( to , & ( const StageInfo ) {");
    do {
        Name f = field(r);
        Symbol *s = r->token == NAME ? find(r, r->text) : NULL;
        if (*r->text.at == '"') {
            string(r);
        } else if (s && s->kind == ROUTINE) {
            known_routine(r);
        } else if (s && (s->kind == OFFSET || s->kind == SIZE)) {
            next(r);
        } else if (r->token == NAME && !(s && s->kind == DIM)) {
            if (!is(r, "parameter") && !is(r, "predicted") && !is(r, "pace") && !is(r, "piece") && !is(r, "NOWHERE"))
                bad(r, r->at, "%.*s is no name of this stage", r->text.n, r->text.at);
            next(r);
        } else {
            int64_t value = product(r);
            expect(r, f, "parameters", value, t->rows);
            actions = same(f, (Name){"actions", 7}) ? value : actions;
            eval = same(f, (Name){"eval_actions", 12}) ? value : eval;
        }
    } while (take(r, ","));
    if (actions + eval != r->actions || t->times != 2 * actions)
        bad(r, r->at, "the table has %lld actions and %lld of an evaluation, and %d times; there are %d", (long long)actions,
            (long long)eval, t->times, r->actions);
    wants(r, "} ) ;");
}

static void ending(Reader *r)
{
    Table t = {0};
    Name own = name(r);
    if (own.n < 6 || memcmp(own.at, "stage", 5) || strspn(own.at + 5, "0123456789") != (size_t)own.n - 5)
        bad(r, r->at, "%.*s is not static", own.n, own.at);
    wants(r, "( Stages * to ) { const Parameter parameter [ ] =");
    parameters(r, &t);
    while (take(r, "static"))
        array(r, &t);
    take_stage(r, &t);
    want(r, "}");
    if (r->token != END)
        bad(r, r->at, "the table is not the end");
    r->ended = 1;
}
