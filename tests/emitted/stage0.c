/* tiny, stage 0 of 2.  Written by hand: the smallest text that uses every form of the emitted language.
 * SPDX-License-Identifier: Apache-2.0 */
#include "rt.h"

/* sizes and strides */
enum { rows = 6, slot_stride = 256, grad_stride = 0x80 };
static const size_t vals = 0, h_x = 256,
    h_y = 512,          /* 2 slots */
    d_y = 1024, h_d = 1280, lr = 1536;
/* in the host's memory */
static const size_t h_y_host = 0;
static const size_t h_y_host_stride = 0x80;

static void h_forward(Stage *st, int slot)
{
    /* a statistic and a temporary */
    scale_forward(st, S(slot, h_y), A(h_x), 24, 0x1p-1f);                       /* :4 */
    gelu_forward(st, S(slot, h_y), A(h_x), 24, -1);
}

static void h_backward(Stage *st, int slot, int grad, int acc, int mb)
{
    (void)mb;
    embedding_backward(st, A(lr), S(grad, d_y), A(h_d), acc, 24, 4, 6);
    gelu_backward(st, A(h_d), S(grad, d_y), S(slot, h_y), 24, 0);
}

static void chunk0_forward(Stage *st, int slot)
{
    h_forward(st, slot);
}

void stage0_open(Stage *st)
{
    open_linear_forward(st, 0, 6, 4, 4);
}

void stage0_step(Stage *st)
{
    action(st, 0);
    step_begin(st, A(vals));
    action(st, 1);
    data_load(st, A(h_x), A(vals), 0, 0, 96);
    action(st, 2);
    chunk0_forward(st, 1);
    action(st, 3);
    send_begin(st, A(h_y + 1*slot_stride), 0, 1, 7, 96);
    action(st, 4);
    recv_begin(st, A(d_y), 1, 1, 8, 96);
    action(st, 5);
    transfer_wait(st, 0);
    action(st, 6);
    transfer_wait(st, 1);
    action(st, 7);
    h_backward(st, 1, 0, 0, 0);
    action(st, 8);
    offload_begin(st, A(h_y), H(h_y_host), 0, 96);
    action(st, 9);
    offload_begin(st, A(h_y + 1*slot_stride), H(h_y_host + 1*h_y_host_stride), 1, 96);
    action(st, 10);
    copy_wait(st, 0);
    action(st, 11);
    fetch_begin(st, A(d_y), H(h_y_host), 0, 96);
    action(st, 12);
    copy_wait(st, 1);
    action(st, 13);
    copy_wait(st, 0);
    action(st, 14);
    fetch_begin(st, A(d_y), H(h_y_host + 1*h_y_host_stride), 0, 96);
    action(st, 15);
    copy_wait(st, 0);
    action(st, 16);
    step_end(st, A(vals));
}

void stage0_eval(Stage *st)
{
    action(st, 17);
    chunk0_forward(st, 0);
    action(st, 18);
    send_begin(st, A(h_y), 0, 1, 9, 96);
    action(st, 19);
    transfer_wait(st, 0);
}
