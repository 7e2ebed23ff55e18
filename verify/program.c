/* SPDX-License-Identifier: Apache-2.0
 *
 * program.c: stageN.h, stageN.c and launch.c as constants, slot tables, routines and tables of values.
 *
 * The language is that of docs/emitted.md, read by a parser for a little more: any constant expression of integers stands where
 * a number may, and a table of values is read as a tree of fields.  Everything that is no call, no constant and no table is
 * refused: what cannot be read cannot be proved.
 *
 * A place is a number of bytes, plus at most one slot of a table: offsets are folded here, once, and not in each micro-batch.
 */
#include "verify.h"
#include <string.h>

typedef struct { Program *p; Lexer x; const Routine *in; bool tables_only, wide, real; int deep; } Reader;

/* ---- constant expressions ---------------------------------------------------------------------------------------- */

static Arg sum(Reader *r);

static const Arg no_number = {.kind = A_INT, .slots = -1, .param = -1};

/* Is it in 64 bits, before it is made?  What C reckons in an int is one; what it reckons in an unsigned one turns round. */
static void in_bits(const Reader *r, double i)
{
    if (i > 9.2e18 || i < -9.2e18)
        lex_fault(&r->x, "a number beyond 64 bits");
}

static void reckoned(const Reader *r, Arg *a, char type)
{
    bool wide = a->type == 'l' || type == 'l' || a->slots >= 0;
    if (!wide && (a->type || type || a->i > INT32_MAX || a->i < -INT32_MAX))
        lex_fault(&r->x, "a number beyond an int, of which C would lose bits");
    a->type = wide ? 'l' : 0;
}

static Arg whole(Reader *r, Arg a)
{
    if (a.kind != A_INT || a.param >= 0)
        lex_fault(&r->x, "a whole number must stand here");
    return a;
}

static int param_of(const Reader *r, const char *name)
{
    for (int i = 0; r->in && i < r->in->params; i++)
        if (r->in->param[i] == name)
            return i;
    return -1;
}

/* NAME_slot[ number or parameter ] */
static Arg slot_of(Reader *r, int table)
{
    Arg a = no_number;
    const Slots *s = &r->p->slots.at[table];
    lex_want(&r->x, '[');
    int p = r->x.t.kind == T_NAME ? param_of(r, r->x.t.text) : -1;
    if (p >= 0) {
        a.slots = table;
        a.param = p;
        lex_next(&r->x);
    } else {
        int64_t k = whole(r, sum(r)).i;
        if (k < 0 || k >= s->n)
            lex_fault(&r->x, "a slot that the table has not");
        a.i = s->at[k];
    }
    lex_want(&r->x, ']');
    return a;
}

/* behind '(': A(sum), H(sum), S(pool, sum), the macros of rt.h */
static Arg place(Reader *r, const char *macro)
{
    Lexer *x = &r->x;
    int table = -1, param = -1;
    lex_next(x);
    if (!r->in || !strchr("ASH", macro[0]) || macro[1])
        lex_fault(x, "no number and no place");
    if (macro[0] == 'S') {
        if (x->t.kind != T_NAME || (param = param_of(r, x->t.text)) < 0)
            lex_fault(x, "S names a parameter of the routine");
        const char *name = joined_text("%s_slot", x->t.text);
        table = map_at(&r->p->slot_tables, name_of(name, strlen(name)));
        if (table < 0)
            lex_fault(x, joined_text("there is no table %s", name));
        lex_next(x);
        lex_want(x, ',');
    }
    Arg a = sum(r);
    if (a.kind != A_INT || (a.param >= 0 && a.slots < 0) || (a.slots >= 0 && table >= 0))
        lex_fault(x, "a place is an offset and at most one slot");
    if (table >= 0)
        a.slots = table, a.param = param;
    a.kind = macro[0] == 'H' ? A_HOST : A_PLACE;
    lex_want(x, ')');
    return a;
}

static Arg named(Reader *r)
{
    const char *name = r->x.t.text;
    int p = param_of(r, name), c = map_at(&r->p->constants, name), s = map_at(&r->p->slot_tables, name);
    lex_next(&r->x);
    if (lex_is(&r->x, '('))
        return place(r, name);
    if (p >= 0)
        return (Arg){.kind = A_INT, .slots = -1, .param = p};
    if (s >= 0)
        return slot_of(r, s);
    if (c < 0)
        lex_fault(&r->x, joined_text("%s has no number", name));
    return r->p->constant.at[c].value;
}

static Arg factor(Reader *r)
{
    Lexer *x = &r->x;
    Arg a = no_number;
    if (++r->deep > 100)
        lex_fault(x, "brackets or braces too deep");
    if (lex_is(x, '-')) {
        lex_next(x);
        a = factor(r);
        if (a.kind != A_FLOAT)
            whole(r, a);
        a.i = -a.i;
        a.f = -a.f;
        reckoned(r, &a, 0);
    } else if (lex_is(x, '(')) {
        lex_next(x);
        a = sum(r);
        lex_want(x, ')');
    } else if (x->t.kind == T_INT || x->t.kind == T_FLOAT) {
        a.kind = x->t.kind == T_INT ? A_INT : A_FLOAT;
        a.i = x->t.i;
        a.f = x->t.f;
        a.type = x->t.type;
        lex_next(x);
    } else if (x->t.kind == T_NAME) {
        a = named(r);
    } else {
        lex_fault(x, "a number must stand here");
    }
    r->deep--;
    return a;
}

static Arg product(Reader *r)
{
    Arg a = factor(r);
    while (lex_is(&r->x, '*')) {
        lex_next(&r->x);
        Arg b = whole(r, factor(r));
        in_bits(r, (double)whole(r, a).i * (double)b.i);
        a.i *= b.i;
        reckoned(r, &a, b.type);
    }
    return a;
}

static Arg sum(Reader *r)
{
    Arg a = product(r);
    while (lex_is(&r->x, '+') || lex_is(&r->x, '-')) {
        bool minus = lex_is(&r->x, '-');
        lex_next(&r->x);
        Arg b = product(r);
        if (a.kind != A_INT || b.kind != A_INT || (a.param >= 0 && a.slots < 0) || (b.param >= 0 && (b.slots < 0 || minus)) ||
            (a.slots >= 0 && b.slots >= 0))
            lex_fault(&r->x, "only whole numbers are added, and one slot");
        int64_t k = minus ? -b.i : b.i;
        in_bits(r, (double)a.i + (double)k);
        a.i += k;
        reckoned(r, &a, b.slots >= 0 ? 'l' : b.type);
        if (b.slots >= 0)
            a.slots = b.slots, a.param = b.param;
    }
    return a;
}

/* ---- tables of values -------------------------------------------------------------------------------------------- */

static Node *value(Reader *r);

static const char *some_name(Reader *r)
{
    const char *name = r->x.t.text;
    if (r->x.t.kind != T_NAME)
        lex_fault(&r->x, "a name must stand here");
    lex_next(&r->x);
    return name;
}

static Node *values(Reader *r, char end)
{
    Node *first = NULL, **last = &first;
    while (!lex_is(&r->x, end)) {
        const char *field = NULL;
        if (lex_is(&r->x, '.')) {
            lex_next(&r->x);
            field = some_name(r);
            for (const Node *c = first; c; c = c->next)
                if (c->field == field)
                    lex_fault(&r->x, joined_text(".%s has a value already", field));
            lex_want(&r->x, '=');
        }
        *last = value(r);
        (*last)->field = field;
        last = &(*last)->next;
        if (!lex_is(&r->x, end))
            lex_want(&r->x, ',');
    }
    lex_next(&r->x);
    return first;
}

static void skip_cast(Reader *r)
{
    while (!lex_is(&r->x, ')')) {
        if (r->x.t.kind == T_END)
            lex_fault(&r->x, "')' is missing");
        lex_next(&r->x);
    }
    lex_next(&r->x);
}

static Node *value(Reader *r)
{
    Lexer *x = &r->x;
    Node *n = room(sizeof *n);
    if (++r->deep > 100)
        lex_fault(x, "brackets or braces too deep");
    if (lex_is(x, '&'))
        lex_next(x);
    n->line = x->t.line;
    if (lex_is(x, '{') || lex_is(x, '(')) {
        if (lex_is(x, '(')) {
            lex_next(x);
            skip_cast(r);
        }
        lex_want(x, '{');
        n->kind = N_LIST;
        n->child = values(r, '}');
    } else if (x->t.kind == T_STRING) {
        n->kind = N_TEXT;
        n->text = x->t.text;
        for (lex_next(x); x->t.kind == T_STRING; lex_next(x))
            n->text = joined_text("%s%s", n->text, x->t.text);
    } else if (x->t.kind == T_NAME && map_at(&r->p->constants, x->t.text) < 0) {
        n->kind = N_NAME;
        n->text = x->t.text;
        lex_next(x);
        if (lex_is(x, '(')) {
            lex_next(x);
            n->kind = N_CALL;
            n->child = values(r, ')');
        }
    } else {
        Arg a = sum(r);
        n->kind = a.kind == A_FLOAT ? N_FLOAT : N_INT;
        n->i = a.i;
        n->f = a.f;
    }
    r->deep--;
    return n;
}

static void keep_table(Reader *r, const char *name, Node *n)
{
    map_set(&r->p->tables, name, r->p->table.n);
    *ADD(&r->p->table) = n;
}

/* ---- declarations ------------------------------------------------------------------------------------------------ */

static void keep_constant(Reader *r, const char *name, Arg a)
{
    if (map_at(&r->p->constants, name) >= 0)
        lex_fault(&r->x, joined_text("%s has a number already", name));
    map_set(&r->p->constants, name, r->p->constant.n);
    *ADD(&r->p->constant) = (Constant){name, a};
}

static void enumeration(Reader *r)
{
    lex_next(&r->x);
    lex_want(&r->x, '{');
    while (!lex_is(&r->x, '}')) {
        const char *name = some_name(r);
        lex_want(&r->x, '=');
        Arg a = whole(r, sum(r));
        reckoned(r, &a, 0);
        keep_constant(r, name, a);
        if (!lex_is(&r->x, '}'))
            lex_want(&r->x, ',');
    }
    lex_next(&r->x);
    lex_want(&r->x, ';');
}

static void keep_slots(Reader *r, const char *name, Node *n)
{
    Slots *s = ADD(&r->p->slots);
    s->name = name;
    for (const Node *c = n->child; c; c = c->next)
        s->n++;
    s->at = room(sizeof *s->at * (size_t)(s->n + 1));
    s->n = 0;
    for (const Node *c = n->child; c; c = c->next) {
        if (c->kind != N_INT || c->i > MOST_BYTES || c->i < 0)
            lex_fault(&r->x, "a slot is a number of bytes");
        s->at[s->n++] = c->i;
    }
    map_set(&r->p->slot_tables, name, r->p->slots.n - 1);
}

static void constant(Reader *r, const char *name, Arg a)
{
    if (!r->tables_only && r->real != (a.kind == A_FLOAT))
        lex_fault(&r->x, "a number of another kind than its type");
    a.type = 'l';
    keep_constant(r, name, a);
}

static Node *counted(Reader *r, Node *n, int64_t count)
{
    int64_t values = 0;
    for (const Node *c = n->child; c; c = c->next)
        values++;
    if (count >= 0 && count != values)
        lex_fault(&r->x, joined_text("%lld values, and another number of them is said", (long long)values));
    return n;
}

/* behind the type and a name: = number, or [..] = {..}, and others behind ',' */
static void declarators(Reader *r, const char *name)
{
    for (;; name = some_name(r)) {
        size_t n = strlen(name);
        bool array = lex_is(&r->x, '[');
        int64_t count = -1;     /* of its values; -1: nothing is said */
        if (array) {
            lex_next(&r->x);
            if (!lex_is(&r->x, ']'))
                count = whole(r, sum(r)).i;
            lex_want(&r->x, ']');
        }
        if (!lex_is(&r->x, '='))
            lex_fault(&r->x, "a constant has a value");
        lex_next(&r->x);
        bool slots = array && n > 5 && !strcmp(name + n - 5, "_slot"), table = lex_is(&r->x, '{') || lex_is(&r->x, '&');
        if ((slots || !table) && !r->wide && !r->tables_only)
            lex_fault(&r->x, "a number of this type may lose bits");
        if (slots || table)
            (slots ? keep_slots : keep_table)(r, name, counted(r, value(r), count));
        else
            constant(r, name, sum(r));
        if (lex_is(&r->x, ';'))
            break;
        lex_want(&r->x, ',');
    }
    lex_next(&r->x);
}

/* The words of a type: all but the last name.  A number may lose bits in one that is narrow. */
static void skip_type(Reader *r)
{
    static const char *const wide[] = {"size_t", "long", "int64_t", "float", "double"};
    r->wide = r->real = false;
    while (lex_is(&r->x, '*') || r->x.t.kind == T_NAME) {
        Lexer next = r->x;
        lex_next(&next);
        if (r->x.t.kind == T_NAME && !lex_word(&r->x, "void") && next.t.kind != T_NAME && !lex_is(&next, '*'))
            return;
        for (size_t i = 0; i < sizeof wide / sizeof *wide; i++)
            if (lex_word(&r->x, wide[i]))
                r->wide = true, r->real = i > 2;
        r->x = next;
    }
}

/* ---- routines ---------------------------------------------------------------------------------------------------- */

static void call(Reader *r, Routine *to)
{
    Lexer *x = &r->x;
    LIST(Arg) list = {0};
    Site s = {.line = x->t.line, .routine = -1};
    const char *name = some_name(r);
    lex_want(x, '(');
    if (!lex_word(x, "st"))
        lex_fault(x, "a call begins with the stage");
    for (lex_next(x); lex_is(x, ',');) {
        lex_next(x);
        bool text = x->t.kind == T_STRING;
        *ADD(&list) = text ? (Arg){.kind = A_NONE, .slots = -1, .param = -1} : sum(r);
        if (text)
            lex_next(x);
    }
    lex_want(x, ')');
    lex_want(x, ';');
    s.n = list.n;
    s.arg = list.at;
    if (!strncmp(name, "open_", 5)) {
        s.row = row_named(name + 5);        /* NULL: it chooses an algorithm */
        *ADD(&to->opens) = s;
        return;
    }
    s.routine = map_at(&r->p->routines, name);
    s.row = s.routine < 0 ? row_named(name) : NULL;
    if (s.routine < 0 && !s.row)
        stop(NOT_READ, "%s:%d: %s is no routine above, and no call that dpgen-verify knows", x->path, s.line, name);
    int want = s.row ? s.row->n : r->p->routine.at[s.routine].params;
    if (s.n != want)
        stop(NOT_READ, "%s:%d: %s takes %d arguments, not %d", x->path, s.line, name, want, s.n);
    *ADD(&to->site) = s;
}

static void body(Reader *r, Routine *to)
{
    Lexer *x = &r->x;
    r->in = to;
    lex_want(x, '{');
    while (!lex_is(x, '}')) {
        if (lex_is(x, '(')) {                       /* (void)st; */
            skip_cast(r);
            some_name(r);
            lex_want(x, ';');
        } else {
            call(r, to);
        }
    }
    lex_next(x);
    r->in = NULL;
}

/* behind `static void`: (*const NAME[])(Stages *) = {..}; */
static void pointers(Reader *r)
{
    Lexer *x = &r->x;
    lex_next(x);
    lex_want(x, '*');
    skip_type(r);
    const char *name = some_name(r);
    skip_cast(r);
    lex_want(x, '(');
    skip_cast(r);
    lex_want(x, '=');
    keep_table(r, name, value(r));
    lex_want(x, ';');
}

static void declaration(Reader *r);

/* void stageN(Stages *to) { tables; stage_take(to, &(..){..}); } */
static void description(Reader *r)
{
    Lexer *x = &r->x;
    lex_want(x, '{');
    while (lex_word(x, "static") || lex_word(x, "const"))
        declaration(r);
    const char *name = some_name(r);
    lex_want(x, '(');
    some_name(r);
    lex_want(x, ',');
    keep_table(r, name, value(r));
    lex_want(x, ')');
    lex_want(x, ';');
    lex_want(x, '}');
}

static void skip_block(Reader *r)
{
    int deep = 0;
    do {
        deep += lex_is(&r->x, '{') - lex_is(&r->x, '}');
        if (r->x.t.kind == T_END)
            lex_fault(&r->x, "'}' is missing");
        lex_next(&r->x);
    } while (deep);
}

/* behind `void NAME`; `(` stands here */
static void function(Reader *r, const char *name)
{
    Lexer *x = &r->x;
    LIST(const char *) param = {0};
    lex_next(x);
    bool described = lex_word(x, "Stages"), stage = lex_word(x, "Stage");
    for (int deep = 1; deep > 0; lex_next(x)) {
        deep += lex_is(x, '(') - lex_is(x, ')');
        if (x->t.kind == T_END)
            lex_fault(x, "')' is missing");
        if (x->t.kind == T_NAME && !lex_word(x, "int") && !lex_word(x, "Stage") && !lex_word(x, "st"))
            *ADD(&param) = x->t.text;
    }
    if (lex_is(x, ';')) {
        lex_next(x);
    } else if (r->tables_only) {
        skip_block(r);
    } else if (described) {
        description(r);
    } else if (stage) {
        if (param.n > MOST_INTS || map_at(&r->p->routines, name) >= 0 || row_named(name) || !strncmp(name, "open_", 5))
            lex_fault(x, "a routine that there is already, or with too many parameters, or the name of a preparation");
        Routine made = {.name = name, .params = param.n, .param = param.at, .line = x->t.line};
        body(r, &made);
        map_set(&r->p->routines, name, r->p->routine.n);
        *ADD(&r->p->routine) = made;
    } else {
        lex_fault(x, "no function of the language");
    }
}

static void declaration(Reader *r)
{
    const char *from = r->x.at;
    if (lex_word(&r->x, "enum")) {
        enumeration(r);
        return;
    }
    skip_type(r);
    if (r->x.at == from)
        lex_fault(&r->x, "no declaration of the language");
    if (lex_is(&r->x, '(')) {
        pointers(r);
        return;
    }
    const char *name = some_name(r);
    if (lex_is(&r->x, '('))
        function(r, name);
    else
        declarators(r, name);
}

void program_read(Program *p, const Source *s)
{
    Reader r = {.p = p, .tables_only = !strcmp(s->path, "launch.c")};
    p->path = s->path;
    lex_open(&r.x, s);
    while (r.x.t.kind != T_END)
        declaration(&r);
}

Node *program_table(const Program *p, const char *name)
{
    int k = map_at(&p->tables, name_of(name, strlen(name)));
    return k < 0 ? NULL : p->table.at[k];
}

Node *node_field(const Node *n, const char *field)
{
    for (Node *c = n ? n->child : NULL; c; c = c->next)
        if (c->field && !strcmp(c->field, field))
            return c;
    return NULL;
}

int64_t node_int(const Node *n, const char *field, int64_t otherwise)
{
    const Node *c = node_field(n, field);
    return c && c->kind == N_INT ? c->i : otherwise;
}
