/* tiny where steps overlap, stage 0 of 2.  Written by hand: one micro-batch a step, two phases.
 * SPDX-License-Identifier: Apache-2.0 */
#include "rt.h"

static const size_t values = 0, h_y = 256, h_x = 512;
static const size_t values_stride = 128, slot_stride = 64;

void stage0_prologue_0(Stage *st)
{
    action(st, 0);
    step_begin(st, A(values + 0*values_stride));
    action(st, 1);
    recv_begin(st, A(h_x + 0*slot_stride), 1, 1, 1, 64);
    action(st, 2);
    send_begin(st, A(h_y + 0*slot_stride), 0, 1, 0, 64);
}

void stage0_prologue_1(Stage *st)
{
    action(st, 0);
    step_begin(st, A(values + 1*values_stride));
    action(st, 1);
    recv_begin(st, A(h_x + 1*slot_stride), 1, 1, 1, 64);
    action(st, 2);
    send_begin(st, A(h_y + 1*slot_stride), 0, 1, 0, 64);
}

void stage0_period_0(Stage *st)
{
    action(st, 3);
    transfer_wait(st, 1);
    action(st, 4);
    transfer_wait(st, 0);
    action(st, 5);
    recv_begin(st, A(h_x + 1*slot_stride), 1, 1, 1, 64);
    action(st, 6);
    send_begin(st, A(h_y + 1*slot_stride), 0, 1, 0, 64);
}

void stage0_period_1(Stage *st)
{
    action(st, 3);
    transfer_wait(st, 1);
    action(st, 4);
    transfer_wait(st, 0);
    action(st, 5);
    recv_begin(st, A(h_x + 0*slot_stride), 1, 1, 1, 64);
    action(st, 6);
    send_begin(st, A(h_y + 0*slot_stride), 0, 1, 0, 64);
}

void stage0_epilogue_0(Stage *st)
{
    action(st, 7);
    transfer_wait(st, 1);
    action(st, 8);
    transfer_wait(st, 0);
    action(st, 9);
    step_end(st, A(values + 0*values_stride));
}

void stage0_epilogue_1(Stage *st)
{
    action(st, 7);
    transfer_wait(st, 1);
    action(st, 8);
    transfer_wait(st, 0);
    action(st, 9);
    step_end(st, A(values + 1*values_stride));
}
