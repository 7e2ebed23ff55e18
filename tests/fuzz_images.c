/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_images.c: operators of networks for images in a random model: fuzz_ops.c has their weights.
 */
#include "fuzz.h"
#include <stdio.h>

bool make_pool(void)
{
    Value *x = choose(sequence, NULL);
    if (!x)
        return false;
    int kernel = 1 + below(3), stride = 1 + below(3), pad = below(kernel / 2 + 1), all = x->s.d[1] + 2 * pad;
    Shape y = x->s;
    y.d[1] = (all - kernel) / stride + 1;
    if (all < kernel)
        return false;
    bool most = chance(50);
    line("op: %s, in: %s, kernel: %d, stride: %d, pad: %d%s, as: %s", most ? "MaxPool" : "AvgPool", use(x), kernel, stride, pad,
         most || chance(50) ? "" : ", count_pad: false", fresh(y, x->loud)->name);
    return true;
}

/* Often with the Relu behind it, and an addition between: one call. */
bool make_batch_norm(void)
{
    Value *x = choose(of_sample, NULL);
    if (!x || x->s.n < 2 || size(&x->s) == width(&x->s))
        return false;
    char name[24];
    name_table(name, sizeof name, "batch");
    Value *y = fresh(x->s, 3);
    line("op: BatchNorm, name: %s, in: %s, eps: 1e-%d, momentum: 0.%d, track: %s, as: %s", name, use(x), 1 + below(3),
         1 + below(9), chance(50) ? "step" : "micro", y->name);
    owns(name, true);
    Value *other = chance(40) ? choose(equal, y) : NULL;
    if (other && other != y) {
        Value *first = chance(50) ? y : other, *second = first == y ? other : y;
        y = fresh(x->s, 1 + (other->loud > 3 ? other->loud : 3));
        line("op: Add, in: [%s, %s], as: %s", use(first), use(second), y->name);
    }
    if (chance(60))
        line("op: Relu, in: %s, as: %s", use(y), fresh(y->s, y->loud)->name);
    return true;
}
