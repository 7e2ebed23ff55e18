/* SPDX-License-Identifier: Apache-2.0
 *
 * product.c: matrix products by oneDNN.
 *
 * Problem.  A step calls the same few dozen products, with literal sizes, thousands of times.  oneDNN wants a primitive (code
 * generated for one shape) and memory objects; making them is slow and allocates.
 *
 * Method.  product_open() makes the primitive and its memory objects once; product_run() sets addresses and executes.
 * Temporary memory is the stage's block (library.c).
 *
 * Bits.  A primitive splits its work by the number of threads, and chooses its code by shape and instruction set.  The result
 * is therefore a function of (shape, threads, instruction set, library version): all four are in the numeric key.  start.c
 * fixes the instruction set.  The thread count is set here before every call, because it is a property of the calling thread
 * and two stages of one process may differ.
 *
 * Threads.  The library is built with OpenMP and shares its pool with our own loops.  A second pool, such as that of
 * OpenBLAS, would find its cores taken by the first one's waiting threads.
 *
 * Not handled: leading dimensions other than dense; post-operations other than the sum.
 */
#include "library.h"
#include <stdio.h>

struct Product {
    Recipe r;
    dnnl_primitive_t matmul;
    dnnl_memory_t a, b, c, bias, scratch, packed;
    Reorder pack;
    size_t packed_bytes;        /* at the start of the scratch block */
};

static void want(dnnl_status_t status, const char *what, Recipe r)
{
    char of[128] = "";
    if (status != dnnl_success)
        snprintf(of, sizeof of, "a product of %ld x %ld by %ld x %ld", r.m, r.k, r.k, r.n);
    library_want(status, what, of);
}

/* A matrix or a batch of them: rows x cols, stored row-major, or transposed, or as the library chooses. */
enum { PLAIN, TRANSPOSED, LIBRARY };

static View dense(long batch, long rows, long cols, int layout, dnnl_data_type_t type, Recipe r)
{
    int rank = batch > 1 ? 3 : 2, from = 3 - rank;
    long dims[] = {batch, rows, cols};
    long strides[] = {rows * cols, layout == TRANSPOSED ? 1 : cols, layout == TRANSPOSED ? rows : 1};
    View v = library_view(rank, dims + from, layout == LIBRARY ? NULL : strides + from, type);
    want(v ? dnnl_success : dnnl_invalid_arguments, "an operand", r);
    return v;
}

static dnnl_status_t matmul_desc(dnnl_primitive_desc_t *pd, dnnl_engine_t engine, View a, View b, View bias, View c,
                                 dnnl_primitive_attr_t attr)
{
#if DNNL_VERSION_MAJOR >= 3
    return dnnl_matmul_primitive_desc_create(pd, engine, a, b, bias, c, attr);
#else
    dnnl_matmul_desc_t desc;
    dnnl_status_t status = dnnl_matmul_desc_init(&desc, a, b, bias, c);
    return status == dnnl_success ? dnnl_primitive_desc_create(pd, &desc, attr, engine, NULL) : status;
#endif
}

Product *product_open(Stage *st, Recipe r)
{
    omp_set_num_threads(st->threads);
    Room *z = library_room(st);
    Product *p = handle_alloc(sizeof *p);
    dnnl_data_type_t in = library_real(), out = r.wide ? dnnl_f32 : in;
    View a = dense(r.batch, r.m, r.k, r.ta, in, r), b = dense(r.batch, r.k, r.n, r.tb, in, r);
    View c = dense(r.batch, r.m, r.n, PLAIN, out, r), any = r.pack ? dense(r.batch, r.k, r.n, LIBRARY, in, r) : b;
    View bias = r.bias ? dense(1, 1, r.n, PLAIN, in, r) : NULL;
    dnnl_primitive_desc_t pd;
    dnnl_primitive_attr_t attr = library_attributes(r.acc, "a product");
    p->r = r;
    want(matmul_desc(&pd, z->engine, a, any, bias, c, attr), "preparation", r);
    want(dnnl_primitive_create(&p->matmul, pd), "preparation", r);
    p->a = library_memory(z, a, "a product"), p->b = library_memory(z, b, "a product");
    p->c = library_memory(z, c, "a product");
    if (r.bias)
        p->bias = library_memory(z, bias, "a product");
    if (r.pack) {
        View packed = library_part(pd, dnnl_query_weights_md);
        p->pack = library_reorder(z, b, packed, 0, "a product");
        p->packed = library_memory(z, packed, "a product");
        p->packed_bytes = library_bytes(packed);
    }
    View scratch = library_part(pd, dnnl_query_scratchpad_md);
    p->scratch = library_memory(z, scratch, "a product");
    library_grow(z, p->packed_bytes + library_bytes(scratch));
    library_grow(z, p->packed_bytes + p->pack.bytes);
    dnnl_primitive_desc_destroy(pd);
    dnnl_primitive_attr_destroy(attr);
    return p;
}

void product_again(Stage *st, Product *p, void *c, const void *a, const void *b)
{
    const Room *z = library_room(st);
    omp_set_num_threads(st->threads);
    library_at(p->a, a), library_at(p->b, b), library_at(p->c, c);
    library_at(p->scratch, z->scratch + p->packed_bytes);
    dnnl_exec_arg_t arg[] = {{DNNL_ARG_SRC, p->a}, {DNNL_ARG_WEIGHTS, p->r.pack ? p->packed : p->b}, {DNNL_ARG_DST, p->c},
                             {DNNL_ARG_SCRATCHPAD, p->scratch}, {DNNL_ARG_BIAS, p->bias}};
    want(dnnl_primitive_execute(p->matmul, z->stream, p->r.bias ? 5 : 4, arg), "a run", p->r);
}

void product_run(Stage *st, Product *p, void *c, const void *a, const void *b, const void *bias)
{
    const Room *z = library_room(st);
    omp_set_num_threads(st->threads);
    if (p->r.pack) {
        library_copy(z, &p->pack, z->scratch, b, z->scratch + p->packed_bytes);
        library_at(p->packed, z->scratch);
    }
    if (p->r.bias)
        library_at(p->bias, bias);
    product_again(st, p, c, a, b);
}

void product_f32(Stage *st, Recipe r, float *c, const float *a, const float *b)
{
    omp_set_num_threads(st->threads);
    long row = r.row_step ? r.row_step : r.ta ? r.m : r.k;
    want(dnnl_sgemm(r.ta ? 'T' : 'N', r.tb ? 'T' : 'N', r.m, r.n, r.k, 1.0F, a, row, b, r.tb ? r.k : r.n, r.acc ? 1.0F : 0.0F,
                    c, r.n), "a run", r);
}
