/* SPDX-License-Identifier: Apache-2.0
 *
 * purse.h: how much a part of a search may still do, in steps that it counts; never in time.
 *
 * A purse may be a part of another one.  What is spent of a part is spent of the whole too, so nothing is settled afterwards:
 * what one part leaves is there for the next.  NULL is a purse without an end.
 */
#ifndef PURSE_H
#define PURSE_H
#include <stdint.h>

typedef struct Purse Purse;
struct Purse {
    Purse *of;                  /* that this is a part of; NULL: of none */
    int64_t left, kept;         /* kept: of left, for later */
};

Purse *purse_new(Purse *of, int64_t most);          /* at most so much of it */
int64_t purse_left(const Purse *p);                 /* at least 0; INT64_MAX: without an end */
void purse_spend(Purse *p, int64_t steps);
#endif
