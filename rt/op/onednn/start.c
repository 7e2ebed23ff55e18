/* SPDX-License-Identifier: Apache-2.0
 *
 * start.c: the demands of the kernel library on the machine, checked once, before the first stage opens.
 *
 * The bits of a job depend on the instruction set: in our own loops by the compiler's flags, and in oneDNN by its dispatch at
 * run time.  One thing decides both: the flags that this file is compiled with (`-march=x86-64-v4`, `-mavx512bf16`,
 * `-mamx-bf16`). The plan writes them into the emitted Makefile.  oneDNN is held to the same set.  A newer CPU therefore
 * computes as the planned one, and an older one is refused instead of computing something else.
 */
#include "../../isa.h"
#include "../../rt.h"
#include <omp.h>
#include <oneapi/dnnl/dnnl.h>
#include <stdio.h>

#if defined __AMX_BF16__
static const dnnl_cpu_isa_t isa = dnnl_cpu_isa_avx512_core_amx;
#elif defined __AVX512BF16__
static const dnnl_cpu_isa_t isa = dnnl_cpu_isa_avx512_core_bf16;
#elif defined __AVX512F__ && defined __AVX512BW__ && defined __AVX512VL__ && defined __AVX512DQ__
static const dnnl_cpu_isa_t isa = dnnl_cpu_isa_avx512_core;
#elif defined __AVX2__
static const dnnl_cpu_isa_t isa = dnnl_cpu_isa_avx2;
#else
static const dnnl_cpu_isa_t isa = dnnl_cpu_isa_sse41;
#endif

ISA_OF_THIS_FILE;

static int threads_given(int threads)
{
    int given = 0;
    #pragma omp parallel num_threads(threads)
    {
        #pragma omp single
        given = omp_get_num_threads();
    }
    return given;
}

/* 0, or nonzero with the reason and the remedy in `why`: this machine cannot run the folder as planned. */
int kernels_start(int threads, char *why, size_t n)
{
    const dnnl_version_t *v = dnnl_version();
    if (v->major != DNNL_VERSION_MAJOR)
        return snprintf(why, n, "oneDNN %d.%d.%d is installed, this folder was compiled against %d.%d; run make again",
                        v->major, v->minor, v->patch, DNNL_VERSION_MAJOR, DNNL_VERSION_MINOR);
    dnnl_set_max_cpu_isa(isa);
    if (dnnl_get_effective_cpu_isa() != isa)
        return snprintf(why, n, "this CPU, or DNNL_MAX_CPU_ISA, lacks the instruction set that the kernels were "
                        "compiled for (oneDNN set 0x%x, found 0x%x); plan again for this machine",
                        (unsigned)isa, (unsigned)dnnl_get_effective_cpu_isa());
    omp_set_dynamic(0);
    int given = threads_given(threads);
    if (given != threads)
        return snprintf(why, n, "the plan uses %d threads in a stage, OpenMP gives %d; unset OMP_THREAD_LIMIT",
                        threads, given);
    return 0;
}

const char *kernels_version(void)
{
    static char text[64];
    const dnnl_version_t *v = dnnl_version();
    snprintf(text, sizeof text, "oneDNN %d.%d.%d", v->major, v->minor, v->patch);
    return text;
}
