/* SPDX-License-Identifier: Apache-2.0
 *
 * shape_ops.c: the shape rules, by the names in ops.def.
 *
 * A rule returns false after a complaint.  Products of dimensions need no check of their own: every tensor is below
 * 2^48 bytes, and an attribute is a product of some dimensions of one tensor.  Axes count from 0, or back from -1.
 */
#include "build.h"
#include "rt/few.h"

static Shape leading(const Shape *s)
{
    Shape r = *s;
    r.d[--r.n] = 0;
    return r.n ? r : (Shape){1, {1}};
}

static int64_t rows(const Shape *s)
{
    return shape_size(s, 0, s->n - 1);
}

void shape_site(Sizer *z)
{
    attr_set(z->o, "site", (int64_t)(hash64(z->o->name) & (((uint64_t)1 << 62) - 1)));
}

bool shape_drop(Sizer *z, int64_t elements)
{
    const Attr *a = attr_find(z->o, "drop");
    if (a->f > 0 && elements > (int64_t)1 << 34)
        return refuse(z, NULL, "random numbers reach 2^34 elements a sample, not %lld", (Num)elements);
    if (!(a->f >= 0 && (float)a->f < 1))
        return refuse(z, NULL, "a probability is from 0 to below 1, not %.10g", a->f);
    return true;
}

bool shape_by_sample(Sizer *z, const Shape *x)
{
    if (x->d[0] != z->g->batch)
        return refuse(z, NULL, "the first dimension of %s must count the samples, B = %lld", shape_text(x),
                      (Num)z->g->batch);
    return true;
}

/* Ids are indices of memory in a kernel.  A job holds data against the range that its input declares, and lets in nothing
 * else but a target that every loss passes over (input_ignores): so that range must lie in [0, n). */
static bool ids_within(Sizer *z, int operand, int64_t n, const char *more)
{
    const Tensor *t = &z->g->tensor.at[z->o->in.at[operand]];
    if (t->kind != T_INPUT)
        return refuse(z, NULL, "takes a data input, and %s is computed", t->name);
    const Input *x = &z->m->inputs.at[t->of];
    if (x->lo != x->hi && x->lo >= 0 && x->hi <= n)
        return true;
    return refuse(z, strf("range: [0, %lld]%s", (Num)n, more), "values from 0 to %lld are possible here, and input %s %s",
                  (Num)n - 1, x->name, x->lo == x->hi ? "declares no range" :
                  strf("declares [%lld, %lld]", (Num)x->lo, (Num)x->hi));
}

/* ---- tables of rows -------------------------------------------------------------------------------------------- */

static bool size_embedding(Sizer *z)
{
    Shape y = *in_shape(z, 0);
    if (y.n == MAXDIM)
        return refuse(z, NULL, "ids have %d dimensions; one more would be too many", y.n);
    attr_set(z->o, "n", shape_elements(&y));
    y.d[y.n++] = attr_int(z->o, "width");
    int64_t rows = attr_int(z->o, "rows"), width = attr_int(z->o, "width");
    return ids_within(z, 0, rows, "") && par_shape(z, 0, (Shape){2, {rows, width}}) &&
           out_shape(z, 0, y);
}

static bool size_position(Sizer *z)
{
    const Shape *x = in_shape(z, 0);
    if (x->n < 2)
        return refuse(z, NULL, "takes [..., positions, width], not %s", shape_text(x));
    ATTRS(z->o, {"batch", shape_size(x, 0, x->n - 2)}, {"seq", x->d[x->n - 2]}, {"width", shape_last(x)});
    if (attr_int(z->o, "rows") < attr_int(z->o, "seq"))
        return refuse(z, NULL, "rows: %lld are fewer than the %lld positions of %s", (Num)attr_int(z->o, "rows"),
                      (Num)attr_int(z->o, "seq"), shape_text(x));
    bool documents = z->o->in.n > 1, offset = attr_find(z->o, "offset");
    if (offset)
        attr_set(z->o, "rows", attr_int(z->o, "rows") + attr_int(z->o, "offset"));
    else if (documents)
        attr_set(z->o, "offset", 0);
    if (offset && !documents)
        z->o->row = row_find("PositionOffset");
    return documents_fit(z, attr_int(z->o, "batch"), attr_int(z->o, "seq")) &&
        par_shape(z, 0, (Shape){2, {attr_int(z->o, "rows"), shape_last(x)}}) && out_shape(z, 0, *x);
}

static bool size_relative_bias(Sizer *z)
{
    int64_t buckets = attr_int(z->o, "buckets"), each = attr_int(z->o, "both") ? buckets / 2 : buckets;
    if (each < 2 || each > 2048 || (attr_int(z->o, "both") && buckets % 2) || attr_int(z->o, "distance") <= each / 2 ||
        attr_int(z->o, "distance") > 1 << 20)
        return refuse(z, "buckets: 32, distance: 128", "%lld buckets cannot be spread over %lld distances",
                      (Num)buckets, (Num)attr_int(z->o, "distance"));
    return par_shape(z, 0, (Shape){2, {buckets, attr_int(z->o, "heads")}}) &&
           out_shape(z, 0, (Shape){3, {attr_int(z->o, "heads"), attr_int(z->o, "query"), attr_int(z->o, "key")}});
}

/* What `stored` says, where it has as many elements; else the shape itself. */
static Shape stored_shape(Sizer *z, Shape y)
{
    Shape s = {(int)attr_int(z->o, "stored"), {0}};
    for (int i = 0; i < s.n && s.n <= MAXDIM; i++)
        s.d[i] = attr_int(z->o, strf("stored.%d", i));
    if (!s.n || (s.n <= MAXDIM && shape_elements(&s) == shape_elements(&y)))
        return s.n ? s : y;
    refuse(z, NULL, "%s and 'stored', of %d axes, have other numbers of elements", shape_text(&y), s.n);
    return y;
}

static bool size_parameter(Sizer *z)
{
    Shape y = {(int)attr_int(z->o, "shape"), {0}};
    if (y.n < 2 || y.n > MAXDIM || attr_int(z->o, "shape.0") != 1)
        return refuse(z, "shape: [1, ...]", "the shape has a 1 in front, where samples are counted, and 2 to %d axes", MAXDIM);
    for (int i = 0; i < y.n; i++)
        if ((y.d[i] = attr_int(z->o, strf("shape.%d", i))) < 1)
            return refuse(z, NULL, "axis %d of the shape is %lld", i, (Num)y.d[i]);
    ATTRS(z->o, {"batch", z->g->batch}, {"n", shape_elements(&y)});
    if (!par_shape(z, 0, stored_shape(z, y)))
        return false;
    y.d[0] = z->g->batch;
    return out_shape(z, 0, y);
}

/* ---- products -------------------------------------------------------------------------------------------------- */

static bool size_linear(Sizer *z)
{
    Shape y = *in_shape(z, 0);
    int64_t in = shape_last(&y), out = attr_int(z->o, "out"), pieces = attr_int(z->o, "pieces");
    if (pieces && out % pieces)
        return refuse(z, strf("out: %lld", (Num)(out / pieces ? out / pieces * pieces : pieces)),
                      "out: %lld is not cut into %lld pieces of one size", (Num)out, (Num)pieces);
    if (!pieces && z->g->blocks) {
        /* Projections that stand behind each other in the result: as the line says, or as packed attention reads it. */
        int readers = 0, packed = 0;
        for (int i = 0; i < z->g->nf; i++)
            for (int k = 0; k < z->g->op.at[i].in.n; k++)
                if (z->g->op.at[i].in.at[k] == z->o->out.at[0]) {
                    readers++;
                    packed += !strcmp(row(z->g->op.at[i].row)->name, "AttentionPacked") && k == 0;
                }
        pieces = readers && packed == readers ? 3 : 1;
    }
    if (pieces > 1 && z->g->blocks && !strcmp(row(z->o->row)->name, "Linear")) {
        z->o->row = row_find("LinearPieces");
        attr_set(z->o, "pieces", pieces);
    }
    ATTRS(z->o, {"rows", rows(&y)}, {"in", in});
    y.d[y.n - 1] = out;
    return par_shape(z, 0, (Shape){2, {out, in}}) && par_shape(z, 1, (Shape){1, {out}}) && out_shape(z, 0, y);
}

static bool size_matmul(Sizer *z)
{
    const Shape *a = in_shape(z, 0), *b = in_shape(z, 1);
    bool ta = attr_int(z->o, "ta"), tb = attr_int(z->o, "tb");
    if (a->n < 2 || a->n != b->n || memcmp(a->d, b->d, (size_t)(a->n - 2) * sizeof a->d[0]))
        return refuse(z, NULL, "takes [..., m, k] and [..., k, n] with the same leading dimensions, not %s and %s",
                      shape_text(a), shape_text(b));
    int64_t m = a->d[a->n - 2 + ta], k = a->d[a->n - 1 - ta], kb = b->d[b->n - 2 + tb], n = b->d[b->n - 1 - tb];
    if (k != kb)
        return refuse(z, "transpose_a and transpose_b say how an operand is stored",
                      "the inner dimensions of %s and %s differ: %lld and %lld",
                      shape_text(a), shape_text(b), (Num)k, (Num)kb);
    Shape y = *a;
    y.d[y.n - 2] = m;
    y.d[y.n - 1] = n;
    ATTRS(z->o, {"batch", shape_size(a, 0, a->n - 2)}, {"m", m}, {"n", n}, {"k", k});
    return out_shape(z, 0, y);
}

/* ---- norms and softmax ----------------------------------------------------------------------------------------- */

static bool set_rows(Sizer *z)
{
    const Shape *x = in_shape(z, 0);
    ATTRS(z->o, {"rows", rows(x)}, {"width", shape_last(x)});
    return out_shape(z, 0, *x);
}

static bool size_norm(Sizer *z)
{
    Shape x = *in_shape(z, 0);
    bool ok = set_rows(z);
    if (attr_find(z->o, "eps")->f < 0)
        return refuse(z, NULL, "eps must not be negative");
    if (attr_find(z->o, "group")) {             /* each run of `group` along the last axis is a row */
        int64_t group = attr_int(z->o, "group");
        if (shape_last(&x) % group)
            return refuse(z, NULL, "the last axis, %lld, is not divisible by a width of %lld", (Num)shape_last(&x), (Num)group);
        ATTRS(z->o, {"rows", shape_elements(&x) / group}, {"width", group});
    }
    if (attr_find(z->o, "offset"))
        z->o->row = row_find("RMSNormOffset");
    for (int i = 0; i < z->r->par.n; i++)
        ok = ok && par_shape(z, i, (Shape){1, {attr_int(z->o, "width")}});
    x.d[x.n - 1] /= attr_int(z->o, "width");
    x = shape_last(&x) == 1 ? leading(&x) : x;
    for (int i = 1; i < z->r->out.n; i++)
        ok = ok && out_shape(z, i, x);
    return ok;
}

/* ---- element by element ---------------------------------------------------------------------------------------- */

static bool size_same(Sizer *z)
{
    attr_set(z->o, "n", shape_elements(in_shape(z, 0)));
    return out_shape(z, 0, *in_shape(z, 0));
}

static bool size_clip(Sizer *z)
{
    double low = attr_find(z->o, "low")->f, high = attr_find(z->o, "high")->f;
    if (!(low < high))
        return refuse(z, NULL, "min must be below max: %g and %g", low, high);
    return size_same(z);
}

/* shared: neighbouring axes of a sample, in order: one draw for all that lies along them */
static bool shared_axes(Sizer *z, const Shape *x)
{
    int64_t n = attr_int(z->o, "shared"), first = attr_int(z->o, "shared.0");
    for (int64_t i = 0; i < n; i++)
        if (attr_int(z->o, strf("shared.%d", (int)i)) != first + i || first < 1 || first + i >= x->n)
            return refuse(z, x->n > 2 ? "shared: [1] or shared: [1, 2]" : "shared: [1]",
                          "'shared' has neighbouring axes of a sample, from 1 to %d", x->n - 1);
    ATTRS(z->o, {"outer", shape_size(x, 1, (int)first)}, {"mid", shape_size(x, (int)first, (int)(first + n))},
          {"inner", shape_size(x, (int)(first + n), x->n)});
    z->o->row = row_find("DropoutShared");
    return true;
}

/* Numbers of one scale are a record: a row, or all. */
static bool size_round(Sizer *z)
{
    const Shape *x = in_shape(z, 0);
    int64_t bits = attr_int(z->o, "bits"), n = shape_elements(x), drawn = attr_int(z->o, "drawn");
    int64_t width = attr_int(z->o, "whole") ? n : x->d[x->n - 1], each = n / x->d[0], back = attr_int(z->o, "back");
    if (bits > 8 || bits % 2)
        return refuse(z, "bits: 8, 6, 4 or 2", "%lld bits a number are not offered", (Num)bits);
    if (back > 8 || back % 2)
        return refuse(z, "gradient: 8, 6, 4 or 2", "%lld bits a number of the gradient are not offered", (Num)back);
    if (drawn && each > (int64_t)1 << 34)
        return refuse(z, NULL, "random numbers reach 2^34 elements a sample, not %lld", (Num)each);
    attr_set(z->o, "batch", drawn ? x->d[0] : 1);
    attr_set_float(z->o, "drop", (double)drawn);
    ATTRS(z->o, {"rows", n / width}, {"width", width}, {"words", few_words(width, bits)});
    shape_site(z);
    if (back) {
        attr_set(z->o, "back_words", few_words(width, back));
        z->o->row = row_find("RoundBoth");
    }
    Shape code = width == n ? (Shape){1, {0}} : *x;
    code.d[code.n - 1] = attr_int(z->o, "words");
    return (!drawn || shape_by_sample(z, x)) && out_shape(z, 0, code);
}

/* As large as what was rounded. */
static bool size_unpack(Sizer *z)
{
    static const char *const same[] = {"batch", "rows", "width", "words", "bits", "back", "back_words"};
    const Op *o = &z->g->op.at[z->g->tensor.at[z->o->in.at[0]].op];
    for (int i = 0; i < 7; i++)
        attr_set(z->o, same[i], attr_int(o, same[i]));
    attr_set_float(z->o, "drop", attr_find(o, "drop")->f);
    shape_site(z);
    if (attr_int(o, "back"))
        z->o->row = row_find("UnpackBoth");
    return out_shape(z, 0, z->g->tensor.at[o->in.at[0]].shape);
}

static bool size_dropout(Sizer *z)
{
    const Shape *x = in_shape(z, 0);
    if (attr_find(z->o, "shared") && !shared_axes(z, x))
        return false;
    ATTRS(z->o, {"batch", x->d[0]}, {"per", shape_size(x, 1, x->n)});
    shape_site(z);
    return shape_drop(z, attr_int(z->o, "per")) && shape_by_sample(z, x) && out_shape(z, 0, *x);
}

/* Is b repeated over one run of axes of a, where it has ones?  Sets outer, mid, inner. */
static bool middle(Sizer *z, const Shape *a, const Shape *b)
{
    int from = 0, to = a->n;
    if (b->n != a->n)
        return false;
    while (from < a->n && a->d[from] == b->d[from])
        from++;
    while (to > from && a->d[to - 1] == b->d[to - 1])
        to--;
    if (shape_size(b, from, to) != 1)
        return false;
    ATTRS(z->o, {"outer", shape_size(a, 0, from)}, {"mid", shape_size(a, from, to)}, {"inner", shape_size(a, to, a->n)});
    return true;
}

static const char *operand_text(const Sizer *z, int i)
{
    const Tensor *t = &z->g->tensor.at[z->o->in.at[i]];
    return t->loc.line ? strf("%s (line %d)", t->name, t->loc.line) : t->name;
}

/* The last dimension in which both have other sizes than 1 is what most often is wrong. */
static bool refuse_two(const Sizer *z, const Shape *a, const Shape *b)
{
    for (int k = 1; k <= a->n && k <= b->n; k++) {
        int64_t x = a->d[a->n - k], y = b->d[b->n - k];
        if (x != y && x != 1 && y != 1)
            return refuse(z, NULL, "%s and %s differ in %s: %lld of %s, %lld of %s", shape_text(a), shape_text(b),
                          k == 1 ? "the last dimension" : strf("dimension %d from the end", k), (long long)x,
                          operand_text(z, 0), (long long)y, operand_text(z, 1));
    }
    return refuse(z, NULL, "%s and %s: where one is 1 and the other is not, the ones must be neighbours, and of one operand",
                  shape_text(a), shape_text(b));
}

/* Puts the larger operand first: both operators commute, and so do their bits. */
static bool two(Sizer *z)
{
    Ints *in = &z->o->in;
    if (shape_elements(in_shape(z, 0)) < shape_elements(in_shape(z, 1))) {
        int a = in->at[0];
        in->at[0] = in->at[1];
        in->at[1] = a;
    }
    const Shape *a = in_shape(z, 0), *b = in_shape(z, 1);
    /* Is b what a ends with, but for leading ones of b? */
    int ones = 0;
    while (ones < b->n - 1 && b->d[ones] == 1 && (b->n - ones > a->n || a->d[a->n - b->n + ones] != 1))
        ones++;
    int n = b->n - ones;
    if (!(n <= a->n && !memcmp(a->d + a->n - n, b->d + ones, (size_t)n * sizeof b->d[0]))) {
        if (!middle(z, a, b))
            return refuse_two(z, a, b);
        attr_set_float(z->o, "factor", 1);
        z->o->row = row_find(!strcmp(z->r->name, "Mul") ? "MulMiddle" : "AddMiddle");
    }
    ATTRS(z->o, {"n", shape_elements(a)}, {"nb", shape_elements(b)});
    return out_shape(z, 0, *a);
}

static bool size_add(Sizer *z)
{
    if (!two(z))
        return false;
    if (z->o->row == row_find("Add") && attr_int(z->o, "n") != attr_int(z->o, "nb"))
        z->o->row = row_find("AddBroadcast");
    return true;
}

/* ---- losses ---------------------------------------------------------------------------------------------------- */

/* Targets of rows of n scores, and the number of their loss. */
static bool targets(Sizer *z, const Shape *want, int64_t n)
{
    const Shape *t = in_shape(z, 1);
    int64_t ignore = attr_int(z->o, "ignore");
    if (!shape_same(want, t))
        return refuse(z, NULL, "x is %s, so targets must be %s, not %s", shape_text(in_shape(z, 0)), shape_text(want),
                      shape_text(t));
    if (ignore < INT32_MIN || ignore > INT32_MAX)
        return refuse(z, NULL, "'ignore' is no 32-bit integer");
    if (!ids_within(z, 1, n, strf("; %lld, which is ignored, is let in besides", (Num)ignore)))
        return false;
    /* Each loss has a number of its own, even over the same targets: it is counted on the device where the loss is. */
    int input = z->g->tensor.at[z->o->in.at[1]].of;
    int index = z->g->count.n;
    *PUSH(&z->g->count) = (Count){input, (int)ignore, index, (int)(z->o - z->g->op.at), z->o->loc};
    int count = index;
    if (count >= MAX_COUNT)
        return refuse(z, NULL, "there are more than %d losses of this kind", MAX_COUNT);
    attr_set(z->o, "count", count);
    return true;
}

static bool size_xent(Sizer *z)
{
    const Shape *x = in_shape(z, 0);
    Shape want = leading(x);
    ATTRS(z->o, {"rows", rows(x)}, {"width", shape_last(x)});
    if (attr_find(z->o, "smooth")) {
        double smooth = attr_find(z->o, "smooth")->f;
        if (!(smooth >= 0 && smooth <= 1))
            return refuse(z, "smoothing: 0.1", "the share of all scores in a target is from 0 to 1, not %g", smooth);
        z->o->row = row_find("SmoothCrossEntropy");
    }
    return targets(z, &want, shape_last(x)) && out_shape(z, 0, (Shape){1, {1}}) && out_shape(z, 1, want);
}

static bool size_hits(Sizer *z)
{
    const Shape *x = in_shape(z, 0);
    ATTRS(z->o, {"rows", rows(x)}, {"width", shape_last(x)});
    return attr_int(z->o, "top") < shape_last(x) ||
        refuse(z, "top: 1", "every target is among the %lld largest of %lld scores", (Num)attr_int(z->o, "top"),
               (Num)shape_last(x));
}

void linear_xent_room(const Graph *g, Op *o, int64_t blocks)
{
    int64_t levels = 0, n = attr_int(o, "rows");        /* subtrees of blocks that wait: a pair a row, a row of dx */
    Bytes first = aligned(n * attr_int(o, "chunk") * type_bytes(g->compute));
    while ((int64_t)1 << levels < blocks)
        levels++;
    attr_set(o, "tmp.F", first + (2 * levels + (attr_find(o, "top") ? 4 : 2)) * n * type_bytes(F32));
    attr_set(o, "tmp.I", first + (levels + (g->compute == BF16)) * n * attr_int(o, "in") * type_bytes(F32));
}

/* Scratch: the scores of a chunk; behind them forward has two f32 a row, backward, where x is narrower, its gradient in f32.
 * 32 columns of bf16 are 64 bytes: so what a chunk has of weight, bias and their gradients begins where a tensor may. */
static bool size_linear_xent(Sizer *z)
{
    enum { STEP = 32 };
    const Shape *x = in_shape(z, 0);
    Shape want = leading(x);
    int64_t out = attr_int(z->o, "out"), n = rows(x), chunk = attr_int(z->o, "chunk") < out ? attr_int(z->o, "chunk") : out;
    const Shape scores = {2, {n, chunk}};
    if (shape_elements(&scores) >= MAX_BYTES / type_bytes(F32))
        return refuse(z, NULL, "%lld rows and chunks of %lld are too many", (Num)n, (Num)chunk);
    if (chunk < out && chunk % STEP)
        return refuse(z, strf("chunk: %lld", (Num)(chunk / STEP + 1) * STEP),
                      "chunks of %lld columns: a multiple of %d is wanted", (Num)chunk, STEP);
    if (attr_find(z->o, "top") && attr_int(z->o, "top") >= out)
        return refuse(z, "top: 1", "every target is among the %lld largest of %lld scores", (Num)attr_int(z->o, "top"),
                      (Num)out);
    if (attr_find(z->o, "top"))
        z->o->row = row_find("LinearCrossEntropyHits");
    ATTRS(z->o, {"rows", n}, {"in", shape_last(x)}, {"chunk", chunk});
    linear_xent_room(z->g, z->o, z->g->blocks);
    return targets(z, &want, out) && par_shape(z, 0, (Shape){2, {out, shape_last(x)}}) && par_shape(z, 1, (Shape){1, {out}}) &&
           out_shape(z, 0, (Shape){1, {1}}) && out_shape(z, 1, want);
}

static bool size_mse(Sizer *z)
{
    const Shape *x = in_shape(z, 0), *t = in_shape(z, 1);
    if (!shape_same(x, t))
        return refuse(z, NULL, "x is %s, and targets are %s", shape_text(x), shape_text(t));
    attr_set(z->o, "n", shape_elements(x));
    return out_shape(z, 0, (Shape){1, {1}});
}

static bool size_number(Sizer *z)
{
    return out_shape(z, 0, (Shape){1, {1}});
}

static bool size_output(Sizer *z)
{
    const Shape *x = in_shape(z, 0);
    attr_set(z->o, "n", shape_elements(x));
    return shape_by_sample(z, x);
}

static bool size_none(Sizer *z)
{
    (void)z;
    return true;
}

const ShapeRule shape_rules[] = {
    {"embedding", size_embedding},  {"position", size_position},    {"relative_bias", size_relative_bias},
    {"parameter", size_parameter},  {"clip", size_clip},            {"linear", size_linear},
    {"matmul", size_matmul},        {"norm", size_norm},
    {"softmax", set_rows},          {"same", size_same},            {"gelu", size_same},
    {"scale", size_same},           {"dropout", size_dropout},      {"add", size_add},
    {"round", size_round},          {"unpack", size_unpack},
    {"mul", two},                   {"none", size_none},
    {"xent", size_xent},            {"hits", size_hits},            {"linear_xent", size_linear_xent},
    {"output", size_output},
    {"mse", size_mse},              {"loss_add", size_number},      {"loss_scale", size_number},
#define ROW(name) {#name, size_##name},
    SHAPE_RULES(ROW)
    {NULL, NULL},
};
