/* SPDX-License-Identifier: Apache-2.0
 *
 * megatron: the index of a Megatron data set, beside tokens that are always the same.
 */
#define RUNTIME
#include "target.h"
#include "rt/data.h"
#include <sys/mman.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static char bin[80], idx[80];
    static const char tokens[256];
    if (!*bin) {
        snprintf(bin, sizeof bin, "%s.bin", target_file((const uint8_t *)tokens, sizeof tokens));
        snprintf(idx, sizeof idx, "%s.idx", target_file((const uint8_t *)tokens, sizeof tokens));
        rename(target_file((const uint8_t *)tokens, sizeof tokens), bin);
    }
    rename(target_file(data, n), idx);
    DataFile f = {0};
    Source s = {.file = &f, .files = 1};
    if (data_map(&f, bin, "data") != DONE)
        abort();
    data_megatron.open(&s, &f);
    free(s.piece);
    munmap((void *)(uintptr_t)f.at, f.size);
    return 0;
}
