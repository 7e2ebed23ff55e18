/* SPDX-License-Identifier: Apache-2.0
 *
 * product.c: matrix products by oneDNN.
 *
 * Problem.  A step calls the same few dozen products, with literal sizes, thousands of times.  oneDNN wants a primitive (code
 * generated for one shape) and memory objects; making them is slow and allocates.
 *
 * Method.  product_open() makes the primitive and its memory objects once; product_run() sets addresses and executes.
 * Temporary memory of the primitives is ours ("user" scratchpad): one block a stage, as large as the largest primitive asks
 * for, because the calls of a stage run one after the other.  The library's own block would belong to the thread that made
 * the primitive, and a stage may be opened and run by different threads.
 *
 * Bits.  A primitive splits its work by the number of threads, and chooses its code by shape and instruction set.  The result
 * is therefore a function of (shape, threads, instruction set, library version): all four are in the numeric key.  start.c
 * fixes the instruction set.  The thread count is set here before every call, because it is a property of the calling thread
 * and two stages of one process may differ.
 *
 * Threads.  The library is built with OpenMP and shares its pool with our own loops.  A second pool, such as that of
 * OpenBLAS, would find its cores taken by the first one's waiting threads.
 *
 * oneDNN 2.x and 3.x differ in how a description of memory is made and in three calls.  Only the section "two versions" knows
 * it.
 *
 * Not handled: leading dimensions other than dense; post-operations other than the sum.
 */
#include "product.h"
#include <omp.h>
#include <oneapi/dnnl/dnnl.h>
#include <oneapi/dnnl/dnnl_debug.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM = MAX_HANDLES - 1, ALIGN = 64 };

/* What all products of a stage share; lives in the last handle. */
typedef struct {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    unsigned char *scratch;     /* of the primitives */
    size_t scratch_bytes;
    unsigned char *own;         /* of our kernels, by thread */
    size_t own_bytes;           /* of one thread */
} Room;

struct Product {
    Recipe r;
    dnnl_primitive_t matmul, pack;
    dnnl_memory_t a, b, c, bias, scratch, packed, pack_scratch;
    size_t packed_bytes;        /* at the start of the scratch block */
};

static void stop(const char *what, Recipe r, dnnl_status_t status)
{
    fprintf(stderr, "oneDNN: %s of a product of %ld x %ld by %ld x %ld failed: %s.  This library or CPU cannot run "
            "this folder; generate it with `kernels: portable`.\n", what, r.m, r.k, r.k, r.n, dnnl_status2str(status));
    exit(6);
}

static void want(dnnl_status_t status, const char *what, Recipe r)
{
    if (status != dnnl_success) stop(what, r, status);
}

void *handle_alloc(size_t bytes)
{
    size_t whole = (bytes + ALIGN - 1) / ALIGN * ALIGN;
    void *p = aligned_alloc(ALIGN, whole ? whole : ALIGN);
    if (!p) {
        fprintf(stderr, "no memory for %zu bytes of prepared kernels\n", bytes);
        exit(1);
    }
    return memset(p, 0, whole);
}

/* ---- two versions -------------------------------------------------------------------------------------- */
/* A matrix or a batch of them: rows x cols, stored row-major, or transposed; NULL layout: the library's choice. */
enum { PLAIN, TRANSPOSED, LIBRARY };
typedef struct { int rank; dnnl_dims_t dims, strides; } Dense;

static Dense dense(long batch, long rows, long cols, int layout)
{
    Dense d = { batch > 1 ? 3 : 2, { 0 }, { 0 } };
    int at = d.rank - 2;
    if (at) d.dims[0] = batch, d.strides[0] = rows * cols;
    d.dims[at] = rows, d.dims[at + 1] = cols;
    d.strides[at] = layout == TRANSPOSED ? 1 : cols;
    d.strides[at + 1] = layout == TRANSPOSED ? rows : 1;
    return d;
}

#if DNNL_VERSION_MAJOR >= 3
typedef const_dnnl_memory_desc_t View;

static dnnl_status_t view(View *v, Dense d, dnnl_data_type_t type, int layout)
{
    dnnl_memory_desc_t made = NULL;
    dnnl_status_t status = layout == LIBRARY
        ? dnnl_memory_desc_create_with_tag(&made, d.rank, d.dims, type, dnnl_format_tag_any)
        : dnnl_memory_desc_create_with_strides(&made, d.rank, d.dims, type, d.strides);
    *v = made;
    return status;
}

static dnnl_status_t matmul_desc(dnnl_primitive_desc_t *pd, dnnl_engine_t engine, View a, View b, View bias, View c,
                                 dnnl_primitive_attr_t attr)
{
    return dnnl_matmul_primitive_desc_create(pd, engine, a, b, bias, c, attr);
}

static dnnl_status_t append_sum(dnnl_post_ops_t ops)
{
    return dnnl_post_ops_append_sum(ops, 1.0F, 0, dnnl_data_type_undef);
}
#else
typedef const dnnl_memory_desc_t *View;

static dnnl_status_t view(View *v, Dense d, dnnl_data_type_t type, int layout)
{
    dnnl_memory_desc_t *made = handle_alloc(sizeof *made);
    *v = made;
    return layout == LIBRARY ? dnnl_memory_desc_init_by_tag(made, d.rank, d.dims, type, dnnl_format_tag_any)
                             : dnnl_memory_desc_init_by_strides(made, d.rank, d.dims, type, d.strides);
}

static dnnl_status_t matmul_desc(dnnl_primitive_desc_t *pd, dnnl_engine_t engine, View a, View b, View bias, View c,
                                 dnnl_primitive_attr_t attr)
{
    dnnl_matmul_desc_t desc;
    dnnl_status_t status = dnnl_matmul_desc_init(&desc, a, b, bias, c);
    return status == dnnl_success ? dnnl_primitive_desc_create(pd, &desc, attr, engine, NULL) : status;
}

static dnnl_status_t append_sum(dnnl_post_ops_t ops)
{
    return dnnl_post_ops_append_sum(ops, 1.0F);
}
#endif

/* ---- the stage's block ----------------------------------------------------------------------------------- */
static Room *room(Stage *st)
{
    Room *z = st->handle[ROOM];
    if (z) return z;
    z = st->handle[ROOM] = handle_alloc(sizeof *z);
    Recipe none = { 0 };
    want(dnnl_engine_create(&z->engine, dnnl_cpu, 0), "the engine", none);
    want(dnnl_stream_create(&z->stream, z->engine, dnnl_stream_default_flags), "the stream", none);
    return z;
}

static void grow(unsigned char **block, size_t *have, size_t bytes, size_t times)
{
    size_t each = (bytes + ALIGN - 1) / ALIGN * ALIGN;
    if (each <= *have) return;
    free(*block);
    *block = handle_alloc(each * times);
    *have = each;
}

void scratch_open(Stage *st, size_t bytes)
{
    Room *z = room(st);
    grow(&z->own, &z->own_bytes, bytes, (size_t)st->threads);
}

void *scratch_thread(const Stage *st, int thread)
{
    const Room *z = st->handle[ROOM];
    return z->own + z->own_bytes * (size_t)thread;
}

/* The two blocks; objects of a few hundred bytes each are not counted. */
size_t kernels_bytes(const Stage *st)
{
    const Room *z = st->handle[ROOM];
    return z ? z->scratch_bytes + z->own_bytes * (size_t)st->threads : 0;
}

/* ---- one product ------------------------------------------------------------------------------------------ */
static dnnl_data_type_t real_type(void)
{
    return sizeof(real) == sizeof(float) ? dnnl_f32 : dnnl_bf16;
}

static dnnl_primitive_attr_t attributes(Recipe r)
{
    dnnl_primitive_attr_t attr;
    want(dnnl_primitive_attr_create(&attr), "an attribute", r);
    want(dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user), "an attribute", r);
    if (!r.acc) return attr;
    dnnl_post_ops_t ops;
    want(dnnl_post_ops_create(&ops), "an attribute", r);
    want(append_sum(ops), "an attribute", r);
    want(dnnl_primitive_attr_set_post_ops(attr, ops), "an attribute", r);
    dnnl_post_ops_destroy(ops);
    return attr;
}

static View part(dnnl_primitive_desc_t pd, dnnl_query_t what)
{
    return dnnl_primitive_desc_query_md(pd, what, 0);
}

static dnnl_memory_t memory(Room *z, View v, Recipe r)
{
    dnnl_memory_t m;
    want(dnnl_memory_create(&m, v, z->engine, DNNL_MEMORY_NONE), "a memory object", r);
    return m;
}

/* The copy of b into the library's layout: a reorder, and a place at the start of the scratch block. */
static void open_pack(Room *z, Product *p, View b, View packed)
{
    dnnl_primitive_desc_t pd;
    dnnl_primitive_attr_t attr;
    want(dnnl_primitive_attr_create(&attr), "an attribute", p->r);
    want(dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user), "an attribute", p->r);
    want(dnnl_reorder_primitive_desc_create(&pd, b, z->engine, packed, z->engine, attr), "packing", p->r);
    want(dnnl_primitive_create(&p->pack, pd), "packing", p->r);
    p->packed = memory(z, packed, p->r);
    p->packed_bytes = (dnnl_memory_desc_get_size(packed) + ALIGN - 1) / ALIGN * ALIGN;
    p->pack_scratch = memory(z, part(pd, dnnl_query_scratchpad_md), p->r);
    grow(&z->scratch, &z->scratch_bytes, p->packed_bytes
         + dnnl_memory_desc_get_size(part(pd, dnnl_query_scratchpad_md)), 1);
    dnnl_primitive_desc_destroy(pd);
    dnnl_primitive_attr_destroy(attr);
}

Product *product_open(Stage *st, Recipe r)
{
    omp_set_num_threads(st->threads);
    Room *z = room(st);
    Product *p = handle_alloc(sizeof *p);
    dnnl_data_type_t in = real_type(), out = r.wide ? dnnl_f32 : in;
    View a, b, c, bias = NULL, any;
    p->r = r;
    want(view(&a, dense(r.batch, r.m, r.k, r.ta), in, r.ta), "the left side", r);
    want(view(&b, dense(r.batch, r.k, r.n, r.tb), in, r.tb), "the right side", r);
    want(view(&c, dense(r.batch, r.m, r.n, PLAIN), out, PLAIN), "the result", r);
    want(view(&any, dense(r.batch, r.k, r.n, PLAIN), in, LIBRARY), "the packed side", r);
    if (r.bias) want(view(&bias, dense(1, 1, r.n, PLAIN), in, PLAIN), "the bias", r);

    dnnl_primitive_desc_t pd;
    dnnl_primitive_attr_t attr = attributes(r);
    want(matmul_desc(&pd, z->engine, a, r.pack ? any : b, bias, c, attr), "preparation", r);
    want(dnnl_primitive_create(&p->matmul, pd), "preparation", r);
    p->a = memory(z, a, r), p->b = memory(z, b, r), p->c = memory(z, c, r);
    if (r.bias) p->bias = memory(z, bias, r);
    if (r.pack) open_pack(z, p, b, part(pd, dnnl_query_weights_md));
    View scratch = part(pd, dnnl_query_scratchpad_md);
    p->scratch = memory(z, scratch, r);
    grow(&z->scratch, &z->scratch_bytes, p->packed_bytes + dnnl_memory_desc_get_size(scratch), 1);
    dnnl_primitive_desc_destroy(pd);
    dnnl_primitive_attr_destroy(attr);
    return p;
}

/* The library's signatures take addresses of inputs without const; it reads them only. */
static void *input(const void *address)
{
    return (void *)(uintptr_t)address;
}

void product_again(Stage *st, Product *p, void *c, const void *a, const void *b)
{
    const Room *z = st->handle[ROOM];
    omp_set_num_threads(st->threads);
    dnnl_memory_set_data_handle(p->a, input(a));
    dnnl_memory_set_data_handle(p->b, input(b));
    dnnl_memory_set_data_handle(p->c, c);
    dnnl_memory_set_data_handle(p->scratch, z->scratch + p->packed_bytes);
    dnnl_exec_arg_t arg[] = { { DNNL_ARG_SRC, p->a }, { DNNL_ARG_WEIGHTS, p->r.pack ? p->packed : p->b },
                              { DNNL_ARG_DST, p->c }, { DNNL_ARG_SCRATCHPAD, p->scratch }, { DNNL_ARG_BIAS, p->bias } };
    want(dnnl_primitive_execute(p->matmul, z->stream, p->r.bias ? 5 : 4, arg), "a run", p->r);
}

static void pack(Stage *st, Product *p, const void *b)
{
    const Room *z = st->handle[ROOM];
    omp_set_num_threads(st->threads);
    dnnl_memory_set_data_handle(p->b, input(b));
    dnnl_memory_set_data_handle(p->packed, z->scratch);
    dnnl_memory_set_data_handle(p->pack_scratch, z->scratch + p->packed_bytes);
    dnnl_exec_arg_t arg[] = { { DNNL_ARG_FROM, p->b }, { DNNL_ARG_TO, p->packed },
                              { DNNL_ARG_SCRATCHPAD, p->pack_scratch } };
    want(dnnl_primitive_execute(p->pack, z->stream, 3, arg), "packing", p->r);
}

void product_run(Stage *st, Product *p, void *c, const void *a, const void *b, const void *bias)
{
    if (p->r.pack)
        pack(st, p, b);
    if (p->r.bias)
        dnnl_memory_set_data_handle(p->bias, input(bias));
    product_again(st, p, c, a, b);
}

void product_f32(Stage *st, Recipe r, float *c, const float *a, const float *b)
{
    omp_set_num_threads(st->threads);
    want(dnnl_sgemm(r.ta ? 'T' : 'N', r.tb ? 'T' : 'N', r.m, r.n, r.k, 1.0F, a, r.ta ? r.m : r.k, b, r.tb ? r.k : r.n,
                    r.acc ? 1.0F : 0.0F, c, r.n), "a run", r);
}
