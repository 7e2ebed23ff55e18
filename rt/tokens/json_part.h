/* SPDX-License-Identifier: Apache-2.0
 *
 * json_part.h: values of JSON as pieces of its text, which are read later.
 */
#ifndef JSON_PART_H
#define JSON_PART_H
#include "../json.h"

typedef struct { const char *at; size_t n; } JsonPart;  /* the text of a value; n 0: none */
JsonPart json_value(Json *j);
/* The first member of that name of an object; keys that come before it are decoded in `to`. */
JsonPart json_find(Json *j, const char *key, char *to, size_t room);
#endif
