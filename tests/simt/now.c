/* SPDX-License-Identifier: Apache-2.0
 *
 * Launches that run at once, and scratch from the heap: what simt.h wants of whoever links it.
 */
#include <stdio.h>
#include <stdlib.h>
#include "../../rt/rt.h"

void simt_launch(Stage *st, const char *name, void (*run)(void *), const void *args, size_t bytes);
void *simt_workspace(Stage *st, size_t bytes);
void simt_gather(Stage *st, void (*launch)(Stage *st, const void *row, int n), const void *row, size_t bytes);
void simt_load(const void *kernel);
void simt_use(const char *name, const void *kernel);

void simt_load(const void *kernel)
{
    (void)kernel;
}

void simt_use(const char *name, const void *kernel)
{
    (void)name, (void)kernel;
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
