/* SPDX-License-Identifier: Apache-2.0
 *
 * quantized.c: weights of few bits (quantize.h), as files have them: as floats.
 */
#include "quantize.h"
#include "run.h"

static bool read_records(Worker *w, const StateInfo *s, long from, long n, ArenaTake take, void *to)
{
    float wide[4096];
    bool good = true;
    for (long k; good && n > 0; from += k, n -= k) {
        k = n < 4096 ? n : 4096;
        quantized_read(wide, w->stage.arena + s->copy, s->bits, s->dim[1], from, k);
        good = take(to, wide, (size_t)k * sizeof *wide);
    }
    return good;
}

/* Whole records, the last one of the parameter too. */
static void narrow_records(Worker *w, const StateInfo *s, const float *from, long first, long n)
{
    long width = s->dim[1], each = quantized_each(s->bits, width), record = quantized_record(s->bits, width);
    unsigned char *to = w->stage.arena + s->copy + first / each * record;
    for (long at = 0; at < n; at += each, to += record)
        quantize_record(to, s->bits, from + at, n - at < each ? n - at : each);
}

static long each(const StateInfo *s)
{
    return quantized_each(s->bits, s->dim[1]);
}

const Quantized quantized_states = {read_records, narrow_records, each};
