/* tiny, stage 1 of 2.  Written by hand: the other side of stage0.c's messages.
 * SPDX-License-Identifier: Apache-2.0 */
#include "job.h"
#include "stage1.h"

static void stage1_step(Stage *st)
{
    action(st, 0, "action 0");
    recv_begin(st, A(h_y), /* request */ 0, /* peer */ 0, /* tag */ 7, /* bytes */ 96);
    action(st, 1, "action 1");  transfer_wait(st, 0);
    action(st, 2, "action 2");
    copy_forward(st, A(d_y), A(h_y), /* n */ 24);
    action(st, 3, "action 3");
    send_begin(st, A(d_y), /* request */ 0, /* peer */ 0, /* tag */ 8, /* bytes */ 96);
    action(st, 4, "action 4");  transfer_wait(st, 0);
}

static void stage1_eval(Stage *st)
{
    action(st, 5, "action 5");
    recv_begin(st, A(h_y), /* request */ 0, /* peer */ 0, /* tag */ 9, /* bytes */ 96);
    action(st, 6, "action 6");  transfer_wait(st, 0);
}

void stage1(Stages *to)
{
    const Parameter parameter[] = {
        {0}
    };
    static const int64_t predicted[] = {
        0, 1, 2, 3, 4, 5, 6, 7, 8, 9
    };
    stage_take(to, &(const StageInfo){
        .name = "stage1", .arena = arena_bytes, .vals = NOWHERE, .threads = 1, .actions = 5, .eval_actions = 2,
        .step = stage1_step, .eval = stage1_eval, .parameters = 0, .parameter = parameter, .predicted = predicted});
}
