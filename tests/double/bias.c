/* SPDX-License-Identifier: Apache-2.0
 *
 * bias.c: the double of rt/op/cuda/bias.cu: the column sums of dy, rows ascending, when the stream gets there.
 */
#include "double.h"
#include "rt/cuda/device.h"
#include "rt/op/cuda/bias.h"
#include "rt/real.h"

typedef struct { float *dbias; const real *dy; int acc; long rows, out; } Work;

static void sum(void *args)
{
    const Work *w = args;
    for (long j = 0; j < w->out; j++) {
        float s = 0;
        for (long i = 0; i < w->rows; i++)
            s += get(w->dy, i * w->out + j);
        w->dbias[j] = w->acc ? w->dbias[j] + s : s;
    }
}

void bias_gradient(Stage *st, float *dbias, const real *dy, int acc, long rows, long out)
{
    const Work w = {dbias, dy, acc, rows, out};
    double_enqueue(stream_of(st), "bias_gradient", sum, &w, sizeof w);
}
