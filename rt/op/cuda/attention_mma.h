/* SPDX-License-Identifier: Apache-2.0
 *
 * attention_mma.h: own attention on tensor cores, for bf16, heads up to 128 wide, without a cap or documents.  Each call does
 * all that it is asked for and returns true, or nothing and false.
 */
#ifndef ATTENTION_MMA_H
#define ATTENTION_MMA_H
#include "attend.h"

bool attention_mma_forward(Stage *st, real *y, float *lse, const Attend &a);
/* Once a.delta is made. */
bool attention_mma_backward(Stage *st, real *dq, real *dk, real *dv, real *dbias, const Attend &a);
#endif
