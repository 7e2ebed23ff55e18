/* SPDX-License-Identifier: Apache-2.0
 *
 * json: the reader of JSON in jobs: any value, an object of names and numbers.
 */
#define RUNTIME
#include "target.h"
#include "rt/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char key[32], text[64];
    int64_t x;
    Json j = json_open(data, n);
    json_skip(&j);
    json_end(&j);
    j = json_open(data, n);
    for (bool first = true, odd = false; json_member(&j, &first, key, sizeof key); odd = !odd)
        odd ? json_integer(&j, &x) : json_string(&j, text, sizeof text);
    return 0;
}
