/* SPDX-License-Identifier: Apache-2.0
 *
 * data_megatron.c: indexed data sets of Megatron-LM: NAME.bin holds tokens, NAME.idx where the sequences are:
 *
 *   "MMIDIDX" 0 0, u64 version 1, u8 code of the element type, u64 sequences, u64 documents,
 *   i32 length[sequences], i64 byte offset[sequences], i64 first sequence of each document, [i8 mode[sequences]]
 *
 * Sequences are joined in the order of the index.  The file named is the .bin; the .idx stands beside it.
 */
#include <stdio.h>
#include <string.h>
#include "data.h"

enum { HEADER = 34 };

/* By code; 6 and 7 are floats, which are no tokens. */
static const int kinds[] = {-1, DATA_U8, DATA_I8, DATA_I16, DATA_I32, DATA_I64, -1, -1, DATA_U16};

static int add_sequences(Source *s, const DataFile *bin, const DataFile *idx, Element kind, uint64_t n)
{
    const unsigned char *length = idx->at + HEADER, *offset = length + 4 * n;
    size_t width = data_width(kind);
    for (uint64_t i = 0; i < n; i++) {
        int64_t count = data_integer(length + 4 * i, DATA_I32), from = data_integer(offset + 8 * i, DATA_I64);
        if (count < 0 || (uint64_t)from > bin->size || (uint64_t)count > (bin->size - (uint64_t)from) / width)
            return complain(STATUS_RUN, "data: %s: sequence %llu is %lld elements at byte %lld, but %s has %zu bytes",
                            idx->path, (unsigned long long)i, (long long)count, (long long)from, bin->path, bin->size);
        if (data_piece(s, bin, (size_t)from, kind, count) != DONE)
            return STATUS_RUN;
    }
    return DONE;
}

static int read_index(Source *s, const DataFile *bin, const DataFile *idx)
{
    if (idx->size < HEADER || memcmp(idx->at, "MMIDIDX\0\0", 9) != 0 || data_bits(idx->at + 9, 8) != 1)
        return complain(STATUS_RUN, "data: %s is no Megatron index of version 1", idx->path);
    unsigned code = idx->at[17];
    if (code >= sizeof kinds / sizeof *kinds || kinds[code] < 0)
        return complain(STATUS_RUN, "data: %s: element type %u is not an integer", idx->path, code);
    uint64_t n = data_bits(idx->at + 18, 8), documents = data_bits(idx->at + 26, 8), room = idx->size - HEADER;
    if (n > room / 12 || documents > (room - 12 * n) / 8)
        return complain(STATUS_RUN, "data: %s is cut short: %llu sequences and %llu documents do not fit in its %zu "
                        "bytes", idx->path, (unsigned long long)n, (unsigned long long)documents, idx->size);
    return add_sequences(s, bin, idx, (Element)kinds[code], n);
}

static int megatron_open(Source *s, const DataFile *f)
{
    char name[4096];
    DataFile idx = {0};
    size_t n = strlen(f->path);
    if (n < 4 || n >= sizeof name || strcmp(f->path + n - 4, ".bin") != 0)
        return complain(STATUS_RUN, "data: %s: name the .bin file of a Megatron data set; its .idx is found beside it",
                        f->path);
    snprintf(name, sizeof name, "%.*s.idx", (int)(n - 4), f->path);
    int status = data_map(&idx, name, "data");
    if (status == DONE)
        status = read_index(s, f, &idx);
    data_unmap(&idx);
    return status;
}

static int beside(const DataFile *f, int (*say)(const DataFile *other))
{
    char name[4096];
    DataFile idx = {0};
    snprintf(name, sizeof name, "%.*s.idx", (int)strlen(f->path) - 4, f->path);
    int status = data_map(&idx, name, "data");
    if (status == DONE)
        status = say(&idx);
    data_unmap(&idx);
    return status;
}

const DataFormat data_megatron = {"megatron", STREAM, megatron_open, NULL, beside};
