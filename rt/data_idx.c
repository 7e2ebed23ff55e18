/* SPDX-License-Identifier: Apache-2.0
 *
 * data_idx.c: the files of MNIST (Y. LeCun, C. Cortes): two zeros, the type of the elements, the number of dimensions, each
 * dimension as a u32, then the elements; big endian.  Bytes alone are read, which these sets consist of.
 */
#include "data.h"

enum { BYTES = 8 };             /* the type of the elements */

static uint64_t upside_down(const unsigned char *at)
{
    return (uint64_t)at[0] << 24 | (uint64_t)at[1] << 16 | (uint64_t)at[2] << 8 | at[3];
}

static int idx_open(Source *s, const DataFile *f)
{
    Array *a = &s->array[f - s->file];
    if (f->size >= 2 && f->at[0] == 0x1f && f->at[1] == 0x8b)
        return complain(STATUS_RUN, "data: %s is packed; gunzip it first", f->path);
    if (f->size < 8 || f->at[0] || f->at[1] || f->at[2] != BYTES || f->at[3] < 1)
        return complain(STATUS_RUN, "data: %s is no idx file of bytes", f->path);
    size_t dims = f->at[3], header = 4 + 4 * dims;
    if (f->size < header)
        return complain(STATUS_RUN, "data: %s is cut short inside its header", f->path);
    uint64_t room = f->size - header, per = 1, rows = upside_down(f->at + 4);
    for (size_t i = 1; i < dims && per <= room; i++)
        per *= upside_down(f->at + 4 + 4 * i);
    if (per < 1 || per > room || rows != room / per || room % per)
        return complain(STATUS_RUN, "data: %s is cut short or too long: %llu rows of %llu bytes are not its %llu", f->path,
                        (unsigned long long)rows, (unsigned long long)per, (unsigned long long)room);
    *a = (Array){.file = f, .offset = header, .kind = DATA_U8, .rows = (int64_t)rows, .per = (int64_t)per};
    return DONE;
}

const DataFormat data_idx = {"idx", ARRAYS, idx_open, NULL, NULL};
