/* SPDX-License-Identifier: Apache-2.0
 *
 * llmc: a checkpoint of llm.c, and the model file and weights that are written of it.
 */
#include "target.h"
#include "gen/huggingface/hf.h"

static void take(const uint8_t *data, size_t n)
{
    const char *path = target_file(data, n), *out = strf("%s.yaml", path);
    llmc_import(path, out);
    remove(out);
    remove(strf("%s.safetensors", path));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    return target_run(take, data, n);
}
