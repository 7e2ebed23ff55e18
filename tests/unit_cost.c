/* SPDX-License-Identifier: Apache-2.0
 *
 * unit_cost: times of calls, messages and copies against sums made by hand.
 *
 *   roofline   one Linear of known arithmetic and bytes on devices of known rates: which side of the roof, efficiency, the
 *              cost of a call, types, devices of several speeds in one job
 *   passes     LinearCrossEntropy: products on one side of the roof, and behind them, passes over scores on either
 *   scratch    counts as written and read, in attention too
 *   moves      gradients added and weights copied, by a GPU at its bandwidth with a launch a tensor, by a processor
 *   links      which entry a pair takes, both directions, latency, duplex, the table of transports
 *   crowded    more threads than cores: T/C of the time alone, by host, for processors only
 *   prepared   which calls a kernel library opens a handle for
 *   devices    every file of devices/ is read, and prices a Linear between half and all of its data sheet
 */
#include "plan.h"
#include "cost/prof.h"
#include <dirent.h>
#include <string.h>

static int passed, failed;
static void equal(const char *what, int64_t got, int64_t want)
{
    if (got == want) {
        passed++;
        return;
    }
    failed++;
    fprintf(stderr, "unit_cost: %s is %lld, not %lld\n", what, (long long)got, (long long)want);
}

static const char head[] =
    "dpgen: 1\n"
    "model:\n"
    "  name: one\n"
    "  inputs: {x: {shape: [B, 64], dtype: f32}, t: {shape: [B, 32], dtype: f32}}\n"
    "  graph:\n"
    "    - {op: Linear, name: fc, in: x, out: 32}\n"
    "    - {op: Gelu, name: act}\n"
    "    - {op: MeanSquaredError, targets: t, as: loss}\n"
    "  loss: loss\n";

typedef struct { const Model *m; const Graph *g; const Cost *c; } World;

static World world_of_model(const char *first, const char *rest, const char *devices)
{
    World w;
    char *text = strf("%s%s", first, rest);
    Node *root = load_text("unit_cost.yaml", text, strlen(text));
    if (devices)
        override_devices(root, devices);
    w.m = model(root, "unit_cost.yaml", NULL);
    Graph *g = build(w.m);
    shape(g, w.m);
    fp8(g, w.m);
    grad(g, w.m);
    fuse(g, w.m);
    w.g = g;
    w.c = cost(w.g, w.m, NULL);
    check_cost(w.g, w.c);
    return w;
}

static World world_of(const char *rest, const char *devices)
{
    return world_of_model(head, rest, devices);
}

static Ns time_of(const World *w, int device, const char *call)
{
    for (int o = 0; o < w->g->op.n; o++)
        if (!strcmp(w->g->op.at[o].call, call))
            return cost_op(w->c, device, o);
    return -1;
}

/* fc: 2 * 4 * 64 * 32 = 16384 operations; x 1024, weight 8192, bias 128, y 512 bytes: 9856.
 * act: 12 * 4 * 32 = 1536 operations; 1024 bytes. */
static void test_roof(void)
{
    static const struct { const char *device; Ns fc, act; } cases[] = {
        /* arithmetic: 16384 / 1.024 per ns; 1536 / 0.768 per ns */
        {"flops: 1.024TFLOP/s, vector: 768GFLOP/s, bandwidth: 99TB/s, call: 0ns", 200 + 16, 200 + 2},
        {"flops: 1.024GFLOP/s, vector: 768MFLOP/s, bandwidth: 1TB/s, call: 1us", 1000 + 16000, 1000 + 2000},
        /* bytes: 9856 / 0.616 per ns, 1024 / 0.616 rounded up */
        {"flops: 1PFLOP/s, vector: 1PFLOP/s, bandwidth: 0.616GB/s, call: 1ns", 1 + 16000, 1 + 1663},
        /* efficiency halves the rates: of products, not of the rest; of memory */
        {"flops: 2.048GFLOP/s, vector: 768MFLOP/s, bandwidth: 99TB/s, call: 5ns, efficiency: {product: 0.5}",
         5 + 16000, 5 + 2000},
        {"flops: 1PFLOP/s, vector: 1PFLOP/s, bandwidth: 1.232GB/s, call: 1ns, efficiency: {memory: 1/2}", 1 + 16000, 1 + 1663},
        /* a rate for each type, and the other type's does not count */
        {"flops: {f32: 1.024GFLOP/s, bf16: 99TFLOP/s}, vector: 768MFLOP/s, bandwidth: 99TB/s, call: 1ns", 16001, 2001},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        World w = world_of(strf("train: {batch: {global: 4, micro: 4}}\n"
                                "devices: [{kind: cuda, memory: 1GiB, %s}]\n", cases[i].device), NULL);
        equal(strf("roof %zu, linear_forward", i), time_of(&w, 0, "linear_forward"), cases[i].fc);
        equal(strf("roof %zu, gelu_forward", i), time_of(&w, 0, "gelu_forward"), cases[i].act);
    }
}

/* rows 16, in 64, out 32, factors of 8 bits.  Products 2 * 16 * 64 * 32 = 65536 operations; narrowing 3072 numbers 4 times as
 * many, and 3 bytes each.  Operands: x 2048, weight 4096, bias 64, y 1024, amax 1536 bytes; scratch, a byte a number and 24640,
 * twice: 64192, of which 9216 are those of narrowing. */
static void test_eight(void)
{
    static const struct { const char *device; Ns want; } cases[] = {
        {"flops: {bf16: 99TFLOP/s, fp8: 4.096GFLOP/s}, vector: 768MFLOP/s, bandwidth: 99TB/s", 1 + 16000 + 16000},
        {"flops: {bf16: 1.024GFLOP/s}, vector: 768MFLOP/s, bandwidth: 99TB/s", 1 + 32000 + 16000},
        {"flops: {bf16: 99TFLOP/s, fp8: 4.096GFLOP/s}, vector: 768MFLOP/s, bandwidth: 99TB/s, efficiency: {product: 0.5}",
         1 + 32000 + 16000},
        {"flops: {bf16: 99TFLOP/s, fp8: 99TFLOP/s}, vector: 99TFLOP/s, bandwidth: 0.576GB/s", 1 + 95445 + 16000},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        World w = world_of(strf("train: {precision: {compute: fp8}, batch: {global: 16, micro: 16}}\n"
                                "devices: [{kind: cuda, memory: 1GiB, call: 1ns, %s}]\n", cases[i].device), NULL);
        equal(strf("eight %zu", i), time_of(&w, 0, "linear_fp8_forward"), cases[i].want);
    }
}

/* rows 4, in 64, out 96 in chunks of 32; x needs no gradient.  Products 2 * 4 * 64 * 96 = 49152 operations, in backward three
 * times; passes 6 * 4 * 96 = 2304 over 1536 bytes of scores, read in forward, read and written in backward.  Operands: loss 4,
 * lse 16, x 1024, weight 24576, bias 384, targets 16: 26020; in backward gradients, added to, make them 75940.  Scratch, a
 * chunk of 512 bytes and in forward two floats a row, counts twice. */
static void test_passes(void)
{
    static const char model_head[] =
        "dpgen: 1\n"
        "model:\n"
        "  name: one\n"
        "  inputs: {x: {shape: [B, 64], dtype: f32}, t: {shape: [B], dtype: i32, range: [0, 96]}}\n"
        "  graph:\n"
        "    - {op: LinearCrossEntropy, name: head, in: x, targets: t, out: 96, chunk: 32, as: loss}\n"
        "  loss: loss\n"
        "train: {batch: {global: 4, micro: 4}}\n";
    static const struct { const char *device; Ns forward, backward; } cases[] = {
        /* all by arithmetic: 49152 / 1.024 per ns; 2304 / 0.768 per ns */
        {"flops: 1.024GFLOP/s, vector: 768MFLOP/s, bandwidth: 99TB/s", 48000 + 3000, 144000 + 3000},
        /* all by bytes: 26020 + 1088 and 75940 + 1024 / 0.512 per ns, rounded up; scores */
        {"flops: 1PFLOP/s, vector: 1PFLOP/s, bandwidth: 512MB/s", 52946 + 3000, 150321 + 6000},
        /* products by arithmetic, passes by bytes */
        {"flops: 256MFLOP/s, vector: 1PFLOP/s, bandwidth: 512MB/s", 192000 + 3000, 576000 + 6000},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        World w = world_of_model(model_head, strf("devices: [{kind: cuda, memory: 1GiB, call: 1ns, %s}]\n",
                                                  cases[i].device), NULL);
        equal(strf("passes %zu, linear_xent_forward", i), time_of(&w, 0, "linear_xent_forward"), 1 + cases[i].forward);
        equal(strf("passes %zu, linear_xent_backward", i), time_of(&w, 0, "linear_xent_backward"), 1 + cases[i].backward);
    }
}

/* Two samples of 64 tokens, one head of 64, bf16.  By cuDNN: gradient and qkv 49152 bytes each, dy and y 16384 each, lse
 * 512; in scratch a float a query, and 64 x 128 numbers of dS a sample, of which dq is made when dk is done: 512 + 32768 +
 * 256 bytes (rt/op/cuda/attention.c), written and read.  Of kernels that need no dS, the first 512. */
static void test_scratch(void)
{
    static const char model_head[] =
        "dpgen: 1\n"
        "model:\n"
        "  name: one\n"
        "  inputs: {x: {shape: [B, 64, 64], dtype: f32}, t: {shape: [B, 64, 64], dtype: f32}}\n"
        "  graph:\n"
        "    - {op: Linear, name: qkv, in: x, out: 192}\n"
        "    - {op: Attention, heads: 1, packed: qkv}\n"
        "    - {op: MeanSquaredError, targets: t, as: loss}\n"
        "  loss: loss\n"
        "train: {batch: {global: 2, micro: 2}, precision: {compute: bf16}}\n";
    static const struct { const char *device; Bytes scratch; } cases[] = {
        {"kind: cuda, memory: 1GiB", 512 + 192 + 32768 + 256}, {"kind: cpu, kernels: portable", 512}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        World w = world_of_model(model_head, strf("devices: [{%s}]\n", cases[i].device), NULL);
        for (int o = 0; o < w.g->op.n; o++)
            if (!strcmp(w.g->op.at[o].call, "attention_packed_backward"))
                equal(strf("bytes of attention, %s", cases[i].device), w.g->op.at[o].moved,
                      2 * 49152 + 2 * 16384 + 512 + 2 * cases[i].scratch);
    }
}

static void test_mixed(void)
{
    World w = world_of("train: {batch: {global: 4, micro: 4}}\n"
        "devices:\n"
        "  - {name: slow, kind: cuda, count: 2, memory: 1GiB, flops: 1.024GFLOP/s, bandwidth: 99TB/s, call: 1ns}\n"
        "  - {name: fast, kind: cuda, memory: 4GiB, flops: 4.096GFLOP/s, bandwidth: 99TB/s, call: 1ns}\n", NULL);
    equal("classes of slow, slow, fast", w.c->classes, 2);
    equal("linear_forward on slow.0", time_of(&w, 0, "linear_forward"), 16001);
    equal("linear_forward on slow.1", time_of(&w, 1, "linear_forward"), 16001);
    equal("linear_forward on fast", time_of(&w, 2, "linear_forward"), 4001);
    equal("memory of fast", w.m->devices.at[2].memory, ((Bytes)4 << 30) - ((Bytes)32 << 20));       /* less the workspace */
}

/* 3 x 4 MB are 12 us at 0.5 of 2 TB/s, and 3 ms at a processor's 4 bytes a nanosecond, whatever its bandwidth. */
static void test_moves(void)
{
    static const char *const device = "devices: [{name: a, kind: %s, count: 2, memory: 1GiB, bandwidth: 2TB/s, call: 2us, "
        "efficiency: {memory: 0.5}}]\n";
    World gpu = world_of(strf(device, "cuda"), NULL), cpu = world_of(strf(device, "cpu"), NULL);
    equal("nothing moved by a GPU", action_fixed(gpu.c, 1, K_END, 1, 0), 500 + 2000);
    equal("a merge on a GPU", action_fixed(gpu.c, 1, K_MERGE, 1, 4000000), 500 + 2000 + 12000);
    equal("a fold of ten tensors on a GPU", action_fixed(gpu.c, 0, K_FOLD, 10, 4000000), 500 + 20000 + 12000);
    equal("a copy of weights on a GPU", action_fixed(gpu.c, 0, K_VERSION, 1, 4000000), 500 + 2000 + 8000);
    equal("nothing moved by a processor", action_fixed(cpu.c, 1, K_END, 1, 0), 500);
    equal("a fold of ten tensors on a processor", action_fixed(cpu.c, 0, K_FOLD, 10, 4000000), 500 + 3000000);
    equal("rounded down", action_fixed(cpu.c, 0, K_MERGE, 1, 1), 500);
    equal("data of a GPU come from its host", action_fixed(gpu.c, -1, K_LOAD, 1, 4000), 500 + 1000);
}

/* Of the second of a pair, what it need not read again: a sum of 4 x 64 numbers, scores of 4 x 96.  Bytes take a ns each:
 * add 3 * 1024; ln 1024 + 2 * 16 + 1024 + 2 * 256 = 2592; the gradient of the scores 2 * 1536, and 4, 16 and 16 = 3108;
 * update of 64 x 64 7 * 16384, clip 4; its norm 16384, and twice six partial norms: 96. */
static void test_pairs(void)
{
    static const char model_head[] =
        "dpgen: 1\n"
        "model:\n"
        "  name: one\n"
        "  inputs:\n"
        "    x: {shape: [B, 64], dtype: f32}\n"
        "    y: {shape: [B, 64], dtype: f32}\n"
        "    t: {shape: [B], dtype: i32, range: [0, 96]}\n"
        "  graph:\n"
        "    - {op: Linear, name: fc, in: x, out: 64}\n"
        "    - {op: Add, name: sum, in: [_, y]}\n"
        "    - {op: LayerNorm, name: ln}\n"
        "    - {op: Linear, name: head, out: 96}\n"
        "    - {op: SoftmaxCrossEntropy, targets: t, as: loss}\n"
        "  loss: loss\n"
        "train: {batch: {global: 4, micro: 4}, clip_norm: 1, optimizer: {type: adamw, lr: 0.001}}\n";
    static const char device[] =
        "devices: [{kind: %s, memory: 1GiB, flops: 1PFLOP/s, vector: 1PFLOP/s, bandwidth: 1GB/s, call: 900ns}]\n";
    World cpu = world_of_model(model_head, strf(device, "cpu"), NULL);
    World gpu = world_of_model(model_head, strf(device, "cuda"), NULL);
    equal("an addition", time_of(&gpu, 0, "add_forward"), 900 + 3072);
    equal("a norm behind an addition", time_of(&gpu, 0, "layernorm_forward"), 2592 - 1024);
    equal("an update of a table of 45", time_of(&gpu, 0, "adamw_update"), 900 / 45 + 114688 + 4);
    equal("a norm of a table of 99, two launches", time_of(&gpu, 0, "norm_partial"), 900 * 2 / 99 + 16480);
    equal("a norm by itself", time_of(&cpu, 0, "layernorm_forward"), 900 + 2592);
    equal("an update by itself", time_of(&cpu, 0, "adamw_update"), 900 + 114688 + 4);
    for (int o = 0; o < gpu.g->op.n; o++)
        equal(strf("alone, %s", gpu.g->op.at[o].call), cost_alone(gpu.c, 0, o) - cost_op(gpu.c, 0, o),
              strcmp(gpu.g->op.at[o].call, "layernorm_forward") ? 0 : 900 + 1024);
    const Cost *apart = gpu.c, *joined = cost_with(gpu.c, schedule_of("1f1b"));
    equal("gpipe", time_of(&gpu, 0, "xent_backward"), 900 + 3108);
    gpu.c = cost_with(gpu.c, schedule_of("1f1b"));
    equal("backward right behind the loss", time_of(&gpu, 0, "xent_backward"), 3108 - 1536);
    equal("the same table", cost_with(joined, schedule_of("zb-h1")) == joined, true);
    equal("and back", cost_with(joined, schedule_of("gpipe")) == apart, true);
    equal("a processor has one", cost_with(cpu.c, schedule_of("1f1b")) == cpu.c, true);
}

enum { A0, A1, A2, LAST };      /* devices a.0, a.1, a.2, b */
static void test_links(void)
{
    World w = world_of("devices: [{name: a, count: 3}, {name: b}]\n"
        "hosts: {count: 1, memory: 10GiB, offload: 3GiB}\n"
        "links:\n"
        "  a.0-a.1: {rate: 8GB/s, latency: 100ns, duplex: half}\n"
        "  a-a: {rate: 2GB/s, latency: 7us}\n"
        "  a-b: 1GB/s\n"
        "  b-a: 500MB/s\n"
        "  a-host: 4GB/s\n"
        "  a.2-host: {rate: 16GB/s, latency: 3us, duplex: half}\n", NULL);
    static const struct { int from, to; Ns wire, latency; bool half; } pairs[] = {   /* of 8000 bytes */
        {A0, A2, 4000, 7000, false}, {A2, A0, 4000, 7000, false}, {A1, A2, 4000, 7000, false},
        {A0, A1, 1000, 100, true}, {A1, A0, 1000, 100, true},       /* one pair alone beats all */
        {A0, LAST, 16000, 2000, false}, {LAST, A2, 16000, 2000, false},     /* equally exact: the slower; transport's latency */
        {LAST, LAST, 2000, 2000, false},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        const char *name = strf("%d to %d", pairs[i].from, pairs[i].to);
        equal(strf("wire %s", name), cost_wire(w.c, pairs[i].from, pairs[i].to, 8000), pairs[i].wire);
        equal(strf("latency %s", name), cost_latency(w.c, pairs[i].from, pairs[i].to), pairs[i].latency);
        equal(strf("half %s", name), cost_half(w.c, pairs[i].from, pairs[i].to), pairs[i].half);
    }
    equal("a.0 to its host", cost_host(w.c, A0, 8000), 10000 + 2000);
    equal("a.2 to its host", cost_host(w.c, A2, 8000), 3000 + 500);
    equal("b to its host", cost_host(w.c, LAST, 8000), 10000 + 2000);
    equal("half of a.2", cost_host_half(w.c, A2), true);
    equal("half of a.1", cost_host_half(w.c, A1), false);
    equal("host memory", w.m->host_memory, (Bytes)3 << 30);
    equal("nothing takes no time", cost_wire(w.c, 0, 1, 0), 0);
    equal("a byte is rounded up", cost_wire(w.c, 0, 1, 1), 1);
    w = world_of("devices: [{name: a, count: 2}]\nplan: {transport: mpi}\n", NULL);
    equal("mpi, wire", cost_wire(w.c, 0, 1, 1000), 1000);
    equal("mpi, latency", cost_latency(w.c, 0, 1), 20000);
    for (int nccl = 0; nccl < 2; nccl++) {      /* 4 channels of 20.6 GB/s, if that is less than the wire */
        w = world_of(strf("devices: [{name: gpu, kind: cuda, arch: sm_90, count: 3, memory: 1GiB}]\nplan: {transport: %s}\n"
                          "links: {gpu-gpu: 412GB/s, gpu.0-gpu.1: 41.2GB/s}\n", nccl ? "nccl" : "local"), NULL);
        equal("a fast wire", cost_wire(w.c, 1, 2, 412000000), nccl ? 5000000 : 1000000);
        equal("a slow wire", cost_wire(w.c, 0, 1, 412000000), 10000000);
    }
}

/* Is the file's Linear slower than the data sheet and at most four times so, launch apart? */
static void test_file(const char *path)
{
    World w = world_of("train: {batch: {global: 65536, micro: 65536}, precision: {compute: bf16}}\n", path);
    const Device *d = &w.m->devices.at[0];
    double flop = 2.0 * 65536 * 64 * 32, moved = 2.0 * (65536 * (64 + 32) + 64 * 32 + 32);
    double work = flop / d->flops[1] * 1e9, move = moved / d->bandwidth * 1e9, least = work > move ? work : move;
    Ns got = time_of(&w, 0, "linear_forward") - d->call;
    equal(strf("%s: at the roof or above", path), got >= (Ns)least, true);
    equal(strf("%s: not far above", path), got <= (Ns)(2 * least) + 2, true);
    equal(strf("%s: links", path), w.m->links.n, 2);
    equal(strf("%s: half of the peak or more", path), d->product_share >= 0.5 && d->memory_share >= 0.5, true);
}

static void test_files(void)
{
    DIR *dir = opendir("devices");
    int n = 0;
    for (struct dirent *e; dir && (e = readdir(dir));)
        if (strstr(e->d_name, ".yaml")) {
            test_file(strf("devices/%s", e->d_name));
            n++;
        }
    if (dir)
        closedir(dir);
    equal("eight files or more in devices/", n >= 8, true);
}

/* A call of attention without the operands that `absent` names. */
static bool prepared(const char *call, Type compute, const char *kind, int64_t width, const char *absent, double drop,
                     bool eval)
{
    static const char *const operands[] = {"dq", "dk", "dv", "y", "q", "k", "v", "bias", "mask"};
    Model m = {0};
    Graph g = {.compute = compute};
    Op o = {.call = call};
    *PUSH(&m.devices) = (Device){.kind = kind, .kernels = !strcmp(kind, "cuda") ? "cuda" : "onednn"};
    for (size_t i = 0; i < sizeof operands / sizeof *operands; i++)
        *PUSH(&o.arg) = (Arg){.kind = strstr(absent, operands[i]) ? ARG_NONE : ARG_READ, .token = operands[i]};
    *PUSH(&o.arg) = (Arg){.kind = ARG_HANDLE, .token = "h"};
    *PUSH(&o.arg) = (Arg){.kind = ARG_INT, .token = "width", .i = width};
    *PUSH(&o.arg) = (Arg){.kind = ARG_FLOAT, .token = "drop", .f = drop};
    return cost_prepared(&m, &g, &o, eval);
}

/* A Conv of stride 2, `height` pixels both ways to `made`, by kernels of `kernel`. */
static bool prepared_conv(Type compute, int64_t height, int64_t made, int64_t kernel, int64_t before)
{
    const struct { const char *token; int64_t i; } numbers[] = {
        {"height", height}, {"width", height}, {"yheight", made}, {"ywidth", made}, {"kheight", kernel}, {"kwidth", kernel},
        {"top", before}, {"left", before}, {"stride", 2}, {"dilate", 1},
    };
    Model m = {0};
    Graph g = {.compute = compute};
    Op o = {.call = "conv_forward"};
    *PUSH(&m.devices) = (Device){.kind = "cuda", .kernels = "cuda"};
    *PUSH(&o.arg) = (Arg){.kind = ARG_HANDLE, .token = "h"};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        *PUSH(&o.arg) = (Arg){.kind = ARG_INT, .token = numbers[i].token, .i = numbers[i].i};
    return cost_prepared(&m, &g, &o, false);
}

static void test_prepared(void)
{
    static const struct { const char *what; Type compute; int64_t width; const char *absent; double drop; bool eval, want; }
    list[] = {
        {"plain", BF16, 64, "bias mask", 0, false, true},
        {"f32", F32, 64, "bias mask", 0, false, false},
        {"heads of 128", BF16, 128, "bias mask", 0, false, true},
        {"heads of 136", BF16, 136, "bias mask", 0, false, false},
        {"heads of 36", BF16, 36, "bias mask", 0, false, false},
        {"a bias", BF16, 64, "mask", 0, false, false},
        {"a mask", BF16, 64, "bias", 0, false, false},
        {"dropout", BF16, 64, "bias mask", 0.1, false, false},
        {"dropout in an evaluation", BF16, 64, "bias mask", 0.1, true, true},
        {"no gradient of queries", BF16, 64, "bias mask dq", 0, false, false},
        {"no gradient of keys", BF16, 64, "bias mask dk", 0, false, false},
        {"no gradient of values", BF16, 64, "bias mask dv", 0, false, false},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        equal(list[i].what, prepared("attention_backward", list[i].compute, "cuda", list[i].width, list[i].absent,
                                     list[i].drop, list[i].eval), list[i].want);
    equal("by oneDNN", prepared("attention_backward", F32, "cpu", 36, "", 0.1, false), true);
    equal("shared keys by oneDNN", prepared("attention_shared_forward", F32, "cpu", 64, "bias mask", 0, false), false);
    equal("shared keys by cuDNN", prepared("attention_shared_forward", BF16, "cuda", 64, "bias mask", 0, false), true);
    equal("a convolution by oneDNN", prepared("conv_forward", F32, "cpu", 64, "", 0, false), true);
    equal("a convolution in f32 on GPUs", prepared_conv(F32, 6, 6, 3, 1), false);
    equal("a convolution in bf16 on GPUs", prepared_conv(BF16, 6, 6, 3, 1), true);
    equal("a convolution with another pad behind", prepared_conv(BF16, 6, 4, 3, 0), true);
    equal("a row that no window reads", prepared_conv(BF16, 7, 3, 3, 0), true);
    equal("a pad below zero", prepared_conv(BF16, 6, 3, 1, -1), false);
    equal("a pad below zero behind", prepared_conv(BF16, 9, 3, 3, 0), false);
    equal("steps by oneDNN", prepared("recur_forward", F32, "cpu", 64, "", 0, false), true);
    equal("steps on GPUs", prepared("recur_forward", BF16, "cuda", 64, "", 0, false), false);
    equal("a product on GPUs", prepared("linear_forward", F32, "cuda", 64, "", 0, false), true);
    equal("where nothing computes", prepared("attention_backward", BF16, "paced", 64, "bias mask", 0, false), false);
}

/* Two stages of 3 threads are 6, so on 4 cores 3/2: fc takes 16200 ns alone, act 2200; both divide.  On 5 cores 6/5. */
static void test_crowded(void)
{
    static const struct { const char *rest; int devices; Ns fc, act; } cases[] = {
        {"", 2, 16200, 2200},
        {"hosts: {cores: 6}\n", 2, 16200, 2200},
        {"hosts: {cores: 4}\n", 2, 24300, 3300},
        {"hosts: {cores: 4}\n", 1, 16200, 2200},
        {"hosts: {cores: 5}\n", 2, 19440, 2640},
        {"hosts: {cores: 7}\n", 3, 20829, 2829},       /* 16200 * 9 / 7 = 20828.6; 2200 * 9 / 7 = 2828.6 */
        {"hosts: {cores: 4, count: 2}\n", 2, 24300, 3300},     /* one process does not spread */
        {"hosts: {cores: 2, count: 2}\nplan: {stages: 3, transport: mpi}\n", 2, 24300, 3300},
        {"hosts: {cores: 3, count: 2}\nplan: {stages: 3, transport: mpi}\n", 2, 16200, 2200},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int paced = 0; paced < 2; paced++) {
            World w = world_of(strf("train: {batch: {global: 4, micro: 4}}\n"
                                    "devices: [{kind: %s, count: 3, threads: 3, flops: 1.024GFLOP/s, vector: 768MFLOP/s, "
                                    "bandwidth: 1TB/s, call: 200ns}]\n%s", paced ? "paced" : "cpu", cases[i].rest), NULL);
            w.c = cost_shared(w.c, w.m, cases[i].devices);
            equal(strf("crowded %zu, linear_forward", i), time_of(&w, 0, "linear_forward"), paced ? 16200 : cases[i].fc);
            equal(strf("crowded %zu, gelu_forward", i), time_of(&w, 0, "gelu_forward"), paced ? 2200 : cases[i].act);
        }
}

int main(void)
{
    test_crowded();
    test_prepared();
    test_roof();
    test_eight();
    test_passes();
    test_scratch();
    test_mixed();
    test_moves();
    test_pairs();
    test_links();
    test_files();
    printf("unit_cost: %d passed, %d failed\n", passed, failed);
    mem_free_all();
    return failed > 0;
}
