/* SPDX-License-Identifier: Apache-2.0
 *
 * folder.h: a folder that appears whole or not at all, and the files that dpgen carries inside it.
 */
#ifndef FOLDER_H
#define FOLDER_H
#include "base.h"

typedef struct Out Out;
void  out_check(const char *dir);                   /* ends with a message where out_begin() would */
Out  *out_begin(const char *dir);
FILE *out_open(Out *o, const char *name);           /* printable text; name is fixed by dpgen, at most one folder deep */
void  out_close(Out *o);
void  out_copy(Out *o, const char *name, const char *data, size_t n);
typedef struct { const char *name; char hex[65], sha1[41]; } OutFile;    /* hex: of SHA-256 */
const OutFile *out_files(Out *o, int *n);           /* what was written so far, by name */
const char *out_place(const Out *o);                 /* where its files are until it has its name */
const char *out_end(Out *o);                        /* MANIFEST, then into place; the SHA-256 of MANIFEST */
void  out_remove(const char *dir);                  /* a folder, whatever is in it */

/* embed: files of templates/ and rt/, inside the binary, with their sums; made by tools/embed.c; ends with a NULL name */
typedef struct { const char *name; const char *data; size_t n; const char *sha1, *sha256; } Embedded;
extern const Embedded embedded[];
const Embedded *embedded_find(const char *name);

#endif
