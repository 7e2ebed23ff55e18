/* SPDX-License-Identifier: Apache-2.0
 *
 * holding.h: for what a buffer holds its place, told to a person.
 */
#ifndef HOLDING_H
#define HOLDING_H
#include "plan.h"

typedef enum { H_PARAM, H_GRAD, H_MOMENT, H_SAVED, H_MESSAGE, H_OTHER, H_KINDS } Holding;
extern const char *const holding_name[H_KINDS];
Holding holding_of(const Plan *p, const Buf *x);
#endif
