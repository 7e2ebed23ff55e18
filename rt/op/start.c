/* SPDX-License-Identifier: Apache-2.0
 *
 * The portable kernels run on any machine and any number of threads with the same bits: nothing to check at start.
 */
#include "../rt.h"

int kernels_start(int threads, char *why, size_t n)
{
    (void)threads, (void)why, (void)n;
    return 0;
}
