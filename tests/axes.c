/* SPDX-License-Identifier: Apache-2.0
 *
 * axes: the axes column of gen/ops.def against the portable kernels.
 *
 * For each row with axes, each axis that may be divided, two and four workers: this program cuts the operands, calls the
 * kernels on the parts and puts the results together, as the column says.  They must be the bits of the call on the whole:
 *
 *     an operand with the axis        cut, blocks of it in order; one without it is there whole
 *     a result with the axis          its part
 *     a result without it             a term; the terms are added by the binary tree of docs/bits.md
 *     the gradient of an operand      as a result of the operand's axes
 *
 * So nothing here knows an operator: shapes, parts and sums come from the column, calls from the table, sizes from `samples`.
 * A row with an axis to divide and no sample fails, and so does a row without axes.  In bf16 terms in the compute type are left
 * out: they would be rounded.
 *
 * And the sums of Linear and of losses over a vocabulary, in 1 to 16 blocks, against their definition: a chain a block, two
 * halves added or merged, an absent one left out.
 */
#include "build/axes.h"
#include "rt/rt.h"
#include "rt/fmath.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef union { void *p; long i; float f; } Word;
#include "calls.h"
enum { KERNELS = sizeof kernels / sizeof *kernels, MOST_WORDS = 64, MOST_ATTRS = 32, SCRATCH = 1 << 22 };

typedef struct { const char *row, *attrs; } Sample;
static const Sample samples[] = {
    {"Embedding", "n=13 width=20 rows=11"},
    {"PositionEmbedding", "batch=3 seq=5 width=20 rows=9"},
    {"PositionOffset", "batch=3 seq=5 width=20 rows=9 offset=2"},
    {"Parameter", "batch=3 n=20"},
    {"RelativeBias", "heads=8 query=6 key=7 buckets=8 distance=16 both=1"},
    {"Linear", "rows=20 in=47 out=20"},
    {"Linear", "rows=303 in=1072 out=71"}, {"Linear", "rows=5 in=9 out=3"},
    {"LinearPieces", "rows=20 in=24 out=60 pieces=3"}, {"LinearPieces", "rows=5 in=9 out=22 pieces=2"},
    {"LinearGelu", "rows=20 in=24 out=20"},
    {"GeluLinear", "rows=20 in=24 out=20"},
    {"MatMul", "batch=8 m=5 n=6 k=7 ta=0 tb=0"},
    {"Attention", "batch=2 heads=8 query=9 key=9 width=4 causal=1 scale=0.5 drop=0. site=3"},
    {"AttentionPacked", "batch=2 heads=8 query=9 width=4 causal=1 scale=0.5 drop=0. site=3"},
    {"AttentionShared", "batch=2 heads=16 kv_heads=8 query=9 key=9 width=4 causal=1 scale=0.5 drop=0. site=3"},
    {"AttentionWindow", "batch=2 heads=16 kv_heads=8 query=9 key=9 width=4 causal=1 window=4 scale=0.5 cap=2. drop=0. site=3"},
    {"Dropout", "batch=3 per=20 drop=0. site=3"},
    {"AttentionGeneral",
     "batch=2 heads=16 kv_heads=8 query=9 key=9 width=4 causal=1 window=4 scale=0.5 cap=2. alibi=0. slopes=16 drop=0. site=3"},
    {"AttentionPackedDocuments", "batch=2 heads=8 query=9 width=4 causal=1 scale=0.5 drop=0. site=3"},
    {"PositionDocuments", "batch=3 seq=5 width=20 rows=9 offset=2"},
    {"RotaryDocuments",
     "batch=4 seq=5 heads=8 width=4 dims=4 adjacent=1 theta=1e4 scaling=0 factor=1. low=1. high=4. original=8192"},
    {"GroupedLinear", "rows=12 in=20 out=24 experts=3"}, {"GroupedLinear", "rows=9 in=47 out=16 experts=4"},
    {"Dispatch", "rows=6 top=2 width=20 experts=3"},
    {"RotaryTable", "batch=4 seq=5 heads=8 width=4 dims=4 adjacent=1 theta=1e4"}, {"LayerNorm", "rows=20 width=24 eps=1e-5"},
    {"RMSNorm", "rows=20 width=24 eps=1e-5"}, {"RMSNormOffset", "rows=20 width=24 eps=1e-5 offset=1."},
    {"BatchNormalize", "rows=12 width=20 eps=1e-5"}, {"BatchNormRelu", "rows=12 width=20 eps=1e-5"},
    {"BatchNormAddRelu", "rows=12 width=20 eps=1e-5"}, {"BatchNormSilu", "rows=12 width=20 eps=1e-5"},
    {"BatchNormClip", "rows=12 width=20 eps=1e-5 low=-0.5 high=0.5"},
    {"GroupNorm", "batch=2 pixels=6 groups=8 width=3 eps=1e-5"},
    {"Softmax", "rows=20 width=24"},
    {"Relu", "n=60"}, {"Gelu", "n=60 tanh=1"}, {"Silu", "n=60"}, {"Tanh", "n=60"}, {"Sigmoid", "n=60"},
    {"Clip", "n=60 low=-0.5 high=0.5"}, {"LeakyRelu", "n=60 slope=0.1"}, {"Elu", "n=60 alpha=0.5"}, {"Softplus", "n=60"},
    {"HardSigmoid", "n=60"}, {"HardSwish", "n=60"},
    {"Scale", "n=60 factor=0.3"}, {"SoftCap", "n=60 cap=2."}, {"Reshape", "n=60"}, {"StopGradient", "n=60"},
    {"Cast", "n=60"}, {"GradAdd", "n=60"},
    {"Rotary", "batch=4 seq=5 heads=8 width=4 dims=4 adjacent=1 theta=1e4 scaling=0 factor=1. low=1. high=4. original=8192"},
    {"Add", "n=60"}, {"AddBroadcast", "n=120 nb=20"}, {"Mul", "n=120 nb=20"}, {"Gate", "n=60 act=0"},
    {"AddMiddle", "outer=8 mid=3 inner=5 factor=1."}, {"MulMiddle", "outer=8 mid=3 inner=5"},
    {"Concat", "outer=8 na=3 nb=2 nc=0 nd=0 ne=0 nf=0 ng=0 ni=0"}, {"Slice", "outer=8 whole=7 from=2 count=3"},
    {"Mean", "outer=8 mid=5 inner=3 factor=0.2"}, {"Sum", "outer=8 mid=5 inner=3 factor=1."},
    {"MaxPool", "batch=4 height=6 width=6 channels=20 yheight=3 ywidth=3 kheight=2 kwidth=2 stride=2 top=0 left=0"},
    {"AvgPool", "batch=4 height=6 width=6 channels=20 yheight=3 ywidth=3 kheight=2 kwidth=2 stride=2 top=0 left=0 count_pad=1"},
    {"Pad", "batch=4 height=3 width=3 channels=20 yheight=5 ywidth=5 top=1 left=1 value=0.5 gtop=-1 gleft=-1 zero=0."},
    {"Upsample", "batch=4 height=3 width=3 channels=20 fheight=2 fwidth=2"},
    {"UpsampleBilinear", "batch=4 height=3 width=3 channels=20 fheight=2 fwidth=2 align=0"},
    {NULL, NULL}
};

typedef struct { char name[24]; bool is_float; long i; float f; } Number;
typedef struct {                /* an operator, whole or one worker's part */
    const Row *r;
    RowAxes axes;
    Number attr[MOST_ATTRS];
    int attrs;
    void *value[AXES_LISTS], *grad[AXES_LISTS];     /* by operand, parameter, result; NULL: absent */
    bool written[AXES_LISTS];                       /* grad: by a call */
} Unit;

static Stage stage;
static Values vals = {.micro = 1, .batch = 1, .lr = 0.1f};
static int passed, failed;
static uint64_t state = 1;
static unsigned char scratch[SCRATCH];

/* ---- operands ---------------------------------------------------------------------------------------------------- */

static const Operand *operand(const Unit *u, int i)
{
    int par = i - u->r->in.n, out = par - u->r->par.n;
    return par < 0 ? &u->r->in.at[i] : out < 0 ? &u->r->par.at[par] : &u->r->out.at[out];
}

static bool is_result(const Unit *u, int i) { return i >= u->r->in.n + u->r->par.n; }
static bool is_par(const Unit *u, int i) { return i >= u->r->in.n && !is_result(u, i); }

static size_t size_of(const Unit *u, int i, bool grad)
{
    char type = operand(u, i)->type;
    return type == 'i' || type == 'f' || (grad && is_par(u, i)) ? 4 : sizeof(real);
}

static int64_t number_of(const void *ctx, const char *name)
{
    const Unit *u = ctx;
    for (int i = 0; i < u->attrs; i++)
        if (!strcmp(u->attr[i].name, name))
            return u->attr[i].is_float ? -1 : u->attr[i].i;
    return -1;
}

static long elements(const Unit *u, int i)
{
    int64_t n = dims_size(&u->axes, &u->axes.list[i], number_of, u);
    if (n < 0)
        die("axes: row %s: the sample does not give the size of %s", u->r->name, operand(u, i)->name);
    return (long)n;
}

static void *room(size_t bytes)
{
    void *at = alloc(bytes + 64);
    memset(at, 0xff, bytes + 64);
    return at;
}

static double draw(void)        /* -1 .. 1 */
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double)(int64_t)state * 0x1p-63;
}

static void fill(const Unit *u, int i, void *to, bool grad)
{
    long n = elements(u, i), most = 2;
    const char *name = operand(u, i)->name;
    if (!strcmp(name, "ids"))
        most = (long)number_of(u, "rows");
    for (long k = 0; k < n; k++) {
        double v = draw();
        if (!strcmp(name, "offset"))        /* of three experts or more one has no rows */
            ((int32_t *)to)[k] = (int32_t)(k == 1 ? 0 : k * number_of(u, "rows") / number_of(u, "experts"));
        else if (operand(u, i)->type == 'i')
            ((int32_t *)to)[k] = !strcmp(name, "slot") ? (int32_t)k : (int32_t)((v + 1) / 2 * (double)most) % (int32_t)most;
        else if (size_of(u, i, grad) == sizeof(float))
            ((float *)to)[k] = (float)(strcmp(name, "var") ? v : v * v + 0.1);
        else
            put(to, k, (float)v);
    }
}

/* Elements [from, from + n) along an axis, of each stretch of the operand; back: into the whole. */
static void part(const Unit *whole, int i, int axis, void *all, void *one, long from, long n, bool grad, bool back)
{
    const AxisList *d = &whole->axes.list[i];
    size_t size = size_of(whole, i, grad);
    long outer = 1, inner = 1, along = (long)axis_size(&whole->axes, axis, number_of, whole);
    bool found = false;
    for (int k = 0; k < d->n; k++) {
        long v = (long)axis_size(&whole->axes, d->dim[k], number_of, whole);
        found |= d->dim[k] == axis;
        outer *= found ? 1 : v;
        inner *= found && d->dim[k] != axis ? v : 1;
    }
    for (long o = 0; o < outer; o++) {
        char *a = (char *)all + (size_t)((o * along + from) * inner) * size, *b = (char *)one + (size_t)(o * n * inner) * size;
        memcpy(back ? a : b, back ? b : a, (size_t)(n * inner) * size);
    }
}

static bool has_axis(const Unit *u, int i, int axis)
{
    for (int k = 0; k < u->axes.list[i].n; k++)
        if (u->axes.list[i].dim[k] == axis)
            return true;
    return false;
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static int find(const Unit *u, const char *name)
{
    for (int i = 0; i < u->axes.lists; i++)
        if (!strcmp(operand(u, i)->name, name))
            return i;
    return -1;
}

static Word word(Unit *u, const char *token, bool back)
{
    int i = find(u, token), d = *token == 'd' && back ? find(u, token + 1) : -1;
    if (!strcmp(token, "tmp"))
        return (Word){.p = scratch};
    if (!strcmp(token, "vals"))
        return (Word){.p = &vals};
    if (!strcmp(token, "acc") || !strcmp(token, "mb") || !strcmp(token, "h") || !strcmp(token, "onto"))
        return (Word){.p = NULL};
    if (i >= 0)
        return (Word){.p = u->value[i]};
    if (d >= 0)
        return u->written[d] |= !is_result(u, d), (Word){.p = u->grad[d]};
    for (int k = 0; k < u->attrs; k++)
        if (!strcmp(u->attr[k].name, token))
            return u->attr[k].is_float ? (Word){.f = u->attr[k].f} : (Word){.i = u->attr[k].i};
    die("axes: row %s: the sample has no %s", u->r->name, token);
}

static void call(Unit *u, const char *text, size_t n, bool back)
{
    const char *one = strf("%.*s", (int)n, text);
    size_t name = strcspn(one, "(");
    if (!one[name]) {                           /* dx = dy */
        int to = find(u, strf("%.*s", (int)strcspn(one + 1, " "), one + 1)), from = find(u, strrchr(one, 'd') + 1);
        u->written[to] = true;
        memcpy(u->grad[to], u->grad[from], (size_t)elements(u, to) * sizeof(real));
        return;
    }
    Word list[MOST_WORDS];
    int words = 0;
    for (const char *p = one + name + 1; *p && *p != ')'; p += strspn(p, ", ")) {
        size_t k = strcspn(p, ",)");
        list[words++] = word(u, strf("%.*s", (int)k, p), back);
        p += k;
    }
    for (int k = 0; k < KERNELS; k++)
        if (strlen(kernels[k].name) == name && !memcmp(kernels[k].name, one, name)) {
            kernels[k].call(&stage, list);
            return;
        }
    die("axes: no kernel of %s", one);
}

static void run(Unit *u, int phase)
{
    for (const char *p = u->r->call[phase]; *p; p += *p == ';') {
        p += strspn(p, " ");
        size_t n = strcspn(p, ";");
        call(u, p, n, phase != PH_F);
        p += n;
    }
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

static void read_attrs(Unit *u, const char *text)
{
    for (const char *p = text; *p; p += strspn(p, " ")) {
        size_t n = strcspn(p, "="), k = strcspn(p, " ");
        Number *a = &u->attr[u->attrs++];
        memcpy(a->name, p, n);
        a->is_float = memchr(p + n, '.', k - n) || memchr(p + n, 'e', k - n);
        a->i = atol(p + n + 1);
        a->f = (float)atof(p + n + 1);
        p += k;
    }
}

static Unit whole_of(const Sample *s, const Row *r, int absent)
{
    Unit u = {.r = r};
    row_axes(r, &u.axes);
    read_attrs(&u, s->attrs);
    for (int i = 0; i < u.axes.lists; i++) {
        if (i == absent || (operand(&u, i)->optional && !elements(&u, i)))
            continue;
        u.value[i] = room((size_t)elements(&u, i) * size_of(&u, i, false));
        u.grad[i] = room((size_t)elements(&u, i) * size_of(&u, i, true));
        if (!is_result(&u, i))
            fill(&u, i, u.value[i], false);
        else if (operand(&u, i)->type == 'r')
            fill(&u, i, u.grad[i], true);
    }
    return u;
}

/* ---- parts ------------------------------------------------------------------------------------------------------- */

enum { MOST_WORKERS = 4 };
typedef struct {                /* each: elements of a block */
    Unit *whole;
    int axis, workers, blocks;
    long each, size;
} Cut;

/* Terms of a result, a slot a level: the tree over workers is that over their blocks. */
static void add_terms(float *to, float *const *term, int n, long size)
{
    if (n == 1) {
        memcpy(to, term[0], (size_t)size * sizeof *to);
        return;
    }
    float *right = room((size_t)size * sizeof *right);
    add_terms(to, term, n / 2, size);
    if (!term[n / 2])
        return;
    add_terms(right, term + n / 2, n / 2, size);
    for (long i = 0; i < size; i++)
        to[i] += right[i];
}

static void same(const Cut *c, const Unit *u, int i, bool grad, const void *got)
{
    const void *want = grad ? u->grad[i] : u->value[i];
    size_t bytes = (size_t)elements(u, i) * size_of(u, i, grad);
    bool good = !memcmp(got, want, bytes);
    passed += good;
    failed += !good;
    if (!good)
        fprintf(stderr, "axes: %s, %s divided among %d, %d blocks: %s%s has not the bits of the whole\n", u->r->name,
                u->axes.axis[c->axis].name, c->workers, c->blocks, grad ? "d" : "", operand(u, i)->name);
}

static Unit part_of(const Cut *c, long from, long n)
{
    Unit u = *c->whole;
    const RowAxes *a = &u.axes;
    for (int k = 0; k < u.attrs; k++) {
        if (!strcmp(u.attr[k].name, a->axis[c->axis].name))
            u.attr[k].i = n;
        for (int p = 0; p < a->products; p++)
            for (int d = 0; d < a->product[p].of.n; d++)
                if (!strcmp(u.attr[k].name, a->product[p].attr) && a->product[p].of.dim[d] == c->axis)
                    u.attr[k].i = u.attr[k].i / c->size * n;
    }
    for (int i = 0; i < a->lists; i++) {
        if (!u.value[i] || !has_axis(&u, i, c->axis))
            continue;
        void *value = room((size_t)elements(&u, i) * 4), *grad = room((size_t)elements(&u, i) * 4);
        part(c->whole, i, c->axis, u.value[i], value, from, n, false, false);
        part(c->whole, i, c->axis, u.grad[i], grad, from, n, true, false);
        u.value[i] = value;
        u.grad[i] = grad;
    }
    return u;
}

static bool names(const char *calls, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = calls; (p = strstr(p, word)); p += n)
        if (strchr("( ;", p > calls ? p[-1] : ' ') && strchr(",) ", p[n]))
            return true;
    return false;
}

/* Does the phase make something without the axis? */
static bool sums(const Cut *c, int phase)
{
    const Unit *u = c->whole;
    for (int i = 0; i < u->axes.lists; i++)
        if (u->value[i] && !has_axis(u, i, c->axis) && is_result(u, i) == (phase == PH_F)
            && (phase == PH_F || (operand(u, i)->type != 'i' && names(u->r->call[phase], strf("d%s", operand(u, i)->name)))))
            return true;
    return false;
}

/* The part's result: its bits are those of the whole, or it is a term. */
static void take(const Cut *c, const Unit *want, const Unit *u, int i, bool grad, float **term)
{
    void *got = grad ? u->grad[i] : u->value[i];
    if (has_axis(u, i, c->axis))
        same(c, want, i, grad, got);
    else
        *term = got;
}

static void worker(const Cut *c, int w, float *term[2][AXES_LISTS][MOST_WORKERS])
{
    long span = c->each * (c->blocks / c->workers), from = w * span, n = c->size - from < span ? c->size - from : span;
    if (n <= 0)
        return;
    Unit want = part_of(c, from, n), u = want;
    long mine = (n + c->each - 1) / c->each;
    for (int phase = PH_F; phase <= PH_W; phase++) {
        bool cut = sums(c, phase);
        if (cut && mine > 1 && (n + mine - 1) / mine != c->each)
            die("axes: row %s: %ld in blocks of %ld", u.r->name, n, c->each);
        stage.blocks = cut ? (int)mine : c->blocks;
        for (int i = 0; i < u.axes.lists; i++)          /* backward has the results of the whole */
            if (u.value[i] && is_result(&u, i))
                u.value[i] = phase == PH_F ? room((size_t)elements(&u, i) * 4) : want.value[i];
            else if (u.value[i] && phase == PH_I)
                u.grad[i] = room((size_t)elements(&u, i) * 4);
        run(&u, phase);
        for (int i = 0; phase == PH_F && i < u.axes.lists; i++)
            if (u.value[i] && is_result(&u, i))
                take(c, &want, &u, i, false, &term[0][i][w]);
    }
    for (int i = 0; i < u.axes.lists; i++)
        if (u.value[i] && u.written[i])
            take(c, &want, &u, i, true, &term[1][i][w]);
}

static void check_cut(const Cut *c)
{
    static float *term[2][AXES_LISTS][MOST_WORKERS];
    Unit *u = c->whole;
    memset(term, 0, sizeof term);
    stage.blocks = c->blocks;
    for (int phase = PH_F; phase <= PH_W; phase++)
        run(u, phase);
    for (int w = 0; w < c->workers; w++)
        worker(c, w, term);
    for (int grad = 0; grad < 2; grad++)
        for (int i = 0; i < u->axes.lists; i++) {
            if (!term[grad][i][0] || size_of(u, i, grad) < sizeof(float))
                continue;
            float *sum = room((size_t)elements(u, i) * sizeof *sum);
            add_terms(sum, term[grad][i], c->workers, elements(u, i));
            same(c, u, i, grad, sum);
        }
}

/* What is added to a finished sum is no operand of its terms: a bias. */
static int behind_sum(const Unit *u, int axis)
{
    bool term = false;
    int found = -1;
    for (int i = 0; i < u->axes.lists; i++) {
        term |= is_result(u, i) && !has_axis(u, i, axis);
        if (is_par(u, i) && operand(u, i)->optional && !has_axis(u, i, axis))
            found = i;
    }
    return term ? found : -1;
}

static void check_sample(const Sample *s, const Row *r)
{
    Unit any = whole_of(s, r, -1);
    for (int axis = 0; axis < any.axes.axes; axis++)
        for (int workers = 2; workers <= MOST_WORKERS && !any.axes.axis[axis].whole; workers *= 2)
            for (int blocks = workers; blocks <= 8; blocks += 8 - workers ? 8 - workers : 1) {
                Unit whole = whole_of(s, r, behind_sum(&any, axis));
                long size = (long)axis_size(&whole.axes, axis, number_of, &whole);
                Cut c = {&whole, axis, workers, blocks, (size + blocks - 1) / blocks, size};
                check_cut(&c);
            }
}

/* ---- the written order -------------------------------------------------------------------------------------------- */

/* Terms a[i*step] b[i*other], i from lo to hi-1: what blocks `first` .. first+count-1 of `each` terms add up to, by definition:
 * a block is a chain from 0, two halves are added, an absent one adds nothing.  False: there are none. */
static bool sum_of(float *to, const real *a, long step, const real *b, long other, long n, long each, long first, long count)
{
    float left = 0, right = 0;
    if (first * each >= n)
        return false;
    if (count == 1) {
        for (long i = first * each; i < n && i < (first + 1) * each; i++)
            left = b ? fmaf(get(a, i * step), get(b, i * other), left) : left + get(a, i * step);
        return *to = left, true;
    }
    sum_of(&left, a, step, b, other, n, each, first, count / 2);
    bool more = sum_of(&right, a, step, b, other, n, each, first + count / 2, count / 2);
    return *to = more ? left + right : left, true;
}

static void equal(bool good, const char *what, long n, long blocks)
{
    passed += good;
    failed += !good;
    if (!good)
        fprintf(stderr, "axes: %s: a sum of %ld terms in %ld blocks is not that of docs/bits.md\n", what, n, blocks);
}

/* A sum of three pieces of n terms each: block b has the b-th block of each of them, one behind the other in one chain. */
static void check_pieces(long n, long blocks)
{
    enum { PIECES = 3, ROWS = 2, COLUMNS = 35 };
    long each = (n + blocks - 1) / blocks, all = PIECES * n, count = 0, at = 0;
    real *dy = room((size_t)(ROWS * all) * sizeof *dy), *w = room((size_t)(COLUMNS * all) * sizeof *w), dx[ROWS * COLUMNS];
    bool good = true;
    for (long i = 0; i < COLUMNS * all; i++) {
        put(w, i, (float)draw());
        put(dy, i % (ROWS * all), (float)draw());
    }
    stage.blocks = (int)blocks;
    linear_pieces_backward_x(&stage, dx, dy, w, 0, ROWS, COLUMNS, all, PIECES);
    for (long i = 0; i < ROWS * COLUMNS; i++) {
        float part[16];
        real one;
        for (count = 0, at = 0; count < blocks && at < n; at += each, count++) {
            part[count] = 0;
            for (long piece = 0; piece < PIECES; piece++)
                for (long k = piece * n + at; k < piece * n + (at + each < n ? at + each : n); k++)
                    part[count] = fmaf(get(dy, i / COLUMNS * all + k), get(w, k * COLUMNS + i % COLUMNS), part[count]);
        }
        for (long step = 1; step < count; step *= 2)
            for (long k = 0; k + step < count; k += 2 * step)
                part[k] += part[k + step];
        put(&one, 0, part[0]);
        good &= !memcmp(&one, &dx[i], sizeof one);
    }
    equal(good, "Linear, dx of three pieces", n, blocks);
}

/* Linear with 7 rows and 35 columns, so whole tiles and parts of one, around a sum of n terms. */
static void check_order(long n, long blocks)
{
    enum { ROWS = 7, COLUMNS = 35 };
    long each = (n + blocks - 1) / blocks;
    real *x = room((size_t)(ROWS * n) * sizeof *x), *w = room((size_t)(COLUMNS * n) * sizeof *w), y[ROWS * COLUMNS], one;
    float dw[ROWS * COLUMNS], more[ROWS * COLUMNS], db[ROWS], want;
    for (long i = 0; i < COLUMNS * n; i++) {
        put(w, i, (float)draw());
        put(x, i % (ROWS * n), (float)draw());
    }
    bool good[4] = {true, true, true, true};
    stage.blocks = (int)blocks;
    linear_forward(&stage, y, x, w, NULL, 0, ROWS, n, COLUMNS);
    for (long i = 0; i < ROWS * COLUMNS; i++) {
        sum_of(&want, x + i / COLUMNS * n, 1, w + i % COLUMNS * n, 1, n, each, 0, blocks);
        put(&one, 0, want);
        good[0] &= !memcmp(&one, &y[i], sizeof one);
    }
    linear_backward_x(&stage, y, x, w, 0, ROWS, COLUMNS, n);                     /* dy [7 n], weight [n 35] */
    for (long i = 0; i < ROWS * COLUMNS; i++) {
        sum_of(&want, x + i / COLUMNS * n, 1, w + i % COLUMNS, COLUMNS, n, each, 0, blocks);
        put(&one, 0, want);
        good[1] &= !memcmp(&one, &y[i], sizeof one);
    }
    linear_backward_w(&stage, dw, db, x, w, 0, 0, n, COLUMNS, ROWS);            /* dy [n 7], x [n 35] */
    memcpy(more, dw, sizeof dw);
    linear_backward_w(&stage, more, NULL, x, w, 0, 1, n, COLUMNS, ROWS);        /* onto an earlier micro-batch */
    for (long i = 0; i < ROWS * COLUMNS; i++) {
        sum_of(&want, x + i / COLUMNS, ROWS, w + i % COLUMNS, COLUMNS, n, each, 0, blocks);
        float sum = want + dw[i];
        good[2] &= !memcmp(&want, &dw[i], sizeof want) && !memcmp(&sum, &more[i], sizeof sum);
    }
    for (long i = 0; i < ROWS; i++)
        good[3] &= sum_of(&want, x + i, ROWS, NULL, 0, n, each, 0, blocks) && !memcmp(&want, &db[i], sizeof want);
    check_pieces(n, blocks);
    equal(good[0], "Linear, y", n, blocks);
    equal(good[1], "Linear, dx", n, blocks);
    equal(good[2], "Linear, dweight", n, blocks);
    equal(good[3], "Linear, dbias", n, blocks);
}

/* The largest of n scores, and the sum of e^(score - that): by 16 lanes, then halves. */
static void pair_of(float to[2], const real *x, long n)
{
    float lane[16] = {0};
    to[0] = -F_INFINITY;
    for (long i = 0; i < n; i++)
        to[0] = get(x, i) > to[0] ? get(x, i) : to[0];
    for (long i = 0; i < n; i++)
        lane[i % 16] += fexp(get(x, i) - to[0]);
    for (int half = 8; half; half /= 2)
        for (int i = 0; i < half; i++)
            lane[i] += lane[i + half];
    to[1] = lane[0];
}

/* As sum_of: of pairs, each sum scaled to the larger score. */
static bool merged(float to[2], const real *x, long n, long each, long first, long count)
{
    float other[2];
    if (first * each >= n)
        return false;
    if (count == 1)
        return pair_of(to, x + first * each, n - first * each < each ? n - first * each : each), true;
    merged(to, x, n, each, first, count / 2);
    if (!merged(other, x, n, each, first + count / 2, count / 2))
        return true;
    float top = to[0] > other[0] ? to[0] : other[0], a = to[1] * fexp(to[0] - top), b = other[1] * fexp(other[0] - top);
    to[0] = top;
    to[1] = a + b;
    return true;
}

/* The losses over n scores of 3 rows, 5 wide before the head; the second one has the vocabulary in chunks of 64. */
static void check_losses(long n, long blocks)
{
    enum { ROWS = 3, IN = 5, CHUNK = 64 };
    long each = (n + blocks - 1) / blocks;
    int32_t targets[ROWS] = {0, (int32_t)(n - 1), (int32_t)(n / 2)};
    real x[ROWS * IN], dx[ROWS * IN], *w = room((size_t)(IN * n) * sizeof *w), *s = room((size_t)(ROWS * n) * sizeof *s);
    real *ds = room((size_t)(ROWS * n) * sizeof *ds), one;
    float loss, other, lse[ROWS], again[ROWS], *dw = room((size_t)(IN * n) * sizeof *dw), dloss = 1, want, pair[2];
    bool good[3] = {true, true, true};
    for (long i = 0; i < ROWS * IN; i++)
        put(x, i, (float)(2 * draw()));
    for (long i = 0; i < IN * n; i++)
        put(w, i, (float)(4 * draw()));
    vals.valid[0] = ROWS;
    stage.blocks = 0;
    linear_forward(&stage, s, x, w, NULL, 0, ROWS, IN, n);
    stage.blocks = (int)blocks;
    xent_forward(&stage, &loss, lse, s, targets, &vals, ROWS, n, -100, 0);
    xent_backward(&stage, ds, &dloss, s, lse, targets, &vals, ROWS, n, -100, 0);
    for (long r = 0; r < ROWS; r++) {
        merged(pair, s + r * n, n, each, 0, blocks);
        want = pair[0] + flog(pair[1]);
        good[0] &= !memcmp(&want, &lse[r], sizeof want);
    }
    linear_xent_forward(&stage, &other, again, x, w, NULL, targets, scratch, &vals, 0, ROWS, IN, n, CHUNK, -100, 0);
    good[1] = each > CHUNK || (!memcmp(lse, again, sizeof lse) && !memcmp(&loss, &other, sizeof loss));
    linear_xent_backward(&stage, dx, dw, NULL, &dloss, x, w, NULL, lse, targets, scratch, &vals, 0, 0, ROWS, IN, n, CHUNK, -100,
                         0);
    for (long i = 0; i < ROWS * IN; i++) {
        sum_of(&want, ds + i / IN * n, 1, w + i % IN, IN, n, each, 0, blocks);
        put(&one, 0, want);
        good[2] &= !memcmp(&one, &dx[i], sizeof one);
    }
    equal(good[0], "SoftmaxCrossEntropy, lse", n, blocks);
    equal(good[1], "LinearCrossEntropy, lse", n, blocks);
    equal(good[2], "LinearCrossEntropy, dx", n, blocks);
}

int main(void)
{
    static const long terms[] = {1, 2, 3, 5, 7, 8, 9, 16, 17, 31, 33, 100, 129, 1000, 2049};
    stage.threads = 1;
    for (size_t i = 0; i < sizeof terms / sizeof *terms; i++)
        for (long blocks = 1; blocks <= 16; blocks *= 2)
            check_order(terms[i], blocks), check_losses(terms[i], blocks);
    for (int i = 0; i < row_count(); i++) {
        const Row *r = row(i);
        RowAxes axes;
        row_axes(r, &axes);
        bool divided = false, sampled = false;
        for (int k = 0; k < axes.axes; k++)
            divided |= !axes.axis[k].whole;
        for (const Sample *s = samples; s->row && divided; s++)
            if (!strcmp(s->row, r->name)) {
                sampled = true;
                check_sample(s, r);
            }
        bool good = *r->axes && sampled == divided;
        passed += good;
        failed += !good;
        if (!good)
            fprintf(stderr, "axes: row %s: %s\n", r->name, *r->axes ? "no sample of it here" : "no axes");
    }
    printf("axes: %d passed, %d failed\n", passed, failed);
    return failed != 0;
}
