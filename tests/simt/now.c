/* SPDX-License-Identifier: Apache-2.0
 *
 * Launches that run at once, and scratch from the heap: what simt.h wants of whoever links it.
 *
 * Every kernel is launched by some test.  The same tests are programs of the kit for GPUs (tests/gpu/kernels.c), so a kernel
 * that no test launches would run there for the first time in a job.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "../../rt/rt.h"

enum { KERNELS = 1024 };
static const void *used[KERNELS];
static int uses, unused;
extern char __executable_start[];

void simt_launch(Stage *st, const char *name, void (*run)(void *), const void *args, size_t bytes);
void *simt_workspace(Stage *st, size_t bytes);
void simt_gather(Stage *st, void (*launch)(Stage *st, const void *row, int n), const void *row, size_t bytes);
void simt_load(const void *kernel);
void simt_use(const char *name, const void *kernel);
void kernels_load(const Stage *st);

/* kernels_load() calls it for each kernel that there is. */
void simt_load(const void *kernel)
{
    int i = 0;
    while (i < uses && used[i] != kernel)
        i++;
    if (i < uses)
        return;
    unused++;
    fprintf(stderr, "simt: no test launches the kernel at %lx (nm of this program has its name)\n",
            (unsigned long)((const char *)kernel - __executable_start));
}

void simt_use(const char *name, const void *kernel)
{
    (void)name;
    for (int i = 0; i < uses; i++)
        if (used[i] == kernel)
            return;
    if (uses == KERNELS)
        abort();
    used[uses++] = kernel;
}

__attribute__((destructor)) static void all_used(void)
{
    kernels_load(NULL);
    if (unused)
        _exit(1);
}

void simt_launch(Stage *st, const char *name, void (*run)(void *), const void *args, size_t bytes)
{
    (void)st, (void)name, (void)bytes;
    run((void *)(uintptr_t)args);
}

void simt_gather(Stage *st, void (*launch)(Stage *st, const void *row, int n), const void *row, size_t bytes)
{
    (void)bytes;
    launch(st, row, 1);
}

void *simt_workspace(Stage *st, size_t bytes)
{
    static void *space;
    (void)st;
    free(space);
    space = malloc(bytes ? bytes : 1);
    if (!space)
        abort();
    return space;
}
