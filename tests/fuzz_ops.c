/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_ops.c: the operators of a random model (fuzz.c).  Each function draws operands that its operator can take, writes
 * the line, and puts the result into the pool.
 */
#include "fuzz.h"
#include <stdio.h>
#include <string.h>

static int size_from(const Shape *s, int from)
{
    int n = 1;
    for (int i = from; i < s->n; i++)
        n *= s->d[i];
    return n;
}

Shape with_width(Shape s, int n) { s.d[s.n - 1] = n; return s; }
static Shape without(Shape s, int axis)
{
    s.n--;
    memmove(s.d + axis, s.d + axis + 1, sizeof s.d[0] * (size_t)(s.n - axis));
    return s;
}

bool of_sample(const Value *v, const Value *with) { (void)with; return sampled(v); }
bool beside(const Value *v, const Value *with) { return sequence(v, with) && v->s.d[2] == with->s.d[2]; }
static bool up_to_four(const Value *v, const Value *with) { (void)with; return v->s.n >= 2 && v->s.n <= 4; }
static bool long_matrix(const Value *v, const Value *with) { return matrix(v, with) && size(&v->s) > 1; }

/* Is v what the other ends with, and smaller? */
static bool tail(const Value *v, const Value *with)
{
    int skip = with->s.n - v->s.n;
    return skip > 0 && !memcmp(v->s.d, with->s.d + skip, sizeof v->s.d[0] * (size_t)v->s.n);
}

static bool product(const Value *v, const Value *with)
{
    int n = with->s.n;
    return v->s.n == n && v->loud < LOUD / 2 && !memcmp(v->s.d, with->s.d, sizeof v->s.d[0] * (size_t)(n - 2)) &&
           v->s.d[n - 2] == with->s.d[n - 1];
}

/* ---- what lines have in common ----------------------------------------------------------------------------------- */

static const char *const rules[] = {"weight", "loudest", "louder", "flat", "tiny"};
static const int rule_loud[] = {-1, 1, 0, -2, -5};

/* `, init: ...`, and how much louder that makes a product of so many terms */
const char *start(int terms, int *loud)
{
    static char text[2][32];
    static int turn;
    int rule = below(5), bits = 0;
    while (1 << 2 * bits < terms)
        bits++;
    *loud += rule_loud[rule] + bits + 1;
    turn = !turn;
    snprintf(text[turn], sizeof text[0], ", init: %s", rules[rule]);
    return text[turn];
}

void name_table(char *to, size_t n, const char *what)
{
    snprintf(to, n, "%s%d", what, ++f.names);
}

void owns(const char *name, bool bias)
{
    if (f.owners == TABLES)
        return;
    Owner *o = &f.owner[f.owners++];
    snprintf(o->at, sizeof o->at, "%s", name);
    o->bias = bias;
    o->linear = false;
}

/* A parameter of its own, that later operators may share. */
static void keep_table(const char *name, const char *weight, int rows, int columns)
{
    if (f.tables == TABLES || strstr(weight, "tie"))
        return;
    Table *t = &f.table[f.tables++];
    *t = (Table){.rows = rows, .columns = columns};
    snprintf(t->name, sizeof t->name, "%s", name);
}

/* `, tie: NAME.weight` if there is such a table and the policy likes ties, else a start rule */
static const char *tie(int rows, int columns, int terms, int *loud)
{
    static char text[48];
    int from = f.tables ? below(f.tables) : 0;
    for (int i = 0; i < f.tables && chance(f.tie); i++) {
        const Table *t = &f.table[(from + i) % f.tables];
        if (t->rows != rows || t->columns != columns)
            continue;
        *loud += 3;
        for (int k = 0; k < f.owners; k++)
            f.owner[k].linear &= strcmp(f.owner[k].at, t->name) != 0;
        snprintf(text, sizeof text, ", tie: %s.weight", t->name);
        return text;
    }
    return start(terms, loud);
}

/* Width of a Linear: often one for which a table is there. */
static int some_width(int columns)
{
    for (int i = 0; i < f.tables && chance(f.tie); i++) {
        const Table *t = &f.table[below(f.tables)];
        if (t->columns == columns)
            return t->rows;
    }
    return small();
}

/* ---- operators: each makes one or more lines, or returns false --------------------------------------------------- */

Value *linear(Value *x, int out)
{
    Shape s = with_width(x->s, out);
    if (!fits(&s))
        return NULL;
    char name[24];
    name_table(name, sizeof name, "fc");
    int loud = x->loud;
    const char *weight = tie(out, width(&x->s), width(&x->s), &loud);
    Value *y = fresh(s, loud);
    const char *bias = yes(60);
    const char *pieces = out % 4 == 0 ? ", pieces: 2" : out % 3 == 0 ? ", pieces: 3" : "";      /* with blocks they have bits */
    line("op: Linear, name: %s, in: %s, out: %d, bias: %s%s%s, as: %s", name, use(x), out, bias, pieces, weight, y->name);
    if (!strstr(weight, "tie")) {
        owns(name, *bias == 't');
        f.owner[f.owners - 1].linear = sampled(x) && !strcmp(f.owner[f.owners - 1].at, name);
    }
    keep_table(name, weight, out, width(&x->s));
    return y;
}

static bool make_linear(void)
{
    Value *x = choose(quiet, NULL);
    return x && linear(x, some_width(width(&x->s)));
}

static bool make_data(void)
{
    Shape s = {2 + below(2), {f.batch, small(), 1}};
    s.d[2] = small();
    int i = f.inputs < 5 ? input_of(s, false, 0, 0) : -1;
    if (i < 0)
        return false;
    for (int k = 0; k < f.values; k++)
        if (!strcmp(f.value[k].name, f.input[i].name))
            return false;
    Value *v = fresh(s, 2);
    snprintf(v->name, sizeof v->name, "%s", f.input[i].name);
    return linear(v, small());
}

bool embed(int columns)
{
    int rows = small() + 2;
    if (f.tables && chance(f.tie)) {
        const Table *t = &f.table[below(f.tables)];
        rows = t->rows;
        columns = t->columns;
    }
    Shape s = {1 + below(3), {f.batch, small(), 1}}, y;
    s.d[2] = 1 + below(3);
    y = s;
    y.d[y.n++] = columns;
    int i = fits(&y) ? input_of(s, true, 0, rows) : -1, loud = 2;
    if (i < 0)
        return false;
    char name[24];
    name_table(name, sizeof name, "table");
    const char *weight = tie(rows, columns, 1, &loud);
    line("op: Embedding, name: %s, in: %s, rows: %d, out: %d%s, as: %s", name, f.input[i].name, rows, columns, weight,
         fresh(y, loud)->name);
    keep_table(name, weight, rows, columns);
    return true;
}

static bool make_embedding(void) { return embed(small()); }

static bool make_position(void)
{
    Value *x = choose(long_matrix, NULL);
    int loud = 0;
    if (!x)
        return false;
    int seq = x->s.d[x->s.n - 2], rows = seq + (chance(40) ? below(4) : 0);
    char name[24];
    name_table(name, sizeof name, "position");
    int offset = chance(30) ? 1 + below(3) : 0;
    char later[24] = "";
    if (offset)
        snprintf(later, sizeof later, ", offset: %d", offset);
    const char *weight = tie(rows + offset, width(&x->s), 1, &loud);
    line("op: PositionEmbedding, name: %s, in: %s, rows: %d%s%s, as: %s", name, use(x), rows, later, weight,
         fresh(x->s, (x->loud > loud ? x->loud : loud) + 1)->name);
    keep_table(name, weight, rows + offset, width(&x->s));
    return true;
}

static Value *relative(int heads, int query, int key)
{
    int loud = 0;
    char name[24];
    name_table(name, sizeof name, "near");
    const char *weight = start(1, &loud);
    Value *y = fresh((Shape){3, {heads, query, key}}, loud);
    int buckets = 4 + 2 * below(4), distance = 8 + below(10);
    line("op: RelativeBias, name: %s, heads: %d, query: %d, key: %d, buckets: %d, distance: %d, bidirectional: %s%s, as: %s",
         name, heads, query, key, buckets, distance, yes(50), weight, y->name);
    return y;
}

static bool make_relative(void)
{
    int heads = 1 + below(3), query = small();
    relative(heads, query, small());
    return true;
}

static const char *optional_bias(int heads, int query, int key, bool *any)
{
    static char text[48];
    Value want = {.s = {3, {heads, query, key}}};
    Value *v = chance(50) ? choose(equal, &want) : NULL;
    text[0] = 0;
    *any = v || chance(40);
    if (*any)
        snprintf(text, sizeof text, ", bias: %s", use(v ? v : relative(heads, query, key)));
    return text;
}

const char *optional_mask(int key)
{
    static char text[48];
    Shape s = {2, {f.batch, key}};
    int i = chance(35) ? input_of(s, true, 0, 2) : -1;
    text[0] = 0;
    if (i >= 0)
        snprintf(text, sizeof text, ", mask: %s", f.input[i].name);
    return text;
}

/* The numbers of the mask.  A document may come twice: users should not do that, and bits must agree all the same. */
static const char *documents_as(const char *mask)
{
    static char text[64];
    text[0] = 0;
    if (*mask && chance(60))
        snprintf(text, sizeof text, ", documents: %s", strchr(mask, ':') + 2);
    return text;
}

static const char *attention_keys(bool causal)
{
    static char text[96];
    int n = snprintf(text, sizeof text, ", causal: %s", causal ? "true" : "false");
    if (chance(f.drop))
        n += snprintf(text + n, sizeof text - (size_t)n, ", dropout: 0.%d", 1 + below(5));
    if (chance(30))
        snprintf(text + n, sizeof text - (size_t)n, ", scale: 0.%d", 1 + below(9));
    return text;
}

static int divisor(int n)
{
    int d = 1 + below(4);
    while (n % d)
        d--;
    return d;
}

/* Queries of one value; keys and values of another or the same, sometimes without a product between. */
static bool make_attention(void)
{
    Value *x = choose(sequence, NULL);
    Value *m = x ? choose(beside, x) : NULL;
    if (!x || x->loud > LOUD / 2 || m->loud > LOUD / 2 || x->s.d[1] * m->s.d[1] > 200)
        return false;
    int wide = width(&x->s), heads = divisor(wide), query = x->s.d[1], key = m->s.d[1];
    bool plain = chance(25), any;
    int own = !plain && heads % 2 == 0 && chance(40) ? heads / 2 : heads, less = wide / heads * own;
    Value *q = plain ? x : linear(x, wide), *k = plain ? m : linear(m, less), *v = chance(25) ? k : linear(m, less);
    if (!q || !k || !v)
        return false;
    const char *bias = optional_bias(heads, query, key, &any), *mask = optional_mask(key);
    bool causal = chance(40) && query <= key;
    const char *more = attention_keys(causal);
    const char *scores = attention_scores(heads, query, key, causal);
    const char *documents = query == key ? documents_as(mask) : "";
    Value *y = fresh(q->s, v->loud);
    line("op: Attention, in: [%s, %s, %s]%s%s%s, heads: %d, kv_heads: %d%s%s, as: %s", use(q), use(k), use(v), bias, mask,
         documents, heads, own, more, scores, y->name);
    return true;
}

static bool make_packed(void)
{
    Value *x = choose(sequence, NULL);
    if (!x || x->loud > LOUD / 2 || x->s.d[1] * x->s.d[1] > 200)
        return false;
    int seq = x->s.d[1];
    bool any;
    Value *p = width(&x->s) % 3 == 0 && chance(50) ? x : linear(x, 3 * small());
    if (!p)
        return false;
    int wide = width(&p->s) / 3, heads = divisor(wide);
    const char *bias = optional_bias(heads, seq, seq, &any), *mask = optional_mask(seq), *more = attention_keys(chance(50));
    line("op: Attention, in: %s, packed: qkv%s%s%s, heads: %d%s, as: %s", use(p), bias, mask, documents_as(mask), heads, more,
         fresh(with_width(p->s, wide), p->loud)->name);
    return true;
}

static bool make_matmul(void)
{
    Value *a = choose(matrix, NULL), *b;
    if (!a || a->loud > LOUD / 2)
        return false;
    Shape y = a->s;
    int n = y.n;
    if (chance(60) && (b = choose(product, a))) {
        y.d[n - 1] = width(&b->s);
        if (!fits(&y))
            return false;
        line("op: MatMul, in: [%s, %s], as: %s", use(a), use(b), fresh(y, a->loud + b->loud + 2)->name);
        return true;
    }
    b = choose(equal, a);               /* a b^T or a^T b: always possible with a itself */
    bool left = chance(50);
    if (b->loud > LOUD / 2)
        return false;
    y.d[n - 1] = y.d[n - 2] = left ? a->s.d[n - 1] : a->s.d[n - 2];
    if (!fits(&y))
        return false;
    line("op: MatMul, a: %s, b: %s, transpose_%s: true, as: %s", use(a), use(b), left ? "a" : "b",
         fresh(y, a->loud + b->loud + 2)->name);
    return true;
}

Value *norm(Value *x)
{
    int loud = 0;
    char name[24];
    name_table(name, sizeof name, "norm");
    Value *y = fresh(x->s, 2);
    const char *rule = chance(30) ? start(1, &loud) : "";
    int digits = 3 + below(4);
    if (chance(50))
        line("op: RMSNorm, name: %s, in: %s, eps: 1e-%d%s, width: %d%s, as: %s", name, use(x), digits,
             chance(30) ? ", offset: 1" : "", width(&x->s) % 2 == 0 && chance(30) ? width(&x->s) / 2 : width(&x->s), rule,
             y->name);
    else
        line("op: LayerNorm, name: %s, in: %s, eps: 1e-%d, bias: %s%s, as: %s", name, use(x), digits, yes(50), rule, y->name);
    y->loud += loud;
    owns(name, true);
    return y;
}

static bool make_norm(void) { Value *x = choose(NULL, NULL); return x && norm(x); }

static bool make_group_norm(void)
{
    Value *x = choose(matrix, NULL);
    if (!x)
        return false;
    int groups = divisor(width(&x->s));
    bool instance = chance(40) && size_from(&x->s, 1) > width(&x->s);
    if (!instance && size_from(&x->s, 1) == groups)
        return false;
    char name[24], kind[40];
    name_table(name, sizeof name, "group");
    snprintf(kind, sizeof kind, instance ? "InstanceNorm" : "GroupNorm, groups: %d", groups);
    line("op: %s, name: %s, in: %s, affine: %s, as: %s", kind, name, use(x), yes(50), fresh(x->s, 3)->name);
    return true;
}

static bool make_unary(void)
{
    static const struct { const char *text; int most; } list[] = {
        {"Relu", LOUD}, {"Gelu", LOUD}, {"Gelu, approximate: tanh", LOUD}, {"Silu", LOUD}, {"Tanh", 0}, {"Sigmoid", 0},
        {"Softmax", 0}, {"Scale, factor: 0.3", LOUD}, {"Scale, factor: -1.7", LOUD},
        {"Clip, min: -1, max: 2", 1}, {"LeakyRelu, slope: 0.1", LOUD}, {"HardSigmoid", 0}, {"HardSwish", LOUD},
        {"SoftCap, cap: 2", 1}, {"Elu, alpha: 0.5", LOUD}, {"Softplus", LOUD},
    };
    int i = below((int)(sizeof list / sizeof *list));
    Value *x = choose(NULL, NULL);
    if (!x)
        return false;
    int loud = x->loud < list[i].most ? x->loud : list[i].most;
    line("op: %s, in: %s, as: %s", list[i].text, use(x), fresh(x->s, loud + (i == 8))->name);
    return true;
}

static bool make_dropout(void)
{
    Value *x = chance(f.drop) ? choose(of_sample, NULL) : NULL;
    if (!x)
        return false;
    char shared[32] = "";
    if (x->s.n > 1 && chance(30)) {
        int from = 1 + below(x->s.n - 1);
        bool two = from + 1 < x->s.n && chance(50);
        snprintf(shared, sizeof shared, two ? ", shared: [%d, %d]" : ", shared: [%d]", from, from + 1);
    }
    line("op: Dropout, in: %s, p: 0.%d%s, as: %s", use(x), 1 + below(6), shared, fresh(x->s, x->loud + 1)->name);
    return true;
}

/* What is the same for every sample, repeated over an axis in the middle of another value. */
static bool make_parameter(void)
{
    Value *x = choose(sequence, NULL);
    if (!x)
        return false;
    int loud = 0, axis = 1 + below(x->s.n - 1);
    Shape s = x->s;
    s.d[axis] = 1;
    const char *rule = start(1, &loud);
    Value *p = fresh(s, loud);
    char name[24];
    name_table(name, sizeof name, "free");
    line("op: Parameter, name: %s, shape: [1, %d, %d]%s, as: %s", name, s.d[1], s.d[2], rule, p->name);
    const char *op = chance(50) && x->loud < LOUD / 2 ? "Mul" : "Add";
    line("op: %s, in: [%s, %s], as: %s", op, use(x), use(p), fresh(x->s, 1 + x->loud + (loud > 0 ? loud : 0))->name);
    return true;
}

static bool two(const char *op, Value *a, Value *b, int loud)
{
    Shape s = size(&a->s) >= size(&b->s) ? a->s : b->s;
    if (!fits(&s))
        return false;
    line("op: %s, in: [%s, %s], as: %s", op, use(a), use(b), fresh(s, loud)->name);
    return true;
}

/* Equal shapes, one with itself, or one repeated over the other. */
static bool make_two(void)
{
    bool mul = chance(40);
    Value *a = choose(mul ? quiet : NULL, NULL), *b;
    if (!a)
        return false;
    b = chance(15) ? a : chance(50) ? choose(tail, a) : choose(equal, a);
    if (!b || (mul && b->loud > LOUD / 2))
        return false;
    int loud = mul ? a->loud + b->loud : 1 + (a->loud > b->loud ? a->loud : b->loud);
    return chance(50) ? two(mul ? "Mul" : "Add", a, b, loud) : two(mul ? "Mul" : "Add", b, a, loud);
}

static bool make_concat(void)
{
    Value *x = choose(NULL, NULL);
    if (!x)
        return false;
    int axis = below(x->s.n), parts = 2 + below(9), loud = x->loud;
    Shape y = x->s;
    y.d[axis] *= parts;
    if (!fits(&y) || (axis == 0 && !chance(30)))
        return false;
    char text[320];
    int n = snprintf(text, sizeof text, "%s", use(x));
    for (int i = 1; i < parts; i++) {
        Value *more = choose(equal, x);
        loud = more->loud > loud ? more->loud : loud;
        n += snprintf(text + n, sizeof text - (size_t)n, ", %s", use(more));
    }
    line("op: Concat, axis: %d, in: [%s], as: %s", chance(50) ? axis : axis - y.n, text, fresh(y, loud)->name);
    return true;
}

static bool make_slice(void)
{
    Value *x = choose(NULL, NULL);
    if (!x)
        return false;
    int axis = below(x->s.n), whole = x->s.d[axis], from = below(whole), count = 1 + below(whole - from);
    if (axis == 0 && !chance(30))
        return false;
    Shape y = x->s;
    y.d[axis] = count;
    line("op: Slice, in: %s, axis: %d, from: %d, count: %d, as: %s", use(x), axis, chance(30) ? from - whole : from, count,
         fresh(y, x->loud)->name);
    return true;
}

static bool make_split(void)
{
    Value *x = choose(NULL, NULL);
    int axis = x ? below(x->s.n) : 0, whole = x ? x->s.d[axis] : 0;
    if (whole < 2 || (axis == 0 && !chance(30)))
        return false;
    int first = 1 + below(whole - 1);
    bool even = whole % 2 == 0 && chance(50);
    if (even)
        first = whole / 2;
    Shape a = x->s, b = x->s;
    a.d[axis] = first;
    b.d[axis] = whole - first;
    const char *left = fresh(a, x->loud)->name, *right = fresh(b, x->loud)->name;
    if (even)
        line("op: Split, in: %s, axis: %d, parts: 2, as: [%s, %s]", use(x), axis, left, right);
    else
        line("op: Split, in: %s, axis: %d, sizes: [%d, %d], as: [%s, %s]", use(x), axis, first, whole - first, left, right);
    return true;
}

/* Two neighbouring axes become one, or one becomes two. */
static bool make_reshape(void)
{
    Value *x = choose(NULL, NULL);
    if (!x)
        return false;
    if (x->s.n > 1 && chance(15)) {
        line("op: Flatten, in: %s, as: %s", use(x), fresh((Shape){2, {x->s.d[0], size_from(&x->s, 1)}}, x->loud)->name);
        return true;
    }
    Shape y = x->s;
    int axis = below(y.n), d = divisor(y.d[axis]);
    if (chance(50) && y.n > 2 && axis > 0) {
        y.d[axis - 1] *= y.d[axis];
        y = without(y, axis);
    } else if (y.n < DIMS) {
        memmove(y.d + axis + 1, y.d + axis, sizeof y.d[0] * (size_t)(y.n++ - axis));
        y.d[axis] = d;
        y.d[axis + 1] /= d;
    }
    char text[96];
    int n = 0, open = chance(40) ? below(y.n) : -1;
    for (int i = 0; i < y.n; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, "%s%d", i ? ", " : "", i == open ? -1 : y.d[i]);
    line("op: Reshape, in: %s, shape: [%s], as: %s", use(x), text, fresh(y, x->loud)->name);
    return true;
}

/* Rows and columns, or positions, that become more, or fewer. */
static bool make_resize(void)
{
    Value *x = choose(up_to_four, NULL);
    if (!x || x->s.n < 3)
        return false;
    Shape y = x->s;
    int n = y.n - 2, by[4] = {0};
    char text[64], mode[48] = "";
    bool pad = chance(50);
    for (int i = 0; i < n; i++) {
        if (pad) {
            by[i] = below(3) - (y.d[1 + i] > 1), by[n + i] = below(3);
            y.d[1 + i] += by[i] + by[n + i];
        } else {
            by[i] = 1 + below(3);
            y.d[1 + i] *= by[i];
        }
    }
    if (!fits(&y))
        return false;
    if (n == 2 && pad)
        snprintf(text, sizeof text, "[%d, %d, %d, %d]", by[0], by[1], by[2], by[3]);
    else
        snprintf(text, sizeof text, n == 2 || pad ? "[%d, %d]" : "%d", by[0], by[1]);
    if (pad)
        snprintf(mode, sizeof mode, ", value: %d", below(3) - 1);
    else if (chance(60))
        snprintf(mode, sizeof mode, ", mode: bilinear, align: %s", yes(50));
    line("op: %s, in: %s, %s: %s%s, as: %s", pad ? "Pad" : "Upsample", use(x), pad ? "pad" : "factor", text, mode,
         fresh(y, x->loud > 1 ? x->loud : 1)->name);
    return true;
}

/* Over positions: a product that makes them fewer, or more. */
static bool make_conv(void)
{
    Value *x = choose(sequence, NULL);
    if (!x || x->loud > LOUD / 2)
        return false;
    bool more = chance(50);
    int out = small(), kernel = 1 + below(3), stride = 1 + below(2), pad = below(kernel), loud = x->loud;
    int groups = divisor(width(&x->s));
    Shape y = with_width(x->s, out * groups);
    y.d[1] = more ? (x->s.d[1] - 1) * stride + kernel - 2 * pad : (x->s.d[1] + 2 * pad - kernel) / stride + 1;
    if (y.d[1] < 1 || x->s.d[1] + 2 * pad < kernel || !fits(&y) || kernel * out * width(&x->s) > ELEMENTS)
        return false;
    char name[24];
    name_table(name, sizeof name, "conv");
    const char *rule = start(kernel * width(&x->s) / groups, &loud);
    line("op: %s, name: %s, in: %s, out: %d, kernel: %d, stride: %d, pad: %d, groups: %d, bias: %s%s, as: %s",
         more ? "ConvTranspose" : "Conv", name, use(x), out * groups, kernel, stride, pad, groups, yes(50), rule,
         fresh(y, loud)->name);
    owns(name, true);
    return true;
}

static bool make_transpose(void)
{
    Value *x = choose(up_to_four, NULL);
    if (!x)
        return false;
    int perm[4] = {0, 1, 2, 3}, n = 0;
    for (int i = x->s.n - 1, low = chance(75); i > low; i--) {
        int k = low + below(i - low + 1), t = perm[i];
        perm[i] = perm[k];
        perm[k] = t;
    }
    Shape y = x->s;
    char text[32];
    for (int i = 0; i < y.n; i++) {
        y.d[i] = x->s.d[perm[i]];
        n += snprintf(text + n, sizeof text - (size_t)n, "%s%d", i ? ", " : "", perm[i]);
    }
    line("op: Transpose, in: %s, perm: [%s], as: %s", use(x), text, fresh(y, x->loud)->name);
    return true;
}

/* One axis, or two beside each other. */
static bool make_reduce(void)
{
    Value *x = choose(matrix, NULL);
    if (!x)
        return false;
    int axis = below(x->s.n), count = axis + 1 < x->s.n && x->s.n > 2 && chance(40) ? 2 : 1;
    bool mean = chance(50);
    if (axis == 0 && !chance(30))
        return false;
    Shape y = without(x->s, axis);
    if (count == 2)
        y = without(y, axis);
    char text[32];
    int from = chance(50) ? axis : axis - x->s.n;
    snprintf(text, sizeof text, count == 2 ? "[%d, %d]" : "%d", from, from + 1);
    line("op: %s, in: %s, axis: %s, as: %s", mean ? "Mean" : "Sum", use(x), text,
         fresh(y, x->loud + (mean ? 0 : 2 * count))->name);
    return true;
}

const Maker makers[] = {
    {10, make_linear}, {8, make_unary}, {6, make_norm}, {3, make_group_norm}, {10, make_two}, {5, make_dropout}, {2, make_stop},
    {4, make_matmul},
    {4, make_attention}, {4, make_packed}, {3, make_concat}, {3, make_split}, {3, make_slice}, {4, make_reshape},
    {2, make_resize}, {3, make_conv}, {2, make_pool}, {3, make_batch_norm},
    {3, make_transpose}, {2, make_reduce}, {3, make_embedding}, {2, make_position}, {2, make_relative},
    {2, make_parameter}, {2, make_rotary}, {2, make_gate}, {2, make_lstm}, {2, make_scores}, {2, make_experts},
    {2, make_data}, {4, make_round}, {0, NULL},
};
