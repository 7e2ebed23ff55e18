/* tiny where steps overlap, stage 1 of 2.  Written by hand: one micro-batch a step, two phases.
 * SPDX-License-Identifier: Apache-2.0 */
#include "rt.h"
#include "pieces1.h"

void stage1_prologue_0(Stage *st)
{
    action(st, 0);
    recv_begin(st, A(h_y + fb_slot[0]), /* request */ 0, /* peer */ 0, /* tag */ 0, /* bytes */ 64);
    action(st, 1);
    transfer_wait(st, 0);
}

void stage1_prologue_1(Stage *st)
{
    action(st, 0);
    recv_begin(st, A(h_y + fb_slot[1]), /* request */ 0, /* peer */ 0, /* tag */ 0, /* bytes */ 64);
    action(st, 1);
    transfer_wait(st, 0);
}

void stage1_period_0(Stage *st)
{
    action(st, 2);
    send_begin(st, A(h_x + fb_slot[0]), /* request */ 1, /* peer */ 0, /* tag */ 1, /* bytes */ 64);
    action(st, 3);
    recv_begin(st, A(h_y + fb_slot[1]), /* request */ 0, /* peer */ 0, /* tag */ 0, /* bytes */ 64);
    action(st, 4);
    transfer_wait(st, 0);
    action(st, 5);
    transfer_wait(st, 1);
}

void stage1_period_1(Stage *st)
{
    action(st, 2);
    send_begin(st, A(h_x + fb_slot[1]), /* request */ 1, /* peer */ 0, /* tag */ 1, /* bytes */ 64);
    action(st, 3);
    recv_begin(st, A(h_y + fb_slot[0]), /* request */ 0, /* peer */ 0, /* tag */ 0, /* bytes */ 64);
    action(st, 4);
    transfer_wait(st, 0);
    action(st, 5);
    transfer_wait(st, 1);
}

void stage1_epilogue_0(Stage *st)
{
    action(st, 6);
    send_begin(st, A(h_x + fb_slot[0]), /* request */ 1, /* peer */ 0, /* tag */ 1, /* bytes */ 64);
    action(st, 7);
    transfer_wait(st, 1);
}

void stage1_epilogue_1(Stage *st)
{
    action(st, 6);
    send_begin(st, A(h_x + fb_slot[1]), /* request */ 1, /* peer */ 0, /* tag */ 1, /* bytes */ 64);
    action(st, 7);
    transfer_wait(st, 1);
}
