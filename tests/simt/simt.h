/* SPDX-License-Identifier: Apache-2.0
 *
 * simt.h: enough of CUDA C++ to run the kernels of rt/op/cuda on the CPU, compiled by any C++17 compiler.
 *
 * A launch runs its blocks one after another.  The threads of a block are fibers (simt.cc) that run until they meet a
 * barrier, of the block or of their warp; when all have met it they go on, in the other direction each time, so that code
 * which relies on an order without a barrier is seen to.  Shared memory is poisoned before each block: floats in it are
 * NaN until written.  An end with the kernel's name: a barrier that some threads of a block, or lanes of a warp, do not
 * reach, or reach in another line; an index outside a shared array; a write past its end; 16 bytes at an address that is
 * no multiple of 16.
 *
 * A launch goes through simt_use() and simt_launch(), and scratch through simt_workspace(), which whoever links this defines:
 * at once (tests/simt/now.c), or on a queue.
 *
 * Not handled: blocks of more than one dimension, atomics, races within a warp between two barriers, and everything that
 * the kernels do not use.
 */
#ifndef SIMT_H
#define SIMT_H
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <tuple>
#include "../../rt/rt.h"

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define EXP2(x) exp2f(x)
#define EXP2_FLUSHED(x) exp2f(x)

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};

extern thread_local dim3 threadIdx, blockIdx, blockDim, gridDim;

extern "C" {
/* Run `run(args)` when its turn comes; the bytes of args are copied. */
void simt_launch(Stage *st, const char *name, void (*run)(void *), const void *args, size_t bytes);
void *simt_workspace(Stage *st, size_t bytes);
/* The kernel is loaded now; is launched. */
void simt_load(const void *kernel);
void simt_use(const char *name, const void *kernel);
void kernels_load(const Stage *st);
}

void simt_grid(const char *name, dim3 grid, dim3 block, void (*thread)(void *), void *args);
void *simt_shared(const void *site, size_t bytes);
void *simt_row(long bytes);
void simt_barrier(int line);
void *simt_exchange(int line, const void *mine, size_t bytes, unsigned lane);
[[noreturn]] void simt_fail(const char *form, ...) __attribute__((format(printf, 1, 2)));

template <class Kernel, class Args> struct SimtCall {
    const char *name;
    Kernel kernel;
    dim3 grid, block;
    Args args;
    static void thread(void *at)
    {
        SimtCall *c = (SimtCall *)at;
        std::apply(c->kernel, c->args);
    }
    static void run(void *at)
    {
        SimtCall *c = (SimtCall *)at;
        simt_grid(c->name, c->grid, c->block, thread, at);
    }
};

typedef void (*Together)(Stage *st, const void *row, int n);
extern "C" void simt_gather(Stage *st, Together launch, const void *row, size_t bytes);

template <class... Takes, class... Given>
void simt_queue(Stage *st, const char *name, void (*kernel)(Takes...), dim3 grid, dim3 block, Given... given)
{
    typedef SimtCall<void (*)(Takes...), std::tuple<Takes...>> Call;
    simt_use(name, (const void *)kernel);
    Call call = {name, kernel, grid, block, std::tuple<Takes...>(given...)};
    simt_launch(st, name, Call::run, &call, sizeof call);
}

#define LAUNCH(kernel, grid, block, st, ...) \
    (LAUNCHED(kernel), simt_queue(st, #kernel, kernel, grid, block, __VA_ARGS__))

/* An array in shared memory: n elements, each access by index checked. */
template <class T> struct Shared {
    T *at;
    long n;
    T &operator[](long i) const
    {
        if (i < 0 || i >= n)
            simt_fail("index %ld of a shared array of %ld", i, n);
        return at[i];
    }
};
#define SHARED(type, name, n) \
    static const char name##_site = 0; \
    Shared<type> name = {(type *)simt_shared(&name##_site, (n) * sizeof(type)), (n)}
#define SHARED_AT(name, i) (&(name)[i])
#define LAUNCH_WITH(kernel, bytes, grid, block, st, ...) LAUNCH(kernel, grid, block, st, __VA_ARGS__)
#define SHARED_ROW(type, name, n) Shared<type> name = {(type *)simt_row((long)((n) * sizeof(type))), (n)}

#define __syncthreads() simt_barrier(__LINE__)
#define __syncwarp() ((void)simt_exchange(__LINE__, "", 1, 0))
#define __shfl_xor_sync(mask, v, way) simt_shuffle(__LINE__, v, threadIdx.x % 32 ^ (unsigned)(way))
#define __shfl_up_sync(mask, v, way) simt_shuffle(__LINE__, v, simt_up(threadIdx.x % 32, way))
#define __shfl_sync(mask, v, lane) simt_shuffle(__LINE__, v, (unsigned)(lane))
#define __ballot_sync(mask, v) simt_ballot(__LINE__, v)
#define __fadd_rn(a, b) ((a) + (b))
inline void sincospi(double x, double *s, double *c) { *s = sin(M_PI * x), *c = cos(M_PI * x); }
#define __popc(x) __builtin_popcount(x)
#define __ffs(x) __builtin_ffs(x)

inline unsigned simt_up(unsigned lane, unsigned way) { return lane < way ? lane : lane - way; }

template <class T> T simt_shuffle(int line, T mine, unsigned lane)
{
    return *(T *)simt_exchange(line, &mine, sizeof mine, lane);
}

void simt_gather(int line, const void *mine, size_t bytes, const void *all[32]);

inline unsigned simt_ballot(int line, bool mine)
{
    const void *all[32];
    unsigned set = 0;
    simt_gather(line, &mine, 1, all);
    for (int i = 0; i < 32; i++)
        set |= (unsigned)*(const bool *)all[i] << i;
    return set;
}

/* mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32, with the registers of its lanes as the PTX manual lays them out: lane
 * 4 g + t has rows g and g + 8 of a and of the result, columns 2 t and 2 t + 1, in a and b also those 8 further on. */
inline void simt_mma(int line, float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2])
{
    struct Words { uint32_t a[4], b[2]; } mine = {{a[0], a[1], a[2], a[3]}, {b[0], b[1]}};
    const void *all[32];
    simt_gather(line, &mine, sizeof mine, all);
    int g = (int)threadIdx.x % 32 / 4, t = (int)threadIdx.x % 4;
    for (int e = 0; e < 4; e++)
        for (int k = 0; k < 16; k++) {
            const Words *row = (const Words *)all[g * 4 + k % 8 / 2];
            const Words *col = (const Words *)all[(2 * t + e % 2) * 4 + k % 8 / 2];
            uint32_t x = row->a[e / 2 + k / 8 * 2], y = col->b[k / 8];
            union { uint32_t u; float f; } left, right;
            left.u = k % 2 ? x & 0xffff0000u : x << 16;
            right.u = k % 2 ? y & 0xffff0000u : y << 16;
            c[e] += left.f * right.f;
        }
}

/* ldmatrix.sync.aligned.m8n8.x4.shared.b16, and with .trans: lane i gives the address of row i % 8 of matrix i / 8.  Of each
 * matrix lane 4 g + t gets elements 2 t and 2 t + 1 of row g, or of column g. */
inline void simt_load_parts(int line, uint32_t (&b)[2][2], const uint32_t *row, bool turned)
{
    const void *all[32];
    int g = (int)threadIdx.x % 32 / 4, t = (int)threadIdx.x % 4;
    if ((uintptr_t)row % 16)
        simt_fail("a row of a matrix at an address that is no multiple of 16");
    simt_gather(line, &row, sizeof row, all);
    for (int m = 0; m < 4; m++) {
        uint32_t two[2];
        for (int j = 0; j < 2; j++) {
            int from = turned ? 2 * t + j : g, column = turned ? g : 2 * t + j;
            uint32_t word = (*(const uint32_t *const *)all[8 * m + from])[column / 2];
            two[j] = column % 2 ? word >> 16 : word & 0xffff;
        }
        b[m / 2][m % 2] = two[0] | two[1] << 16;
    }
}

inline void simt_aligned(const void *p, size_t bytes)
{
    if ((uintptr_t)p % bytes)
        simt_fail("%zu bytes at once at an address that is no multiple of it", bytes);
}
#endif
