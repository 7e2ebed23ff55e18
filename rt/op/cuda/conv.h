/* SPDX-License-Identifier: Apache-2.0
 *
 * conv.h: the sizes of a convolution, and what those by cuDNN and those by our own kernels have in common.
 */
#ifndef CONV_H
#define CONV_H
#include "../../rt.h"
#include <stdbool.h>

/* Images [batch height width in] and [batch yheight ywidth out], weight [out in/groups kheight kwidth]. */
struct Conv {
    long batch, height, width, in, yheight, ywidth, out, kheight, kwidth, stride, top, left, dilate, groups;
};
typedef struct Conv Conv;
#define CONV_OF_CALL {batch, height, width, in, yheight, ywidth, out, kheight, kwidth, stride, top, left, dilate, groups}
#define CONV_SIZES long batch, long height, long width, long in, long yheight, long ywidth, long out, long kheight, \
    long kwidth, long stride, long top, long left, long dilate, long groups

/* A handle, as conv_graph.c leaves it; nothing else is linked with cuDNN.  run: false where it has no plan. */
typedef struct PreparedConv PreparedConv;
struct PreparedConv { bool (*run)(Stage *st, const PreparedConv *p, void *const *address, const char *call); };

/* Is it work for tensor cores: 10^9 products or more, in one group? */
static inline bool conv_heavy(const Conv *v)
{
    return v->groups == 1 && (double)v->batch * (double)v->yheight * v->ywidth * v->out * v->kheight * v->kwidth * v->in > 1e9;
}

/* Bytes of the workspace's front that hold a gradient of the weight in the compute type. */
static inline size_t conv_front(const Conv *v)
{
    return ((size_t)(v->out * (v->in / v->groups) * v->kheight * v->kwidth) * sizeof(real) + 255) / 256 * 256;
}
#endif
