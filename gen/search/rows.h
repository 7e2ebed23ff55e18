/* SPDX-License-Identifier: Apache-2.0
 *
 * rows.h: the rows of schedules.def that schedule: auto tries beside gpipe and 1f1b.
 */
#ifndef ROWS_H
#define ROWS_H
#include "list.h"

/* The best of all rows, from the best plan of gpipe and 1f1b on: that plan, if no row has a better one. */
Plan *search_rows(const Search *s, Plan *best);
#endif
