/* SPDX-License-Identifier: Apache-2.0
 *
 * ops_pixels.c: operators of images that are several lines here: strides that differ between the axes, reflected edges, the
 * largest of all pixels, and slopes that are learnt.
 */
#include "net.h"

static Dims dims_of(const Net *g, int x)
{
    return g->value.at[x].dims;
}

/* Of an image with its channels last: each by[0]-th row and each by[1]-th column, from the first on.  Rows of a group stand
 * side by side after a Reshape, and the first is a Slice. */
int ops_every(Net *g, int x, const int64_t by[2])
{
    for (int i = 0; i < 2; i++) {
        Dims d = dims_of(g, x);
        int64_t n = (d.d[2 + i] + by[i] - 1) / by[i], more = n * by[i] - d.d[2 + i], across = i ? 1 : d.d[3];
        if (by[i] == 1)
            continue;
        if (more)
            x = ops_pad(g, x, (int64_t[]){0, 0, i ? 0 : more, i ? more : 0}, 0);
        const char *before = i ? strf("%lld, ", (long long)d.d[2]) : "";
        Dims wide = i ? (Dims){4, {d.d[0], by[i] * d.d[1], d.d[2], n}} : (Dims){3, {d.d[0], by[i] * across * d.d[1], n}};
        const char *text = strf(", shape: [B, %s%lld, %lld]", before, (long long)n, (long long)wide.d[1]);
        x = net_line(g, "Reshape", text, x, wide, true);
        wide.d[1] = across * d.d[1];
        x = net_line(g, "Slice", strf(", axis: -1, from: 0, count: %lld", (long long)wide.d[1]), x, wide, true);
        d.d[2 + i] = n;
        text = strf(", shape: [B, %lld, %lld, %lld]", (long long)n, (long long)d.d[3], (long long)d.d[1]);
        if (!i)
            x = net_line(g, "Reshape", text, x, d, true);
    }
    return x;
}

/* The largest of each channel */
int ops_global_max(Net *g, int x, bool keep)
{
    net_want_act(g, x);
    Dims d = dims_of(g, x);
    if (d.n != 4)
        net_refuse(g, "the largest over other axes than those of images is not done");
    NetWindow w = {.kernel = {d.d[2], d.d[3]}, .stride = {1, 1}, .dilate = {1, 1}, .groups = 1};
    int y = ops_pool(g, "MaxPool", x, &w);
    return keep ? y : ops_reshape(g, y, (Dims){2, {d.d[0], d.d[1]}});
}

/* max(x, 0) + slope min(x, 0) */
int ops_prelu(Net *g, int x, int slope)
{
    net_want_act(g, x);
    net_want_weight(g, slope, "slope");
    int below = ops_scale(g, ops_unary(g, "Relu", "", ops_scale(g, x, -1)), -1);
    int above = ops_unary(g, "Relu", "", x);
    return ops_binary(g, "Add", above, ops_binary(g, "Mul", below, slope));
}

/* Rows, then columns, around an image: those next to the edge once more in turn, or the edge itself; pad: top, left, bottom,
 * right */
int ops_mirror(Net *g, int x, const int64_t pad[4], bool edge)
{
    net_want_act(g, x);
    if (dims_of(g, x).n != 4)
        net_refuse(g, "it pads no images");
    for (int i = 0; i < 2; i++) {
        int64_t size = dims_of(g, x).d[2 + i], before = pad[i], behind = pad[2 + i];
        Ints all = {0};
        if (before < 0 || behind < 0 || before >= size || behind >= size)
            net_refuse(g, "it reflects %lld and %lld of %lld pixels", (long long)before, (long long)behind, (long long)size);
        for (int64_t k = before; k > 0; k--)
            *PUSH(&all) = ops_slice(g, x, 2 + i, edge ? 0 : k, 1);
        *PUSH(&all) = x;
        for (int64_t k = 1; k <= behind; k++)
            *PUSH(&all) = ops_slice(g, x, 2 + i, edge ? size - 1 : size - 1 - k, 1);
        x = all.n > 1 ? ops_concat(g, &all, 2 + i) : x;
    }
    return x;
}
