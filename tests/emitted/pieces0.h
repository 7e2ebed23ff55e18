/* pieces0.h: the names of pieces0.c.  Written by hand.
 * SPDX-License-Identifier: Apache-2.0 */
static const size_t
    arena_bytes = 640,
    vals = 0,           /* 112  f32 [28]  [0,9]  step values, slots values */
    h_y = 256,          /* 64  f32 [16]  [0,9]  forward to send, slots fb */
    h_x = 512;          /* 64  f32 [16]  [0,9]  receive to backward, slots fb */
static const size_t values_slot[2] = { 0, 128 };
static const size_t fb_slot[2] = { 0, 64 };
