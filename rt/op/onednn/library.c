/* SPDX-License-Identifier: Apache-2.0
 *
 * library.c: what product.c and conv.c share of oneDNN.
 *
 * Temporary memory of the primitives is ours ("user" scratchpad): one block a stage, as large as the largest primitive asks
 * for, because the calls of a stage run one after the other.  The library's own block would belong to the thread that made
 * the primitive, and a stage may be opened and run by different threads.
 */
#include "library.h"
#include "../../pages.h"
#include <oneapi/dnnl/dnnl_debug.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM = MAX_HANDLES - 1, MOST_RANK = 6 };

void library_want(dnnl_status_t status, const char *what, const char *of)
{
    if (status == dnnl_success)
        return;
    fprintf(stderr, "oneDNN: %s of %s failed: %s.  This library or CPU cannot run this folder; generate it with `kernels: "
            "portable`.\n", what, of, dnnl_status2str(status));
    exit(6);
}

size_t library_up(size_t bytes)
{
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

void *handle_alloc(size_t bytes)
{
    size_t align = bytes >= LARGE_PAGE ? LARGE_PAGE : ALIGN, whole = bytes ? (bytes + align - 1) / align * align : ALIGN;
    void *p = aligned_alloc(align, whole);
    if (!p) {
        fprintf(stderr, "no memory for %zu bytes of prepared kernels\n", bytes);
        exit(1);
    }
    if (align == LARGE_PAGE)
        pages_large(p, whole);
    return memset(p, 0, whole);
}

/* ---- the stage's block ----------------------------------------------------------------------------------- */
Room *library_room(Stage *st)
{
    Room *z = st->handle[ROOM];
    if (z)
        return z;
    z = st->handle[ROOM] = handle_alloc(sizeof *z);
    library_want(dnnl_engine_create(&z->engine, dnnl_cpu, 0), "the engine", "a stage");
    library_want(dnnl_stream_create(&z->stream, z->engine, dnnl_stream_default_flags), "the stream", "a stage");
    return z;
}

static void grow(unsigned char **block, size_t *have, size_t bytes, size_t times)
{
    size_t each = library_up(bytes);
    if (each <= *have)
        return;
    free(*block);
    *block = handle_alloc(each * times);
    *have = each;
}

void library_grow(Room *z, size_t bytes)
{
    grow(&z->scratch, &z->scratch_bytes, bytes, 1);
}

void scratch_open(Stage *st, size_t bytes)
{
    Room *z = library_room(st);
    grow(&z->thread, &z->own_bytes, bytes, (size_t)st->threads);
}

void *scratch_thread(const Stage *st, int thread)
{
    const Room *z = st->handle[ROOM];
    return z->thread + z->own_bytes * (size_t)thread;
}

/* The two blocks; objects of a few hundred bytes each are not counted. */
size_t kernels_bytes(const Stage *st)
{
    const Room *z = st->handle[ROOM];
    return z ? z->scratch_bytes + z->own_bytes * (size_t)st->threads : 0;
}

/* ---- descriptions ------------------------------------------------------------------------------------------ */
View library_view(int rank, const long *dims, const long *strides, dnnl_data_type_t type)
{
    dnnl_dims_t size = {0}, step = {0};
    for (int i = 0; i < rank && i < MOST_RANK; i++)
        size[i] = dims[i], step[i] = strides ? strides[i] : 0;
#if DNNL_VERSION_MAJOR >= 3
    dnnl_memory_desc_t made = NULL;
    dnnl_status_t status = strides ? dnnl_memory_desc_create_with_strides(&made, rank, size, type, step)
                                   : dnnl_memory_desc_create_with_tag(&made, rank, size, type, dnnl_format_tag_any);
#else
    dnnl_memory_desc_t *made = handle_alloc(sizeof *made);
    dnnl_status_t status = strides ? dnnl_memory_desc_init_by_strides(made, rank, size, type, step)
                                   : dnnl_memory_desc_init_by_tag(made, rank, size, type, dnnl_format_tag_any);
#endif
    return status == dnnl_success ? made : NULL;
}

dnnl_data_type_t library_real(void)
{
    return sizeof(real) == sizeof(float) ? dnnl_f32 : dnnl_bf16;
}

static dnnl_status_t append_sum(dnnl_post_ops_t ops)
{
#if DNNL_VERSION_MAJOR >= 3
    return dnnl_post_ops_append_sum(ops, 1.0F, 0, dnnl_data_type_undef);
#else
    return dnnl_post_ops_append_sum(ops, 1.0F);
#endif
}

dnnl_primitive_attr_t library_attributes(int acc, const char *of)
{
    static const char what[] = "an attribute";
    dnnl_primitive_attr_t attr;
    dnnl_post_ops_t ops;
    library_want(dnnl_primitive_attr_create(&attr), what, of);
    library_want(dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user), what, of);
    if (!acc)
        return attr;
    library_want(dnnl_post_ops_create(&ops), what, of);
    library_want(append_sum(ops), what, of);
    library_want(dnnl_primitive_attr_set_post_ops(attr, ops), what, of);
    dnnl_post_ops_destroy(ops);
    return attr;
}

View library_part(dnnl_primitive_desc_t pd, dnnl_query_t what)
{
    return dnnl_primitive_desc_query_md(pd, what, 0);
}

size_t library_bytes(View v)
{
    return library_up(dnnl_memory_desc_get_size(v));
}

dnnl_memory_t library_memory(Room *z, View v, const char *of)
{
    dnnl_memory_t m;
    library_want(dnnl_memory_create(&m, v, z->engine, DNNL_MEMORY_NONE), "a memory object", of);
    return m;
}

void library_at(dnnl_memory_t m, const void *address)
{
    dnnl_memory_set_data_handle(m, (void *)(uintptr_t)address);
}

/* ---- copies --------------------------------------------------------------------------------------------------- */
Reorder library_reorder(Room *z, View from, View to, int acc, const char *of)
{
    Reorder r;
    dnnl_primitive_desc_t pd;
    dnnl_primitive_attr_t attr = library_attributes(acc, of);
    library_want(dnnl_reorder_primitive_desc_create(&pd, from, z->engine, to, z->engine, attr), "packing", of);
    library_want(dnnl_primitive_create(&r.run, pd), "packing", of);
    View scratch = library_part(pd, dnnl_query_scratchpad_md);
    r.from = library_memory(z, from, of), r.to = library_memory(z, to, of);
    r.scratch = library_memory(z, scratch, of);
    r.bytes = library_bytes(scratch);
    dnnl_primitive_desc_destroy(pd);
    dnnl_primitive_attr_destroy(attr);
    return r;
}

void library_copy(const Room *z, const Reorder *r, void *to, const void *from, void *scratch)
{
    library_at(r->from, from), library_at(r->to, to), library_at(r->scratch, scratch);
    dnnl_exec_arg_t arg[] = {{DNNL_ARG_FROM, r->from}, {DNNL_ARG_TO, r->to}, {DNNL_ARG_SCRATCHPAD, r->scratch}};
    library_want(dnnl_primitive_execute(r->run, z->stream, 3, arg), "packing", "a run");
}
