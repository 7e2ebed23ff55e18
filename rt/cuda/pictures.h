/* SPDX-License-Identifier: Apache-2.0
 *
 * pictures.h: numbers of bytes of pictures, made by the GPU.
 */
#ifndef PICTURES_H
#define PICTURES_H
#include "../rt.h"

enum { PICTURE_CHANNELS = 64 };     /* most that a model file can name */
#ifdef __cplusplus
extern "C"
#endif
/* n bytes in pinned memory or in the arena, pixel by pixel, which stay there until the stage's stream has come so far. */
void picture_numbers(Stage *st, float *to, const unsigned char *from, const float *mean, const float *deviation, int channels,
                     long n);
#endif
