/* SPDX-License-Identifier: Apache-2.0
 *
 * json_part.c: values of JSON as pieces of its text.
 */
#include <string.h>
#include "json_part.h"

JsonPart json_value(Json *j)
{
    const char *at = j->at;
    while (at < j->end && memchr(" \t\r\n", *at, 4))
        at++;
    return json_skip(j) ? (JsonPart){at, (size_t)(j->at - at)} : (JsonPart){at, 0};
}

JsonPart json_find(Json *j, const char *key, char *to, size_t room)
{
    for (bool first = true; json_member(j, &first, to, room);) {
        bool found = !strcmp(to, key);
        JsonPart p = json_value(j);
        if (found || j->why)
            return p;
    }
    return (JsonPart){"", 0};
}
