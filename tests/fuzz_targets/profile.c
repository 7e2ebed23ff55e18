/* SPDX-License-Identifier: Apache-2.0
 *
 * profile: measured times; read and printed they are the same bytes.
 */
#include "target.h"
#include "cost/prof.h"

static void take(const uint8_t *data, size_t n)
{
    Text t;
    Profile *p = profile_parse(target_file(data, n), "measure again");
    profile_print(text_open(&t), p);
    text_close(&t);
    if (t.n != n || memcmp(t.at, data, n))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    return target_run(take, data, n);
}
