/* SPDX-License-Identifier: Apache-2.0
 *
 * The portable kernels prepare nothing: these calls exist so that a stage reads the same with every kernel library.
 */
#include "../rt.h"

#define NOTHING(call, ...) void call(Stage *st, int h, __VA_ARGS__)

NOTHING(open_linear_forward, long rows, long in, long out) { (void)st, (void)h, (void)rows, (void)in, (void)out; }
NOTHING(open_linear_backward_x, long rows, long in, long out) { (void)st, (void)h, (void)rows, (void)in, (void)out; }
NOTHING(open_linear_backward_w, long rows, long in, long out) { (void)st, (void)h, (void)rows, (void)in, (void)out; }

NOTHING(open_matmul_forward, long batch, long m, long n, long k, long ta, long tb)
{
    (void)st, (void)h, (void)batch, (void)m, (void)n, (void)k, (void)ta, (void)tb;
}

NOTHING(open_matmul_backward, long batch, long m, long n, long k, long ta, long tb)
{
    (void)st, (void)h, (void)batch, (void)m, (void)n, (void)k, (void)ta, (void)tb;
}

NOTHING(open_attention_forward, long batch, long heads, long query, long key, long width, long causal)
{
    (void)st, (void)h, (void)batch, (void)heads, (void)query, (void)key, (void)width, (void)causal;
}

NOTHING(open_attention_backward, long batch, long heads, long query, long key, long width, long causal)
{
    (void)st, (void)h, (void)batch, (void)heads, (void)query, (void)key, (void)width, (void)causal;
}

NOTHING(open_attention_packed_forward, long batch, long heads, long query, long width, long causal)
{
    (void)st, (void)h, (void)batch, (void)heads, (void)query, (void)width, (void)causal;
}

NOTHING(open_attention_packed_backward, long batch, long heads, long query, long width, long causal)
{
    (void)st, (void)h, (void)batch, (void)heads, (void)query, (void)width, (void)causal;
}
