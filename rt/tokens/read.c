/* SPDX-License-Identifier: Apache-2.0
 *
 * read.c: tokenizer.json, as the library `tokenizers` writes it, into a Tokenizer.
 *
 * Known are WordPiece, Unigram, and BPE of two kinds.  Byte-level ones spell each byte as a letter, so that the vocabulary can
 * be read; here tokens are those bytes again.  The others are of characters, and spell what they lack as bytes, <0x00> to
 * <0xFF>.  Whatever would change a token and is not known ends dpgen by name: another kind of model, normalizer, pattern, or
 * added token.
 *
 * Cost: one pass over the file for each part that is looked for.
 */
#include "word.h"
#include "json_part.h"
#include "utf8.h"
#include <stdlib.h>
#include <string.h>

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

/* ---- normalizer ----------------------------------------------------------------------------------------------------- */

static const char blank[] = "\xe2\x96\x81";     /* U+2581 */

static const char *text_of(Reader *r, JsonPart p, const char *key)
{
    return string(r, member(r, p, key));
}

static Change *add_change(Reader *r, void (*apply)(const Change *, const char *, size_t, Grown *))
{
    Change *s = PUSH(&r->t->change);
    s->apply = apply;
    return s;
}

static void add_form(Reader *r, Form f)
{
    add_change(r, change_form)->form = f;
}

static void take_bert(Reader *r, JsonPart p)
{
    bool lower = truth(r, p, "lowercase", true);
    if (truth(r, p, "clean_text", true))
        add_change(r, change_clean);
    if (truth(r, p, "handle_chinese_chars", true))
        add_change(r, change_chinese);
    if (truth(r, p, "strip_accents", lower)) {
        add_form(r, NFD);
        add_change(r, change_drop)->class = FLAT;
    }
    if (lower)
        add_change(r, change_lower);
}

static void take_replace(Reader *r, JsonPart p)
{
    JsonPart pattern = member(r, p, "pattern");
    const char *from = text_of(r, pattern, "String"), *runs = text_of(r, pattern, "Regex");
    if (!*from && strcmp(runs, " {2,}"))
        refuse(r, "its normalizer, Replace, has a pattern that is not known: %s; known are texts, and \" {2,}\"", runs);
    Change *s = add_change(r, *from ? change_replace : change_runs);
    s->from = from;
    s->to = text_of(r, p, "content");
    r->t->blanks |= !strcmp(s->to, blank);
}

static void take_chars(Reader *r, JsonPart p)
{
    Change *s = add_change(r, change_chars);
    const char *why = chars_read(&s->chars, text_of(r, p, "precompiled_charsmap"));
    if (why)
        refuse(r, "its normalizer, Precompiled: precompiled_charsmap %s", why);
}

static void take_prepend(Reader *r, JsonPart p)
{
    add_change(r, change_prepend)->to = text_of(r, p, "prepend");
}

static void take_strip(Reader *r, JsonPart p)
{
    Change *s = add_change(r, change_strip);
    s->left = truth(r, p, "strip_left", true);
    s->right = truth(r, p, "strip_right", true);
}

static void take_accents(Reader *r, JsonPart p)
{
    (void)p;
    add_change(r, change_drop)->class = MARK;
}

static void take_lower(Reader *r, JsonPart p)
{
    (void)p;
    add_change(r, change_lower);
}

static void take_normalizer(Reader *r, JsonPart p)
{
    static const struct { const char *type; void (*take)(Reader *, JsonPart); } known[] = {
        {"BertNormalizer", take_bert}, {"Replace", take_replace}, {"Precompiled", take_chars}, {"Prepend", take_prepend},
        {"Strip", take_strip}, {"StripAccents", take_accents}, {"Lowercase", take_lower}};
    static const char *const forms[] = {[NFC] = "NFC", [NFD] = "NFD", [NFKC] = "NFKC", [NFKD] = "NFKD"};
    const char *type = none(p) ? "" : type_of(r, p);
    if (none(p))
        return;
    if (!strcmp(type, "Sequence")) {
        each(r, member(r, p, "normalizers"), take_normalizer);
        return;
    }
    for (Form f = NFC; f <= NFKD; f++)
        if (!strcmp(type, forms[f])) {
            add_form(r, f);
            return;
        }
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(type, known[i].type)) {
            known[i].take(r, p);
            return;
        }
    refuse(r, "its normalizer, %s, is not known: %.*s; known are NFC, NFD, NFKC, NFKD, BertNormalizer, Lowercase, "
           "StripAccents, Strip, Prepend, Replace and Precompiled", type, p.n > 200 ? 200 : (int)p.n, p.at);
}

/* ---- pre-tokenizer ------------------------------------------------------------------------------------------------------ */

static Cut *add_cut(Reader *r, CutKind kind)
{
    Cut *c = PUSH(&r->t->cut);
    c->kind = kind;
    return c;
}

static void take_pattern(Reader *r, JsonPart p)
{
    const char *text = text_of(r, member(r, p, "pattern"), "Regex");
    Pattern k = SPLIT_GPT2;
    while (pattern_text(k) && strcmp(pattern_text(k), text))
        k++;
    if (!pattern_text(k))
        refuse(r, "the pattern of its pre-tokenizer is not known: %s", text);
    if (strcmp(text_of(r, p, "behavior"), "Isolated") || truth(r, p, "invert", false))
        refuse(r, "its pre-tokenizer, Split, is not known: %.*s", (int)p.n, p.at);
    add_cut(r, CUT_PATTERN)->pattern = k;
}

/* Blanks that the normalizer has replaced are nowhere. */
static void take_split(Reader *r, JsonPart p)
{
    bool gone = false;
    for (int i = 0; i < r->t->change.n; i++)
        gone |= r->t->change.at[i].apply == change_replace && !strcmp(r->t->change.at[i].from, " ");
    if (!gone || strcmp(text_of(r, member(r, p, "pattern"), "String"), " "))
        take_pattern(r, p);
}

static void take_bytes(Reader *r, JsonPart p)
{
    r->t->bytes = true;
    if (truth(r, p, "add_prefix_space", true))
        add_cut(r, CUT_PREFIX);
    if (truth(r, p, "use_regex", true))
        add_cut(r, CUT_PATTERN)->pattern = SPLIT_GPT2;
}

static void take_blanks(Reader *r, JsonPart p)
{
    const char *scheme = text_of(r, p, "prepend_scheme");
    if (strcmp(text_of(r, p, "replacement"), blank))
        refuse(r, "its pre-tokenizer, Metaspace, is not known: %.*s", (int)p.n, p.at);
    Cut *c = add_cut(r, CUT_BLANKS);
    c->split = truth(r, p, "split", true);
    c->prepend = !strcmp(scheme, "first") ? PREPEND_FIRST : !strcmp(scheme, "never") ? PREPEND_NEVER : PREPEND_ALWAYS;
    if (!truth(r, p, "add_prefix_space", true))         /* of files before prepend_scheme */
        c->prepend = PREPEND_NEVER;
    r->t->blanks = true;
}

static void take_digits(Reader *r, JsonPart p)
{
    if (!truth(r, p, "individual_digits", false))
        refuse(r, "its pre-tokenizer, Digits, is known with individual_digits alone: %.*s", (int)p.n, p.at);
    add_cut(r, CUT_DIGITS);
}

static void take_spaces(Reader *r, JsonPart p)
{
    (void)p;
    add_cut(r, CUT_SPACES);
}

static void take_bert_words(Reader *r, JsonPart p)
{
    (void)p;
    add_cut(r, CUT_BERT);
}

static void take_splitter(Reader *r, JsonPart p)
{
    static const struct { const char *type; void (*take)(Reader *, JsonPart); } known[] = {
        {"ByteLevel", take_bytes}, {"Metaspace", take_blanks}, {"Digits", take_digits}, {"Split", take_split},
        {"WhitespaceSplit", take_spaces}, {"BertPreTokenizer", take_bert_words}};
    const char *type = none(p) ? "" : type_of(r, p);
    if (none(p))
        return;
    if (!strcmp(type, "Sequence")) {
        each(r, member(r, p, "pretokenizers"), take_splitter);
        return;
    }
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(type, known[i].type)) {
            known[i].take(r, p);
            return;
        }
    refuse(r, "its pre-tokenizer, %s, is not known: %.*s; known are ByteLevel, Split, Digits, Metaspace, WhitespaceSplit and "
           "BertPreTokenizer", type, p.n > 200 ? 200 : (int)p.n, p.at);
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

/* In place, n bytes to those that it spells; their number, -1: it spells none. */
static int spell(const Tokenizer *t, char *text, size_t length)
{
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

static void put_token(Reader *r, int64_t id, size_t size)
{
    int n = spell(r->t, r->room, size);
    if (id > INT32_MAX - 1)
        refuse(r, "token %lld: ids have at most 31 bits", (long long)id);
    if (n >= 0)
        map_put(&r->t->vocab, kept(r->room, n), n, (int)id);
    r->t->most = id > r->t->most ? (int)id : r->t->most;
}

static void read_vocab(Reader *r, JsonPart vocab)
{
    Json j = json_open(vocab.at, vocab.n);
    int64_t id;
    size_t n;
    for (bool first = true; json_key(&j, &first, r->room, r->most, &n) && json_integer(&j, &id);)
        put_token(r, id, n);
    stop_at(r, &j);
}

/* As the library's reader makes it: the first digits as a whole number, then one multiplication or division by a power of ten.
 * A reader that rounds once may differ in the last bit. */
static double decimal(JsonPart p)
{
    const char *at = p.at, *end = p.at + p.n;
    bool negative = at < end && *at == '-', point = false, full = false;
    uint64_t digits = 0;
    int power = 0;
    for (at += negative; at < end && (*at == '.' || (*at >= '0' && *at <= '9')); at++) {
        uint64_t digit = (uint64_t)(*at - '0');
        point |= *at == '.';
        if (*at == '.')
            continue;
        full |= digits > (UINT64_MAX - digit) / 10;
        digits = full ? digits : 10 * digits + digit;
        power += full ? !point : -point;
    }
    if (at < end && (*at == 'e' || *at == 'E'))
        power += atoi(at + 1);
    double x = (double)digits, ten = 1;
    for (int i = 0; i < (power < 0 ? -power : power) && i < 400; i++)
        ten *= 10;
    x = power < 0 ? x / ten : x * ten;
    return negative ? -x : x;
}

/* A list of texts with the logarithms of their probabilities; ids are places. */
static void take_scored(Reader *r, JsonPart p)
{
    Json j = json_open(p.at, p.n);
    bool first = true;
    size_t n;
    Tokenizer *t = r->t;
    int id = t->score.n;
    JsonPart score = {"", 0};
    if (json_member(&j, &first, NULL, 0) && json_bytes(&j, r->room, r->most, &n) && json_member(&j, &first, NULL, 0))
        score = json_value(&j);
    if (!score.n || !strchr("-0123456789", *score.at) || json_member(&j, &first, NULL, 0) || j.why)
        refuse(r, "token %d, %.*s, is no text with a number", id, p.n > 200 ? 200 : (int)p.n, p.at);
    put_token(r, id, n);
    *PUSH(&t->score) = decimal(score);
    t->least = id == 0 || t->score.at[id] < t->least ? t->score.at[id] : t->least;
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
    size_t before, behind;
    if (*p.at == '"' && json_string(&j, text, r->most) && (gap = strchr(text, ' ')) && !strchr(gap + 1, ' ')) {
        before = (size_t)(gap - text);
        behind = strlen(gap + 1);
    } else if (*p.at == '[' && json_member(&j, &first, NULL, 0) && json_bytes(&j, text, r->most, &before)) {
        gap = text + before;
        if (!json_member(&j, &first, NULL, 0) || !json_bytes(&j, gap + 1, r->most - before - 1, &behind))
            return NULL;
    } else {
        return NULL;
    }
    int left = spell(r->t, text, before), right = spell(r->t, gap + 1, behind);
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
        if (r->t->byte[b] < 0 && r->t->model == BPE)
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
    size_t n = strlen(text);
    if (a.normalized) {
        const char *normal = tokenizer_normal(r->t, text, &n);
        a.text = kept(normal, (int)n);
        a.n = (int)n;
    }
    *PUSH(&r->t->added) = a;
    r->t->most = x > r->t->most ? (int)x : r->t->most;
}

/* ---- the file ------------------------------------------------------------------------------------------------------------ */

static void read_merged(Reader *r, JsonPart model)
{
    static const char *const without[] = {"dropout", "continuing_subword_prefix", "end_of_word_suffix"};
    for (int i = 0; i < 3; i++) {
        JsonPart p = member(r, model, without[i]);
        if (!none(p) && !is(p, "\"\""))
            refuse(r, "its model has %s, which is not known here: %.*s", without[i], (int)p.n, p.at);
    }
    if (!r->t->bytes && !r->t->fallback)
        refuse(r, "its model is neither byte-level nor has it byte_fallback: it cannot spell every text");
    r->t->whole = truth(r, model, "ignore_merges", false);
    read_vocab(r, member(r, model, "vocab"));
    read_merges(r, member(r, model, "merges"));
    read_bytes(r);
}

static int64_t integer(Reader *r, JsonPart object, const char *key, int64_t otherwise)
{
    JsonPart p = member(r, object, key);
    Json j = json_open(p.at, p.n);
    int64_t x;
    return !none(p) && json_integer(&j, &x) ? x : otherwise;
}

static void read_pieces(Reader *r, JsonPart model)
{
    const char *unknown = text_of(r, model, "unk_token");
    int64_t most = integer(r, model, "max_input_chars_per_word", 100);
    r->t->continues = text_of(r, model, "continuing_subword_prefix");
    r->t->most_characters = most < INT32_MAX ? (int)most : INT32_MAX;
    read_vocab(r, member(r, model, "vocab"));
    r->t->unknown = map_get(&r->t->vocab, unknown, (int)strlen(unknown));
    if (r->t->unknown < 0)
        refuse(r, "its vocabulary has no token '%s', which is its unk_token", unknown);
}

static void read_unigram(Reader *r, JsonPart model)
{
    int64_t unknown = integer(r, model, "unk_id", -1);
    each(r, member(r, model, "vocab"), take_scored);
    if (unknown >= r->t->score.n)
        refuse(r, "its unk_id is %lld, and its vocabulary has %d tokens", (long long)unknown, r->t->score.n);
    r->t->unknown = (int)unknown;
    read_bytes(r);
}

static void read_model(Reader *r, JsonPart model)
{
    static const char *const names[] = {[BPE] = "BPE", [WORDPIECE] = "WordPiece", [UNIGRAM] = "Unigram"};
    static void (*const take[])(Reader *, JsonPart) = {read_merged, read_pieces, read_unigram};
    const char *type = type_of(r, model);
    ModelKind k = BPE;
    while (*type && k <= UNIGRAM && strcmp(type, names[k]))
        k++;
    if (none(model) || k > UNIGRAM)
        refuse(r, "its model is %s; known are BPE, WordPiece and Unigram", *type ? type : "missing");
    if (k != BPE && r->t->bytes)
        refuse(r, "its model is %s, and its pre-tokenizer ByteLevel, which is not known together", names[k]);
    r->t->model = k;
    r->t->fallback = truth(r, model, "byte_fallback", false);
    take[k](r, model);
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
    read_model(&r, model);
    each(&r, member(&r, all, "added_tokens"), take_added);
    return t;
}
