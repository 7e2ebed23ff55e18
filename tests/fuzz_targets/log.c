/* SPDX-License-Identifier: Apache-2.0
 *
 * log: the log of a job, for TensorBoard.
 */
#include "target.h"
#include "view/view.h"

static void take(const uint8_t *data, size_t n)
{
    metrics_tensorboard(target_file(data, n), target_folder());
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    return target_run(take, data, n);
}
