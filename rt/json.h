/* SPDX-License-Identifier: Apache-2.0
 *
 * json.h: reading JSON from files that nobody vouches for, one value after the other, without a tree.
 */
#ifndef JSON_H
#define JSON_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { JSON_DEPTH = 16 };

typedef struct { const char *from, *at, *end, *why; } Json;     /* why: the first error, at `at`; NULL none */

Json json_open(const void *text, size_t n);
bool json_end(Json *j);                                 /* nothing but blanks is left */
bool json_string(Json *j, char *to, size_t room);       /* decoded; an error if it does not fit or holds a zero */
bool json_bytes(Json *j, char *to, size_t room, size_t *n);     /* the same of *n bytes, which may be zeros */
bool json_integer(Json *j, int64_t *x);                 /* digits only; not below zero */
bool json_skip(Json *j);                                /* any value */
/* for (bool first = true; json_member(j, &first, key, room); ) reads one value each: the members of an object; the
 * elements of an array with key NULL.  False at the end, or j->why is set. */
bool json_member(Json *j, bool *first, char *key, size_t room);
bool json_key(Json *j, bool *first, char *key, size_t room, size_t *n);    /* the same of an object; keys may hold zeros */
#endif
