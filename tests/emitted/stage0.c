/* tiny, stage 0 of 2.  Written by hand: the smallest text that uses every form of the emitted language.
 * SPDX-License-Identifier: Apache-2.0 */
#include "job.h"
#include "stage0.h"

static void h_forward(Stage *st, int fb)
{
    /* a statistic and a temporary */
    scale_forward(st, S(fb, h_y), A(h_x), /* n */ rows*W, FACTOR);      /* :4 */
    gelu_forward(st, S(fb, h_y), A(h_x), /* n */ 24, /* tanh */ -1);
    linear_forward(st, S(fb, h_y), A(h_x), A(h_d), /* bias */ 0, H_fc_fwd, /* rows */ rows, /* in */ 4, /* out */ W);
}

static void h_backward(Stage *st, int fb, int gb, int acc, int mb)
{
    (void)mb;
    embedding_backward(st, /* dweight */ A(h_lr_grad), A(d_y + gb_slot[gb]), A(h_d), acc,
        /* n */ 6*W, /* width */ W, /* rows */ rows);
    dropout_forward(st, A(h_d), S(gb, d_y), /* onto */ A(h_x), A(vals), mb,
        /* batch */ 6, /* per */ W, /* drop */ 0x1p-2f /* 0.25 */, SITE_h);
    gelu_backward(st, A(h_d), S(gb, d_y), S(fb, h_y), /* n */ 24, /* tanh */ 0);
}

static void chunk0_forward(Stage *st, int fb)
{
    h_forward(st, fb);
}

static void stage0_open(Stage *st)
{
    open_linear_forward(st, H_fc_fwd, /* rows */ rows, /* in */ 4, /* out */ 4);
}

static void stage0_step(Stage *st)
{
    action(st, 0, "action 0");
    step_begin(st, A(vals));
    action(st, 1, "action 1");
    data_load(st, A(h_x), A(vals), /* input */ 0, /* mb */ 0, /* bytes */ 96);
    action(st, 2, "action 2");
    chunk0_forward(st, 1);
    action(st, 3, "action 3");
    send_begin(st, A(h_y + fb_slot[1]), /* request */ 0, /* peer */ 1, /* tag */ 7, /* bytes */ 96);
    action(st, 4, "action 4");
    recv_begin(st, A(d_y + gb_slot[0]), /* request */ 1, /* peer */ 1, /* tag */ 8, /* bytes */ 96);
    action(st, 5, "action 5");  transfer_wait(st, 0);
    action(st, 6, "action 6");  transfer_wait(st, 1);
    action(st, 7, "action 7");
    h_backward(st, /* fb */ 1, /* gb */ 0, /* acc */ 0, /* mb */ 0);
    action(st, 8, "action 8");
    offload_begin(st, A(h_y + fb_slot[0]), H(h_y_host + h_y_host_slot[0]), /* copy */ 0, /* bytes */ 96);
    action(st, 9, "action 9");
    offload_begin(st, A(h_y + fb_slot[1]), H(h_y_host + h_y_host_slot[1]), /* copy */ 1, /* bytes */ 96);
    action(st, 10, "action 10");  copy_wait(st, 0);
    action(st, 11, "action 11");
    fetch_begin(st, A(d_y + gb_slot[0]), H(h_y_host + h_y_host_slot[0]), /* copy */ 0, /* bytes */ 96);
    action(st, 12, "action 12");  copy_wait(st, 1);
    action(st, 13, "action 13");  copy_wait(st, 0);
    action(st, 14, "action 14");
    fetch_begin(st, A(d_y + gb_slot[0]), H(h_y_host + h_y_host_slot[1]), /* copy */ 0, /* bytes */ 96);
    action(st, 15, "action 15");  copy_wait(st, 0);
    action(st, 16, "action 16");
    step_end(st, A(vals));
}

static void stage0_eval(Stage *st)
{
    action(st, 17, "action 17");
    chunk0_forward(st, 0);
    action(st, 18, "action 18");
    send_begin(st, A(h_y + fb_slot[0]), /* request */ 0, /* peer */ 1, /* tag */ 9, /* bytes */ 96);
    action(st, 19, "action 19");  transfer_wait(st, 0);
}

void stage0(Stages *to)
{
    const Parameter parameter[] = {
        {.name = "h.lr", .shape = {rows, W}, .start = NORMAL(0, 0.02), .copy = AT(lr), .grad = AT(h_lr_grad)},
        {0}
    };
    static const int64_t predicted[] = {
        0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27,
        28, 29, 30, 31, 32, 33
    };
    stage_take(to, &(const StageInfo){
        .name = "stage0", .arena = arena_bytes, .vals = vals, .threads = 1, .actions = 17, .eval_actions = 3,
        .open = stage0_open, .step = stage0_step, .eval = stage0_eval,
        .parameters = 1, .parameter = parameter, .predicted = predicted});
}
