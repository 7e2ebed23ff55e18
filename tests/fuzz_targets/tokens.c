/* SPDX-License-Identifier: Apache-2.0
 *
 * tokens: a tokenizer, which then encodes its own file.
 */
#include "target.h"
#include "gen/tokens/tokens.h"

static void take(const uint8_t *data, size_t n)
{
    Ints ids = {0};
    const Tokenizer *t = tokenizer_read(target_file(data, n));
    tokenizer_encode(t, "the file", (const char *)data, n, &ids);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    return target_run(take, data, n);
}
