/* SPDX-License-Identifier: Apache-2.0
 *
 * option: -D and --set, a line each; lines that begin with a D are for -D.
 */
#include "target.h"
#include "plan.h"
#include "small.h"

static void take(const uint8_t *data, size_t n)
{
    Overrides over = {0};
    char *text = memcpy(alloc(n + 1), data, n);
    for (char *line = text, *end; *line; line = *end ? end + 1 : end) {
        end = line + strcspn(line, "\n");
        char *option = strf("%.*s", (int)(end - line), line);
        size_t name = strcspn(option, "=");
        bool unknown = *option == '-' && (!option[name] || !override_path(strf("%.*s", (int)name, option)));
        if (*option && !unknown)        /* options.c has refused those */
            *PUSH(*option == 'D' ? &over.define : &over.set) = option + (*option == 'D');
    }
    Model *m = model(load_text("small.yaml", small_yaml, strlen(small_yaml)), "small.yaml", &over);
    bad_stop();
    shape(build(m), m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    return target_run(take, data, n);
}
