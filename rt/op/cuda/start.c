/* SPDX-License-Identifier: Apache-2.0
 *
 * start.c: the demands of the kernels on the machine, checked once, before anything is opened on a GPU.
 *
 * Stages are dealt out to all GPUs that the process sees, and bits depend on the chip.  Each GPU must therefore be the one
 * that the kernels were compiled for, BUILT_FOR in the Makefile: "90", or several separated by blanks.  Machine code of one
 * minor version is not taken for another, and there is nothing in the program that a driver could compile.  Versions of
 * cuBLAS and cuDNN are checked when they are opened (product.c, graph.c).
 *
 * Not handled: memory that other programs take meanwhile, in kernels_bytes().
 */
#include "start.h"
#include "../../cuda/device.h"
#include "../../isa.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST = 80 };            /* bf16 on tensor cores */
enum { LEAST_CUDNN = 91600 };   /* graph.h has the same number */

/* A job is linked with those libraries that it calls. */
#pragma weak cublasLtGetVersion
#pragma weak cudnnGetVersion
size_t cublasLtGetVersion(void), cudnnGetVersion(void);

ISA_OF_THIS_FILE;

/* Is `chip` a word of the list? */
static int built_for(int chip)
{
    char list[128], *rest = list;
    snprintf(list, sizeof list, "%s", BUILT_FOR);
    for (char *word; (word = strtok_r(rest, " ", &rest));)
        if (atoi(word) == chip)
            return 1;
    return 0;
}

/* Settings from outside that change what the libraries compute. */
static int check_environment(char *why, size_t n)
{
    static const char *const names[] = { "CUBLAS_EMULATE_SINGLE_PRECISION", "NVIDIA_TF32_OVERRIDE" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        if (value && *value && strcmp(value, "0"))
            return snprintf(why, n, "%s=%s makes products of f32 something else; unset it", names[i], value);
    }
    return 0;
}

/* Up to 9.15, gradients are wrong where keys are no multiple of 128; before 9.10, hidden keys have a score that is finite. */
static int check_attention(char *why, size_t n)
{
    size_t v = cudnnGetVersion ? cudnnGetVersion() : LEAST_CUDNN;
    if (v >= LEAST_CUDNN)
        return 0;
    return snprintf(why, n, "cuDNN here is %zu.%zu.%zu, and before 9.16 its gradients of attention can be wrong; install 9.16 "
                    "or newer", v / 10000, v / 100 % 100, v % 100);
}

/* cuDNN has many engines for chips of the generations 10 to 12, and none of them is known yet to give the same bits twice.  A
 * folder that is generated for such a chip does not call it. */
static int check_engines(int gpu, int chip, char *why, size_t n)
{
    if (!cudnnGetVersion || chip < 100)
        return 0;
    return snprintf(why, n, "GPU %d is sm_%d, where cuDNN is not proven to give the same bits in every run; "
                    "generate with arch: sm_%d, or hide it with CUDA_VISIBLE_DEVICES", gpu, chip, chip);
}

static int check_chip(int gpu, char *why, size_t n)
{
    int major = 0, minor = 0;
    cudaError_t e = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, gpu);
    if (e == cudaSuccess)
        e = cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, gpu);
    int chip = 10 * major + minor;
    if (e != cudaSuccess)
        return snprintf(why, n, "GPU %d does not answer: %s; nvidia-smi may say more", gpu, cudaGetErrorString(e));
    if (chip < LEAST)
        return snprintf(why, n, "GPU %d is sm_%d, and the kernels need sm_%d or newer; hide it with CUDA_VISIBLE_DEVICES",
                        gpu, chip, LEAST);
    if (!built_for(chip))
        return snprintf(why, n, "GPU %d is sm_%d, and the kernels are compiled for sm_%s; generate again with arch: sm_%d, or "
                        "hide it with CUDA_VISIBLE_DEVICES", gpu, chip, BUILT_FOR, chip);
    return check_engines(gpu, chip, why, n);
}

/* 0, or nonzero with the reason and the remedy in `why`: this machine cannot run the folder as planned. */
int kernels_start(int threads, char *why, size_t n)
{
    (void)threads;
    int gpus = 0, driver = 0, runtime = 0;
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);     /* a queue for each stream, before the driver wakes */
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    cudaError_t e = cudaGetDeviceCount(&gpus);
    if (e == cudaErrorInsufficientDriver)
        return snprintf(why, n, "CUDA %d.%d needs a newer NVIDIA driver than is here (%s); install one, nvidia-smi shows it",
                        runtime / 1000, runtime / 10 % 100, driver ? "an older one" : "none");
    if (e != cudaSuccess || gpus < 1)
        return snprintf(why, n, "no GPU is to be seen: %s; see what nvidia-smi and CUDA_VISIBLE_DEVICES say",
                        cudaGetErrorString(e));
    if (runtime / 1000 != CUDART_VERSION / 1000)
        return snprintf(why, n, "the CUDA runtime is %d.%d, and this folder was compiled with %d.%d; run make again",
                        runtime / 1000, runtime / 10 % 100, CUDART_VERSION / 1000, CUDART_VERSION / 10 % 100);
    int bad = check_environment(why, n);
    if (!bad)
        bad = check_attention(why, n);
    for (int i = 0; i < gpus && !bad; i++)
        bad = check_chip(i, why, n);
    return bad;
}

static int print_version(char *to, size_t room, const char *name, size_t v)
{
    return snprintf(to, room, ", %s %zu.%zu.%zu", name, v / 10000, v / 100 % 100, v % 100);
}

const char *kernels_version(void)
{
    static char text[96];
    int runtime = 0, n;
    cudaRuntimeGetVersion(&runtime);
    n = snprintf(text, sizeof text, "CUDA %d.%d for sm_%s", runtime / 1000, runtime / 10 % 100, BUILT_FOR);
    if (cublasLtGetVersion)
        n += print_version(text + n, sizeof text - (size_t)n, "cuBLAS", cublasLtGetVersion());
    if (cudnnGetVersion)
        print_version(text + n, sizeof text - (size_t)n, "cuDNN", cudnnGetVersion());
    return text;
}

/* ---- which GPU ------------------------------------------------------------------------------------------------ */
int gpu_name(int gpu, char *to, size_t room)
{
    struct cudaDeviceProp is;
    cudaError_t e = cudaGetDeviceProperties(&is, gpu);
    if (e != cudaSuccess)
        return snprintf(to, room, "GPU %d does not answer: %s", gpu, cudaGetErrorString(e)), 1;
    snprintf(to, room, "%s, sm_%d%d, %d SMs", is.name, is.major, is.minor, is.multiProcessorCount);
    for (char *c = to; *c; c++)
        *c = *c < 32 || *c > 126 ? '?' : *c;
    return 0;
}

int gpu_signature(int gpu, char *to, size_t room)
{
    int bad = gpu_name(gpu, to, room);
    size_t n = strlen(to);
    if (!bad && cublasLtGetVersion)
        print_version(to + n, room - n, "cuBLAS", cublasLtGetVersion());
    return bad;
}

/* ---- memory beside the arenas -------------------------------------------------------------------------------- */
/* A GPU's memory is everyone's that uses it, and stages open at the same time: so what is gone since the arenas were made
 * counts once, for the stage that arena.c has told how much there was. */
size_t kernels_bytes(const Stage *st)
{
    size_t left = 0, total, before = device_of(st)->spare;
    cudaError_t e = before ? cudaMemGetInfo(&left, &total) : cudaSuccess;
    return e == cudaSuccess && before > left ? before - left : 0;
}
