/* SPDX-License-Identifier: Apache-2.0
 *
 * conv_graph.c: convolutions by cuDNN, in bf16 on images with channels last.
 *
 * Method.  A graph of one operation for each call.  The weight is given as it is stored, [out in/groups kheight kwidth]; the
 * library turns it in its workspace.  Sums are f32, and results bf16.  The gradient of the weight goes to the front of the
 * stage's workspace (conv.c), and the library's own follows.
 *
 * The library counts rows from both pads.  The pad behind is as large as the last window needs; where that is less than
 * nothing, the last rows are read by no window, and none is given.
 *
 * A call without a plan is named at the start and left to our own kernels: a workspace that is too small, or sizes that the
 * library does not take.  One whose engine has no tensor cores is named too: images of 3 channels are copied into the
 * workspace with 8, and where they do not fit, engines of plain cores come next.  A plan is a function of sizes, workspace,
 * chip and version, so all machines of a job have the same.
 *
 * Not handled: pads below zero, which gen/cost/prepared.c leaves to our own kernels.
 */
#include "conv_graph.h"
#include "start.h"
#include "../../cuda/device.h"
#include <stdio.h>
#include <stdlib.h>

static const cudnnDataType_t REAL = CUDNN_DATA_BFLOAT16;

static Dims image(long batch, long channels, long height, long width)
{
    return (Dims){ { batch, channels, height, width }, { height * width * channels, 1, width * channels, channels } };
}

static int64_t behind(long n, long made, long kernel, long stride, long before, long dilate)
{
    long need = (made - 1) * stride + dilate * (kernel - 1) + 1 - n - before;
    return need > 0 ? need : 0;
}

bool conv_plan(Graph *g, Plan *p, ConvWay way, const Conv *v)
{
    long of = v->in / v->groups, taps = v->kheight * v->kwidth;
    Window window = {
        { v->stride, v->stride }, { v->top, v->left },
        { behind(v->height, v->yheight, v->kheight, v->stride, v->top, v->dilate),
          behind(v->width, v->ywidth, v->kwidth, v->stride, v->left, v->dilate) },
        { v->dilate, v->dilate },
    };
    int y = graph_memory(g, image(v->batch, v->out, v->yheight, v->ywidth), REAL);
    int x = graph_memory(g, image(v->batch, v->in, v->height, v->width), REAL);
    int w = graph_memory(g, (Dims){ { v->out, of, v->kheight, v->kwidth }, { of * taps, taps, v->kwidth, 1 } }, REAL);
    graph_conv(g, way, x, w, y, &window);
    return graph_plan(g, p);
}

/* ---- prepared ---------------------------------------------------------------------------------------------- */
typedef struct { PreparedConv head; Plan plan; Conv v; ConvWay kind; Dry dry; } Planned;

static void *behind_front(const Stage *st, const Planned *p)
{
    return (char *)device_of(st)->workspace + (p->kind == CONV_BACKWARD_W ? conv_front(&p->v) : 0);
}

static bool run(Stage *st, const PreparedConv *of, void *const *address, const char *call)
{
    const Planned *p = (const Planned *)of;
    plan_run(st, &p->plan, address, behind_front(st, p), call);
    return true;
}

static size_t up(long n) { return ((size_t)n * sizeof(real) + 255) / 256 * 256; }

/* Operands behind each other, where the arena has room for them. */
static void run_dry(Stage *st, void *of)
{
    const Planned *p = of;
    const Conv *v = &p->v;
    unsigned char *x = (unsigned char *)st->arena + up(v->batch * v->yheight * v->ywidth * v->out);
    unsigned char *w = x + up(v->batch * v->height * v->width * v->in);
    void *const address[] = { st->arena, x, w };
    if ((size_t)(w - (unsigned char *)st->arena) + conv_front(v) <= room_of(st))
        plan_run(st, &p->plan, address, behind_front(st, p), "the first convolution");
}

/* What the call is left with. */
static void tell(const Stage *st, const char *call, const Conv *v, const char *what)
{
    size_t version = cudnnGetVersion();
    fprintf(stderr, "%s: %ld images of %ld x %ld x %ld to %ld channels, kernel %ld x %ld, groups %ld: cuDNN %zu.%zu.%zu has %s "
            "in a workspace of %zu bytes; a larger devices.workspace may bring a faster one\n", call, v->batch, v->height,
            v->width, v->in, v->out, v->kheight, v->kwidth, v->groups, version / 10000, version / 100 % 100, version % 100,
            what, device_of(st)->workspace_bytes);
}

static void prepare(Stage *st, int h, ConvWay way, const char *call, Conv v)
{
    Device *d = device_of(st);
    size_t front = way == CONV_BACKWARD_W ? conv_front(&v) : 0;
    Graph *g = calloc(1, sizeof *g);
    Planned *p = calloc(1, sizeof *p);
    if (!g || !p) {
        fprintf(stderr, "%s: no memory\n", call);
        exit(1);
    }
    *p = (Planned){ .head = { run }, .v = v, .kind = way };
    g->handle = graph_handle(st);
    g->room = (int64_t)d->workspace_bytes - (int64_t)front;
    if (g->room > 0 && conv_plan(g, &p->plan, way, &v)) {
        st->handle[h] = p;
        p->dry = (Dry){ run_dry, p, d->dry };
        d->dry = &p->dry;
        if (!p->plan.cores && conv_heavy(&v))
            tell(st, call, &v, "no plan with tensor cores");
    } else {
        tell(st, call, &v, "no plan, so our own kernels do it,");
        free(p);
    }
    free(g);
}

void open_conv_forward(Stage *st, int h, CONV_SIZES)
{
    prepare(st, h, CONV_FORWARD, "conv_forward", (Conv)CONV_OF_CALL);
}

void open_conv_backward_x(Stage *st, int h, CONV_SIZES)
{
    prepare(st, h, CONV_BACKWARD_X, "conv_backward_x", (Conv)CONV_OF_CALL);
}

void open_conv_backward_w(Stage *st, int h, CONV_SIZES)
{
    prepare(st, h, CONV_BACKWARD_W, "conv_backward_w", (Conv)CONV_OF_CALL);
}
