/* SPDX-License-Identifier: Apache-2.0
 *
 * safetensors: weights; every tensor that is listed is read as one of its own shape.
 */
#define RUNTIME
#include "target.h"
#include "rt/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    SafeFile f;
    if (safe_open(&f, target_file(data, n)) == DONE)
        for (int i = 0; i < f.tensors; i++) {
            const SafeTensor *t = &f.tensor[i];
            enum { MOST = sizeof ((StateInfo *)0)->dim / sizeof *((StateInfo *)0)->dim };
            StateInfo s = {.name = t->name, .n = (t->to - t->from) / (strcmp(t->type, "F32") ? 2 : 4),
                           .ndim = t->ndim < MOST ? t->ndim : MOST};
            for (int k = 0; k < s.ndim; k++)
                s.dim[k] = t->dim[k];
            float *to = s.n < 1 << 20 ? malloc((size_t)s.n * sizeof *to + 1) : NULL;
            if (to)
                safe_read(&f, t, &s, to);
            free(to);
        }
    safe_close(&f);
    return 0;
}
