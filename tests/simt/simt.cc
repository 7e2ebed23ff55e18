/* SPDX-License-Identifier: Apache-2.0
 *
 * Blocks of threads as fibers: simt.h.
 *
 * A fiber is a stack and a saved stack pointer.  The scheduler switches to each thread of a warp in turn; a thread comes
 * back when it ends, or waits at a barrier of its warp or block.  When all lanes of a warp wait at the same line they go
 * on; when all threads of the block do, they go on.  Anything else is a barrier that not all reach.
 *
 * Cost: on x86-64 a switch is twelve instructions that stand in the function which waits: no call and no return of its own.
 * A processor predicts where a return goes by the calls before it, and a fiber that goes on returns from the call that the
 * other one made: from the same place.  Elsewhere it is swapcontext(), which calls the kernel.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "simt.h"
#ifndef __x86_64__
#include <ucontext.h>
#endif

enum { WARP = 32, MOST = 1024, STACK = 64 << 10, SHARED_BYTES = 48 << 10, ARRAYS = 32, WORD = 24, ZONE = 64, POISON = 0xff };
enum { ROW_BYTES = 226 << 10 };
enum State { FRESH, READY, AT_WARP, AT_BLOCK, DONE };

#ifdef __x86_64__
typedef void *Context;
#ifdef __AVX512F__
#define WIDE_REGISTERS , "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25", "xmm26", \
    "xmm27", "xmm28", "xmm29", "xmm30", "xmm31", "k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7"
#else
#define WIDE_REGISTERS
#endif
/* Registers are the compiler's to keep; go on where the other one stopped.  A leaf may have 128 bytes below its stack. */
__attribute__((always_inline)) static inline void simt_switch(Context *from, Context to)
{
    asm volatile("lea -128(%%rsp), %%rsp\n\tpush %%rbp\n\tpush %%rbx\n\tlea 1f(%%rip), %%rax\n\tpush %%rax\n\t"
                 "mov %%rsp, (%%rdi)\n\tmov %%rsi, %%rsp\n\tpop %%rax\n\tjmp *%%rax\n"
                 "1:\tpop %%rbx\n\tpop %%rbp\n\tlea 128(%%rsp), %%rsp"
                 : "+D"(from), "+S"(to)
                 :: "rax", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "memory", "cc", "xmm0", "xmm1",
                 "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14",
                 "xmm15" WIDE_REGISTERS);
}
#else
typedef ucontext_t Context;
#endif

struct Fiber {
    Context context;
    State state;
    int line;                   /* of the barrier where it waits */
    unsigned turn;              /* warp operations so far: which half of `word` is its own */
    alignas(8) unsigned char word[2][WORD];
};

struct Array { const void *site; size_t at, bytes; };

struct Machine {
    Fiber fiber[MOST];
    Context scheduler;
    unsigned now, threads, turn, round;
    void (*thread)(void *);
    void *args;
    const char *name;
    Array array[ARRAYS];
    int arrays;
    size_t used;
    alignas(64) unsigned char shared[SHARED_BYTES + ARRAYS * ZONE];
    alignas(64) unsigned char row[ROW_BYTES];
    bool row_used;
    unsigned char *stack;
};

thread_local dim3 threadIdx, blockIdx, blockDim, gridDim;
static thread_local Machine *machine;

void simt_fail(const char *form, ...)
{
    va_list list;
    va_start(list, form);
    fprintf(stderr, "simt: %s, block %u, thread %u: ", machine ? machine->name : "no kernel", blockIdx.x, threadIdx.x);
    vfprintf(stderr, form, list);
    fprintf(stderr, "\n");
    va_end(list);
    exit(1);
}

/* ---- fibers ------------------------------------------------------------------------------------------------------ */

__attribute__((always_inline)) static inline void resume(Machine *m, unsigned i)
{
    m->now = i;
    threadIdx.x = i;
#ifdef __x86_64__
    simt_switch(&m->scheduler, m->fiber[i].context);
#else
    swapcontext(&m->scheduler, &m->fiber[i].context);
#endif
}

__attribute__((always_inline)) static inline void leave(Machine *m, State state, int line)
{
    Fiber *f = &m->fiber[m->now];
    f->state = state;
    f->line = line;
#ifdef __x86_64__
    simt_switch(&f->context, m->scheduler);
#else
    swapcontext(&f->context, &m->scheduler);
#endif
}

static void begin(void)
{
    machine->thread(machine->args);
    leave(machine, DONE, 0);
    abort();
}

static void prepare(Machine *m, unsigned i)
{
    unsigned char *stack = m->stack + (size_t)i * STACK;
    Fiber *f = &m->fiber[i];
    f->state = FRESH;
    f->turn = 0;
#ifdef __x86_64__
    void **top = (void **)(stack + STACK) - 1;      /* after the jump the stack is as behind a call */
    top[-1] = (void *)begin;
    f->context = top - 1;
#else
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = stack;
    f->context.uc_stack.ss_size = STACK;
    makecontext(&f->context, begin, 0);
#endif
}

/* ---- shared memory ----------------------------------------------------------------------------------------------- */

void *simt_shared(const void *site, size_t bytes)
{
    Machine *m = machine;
    for (int i = 0; i < m->arrays; i++)
        if (m->array[i].site == site)
            return m->shared + m->array[i].at;
    size_t room = (bytes + ZONE - 1) / ZONE * ZONE;
    if (m->arrays == ARRAYS || m->used + room > SHARED_BYTES + (size_t)m->arrays * ZONE)
        simt_fail("more than %d bytes of shared memory", SHARED_BYTES);
    m->array[m->arrays++] = Array{site, m->used, bytes};
    m->used += room + ZONE;
    return m->shared + m->array[m->arrays - 1].at;
}

/* What a launch asks for beside: one array a block. */
void *simt_row(long bytes)
{
    Machine *m = machine;
    if (bytes > ROW_BYTES)
        simt_fail("a row of %ld bytes", bytes);
    if (!m->row_used)
        memset(m->row, POISON, (size_t)bytes);
    m->row_used = true;
    return m->row;
}

static void check_zones(const Machine *m)
{
    for (int i = 0; i < m->arrays; i++) {
        size_t end = i + 1 < m->arrays ? m->array[i + 1].at : m->used;
        for (size_t at = m->array[i].at + m->array[i].bytes; at < end; at++)
            if (m->shared[at] != POISON)
                simt_fail("a write past the end of a shared array of %zu bytes", m->array[i].bytes);
    }
}

/* ---- barriers ---------------------------------------------------------------------------------------------------- */

void simt_barrier(int line) { leave(machine, AT_BLOCK, line); }

/* What `lane` of this warp brought to the same exchange. */
void *simt_exchange(int line, const void *mine, size_t bytes, unsigned lane)
{
    Machine *m = machine;
    unsigned i = m->now, half = m->fiber[i].turn++ & 1;
    if (bytes > WORD || lane >= WARP)
        simt_fail("a shuffle of %zu bytes with lane %u", bytes, lane);
    memcpy(m->fiber[i].word[half], mine, bytes);
    leave(m, AT_WARP, line);
    return m->fiber[i / WARP * WARP + lane].word[half];
}

/* What all lanes brought. */
void simt_gather(int line, const void *mine, size_t bytes, const void *all[32])
{
    unsigned first = machine->now / WARP * WARP, half = machine->fiber[machine->now].turn & 1;
    simt_exchange(line, mine, bytes, 0);
    for (unsigned i = 0; i < WARP; i++)
        all[i] = machine->fiber[first + i].word[half];
}

/* How many of the threads from first on are in a state; all of them must have come to one line. */
static unsigned waiting(const Machine *m, unsigned first, unsigned n, State state)
{
    unsigned count = 0;
    int line = 0;
    for (unsigned i = first; i < first + n; i++)
        if (m->fiber[i].state == state) {
            if (count++ && m->fiber[i].line != line)
                simt_fail("waits at line %d, another thread at line %d", m->fiber[i].line, line);
            line = m->fiber[i].line;
        }
    return count;
}

static void release(Machine *m, unsigned first, unsigned n)
{
    for (unsigned i = first; i < first + n; i++)
        m->fiber[i].state = READY;
}

/* Run a warp until none of its lanes can go on alone. */
static void run_warp(Machine *m, unsigned first)
{
    unsigned lanes = m->threads < WARP ? m->threads : (unsigned)WARP;
    for (;;) {
        bool back = m->turn++ & 1;
        for (unsigned i = 0; i < lanes; i++) {
            unsigned lane = first + (back ? lanes - 1 - i : i);
            if (m->fiber[lane].state <= READY)
                resume(m, lane);
        }
        unsigned here = waiting(m, first, lanes, AT_WARP);
        if (here == 0)
            return;
        if (here < lanes)
            simt_fail("an operation of the warp that %u of its lanes do not reach", lanes - here);
        release(m, first, lanes);
    }
}

static void run_block(Machine *m)
{
    memset(m->shared, POISON, m->used);
    m->arrays = 0, m->used = 0, m->row_used = false;
    for (unsigned i = 0; i < m->threads; i++)
        prepare(m, i);
    for (;;) {
        bool back = m->round++ & 1;
        for (unsigned i = 0, last = (m->threads - 1) / WARP * WARP; i <= last; i += WARP)
            run_warp(m, back ? last - i : i);
        unsigned here = waiting(m, 0, m->threads, AT_BLOCK);
        if (here == 0)
            break;
        if (here < m->threads)
            simt_fail("__syncthreads() that %u of %u threads do not reach", m->threads - here, m->threads);
        release(m, 0, m->threads);
    }
    check_zones(m);
}

void simt_grid(const char *name, dim3 grid, dim3 block, void (*thread)(void *), void *args)
{
    if (!machine) {
        machine = (Machine *)calloc(1, sizeof *machine);
        machine->stack = (unsigned char *)malloc((size_t)MOST * STACK);
        memset(machine->shared, POISON, sizeof machine->shared);
    }
    Machine *m = machine;
    m->name = name, m->thread = thread, m->args = args, m->threads = block.x;
    gridDim = grid, blockDim = block;
    if ((block.x % WARP && block.x != 1) || block.x > MOST || block.x == 0 || block.y * block.z != 1)
        simt_fail("a block of %u threads", block.x);
    if (grid.x == 0 || grid.x > 0x7fffffff || grid.y == 0 || grid.y > 65535 || grid.z == 0 || grid.z > 65535)
        simt_fail("a grid of %u x %u x %u", grid.x, grid.y, grid.z);
    for (blockIdx.z = 0; blockIdx.z < grid.z; blockIdx.z++)
        for (blockIdx.y = 0; blockIdx.y < grid.y; blockIdx.y++)
            for (blockIdx.x = 0; blockIdx.x < grid.x; blockIdx.x++)
                run_block(m);
}
