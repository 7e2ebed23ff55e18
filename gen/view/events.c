/* SPDX-License-Identifier: Apache-2.0
 *
 * events.c: numbers of JSON as doubles, and errors with their place.
 */
#include "view.h"
#include <math.h>

bool json_number(Json *j, double *x)
{
    while (j->at < j->end && memchr(" \t\r\n", *j->at, 4))
        j->at++;
    const char *from = j->at;
    if (from == j->end || !memchr("-0123456789n", *from, 12)) {
        j->why = j->why ? j->why : "a number is expected";
        return false;
    }
    if (!json_skip(j))
        return false;
    *x = *from == 'n' ? (double)NAN : *from == '-' ? -number_decimal(from + 1, (size_t)(j->at - from - 1)) :
         number_decimal(from, (size_t)(j->at - from));
    return true;
}

void json_stop(const Json *j, const char *path, size_t n, const char *remedy)
{
    if (!j->why)
        return;
    err(diag_place(diag_file(path, j->from, n), j->from, j->at), remedy, "%s", j->why);
}
