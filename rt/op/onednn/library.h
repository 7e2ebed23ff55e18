/* SPDX-License-Identifier: Apache-2.0
 *
 * library.h: oneDNN as product.c and conv.c use it, and the only place that includes its header: the block of a stage,
 * descriptions of memory, and copies of a weight between the plain layout and the library's own.
 *
 * oneDNN 2.x and 3.x differ in how memory is described and a primitive is made.  View hides the first; the second stands
 * next to its caller.
 */
#ifndef LIBRARY_H
#define LIBRARY_H
#include <omp.h>
#include <oneapi/dnnl/dnnl.h>
#include "product.h"

enum { ALIGN = 64 };

/* What all primitives of a stage share; lives in the last handle. */
typedef struct {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    unsigned char *scratch;     /* of the primitives */
    size_t scratch_bytes;
    unsigned char *thread;      /* of our kernels, by thread */
    size_t own_bytes;           /* of one thread */
} Room;

#if DNNL_VERSION_MAJOR >= 3
typedef const_dnnl_memory_desc_t View;
#else
typedef const dnnl_memory_desc_t *View;
#endif

/* A copy between two layouts. */
typedef struct { dnnl_primitive_t run; dnnl_memory_t from, to, scratch; size_t bytes; } Reorder;

/* The program ends with status 6 unless status is success; of: what was to be done. */
void library_want(dnnl_status_t status, const char *what, const char *of);
Room *library_room(Stage *st);
/* At open: the scratch block has so many bytes, or more. */
void library_grow(Room *z, size_t bytes);
/* Bytes, up to the next line of the cache. */
size_t library_up(size_t bytes);
/* strides NULL: the library's choice.  NULL: it has no such memory. */
View library_view(int rank, const long *dims, const long *strides, dnnl_data_type_t type);
dnnl_data_type_t library_real(void);
/* Scratch is the caller's; the result is added to what is there with acc. */
dnnl_primitive_attr_t library_attributes(int acc, const char *of);
View library_part(dnnl_primitive_desc_t pd, dnnl_query_t what);
size_t library_bytes(View v);
dnnl_memory_t library_memory(Room *z, View v, const char *of);
/* The library takes addresses of inputs without const; it only reads them. */
void library_at(dnnl_memory_t m, const void *address);
/* bytes: of scratch that a run wants */
Reorder library_reorder(Room *z, View from, View to, int acc, const char *of);
void library_copy(const Room *z, const Reorder *r, void *to, const void *from, void *scratch);
#endif
