/* SPDX-License-Identifier: Apache-2.0
 *
 * step.c: one training step of GPT-2 124M, written by hand against rt.h.
 *
 * It makes exactly the kernel calls that dpgen emits for examples/gpt2-124m.yaml on one stage without recomputation, in
 * the same order, from a plain block of memory.  So it shows what the kernels cost without the runtime, call by call,
 * and what a change to one of them is worth.  Prints one line `step MS` a step, then, with -v, the time by call.
 *
 *     step [-t THREADS] [-n STEPS] [-b BATCH] [-s TOKENS] [-v]
 */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include "../../rt/rt.h"

enum { LAYERS = 12, C = 768, HEADS = 12, VOCAB = 50257, CONTEXT = 1024, PARAMS = 4 + 12 * LAYERS };

/* ---- time by call ---------------------------------------------------------------------------------------- */
static struct { const char *name; double ms; long calls; } row[64];
static double begun;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static void took(const char *name)
{
    int i = 0;
    while (row[i].name && strcmp(row[i].name, name))
        i++;
    row[i].name = name;
    row[i].ms += now() - begun;
    row[i].calls++;
}

#define DO(call, ...) (begun = now(), call(st, __VA_ARGS__), took(#call))

/* ---- memory ------------------------------------------------------------------------------------------------ */
static unsigned char *place;

static void *take(size_t bytes)
{
    void *p = place;
    place += (bytes + 63) / 64 * 64;
    return p;
}

#define REALS(n) take((size_t)(n) * sizeof(real))
#define FLOATS(n) take((size_t)(n) * sizeof(float))

typedef struct { float *p, *g, *m, *v; real *c; long n; int decay; } Param;
typedef struct { Param ln1w, ln1b, qkvw, qkvb, projw, projb, ln2w, ln2b, fcw, fcb, outw, outb; } LayerParams;
typedef struct {
    real *ln1, *qkv, *att, *proj, *mid, *ln2, *fc, *gelu, *out, *end;
    float *mean1, *rstd1, *mean2, *rstd2, *lse;
} Acts;

typedef struct {
    long b, t, bt;
    Values vals;
    int32_t *ids, *targets;
    Param wte, wpe, lnfw, lnfb, *all[PARAMS];
    float *head_grad, *meanf, *rstdf, *lse, *loss, *dloss, *clip;
    double *norm;
    LayerParams layer[LAYERS];
    Acts act[LAYERS];
    real *emb, *x0, *lnf, *logits, *dlogits, *d[3], *dwide, *dwide2;
    void *tmp;
    int params;
} Model;

static uint64_t seed = 1;
static float uniform(void)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (float)(seed >> 40) * 0x1p-24f - 0.5f;
}

/* A state of n elements; std 0: ones for a norm's weight (fill 1), zeros otherwise. */
static void param(Model *m, Param *p, long n, float std, float fill, int copy, int decay)
{
    *p = (Param){ FLOATS(n), FLOATS(n), FLOATS(n), FLOATS(n), NULL, n, decay };
    for (long i = 0; i < n; i++)
        p->p[i] = fill + std * 3.4641016f * uniform(), p->m[i] = p->v[i] = 0;
#ifdef REAL_BF16
    if (copy)
        cast_forward(&(Stage){ .threads = 1 }, p->c = REALS(n), p->p, n);
#else
    (void)copy;
#endif
    m->all[m->params++] = p;
}

static const real *copy_of(const Param *p)
{
    return p->c ? p->c : (const real *)p->p;
}

static void init_layer(Model *m, LayerParams *l)
{
    param(m, &l->ln1w, C, 0, 1, 0, 0), param(m, &l->ln1b, C, 0, 0, 0, 0);
    param(m, &l->qkvw, 3L * C * C, 0.02f, 0, 1, 1), param(m, &l->qkvb, 3 * C, 0, 0, 1, 0);
    param(m, &l->projw, (long)C * C, 0.004f, 0, 1, 1), param(m, &l->projb, C, 0, 0, 1, 0);
    param(m, &l->ln2w, C, 0, 1, 0, 0), param(m, &l->ln2b, C, 0, 0, 0, 0);
    param(m, &l->fcw, 4L * C * C, 0.02f, 0, 1, 1), param(m, &l->fcb, 4 * C, 0, 0, 1, 0);
    param(m, &l->outw, 4L * C * C, 0.004f, 0, 1, 1), param(m, &l->outb, C, 0, 0, 1, 0);
}

static void init_acts(const Model *m, Acts *a)
{
    long n = m->bt * C, rows = m->bt;
    *a = (Acts){ REALS(n), REALS(3 * n), REALS(n), REALS(n), REALS(n), REALS(n), REALS(4 * n), REALS(4 * n), REALS(n),
                 REALS(n), FLOATS(rows), FLOATS(rows), FLOATS(rows), FLOATS(rows), FLOATS(rows * HEADS) };
}

static void init(Model *m)
{
    param(m, &m->wte, (long)VOCAB * C, 0.02f, 0, 1, 1), param(m, &m->wpe, (long)CONTEXT * C, 0.02f, 0, 1, 1);
    for (int l = 0; l < LAYERS; l++)
        init_layer(m, &m->layer[l]), init_acts(m, &m->act[l]);
    param(m, &m->lnfw, C, 0, 1, 0, 0), param(m, &m->lnfb, C, 0, 0, 0, 0);
    long n = m->bt * C;
    m->head_grad = FLOATS((long)VOCAB * C);
    m->emb = REALS(n), m->x0 = REALS(n), m->lnf = REALS(n);
    m->logits = REALS(m->bt * VOCAB), m->dlogits = REALS(m->bt * VOCAB);
    for (int i = 0; i < 3; i++)
        m->d[i] = REALS(n);
    m->dwide = REALS(4 * n), m->dwide2 = REALS(4 * n);
    m->meanf = FLOATS(m->bt), m->rstdf = FLOATS(m->bt), m->lse = FLOATS(m->bt);
    m->loss = FLOATS(1), m->dloss = FLOATS(1), m->clip = FLOATS(1), m->norm = take(PARAMS * sizeof(double));
    m->tmp = take(1 << 20);
    m->ids = take((size_t)m->bt * 4), m->targets = take((size_t)m->bt * 4);
    for (long i = 0; i < m->bt; i++) {
        m->ids[i] = (int32_t)((uniform() + 0.5f) * (VOCAB - 1));
        m->targets[i] = (int32_t)((uniform() + 0.5f) * (VOCAB - 1));
    }
}

/* ---- the step ------------------------------------------------------------------------------------------------ */
enum { QKV, PROJ, FC, OUT, HEAD, SHAPES };
static const int in_of[SHAPES] = { C, C, C, 4 * C, C }, out_of[SHAPES] = { 3 * C, C, 4 * C, C, VOCAB };
#define EPS 0x1.4f8b58p-17f
#define SCALE 0x1p-3f

static void prepare(Stage *st, const Model *m)
{
#ifdef PORTABLE                 /* which has no handles */
    (void)st, (void)m;
#else
    for (int i = 0; i < SHAPES; i++) {
        open_linear_forward(st, 3 * i, m->bt, in_of[i], out_of[i]);
        open_linear_backward_x(st, 3 * i + 1, m->bt, in_of[i], out_of[i]);
        open_linear_backward_w(st, 3 * i + 2, m->bt, in_of[i], out_of[i]);
    }
    open_attention_packed_forward(st, 3 * SHAPES, m->b, HEADS, m->t, C / HEADS, 1);
    open_attention_packed_backward(st, 3 * SHAPES + 1, m->b, HEADS, m->t, C / HEADS, 1);
#endif
}

static void linear(Stage *st, const Model *m, int i, real *y, const real *x, const Param *w, const Param *b)
{
    DO(linear_forward, y, x, copy_of(w), b ? copy_of(b) : NULL, 3 * i, m->bt, in_of[i], out_of[i]);
}

static void linear_back(Stage *st, const Model *m, int i, real *dx, float *dw, float *db, const real *dy, const real *x,
                        const Param *w)
{
    DO(linear_backward_x, dx, dy, copy_of(w), 3 * i + 1, m->bt, in_of[i], out_of[i]);
    DO(linear_backward_w, dw, db, dy, x, 3 * i + 2, 0, m->bt, in_of[i], out_of[i]);
}

static void layer_forward(Stage *st, Model *m, const LayerParams *l, const Acts *a, const real *x)
{
    long bt = m->bt, n = bt * C;
    DO(layernorm_forward, a->ln1, a->mean1, a->rstd1, x, l->ln1w.p, l->ln1b.p, bt, C, EPS);
    linear(st, m, QKV, a->qkv, a->ln1, &l->qkvw, &l->qkvb);
    DO(attention_packed_forward, a->att, a->lse, a->qkv, NULL, NULL, &m->vals, 0, 3 * SHAPES, m->b, HEADS, m->t,
       C / HEADS, 1, SCALE, 0, 0);
    linear(st, m, PROJ, a->proj, a->att, &l->projw, &l->projb);
    DO(add_forward, a->mid, x, a->proj, n);
    DO(layernorm_forward, a->ln2, a->mean2, a->rstd2, a->mid, l->ln2w.p, l->ln2b.p, bt, C, EPS);
    linear(st, m, FC, a->fc, a->ln2, &l->fcw, &l->fcb);
    DO(gelu_forward, a->gelu, a->fc, 4 * n, 1);
    linear(st, m, OUT, a->out, a->gelu, &l->outw, &l->outb);
    DO(add_forward, a->end, a->mid, a->out, n);
}

/* dy in d[0]; leaves dx there. */
static void layer_backward(Stage *st, Model *m, LayerParams *l, const Acts *a, const real *x)
{
    long bt = m->bt, n = bt * C;
    real **d = m->d;
    linear_back(st, m, OUT, m->dwide, l->outw.g, l->outb.g, d[0], a->gelu, &l->outw);
    DO(gelu_backward, m->dwide2, m->dwide, a->fc, 4 * n, 1);
    linear_back(st, m, FC, d[1], l->fcw.g, l->fcb.g, m->dwide2, a->ln2, &l->fcw);
    DO(layernorm_backward, d[2], l->ln2w.g, l->ln2b.g, d[1], a->mid, l->ln2w.p, a->mean2, a->rstd2, d[0], 0, bt, C);
    linear_back(st, m, PROJ, d[1], l->projw.g, l->projb.g, d[2], a->att, &l->projw);
    DO(attention_packed_backward, m->dwide, NULL, d[1], a->att, a->qkv, NULL, NULL, a->lse, m->tmp, &m->vals, 0,
       3 * SHAPES + 1, m->b, HEADS, m->t, C / HEADS, 1, SCALE, 0, 0);
    linear_back(st, m, QKV, d[1], l->qkvw.g, l->qkvb.g, m->dwide, a->ln1, &l->qkvw);
    DO(layernorm_backward, d[0], l->ln1w.g, l->ln1b.g, d[1], x, l->ln1w.p, a->mean1, a->rstd1, d[2], 0, bt, C);
}

static void update(Stage *st, Model *m)
{
    DO(tie_add, m->wte.g, m->head_grad, m->wte.n);
    for (int i = 0; i < m->params; i++)
        DO(norm_partial, m->norm, m->all[i]->g, m->all[i]->n, i);
    DO(norm_total, m->clip, m->norm, &m->vals, m->params, 1.0f);
    for (int i = 0; i < m->params; i++) {
        Param *p = m->all[i];
        DO(adamw_update, p->p, p->c, p->g, p->m, p->v, m->clip, &m->vals, p->n, 0.9f, 0.95f, 1e-8f, p->decay);
    }
}

static float step(Stage *st, Model *m)
{
    long bt = m->bt;
    Acts *a = m->act;
    DO(embedding_forward, m->emb, m->ids, copy_of(&m->wte), bt, C, VOCAB);
    DO(position_forward, m->x0, m->emb, copy_of(&m->wpe), m->b, m->t, C);
    for (int l = 0; l < LAYERS; l++)
        layer_forward(st, m, &m->layer[l], &a[l], l ? a[l - 1].end : m->x0);
    const real *last = a[LAYERS - 1].end;
    DO(layernorm_forward, m->lnf, m->meanf, m->rstdf, last, m->lnfw.p, m->lnfb.p, bt, C, EPS);
    linear(st, m, HEAD, m->logits, m->lnf, &m->wte, NULL);
    DO(xent_forward, m->loss, m->lse, m->logits, m->targets, &m->vals, bt, VOCAB, -1, 0);
    DO(loss_seed, m->dloss);
    DO(xent_backward, m->dlogits, m->dloss, m->logits, m->lse, m->targets, &m->vals, bt, VOCAB, -1, 0);
    linear_back(st, m, HEAD, m->d[1], m->head_grad, NULL, m->dlogits, m->lnf, &m->wte);
    DO(layernorm_backward, m->d[0], m->lnfw.g, m->lnfb.g, m->d[1], last, m->lnfw.p, m->meanf, m->rstdf, NULL, 0, bt, C);
    for (int l = LAYERS - 1; l >= 0; l--)
        layer_backward(st, m, &m->layer[l], &a[l], l ? a[l - 1].end : m->x0);
    DO(position_backward, m->wpe.g, m->d[0], 0, m->b, m->t, C, CONTEXT);
    DO(embedding_backward, m->wte.g, m->d[0], m->ids, 0, bt, C, VOCAB);
    update(st, m);
    return *m->loss;
}

/* ---- the run --------------------------------------------------------------------------------------------------- */
static void begin(Values *v, long step, long rows)
{
    float done = (float)step + 1;
    *v = (Values){ .step = step, .seed = 1, .lr = 1e-4f, .weight_decay = 0.1f, .micro = 1, .valid = { rows },
                   .bias1 = 1 - powf(0.9f, done), .bias2 = 1 - powf(0.95f, done) };
}

/* A sum of all parameters' bits: equal for equal results, no matter the time. */
static uint64_t hash(const Model *m)
{
    uint64_t h = 14695981039346656037u;
    for (int i = 0; i < m->params; i++)
        for (long j = 0; j < m->all[i]->n; j++) {
            uint32_t bits;
            memcpy(&bits, &m->all[i]->p[j], sizeof bits);
            h = (h ^ bits) * 1099511628211u;
        }
    return h;
}

static void report(int steps)
{
    double sum = 0;
    for (int i = 0; row[i].name; i++) {
        printf("  %-28s %9.3f ms  %5ld calls\n", row[i].name, row[i].ms / steps, row[i].calls / steps);
        sum += row[i].ms / steps;
    }
    printf("  %-28s %9.3f ms\n", "all", sum);
}

int main(int argc, char **argv)
{
    int threads = 2, steps = 8, verbose = 0, option;
    static Model m = { .b = 4, .t = 64 };
    while ((option = getopt(argc, argv, "t:n:b:s:v")) != -1)
        switch (option) {
        case 't': threads = atoi(optarg); break;
        case 'n': steps = atoi(optarg); break;
        case 'b': m.b = atol(optarg); break;
        case 's': m.t = atol(optarg); break;
        case 'v': verbose = 1; break;
        default: return 2;
        }
    m.bt = m.b * m.t;
    size_t bytes = (size_t)5 << 30;
    bytes += (size_t)m.bt * (2 * VOCAB + 40L * C * LAYERS) * 4;
    place = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (place == MAP_FAILED)
        return perror("mmap"), 1;
    madvise(place, bytes, MADV_HUGEPAGE);
    char why[256];
    if (kernels_start(threads, why, sizeof why))
        return fprintf(stderr, "%s\n", why), 6;
    static Stage stage;
    Stage *st = &stage;
    st->threads = threads, st->count = 1;
    init(&m);
    prepare(st, &m);
    for (int i = 0; i < steps; i++) {
        if (i == 1)
            memset(row, 0, sizeof row);         /* the first step also pays for page faults */
        double from = now();
        begin(&m.vals, i, m.bt);
        float loss = step(st, &m);
        printf("step %.3f loss %.6f\n", now() - from, (double)loss);
    }
    printf("hash %016llx\n", (unsigned long long)hash(&m));
    if (verbose && steps > 1)
        report(steps - 1);
    return 0;
}
