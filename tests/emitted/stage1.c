/* tiny, stage 1 of 2.  Written by hand: the other side of stage0.c's messages.
 * SPDX-License-Identifier: Apache-2.0 */
#include "rt.h"
#include "stage1.h"

void stage1_step(Stage *st)
{
    action(st, 0);
    recv_begin(st, A(h_y), /* request */ 0, /* peer */ 0, /* tag */ 7, /* bytes */ 96);
    action(st, 1);
    transfer_wait(st, 0);
    action(st, 2);
    copy_forward(st, A(d_y), A(h_y), /* n */ 24);
    action(st, 3);
    send_begin(st, A(d_y), /* request */ 0, /* peer */ 0, /* tag */ 8, /* bytes */ 96);
    action(st, 4);
    transfer_wait(st, 0);
}

void stage1_eval(Stage *st)
{
    action(st, 5);
    recv_begin(st, A(h_y), /* request */ 0, /* peer */ 0, /* tag */ 9, /* bytes */ 96);
    action(st, 6);
    transfer_wait(st, 0);
}
