/* SPDX-License-Identifier: Apache-2.0
 *
 * emitted_call.h: the arguments of a call, against the prototype and the other calls of its handle.  A part of emitted.c.
 */
static void float_argument(Reader *r, Call *c, int i)
{
    float value = strtof(r->text.at, NULL);
    c->sig[i] = 'f';
    next(r);
    Name decimal = take_note(r);
    if (decimal.n == 0 || strtof(decimal.at, NULL) != value)
        bad(r, r->at, "this float has another decimal");
}

static void word_argument(Reader *r, Call *c, int i)
{
    char form = *r->text.at;
    Name n = name(r);
    const Symbol *s = find(r, n);
    if (is(r, "(")) {
        if (n.n != 1 || !strchr("ASH", form))
            stop(r, "A, S or H");
        c->sig[i] = form == 'H' ? 'h' : 'p';
        address(r, form, c);
        return;
    }
    c->sig[i] = s->kind == HANDLE ? 'o' : s->kind == CONSTANT ? 'F' : s->kind == LONG ? 'I' : 'n';
    c->value[i] = s->value;
    c->word[i] = n;
    if (c->sig[i] == 'n' && !parameter_of(r, n))
        bad(r, r->at, "%.*s is not a parameter of this routine", n.n, n.at);
}

static void argument(Reader *r, Call *c)
{
    if (c->n == MAXARGS)
        stop(r, "fewer arguments");
    int i = c->n++;
    c->label[i] = take_note(r);
    c->word[i] = (Name){"", 0};
    if (r->token == FLOAT) {
        float_argument(r, c, i);
    } else if (*r->text.at == '"') {
        string(r);
        c->sig[i] = 's';
    } else if (r->token == INTEGER || (r->token == NAME && find(r, r->text)->kind == DIM && *r->p != '(')) {
        int literal = r->token == INTEGER;
        c->value[i] = product(r);
        c->sig[i] = literal && !c->value[i] ? '0' : 'i';
    } else {
        word_argument(r, c, i);
    }
    if (c->label[i].n && strchr("hnosFI", c->sig[i]))
        bad(r, r->at, "a label stands before a literal, not inside a call elsewhere");
}

/* A constant has its parameter's name in capitals, and a number behind it where several differ; a site's is SITE_WHAT. */
static int is_named(Name constant, Name parameter, int whole)
{
    if (constant.n < parameter.n)
        return 0;
    for (int i = 0; i < parameter.n; i++)
        if (toupper((unsigned char)parameter.at[i]) != constant.at[i])
            return 0;
    int i = parameter.n + 1;
    if (constant.n == parameter.n || constant.at[parameter.n] != '_')
        return constant.n == parameter.n && !whole;
    while (!whole && i < constant.n && isdigit((unsigned char)constant.at[i]))
        i++;
    return whole ? constant.n > i : i == constant.n && i > parameter.n + 1;
}

/* What a call adds to, by its prototype: `onto`, `into`, and where it has an `acc`, the float gradients that it writes. */
static int is_added_to(const Symbol *s, int i)
{
    int acc = 0;
    for (int k = 0; k < s->n; k++)
        acc |= same(s->param[k], (Name){"acc", 3});
    return same(s->param[i], (Name){"onto", 4}) || (same(s->param[i], (Name){"into", 4}) && s->changes && s->changes[i]) ||
           (acc && s->changes && s->changes[i] && *s->param[i].at == 'd');
}

/* `h` is a handle of the call; `h_x` of the call of that name with _x behind it, where one call does the work of two. */
static int is_handle(Name param)
{
    return *param.at == 'h' && (param.n == 1 || (param.n == 3 && param.at[1] == '_'));
}

/* A literal has the name of its parameter, unless it is the only one; a slot has room in its arena. */
static void check_argument(Reader *r, const Symbol *s, const Call *c, int i, int line)
{
    static const char *const allowed[] = {['p'] = "p0", ['i'] = "i0noI", ['f'] = "fF", ['h'] = "h", ['s'] = "s"};
    int numbers = 0;
    for (int k = 0; k < s->n; k++)
        numbers += s->sig[k] != 's';
    int literal = strchr("i0f", c->sig[i]) != NULL;
    Symbol *own = c->sig[i] == 'n' ? parameter_of(r, c->word[i]) : NULL;
    if (!strchr(allowed[(int)s->sig[i]], c->sig[i]))
        bad(r, line, "argument %d of %.*s is of another kind", i + 1, c->name.n, c->name.at);
    if ((c->sig[i] == 'o') != (s->in_rt && is_handle(s->param[i])))
        bad(r, line, "argument %d of %.*s: a handle is H_ and a name, and nothing else is", i + 1, c->name.n, c->name.at);
    if (strchr("FI", c->sig[i]) && !is_named(c->word[i], s->param[i], c->sig[i] == 'I'))
        bad(r, line, "argument %d of %.*s is '%.*s', and no constant of that", i + 1, c->name.n, c->name.at, s->param[i].n,
            s->param[i].at);
    if (r->labelled && c->sig[i] == 'p' && (c->label[i].n || is_added_to(s, i)) && !same(c->label[i], s->param[i]))
        bad(r, line, "argument %d of %.*s, an address, is '%.*s', not '%.*s'", i + 1, c->name.n, c->name.at, s->param[i].n,
            s->param[i].at, c->label[i].n, c->label[i].at);
    if (literal && (c->label[i].n || numbers > 1) && !same(c->label[i], s->param[i]))
        bad(r, line, "argument %d of %.*s is '%.*s', not '%.*s'", i + 1, c->name.n, c->name.at, s->param[i].n, s->param[i].at,
            c->label[i].n, c->label[i].at);
    if (literal || own)
        check_slot(r, line, c->name, c->value[i], own, s->takes[i]);
    if (literal && s->in_rt && same(s->param[i], (Name){"bytes", 5}) && c->first && c->value[i] > c->first->bytes - c->further)
        bad(r, line, "%.*s has %lld bytes, not %lld", c->first->name.n, c->first->name.at,
            (long long)(c->first->bytes - c->further),
            (long long)c->value[i]);
}

/* The value of a literal integer that has this name; -1: there is none. */
static int64_t literal_of(const Call *c, Name label)
{
    for (int i = 0; i < c->n; i++)
        if (same(c->label[i], label) && (c->sig[i] == 'i' || c->sig[i] == '0'))
            return c->value[i];
    return -1;
}

/* One of two names is the end of the other, behind a `_`. */
static int is_end_of(Name a, Name b)
{
    Name longer = a.n > b.n ? a : b, end = a.n > b.n ? b : a;
    int before = longer.n - end.n;
    return !memcmp(longer.at + before, end.at, (size_t)end.n) && (before == 0 || longer.at[before - 1] == '_');
}

/* Every call of a handle is the same function of the same sizes; open_ and its name opens it for these. */
static void check_handle(Reader *r, const Symbol *s, const Call *c, int i, int line)
{
    Symbol *h = find(r, c->word[i]);
    Name name = c->name;
    int opens = name.n > 5 && !memcmp(name.at, "open_", 5);
    if (same(name, (Name){"open_product_algorithm", 22}))
        return;
    if (opens)
        name = (Name){name.at + 5, name.n - 5};
    if (s->param[i].n == 3) {
        char *both = copy_of(name.at, (size_t)name.n + 2);
        memcpy(both + name.n, s->param[i].at + 1, 2);
        name = (Name){both, name.n + 2};
    }
    if (!h->use) {              /* a call that stands in an action comes behind stageN_open */
        h->use = copy_of(c, sizeof *c);
        h->use->name = name;
    }
    h->opened |= opens;
    h->called |= !opens;
    int joined = s->param[i].n == 3 || find(r, h->use->name)->kind != ROUTINE;
    if (!same(h->use->name, name) && !(joined && is_end_of(h->use->name, name))) {
        bad(r, line, "%.*s is of another call", h->name.n, h->name.at);
        return;
    }
    for (int k = i + 1; k < c->n; k++)
        if (s->sig[k] == 'i' && c->label[k].n && !same(c->label[k], (Name){"site", 4}) &&
            !same(c->label[k], (Name){"acc", 3}) && !same(c->label[k], (Name){"mb", 2}) &&
            literal_of(h->use, c->label[k]) != c->value[k])
            bad(r, line, "%.*s has another %.*s elsewhere", h->name.n, h->name.at, c->label[k].n, c->label[k].at);
}

static void check_call(Reader *r, const Call *c, int line)
{
    const Symbol *s = find(r, c->name);
    int before = r->failed;
    if (s->kind != ROUTINE) {
        bad(r, line, "%.*s is not defined above nor declared in rt.h", c->name.n, c->name.at);
        return;
    }
    if (s->n != c->n) {
        bad(r, line, "%.*s takes %d arguments, not %d", c->name.n, c->name.at, s->n, c->n);
        return;
    }
    for (int i = 0; i < c->n; i++)
        check_argument(r, s, c, i, line);
    for (int i = 0; i < c->n && r->failed == before; i++)
        if (c->sig[i] == 'o')
            check_handle(r, s, c, i, line);
}
