/* SPDX-License-Identifier: Apache-2.0
 *
 * answers_norm.c: LayerNorm.
 */
#include "answers_norm.h"

static const Known known[] = {
    {"layernorm_forward", "y", NORM, layernorm_y, 0, 0}, {"layernorm_forward", "mean", NORM, layernorm_mean, 0, 0},
    {"layernorm_forward", "rstd", NORM, layernorm_rstd, 0, 0}, {"layernorm_backward", "dx", NORM, norm_dx, 0, 0},
    {"layernorm_backward", "dweight", NORM, norm_dweight, 0, 0}, {"layernorm_backward", "dbias", NORM, norm_dbias, 0, 0},
    {NULL, NULL, NULL, NULL, 0, 0},
};

const Answers answers_norm = {known};
