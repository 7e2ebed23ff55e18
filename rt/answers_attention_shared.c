/* SPDX-License-Identifier: Apache-2.0
 *
 * answers_attention_shared.c: attention with heads that share keys, windows, documents and sinks.
 */
#include "answers_attention.h"

static Answer attention_dsinks(const Call *c, long i)
{
    Heads h = heads_of(c);
    Answer a = {0, 0};
    h.b = i / h.heads, h.head = i % h.heads;
    for (long q = 0; q < h.query; q++) {
        Answer delta = dot(h.dy, result_at(&h, q), 1, part_of(c, "y"), result_at(&h, q), 1, h.width);
        plus_slope(&a, delta, -exp(old_of(c, "sinks", i) - old_of(c, "lse", row_of(&h, q))));
    }
    return a;
}

#define SHARED "y=batch*query*heads*width lse=batch*heads*query q=batch*query*heads*width k=batch*key*kv_heads*width " \
    "v=batch*key*kv_heads*width dy=batch*query*heads*width dq=batch*query*heads*width dk=batch*key*kv_heads*width " \
    "dv=batch*key*kv_heads*width bias=heads*query*key dbias=heads*query*key mask=batch*key documents=batch*key " \
    "sinks=batch*heads dsinks=batch*heads"

static const Known known[] = {
    {"attention_shared_forward", "y", SHARED, attention_y, 0, 1},
    {"attention_shared_forward", "lse", SHARED, attention_lse, 0, 0},
    {"attention_shared_backward", "dq", SHARED, attention_dq, 0, 1},
    {"attention_shared_backward", "dk", SHARED, attention_dk, 0, 1},
    {"attention_shared_backward", "dv", SHARED, attention_dv, 0, 1},
    {"attention_shared_backward", "dbias", SHARED, attention_dbias, 0, 1},
    {"attention_window_forward", "y", SHARED, attention_y, 0, 1},
    {"attention_window_forward", "lse", SHARED, attention_lse, 0, 0},
    {"attention_window_backward", "dq", SHARED, attention_dq, 0, 1},
    {"attention_window_backward", "dk", SHARED, attention_dk, 0, 1},
    {"attention_window_backward", "dv", SHARED, attention_dv, 0, 1},
    {"attention_window_backward", "dbias", SHARED, attention_dbias, 0, 1},
    {"attention_general_forward", "y", SHARED, attention_y, 0, 1},
    {"attention_general_forward", "lse", SHARED, attention_lse, 0, 0},
    {"attention_general_backward", "dq", SHARED, attention_dq, 0, 1},
    {"attention_general_backward", "dk", SHARED, attention_dk, 0, 1},
    {"attention_general_backward", "dv", SHARED, attention_dv, 0, 1},
    {"attention_general_backward", "dbias", SHARED, attention_dbias, 0, 1},
    {"attention_general_backward", "dsinks", SHARED, attention_dsinks, 0, 1},
    {"attention_packed_documents_forward", "y", PACKED, attention_y, 0, 1},
    {"attention_packed_documents_forward", "lse", PACKED, attention_lse, 0, 0},
    {"attention_packed_documents_backward", "dqkv", PACKED, attention_dqkv, 0, 1},
    {"attention_packed_documents_backward", "dbias", PACKED, attention_dbias, 0, 1},
    {NULL, NULL, NULL, NULL, 0, 0},
};

const Answers answers_attention_shared = {known};
