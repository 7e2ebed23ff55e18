/* SPDX-License-Identifier: Apache-2.0
 *
 * threads.c: how many threads a program started, on the last line of stderr.  Linked into opcheck by tests/bits.sh: threads are
 * made once, for the first call of a kernel, and never in a step.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

typedef int (*Create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
static atomic_int started;

/* In front of the library's own. */
int pthread_create(pthread_t *restrict thread, const pthread_attr_t *restrict how, void *(*start)(void *), void *restrict with)
{
    Create own;
    *(void **)&own = dlsym(RTLD_NEXT, "pthread_create");
    atomic_fetch_add(&started, 1);
    return own(thread, how, start, with);
}

__attribute__((destructor)) static void tell(void)
{
    fprintf(stderr, "%d threads\n", atomic_load(&started));
}
