/* SPDX-License-Identifier: Apache-2.0
 *
 * linear_team.h: how the devices of a stage close the sums of Linear and GroupedLinear.  Each has added up its own blocks in
 * f32, where the result has room for them or in tmp.  Then the team adds (team.h), and what Linear does to a finished sum
 * follows.
 */
#ifndef LINEAR_TEAM_H
#define LINEAR_TEAM_H
#include "kernel.h"
#include "../team.h"

/* The sums of the part, [rows n], of all devices. */
static inline float *close_sums(Stage *st, real *y, void *tmp, long n)
{
    float *sum = tmp ? tmp : (float *)(void *)y;
    if (st->team)
        st->team->sum(st, sum, n);
    return sum;
}

/* Those of the rows that this device keeps, in room for n of `whole` numbers. */
static inline const float *close_part(Stage *st, float *sum, long n, long whole)
{
    if (st->team)
        st->team->sum_part(st, sum, n, whole);
    return sum + least(st->shard * n, whole);
}

static inline float *room_of(real *y, void *tmp)
{
    return tmp ? tmp : (float *)(void *)y;
}

/* Finished sums, with the bias. */
static inline void put_rows(Stage *st, real *y, const float *sum, const real *bias, long rows, long out)
{
    EACH(rows * out >= 4 * SPAN)
    for (long i = 0; i < rows; i++)
        for (long j = 0; j < out; j++)
            put(y, i * out + j, bias ? sum[i * out + j] + get(bias, j) : sum[i * out + j]);     /* -0 stays */
}
#endif
