/* SPDX-License-Identifier: Apache-2.0
 *
 * zip.h: archives of stored files.
 */
#ifndef ZIP_H
#define ZIP_H
#include "net.h"

typedef struct { const char *name; const unsigned char *at; size_t n; } Packed;
typedef VEC(Packed) Archive;
Archive zip_open(const Net *g, const unsigned char *at, size_t n);
/* By the end of its name, behind the folder that all files are in; NULL: it has not */
const Packed *zip_find(const Archive *a, const char *name);
#endif
