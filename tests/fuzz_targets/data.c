/* SPDX-License-Identifier: Apache-2.0
 *
 * data: a file of training data in each format; the first byte says which.  Every element that was accepted is read.
 */
#define RUNTIME
#include "target.h"
#include "rt/data.h"
#include <sys/mman.h>

uint64_t target_sum;            /* so that no compiler leaves the reading out */

static void read_all(const DataFile *f, size_t offset, Element kind, int64_t n)
{
    for (size_t i = 0; i < (size_t)n; i++)
        target_sum += data_bits(f->at + offset + i * data_width(kind), (int)data_width(kind));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const DataFormat *const format[] = {&data_bytes, &data_llmc, &data_npy, &data_idx, &data_cifar10, &data_cifar100};
    enum { FORMATS = sizeof format / sizeof *format };
    DataFile f = {0};
    Array array = {0};
    Source s = {.file = &f, .files = 1, .array = &array};
    if (n < 1 || data_map(&f, target_file(data + 1, n - 1), "data") != DONE)
        return 0;
    if (format[data[0] % FORMATS]->open(&s, &f) == DONE) {
        for (int64_t i = 0; i < s.pieces; i++)
            read_all(&f, s.piece[i].offset, s.piece[i].kind, s.piece[i].n);
        if (array.file)
            read_all(&f, array.offset, array.kind, array.rows * array.per);
    }
    free(s.piece);
    if (f.at)
        munmap((void *)(uintptr_t)f.at, f.size);
    return 0;
}
