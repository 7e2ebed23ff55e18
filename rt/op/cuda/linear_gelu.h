/* SPDX-License-Identifier: Apache-2.0
 *
 * linear_gelu.h: whoever includes it brings linear_gelu.c into a job: the benchmark of dpgen profile calls it in any model.
 */
#ifndef LINEAR_GELU_H
#define LINEAR_GELU_H
#include "../../rt.h"
#endif
