/* SPDX-License-Identifier: Apache-2.0
 *
 * unit_rt_data: every data format from files that this test writes: what arrives is held against the content that was
 * written, order against its rules (windows inside, permutations whole, evaluation in sequence), and each broken file
 * must be refused with a status and a reason.
 */
#include <sys/stat.h>
#include "unit_rt.h"
#include "rt/data.h"

enum { T = 12, B = 3, MICRO = 4 };

static char dir[] = "/var/tmp/unit_rt_data.XXXXXX";

static const char *in_dir(const char *name)
{
    char *path = malloc(strlen(dir) + strlen(name) + 2);
    if (!path)
        exit(2);
    sprintf(path, "%s/%s", dir, name);
    return path;
}

static const char *store(const char *name, const void *data, size_t n)
{
    const char *path = in_dir(name);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, 1, n, f) != n || fclose(f) != 0)
        exit(2);
    return path;
}

/* ---- a job that only loads --------------------------------------------------------------------------------------- */

typedef struct { Job job; Run run; InputInfo input[3]; Stage st; const char *file[4], *role[3],
                *path[3]; int feeds[3]; } Set;

static void set_up(Set *s, const char *format, int roles, const char *file)
{
    memset(s, 0, sizeof *s);
    s->file[0] = file;
    s->role[0] = "tokens", s->role[1] = "next";
    s->feeds[1] = 1, s->feeds[2] = 2;
    for (int i = 0; i < 3; i++)
        s->input[i] = (InputInfo){i ? "targets" : "tokens", JOB_I32, T, 0, 0, 0, 0, NULL};
    s->job.inputs = 3;
    s->job.input = s->input;
    s->job.train.format = s->job.eval.format = format;
    s->job.train.files = s->job.eval.files = s->file;
    s->job.train.roles = s->job.eval.roles = roles;
    s->job.train.role = s->job.eval.role = s->role;
    s->job.train.input = s->job.eval.input = s->feeds;
    s->job.train.path = s->job.eval.path = s->path;
    s->run.job = &s->job;
}

static int open_set(void *at)
{
    Set *s = at;
    int status = DONE;
    s->st.loader = data_open(&s->run, &status);
    return status;
}

static Values values(int64_t step, bool eval)
{
    return (Values){.step = step, .seed = 77, .micro = eval ? 1 : MICRO, .batch = B, .eval = eval};
}

/* ---- token formats ----------------------------------------------------------------------------------------------- */

enum { TOKENS = 301 };

static int token(int i, int limit)
{
    return (int)((unsigned)i * 2654435761u >> 7) % limit;
}

/* Each sample must be T+1 neighbours of the stream, at the place that `next` proves; returns the start of sample b. */
static int start_of(const int32_t *x, const int32_t *y, int limit)
{
    for (int at = 0; at + T < TOKENS; at++) {
        bool same = true;
        for (int i = 0; same && i < T; i++)
            same = x[i] == token(at + i, limit) && y[i] == token(at + i + 1, limit);
        if (same)
            return at;
    }
    return -1;
}

static void test_windows(Set *s, const char *what, int limit)
{
    int32_t x[B * T], y[B * T], again[B * T];
    int seen[TOKENS] = {0}, different = 0, previous = -1, lost = 0;
    check(open_set(s) == DONE, "%s: does not open", what);
    for (int step = 0; s->st.loader && step < 40; step++)
        for (int mb = 0; mb < MICRO; mb++) {
            Values v = values(step, false);
            data_load(&s->st, x, &v, 0, mb, sizeof x);
            data_load(&s->st, y, &v, 1, mb, sizeof y);
            data_load(&s->st, again, &v, 0, mb, sizeof again);
            lost += memcmp(x, again, sizeof x) != 0;
            for (int b = 0; b < B; b++) {
                int at = start_of(x + b * T, y + b * T, limit);
                lost += at < 0;
                seen[at < 0 ? 0 : at] = 1;
                different += at != previous;
                previous = at;
            }
        }
    int places = 0, late = 0;
    for (int i = 0; i < TOKENS; i++)
        places += seen[i];
    for (int i = TOKENS - T - 40; i < TOKENS; i++)
        late += seen[i];
    check(late > 15, "%s: of the last 40 places %d were drawn", what, late);
    check(lost == 0, "%s: %d samples are not in the data, or not the same twice", what, lost);
    /* 480 draws from 289 places leave out 289 (1 - 1/289)^480 = 55 on average, deviation 5.6 */
    check(places > 289 - 55 - 30 && places < 289 - 55 + 30, "%s: %d of 289 places were drawn", what, places);
    check(different > 400, "%s: samples repeat", what);
}

static void test_evaluation(Set *s, const char *what, int limit)
{
    int32_t x[B * T], y[B * T];
    int windows = (TOKENS - 1) / T;
    for (int e = 0; s->st.loader && e < 2 * windows; e++) {
        Values v = values(e, true);
        data_load(&s->st, x, &v, 0, 0, sizeof x);
        data_load(&s->st, y, &v, 1, 0, sizeof y);
        for (int b = 0; b < B; b++)
            check(start_of(x + b * T, y + b * T, limit) == (e * B + b) % windows * T,
                  "%s: evaluation %d, sample %d", what, e, b);
    }
}

static void test_count(Set *s, int limit, int ignore)
{
    int32_t y[B * T];
    long want = 0;
    Values v = values(5, false);
    for (int mb = 0; mb < MICRO; mb++) {
        data_load(&s->st, y, &v, 1, mb, sizeof y);
        for (int i = 0; i < B * T; i++)
            want += y[i] != ignore;
    }
    data_count(&s->st, &v, 1, ignore, 2);
    check(v.valid[2] == want && want > 0, "counted %lld of %ld targets below %d", (long long)v.valid[2], want, limit);
}

/* Two files, so that windows cross their border; the pattern must bring them in the order of their names. */
static void test_bytes(void)
{
    unsigned char text[TOKENS];
    Set s;
    for (int i = 0; i < TOKENS; i++)
        text[i] = (unsigned char)token(i, 256);
    store("b2.txt", text + 100, TOKENS - 100);
    store("b1.txt", text, 100);
    store("c.txt", "other", 5);
    set_up(&s, "bytes", 2, in_dir("b*.txt"));
    test_windows(&s, "bytes", 256);
    test_evaluation(&s, "bytes", 256);
    test_count(&s, 256, token(3, 256));
}

static size_t llmc(unsigned char *to, uint32_t magic, uint32_t version, uint32_t count, int width, int limit)
{
    memset(to, 0, 1024);
    uint32_t head[3] = {magic, version, count};
    memcpy(to, head, sizeof head);
    for (int i = 0; i < TOKENS; i++) {
        uint32_t u = (uint32_t)token(i, limit);
        memcpy(to + 1024 + i * width, &u, (size_t)width);
    }
    return 1024 + (size_t)(TOKENS * width);
}

static void test_llmc(void)
{
    static unsigned char file[1024 + 4 * TOKENS + 1];
    Set s;
    set_up(&s, "llmc-tokens", 2, store("a.bin", file, llmc(file, 20240520, 1, TOKENS, 2, 50257)));
    test_windows(&s, "llm.c of u16", 50257);
    test_evaluation(&s, "llm.c of u16", 50257);
    size_t n = llmc(file, 20240801, 7, TOKENS, 4, 128256);
    set_up(&s, "llmc-tokens", 2, store("b.bin", file, n));
    test_windows(&s, "llm.c of u32", 128256);
    set_up(&s, "llmc-tokens", 2, store("cut.bin", file, n - 1));
    refuse("a cut llm.c file", open_set, &s, STATUS_RUN, "cut short");
    set_up(&s, "llmc-tokens", 2, store("long.bin", file, n + 1));
    refuse("a long llm.c file", open_set, &s, STATUS_RUN, "too long");
    set_up(&s, "llmc-tokens", 2, store("small.bin", file, 1023));
    refuse("a header alone", open_set, &s, STATUS_RUN, "no llm.c token file");
    set_up(&s, "llmc-tokens", 2, store("magic.bin", file, llmc(file, 20240521, 1, TOKENS, 2, 9)));
    refuse("another magic", open_set, &s, STATUS_RUN, "magic 20240521");
}

/* ---- Megatron: sequences out of order in the .bin ---------------------------------------------------------------- */

typedef struct { unsigned char at[4096]; size_t n; } Blob;

static void add(Blob *b, uint64_t x, int bytes)
{
    for (int i = 0; i < bytes; i++)
        b->at[b->n++] = (unsigned char)(x >> (8 * i));
}

/* Sequences of 50 tokens; sequence i lies at place (i * 3) % 6 of the file, the last is one token. */
static void megatron(Blob *idx, Blob *bin, int code, int width)
{
    static const int place[] = {0, 3, 1, 4, 2, 5};
    memset(idx, 0, sizeof *idx);
    memset(bin, 0, sizeof *bin);
    memcpy(idx->at, "MMIDIDX\0\0", 9);
    idx->n = 9;
    add(idx, 1, 8), add(idx, (uint64_t)code, 1), add(idx, 7, 8), add(idx, 2, 8);
    for (int i = 0; i < 7; i++)
        add(idx, i < 6 ? 50 : 1, 4);
    for (int i = 0; i < 7; i++)
        add(idx, (uint64_t)((i < 6 ? place[i] * 50 : 300) * width), 8);
    add(idx, 0, 8), add(idx, 7, 8);
    for (int at = 0; at < 6; at++)
        for (int i = 0; i < 6; i++)
            for (int k = 0; place[i] == at && k < 50; k++)
                add(bin, (uint64_t)token(i * 50 + k, 60000), width);
    add(bin, (uint64_t)token(300, 60000), width);
}

static void megatron_case(const char *what, const Blob *idx, const Blob *bin, const char *refused)
{
    Set s;
    store("m.idx", idx->at, idx->n);
    set_up(&s, "megatron", 2, store("m.bin", bin->at, bin->n));
    if (refused)
        refuse(what, open_set, &s, STATUS_RUN, refused);
    else
        test_windows(&s, what, 60000);
}

static void test_megatron(void)
{
    static Blob idx, bin, bad;
    megatron(&idx, &bin, 4, 4);
    megatron_case("megatron of i32", &idx, &bin, NULL);
    megatron(&idx, &bin, 8, 2);
    megatron_case("megatron of u16", &idx, &bin, NULL);
    for (size_t cut = 0; cut < idx.n; cut += 13) {
        bad = idx;
        bad.n = cut;
        megatron_case("a cut index", &bad, &bin, cut < 34 ? "no Megatron index" : "cut short");
    }
    bad = idx;
    bad.at[17] = 7;
    megatron_case("floats", &bad, &bin, "not an integer");
    bad = idx;
    bad.at[34 + 7 * 4 + 6] = 0x7f;
    megatron_case("an offset beyond the file", &bad, &bin, "sequence 0");
    bad = idx;
    bad.at[37] = 0xff;
    megatron_case("a negative length", &bad, &bin, "sequence 0");
    bad = idx;
    memset(bad.at + 18, 0xff, 8);
    megatron_case("absurdly many sequences", &bad, &bin, "cut short");
    Set s;
    set_up(&s, "megatron", 2, in_dir("m.idx"));
    refuse("the index as data", open_set, &s, STATUS_RUN, "name the .bin");
}

/* ---- npy --------------------------------------------------------------------------------------------------------- */

enum { ROWS = 23 };

static size_t npy(unsigned char *to, int version, const char *dictionary, const void *data, size_t n)
{
    size_t length = strlen(dictionary), head = version == 1 ? 10 : 12;
    memcpy(to, "\x93NUMPY", 6);
    to[6] = (unsigned char)version, to[7] = 0;
    for (size_t i = 8; i < head; i++)
        to[i] = (unsigned char)(length >> (8 * (i - 8)));
    memcpy(to + head, dictionary, length);
    memcpy(to + head + length, data, n);
    return head + length + n;
}

static void npy_set(Set *s)
{
    set_up(s, "npy", 2, NULL);
    s->input[1] = (InputInfo){"x", JOB_F32, T, 0, 0, 0, 0, NULL};
    s->path[0] = in_dir("i.npy"), s->path[1] = in_dir("f.npy");
}

/* Every pass over the rows shows each once, and the arrays stay side by side. */
static void test_rows(Set *s)
{
    int32_t a[B * T];
    float f[B * T];
    int seen[ROWS] = {0}, moved = 0, wrong = 0;
    for (int n = 0; n < 10 * ROWS; n++) {
        int b = n % B, mb = n / B % MICRO;
        Values v = values(n / B / MICRO, false);
        data_load(&s->st, a, &v, 0, mb, sizeof a);
        data_load(&s->st, f, &v, 1, mb, sizeof f);
        int row = a[b * T] / T;
        for (int i = 0; i < T; i++)
            wrong += a[b * T + i] != row * T + i || f[b * T + i] != (float)(row * T + i) / 3;
        wrong += row < 0 || row >= ROWS || seen[row]++ != n / ROWS;
        moved += row != n % ROWS;
    }
    check(wrong == 0, "npy: %d elements or rows are wrong", wrong);
    check(moved > 5 * ROWS, "npy: rows come in their own order");
    for (int e = 0; e < ROWS; e++) {
        Values v = values(e, true);
        data_load(&s->st, a, &v, 0, 0, sizeof a);
        check(a[T] == (e * B + 1) % ROWS * T, "npy: evaluation %d", e);
    }
}

/* The rows of test_rows() in every type of whole numbers that has room for them. */
static void test_widths(Set *s)
{
    static const struct { const char *type; int bytes; int64_t sign; } types[] = {
        {"|u1", 1, 1}, {"|i1", 1, -1}, {"<u2", 2, 1}, {"<i2", 2, -1}, {"<u4", 4, 1}, {"<i4", 4, -1}, {"<i8", 8, -1}
    };
    static unsigned char data[ROWS * T * 8], file[8192];
    char dictionary[100];
    int32_t a[B * T];
    for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
        int n = types[k].bytes, wrong = 0, most = n == 1 ? 100 : ROWS * T;
        for (int i = 0; i < ROWS * T; i++)
            for (int b = 0; b < n; b++)
                data[i * n + b] = (unsigned char)((uint64_t)(types[k].sign * (i % most)) >> (8 * b));
        snprintf(dictionary, sizeof dictionary, "{'descr': '%s', 'fortran_order': False, 'shape': (23, 12), }", types[k].type);
        store("i.npy", file, npy(file, 1, dictionary, data, (size_t)(ROWS * T * n)));
        check(open_set(s) == DONE, "%s does not open", types[k].type);
        for (int e = 0; e < ROWS / B; e++) {
            Values v = values(e, true);
            data_load(&s->st, a, &v, 0, 0, sizeof a);
            for (int i = 0; i < B * T; i++)
                wrong += a[i] != types[k].sign * ((e * B * T + i) % most);
        }
        check(wrong == 0, "%s: %d numbers are wrong", types[k].type, wrong);
    }
}

static void test_npy(void)
{
    static const struct { const char *what, *dictionary, *says; int rows; } bad[] = {
        {"another order", "{'descr': '<i4', 'fortran_order': True, 'shape': (23, 12), }", "is in Fortran order", 0},
        {"big endian", "{'descr': '>i4', 'fortran_order': False, 'shape': (23, 12), }", "elements of type '>i4' are not", 0},
        {"doubles", "{'descr': '<f8', 'fortran_order': False, 'shape': (23, 12), }", "elements of type '<f8' are not", 0},
        {"a record", "{'descr': [('a', '<i4')], 'fortran_order': False, 'shape': (23, 12), }", "elements of type [('a'", 0},
        {"no shape", "{'descr': '<i4', 'fortran_order': False, }", "not understood", 0},
        {"a key twice", "{'descr': '<i4', 'descr': '<i4', 'fortran_order': False, 'shape': (23, 12), }",
         "not understood", 0},
        {"no end", "{'descr': '<i4', 'fortran_order': False, 'shape': (23, 12", "not understood", 0},
        {"too many rows", "{'descr': '<i4', 'fortran_order': False, 'shape': (24, 12), }", "cut short", 0},
        {"absurd rows", "{'descr': '<i4', 'fortran_order': False, 'shape': (4611686018427387904, 12), }", "cut short", 0},
        {"an overflow", "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 9223372036854775807, 12), }",
         "not understood", 0},
        {"empty rows", "{'descr': '<i4', 'fortran_order': False, 'shape': (23, 0), }", "cut short", 0},
        {"another width", "{'descr': '<i4', 'fortran_order': False, 'shape': (46, 6), }", "wants 12 integers", 0},
        {"floats", "{'descr': '<f4', 'fortran_order': False, 'shape': (23, 12), }", "wants 12 integers", 0},
        {"bytes behind", "{'descr': '<i4', 'fortran_order': False, 'shape': (22, 12), }", "48 bytes stand behind its", 0},
        {"no row", "{'descr': '<i4', 'fortran_order': False, 'shape': (0, 12), }", "has no rows", -ROWS},
        {"other rows", "{'descr': '<i4', 'fortran_order': False, 'shape': (22, 12), }", "same number", -1},
    };
    static unsigned char file[8192];
    static int32_t ints[ROWS * T];
    static float floats[ROWS * T];
    Set s;
    for (int i = 0; i < ROWS * T; i++)
        ints[i] = i, floats[i] = (float)i / 3;
    const char *good = "{'descr': '<i4', 'fortran_order': False, 'shape': (23, 3, 4), }         \n";
    store("f.npy", file, npy(file, 2, "{'shape': (23, 12,), 'fortran_order': False, 'descr': '<f4'}", floats,
                             sizeof floats));
    size_t n = npy(file, 1, good, ints, sizeof ints);
    store("i.npy", file, n);
    npy_set(&s);
    check(open_set(&s) == DONE, "npy does not open");
    test_rows(&s);
    test_widths(&s);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        store("i.npy", file, npy(file, 1, bad[i].dictionary, ints, (size_t)(ROWS + bad[i].rows) * T * sizeof *ints));
        refuse(bad[i].what, open_set, &s, STATUS_RUN, bad[i].says);
    }
    n = npy(file, 1, good, ints, sizeof ints);
    for (size_t cut = 0; cut < n; cut += 7) {
        store("i.npy", file, cut);
        refuse("a cut npy file", open_set, &s, STATUS_RUN, "data: ");
    }
}

/* ---- pictures ---------------------------------------------------------------------------------------------------- */

enum { PIXELS = 32 * 32, PICTURES = 5 };

/* Byte of record r, pixel p, colour c: no two neighbours are equal. */
static unsigned char shade(int r, int p, int c) { return (unsigned char)(r * 31 + p * 7 + c * 101); }

/* n records from number `first` on. */
static size_t cifar(unsigned char *to, int labels, int first, int n)
{
    unsigned char *at = to;
    for (int r = first; r < first + n; r++) {
        for (int i = 0; i < labels; i++)
            *at++ = (unsigned char)(r + 10 * (labels - 1 - i));
        for (int c = 0; c < 3; c++)
            for (int p = 0; p < PIXELS; p++)
                *at++ = shade(r, p, c);
    }
    return (size_t)(at - to);
}

static const float mean[] = {0.5f, 0.25f, 0.75f}, deviation[] = {0.25f, 0.5f, 0.125f};
static const ByteInfo colours = {3, mean, deviation}, one = {1, mean, deviation};

static void cifar_set(Set *s, const char *format, int roles)
{
    set_up(s, format, roles, in_dir("c?.bin"));
    s->input[0] = (InputInfo){"image", JOB_F32, 3 * PIXELS, 0, 0, 0, 0, &colours};
    s->input[1] = (InputInfo){"fine", JOB_I32, 1, 0, 5, 0, 0, NULL};
    s->input[2] = (InputInfo){"coarse", JOB_I32, 1, 10, 15, 0, 0, NULL};
    s->role[0] = "image", s->role[1] = "labels", s->role[2] = "coarse";
    s->job.train.sequential = 1;
}

/* Pixel by pixel, in the order of the files, across their border. */
static void test_cifar(void)
{
    static unsigned char file[2 * (3 * PIXELS + 2) * PICTURES];
    static float x[B * 3 * PIXELS];
    for (int labels = 1; labels < 3; labels++) {
        Set s;
        int wrong = 0;
        int32_t id[B], coarse[B];
        store("c1.bin", file, cifar(file, labels, 0, 2));
        store("c2.bin", file, cifar(file, labels, 2, 3));
        cifar_set(&s, labels > 1 ? "cifar100" : "cifar10", 1 + labels);
        check(open_set(&s) == DONE, "cifar with %d labels does not open", labels);
        for (int n = 0; n < 2 * PICTURES; n++) {
            Values v = values(n / B / MICRO, false);
            int b = n % B, mb = n / B % MICRO, r = n % PICTURES;
            data_load(&s.st, x, &v, 0, mb, sizeof x);
            data_load(&s.st, id, &v, 1, mb, sizeof id);
            if (labels > 1)
                data_load(&s.st, coarse, &v, 2, mb, sizeof coarse);
            for (int i = 0; i < 3 * PIXELS; i++) {
                float want = ((float)shade(r, i / 3, i % 3) / 255.0f - mean[i % 3]) / deviation[i % 3];
                wrong += x[b * 3 * PIXELS + i] != want;
            }
            wrong += id[b] != r || (labels > 1 && coarse[b] != r + 10);
        }
        check(wrong == 0, "cifar with %d labels: %d numbers are wrong", labels, wrong);
        s.input[0].per = 28 * 28 * 3;
        refuse("pictures of another size", open_set, &s, STATUS_RUN,
               "rows of 3072 bytes; input `image` wants 2352 bytes.  Take another file, or generate");
        s.input[0].per = 3 * PIXELS, s.input[0].bytes = NULL;
        refuse("floats of bytes", open_set, &s, STATUS_RUN, "rows of 3072 bytes; input `image` wants 3072 floats");
        s.input[0].bytes = &one;
        refuse("grey pictures", open_set, &s, STATUS_RUN, "rows of 3072 bytes");
        store("c2.bin", file, cifar(file, 3 - labels, 2, 3));
        refuse("the other set", open_set, &s, STATUS_RUN, "are not whole records");
        store("c2.bin", file, 0);
        refuse("an empty file", open_set, &s, STATUS_RUN, "are not whole records");
    }
    Set s;
    store("c1.bin", file, cifar(file, 1, 0, 2));
    store("c2.bin", file, cifar(file, 1, 2, 3));
    cifar_set(&s, "cifar10", 3);
    refuse("coarse labels of CIFAR-10", open_set, &s, STATUS_RUN, "has no `coarse`");
}

static size_t idx(unsigned char *to, int type, int dims, const unsigned *dim, int n)
{
    to[0] = to[1] = 0, to[2] = (unsigned char)type, to[3] = (unsigned char)dims;
    for (int i = 0; i < dims; i++)
        for (int k = 0; k < 4; k++)
            to[4 + 4 * i + k] = (unsigned char)(dim[i] >> (24 - 8 * k));
    for (int i = 0; i < n; i++)
        to[4 + 4 * dims + i] = (unsigned char)(i * 3);
    return (size_t)(4 + 4 * dims + n);
}

static void test_idx(void)
{
    static unsigned char file[4096], packed[] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0};
    static const struct { const char *what; int type, dims; unsigned dim[4]; int n; const char *says; } bad[] = {
        {"floats", 13, 3, {7, 4, 3}, 84, "no idx file of bytes"}, {"no dimension", 8, 0, {0}, 84, "no idx file of bytes"},
        {"a row less", 8, 3, {6, 4, 3}, 84, "cut short or too long"}, {"a row more", 8, 3, {8, 4, 3}, 84, "or too long"},
        {"empty rows", 8, 3, {7, 0, 3}, 84, "cut short"}, {"another size", 8, 3, {12, 7, 1}, 84, "wants 12 bytes"},
        {"absurd rows", 8, 3, {7, 0xffffffff, 0xffffffff}, 84, "cut short"}, {"other rows", 8, 3, {6, 4, 3}, 72, "same number"},
    };
    Set s;
    float x[B * T];
    float colour[B * T];
    int32_t id[B];
    int wrong = 0;
    set_up(&s, "idx", 3, NULL);
    s.input[0] = (InputInfo){"image", JOB_F32, T, 0, 0, 0, 0, &one};
    s.input[1] = (InputInfo){"digit", JOB_I32, 1, 0, 19, 0, 0, NULL};
    s.input[2] = (InputInfo){"colour", JOB_F32, T, 0, 0, 0, 0, &colours};
    s.path[0] = s.path[2] = in_dir("images"), s.path[1] = in_dir("labels");
    s.job.train.sequential = 1;
    store("labels", file, idx(file, 8, 1, (const unsigned[]){7}, 7));
    store("images", file, idx(file, 8, 3, (const unsigned[]){7, 4, 3}, 84));
    check(open_set(&s) == DONE, "idx does not open");
    for (int n = 0; n < 14; n++) {
        Values v = values(n / B / MICRO, false);
        data_load(&s.st, x, &v, 0, n / B % MICRO, sizeof x);
        data_load(&s.st, id, &v, 1, n / B % MICRO, sizeof id);
        data_load(&s.st, colour, &v, 2, n / B % MICRO, sizeof colour);
        for (int i = 0; i < T; i++) {
            float byte = (float)(unsigned char)((n % 7 * T + i) * 3) / 255.0f;
            wrong += x[n % B * T + i] != (byte - 0.5f) / 0.25f;
            wrong += colour[n % B * T + i] != (byte - mean[i % 3]) / deviation[i % 3];
        }
        wrong += id[n % B] != n % 7 * 3;
    }
    check(wrong == 0, "idx: %d numbers are wrong", wrong);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        store("images", file, idx(file, bad[i].type, bad[i].dims, bad[i].dim, bad[i].n));
        refuse(bad[i].what, open_set, &s, STATUS_RUN, bad[i].says);
    }
    store("images", packed, sizeof packed);
    refuse("a packed file", open_set, &s, STATUS_RUN, "gunzip it first");
    size_t n = idx(file, 8, 3, (const unsigned[]){7, 4, 3}, 84);
    for (size_t cut = 0; cut < n; cut += 5) {
        store("images", file, cut);
        refuse("a cut idx file", open_set, &s, STATUS_RUN, "data: ");
    }
}

/* ---- what is refused in any format ------------------------------------------------------------------------------- */

static int load_all(void *at)
{
    Set *s = at;
    int32_t x[B * T];
    int status = open_set(s);
    for (int e = 0; status == DONE && e < 100; e++) {
        Values v = values(e, false);
        data_load(&s->st, x, &v, 0, 0, sizeof x);
    }
    return status;
}

static int load_wrong_bytes(void *at)
{
    Set *s = at;
    int32_t x[B * T + 1];
    Values v = values(0, false);
    int status = open_set(s);
    data_load(&s->st, x, &v, 0, 0, sizeof x);
    return status;
}

static void test_refused(void)
{
    Set s;
    char text[TOKENS];
    memset(text, 'a', sizeof text);
    text[200] = 'z';
    set_up(&s, "bytes", 2, store("range.txt", text, sizeof text));
    s.input[0].hi = 'z';
    refuse("an id out of range", load_all, &s, STATUS_RUN, "range.txt: element 200 is 122, outside [0, 122) of input "
           "`tokens`");
    s.input[0].ignores = 1;
    s.input[0].ignore = 'z';
    check(load_all(&s) == DONE, "a value outside the range that is ignored is refused");
    s.input[0].ignore = 'y';
    refuse("another value outside the range", load_all, &s, STATUS_RUN, "element 200 is 122");
    refuse("other bytes", load_wrong_bytes, &s, STATUS_RUN, "is loaded with 148 bytes");
    set_up(&s, "bytes", 2, store("short.txt", text, T));
    refuse("short data", open_set, &s, STATUS_RUN, "hold 12 tokens; a sample needs 13");
    set_up(&s, "bytes", 2, in_dir("nothing*"));
    refuse("no file", open_set, &s, STATUS_RUN, "no file matches");
    set_up(&s, "bytes", 2, dir);
    refuse("a directory", open_set, &s, STATUS_RUN, "not a plain file");
    set_up(&s, "parquet", 2, in_dir("short.txt"));
    refuse("an unknown format", open_set, &s, STATUS_RUN, "has no reader");
}

int main(void)
{
    if (!mkdtemp(dir))
        return 2;
    test_bytes();
    test_llmc();
    test_megatron();
    test_npy();
    test_cifar();
    test_idx();
    test_refused();
    char command[300];
    snprintf(command, sizeof command, "rm -rf %s", dir);
    check(system(command) == 0, "cannot remove %s", dir);
    return finish("unit_rt_data");
}
