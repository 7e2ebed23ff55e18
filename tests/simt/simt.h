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
 * A launch goes through simt_launch(), and scratch through simt_workspace(), which whoever links this defines: at once
 * (tests/simt/now.c), or on a queue.
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

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};

extern thread_local dim3 threadIdx, blockIdx, blockDim, gridDim;

extern "C" {
/* Run `run(args)` when its turn comes; the bytes of args are copied. */
void simt_launch(Stage *st, const char *name, void (*run)(void *), const void *args, size_t bytes);
void *simt_workspace(Stage *st, size_t bytes);
}

void simt_grid(const char *name, dim3 grid, dim3 block, void (*thread)(void *), void *args);
void *simt_shared(const void *site, size_t bytes);
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

template <class... Takes, class... Given>
void simt_queue(Stage *st, const char *name, void (*kernel)(Takes...), dim3 grid, dim3 block, Given... given)
{
    typedef SimtCall<void (*)(Takes...), std::tuple<Takes...>> Call;
    Call call = {name, kernel, grid, block, std::tuple<Takes...>(given...)};
    simt_launch(st, name, Call::run, &call, sizeof call);
}

#define LAUNCH(kernel, grid, block, st, ...) simt_queue(st, #kernel, kernel, grid, block, __VA_ARGS__)

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

#define __syncthreads() simt_barrier(__LINE__)
#define __syncwarp() ((void)simt_exchange(__LINE__, "", 1, 0))
#define __shfl_xor_sync(mask, v, way) simt_shuffle(__LINE__, v, threadIdx.x % 32 ^ (unsigned)(way))
#define __shfl_up_sync(mask, v, way) simt_shuffle(__LINE__, v, simt_up(threadIdx.x % 32, way))
#define __shfl_sync(mask, v, lane) simt_shuffle(__LINE__, v, (unsigned)(lane))
#define __ballot_sync(mask, v) simt_ballot(__LINE__, v)
#define __popc(x) __builtin_popcount(x)
#define __ffs(x) __builtin_ffs(x)

inline unsigned simt_up(unsigned lane, unsigned way) { return lane < way ? lane : lane - way; }

template <class T> T simt_shuffle(int line, T mine, unsigned lane)
{
    return *(T *)simt_exchange(line, &mine, sizeof mine, lane);
}

unsigned simt_ballot(int line, bool mine);

inline void simt_aligned(const void *p, size_t bytes)
{
    if ((uintptr_t)p % bytes)
        simt_fail("%zu bytes at once at an address that is no multiple of it", bytes);
}
#endif
