/* SPDX-License-Identifier: Apache-2.0
 *
 * words.c: tokens of a tokenizer.json as text, or as numbers with blanks between them, for models whose tokens are not bytes.
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

static int read_numbers(const Run *run, const char *at, int32_t *ids, long room, long *n)
{
    for (char *behind; at[strspn(at, " \n")]; at = behind, ++*n) {
        long id = strtol(at, &behind, 10);
        if (behind == at || id < 0 || id > INT32_MAX)
            return !run->main ? STATUS_USAGE : complain(STATUS_USAGE, "--prompt: tokens of this model are no bytes: name its "
                "tokenizer.json with --tokenizer, or give their numbers, with blanks between them");
        if (*n < room)
            ids[*n] = (int32_t)id;
    }
    return DONE;
}

static int encode(Run *run, const char *path, const char *text, int32_t *ids, long room, long *n)
{
    DataFile f = {0};
    Ints all = {0};
    if (!path)
        return read_numbers(run, text, ids, room, n);
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

/* A token that the tokenizer does not know is U+FFFD. */
static const char *word(int id, bool first, int *n)
{
    static char number[16];
    const char *known = tokens ? tokenizer_word(tokens, id, n) : number;
    if (!tokens)
        *n = snprintf(number, sizeof number, first ? "%d" : " %d", id);
    if (!known)
        *n = 3;
    return known ? known : "\xef\xbf\xbd";
}

const TokenText words_json = {encode, word};
