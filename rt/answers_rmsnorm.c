/* SPDX-License-Identifier: Apache-2.0
 *
 * answers_rmsnorm.c: RMSNorm.
 */
#include "answers_norm.h"

static const Known known[] = {
    {"rmsnorm_forward", "y", NORM, rmsnorm_y, 0, 0}, {"rmsnorm_forward", "rstd", NORM, rmsnorm_rstd, 0, 0},
    {"rmsnorm_backward", "dx", NORM, norm_dx, 0, 0}, {"rmsnorm_backward", "dweight", NORM, norm_dweight, 0, 0},
    {"rmsnorm_offset_forward", "y", NORM, rmsnorm_y, 0, 0}, {"rmsnorm_offset_forward", "rstd", NORM, rmsnorm_rstd, 0, 0},
    {"rmsnorm_offset_backward", "dx", NORM, norm_dx, 0, 0}, {"rmsnorm_offset_backward", "dweight", NORM, norm_dweight, 0, 0},
    {NULL, NULL, NULL, NULL, 0, 0},
};

const Answers answers_rmsnorm = {known};
