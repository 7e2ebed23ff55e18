/* SPDX-License-Identifier: Apache-2.0
 *
 * answers_attention_packed.c: attention whose queries, keys and values lie side by side.
 */
#include "answers_attention.h"

static const Known known[] = {
    {"attention_packed_forward", "y", PACKED, attention_y, 0, 1},
    {"attention_packed_forward", "lse", PACKED, attention_lse, 0, 0},
    {"attention_packed_backward", "dqkv", PACKED, attention_dqkv, 0, 1},
    {"attention_packed_backward", "dbias", PACKED, attention_dbias, 0, 1},
    {NULL, NULL, NULL, NULL, 0, 0},
};

const Answers answers_attention_packed = {known};
