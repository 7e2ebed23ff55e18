/* SPDX-License-Identifier: Apache-2.0
 *
 * words.c: tokens of a tokenizer.json as text, for models whose tokens are not bytes.
 */
#include <setjmp.h>
#include "data.h"
#include "sample.h"
#include "../tokens/tokens.h"

static Tokenizer *tokens;

/* Where the tokenizer goes when it cannot go on: sample/base.h. */
static jmp_buf refused;
static const char *why;

void token_fail(int status, const char *text)
{
    static char room[1024];
    snprintf(room, sizeof room, "%s", text);
    why = room;
    longjmp(refused, status);
}

static int encode(Run *run, const char *path, const char *text, int32_t *ids, long room, long *n)
{
    DataFile f = {0};
    Ints all = {0};
    if (data_map(&f, path, "--tokenizer") != DONE)
        return STATUS_USAGE;
    int failed = setjmp(refused);
    if (failed)
        return run->main ? complain(failed, "%s", why) : failed;
    char *json = alloc(f.size + 1);
    memcpy(json, f.at, f.size);
    tokens = tokenizer_read(path, json, f.size);
    tokenizer_words(tokens);
    tokenizer_encode(tokens, "--prompt", text, strlen(text), &all);
    for (*n = 0; *n < all.n; ++*n)
        if (*n < room)
            ids[*n] = all.at[*n];
    return DONE;
}

static const char *word(int id, int *n)
{
    return tokenizer_word(tokens, id, n);
}

const TokenText words_json = {encode, word};
