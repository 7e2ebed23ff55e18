/* SPDX-License-Identifier: Apache-2.0
 *
 * row.c: the operator table as data.
 *
 * ops.def is written for people: operands are one string, "x mask:i?".  The preprocessor turns each row into
 * strings; the first question asked cuts them up.  The result depends on ops.def alone and is never changed
 * afterwards, which is why it may live in this file and not in an arena: it survives mem_free_all().
 *
 * Cost: some hundred short strings, once.
 */
#include "graph.h"

typedef struct { const char *name, *in, *par, *out, *axes, *keys, *class, *shape, *call[3], *flop[3]; } Source;

#define OP(name, in, par, out, axes, keys, class, shape, f, ff, i, fi, w, fw) \
    {#name, in, par, out, axes, keys, #class, #shape, {f, i, w}, {ff, fi, fw}},
static const Source source[] = {
#include "ops.def"
};

#define MEANS(word, means) {#word, means},
static const struct { const char *word; int means; } meanings[] = {
#include "roles.def"
    {NULL, ROLE_NONE}
};

#define PART(of, axis, form, forward, backward, weights) {#of, #axis, #form, {forward, backward, weights}},
static const struct { const char *of, *axis, *form, *swaps[3]; } parts[] = {
#include "parts.def"
    {NULL, NULL, NULL, {NULL}}
};

enum { ROWS = sizeof source / sizeof *source, OPERANDS = ROWS * 8, LETTERS = ROWS * 96 };

static struct {
    bool ready;
    Row op[ROWS];
    Operand operand[OPERANDS];
    char letter[LETTERS];
    int operands, letters;
} table;

static const char *store(const char *text, size_t n)
{
    char *to = table.letter + table.letters;
    if (table.letters + (int)n + 1 > LETTERS)
        die("ops.def has grown: raise LETTERS");
    memcpy(to, text, n);
    to[n] = 0;
    table.letters += (int)n + 1;
    return to;
}

/* One word: name[:type][?][!] */
static Operand operand(const char *word, size_t n)
{
    Operand o = {.type = 'r', .fixed = word[n - 1] == '!'};
    n -= o.fixed;
    if (word[n - 1] == '?') {
        o.optional = true;
        n--;
    }
    if (n > 2 && word[n - 2] == ':') {
        o.tracked = word[n - 1] == 't';
        o.type = word[n - 1] == 'c' ? 'r' : o.tracked ? 'f' : word[n - 1];
        n -= 2;
    }
    o.name = store(word, n);
    return o;
}

/* The words of a list lie side by side in table.operand, so the VEC never grows. */
static void operands(const char *list, Operand **at, int *count, int *cap)
{
    *at = table.operand + table.operands;
    for (const char *p = list + strspn(list, " "); *p; p += strspn(p, " ")) {
        size_t n = strcspn(p, " ");
        if (table.operands == OPERANDS)
            die("ops.def has grown: raise OPERANDS");
        table.operand[table.operands++] = operand(p, n);
        p += n;
    }
    *count = *cap = (int)(table.operand + table.operands - *at);
}

static void cut(Row *r, const Source *s)
{
    size_t n = strlen(s->name);
    r->internal = s->name[0] == '[';
    r->name = r->internal ? store(s->name + 1, n - 2) : s->name;
    operands(s->in, &r->in.at, &r->in.n, &r->in.cap);
    operands(s->par, &r->par.at, &r->par.n, &r->par.cap);
    operands(s->out, &r->out.at, &r->out.n, &r->out.cap);
    r->axes = s->axes;
    r->keys = s->keys;
    r->fp8 = !strcmp(s->class, "fp8");
    r->product = r->fp8 || !strcmp(s->class, "product");
    r->element = !strcmp(s->class, "element");
    r->shape = s->shape;
    for (int i = 0; meanings[i].word; i++)
        r->traits |= strcmp(meanings[i].word, r->name) ? 0 : meanings[i].means;
    memcpy(r->call, s->call, sizeof r->call);
    memcpy(r->flop, s->flop, sizeof r->flop);
}

ArgRole arg_role(const Arg *a)
{
    int i = 0;
    while (meanings[i].word && strcmp(meanings[i].word, a->token))
        i++;
    return (ArgRole)meanings[i].means;
}

int row_count(void)
{
    return ROWS;
}

const Row *row(int i)
{
    for (int k = 0; !table.ready && k < ROWS; k++)
        cut(&table.op[k], &source[k]);
    table.ready = true;
    if (i < 0 || i >= ROWS)
        die("row %d of %d", i, ROWS);
    return &table.op[i];
}

int row_find(const char *name)
{
    for (int i = 0; i < ROWS; i++)
        if (!strcmp(row(i)->name, name))
            return i;
    return -1;
}

int row_part(const Row *r, const char *axis)
{
    int i = 0;
    while (parts[i].of && (strcmp(parts[i].of, r->name) || strcmp(parts[i].axis, axis)))
        i++;
    return parts[i].of ? row_find(parts[i].form) : -1;
}

const char *row_swaps(const Row *r, Phase phase)
{
    for (int i = 0; parts[i].of && phase <= PH_W; i++)
        if (!strcmp(parts[i].form, r->name))
            return parts[i].swaps[phase == PH_F ? 0 : phase == PH_I ? 1 : 2];
    return "";
}
