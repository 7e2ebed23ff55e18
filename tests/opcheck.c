/* SPDX-License-Identifier: Apache-2.0
 *
 * opcheck: every call of gen/ops.def against an independent implementation in double; see opcheck.h.  The program
 * walks the table and fails when a row names a call that no check covers.
 *
 *     opcheck [threads]           compare
 *     opcheck hash [threads]      print a hash of all results
 *
 * Gradients are checked along a random direction and element by element: of large ones at 2 elements, with SLOW=1 at 12 and
 * along two directions.
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "opcheck.h"

#ifdef REAL_BF16
static const double tolerance[2] = {1.6e-2, 1e-4};      /* results of 8 bits, made from operands of 8 bits */
#else
static const double tolerance[2] = {3e-5, 3e-5};
#endif

enum { KEPT = 256, ZONE = 64, MARK = 0xa5 };     /* ZONE bytes behind an array keep their mark */
static Stage stage_space = {.threads = 1};
Stage *stage = &stage_space;
static int passed, failed, hash_mode, slow;
static uint64_t hash_state = 0xcbf29ce484222325u, random_state = 1;
static struct { unsigned char *at; size_t bytes; } kept[KEPT];
static int n_kept;

/* ---- memory and numbers ------------------------------------------------------------------------------------------ */

static void *keep(size_t bytes)
{
    unsigned char *p = aligned_alloc(ZONE, (bytes + 2 * ZONE - 1) / ZONE * ZONE);
    if (!p || n_kept == KEPT)
        abort();
    memset(p, 0, bytes);
    memset(p + bytes, MARK, ZONE);
    kept[n_kept].at = p, kept[n_kept++].bytes = bytes;
    return p;
}

void case_end(void)
{
    while (n_kept) {
        unsigned char *at = kept[--n_kept].at, *end = at + kept[n_kept].bytes;
        int same = 0;
        while (same < ZONE && end[same] == MARK)
            same++;
        if (same < ZONE)
            expect(0, "a write %d bytes behind an array of %zu", same, kept[n_kept].bytes);
        free(at);
    }
}

/* splitmix64 (G. Steele, D. Lea, C. Flood, 2014): integers only, so the operands have the same bits everywhere. */
static uint64_t random_bits(void)
{
    uint64_t z = random_state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

double uniform(double lo, double hi)
{
    return lo + (hi - lo) * ((double)(random_bits() >> 11) * 0x1p-53);
}

double *numbers(long n) { return keep((size_t)n * sizeof(double)); }

int32_t *ids(long n, long lo, long hi)
{
    int32_t *to = keep((size_t)n * sizeof *to);
    for (long i = 0; i < n; i++)
        to[i] = (int32_t)(lo + (long)(random_bits() % (uint64_t)(hi - lo)));
    return to;
}

static Tensor *tensor(int type, long n)
{
    Tensor *t = keep(sizeof *t);
    *t = (Tensor){type, n, numbers(n), keep((size_t)n * (type == REAL ? sizeof(real) : sizeof(float)))};
    return t;
}

static void set(Tensor *t, long i, double value)
{
    if (t->type == REAL)
        put(t->k, i, (float)value);
    else
        ((float *)t->k)[i] = (float)value;
    t->v[i] = t->type == REAL ? get(t->k, i) : ((float *)t->k)[i];
}

Tensor *operand(int type, long n, double lo, double hi)
{
    Tensor *t = tensor(type, n);
    for (long i = 0; i < n; i++)
        set(t, i, uniform(lo, hi));
    return t;
}

Tensor *filled(int type, long n, double value)
{
    Tensor *t = tensor(type, n);
    for (long i = 0; i < n; i++)
        set(t, i, value);
    return t;
}

Tensor *result(int type, long n) { return filled(type, n, NAN); }

int hashing(void) { return hash_mode; }

#ifdef FOLDS
int folds(void) { return 1; }
#else
int folds(void) { return 0; }
#endif

void hash(const void *data, long n, size_t size)
{
    const union { uint16_t number; unsigned char byte[2]; } one = {1};
    const size_t turn = one.byte[0] ? 0 : size - 1;
    for (long i = 0; i < n; i++)
        for (size_t k = 0; k < size; k++)
            hash_state = (hash_state ^ ((const unsigned char *)data)[(size_t)i * size + (k ^ turn)]) * 0x100000001b3u;
}

void read_back(Tensor *t)
{
    for (long i = 0; i < t->n; i++)
        t->v[i] = t->type == REAL ? get(t->k, i) : ((float *)t->k)[i];
    hash(t->k, t->n, t->type == REAL ? sizeof(real) : sizeof(float));
}

/* ---- comparing --------------------------------------------------------------------------------------------------- */

void expect(int ok, const char *form, ...)
{
    passed += ok != 0;
    failed += !ok;
    if (ok)
        return;
    va_list list;
    va_start(list, form);
    fprintf(stderr, "opcheck: ");
    vfprintf(stderr, form, list);
    fprintf(stderr, "\n");
    va_end(list);
}

static double rms(const double *v, long n)
{
    double sum = 0;
    for (long i = 0; i < n; i++)
        sum += isfinite(v[i]) ? v[i] * v[i] : 0;
    return sqrt(sum / (double)(n ? n : 1));
}

static const char *sizes(const Case *c)
{
    static char text[128];
    int at = 0;
    for (int i = 0; c && i < 8; i++)
        at += snprintf(text + at, sizeof text - (size_t)at, " %ld", c->d[i]);
    text[at] = 0;
    return text;
}

static void compare(const char *call, const Case *c, const Tensor *got, const double *want)
{
    double scale = rms(want, got->n), worst = 0;
    long at = 0;
    for (long i = 0; i < got->n; i++) {
        int same = got->v[i] == want[i] || (isnan(got->v[i]) && isnan(want[i]));
        double error = same ? 0 : fabs(got->v[i] - want[i]) / (fabs(want[i]) + scale);
        error = isnan(error) ? (double)INFINITY : error;
        if (error > worst)
            worst = error, at = i;
    }
    expect(worst <= tolerance[got->type], "%s:%s: [%ld] is %.9g, should be %.9g", call, sizes(c), at, got->v[at],
           want[at]);
}

void check_values(const char *call, Tensor *got, const double *want)
{
    read_back(got);
    if (!hash_mode)
        compare(call, NULL, got, want);
}

void check_value(const char *call, Tensor *got, Reference f, const Case *c)
{
    read_back(got);
    if (hash_mode)
        return;
    double *want = numbers(got->n);
    f(c, want);
    compare(call, c, got, want);
}

typedef struct { Reference f; const Case *c; const Tensor *x, *dy; const double *start, *way; double *y; } Path;

/* Sum of dy * y at start + t * way. */
static double along(const Path *p, double t)
{
    double sum = 0;
    for (long i = 0; i < p->x->n; i++)
        p->x->v[i] = p->start[i] + t * p->way[i];
    p->f(p->c, p->y);
    for (long i = 0; i < p->dy->n; i++)
        sum += p->dy->v[i] * p->y[i];
    return sum;
}

static double slope(const Path *p)
{
    const double h = 1e-3;
    double near = along(p, h) - along(p, -h), far = along(p, 2 * h) - along(p, -2 * h);
    memcpy(p->x->v, p->start, (size_t)p->x->n * sizeof(double));
    return (8 * near - far) / (12 * h);
}

static void check_direction(const char *call, const Path *p, double *way, const Tensor *got, double scale)
{
    double sum = 0, size = 0;
    for (long i = 0; i < got->n; i++) {
        way[i] = uniform(-1, 1);
        sum += way[i] * got->v[i];
        size += way[i] * way[i];
    }
    double want = slope(p), room = tolerance[got->type] * (fabs(want) + scale * sqrt(size));
    expect(fabs(sum - want) <= room, "%s:%s: along a direction %.9g, should be %.9g", call, sizes(p->c), sum, want);
}

void check_gradient(const char *call, Tensor *got, Reference f, const Case *c, int which, const Tensor *dy)
{
    read_back(got);
    if (hash_mode)
        return;
    long n = got->n;
    double *start = numbers(n), *way = numbers(n), *y = numbers(dy->n), scale = rms(got->v, n);
    memcpy(start, c->in[which]->v, (size_t)n * sizeof *start);
    Path p = {f, c, c->in[which], dy, start, way, y};
    long few = slow ? 64 : 8, sample = slow ? 12 : 2;
    for (int i = 0; i < (n > few && slow ? 2 : 1); i++)
        check_direction(call, &p, way, got, scale);
    memset(way, 0, (size_t)n * sizeof *way);
    for (long i = 0; i < (n > few ? sample : n); i++) {
        long at = n > few ? (long)(random_bits() % (uint64_t)n) : i;
        way[at] = 1;
        double want = slope(&p), room = tolerance[got->type] * (fabs(want) + scale) + 1e-9;
        expect(fabs(got->v[at] - want) <= room, "%s:%s: gradient of operand %d [%ld] is %.9g, should be %.9g", call,
               sizes(c), which, at, got->v[at], want);
        way[at] = 0;
    }
}

const Tensor *for_stored(Reference f, const Case *c, const Tensor *y, const Tensor *dy, long width)
{
    Tensor *all = filled(FLOAT, y->n + y->n / width, 0);
    double *exact = numbers(all->n);
    if (hash_mode)
        return all;
    f(c, exact);
    memcpy(all->v, dy->v, (size_t)y->n * sizeof *exact);
    for (long i = 0; i < y->n; i++)
        all->v[y->n + i / width] -= dy->v[i] * (y->v[i] - exact[i]);
    return all;
}

void same_bits(const char *call, long what, Tensor *got, const Tensor *want)
{
    read_back(got);
    int same = hashing() || !memcmp(got->k, want->k, (size_t)got->n * (got->type == REAL ? sizeof(real) : sizeof(float)));
    expect(same, "%s %ld: not the bits of other calls", call, what);
}

void check_accumulated(const char *call, Tensor *got, Tensor *again)
{
    double *twice = numbers(got->n);
    for (long i = 0; i < got->n; i++)
        twice[i] = 2 * got->v[i];
    check_values(call, again, twice);
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

static const char *const calls_of_rows[][3] = {
#define OP(name, in, par, out, axes, keys, class, shape, F, f_flop, I, i_flop, W, w_flop) {F, I, W},
#include "gen/ops.def"
#undef OP
};

static const Check *const all[] = {
    product_checks, element_checks, update_checks, image_checks, language_checks, vision_checks, team_checks,
    recurrent_checks, expert_checks, eight_checks,
#ifdef FOLDS
    fold_checks,
#endif
};
enum { GROUPS = sizeof all / sizeof *all };

static int covered(const char *name)
{
    char word[80];
    snprintf(word, sizeof word, " %s ", name);
    for (int g = 0; g < GROUPS; g++)
        for (const Check *k = all[g]; k->calls; k++)
            if (strstr(k->calls, word))
                return 1;
    return 0;
}

/* Every "name(...)" of a `;` list must be covered; "da = dy" is no call. */
static void check_coverage(const char *calls)
{
    for (const char *at = calls; (at = strchr(at, '(')); at++) {
        const char *from = at;
        while (from > calls && from[-1] != ' ')
            from--;
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)(at - from), from);
        expect(covered(name), "gen/ops.def names %s, which no check covers", name);
    }
}

/* Calls with sums in blocks, once more in 8 of them; kernels for GPUs have none. */
static void check_blocks(void)
{
    static const char *const calls[] = {" linear_forward ", " layernorm_forward ", " rmsnorm_forward ", " xent_forward "};
    stage->blocks = 8;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        for (int g = 0; g < GROUPS; g++)
            for (const Check *k = all[g]; k->calls; k++)
                if (strstr(k->calls, calls[i])) {
                    random_state = i;
                    k->check();
                    case_end();
                }
    stage->blocks = 0;
}

int main(int argc, char **argv)
{
    slow = getenv("SLOW") != NULL;
    hash_mode = argc > 1 && !strcmp(argv[1], "hash");
    if (argc > 1 + hash_mode)
        stage->threads = atoi(argv[1 + hash_mode]);
    for (size_t i = 0; i < sizeof calls_of_rows / sizeof *calls_of_rows; i++)
        for (int j = 0; j < 3; j++)
            check_coverage(calls_of_rows[i][j]);
    for (int g = 0; g < GROUPS; g++)
        for (const Check *k = all[g]; k->calls; k++) {
            random_state = (uint64_t)g * 1000 + (uint64_t)(k - all[g]);
            k->check();
            case_end();
        }
    if (!folds())
        check_blocks();
    if (hash_mode)
        printf("%016llx\n", (unsigned long long)hash_state);
    else
        printf("opcheck: %d passed, %d failed\n", passed, failed);
    return failed != 0;
}
