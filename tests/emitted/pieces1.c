/* tiny where steps overlap, stage 1 of 2.  Written by hand: one micro-batch a step, two phases.
 * SPDX-License-Identifier: Apache-2.0 */
#include "job.h"
#include "pieces1.h"

static void stage1_prologue_0(Stage *st)
{
    action(st, 0, "action 0");
    recv_begin(st, A(h_y + fb_slot[0]), /* request */ 0, /* peer */ 0, /* tag */ 0, /* bytes */ 64);
    action(st, 1, "action 1");  transfer_wait(st, 0);
}

static void stage1_prologue_1(Stage *st)
{
    action(st, 0, "action 0");
    recv_begin(st, A(h_y + fb_slot[1]), /* request */ 0, /* peer */ 0, /* tag */ 0, /* bytes */ 64);
    action(st, 1, "action 1");  transfer_wait(st, 0);
}

static void stage1_period_0(Stage *st)
{
    action(st, 2, "action 2");
    send_begin(st, A(h_x + fb_slot[0]), /* request */ 1, /* peer */ 0, /* tag */ 1, /* bytes */ 64);
    action(st, 3, "action 3");
    recv_begin(st, A(h_y + fb_slot[1]), /* request */ 0, /* peer */ 0, /* tag */ 0, /* bytes */ 64);
    action(st, 4, "action 4");  transfer_wait(st, 0);
    action(st, 5, "action 5");  transfer_wait(st, 1);
}

static void stage1_period_1(Stage *st)
{
    action(st, 2, "action 2");
    send_begin(st, A(h_x + fb_slot[1]), /* request */ 1, /* peer */ 0, /* tag */ 1, /* bytes */ 64);
    action(st, 3, "action 3");
    recv_begin(st, A(h_y + fb_slot[0]), /* request */ 0, /* peer */ 0, /* tag */ 0, /* bytes */ 64);
    action(st, 4, "action 4");  transfer_wait(st, 0);
    action(st, 5, "action 5");  transfer_wait(st, 1);
}

static void stage1_epilogue_0(Stage *st)
{
    action(st, 6, "action 6");
    send_begin(st, A(h_x + fb_slot[0]), /* request */ 1, /* peer */ 0, /* tag */ 1, /* bytes */ 64);
    action(st, 7, "action 7");  transfer_wait(st, 1);
}

static void stage1_epilogue_1(Stage *st)
{
    action(st, 6, "action 6");
    send_begin(st, A(h_x + fb_slot[1]), /* request */ 1, /* peer */ 0, /* tag */ 1, /* bytes */ 64);
    action(st, 7, "action 7");  transfer_wait(st, 1);
}

void stage1(Stages *to)
{
    const Parameter parameter[] = {
        {0}
    };
    static const int64_t predicted[] = {
        0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
    };
    static void (*const piece[])(Stage *) = {
        stage1_prologue_0, stage1_period_0, stage1_epilogue_0, 0, 0,
        stage1_prologue_1, stage1_period_1, stage1_epilogue_1, 0, 0,
    };
    stage_take(to, &(const StageInfo){
        .name = "stage1", .arena = arena_bytes, .vals = NOWHERE, .threads = 1, .actions = 8, .eval_actions = 0,
        .phases = 2, .piece = piece, .parameters = 0, .parameter = parameter, .predicted = predicted});
}
