/* SPDX-License-Identifier: Apache-2.0
 *
 * isa.h: the extensions of an instruction set, by name.
 *
 * A compiler defines a macro for each extension that it may use.  A row has this macro, then the place where the machine
 * says that it has the extension: on x86 leaf, subleaf, register (0 is EAX) and bit of CPUID, and the bits of XCR0 that
 * the system must have set; on ARM the number for getauxval() and a bit.  The rows are what compilers use on plain C, and
 * AMX.
 *
 * The file of kernels_start() is compiled with the flags of the kernels and holds what it found as data: kernels_isa[].
 * machine.c is compiled without them, and compares before the first kernel runs.
 */
#ifndef ISA_H
#define ISA_H

#if defined __x86_64__ || defined __i386__
#define ISA_EACH(ROW) \
    ROW(__SSE2__, 1, 0, 3, 26, 0) \
    ROW(__SSE3__, 1, 0, 2, 0, 0) \
    ROW(__SSSE3__, 1, 0, 2, 9, 0) \
    ROW(__SSE4_1__, 1, 0, 2, 19, 0) \
    ROW(__SSE4_2__, 1, 0, 2, 20, 0) \
    ROW(__MOVBE__, 1, 0, 2, 22, 0) \
    ROW(__POPCNT__, 1, 0, 2, 23, 0) \
    ROW(__LZCNT__, 0x80000001, 0, 2, 5, 0) \
    ROW(__SSE4A__, 0x80000001, 0, 2, 6, 0) \
    ROW(__BMI__, 7, 0, 1, 3, 0) \
    ROW(__BMI2__, 7, 0, 1, 8, 0) \
    ROW(__GFNI__, 7, 0, 2, 8, 0) \
    ROW(__AVX__, 1, 0, 2, 28, 0x6) \
    ROW(__FMA__, 1, 0, 2, 12, 0x6) \
    ROW(__F16C__, 1, 0, 2, 29, 0x6) \
    ROW(__XOP__, 0x80000001, 0, 2, 11, 0x6) \
    ROW(__FMA4__, 0x80000001, 0, 2, 16, 0x6) \
    ROW(__AVX2__, 7, 0, 1, 5, 0x6) \
    ROW(__AVXVNNI__, 7, 1, 0, 4, 0x6) \
    ROW(__AVX512F__, 7, 0, 1, 16, 0xe6) \
    ROW(__AVX512DQ__, 7, 0, 1, 17, 0xe6) \
    ROW(__AVX512IFMA__, 7, 0, 1, 21, 0xe6) \
    ROW(__AVX512CD__, 7, 0, 1, 28, 0xe6) \
    ROW(__AVX512BW__, 7, 0, 1, 30, 0xe6) \
    ROW(__AVX512VL__, 7, 0, 1, 31, 0xe6) \
    ROW(__AVX512VBMI__, 7, 0, 2, 1, 0xe6) \
    ROW(__AVX512VBMI2__, 7, 0, 2, 6, 0xe6) \
    ROW(__AVX512VNNI__, 7, 0, 2, 11, 0xe6) \
    ROW(__AVX512BITALG__, 7, 0, 2, 12, 0xe6) \
    ROW(__AVX512VPOPCNTDQ__, 7, 0, 2, 14, 0xe6) \
    ROW(__AVX512FP16__, 7, 0, 3, 23, 0xe6) \
    ROW(__AVX512BF16__, 7, 1, 0, 5, 0xe6) \
    ROW(__AMX_BF16__, 7, 0, 3, 22, 0x60000) \
    ROW(__AMX_TILE__, 7, 0, 3, 24, 0x60000) \
    ROW(__AMX_INT8__, 7, 0, 3, 25, 0x60000)
#elif defined __aarch64__
#define ISA_EACH(ROW) \
    ROW(__ARM_FEATURE_CRC32, 16, 0, 0, 7, 0) \
    ROW(__ARM_FEATURE_ATOMICS, 16, 0, 0, 8, 0) \
    ROW(__ARM_FEATURE_FP16_VECTOR_ARITHMETIC, 16, 0, 0, 10, 0) \
    ROW(__ARM_FEATURE_DOTPROD, 16, 0, 0, 20, 0) \
    ROW(__ARM_FEATURE_SVE, 16, 0, 0, 22, 0) \
    ROW(__ARM_FEATURE_SVE2, 26, 0, 0, 1, 0) \
    ROW(__ARM_FEATURE_MATMUL_INT8, 26, 0, 0, 13, 0) \
    ROW(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC, 26, 0, 0, 14, 0)
#else
#define ISA_EACH(ROW)
#endif

/* kernels_isa[] in the order of the rows: 1 where this file is compiled for the extension.  One more, for no rows at all. */
#define ISA_TEXT(x) #x
#define ISA_VALUE(x) ISA_TEXT(x)
#define ISA_HERE(macro, leaf, subleaf, reg, bit, state) sizeof ISA_VALUE(macro) == sizeof "1",
#define ISA_OF_THIS_FILE const unsigned char kernels_isa[] = {ISA_EACH(ISA_HERE) 0}
extern const unsigned char kernels_isa[];
#endif
