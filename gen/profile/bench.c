/* SPDX-License-Identifier: Apache-2.0
 *
 * bench.c: the source of a benchmark: one function for each different call of a model.
 *
 * Two operators with calls of one signature (cost_signature) do the same work, so twelve equal layers are one row.  Each row
 * is a call with literal sizes and literal offsets in an arena, like a line of a stage.  The Makefile of an emitted folder
 * compiles and links it: the time measured is that of the very kernel that will run.
 *
 * Operands.  All rows share one arena, in parts by their use: read, written, added to, updated, indices.  Operands that are
 * read are never written, so that the numbers stay ordinary however often a call is repeated.  Kernels that run into denormal
 * numbers measure too slow, and zeros measure too fast on machines that save power on them.  A call is repeated on copies of
 * its operands.  Those of tensors together fill NEAR bytes, more than a core's second-level cache: in a stage a call finds
 * the data of its neighbours there, not its own.  Those of parameters, gradients and moments fill as much as a stage has of
 * them, up to FAR: each was last touched a micro-batch ago, or a step.  On a GPU NEAR is more than twice the second-level
 * cache that all of its kernels share.
 *
 * Alpa (Zheng et al., 2022) profiles candidate stages, quadratically many, and its users ask for less (alpa-projects/alpa
 * pull 681).  One row a call is linear, and any cut between calls can be priced from it.
 */
#include "calls.h"

enum { MOST_COPIES = 1024, LINE = 64,
       HANDLES = 1024 };       /* MAX_HANDLES of rt.h */
typedef struct { Bytes near, far; } BenchWindow;
static const BenchWindow on_cpu = {4 << 20, 128 << 20}, on_gpu = {128 << 20, 512 << 20};

/* What stands in a part of the arena; the names are those of templates/bench.h. */
typedef enum { P_VALUES, P_ZERO, P_REAL, P_F32, P_WRITE, P_STATE, P_STATE32, P_ADD, P_UPDATE, PARTS } BenchFill;
static const char *const fill_of[PARTS] = {"FILL_VALUES", "FILL_ZERO", "FILL_REAL", "FILL_F32", "FILL_ZERO", "FILL_REAL",
    "FILL_F32", "FILL_ZERO", "FILL_POSITIVE"};
static bool is_far(int part)
{
    return part >= P_STATE && part < PARTS;
}

typedef struct { Bytes stride[2]; int copies[2]; } BenchTurn; /* near, far */
typedef struct { int64_t lo, hi; Bytes bytes, from; bool even; } Ids;       /* even: from 0 to hi in lo steps */
typedef struct { int fill; Bytes offset; } BenchArg; /* part PARTS + i: ids i; -1: no operand */
typedef struct {
    FILE *f;
    const Bench *b;
    Bytes size[PARTS], from[PARTS];
    VEC(Ids) ids;
    BenchTurn *turn;            /* by call */
} BenchLayout;

static Bytes up(Bytes n)
{
    return (n + LINE - 1) / LINE * LINE;
}

/* ---- the calls --------------------------------------------------------------------------------------------------- */

Bench *bench_of(const Model *m, const Graph *const *g, int n, const Graph *mix)
{
    Bench *b = alloc(sizeof *b);
    *b = (Bench){.m = m, .batch = mix->batch, .stages = profile_computing(m)};
    for (int i = 0; i < n; i++)
        for (int o = 0; o < g[i]->op.n; o++) {
            const char *signature = cost_signature(&g[i]->op.at[o]);
            if (INDEX_OF(b->call.at, b->call.n, signature) < 0)
                *PUSH(&b->call) = (BenchCall){signature, g[i], &g[i]->op.at[o]};
        }
    for (int o = 0; o < mix->nb; o++)
        *PUSH(&b->mix) = INDEX_OF(b->call.at, b->call.n, cost_signature(&mix->op.at[o]));
    return b;
}

/* ---- the arena --------------------------------------------------------------------------------------------------- */

static Type type_of(const BenchCall *c, const Arg *a)
{
    return a->state ? c->g->state.at[a->index].type : c->g->tensor.at[a->index].type;
}

static Bytes bytes_of(const BenchCall *c, const Arg *a)
{
    if (a->kind == ARG_TMP)
        return c->o->tmp;
    const Bytes bytes = a->state ? c->g->state.at[a->index].bytes : c->g->tensor.at[a->index].bytes;
    bool norm = !strcmp(c->o->call, "norm_team") && a->kind == ARG_READ;        /* without a team they have all of it */
    bool rows = strstr(c->o->call, "_scatter_") && a->kind == ARG_WRITE;
    return norm || rows ? bytes * c->g->team : bytes;
}

/* Of what a Route has computed: slots in order, offsets and choices that are even. */
static int64_t highest(const BenchCall *c, const Arg *a)
{
    ArgRole role = arg_role(a);
    const char *of = role == ROLE_OFFSET ? "rows" : role == ROLE_EXPERT ? "experts" : NULL;
    of = role == ROLE_OFFSET && op_arg(c->o, "all") ? "all" : of;           /* of several devices all rows */
    const Arg *most = of ? op_arg(c->o, of) : NULL;
    if (most)
        return most->i - (role == ROLE_EXPERT);
    return bytes_of(c, a) / type_bytes(I32) - 1;
}

/* Indices of one range lie in one place for all calls. */
static int ids_of(BenchLayout *l, const BenchCall *c, const Arg *a)
{
    const Tensor *t = &c->g->tensor.at[a->index];
    const Input *in = t->kind == T_INPUT ? &l->b->m->inputs.at[t->of] : NULL;
    Ids want = {1, 2, 0, 0, false};
    if (in && in->lo < in->hi)
        want = (Ids){in->lo, in->hi, 0, 0, false};
    if (!in && op_is(&c->g->op.at[t->op], TRAIT_CODE))
        want = (Ids){0, 1, 0, 0, false};            /* numbers, not places: those of zeros are not slow on any machine */
    else if (!in)
        want = (Ids){bytes_of(c, a) / type_bytes(I32) - 1, highest(c, a), 0, 0, true};
    int i = 0;
    while (i < l->ids.n && (l->ids.at[i].lo != want.lo || l->ids.at[i].hi != want.hi ||
                            l->ids.at[i].even != want.even))
        i++;
    if (i == l->ids.n)
        *PUSH(&l->ids) = want;
    if (bytes_of(c, a) > l->ids.at[i].bytes)
        l->ids.at[i].bytes = up(bytes_of(c, a));
    return i;
}

static int part_of(BenchLayout *l, const BenchCall *c, const Arg *a)
{
    switch (a->kind) {
    case ARG_VALS:   return P_VALUES;
    case ARG_TMP:
    case ARG_WRITE:  return P_WRITE;
    case ARG_ADD:    return P_ADD;
    case ARG_UPDATE: return a->state && c->g->state.at[a->index].kind == S_VALUES ? P_VALUES : P_UPDATE;
    case ARG_READ:   break;
    default:         return -1;
    }
    if (a->state && c->g->state.at[a->index].kind == S_VALUES)
        return P_VALUES;
    bool wide = c->g->compute != F32 && type_of(c, a) == F32;
    switch (type_of(c, a)) {
    case I32: return PARTS + ids_of(l, c, a);
    case F64: return P_ZERO;
    default:  return a->state ? (wide ? P_STATE32 : P_STATE) : (wide ? P_F32 : P_REAL);
    }
}

static bool same(const Arg *a, const Arg *b)
{
    return a->kind == ARG_READ && b->kind == ARG_READ && a->state == b->state && a->index == b->index;
}

/* Where each argument of a call lies in its part; used[] grows by what it takes. */
static void place_call(BenchLayout *l, const BenchCall *c, BenchArg *place, Bytes *used)
{
    for (int i = 0; i < c->o->arg.n; i++) {
        const Arg *a = &c->o->arg.at[i];
        int part = part_of(l, c, a);
        place[i] = (BenchArg){part, 0};
        if (part < 0 || part >= PARTS || part == P_VALUES)
            continue;
        int j = 0;
        while (j < i && !same(a, &c->o->arg.at[j]))
            j++;
        if (j < i) {
            place[i] = place[j];
            continue;
        }
        place[i].offset = used[part];
        used[part] += up(bytes_of(c, a));
    }
}

/* How much a stage has of what such a call takes in turn: forward the parameters, backward as many gradients, an update all. */
static Bytes far_bytes(const BenchLayout *l, const BenchCall *c)
{
    Bytes sum = 0;
    BenchWindow w = on_gpus(l->b->m) ? on_gpu : on_cpu;
    for (int s = 0; s < c->g->state.n; s++)
        if (c->o->phase == PH_U || c->g->state.at[s].kind == S_PARAM)
            sum += c->g->state.at[s].bytes;
    sum /= l->b->m->plan.stages_max;
    return sum < w.near ? w.near : sum > w.far ? w.far : sum;
}

static void size_call(BenchLayout *l, int k)
{
    const BenchCall *c = &l->b->call.at[k];
    BenchArg *place = alloc(sizeof *place * (size_t)(c->o->arg.n + 1));
    Bytes used[PARTS] = {0}, sum[2] = {0}, window[2] = {on_gpus(l->b->m) ? on_gpu.near : on_cpu.near, far_bytes(l, c)};
    BenchTurn *t = &l->turn[k];
    place_call(l, c, place, used);
    for (int p = P_ZERO; p < PARTS; p++) {
        sum[is_far(p)] += used[p];
        t->stride[is_far(p)] = used[p] > t->stride[is_far(p)] ? used[p] : t->stride[is_far(p)];
    }
    for (int f = 0; f < 2; f++) {
        Bytes n = sum[f] > 0 ? window[f] / sum[f] : 1;
        t->copies[f] = n < 1 ? 1 : n > MOST_COPIES ? MOST_COPIES : (int)n;
    }
    for (int p = P_ZERO; p < PARTS; p++) {
        Bytes n = used[p] + (t->copies[is_far(p)] - 1) * t->stride[is_far(p)];
        l->size[p] = used[p] > 0 && n > l->size[p] ? n : l->size[p];
    }
}

static Bytes lay_out(BenchLayout *l)
{
    Bytes at = 0;
    l->size[P_VALUES] = l->b->call.n ? up(l->b->call.at[0].g->state.at[l->b->call.at[0].g->vals].bytes) : 0;
    for (int k = 0; k < l->b->call.n; k++)
        size_call(l, k);
    for (int p = 0; p < PARTS; p++) {
        l->from[p] = at;
        at += l->size[p];
    }
    for (int i = 0; i < l->ids.n; i++) {
        l->ids.at[i].from = at;
        at += l->ids.at[i].bytes;
    }
    return at;
}

/* ---- the text ---------------------------------------------------------------------------------------------------- */

/* Calls that take a handle are numbered on their own: a stage has room for so many. */
static int handle_of(const Bench *b, int call)
{
    int n = 0;
    for (int k = 0; k < call; k++)
        n += op_arg(b->call.at[k].o, "h") != NULL;
    return n;
}

/* The handle of a call that consists of matrix products of the library; -1: of others. */
static int product_of(const Bench *b, int call)
{
    const char *name = row(b->call.at[call].o->row)->name;
    static const char *const products[] = {"Linear", "LinearGelu", "GeluLinear", "LinearAdd", "GeluLinearAdd", "LinearOnto",
                                           "MatMul", "LinearCrossEntropy", "LinearCrossEntropyHits"};
    bool product = false;
    for (size_t i = 0; i < sizeof products / sizeof *products; i++)
        product |= !strcmp(name, products[i]);
    return product && op_arg(b->call.at[call].o, "h") ? handle_of(b, call) : -1;
}

static void print_arg(BenchLayout *l, int k, const Arg *a, const BenchArg *x)
{
    if (x->fill == P_VALUES)
        fprintf(l->f, "A(0x%" PRIx64 ")", (uint64_t)l->from[P_VALUES]);
    else if (x->fill >= PARTS)
        fprintf(l->f, "A(0x%" PRIx64 ")", (uint64_t)l->ids.at[x->fill - PARTS].from);
    else if (x->fill >= 0)
        fprintf(l->f, "A(%s + 0x%" PRIx64 ")", is_far(x->fill) ? "far" : "near",
                (uint64_t)(l->from[x->fill] + x->offset));
    else if (a->kind == ARG_INT)
        fprintf(l->f, "%" PRId64, a->i);
    else if (a->kind == ARG_FLOAT)
        fprintf(l->f, "%af", (double)(float)a->f);
    else if (a->kind == ARG_HANDLE)
        fprintf(l->f, "%d", handle_of(l->b, k));
    else
        fprintf(l->f, "%d", a->kind == ARG_ACC);
}

static void print_tables(BenchLayout *l, Bytes arena)
{
    const Bench *b = l->b;
    fprintf(l->f, "const Row rows[] = {\n");
    for (int k = 0; k < b->call.n; k++)
        fprintf(l->f, "    {row%d, {%" PRId64 ", %" PRId64 "}, {%d, %d}, %d},\n", k, l->turn[k].stride[0], l->turn[k].stride[1],
                l->turn[k].copies[0], l->turn[k].copies[1], product_of(b, k));
    fprintf(l->f, "};\nconst int mix[] = {");
    for (int i = 0; i < b->mix.n; i++)
        fprintf(l->f, "%s%d", i == 0 ? "" : i % 24 ? ", " : ",\n    ", b->mix.at[i]);
    fprintf(l->f, "};\nconst Fill fills[] = {\n");
    for (int p = 0; p < PARTS; p++)
        fprintf(l->f, "    {%" PRId64 ", %" PRId64 ", %s, 0, 0},\n", l->from[p], l->size[p], fill_of[p]);
    for (int i = 0; i < l->ids.n; i++)
        fprintf(l->f, "    {%" PRId64 ", %" PRId64 ", %s, %" PRId64 ", %" PRId64 "},\n", l->ids.at[i].from,
                l->ids.at[i].bytes, l->ids.at[i].even ? "FILL_EVEN" : "FILL_IDS", l->ids.at[i].lo, l->ids.at[i].hi);
    fprintf(l->f, "};\nconst int row_count = %d, mix_count = %d, fill_count = %d, stages = %d, threads = %d, "
            "blocks = %" PRId64 ";\n",
            b->call.n, b->mix.n, PARTS + l->ids.n, b->stages, b->m->devices.at[0].threads, b->m->train.blocks);
    fprintf(l->f, "const int ranks = %d;\nconst long batch = %" PRId64 ";\n", transport_of(b->m)->ranks,
            b->batch);
    fprintf(l->f, "const size_t arena_bytes = %" PRId64 ", workspace_bytes = %" PRId64 ";\n", arena,
            b->m->devices.at[0].workspace);
}

void bench_print(FILE *f, const Bench *b)
{
    BenchLayout l = {.f = f, .b = b, .turn = alloc(sizeof(BenchTurn) * (size_t)(b->call.n + 1))};
    Bytes arena = lay_out(&l);
    fprintf(f, "/* %d different calls of %s, to be timed. */\n#include \"bench.h\"\n\n", b->call.n, quote_comment(b->m->name));
    for (int k = 0; k < b->call.n; k++) {
        const BenchCall *c = &l.b->call.at[k];
        BenchArg *place = alloc(sizeof *place * (size_t)(c->o->arg.n + 1));
        Bytes used[PARTS] = {0};
        place_call(&l, c, place, used);
        fprintf(l.f, "static void row%d(Stage *st, size_t near, size_t far)\n{\n    (void)near, (void)far;\n    %s(st", k,
                c->o->call);
        for (int i = 0; i < c->o->arg.n; i++) {
            fprintf(l.f, ", ");
            print_arg(&l, k, &c->o->arg.at[i], &place[i]);
        }
        fprintf(l.f, ");\n}\n\n");
    }
    fprintf(f, "void stage0_open(Stage *st)\n{\n    (void)st;\n");
    for (int k = 0; k < b->call.n; k++) {
        const Op *o = b->call.at[k].o;
        if (!cost_prepared(b->m, b->call.at[k].g, o, false))
            continue;
        if (handle_of(b, k) >= HANDLES)
            fail(EXIT_RUN, "more than %d different calls of the kernel library; times can be estimated: --estimate", HANDLES);
        fprintf(f, "    open_%s(st, %d", o->call, handle_of(b, k));
        for (int i = 0; i < o->arg.n; i++)
            if (o->arg.at[i].kind == ARG_INT && arg_role(&o->arg.at[i]) != ROLE_SITE)
                fprintf(f, ", %" PRId64, o->arg.at[i].i);
        fprintf(f, ");\n");
    }
    fprintf(f, "}\n\n");
    print_tables(&l, arena);
}
