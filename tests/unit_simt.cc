/* SPDX-License-Identifier: Apache-2.0
 *
 * The emulation of tests/simt: what it must compute, and what it must refuse.  A kernel that does something wrong runs in a
 * process of its own, which has to end with status 1 and the reason.
 */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "rt/op/cuda/kernel.h"

static int passed, failed;

extern "C" void simt_launch(Stage *, const char *, void (*run)(void *), const void *args, size_t)
{
    run((void *)(uintptr_t)args);
}

extern "C" void *simt_workspace(Stage *, size_t) { return 0; }
extern "C" void simt_load(const void *) {}
extern "C" void simt_use(const char *, const void *) {}

static void expect(bool ok, const char *what)
{
    passed += ok;
    failed += !ok;
    if (!ok)
        fprintf(stderr, "unit_simt: %s\n", what);
}

/* ---- right ------------------------------------------------------------------------------------------------------- */

static __global__ void place(int *to)
{
    to[(blockIdx.y * gridDim.x + blockIdx.x) * blockDim.x + threadIdx.x] += 1 + (int)threadIdx.x;
}

static __global__ void reverse(float *x)
{
    SHARED(float, room, 64);
    room[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = room[63 - threadIdx.x];
}

static __global__ void lanes(int *sum, unsigned *odd, int *left)
{
    int lane = (int)threadIdx.x % 32;
    sum[threadIdx.x] = warp_sum((int)threadIdx.x);
    if (threadIdx.x >= 32)
        odd[threadIdx.x] = __ballot_sync(0xffffffffu, lane % 2);
    left[threadIdx.x] = __shfl_up_sync(0xffffffffu, lane, 3);
}

static __global__ void unwritten(float *x)
{
    SHARED(float, room, 64);
    x[threadIdx.x] = room[threadIdx.x];
}

/* Thread `from` writes, all read, and no barrier lies between. */
static __global__ void hasty(float *x, unsigned from)
{
    SHARED(float, room, 1);
    if (threadIdx.x == from)
        room[0] = 1;
    x[blockIdx.x * 64 + threadIdx.x] = room[0];
}

static __global__ void totals(double *to)
{
    double sum = team_sum<BLOCK>((double)threadIdx.x);
    float most = team_max<BLOCK>(threadIdx.x == 77 ? 5.0f : -1.0f);
    to[threadIdx.x] = sum + most;
}

static void right(void)
{
    static int count[2 * 3 * 64], sum[64], left[64];
    static unsigned odd[64];
    static float x[64], y[64];
    static double all[BLOCK];
    bool ok = true;
    LAUNCH(place, dim3(2, 3), 64u, 0, count);
    for (int i = 0; i < 2 * 3 * 64; i++)
        ok &= count[i] == 1 + i % 64;
    expect(ok, "each thread of each block runs once");
    for (int i = 0; i < 64; i++)
        x[i] = (float)i;
    LAUNCH(reverse, 1u, 64u, 0, x);
    ok = true;
    for (int i = 0; i < 64; i++)
        ok &= x[i] == (float)(63 - i);
    expect(ok, "a barrier makes shared memory visible");
    LAUNCH(lanes, 1u, 64u, 0, sum, odd, left);
    ok = true;
    for (int i = 0; i < 64; i++)
        ok &= sum[i] == (i < 32 ? 496 : 1520) && odd[i] == (i < 32 ? 0 : 0xaaaaaaaau) &&
              left[i] == (i % 32 < 3 ? i % 32 : i % 32 - 3);
    expect(ok, "shuffles and ballots");
    LAUNCH(unwritten, 1u, 64u, 0, y);
    ok = true;
    for (int i = 0; i < 64; i++)
        ok &= y[i] != y[i];
    expect(ok, "shared memory is NaN until written");
    for (unsigned from = 0; from < 64; from += 21) {
        static float z[4 * 64];
        int lost = 0;
        LAUNCH(hasty, 4u, 64u, 0, z, from);
        for (int i = 0; i < 4 * 64; i++)
            lost += i % 64 / 32 != (int)from / 32 && z[i] != z[i];
        expect(lost > 0, "a missing barrier between warps shows");
    }
    LAUNCH(totals, 1u, (unsigned)BLOCK, 0, all);
    ok = true;
    for (int i = 0; i < BLOCK; i++)
        ok &= all[i] == 255 * 128 + 5;
    expect(ok, "sums and maxima of a block");
}

/* Beside multiples, where a quotient that is one off shows; divisors beside powers of two, and others. */
static void quotients(void)
{
    const long most = 0x7fffffff;
    bool ok = true;
    for (int bit = 0; bit < 31; bit++)
        for (long off = -2; off <= 2; off++) {
            long by = (1l << bit) * (bit % 3 == 2 ? 3 : 1) / (bit % 3 == 2 ? 4 : 1) + off;
            if (by < 1 || by > most)
                continue;
            Divisor d = divisor_of(by);
            for (long k = 0; k < 200; k++) {
                long times = k < 100 ? k : most / by - (k - 100);
                for (long a = times * by - 1; a <= times * by + 1; a++)
                    ok &= a < 0 || a > most || quotient((int)a, d) == a / by;
            }
            for (long a = most; a < most << 20; a = 5 * a + 3)
                ok &= quotient(a, d) == a / by;
        }
    for (long by = 1l << 31; by < 1l << 34; by = by / 2 * 3)
        for (long k = 0; k < 5; k++) {
            long a = k == 0 ? 0 : k == 1 ? most : (k - 2) * by + by - 1 + k % 2;
            ok &= quotient(a, divisor_of(by)) == a / by;
        }
    expect(ok, "quotients by a product");
}

/* ---- wrong ------------------------------------------------------------------------------------------------------- */

static __global__ void half_barrier(float *)
{
    if (threadIdx.x < 32)
        __syncthreads();
}

static __global__ void two_barriers(float *)
{
    if (threadIdx.x < 32)
        __syncthreads();
    else
        __syncthreads();
}

static __global__ void half_warp(float *x)
{
    if (threadIdx.x < 40)
        x[0] = warp_sum(1.0f);
}

static __global__ void out_of_range(float *x)
{
    SHARED(float, room, 16);
    x[0] = room[threadIdx.x];
}

static __global__ void past_the_end(float *)
{
    SHARED(float, room, 16);
    float *at = SHARED_AT(room, 15);
    at[threadIdx.x / 63] = 0;
}

static __global__ void misaligned(float *x)
{
    float v[4];
    load(v, x + 1);
}

static void wrong(const char *name, void (*kernel)(float *), dim3 block, const char *reason)
{
    static float x[64];
    char said[512] = "";
    int end[2], status = 0;
    if (pipe(end))
        return expect(false, "pipe");
    pid_t child = fork();
    if (child == 0) {
        dup2(end[1], 2);
        simt_queue((Stage *)0, name, kernel, 1u, block, x);
        _exit(0);
    }
    close(end[1]);
    for (size_t n = 0; n < sizeof said - 1;) {
        ssize_t k = read(end[0], said + n, sizeof said - 1 - n);
        if (k <= 0)
            break;
        n += (size_t)k;
    }
    close(end[0]);
    waitpid(child, &status, 0);
    bool ok = WIFEXITED(status) && WEXITSTATUS(status) == 1 && strstr(said, reason) && strstr(said, name);
    expect(ok, name);
    if (!ok)
        fprintf(stderr, "    status %d, wanted '%s', got '%s'\n", status, reason, said);
}

int main(void)
{
    right();
    quotients();
    wrong("half_barrier", half_barrier, 64u, "__syncthreads() that 32 of 64 threads do not reach");
    wrong("two_barriers", two_barriers, 64u, "waits at line");
    wrong("half_warp", half_warp, 64u, "an operation of the warp that 24 of its lanes do not reach");
    wrong("out_of_range", out_of_range, 64u, "of a shared array of 16");
    wrong("past_the_end", past_the_end, 64u, "a write past the end of a shared array of 64 bytes");
    wrong("misaligned", misaligned, 64u, "16 bytes at once");
    wrong("odd_block", unwritten, 48u, "a block of 48 threads");
    wrong("large_block", unwritten, 2048u, "a block of 2048 threads");
    printf("unit_simt: %d passed, %d failed\n", passed, failed);
    return failed != 0;
}
