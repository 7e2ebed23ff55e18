/* tiny where steps overlap, stage 1 of 2.  Written by hand: one micro-batch a step, two phases.
 * SPDX-License-Identifier: Apache-2.0 */
#include "rt.h"

static const size_t values = 0, h_y = 256, h_x = 512;
static const size_t values_stride = 128, slot_stride = 64;

void stage1_prologue_0(Stage *st)
{
    action(st, 0);
    recv_begin(st, A(h_y + 0*slot_stride), 0, 0, 0, 64);
    action(st, 1);
    transfer_wait(st, 0);
}

void stage1_prologue_1(Stage *st)
{
    action(st, 0);
    recv_begin(st, A(h_y + 1*slot_stride), 0, 0, 0, 64);
    action(st, 1);
    transfer_wait(st, 0);
}

void stage1_period_0(Stage *st)
{
    action(st, 2);
    send_begin(st, A(h_x + 0*slot_stride), 1, 0, 1, 64);
    action(st, 3);
    recv_begin(st, A(h_y + 1*slot_stride), 0, 0, 0, 64);
    action(st, 4);
    transfer_wait(st, 0);
    action(st, 5);
    transfer_wait(st, 1);
}

void stage1_period_1(Stage *st)
{
    action(st, 2);
    send_begin(st, A(h_x + 1*slot_stride), 1, 0, 1, 64);
    action(st, 3);
    recv_begin(st, A(h_y + 0*slot_stride), 0, 0, 0, 64);
    action(st, 4);
    transfer_wait(st, 0);
    action(st, 5);
    transfer_wait(st, 1);
}

void stage1_epilogue_0(Stage *st)
{
    action(st, 6);
    send_begin(st, A(h_x + 0*slot_stride), 1, 0, 1, 64);
    action(st, 7);
    transfer_wait(st, 1);
}

void stage1_epilogue_1(Stage *st)
{
    action(st, 6);
    send_begin(st, A(h_x + 1*slot_stride), 1, 0, 1, 64);
    action(st, 7);
    transfer_wait(st, 1);
}
