/* SPDX-License-Identifier: Apache-2.0
 *
 * attention.h: what attention by cuDNN and the calls that may be its have in common.
 */
#ifndef ATTENTION_H
#define ATTENTION_H
#include "../../rt.h"
#include <stdbool.h>

/* `kv_heads` heads of k and v, each for heads/kv_heads query heads.  Rows of q have qs elements, those of k and v ks; y and dy
 * are dense. */
typedef struct { long batch, heads, kv_heads, query, key, width, qs, ks, causal; } Shape;
Shape attention_shape(long batch, long heads, long kv_heads, long query, long key, long width, long causal, bool packed);

/* Do all chips from sm_80 on plan it?  A function of type and shape alone. */
bool attention_fits(const Shape *s);
/* Bytes of tmp in backward: in front the row sums and, where keys are shared, dk and dv of each query head; then what the
 * deterministic graph needs, from a multiple of 256 on.  A tensor stands at one of 64, which is up to SHIFT bytes before.
 * gen/build/shape_attention.c has the same. */
enum { SHIFT = 192 };
size_t attention_scratch(const Shape *s);
size_t attention_front(const Shape *s);
size_t attention_sums(const Shape *s);
size_t attention_each(const Shape *s);

/* Where those bytes begin. */
void *attention_workspace(const Shape *s, void *tmp);

/* A handle, as attention_graph.c leaves it: nothing else that calls it is linked with cuDNN.  run NULL: the library wants more
 * memory than is planned, and our own kernels do the call. */
typedef struct Prepared Prepared;
struct Prepared { void (*run)(Stage *st, const Prepared *p, void *const *address, void *workspace, const char *call); };
#endif
