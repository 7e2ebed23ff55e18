/* SPDX-License-Identifier: Apache-2.0
 *
 * conv.c: Conv by oneDNN: images [batch height width channels], weight [out in/groups kheight kwidth].
 *
 * Method.  Images stay as they are, with channels last.  The library chooses the layout of the weight: it is packed in front of
 * every product, at the start of the stage's block, and the gradient is made there in f32 and copied into the plain layout,
 * added to what is there after the first micro-batch.  Packing all weights of ResNet-50 took under one per cent of its
 * convolutions.  The gradient of the bias comes with that of the weight, and is added by our own loop.
 *
 * Gradients of weights in f32: the library is slow where channels are last, with AVX2 up to three times as slow.  Images are
 * then copied into its own layout first, which takes a few per cent of the product; faster_own() says where that was measured
 * to pay.  Large batches are taken in pieces, so that the copies stay small.
 *
 * The gradient of x at stride 1 is a convolution of dy too.  Its kernels are turned round, and in and out are exchanged.  It is
 * made as such: with channels last, oneDNN 2.6's own gradient took up to 1.9 times as long in f32.  A pad as large as its
 * kernel, or larger, has no such form: this convolution would need a pad below zero.
 *
 * Kernels of one pixel are products; conv_point.c has those that run faster so.
 *
 * Pads.  The library has none below zero.  An image is then copied without the rows and columns that no tap reads, into the
 * block; its gradient is copied back, with zeros around.  The same is done where windows end so early that whole strides are
 * left over.
 *
 * Bits.  As in product.c; the gradient of the weight depends on the thread count.
 */
#include "../kernel.h"
#include "conv_point.h"
#include "library.h"
#include <stdio.h>

/* The part of an image's axis that taps reach: n pixels from `first` on, `before` and `behind` it pads. */
typedef struct { long first, n, before, behind; } Axis;

/* An image that is copied into the library's own layout first. */
typedef struct { Reorder copy; size_t at, bytes; } Laid;
#ifndef PIECE                   /* tests make it small */
#define PIECE (1L << 25)
#endif

/* Without and with a bias, or its gradient. */
typedef struct {
    dnnl_primitive_t run;
    dnnl_memory_t weight, scratch;
    Reorder copy[2];            /* of the weight; of its gradient, and the same added */
    Laid x, y;
    size_t at_scratch;          /* in the block, behind the weight and the images */
} ConvPass;

typedef struct {
    Conv of;                    /* with the samples of a piece */
    long pieces;
    Axis down, across;
    int cut;                    /* the part is not the whole image */
    int turned;                 /* a gradient of x as a convolution of dy */
    int laid;                   /* images in the library's layout */
    ConvPass pass[2];
    dnnl_memory_t x, y, bias;
    size_t at_part, at_turned, at_weight;   /* in the block, behind the gradient of the bias */
} Handle;

typedef struct { View x, weight, y, bias; dnnl_dims_t stride, dilate, before, behind; } Shapes;

static void want(dnnl_status_t status, const char *what, const Conv *v)
{
    char of[160] = "";
    if (status != dnnl_success)
        snprintf(of, sizeof of, "a convolution of %ld x %ld x %ld x %ld by %ld kernels of %ld x %ld", v->batch, v->height,
                 v->width, v->in, v->out, v->kheight, v->kwidth);
    library_want(status, what, of);
}

static Axis axis_of(long size, long ysize, long kernel, long stride, long dilate, long before)
{
    long end = (ysize - 1) * stride + (kernel - 1) * dilate + 1 - before, rest = size - end;
    Axis a = {before < 0 ? -before : 0, 0, before > 0 ? before : 0, rest < 0 ? -rest : 0};
    a.n = (rest >= stride ? end : size) - a.first;
    return a;
}

static View image(const Conv *v, int laid, long height, long width, long channels)
{
    long dims[] = {v->batch, channels, height, width};
    long strides[] = {height * width * channels, 1, width * channels, channels};
    return library_view(4, dims, laid ? NULL : strides, library_real());
}

/* As it is stored; the library's choice with `laid`. */
static View kernels(const Handle *h, int laid, dnnl_data_type_t type)
{
    const Conv *v = &h->of;
    long in = v->in / v->groups, out = v->out / v->groups, size = v->kheight * v->kwidth, from = v->groups == 1;
    long dims[] = {v->groups, h->turned ? in : out, h->turned ? out : in, v->kheight, v->kwidth};
    long strides[] = {out * in * size, h->turned ? size : in * size, h->turned ? in * size : size, v->kwidth, 1};
    return library_view((int)(5 - from), dims + from, laid ? NULL : strides + from, type);
}

/* Pixels between the first and the last tap. */
static long reach(const Conv *v, long kernel)
{
    return (kernel - 1) * v->dilate;
}

/* The shapes of that convolution: a pad and the pad of the other way are one reach together. */
static Shapes turn(const Handle *h, Shapes s)
{
    View y = s.y;
    long down = reach(&h->of, h->of.kheight), across = reach(&h->of, h->of.kwidth);
    s.y = s.x, s.x = y;
    s.before[0] = down - h->down.before, s.before[1] = across - h->across.before;
    s.behind[0] = down - h->down.behind, s.behind[1] = across - h->across.behind;
    return s;
}

static int can_turn(const Handle *h)
{
    const Conv *v = &h->of;
    long down = reach(v, v->kheight), across = reach(v, v->kwidth);
    return v->stride == 1 && h->down.before <= down && h->down.behind <= down && h->across.before <= across &&
           h->across.behind <= across;
}

static Shapes shapes_of(const Handle *h, Direction to, int bias)
{
    const Conv *v = &h->of;
    dnnl_data_type_t type = to == BACKWARD_W ? dnnl_f32 : library_real();
    Shapes s = {.stride = {v->stride, v->stride}, .dilate = {v->dilate - 1, v->dilate - 1},
                .before = {h->down.before, h->across.before}, .behind = {h->down.behind, h->across.behind}};
    s.x = image(v, h->laid, h->down.n, h->across.n, v->in), s.y = image(v, h->laid, v->yheight, v->ywidth, v->out);
    s.weight = kernels(h, 1, type);
    s.bias = bias ? library_view(1, (long[]){v->out}, (long[]){1}, type) : NULL;
    want(s.x && s.y && s.weight && (s.bias || !bias) ? dnnl_success : dnnl_invalid_arguments, "an operand", v);
    return h->turned ? turn(h, s) : s;
}

/* `hint`: a forward primitive of the same shapes, for gradients */
static dnnl_status_t describe(dnnl_primitive_desc_t *pd, dnnl_engine_t engine, Direction to, const Shapes *s,
                              dnnl_primitive_attr_t attr, dnnl_primitive_desc_t hint)
{
    const dnnl_alg_kind_t way = dnnl_convolution_direct;
#if DNNL_VERSION_MAJOR >= 3
    if (to == FORWARD)
        return dnnl_convolution_forward_primitive_desc_create(pd, engine, dnnl_forward_training, way, s->x, s->weight, s->bias,
                                                              s->y, s->stride, s->dilate, s->before, s->behind, attr);
    if (to == BACKWARD_X)
        return dnnl_convolution_backward_data_primitive_desc_create(pd, engine, way, s->x, s->weight, s->y, s->stride,
                                                                    s->dilate, s->before, s->behind, hint, attr);
    return dnnl_convolution_backward_weights_primitive_desc_create(pd, engine, way, s->x, s->weight, s->bias, s->y, s->stride,
                                                                   s->dilate, s->before, s->behind, hint, attr);
#else
    dnnl_convolution_desc_t d;
    dnnl_status_t status =
        to == FORWARD ? dnnl_dilated_convolution_forward_desc_init(&d, dnnl_forward_training, way, s->x, s->weight, s->bias,
                                                                   s->y, s->stride, s->dilate, s->before, s->behind)
        : to == BACKWARD_X ? dnnl_dilated_convolution_backward_data_desc_init(&d, way, s->x, s->weight, s->y, s->stride,
                                                                              s->dilate, s->before, s->behind)
        : dnnl_dilated_convolution_backward_weights_desc_init(&d, way, s->x, s->weight, s->bias, s->y, s->stride, s->dilate,
                                                              s->before, s->behind);
    return status == dnnl_success ? dnnl_primitive_desc_create(pd, &d, attr, engine, hint) : status;
#endif
}

static const char this_conv[] = "a convolution";

static int faster_own(const Conv *v, Direction to)
{
    long pixels = v->batch * v->yheight * v->ywidth;
    if (to != BACKWARD_W || sizeof(real) != sizeof(float) || v->groups > 1 || v->kheight * v->kwidth == 1)
        return 0;
#ifdef __AVX512F__
    return v->in >= 16 && (v->stride > 1 || pixels >= 1 << 16);
#else
    return pixels > 0;
#endif
}

/* Samples of a piece: they divide the batch, and copies of their images take PIECE bytes, or it is one. */
static long piece_of(const Conv *v)
{
    long each = (v->height * v->width * v->in + v->yheight * v->ywidth * v->out) * (long)sizeof(real), n = v->batch;
    while (n > 1 && (v->batch % n || n * each > PIECE))
        n--;
    return n;
}

/* Returns what is behind it in the block. */
static size_t open_laid(Room *z, const Handle *h, Laid *l, View plain, View best, size_t at)
{
    if (!h->laid)
        return at;
    l->copy = library_reorder(z, plain, best, 0, this_conv);
    l->at = at, l->bytes = library_bytes(best);
    return at + l->bytes;
}

/* The memory and copies of weight and images, and the room of all of it. */
static void open_copies(Room *z, const Handle *h, ConvPass *w, Direction to, dnnl_primitive_desc_t pd)
{
    const Conv *v = &h->of;
    View x = image(v, 0, h->down.n, h->across.n, v->in), y = image(v, 0, v->yheight, v->ywidth, v->out);
    View best = library_part(pd, to == BACKWARD_W ? dnnl_query_diff_weights_md : dnnl_query_weights_md);
    View plain = kernels(h, 0, to == BACKWARD_W ? dnnl_f32 : library_real());
    View scratch = library_part(pd, dnnl_query_scratchpad_md);
    w->weight = library_memory(z, best, this_conv), w->scratch = library_memory(z, scratch, this_conv);
    size_t at = open_laid(z, h, &w->x, x, library_part(pd, dnnl_query_src_md), h->at_weight + library_bytes(best));
    w->at_scratch = open_laid(z, h, &w->y, y, library_part(pd, dnnl_query_diff_dst_md), at);
    library_grow(z, w->at_scratch + library_bytes(scratch));
    library_grow(z, w->at_scratch + w->x.copy.bytes);
    library_grow(z, w->at_scratch + w->y.copy.bytes);
    for (int acc = 0; acc < (to == BACKWARD_W ? 2 : 1); acc++) {
        w->copy[acc] = library_reorder(z, to == BACKWARD_W ? best : plain, to == BACKWARD_W ? plain : best, acc, this_conv);
        library_grow(z, w->at_scratch + w->copy[acc].bytes);
    }
}

static void open_way(Stage *st, Handle *h, Direction to, int bias)
{
    Room *z = library_room(st);
    dnnl_primitive_attr_t attr = library_attributes(0, this_conv);
    dnnl_primitive_desc_t pd, hint = NULL;
    Shapes s = shapes_of(h, to, bias), forward = shapes_of(h, FORWARD, bias);
    to = h->turned ? FORWARD : to;
    if (to != FORWARD)
        want(describe(&hint, z->engine, FORWARD, &forward, attr, NULL), "preparation", &h->of);
    want(describe(&pd, z->engine, to, &s, attr, hint), "preparation", &h->of);
    want(dnnl_primitive_create(&h->pass[bias].run, pd), "preparation", &h->of);
    open_copies(z, h, &h->pass[bias], to, pd);
    if (bias)
        h->bias = library_memory(z, s.bias, this_conv);
    dnnl_primitive_desc_destroy(pd);
    if (hint)
        dnnl_primitive_desc_destroy(hint);
    dnnl_primitive_attr_destroy(attr);
}

static void open_conv(Stage *st, int number, Direction to, Conv v)
{
    Handle *h = st->handle[number] = handle_alloc(sizeof *h);
    omp_set_num_threads(st->threads);
    h->of = v;
    h->down = axis_of(v.height, v.yheight, v.kheight, v.stride, v.dilate, v.top);
    h->across = axis_of(v.width, v.ywidth, v.kwidth, v.stride, v.dilate, v.left);
    h->cut = h->down.n < v.height || h->across.n < v.width;
    h->turned = to == BACKWARD_X && can_turn(h);
    h->laid = faster_own(&v, to);
    h->pieces = h->laid ? v.batch / piece_of(&v) : 1;
    h->of.batch = v.batch /= h->pieces;
    View x = image(&v, 0, h->down.n, h->across.n, v.in), y = image(&v, 0, v.yheight, v.ywidth, v.out);
    want(x && y ? dnnl_success : dnnl_invalid_arguments, "an operand", &v);
    h->x = library_memory(library_room(st), x, this_conv), h->y = library_memory(library_room(st), y, this_conv);
    h->at_part = library_up((size_t)v.out * sizeof(float));
    h->at_turned = h->at_part + (h->cut ? library_bytes(x) : 0);
    h->at_weight = h->at_turned + (h->turned ? library_bytes(kernels(h, 0, library_real())) : 0);
    open_way(st, h, to, 0);
    if (to != BACKWARD_X)
        open_way(st, h, to, 1);
}

/* ---- in a step ------------------------------------------------------------------------------------------------ */
static void run(const Room *z, const Handle *h, const ConvPass *w, int x, int weight, int y, int bias)
{
    library_at(w->weight, z->scratch + h->at_weight);
    library_at(w->scratch, z->scratch + w->at_scratch);
    dnnl_exec_arg_t arg[] = {{x, h->laid ? w->x.copy.to : h->x}, {weight, w->weight}, {y, h->laid ? w->y.copy.to : h->y},
                             {DNNL_ARG_SCRATCHPAD, w->scratch}, {bias, h->bias}};
    want(dnnl_primitive_execute(w->run, z->stream, w == &h->pass[1] ? 5 : 4, arg), "a run", &h->of);
}

static void lay(const Room *z, const ConvPass *w, const Laid *l, const real *image)
{
    if (l->bytes)
        library_copy(z, &l->copy, z->scratch + l->at, image, z->scratch + w->at_scratch);
}

/* A copy of the weight in the block, each kernel from its last tap to its first. */
static const real *turned(Stage *st, const Handle *h, const real *weight)
{
    const Conv *v = &h->of;
    real *to = (real *)(library_room(st)->scratch + h->at_turned);
    long size = v->kheight * v->kwidth, n = v->out * v->in / v->groups;
    if (!h->turned || size == 1)
        return weight;
    EACH(n * size >= 1 << 15)
    for (long k = 0; k < n; k++)
        for (long tap = 0; tap < size; tap++)
            to[k * size + tap] = weight[k * size + size - 1 - tap];
    return to;
}

static void pack(const Room *z, const Handle *h, const ConvPass *w, const real *weight)
{
    library_copy(z, &w->copy[0], z->scratch + h->at_weight, weight, z->scratch + w->at_scratch);
}

/* Row `line` of all samples' parts, in the image. */
static long line_at(const Handle *h, long line)
{
    const Conv *v = &h->of;
    return ((line / h->down.n * v->height + h->down.first + line % h->down.n) * v->width + h->across.first) * v->in;
}

/* The part of x that is read: x itself, or a copy in the block. */
static const real *part_of(Stage *st, const Handle *h, const real *x)
{
    real *part = (real *)(library_room(st)->scratch + h->at_part);
    long row = h->across.n * h->of.in, rows = h->of.batch * h->down.n;
    if (!h->cut)
        return x;
    EACH(rows * row >= 1 << 15)
    for (long r = 0; r < rows; r++)
        memcpy(part + r * row, x + line_at(h, r), (size_t)row * sizeof *x);
    return part;
}

static void part_back(Stage *st, const Handle *h, real *dx, const real *part)
{
    const Conv *v = &h->of;
    long row = h->across.n * v->in, rows = v->batch * h->down.n;
    memset(dx, 0, (size_t)(v->batch * v->height * v->width * v->in) * sizeof *dx);
    EACH(rows * row >= 1 << 15)
    for (long r = 0; r < rows; r++)
        memcpy(dx + line_at(h, r), part + r * row, (size_t)row * sizeof *dx);
}

/* ---- the calls ---------------------------------------------------------------------------------------------- */

/* The sizes of a call, as literals. */
#define SIZES (Conv){batch, height, width, in, yheight, ywidth, out, kheight, kwidth, stride, top, left, dilate, groups}

void open_conv_forward(Stage *st, int h, long batch, long height, long width, long in, long yheight, long ywidth, long out,
                       long kheight, long kwidth, long stride, long top, long left, long dilate, long groups)
{
    Conv v = SIZES;
    if (point_takes(&v, FORWARD))
        point_open_forward(st, h, &v);
    else
        open_conv(st, h, FORWARD, v);
}

void open_conv_backward_x(Stage *st, int h, long batch, long height, long width, long in, long yheight, long ywidth, long out,
                          long kheight, long kwidth, long stride, long top, long left, long dilate, long groups)
{
    Conv v = SIZES;
    if (point_takes(&v, BACKWARD_X))
        point_open_backward_x(st, h, &v);
    else
        open_conv(st, h, BACKWARD_X, v);
}

void open_conv_backward_w(Stage *st, int h, long batch, long height, long width, long in, long yheight, long ywidth, long out,
                          long kheight, long kwidth, long stride, long top, long left, long dilate, long groups)
{
    Conv v = SIZES;
    if (point_takes(&v, BACKWARD_W))
        point_open_backward_w(st, h, &v);
    else
        open_conv(st, h, BACKWARD_W, v);
}

void conv_forward(Stage *st, real *y, const real *x, const real *weight, const real *bias, int number, long batch, long height,
                  long width, long in, long yheight, long ywidth, long out, long kheight, long kwidth, long stride, long top,
                  long left, long dilate, long groups)
{
    const Conv v = SIZES;
    if (point_takes(&v, FORWARD)) {
        point_forward(st, y, x, weight, bias, number, &v);
        return;
    }
    const Room *z = library_room(st);
    const Handle *h = st->handle[number];
    const ConvPass *w = &h->pass[bias != NULL];
    omp_set_num_threads(st->threads);
    pack(z, h, w, weight);
    library_at(h->x, part_of(st, h, x)), library_at(h->y, y), library_at(h->bias, bias);
    run(z, h, w, DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST, DNNL_ARG_BIAS);
}

void conv_backward_x(Stage *st, real *dx, const real *dy, const real *weight, int number, long batch, long height, long width,
                     long in, long yheight, long ywidth, long out, long kheight, long kwidth, long stride, long top, long left,
                     long dilate, long groups)
{
    const Conv v = SIZES;
    if (point_takes(&v, BACKWARD_X)) {
        point_backward_x(st, dx, dy, weight, number, &v);
        return;
    }
    const Room *z = library_room(st);
    const Handle *h = st->handle[number];
    real *part = h->cut ? (real *)(z->scratch + h->at_part) : dx;
    omp_set_num_threads(st->threads);
    pack(z, h, h->pass, turned(st, h, weight));
    library_at(h->x, part), library_at(h->y, dy);
    run(z, h, h->pass, h->turned ? DNNL_ARG_DST : DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS,
        h->turned ? DNNL_ARG_SRC : DNNL_ARG_DIFF_DST, 0);
    if (h->cut)
        part_back(st, h, dx, part);
}

void conv_backward_w(Stage *st, float *dweight, float *dbias, const real *dy, const real *x, int number, int acc, long batch,
                     long height, long width, long in, long yheight, long ywidth, long out, long kheight, long kwidth,
                     long stride, long top, long left, long dilate, long groups)
{
    const Conv v = SIZES;
    if (point_takes(&v, BACKWARD_W)) {
        point_backward_w(st, dweight, dbias, dy, x, number, acc, &v);
        return;
    }
    const Room *z = library_room(st);
    const Handle *h = st->handle[number];
    const ConvPass *w = &h->pass[dbias != NULL];
    float *sum = (float *)z->scratch;
    omp_set_num_threads(st->threads);
    if (!dweight)
        bias_blocks(st, dbias, dy, acc, batch * yheight * ywidth, out, batch * yheight * ywidth);
    if (!dweight)
        return;
    for (long i = 0; i < h->pieces; i++) {
        const real *part = part_of(st, h, x + i * h->of.batch * height * width * in);
        const real *y = dy + i * h->of.batch * yheight * ywidth * out;
        library_at(h->x, part), library_at(h->y, y), library_at(h->bias, sum);
        lay(z, w, &w->x, part), lay(z, w, &w->y, y);
        run(z, h, w, DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_BIAS);
        library_copy(z, &w->copy[acc || i], dweight, z->scratch + h->at_weight, z->scratch + w->at_scratch);
        if (dbias)
            give(dbias, sum, out, acc || i);
    }
}
