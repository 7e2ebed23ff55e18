/* SPDX-License-Identifier: Apache-2.0
 *
 * safetensors.h: the file format of weights and checkpoints.
 */
#ifndef SAFETENSORS_H
#define SAFETENSORS_H
#include "run.h"

typedef struct {
    const char *name;
    char type[16];              /* F32, BF16, ... */
    int ndim;
    int64_t dim[8];
    int64_t from, to;           /* bytes behind the header */
} SafeTensor;

typedef struct {
    const char *path;
    const unsigned char *at;    /* the whole file */
    size_t size, data;          /* where the bytes of tensors start */
    SafeTensor *tensor;         /* by name */
    int tensors;
} SafeFile;

/* Fills the text with length and header of a file of these f32 items, blank to a multiple of 8.  extra: a JSON object
 * of strings for the metadata, or NULL. */
void safe_header(Text *t, const Item *item, int n, const char *extra);
void safe_ends(Text *t);        /* the end of such a header, and its length in front */
void safe_shape(Text *t, int n, const int64_t *dim);
/* Both return a status and have said why. */
int  safe_open(SafeFile *f, const char *path);
const SafeTensor *safe_find(const SafeFile *f, const char *name);
char safe_type(const SafeTensor *t);    /* how its numbers stand there: f, h, b or i as F32, F16, BF16, I64; 0: otherwise */
const unsigned char *safe_numbers(const SafeFile *f, const SafeTensor *t);
/* n of them, `step` apart, which is exact but for I64. */
void safe_widen(float *to, const unsigned char *from, char type, int64_t step, int64_t n);
/* As floats into `to`; F32 or BF16, of the shape of the state. */
int  safe_read(const SafeFile *f, const SafeTensor *t, const StateInfo *s, float *to);
void safe_close(SafeFile *f);
#endif
