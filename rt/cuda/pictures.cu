/* SPDX-License-Identifier: Apache-2.0
 *
 * pictures.cu: numbers of bytes of pictures, made by the GPU.
 *
 * Problem.  As numbers, pictures are four times as many bytes on their way to the GPU.  Method.  The kernel reads bytes, in the
 * arena where a copy went ahead, else in pinned memory, which the GPU reaches by the same address.  A thread has 16 neighbours,
 * and each byte is read once: such reads come near the rate of copies (S. W. Min et al., EMOGI, 2020).  The formula is that of
 * rt/data.c; its divisions and its difference round alike everywhere.
 */
#include "../op/cuda/kernel.h"
#include "pictures.h"

struct Channels {
    long n;
    float mean[PICTURE_CHANNELS], deviation[PICTURE_CHANNELS];
};

static __global__ void picture_bytes(float *to, const unsigned char *from, Channels channels, long n)
{
    GROUPS(i, step, 16, n) {
        Words<4> w = {{0, 0, 0, 0}};
        float v[16];
        long c = i - quotient(i, channels.n) * channels.n;
        if (step == 0)
            w = *(const Words<4> *)(from + i);
        for (int j = 0; j < 16; j++) {
            uint32_t byte = step == 0 ? w.at[j / 4] >> 8 * (j % 4) & 255 : i + j < n ? from[i + j] : 0;
            v[j] = byte_number((unsigned char)byte, channels.mean[c], channels.deviation[c]);
            c = c + 1 == channels.n ? 0 : c + 1;
        }
        leave(to, v, i, n, step);
    }
}

void picture_numbers(Stage *st, float *to, const unsigned char *from, const float *mean, const float *deviation, int channels,
                     long n)
{
    Channels all = {};
    all.n = channels;
    for (int c = 0; c < channels; c++)
        all.mean[c] = mean[c], all.deviation[c] = deviation[c];
    LAUNCH(picture_bytes, blocks_for(ceil_div(n, 16)), (unsigned)BLOCK, st, to, from, all, n);
}
