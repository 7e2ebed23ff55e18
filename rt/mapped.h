/* SPDX-License-Identifier: Apache-2.0
 *
 * mapped.h: files that are read through a mapping.  Jobs and dpgen share it.
 */
#ifndef MAPPED_H
#define MAPPED_H
#include <stddef.h>

void mapped_watch(const char *program);             /* SIGBUS at a file below becomes one line and status 1 */
void mapped_add(const void *at, size_t n, const char *what, const char *path);
void mapped_drop(const void *at);                   /* before it is unmapped */
#endif
