/* SPDX-License-Identifier: Apache-2.0
 *
 * answers_linear.c: Linear alone.
 */
#include "answers_linear.h"

static Answer linear_dweight(const Call *c, long i)
{
    long in = of(c, "in");
    return product(part_of(c, "dy"), i / in, of(c, "out"), part_of(c, "x"), i % in, in, of(c, "rows"));
}

static Answer linear_dbias(const Call *c, long i)
{
    return column(part_of(c, "dy"), i, of(c, "out"), of(c, "rows"));
}

static const Known known[] = {
    {"linear_forward", "y", LINEAR, linear_y, 0, 0}, {"linear_backward_x", "dx", LINEAR, linear_dx, 0, 0},
    {"linear_backward_w", "dweight", LINEAR, linear_dweight, 0, 0},
    {"linear_backward_w", "dbias", LINEAR, linear_dbias, 0, 0},
    {NULL, NULL, NULL, NULL, 0, 0},
};

const Answers answers_linear = {known};
