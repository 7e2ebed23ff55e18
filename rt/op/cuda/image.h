/* SPDX-License-Identifier: Apache-2.0
 *
 * image.h: walks over images [batch height width channels].  A thread takes an item: 16 bytes of a pixel's channels.  Adjacent
 * threads have adjacent items.  STEP is that of take(): 0 where every pixel begins at a multiple of 16 bytes, else 1.
 */
#ifndef IMAGE_H
#define IMAGE_H
#include "kernel.h"

/* The items of images of one size. */
struct Items { Divisor groups, width, height; long n; };
struct Spot { long sample; int line, column, channel; };

static inline Items items_of(long batch, long height, long width, long channels)
{
    long groups = ceil_div(channels, WIDE);
    return Items{divisor_of(groups), divisor_of(width), divisor_of(height), batch * height * width * groups};
}

FN Spot spot_of(long i, const Items &t)
{
    long pixel = quotient(i, t.groups), line = quotient(pixel, t.width), sample = quotient(line, t.height);
    return Spot{sample, (int)(line - sample * t.height.by), (int)(pixel - line * t.width.by),
                (int)(i - pixel * t.groups.by) * WIDE};
}

#define LAUNCH_IMAGE(kernel, channels, blocks, st, ...) \
    do { \
        if ((channels) % WIDE) \
            LAUNCH((kernel<1>), blocks, (unsigned)BLOCK, st, __VA_ARGS__); \
        else \
            LAUNCH((kernel<0>), blocks, (unsigned)BLOCK, st, __VA_ARGS__); \
    } while (0)
#endif
