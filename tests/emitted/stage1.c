/* tiny, stage 1 of 2.  Written by hand: the other side of stage0.c's messages.
 * SPDX-License-Identifier: Apache-2.0 */
#include "rt.h"

static const size_t h_y = 0, d_y = 256;

void stage1_step(Stage *st)
{
    action(st, 0);
    recv_begin(st, A(h_y), 0, 0, 7, 96);
    action(st, 1);
    transfer_wait(st, 0);
    action(st, 2);
    copy_forward(st, A(d_y), A(h_y), 24);
    action(st, 3);
    send_begin(st, A(d_y), 0, 0, 8, 96);
    action(st, 4);
    transfer_wait(st, 0);
}

void stage1_eval(Stage *st)
{
    action(st, 5);
    recv_begin(st, A(h_y), 0, 0, 9, 96);
    action(st, 6);
    transfer_wait(st, 0);
}
