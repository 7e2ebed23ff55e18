/* SPDX-License-Identifier: Apache-2.0
 *
 * file.h: files that the command line names.
 */
#ifndef FILE_H
#define FILE_H
#include "base.h"

extern const char file_stdin[];     /* the path of the standard input, which file_read() reads once and hands out again */
/* A whole file, a zero byte behind its n.  What cannot be read ends dpgen with status 2 and a remedy. */
char *file_read(const char *path, const char *remedy, size_t *n);
FILE *file_open(const char *path, const char *remedy);
void  file_refuse(const char *path, const char *remedy) NORETURN;      /* by errno */
/* An output is no input and no other output, whatever links lead to it: status 2 as soon as the second of them is named.  All
 * that is opened here is told; options tell earlier. */
void  file_reads(const char *path);
void  file_writes(const char *path);
void  file_rewrites(const char *path);      /* its reader has all of it and keeps all of it: it may be written over */
/* Written beside path and put in its place at the end; what cannot be ends dpgen with status 1. */
FILE *file_begin(const char *path);
void  file_end(FILE *f, const char *path);
/* Those between take their places one after the other at the end, or none does.  dir: a folder, which is made; NULL none.
 * alone: one dpgen at a time writes there. */
void  files_begin(const char *dir, bool alone);
void  files_end(void);
#endif
