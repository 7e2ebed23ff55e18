/* SPDX-License-Identifier: Apache-2.0
 *
 * fused.h: the fused multiply-add, a*b + c rounded once, of floats and of vectors.
 *
 * Problem.  IEEE 754 defines it to the bit, and processors have it as one instruction.  One that lacks it would call libm,
 * which is slow and may be wrong.
 *
 * Method.  Where the instruction exists, it is written: by name for the vectors of x86 and ARM, by a builtin elsewhere.  A
 * compiler is never left to contract.  Elsewhere the same value is made in double: a product of two floats is exact there.
 * The sum is rounded to odd: what is lost decides its last bit.  So the rounding to float that follows is that of the exact
 * value (S. Boldo, G. Melquiond, Emulation of a FMA and Correctly Rounded Sums: Proved Algorithms Using Rounding to Odd, IEEE
 * Transactions on Computers 57, 2008).  The error of the sum is exact (D. Knuth, The Art of Computer Programming 2, 4.2.2).
 * It is no number where the sum is infinite or none, and then nothing is corrected.
 *
 * Cost: one instruction; otherwise about sixty for four floats of SSE2.  Not handled: the sign and payload of a NaN.
 */
#ifndef FUSED_H
#define FUSED_H
#include <stdint.h>

#if defined __arm__ && defined __ARM_NEON
#error "NEON of 32 bits flushes subnormals to zero: compile for VFP, as with -mfpu=vfpv3-d16"
#endif

/* Registers, and how many vectors of a tile they hold: tile.h. */
#if defined __AVX512F__
enum { VECTOR = 16, TILE_ROWS = 12 };
#elif defined __AVX__
enum { VECTOR = 8, TILE_ROWS = 6 };
#elif defined __aarch64__
enum { VECTOR = 4, TILE_ROWS = 12 };
#else
enum { VECTOR = 4, TILE_ROWS = 6 };
#endif
typedef float Vector __attribute__((vector_size(4 * VECTOR), aligned(4), may_alias));

#if defined __FMA__ || defined __FP_FAST_FMAF || defined __aarch64__ || (defined __riscv_flen && __riscv_flen >= 32)
#define HAS_FUSED 1
#else
#define HAS_FUSED 0
#endif

/* In front of a function with one body.  GCC makes others for calls with constants: a fourth of its time, and nothing gained.
 * With `noclone` in place of `noipa` GCC 12 takes what some calls pass for what all pass; opcheck sees the wrong sums. */
#if defined __GNUC__ && !defined __clang__
#define ONE_BODY __attribute__((noipa, unused))
#else
#define ONE_BODY __attribute__((noinline, unused))
#endif

/* In front of a loop over registers.  clang takes GCC's pragma for a number of copies, and leaves the registers in memory. */
#if defined __clang__
#define UNROLLED _Pragma("clang loop unroll(full)")
#elif defined __GNUC__
#define UNROLLED _Pragma("GCC unroll 16")
#else
#define UNROLLED
#endif

/* The same without the instruction. */
static inline Vector fused_exact(Vector a, Vector b, Vector c)
{
    typedef double Wide __attribute__((vector_size(8 * VECTOR)));
    typedef uint64_t Bits __attribute__((vector_size(8 * VECTOR)));
    Wide x = __builtin_convertvector(c, Wide), p = __builtin_convertvector(a, Wide) * __builtin_convertvector(b, Wide);
    Wide s = p + x, t = s - p, e = (p - (s - t)) + (x - t);
    Bits under = ((Bits)e & INT64_MAX) - 1;                 /* 0 < |e| < infinity: the sign of this, not of the next */
    Bits lost = (under ^ (under - (0x7ff0000000000000u - 1))) >> 63, away = lost & ((Bits)s ^ (Bits)e) >> 63;
    s = (Wide)(((Bits)s - away) | lost);                        /* towards zero by one if it was rounded away, then odd */
    return __builtin_convertvector(s, Vector);
}

static inline Vector fused(Vector a, Vector b, Vector c)
{
#if defined __FMA__ && (defined __x86_64__ || defined __i386__)
    __asm__("vfmadd231ps %2, %1, %0" : "+v"(c) : "v"(a), "v"(b));
    return c;
#elif defined __aarch64__
    __asm__("fmla %0.4s, %1.4s, %2.4s" : "+w"(c) : "w"(a), "w"(b));
    return c;
#elif HAS_FUSED
    for (int i = 0; i < VECTOR; i++)
        c[i] = __builtin_fmaf(a[i], b[i], c[i]);
    return c;
#else
    return fused_exact(a, b, c);
#endif
}

/* The vector keeps its register up to here.  Else GCC gives it to a chain, which then moves there and back in each step. */
#if defined __FMA__ && (defined __x86_64__ || defined __i386__)
#define STAYS(v) __asm__("" : : "v"(v))
#else
#define STAYS(v) ((void)0)
#endif

/* Where an instruction takes one number of a vector for all of a, four of a are loaded together. */
#if defined __aarch64__
enum { BY_LANE = 1 };
#define FUSED_LANE(n) __asm__("fmla %0.4s, %1.4s, %2.s[" #n "]" : "+w"(c) : "w"(b), "w"(a))
static inline __attribute__((always_inline)) Vector fused_lane(Vector a, int lane, Vector b, Vector c)
{
    if (lane == 0)
        FUSED_LANE(0);
    else if (lane == 1)
        FUSED_LANE(1);
    else if (lane == 2)
        FUSED_LANE(2);
    else
        FUSED_LANE(3);
    return c;
}
#else
enum { BY_LANE = 0 };
static inline Vector fused_lane(Vector a, int lane, Vector b, Vector c) { return fused(a[lane] - (Vector){0}, b, c); }
#endif
#endif
