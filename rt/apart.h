/* SPDX-License-Identifier: Apache-2.0
 *
 * apart.h: an output is no input and no other output.  Jobs and dpgen share it.
 */
#ifndef APART_H
#define APART_H
#include <stdbool.h>
#include <stddef.h>

/* Notes a file that is read, or that will be written; `what` is the option that names it, or what it is.  False: it is one
 * that must not be the same, and `why` says so. */
bool apart_note(const char *what, const char *path, bool written, char *why, size_t room);
void apart_forget(const char *path);    /* its reader has all of it, and it may be written over; or it is written */
void apart_clear(void);                 /* as at start */
#endif
