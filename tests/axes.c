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
 *     statistics without it           as they are: nothing is added over workers
 *     the gradient of an operand      as a result of the operand's axes
 *
 * So nothing here knows an operator: shapes, parts and sums come from the column, calls from the table, sizes from `samples`.
 * A row with an axis to divide and no sample fails, and so does a row without axes.  In bf16 terms in the compute type are left
 * out: they would be rounded.
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
    {"Conv",
     "batch=2 height=5 width=4 in=20 yheight=5 ywidth=4 out=24 kheight=3 kwidth=3 stride=1 top=1 left=1 dilate=1 groups=1"},
    {"Conv",
     "batch=2 height=7 width=5 in=9 yheight=3 ywidth=2 out=35 kheight=3 kwidth=2 stride=2 top=0 left=-1 dilate=1 groups=1"},
    {"Conv",
     "batch=2 height=5 width=4 in=24 yheight=5 ywidth=4 out=40 kheight=1 kwidth=1 stride=1 top=0 left=0 dilate=1 groups=1"},
    {"Conv",
     "batch=2 height=5 width=4 in=4 yheight=5 ywidth=4 out=4 kheight=3 kwidth=3 stride=1 top=1 left=1 dilate=1 groups=1"},
    {"ConvGroups",
     "batch=2 height=5 width=4 in=16 yheight=5 ywidth=4 out=24 kheight=3 kwidth=3 stride=1 top=1 left=1 dilate=1 groups=8"},
    {"ConvGroups",
     "batch=2 height=5 width=4 in=20 yheight=3 ywidth=2 out=20 kheight=3 kwidth=3 stride=2 top=1 left=1 dilate=1 groups=20"},
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
    {"RMSNorm", "rows=20 width=24 eps=1e-5"},
    {"RMSNormOffset", "rows=20 width=24 eps=1e-5 offset=1."},
    {"BatchStat", "rows=12 width=20 momentum=0.1 each=0"}, {"BatchNormalize", "rows=12 width=20 eps=1e-5"},
    {"BatchNormRelu", "rows=12 width=20 eps=1e-5"}, {"BatchNormAddRelu", "rows=12 width=20 eps=1e-5"},
    {"BatchNormSilu", "rows=12 width=20 eps=1e-5"}, {"BatchNormClip", "rows=12 width=20 eps=1e-5 low=-0.5 high=0.5"},
    {"GroupNorm", "batch=2 pixels=6 groups=8 width=3 eps=1e-5"},
    {"Softmax", "rows=20 width=24"},
    {"Relu", "n=60"}, {"Gelu", "n=60 tanh=1"}, {"Silu", "n=60"}, {"Tanh", "n=60"}, {"Sigmoid", "n=60"},
    {"Clip", "n=60 low=-0.5 high=0.5"}, {"LeakyRelu", "n=60 slope=0.1"}, {"Elu", "n=60 alpha=0.5"}, {"Softplus", "n=60"},
    {"HardSigmoid", "n=60"}, {"HardSwish", "n=60"},
    {"Scale", "n=60 factor=0.3"}, {"SoftCap", "n=60 cap=2."}, {"Reshape", "n=60"}, {"StopGradient", "n=60"},
    {"Cast", "n=60"}, {"GradAdd", "n=60"},
    {"Rotary", "batch=4 seq=5 heads=8 width=4 dims=4 adjacent=1 theta=1e4 scaling=0 factor=1. low=1. high=4. original=8192"},
    {"Add", "n=60"}, {"AddBroadcast", "n=120 nb=20"}, {"Mul", "n=120 nb=20"}, {"Gate", "n=60 act=0"},
    {"AddMiddle", "outer=8 mid=3 inner=20 factor=1."}, {"MulMiddle", "outer=8 mid=3 inner=20"},
    {"Concat", "outer=8 na=3 nb=2 nc=0 nd=0 ne=0 nf=0 ng=0 ni=0"}, {"Slice", "outer=8 whole=7 from=2 count=3"},
    {"Mean", "outer=8 mid=5 inner=20 factor=0.2"}, {"Sum", "outer=8 mid=5 inner=20 factor=1."},
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
} Share;

static Stage stage;
static Values vals = {.micro = 1, .batch = 1, .lr = 0.1f};
static int passed, failed;
static uint64_t state = 1;
static unsigned char scratch[SCRATCH];

/* ---- operands ---------------------------------------------------------------------------------------------------- */

static const Operand *operand(const Share *u, int i)
{
    int par = i - u->r->in.n, out = par - u->r->par.n;
    return par < 0 ? &u->r->in.at[i] : out < 0 ? &u->r->par.at[par] : &u->r->out.at[out];
}

static bool is_result(const Share *u, int i) { return i >= u->r->in.n + u->r->par.n; }
static bool is_par(const Share *u, int i) { return i >= u->r->in.n && !is_result(u, i); }

static size_t size_of(const Share *u, int i, bool grad)
{
    char type = operand(u, i)->type;
    return type == 'i' || type == 'f' || (grad && is_par(u, i)) ? 4 : sizeof(real);
}

static int64_t number_of(const void *ctx, const char *name)
{
    const Share *u = ctx;
    for (int i = 0; i < u->attrs; i++)
        if (!strcmp(u->attr[i].name, name))
            return u->attr[i].is_float ? -1 : u->attr[i].i;
    return -1;
}

static long elements(const Share *u, int i)
{
    int64_t n = dims_size(&u->axes, &u->axes.list[i], number_of, u);
    if (n < 0)
        die("axes: row %s: the sample does not give the size of %s", u->r->name, operand(u, i)->name);
    return (long)n;
}

/* Of statistics an accumulator has two floats a number (rt/op/batch.c). */
static long halves(const Share *u, int i, bool grad) { return grad && operand(u, i)->tracked ? 2 : 1; }

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

static void fill(const Share *u, int i, void *to, bool grad)
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
static void part(const Share *whole, int i, int axis, void *all, void *one, long from, long n, bool grad, bool back)
{
    const AxisList *d = &whole->axes.list[i];
    size_t size = size_of(whole, i, grad);
    long outer = halves(whole, i, grad), inner = 1, along = (long)axis_size(&whole->axes, axis, number_of, whole);
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

static bool has_axis(const Share *u, int i, int axis)
{
    for (int k = 0; k < u->axes.list[i].n; k++)
        if (u->axes.list[i].dim[k] == axis)
            return true;
    return false;
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static int find(const Share *u, const char *name)
{
    for (int i = 0; i < u->axes.lists; i++)
        if (!strcmp(operand(u, i)->name, name))
            return i;
    return -1;
}

static Word word(Share *u, const char *token, bool back)
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

static void call(Share *u, const char *text, size_t n, bool back)
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

static void run(Share *u, int phase)
{
    for (const char *p = u->r->call[phase]; *p; p += *p == ';') {
        p += strspn(p, " ");
        size_t n = strcspn(p, ";");
        call(u, p, n, phase != PH_F);
        p += n;
    }
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

static void read_attrs(Share *u, const char *text)
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

static Share whole_of(const Sample *s, const Row *r, int absent)
{
    Share u = {.r = r};
    u.axes = row_axes(r);
    read_attrs(&u, s->attrs);
    for (int i = 0; i < u.axes.lists; i++) {
        if (i == absent || (operand(&u, i)->optional && !elements(&u, i)))
            continue;
        u.value[i] = room((size_t)elements(&u, i) * size_of(&u, i, false));
        u.grad[i] = room((size_t)(2 * elements(&u, i)) * size_of(&u, i, true));
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
    Share *whole;
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

static void same(const Cut *c, const Share *u, int i, bool grad, const void *got)
{
    const void *want = grad ? u->grad[i] : u->value[i];
    size_t bytes = (size_t)(halves(u, i, grad) * elements(u, i)) * size_of(u, i, grad);
    bool good = !memcmp(got, want, bytes);
    passed += good;
    failed += !good;
    if (!good)
        fprintf(stderr, "axes: %s, %s divided among %d, %d blocks: %s%s has not the bits of the whole\n", u->r->name,
                u->axes.axis[c->axis].name, c->workers, c->blocks, grad ? "d" : "", operand(u, i)->name);
}

static Share part_of(const Cut *c, long from, long n)
{
    Share u = *c->whole;
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
        void *value = room((size_t)elements(&u, i) * 4), *grad = room((size_t)elements(&u, i) * 8);
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
    const Share *u = c->whole;
    for (int i = 0; i < u->axes.lists; i++)
        if (u->value[i] && !has_axis(u, i, c->axis) && is_result(u, i) == (phase == PH_F)
            && (phase == PH_F || (operand(u, i)->type != 'i' && !operand(u, i)->tracked &&
                                  names(u->r->call[phase], strf("d%s", operand(u, i)->name)))))
            return true;
    return false;
}

/* The part's result: its bits are those of the whole, or it is a term. */
static void take(const Cut *c, const Share *want, const Share *u, int i, bool grad, float **term)
{
    void *got = grad ? u->grad[i] : u->value[i];
    if (has_axis(u, i, c->axis) || operand(u, i)->tracked)
        same(c, want, i, grad, got);
    else
        *term = got;
}

static void worker(const Cut *c, int w, float *term[2][AXES_LISTS][MOST_WORKERS])
{
    long span = c->each * (c->blocks / c->workers), from = w * span, n = c->size - from < span ? c->size - from : span;
    if (n <= 0)
        return;
    Share want = part_of(c, from, n), u = want;
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
                u.grad[i] = room((size_t)elements(&u, i) * 8);
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
    Share *u = c->whole;
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
static int behind_sum(const Share *u, int axis)
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
    Share any = whole_of(s, r, -1);
    for (int axis = 0; axis < any.axes.axes; axis++)
        for (int workers = 2; workers <= MOST_WORKERS && !any.axes.axis[axis].whole; workers *= 2)
            for (int blocks = workers; blocks <= 8; blocks += 8 - workers ? 8 - workers : 1) {
                Share whole = whole_of(s, r, behind_sum(&any, axis));
                long size = (long)axis_size(&whole.axes, axis, number_of, &whole);
                Cut c = {&whole, axis, workers, blocks, (size + blocks - 1) / blocks, size};
                check_cut(&c);
            }
}

#include "axes_order.h"

int main(void)
{
    static const long terms[] = {1, 2, 3, 5, 7, 8, 9, 16, 17, 31, 33, 100, 129, 1000, 2049};
    stage.threads = 1;
    for (size_t i = 0; i < sizeof terms / sizeof *terms; i++)
        for (long blocks = 1; blocks <= 16; blocks *= 2)
            check_order(terms[i], blocks), check_losses(terms[i], blocks), check_conv(terms[i], blocks);
    for (int i = 0; i < row_count(); i++) {
        const Row *r = row(i);
        const RowAxes axes = row_axes(r);
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
