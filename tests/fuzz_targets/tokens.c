/* SPDX-License-Identifier: Apache-2.0
 *
 * tokens: a tokenizer, which then encodes its own file.
 */
#include "target.h"
#include "base.h"
#include "rt/tokens/tokens.h"

static void take(const uint8_t *data, size_t n)
{
    Ints ids = {0};
    size_t size;
    const char *path = target_file(data, n), *text = file_read(path, "", &size);
    Tokenizer *t = tokenizer_read(path, text, size);
    tokenizer_encode(t, "the file", (const char *)data, n, &ids);
    tokenizer_words(t);
    for (int i = 0, k; i < ids.n; i++)
        tokenizer_word(t, ids.at[i], &k);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    return target_run(take, data, n);
}
