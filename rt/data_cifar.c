/* SPDX-License-Identifier: Apache-2.0
 *
 * data_cifar.c: the binary files of CIFAR-10 and CIFAR-100 (A. Krizhevsky, Learning Multiple Layers of Features from Tiny
 * Images, 2009): records of a label, or of a coarse and a fine one, and 32 x 32 pixels of three colours, one plane each.
 */
#include <string.h>
#include "data.h"

enum { SIDE = 32, COLOURS = 3, PICTURE = COLOURS * SIDE * SIDE };

static int records(Source *s, const DataFile *f, int labels)
{
    s->record = labels + PICTURE;
    if (f->size == 0 || f->size % (size_t)s->record)
        return complain(STATUS_RUN, "data: %s has %zu bytes, which are not whole records of %d label%s and %d pixels of %d "
                        "bytes; is it another set, or still packed?", f->path, f->size, labels, labels > 1 ? "s" : "",
                        SIDE * SIDE, COLOURS);
    return data_piece(s, f, 0, DATA_U8, (int64_t)f->size);
}

static int cifar10_open(Source *s, const DataFile *f) { return records(s, f, 1); }
static int cifar100_open(Source *s, const DataFile *f) { return records(s, f, 2); }

static int cifar_field(const Source *s, const char *role, Array *a)
{
    size_t labels = (size_t)s->record - PICTURE;
    *a = (Array){.kind = DATA_U8, .rows = s->tokens / s->record, .per = 1};
    if (!strcmp(role, "image"))
        a->offset = labels, a->per = PICTURE, a->planes = COLOURS;
    else if (!strcmp(role, "labels"))
        a->offset = labels - 1;
    else if (strcmp(role, "coarse") != 0 || labels < 2)
        return complain(STATUS_RUN, "data: %s has no `%s`", s->file[0].path, role);
    return DONE;
}

const DataFormat data_cifar10 = {"cifar10", RECORDS, cifar10_open, cifar_field, NULL},
                 data_cifar100 = {"cifar100", RECORDS, cifar100_open, cifar_field, NULL};
