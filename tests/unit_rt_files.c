/* SPDX-License-Identifier: Apache-2.0
 *
 * unit_rt_files: reading what nobody vouches for.  JSON: what must be accepted, what refused, any depth, any cut.
 * safetensors: a file written here by hand is read back, BF16 widened; then hostile headers, every cut, and every
 * single bit turned: refused, or the same tensors with other bytes, and never a read outside the file.
 */
#include "unit_rt.h"
#include "rt/tokens/json_part.h"
#include "rt/safetensors.h"

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static bool accepts(const char *text, size_t n)
{
    char *exact = malloc(n + 1);            /* so that a sanitizer sees a read behind the end */
    memcpy(exact, text, n);
    Json j = json_open(exact, n);
    json_skip(&j);
    bool good = json_end(&j);
    free(exact);
    return good;
}

static void test_find(void)
{
    static const char text[] = " {\"a\": [1, {\"b\": 2}], \"b\" : {\"a\":3} , \"a\": 4}";
    static const struct { const char *key, *want; } find[] = {
        {"a", "[1, {\"b\": 2}]"}, {"b", "{\"a\":3}"}, {"c", ""}, {"", ""},
    };
    char key[8];
    for (size_t i = 0; i < sizeof find / sizeof *find; i++) {
        Json j = json_open(text, sizeof text - 1);
        JsonPart p = json_find(&j, find[i].key, key, sizeof key);
        check(!j.why && p.n == strlen(find[i].want) && !memcmp(p.at, find[i].want, p.n), "%s is %.*s", find[i].key, (int)p.n,
              p.at);
    }
    Json j = json_open("{\"a\": [1, \"b\": 2}", 18);
    check(json_find(&j, "b", key, sizeof key).n == 0 && j.why, "a list that does not end has %s", "a member");
    j = json_open("{\"too long a key\": 1, \"b\": 2}", 31);
    check(json_find(&j, "b", key, sizeof key).n == 0 && j.why, "a key has room that %s", "it lacks");
}

static void test_json(void)
{
    static const char *const good[] = {"{}", "[]", " [1, -2.5e3, true, null] ", "{\"a\":{\"b\":[\"c\"]}}",
                                       "\"\\u00e9\\n\\\\\"", "\"\\u0000\"",
                                       "[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]"};
    static const char *const wrong[] = {"", "{", "}", "[1,]", "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "{a:1}", "[1 2]",
                                        "\"",
                                        "\"\\x\"", "\"\\u12\"", "\"\\ud800\"", "\"\n\"", "{} {}", "[1]]",
                                        "{\"a\":1 \"b\":2}"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        size_t n = strlen(good[i]);
        check(accepts(good[i], n), "JSON refused: %s", good[i]);
        for (size_t cut = 0; cut + 1 < n && good[i][n - 1] != ' '; cut++)
            check(!accepts(good[i], cut), "JSON accepted: %.*s", (int)cut, good[i]);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        check(!accepts(wrong[i], strlen(wrong[i])), "JSON accepted: %s", wrong[i]);
    char deep[4000];
    memset(deep, '[', sizeof deep);
    check(!accepts(deep, sizeof deep), "JSON of depth 4000 accepted");
    char text[8];
    size_t n;
    Json zero = json_open("\"a\\u0000b\"", 10), again = zero;
    check(json_bytes(&zero, text, sizeof text, &n) && n == 3 && !memcmp(text, "a\0b", 3), "a zero in a text of %zu bytes", n);
    check(!json_string(&again, text, sizeof text), "a zero in a string");
}

static void test_values(void)
{
    const char *text = "{\"k\\u00e9y\\t\": 9223372036854775799, \"b\": [0, 7]}";
    Json j = json_open(text, strlen(text));
    char key[16];
    int64_t x = -1, sum = 0;
    bool first = true;
    check(json_member(&j, &first, key, sizeof key) && strcmp(key, "k\xc3\xa9y\t") == 0, "a key is read as %s", key);
    check(json_integer(&j, &x) && x == 9223372036854775799, "a number is read as %lld", (long long)x);
    check(json_member(&j, &first, key, sizeof key), "a second member");
    for (bool one = true; json_member(&j, &one, NULL, 0) && json_integer(&j, &x);)
        sum = sum * 10 + x;
    check(sum == 7 && !json_member(&j, &first, key, sizeof key) && json_end(&j), "an array, and the end");
    static const char *const bad[] = {"9223372036854775808", "-1", "1.0", "1e3", "01", "x", ""};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        j = json_open(bad[i], strlen(bad[i]));
        check(!json_integer(&j, &x) && j.why, "the number %s is accepted", bad[i]);
    }
    j = json_open("\"12345678\"", 10);
    check(!json_string(&j, key, 8) && j.why, "a string of 8 characters fits into 8 bytes");
    j = json_open("\"1234567\"", 9);
    check(json_string(&j, key, 8) && strcmp(key, "1234567") == 0, "a string of 7 characters does not fit into 8 bytes");
}

/* ---- safetensors ------------------------------------------------------------------------------------------------- */

static char path[] = "/var/tmp/unit_rt_files.XXXXXX";

static void store(const void *data, size_t n)
{
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, 1, n, f) != n || fclose(f) != 0)
        exit(2);
}

/* Length, header, then `bytes` of data counting up. */
static size_t compose(unsigned char *to, const char *header, size_t bytes)
{
    size_t n = strlen(header);
    for (int i = 0; i < 8; i++)
        to[i] = (unsigned char)(n >> (8 * i));
    memcpy(to + 8, header, n);
    for (size_t i = 0; i < bytes; i++)
        to[8 + n + i] = (unsigned char)(i + 1);
    return 8 + n + bytes;
}

static int open_file(void *at)
{
    SafeFile f;
    (void)at;
    int status = safe_open(&f, path);
    safe_close(&f);
    return status;
}

static const char good[] = "{\"__metadata__\":{\"format\":\"pt\"},"
    "\"b\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[4,28]},"
    "\"a\":{\"shape\":[2],\"dtype\":\"BF16\",\"data_offsets\":[0,4]}}";

static void test_read(void)
{
    unsigned char file[512], bytes[28];
    float x[6] = {0};
    SafeFile f;
    StateInfo a = {.name = "a", .n = 2, .ndim = 1, .dim = {2}}, b = {.name = "b", .n = 6, .ndim = 2, .dim = {2, 3}};
    for (int i = 0; i < 28; i++)
        bytes[i] = (unsigned char)(i + 1);
    store(file, compose(file, good, 28));
    check(safe_open(&f, path) == DONE && f.tensors == 2, "a good file is refused");
    const SafeTensor *t = safe_find(&f, "b");
    check(t && safe_read(&f, t, &b, x) == DONE && memcmp(x, bytes + 4, 24) == 0, "tensor b");
    t = safe_find(&f, "a");
    uint32_t wide[2] = {0x02010000, 0x04030000};
    check(t && safe_read(&f, t, &a, x) == DONE && memcmp(x, wide, sizeof wide) == 0, "tensor a, widened");
    check(!safe_find(&f, "c") && !safe_find(&f, "ab") && !safe_find(&f, ""), "tensors that are not there");
    safe_close(&f);
}

/* A type that nobody knows keeps nobody from the tensor beside it. */
static void test_unknown(void)
{
    static const char *const types[] = {"F4", "F8_E8M0", "F8_E4M3FNUZ", "f32"};
    unsigned char file[512];
    char header[200];
    float x[2];
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        SafeFile f;
        StateInfo a = {.name = "a", .n = 2, .ndim = 1, .dim = {2}}, b = {.name = "b", .n = 2, .ndim = 1, .dim = {2}};
        snprintf(header, sizeof header, "{\"a\":{\"dtype\":\"%s\",\"shape\":[2],\"data_offsets\":[0,1]},"
                 "\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[1,9]}}", types[i]);
        store(file, compose(file, header, 9));
        check(safe_open(&f, path) == DONE && safe_read(&f, safe_find(&f, "b"), &b, x) == DONE, "beside %s", types[i]);
        check(safe_read(&f, safe_find(&f, "a"), &a, x) == STATUS_STALE, "%s is read", types[i]);
        safe_close(&f);
    }
    uint64_t n = (100u << 20) + 1;
    memcpy(file, &n, 8);
    store(file, 8);
    check(truncate(path, (off_t)n + 8) == 0, "a large file");
    refuse("a long header", open_file, NULL, STATUS_STALE, "header of 104857601 bytes is longer than the 100 MiB");
}

/* Nothing of a shape with 0, metadata of nothing, and a header as long as a word of text. */
static void test_corners(void)
{
    static const char tensor[] = "\"w\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}";
    static const char *const forms[] = {
        "{%s,\"none\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[8,8]}}",
        "{\"none\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]},%s}", "{\"__metadata__\":{},%s}", "{%s}"
    };
    static unsigned char file[0x3000];
    static char header[0x2079];
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        SafeFile f;
        snprintf(header, sizeof header, forms[i], tensor);
        if (i == 3)
            memset(header + strlen(header), ' ', 0x2078 - strlen(header));
        store(file, compose(file, header, 8));
        check(safe_open(&f, path) == DONE && safe_find(&f, "w"), "%.80s is refused", header);
        safe_close(&f);
    }
}

static void test_hostile(void)
{
    static const struct { const char *header, *says; } bad[] = {
        {"[]", "an object is expected"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}", "comma or }"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}{", "more text"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
         "\"a\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[8,8]}}",
         "two tensors of one name `a`"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
         "\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", "two tensors of one name `a`"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,8]}}", "do not agree"},
        {"{\"a\":{\"dtype\":\"F99\",\"shape\":[2],\"data_offsets\":[8,0]}}", "do not agree"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", "do not agree"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", "belong to no tensor"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,0]}}", "do not agree"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
         "\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}",
         "do not agree"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904,4],\"data_offsets\":[0,0]}}", "do not agree"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8],\"dtype\":\"F32\"}}", "repeated key"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", "without dtype, shape or data_offsets"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,2],\"data_offsets\":[0,8]}}", "too many dimensions"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4,8]}}", "two numbers"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[-2],\"data_offsets\":[0,8]}}", "whole number"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,99999999999999999999]}}", "too large"},
        {"{\"a\":{\"dtype\":\"A_TYPE_OF_SIXTEEN\",\"shape\":[2],\"data_offsets\":[0,8]}}", "too long"},
        {"{\"__metadata__\":[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]],\"a\":1}", "too deep"},
    };
    unsigned char file[512];
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        store(file, compose(file, bad[i].header, 8));
        refuse(bad[i].header, open_file, NULL, STATUS_STALE, bad[i].says);
    }
    const uint64_t lengths[] = {0, 1, 1000, sizeof good - 1 + 28 + 1, 100u << 20, (100u << 20) + 1,
                                UINT64_MAX, UINT64_MAX - 7, 1ull << 63};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        size_t n = compose(file, good, 28);
        memcpy(file, &lengths[i], 8);
        store(file, n);
        refuse("a length", open_file, NULL, STATUS_STALE, "no safetensors file");
    }
}

/* In this process, so that a sanitizer sees it; messages of the reader are not wanted here. */
static void test_damage(void)
{
    unsigned char file[512];
    size_t n = compose(file, good, 28), refused = 0;
    int err = dup(STDERR_FILENO);
    check(freopen("/dev/null", "w", stderr) != NULL, "no /dev/null");
    for (size_t cut = 0; cut < n; cut++) {
        store(file, cut);
        refused += open_file(NULL) == STATUS_STALE;
    }
    size_t header = n - 28, survived = 0;
    for (size_t bit = 0; bit < 8 * header; bit++) {
        file[bit / 8] ^= (unsigned char)(1 << bit % 8);
        store(file, n);
        survived += open_file(NULL) == DONE;
        file[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    dup2(err, STDERR_FILENO);
    close(err);
    check(refused == n, "%zu of %zu cuts are refused", refused, n);
    /* what survives are other names, metadata and white space: less than a third of the header is such */
    check(survived < 8 * header / 3, "%zu of %zu turned bits of the header go unseen", survived, 8 * header);
}

int main(void)
{
    int file = mkstemp(path);
    if (file < 0)
        return 2;
    close(file);
    test_find();
    test_json();
    test_values();
    test_read();
    test_unknown();
    test_corners();
    test_hostile();
    test_damage();
    unlink(path);
    return finish("unit_rt_files");
}
