/* SPDX-License-Identifier: Apache-2.0
 *
 * The portable kernels run on any machine and any number of threads with the same bits: nothing to check at start.
 */
#include "../isa.h"
#include "../rt.h"

ISA_OF_THIS_FILE;

int kernels_start(int threads, char *why, size_t n)
{
    (void)threads, (void)why, (void)n;
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
    return "portable 1";
}
