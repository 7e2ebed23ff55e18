/* SPDX-License-Identifier: Apache-2.0
 *
 * attention_graph.c: attention by cuDNN, y = softmax(scale q k^T) v for each (sample, head), causal or not, in bf16.
 *
 * Method.  The formula is written as a graph of operations.  The library makes one kernel of it that never stores the scores
 * (T. Dao et al., FlashAttention, 2022).  Forward saves lse, the log of the sum of exponentials of each row.  Backward
 * recomputes the probabilities, P = e^(s - lse), and with delta the row sums of dy y:
 *
 *     dv = P^T dy    dS = scale P (dy v^T - delta)    dk = dS^T q    dq = dS k
 *
 * Packed operands are the same graph with longer rows.  A product repeats the heads of keys that query heads share; then dk
 * and dv are those of query heads, dense, and not yet added.  scale is a number given in each run, so sites that differ in it
 * share a plan.
 *
 * Bits.  dq is written by the graph's last product.  The other form, through a f32 accumulator that the kernel's blocks add
 * to as they come, differs from run to run.  The library reports both alike, so the graph decides.  The price is dS in
 * memory: attention_scratch().
 *
 * The library decides which operand it wants in which order: forward k transposed, backward k and v; operands of the products
 * over queries are bf16; delta is in memory. A job without calls of the library is not linked with this file.  Not handled:
 * the calls that attention.c leaves to our own kernels.
 */
#include "attention_graph.h"
#include "start.h"
#include "../../cuda/device.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { NONE = -1 };
static const cudnnDataType_t REAL = CUDNN_DATA_BFLOAT16, F32 = CUDNN_DATA_FLOAT;

/* ---- shapes ------------------------------------------------------------------------------------------------ */
static Dims rows_of(const Shape *s, long heads, long rows, long step)
{
    return (Dims){ { s->batch, heads, rows, s->width }, { rows * step, s->width, step, 1 } };
}

static Dims turned(Dims d)
{
    return (Dims){ { d.size[0], d.size[1], d.size[3], d.size[2] }, { d.step[0], d.step[1], d.step[3], d.step[2] } };
}

static Dims scores_of(const Shape *s)
{
    return (Dims){ { s->batch, s->heads, s->query, s->key },
                   { s->heads * s->query * s->key, s->query * s->key, s->key, 1 } };
}

/* One number a row. */
static Dims stats_of(const Shape *s)
{
    return (Dims){ { s->batch, s->heads, s->query, 1 }, { s->heads * s->query, s->query, 1, 1 } };
}

/* ---- graphs ------------------------------------------------------------------------------------------------ */
/* Scores of hidden keys become one number more, -infinity. */
static int causal(Graph *g, const Shape *s, int x)
{
    if (!s->causal)
        return x;
    Dims d = scores_of(s);
    int hidden = graph_number(g);
    int row = graph_index(g, graph_value(g, d, CUDNN_DATA_INT32), x, 2);
    int column = graph_index(g, graph_value(g, d, CUDNN_DATA_INT32), x, 3);
    int seen = graph_map(g, CUDNN_POINTWISE_CMP_GE, graph_value(g, d, CUDNN_DATA_BOOLEAN), row, column, NONE);
    return graph_map(g, CUDNN_POINTWISE_BINARY_SELECT, graph_value(g, d, F32), x, hidden, seen);
}

bool attention_plan_forward(Graph *g, Plan *p, const Shape *s)
{
    long all = s->heads * s->width;
    Dims d = scores_of(s), one = stats_of(s);
    int y = graph_memory(g, rows_of(s, s->heads, s->query, all), REAL), lse = graph_memory(g, one, F32);
    int q = graph_memory(g, rows_of(s, s->heads, s->query, s->qs), REAL);
    int k = graph_memory(g, turned(rows_of(s, s->kv_heads, s->key, s->ks)), REAL);
    int v = graph_memory(g, rows_of(s, s->kv_heads, s->key, s->ks), REAL);
    int scale = graph_number(g);

    int x = graph_matmul(g, graph_value(g, d, F32), q, k);
    x = graph_map(g, CUDNN_POINTWISE_MUL, graph_value(g, d, F32), x, scale, NONE);
    x = causal(g, s, x);
    int most = graph_fold(g, CUDNN_REDUCE_TENSOR_MAX, graph_value(g, one, F32), x);
    x = graph_map(g, CUDNN_POINTWISE_SUB, graph_value(g, d, F32), x, most, NONE);
    x = graph_map(g, CUDNN_POINTWISE_EXP, graph_value(g, d, F32), x, NONE, NONE);
    int sum = graph_fold(g, CUDNN_REDUCE_TENSOR_ADD, graph_value(g, one, F32), x);
    int more = graph_map(g, CUDNN_POINTWISE_LOG, graph_value(g, one, F32), sum, NONE, NONE);
    graph_map(g, CUDNN_POINTWISE_ADD, lse, most, more, NONE);
    x = graph_map(g, CUDNN_POINTWISE_DIV, graph_value(g, d, REAL), x, sum, NONE);
    graph_matmul(g, y, x, v);
    return graph_plan(g, p);
}

bool attention_plan_backward(Graph *g, Plan *p, const Shape *s)
{
    long all = s->heads * s->width;
    Dims d = scores_of(s), dt = turned(d), one = stats_of(s);
    Dims queries = rows_of(s, s->heads, s->query, s->qs), keys = rows_of(s, s->kv_heads, s->key, s->ks);
    Dims out = rows_of(s, s->heads, s->query, all);
    Dims each = s->kv_heads < s->heads ? rows_of(s, s->heads, s->key, all) : keys;
    int dq = graph_memory(g, queries, REAL), dk = graph_memory(g, each, REAL), dv = graph_memory(g, each, REAL);
    int dy = graph_memory(g, out, REAL), y = graph_memory(g, out, REAL), q = graph_memory(g, queries, REAL);
    int k = graph_memory(g, turned(keys), REAL), v = graph_memory(g, turned(keys), REAL);
    int lse = graph_memory(g, one, F32), delta = graph_memory(g, one, F32);
    int scale = graph_number(g), same = graph_number(g);

    int x = graph_map(g, CUDNN_POINTWISE_MUL, graph_value(g, out, F32), dy, y, NONE);
    x = graph_fold(g, CUDNN_REDUCE_TENSOR_ADD, graph_value(g, one, F32), x);
    graph_map(g, CUDNN_POINTWISE_MUL, delta, x, same, NONE);

    x = graph_matmul(g, graph_value(g, d, F32), q, k);
    x = graph_map(g, CUDNN_POINTWISE_MUL, graph_value(g, d, F32), x, scale, NONE);
    x = graph_map(g, CUDNN_POINTWISE_SUB, graph_value(g, d, F32), x, lse, NONE);
    x = causal(g, s, x);
    int prob = graph_map(g, CUDNN_POINTWISE_EXP, graph_value(g, d, F32), x, NONE, NONE);
    graph_matmul(g, dv, graph_turn(g, graph_value(g, dt, REAL), prob), dy);

    x = graph_matmul(g, graph_value(g, d, F32), dy, v);
    x = graph_map(g, CUDNN_POINTWISE_SUB, graph_value(g, d, F32), x, delta, NONE);
    x = graph_map(g, CUDNN_POINTWISE_MUL, graph_value(g, d, F32), x, prob, NONE);
    int ds = graph_map(g, CUDNN_POINTWISE_MUL, graph_value(g, d, F32), x, scale, NONE);
    graph_matmul(g, dk, graph_turn(g, graph_value(g, dt, REAL), ds), q);
    graph_matmul(g, dq, ds, graph_turn(g, graph_value(g, keys, REAL), k));
    return graph_plan(g, p);
}

/* ---- prepared ---------------------------------------------------------------------------------------------- */
typedef struct { Prepared head; Plan plan; Shape s; bool back; Dry dry; } Planned;

static void run(Stage *st, const Prepared *p, void *const *address, void *workspace, const char *call)
{
    plan_run(st, &((const Planned *)p)->plan, address, workspace, call);
}

/* The call, its sizes, and the library. */
static void name_call(const Shape *s, const char *call)
{
    size_t v = cudnnGetVersion();
    fprintf(stderr, "%s: %ld x %ld heads of %ld, %ld queries, %ld keys: cuDNN %zu.%zu.%zu", call, s->batch, s->heads, s->width,
            s->query, s->key, v / 10000, v / 100 % 100, v % 100);
}

/* The library compiles what it plans: where it has no plan for what another machine has one for, that may have failed. */
static void refuse(const Shape *s, const char *call, const char *why)
{
    char remedy[128] = "see that NVRTC of the toolkit is found (LD_LIBRARY_PATH), or generate with compute: f32";
    if (cudnnGetVersion() != CUDNN_VERSION)
        snprintf(remedy, sizeof remedy, "this folder was compiled for cuDNN %d.%d.%d: install that", CUDNN_MAJOR, CUDNN_MINOR,
                 CUDNN_PATCHLEVEL);
    name_call(s, call);
    fprintf(stderr, " on this GPU: %s; %s\n", why, remedy);
    exit(6);
}

/* What a plan may want is what the versions known to us want; it is a function of sizes, version and chip. */
static bool fits(const Planned *p, const Stage *st, const char *call)
{
    const Shape *s = &p->s;
    size_t most = p->back ? attention_scratch(s) - attention_front(s) - SHIFT : device_of(st)->workspace_bytes;
    if ((size_t)p->plan.workspace <= most)
        return true;
    name_call(s, call);
    fprintf(stderr, " wants %lld bytes of workspace, and %zu are planned; our own kernels do it, more slowly (this "
            "folder was compiled for cuDNN %d.%d.%d)\n", (long long)p->plan.workspace, most, CUDNN_MAJOR, CUDNN_MINOR,
            CUDNN_PATCHLEVEL);
    return false;
}

/* Operands all in one place, results in another, scratch in a third: a step has as many tensors of each kind, and more. */
static void run_dry(Stage *st, void *of)
{
    Planned *p = of;
    const Shape *s = &p->s;
    long most = s->query > s->key ? s->query : s->key, row = s->qs > s->ks ? s->qs : s->ks;
    size_t each = ((size_t)(s->batch * most * row) * sizeof(real) + 255) / 256 * 256;
    size_t made = p->back ? each + attention_scratch(s) : (size_t)(s->batch * s->query * s->heads * s->width) * sizeof(real);
    unsigned char *in = st->arena, *out = in + each, *tmp = out + each;
    float scale = 1, one = 1, hidden = -INFINITY;
    void *const forward[] = { out, out, in, in, in, &scale, &hidden };
    void *const backward[] = { out, out, out, in, in, in, in, in, in, tmp, &scale, &one, &hidden };
    if (each + made <= room_of(st))
        plan_run(st, &p->plan, p->back ? backward : forward, p->back ? attention_workspace(s, tmp) : device_of(st)->workspace,
                 "the first attention");
}

static void prepare(Stage *st, int h, Shape shape, const char *call, bool back)
{
    const Shape *s = &shape;
    Graph *g = calloc(1, sizeof *g);
    Planned *p = calloc(1, sizeof *p);
    if (!attention_fits(s) || !g || !p)
        refuse(s, call, g && p ? "these are not for it" : "no memory");
    p->s = shape;
    p->back = back;
    st->handle[h] = p;
    g->handle = graph_handle(st);
    if (!(back ? attention_plan_backward : attention_plan_forward)(g, &p->plan, s))
        refuse(s, call, g->failed);
    if (fits(p, st, call)) {
        p->head.run = run;
        p->dry = (Dry){ run_dry, p, device_of(st)->dry };
        device_of(st)->dry = &p->dry;
    }
    free(g);
}

void open_attention_forward(Stage *st, int h, long batch, long heads, long query, long key, long width, long causal)
{
    prepare(st, h, attention_shape(batch, heads, heads, query, key, width, causal, false), "attention_forward", false);
}

void open_attention_backward(Stage *st, int h, long batch, long heads, long query, long key, long width, long causal)
{
    prepare(st, h, attention_shape(batch, heads, heads, query, key, width, causal, false), "attention_backward", true);
}

void open_attention_packed_forward(Stage *st, int h, long batch, long heads, long query, long width, long causal)
{
    prepare(st, h, attention_shape(batch, heads, heads, query, query, width, causal, true), "attention_packed_forward", false);
}

void open_attention_packed_backward(Stage *st, int h, long batch, long heads, long query, long width, long causal)
{
    prepare(st, h, attention_shape(batch, heads, heads, query, query, width, causal, true), "attention_packed_backward", true);
}

void open_attention_shared_forward(Stage *st, int h, long batch, long heads, long kv_heads, long query, long key, long width,
                                   long causal)
{
    Shape s = attention_shape(batch, heads, kv_heads, query, key, width, causal, false);
    prepare(st, h, s, "attention_shared_forward", false);
}

void open_attention_shared_backward(Stage *st, int h, long batch, long heads, long kv_heads, long query, long key, long width,
                                    long causal)
{
    Shape s = attention_shape(batch, heads, kv_heads, query, key, width, causal, false);
    prepare(st, h, s, "attention_shared_backward", true);
}
