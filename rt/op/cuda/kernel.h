/* SPDX-License-Identifier: Apache-2.0
 *
 * kernel.h: what our own GPU kernels share.
 *
 * The same sources are compiled by nvcc, and by a C++ compiler with tests/simt/simt.h, which runs them on the CPU.
 *
 * Bits.  No atomics on floats.  A sum along a row is made by one warp, or one block of 256 threads, as the width alone
 * says: each thread adds its elements ascending, then lanes are added in a butterfly (16, 8, 4, 2, 1), then warps ascending.
 * A sum over rows: columns.h.  Whether elements are read 16 bytes at once follows from sizes alone too, because every
 * buffer stands at a multiple of 64 bytes; and both ways end in the same arithmetic, so that the compiler fuses products
 * and sums alike in both.
 */
#ifndef CUDA_KERNEL_H
#define CUDA_KERNEL_H
#include <stddef.h>
enum { ROW_BESIDE = 2048 };     /* bytes of shared memory that a block takes beside a row: its arrays, and the driver's 1024 */
#ifdef __CUDACC__
#include <cuda_runtime.h>
#include "../../cuda/device.h"

static __device__ __forceinline__ float power_of_two(float x)
{
    float y;
    asm("ex2.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
#define EXP2(x) power_of_two(x)

/* The same, 0 where it would be subnormal: a third of the instructions. */
static __device__ __forceinline__ float flushed_power(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
#define EXP2_FLUSHED(x) flushed_power(x)
#define FIELD __device__ __forceinline__        /* a function of a struct, for the GPU */
#define UNROLL _Pragma("unroll")                /* its index chooses among registers */
#define UNROLL_4 _Pragma("unroll 4")                /* loads of several rounds may be under way */
#define SHARED(type, name, n) __shared__ __align__(16) type name[n]
#define SHARED_AT(name, i) (&(name)[i])
#define LAUNCH(kernel, grid, block, st, ...) LAUNCH_WITH(kernel, 0, grid, block, st, __VA_ARGS__)
/* With bytes of SHARED_ROW; above 48 KiB they are asked for (leave_room). */
#define LAUNCH_WITH(kernel, bytes, grid, block, st, ...) \
    (LAUNCHED(kernel), kernel<<<grid, block, bytes, stream_of(st)>>>(__VA_ARGS__), \
     device_check(st, cudaGetLastError(), #kernel))
#define SHARED_ROW(type, name, n) \
    extern __shared__ __align__(16) unsigned char shared_row[]; \
    type *name = (type *)shared_row

/* Where a multiprocessor has room for two blocks with so many bytes each, the kernel may have them: how many blocks the GPU
 * holds at once.  Else 0. */
static inline unsigned leave_room(const Stage *st, const void *kernel, int block, size_t bytes)
{
    int gpu = 0, all = 0, processors = 0, each = 0;
    bool known = cudaGetDevice(&gpu) == cudaSuccess &&
                 cudaDeviceGetAttribute(&all, cudaDevAttrMaxSharedMemoryPerMultiprocessor, gpu) == cudaSuccess &&
                 cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, gpu) == cudaSuccess;
    if (!known || 2 * (bytes + ROW_BESIDE) > (size_t)all)
        return 0;
    device_check(st, cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes), "shared memory");
    device_check(st, cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                                          cudaSharedmemCarveoutMaxShared), "shared memory");
    device_check(st, cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernel, block, bytes), "shared memory");
    return (unsigned)(each * processors);
}

/* 16 bytes from memory to shared memory, while the thread goes on.  It sees them once fetches_wait() leaves fewer groups under
 * way than it has closed behind theirs. */
static __device__ __forceinline__ void fetch_16(void *to, const void *from)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
                 :: "r"((uint32_t)__cvta_generic_to_shared(to)), "l"(from) : "memory");
}
static __device__ __forceinline__ void fetches_close() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int LEFT> static __device__ __forceinline__ void fetches_wait()
{
    asm volatile("cp.async.wait_group %0;" :: "n"(LEFT) : "memory");
}

static inline void load_kernel(const Stage *st, const void *kernel)
{
    struct cudaFuncAttributes is;
    device_check(st, cudaFuncGetAttributes(&is, kernel), "loading a kernel");
}

/* Scratch of the call that is being enqueued: the next one may use it again. */
static inline void *workspace_of(const Stage *st, size_t bytes)
{
    if (bytes > device_of(st)->workspace_bytes)
        device_check(st, cudaErrorMemoryAllocation, "the workspace is too small for a kernel");
    return device_of(st)->workspace;
}
static inline size_t workspace_room(const Stage *st) { return device_of(st)->workspace_bytes; }
static __device__ __forceinline__ void check_aligned(const void *, size_t) {}
#else
#include "simt.h"
enum { GATHERED = 3968 };
static inline void gather_row(Stage *st, Together launch, const void *row, size_t bytes)
{
    simt_gather(st, launch, row, bytes);
}
#define FIELD inline
#define UNROLL
#define UNROLL_4
static inline void *workspace_of(Stage *st, size_t bytes) { return simt_workspace(st, bytes); }
static inline void check_aligned(const void *p, size_t bytes) { simt_aligned(p, bytes); }
static inline size_t workspace_room(const Stage *) { return 2 << 20; }
static inline unsigned leave_room(const Stage *, const void *, int, size_t bytes)
{
    return 2 * (bytes + ROW_BESIDE) <= 228 << 10 ? 3 : 0;
}
static inline void fetch_16(void *to, const void *from) { __builtin_memcpy(to, from, 16); }
static inline void fetches_close() {}
template <int LEFT> static inline void fetches_wait() {}
static inline void load_kernel(const Stage *, const void *kernel) { simt_load(kernel); }
#endif

/* Every kernel that some LAUNCH names, in a list that is made before main() begins. */
struct Known {
    const void *kernel;
    const Known *next;
    Known(const void *k, const Known **all) : kernel(k), next(*all) { *all = this; }
};
static const Known *known_kernels;
template <auto *kernel> struct Launched { static Known known; };
template <auto *kernel> Known Launched<kernel>::known((const void *)kernel, &known_kernels);
#define LAUNCHED(kernel) ((void)&Launched<kernel>::known)

extern "C" __attribute__((weak)) void kernels_load(const Stage *st)
{
    for (const Known *k = known_kernels; k; k = k->next)
        load_kernel(st, k->kernel);
}
#include "../../real.h"

/* Where a machine has 2^x itself: e^x = 2^t (1 + r ln 2), t + r = x / ln 2 with t rounded.  Two units in
 * the last place, and those of EXP2. */
FN float fexp(float x)
{
    x = x < -104.0f ? -104.0f : x;
    x = x > 89.0f ? 89.0f : x;
    float t = x * 0x1.715476p+0f, r = __builtin_fmaf(x, 0x1.715476p+0f, -t) + x * 0x1.4ae0cp-26f;
    return EXP2(t) * (1.0f + r * 0x1.62e430p-1f);
}

FN float fexp_near(float x)
{
    return fexp(x);
}
#include "../../formula.h"
#include "../../scalar.h"
#include "../../philox.h"

/* e^x where x is not above 0: fexp() with two thirds of its instructions, but 0 where that is below 2^-126. */
FN float fexp_below(float x)
{
#ifdef __CUDACC__
    x = x < -104.0f ? -104.0f : x;
    float t = __fmul_rn(x, 0x1.715476p+0f), r = __builtin_fmaf(x, 0x1.715476p+0f, -t) + x * 0x1.4ae0cp-26f;
    return EXP2_FLUSHED(t) * (1.0f + r * 0x1.62e430p-1f);
#else
    return fexp(x);
#endif
}

enum { WARP = 32, BLOCK = 256, WIDE = 16 / sizeof(real) };     /* WIDE: elements in 16 bytes */

/* What host code needs too. */
static inline long ceil_div(long a, long b) { return (a + b - 1) / b; }
static inline unsigned blocks_for(long threads)
{
    long n = ceil_div(threads, BLOCK);
    return n < 1 ? 1u : n > 1 << 14 ? 1u << 14 : (unsigned)n;
}

/* A loop over 0 .. n-1 that all threads of the grid share. */
#define GRID(i, n) \
    for (long i = (long)blockIdx.x * blockDim.x + threadIdx.x; i < (n); i += (long)gridDim.x * blockDim.x)

/* a / b for a >= 0, b > 0: dividing 64 bits takes the GPU three times as long. */
FN long quotient(long a, long b)
{
    return (a | b) >> 32 ? a / b : (long)((uint32_t)a / (uint32_t)b);
}

/* What divides again and again: a / by for 0 <= a < 2^31 as a product and a shift, a tenth of the instructions
 * (T. Granlund, P. Montgomery, Division by Invariant Integers using Multiplication, 1994, figure 4.1).  by > 0. */
struct Divisor { long by; uint32_t factor; int shift; };

static inline Divisor divisor_of(long by)
{
    int shift = 0;
    if (by >> 31)
        return Divisor{by, 0, 31};
    while ((long)1 << shift < by)
        shift++;
    return Divisor{by, (uint32_t)(((((uint64_t)1 << shift) - (uint64_t)by) << 32) / (uint64_t)by + 1), shift};
}

FN int quotient(int a, Divisor d)
{
    uint32_t high = (uint32_t)((uint64_t)(uint32_t)a * d.factor >> 32);
    return (int)((high + (uint32_t)a) >> d.shift);
}

FN long quotient(long a, Divisor d) { return a >> 31 ? a / d.by : quotient((int)a, d); }

/* ---- loads and stores -------------------------------------------------------------------------------------------- */

template <int N> struct alignas(N < 4 ? 4 * N : 16) Words { uint32_t at[N]; };

FN uint32_t two_bf16(float low, float high)
{
#ifdef __CUDA_ARCH__
    uint32_t w;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(w) : "f"(high), "f"(low));
    return w;
#else
    return float_bf16(low) | (uint32_t)float_bf16(high) << 16;
#endif
}

template <int N> FN void load(float (&v)[N], const float *p)
{
    check_aligned(p, alignof(Words<N>));
    Words<N> w = *(const Words<N> *)p;
    for (int j = 0; j < N; j++)
        v[j] = bits_float(w.at[j]);
}

template <int N> FN void load(float (&v)[N], const uint16_t *p)
{
    check_aligned(p, alignof(Words<N / 2>));
    Words<N / 2> w = *(const Words<N / 2> *)p;
    for (int j = 0; j < N; j += 2) {
        v[j] = bits_float(w.at[j / 2] << 16);
        v[j + 1] = bits_float(w.at[j / 2] & 0xffff0000u);
    }
}

template <int N> FN void store(float *p, const float (&v)[N])
{
    Words<N> w;
    check_aligned(p, alignof(Words<N>));
    for (int j = 0; j < N; j++)
        w.at[j] = float_bits(v[j]);
    *(Words<N> *)p = w;
}

template <int N> FN void store(uint16_t *p, const float (&v)[N])
{
    Words<N / 2> w;
    check_aligned(p, alignof(Words<N / 2>));
    for (int j = 0; j < N; j += 2)
        w.at[j / 2] = two_bf16(v[j], v[j + 1]);
    *(Words<N / 2> *)p = w;
}

/* store() to global memory, 16 bytes at once, for where the compiler makes four stores of 4 bytes of that one: with the same
 * bytes four times the requests. */
template <int N, class T> FN void store_out(T *p, const float (&v)[N])
{
#ifdef __CUDA_ARCH__
    enum { WORDS = N * sizeof(T) / 4 };
    if (WORDS % 4 == 0) {
        Words<WORDS> w;
        store((T *)&w, v);
        for (int j = 0; j < WORDS; j += 4)
            asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};"
                         : : "l"(__cvta_generic_to_global((char *)p + 4 * j)), "r"(w.at[j]), "r"(w.at[j + 1]), "r"(w.at[j + 2]),
                             "r"(w.at[j + 3]) : "memory");
        return;
    }
#endif
    store(p, v);
}

FN float one(const float *p, long i) { return p[i]; }
FN float one(const uint16_t *p, long i) { return bf16_float(p[i]); }
FN void set(float *p, long i, float v) { p[i] = v; }
FN void set(uint16_t *p, long i, float v) { p[i] = float_bf16(v); }

/* N elements of p from i on: adjacent ones at once (step 0), or `step` apart as far as n goes, then `fill`. */
template <int N, class T> FN void take(float (&v)[N], const T *p, long i, long n, int step, float fill = 0.0f)
{
    if (step == 0)
        load(v, p + i);
    else
        for (int j = 0; j < N; j++)
            v[j] = i + j * step < n ? one(p, i + j * step) : fill;
}

template <int N, class T> FN void leave(T *p, const float (&v)[N], long i, long n, int step)
{
    if (step == 0)
        store(p + i, v);
    else
        for (int j = 0; j < N; j++)
            if (i + j * step < n)
                set(p, i + j * step, v[j]);
}

/* v as storing it would round it. */
template <int N> FN void narrow(float (&)[N], const float *) {}
template <int N> FN void narrow(float (&v)[N], const uint16_t *)
{
    for (int j = 0; j < N; j += 2) {
        uint32_t w = two_bf16(v[j], v[j + 1]);
        v[j] = bits_float(w << 16);
        v[j + 1] = bits_float(w & 0xffff0000u);
    }
}

/* w + v of a tensor like p, for calls with the operand `onto`: the bits of storing v and adding in another call, since no
 * product in v is fused with this addition. */
template <int N, class T> FN void add(float (&v)[N], const float (&w)[N], const T *p)
{
    narrow(v, p);
    for (int j = 0; j < N; j++)
        v[j] = __fadd_rn(w[j], v[j]);
}

template <int N, class T> FN void add(float (&v)[N], const T *p, long i, long n, int step)
{
    float w[N];
    take(w, p, i, n, step);
    add(v, w, p);
}

/* Loads that stand before it stay before it: they are under way together. */
FN void loads_first(void)
{
#ifdef __CUDA_ARCH__
    asm volatile("" : : : "memory");
#endif
}

/* Groups of N elements: a loop over all n elements of something dense.  The last group may be short. */
#define GROUPS(i, step, N, n) \
    for (long i = ((long)blockIdx.x * blockDim.x + threadIdx.x) * (N), step; \
         i < (n) && (step = i + (N) <= (n) ? 0 : 1, 1); i += (long)gridDim.x * blockDim.x * (N))

/* ---- rows -------------------------------------------------------------------------------------------------------- */

/* A row belongs to a team: a warp, or from WIDE_ROW elements on a block. */
enum { WIDE_ROW = 1025 };

/* How the elements of a row are taken: 0, 16 bytes at once, where every row begins at a multiple of that. */
FN int row_step(long width, int team) { return width % WIDE ? team : 0; }

#define ROW(i, team, step, width) \
    for (long i = (long)(threadIdx.x % (team)) * ((step) ? 1 : WIDE); i < (width); i += (team) * WIDE)

/* The team's row; a warp without one leaves. */
#define ROW_OF(team) ((long)blockIdx.x * (BLOCK / (team)) + threadIdx.x / (team))

/* LAUNCH of a kernel template <int TEAM> with a row each. */
#define LAUNCH_ROWS(kernel, rows, width, st, ...) \
    do { \
        if ((width) < WIDE_ROW) \
            LAUNCH((kernel<WARP>), (unsigned)ceil_div(rows, BLOCK / WARP), (unsigned)BLOCK, st, __VA_ARGS__); \
        else \
            LAUNCH((kernel<BLOCK>), (unsigned)(rows), (unsigned)BLOCK, st, __VA_ARGS__); \
    } while (0)

template <class T> FN T warp_sum(T v)
{
    for (int way = WARP / 2; way; way /= 2)
        v += __shfl_xor_sync(0xffffffffu, v, way);
    return v;
}

FN float warp_max(float v)
{
    for (int way = WARP / 2; way; way /= 2) {
        float other = __shfl_xor_sync(0xffffffffu, v, way);
        v = other > v ? other : v;
    }
    return v;
}

/* Every thread of the team gets the result. */
template <int TEAM, class T> FN T team_sum(T v)
{
    SHARED(T, part, TEAM / WARP);
    v = warp_sum(v);
    if (TEAM == WARP)
        return v;
    if (threadIdx.x % WARP == 0)
        part[threadIdx.x / WARP] = v;
    __syncthreads();
    v = part[0];
    for (int i = 1; i < TEAM / WARP; i++)
        v += part[i];
    __syncthreads();
    return v;
}

template <int TEAM> FN float team_max(float v)
{
    SHARED(float, part, TEAM / WARP);
    v = warp_max(v);
    if (TEAM == WARP)
        return v;
    if (threadIdx.x % WARP == 0)
        part[threadIdx.x / WARP] = v;
    __syncthreads();
    v = part[0];
    for (int i = 1; i < TEAM / WARP; i++)
        v = part[i] > v ? part[i] : v;
    __syncthreads();
    return v;
}

/* The sum of exponentials of a stream, relative to the largest so far (M. Milakov, N. Gimelshein, Online normalizer
 * calculation for softmax, 2018). */
struct Online { float most, sum; };

template <int N> FN void absorb(Online *o, const float (&v)[N])
{
    float top = o->most;
    for (int j = 0; j < N; j++)
        top = fmaxf(top, v[j]);
    float shift = top == -F_INFINITY ? 0.0f : top, sum = top == o->most ? o->sum : o->sum * fexp_below(o->most - shift);
    for (int j = 0; j < N; j++)
        sum += fexp_below(v[j] - shift);            /* the largest is 1: nothing below 2^-126 counts */
    o->most = top;
    o->sum = sum;
}

template <int TEAM> FN Online team_online(Online o)
{
    Online all;
    all.most = team_max<TEAM>(o.most);
    float shift = all.most == -F_INFINITY ? 0.0f : all.most;
    all.sum = team_sum<TEAM>(o.sum * fexp(o.most - shift));
    return all;
}

/* f(v, i) for what the thread takes of a row, ascending; four loads are under way where the row allows it. */
template <int TEAM, class F> FN void over_row(const real *x, long width, int step, float fill, const F &f)
{
    long i = (long)(threadIdx.x % TEAM) * (step ? 1 : WIDE), next = TEAM * WIDE;
    float v[WIDE];
    for (; step == 0 && i + 3 * next < width; i += 4 * next) {
        Words<4> w[4];
        UNROLL
        for (int k = 0; k < 4; k++)
            w[k] = *(const Words<4> *)(x + i + k * next);
        UNROLL
        for (int k = 0; k < 4; k++) {
            load(v, (const real *)&w[k]);
            f(v, i + k * next);
        }
    }
    for (; i < width; i += next) {
        take(v, x, i, width, step, fill);
        f(v, i);
    }
}

template <int TEAM> FN Online row_online(const real *x, long width, int step)
{
    Online o = {-F_INFINITY, 0.0f};
    over_row<TEAM>(x, width, step, -F_INFINITY, [&](const float (&v)[WIDE], long) { absorb(&o, v); });
    return team_online<TEAM>(o);
}
#endif
