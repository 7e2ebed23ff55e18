/* SPDX-License-Identifier: Apache-2.0
 *
 * read.c: tokenizer.json, as the library `tokenizers` writes it, into a Tokenizer.
 *
 * Known are BPE models of two kinds.  Byte-level ones spell each byte as a letter, so that the vocabulary can be read; here
 * tokens are those bytes again.  The others are of characters, and spell what they lack as bytes, <0x00> to <0xFF>.  Whatever
 * would change a token and is not known ends dpgen by name: another kind of model, normalizer, pattern, or added token.
 *
 * Cost: one pass over the file for each part that is looked for.
 */
#include "tokens.h"
#include "json.h"
#include "utf8.h"
#include <string.h>

typedef JsonPart JsonPart;
typedef struct { Tokenizer *t; char *room; size_t most; } Reader;      /* room for the longest string */

#define refuse(r, ...) refuse_at((r)->t->path, strf(__VA_ARGS__))
static NORETURN void refuse_at(const char *path, const char *why)
{
    fail(EXIT_MODEL, "%s: %s", path, why);
}

/* ---- values -------------------------------------------------------------------------------------------------------- */

static void stop_at(const Reader *r, const Json *j)
{
    if (j->why)
        refuse(r, "this is no tokenizer.json: %s", j->why);
}

static JsonPart value(const Reader *r, Json *j)
{
    JsonPart p = json_value(j);
    stop_at(r, j);
    return p;
}

static bool is(JsonPart p, const char *word)
{
    return p.n == strlen(word) && !memcmp(p.at, word, p.n);
}

static bool none(JsonPart p)
{
    return p.n == 0 || is(p, "null");
}

static JsonPart member(Reader *r, JsonPart object, const char *key)
{
    Json j = json_open(object.at, object.n);
    JsonPart found = none(object) ? (JsonPart){"", 0} : json_find(&j, key, r->room, r->most);
    stop_at(r, &j);
    return found;
}

static const char *string(Reader *r, JsonPart p)
{
    Json j = json_open(p.at, p.n);
    if (p.n == 0 || !json_string(&j, r->room, r->most))
        return "";
    return strf("%s", r->room);
}

static bool truth(Reader *r, JsonPart object, const char *key, bool otherwise)
{
    JsonPart p = member(r, object, key);
    return none(p) ? otherwise : is(p, "true");
}

static const char *type_of(Reader *r, JsonPart p)
{
    return string(r, member(r, p, "type"));
}

/* Takes each element of the list. */
static void each(Reader *r, JsonPart list, void (*take)(Reader *r, JsonPart p))
{
    Json j = json_open(list.at, list.n);
    for (bool first = true; !none(list) && json_member(&j, &first, NULL, 0);)
        take(r, value(r, &j));
    if (!none(list))
        stop_at(r, &j);
}

/* ---- normalizer and pre-tokenizer -------------------------------------------------------------------------------------- */

static const char blank[] = "\xe2\x96\x81";     /* U+2581 */

static bool is_blank(Reader *r, JsonPart pattern)
{
    return !strcmp(string(r, member(r, pattern, "String")), " ");
}

static void take_normalizer(Reader *r, JsonPart p)
{
    const char *type = none(p) ? "" : type_of(r, p);
    if (!strcmp(type, "Sequence"))
        each(r, member(r, p, "normalizers"), take_normalizer);
    else if (!strcmp(type, "NFC"))
        r->t->nfc = true;
    else if (!strcmp(type, "Prepend") && !strcmp(string(r, member(r, p, "prepend")), blank) && !r->t->blanks)
        r->t->prepend = PREPEND_ANY;
    else if (!strcmp(type, "Replace") && is_blank(r, member(r, p, "pattern")) &&
             !strcmp(string(r, member(r, p, "content")), blank))
        r->t->blanks = true;
    else if (!none(p))
        refuse(r, "its normalizer, %s, is not known: %.*s; known are NFC, and blanks as U+2581", type, (int)p.n, p.at);
}

static void take_pattern(Reader *r, JsonPart p)
{
    const char *text = string(r, member(r, member(r, p, "pattern"), "Regex"));
    Pattern k = SPLIT_GPT2;
    while (pattern_text(k) && strcmp(pattern_text(k), text))
        k++;
    if (!pattern_text(k))
        refuse(r, "the pattern of its pre-tokenizer is not known: %s", text);
    if (r->t->pattern || strcmp(string(r, member(r, p, "behavior")), "Isolated") || truth(r, p, "invert", false))
        refuse(r, "its pre-tokenizer, Split, is not known: %.*s", (int)p.n, p.at);
    r->t->pattern = k;
}

static void take_bytes(Reader *r, JsonPart p)
{
    r->t->bytes = true;
    r->t->prefix = truth(r, p, "add_prefix_space", true);
    if (r->t->prefix && (r->t->pattern || r->t->digits))
        refuse(r, "its pre-tokenizer puts a blank before each word (add_prefix_space), which is not known here");
    if (truth(r, p, "use_regex", true) && r->t->pattern)
        refuse(r, "its pre-tokenizer has two patterns, which is not known here");
    if (truth(r, p, "use_regex", true))
        r->t->pattern = SPLIT_GPT2;
}

static void take_blanks(Reader *r, JsonPart p)
{
    const char *scheme = string(r, member(r, p, "prepend_scheme"));
    if (strcmp(string(r, member(r, p, "replacement")), blank) || truth(r, p, "split", true))
        refuse(r, "its pre-tokenizer, Metaspace, is not known: %.*s", (int)p.n, p.at);
    r->t->blanks = true;
    r->t->prepend = !strcmp(scheme, "first") ? PREPEND_FIRST : !strcmp(scheme, "never") ? PREPEND_NEVER : PREPEND_ALWAYS;
}

static void take_splitter(Reader *r, JsonPart p)
{
    const char *type = none(p) ? "" : type_of(r, p);
    if (!strcmp(type, "Sequence"))
        each(r, member(r, p, "pretokenizers"), take_splitter);
    else if (!strcmp(type, "ByteLevel"))
        take_bytes(r, p);
    else if (!strcmp(type, "Metaspace"))
        take_blanks(r, p);
    else if (!strcmp(type, "Digits") && truth(r, p, "individual_digits", false) && !r->t->pattern)
        r->t->digits = true;
    else if (!strcmp(type, "Split") && !(r->t->blanks && is_blank(r, member(r, p, "pattern"))))
        take_pattern(r, p);
    else if (!none(p) && strcmp(type, "Split"))
        refuse(r, "its pre-tokenizer, %s, is not known: %.*s", type, (int)p.n, p.at);
}

/* ---- vocabulary --------------------------------------------------------------------------------------------------------- */

/* The byte that a letter of the byte-level alphabet spells; -1: none.  Printable characters of Latin-1 spell themselves, all
 * other bytes are U+0100 and on, ascending. */
static int byte_of(uint32_t c)
{
    uint32_t next = 0x100;
    for (int b = 0; b < 256; b++) {
        bool itself = (b > 0x20 && b < 0x7f) || (b > 0xa0 && b != 0xad);
        if (c == (itself ? (uint32_t)b : next++))
            return b;
    }
    return -1;
}

/* In place, to the bytes that it spells; their number, -1: it spells none. */
static int spell(const Tokenizer *t, char *text)
{
    size_t length = strlen(text);
    int n = 0, byte = 0;
    if (!t->bytes)
        return (int)length;
    for (const char *at = text, *end = text + length; at < end && byte >= 0;) {
        int used;
        byte = byte_of(utf8_next(at, end, &used));
        text[n] = (char)byte;
        n += byte >= 0;
        at += used;
    }
    return byte < 0 ? -1 : n;
}

static const char *kept(const char *text, int n)
{
    char *copy = alloc((size_t)n + 1);
    return memcpy(copy, text, (size_t)n);
}

static void read_vocab(Reader *r, JsonPart vocab)
{
    Json j = json_open(vocab.at, vocab.n);
    int64_t id;
    for (bool first = true; json_member(&j, &first, r->room, r->most) && json_integer(&j, &id);) {
        int n = spell(r->t, r->room);
        if (id > INT32_MAX - 1)
            refuse(r, "token %lld: ids have at most 31 bits", (long long)id);
        if (n >= 0)
            map_put(&r->t->vocab, kept(r->room, n), n, (int)id);
        r->t->most = id > r->t->most ? (int)id : r->t->most;
    }
    stop_at(r, &j);
}

static Merge *place_of(const Tokenizer *t, uint64_t pair)
{
    uint64_t at = pair * 0x9e3779b97f4a7c15u >> 32;
    while (t->merge[at & t->merge_mask].pair && t->merge[at & t->merge_mask].pair != pair)
        at++;
    return &t->merge[at & t->merge_mask];
}

const Merge *merge_of(const Tokenizer *t, int left, int right)
{
    const Merge *m = place_of(t, 1 + ((uint64_t)(uint32_t)left << 32 | (uint32_t)right));
    return m->pair ? m : NULL;
}

/* "a b", or ["a", "b"]: a and b, one behind the other; *n bytes in the first */
static const char *read_pair(Reader *r, JsonPart p, int *n, int *all)
{
    char *text = r->room, *gap;
    Json j = json_open(p.at, p.n);
    bool first = true;
    if (*p.at == '"' && json_string(&j, text, r->most) && (gap = strchr(text, ' ')) && !strchr(gap + 1, ' ')) {
        *gap = 0;
    } else if (*p.at == '[' && json_member(&j, &first, NULL, 0) && json_string(&j, text, r->most)) {
        gap = text + strlen(text);
        if (!json_member(&j, &first, NULL, 0) || !json_string(&j, gap + 1, r->most - (size_t)(gap + 1 - text)))
            return NULL;
    } else {
        return NULL;
    }
    int left = spell(r->t, text), right = spell(r->t, gap + 1);
    if (left < 0 || right < 0)
        return NULL;
    memmove(text + left, gap + 1, (size_t)right);
    *n = left, *all = left + right;
    return text;
}

static void read_merges(Reader *r, JsonPart merges)
{
    Tokenizer *t = r->t;
    Json j = json_open(merges.at, merges.n), count = j;
    int rank = 0, n, all, size = 0;
    for (bool first = true; json_member(&count, &first, NULL, 0); size++)
        json_skip(&count);
    stop_at(r, &count);
    for (t->merge_mask = 1; t->merge_mask < 2 * (uint32_t)size; )
        t->merge_mask = 2 * t->merge_mask + 1;
    t->merge = alloc(((size_t)t->merge_mask + 1) * sizeof *t->merge);
    for (bool first = true; json_member(&j, &first, NULL, 0); rank++) {
        JsonPart p = value(r, &j);
        const char *text = read_pair(r, p, &n, &all);
        int left = text ? map_get(&t->vocab, text, n) : -1, right = text ? map_get(&t->vocab, text + n, all - n) : -1;
        int id = text ? map_get(&t->vocab, text, all) : -1;
        if (left < 0 || right < 0 || id < 0)
            refuse(r, "merge %d, %.*s, is not of two tokens to a third one", rank, p.n > 200 ? 200 : (int)p.n, p.at);
        uint64_t pair = 1 + ((uint64_t)(uint32_t)left << 32 | (uint32_t)right);
        *place_of(t, pair) = (Merge){pair, rank, id};
    }
}

static void read_bytes(Reader *r)
{
    for (int b = 0; b < 256; b++) {
        const char *spelt = r->t->bytes ? (char[]){(char)b, 0} : strf("<0x%02X>", b);
        r->t->byte[b] = map_get(&r->t->vocab, spelt, r->t->bytes ? 1 : 6);
        if (r->t->byte[b] < 0)
            refuse(r, "its vocabulary has no token for byte 0x%02x", (unsigned)b);
    }
}

static void take_added(Reader *r, JsonPart p)
{
    JsonPart id = member(r, p, "id");
    Json j = json_open(id.at, id.n);
    int64_t x = -1;
    const char *text = string(r, member(r, p, "content"));
    if (id.n == 0 || !json_integer(&j, &x) || x > INT32_MAX - 1 || !*text)
        refuse(r, "an added token without id or content: %.*s", (int)p.n, p.at);
    if (truth(r, p, "single_word", false))
        refuse(r, "added token %s has the flag single_word, which is not known here", text);
    Added a = {text, (int)strlen(text), (int)x, truth(r, p, "normalized", false), truth(r, p, "lstrip", false),
               truth(r, p, "rstrip", false)};
    if (a.normalized && r->t->blanks)
        refuse(r, "added token %s is normalized, which is not known here", text);
    size_t n = strlen(text);
    if (a.normalized && r->t->nfc) {
        const char *normal = normal_text(text, &n);
        a.text = kept(normal, (int)n);
        a.n = (int)n;
    }
    *PUSH(&r->t->added) = a;
    r->t->most = x > r->t->most ? (int)x : r->t->most;
}

/* ---- the file ------------------------------------------------------------------------------------------------------------ */

static void check_model(Reader *r, JsonPart model)
{
    static const char *const without[] = {"dropout", "continuing_subword_prefix", "end_of_word_suffix"};
    const char *type = type_of(r, model);
    if (none(model) || (*type && strcmp(type, "BPE")))
        refuse(r, "its model is %s; known is BPE, byte-level or with byte_fallback", *type ? type : "missing");
    for (int i = 0; i < 3; i++) {
        JsonPart p = member(r, model, without[i]);
        if (!none(p) && !is(p, "\"\""))
            refuse(r, "its model has %s, which is not known here: %.*s", without[i], (int)p.n, p.at);
    }
    if (!r->t->bytes && !truth(r, model, "byte_fallback", false))
        refuse(r, "its model is neither byte-level nor has it byte_fallback: it cannot spell every text");
}

Tokenizer *tokenizer_read(const char *path, const char *text, size_t n)
{
    Tokenizer *t = alloc(sizeof *t);
    Reader r = {t, alloc(n + 2), n + 2};
    Json j = json_open(text, n);
    t->path = path;
    JsonPart all = value(&r, &j), model = member(&r, all, "model");
    if (!json_end(&j))
        stop_at(&r, &j);
    if (none(model))
        refuse(&r, "it has no `model`: it is no tokenizer.json");
    take_normalizer(&r, member(&r, all, "normalizer"));
    take_splitter(&r, member(&r, all, "pre_tokenizer"));
    check_model(&r, model);
    t->whole = truth(&r, model, "ignore_merges", false);
    read_vocab(&r, member(&r, model, "vocab"));
    read_merges(&r, member(&r, model, "merges"));
    read_bytes(&r);
    each(&r, member(&r, all, "added_tokens"), take_added);
    return t;
}
