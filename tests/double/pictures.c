/* SPDX-License-Identifier: Apache-2.0
 *
 * pictures.c: numbers of bytes, made by the processor when the stage's stream gets to them.
 */
#include "cuda/device.h"
#include "cuda/pictures.h"
#include "double.h"

typedef struct { float *to; const unsigned char *from; const float *mean, *deviation; long channels, n; } Pictures;

static void make(void *at)
{
    const Pictures *p = at;
    for (long i = 0; i < p->n; i++)
        p->to[i] = ((float)p->from[i] / 255.0f - p->mean[i % p->channels]) / p->deviation[i % p->channels];
}

void picture_numbers(Stage *st, float *to, const unsigned char *from, const float *mean, const float *deviation, int channels,
                     long n)
{
    const Pictures p = {to, from, mean, deviation, channels, n};
    double_enqueue(stream_of(st), "picture_numbers", make, &p, sizeof p);
}
