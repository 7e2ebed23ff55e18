/* SPDX-License-Identifier: Apache-2.0
 *
 * safe.h: files of safetensors: a header of JSON, then the bytes of the tensors.
 */
#ifndef SAFE_H
#define SAFE_H
#include "base.h"

typedef struct {
    const char *name, *type;            /* F32, BF16, ... */
    int ndim;
    int64_t dim[8];
    int64_t bytes;
    const unsigned char *at;            /* of a file that is read */
} SafeTensor;
typedef struct { const char *path; VEC(SafeTensor) tensor; } SafeFile;

/* A whole file, mapped until the end of dpgen; what cannot be read ends it with that status. */
const unsigned char *file_map(const char *path, int status, size_t *n);
/* What is no such file ends dpgen with status 5. */
SafeFile *safe_open(const char *path);              /* tensors by name */
const SafeTensor *safe_find(const SafeFile *f, const char *name);      /* NULL: it has not */
int64_t safe_bytes(const char *type, int ndim, const int64_t *dim);     /* of a tensor; -1: an unknown type, or too large */
/* Length and header; the bytes of the tensors follow in this order. */
void safe_header(FILE *f, const SafeTensor *tensor, int n);
#endif
