/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels of paced jobs do nothing, and pace.c lets the time pass.  calls.c has one for each call of rt.h.
 */
#include "../../isa.h"
#include "../../rt.h"

ISA_OF_THIS_FILE;

#pragma GCC diagnostic ignored "-Wunused-parameter"

int kernels_start(int threads, char *why, size_t n)
{
    return 0;
}

size_t kernels_bytes(const Stage *st)
{
    return 0;
}

const char *kernels_version(void)
{
    return "paced 1";
}
