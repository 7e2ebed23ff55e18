/* SPDX-License-Identifier: Apache-2.0
 *
 * answers_rmsnorm.c: RMSNorm.
 */
#include "answers_norm.h"

static Answer rmsnorm_y(const Call *c, long i) { return norm_y(c, i, false); }

static Answer rmsnorm_rstd(const Call *c, long row)
{
    double rstd = moments(c, row, false).rstd;
    return near(rstd, rstd);
}

static const Known known[] = {
    {"rmsnorm_forward", "y", NORM, rmsnorm_y, 0, 0}, {"rmsnorm_forward", "rstd", NORM, rmsnorm_rstd, 0, 0},
    {"rmsnorm_backward", "dx", NORM, norm_dx, 0, 0}, {"rmsnorm_backward", "dweight", NORM, norm_dweight, 0, 0},
    {"rmsnorm_offset_forward", "y", NORM, rmsnorm_y, 0, 0}, {"rmsnorm_offset_forward", "rstd", NORM, rmsnorm_rstd, 0, 0},
    {"rmsnorm_offset_backward", "dx", NORM, norm_dx, 0, 0}, {"rmsnorm_offset_backward", "dweight", NORM, norm_dweight, 0, 0},
    {"add_rmsnorm_forward", "sum", NORM, sum_y, 0, 0}, {"add_rmsnorm_forward", "y", NORM, rmsnorm_y, 0, 0},
    {"add_rmsnorm_forward", "rstd", NORM, rmsnorm_rstd, 0, 0},
    {NULL, NULL, NULL, NULL, 0, 0},
};

const Answers answers_rmsnorm = {known};
