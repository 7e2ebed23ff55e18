/* SPDX-License-Identifier: Apache-2.0
 *
 * unit_cuda_start.c: what rt/op/cuda/start.c says of machines that the double of the CUDA runtime pretends to be.  Compiled
 * with BUILT_FOR="86 90", and linked with the double of cublasLt but not with cuDNN.  With -DCUDNN and BUILT_FOR="90 100 103
 * 120", it has a cuDNN that says which version it is.
 */
#include "rt/cuda/device.h"
#include "rt/op/cuda/start.h"
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int passed, failed;

static void check(bool ok, const char *what, const char *said)
{
    ok ? passed++ : failed++;
    if (!ok)
        fprintf(stderr, "%s: it said: %s\n", what, said);
}

/* With this setting kernels_start() refuses, and says both; cause NULL: it does not. */
static void start(const char *name, const char *value, const char *cause, const char *remedy)
{
    char why[512] = "", what[128];
    snprintf(what, sizeof what, "%s=%s", name, value);
    setenv(name, value, 1);
    int bad = kernels_start(1, why, sizeof why);
    unsetenv(name);
    check(cause ? bad && strstr(why, cause) && strstr(why, remedy) : !bad, what, why);
}

#ifdef CUDNN
static size_t cudnn_here = 91600;
size_t cudnnGetVersion(void);
size_t cudnnGetVersion(void) { return cudnn_here; }

int main(void)
{
    start("DOUBLE_ARCH", "90", NULL, NULL);
    start("DOUBLE_ARCH", "100", "GPU 0 is sm_100, where cuDNN is not proven", "arch: sm_100");
    start("DOUBLE_ARCH", "120", "GPU 0 is sm_120, where cuDNN is not proven", "arch: sm_120");
    start("DOUBLE_ARCH", "103", "GPU 0 is sm_103, where cuDNN is not proven", "hide it with CUDA_VISIBLE_DEVICES");
    cudnn_here = 91502;
    start("DOUBLE_ARCH", "90", "cuDNN here is 9.15.2", "install 9.16");
    cudnn_here = 92000;
    start("DOUBLE_ARCH", "90", NULL, NULL);
    printf("unit_cuda_start: %d passed, %d failed\n", passed, failed);
    return failed > 0;
}
#else
int main(void)
{
    Device device = { .number = 0 };
    Stage stage = { .device = &device };
    start("DOUBLE_ARCH", "90", NULL, NULL);
    start("DOUBLE_ARCH", "86", NULL, NULL);
    start("DOUBLE_ARCH", "75", "GPU 0 is sm_75", "need sm_80 or newer; hide it with CUDA_VISIBLE_DEVICES");
    start("DOUBLE_ARCH", "80", "compiled for sm_86 90", "arch: sm_80");
    start("DOUBLE_ARCH", "100", "GPU 0 is sm_100", "arch: sm_100");
    start("DOUBLE_DEVICES", "3", NULL, NULL);
    start("DOUBLE_DEVICES", "0", "no GPU is to be seen", "nvidia-smi");
    start("DOUBLE_DEVICES", "-1", "newer NVIDIA driver", "install one");
    start("CUBLAS_EMULATE_SINGLE_PRECISION", "1", "f32", "unset it");
    start("CUBLAS_EMULATE_SINGLE_PRECISION", "0", NULL, NULL);
    start("NVIDIA_TF32_OVERRIDE", "1", "NVIDIA_TF32_OVERRIDE=1", "unset it");

    const char *version = kernels_version();
    check(!strncmp(version, "CUDA ", 5) && strstr(version, " for sm_86 90, cuBLAS ") && !strstr(version, "cuDNN"), "version",
          version);

    void *taken = NULL;
    size_t total;
    cudaSetDevice(0);
    check(kernels_bytes(&stage) == 0, "kernels_bytes of a stage that does not count", "");
    check(cudaMemGetInfo(&device.spare, &total) == cudaSuccess && cudaMalloc(&taken, 3 << 20) == cudaSuccess, "cudaMalloc", "");
    check(kernels_bytes(&stage) == 3 << 20, "kernels_bytes", "");
    device.spare = 1;                           /* somebody else gave memory back meanwhile */
    check(kernels_bytes(&stage) == 0, "kernels_bytes below zero", "");
    cudaFree(taken);
    printf("unit_cuda_start: %d passed, %d failed\n", passed, failed);
    return failed > 0;
}
#endif
