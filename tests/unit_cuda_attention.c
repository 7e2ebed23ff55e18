/* SPDX-License-Identifier: Apache-2.0
 *
 * unit_cuda_attention.c: rt/op/cuda/attention.c and attention_graph.c over the double of cuDNN, against the definition in
 * double.
 *
 * What the graphs compute, where results go, how much memory they use, and which calls go to our own kernels instead.  An
 * element may be wrong by what rounds on the way: probabilities and dS to bf16 before they enter a sum, the result to bf16.
 * Build once with and once without -DREAL_BF16: f32 is all our own, and links neither attention_graph.c nor cuDNN.  The
 * suite is tests/cuda_host.sh.  With -DON_GPU it runs with the real library: tests/gpu/visit.sh.
 */
#include "tests/gpu/shared.h"
#include "rt/op/cuda/attention.h"
#include "rt/op/cuda/attention_own.h"
#include "rt/op/cuda/start.h"
#include "rt/real.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = GPU ? 1 << 20 : 1 << 14, WORKSPACE = GPU ? 1 << 20 : 4096, GUARD = 64 };
enum { F32 = sizeof(real) == sizeof(float), ROUGH = GPU ? 4 : 1 };
#ifndef REPEATS
#define REPEATS (GPU ? 20 : 2)
#define FIRST 0                 /* of the cases */
#endif
static int passed, failed;
static unsigned char *workspace;

/* ---- what is leaned on ------------------------------------------------------------------------------------------- */
/* Our own kernels: what they were given last. */
static struct { int calls; const void *y, *q, *k, *v, *dq, *dv, *bias, *mask, *delta; long qs, ks, width; float drop; } own;

void attention_own_forward(Stage *s, real *y, float *lse, const real *q, const real *k, const real *v, long qs, long ks,
                           const real *bias, const int32_t *mask, const Values *vals, int mb, long batch, long heads,
                           long heads_of_keys, long query, long key, long width, long causal, float scale, float drop,
                           int64_t site)
{
    (void)heads_of_keys, (void)s, (void)lse, (void)vals, (void)mb, (void)batch, (void)heads, (void)query, (void)key;
    (void)causal, (void)scale, (void)site;
    int calls = own.calls + 1;
    memset(&own, 0, sizeof own);
    own.calls = calls, own.y = y, own.q = q, own.k = k, own.v = v, own.qs = qs, own.ks = ks;
    own.bias = bias, own.mask = mask, own.width = width, own.drop = drop;
}

void attention_own_backward(Stage *s, real *dq, real *dk, real *dv, real *dbias, const real *dy, const real *y,
                            const real *q, const real *k, const real *v, long qs, long ks, const real *bias,
                            const int32_t *mask, const float *lse, float *delta, const Values *vals, int mb, long batch,
                            long heads, long heads_of_keys, long query, long key, long width, long causal, float scale,
                            float drop, int64_t site)
{
    (void)dk, (void)dbias, (void)dy;
    attention_own_forward(s, NULL, NULL, q, k, v, qs, ks, bias, mask, vals, mb, batch, heads, heads_of_keys, query, key, width,
                          causal, scale, drop, site);
    own.y = y, own.dq = dq, own.dv = dv, own.delta = lse ? delta : NULL;
}

void attention_own_group(Stage *s, real *dk, real *dv, const real *k, const real *v, long n, long share, long width)
{
    (void)s;
    settle();
    for (long i = 0; i < n * width; i++) {
        float sum[2] = { 0 };
        for (long h = 0; h < share; h++) {
            sum[0] += get(k, (i / width * share + h) * width + i % width);
            sum[1] += get(v, (i / width * share + h) * width + i % width);
        }
        put(dk, i, sum[0]), put(dv, i, sum[1]);
    }
}

/* ---- comparison -------------------------------------------------------------------------------------------------- */
static void check(bool ok, const char *what, double by)
{
    ok ? passed++ : failed++;
    if (!ok)
        fprintf(stderr, "%s: %g\n", what, by);
}

static void fill(real *x, long n)
{
    static uint64_t state = 1;
    for (long i = 0; i < n; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        put(x, i, (float)((double)(state >> 40) * 0x1p-23 - 1));
    }
}

/* A sum and the sum of its magnitudes. */
typedef struct { double x, size; } Sum;
static void add(Sum *s, double x) { s->x += x, s->size += fabs(x); }
static double worst;
static void compare(const real *got, Sum want)
{
    double by = fabs((double)get(got, 0) - want.x) / (ROUGH * 0x1p-8 * (want.size + fabs(want.x)) + 1e-5);
    worst = by > worst || by != by ? by : worst;
}

/* ---- the definition ---------------------------------------------------------------------------------------------- */
enum { ROWS = GPU ? 264 : 16, WIDEST = 128 };   /* at most */
typedef struct { long batch, heads, own, query, key, width, causal, packed; } Case;
static real *q_, *k_, *v_, *y, *dy, *dq_, *dk_, *dv_;
static float *lse;
static unsigned char *tmp;
static size_t room;             /* of tmp: what the largest case needs, and a page behind it */
enum { BEHIND = 4096 };
static bool spare, full;        /* cases that use less than is planned for an unlucky address, and all of it */
static const float scale = 0.375f;

static long row, thin;              /* elements of a row of q, of a row of k and v, and of a row of y */
static long wide;
static const real *q, *k, *v;
static real *dq, *dk, *dv;

static long at(const Case *c, long b, long head, long r, long rows, long step)
{
    return (b * rows + r) * step + head * c->width;
}

static long own_head(const Case *c, long head) { return head / (c->heads / c->own); }

static double dot(const real *a, const real *b, long n)
{
    double s = 0;
    for (long i = 0; i < n; i++)
        s += (double)get(a, i) * (double)get(b, i);
    return s;
}

/* Scores of one head, from the operands. */
static void scores(double s[ROWS][ROWS], const Case *c, long b, long head)
{
    for (long i = 0; i < c->query; i++)
        for (long j = 0; j < c->key; j++) {
            double x = dot(q + at(c, b, head, i, c->query, row), k + at(c, b, own_head(c, head), j, c->key, thin), c->width);
            s[i][j] = c->causal && j > i ? -INFINITY : x * (double)scale;
        }
}

static void check_forward(const Case *c, long b, long head)
{
    double s[ROWS][ROWS];
    scores(s, c, b, head);
    for (long i = 0; i < c->query; i++) {
        double sum = 0;
        for (long j = 0; j < c->key; j++)
            sum += exp(s[i][j]);
        double by = fabs((double)lse[(b * c->heads + head) * c->query + i] - log(sum));
        worst = by > ROUGH * 1e-5 || by != by ? INFINITY : worst;
        for (long l = 0; l < c->width; l++) {
            Sum want = { 0 };
            for (long j = 0; j < c->key; j++)
                add(&want, exp(s[i][j]) / sum * (double)get(v, at(c, b, own_head(c, head), j, c->key, thin) + l));
            compare(y + at(c, b, head, i, c->query, wide) + l, want);
        }
    }
}

/* From y and lse as they were given.  Query heads of one head of keys come one after the other: their sums are compared behind
 * the last. */
static void check_backward(const Case *c, long b, long head)
{
    double p[ROWS][ROWS], ds[ROWS][ROWS];
    static Sum of_k[ROWS][WIDEST], of_v[ROWS][WIDEST];
    long share = c->heads / c->own;
    if (head % share == 0)
        memset(of_k, 0, sizeof of_k), memset(of_v, 0, sizeof of_v);
    scores(p, c, b, head);
    for (long i = 0; i < c->query; i++) {
        long to = at(c, b, head, i, c->query, wide);
        double delta = dot(dy + to, y + to, c->width);
        for (long j = 0; j < c->key; j++) {
            p[i][j] = exp(p[i][j] - (double)lse[(b * c->heads + head) * c->query + i]);
            double dp = dot(dy + to, v + at(c, b, own_head(c, head), j, c->key, thin), c->width);
            ds[i][j] = (double)scale * p[i][j] * (dp - delta);
        }
    }
    for (long l = 0; l < c->width; l++) {
        for (long j = 0; j < c->key; j++) {
            for (long i = 0; i < c->query; i++) {
                add(&of_k[j][l], ds[i][j] * (double)get(q, at(c, b, head, i, c->query, row) + l));
                add(&of_v[j][l], p[i][j] * (double)get(dy, at(c, b, head, i, c->query, wide) + l));
            }
            if ((head + 1) % share == 0) {
                compare(dk + at(c, b, own_head(c, head), j, c->key, thin) + l, of_k[j][l]);
                compare(dv + at(c, b, own_head(c, head), j, c->key, thin) + l, of_v[j][l]);
            }
        }
        for (long i = 0; i < c->query; i++) {
            Sum to_q = { 0 };
            for (long j = 0; j < c->key; j++)
                add(&to_q, ds[i][j] * (double)get(k, at(c, b, own_head(c, head), j, c->key, thin) + l));
            compare(dq + at(c, b, head, i, c->query, row) + l, to_q);
        }
    }
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */
static void lay_out(const Case *c)
{
    settle();
    wide = c->heads * c->width, row = wide * (c->packed ? 3 : 1), thin = c->own * c->width * (c->packed ? 3 : 1);
    q = q_, k = c->packed ? q_ + wide : k_, v = c->packed ? q_ + 2 * wide : v_;
    dq = dq_, dk = c->packed ? dq_ + wide : dk_, dv = c->packed ? dq_ + 2 * wide : dv_;
    if (c->batch * c->query * row > MOST || c->batch * c->key * thin > MOST || c->batch * c->query * wide > MOST ||
        c->batch * c->heads * c->query > MOST || c->query > ROWS || c->key > ROWS || c->width > WIDEST)
        abort();
    fill(q_, c->batch * c->query * row), fill(k_, c->batch * c->key * thin), fill(v_, c->batch * c->key * thin);
    fill(dy, c->batch * c->query * wide);
}

/* What a plan opens: what the library takes. */
static void prepare(const Case *c)
{
    Shape s = { .width = c->width };
    st->handle[0] = st->handle[1] = NULL;
    if (!attention_fits(&s))
        return;
#ifdef REAL_BF16
    if (c->packed) {
        open_attention_packed_forward(st, 0, c->batch, c->heads, c->query, c->width, c->causal);
        open_attention_packed_backward(st, 1, c->batch, c->heads, c->query, c->width, c->causal);
    } else if (c->own < c->heads) {
        open_attention_shared_forward(st, 0, c->batch, c->heads, c->own, c->query, c->key, c->width, c->causal);
        open_attention_shared_backward(st, 1, c->batch, c->heads, c->own, c->query, c->key, c->width, c->causal);
    } else {
        open_attention_forward(st, 0, c->batch, c->heads, c->query, c->key, c->width, c->causal);
        open_attention_backward(st, 1, c->batch, c->heads, c->query, c->key, c->width, c->causal);
    }
#endif
}

static void forward(const Case *c, const real *bias, const int32_t *mask, float drop)
{
    if (c->packed)
        attention_packed_forward(st, y, lse, q, bias, mask, NULL, 0, 0, c->batch, c->heads, c->query, c->width, c->causal,
                                 scale, drop, 1);
    else if (c->own < c->heads)
        attention_shared_forward(st, y, lse, q, k, v, bias, mask, NULL, 0, 0, c->batch, c->heads, c->own, c->query, c->key,
                                 c->width, c->causal, scale, drop, 1);
    else
        attention_forward(st, y, lse, q, k, v, bias, mask, NULL, 0, 0, c->batch, c->heads, c->query, c->key, c->width,
                          c->causal, scale, drop, 1);
}

static void backward(const Case *c, real *to_q, const real *bias, const int32_t *mask, float drop)
{
    if (c->packed)
        attention_packed_backward(st, to_q, NULL, dy, y, q, bias, mask, lse, tmp, NULL, 0, 1, c->batch, c->heads, c->query,
                                  c->width, c->causal, scale, drop, 1);
    else if (c->own < c->heads)
        attention_shared_backward(st, to_q, dk, dv, NULL, dy, y, q, k, v, bias, mask, lse, tmp, NULL, 0, 1, c->batch, c->heads,
                                  c->own, c->query, c->key, c->width, c->causal, scale, drop, 1);
    else
        attention_backward(st, to_q, dk, dv, NULL, dy, y, q, k, v, bias, mask, lse, tmp, NULL, 0, 1, c->batch, c->heads,
                           c->query, c->key, c->width, c->causal, scale, drop, 1);
}

/* The same bits, however often. */
static void again(const Case *c)
{
    const real *all[] = { y, dq_, dk_, dv_ };
    static real first[4][MOST];
    bool same = true;
    for (int i = 0; i < 4; i++)
        memcpy(first[i], all[i], sizeof *first);
    for (int n = 0; n < REPEATS; n++) {
        forward(c, NULL, NULL, 0);
        backward(c, dq, NULL, NULL, 0);
        settle();
        for (int i = 0; i < 4; i++)
            same &= !memcmp(first[i], all[i], sizeof *first);
    }
    check(same, "other bits when repeated", REPEATS);
}

static Shape shape_of(const Case *c)
{
    return attention_shape(c->batch, c->heads, c->own, c->query, c->key, c->width, c->causal, c->packed);
}

static void planned(const Case *c)
{
    Shape s = shape_of(c);
    if (attention_scratch(&s) + BEHIND > room)
        abort();
    size_t first = attention_front(&s);
    int calls = own.calls, before = queued;
    lay_out(c);
    prepare(c);
    memset(tmp, 0x5a, room);
    forward(c, NULL, NULL, 0);
    backward(c, dq, NULL, NULL, 0);
    settle();
    check(own.calls == calls && (GPU || queued == before + 2), "calls that are cuDNN's went elsewhere", own.calls);
    worst = 0;
    for (long b = 0; b < c->batch; b++)
        for (long head = 0; head < c->heads; head++) {
            check_forward(c, b, head);
            check_backward(c, b, head);
        }
    check(worst <= 1, "far from the definition", worst);
    uintptr_t part = ((uintptr_t)tmp + first + 255) / 256 * 256 - (uintptr_t)tmp;
    size_t behind = part + attention_scratch(&s) - first - SHIFT;
    bool whole = GPU || (tmp[behind - 1] == 0xa5 && tmp[part - 1] != 0xa5 && behind <= attention_scratch(&s));
    spare |= behind < attention_scratch(&s);
    full |= behind == attention_scratch(&s);
    for (size_t i = attention_scratch(&s); i < room; i++)
        whole &= tmp[i] == 0x5a;
    check(whole, "scratch is not used as it is planned", (double)attention_scratch(&s));
    again(c);
}

static void left_to_own(const Case *c)
{
    static real bias[ROWS * ROWS];
    static int32_t mask[ROWS];
    const struct { const real *bias; const int32_t *mask; float drop; bool no_dq, ours; } list[] = {
        { bias, NULL, 0, false, true }, { NULL, mask, 0, false, true }, { NULL, NULL, 0.1f, false, true },
        { NULL, NULL, 0, true, F32 || c->width % 8 }, { NULL, NULL, 0, false, F32 || c->width % 8 },
    };
    lay_out(c);
    prepare(c);
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        int calls = own.calls, before = queued;
        memset(&own, 0, sizeof own);
        own.calls = calls;
        forward(c, list[i].bias, list[i].mask, list[i].drop);
        bool given = own.y == y && own.q == q && own.k == k && own.v == v && own.qs == row && own.ks == thin;
        check(list[i].ours ? own.calls == calls + 1 && given && queued == before : own.calls == calls, "forward", (double)i);
        calls = own.calls, before = queued;
        backward(c, list[i].no_dq ? NULL : dq, list[i].bias, list[i].mask, list[i].drop);
        given = own.y == y && own.q == q && own.k == k && own.v == v && own.delta == tmp && own.qs == row && own.ks == thin;
        given &= own.bias == list[i].bias && own.mask == list[i].mask && own.drop == list[i].drop && own.width == c->width;
        given &= list[i].no_dq ? !own.dq && (c->packed ? !own.dv : own.dv == dv) : own.dq == dq && own.dv == dv;
        bool ours = list[i].ours || list[i].no_dq;
        check(ours ? own.calls == calls + 1 && given && queued == before : own.calls == calls, "backward", (double)i);
    }
}

#ifdef REAL_BF16
/* run(c) in a process of its own must end with that status and say that. */
static void ends(void (*run)(const Case *), const Case *c, int want, const char *first, const char *then)
{
    int status, tube[2];
    char text[512] = "";
    if (pipe(tube))
        abort();
    pid_t child = fork();
    if (!child) {
        dup2(tube[1], 2);
        run(c);
        _exit(0);
    }
    close(tube[1]);
    ssize_t n = 0, more = 1;            /* a line may come in pieces */
    while (more > 0 && n < (ssize_t)sizeof text - 1) {
        more = read(tube[0], text + n, sizeof text - 1 - (size_t)n);
        n += more > 0 ? more : 0;
    }
    waitpid(child, &status, 0);
    check(n > 0 && WIFEXITED(status) && WEXITSTATUS(status) == want && strstr(text, first) && strstr(text, then), text, status);
}

/* A workspace that the library does not fit into: our own kernels do the call. */
static void too_little(const Case *c)
{
    device.workspace_bytes = 255;
    lay_out(c);
    prepare(c);
    forward(c, NULL, NULL, 0);
    if (own.calls == 0 || own.y != y || queued)
        _exit(9);
}

static void not_opened(const Case *c)
{
    lay_out(c);
    st->handle[0] = NULL;
    forward(c, NULL, NULL, 0);
}

static void refused(void)
{
    const Case c = { 2, 2, 2, 8, 8, 8, 0, 0 };
    own.calls = queued = 0;
    ends(too_little, &c, 0, "attention_forward: 2 x 2 heads of 8", "wants 256 bytes of workspace, and 255 are planned");
    ends(not_opened, &c, 1, "not what dpgen wrote", "opened");
}
#endif

static void open_memory(const Case *c, int n)
{
    for (int i = 0; i < n; i++) {
        Shape s = shape_of(&c[i]);
        room = attention_scratch(&s) + BEHIND > room ? attention_scratch(&s) + BEHIND : room;
    }
    real **all[] = { &q_, &k_, &v_, &y, &dy, &dq_, &dk_, &dv_ };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        *all[i] = shared(MOST * sizeof(real));
    lse = shared(MOST * sizeof *lse);
    tmp = shared(room);
    device.workspace = workspace = (unsigned char *)shared(WORKSPACE + GUARD + SHIFT) + SHIFT;      /* as the runtime has it */
    device.workspace_bytes = WORKSPACE;
}

int main(void)
{
    const Case cases[] = {
        { 2, 3, 3, 5, 7, 8, 0, 0 }, { 2, 3, 3, 5, 7, 8, 1, 0 }, { 1, 2, 2, 9, 9, 16, 1, 1 }, { 2, 1, 1, 4, 4, 32, 0, 1 },
        { 1, 1, 1, 1, 1, 8, 1, 1 }, { 2, 2, 2, 7, 3, 24, 0, 0 }, { 2, 2, 2, 16, 3, 8, 0, 0 },
        { 2, 4, 2, 5, 7, 8, 1, 0 }, { 1, 6, 2, 9, 9, 16, 1, 0 }, { 2, 3, 1, 4, 6, 24, 0, 0 },        /* shared keys */
        /* on a GPU alone */
        { 2, 3, 3, 130, 257, 128, 0, 0 }, { 2, 4, 4, 256, 256, 64, 1, 1 }, { 2, 3, 3, 200, 256, 72, 1, 0 },
        { 2, 6, 2, 200, 256, 72, 1, 0 },
    };
    const int n = GPU ? sizeof cases / sizeof *cases : 10;
    open_memory(cases, n);
    for (int i = FIRST; i < n && !F32; i++)
        planned(&cases[i]);
    check(F32 || GPU || (spare && full), "every room for the alignment", spare);
    left_to_own(&cases[1]);
    left_to_own(&cases[2]);
    left_to_own(&cases[7]);
    left_to_own(&(Case){ 2, 2, 2, 5, 5, 12, 1, 0 });
#ifdef REAL_BF16
    if (!GPU)
        refused();
#endif
    bool whole = true;
    for (int i = 0; i < GUARD; i++)
        whole &= !workspace[WORKSPACE + i];
    check(whole, "behind the workspace", 0);
    printf("unit_cuda_attention: %d passed, %d failed\n", passed, failed);
    return failed > 0;
}
