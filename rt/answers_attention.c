/* SPDX-License-Identifier: Apache-2.0
 *
 * answers_attention.c: attention where every head of queries has keys and values of its own.
 */
#include "answers_attention.h"

#define ATTENTION "y=batch*query*heads*width lse=batch*heads*query q=batch*query*heads*width k=batch*key*heads*width " \
    "v=batch*key*heads*width dy=batch*query*heads*width dq=batch*query*heads*width dk=batch*key*heads*width " \
    "dv=batch*key*heads*width bias=heads*query*key dbias=heads*query*key mask=batch*key"

static const Known known[] = {
    {"attention_forward", "y", ATTENTION, attention_y, 0, 1}, {"attention_forward", "lse", ATTENTION, attention_lse, 0, 0},
    {"attention_backward", "dq", ATTENTION, attention_dq, 0, 1}, {"attention_backward", "dk", ATTENTION, attention_dk, 0, 1},
    {"attention_backward", "dv", ATTENTION, attention_dv, 0, 1},
    {"attention_backward", "dbias", ATTENTION, attention_dbias, 0, 1},
    {NULL, NULL, NULL, NULL, 0, 0},
};

const Answers answers_attention = {known};
