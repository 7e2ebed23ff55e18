/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz.c: random models for the differential oracle of tests/fuzz.sh.
 *
 *     fuzz SEED > MODEL.yaml
 *
 * Problem: people write the models that they expect to work.  Method: a pool of values, each with its shape; a random
 * operator that can take some of them puts its result there; at the end whatever nobody used becomes part of the loss, so
 * that every line counts.  Operators are a table of functions, one or more for each operator of docs/operators.md.
 * A model draws a policy first: how much it likes the last value (chains), an old one (skips over many stages), one that
 * has been used (fan-out), tied weights, dropout, blocks, and how large values may be.
 *
 * Dimensions are 1, small primes, and what falls beside the width of a vector.  Start values have deviations from 2^-5 to 2^2
 * in one model, so that sums taken in another order differ in their last bits; an estimate of the magnitude is carried
 * along, and what grows is normalised before it overflows: a NaN would make all plans agree.
 *
 * One operator a line, with all its operands named, so that lines can be taken out of one that failed.  Written after
 * Yang et al., Finding and Understanding Bugs in C Compilers, 2011 (random programs without undefined behaviour), and
 * Livinskii et al.,
 * Random Testing for C and C++ Compilers with YARPGen, 2020 (policies).  Knows nothing of the generator: shapes are
 * worked out again here, and a model that dpgen refuses is a failure of one of the two.
 */
#include "fuzz.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

Fuzz f;

/* ---- chance ------------------------------------------------------------------------------------------------------ */

/* splitmix64 (Steele, Lea, Flood, 2014) */
uint64_t draw(void)
{
    uint64_t z = f.random += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

int below(int n) { return (int)(draw() % (uint64_t)n); }
bool chance(int percent) { return below(100) < percent; }
const char *yes(int percent) { return chance(percent) ? "true" : "false"; }

int small(void)
{
    static const int sizes[] = {1, 2, 3, 3, 4, 5, 5, 6, 7, 8, 9, 11};
    return PICK(sizes);
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

void say(Text *t, const char *form, ...)
{
    va_list list;
    va_start(list, form);
    t->n += (size_t)vsnprintf(t->at + t->n, sizeof t->at - t->n, form, list);
    va_end(list);
    if (t->n >= sizeof t->at) {
        fprintf(stderr, "fuzz: the model is too long\n");
        exit(2);
    }
}

void line(const char *form, ...)
{
    char text[1024];
    va_list list;
    va_start(list, form);
    vsnprintf(text, sizeof text, form, list);
    va_end(list);
    say(&f.graph, "    - {%s}\n", text);
}

/* ---- shapes and values ------------------------------------------------------------------------------------------- */

int size(const Shape *s)
{
    int n = 1;
    for (int i = 0; i < s->n; i++)
        n *= s->d[i];
    return n;
}
int width(const Shape *s) { return s->d[s->n - 1]; }
bool same(const Shape *a, const Shape *b) { return a->n == b->n && !memcmp(a->d, b->d, sizeof a->d[0] * (size_t)a->n); }
bool fits(const Shape *s) { return size(s) <= ELEMENTS; }
bool sampled(const Value *v) { return v->s.d[0] == f.batch; }

/* A new value; its name goes onto the line that makes it. */
Value *fresh(Shape s, int loud)
{
    if (f.values >= VALUES) {
        fprintf(stderr, "fuzz: too many values\n");
        exit(2);
    }
    Value *v = &f.value[f.values++];
    *v = (Value){.s = s, .loud = loud < -8 ? -8 : loud};
    snprintf(v->name, sizeof v->name, "v%d", f.values);
    return v;
}

/* A value that is wanted, by the policy; NULL: there is none. */
Value *choose(Want *want, const Value *with)
{
    Value *list[VALUES];
    int n = 0;
    for (int i = 0; i < f.values; i++)
        if (!want || want(&f.value[i], with))
            list[n++] = &f.value[i];
    if (!n)
        return NULL;
    if (chance(f.last))
        return list[n - 1];
    if (chance(f.skip))
        return list[below((n + 3) / 4)];
    for (int i = 0; i < 2 * n && !chance(f.fan); i++) {
        Value *v = list[below(n)];
        if (!v->uses)
            return v;
    }
    return list[below(n)];
}

bool equal(const Value *v, const Value *with) { return same(&v->s, &with->s); }
bool quiet(const Value *v, const Value *with) { (void)with; return v->loud < LOUD / 2; }
bool matrix(const Value *v, const Value *with) { (void)with; return v->s.n >= 2; }
bool sequence(const Value *v, const Value *with) { (void)with; return v->s.n == 3 && sampled(v); }

const char *use(Value *v) { v->uses++; return v->name; }

int input_of(Shape s, bool ids, int from, int to)
{
    int first = below(INPUTS);
    for (int k = 0; k < f.inputs; k++) {
        int i = (first + k) % f.inputs;
        const Input *x = &f.input[i];
        if (same(&x->s, &s) && x->ids == ids && (!ids || (x->from == from && x->to <= to)) && (chance(50) || f.inputs > 5))
            return i;
    }
    if (f.inputs == INPUTS)
        return -1;
    Input *x = &f.input[f.inputs];
    *x = (Input){.s = s, .ids = ids, .from = from, .to = to};
    snprintf(x->name, sizeof x->name, "%s%d", ids ? "ids" : "real", f.inputs);
    return f.inputs++;
}


/* ---- blocks and branches ----------------------------------------------------------------------------------------- */

/* Bodies keep the shape of $in, so that they repeat; d is its width.  `skip` is given from outside. */
static const char *const bodies[] = {
    "        - {op: LayerNorm, name: ln}\n"
    "        - {op: Linear, name: up, out: wide}\n"
    "        - {op: Gelu, approximate: tanh}\n"
    "        - {op: Dropout, p: 0.2, when: gate}\n"
    "        - {op: Linear, name: down, out: d, bias: false}\n"
    "        - {op: Add, in: [_, $in]}\n",

    "        - {op: RMSNorm, name: norm, as: n}\n"
    "        - {op: Linear, name: gate, out: wide, as: g}\n"
    "        - {op: Sigmoid, when: gate, as: s}\n"
    "        - {op: Linear, in: n, name: up, out: wide}\n"
    "        - {op: Mul, in: [_, s]}\n"
    "        - {op: Linear, name: down, out: d}\n"
    "        - {op: Add, in: [_, skip]}\n"
    "        - {op: Add, in: [$in, _]}\n",

    "        - op: Add\n"
    "          branches:\n"
    "            - [{op: Linear, name: left, out: d}, {op: Tanh}]\n"
    "            - [{op: Scale, factor: 0.5}]\n"
    "        - {op: Mul, in: [_, _], when: gate}\n"
    "        - {op: LayerNorm, name: ln, bias: false}\n",
};

static const char *const attention_body =
    "        - {op: LayerNorm, name: ln}\n"
    "        - {op: Linear, name: qkv, out: 3*d}\n"
    "        - {op: Attention, heads: 1, causal: true, packed: qkv, dropout: 0.1}\n"
    "        - {op: Linear, name: proj, out: d, init: flat}\n"
    "        - {op: Add, in: [_, $in]}\n";

static bool make_block(void)
{
    Value *x = chance(f.block) ? choose(quiet, NULL) : NULL;
    if (!x)
        return false;
    int body = sampled(x) && matrix(x, NULL) ? below(3) : 1 + below(2);
    int number = ++f.blocks, repeat = 1 + below(3), wide = small();
    bool attend = sequence(x, NULL) && chance(50), skip = body == 1 && !attend;
    say(&f.block_text, "    block%d:\n      args: {d: required, wide: 2*d, gate: true}\n      body:\n%s", number,
        attend ? attention_body : bodies[body]);
    char more[160];
    int n = snprintf(more, sizeof more, ", repeat: %d", repeat);
    if (skip)
        n += snprintf(more + n, sizeof more - (size_t)n, ", pass: {skip: %s}", use(choose(equal, x)));
    if (chance(40))
        n += snprintf(more + n, sizeof more - (size_t)n, ", first: {gate: false, wide: %d}", wide);
    if (chance(40))
        snprintf(more + n, sizeof more - (size_t)n, ", last: {wide: %d + 1}", wide);
    line("use: block%d, in: %s, name: b%d, args: {d: %d}%s, as: %s", number, use(x), number, width(&x->s), more,
         fresh(x->s, x->loud + 3)->name);
    return true;
}

/* Each branch begins with the value of the line before. */
static bool make_branches(void)
{
    static const char *const ops[] = {"Add", "Mul", "Concat, axis: -1"};
    Value *x = chance(f.block) ? choose(quiet, NULL) : NULL;
    int kind = below(3), d = x ? width(&x->s) : 0, number = ++f.names;
    Shape y = x ? x->s : (Shape){0};
    if (!x)
        return false;
    y.d[y.n - 1] *= kind == 2 ? 3 : 1;
    if (!fits(&y))
        return false;
    line("op: Scale, in: %s, factor: 0.7", use(x));
    line("op: %s, branches: [[{op: Linear, name: left%d, out: %d}, {op: Silu}], %s], as: %s", ops[kind], number, d,
         kind == 2 ? "[], [{op: Relu}]" : "[]", fresh(y, 2 * x->loud + 2)->name);
    return true;
}

/* ---- losses ------------------------------------------------------------------------------------------------------ */

/* Adds the loss that the last line made to those before it, perhaps scaled. */
static void join_loss(const char *made)
{
    char name[24];
    snprintf(name, sizeof name, "%s", made);
    if (chance(40)) {
        line("op: Scale, in: %s, factor: 0.%d, as: scaled%d", made, 1 + below(9), f.losses);
        snprintf(name, sizeof name, "scaled%d", f.losses);
    }
    if (f.losses++) {
        line("op: Add, in: [%s, %s], as: sum%d", f.loss, name, f.losses);
        snprintf(f.loss, sizeof f.loss, "sum%d", f.losses);
    } else {
        snprintf(f.loss, sizeof f.loss, "%s", name);
    }
}

/* Of the value, or of a head on it, in one to three chunks. */
static bool cross_entropy(Value *x)
{
    Shape s = x->s;
    int i = -1, out = chance(40) ? 20 + below(60) : 0;
    if (s.n-- > 1 && sampled(x) && f.entropies < 6)
        i = input_of(s, true, 0, out ? out : width(&x->s));
    if (i < 0)
        return false;
    char name[24];
    snprintf(name, sizeof name, "xent%d", ++f.entropies);
    if (out)
        line("op: LinearCrossEntropy, in: %s, out: %d, chunk: 32, bias: %s, targets: %s, ignore: %d, as: %s", use(x), out,
             chance(50) ? "true" : "false", f.input[i].name, chance(50) ? -1 : -100 * below(2), name);
    else
        line("op: SoftmaxCrossEntropy, in: %s, targets: %s, ignore: %d%s, as: %s", use(x), f.input[i].name,
             chance(50) ? -1 : -100 * below(2),
             f.tops++ || width(&x->s) < 2 ? chance(50) ? ", smoothing: 0.2" : "" : ", top: 1", name);
    join_loss(name);
    return true;
}

/* Against another value, data, or the value itself, bent. */
static void squares(Value *x)
{
    Value *t = x->loud > LOUD / 2 ? norm(x) : x, *other = choose(equal, t);
    char name[24], target[24];
    int i = sampled(t) && chance(40) ? input_of(t->s, false, 0, 0) : -1;
    if (i >= 0)
        snprintf(target, sizeof target, "%s", f.input[i].name);
    else if (other != t && other->loud <= LOUD / 2)
        snprintf(target, sizeof target, "%s", use(other));
    else
        line("op: Tanh, in: %s, as: bent%d", use(t), f.losses), snprintf(target, sizeof target, "bent%d", f.losses);
    snprintf(name, sizeof name, "mse%d", f.losses);
    line("op: %s, in: [%s, %s], as: %s", chance(70) ? "MeanSquaredError" : "BinaryCrossEntropy", use(t), target, name);
    join_loss(name);
}

/* A value that nobody uses joins a later one of its shape, or the loss. */
static void finish(Value *x)
{
    Value *other = chance(60) ? choose(equal, x) : NULL;
    if (other && other != x)
        line("op: Add, in: [%s, %s], as: %s", use(x), use(other),
             fresh(x->s, 1 + (x->loud > other->loud ? x->loud : other->loud))->name);
    else if (!chance(60) || !cross_entropy(x))
        squares(x);
}

static void graph(int operators)
{
    int total = 0;
    for (const Maker *m = makers; m->make; m++)
        total += m->weight;
    while (!embed(1 + small()))
        continue;
    for (int made = 0, tried = 0; made < operators && tried < 20 * operators && f.values < VALUES / 2; tried++) {
        int at = below(total + 8);
        const Maker *m = makers;
        while (m->make && at >= m->weight)
            at -= m++->weight;
        made += m->make ? m->make() : at < 4 ? make_block() : make_branches();
        Value *last = &f.value[f.values - 1];
        if (last->loud > LOUD)
            norm(last);
    }
    for (int i = 0; i < f.values; i++)
        if (!f.value[i].uses)
            finish(&f.value[i]);
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

static void print_shape(const Shape *s)
{
    printf("[B");
    for (int i = 1; i < s->n; i++)
        printf(", %d", s->d[i]);
    printf("]");
}

static void print_inputs(void)
{
    printf("  inputs:\n");
    for (int i = 0; i < f.inputs; i++) {
        const Input *x = &f.input[i];
        printf("    %s: {shape: ", x->name);
        print_shape(&x->s);
        if (x->ids)
            printf(", dtype: i32, range: [%d, %d]}\n", x->from, x->to);
        else
            printf(", dtype: f32}\n");
    }
}

/* One of the Linear from `from` on that have weights of their own; -1: there is none. */
static int some_linear(int from, int to)
{
    int found = -1, n = 0;
    for (int i = from; i < to; i++)
        if (f.owner[i].linear && below(++n) == 0)
            found = i;
    return found;
}

/* Adapters beside a Linear, where all else is frozen but a few; and weights of few bits. */
static void print_adapters(void)
{
    int adapted = f.adapted, frozen = some_linear(0, adapted < 0 ? f.frozen : f.owners);
    if (adapted >= 0)
        printf("adapt: {match: ['%s'], rank: %d, alpha: %d, dropout: %s, learn: ['%s.*']}\n", f.owner[adapted].at, 1 + below(3),
               1 + below(5), chance(50) ? "0" : "0.2", f.owner[(adapted + 1) % f.owners].at);
    if (adapted >= 0 && frozen == (adapted + 1) % f.owners)
        frozen = f.owners > 1 ? adapted : -1;
    if (frozen >= 0 && chance(50))
        printf("quantize: {type: %s, match: ['%s']}\n", chance(50) ? "nf4" : "int8", f.owner[frozen].at);
}

/* Some parameters do not learn, some have rates of their own: of up to a half of the operators each, from either end. */
static void print_chosen(int *frozen)
{
    f.adapted = chance(12) ? some_linear(0, f.owners) : -1;
    f.frozen = *frozen = f.adapted < 0 && chance(35) ? below(f.owners / 2 + 1) : 0;
    for (int i = 0; i < *frozen; i++)
        printf("%s%s.%s'", i ? ", '" : "  freeze: ['", f.owner[i].at, f.owner[i].bias && chance(30) ? "weight" : "*");
    printf("%s", *frozen ? "]\n" : "");
}

static void print_groups(int frozen, bool adam)
{
    int n = f.adapted < 0 && chance(30) ? below(3) : 0;
    n = n < f.owners - frozen ? n : f.owners - frozen;
    for (int i = 0; i < n; i++) {
        printf("%s{match: '%s.*', lr: %s0.%d, weight_decay: 0.0%d", i ? ", " : "groups: [", f.owner[f.owners - 1 - i].at,
               i ? "" : "x", 1 + below(9), below(9));
        printf(adam && chance(50) ? ", betas: [0.8, 0.%d]}" : "}", 90 + below(9));
    }
    printf("%s", n ? "], " : "");
}

static void print_train(void)
{
    static const char *const rates[] = {"constant", "constant, warmup: 2", "cosine, warmup: 1, final: 0.1",
                                        "linear, final: 0.5", "step, every: 1, factor: 0.5"};
    static const int groups[] = {1, 1, 1, 2, 2, 4};
    static const char *const moved[] = {"0.9", "0", "0.9, nesterov: true"};
    int g = PICK(groups), rate = 1 + below(9), decay = below(3), clip = 1 + below(9), beta, frozen;
    while (f.micro % g)
        g /= 2;
    printf("train:\n  batch: {global: %d, micro: %d, groups: %d}\n  steps: 4\n", f.batch * f.micro, f.batch, g);
    print_chosen(&frozen);
    printf("  optimizer: {lr: 0.0%d, weight_decay: 0.%d, decay_only: %s, ", rate, decay,
           chance(50) ? "all" : "matrices");
    if (chance(40))
        printf("no_decay: ['%s'], ", chance(50) ? "*.weight" : "*");
    bool sgd = chance(40);
    beta = 90 + below(10);
    print_groups(frozen, !sgd && beta < 98);
    if (sgd)
        printf("type: sgd, momentum: %s}\n", PICK(moved));
    else if (beta < 98)
        printf("type: adamw, betas: [0.9, 0.%d], eps: 1e-8}\n", beta);
    else
        printf("type: rmsprop, alpha: 0.%d, eps: 1e-3, momentum: %s%s}\n", beta, beta == 98 ? "0" : "0.5",
               rate % 2 ? ", centered: true" : "");
    printf("  schedule: {type: %s}\n", PICK(rates));
    if (chance(60))
        printf("  clip_norm: 0.%d\n  clip_scope: %s\n", clip, chance(60) ? "global" : "parameter");
    printf("  seed: %d\n", below(1000));
}

static void print_arrays(void)
{
    printf("arrays: {");
    for (int i = 0; i < f.inputs; i++)
        printf("%s%s: %s.npy", i ? ", " : "", f.input[i].name, f.input[i].name);
    printf("}");
}

static void print_model(const char *seed)
{
    printf("# fuzz %s\ndpgen: 1\nmodel:\n  name: fuzz\n", seed);
    print_inputs();
    printf("  init:\n    weight: {normal: [0, 0.25]}\n    loudest: {normal: [0, 2]}\n    louder: {uniform: [-1, 1]}\n"
           "    flat: {normal: [0.125, 0.125]}\n    tiny: {normal: [0, 1/32]}\n    bias: {normal: [0, 0.5]}\n"
           "    turns1: {values: [1.5]}\n    turns2: {values: [0.75, 3]}\n    turns3: {values: [1, 1.25, 40]}\n");
    if (f.blocks)
        printf("  blocks:\n%s", f.block_text.at);
    printf("  graph:\n%s  loss: %s\n", f.graph.at, f.loss);
    print_train();
    print_adapters();
    printf("data:\n  train: {format: npy, order: %s, ", chance(80) ? "sequential" : "shuffled");
    print_arrays();
    printf("}\n");
    if (chance(25)) {
        int every = 1 + below(2);
        printf("  eval: {format: npy, every: %d, batches: %d, ", every, 1 + below(3));
        print_arrays();
        printf("}\n");
    }
    printf("devices: [{kind: cpu, count: 10, memory: 1GiB}]\n");
}

int main(int argc, char **argv)
{
    static const int micros[] = {1, 2, 3, 4, 4, 5, 6, 8, 8};
    static const int lengths[] = {4, 8, 12, 12, 20, 20, 30, 45};
    if (argc != 2) {
        fprintf(stderr, "usage: fuzz SEED > MODEL.yaml\n");
        return 2;
    }
    f.random = strtoull(argv[1], NULL, 0) * 0x2545f4914f6cdd1du;
    f.batch = 1 + below(4);
    f.micro = PICK(micros);
    f.last = 20 + 20 * below(4);
    f.skip = 10 + 30 * below(3);
    f.fan = 25 * below(4);
    f.tie = 30 * below(4);
    f.drop = 50 * below(3);
    f.block = 50 * below(3);
    graph(PICK(lengths));
    print_model(argv[1]);
    return 0;
}
