/* SPDX-License-Identifier: Apache-2.0
 *
 * data.h: what data.c and the readers of formats share.
 *
 * A reader looks at one mapped file at a time and says where its elements are.  Token formats add pieces of one long
 * stream; npy and idx give one array a role.  The stream of cifar is one of records, and each role has its place in them.  What
 * a sample is, its order, and the check of ranges are in data.c.
 */
#ifndef DATA_H
#define DATA_H
#include "run.h"

typedef enum { DATA_U8, DATA_U16, DATA_U32, DATA_I8, DATA_I16, DATA_I32, DATA_I64, DATA_F32,
               DATA_HERE        /* i32 as this machine has them */
} Element;

typedef struct { const char *path; const unsigned char *at; size_t size; } DataFile;
/* n elements, from element `first` of the stream on. */
typedef struct { const DataFile *file; size_t offset; Element kind; int64_t first, n; } Piece;
/* planes: channels of a row lie one behind the other, so many; 0: side by side, as inputs have them. */
typedef struct Array { const DataFile *file; size_t offset; Element kind; int64_t rows, per; int planes; } Array;

typedef struct Source {         /* one data set */
    const DataInfo *info;
    const DataFormat *format;
    char **name;                /* of the files */
    DataFile *file;
    int names, files;
    Piece *piece;               /* token formats, in stream order */
    int64_t pieces, room, tokens;
    Array *array;               /* npy, idx: by role; with records `offset` lies in one of them, and there is no file */
    int64_t rows, record;       /* bytes of a record; 0: none */
    int64_t window;             /* tokens of a sample */
    bool shuffle;               /* training; an evaluation goes through the data in order */
} Source;

typedef enum { STREAM, ARRAYS, RECORDS } Layout;
struct DataFormat {
    const char *name;
    Layout layout;
    int (*open)(Source *s, const DataFile *f);
    int (*field)(const Source *s, const char *role, Array *a);  /* RECORDS: where a role lies in one */
    int (*beside)(const DataFile *f, int (*say)(const DataFile *other));        /* a file that belongs to f; NULL: none */
};
/* Of a file that is read as it comes: the length of its header, by its first NPY_FIRST bytes, 0: it is no such file; then that
 * header, which is all of f. */
enum { NPY_FIRST = 12 };
size_t npy_length(const unsigned char *first);
int npy_head(const DataFile *f, Array *a);

int data_piece(Source *s, const DataFile *f, size_t offset, Element kind, int64_t n);
size_t data_width(Element kind);
uint64_t data_bits(const unsigned char *at, int bytes);         /* little endian */
int64_t data_integer(const unsigned char *at, Element kind);

struct Loader {
    const Job *job;
    Source train, eval;
    float (*number)[256];       /* of a byte: by channel, those of one input behind those of another */
};
struct SampleRows {             /* data_rows.c */
    bool (*open)(Loader *l);
    int (*check)(const DataFormat *f, Source *s, const Job *job);
    bool (*ids)(Stage *st, const Source *s, int role, const InputInfo *in, uint64_t seed, int64_t sample, long from, long n,
                int32_t *to);
    void (*floats)(const Stage *st, const Source *s, int role, const InputInfo *in, uint64_t seed, int64_t sample, void *to);
};
/* data.c: an element into `to`; false: it is outside.  With a stage, that ends the job. */
bool data_store(Stage *st, const InputInfo *in, const DataFile *f, int64_t position, int64_t value, int32_t *to);
const Piece *data_at(const Source *s, int64_t position);
/* A read of a step: a data input for a micro-batch, or, mb -1, how many of its targets are not `ignore`, 8 bytes. */
typedef struct { int input, mb; long bytes; int ignore; } Read;
/* From any thread.  early: a value out of its range is none of the job's business yet; false then. */
bool data_read(Stage *st, const Values *now, const Read *r, void *to, bool early);
/* The input that data_load() loads with so many bytes; else the folder is not what dpgen wrote, and the job ends. */
const InputInfo *data_input(Stage *st, const Values *now, int input, long bytes);
/* Of data_count(): the count, unless it is given.  A step without a valid target is noted. */
void data_counted(Stage *st, Values *now, const Read *r, int count, const int64_t *given);
Loader *data_loader(const Job *job, int *status);
Loader *data_done(Loader *l, int status);               /* only if status is DONE */

/* data_files.c: the files of patterns, patterns in order, the matches of one in byte order.  NULL: said why. */
char **data_files(const char *const *patterns, int *n);
/* Any file that is only read, and belongs to `what`: data, weights, checkpoint.  STATUS_USAGE: an output is that file. */
int data_map(DataFile *f, const char *path, const char *what);
void data_unmap(DataFile *f);
/* The same of weights and checkpoints: what cannot be read is stale. */
static inline int data_stale(int opened)
{
    return opened == DONE || opened == STATUS_USAGE ? opened : STATUS_STALE;
}
#endif
