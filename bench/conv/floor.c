/* SPDX-License-Identifier: Apache-2.0
 *
 * floor.c: what the convolutions of a model's step cost in oneDNN.
 *
 * Each line of the input is a call of gen/ops.def, its 14 sizes, and how often a step makes it.  Each distinct call is timed
 * with every layout the library's own choice, and with channels last, in turn; copies between layouts are not counted.  The
 * floor is the sum of the lower medians.  Prints a line a call, then `floor MS` and `last MS`, the sum with channels last.
 *
 *     floor [-t THREADS] [-n ROUNDS] < CALLS
 */
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include "../../rt/op/onednn/conv.c"
#include "../../rt/real.h"

enum { OWN, LAST, WAYS, ROUNDS = 99 };
typedef struct { dnnl_primitive_t run; dnnl_exec_arg_t arg[4]; } Timed;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Memory of its own, with numbers that are no subnormals. */
static dnnl_exec_arg_t operand(Room *z, int which, View v)
{
    size_t bytes = library_bytes(v);
    dnnl_memory_t m = library_memory(z, v, this_conv);
    real *at = handle_alloc(bytes + ALIGN);
    for (size_t i = 0; i < bytes / sizeof *at; i++)
        put(at, (long)i, (float)(i % 251) / 256 - 0.5f);
    library_at(m, at);
    return (dnnl_exec_arg_t){which, m};
}

static Timed open_timed(Stage *st, Direction to, const Conv *v, int way)
{
    static const int name[][3] = {{DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST},
                                  {DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST},
                                  {DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST}};
    static const dnnl_query_t part[][3] = {{dnnl_query_src_md, dnnl_query_weights_md, dnnl_query_dst_md},
                                           {dnnl_query_diff_src_md, dnnl_query_weights_md, dnnl_query_diff_dst_md},
                                           {dnnl_query_src_md, dnnl_query_diff_weights_md, dnnl_query_diff_dst_md}};
    Room *z = library_room(st);
    Handle h = {.of = *v, .down = axis_of(v->height, v->yheight, v->kheight, v->stride, v->dilate, v->top),
                .across = axis_of(v->width, v->ywidth, v->kwidth, v->stride, v->dilate, v->left)};
    Shapes s = shapes_of(&h, to, 0), forward = shapes_of(&h, FORWARD, 0);
    if (way == OWN) {
        long x[] = {v->batch, v->in, h.down.n, h.across.n}, y[] = {v->batch, v->out, v->yheight, v->ywidth};
        s.x = forward.x = library_view(4, x, NULL, library_real());
        s.y = forward.y = library_view(4, y, NULL, library_real());
    }
    dnnl_primitive_attr_t attr = library_attributes(0, this_conv);
    dnnl_primitive_desc_t hint = NULL, pd;
    Timed t;
    if (to != FORWARD)
        want(describe(&hint, z->engine, FORWARD, &forward, attr, NULL), "preparation", v);
    want(describe(&pd, z->engine, to, &s, attr, hint), "preparation", v);
    want(dnnl_primitive_create(&t.run, pd), "preparation", v);
    for (int i = 0; i < 3; i++)
        t.arg[i] = operand(z, name[to][i], library_part(pd, part[to][i]));
    t.arg[3] = operand(z, DNNL_ARG_SCRATCHPAD, library_part(pd, dnnl_query_scratchpad_md));
    return t;
}

static void close_timed(Timed *t)
{
    for (int i = 0; i < 4; i++) {
        void *at;
        dnnl_memory_get_data_handle(t->arg[i].memory, &at);
        free(at);
        dnnl_memory_destroy(t->arg[i].memory);
    }
    dnnl_primitive_destroy(t->run);
}

/* The median of each way, in milliseconds. */
static void measure(Stage *st, Direction to, const Conv *v, int rounds, double *median)
{
    static double ms[WAYS][ROUNDS];
    const Room *z = library_room(st);
    Timed t[WAYS];
    for (int way = 0; way < WAYS; way++)
        t[way] = open_timed(st, to, v, way);
    for (int i = -1; i < rounds; i++)           /* the first is not counted */
        for (int way = 0; way < WAYS; way++) {
            double from = now();
            want(dnnl_primitive_execute(t[way].run, z->stream, 4, t[way].arg), "a run", v);
            if (i >= 0)
                ms[way][i] = now() - from;
        }
    for (int way = 0; way < WAYS; way++) {
        qsort(ms[way], (size_t)rounds, sizeof(double), ascending);
        median[way] = ms[way][rounds / 2];
        close_timed(&t[way]);
    }
}

int main(int argc, char **argv)
{
    static const char *const calls[] = {"conv_forward", "conv_backward_x", "conv_backward_w"};
    int threads = 2, rounds = 5, option;
    while ((option = getopt(argc, argv, "t:n:")) != -1)
        switch (option) {
        case 't': threads = atoi(optarg); break;
        case 'n': rounds = atoi(optarg) > ROUNDS ? ROUNDS : atoi(optarg); break;
        default: return 2;
        }
    char why[256], call[32];
    if (kernels_start(threads, why, sizeof why))
        return fprintf(stderr, "%s\n", why), 6;
    Stage st = {.threads = threads, .count = 1};
    omp_set_num_threads(threads);
    Conv v;
    long times;
    double floor = 0, last = 0;
    while (scanf("%31s %ld %ld %ld %ld %ld %ld %ld %ld %ld %ld %ld %ld %ld %ld %ld", call, &v.batch, &v.height, &v.width, &v.in,
                 &v.yheight, &v.ywidth, &v.out, &v.kheight, &v.kwidth, &v.stride, &v.top, &v.left, &v.dilate, &v.groups,
                 &times) == 16) {
        double ms[WAYS];
        int to = 0;
        while (to < 2 && strcmp(call, calls[to]))
            to++;
        measure(&st, (Direction)to, &v, rounds, ms);
        printf("%-15s %3ldx%-3ld %4ld -> %4ld, %ldx%ld by %ld  own %8.3f ms  last %8.3f ms  x %ld\n", call, v.height, v.width,
               v.in, v.out, v.kheight, v.kwidth, v.stride, ms[OWN], ms[LAST], times);
        floor += (double)times * (ms[OWN] < ms[LAST] ? ms[OWN] : ms[LAST]);
        last += (double)times * ms[LAST];
    }
    printf("floor %.3f\nlast %.3f\n", floor, last);
    return 0;
}
