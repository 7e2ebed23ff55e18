/* stage0.h: the names of stage0.c.  Written by hand.
 * SPDX-License-Identifier: Apache-2.0 */

/* sizes and a handle */
enum { rows = 6, W = 4 };
enum { H_fc_fwd = 0, H_spare = 0x3ff };

/* constants */
static const float
    FACTOR = 0x1p-1f,   /* 0.5 */
    EPS = 0x1p-2f;      /* 0.25 */
static const int64_t
    SITE_h = -5;

/* the arena */
static const size_t
    arena_bytes = 2048,
    vals = 0,           /* 112  f32 [28]  [0,9]  step values */
    h_x = 0x100,        /* 96  f32 [rows, W]  [0,4]  load to forward */
    h_y = 512,          /* 96  f32 [rows, 4]  [1,4]  forward to backward, slots fb */
    d_y = 1024,         /* 96  f32 [24]  [2,8]  receive to backward, slots gb */
    h_d = 1280,         /* 96  scratch  [2,8]  backward to backward */
    h_lr_grad = 1408,   /* 96  f32 [rows*W]  [2,8]  gradient */
    lr = 1536;          /* 48  bf16 [ 6, W ]  [2,8]  parameter, copy */
static const size_t fb_slot[2] = { 0, 0x80 };
static const size_t gb_slot[2] = { 0x80, 0 };

/* the memory of the host */
static const size_t
    host_bytes = 256,
    h_y_host = 0;       /* 96  f32 [rows, W]  [3,7]  out to fetch, slots h_y_host */
static const size_t h_y_host_slot[2] = { 0, 0x80 };
