/* SPDX-License-Identifier: Apache-2.0
 *
 * config: config.json of a published model, and the model file that is written of it.
 */
#include "target.h"
#include "gen/huggingface/hf.h"

static void take(const uint8_t *data, size_t n)
{
    const char *path = target_file(data, n), *out = strf("%s.yaml", path);
    char *words[] = {(char *)(uintptr_t)path, "-o", (char *)(uintptr_t)out};
    import_command(3, words);
    remove(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    return target_run(take, data, n);
}
