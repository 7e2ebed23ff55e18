/* SPDX-License-Identifier: Apache-2.0
 *
 * data_rows.c: samples that are rows of arrays: npy, idx, cifar.
 *
 * Drawn: each pass over the rows is a permutation, keyed by (seed, pass): four Feistel rounds on the next power of four, walked
 * until inside (Black and Rogaway, Ciphers with arbitrary finite domains, 2002).  In order: row i mod rows.
 *
 * Bytes of pictures become numbers about 0 by the mean and deviation of their channel.
 */
#include <stdlib.h>
#include <string.h>
#include "data.h"
#include "little.h"
#include "number.h"
#include "scalar.h"

/* ---- order ----------------------------------------------------------------------------------------------------- */

/* A permutation of 0 .. n-1, keyed by seed and pass. */
static int64_t permute(int64_t x, int64_t n, uint64_t seed, uint64_t pass)
{
    int half = 1;
    while ((int64_t)1 << (2 * half) < n)
        half++;
    uint64_t mask = ((uint64_t)1 << half) - 1, v = (uint64_t)x;
    do {
        uint64_t left = v >> half, right = v & mask;
        for (uint64_t round = 0; round < 4; round++) {
            uint32_t word[4];
            number_draw(seed, DRAW_ORDER, pass, right << 2 | round, word);
            uint64_t next = left ^ (((uint64_t)word[1] << 32 | word[0]) & mask);
            left = right;
            right = next;
        }
        v = left << half | right;
    } while (v >= (uint64_t)n);
    return (int64_t)v;
}

static int64_t row_of(const Source *s, uint64_t seed, int64_t sample)
{
    int64_t at = sample % s->rows;
    return s->shuffle ? permute(at, s->rows, seed, (uint64_t)(sample / s->rows)) : at;
}

/* ---- reading --------------------------------------------------------------------------------------------------- */

/* Element `from` of a row, and which one of its file that is. */
static const unsigned char *row_at(const Source *s, const Array *a, int64_t row, long from, const DataFile **f,
                                   int64_t *element)
{
    size_t width = data_width(a->kind);
    if (s->record) {
        const Piece *p = data_at(s, row * s->record);
        size_t at = p->offset + (size_t)(row * s->record - p->first) + a->offset + (size_t)from;
        *f = p->file, *element = (int64_t)at;
        return p->file->at + at;
    }
    *f = a->file, *element = row * a->per + from;
    return a->file->at + a->offset + (size_t)*element * width;
}

static bool read_ids(Stage *st, const Source *s, int role, const InputInfo *in, uint64_t seed, int64_t sample,
                     long from, long n, int32_t *to)
{
    const Array *a = &s->array[role];
    const DataFile *f;
    int64_t element;
    const unsigned char *at = row_at(s, a, row_of(s, seed, sample), from, &f, &element);
    for (long i = 0; i < n; i++)
        if (!data_store(st, in, f, element + i, data_integer(at + (size_t)i * data_width(a->kind), a->kind), &to[i]))
            return false;
    return true;
}

/* A row of bytes, pixel by pixel: each is the number that it has in its channel.  A GPU is given bytes as they are. */
static void read_bytes(const Stage *st, const Array *a, const InputInfo *in, const unsigned char *at, void *to)
{
    const Loader *l = st->loader;
    int channels = in->bytes->channels;
    int64_t n = a->per / channels, step = a->planes ? 1 : channels;
    float (*number)[256] = l->number;
    for (const InputInfo *other = l->job->input; other < in; other++)
        number += other->bytes ? other->bytes->channels : 0;
    for (int c = 0; c < channels; c++) {
        const unsigned char *from = at + (a->planes ? c * n : c);
        unsigned char *byte = (unsigned char *)to + c;
        float *wide = (float *)to + c;
        if (st->device)
            for (int64_t i = 0; i < n; i++)
                byte[i * channels] = from[i * step];
        else
            for (int64_t i = 0; i < n; i++)
                wide[i * channels] = number[c][from[i * step]];
    }
}

static void read_floats(const Stage *st, const Source *s, int role, const InputInfo *in, uint64_t seed, int64_t sample,
                        void *to)
{
    const Array *a = &s->array[role];
    const DataFile *f;
    int64_t element;
    const unsigned char *at = row_at(s, a, row_of(s, seed, sample), 0, &f, &element);
    if (in->bytes && (a->planes || !st->device))
        read_bytes(st, a, in, at, to);
    else
        little(memcpy(to, at, (size_t)a->per * data_width(a->kind)), (size_t)a->per, data_width(a->kind));
}

/* ---- opening --------------------------------------------------------------------------------------------------- */

static bool fits(const Array *a, const InputInfo *in)
{
    if (a->per != in->per || (a->planes && in->bytes && a->planes != in->bytes->channels))
        return false;
    return in->type == JOB_I32 ? a->kind != DATA_F32 : a->kind == (in->bytes ? DATA_U8 : DATA_F32);
}

static int check_arrays(Source *s, const Job *job)
{
    s->rows = s->array[0].rows;
    for (int i = 0; i < s->info->roles; i++) {
        const InputInfo *in = &job->input[s->info->input[i]];
        const Array *a = &s->array[i];
        const char *path = a->file ? a->file->path : s->file[0].path;
        if (!fits(a, in))
            return complain(STATUS_RUN, "data: %s: rows of %lld %s; input `%s` wants %ld %s.  Take another file, or generate "
                            "the job with shape and type of that input as the file has them", path, (long long)a->per,
                            a->kind == DATA_F32 ? "floats" : a->kind == DATA_U8 ? "bytes" : "integers", in->name, in->per,
                            in->type == JOB_I32 ? "integers" : in->bytes ? "bytes" : "floats");
        if (a->rows < 1)
            return complain(STATUS_RUN, "data: %s has no rows; a sample is a row", path);
        if (a->rows != s->rows)
            return complain(STATUS_RUN, "data: %s has %lld rows, %s has %lld; both need the same number", path,
                            (long long)a->rows, s->array[0].file->path, (long long)s->rows);
    }
    return DONE;
}

static int check(const DataFormat *f, Source *s, const Job *job)
{
    int status = DONE;
    for (int i = 0; f->layout == RECORDS && i < s->info->roles && status == DONE; i++)
        status = f->field(s, s->info->role[i], &s->array[i]);
    return status == DONE ? check_arrays(s, job) : status;
}

/* What bytes are in their channels; false: no memory. */
static bool open_numbers(Loader *l)
{
    const Job *job = l->job;
    size_t channels = 0, k = 0;
    for (int i = 0; i < job->inputs; i++)
        channels += job->input[i].bytes ? (size_t)job->input[i].bytes->channels : 0;
    l->number = channels ? calloc(channels, sizeof *l->number) : NULL;
    for (int i = 0; l->number && i < job->inputs; i++) {
        const ByteInfo *b = job->input[i].bytes;
        for (int c = 0; b && c < b->channels; c++, k++)
            for (int byte = 0; byte < 256; byte++)
                l->number[k][byte] = byte_number((unsigned char)byte, b->mean[c], b->std[c]);
    }
    return l->number || !channels;
}

Loader *data_rows(const Job *job, const DataInfo *info, Array *array, int *status)
{
    Loader *l = data_loader(job, status);
    if (!l) {
        free(array);
        return NULL;
    }
    l->eval = (Source){.info = info, .array = array};
    *status = check_arrays(&l->eval, job);
    return l;
}

void data_rows_are(Loader *l, int64_t rows)
{
    l->eval.rows = rows;
}

const SampleRows sample_rows = {open_numbers, check, read_ids, read_floats};
