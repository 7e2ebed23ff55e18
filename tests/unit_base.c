/* SPDX-License-Identifier: Apache-2.0
 *
 * unit_base: gen/base/.  Hashes against the published answers, decimal conversion against libc's strtod (correctly
 * rounded in glibc and musl), the edit distance against its recursive definition, diagnostics against the text they
 * must print.
 *
 * What ends the process is run in a child.
 */
#include "plan.h"
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static int passed, failed;

static void check(bool ok, const char *what, const char *got)
{
    passed += ok;
    failed += !ok;
    if (!ok)
        fprintf(stderr, "unit_base: %s: %s\n", what, got);
}

static uint64_t draw(void)      /* splitmix64 */
{
    static uint64_t state = 1;
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

/* ---- hashes: FIPS 180-4 examples; FNV test vectors ------------------------------------------------------- */

static const char *sha(const char *text, size_t n, int repeat)
{
    static char hex[65];
    Digest s;
    digest_start(&s);
    while (repeat--)
        digest_add(&s, text, n);
    digest_end(&s, hex);
    return hex;
}

static void test_hashes(void)
{
    static const struct { const char *text; int repeat; const char *hex; } known[] = {
        { "", 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
        { "abc", 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
        { "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
          "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
        { "aaaaaaaaaa", 100000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0" },
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        check(!strcmp(sha(known[i].text, strlen(known[i].text), known[i].repeat), known[i].hex), "sha256",
              known[i].text);
    check(hash64("") == 0xcbf29ce484222325, "hash64", "empty");
    check(hash64("a") == 0xaf63dc4c8601ec8c, "hash64", "a");
    check(hash64("foobar") == 0x85944171f73967e8, "hash64", "foobar");
}

/* ---- numbers ------------------------------------------------------------------------------------------------ */

static void same_number(const char *text)
{
    double got = number_decimal(text, strlen(text)), want = strtod(text, NULL);
    check(!memcmp(&got, &want, sizeof got), "number_decimal", strf("%s is %a, not %a", text, got, want));
}

static void test_numbers(void)
{
    static const char *const hard[] = {
        "0", "0.0", "1", "10", "0.1", "1e-8", "6e-4", "9007199254740993", "1e23",
        "9007199254740992.99999999999999999999", "8.98846567431158e307", "1.7976931348623157e308",
        "1.7976931348623158e308", "1.7976931348623159e308", "1e309",
        "1e999999999999", "1e-999999999999", "2.2250738585072011e-308", "2.2250738585072014e-308", "5e-324", "4.9e-324",
        "2.4703282292062327e-324", "2.4703282292062328e-324", "2.5e-324", "1e-323", "1e-400",
        "123456789012345678901234567890",
        "0.000000000000000000000000000000000000000000000000000000001", "1.", ".5", "00001.5e+1", "5.0E-1",
    };
    for (size_t i = 0; i < sizeof hard / sizeof *hard; i++)
        same_number(hard[i]);
    for (int i = 0; i < 3000; i++) {
        char digits[48];
        int n = 1 + (int)(draw() % 40);
        for (int k = 0; k < n; k++)
            digits[k] = (char)('0' + draw() % 10);
        int places = (int)(draw() % 20), power = (int)(draw() % 700) - 350;
        same_number(strf("%.*s.%.*se%d", n, digits, places, "31415926535897932384", power));
    }
    for (int i = 0; i < 300; i++) {     /* half way between neighbouring doubles, and a little to the side */
        uint64_t m = 1ull << 53 | (draw() >> 11);
        const char *tie = strf("%llu", (unsigned long long)(2 * (m >> 1) + 1));
        same_number(tie);
        same_number(strf("%s.%0*d1", tie, 1 + (int)(draw() % 900), 0));
        same_number(strf("%.1074f", ldexp((double)(draw() >> 11), -1074 + (int)(draw() % 60))));
    }
}

/* ---- JSON text, vectors, printed strings ------------------------------------------------------------------- */

/* Wanted texts follow from the grammar of each language. */
static void test_quotes(void)
{
    static const struct { const char *(*quote)(const char *); const char *text, *want; } all[] = {
        {quote_c, "a\"b\\?\n\x7f\xc3\xa9", "\"a\\042b\\134\\077\\012\\177\\303\\251\""}, {quote_c, NULL, "0"},
        {quote_comment, "a*/b/*c//d**/\\", "a*?b/?c//d**??"}, {quote_comment, "a\nb\033\xc3\xa9", "a?b???"},
        {quote_html, "<a b=\"c\" d='&'>", "&lt;a b=&quot;c&quot; d=&#39;&amp;&#39;&gt;"},
        {quote_html, "\033\xc3\xa9\xff\xe2\x80\xae", "?&#233;??"},
        {quote_shell, "plan.transport=mpi", "plan.transport=mpi"}, {quote_shell, "", "''"},
        {quote_shell, "a'b c$d", "'a'\\''b c$d'"}, {quote_recipe, "a'$(b)\n#", "'a'\\''$$(b)?#'"},
        {quote_terminal, "a\033[31m\xc3\xa9\n", "a?[31m\xc3\xa9?"}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        check(!strcmp(all[i].quote(all[i].text), all[i].want), all[i].want, all[i].quote(all[i].text));
}

static void test_text(void)
{
    FILE *f = tmpfile();
    char got[200] = "", big[5000];
    json_text(f, "a\"b\\c\n\t\r\b\f\x01\x1f\x7f</script>\xc3\xa9");
    rewind(f);
    check(fgets(got, sizeof got, f) &&
          !strcmp(got, "\"a\\\"b\\\\c\\n\\t\\r\\b\\f\\u0001\\u001f\\u007f\\u003c/script>\xc3\xa9\""),
          "json_text", got);
    fclose(f);
    test_quotes();
    memset(big, 'x', sizeof big);
    big[sizeof big - 1] = 0;
    for (size_t n = 250; n < 262; n++)
        check(strlen(strf("%.*s", (int)n, big)) == n, "strf", "around its first buffer");
    check(!strcmp(strf("%s", big), big), "strf", "long");

    Ints v = { NULL, 0, 0 };
    for (int i = 0; i < 1000; i++)
        *PUSH(&v) = i + 1;
    bool ok = v.n == 1000;
    for (int i = 0; i < 1000; i++)
        ok = ok && v.at[i] == i + 1;
    v.n = 3;
    check(ok && *PUSH(&v) == 0 && v.n == 4, "PUSH", "elements kept, a new one is zero even where one was before");
    const char *bytes = alloc(4096);
    for (int i = 0; i < 4096; i++)
        ok = ok && !bytes[i];
    check(ok && (uintptr_t)bytes % sizeof(max_align_t) % 16 == 0, "alloc", "zeros, aligned");
}

/* ---- did you mean ---------------------------------------------------------------------------------------------- */

/* Optimal string alignment as it is defined, exponential. */
static int align(const char *a, int n, const char *b, int m)
{
    if (!n || !m)
        return n + m;
    int replace = align(a, n - 1, b, m - 1) + (tolower((unsigned char)a[n - 1]) != tolower((unsigned char)b[m - 1]));
    int one = 1 + align(a, n - 1, b, m), two = 1 + align(a, n, b, m - 1);
    int best = replace < one ? replace : one;
    best = two < best ? two : best;
    if (n > 1 && m > 1 && a[n - 1] == b[m - 2] && a[n - 2] == b[m - 1]) {
        int swap = 1 + align(a, n - 2, b, m - 2);
        best = swap < best ? swap : best;
    }
    return best;
}

static void test_nearest(void)
{
    static const struct { const char *word, *found; } known[] = {
        { "haeds", "heads" }, { "relu", "Relu" }, { "embeding", "embedding" }, { "lerning", NULL }, { "q", NULL },
        { "", NULL }, { "xheads", "heads" }, { "HEADS", "heads" },
    };
    static const char *const names[] = { "heads", "Relu", "embedding", "B" };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const char *got = nearest(known[i].word, names, 4);
        check(got == known[i].found || (got && known[i].found && !strcmp(got, known[i].found)), "nearest",
              strf("'%s' gives %s", known[i].word, got ? got : "none"));
    }
    for (int i = 0; i < 300; i++) {     /* of two random words, it names one at the least distance within its bound */
        char word[3][7];
        for (int w = 0; w < 3; w++) {
            int n = 3 + (int)(draw() % 4);
            for (int k = 0; k < n; k++)
                word[w][k] = (char)('a' + draw() % 3);
            word[w][n] = 0;
        }
        const char *list[] = { word[1], word[2] };
        int n = (int)strlen(word[0]), d[2], bound = (n + 2) / 3;
        for (int k = 0; k < 2; k++)
            d[k] = align(word[0], n, list[k], (int)strlen(list[k]));
        int best = d[1] < d[0];
        const char *want = d[best] <= bound ? list[best] : NULL;
        check(nearest(word[0], list, 2) == want, "nearest", strf("%s among %s, %s", word[0], word[1], word[2]));
    }
    char huge[5001];
    memset(huge, 'a', 5000);
    huge[5000] = 0;
    check(!nearest(huge, names, 4), "nearest", "a word of 5000 letters");
}

/* ---- diagnostics ------------------------------------------------------------------------------------------------- */

static int run(void (*body)(void), char *out, size_t size)
{
    FILE *f = tmpfile();
    fflush(NULL);
    pid_t child = fork();
    if (!child) {
        dup2(fileno(f), STDERR_FILENO);
        body();
        exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    rewind(f);
    out[fread(out, 1, size - 1, f)] = 0;
    fclose(f);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static Loc in(const char *path, const char *text, int line, int col)
{
    return (Loc){ diag_file(path, text, strlen(text)), line, col };
}

static void say_key(void)
{
    err(in("a.yaml", "dpgen: 1\n  n_haeds: 12\n", 2, 3), "did you mean 'n_heads'?", "unknown key");
}

static void say_tab(void) { err(in("a.yaml", "\t\tkey: 1", 1, 3), NULL, "tab"); }
static void say_wide(void)
{
    err(in("a.yaml", "{\xe6\x97\xa5\xe6\x9c\xac: e\xcc\x81t\xc3\xa9, bad: 1}", 1, 12), NULL, "wide");
}

static void say_option(void) { err(in("--set", "train.steps=x", 1, 13), NULL, "option"); }
static void say_end(void) { err(in("a.yaml", "abc\r\n", 1, 4), NULL, "end"); }
static void say_past(void) { err(in("a.yaml", "abc", 9, 9), NULL, "past"); }
static void say_unknown(void) { err((Loc){ 0, 0, 0 }, "this", "no place"); }
static void say_escape(void) { err(in("a.yaml", "k: \x1b[31m\xe2\x80\xae\xff", 1, 4), NULL, "a\x1b[0m\nb"); }
static void say_many(void)
{
    Loc at = in("a.yaml", "abc", 1, 1);
    for (int i = 0; i < 50; i++)
        bad(at, NULL, "number %d", i);
}
static void say_bad(void) { bad(in("a.yaml", "abc", 1, 1), NULL, "x"); bad_stop(); }
static void say_warn(void) { warn(in("a.yaml", "abc", 1, 1), "x"); bad_stop(); }
static void say_fail(void) { fail(EXIT_NOFIT, "no plan"); }
static void say_die(void) { die("broken"); }
static void say_long(void)
{
    char *text = alloc((1 << 20) + 1);
    memset(text, 'y', 1 << 20);
    err((Loc){ diag_file("a.yaml", text, 1 << 20), 1, 500000 }, NULL, "%s", text);
}

static void test_diag(void)
{
    static const struct { void (*body)(void); int status; const char *text; } known[] = {
        { say_key, 3, "a.yaml:2:3: error: unknown key\n"
                      "    2 |   n_haeds: 12\n      |   ^~~~~~~ did you mean 'n_heads'?\n" },
        { say_tab, 3, "a.yaml:1:3: error: tab\n    1 |   key: 1\n      |   ^~~\n" },
        { say_wide, 3, "a.yaml:1:12: error: wide\n    1 | {\xe6\x97\xa5\xe6\x9c\xac: e\xcc\x81t\xc3\xa9, bad: 1}\n"
                       "      |             ^~~\n" },
        { say_option, 3, "--set: error: option\n      | train.steps=x\n      |             ^\n" },
        { say_end, 3, "a.yaml:1:4: error: end\n    1 | abc\n      |    ^\n" },
        { say_past, 3, "a.yaml:9:9: error: past\n    9 | \n      | ^\n" },
        { say_unknown, 3, "dpgen: error: no place\n      | this\n" },
        { say_escape, 3, "a.yaml:1:4: error: a?[0m?b\n    1 | k: ?[31m??\n      |    ^\n" },
        { say_bad, 3, "a.yaml:1:1: error: x\n    1 | abc\n      | ^~~\n" },
        { say_warn, 0, "a.yaml:1:1: warning: x\n    1 | abc\n      | ^~~\n" },
        { say_fail, 4, "dpgen: no plan\n" },
    };
    char got[100000];
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        int status = run(known[i].body, got, sizeof got);
        check(status == known[i].status && !strcmp(got, known[i].text), "diagnostic",
              strf("status %d\n%s", status, got));
    }
    check(run(say_many, got, sizeof got) == 3 && strstr(got, "number 19") && !strstr(got, "number 20"), "20 errors",
          got);
    check(run(say_long, got, sizeof got) == 3 && strlen(got) < 2500, "a line of 1 MiB",
          strf("%zu bytes", strlen(got)));
    check(run(say_die, got, sizeof got) == 70 && strstr(got, "unit_base.c") && strstr(got, "broken"), "die", got);
}

/* What was made before a mark stays; what is made after a release is zeros again, aligned, and touches nothing else. */
static void test_memory(void)
{
    static const size_t size[] = {1, 24, 4096, 100000, (1 << 20) - 8, 1 << 20, (1 << 20) + 1, 3, 0, 500000, 700000};
    enum { SIZES = sizeof size / sizeof *size };
    unsigned char *kept = alloc(1000), *block[SIZES];
    Ints list = {0}, next = {0};
    memset(kept, 7, 1000);
    bool zeros = true, stays = true, apart = true;
    for (int turn = 0; turn < 20; turn++) {
        void *mark = mem_mark();
        for (int i = 0; i < SIZES; i++) {
            block[i] = alloc(size[(i + turn) % SIZES]);
            for (size_t k = 0; k < size[(i + turn) % SIZES]; k++)
                zeros &= block[i][k] == 0;
            memset(block[i], i + 1, size[(i + turn) % SIZES]);
            zeros &= (uintptr_t)block[i] % _Alignof(max_align_t) == 0;
        }
        for (int i = 0; i < SIZES; i++)
            for (size_t k = 0; k < size[(i + turn) % SIZES]; k++)
                apart &= block[i][k] == i + 1;
        mem_release(mark);
    }
    for (int i = 0; i < 300000; i++) {          /* alone it grows where it is, and beside another it moves */
        *PUSH(&list) = i;
        if (i > 1000)
            *PUSH(&next) = -i;
    }
    for (int i = 0; i < 300000; i++)
        stays &= list.at[i] == i && (i <= 1000 || next.at[i - 1001] == -i);
    for (int i = 0; i < 1000; i++)
        stays &= kept[i] == 7;
    check(zeros, "memory", "a block that is not zeros, or not aligned");
    check(apart, "memory", "blocks that overlap");
    check(stays, "memory", "what was made before is gone");
}

/* A room beside the first: zeros whenever it is opened, apart from what is made outside, gone with a mark or by itself. */
static void test_rooms(void)
{
    enum { LARGE = 3 << 20, SMALL = 1000, ROOMS = 400 };
    bool zeros = true, apart = true;
    for (int turn = 0; turn < ROOMS; turn++) {
        void *mark = mem_mark();
        unsigned char *before = alloc(SMALL);
        Room *room = mem_room(), *was = mem_in(room);
        unsigned char *large = alloc(LARGE), *small = alloc(SMALL);
        for (int i = 0; i < LARGE; i += 97)
            zeros &= large[i] == 0;
        for (int i = 0; i < SMALL; i++)
            zeros &= small[i] == 0 && before[i] == 0;
        memset(large, 1, LARGE);
        memset(small, 2, SMALL);
        mem_in(was);
        unsigned char *after = alloc(SMALL);
        for (int i = 0; i < SMALL; i++)
            zeros &= after[i] == 0;
        memset(after, 3, SMALL);
        memset(before, 4, SMALL);
        apart &= large[0] == 1 && large[LARGE - 1] == 1 && small[0] == 2 && small[SMALL - 1] == 2 && mem_now() == was;
        if (turn % 2)
            mem_drop(room);
        mem_release(mark);
    }
    for (int turn = 0; turn < ROOMS; turn++) {
        Room *room = mem_room(), *newer = mem_room(), *was = mem_in(newer);
        memset(alloc(LARGE), 5, LARGE);
        mem_in(was);
        mem_drop_since(room);
    }
    check(zeros, "rooms", "a block that is not zeros");
    check(apart, "rooms", "a room that is not apart from what is made outside");
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    check(used.ru_maxrss < 600 << 10, "rooms", "what is released is not freed");
}

/* ---- sizes: SI prefixes are powers of ten, those with an i of 1024 ----------------------------------------- */

static void test_sizes(void)
{
    static const struct { const char *text; double want; } known[] = {
        { "0", 0 }, { "1000000", 1e6 }, { "1e6", 1e6 }, { "1E+6", 1e6 }, { "1.5e-6TB", 1.5e6 }, { "1000kB", 1e6 },
        { "1000KB", 1e6 }, { "1 MB", 1e6 }, { "0.001GB", 1e6 }, { "976.5625KiB", 1e6 }, { "1MiB", 1048576 },
        { "3GiB", 3221225472 }, { "2TiB", 2199023255552 }, { "1.9", 1 }, { "1152921504606846976", 1152921504606846976 },
        { "18446744073709551615", -1 }, { "1e30", -1 }, { "2000000TiB", -1 }, { "-1", -1 }, { "", -1 }, { "GB", -1 },
        { "1e", -1 }, { "1e+", -1 }, { "5XB", -1 }, { "1GB/s", -1 }, { "1 2", -1 }, { "0x10", -1 },
    };
    SizeFault fault;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        check(size_read(known[i].text, size_bytes, "", "1MiB", &fault) == known[i].want, "a size", known[i].text);
    check(size_read("2GB/s", size_bytes, "/s", "1MiB/s", &fault) == 2e9, "a rate", "2GB/s");
    check(size_read("2GB", size_bytes, "/s", "1MiB/s", &fault) < 0, "a rate", "2GB");
    size_read("1e30", size_bytes, "", "1MiB", &fault);
    check(strstr(fault.why, "more than can be counted"), "why", fault.why);
}

/* A part spends from the whole, and has no more than that. */
static void test_purses(void)
{
    Purse *all = purse_new(NULL, 100), *part = purse_new(all, 60), *other = purse_new(all, 1000);
    check(purse_left(NULL) == INT64_MAX, "a purse without an end", "has one");
    check(purse_left(part) == 60 && purse_left(other) == 100, "what a part has", "not the least of both");
    purse_spend(part, 50);
    check(purse_left(part) == 10 && purse_left(all) == 50 && purse_left(other) == 50, "a part spends", "not from the whole");
    purse_spend(other, 70);
    check(purse_left(part) == 0 && purse_left(all) == 0, "more than there was", "is not 0");
    all->left = 100, all->kept = 95;
    check(purse_left(part) == 5, "what is kept for later", "is spent");
    all->kept = 0;
    check(purse_left(part) == 10, "what was kept", "is lost");
}

/* ---- lists: sorted by an insertion that knows nothing of keys ----------------------------------------------- */

typedef struct { int a, at; const char *name; } Card;
ORDER(by_all, Card, order_of(y->a, x->a), strcmp(x->name, y->name), order_of(x->at, y->at))

static bool in_front(const Card *x, const Card *y)
{
    int names = strcmp(x->name, y->name);
    return x->a != y->a ? x->a > y->a : names ? names < 0 : x->at < y->at;
}

static void test_lists(void)
{
    static const char *const names[] = {"b", "a", "ab"};
    VEC(Card) list = {0}, kept = {0};
    SORT(list.at, list.n, by_all);              /* of none */
    for (int i = 0; i < 60; i++)
        *PUSH(&list) = (Card){(int)(draw() % 4) - 2, i, names[draw() % 3]};
    for (int i = 0; i < 2; i++)
        APPEND(&kept, list);
    check(kept.n == 120 && !memcmp(kept.at, list.at, sizeof *list.at * 60) &&
          !memcmp(kept.at + 60, list.at, sizeof *list.at * 60), "APPEND", "not all elements twice");
    SORT(list.at, list.n, by_all);
    for (int i = 0; i + 1 < list.n; i++)
        check(in_front(&list.at[i], &list.at[i + 1]), "SORT", list.at[i].name);
    int sum = 0, n = 0;
    for (EACH(const Card, x, list)) {
        check(x == &list.at[n++], "EACH", "not in the order of the list");
        sum += x->at;
    }
    VEC(Card) none = {0};
    for (EACH(const Card, x, none))
        check(!x, "EACH", "an element of none");
    check(n == 60 && sum == 59 * 60 / 2, "EACH", "not each once");
    const int64_t ends[] = {INT64_MIN, -1, 0, 1, INT64_MAX};
    for (int i = 0; i < 5; i++)
        for (int k = 0; k < 5; k++)
            check(order_of(ends[i], ends[k]) == (i > k) - (i < k), "order_of", "wrong at the ends of numbers");
    Card one = {1, 2, "x"}, *copy = COPY(&one);
    check(copy != &one && copy->at == 2 && copy->name == one.name, "COPY", "is another");
    check(!strcmp(text_plain("a.b-c d\xc3\xa9", C_WORD "-"), "a_b-c_d__"), "text_plain", text_plain("a.b-c", C_WORD "-"));
}

/* A file that a trial reads stays, and is one file however often it is read. */
static void test_files(void)
{
    void *mark = mem_mark();
    int first = diag_file("plan.txt", "a plan", 6), again = diag_file("plan.txt", "a plan", 6);
    int other = diag_file("plan.txt", "a plam", 6);
    mem_release(mark);
    memset(alloc(1000), 'z', 1000);
    check(first == again && first != other, "diag_file", "a file is two, or two are one");
    check(!strcmp(diag_path((Loc){first, 1, 1}), "plan.txt"), "diag_file", "a file goes with the trial that has read it");
}

int main(void)
{
    test_lists();
    test_purses();
    test_sizes();
    test_memory();
    test_rooms();
    test_hashes();
    test_numbers();
    test_text();
    test_nearest();
    test_files();
    test_diag();
    mem_free_all();
    printf("unit_base: %d passed, %d failed\n", passed, failed);
    return failed > 0;
}
