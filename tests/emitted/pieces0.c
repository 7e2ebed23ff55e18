/* tiny where steps overlap, stage 0 of 2.  Written by hand: one micro-batch a step, two phases.
 * SPDX-License-Identifier: Apache-2.0 */
#include "rt.h"
#include "pieces0.h"

void stage0_prologue_0(Stage *st)
{
    action(st, 0);
    step_begin(st, A(vals + values_slot[0]));
    action(st, 1);
    recv_begin(st, A(h_x + fb_slot[0]), /* request */ 1, /* peer */ 1, /* tag */ 1, /* bytes */ 64);
    action(st, 2);
    send_begin(st, A(h_y + fb_slot[0]), /* request */ 0, /* peer */ 1, /* tag */ 0, /* bytes */ 64);
}

void stage0_prologue_1(Stage *st)
{
    action(st, 0);
    step_begin(st, A(vals + values_slot[1]));
    action(st, 1);
    recv_begin(st, A(h_x + fb_slot[1]), /* request */ 1, /* peer */ 1, /* tag */ 1, /* bytes */ 64);
    action(st, 2);
    send_begin(st, A(h_y + fb_slot[1]), /* request */ 0, /* peer */ 1, /* tag */ 0, /* bytes */ 64);
}

void stage0_period_0(Stage *st)
{
    action(st, 3);
    transfer_wait(st, 1);
    action(st, 4);
    transfer_wait(st, 0);
    action(st, 5);
    recv_begin(st, A(h_x + fb_slot[1]), /* request */ 1, /* peer */ 1, /* tag */ 1, /* bytes */ 64);
    action(st, 6);
    send_begin(st, A(h_y + fb_slot[1]), /* request */ 0, /* peer */ 1, /* tag */ 0, /* bytes */ 64);
}

void stage0_period_1(Stage *st)
{
    action(st, 3);
    transfer_wait(st, 1);
    action(st, 4);
    transfer_wait(st, 0);
    action(st, 5);
    recv_begin(st, A(h_x + fb_slot[0]), /* request */ 1, /* peer */ 1, /* tag */ 1, /* bytes */ 64);
    action(st, 6);
    send_begin(st, A(h_y + fb_slot[0]), /* request */ 0, /* peer */ 1, /* tag */ 0, /* bytes */ 64);
}

void stage0_epilogue_0(Stage *st)
{
    action(st, 7);
    transfer_wait(st, 1);
    action(st, 8);
    transfer_wait(st, 0);
    action(st, 9);
    step_end(st, A(vals + values_slot[0]));
}

void stage0_epilogue_1(Stage *st)
{
    action(st, 7);
    transfer_wait(st, 1);
    action(st, 8);
    transfer_wait(st, 0);
    action(st, 9);
    step_end(st, A(vals + values_slot[1]));
}
