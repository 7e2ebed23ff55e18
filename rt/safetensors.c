/* SPDX-License-Identifier: Apache-2.0
 *
 * safetensors.c: u64 length of the header, a JSON object name -> {dtype, shape, data_offsets}, the bytes of the tensors.  All
 * little endian.  Offsets count from the end of the header.  The bytes are covered without overlap or hole.
 *
 * A file may come from anywhere, so its header is taken as hostile: at most 100 MB, bounded depth, every product checked for
 * overflow, offsets in order and inside the file, sizes that are those of type and shape, no name twice.  The job then asks
 * for tensors by the name, type and shape that it knows.  Nothing in the file sizes an allocation but the length of its
 * header.  A tensor of a type that is not known has the bytes that its offsets say, and may stand there as long as nobody wants
 * it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "data.h"
#include "json.h"
#include "little.h"
#include "place.h"
#include "real.h"
#include "safetensors.h"

enum { HEADER_MOST = 100 << 20, NAME = 1024 };

static const struct { const char *name; int64_t bytes; } types[] = {
    {"F32", 4}, {"BF16", 2}, {"F16", 2}, {"F64", 8}, {"I64", 8}, {"I32", 4}, {"I16", 2}, {"I8", 1}, {"U8", 1},
    {"BOOL", 1}, {"U16", 2}, {"U32", 4}, {"U64", 8}, {"F8_E4M3", 1}, {"F8_E5M2", 1}
};

/* ---- writing --------------------------------------------------------------------------------------------------- */

void safe_ends(Text *t)
{
    text_add(t, "}");
    while (t->n % 8)
        text_add(t, " ");
    for (int i = 0; i < 8; i++)
        t->at[i] = (char)((uint64_t)(t->n - 8) >> (8 * i));
}

void safe_header(Text *t, const Item *item, int n, const char *extra)
{
    static const char length[8];
    long at = 0;
    t->n = 0;
    memcpy(t->at, length, 8);
    t->n = 8;
    text_add(t, "{\"__metadata__\":%s", extra ? extra : "{\"format\":\"pt\"}");
    for (int i = 0; i < n; i++) {
        const StateInfo *s = item[i].state;
        text_add(t, ",\"%s%s\":{\"dtype\":\"F32\",\"shape\":[", s->name, item[i].suffix);
        for (int d = 0; d < s->ndim; d++)
            text_add(t, "%s%ld", d ? "," : "", s->dim[d]);
        text_add(t, "],\"data_offsets\":[%ld,%ld]}", at, at + 4 * s->n);
        at += 4 * s->n;
    }
    safe_ends(t);
}

/* ---- reading --------------------------------------------------------------------------------------------------- */

static int broken(const SafeFile *f, const char *what, const char *name)
{
    return complain(STATUS_STALE, "%s: %s%s%s%s", f->path, what, name ? " `" : "", name ? name : "", name ? "`" : "");
}

static int64_t type_size(const char *type)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].name, type) == 0)
            return types[i].bytes;
    return 0;
}

static bool read_shape(Json *j, SafeTensor *t)
{
    for (bool first = true; json_member(j, &first, NULL, 0);) {
        if (t->ndim == (int)(sizeof t->dim / sizeof *t->dim)) {
            j->why = "a shape with too many dimensions";
            return false;
        }
        json_integer(j, &t->dim[t->ndim++]);
    }
    return !j->why;
}

static bool read_offsets(Json *j, SafeTensor *t)
{
    int64_t x[2] = {0};
    int n = 0;
    for (bool first = true; n < 3 && json_member(j, &first, NULL, 0); n++)
        if (n < 2 && !json_integer(j, &x[n]))
            return false;
    if (!j->why && n != 2)
        j->why = "data_offsets must be two numbers";
    t->from = x[0];
    t->to = x[1];
    return !j->why;
}

static bool read_tensor(Json *j, SafeTensor *t)
{
    enum { TYPE = 1, SHAPE = 2, OFFSETS = 4 };
    int seen = 0;
    char key[32];
    for (bool first = true; json_member(j, &first, key, sizeof key);) {
        int bit = !strcmp(key, "dtype") ? TYPE : !strcmp(key, "shape") ? SHAPE : !strcmp(key, "data_offsets")
            ? OFFSETS : 0;
        if (!bit || seen & bit)
            j->why = "an unknown or repeated key of a tensor";
        else if (bit == TYPE ? !json_string(j, t->type, sizeof t->type) :
                 bit == SHAPE ? !read_shape(j, t) : !read_offsets(j, t))
            return false;
        seen |= bit;
    }
    if (!j->why && seen != (TYPE | SHAPE | OFFSETS))
        j->why = "a tensor without dtype, shape or data_offsets";
    return !j->why;
}

/* Bytes of a tensor by its type and shape; -1: too large to be true. */
static int64_t tensor_size(const SafeTensor *t)
{
    int64_t n = type_size(t->type);
    for (int i = 0; i < t->ndim; i++) {
        if (t->dim[i] && n > INT64_MAX / t->dim[i])
            return -1;
        n *= t->dim[i];
    }
    return n;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const SafeTensor *)a)->name, ((const SafeTensor *)b)->name);
}

static int by_place(const void *a, const void *b)
{
    const SafeTensor *x = a, *y = b;
    return x->from != y->from ? (x->from < y->from ? -1 : 1) : (x->to > y->to) - (x->to < y->to);
}

/* By place, or by name for good. */
static void sort(SafeFile *f, int (*order)(const void *, const void *))
{
    if (f->tensors > 1)
        qsort(f->tensor, (size_t)f->tensors, sizeof *f->tensor, order);
}

/* Names, sizes, cover: a name that stands twice is most often the cause of the two others. */
static int check_tensors(SafeFile *f)
{
    int64_t at = 0;
    sort(f, by_name);
    for (int i = 1; i < f->tensors; i++)
        if (strcmp(f->tensor[i - 1].name, f->tensor[i].name) == 0)
            return broken(f, "two tensors of one name", f->tensor[i].name);
    sort(f, by_place);
    for (int i = 0; i < f->tensors; i++) {
        const SafeTensor *t = &f->tensor[i];
        if (t->from != at || t->to < t->from || (type_size(t->type) && t->to - t->from != tensor_size(t)))
            return broken(f, "offsets, type and shape do not agree for tensor", t->name);
        at = t->to;
    }
    if ((uint64_t)at != f->size - f->data)
        return broken(f, "the file is cut short or has bytes that belong to no tensor", NULL);
    sort(f, by_name);
    return DONE;
}

static SafeTensor *new_tensor(SafeFile *f, const char *name)
{
    if (f->tensors % 64 == 0) {
        SafeTensor *more = realloc(f->tensor, ((size_t)f->tensors + 64) * sizeof *more);
        if (!more)
            return NULL;
        f->tensor = more;
    }
    char *copy = strdup(name);
    if (!copy)
        return NULL;
    SafeTensor *t = &f->tensor[f->tensors++];
    *t = (SafeTensor){.name = copy};
    return t;
}

static int read_header(SafeFile *f, size_t n)
{
    char name[NAME];
    Json j = json_open(f->at + 8, n);
    for (bool first = true; json_member(&j, &first, name, sizeof name);) {
        if (strcmp(name, "__metadata__") == 0) {
            json_skip(&j);
            continue;
        }
        SafeTensor *t = new_tensor(f, name);
        if (!t)
            return complain(STATUS_RUN, "%s: no memory for its header", f->path);
        read_tensor(&j, t);
    }
    if (!json_end(&j))
        return complain(STATUS_STALE, "%s: header, byte %ld: %s", f->path, (long)(j.at - j.from), j.why);
    return check_tensors(f);
}

int safe_open(SafeFile *f, const char *path)
{
    DataFile file = {0};
    *f = (SafeFile){.path = path};
    int opened = data_map(&file, path, "weights");
    if (opened != DONE)
        return data_stale(opened);
    f->at = file.at;
    f->size = file.size;
    uint64_t n = f->size >= 8 ? data_bits(f->at, 8) : 0;
    if (n > HEADER_MOST && n <= f->size)
        return complain(STATUS_STALE, "%s: no safetensors file, or one whose header of %llu bytes is longer than the %d MiB "
                        "that are read", f->path, (unsigned long long)n, HEADER_MOST >> 20);
    if (n < 2 || n > f->size - 8)
        return broken(f, "no safetensors file, or cut short inside its header", NULL);
    f->data = 8 + (size_t)n;
    return read_header(f, (size_t)n);
}

void safe_close(SafeFile *f)
{
    for (int i = 0; i < f->tensors; i++)
        free((char *)(uintptr_t)f->tensor[i].name);
    free(f->tensor);
    if (f->at)
        munmap((void *)(uintptr_t)f->at, f->size);
    *f = (SafeFile){0};
}

const SafeTensor *safe_find(const SafeFile *f, const char *name)
{
    SafeTensor key = {.name = name};
    return f->tensors ? bsearch(&key, f->tensor, (size_t)f->tensors, sizeof key, by_name) : NULL;
}

char safe_type(const SafeTensor *t)
{
    const char *is = t->type;
    return !strcmp(is, "F32") ? 'f' : !strcmp(is, "F16") ? 'h' : !strcmp(is, "BF16") ? 'b' : !strcmp(is, "I64") ? 'i' : 0;
}

const unsigned char *safe_numbers(const SafeFile *f, const SafeTensor *t)
{
    return f->at + f->data + t->from;
}

void safe_widen(float *to, const unsigned char *from, char type, int64_t step, int64_t n)
{
    if (type == 'f' && step == 1)
        little(memcpy(to, from, (size_t)n * sizeof *to), (size_t)n, sizeof *to);
    else for (int64_t i = 0; i < n; i++)
        to[i] = type == 'h' ? half_float((uint16_t)data_bits(from + 2 * i * step, 2))
              : type == 'b' ? bf16_float((uint16_t)data_bits(from + 2 * i * step, 2))
              : type == 'i' ? (float)(int64_t)data_bits(from + 8 * i * step, 8)
              : bits_float((uint32_t)data_bits(from + 4 * i * step, 4));
}

void safe_shape(Text *t, int n, const int64_t *dim)
{
    text_add(t, "[");
    for (int i = 0; i < n; i++)
        text_add(t, "%s%lld", i ? " " : "", (long long)dim[i]);
    text_add(t, "]");
}

static int wrong_shape(const SafeFile *f, const SafeTensor *t, const StateInfo *s)
{
    char store[512];
    Text x = {store, 0, sizeof store};
    int64_t dim[6];
    for (int i = 0; i < s->ndim; i++)
        dim[i] = s->dim[i];
    text_add(&x, "is %s ", t->type);
    safe_shape(&x, t->ndim, t->dim);
    text_add(&x, ", the job wants F32 ");
    safe_shape(&x, s->ndim, dim);
    return complain(STATUS_STALE, "%s: tensor `%s` %s", f->path, t->name, store);
}

int safe_read(const SafeFile *f, const SafeTensor *t, const StateInfo *s, float *to)
{
    char type = safe_type(t);
    bool same = t->ndim == s->ndim && (type == 'f' || type == 'b');
    for (int i = 0; same && i < s->ndim; i++)
        same = t->dim[i] == s->dim[i];
    if (!same)
        return wrong_shape(f, t, s);
    safe_widen(to, safe_numbers(f, t), type, 1, s->n);
    return DONE;
}
