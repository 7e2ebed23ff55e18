/* SPDX-License-Identifier: Apache-2.0
 *
 * real.h: loading and storing the compute type.  Kernels compute in float; get() widens, which is exact, put()
 * narrows to bfloat16 by round to nearest, ties to even: half a unit of the last place at most, and unbiased,
 * which matters for values that are added up over thousands of steps.  A NaN stays a NaN: its upper half is kept
 * and made quiet, since rounding could carry it into infinity.  With real = float both are plain accesses.
 */
#ifndef REAL_H
#define REAL_H
#include "rt.h"

/* How the functions of this file, fmath.h and philox.h are declared: the kernels of rt/op/cuda use the same ones. */
#ifdef __CUDACC__
#define FN static __device__ __forceinline__
#else
#define FN static inline
#endif

typedef union { float f; uint32_t u; } FloatBits;

FN float bits_float(uint32_t u)
{
    FloatBits b;
    b.u = u;
    return b.f;
}

FN uint32_t float_bits(float f)
{
    FloatBits b;
    b.f = f;
    return b.u;
}

FN float bf16_float(uint16_t b)
{
    return bits_float((uint32_t)b << 16);
}

FN uint16_t float_bf16(float f)
{
#ifdef __CUDA_ARCH__            /* the same in one instruction; a NaN becomes 0x7fff */
    uint16_t b;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(b) : "f"(f));
    return b;
#else
    uint32_t u = float_bits(f), round = (u + 0x7fff + (u >> 16 & 1)) >> 16, quiet = u >> 16 | 0x40;
    return (uint16_t)((u & 0x7fffffff) > 0x7f800000 ? quiet : round);
#endif
}

#ifdef REAL_BF16
FN float get(const real *p, long i) { return bf16_float(p[i]); }
FN void put(real *p, long i, float v) { p[i] = float_bf16(v); }
#else
FN float get(const real *p, long i) { return p[i]; }
FN void put(real *p, long i, float v) { p[i] = v; }
#endif

/* The first address behind n elements at `at` where a buffer may begin: scratch of two parts. */
static inline void *behind(real *at, long n)
{
    return (char *)at + ((size_t)n * sizeof *at + 63) / 64 * 64;
}
#endif
