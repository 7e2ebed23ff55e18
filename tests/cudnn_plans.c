/* SPDX-License-Identifier: Apache-2.0
 *
 * cudnn_plans.c: does cuDNN take the graphs of rt/op/cuda/attention_graph.c and conv_graph.c, and in the memory that is planned
 * for them?
 *
 *     cudnn_plans [all]       the graphs of some shapes, or of many, for chips that are described and need not be there
 *
 * For each of them there must be a plan for forward and backward.  The forward workspace must fit in that of a stage, the
 * backward one be exactly what attention_scratch() says on sm_90, and no more on other chips.  Shapes that
 * attention_fits() leaves to our own kernels because the library refuses them must be refused: if not, the rule can go.
 *
 * Convolutions need a plan each way that has no more workspace than a stage: 32 MiB, less the gradient of the weight.
 *
 * The expected size is written here once more from what the library was seen to ask for: dS in bf16 for every pair of sample
 * and head, queries rounded up to 64 and keys to 128.
 */
#include "rt/op/cuda/attention_graph.h"
#include "rt/op/cuda/conv_graph.h"
#include "rt/cuda/device.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int passed, failed;

/* What attention.c leans on beside the library. */
void device_check(const Stage *st, cudaError_t status, const char *what)
{
    (void)st, (void)status, (void)what;
    abort();
}
void attention_own_forward(void);
void attention_own_forward(void) { abort(); }
void attention_own_backward(void);
void attention_own_backward(void) { abort(); }
void attention_own_group(void);
void attention_own_group(void) { abort(); }

typedef struct { const char *name; int version, processors, shared, blocks, threads, cache; } Chip;
static const Chip chips[] = {
    { "H200", 900, 132, 232448, 32, 2048, 62914560 },
    { "A100", 800, 108, 166912, 32, 2048, 41943040 },
    { "B200", 1000, 148, 232448, 32, 2048, 132644864 },
};

/* The 23 fields that the library names as missing when one is. */
static cudnnBackendDescriptor_t describe(const Chip *c)
{
    char text[2048];
    cudnnBackendDescriptor_t d;
    int n = snprintf(text, sizeof text,
        "{\"deviceName\":\"%s\",\"cudaDeviceId\":0,\"pciDeviceId\":0,\"deviceVer\":%d,\"driverVer\":%d,"
        "\"multiProcessorCount\":%d,\"warpSize\":32,\"maxGridSize\":[2147483647,65535,65535],\"maxBlockSize\":[1024,1024,64],"
        "\"regsPerBlock\":65536,\"maxRegistersPerSM\":65536,\"maxSharedMemoryPerBlock\":49152,"
        "\"maxSharedMemoryPerBlockOptin\":%d,\"reservedSharedMemoryPerBlock\":1024,\"maxCtasPerSM\":%d,"
        "\"maxThreadsPerBlock\":1024,\"maxThreadsPerSM\":%d,\"isTccDriver\":0,\"supportCoopLaunch\":1,"
        "\"smClockRateKHz\":1980000,\"memClockRateKHz\":3201000,\"l2CacheSize\":%d,\"totalGlobalMem\":150000000000}",
        c->name, c->version, CUDART_VERSION, c->processors, c->shared, c->blocks, c->threads, c->cache);
    if (cudnnBackendCreateDescriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, &d) ||
        cudnnBackendSetAttribute(d, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, n, text) ||
        cudnnBackendFinalize(d)) {
        cudnnGetLastErrorString(text, sizeof text);
        fprintf(stderr, "cudnn_plans: the chip's description is refused: %s\n", text);
        exit(1);
    }
    return d;
}

enum { QUICK = 1, OTHER_CHIPS = 2, REFUSED = 4, REFUSED_BUT_90 = 8, FORWARD_ALONE = 16 };      /* the last: of REFUSED */
typedef struct { long batch, heads, own, query, key, width, causal, packed; int how; } Row;
static const Row rows[] = {
    { 8, 12, 12, 1024, 1024, 64, 1, 1, QUICK },                     /* GPT-2 124M */
    { 2, 3, 3, 130, 257, 128, 0, 0, QUICK },                       /* sizes that divide nothing */
    { 2, 3, 3, 7, 13, 8, 1, 0, 0 },
    { 2, 3, 3, 64, 64, 12, 1, 1, REFUSED },
    { 2, 3, 3, 64, 64, 136, 1, 1, QUICK | OTHER_CHIPS | REFUSED_BUT_90 },
    { 2, 3, 3, 130, 257, 192, 0, 0, REFUSED_BUT_90 },
    { 2, 8, 1, 1024, 1024, 256, 1, 0, QUICK | OTHER_CHIPS | REFUSED_BUT_90 },       /* Gemma 2B */
    { 2, 3, 3, 64, 64, 264, 1, 1, REFUSED | FORWARD_ALONE },
    { 8, 16, 16, 1000, 1000, 64, 1, 0, OTHER_CHIPS },
    { 1, 1, 1, 1, 1, 64, 1, 1, 0 },
    { 2, 3, 3, 192, 64, 64, 0, 0, OTHER_CHIPS },
    { 2, 3, 3, 64, 192, 64, 0, 0, 0 },
    { 4, 12, 12, 512, 512, 64, 0, 1, 0 },
    { 2, 3, 3, 33, 33, 40, 1, 1, OTHER_CHIPS },
    { 2, 3, 3, 128, 128, 96, 1, 1, 0 },
    { 1, 2, 2, 4096, 4096, 128, 1, 1, OTHER_CHIPS },
    { 4, 32, 8, 1024, 1024, 64, 1, 0, QUICK | OTHER_CHIPS },    /* Llama-3.2 1B */
    { 2, 6, 2, 130, 257, 128, 0, 0, 0 },
    { 2, 3, 1, 7, 13, 8, 1, 0, OTHER_CHIPS },
};

static long up(long n, long to) { return (n + to - 1) / to * to; }

static void check(bool ok, const Chip *c, const Row *r, const char *what, long by)
{
    ok ? passed++ : failed++;
    if (!ok)
        fprintf(stderr, "cudnn_plans: %s, %ld x %ld/%ld heads of %ld, %ld queries, %ld keys%s%s: %s (%ld)\n", c->name, r->batch,
                r->heads, r->own, r->width, r->query, r->key, r->causal ? ", causal" : "",
                r->packed ? ", packed" : "", what, by);
}

static void plan(const Chip *c, cudnnBackendDescriptor_t chip, const Row *r, bool back)
{
    long pairs = r->batch * r->heads, each = r->own < r->heads ? up(pairs * r->key * r->width * 2, 64) : 0;
    Shape s = attention_shape(r->batch, r->heads, r->own, r->query, r->key, r->width, r->causal, r->packed);
    Graph *g = calloc(1, sizeof *g);
    Plan p = { .workspace = -1 };
    if (!g)
        abort();
    g->chip = chip;
    bool found = (back ? attention_plan_backward : attention_plan_forward)(g, &p, &s);
    bool refused = (r->how & REFUSED && (back || !(r->how & FORWARD_ALONE)))
        || (r->how & REFUSED_BUT_90 && back && c->version != 900);
    if (r->how & REFUSED || (r->how & REFUSED_BUT_90 && c->version != 900)) {       /* no plan opens it: prepared.c */
        check(found == !refused, c, r, back ? "the library takes it backward" : "the library takes it forward", found);
        free(g);
        return;
    }
    check(found && attention_fits(&s), c, r, found ? "attention_fits()" : g->failed, (long)g->status);
    long sums = up(pairs * r->query * 4, 64) + 2 * each + 192, most = pairs * up(r->query, 64) * up(r->key, 128) * 2 + 256;
    if (!back)
        check(p.workspace <= 1 << 20, c, r, "forward workspace", (long)p.workspace);
    else
        check(c->version == 900 ? p.workspace == most : p.workspace <= most, c, r, "backward workspace", (long)p.workspace);
    check((long)attention_scratch(&s) == sums + most, c, r, "attention_scratch()", (long)attention_scratch(&s));
    free(g);
}

/* batch height width in; yheight ywidth out; kernel, stride, pads, dilate, groups */
typedef struct { Conv v; int how; } Images;
static const Images images[] = {
    { { 32, 224, 224, 3, 112, 112, 64, 7, 7, 2, 3, 3, 1, 1 }, QUICK | OTHER_CHIPS },        /* ResNet-50 */
    { { 32, 56, 56, 64, 56, 56, 64, 3, 3, 1, 1, 1, 1, 1 }, 0 },
    { { 32, 56, 56, 64, 56, 56, 256, 1, 1, 1, 0, 0, 1, 1 }, OTHER_CHIPS },
    { { 32, 56, 56, 128, 28, 28, 128, 3, 3, 2, 1, 1, 1, 1 }, OTHER_CHIPS },
    { { 32, 14, 14, 1024, 7, 7, 2048, 1, 1, 2, 0, 0, 1, 1 }, 0 },
    { { 32, 7, 7, 512, 7, 7, 512, 3, 3, 1, 1, 1, 1, 1 }, OTHER_CHIPS },
    { { 16, 224, 224, 3, 224, 224, 64, 3, 3, 1, 1, 1, 1, 1 }, OTHER_CHIPS },                /* VGG-16 */
    { { 16, 224, 224, 64, 224, 224, 64, 3, 3, 1, 1, 1, 1, 1 }, 0 },
    { { 64, 224, 224, 3, 112, 112, 64, 7, 7, 2, 3, 3, 1, 1 }, OTHER_CHIPS },
    { { 256, 224, 224, 3, 112, 112, 64, 7, 7, 2, 3, 3, 1, 1 }, 0 },
    { { 64, 224, 224, 3, 224, 224, 64, 3, 3, 1, 1, 1, 1, 1 }, QUICK },                      /* VGG-16 */
    { { 16, 224, 224, 64, 224, 224, 3, 1, 1, 1, 0, 0, 1, 1 }, 0 },                          /* UNet's last */
    { { 32, 112, 112, 32, 112, 112, 32, 3, 3, 1, 1, 1, 1, 32 }, QUICK | OTHER_CHIPS },      /* MobileNetV2, depthwise */
    { { 32, 112, 112, 96, 56, 56, 96, 5, 5, 2, 2, 2, 1, 96 }, OTHER_CHIPS },                /* EfficientNet */
    { { 32, 56, 56, 96, 56, 56, 96, 7, 7, 1, 3, 3, 1, 96 }, 0 },                            /* ConvNeXt */
    { { 32, 224, 224, 3, 56, 56, 96, 4, 4, 4, 0, 0, 1, 1 }, 0 },
    { { 8, 17, 17, 768, 17, 17, 192, 1, 7, 1, 0, 3, 1, 1 }, QUICK | OTHER_CHIPS },          /* Inception-v3 */
    { { 8, 35, 35, 35, 17, 17, 45, 3, 3, 2, 0, 0, 1, 1 }, OTHER_CHIPS },            /* sizes that divide nothing */
    { { 4, 9, 8, 8, 5, 5, 16, 3, 3, 2, 1, 2, 1, 1 }, QUICK | OTHER_CHIPS },                 /* pads that differ */
    { { 2, 16, 16, 32, 12, 12, 32, 3, 3, 1, 0, 0, 2, 4 }, OTHER_CHIPS },            /* dilated, groups */
    { { 8, 1000, 1, 64, 1000, 1, 64, 5, 1, 1, 2, 0, 1, 1 }, 0 },                        /* one axis */
    { { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1 }, 0 },
};

static void plan_images(const Chip *c, cudnnBackendDescriptor_t chip, const Images *r, ConvWay way)
{
    const Conv *v = &r->v;
    Graph *g = calloc(1, sizeof *g);
    Plan p = { .workspace = -1 };
    if (!g)
        abort();
    g->chip = chip;
    /* what main.c asks for: the images once more, with channels up to a multiple of 8; and 8 MiB */
    long odd = v->in % 8 ? v->batch * v->height * v->width * up(v->in, 8) * 2 : 0, room = (8L << 20) + odd;
    g->room = (room > 32L << 20 ? room : 32L << 20) - (way == CONV_BACKWARD_W ? (long)conv_front(v) : 0);
    bool found = conv_plan(g, &p, way, v), fast = p.cores || !conv_heavy(v);
    found && p.workspace <= g->room && fast ? passed++ : failed++;
    if (!found || p.workspace > g->room || !fast)
        fprintf(stderr, "cudnn_plans: %s, way %d, %ld x %ld x %ld x %ld to %ld, kernel %ld x %ld, groups %ld: %s (%ld)\n",
                c->name, (int)way, v->batch, v->height, v->width, v->in, v->out, v->kheight, v->kwidth, v->groups,
                !found ? g->failed : fast ? "workspace" : "no tensor cores", (long)p.workspace);
    free(g);
}

int main(int argc, char **argv)
{
    bool all = argc > 1 && !strcmp(argv[1], "all");
    for (size_t i = 0; i < sizeof chips / sizeof *chips; i++) {
        cudnnBackendDescriptor_t chip = describe(&chips[i]);
        for (size_t j = 0; j < sizeof rows / sizeof *rows; j++)
            if ((all || (rows[j].how & QUICK && i == 0)) && (i == 0 || rows[j].how & OTHER_CHIPS))
                for (int back = 0; back < 2; back++)
                    plan(&chips[i], chip, &rows[j], back);
        for (size_t j = 0; j < sizeof images / sizeof *images; j++)
            if ((all || (images[j].how & QUICK && i == 0)) && (i == 0 || images[j].how & OTHER_CHIPS))
                for (int way = CONV_FORWARD; way <= CONV_BACKWARD_W; way++)
                    plan_images(&chips[i], chip, &images[j], (ConvWay)way);
    }
    printf("cudnn_plans: %d passed, %d failed\n", passed, failed);
    return failed > 0;
}
