/* SPDX-License-Identifier: Apache-2.0
 *
 * wrap.c: linked into a generated job to count calls of allocators while it trains, from the first step to the end of the
 * last: `--wrap` makes every reference from the emitted and runtime objects one to __wrap_malloc, and so on, here; what
 * libraries call is this file's own malloc, which takes the place of the C library's.  At the end one line per caller:
 *
 *     own NAME CALLS              by emitted code, runtime or kernels: must not be
 *     library FILE:SYMBOL CALLS   by a library, found from the return address; a place in the file when it has no symbol
 *
 * A library that ends with a jump to malloc is shown as the place that called it, which may be in the job itself.
 *
 * Needs glibc, for what stands behind malloc; TABLE callers at most.  Calls that map memory directly count as own too.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include "rt/rt.h"

enum { TABLE = 1024, NAMES = 16 };

extern void *__libc_malloc(size_t n), *__libc_calloc(size_t n, size_t size), *__libc_realloc(void *at, size_t n),
            *__libc_memalign(size_t unit, size_t n);
extern void __libc_free(void *at);

static atomic_int training, reported;
static struct { _Atomic(void *) at; atomic_long calls; } caller[TABLE];
static atomic_long own[NAMES];
static const char *const names[NAMES] = {"malloc", "calloc", "realloc", "free", "aligned_alloc", "posix_memalign",
    "memalign", "reallocarray", "strdup", "strndup", "mmap", "munmap", "pthread_create"};

static void count_own(int name)
{
    if (atomic_load(&training))
        atomic_fetch_add(&own[name], 1);
}

static void count_library(void *at)
{
    if (!atomic_load(&training))
        return;
    for (int i = 0; i < TABLE; i++) {
        void *none = NULL;
        if (atomic_load(&caller[i].at) == at || atomic_compare_exchange_strong(&caller[i].at, &none, at) || none == at) {
            atomic_fetch_add(&caller[i].calls, 1);
            return;
        }
    }
    fprintf(stderr, "wrap: more than %d callers\n", TABLE);
    abort();
}

/* ---- the time that counts ------------------------------------------------------------------------------------------ */
void __real_step_begin(Stage *st, Values *vals);
void __wrap_step_begin(Stage *st, Values *vals);
void __wrap_step_begin(Stage *st, Values *vals)
{
    atomic_store(&training, 1);
    __real_step_begin(st, vals);
}

static void report(void)
{
    for (int i = 0; i < NAMES && names[i]; i++)
        if (own[i])
            printf("own %s %ld\n", names[i], own[i]);
    for (int i = 0; i < TABLE && caller[i].at; i++) {
        Dl_info d = {0};
        int known = dladdr(caller[i].at, &d);
        const char *file = known && d.dli_fname ? strrchr(d.dli_fname, '/') : NULL;
        char place[32];
        snprintf(place, sizeof place, "0x%tx", (char *)caller[i].at - (char *)d.dli_fbase);
        printf("library %s:%s %ld\n", file ? file + 1 : "?", known && d.dli_sname ? d.dli_sname : place, caller[i].calls);
    }
    printf("counted\n");
    fflush(stdout);
}

/* Called once, when the stages have ended. */
void __real_watchdog_close(void *d);
void __wrap_watchdog_close(void *d);
void __wrap_watchdog_close(void *d)
{
    int trained = atomic_exchange(&training, 0);
    if (trained && !atomic_exchange(&reported, 1))
        report();
    __real_watchdog_close(d);
}

/* ---- called by our objects ------------------------------------------------------------------------------------------- */
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *at, size_t n);
void __wrap_free(void *at);
void *__wrap_aligned_alloc(size_t unit, size_t n);
int __wrap_posix_memalign(void **to, size_t unit, size_t n);
void *__wrap_memalign(size_t unit, size_t n);
void *__wrap_reallocarray(void *at, size_t n, size_t size);
char *__wrap_strdup(const char *s);
char *__wrap_strndup(const char *s, size_t n);
void *__real_mmap(void *at, size_t n, int may, int how, int file, off_t from);
void *__wrap_mmap(void *at, size_t n, int may, int how, int file, off_t from);
int __real_munmap(void *at, size_t n);
int __wrap_munmap(void *at, size_t n);
int __real_pthread_create(void *thread, const void *attr, void *(*f)(void *), void *x);
int __wrap_pthread_create(void *thread, const void *attr, void *(*f)(void *), void *x);

void *__wrap_malloc(size_t n) { count_own(0); return __libc_malloc(n); }
void *__wrap_calloc(size_t n, size_t size) { count_own(1); return __libc_calloc(n, size); }
void *__wrap_realloc(void *at, size_t n) { count_own(2); return __libc_realloc(at, n); }
void __wrap_free(void *at) { count_own(3); __libc_free(at); }
void *__wrap_aligned_alloc(size_t unit, size_t n) { count_own(4); return __libc_memalign(unit, n); }

static int memalign_to(void **to, size_t unit, size_t n)
{
    void *at = __libc_memalign(unit, n);
    if (at)
        *to = at;
    return at ? 0 : ENOMEM;
}

int __wrap_posix_memalign(void **to, size_t unit, size_t n) { count_own(5); return memalign_to(to, unit, n); }
void *__wrap_memalign(size_t unit, size_t n) { count_own(6); return __libc_memalign(unit, n); }

static void *array(void *at, size_t n, size_t size)
{
    if (size && n > SIZE_MAX / size) {
        errno = ENOMEM;
        return NULL;
    }
    return __libc_realloc(at, n * size);
}

void *__wrap_reallocarray(void *at, size_t n, size_t size) { count_own(7); return array(at, n, size); }

static char *copy(const char *s, size_t n)
{
    char *at = __libc_malloc(n + 1);
    if (at) {
        memcpy(at, s, n);
        at[n] = 0;
    }
    return at;
}

char *__wrap_strdup(const char *s) { count_own(8); return copy(s, strlen(s)); }
char *__wrap_strndup(const char *s, size_t n) { count_own(9); return copy(s, strnlen(s, n)); }

void *__wrap_mmap(void *at, size_t n, int may, int how, int file, off_t from)
{
    count_own(10);
    return __real_mmap(at, n, may, how, file, from);
}

int __wrap_munmap(void *at, size_t n) { count_own(11); return __real_munmap(at, n); }

int __wrap_pthread_create(void *thread, const void *attr, void *(*f)(void *), void *x)
{
    count_own(12);
    return __real_pthread_create(thread, attr, f, x);
}

/* ---- called by libraries ------------------------------------------------------------------------------------------------ */
#define CALLER __builtin_return_address(0)
void *malloc(size_t n) { count_library(CALLER); return __libc_malloc(n); }
void *calloc(size_t n, size_t size) { count_library(CALLER); return __libc_calloc(n, size); }
void *realloc(void *at, size_t n) { count_library(CALLER); return __libc_realloc(at, n); }
void free(void *at) { if (at) count_library(CALLER); __libc_free(at); }
void *aligned_alloc(size_t unit, size_t n) { count_library(CALLER); return __libc_memalign(unit, n); }
void *memalign(size_t unit, size_t n) { count_library(CALLER); return __libc_memalign(unit, n); }
int posix_memalign(void **to, size_t unit, size_t n) { count_library(CALLER); return memalign_to(to, unit, n); }
