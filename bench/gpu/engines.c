/* SPDX-License-Identifier: Apache-2.0
 *
 * engines.c: is the first engine of cuDNN's heuristic the fastest for attention?  Each engine that it names for a layer of
 * GPT-2 124M, 32 samples of 1024 tokens, and does not mark as varying: number, knobs, microseconds; medians of 10, by turns.
 * A job has the first one.  With -DON_GPU, as tests/gpu builds it.
 */
#ifndef ON_GPU
#define ON_GPU
#endif
#include "tests/gpu/shared.h"
#define graph_plan first_plan
#include "rt/op/cuda/graph.c"
#undef graph_plan
#include "rt/op/cuda/attention_graph.h"
#include <math.h>

enum { TIMES = 10, WARM = 3, MOST = 16, HEADS = 12, WIDTH = 64, KNOBS = 16 };
#ifndef SAMPLES
#define SAMPLES 32
#endif
#ifndef SEQUENCE
#define SEQUENCE 1024
#endif

static int64_t wanted, there;           /* the place of an engine in the list; how many are in it */
static char says[256];                  /* of that one */

static void describe(Graph *g, Desc choice)
{
    int64_t id = -1, one, n = 0;
    Desc engine = create(g, CUDNN_BACKEND_ENGINE_DESCRIPTOR, "an engine"), knob[KNOBS];
    for (int i = 0; i < KNOBS; i++)
        knob[i] = create(g, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, "a knob");
    cudnnBackendGetAttribute(choice, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &one, &engine);
    cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &one, &id);
    cudnnBackendGetAttribute(choice, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR, KNOBS, &n, knob);
    int at = snprintf(says, sizeof says, "engine %lld", (long long)id);
    for (int64_t i = 0; i < n; i++) {
        cudnnBackendKnobType_t type = 0;
        int64_t value = 0;
        cudnnBackendGetAttribute(knob[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &one, &type);
        cudnnBackendGetAttribute(knob[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1, &one, &value);
        if (at < (int)sizeof says - 40)
            at += snprintf(says + at, sizeof says - (size_t)at, " %d=%lld", (int)type, (long long)value);
    }
}

/* In place of the job's: the one that is wanted. */
bool graph_plan(Graph *g, Plan *p);
bool graph_plan(Graph *g, Plan *p)
{
    Desc list[MOST];
    there = choices(g, CUDNN_HEUR_MODE_A, list, MOST);
    if (wanted >= there || noted(g, list[wanted], CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC) || !finalised(g, p, list[wanted]))
        return false;
    p->memory = g->memory;
    memcpy(p->uid, g->uid, sizeof p->uid);
    describe(g, list[wanted]);
    return true;
}

static int by_size(const void *a, const void *b)
{
    return (*(const float *)a > *(const float *)b) - (*(const float *)a < *(const float *)b);
}

static void *room(size_t n)
{
    void *at;
    settled(cudaMalloc(&at, n));
    settled(cudaMemset(at, 0x3c, n));           /* bf16 of about 0.01 */
    return at;
}

static void compare(const char *what, bool (*plan)(Graph *, Plan *, const Shape *), const Shape *s, void *const *address)
{
    static Plan list[MOST];
    static char name[MOST][sizeof says];
    static float ms[MOST][TIMES];
    int64_t most = 0;
    int n = 0;
    cudaEvent_t from, until;
    settled(cudaEventCreateWithFlags(&from, 0));
    settled(cudaEventCreateWithFlags(&until, 0));
    there = 1;
    for (wanted = 0; wanted < there && n < MOST; wanted++) {
        Graph *g = calloc(1, sizeof *g);
        g->handle = graph_handle(st);
        list[n] = (Plan){ .memory = 0 };
        if (plan(g, &list[n], s)) {
            memcpy(name[n], says, sizeof says);
            most = list[n].workspace > most ? list[n].workspace : most;
            n++;
        }
        free(g);
    }
    void *space = room((size_t)most + 256);
    for (int t = -WARM; t < TIMES; t++)
        for (int i = 0; i < n; i++) {
            settled(cudaEventRecord(from, device.compute));
            plan_run(st, &list[i], address, space, what);
            settled(cudaEventRecord(until, device.compute));
            settled(cudaEventSynchronize(until));
            settled(cudaEventElapsedTime(&ms[i][t < 0 ? 0 : t], from, until));
        }
    for (int i = 0; i < n; i++) {
        qsort(ms[i], TIMES, sizeof **ms, by_size);
        printf("%s, %s: %.0f us\n", what, name[i], 1e3 * (double)ms[i][TIMES / 2]);
    }
}

int main(void)
{
    const Shape s = attention_shape(SAMPLES, HEADS, HEADS, SEQUENCE, SEQUENCE, WIDTH, 1, true);
    size_t n = (size_t)SAMPLES * SEQUENCE * HEADS * WIDTH, all = HEADS * WIDTH;
    float scale = 0.125f, one = 1, hidden = -INFINITY;
    shared(1);                                  /* the GPU, and a stream */
    real *qkv = room(3 * n * sizeof(real)), *made = room(3 * n * sizeof(real)), *y = room(n * sizeof(real));
    real *dy = room(n * sizeof(real));
    float *lse = room(n / WIDTH * sizeof *lse), *delta = room(n / WIDTH * sizeof *delta);
    void *const forward[] = { y, lse, qkv, qkv + all, qkv + 2 * all, &scale, &hidden };
    void *const backward[] = { made, made + all, made + 2 * all, dy, y, qkv, qkv + all, qkv + 2 * all, lse, delta, &scale, &one,
                               &hidden };
    compare("attention", attention_plan_forward, &s, forward);
    compare("gradient of attention", attention_plan_backward, &s, backward);
    settle();
    return 0;
}
