/* SPDX-License-Identifier: Apache-2.0
 *
 * bias.h: the bias gradient of Linear: bias.cu.
 */
#ifndef BIAS_H
#define BIAS_H
#include "../../rt.h"
#ifdef __cplusplus
extern "C" {
#endif

/* dbias = (acc: +=) the column sums of dy[rows out]. */
void bias_gradient(Stage *st, float *dbias, const real *dy, int acc, long rows, long out);
#ifdef __cplusplus
}
#endif
#endif
