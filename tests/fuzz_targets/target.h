/* SPDX-License-Identifier: Apache-2.0
 *
 * target.h: what the fuzz targets share.  A target is one small file: LLVMFuzzerTestOneInput() hands the bytes to one reader.
 * replay.c runs it on the files of its corpus; clang -fsanitize=fuzzer makes new ones.
 *
 * Readers of the generator end the process at a mistake.  Here exit() is wrapped by the linker and leads back to the target,
 * memory since the start of the input is released, and diagnostics forget what they counted.  A bug in dpgen, status 70,
 * aborts, so that it is a finding.
 */
#ifndef TARGET_H
#define TARGET_H
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* Memory of a message that ends the process has an owner still. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}

/* Where targets write: build, or a new folder where there is none, as on a machine that only runs them. */
static inline const char *target_folder(void)
{
    static char path[] = "/tmp/fuzzed.XXXXXX";
    static const char *found;
    if (!found)
        found = access("build", W_OK) == 0 ? "build" : mkdtemp(path);
    if (!found)
        abort();
    return found;
}

/* The bytes as a file of this process, for readers that want a path. */
static inline const char *target_file(const uint8_t *data, size_t n)
{
    static char path[64];
    if (!*path)
        snprintf(path, sizeof path, "%s/fuzzed.%ld", target_folder(), (long)getpid());
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, 1, n, f) != n || fclose(f) != 0)
        abort();
    return path;
}

#if defined ALONE
/* a program of its own: no more */
#elif !defined RUNTIME
#include "base.h"
_Noreturn void __real_exit(int status);
_Noreturn void __wrap_exit(int status);
static jmp_buf back;
static volatile int running;
static void (*target_leave)(void);      /* what a library must be told before its memory goes */

void __wrap_exit(int status)
{
    if (!running)
        __real_exit(status);
    if (status == EXIT_BUG)
        abort();
    if (target_leave)
        target_leave();
    longjmp(back, 1);
}

static inline int target_run(void (*take)(const uint8_t *data, size_t n), const uint8_t *data, size_t n)
{
    void *mark = mem_mark();
    running = 1;
    if (setjmp(back) == 0)
        take(data, n);
    running = 0;
    mem_release(mark);
    diag_forget();
    return 0;
}
#else
#include "rt/parts.h"
/* Readers alone, without what the whole runtime leans on. */
const DataFormat *const job_formats[] = {NULL};
const Answers *const job_answers[] = {NULL};
const Parts job_parts = {0};
#endif
#endif
