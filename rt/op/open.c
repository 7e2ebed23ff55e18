/* SPDX-License-Identifier: Apache-2.0
 *
 * The portable kernels prepare nothing: these calls exist so that a stage reads the same with every kernel library.
 */
#include "../rt.h"

void open_linear_forward(Stage *st, int h, long rows, long in, long out)
{
    (void)st, (void)h, (void)rows, (void)in, (void)out;
}

void open_linear_backward_x(Stage *st, int h, long rows, long in, long out)
{
    (void)st, (void)h, (void)rows, (void)in, (void)out;
}

void open_linear_backward_w(Stage *st, int h, long rows, long in, long out)
{
    (void)st, (void)h, (void)rows, (void)in, (void)out;
}

void open_matmul_forward(Stage *st, int h, long batch, long m, long n, long k, long ta, long tb)
{
    (void)st, (void)h, (void)batch, (void)m, (void)n, (void)k, (void)ta, (void)tb;
}

void open_matmul_backward(Stage *st, int h, long batch, long m, long n, long k, long ta, long tb)
{
    (void)st, (void)h, (void)batch, (void)m, (void)n, (void)k, (void)ta, (void)tb;
}

void open_attention_forward(Stage *st, int h, long batch, long heads, long query, long key, long width, long causal)
{
    (void)st, (void)h, (void)batch, (void)heads, (void)query, (void)key, (void)width, (void)causal;
}

void open_attention_backward(Stage *st, int h, long batch, long heads, long query, long key, long width, long causal)
{
    (void)st, (void)h, (void)batch, (void)heads, (void)query, (void)key, (void)width, (void)causal;
}

void open_attention_packed_forward(Stage *st, int h, long batch, long heads, long query, long width, long causal)
{
    (void)st, (void)h, (void)batch, (void)heads, (void)query, (void)width, (void)causal;
}

void open_attention_packed_backward(Stage *st, int h, long batch, long heads, long query, long width, long causal)
{
    (void)st, (void)h, (void)batch, (void)heads, (void)query, (void)width, (void)causal;
}

void open_linear_xent_forward(Stage *st, int h, long rows, long in, long out, long chunk, long ignore, int count)
{
    (void)st, (void)h, (void)rows, (void)in, (void)out, (void)chunk, (void)ignore, (void)count;
}

void open_linear_xent_backward(Stage *st, int h, long rows, long in, long out, long chunk, long ignore, int count)
{
    (void)st, (void)h, (void)rows, (void)in, (void)out, (void)chunk, (void)ignore, (void)count;
}
