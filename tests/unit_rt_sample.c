/* SPDX-License-Identifier: Apache-2.0
 *
 * unit_rt_sample: choose.c against the definition of each of its rules, and how often it takes a token against e^score;
 * decode.c, whose text of the tokens of the library `tokenizers` (tests/ref/tokens) has to be the text that they were made
 * of; and normal.c.
 */
#include <math.h>
#include "unit_rt.h"
#include "rt/sample/choose.h"
#include "rt/tokens/tokens.h"

enum { N = 5, DRAWS = 20000 };
static const double score[N] = {1.0, 3.0, -INFINITY, 3.0, 0.5};

static long take(Taste t, int64_t at)
{
    Ranked room[N];
    return choose_token(score, N, &t, at, room);
}

/* How often each is taken, in parts of all draws. */
static void frequencies(Taste t, double part[N])
{
    memset(part, 0, N * sizeof *part);
    for (int i = 0; i < DRAWS; i++)
        part[take(t, i)] += 1.0 / DRAWS;
}

/* kept: tokens that stay, as digits */
static void test_rule(const char *what, Taste t, const char *kept)
{
    double part[N], sum = 0;
    frequencies(t, part);
    for (const char *c = kept; *c; c++)
        sum += exp(score[*c - '0'] / t.temperature);
    for (int i = 0; i < N; i++) {
        double want = strchr(kept, '0' + i) ? exp(score[i] / t.temperature) / sum : 0;
        double may = 4.5 * sqrt(want * (1 - want) / DRAWS);     /* deviations of a count */
        check(fabs(part[i] - want) <= may + 1e-9, "%s: token %d: %g of the draws, not %g", what, i, part[i], want);
    }
}

/* ---- decode.c ---------------------------------------------------------------------------------------------------------- */

static char *contents(const char *kind, const char *what, size_t *n)
{
    char path[128], *text = malloc(1 << 20);
    snprintf(path, sizeof path, "tests/ref/tokens/%s.%s", kind, what);
    FILE *f = fopen(path, "rb");
    check(f && text, "cannot read %s", path);
    *n = f && text ? fread(text, 1, (1 << 20) - 1, f) : 0;
    text[*n] = 0;
    if (f)
        fclose(f);
    return text;
}

/* As tokens spell it: with a blank in front of each part between added tokens, or of the first one */
static char *with_blanks(const char *text, size_t *n, int each)
{
    static const char end[] = "<|end|>";
    char *to = malloc(2 * *n + 2);
    size_t size = 0;
    bool begins = true;
    for (const char *at = text; at < text + *n;) {
        bool added = !strncmp(at, end, sizeof end - 1);
        if (begins && !added && (each || *at != ' '))
            to[size++] = ' ';
        begins = added && each;
        size_t k = added ? sizeof end - 1 : 1;
        memcpy(to + size, at, k);
        size += k, at += k;
    }
    *n = size;
    return to;
}

enum { BLANKS_NONE, BLANKS_FIRST, BLANKS_EACH };
static void test_decode(const char *kind, int blanks)
{
    size_t n, size, bytes, at = 0;
    char *json = contents(kind, "json", &n), *text = contents(kind, "txt", &size), *ids = contents(kind, "bin", &bytes);
    Tokenizer *t = tokenizer_read(kind, json, n);
    const char *want = blanks ? with_blanks(text, &size, blanks == BLANKS_EACH)
                     : t->blanks ? text : tokenizer_normal(t, text, &size);
    int good = 1, k;
    tokenizer_words(t);
    for (size_t i = 1024; good && i + 1 < bytes; i += 2) {
        const char *word = tokenizer_word(t, (unsigned char)ids[i] | (unsigned char)ids[i + 1] << 8, &k);
        good = word && at + (size_t)k <= size && !memcmp(want + at, word, (size_t)k);
        check(good, "%s: token %d is not what stands at byte %d", kind, (int)(i - 1024) / 2, (int)at);
        at += good ? (size_t)k : 0;
    }
    check(at == size, "%s: %d bytes of %d", kind, (int)at, (int)size);
    check(tokenizer_word(t, 60000, &k) == NULL && k == 0, "%s: a token that is none", kind);
    if (want != text)
        free((char *)(uintptr_t)want);
    free(json), free(text), free(ids);
}

/* Words of WordPiece have blanks in front, but for what continues one; zeros of a text are characters. */
static void test_pieces(void)
{
    static const char text[] = "the licences, HOW\0EVER";
    size_t n;
    int k;
    char *json = contents("bert", "json", &n), said[128] = "";
    Tokenizer *t = tokenizer_read("bert", json, n);
    Ints ids = {0};
    tokenizer_words(t);
    tokenizer_encode(t, "text", text, sizeof text - 1, &ids);
    for (int i = 0; i < ids.n; i++) {
        const char *word = tokenizer_word(t, ids.at[i], &k);
        strncat(said, word ? word : "?", (size_t)k);
    }
    check(!strcmp(said, " the licences , however"), "bert: '%s'", said);
    free(json);
}

/* ---- normal.c: Unicode Standard Annex 15, and lines of its NormalizationTest.txt ---------------------------------- */

static void test_form(Form f, const char *text, const char *want)
{
    size_t n = strlen(text);
    const char *is = normal_text(f, text, &n);
    check(n == strlen(want) && !memcmp(is, want, n), "%s becomes %.*s, not %s", text, (int)n, is, want);
}

static void test_normal(const char *text, const char *want)
{
    test_form(NFC, text, want);
}

static void test_normals(void)
{
    test_normal("", "");
    test_normal("plain", "plain");
    test_normal("e\u0301", "\u00e9");
    test_normal("xo\u0323\u0302y", "x\u1ed9y");
    test_normal("o\u0302\u0323", "\u1ed9");                                   /* marks are sorted */
    test_normal("\u1e0a\u0323", "\u1e0c\u0307");
    test_normal("\u2126\u212b\uf900", "\u03a9\u00c5\u8c48");                 /* one part */
    test_normal("\u0958", "\u0915\u093c");                                  /* never together again */
    test_normal("\u1100\u1161\u11a8", "\uac01");
    test_normal("\u1100\uac00\u11a8\u11a8", "\u1100\uac01\u11a8");
    test_normal("a\u0315\u0300\u05ae\u0300b", "\u00e0\u05ae\u0300\u0315b");
    test_normal("a\u0334\u0301", "\u00e1\u0334");
    test_normal("\u09c7\u0334\u09be", "\u09c7\u0334\u09be");                 /* a mark between two starters */
    test_form(NFD, "\u1e9b\u0323", "\u017f\u0323\u0307");
    test_form(NFKC, "\u1e9b\u0323", "\u1e69");
    test_form(NFKD, "\u1e9b\u0323", "s\u0323\u0307");
    test_form(NFKD, "\ufb03\u2461\uff21", "ffi2A");
}

int main(void)
{
    static const struct { const char *kind; int blanks; } kinds[] = {
        {"gpt2", BLANKS_NONE}, {"llama3", BLANKS_NONE}, {"qwen", BLANKS_NONE}, {"digits", BLANKS_NONE},
        {"gemma", BLANKS_NONE}, {"llama2", BLANKS_EACH}, {"mistral", BLANKS_FIRST}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        test_decode(kinds[i].kind, kinds[i].blanks);
    test_pieces();
    test_normals();
    test_rule("plain", (Taste){1, 1, 0, 7}, "0134");
    test_rule("another seed", (Taste){1, 1, 0, 8}, "0134");
    test_rule("hot", (Taste){2.5, 1, 0, 7}, "0134");
    test_rule("cold", (Taste){0.5, 1, 0, 7}, "0134");
    test_rule("top-k 3", (Taste){1, 1, 3, 7}, "013");
    test_rule("top-k 1, of equals the lower", (Taste){1, 1, 1, 7}, "1");
    test_rule("top-k above all", (Taste){1, 1, 9, 7}, "0134");
    test_rule("top-p 0.4: one is enough", (Taste){1, 0.4, 0, 7}, "1");      /* 0.4497 each of the two best */
    test_rule("top-p 0.46: one is not", (Taste){1, 0.46, 0, 7}, "13");
    test_rule("top-p 0.5 of the two that top-k leaves", (Taste){1, 0.5, 2, 7}, "1");
    test_rule("top-p 0.51 of them", (Taste){1, 0.51, 2, 7}, "13");
    test_rule("top-p 0", (Taste){1, 0, 0, 7}, "1");
    int same = 0;
    for (int i = 0; i < 100; i++) {
        check(take((Taste){0, 1, 0, 7}, i) == 1, "temperature 0 at %d", i);
        check(take((Taste){1, 1, 0, 7}, i) == take((Taste){1, 1, 0, 7}, i), "place %d twice", i);
        same += take((Taste){1, 1, 0, 7}, i) == take((Taste){1, 1, 0, 8}, i);
    }
    check(same < 70, "two seeds agree in %d of 100 places", same);
    const double bad[] = {1, NAN}, high[] = {1, INFINITY};
    Ranked room[2];
    check(choose_token(bad, 2, &(Taste){1, 1, 0, 7}, 0, room) == -1, "a score that is no number");
    check(choose_token(high, 2, &(Taste){1, 1, 0, 7}, 0, room) == -1, "an infinite score");
    printf("unit_rt_sample: %d passed, %d failed\n", passed, failed);
    return failed > 0;
}
