/* SPDX-License-Identifier: Apache-2.0
 *
 * start.c: the portable kernels have the same bits on any machine and any number of threads, if the compiler rounds as
 * docs/bits.md asks.  rt/fmath.h refuses what a macro tells; contraction has none, so a known answer is asked of every file.
 * The linker puts the answers of all files into one array.
 */
#include <stdio.h>
#include "../isa.h"
#include "kernel.h"

ISA_OF_THIS_FILE;

extern KernelFile __start_kernel_files[], __stop_kernel_files[];

int kernels_start(int threads, char *why, size_t n)
{
    (void)threads;
    for (KernelFile *f = __start_kernel_files; f < __stop_kernel_files; f++)
        if ((*f)())
            return snprintf(why, n, "%s was compiled with fused multiply-add: its bits are not those of the numeric key; "
                            "compile the kernels with -ffp-contract=off, as the Makefile does", (*f)());
    return 0;
}

size_t kernels_bytes(const Stage *st)
{
    (void)st;
    return 0;
}

/* Changes whenever a bit of a result does. */
const char *kernels_version(void)
{
    return "portable 2";
}
