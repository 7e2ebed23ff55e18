/* SPDX-License-Identifier: Apache-2.0
 *
 * safe.c: files of safetensors.
 *
 * A file may come from anywhere, so its header is taken as hostile: its length, types, shapes and offsets are checked against
 * the bytes that are there, and no sum can overflow.  Files are mapped, for they may be larger than the memory.
 */
#include "base.h"
#include "rt/json.h"
#include "rt/mapped.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEADER_MOST = 100 << 20, NAME = 1024 };

static const struct { const char *name; int bytes; } types[] = {
    {"F32", 4}, {"BF16", 2}, {"F16", 2}, {"F64", 8}, {"I64", 8}, {"I32", 4}, {"I16", 2}, {"I8", 1}, {"U8", 1},
    {"BOOL", 1}, {"U16", 2}, {"U32", 4}, {"U64", 8}, {"F8_E4M3", 1}, {"F8_E5M2", 1}
};

const unsigned char *file_map(const char *path, int status, size_t *n)
{
    struct stat info;
    int file = open(path, O_RDONLY);
    void *at = MAP_FAILED;
    if (file >= 0 && fstat(file, &info) == 0 && S_ISREG(info.st_mode)) {
        *n = (size_t)info.st_size;
        at = *n ? mmap(NULL, *n, PROT_READ, MAP_PRIVATE, file, 0) : alloc(1);
    } else if (file >= 0) {
        errno = EISDIR;
    }
    int why = errno;
    if (file >= 0)
        close(file);
    if (at == MAP_FAILED)
        fail(status, "cannot read %s: %s", path, strerror(why));
    file_reads(path);
    if (*n)
        mapped_add(at, *n, "file", path);
    return at;
}

int64_t safe_bytes(const char *type, int ndim, const int64_t *dim)
{
    int64_t n = 0;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!strcmp(types[i].name, type))
            n = types[i].bytes;
    if (n == 0)
        return -1;
    for (int i = 0; i < ndim; i++) {
        if (dim[i] < 0 || (dim[i] && n > INT64_MAX / dim[i]))
            return -1;
        n *= dim[i];
    }
    return n;
}

/* ---- reading ----------------------------------------------------------------------------------------------------------- */

static void read_numbers(Json *j, int64_t *to, int most, int *n)
{
    *n = 0;
    for (bool first = true; json_member(j, &first, NULL, 0) && !j->why;)
        if (*n == most)
            j->why = "a list that is too long";
        else
            json_integer(j, &to[(*n)++]);
}

static void read_tensor(Json *j, SafeTensor *t, int64_t from[2])
{
    char key[32], type[16] = "";
    int two = 0;
    for (bool first = true; json_member(j, &first, key, sizeof key);)
        if (!strcmp(key, "dtype"))
            json_string(j, type, sizeof type);
        else if (!strcmp(key, "shape"))
            read_numbers(j, t->dim, 8, &t->ndim);
        else if (!strcmp(key, "data_offsets"))
            read_numbers(j, from, 2, &two);
        else
            json_skip(j);
    t->type = strf("%s", type);
    t->bytes = safe_bytes(type, t->ndim, t->dim);
    if (!j->why && (two != 2 || from[1] < from[0] || t->bytes != from[1] - from[0]))
        j->why = "a tensor whose type, shape and offsets do not agree";
}

SafeFile *safe_open(const char *path)
{
    size_t n;
    const unsigned char *at = file_map(path, EXIT_STALE, &n);
    const size_t header = n >= 8 ? (size_t)number_little(at, 8) : 0;
    SafeFile *f = alloc(sizeof *f);
    char name[NAME];
    if (header < 2 || header > HEADER_MOST || header > n - 8)
        fail(EXIT_STALE, "%s: no safetensors file, or cut short inside its header", path);
    Json j = json_open(at + 8, header);
    for (bool first = true; json_member(&j, &first, name, sizeof name);) {
        int64_t from[2] = {0};
        SafeTensor t = {.name = strf("%s", name)};
        if (!strcmp(name, "__metadata__")) {
            json_skip(&j);
            continue;
        }
        read_tensor(&j, &t, from);
        if (!j.why && from[1] > (int64_t)(n - 8 - header))
            j.why = "a tensor behind the end of the file: it is cut short";
        t.at = at + 8 + header + from[0];
        *PUSH(&f->tensor) = t;
    }
    if (!json_end(&j))
        fail(EXIT_STALE, "%s: byte %ld: %s", path, 8 + (long)(j.at - j.from), j.why);
    SORT(f->tensor.at, f->tensor.n, text_order);
    return f;
}

const SafeTensor *safe_find(const SafeFile *f, const char *name)
{
    SafeTensor key = {.name = name};
    return f->tensor.n ? bsearch(&key, f->tensor.at, (size_t)f->tensor.n, sizeof key, text_order) : NULL;
}

/* ---- writing ----------------------------------------------------------------------------------------------------------- */

void safe_header(FILE *f, const SafeTensor *tensor, int n)
{
    Text text;
    int64_t at = 0;
    FILE *to = text_open(&text);
    fprintf(to, "{\"__metadata__\":{\"format\":\"pt\"}");
    for (int i = 0; i < n; i++) {
        const SafeTensor *t = &tensor[i];
        fprintf(to, ",%s:{\"dtype\":\"%s\",\"shape\":[", quote_json(t->name), t->type);
        for (int d = 0; d < t->ndim; d++)
            fprintf(to, "%s%lld", d ? "," : "", (long long)t->dim[d]);
        fprintf(to, "],\"data_offsets\":[%lld,%lld]}", (long long)at, (long long)(at + t->bytes));
        at += t->bytes;
    }
    fputc('}', to);
    text_close(&text);
    size_t padded = (text.n + 7) / 8 * 8;
    for (int i = 0; i < 8; i++)
        fputc((int)(padded >> (8 * i) & 0xff), f);
    fprintf(f, "%s%*s", text.at, (int)(padded - text.n), "");
}
