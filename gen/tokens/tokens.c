/* SPDX-License-Identifier: Apache-2.0
 *
 * tokens.c: dpgen tokens, files of text to one file of tokens, as data of format llmc-tokens; with --mask, conversations to
 * arrays: chat.c.
 *
 * 256 int32: magic, version, number of tokens, zeros; then the tokens, u16 where all ids of the tokenizer fit, else u32.
 */
#include "command.h"
#include "chat.h"

enum { MOST = 1 << 29 };         /* so that numbers of tokens fit */

static NORETURN void misuse(const char *why)
{
    fail(EXIT_USAGE, "tokens: %s; write dpgen tokens --tokenizer tokenizer.json FILE... -o data.bin", why);
}

static void put(FILE *f, uint32_t x, int bytes)
{
    for (int i = 0; i < bytes; i++)
        fputc((int)(x >> (8 * i) & 0xff), f);
}

/* The id of a token that is put behind each file: an added one by its text, or any by its id. */
static int end_of(const Tokenizer *t, const char *name)
{
    for (int i = 0; i < t->added.n; i++)
        if (!strcmp(t->added.at[i].text, name))
            return t->added.at[i].id;
    bool number = *name && strspn(name, "0123456789") == strlen(name) && strlen(name) < 10;
    if (number && atoi(name) > t->most)
        fail(EXIT_USAGE, "--end %s: the ids of %s end at %d", name, t->path, t->most);
    if (!number)
        fail(EXIT_USAGE, "--end %s: %s has no such added token", name, t->path);
    return atoi(name);
}

typedef struct { const char *out, *tokenizer, *end, *mask, *length; } TokensAsked;
static const Option table[] = {{"-o", "OUT.bin", WRITES_FILE, offsetof(TokensAsked, out)},
    {"--tokenizer", "FILE.json", READS_FILE, offsetof(TokensAsked, tokenizer)},
    {"--end", "TOKEN or ID", TAKES_TEXT, offsetof(TokensAsked, end)},
    {"--mask", "tokenizer_config.json or FILE.jinja", READS_FILE, offsetof(TokensAsked, mask)},
    {"--length", "T", TAKES_TEXT, offsetof(TokensAsked, length)},
    {0}};

int tokens_command(int argc, char **argv)
{
    TokensAsked x = {0};
    Strs files = option_words(table, &x, argc, argv, "a text", argc, misuse);
    for (int i = 0; i < files.n; i++)
        file_reads(files.at[i]);
    if (!x.tokenizer || !x.out || files.n == 0)
        misuse(!x.tokenizer ? "no tokenizer is named" : !x.out ? "no file to write is named" : "no texts are named");
    int length = x.length && strspn(x.length, "0123456789") == strlen(x.length) && strlen(x.length) < 8 ? atoi(x.length) : 0;
    if (!x.mask != !x.length || (x.length && length < 1))
        misuse("--mask and --length T belong together, and T is a number of positions");
    if (x.mask && x.end)
        misuse("--end is for texts: the template of --mask says what ends an answer");
    const char *path = x.tokenizer;
    size_t n;
    const char *text = file_read(path, "name a tokenizer.json", &n);
    const Tokenizer *t = tokenizer_read(path, text, n);
    if (x.mask)
        return chat_command(t, x.mask, &files, length, x.out);
    Ints ids = {0};
    int last = x.end ? end_of(t, x.end) : -1;
    int64_t bytes = 0;
    for (int i = 0; i < files.n; i++) {
        size_t n;
        const char *text = file_read(files.at[i], "name a file of text", &n);
        if (n > MOST || ids.n > MOST)
            fail(EXIT_MODEL, "%s: more than 512 MiB, or as many tokens: make several files", files.at[i]);
        tokenizer_encode(t, files.at[i], text, n, &ids);
        if (x.end)
            *PUSH(&ids) = last;
        bytes += (int64_t)n;
    }
    int width = t->most < 65536 ? 2 : 4;
    const char *slash = strrchr(x.out, '/');     /* a model file reads data/train_0.bin, and nothing has made data/ before */
    files_begin(slash && slash > x.out ? strf("%.*s", (int)(slash - x.out), x.out) : NULL, false);
    FILE *f = file_begin(x.out);
    put(f, width == 2 ? 20240520 : 20240801, 4);
    put(f, width == 2 ? 1 : 7, 4);
    put(f, (uint32_t)ids.n, 4);
    for (int i = 3; i < 256; i++)
        put(f, 0, 4);
    for (int i = 0; i < ids.n; i++)
        put(f, (uint32_t)ids.at[i], width);
    file_end(f, x.out);
    files_end();
    printf("wrote %s: %d tokens of %lld bytes, u%d\n", quote_terminal(x.out), ids.n, (long long)bytes, 8 * width);
    return 0;
}
