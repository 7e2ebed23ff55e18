/* SPDX-License-Identifier: Apache-2.0
 *
 * purse.c: how much a part of a search may still do.
 */
#include "base.h"

Purse *purse_new(Purse *of, int64_t most)
{
    Purse *p = alloc(sizeof *p);
    *p = (Purse){.of = of, .left = most};
    return p;
}

int64_t purse_left(const Purse *p)
{
    int64_t least = INT64_MAX;
    for (; p; p = p->of)
        least = p->left - p->kept < least ? p->left - p->kept : least;
    return least > 0 ? least : 0;
}

void purse_spend(Purse *p, int64_t steps)
{
    for (; p; p = p->of) {
        p->left -= steps;
        p->ended |= p->left <= p->kept;
    }
}

bool purse_ended(const Purse *p)
{
    return p && (p->ended || purse_ended(p->of));
}
