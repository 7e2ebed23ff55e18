/* stage1.h: the names of stage1.c.  Written by hand.
 * SPDX-License-Identifier: Apache-2.0 */
enum { rows = 6, W = 4 };
static const size_t
    arena_bytes = 512,
    h_y = 0,            /* 96  f32 [rows, W]  [0,2]  receive to forward */
    d_y = 256;          /* 96  f32 [rows, W]  [1,3]  backward to send */
